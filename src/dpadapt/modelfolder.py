"""A model folder: the fitted model, its guarantee and its report, side by side.

``model.skops``
    The model, read back without running any code of the file: only types of scikit-learn, numpy
    and this library are accepted.
``guarantee.json``
    The guarantee in plain text. On loading it must equal the model's own.
``report.html``
    The same for human readers.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpadapt.privacy import Guarantee

if TYPE_CHECKING:
    from dpadapt.report import ReportContext

__all__ = ["ModelFolderError", "check_destination", "load_model", "save_model"]

_MODEL, _GUARANTEE, _REPORT = "model.skops", "guarantee.json", "report.html"
_HARMLESS = ("numpy.dtype",)  # what scikit-learn's imputers remember of their input
_NOT_SAVED = ("ledger", "random_state")  # a handle on a database; a seed that would undo the noise


class ModelFolderError(ValueError):
    """A model folder cannot be written, or is not what it says."""


def save_model(
    model: Any,
    folder: str | os.PathLike[str],
    *,
    context: ReportContext | None = None,
    force: bool = False,
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
    import skops.io

    from dpadapt.report import write_report

    target = check_destination(folder, force=force)
    public = _without_secrets(model)
    try:
        content = skops.io.dumps(public)
    except Exception as error:  # whatever a part that is no plain data provokes
        raise ModelFolderError(
            f"a {type(model).__name__} of these parts, such as a network of torch, does not fit "
            f"into a model folder ({type(error).__name__}); store it by other means, with "
            "guarantee_.to_json() beside it."
        ) from None
    _check_types(_MODEL, content)
    target.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        (new / _MODEL).write_bytes(content)
        (new / _GUARANTEE).write_text(model.guarantee_.to_json() + "\n", encoding="utf-8")
        write_report(public, new / _REPORT, context=context)
        os.chmod(new, 0o755)
        _put_in_place(new, target)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return target


def load_model(folder: str | os.PathLike[str]) -> Any:
    """Read a model back; its guarantee is checked against ``guarantee.json``.

    Parameters
    ----------
    folder : path
        Written by :func:`save_model`.

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
    dpadapt.modelfolder.ModelFolderError: there is no model folder at no such folder.
    """
    import skops.io

    source = Path(folder)
    if not source.is_dir():
        raise ModelFolderError(f"there is no model folder at {source}.")
    content = _read(source, _MODEL)
    trusted = _check_types(source / _MODEL, content)
    try:
        stated = Guarantee.from_dict(json.loads(_read(source, _GUARANTEE)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(f"{source / _GUARANTEE} is not a valid guarantee: {error}") from None
    try:
        model = skops.io.loads(content, trusted=trusted)
        own = model.guarantee_
    except Exception as error:  # whatever a damaged file provokes
        raise ModelFolderError(_damaged(source / _MODEL, error)) from None
    if own != stated:
        raise ModelFolderError(
            f"{source / _GUARANTEE} is not the guarantee of the model beside it; one of the two "
            "files was replaced."
        )
    return model


def check_destination(folder: str | os.PathLike[str], *, force: bool) -> Path:
    """Refuse a place where no model folder can be written; before any budget is spent.

    Examples
    --------
    >>> check_destination("/", force=True)
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.ModelFolderError: / exists and is not a model folder; choose another \
place for the model.
    """
    target = Path(folder)
    if target.is_symlink() or target.exists():
        if not (target.is_dir() and _is_ours(target)):
            raise ModelFolderError(
                f"{target} exists and is not a model folder; choose another place for the model."
            )
        if not force:
            raise ModelFolderError(f"{target} exists; use --force (force=True) to replace it.")
    parent = next(place for place in target.absolute().parents if place.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise ModelFolderError(f"{target} cannot be written: no permission to write in {parent}.")
    return target


def _is_ours(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    return not folder.is_symlink() and names <= {_MODEL, _GUARANTEE, _REPORT} and _MODEL in names


def _put_in_place(new: Path, target: Path) -> None:
    """Rename the new folder to the target, moving an old one out of the way first."""
    if not target.exists():
        os.rename(new, target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    os.rename(target, old / "old")
    os.rename(new, target)
    shutil.rmtree(old, ignore_errors=True)


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


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError:
        raise ModelFolderError(
            f"{folder} is not a model folder: {name} is missing or cannot be read."
        ) from None


def _check_types(name: str | Path, content: bytes) -> list[str]:
    """Return the types of this library that a model file needs; refuse any others."""
    import skops.io

    try:
        needed = skops.io.get_untrusted_types(data=content)
    except Exception as error:  # whatever a damaged file provokes
        raise ModelFolderError(_damaged(name, error)) from None
    foreign = [each for each in needed if not _is_trusted(each)]
    if foreign:
        raise ModelFolderError(
            f"{name} holds types that are neither scikit-learn's nor this library's, and is "
            f"refused because they could run any code: {', '.join(sorted(foreign))}."
        )
    return list(needed)


def _is_trusted(name: str) -> bool:
    """Whether a dotted name is a harmless type, or a class that this library itself defines."""
    if name in _HARMLESS:
        return True
    module, _, attribute = name.rpartition(".")
    if not module.startswith("dpadapt."):
        return False
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module


def _damaged(name: str | Path, error: Exception) -> str:
    return f"{name} is damaged or not a model file ({type(error).__name__})."
