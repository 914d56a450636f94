"""Real data for paper 000's setting: wind speeds (winter to summer) and drifting gas sensors.

The paper has no real data. Half of the private rows, without labels, are what the methods may use;
the other half, with labels, is what they are tested on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpadapt.baselines import kernel_mean_matching
from dpadapt.discrepancy import AdaptationWarning, DiscrepancyRegressor
from dpadapt.discrepancy.minimisation import minimise_discrepancy
from dpadapt.discrepancy.second_stage import weighted_ridge
from dpadapt.learning.figures import BLUE, GREY
from dpadapt.privacy import Private
from reproduce.data.shifted import ShiftedData, load_gas, load_wind
from reproduce.page import panels
from reproduce.runs import Options, run_cells
from reproduce.style import mean_and_spread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "Split",
    "compare",
    "draw_errors",
    "principal_components",
    "real_findings",
    "run_gas",
    "run_wind",
    "summarise_errors",
]

Array = NDArray[np.float64]
Predictor = Callable[[Array], Array]

EPSILON, DELTA, RIDGE = 1.0, 1e-6, 1e-4
SEEDS = 5
COMPONENTS = 20


class Split(NamedTuple):
    """Public rows, unlabelled private rows, and private rows for testing; labels standardised.

    Examples
    --------
    >>> Split(np.eye(2), np.ones(2), np.eye(2), np.eye(2), np.ones(2), seed=0).seed
    0
    """

    X: Array
    y: Array
    private: Array
    X_test: Array
    y_test: Array
    seed: int

    @classmethod
    def of(cls, data: ShiftedData, seed: int) -> Split:
        """Halve the private rows at random.

        Examples
        --------
        >>> data = ShiftedData(np.eye(2), np.array([1.0, 3.0]), np.ones((6, 2)), np.ones(6))
        >>> Split.of(data, seed=0).y_test
        array([-1., -1., -1.])
        """
        order = np.random.default_rng(seed).permutation(len(data.X_private))
        used, tested = np.split(order, [len(order) // 2])
        center, scale = data.y_public.mean(), data.y_public.std()
        return cls(
            data.X_public,
            (data.y_public - center) / scale,
            data.X_private[used],
            data.X_private[tested],
            (data.y_private[tested] - center) / scale,
            seed,
        )


def _public_only(split: Split) -> tuple[Predictor, float]:
    model = DiscrepancyRegressor(epsilon=EPSILON, delta=DELTA, ridge=RIDGE)
    return model.fit(split.X, split.y).predict, 0.0


def _ours(split: Split) -> tuple[Predictor, float]:
    model = DiscrepancyRegressor(
        epsilon=EPSILON,
        delta=DELTA,
        ridge=RIDGE,
        noise="seeded",
        random_state=split.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        model.fit(split.X, split.y, private=Private(split.private))
    return model.predict, model.share_


def _without_privacy(split: Split) -> tuple[Predictor, float]:
    """Plain discrepancy minimisation (Cortes and Mohri 2014)."""
    rows = _scaling(split.X)
    target = rows(split.private)
    found = minimise_discrepancy(rows(split.X), target.T @ target / len(target))
    return _ridge(split, rows, found.weights), 1.0


def _mean_matching(split: Split) -> tuple[Predictor, float]:
    """Kernel mean matching (Huang et al. 2007), without privacy."""
    rows = _scaling(split.X)
    found = kernel_mean_matching(rows(split.X)[:, :-1], rows(split.private)[:, :-1])
    return _ridge(split, rows, found.weights / found.weights.sum()), 1.0


METHODS: Mapping[str, Callable[[Split], tuple[Predictor, float]]] = {
    "public only": _public_only,
    "dpadapt, epsilon 1": _ours,
    "plain DM, no privacy": _without_privacy,
    "kernel mean matching, no privacy": _mean_matching,
}


def compare(split: Split) -> list[dict[str, Any]]:
    """Error of every method on the private rows for testing.

    ``share`` is how far the coefficients moved from the public-only fit to the weighted one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(300, 2)), rng.normal(0.5, 0.7, size=(300, 2))
    >>> split = Split.of(ShiftedData(X, X[:, 0] ** 2, Z, Z[:, 0] ** 2), seed=0)
    >>> [line["method"] for line in compare(split)][:2]
    ['public only', 'dpadapt, epsilon 1']
    """
    rows = []
    for name, method in METHODS.items():
        predict, share = method(split)
        error = float(np.mean((predict(split.X_test) - split.y_test) ** 2))
        rows.append({"repeat": split.seed, "method": name, "mse": error, "share": share})
    return rows


def principal_components(data: ShiftedData, count: int = COMPONENTS) -> ShiftedData:
    """First principal components of the standardised public rows, for both samples.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(50, 5))
    >>> principal_components(ShiftedData(rows, rows[:, 0], rows, rows[:, 0]), 3).X_private.shape
    (50, 3)
    """
    center, scale = data.X_public.mean(axis=0), data.X_public.std(axis=0)
    public = (data.X_public - center) / scale
    _, _, directions = np.linalg.svd(public, full_matrices=False)
    basis = directions[:count].T
    private = (data.X_private - center) / scale
    return ShiftedData(public @ basis, data.y_public, private @ basis, data.y_private)


def run_wind(options: Options) -> pd.DataFrame:
    """Winter to summer; needs the data."""
    return _run(load_wind(), options, "wind")


def run_gas(options: Options) -> pd.DataFrame:
    """Batches 1-5, 8, 9 to batch 6; needs the data."""
    return _run(principal_components(load_gas()), options, "gas")


def _run(data: ShiftedData, options: Options, name: str) -> pd.DataFrame:
    splits = [Split.of(data, seed) for seed in range(min(SEEDS, options.repeats))]
    return run_cells(compare, splits, options, name)


def _scaling(X: Array) -> Callable[[Array], Array]:
    """Standardise by public mean and deviation, and add an intercept."""
    center, scale = X.mean(axis=0), X.std(axis=0)

    def apply(rows: Array) -> Array:
        return np.column_stack([(rows - center) / scale, np.ones(len(rows))])

    return apply


def _ridge(split: Split, rows: Callable[[Array], Array], weights: Array) -> Predictor:
    fit = weighted_ridge(rows(split.X), split.y, weights, ridge=RIDGE)
    return lambda X: np.asarray(rows(X) @ fit)


def summarise_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of the error, a line for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": ["a", "a"], "mse": [1.0, 3.0]})
    >>> summarise_errors(table).to_dict("records")
    [{'method': 'a', 'MSE': '2.0000 ± 1.4142', 'splits': 2}]
    """
    import pandas as pd

    return pd.DataFrame(
        [
            {"method": method, "MSE": mean_and_spread(list(found), 4), "splits": len(found)}
            for method, found in table.groupby("method", sort=False)["mse"]
        ]
    )


def draw_errors(table: pd.DataFrame) -> Figure:
    """Error of each method: means as bars, single runs as dots.

    Examples
    --------
    >>> import pandas as pd
    >>> len(draw_errors(pd.DataFrame({"method": ["a", "a"], "mse": [1.0, 2.0]})).axes)
    1
    """
    methods = list(dict.fromkeys(table["method"]))[::-1]
    figure, grid = panels(8, 1.2 + 0.5 * len(methods), 1, 1)
    axes = grid.flat[0]
    for place, method in enumerate(methods):
        values = table.loc[table["method"] == method, "mse"].to_numpy()
        colour = BLUE if method.startswith("dpadapt") else GREY
        axes.barh(place, values.mean(), color=colour, alpha=0.35, height=0.62)
        axes.plot(values, np.full(len(values), place), "o", color=colour, ms=4.5)
        axes.annotate(
            f"{values.mean():.4f}",
            (values.max(), place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
        )
    axes.set_yticks(range(len(methods)), methods)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("error on private rows (MSE, in units of the public labels' variance)")
    axes.set_xlim(right=1.12 * float(table["mse"].max()))
    return figure


def real_findings(table: pd.DataFrame) -> list[str]:
    """Whether adaptation helps, and whether discrepancy minimisation itself does.

    Examples
    --------
    >>> import pandas as pd
    >>> errors = zip(METHODS, [0.2, 0.2, 0.4, 0.3], strict=True)
    >>> lines = [{"repeat": 0, "method": method, "mse": error} for method, error in errors]
    >>> real_findings(pd.DataFrame(lines))[1]
    'Plain discrepancy minimisation, without privacy, changes it by +100.0%: it does not help here.'
    """
    runs = table.pivot(index="repeat", columns="method", values="mse")
    mean, public = runs.mean(), runs["public only"]
    sentences = []
    ours = runs["dpadapt, epsilon 1"]
    sentences.append(
        f"dpadapt at epsilon 1 changes the error of public data alone ({public.mean():.4f}) by "
        f"{ours.mean() / public.mean() - 1:+.1%}; it is lower in {int((ours < public).sum())} of "
        f"{len(runs)} splits."
    )
    for method, name in (
        ("plain DM, no privacy", "Plain discrepancy minimisation"),
        ("kernel mean matching, no privacy", "Kernel mean matching"),
    ):
        change = mean[method] / public.mean() - 1
        verdict = "it helps" if change < 0 else "it does not help here"
        sentences.append(f"{name}, without privacy, changes it by {change:+.1%}: {verdict}.")
    return sentences
