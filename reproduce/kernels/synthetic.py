"""Paper 002: a made-up task of the cubic kernel, with as many rows as small epsilons need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.kernels.features import PolynomialFeatures
from dpadapt.learning.figures import set_title
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells, spread_note

from .methods import MAJORITY, NO_PRIVACY, OURS, Split, fit_released, plain
from .style import budget_axis, curve, pivot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "draw_synthetic",
    "draw_task",
    "summarise_synthetic",
    "synthetic_findings",
]

Array = NDArray[np.float64]

BUDGETS = (0.1, 0.5, 1.0)
ROWS, COLUMNS, PUBLIC, TEST = 60_000, 10, 200, 5_000
PENALTY = 0.02
# of the labels: such that the model without privacy has an accuracy of about 85% at that penalty
LABEL_NOISE, LINEAR_SHARE = 0.135, 0.5
PENALTIES = {"0.02": PENALTY, "default": None}
CAVEAT = "not in the paper: made-up rows"
_METHODS = (OURS, "TDDL as printed", "TDDL, Laplace", "TDDL, Gaussian", "TDIL, repaired")
_REPEATS = 5


@dataclass(frozen=True)
class Cell:
    """One draw."""

    seed: int
    rows: int
    budgets: tuple[float, ...]


def draw_task(seed: int, rows: int = ROWS, test: int = TEST) -> Split:
    """Points of the unit ball, labelled by a random cubic function with a linear share, and noise.

    Examples
    --------
    >>> draw_task(0, rows=100).X_private.shape
    (100, 10)
    """
    rng = np.random.default_rng(seed)
    total = PUBLIC + rows + test
    X = rng.normal(size=(total, COLUMNS))
    X *= rng.uniform(size=(total, 1)) ** (1 / COLUMNS) / np.linalg.norm(X, axis=1, keepdims=True)
    features = PolynomialFeatures(COLUMNS, 1.0, 3, 1.0, 1.0)
    curved = _standard(features(X) @ rng.normal(size=features.n_features))
    score = _standard(curved + LINEAR_SHARE * _standard(X @ rng.normal(size=COLUMNS)))
    score += 0.2 - np.median(score)  # a majority of about 58%
    y = np.where(score + LABEL_NOISE * rng.logistic(size=total) > 0, 1, -1)
    end = PUBLIC + rows
    return Split(X[:PUBLIC], y[:PUBLIC], X[PUBLIC:end], y[PUBLIC:end], X[end:], y[end:], seed)


def _standard(values: Array) -> Array:
    return np.asarray((values - values.mean()) / values.std())


def run_cell(cell: Cell) -> Rows:
    """Accuracies of every method on one draw, for both penalties."""
    split = draw_task(cell.seed, cell.rows)
    base: dict[str, Any] = {"n": cell.rows, "repeat": cell.seed, "epsilon": None}
    lines = []
    for name, penalty in PENALTIES.items():
        here = base | {"penalty": name}
        exact = split.accuracy(plain(split, penalty=penalty))
        lines += [
            here | {"method": MAJORITY, "accuracy": split.majority, "true_epsilon": 0.0},
            here | {"method": NO_PRIVACY, "accuracy": exact},
        ]
        for epsilon in cell.budgets:
            for method in _METHODS:
                model = fit_released(method, split, epsilon, penalty=penalty)
                line = {"method": method, "epsilon": epsilon, "accuracy": split.accuracy(model)}
                lines.append(here | line | {"true_epsilon": model.guarantee_.epsilon})
    return lines


def run_synthetic(options: Options) -> pd.DataFrame:
    """All draws."""
    rows, budgets = (ROWS // 4, (0.1, 0.5)) if options.quick else (ROWS, BUDGETS)
    cells = [Cell(seed, rows, budgets) for seed in range(min(options.repeats, _REPEATS))]
    table = run_cells(run_cell, cells, options, "made-up task")
    return table.assign(accuracy=100 * table["accuracy"])


def summarise_synthetic(table: pd.DataFrame) -> pd.DataFrame:
    """A line for each penalty and method.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"penalty": "0.02", "method": "dpadapt", "epsilon": 0.1, "accuracy": 80.0}
    >>> summarise_synthetic(pd.DataFrame([line]))["ε 0.1"].tolist()
    ['80.0']
    """
    named = table.rename(columns={"penalty": "lambda"})
    return pivot(named, ["lambda", "method"], "accuracy", CAVEAT)


def draw_synthetic(table: pd.DataFrame) -> Figure:
    """Accuracy against epsilon, a panel a penalty.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"penalty": "0.02", "method": "dpadapt", "epsilon": 0.1, "accuracy": 80.0}
    >>> len(draw_synthetic(pd.DataFrame([line])).axes)
    1
    """
    penalties = list(dict.fromkeys(table["penalty"].astype(str)))
    figure, grid = panels(1 + 4.6 * len(penalties), 4.9, 1, len(penalties))
    for axes, penalty in zip(grid.flat, penalties, strict=True):
        part = table[table["penalty"].astype(str) == penalty]
        for method in dict.fromkeys(part["method"]):
            curve(axes, part[part["method"] == method], "epsilon", "accuracy", method)
        budget_axis(axes, sorted(part["epsilon"].dropna().unique()), "accuracy (%)")
        set_title(axes, "the default penalty" if penalty == "default" else f"λ = {penalty}")
    for axes in grid.flat:
        axes.set_ylim(
            min(each.get_ylim()[0] for each in grid.flat),
            max(each.get_ylim()[1] for each in grid.flat),
        )
    finish(
        figure,
        grid,
        f"Not in the paper: made-up rows. {spread_note(table, 'Bands: one standard deviation.')}",
        columns=4,
    )
    return figure


def synthetic_findings(table: pd.DataFrame) -> list[str]:
    """Accuracies for each penalty.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"penalty": "0.02", "method": "dpadapt", "epsilon": 0.1, "accuracy": 80.0}
    >>> synthetic_findings(pd.DataFrame([line]))
    ['lambda 0.02, epsilon 0.1: dpadapt 80.0.']
    """
    sentences = []
    for penalty, part in table.groupby("penalty", sort=False):
        levels = part[part["epsilon"].isna()].groupby("method", sort=False)["accuracy"].mean()
        if len(levels):
            named = ", ".join(f"{name} {value:.1f}" for name, value in levels.items())
            sentences.append(f"lambda {penalty}: {named}.")
        means = part.groupby(["epsilon", "method"], sort=False)["accuracy"].mean()
        for epsilon in sorted(part["epsilon"].dropna().unique()):
            named = ", ".join(f"{name} {value:.1f}" for name, value in means[epsilon].items())
            sentences.append(f"lambda {penalty}, epsilon {epsilon:g}: {named}.")
    return sentences
