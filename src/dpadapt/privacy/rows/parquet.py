"""Blocks of rows from Parquet files, decoded by a second thread while the last one is reduced."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from .errors import LET_THROUGH, PrivacyError

AHEAD = 2  # batches decoded before they are asked for
BATCH_BLOCKS = 4  # blocks in a batch: pyarrow decodes long batches faster, blocks stay in the cache
STREAM_BYTES = 1 << 16  # of each column: pyarrow would read a whole row group, which may be a file
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_READING = {
    "pre_buffer": False,
    "buffer_size": STREAM_BYTES,
    "page_checksum_verification": True,  # where a file has checksums; most writers add none
}


def parquet_files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files of a path, of a list of paths, or of a folder as Spark writes it.

    A folder may be partitioned: ``year=2026/part-0.parquet``. What begins with an underscore or a
    point (``_SUCCESS``, ``_temporary``) is not data.
    """
    files: list[Path] = []
    for each in map(Path, [path] if isinstance(path, (str, Path)) else path):
        files += sorted(_inside(each)) if each.is_dir() else [each]
    if not files:
        raise ValueError("path: no Parquet file there; give a file, a list, or their folder.")
    return files


def _inside(folder: Path) -> Iterator[Path]:
    for each in folder.iterdir():
        if each.name.startswith(("_", ".")):
            continue
        if each.is_dir() and "=" in each.name:
            yield from _inside(each)
        elif each.suffix == ".parquet":
            yield each


def partition(path: Path) -> dict[str, str | None]:
    """Columns that the folders of a file say, as Hive and Spark write them; texts.

    Which folder a row is in counts as public, as its place in a file does: a neighbour differs in
    a row of the same folder.

    Examples
    --------
    >>> partition(Path("visits/year=2026/town=M%C3%BCnchen/part-0.parquet"))
    {'year': '2026', 'town': 'München'}
    """
    said: dict[str, str | None] = {}
    for folder in path.parents:
        name, sign, value = folder.name.partition("=")
        if not (name and sign):
            break
        said = {unquote(name): None if value == _NO_VALUE else unquote(value), **said}
    return said


def sizes(paths: Sequence[Path]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Column names and the number of rows of each file; raises if the names differ."""
    import pyarrow.parquet as parquet

    try:
        footers = [parquet.read_metadata(path) for path in paths]
        inside = [tuple(footer.schema.to_arrow_schema().names) for footer in footers]
        names = [
            own + tuple(name for name in partition(path) if name not in own)
            for path, own in zip(paths, inside, strict=True)
        ]
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
                own = file.schema_arrow.names
                said = {k: v for k, v in partition(path).items() if k in columns and k not in own}
                inside = [name for name in columns if name not in said]
                if set(inside) <= set(own):  # pyarrow skips absent columns
                    read = file.iter_batches(rows, columns=inside or own[:1], use_threads=False)
                    for batch in even(read, rows):
                        left -= batch.num_rows
                        yield _with(batch, said)
        except LET_THROUGH:
            raise
        except BaseException:
            left = float("nan")  # and no word of the reason, which may quote a value
        if left != 0:
            raise PrivacyError(
                f"{path}: the file was changed, removed or damaged after it was opened, and can no "
                "longer be read. Nothing was released; open it again with Private.from_parquet."
            )


def _with(batch: Any, said: dict[str, str | None]) -> Any:
    """A batch with columns that have the same text in every row."""
    import pyarrow as pa

    for name, value in said.items():
        same = pa.repeat(pa.scalar(value, pa.string()), batch.num_rows)
        batch = batch.append_column(name, same)
    return batch


def even(batches: Iterator[Any], rows: int) -> Iterator[Any]:
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
    """One record batch of several with the same columns; texts may be longer than 2 GB together.

    A stream may say that a column has no gaps, and have one: pyarrow would refuse it here alone.
    """
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    table = pa.Table.from_batches(parts)
    plain = [field.with_type(_long(field.type)).with_nullable(True) for field in table.schema]
    (joined,) = table.cast(pa.schema(plain)).combine_chunks().to_batches()
    return joined


def _long(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _long(kind.value_type)
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)
