"""The demo: two honest experiments on real wages, one where adaptation works, one where it cannot.

A run splits the private people at random: 70 % are the private, unlabelled sample, 30 % are kept
for testing. Errors are mean squared errors of log earnings on the test people.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt._checks import public_scaling
from dpadapt.datasets import load_wages, wage_features
from dpadapt.discrepancy import AdaptationWarning, DiscrepancyRegressor, minimise_discrepancy
from dpadapt.discrepancy.second_stage import weighted_ridge
from dpadapt.pipeline import AdaptationPipeline
from dpadapt.privacy import Private

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DELTA",
    "EPSILONS",
    "PRIVATE_LABELS",
    "PUBLIC_ONLY",
    "UNPROTECTED",
    "Setting",
    "example_model",
    "method_name",
    "run_demo",
    "settings",
    "summarise",
]

EPSILONS, DELTA = (0.25, 1.0, 4.0), 1e-6
PUBLIC_ONLY = "public data only"
UNPROTECTED = "discrepancy minimisation, no privacy"
PRIVATE_LABELS = "trained on private labels, no privacy"
_RIDGE = 1e-4  # of all methods
_PUBLIC_SEED, _SPLIT_SEED = 2004, 70_30
_TRAIN = 0.7

Array = NDArray[np.float64]


def method_name(epsilon: float) -> str:
    """Name of our method in the tables.

    Examples
    --------
    >>> method_name(1.0)
    'dpadapt, epsilon 1'
    """
    return f"dpadapt, epsilon {epsilon:g}"


@dataclass(frozen=True)
class Setting:
    """Who is public and who is private.

    Parameters
    ----------
    name : str
    story : str
        One sentence for the screen.
    public, private : ndarray of bool
        Over the rows of :func:`dpadapt.datasets.load_wages`.

    Examples
    --------
    >>> Setting("halves", "", np.array([True, False]), np.array([False, True])).name
    'halves'
    """

    name: str
    story: str
    public: NDArray[np.bool_]
    private: NDArray[np.bool_]


def settings(age: Any) -> tuple[Setting, Setting]:
    """Return the two settings of the demo.

    Parameters
    ----------
    age : array-like of shape (n,)

    Examples
    --------
    >>> works, cannot = settings([25, 35, 45, 55])
    >>> cannot.private
    array([ True, False, False, False])
    """
    years = np.asarray(age, dtype=np.float64)
    draws = np.random.default_rng(_PUBLIC_SEED).random(len(years))
    older = draws < 1 / (1 + np.exp(-(years - 40) / 5))
    return (
        Setting(
            "an older public panel",
            "The public panel is older than the private people, but every age occurs in both: "
            "weights on the public rows can make up for the difference.",
            older,
            ~older,
        ),
        Setting(
            "no age in common",
            "Public: 40 and over. Private: under 30. No weights turn forty-year-olds into "
            "twenty-year-olds. Plain discrepancy minimisation weighs all the same, and does harm; "
            "dpadapt sees in its noisy matrix that no weights can match, says so, and keeps the "
            "public model.",
            years >= 40,
            years < 30,
        ),
    )


def run_demo(
    runs: int = 5, *, progress: Callable[[int, int, str], None] | None = None
) -> pd.DataFrame:
    """Run both settings; one line for each setting, run and method.

    Parameters
    ----------
    runs : int, default=5
        Random splits of the private people in each setting.
    progress : callable, optional
        Called with (steps done, steps in all, name of the next step).

    Returns
    -------
    DataFrame
        Columns ``setting``, ``method``, ``run``, ``mse``, ``adapted`` (False where the method
        noticed that it cannot adapt).

    Examples
    --------
    >>> summarise(run_demo(runs=1))  # doctest: +SKIP
    """
    import pandas as pd

    wages = load_wages()
    labels = np.log(wages["earnings"].to_numpy())
    both, lines = settings(wages["age"]), []
    total, done = len(both) * runs * (len(EPSILONS) + 3), 0
    for setting in both:
        features = wage_features().fit(wages[setting.public]).transform(wages)
        public = features[setting.public], labels[setting.public]
        private = features[setting.private], labels[setting.private]
        for run in range(runs):
            sample, test = _split(run, len(private[0]))
            for method, predict in _methods(*public, private[0][sample], private[1][sample]):
                if progress is not None:
                    progress(done, total, f"{setting.name}: {method}")
                predicted, adapted = predict(private[0][test])
                mse = float(np.mean((predicted - private[1][test]) ** 2))
                lines.append((setting.name, method, run, mse, adapted))
                done += 1
    if progress is not None:
        progress(done, total, "done")
    return pd.DataFrame(lines, columns=["setting", "method", "run", "mse", "adapted"])


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and spread over runs, and the part of the gap that each method closes.

    The gap is the error of public data only minus that of a model trained on private labels, in
    the same run: 0 is public data only, 1 is private labels, negative is harm.

    Parameters
    ----------
    results : DataFrame
        From :func:`run_demo`.

    Returns
    -------
    DataFrame
        One line for each setting and method, in the order of ``results``: ``mse``, ``spread``
        (standard deviation over runs), ``gap`` and ``gap_spread``, ``adapted`` (part of the runs).

    Examples
    --------
    >>> import pandas as pd
    >>> methods, errors = [PUBLIC_ONLY, "ours", PRIVATE_LABELS], [0.3, 0.25, 0.2]
    >>> table = pd.DataFrame({"setting": "s", "method": methods, "run": 0, "mse": errors,
    ...                       "adapted": True})
    >>> summarise(table)["gap"].round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    worst = _error_of(results, PUBLIC_ONLY)
    best = _error_of(results, PRIVATE_LABELS)
    gap = (worst - results["mse"]) / (worst - best)
    grouped = results.assign(gap=gap).groupby(["setting", "method"], sort=False)
    table = grouped.agg(
        mse=("mse", "mean"),
        spread=("mse", "std"),
        gap=("gap", "mean"),
        gap_spread=("gap", "std"),
        adapted=("adapted", "mean"),
    )
    return table.reset_index()


def example_model(epsilon: float = 1.0) -> AdaptationPipeline:
    """Fit one model on the first setting, for the report.

    Parameters
    ----------
    epsilon : float, default=1.0

    Examples
    --------
    >>> example_model(epsilon=1.0).guarantee_.epsilon <= 1.0
    True
    """
    wages = load_wages()
    setting = settings(wages["age"])[0]
    public, people = wages[setting.public], wages[setting.private]
    sample, _ = _split(0, len(people))
    columns = ["age", "education", "gender", "region"]
    model = AdaptationPipeline(
        [("features", wage_features())],
        DiscrepancyRegressor(epsilon=epsilon, delta=DELTA, ridge=_RIDGE),
    )
    private = Private(people.iloc[sample][columns])
    return model.fit(public[columns], np.log(public["earnings"]), private=private)


def _error_of(results: pd.DataFrame, method: str) -> Any:
    """Error of one method in each line's setting and run."""
    reference = results[results["method"] == method].set_index(["setting", "run"])["mse"]
    keys = list(zip(results["setting"], results["run"], strict=True))
    return reference.loc[keys].to_numpy()


def _split(run: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng((_SPLIT_SEED, run)).permutation(n)
    cut = round(_TRAIN * n)
    return order[:cut], order[cut:]


def _methods(
    X: Array, y: Array, X_private: Array, y_private: Array
) -> Iterator[tuple[str, Callable[[Array], tuple[Array, bool]]]]:
    """Each method's name and what fits it and predicts for test rows."""

    def ours(epsilon: float, private: Private | None) -> Callable[[Array], tuple[Array, bool]]:
        def predict(test: Array) -> tuple[Array, bool]:
            model = DiscrepancyRegressor(epsilon=epsilon, delta=DELTA, ridge=_RIDGE)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AdaptationWarning)
                model.fit(X, y, private=private)
            return model.predict(test), model.adapted_

        return predict

    yield PUBLIC_ONLY, ours(1.0, None)
    yield UNPROTECTED, lambda test: (_unprotected(X, y, X_private, test), True)
    for epsilon in EPSILONS:
        yield method_name(epsilon), ours(epsilon, Private(X_private))
    yield PRIVATE_LABELS, lambda test: (_ridge(X_private, y_private, None, test), True)


def _unprotected(X: Array, y: Array, X_private: Array, test: Array) -> Array:
    """Plain discrepancy minimisation: exact private moments, and it always adapts."""
    center, scale = public_scaling(X)
    target = _with_intercept((X_private - center) / scale)
    found = minimise_discrepancy(
        _with_intercept((X - center) / scale), target.T @ target / len(target)
    )
    return _ridge(X, y, found.weights, test)


def _ridge(X: Array, y: Array, weights: Array | None, test: Array) -> Array:
    """Fit the second stage of all methods with given weights and predict."""
    q = np.full(len(X), 1 / len(X)) if weights is None else weights
    center, scale = public_scaling(X)
    offset = float(q @ y)
    rows = _with_intercept((X - center) / scale)
    slopes = weighted_ridge(rows, y - offset, q, ridge=_RIDGE)
    return offset + _with_intercept((test - center) / scale) @ slopes


def _with_intercept(rows: Array) -> Array:
    return np.column_stack([rows, np.ones(len(rows))])
