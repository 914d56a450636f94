"""Rows that are kept for the next sum: in memory up to a limit, then in a file without a name.

A fit is many sums over the same rows. Reading and cleaning them is most of the work, so it is done
once, and what came out is kept. It never depends on a private cell where a block is kept, nor
whether it is: sizes alone decide, which are public. A block comes back as it was, to the last bit
and in the same layout of memory (which a matrix product may depend on), and nobody can change it.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np

from .errors import PrivacyError, StorageError
from .memory import free_memory

_PART = 4  # of the memory that is free: a quarter is for kept rows
_UNKNOWN = 1 << 30  # bytes, where the system does not say how much memory is free
_APART = 64  # bytes: every array in a file begins at a multiple of it, as in memory
_PIECE = 1 << 20  # bytes of zeros that are written at once
_FOLDER = "/var/tmp"  # on a disk, where /tmp is often memory

_UNITS = {"": 1.0}
_UNITS |= {name: 1000.0**power for power, name in enumerate("kmgt", start=1)}
_UNITS |= {f"{name}i": 1024.0**power for power, name in enumerate("kmgt", start=1)}

KeptBlock = tuple[Any, ...]  # arrays of one block, or None


@dataclass(frozen=True)
class Keeping:
    """How much memory kept rows may take, and where the rest of them goes.

    Parameters
    ----------
    memory : float, optional
        Bytes. By default a quarter of what is free when rows are first kept.
    spill : bool, default=True
        Whether rows beyond it may be written to a file.
    folder : Path, optional
        Of the file; by default ``$TMPDIR``, or ``/var/tmp``.

    Examples
    --------
    >>> Keeping(memory=1e9).store().limit
    1000000000.0
    """

    memory: float | None = None
    spill: bool = True
    folder: Path | None = None

    def store(self) -> RowStore:
        """A new place for rows, with all of that room."""
        return RowStore(self)


class RowStore:
    """Room for kept rows, which all that is kept in it shares.

    Parameters
    ----------
    keeping : Keeping

    Examples
    --------
    >>> store = Keeping(memory=100.0, spill=False).store()
    >>> store.check(80.0)
    >>> store.check(1e9)
    Traceback (most recent call last):
    ...
    dpadapt.privacy.rows.errors.StorageError: cleaned rows take 1 GB, and 1e-07 GB of memory may \
be used to keep them. Nothing may be written to a disk (spill=False), and without that every sum \
would read all files again. Allow more memory, or a file: private.kept(memory=..., spill=...); on \
the command line --keep-memory, --spill-folder.
    """

    def __init__(self, keeping: Keeping) -> None:
        free = free_memory() / _PART
        usual = free if math.isfinite(free) else float(_UNKNOWN)
        self.limit = usual if keeping.memory is None else float(keeping.memory)
        self._spill = keeping.spill
        self._folder = default_folder() if keeping.folder is None else keeping.folder
        self._taken, self._count = 0, Lock()

    @property
    def left(self) -> float:
        """Bytes of memory that are not taken."""
        return max(0.0, self.limit - self._taken)

    def check(self, needed: float) -> None:
        """Refuse what finds no room, by sizes alone, before a row is kept.

        Parameters
        ----------
        needed : float
            Bytes.
        """
        beyond = needed - self.left
        if beyond <= 0:
            return
        if not self._spill:
            raise StorageError(
                f"cleaned rows take {needed / 1e9:.3g} GB, and {self.left / 1e9:.3g} GB of memory "
                "may be used to keep them. Nothing may be written to a disk (spill=False), and "
                "without that every sum would read all files again. Allow more memory, or a file: "
                "private.kept(memory=..., spill=...); on the command line --keep-memory, "
                "--spill-folder."
            )
        free = _free_disk(self._folder)
        if beyond > free:
            raise StorageError(
                f"cleaned rows take {needed / 1e9:.3g} GB: {self.left / 1e9:.3g} GB of memory may "
                f"be used to keep them, and {free / 1e9:.3g} GB are free in {self._folder} for the "
                "rest. Name a folder on a larger disk, or allow more memory: "
                "private.kept(memory=..., folder=...); on the command line --spill-folder, "
                "--keep-memory."
            )
        try:
            tempfile.TemporaryFile(dir=self._folder).close()
        except OSError as error:  # nobody may write there
            raise self.full(error) from None

    def shelf(self, needed: float) -> Shelf:
        """A place for blocks that take so many bytes together; refused if there is no room."""
        self.check(needed)
        return Shelf(self, needed)

    def take(self, size: int) -> bool:
        """Take memory, if there is as much left."""
        with self._count:
            fits = self._taken + size <= self.limit
            self._taken += size * fits
        return fits

    def give_back(self, size: int) -> None:
        """Give memory back."""
        with self._count:
            self._taken -= size

    def file(self, size: int) -> IO[bytes]:
        """A file of that size without a name, for this user alone."""
        if not self._spill:
            raise StorageError(
                "kept rows take more memory than foreseen. What was charged before is spent."
            )
        # 0600, deleted while open; without a buffer, which a forked process would write out again
        file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        try:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk says so now
        except AttributeError:  # not on every system
            pass
        except BaseException:
            file.close()
            raise
        return file

    def full(self, error: OSError) -> StorageError:
        """What is said if the file cannot be made or written."""
        why = os.strerror(error.errno) if error.errno else "an error of the disk"
        return StorageError(
            f"cleaned rows could not be kept in {self._folder} ({why}). What was charged before is "
            "spent. Name another folder, or allow more memory: private.kept(memory=..., "
            "folder=...); on the command line --spill-folder, --keep-memory."
        )


@dataclass(frozen=True)
class _Place:
    """Where an array lies in the file."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


class Shelf:
    """Blocks of rows in their order; nobody can change them, and after ``close`` nobody reads them.

    Parameters
    ----------
    store : RowStore
    needed : float
        Bytes of all blocks together.

    Examples
    --------
    >>> shelf = Keeping(memory=0.0).store().shelf(needed=24.0)
    >>> shelf.add((np.arange(3.0), None))
    >>> shelf.seal()
    >>> list(shelf)
    [(array([0., 1., 2.]), None)]
    >>> shelf.close()
    """

    def __init__(self, store: RowStore, needed: float) -> None:
        self._store, self._needed = store, needed
        self._blocks: list[KeptBlock] = []
        self._held = self._size = 0  # bytes in memory, and in the file
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self._maker = os.getpid()

    def add(self, block: KeptBlock) -> None:
        """Keep one more block, of arrays that nobody changes any more (:func:`locked`)."""
        size = sum(array.nbytes for array in block if array is not None)
        if (self._file is None or not size) and self._store.take(size):
            self._held += size
            self._blocks.append(block)
            return
        try:
            self._blocks.append(tuple(None if a is None else self._written(a) for a in block))
        except OSError as error:
            self.close()
            raise self._store.full(error) from None

    def _written(self, array: Any) -> _Place:
        if self._file is None:
            self._file = self._store.file(max(1, math.ceil(self._needed - self._held)))
        array = in_one_piece(array)
        start = -(-self._size // _APART) * _APART
        _write(self._file, bytes(start - self._size))
        _write(self._file, array.ravel(order="K").view(np.uint8))
        self._size = start + array.nbytes
        return _Place(start, array.shape, array.strides, array.dtype)

    def seal(self) -> None:
        """Say that this was the last block."""
        if self._file is None or not self._size:
            return
        try:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            self.close()
            raise self._store.full(error) from None

    def __iter__(self) -> Iterator[KeptBlock]:
        for block in tuple(self._blocks):
            yield tuple(self._read(each) if isinstance(each, _Place) else each for each in block)

    def _read(self, place: _Place) -> Any:
        if self._map is None:
            raise PrivacyError("the rows that were kept are gone; open a new session.")
        # an array made of the map itself would not keep it from being unmapped under its feet
        held = np.frombuffer(self._map, np.uint8)
        return np.ndarray(place.shape, place.dtype, held, place.start, place.strides)

    def close(self) -> None:
        """Forget all rows; of those in the file, whoever still holds a block reads zeros.

        In a forked process only its own part is dropped: who made them may be reading.
        """
        if self._map is not None and self._maker == os.getpid():
            try:
                self._map.close()
            except BufferError:  # a block is held by somebody
                self._blank()
        self._release()

    def _blank(self) -> None:
        """Zeros in place of all rows; at no time is an address invalid, at which others may read.

        A file that is cut, if only for a moment, would end the process that reads in it.
        """
        if self._file is None:
            return
        size = os.fstat(self._file.fileno()).st_size
        with contextlib.suppress(AttributeError, OSError):  # not on every system, nor every disk
            with mmap.mmap(self._file.fileno(), size) as rows:
                rows.madvise(mmap.MADV_REMOVE)
            return
        self._file.seek(0)
        for start in range(0, size, _PIECE):
            _write(self._file, bytes(min(_PIECE, size - start)))

    def _release(self) -> None:
        self._blocks.clear()
        self._store.give_back(self._held)
        self._held, self._map = 0, None
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:  # another statistic may be reading a block: none is blanked
        with contextlib.suppress(Exception):  # the process may be ending
            self._release()


def in_one_piece(array: Any) -> Any:
    """The same in one piece of memory, so that it has the same layout when it comes from a file.

    Examples
    --------
    >>> in_one_piece(np.arange(6.0)[::2]).strides
    (8,)
    """
    return array if array.flags.forc else np.array(array, order="K")


def locked(array: Any) -> Any:
    """The same numbers in the same layout, which nobody can change through what is returned.

    A flag alone could be set back by whoever is given an array.

    Examples
    --------
    >>> locked(np.ones(2)).flags.writeable = True
    Traceback (most recent call last):
    ...
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    if array is None:
        return None
    array = in_one_piece(array)
    memory = memoryview(array.ravel(order="K").view(np.uint8)).toreadonly()
    held = np.asarray(memory)  # numpy would look through a view of memory, and find the array
    return np.ndarray(array.shape, array.dtype, held, 0, array.strides)


def _write(file: IO[bytes], data: Any) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def size_of(name: str, given: float | str) -> float:
    """Number of bytes, from a number or a text; ``name`` is what it was given for.

    Examples
    --------
    >>> size_of("memory", "2GB"), size_of("memory", "0.5 MiB"), size_of("memory", 1000)
    (2000000000.0, 524288.0, 1000.0)
    """
    text = str(given).strip().lower().removesuffix("b")
    unit = text.lstrip("0123456789.e+-").strip()
    try:
        size = float(text.removesuffix(unit)) * _UNITS[unit]
    except (KeyError, ValueError):
        size = math.nan
    if isinstance(given, bool) or not size >= 0:
        raise ValueError(
            f"{name} must be a number of bytes, or a text such as '500MB' or '2GB'; got {given!r}."
        )
    return size


def default_folder() -> Path:
    """Where files of kept rows go if nothing is said: ``$TMPDIR``, or a folder on a disk.

    Examples
    --------
    >>> default_folder().is_dir()
    True
    """
    if not os.environ.get("TMPDIR") and os.access(_FOLDER, os.W_OK | os.X_OK):
        return Path(_FOLDER)
    return Path(tempfile.gettempdir())


def _free_disk(folder: Path) -> float:
    import shutil

    try:
        return float(shutil.disk_usage(folder).free)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "an error of the disk"
        raise StorageError(f"the folder for kept rows, {folder}, cannot be used ({why}).") from None
