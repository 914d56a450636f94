"""Kernel mean matching against the package ``adapt``: processor time and the MMD that is left.

    DPADAPT_PEER_PYTHON=PATH python benchmarks/bench_kmm.py

PATH is an interpreter that has the packages ``adapt`` (0.4.5 was measured) and ``tensorflow``;
without it the peer is not measured. Both use the kernel exp(-|x - x'|^2 / d) and the peer its
default settings, among them that more than 1,000 rows are matched in pieces. Times are processor
times on one thread, ours the median of the repeats; both MMDs are computed here, exactly.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
for _variable in THREADS:
    os.environ.setdefault(_variable, "1")  # waiting threads would count as processor time

import numpy as np  # noqa: E402

from dpadapt.baselines import kernel_mean_matching  # noqa: E402

PEER = """
import sys, time
import numpy as np
from adapt.instance_based import KMM
data = np.load(sys.argv[1])
X, T = data["X"], data["T"]
model = KMM(Xt=T, gamma=1 / X.shape[1], verbose=0, random_state=0)
start = time.process_time()
weights = model.fit_weights(X, T)
print("CPU", time.process_time() - start)
np.save(sys.argv[2], weights)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    m, n, d = (2000, 300, 11) if options.quick else (16_000, 1000, 11)
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(m, d)), rng.normal(0.4, 0.7, size=(n, d))
    times = []
    for _ in range(options.repeats):
        start = time.process_time()
        found = kernel_mean_matching(X, T, width=math.sqrt(d / 2))
        times.append(time.process_time() - start)
    print(
        f"KMM, m={m}, n={n}, d={d}: {median(times):.2f} s, MMD {found.mmd:.5f} "
        f"(equal weights {found.uniform_mmd:.5f}, at least {found.lower_bound:.5f})"
    )
    theirs = peer(X, T)
    if theirs is None:
        return
    spent, weights = theirs
    print(f"  adapt KMM: {spent:.2f} s, MMD {mmd(X, T, weights):.5f}")
    print(f"  CPU, adapt / ours: {spent / median(times):.1f}")


def peer(X: np.ndarray, T: np.ndarray) -> tuple[float, np.ndarray] | None:
    python = os.environ.get("DPADAPT_PEER_PYTHON")
    if not python:
        print("  peer not measured (no DPADAPT_PEER_PYTHON)")
        return None
    with tempfile.TemporaryDirectory() as folder:
        data, answer = Path(folder) / "data.npz", Path(folder) / "weights.npy"
        np.savez(data, X=X, T=T)
        command = [python, "-c", PEER, str(data), str(answer)]
        try:
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"  peer not measured ({type(error).__name__})")
            return None
        lines = [line for line in done.stdout.splitlines() if line.startswith("CPU ")]
        return float(lines[-1].split()[1]), np.load(answer)


def mmd(X: np.ndarray, T: np.ndarray, weights: np.ndarray) -> float:
    """Distance of the kernel means, block by block, by code of its own."""
    d, m = X.shape[1], len(X)

    def mean(A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray) -> float:
        total = 0.0
        for start in range(0, len(A), 500):
            part = A[start : start + 500]
            squares = (part**2).sum(1)[:, None] + (B**2).sum(1) - 2 * part @ B.T
            total += a[start : start + 500] @ np.exp(-np.maximum(squares, 0) / d) @ b
        return float(total)

    p, q = weights / m, np.full(len(T), 1 / len(T))
    return math.sqrt(max(0.0, mean(X, p, X, p) - 2 * mean(X, p, T, q) + mean(T, q, T, q)))


if __name__ == "__main__":
    sys.exit(main())
