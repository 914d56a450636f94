"""Blocks of rows from Parquet files, decoded by a second thread while the last one is reduced."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from .errors import LET_THROUGH, PrivacyError

AHEAD = 2  # batches decoded before they are asked for
BATCH_BLOCKS = 4  # blocks in a batch: pyarrow decodes long batches faster, blocks stay in the cache
STREAM_BYTES = 1 << 16  # of each column: pyarrow would read a whole row group, which may be a file
_READING = {
    "pre_buffer": False,
    "buffer_size": STREAM_BYTES,
    "page_checksum_verification": True,  # where a file has checksums; most writers add none
}


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
                    for batch in file.iter_batches(rows, columns=list(columns), use_threads=False):
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
