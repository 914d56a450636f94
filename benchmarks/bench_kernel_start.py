"""Kernel models that correct the public one, beside the public model and private rows alone.

Public rows are one half of a table along a column, private and test rows the other half. Prints the
test error (mean squared error, or percent wrong). Real data is read from the folder that
``DPADAPT_DATA`` names; tables of scikit-learn and the bundled wages need none.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/bench_kernel_start.py [draws]
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from dpadapt import KernelClassifier, KernelRegressor, Private
from dpadapt.datasets import load_wages
from dpadapt.kernels import GaussianProcess

BUDGETS = (0.5, 1.0, 4.0)


def split(X: Any, y: Any, along: Any, public: int, private: int, rng: Any) -> tuple[Any, ...]:
    """Public, private and test rows."""
    order = np.argsort(along + 1e-6 * rng.random(len(y)))
    near, far = (rng.permutation(part) for part in np.array_split(order, 2))
    test = far[: min(2000, len(far) // 3)]
    train, near = far[len(test) :][:private], near[:public]
    return X[near], y[near], X[train], y[train], X[test], y[test]


def tables(seed: int) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Name, estimator and rows of each table."""
    rng = np.random.default_rng(seed)
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", KernelRegressor, split(X, y, X[:, 0], 60, 400, rng)
    wages = load_wages().sample(20_000, random_state=seed)
    gender, region = (wages[name] == wages[name].cat.categories[0] for name in ("gender", "region"))
    X = np.column_stack([wages.age, wages.education, gender]).astype(float)
    y = np.minimum(wages.earnings.to_numpy(float), 60)
    yield "wages", KernelRegressor, split(X, y, region.to_numpy(float), 300, 3000, rng)
    X, y = load_breast_cancer(return_X_y=True)
    yield "cancer", KernelClassifier, split(X, y, X[:, 1], 40, 300, rng)
    X, y = load_digits(return_X_y=True)
    yield "digits", KernelClassifier, split(X, y, X.mean(axis=1), 100, 1000, rng)
    if "DPADAPT_DATA" in os.environ:
        yield from real_tables(Path(os.environ["DPADAPT_DATA"]), rng)


def real_tables(folder: Path, rng: Any) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Those that are read from files."""
    wind = pd.read_csv(folder / "wind" / "wind.csv.gz").select_dtypes("number")
    columns = [name for name in wind if wind[name].nunique() > 40]
    M = wind[columns].to_numpy(float)
    along = wind["month"].to_numpy() if "month" in wind else np.arange(len(M))
    yield "wind", KernelRegressor, split(M[:, :-1], M[:, -1], along, 200, 3000, rng)
    names = {"header": None, "skipinitialspace": True}
    adult = pd.read_csv(folder / "adult" / "adult.data.gz", **names).sample(20_000, random_state=0)
    X, y = adult[[0, 4, 10, 11, 12]].to_numpy(float), (adult[14] == ">50K").to_numpy() * 1
    along = (adult[9] == "Female").to_numpy(float)
    yield "adult", KernelClassifier, split(X, y, along, 200, 3000, rng)


def main() -> None:
    """Print a line for each draw of each table."""
    warnings.simplefilter("ignore")
    for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        for name, kind, (X, y, T, t, new, truth) in tables(seed):

            def error(model: Any, kind: Any = kind, new: Any = new, truth: Any = truth) -> float:
                found = model.predict(new)
                if kind is KernelRegressor:
                    return float(np.mean((found - truth) ** 2))
                return 100 * float(np.mean(found != truth))

            line = f"{seed} {name:9s} public {error(kind(epsilon=1, delta=1e-6).fit(X, y)):.4g}"
            for epsilon in BUDGETS:
                for start in ("public", "zero"):
                    release = GaussianProcess(start=start)
                    model = kind(epsilon=epsilon, delta=1e-6, release=release)
                    found = error(model.fit(X, y, private=Private(T, t)))
                    line += f" | epsilon {epsilon:g}, from {start} {found:.4g}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
