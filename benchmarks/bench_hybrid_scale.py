"""Algorithm 4 of paper 003 at the paper's own scale: one reweighing iteration, timed.

    python benchmarks/bench_hybrid_scale.py --rows 324.7e6 --steps 50e6

The paper's private setting: d = 8, rows of N(0, 0.1^2 I) as float32, labels by a ball in two
columns, squares as features, 50 million steps of one drawn row each with noise of variance 20 L^2,
kappa = 0.08 / (4 (chi^2 + 1)). One iteration: project the weights on the density, build the alias
table, descend, ask 20,000 agents, reweigh. Rows are made in place, block by block. Peak memory is
printed (the full size needs less than 20 GB), and the guarantee of 997 such iterations, which is
what the paper's number of rows has room for, beside its claim of 0.5. The paper's public
implementation quotes 9 to 30 hours and 55 GB for a repetition.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402
from scipy import stats  # noqa: E402

from dpadapt import Private  # noqa: E402
from dpadapt.hybrid.questions import Mistake  # noqa: E402
from dpadapt.hybrid.rules import LinearRule  # noqa: E402
from dpadapt.papers.hybrid.doors.draws import draws  # noqa: E402
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent  # noqa: E402
from dpadapt.papers.hybrid.doors.weights import (  # noqa: E402  # noqa: E402
    RowWeights,
    cap_of,
    draw_rate,
    reweigh,
)
from dpadapt.papers.hybrid.learners import (  # noqa: E402
    LearningTask,
    SGDLearner,
    WeightedRows,
)
from dpadapt.privacy.accounting.composition import compose_epsilon  # noqa: E402
from dpadapt.privacy.local.agents import Agents  # noqa: E402
from dpadapt.privacy.local.replies import estimate  # noqa: E402

D, K, WIDE, NARROW, ALPHA = 8, 2, 0.1, 0.07, 0.08
EXCESS = WIDE**4 / (NARROW**2 * (2 * WIDE**2 - NARROW**2))  # chi^2 + 1
DENSITY = ALPHA / (4 * EXCESS)
CUT = stats.chi2.ppf(0.4, K) * NARROW**2
SIGMA, ROUNDS, RATE, DELTA = 20**0.5, 997, 0.2, 1e-4
BLOCK = 1 << 20  # rows made at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=2e6)
    parser.add_argument("--steps", type=float, default=1e6)
    parser.add_argument("--agents", type=float, default=20_000)
    options = parser.parse_args()
    n, steps = int(options.rows), int(options.steps)
    print(f"n = {n:,} rows, {steps:,} steps, kappa = {DENSITY:.5f}, kappa n = {DENSITY * n:,.0f}")
    guarantee(n, steps)
    began = time.perf_counter()
    iteration(n, steps, int(options.agents))
    print(f"  {'all of it':38s} {time.perf_counter() - began:9.1f} s   peak {peak():6.2f} GB")


def guarantee(n: int, steps: int) -> None:
    """What the paper's noise really gives, certified, after one round and after 997."""
    for rounds in (1, ROUNDS):
        rate = draw_rate(DENSITY, n)
        event = OneDrawGaussianEvent("descent", 1.0, SIGMA, rate=rate, count=steps * rounds)
        spent = compose_epsilon([event], DELTA)
        print(f"{rounds:5d} rounds: certified epsilon {spent:.4f} at delta {DELTA:g}; claimed 0.5")


def iteration(n: int, steps: int, people: int) -> None:
    """One iteration of the loop; a first reweighing makes the weights uneven."""
    with phase("rows made in place"):
        X, y = rows(n)
    blank = LinearRule(
        "squares",
        np.full(D, WIDE**2),
        np.full(D, 2**0.5 * WIDE**2),
        np.zeros(D + 1),
        (0.0, 1.0),
    )
    task = LearningTask(n, D, blank)
    learner = SGDLearner(steps=steps, sigma=SIGMA)
    agents = Agents(*target(people))
    guess = blank.with_coefficients(np.r_[np.ones(D), 0.0])  # a public rule to begin with
    with Private(X, y).open(epsilon=0.5, delta=DELTA) as session:
        grants = session.plan(descent=learner.mechanism(task, DENSITY))
        weights = RowWeights(session)
        with phase("reweigh (before)"):
            reweigh(weights, Mistake(guess).values, task.rows, RATE)
        with phase("project on the density"):
            cap_of(weights, DENSITY)
        with phase("alias table"):
            draws(weights, DENSITY)._value.places(session._source)
        with phase("descent", steps):
            rule = learner.learn(WeightedRows(task, session, weights, DENSITY, grants.descent))
        with phase("agents' test"), agents.open(epsilon=0.5) as poll:
            found = estimate(poll.ask(Mistake(rule), people), 0.05)
        with phase("reweigh"):
            reweigh(weights, Mistake(rule).values, task.rows, RATE)
    truth = float(np.mean(rule.predict(target(200_000)[0]) != target(200_000)[1]))
    print(f"  error on the target {truth:.4f}; agents say {found.low:.3f} to {found.high:.3f}")


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the source, made block by block into one array; labels 0 and 1."""
    rng = np.random.default_rng(0)
    X, y = np.empty((n, D), dtype=np.float32), np.empty(n)
    for start in range(0, n, BLOCK):
        block = X[start : start + BLOCK]
        rng.standard_normal(out=block, dtype=np.float32)
        block *= np.float32(WIDE)
        y[start : start + BLOCK] = (block[:, -K:] ** 2).sum(axis=1) > CUT
    return X, y


def target(n: int) -> tuple[np.ndarray, np.ndarray]:
    """People: narrower in two columns."""
    X = np.random.default_rng(1).normal(size=(n, D)) * np.r_[[WIDE] * (D - K), [NARROW] * K]
    return X, ((X[:, -K:] ** 2).sum(axis=1) > CUT).astype(float)


@contextmanager
def phase(name: str, count: int = 0) -> Iterator[None]:
    start = time.perf_counter()
    yield
    spent = time.perf_counter() - start
    speed = f"{count / spent / 1e6:8.2f} M steps / s" if count else ""
    print(f"  {name:38s} {spent:9.1f} s   peak {peak():6.2f} GB {speed}", flush=True)


def peak() -> float:
    """Most memory that the process ever held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
