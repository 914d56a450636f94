"""AdaMixClassifier on features larger than memory: peak memory, and time over plain reading.

    python benchmarks/bench_mixing_memory.py --rows 1000000 --columns 512

Writes float32 features to a Parquet file and to a .npy file, and trains on each in a process of
its own, a few steps each: every step reads the file once. Memory is the peak over what the process
holds after its imports and the public phase; for the .npy file, which is mapped, without the pages
of the file itself, which the system takes back when it likes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from dpadapt import AdaMixClassifier, Private

CLASSES, PUBLIC, PART = 10, 5, 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the files here (else temporary)")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, options.steps)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        size = options.rows * options.columns * 4 / 2**30
        print(f"{options.rows:,} x {options.columns} float32 features ({size:.2f} GiB)")
        for name in ("features.parquet", "features.npy"):
            if not (folder / name).exists():
                write(folder / name, options.rows, options.columns)
            command = [sys.executable, __file__, "--measure", str(folder / name)]
            subprocess.run([*command, "--steps", str(options.steps)], check=True)


def parts(rows: int, columns: int):
    """Rows around ten centers, part by part."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(CLASSES, columns)).astype(np.float32) / 4
    for start in range(0, rows, PART):
        labels = rng.integers(CLASSES, size=min(PART, rows - start))
        noise = rng.standard_normal((len(labels), columns), dtype=np.float32)
        yield centers[labels] + noise, labels


def write(path: Path, rows: int, columns: int) -> None:
    if path.suffix == ".npy":
        file = np.lib.format.open_memmap(path, "w+", np.float32, (rows, columns))
        labels = np.lib.format.open_memmap(path.with_suffix(".labels.npy"), "w+", np.int64, (rows,))
        done = 0
        for X, y in parts(rows, columns):
            file[done : done + len(y)], labels[done : done + len(y)] = X, y
            done += len(y)
        file.flush()
        return
    names = [f"x{i}" for i in range(columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("label", pa.int64())])
    with parquet.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for X, y in parts(rows, columns):
            writer.write_table(pa.table([*X.T.copy(), y], schema=schema))


def measure(path: Path, steps: int) -> None:
    X, y = next(parts(PART, columns_of(path)))
    few = np.concatenate([np.flatnonzero(y == code)[:PUBLIC] for code in range(CLASSES)])
    public, labels = X[few].astype(float), y[few]
    test, truth = X[-2000:].astype(float), y[-2000:]
    del X
    model = AdaMixClassifier(epsilon=1.0, delta=1e-7, steps=steps).fit(public, labels)
    before = model.score(test, truth)
    if path.suffix == ".npy":
        classes = np.load(path.with_suffix(".labels.npy"))
        private = Private(np.load(path, mmap_mode="r"), classes)
    else:
        private = Private.from_parquet(path, label="label")
    with Peak() as peak:
        start = time.process_time(), time.perf_counter()
        model.fit(public, labels, private=private)
        cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
    reading = read_once(path)
    print(
        f"{path.suffix[1:]:8} peak memory over the baseline {peak.megabytes:6.0f} MB; "
        f"a step {cpu / steps:.1f} s CPU, {wall / steps:.1f} s, {wall / steps / reading:.1f} times "
        f"one plain reading; accuracy {before:.3f} -> {model.score(test, truth):.3f}",
        flush=True,
    )


def columns_of(path: Path) -> int:
    if path.suffix == ".npy":
        return int(np.load(path, mmap_mode="r").shape[1])
    return len(parquet.read_schema(path).names) - 1


def read_once(path: Path) -> float:
    """Seconds to read the file block by block, and do nothing with it."""
    start = time.perf_counter()
    if path.suffix == ".npy":
        rows = np.load(path, mmap_mode="r")
        for at in range(0, len(rows), 2048):
            rows[at : at + 2048].sum()
    else:
        for _ in parquet.ParquetFile(path).iter_batches(8192):
            pass
    return time.perf_counter() - start


class Peak:
    """Highest anonymous memory of this process while the block runs, over that at its start."""

    def __enter__(self) -> Peak:
        self._stop, self._start, self._most = threading.Event(), anonymous(), 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self._most = max(self._most, anonymous())

    @property
    def megabytes(self) -> float:
        return (self._most - self._start) / 1024


def anonymous() -> int:
    """Anonymous memory of this process in kB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1])
    raise RuntimeError("no RssAnon in /proc/self/status: this benchmark needs Linux.")


if __name__ == "__main__":
    main()
