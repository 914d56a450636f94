"""A fit on Parquet files of which little may be kept in memory: decodes, processor time, memory.

    python benchmarks/bench_kept_rows.py --rows 1000000 --keep 20MB
    python benchmarks/bench_kept_rows.py --rows 10000000 --keep 500MB --method auto

Each fit runs in a process of its own. Seconds are of the processor, of the private step alone (the
public fit is taken off); the ratio is to one pass of pyarrow over the same file, with one thread.
"read again" is what the same sums would take if each of them decoded and prepared the rows anew: a
sum that does so, times the number of sums. Memory is the largest anonymous memory (RssAnon), which
a mapped file is no part of, over that before the fit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet

from bench_parquet_moment import write
from dpadapt import AutoRegressor, Private, ReweightingRegressor
from dpadapt.privacy import Session
from dpadapt.privacy.core.sample import Sample
from dpadapt.privacy.rows.sources import ParquetRows

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8, "noise": "seeded", "random_state": 0}
METHODS = {
    "reweighting": lambda: ReweightingRegressor(**BUDGET | {"epsilon": 0.01}),  # a descent
    "auto": lambda: AutoRegressor(**BUDGET, experts=["linear", "trees"]),
}
PUBLIC = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--keep", default="20MB", help="memory for kept rows")
    parser.add_argument("--method", choices=METHODS, default="reweighting")
    parser.add_argument("--folder", type=Path, help="keep the file here (else temporary)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(options)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{options.rows}x{options.columns + 1}.parquet"
        if not path.exists():
            write(path, options.rows, options.columns + 1, "snappy")
        one = plain_pass(path)
        print(f"{options.method}, {options.rows:,} rows of {options.columns} columns, {path.name}")
        print(f"  one pass of pyarrow        {one:8.2f} s of processor")
        for name, keep in (("in memory", "1TB"), (f"{options.keep}, then a file", options.keep)):
            given = [sys.executable, __file__, "--measure", keep, "--folder", str(folder)]
            for each in ("rows", "columns", "method"):
                given += [f"--{each}", str(getattr(options, each))]
            found = subprocess.run(given, check=True, capture_output=True, text=True).stdout
            told(name, json.loads(found), one)


def told(name: str, found: dict[str, float], one: float) -> None:
    whole, again = found["seconds"], found["sums"] * found["decoding"]
    print(
        f"  kept: {name:<20} {whole:8.2f} s, {whole / one:6.1f} passes; decodes {found['decodes']}"
        f" for {found['sums']} sums; a kept sum {found['kept'] / one:.2f} of a pass; peak "
        f"{found['peak']:.0f} MB; predicts {found['prediction']:.12g}"
    )
    print(f"  read again: {'':<14} {again:8.2f} s, {again / one:6.1f} passes (extrapolated)")


def plain_pass(path: Path) -> float:
    """Processor seconds of reading all columns."""
    start = time.process_time()
    with parquet.ParquetFile(path) as file:
        for _ in file.iter_batches(use_threads=False):
            pass
    return time.process_time() - start


def measure(options: argparse.Namespace) -> dict[str, float]:
    path = options.folder / f"{options.rows}x{options.columns + 1}.parquet"
    names = [f"x{i}" for i in range(options.columns)]
    label = f"x{options.columns}"
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(PUBLIC, options.columns)), columns=names)
    y = np.tanh(X["x0"]) - X["x1"] + 0.5 * np.random.default_rng(2).normal(size=PUBLIC)
    private = Private.from_parquet(path, label=label).kept(memory=options.measure)
    decodes, begun, times = [0], [0.0], {True: [0.0], False: [0.0]}
    blocks, total, enter = ParquetRows.blocks, Sample.total, Session.__enter__

    def decoded(self: Any, *given: Any) -> Any:
        decodes[0] += 1
        return blocks(self, *given)

    def timed(self: Any, *given: Any) -> Any:
        before, start = decodes[0], time.process_time()
        try:
            return total(self, *given)
        finally:
            times[decodes[0] > before].append(time.process_time() - start)

    def entered(self: Any) -> Any:
        begun[0] = time.process_time()
        return enter(self)

    ParquetRows.blocks, Sample.total, Session.__enter__ = decoded, timed, entered  # type: ignore[method-assign]
    with warnings.catch_warnings(), Peak() as peak:
        warnings.simplefilter("ignore")
        model = METHODS[options.method]().fit(X, y, private=private)
    return {
        "seconds": time.process_time() - begun[0],
        "decodes": decodes[0],
        "sums": len(times[True]) + len(times[False]) - 2,
        "decoding": max(times[True]),
        "kept": median(times[False]),
        "peak": peak.most,
        "prediction": float(model.predict(X.iloc[:1])[0]),
    }


class Peak:
    """Largest anonymous memory of this process in MB, over that at the start."""

    def __enter__(self) -> Peak:
        self._start, self.most, self._over = self._now(), 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, self._now() - self._start)

    def _now(self) -> float:
        status = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


if __name__ == "__main__":
    main()
