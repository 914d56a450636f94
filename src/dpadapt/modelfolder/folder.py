"""Save and load model folders; see :mod:`dpadapt.modelfolder` for what is in them."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.privacy import Guarantee

from .files import (
    AGAIN,
    ModelExistsError,
    ModelFolderError,
    ModelWriteError,
    new_folder,
    parse_json,
    put_in_place,
    read_file,
    write_file,
)
from .reading import decode
from .record import (
    MOST_BYTES,
    SEALED,
    Record,
    check_digest,
    check_length,
    seal,
    sealed_names,
    unseal,
)
from .writing import encode, most_bytes

if TYPE_CHECKING:
    from dpadapt.report import ReportContext

_MODEL, _ARRAYS, _REPORT, _GUARANTEE = "model.json", "arrays.bin", "report.html", "guarantee.json"
_MEGABYTE = 2**20
_MOST = {_MODEL: 64 * _MEGABYTE, _ARRAYS: 2**33, _REPORT: 64 * _MEGABYTE, _GUARANTEE: MOST_BYTES}
_ROOM, _ROOM_BYTES = "room", 4 * _MEGABYTE  # set aside until there is a model
_NOT_SAVED = ("ledger", "random_state")  # a handle on a database; a seed that would undo the noise


def save_model(
    model: Any,
    folder: str | os.PathLike[str],
    *,
    context: ReportContext | None = None,
    force: bool = False,
    trusted: Collection[str] = (),
) -> Path:
    """Write a fitted model, its guarantee and its report to a new folder, all or nothing.

    Parameters
    ----------
    model : estimator
        Fitted, of this library (or an ``AdaptationPipeline``). Its ``ledger`` and
        ``random_state`` are not stored.
    folder : path
        Must not exist, unless ``force``.
    context : ReportContext, optional
        What the report should say beyond the model.
    force : bool, default=False
        Replace an existing model folder. Another folder or file is never replaced.
    trusted : collection of str, optional
        Names of classes and functions beside those of the closed list that parts of the model may
        be, such as "my_package.MyTransformer". Whoever loads the model must name them as well.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from dpadapt import DiscrepancyRegressor
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit(np.eye(3), [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = save_model(model, pathlib.Path(parent) / "model")
    ...     same = load_model(folder)
    >>> bool(np.all(same.predict(np.eye(3)) == model.predict(np.eye(3))))
    True
    """
    with open_destination(folder, force=force) as place:
        return place.write(model, context=context, trusted=trusted)


@dataclass(frozen=True)
class Destination:
    """A place for a model folder, with a draft beside it that exists and is locked.

    Made by :func:`open_destination`.

    Parameters
    ----------
    target : Path
        Where the model folder will be.
    draft : Path
        Where it is written until it is complete.
    force : bool
        Whether it may replace a model folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with open_destination(Path(parent) / "model", force=False) as place:
    ...         place.draft.exists(), place.target.exists()
    (True, False)
    """

    target: Path
    draft: Path
    force: bool

    def write(
        self,
        model: Any,
        *,
        context: ReportContext | None = None,
        trusted: Collection[str] = (),
        reading: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a fitted model, its guarantee and its report, and put them in place, once.

        What the report says of the samples is kept, and ``reading``: how files were read.
        """
        from dpadapt.report import write_report

        public, new = _without_secrets(model), self.draft
        try:
            tree, numbers = encode(public, trusted)
            content = json.dumps(tree, allow_nan=False).encode()
            decode(json.loads(content), numbers, trusted)  # what cannot be loaded is not saved
        except ModelFolderError as error:
            raise ModelFolderError(
                f"this {type(model).__name__} does not fit into a model folder: {error}"
            ) from None
        (new / _ROOM).unlink(missing_ok=True)
        write_file(new / _MODEL, content)
        write_file(new / _ARRAYS, numbers)
        write_report(public, new / _REPORT, context=_with_digests(context, content, numbers))
        report = (new / _REPORT).read_bytes()
        write_file(new / _REPORT, report)
        files = {_MODEL: content, _ARRAYS: numbers, _REPORT: report}
        record = Record.of(context, reading or {})
        write_file(new / _GUARANTEE, seal(model.guarantee_, files, record.to_dict()))
        os.chmod(new, 0o755)
        check_destination(self.target, force=self.force)  # somebody else may have written there
        put_in_place(new, self.target)
        return self.target


def _with_digests(context: ReportContext | None, content: bytes, numbers: Any) -> ReportContext:
    """What a report says beyond the model, with the digests of the files beside it."""
    from dpadapt.report import ReportContext

    both = zip(SEALED, (content, numbers), strict=True)
    digests = {name: hashlib.sha256(each).hexdigest() for name, each in both}
    return replace(context or ReportContext(), digests=digests)


@contextlib.contextmanager
def open_destination(folder: str | os.PathLike[str], *, force: bool) -> Iterator[Destination]:
    """Begin a model folder before there is a model: what the system refuses, it refuses now.

    Parameters
    ----------
    folder, force
        As for :func:`save_model`.

    Yields
    ------
    Destination
        Its ``write`` takes the model. Without that, nothing is left at the end.

    Examples
    --------
    >>> with open_destination("no such folder/..", force=False):
    ...     pass
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: no such folder/.. must end in a name for the \
model folder.
    """
    target = check_destination(folder, force=force)
    missing = [each for each in target.parents if not each.exists()]
    with contextlib.ExitStack() as stack:
        for parent in reversed(missing):
            stack.callback(_remove_if_empty, parent)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = stack.enter_context(new_folder(target))
            _set_aside(draft / _ROOM)
        except OSError as error:
            raise ModelWriteError(f"{target} cannot be written: {error.strerror}.") from None
        yield Destination(target, draft, force)


def _set_aside(place: Path) -> None:
    """Take room on the disk for a model of the usual size: one that is full is found out now."""
    if not hasattr(os, "posix_fallocate"):
        return
    with open(place, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, _ROOM_BYTES)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def load_model(folder: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Any:
    """Read a model back; no code of the folder runs, and its guarantee is checked.

    Parameters
    ----------
    folder : path
        Written by :func:`save_model`.
    trusted : collection of str, optional
        Names of classes and functions beside those of the closed list that the model may hold.
        Only what you would run anyway belongs here.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFolderError
        The folder is missing, damaged, from elsewhere, or its files do not belong together.

    Examples
    --------
    >>> load_model("no such folder")
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: there is no model folder at no such folder.
    """
    source = Path(folder)
    if not source.is_dir():
        raise ModelFolderError(f"there is no model folder at {source}.")
    _check_listing(source)
    sealed, content = (read_file(source / n, _MOST[n]) for n in (_GUARANTEE, _MODEL))
    check_digest(source / _GUARANTEE, sealed, _MODEL, content)
    tree = parse_json(source / _MODEL, content)
    check_length(source / _GUARANTEE, _ARRAYS, most_bytes(tree))
    arrays = read_file(source / _ARRAYS, _MOST[_ARRAYS])
    report = read_file(source / _REPORT, _MOST[_REPORT])
    files = {_MODEL: content, _ARRAYS: arrays, _REPORT: report}
    stated = unseal(source / _GUARANTEE, sealed, files)
    try:
        model = decode(tree, arrays, trusted)
        own = model.guarantee_
        _check_columns(model)
    except ModelFolderError as error:
        raise ModelFolderError(f"the model in {source} is refused: {error}") from None
    except Exception as error:  # whatever numbers of a wrong kind or shape provoke
        raise ModelFolderError(
            f"{source / _MODEL} is damaged ({type(error).__name__}). {AGAIN}"
        ) from None
    if not isinstance(own, Guarantee) or own != stated:
        raise ModelFolderError(
            f"{source / _GUARANTEE} is not the guarantee of the model beside it. {AGAIN}"
        )
    return model


def _check_columns(model: Any) -> None:
    """Refuse a model, or one inside, that says of its columns what no fit says."""
    for each in (model, getattr(model, "estimator_", None)):
        facts = vars(each) if hasattr(each, "__dict__") else {}
        count, names = facts.get("n_features_in_", 1), facts.get("feature_names_in_")
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
            raise ModelFolderError("its number of columns is no number of columns.")
        if names is not None and np.shape(names) != (count,):
            raise ModelFolderError("its columns do not have a name each.")


def check_destination(folder: str | os.PathLike[str], *, force: bool) -> Path:
    """Refuse a place where no model folder can be written; before any budget is spent.

    Examples
    --------
    >>> check_destination("/", force=True)
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: / exists and is not a model folder; choose \
another place for the model.
    """
    target = _named(folder)
    if target.name == "..":
        raise ModelFolderError(f"{target} must end in a name for the model folder.")
    try:
        there = target.lstat() is not None
    except FileNotFoundError:
        there = False
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have this name"
        raise ModelWriteError(f"{target} cannot be written: {reason}.") from None
    if there:
        if not (target.is_dir() and _is_ours(target)):
            raise ModelFolderError(
                f"{target} exists and is not a model folder; choose another place for the model."
            )
        if not force:
            raise ModelExistsError(f"{target} exists; use force=True to replace it.")
    parent = next(place for place in target.absolute().parents if place.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise ModelWriteError(f"{target} cannot be written: no permission to write in {parent}.")
    return target


def _named(folder: str | os.PathLike[str]) -> Path:
    """The same place without a detour (``m/../m``), which may lead through what is to be made."""
    target = Path(folder)
    if ".." not in target.parent.parts:
        return target
    return Path(os.path.realpath(target.parent)) / target.name


def _check_listing(folder: Path) -> None:
    """Refuse a folder with a file too few or too many."""
    try:
        found = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise ModelFolderError(f"{folder} cannot be read: {error.strerror}.") from None
    if missing := sorted(set(_MOST) - found):
        raise ModelFolderError(f"{folder} is no model folder: {missing[0]} is missing. {AGAIN}")
    if extra := sorted(found - set(_MOST)):
        raise ModelFolderError(
            f"{folder} holds {extra[0]!r}, which is no file of a model. Move it elsewhere."
        )


def _is_ours(folder: Path) -> bool:
    """Whether a folder holds nothing but files of a model, one of them with our digests."""
    try:
        if folder.is_symlink() or not {path.name for path in folder.iterdir()} <= set(_MOST):
            return False
        if not all(stat.S_ISREG(path.lstat().st_mode) for path in folder.iterdir()):
            return False
        sealed = read_file(folder / _GUARANTEE, _MOST[_GUARANTEE])
        return sealed_names(folder / _GUARANTEE, sealed) == set(_MOST) - {_GUARANTEE}
    except (OSError, ModelFolderError):
        return False


def _without_secrets(model: Any) -> Any:
    """Copy of a model that holds neither a ledger nor a seed."""
    plain = copy.copy(model)
    for name in ("estimator", "estimator_"):
        if hasattr(plain, name):
            setattr(plain, name, _without_secrets(getattr(plain, name)))
    for name in _NOT_SAVED:
        if hasattr(plain, name):
            setattr(plain, name, None)
    return plain
