"""One private profiled fit, against scikit-learn's Huber regression and against its own floor.

    python benchmarks/bench_profiled.py

Both see the same private rows. The floor is what T gradients cannot do without: T products of the
rows with a vector, and T with their transpose. Times are processor times, medians over the repeats;
what is compared alternates, so that other load hits all of it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from statistics import median

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # waiting threads would count as processor time

import numpy as np  # noqa: E402
from sklearn.linear_model import HuberRegressor  # noqa: E402

from dpadapt import Private  # noqa: E402
from dpadapt.papers.reweighting.profiled import ProfiledRegression  # noqa: E402
from dpadapt.privacy import Cleaning  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    sizes = [(1600, 20), (10_000, 50), (100_000, 50)]
    for n, d in sizes[:2] if options.quick else sizes:
        against_huber(n, d, 3 if options.quick else options.repeats)


def against_huber(n: int, d: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(4000, d)), rng.normal(size=(n, d))
    w, shift = rng.normal(size=(2, d)) / np.sqrt(d) * 0.2
    y = np.clip(X @ w + 0.1 * rng.standard_t(3, len(X)), -1, 1)
    labels = np.clip(T @ (w + shift) + 0.1 * rng.standard_t(3, n), -1, 1)
    rows = np.column_stack([X, np.ones(len(X))])
    cleaning = Cleaning(3 * np.sqrt(d), intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    private, steps = Private(T, labels), 40
    wide = np.asfortranarray(np.column_stack([T, np.ones(n)]))

    def ours() -> np.ndarray:
        with private.open(epsilon=1.0, delta=1e-6) as session:
            return ProfiledRegression(rows, y, steps=steps).fit(session, cleaning)

    def huber() -> np.ndarray:
        model = HuberRegressor(epsilon=1.35, alpha=0.0, max_iter=1000).fit(T, labels)
        return np.append(model.coef_, model.intercept_)

    def floor() -> np.ndarray:
        v = np.zeros(d + 1)
        for _ in range(steps):
            v = v - 0.1 / n * ((wide @ v - labels) @ wide)
        return v

    times = alternate([ours, huber, floor], repeats)
    fit, peer, least = times
    errors = [float(np.mean((T @ (w + shift) - wide @ v) ** 2)) for v in (ours(), huber())]
    print(
        f"n={n}, d={d}: profiled {fit:.4f} s,"
        f" HuberRegressor {peer:.4f} s ({peer / fit:.1f} x ours),"
        f" floor {least:.4f} s (ours {fit / least:.1f} x);"
        f" squared distance to the true predictions {errors[0]:.1e} private, {errors[1]:.1e} not"
    )


def alternate(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Median processor time of each, called in turn after one call to warm up."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for function, found in zip(functions, times, strict=True):
            start = time.process_time()
            function()
            found.append(time.process_time() - start)
    return [median(found) for found in times]


if __name__ == "__main__":
    main()
