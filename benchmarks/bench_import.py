"""How long ``import dpadapt`` takes over ``import sklearn.linear_model``, and what it brings along.

python benchmarks/bench_import.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from statistics import median

HEAVY = [
    "dp_accounting",
    "matplotlib",
    "numba",
    "sqlalchemy",
    "pandas",
    "pyarrow",
    "randomgen",
    "opendp",
]
REFERENCE = "sklearn.linear_model"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--modules", nargs="+", default=["dpadapt", "dpadapt.privacy"])
    options = parser.parse_args()
    for module in options.modules:
        ratios, ours = [], []
        for _ in range(options.repeats):
            empty, mine, theirs = (seconds(each) for each in ("sys", module, REFERENCE))
            ours.append(mine - empty)
            ratios.append((mine - empty) / (theirs - empty))
        print(
            f"import {module}: {median(ours):.2f} s, {median(ratios):.2f} of import {REFERENCE}; "
            f"brings along {', '.join(heavy(module)) or 'nothing heavy'}"
        )


def seconds(module: str) -> float:
    """Time of a fresh process that imports a module and ends."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start


def heavy(module: str) -> list[str]:
    code = f"import {module}, sys; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


if __name__ == "__main__":
    main()
