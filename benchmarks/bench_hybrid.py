"""The hot loops of paper 003: descent on drawn rows, weighted gradients, draws from weights.

    python benchmarks/bench_hybrid.py [--quick]

Every figure has its floor beside it, measured in the same run. A descent: the same session, the
same loop, with noise that is zero and free; and the drawing of the noise alone, by the same
generator. A weighted gradient: one pass over the memory of the same rows (their sum). Draws by
alias: as many uniform integers, and a search in cumulated weights. Times are of one thread; the
best of some rounds: other work on the machine only ever adds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402

from dpadapt import Private  # noqa: E402
from dpadapt.hybrid.rules import LinearRule  # noqa: E402
from dpadapt.papers.hybrid.doors._compiled import DrawTable  # noqa: E402
from dpadapt.papers.hybrid.doors.weights import (  # noqa: E402  # noqa: E402
    RowWeights,
    Weighted,
    log_cap,
    reweigh,
)
from dpadapt.papers.hybrid.learners import (  # noqa: E402
    LearningTask,
    SGDLearner,
    WeightedRows,
)
from dpadapt.papers.hybrid.queries import WeightedSlope  # noqa: E402
from dpadapt.privacy.core.noise import SecureNoise, SeededNoise  # noqa: E402

DENSITY = 0.2


class ZeroNormals:
    """A generator whose normal numbers are zero, at the price of writing them."""

    def __init__(self) -> None:
        self._uniform = np.random.default_rng(0)

    def standard_normal(self, size: Any = None, *, out: Any = None) -> Any:
        if out is None:
            return np.zeros(size)
        out[...] = 0.0
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._uniform, name)


class Silent(SeededNoise):
    """A noise source without noise."""

    def _generator(self) -> Any:
        return self._zero

    _zero = ZeroNormals()


def seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """Best of some rounds, after one call that compiles and warms up."""
    work()
    spent = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)


def show(name: str, spent: float, count: int, floors: dict[str, float]) -> None:
    ratios = ", ".join(f"{spent / floor:.2f} x {what}" for what, floor in floors.items())
    print(f"  {name:46s} {spent:9.3f} s {count / spent / 1e6:10.2f} M / s   {ratios}", flush=True)


def sample(n: int, d: int) -> tuple[np.ndarray, np.ndarray, LearningTask]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    blank = LinearRule("linear", np.zeros(d), np.ones(d), np.zeros(d + 1), (0, 1))
    return X, (X[:, 0] > 0).astype(float), LearningTask(n, d, blank)


def reweighed(session: Any, task: LearningTask) -> Any:
    """Weights that differ, so that the projection has work to do."""
    weights = RowWeights(session)
    reweigh(weights, lambda X, y: np.abs(X[:, 0]), task.rows, 3.0)
    return weights


def descent(n: int, d: int, steps: int) -> None:
    print(f"\ndescent on drawn rows: d = {d} (+ 1), n = {n:,}, {steps:,} steps a call")
    X, y, task = sample(n, d)
    learner = SGDLearner(steps=steps, sigma=20**0.5)

    def run(source: Any) -> float:
        with Private(X, y).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
            session._source = source
            planned = learner.planned(task, [DENSITY] * 6)  # a call to warm up, and five
            grants = iter(session.plan(rounds=planned).rounds)
            facts = (task, session, reweighed(session, task), DENSITY)
            return seconds(lambda: learner.learn(WeightedRows(*facts, next(grants))))

    noise = np.empty((max(1, (1 << 21) // (d + 1)), d + 1))

    def fill(generator: Any) -> None:
        for done in range(0, steps, len(noise)):
            generator.standard_normal(out=noise[: min(len(noise), steps - done)])

    still = run(Silent(0))
    show("without noise", still, steps, {})
    for name, source in (("secure", SecureNoise()), ("seeded", SeededNoise(0))):
        floor = seconds(lambda source=source: fill(source._generator()))
        show(f"drawing {name} noise alone", floor, steps, {})
        show(
            f"with {name} noise",
            run(source),
            steps,
            {"without noise": still, "the noise alone": floor, "the sum of both": still + floor},
        )


def gradient(n: int, d: int) -> None:
    print(f"\nweighted gradient of all rows: d = {d} (+ 1), n = {n:,}")
    X, y, task = sample(n, d)
    Z = task.embedded_columns(X, y)[0]
    pass_over = seconds(lambda: Z.sum())
    show("one pass over memory (a sum)", pass_over, n, {})
    v = np.ones(d + 1)
    signs, mu = 2 * y - 1, np.full(n, 1 / n)
    query = WeightedSlope(task.embedded_columns, v)
    plain = seconds(lambda: query.weighted_block(Z, signs, mu))
    show("the formula in plain numpy, all rows at once", plain, n, {"one pass": pass_over})
    with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
        weights = reweighed(session, task)
        slope = Weighted(query, weights, DENSITY)
        kept = seconds(lambda: session.hide(slope, keep=True))
        show("in a session, rows kept", kept, n, {"one pass": pass_over, "plain": plain})
        read = seconds(lambda: session.hide(slope))
        show("in a session, rows read and mapped anew", read, n, {"one pass": pass_over})


def draws(n: int, count: int) -> None:
    print(f"\ndraws from weights: n = {n:,}, {count:,} draws a call")
    rng = np.random.default_rng(0)
    log = -3 * rng.random(n)
    pass_over = seconds(lambda: log.sum())
    show("one pass over the log-weights (a sum)", pass_over, n, {})
    cap = log_cap(log, DENSITY)
    show("projection", seconds(lambda: log_cap(log, DENSITY)), n, {"one pass": pass_over})
    show("alias table", seconds(lambda: DrawTable(log, cap, DENSITY)), n, {"one pass": pass_over})
    uniform = seconds(lambda: rng.integers(0, n, count))
    show("uniform integers alone", uniform, count, {})
    ladder = np.cumsum(np.exp(log))
    searched = seconds(lambda: np.searchsorted(ladder, rng.random(count) * ladder[-1]))
    show("search in cumulated weights", searched, count, {"uniform": uniform})
    table = DrawTable(log, cap, DENSITY)
    drawn = seconds(lambda: table.draw(rng, count))
    show("alias table", drawn, count, {"uniform": uniform, "search": searched})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and steps")
    part = 10 if parser.parse_args().quick else 1
    descent(1_000_000 // part, 8, 2_000_000 // part)
    descent(100_000 // part, 200, 200_000 // part)
    gradient(2_000_000 // part, 8)
    gradient(200_000 // part, 200)
    draws(4_000_000 // part, 4_000_000 // part)


if __name__ == "__main__":
    main()
