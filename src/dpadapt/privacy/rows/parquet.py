"""Blocks of rows from Parquet files, decoded by a second thread while the last one is reduced."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from ..core.errors import LET_THROUGH, PrivacyError

AHEAD = 2  # batches decoded before they are asked for
BATCH_BLOCKS = 4  # blocks in a batch: pyarrow decodes long batches faster, blocks stay in the cache
STREAM_BYTES = 1 << 16  # of each column: pyarrow would read a whole row group, which may be a file
_READING = {
    "pre_buffer": False,
    "buffer_size": STREAM_BYTES,
    "page_checksum_verification": True,  # where a file has checksums; most writers add none
}


def parquet_files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files of a path, of a list of paths, or of a folder."""
    files: list[Path] = []
    for each in map(Path, [path] if isinstance(path, (str, Path)) else path):
        files += sorted(each.glob("*.parquet")) if each.is_dir() else [each]
    if not files:
        raise ValueError("path: no Parquet file there; give a file, a list, or their folder.")
    return files


def sizes(paths: Sequence[Path]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Column names and the number of rows of each file; raises if the names differ."""
    import pyarrow.parquet as parquet

    try:
        footers = [parquet.read_metadata(path) for path in paths]
        names = [tuple(footer.schema.to_arrow_schema().names) for footer in footers]
    except (OSError, ValueError) as error:
        listed = ", ".join(str(path) for path in paths)
        raise ValueError(f"path: {listed} cannot be read as Parquet files.") from error
    if len({tuple(sorted(each)) for each in names}) > 1:
        raise ValueError("path: the Parquet files do not have the same columns.")
    return names[0], tuple(int(footer.num_rows) for footer in footers)


def batches_ahead(
    paths: Sequence[Path], counts: Sequence[int], columns: Sequence[str], rows: int
) -> Iterator[Any]:
    """Record batches of at most ``rows`` rows, in order; the thread ends with the iterator."""
    decoding = _batches(paths, counts, columns, rows * BATCH_BLOCKS)
    with closing(decoding), ThreadPoolExecutor(1, "dpadapt-parquet") as pool:
        waiting = deque(pool.submit(next, decoding, None) for _ in range(AHEAD))
        while (batch := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(next, decoding, None))
            for start in range(0, batch.num_rows, rows):
                yield batch[start : start + rows]


def _batches(
    paths: Sequence[Path], counts: Sequence[int], columns: Sequence[str], rows: int
) -> Generator[Any, None, None]:
    import pyarrow.parquet as parquet

    for path, count in zip(paths, counts, strict=True):
        left: float = count
        try:
            with parquet.ParquetFile(path, **_READING) as file:
                if set(columns) <= set(file.schema_arrow.names):  # pyarrow skips absent columns
                    read = file.iter_batches(rows, columns=list(columns), use_threads=False)
                    for batch in _even(read, rows):
                        left -= batch.num_rows
                        yield batch
        except LET_THROUGH:
            raise
        except BaseException:
            left = float("nan")  # and no word of the reason, which may quote a value
        if left != 0:
            raise PrivacyError(
                f"{path}: the file was changed, removed or damaged after it was opened, and can no "
                "longer be read. Nothing was released; open it again with Private.from_parquet."
            )


def _even(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """The same rows in batches of exactly so many, but for the last.

    Row groups end, and batches with them, where a writer had enough bytes or another dictionary:
    one cell would move the blocks, which progress and the order of sums can tell.
    """
    waiting: list[Any] = []
    for batch in batches:
        rest = batch
        while (missing := rows - sum(each.num_rows for each in waiting)) <= rest.num_rows:
            yield _joined([*waiting, rest[:missing]])
            waiting, rest = [], rest[missing:]
        waiting += [rest] * (rest.num_rows > 0)
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Any]) -> Any:
    """One record batch of several with the same columns; texts may be longer than 2 GB together."""
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    table = pa.Table.from_batches(parts)
    plain = [field.with_type(_long(field.type)) for field in table.schema]
    (joined,) = table.cast(pa.schema(plain)).combine_chunks().to_batches()
    return joined


def _long(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _long(kind.value_type)
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)
