"""The second moment of a Parquet file larger than a block: memory, and time over plain reading.

    python benchmarks/bench_parquet_moment.py --rows 20000000 --columns 20

Each file is measured in a process of its own. Memory is the peak over what the process holds after
its imports. Times alternate in one process, so that other load hits all of them; the ratios are
medians over the repeats. "same settings" reads blocks of the same size with the settings of the
library, with one thread and with all; "defaults" is ``ParquetFile(path).iter_batches()``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.rows.parquet import BATCH_BLOCKS, STREAM_BYTES
from dpadapt.privacy.rows.sources import BLOCK_ROWS
from dpadapt.privacy.statistics import SecondMoment

ROW_GROUP = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="keep the files here (else temporary)")
    parser.add_argument("--compression", nargs="+", default=["none", "snappy"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, options.repeats)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for compression in options.compression:
            name = f"{options.rows}x{options.columns}-{compression}.parquet"
            if not (folder / name).exists():
                write(folder / name, options.rows, options.columns, compression)
            command = [sys.executable, __file__, "--measure", str(folder / name)]
            subprocess.run([*command, "--repeats", str(options.repeats)], check=True)


def write(path: Path, rows: int, columns: int, compression: str) -> None:
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(columns)])
    with parquet.ParquetWriter(path, schema, compression=compression) as writer:
        for start in range(0, rows, ROW_GROUP):
            size = min(ROW_GROUP, rows - start)
            cells = [rng.standard_normal(size) for _ in range(columns)]
            writer.write_table(pa.table(cells, schema=schema))


def measure(path: Path, repeats: int) -> None:
    private = Private.from_parquet(path)
    start = memory("VmRSS", reset=True)
    answer = moment(private)
    peak = memory("VmHWM") - start
    print(f"{path.name} ({path.stat().st_size / 1e9:.2f} GB)")
    print(f"  peak memory over the baseline   {peak:8.0f} MB   (aim: under 600)")
    error = np.abs(answer - plain_moment(path)).max() / np.abs(answer).max()
    print(f"  relative error to X^T X / n     {error:8.1e}")

    same = {
        "batch_size": BLOCK_ROWS * BATCH_BLOCKS,
        "pre_buffer": False,
        "buffer_size": STREAM_BYTES,
    }
    reads: dict[str, Callable[[], None]] = {
        "same settings, one thread": lambda: read(path, use_threads=False, **same),
        "same settings, all threads": lambda: read(path, use_threads=True, **same),
        "defaults": lambda: read(path),
    }
    ours: list[tuple[float, float]] = []
    theirs: dict[str, list[tuple[float, float]]] = {name: [] for name in reads}
    for _ in range(repeats):
        ours.append(timed(lambda: moment(private)))
        for name, function in reads.items():
            theirs[name].append(timed(function))
    wall, busy = (median(each[i] for each in ours) for i in (0, 1))
    print(f"  second moment                   {wall:8.2f} s    ({busy:.2f} s of processor)")
    for name, times in theirs.items():
        ratios = [median(a[i] / b[i] for a, b in zip(ours, times, strict=True)) for i in (0, 1)]
        print(
            f"  pyarrow, {name:<27}{median(t[0] for t in times):5.2f} s    "
            f"ratio {ratios[0]:.2f}   (aim: 1.5; processor time {ratios[1]:.2f})"
        )


def moment(private: Private) -> np.ndarray:
    with private.open(epsilon=1.0, delta=1e-6) as session:
        return session.hide(SecondMoment(Cleaning(radius=100.0)))._value


def plain_moment(path: Path) -> np.ndarray:
    total, rows = 0.0, 0
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches():
            X = np.column_stack([column.to_numpy() for column in batch.columns])
            total, rows = total + X.T @ X, rows + len(X)
    return np.asarray(total / rows)


def read(path: Path, batch_size: int = 65_536, use_threads: bool = True, **options: int) -> None:
    with parquet.ParquetFile(path, **({"pre_buffer": True} | options)) as file:
        for _ in file.iter_batches(batch_size, use_threads=use_threads):
            pass


def timed(function: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock and of processor."""
    wall, busy = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - busy


def memory(field: str, *, reset: bool = False) -> float:
    """Resident memory of this process in MB, now (VmRSS) or at its peak (VmHWM)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if field in line) / 1024


if __name__ == "__main__":
    main()
