"""Files of a folder: read with care, written to last, put in place in one step; and the errors."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class ModelFolderError(ValueError):
    """A model folder cannot be written, or is not what it says."""


class ModelExistsError(ModelFolderError):
    """There is a model folder already."""


class ModelWriteError(ModelFolderError):
    """The disk, or who owns it, does not let a model folder be written."""


AGAIN = "Copy the whole model folder again from where it was made, or fit anew."
"""What to do about a damaged folder."""

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_OLD = "old"


def read_file(path: Path, most: int) -> bytes:
    """Content of a plain file of at most ``most`` bytes; links, pipes and devices are refused.

    Examples
    --------
    >>> read_file(Path("/dev/null"), 10)
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: /dev/null is not a plain file.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    for name in ("O_NOFOLLOW", "O_NONBLOCK"):  # a pipe would wait for its writer
        flags |= getattr(os, name, 0)
    try:
        opened = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise ModelFolderError(f"{path} is not a plain file.") from None
        raise ModelFolderError(f"{path} is missing or cannot be read.") from None
    facts = os.fstat(opened)
    if not stat.S_ISREG(facts.st_mode):
        os.close(opened)
        raise ModelFolderError(f"{path} is not a plain file.")
    with os.fdopen(opened, "rb") as file:
        if facts.st_size > most:
            raise ModelFolderError(f"{path} is larger than {most:,} bytes, the most that is read.")
        try:
            return file.read(min(most, facts.st_size))
        except (OSError, MemoryError):
            raise ModelFolderError(f"{path} cannot be read.") from None


def parse_json(path: Path, content: bytes) -> Any:
    """Values of a JSON file; doubled names, NaN, other encodings and endless nesting are refused.

    Examples
    --------
    >>> parse_json(Path("model.json"), b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: model.json is no valid JSON. Copy the whole model \
folder again from where it was made, or fit anew.
    """
    try:
        return json.loads(
            content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number
        )
    except (ValueError, RecursionError, MemoryError):
        raise ModelFolderError(f"{path} is no valid JSON. {AGAIN}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _no_number(text: str) -> Any:
    raise ValueError


def write_file(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "a", b"b")
    ...     read_file(Path(folder) / "a", 10)
    b'b'
    """
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Make a hidden folder beside ``target``, gone at the end unless it was put in place.

    It is locked while it is in use. What others left behind who were killed is not: it is removed
    here, or, if it is the only copy of a model that was being replaced, put back.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with new_folder(Path(parent) / "model") as folder:
    ...         folder.parent == Path(parent), folder.name.startswith(".model-")
    (True, True)
    """
    prefix = f".{target.name}-"
    for left in sorted(target.parent.glob(f"{_escaped(prefix)}????????.part")):
        with _locked(left) as free:
            if free:
                _clear(left, target)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=target.parent))
        with _locked(folder) as mine:
            if not mine:  # another process took it for left behind before it was locked
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def put_in_place(folder: Path, target: Path) -> None:
    """Rename a folder to ``target`` in one step, and wait until that is on the disk.

    An existing model folder changes places with it where the system can do that (Linux). Elsewhere
    it is moved aside first; the next save puts it back if this one is killed in between.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with new_folder(Path(parent) / "model") as folder:
    ...         put_in_place(folder, Path(parent) / "model")
    ...     os.listdir(parent)
    ['model']
    """
    _sync_folder(folder)
    try:
        if not target.is_dir():
            os.rename(folder, target)  # refused by the system if there is anything
        elif not _exchanged(folder, target):
            with new_folder(target) as aside:
                os.rename(target, aside / _OLD)
                os.rename(folder, target)
    except OSError as error:
        raise ModelWriteError(f"{target} cannot be written: {error.strerror}.") from None
    _sync_folder(target.parent)


def _clear(left: Path, target: Path) -> None:
    """Remove what a killed process left behind; put back the old model if there is no other."""
    with contextlib.suppress(OSError):
        if (left / _OLD).is_dir() and not target.exists():
            os.rename(left / _OLD, target)
    shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a folder; False if it is locked, gone or another one by now (or cannot be locked)."""
    try:
        import fcntl

        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (ImportError, OSError):
        yield False
        return
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            same = os.path.samestat(os.fstat(opened), os.lstat(folder))
        except OSError:
            same = False
        yield same
    finally:
        os.close(opened)


def _exchanged(one: Path, two: Path) -> bool:
    """Let two folders change places in one step; False where the system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    return rename(_HERE, os.fsencode(one), _HERE, os.fsencode(two), _EXCHANGE) == 0


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some systems do not sync folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _escaped(text: str) -> str:
    import glob

    return glob.escape(text)
