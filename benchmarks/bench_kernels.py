"""Answers and training of private kernel models, beside plain scikit-learn in the same run.

    python benchmarks/bench_kernels.py [--quick]

Answers one by one come from a path of noise that remembers every earlier question: 10,000 different
ones are asked first. They are timed in memory and with the secret file, which is on the disk
before an answer leaves. Beside them: the same predictions of scikit-learn, which has no noise and
remembers nothing, one question at a time and all at once; a released model with explicit features,
and LogisticRegression on the same features. Training has a certified minimiser and noise; beside it
LogisticRegression, SVC or KernelRidge on the same rows. Times are processor times of one thread;
where a file is synced to disk the wall clock is shown too, and everything is measured once a round.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # waiting threads would count as processor time

import numpy as np  # noqa: E402
from sklearn.kernel_ridge import KernelRidge  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from dpadapt import Private  # noqa: E402
from dpadapt.kernels import InteractivePredictor, KernelClassifier, KernelRegressor  # noqa: E402

COLUMNS = 10
PUBLIC = 300


def task(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit ball, labelled by a curved function."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, COLUMNS)) / np.sqrt(COLUMNS)
    return X, np.where(X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=rows) > 0, 1, -1)


def timed(work: Callable[[], object], rounds: int = 1) -> tuple[float, float]:
    """Processor and wall seconds of one call, medians over rounds."""
    spent = []
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        spent.append((time.process_time() - cpu, time.perf_counter() - wall))
    return median(each[0] for each in spent), median(each[1] for each in spent)


def show(name: str, cpu: float, wall: float, base: float | None, unit: str) -> None:
    ratio = "" if base is None else f"{cpu / base:9.2f} x"
    print(f"  {name:58s} {cpu:11.3g} s cpu {wall:11.3g} s wall {unit:>20s} {ratio}", flush=True)


def rate(cpu: float, count: int) -> str:
    return f"{count / max(cpu, 1e-9):,.0f} / s"


def answers(rows: int, earlier: int, count: int) -> None:
    """Questions per second with many earlier ones."""
    X, y = task(PUBLIC + rows)
    public, private = (X[:PUBLIC], y[:PUBLIC]), Private(X[PUBLIC:], y[PUBLIC:])
    asked, _ = task(earlier + 2 * count, seed=1)
    new = asked[earlier : earlier + count]
    print(f"\nquestions: rbf kernel, n = {rows:,}, {earlier:,} earlier ones; ratios of cpu time")
    plain = SVC(kernel="rbf", gamma=1.0, C=1.0).fit(X[PUBLIC:], y[PUBLIC:])
    one, one_wall = timed(lambda: [plain.decision_function(row[None]) for row in new])
    show("SVC of scikit-learn, one at a time", one, one_wall, one, rate(one, count))
    many, many_wall = timed(lambda: plain.decision_function(new), 3)
    show("SVC of scikit-learn, all at once", many, many_wall, one, rate(many, count))
    ridge = KernelRidge(kernel="rbf", gamma=1.0, alpha=1.0).fit(X[PUBLIC:], y[PUBLIC:])
    cpu, wall = timed(lambda: [ridge.predict(row[None]) for row in new])
    show("KernelRidge of scikit-learn, one at a time", cpu, wall, one, rate(cpu, count))
    model = KernelClassifier(epsilon=1.0, delta=1e-6, kernel="rbf")
    with tempfile.TemporaryDirectory() as folder:
        for name, state in (("in memory", None), ("with the file", Path(folder) / "state")):
            predictor = InteractivePredictor(model, state=state).fit(*public, private=private)
            cpu, wall = timed(lambda: predictor.predict(asked[:earlier]))  # noqa: B023
            label = f"dpadapt {name}: the {earlier:,} earlier ones, all at once"
            show(label, cpu, wall, None, rate(cpu, earlier))
            cpu, wall = timed(lambda: [predictor.predict(row[None]) for row in new])  # noqa: B023
            show(f"dpadapt {name}, new ones one at a time", cpu, wall, one, rate(cpu, count))
            again = asked[earlier + count :]
            cpu, wall = timed(lambda: predictor.predict(again))  # noqa: B023
            show(f"dpadapt {name}, new ones all at once", cpu, wall, one, rate(cpu, count))
            cpu, wall = timed(lambda: [predictor.predict(row[None]) for row in new])  # noqa: B023
            show(f"dpadapt {name}, the same ones again", cpu, wall, one, rate(cpu, count))
            predictor.close()


def explicit(rows: int, count: int) -> None:
    """Training and prediction with explicit cubic features, beside LogisticRegression."""
    X, y = task(PUBLIC + rows)
    private = Private(X[PUBLIC:], y[PUBLIC:])
    model = KernelClassifier(epsilon=1.0, delta=1e-6, kernel="polynomial")
    cpu, wall = timed(lambda: model.fit(X[:PUBLIC], y[:PUBLIC], private=private))
    features = model.setup_.features(model.setup_.rows(X[PUBLIC:]))
    width = features.shape[1]
    print(f"\nexplicit features: cubic kernel, n = {rows:,}, {width} features")
    strength = 1 / (model.penalty_ * rows)
    plain = LogisticRegression(C=strength, max_iter=1000, fit_intercept=False)
    base, base_wall = timed(lambda: plain.fit(features, y[PUBLIC:]))
    show("training, LogisticRegression, features given", base, base_wall, base, "")
    show("training, dpadapt, features included", cpu, wall, base, "")
    asked, _ = task(count, seed=1)
    ready = model.setup_.features(model.setup_.rows(asked))
    base, base_wall = timed(lambda: plain.decision_function(ready), 5)
    show("answers, LogisticRegression, features given", base, base_wall, base, rate(base, count))

    def mapped() -> object:
        return plain.decision_function(model.setup_.features(model.setup_.rows(asked)))

    cpu, wall = timed(mapped, 5)
    show("answers, LogisticRegression, features included", cpu, wall, base, rate(cpu, count))
    cpu, wall = timed(lambda: model.predict(asked), 5)
    show("answers, dpadapt", cpu, wall, base, rate(cpu, count))


def gram(rows: int) -> None:
    """Training with the kernel matrix, beside SVC and KernelRidge."""
    X, y = task(PUBLIC + rows)
    private = Private(X[PUBLIC:], y[PUBLIC:])
    print(f"\nkernel matrix: rbf kernel, n = {rows:,}")
    svc = SVC(kernel="rbf", gamma=1.0, C=1.0)
    base, wall = timed(lambda: svc.fit(X[PUBLIC:], y[PUBLIC:]))
    show("training, SVC", base, wall, base, "")
    model = KernelClassifier(epsilon=1.0, delta=1e-6, kernel="rbf", features="none")
    cpu, wall = timed(lambda: model.fit(X[:PUBLIC], y[:PUBLIC], private=private))
    show("training, dpadapt classifier", cpu, wall, base, "")
    ridge = KernelRidge(kernel="rbf", gamma=1.0, alpha=1.0)
    base, wall = timed(lambda: ridge.fit(X[PUBLIC:], y[PUBLIC:]))
    show("training, KernelRidge", base, wall, base, "")
    regressor = KernelRegressor(epsilon=1.0, delta=1e-6, kernel="rbf", features="none")
    cpu, wall = timed(lambda: regressor.fit(X[:PUBLIC], y[:PUBLIC], private=private))
    show("training, dpadapt regressor", cpu, wall, base, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    explicit(*(10_000, 2_000) if quick else (100_000, 20_000))
    for rows in (500, 1_000) if quick else (5_000, 10_000):
        gram(rows)
    answers(*(500, 1_000, 50) if quick else (2_000, 10_000, 200))


if __name__ == "__main__":
    main()
