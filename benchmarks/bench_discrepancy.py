"""Discrepancy minimisation: against a peer, against its own floor, and how the cost grows.

    python benchmarks/bench_discrepancy.py --peer-python PATH

PATH is an interpreter that has the packages ``adapt`` and ``tensorflow``; without it the peer is
not measured. Times are processor times, medians over the repeats; what is compared alternates, so
that other load hits all of it. "overlap" targets are moments of reweighted public rows, whose
minimal discrepancy is zero; "shifted" ones are moments of rows from another distribution.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # waiting threads would count as processor time

import numpy as np  # noqa: E402

from dpadapt.discrepancy import discrepancy, minimise_discrepancy  # noqa: E402
from dpadapt.discrepancy.matrices import weighted_moment  # noqa: E402
from dpadapt.papers.discrepancy.first_stage import NoisyFrankWolfe  # noqa: E402
from dpadapt.papers.discrepancy.smoothing import Softmax  # noqa: E402

# LDM takes the two samples; the target rows here have the wanted second moment.
PEER = """
import sys, time
import numpy as np
from adapt.instance_based import LDM
data = np.load(sys.argv[1])
model = LDM(Xt=data["T"], verbose=0)
start = time.process_time()
weights = model.fit_weights(data["X"], data["T"])
print("CPU", time.process_time() - start)
np.save(sys.argv[2], weights)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="interpreter with adapt and tensorflow")
    parser.add_argument("--peer-timeout", type=float, default=1800.0, help="seconds")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    repeats = 3 if options.quick else options.repeats
    against_peer(
        options.peer_python, options.peer_timeout, 1000 if options.quick else 4000, repeats
    )
    sizes = [(1000, 10), (4000, 30)] if options.quick else [(1000, 10), (10_000, 50), (50_000, 100)]
    frank_wolfe_floor(sizes, repeats)
    growth(2000 if options.quick else 10_000, repeats)
    m, d = (5000, 40) if options.quick else (100_000, 200)
    for kind in ("overlap", "shifted"):
        large(m, d, kind, 200 if options.quick else 300)


def against_peer(python: str | None, timeout: float, m: int, repeats: int) -> None:
    X, T = samples(m, 11)
    target = T.T @ T / len(T)
    uniform = discrepancy(X, np.full(m, 1 / m), target)
    found = minimise_discrepancy(X, target, gap=1e-9)
    ours = median_time(lambda: minimise_discrepancy(X, target, gap=1e-9), repeats)
    print(
        f"DM, m={m}, d=11: {ours:.3f} s, discrepancy {found.discrepancy / uniform:.1e} of uniform"
    )
    if python is None:
        print("  peer not measured (no --peer-python)")
        return
    with tempfile.TemporaryDirectory() as folder:
        data, answer = Path(folder) / "data.npz", Path(folder) / "weights.npy"
        np.savez(data, X=X, T=T)
        command = [python, "-c", PEER, str(data), str(answer)]
        try:
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=timeout
            )
        except (OSError, subprocess.SubprocessError) as error:
            print(f"  peer not measured ({type(error).__name__})")
            return
        weights = np.load(answer)
    lines = [line for line in done.stdout.splitlines() if line.startswith("CPU ")]
    theirs = float(lines[-1].split()[1])
    reached = discrepancy(X, weights / weights.sum(), target) / uniform
    print(f"  adapt LDM: {theirs:.1f} s, discrepancy {reached:.1e} of uniform")
    print(f"  time, LDM / ours: {theirs / ours:.0f}")


def frank_wolfe_floor(sizes: Sequence[tuple[int, int]], repeats: int, steps: int = 20) -> None:
    """One step needs a score for every row and the gradient: one product, one decomposition."""
    for m, d in sizes:
        X, T = samples(m, d)
        target = T.T @ T / len(T)
        products = np.random.default_rng(0).normal(size=(m, d * (d + 1) // 2))
        vector = np.ones(products.shape[1])
        algorithm = NoisyFrankWolfe(X, Softmax(mu=50.0), steps=steps)

        def floor(products=products, vector=vector, target=target) -> None:
            for _ in range(steps):
                products @ vector
                np.linalg.eigh(target)

        def run(algorithm=algorithm, target=target) -> None:
            algorithm.minimise(target)

        pairs = [(cpu(run), cpu(floor)) for _ in range(repeats)]
        step = median(ours for ours, _ in pairs) / steps
        ratio = median(ours / least for ours, least in pairs)
        print(f"Frank-Wolfe step, m={m}, d={d}: {1e3 * step:.2f} ms, {ratio:.2f} of its floor")


def growth(m: int, repeats: int) -> None:
    def steps_taken(rows: int, steps: int) -> float:
        X, T = samples(rows, 20)
        algorithm = NoisyFrankWolfe(X, Softmax(mu=50.0), steps=steps)
        return median_time(lambda: algorithm.minimise(T.T @ T / len(T)), repeats)

    def minimised(rows: int) -> float:
        X = samples(rows, 20)[0]
        target = overlapping(X)
        return median_time(lambda: minimise_discrepancy(X, target), repeats)

    rows, counts = [m, 2 * m, 4 * m, 8 * m], [25, 50, 100, 200]
    by_rows = [steps_taken(r, 30) for r in rows]
    by_steps = [steps_taken(m, k) for k in counts]
    print(f"time as a power of m, Frank-Wolfe: {exponent(rows, by_rows)}")
    print(f"time as a power of K, Frank-Wolfe: {exponent(counts, by_steps)}")
    print(f"time as a power of m, DM: {exponent(rows, [minimised(r) for r in rows])}")


def large(m: int, d: int, kind: str, max_iter: int) -> None:
    X, T = samples(m, d, shift=0.5 / np.sqrt(d), spread=0.9)
    target = overlapping(X) if kind == "overlap" else T.T @ T / len(T)
    weights = np.full(m, 1 / m)

    def one_pass() -> None:
        np.vecdot(X @ target, X)
        weighted_moment(X, weights)

    least = median_time(one_pass, 3)
    start = time.process_time()
    found = minimise_discrepancy(
        X, target, gap=0.001 if kind == "overlap" else 0.01, max_iter=max_iter
    )
    spent = time.process_time() - start
    left, bound = (v / found.uniform_discrepancy for v in (found.discrepancy, found.lower_bound))
    print(
        f"DM, m={m}, d={d}, {kind}: {spent:.1f} s = {spent / least:.0f} plain passes "
        f"of {least:.3f} s; {found.iterations} passes; "
        f"discrepancy {left:.2%}, minimum at least {bound:.2%}, "
        f"gap {found.gap:.2%} of uniform"
    )


def samples(m: int, d: int, *, shift: float = 0.4, spread: float = 0.7) -> tuple[np.ndarray, ...]:
    """Return public and private rows with an intercept, of length about 1."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(m, d - 1)), np.ones(m)])
    T = np.column_stack([rng.normal(shift, spread, size=(m, d - 1)), np.ones(m)])
    return X / np.sqrt(d), T / np.sqrt(d)


def overlapping(X: np.ndarray) -> np.ndarray:
    """Return a moment that some smooth weights of the rows match."""
    rng = np.random.default_rng(1)
    slope = X[:, :-1] @ rng.normal(size=X.shape[1] - 1)
    weights = rng.exponential(size=len(X)) / (1 + np.exp(-slope))
    return weighted_moment(X, weights / weights.sum())


def exponent(sizes: Sequence[int], times: Sequence[float]) -> str:
    return f"{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}"


def median_time(function: Callable[[], object], repeats: int) -> float:
    return median(cpu(function) for _ in range(repeats))


def cpu(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
