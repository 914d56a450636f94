"""``guarantee.json``: the guarantee, tied to the files beside it by their digests."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpadapt.privacy import Guarantee
from dpadapt.privacy.files.guarantees import read_guarantee

from .errors import ModelFolderError
from .files import AGAIN, parse_json

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
    dpadapt.modelfolder.errors.ModelFolderError: m/model.json is not the file that \
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
