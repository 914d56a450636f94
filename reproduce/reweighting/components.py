"""Gas by twenty components: how far each of our solvers gets, in two units of the label."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpadapt import Private, ReweightingRegressor
from dpadapt.learning.figures import GREY, set_title
from reproduce.page import finish, panels
from reproduce.runs import Options, run_cells, spread_note
from reproduce.style import mean_and_spread

from .data import load_gas_and_kind

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "COMPONENTS",
    "component_findings",
    "components",
    "draw_components",
    "run_components",
    "summarise_components",
]

COMPONENTS = 20
_FEATURES, _TRAIN, _DELTA = 128, 1600, 1e-6
_EPSILONS = (0.25, 0.5, 1.0)
_UNITS = {"1 to 1000 ppm": (0.0, float(np.log(1000.0))), "as in an earlier study": (-0.38, 6.98)}
_SOLVERS = ("known-noise", "profiled", "statistics", "gradient")
_NAMES = {"known-noise": "dpadapt (default)"}


def components(
    X_public: np.ndarray, X_private: np.ndarray, count: int = COMPONENTS
) -> tuple[np.ndarray, np.ndarray]:
    """Public principal directions of standardised sensors, kinds of gas and a constant.

    Sensors are standardised by public rows and cut at 4 standard deviations; the gas is given as
    indicators of size 2 beside a constant of 3; the directions are not centred.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.hstack([rng.normal(size=(50, 128)), np.eye(6)[rng.integers(6, size=50)][:, 1:]])
    >>> components(X, X[:3])[1].shape
    (3, 20)
    """
    mean, scale = X_public[:, :_FEATURES].mean(axis=0), X_public[:, :_FEATURES].std(axis=0)

    def rows(X: np.ndarray) -> np.ndarray:
        kinds = X[:, _FEATURES:]
        first = 1 - kinds.sum(axis=1, keepdims=True)
        cut = np.clip((X[:, :_FEATURES] - mean) / scale, -4, 4)
        return np.hstack([cut, 2 * first, 2 * kinds, np.full((len(X), 1), 3.0)])

    public, private = rows(X_public), rows(X_private)
    directions = np.linalg.svd(public, full_matrices=False)[2][:count].T
    return public @ directions, private @ directions


class Cell(NamedTuple):
    """One split in one unit of the label."""

    unit: str
    seed: int


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Every solver at every epsilon on one split, and public data alone."""
    data = load_gas_and_kind()
    X, T = components(data.X_public, data.X_private)
    low, high = _UNITS[cell.unit]
    half = (high - low) / 2
    order = np.random.default_rng([1, cell.seed]).permutation(len(T))
    train, test = order[:_TRAIN], order[_TRAIN:]
    private = Private(T[train], data.y_private[train])
    lines = []

    def add(method: str, epsilon: float, model: ReweightingRegressor) -> None:
        error = np.mean((model.predict(T[test]) - data.y_private[test]) ** 2) / half**2
        lines.append(
            {"unit": cell.unit, "seed": cell.seed, "method": method, "epsilon": epsilon}
            | {"error": float(error), "true_epsilon": model.guarantee_.epsilon}
        )

    public = ReweightingRegressor(epsilon=1.0, delta=_DELTA).fit(X, data.y_public)
    for epsilon in _EPSILONS:
        add("public only", epsilon, public)
        for solver in _SOLVERS:
            model = ReweightingRegressor(
                epsilon=epsilon,
                delta=_DELTA,
                solver=solver,
                label_range=(low, high),
                noise="seeded",
                random_state=cell.seed,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, data.y_public, private=private)
            add(_NAMES.get(solver, f'solver "{solver}"'), epsilon, model)
    return lines


def run_components(options: Options) -> pd.DataFrame:
    """All splits in both units.

    Examples
    --------
    >>> callable(run_components)
    True
    """
    cells = [Cell(unit, seed) for unit in _UNITS for seed in range(options.repeats)]
    return run_cells(run_cell, cells, options, "gas, components")


def summarise_components(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of the error.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"unit": "a", "method": "b", "epsilon": 1.0}
    >>> rows = [line | {"error": error} for error in (0.004, 0.006)]
    >>> summarise_components(pd.DataFrame(rows)).iloc[0, -1]
    '0.0050 ± 0.0014'
    """
    groups = table.groupby(["unit", "method", "epsilon"], sort=False).error
    text = groups.agg(lambda errors: mean_and_spread(list(errors), 4))
    wide = text.unstack("epsilon")
    wide.columns = [f"epsilon {epsilon:g}" for epsilon in wide.columns]
    return wide.reset_index().rename(columns={"unit": "label unit"})


def draw_components(table: pd.DataFrame) -> Figure:
    """Error against epsilon, one panel for each unit.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"unit": "a", "method": "b", "epsilon": 1.0}
    >>> rows = [line | {"error": error} for error in (0.004, 0.006)]
    >>> len(draw_components(pd.DataFrame(rows)).axes)
    1
    """
    units = list(dict.fromkeys(table.unit))
    figure, grid = panels(5.2 * len(units), 4.4, 1, len(units))
    for axes, unit in zip(grid.flat, units, strict=True):
        for method, cell in table[table.unit == unit].groupby("method", sort=False):
            by = cell.groupby("epsilon").error
            style = {"color": GREY, "linestyle": "--"} if method == "public only" else {}
            bars = by.std().fillna(0)
            axes.errorbar(by.mean().index, by.mean(), bars, label=method, marker="o", capsize=3,
                          **style)  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="ε")
        axes.set_xticks(list(_EPSILONS), [f"{epsilon:g}" for epsilon in _EPSILONS])
        axes.minorticks_off()
        set_title(axes, f"label: {unit}")
    grid.flat[0].set_ylabel("mean squared error, label in [-1, 1]")
    bars_are = spread_note(table, "Bars: one standard deviation.")
    note = f"Not in the paper. δ = 10⁻⁶. {bars_are}"
    finish(figure, grid, note, columns=3)
    return figure


def component_findings(table: pd.DataFrame) -> list[str]:
    """What the table shows, in sentences.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"unit": "a", "method": "b", "epsilon": 1.0, "error": 0.004}
    >>> component_findings(pd.DataFrame([line]))
    ['a: b 0.0040 (epsilon 1).']
    """
    found = []
    for unit, part in table.groupby("unit", sort=False):
        means = part.groupby(["method", "epsilon"], sort=False).error.mean()
        shown = [
            f"{method} "
            + " / ".join(f"{means[method, epsilon]:.4f}" for epsilon in part.epsilon.unique())
            for method in part.method.unique()
        ]
        budgets = " / ".join(f"{epsilon:g}" for epsilon in part.epsilon.unique())
        found.append(f"{unit}: {', '.join(shown)} (epsilon {budgets}).")
    return found
