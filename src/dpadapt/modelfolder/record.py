"""``guarantee.json``: the guarantee, tied to the files beside it, and what else a folder remembers.

The digests of the files tie them to the guarantee. The record holds public facts beside the model,
for what is done with it later.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpadapt.privacy import Guarantee
from dpadapt.privacy.files.guarantees import read_guarantee

from .files import AGAIN, ModelFolderError, parse_json, read_file

if TYPE_CHECKING:
    from dpadapt.report import ReportContext

MOST_BYTES = 2**24
"""Of a ``guarantee.json``, in which the record stands."""

SEALED = ("model.json", "arrays.bin")
"""Files that are the model; a report is written again beside them."""

_REPORTED = (
    "title",
    "public_name",
    "private_name",
    "label",
    "unit",
    "public_rows",
    "feature_scale",
)


@dataclass(frozen=True)
class Record:
    """Public facts about a fit: what its report said, and how its files were read.

    Parameters
    ----------
    title, public_name, private_name, label, unit : str
    public_rows : int or None
    feature_scale : tuple of float
    left_out : tuple of (str, str)
        Columns that the model does not use, and why.
    evaluation : mapping or None
        Of people held out, as plain values.
    form : mapping of str to str
        ``sep``, ``decimal`` and ``encoding`` of the private CSV file.
    label_range : (float, float) or None
        Of public labels that are numbers.
    largest_error : float or None
        That counts, from public labels.
    held_out : (float, int) or None
        Share of the private people that the fit has held out to be measured, and how many there
        were with them.
    on_public : mapping or None
        How far the model and the public model are apart on public rows, as plain values.

    Examples
    --------
    >>> record = Record(label="wage", label_range=(0.0, 9.0))
    >>> Record.from_dict(record.to_dict()) == record
    True
    """

    title: str = ""
    public_name: str = ""
    private_name: str = ""
    label: str = ""
    unit: str = ""
    public_rows: int | None = None
    feature_scale: tuple[float, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    evaluation: Mapping[str, Any] | None = None
    form: Mapping[str, str] = field(default_factory=dict)
    label_range: tuple[float, float] | None = None
    largest_error: float | None = None
    held_out: tuple[float, int] | None = None
    on_public: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, context: ReportContext | None, reading: Mapping[str, Any]) -> Record:
        """What a report says, and how files were read (``form`` and the bounds of labels)."""
        if context is None:
            return cls(**reading)
        told = {name: getattr(context, name) for name in _REPORTED}
        told["feature_scale"] = tuple(float(each) for each in told["feature_scale"])
        left_out = tuple(context.left_out)
        evaluation = next(iter(context.evaluations), None)  # of people held out: a fit has no other
        return cls(**told, left_out=left_out, evaluation=evaluation, **reading)

    @property
    def report_arguments(self) -> dict[str, Any]:
        """What is known for a report, as arguments of ``ReportContext``."""
        known = {name: getattr(self, name) for name in (*_REPORTED, "left_out")}
        if self.evaluation is not None:
            known["evaluations"] = (self.evaluation,)
        known["held_out"] = True if self.held_out else None
        return {name: value for name, value in known.items() if value not in ("", None, ())}

    @property
    def bounds(self) -> dict[str, Any]:
        """What is known about labels that are numbers, as arguments of ``evaluate``."""
        known = {"label_range": self.label_range, "largest_error": self.largest_error}
        return {name: value for name, value in known.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is not known is left out."""
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in known.items()
            if value not in ("", None, ()) and value != {}
        }

    @classmethod
    def from_dict(cls, data: Any) -> Record:
        """Rebuild from :meth:`to_dict`; values of another kind are refused.

        What a stranger wrote is data, no more: an evaluation is checked by who shows it, and facts
        about public rows by who uses them.
        """
        given = dict(data)
        kinds = {each.name for each in fields(cls)}
        if not set(given) <= kinds:
            raise ValueError("names")
        for name in ("feature_scale", "label_range"):
            if name in given:
                given[name] = tuple(_number(each) for each in given[name])
        if len(given.get("label_range", (0, 0))) != 2:
            raise ValueError("label_range")
        if "held_out" in given:
            share, people = given["held_out"]
            given["held_out"] = (_number(share), int(_number(people)))
        if "largest_error" in given:
            given["largest_error"] = _number(given["largest_error"])
        given["left_out"] = tuple((name, why) for name, why in given.get("left_out", ()))
        texts = [given.get(name, "") for name in _REPORTED[:5]]
        texts += [each for pair in given["left_out"] for each in pair]
        form, rows = given.get("form", {}), given.get("public_rows", 0)
        texts += [each for pair in form.items() for each in pair]
        if not all(isinstance(each, str) for each in texts) or type(rows) is not int:
            raise ValueError("texts")
        if not set(form) <= {"sep", "decimal", "encoding"}:
            raise ValueError("form")
        return cls(**given)


def read_record(folder: Path) -> tuple[Record, dict[str, str], str]:
    """Record of a model folder, digests of its files, and the digest of the model in them.

    The digest of the model is that of ``model.json`` and ``arrays.bin``: a report that is written
    again leaves it as it is. A folder of an older dpadapt has an empty record.

    Parameters
    ----------
    folder : Path

    Examples
    --------
    >>> import tempfile
    >>> from dpadapt import DiscrepancyRegressor
    >>> from dpadapt.modelfolder import save_model
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     record, digests, model = read_record(save_model(model, Path(parent) / "model"))
    >>> sorted(digests), len(model)
    (['arrays.bin', 'model.json', 'report.html'], 64)
    """
    path = folder / "guarantee.json"
    digests, kept = sealed_facts(path, read_file(path, MOST_BYTES))
    try:
        record = Record.from_dict(kept)
        both = [str(digests[name]) for name in SEALED]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ModelFolderError(f"{path} has a record that no fit has written. {AGAIN}") from None
    return record, digests, hashlib.sha256(" ".join(both).encode()).hexdigest()


def _number(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not math.isfinite(given):
        raise ValueError("number")
    return float(given)


_FILES, _DIGEST, _RECORD = "files", "digest", "record"
_BLANK = "0" * 64  # stands for the digest of the file itself while that is computed
_HEX = re.compile("[0-9a-f]{64}")
_COMPUTED = ("relation", "sentence")  # what a guarantee says of its events, beside epsilon


def seal(
    guarantee: Guarantee, files: Mapping[str, bytes], record: Mapping[str, Any] | None = None
) -> bytes:
    """Content of ``guarantee.json``.

    Parameters
    ----------
    guarantee : Guarantee
    files : mapping of str to bytes
        The files beside it, by their names.
    record : mapping, optional
        Public facts about the fit, as plain values.

    Examples
    --------
    >>> content = seal(Guarantee(), {"model.json": b"{}"})
    >>> unseal(Path("guarantee.json"), content, {"model.json": b"{}"}) == Guarantee()
    True
    """
    digests = {name: _sha256(content) for name, content in files.items()}
    kept = {_RECORD: dict(record)} if record else {}
    data = {**guarantee.to_dict(), **kept, _FILES: digests, _DIGEST: _BLANK}
    blank = (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()
    return blank.replace(_BLANK.encode(), _sha256(blank).encode())


def unseal(path: Path, content: bytes, files: Mapping[str, bytes]) -> Guarantee:
    """Guarantee in a ``guarantee.json``, if it and the files beside it are as they were written.

    The epsilon, the relation and the sentence are computed from the events again.

    Parameters
    ----------
    path : Path
        Of the file, for messages.
    content : bytes
    files : mapping of str to bytes
        The files beside it, by their names.

    Examples
    --------
    >>> content = seal(Guarantee(), {"model.json": b"{}"})
    >>> unseal(Path("m/guarantee.json"), content, {"model.json": b"{ }"})
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: m/model.json is not the file that \
m/guarantee.json was written with: it is damaged, or of another model. Copy the whole model \
folder again from where it was made, or fit anew.
    """
    data = _unbroken(path, content)
    for name, each in files.items():
        _check(path, _digests(data), name, each)
    return _recomputed(path, data)


def check_digest(path: Path, content: bytes, name: str, file: bytes) -> None:
    """Refuse a file that a ``guarantee.json`` was not written with.

    Examples
    --------
    >>> content = seal(Guarantee(), {"model.json": b"{}"})
    >>> check_digest(Path("guarantee.json"), content, "model.json", b"{}")
    """
    _check(path, _digests(_unbroken(path, content)), name, file)


def check_length(path: Path, name: str, most: int) -> None:
    """Refuse a file that is longer than what is in it, before it is read.

    Examples
    --------
    >>> check_length(Path("no such folder/guarantee.json"), "arrays.bin", 8)
    """
    with contextlib.suppress(OSError):  # told by who reads it
        if (path.parent / name).lstat().st_size > most:
            raise _other_file(path, name)


def _check(path: Path, digests: dict[str, Any], name: str, file: bytes) -> None:
    if digests.get(name) != _sha256(file):
        raise _other_file(path, name)


def _other_file(path: Path, name: str) -> ModelFolderError:
    return ModelFolderError(
        f"{path.parent / name} is not the file that {path} was written with: it is damaged, or of "
        f"another model. {AGAIN}"
    )


def sealed_names(path: Path, content: bytes) -> frozenset[str]:
    """Names of the files that a ``guarantee.json`` was written with.

    Examples
    --------
    >>> sealed_names(Path("guarantee.json"), seal(Guarantee(), {"model.json": b"{}"}))
    frozenset({'model.json'})
    """
    return frozenset(_digests(_unbroken(path, content)))


def sealed_facts(path: Path, content: bytes) -> tuple[dict[str, Any], Any]:
    """Digests of the files that a ``guarantee.json`` was written with, and its record.

    Examples
    --------
    >>> content = seal(Guarantee(), {"model.json": b"{}"}, {"label": "wage"})
    >>> sealed_facts(Path("guarantee.json"), content)[1]
    {'label': 'wage'}
    """
    data = _unbroken(path, content)
    return _digests(data), data.get(_RECORD, {})


def _unbroken(path: Path, content: bytes) -> dict[str, Any]:
    """Values of a ``guarantee.json`` that has its own digest."""
    data = parse_json(path, content)
    if not isinstance(data, dict):
        raise ModelFolderError(f"{path} is no guarantee of a model folder. {AGAIN}")
    digest = data.get(_DIGEST)
    if not isinstance(digest, str) or not _HEX.fullmatch(digest):
        raise ModelFolderError(f"{path} was changed after it was written. {AGAIN}")
    if digest != _sha256(content.replace(digest.encode(), _BLANK.encode())):
        raise ModelFolderError(f"{path} was changed after it was written. {AGAIN}")
    return data


def _digests(data: dict[str, Any]) -> dict[str, Any]:
    return data[_FILES] if isinstance(data.get(_FILES), dict) else {}


def _recomputed(path: Path, data: dict[str, Any]) -> Guarantee:
    try:
        guarantee = read_guarantee(data)
        computed = guarantee.to_dict()
    except Exception as error:  # whatever strange events provoke
        reason = str(error) if type(error) is ValueError else type(error).__name__
        raise ModelFolderError(f"{path} is not a valid guarantee: {reason}") from None
    for name in _COMPUTED:
        if data.get(name) != computed[name]:
            raise ModelFolderError(
                f"{path} is not a valid guarantee: its {name} is not that of its events."
            )
    return guarantee


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
