"""Paper 002, Figure 2b: regression in very many sparse columns, on texts of reviews."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.baselines import ObjectivePerturbationRegressor
from dpadapt.kernels import TDDL, GaussianProcess, InnerProduct, KernelRegressor
from dpadapt.learning.figures import set_title
from dpadapt.privacy import Private
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells, spread_note

from .data import Texts, hashed_words, load_review_texts
from .methods import DELTA, NO_NOISE, NO_PRIVACY, OURS, PRINTED_TDDL
from .style import budget_axis, curve, pivot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["draw_reviews", "review_findings", "summarise_reviews"]

BUDGETS = (0.5, 1.0, 2.0, 4.0)
COLUMNS, FEW_COLUMNS = 2**18, 500
PUBLIC, TEST, ASKED = 500, 1_500, 300
CAVEAT = "not the paper's data: 262,144 hashed words and pairs of words of reviews, good or bad"
LINEAR = f"objective perturbation, {FEW_COLUMNS} columns"
NOTHING = "always 0"
METHODS: dict[str, Any] = {
    OURS: GaussianProcess(start="zero"),
    PRINTED_TDDL: TDDL(calibration="paper"),
    "TDDL, Gaussian": TDDL(calibration="gaussian"),
}
_REPEATS = 3


@dataclass(frozen=True)
class Cell:
    """One draw and one budget; without a budget, what has no privacy."""

    seed: int
    epsilon: float | None


@lru_cache(maxsize=1)
def texts() -> Texts:
    """The texts, read once a process."""
    return load_review_texts()


def run_cell(cell: Cell) -> Rows:
    """Root mean squared errors on the test rows."""
    given = texts()
    order = np.random.default_rng(cell.seed).permutation(len(given.labels))
    chosen, y = [given.texts[place] for place in order], given.labels[order]
    X = hashed_words(chosen, COLUMNS)
    public, test = slice(0, PUBLIC), slice(PUBLIC, PUBLIC + TEST)
    private = slice(PUBLIC + TEST, None)
    base: dict[str, Any] = {"n": len(y[private]), "repeat": cell.seed, "epsilon": cell.epsilon}

    def line(method: str, model: Any, asked: Any) -> dict[str, Any]:
        error = float(np.sqrt(np.mean((model.predict(asked) - y[test]) ** 2)))
        return base | {"method": method, "error": error, "true_epsilon": model.guarantee_.epsilon}

    def fitted(epsilon: float, pool: Any, release: Any = METHODS[OURS]) -> Any:
        model = KernelRegressor(
            epsilon=epsilon,
            delta=DELTA,
            kernel=InnerProduct(bound=1.0),
            label_range=(-1.0, 1.0),
            loss="epsilon-insensitive",
            release=release.with_params(pool=pool),
            noise="seeded",
            random_state=cell.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that printed constants spend less than they claim
            rows = Private.from_sparse(X[private], y[private])
            return model.fit(X[public], y[public], private=rows)

    if cell.epsilon is None:
        plain = line(NO_PRIVACY, fitted(NO_NOISE, X[test]), X[test])
        return [
            plain | {"true_epsilon": None},
            base | {"method": NOTHING, "error": 1.0, "true_epsilon": 0.0},
        ]
    pools = {OURS: X[test]}  # the more points the better; the paper's noise grows with them
    lines = [
        line(name, fitted(cell.epsilon, pools.get(name, X[test][:ASKED]), release), X[test])
        for name, release in METHODS.items()
    ]
    few = hashed_words(chosen, FEW_COLUMNS).toarray()
    linear = ObjectivePerturbationRegressor(
        epsilon=cell.epsilon, delta=DELTA, noise="seeded", random_state=cell.seed
    )
    linear.fit(few[public], y[public], private=Private(few[private], y[private]))
    return [*lines, line(LINEAR, linear, few[test])]


def run_reviews(options: Options) -> pd.DataFrame:
    """All draws and budgets."""
    budgets = (1.0, 4.0) if options.quick else BUDGETS
    cells = [
        Cell(seed, epsilon)
        for seed in range(min(options.repeats, _REPEATS))
        for epsilon in (None, *budgets)
    ]
    return run_cells(run_cell, cells, options, "reviews")


def summarise_reviews(table: pd.DataFrame) -> pd.DataFrame:
    """A line for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": "dpadapt", "n": 9, "epsilon": 1.0, "error": 0.9}
    >>> summarise_reviews(pd.DataFrame([line]))["ε 1"].tolist()
    ['0.900']
    """
    return pivot(table, ["method", "n"], "error", CAVEAT, digits=3)


def draw_reviews(table: pd.DataFrame) -> Figure:
    """Error against epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": "dpadapt", "n": 9, "epsilon": 1.0, "error": 0.9}
    >>> len(draw_reviews(pd.DataFrame([line])).axes)
    1
    """
    figure, grid = panels(7.5, 5, 1, 1)
    axes = grid.flat[0]
    for method in dict.fromkeys(table["method"]):
        curve(axes, table[table["method"] == method], "epsilon", "error", method)
    budget_axis(axes, sorted(table["epsilon"].dropna().unique()), "root mean squared error")
    set_title(axes, f"reviews, 262,144 columns (n = {table['n'].iloc[0]:,})")
    bands = spread_note(table, "Bands: one standard deviation.")
    finish(figure, grid, f"Not the paper's data (KDD Cup 2010). {bands}", 3)
    return figure


def review_findings(table: pd.DataFrame) -> list[str]:
    """Errors at each epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": "dpadapt", "n": 9, "epsilon": 1.0, "error": 0.9}
    >>> review_findings(pd.DataFrame([line]))
    ['Epsilon 1: dpadapt 0.900.']
    """
    levels = table[table["epsilon"].isna()].groupby("method", sort=False)["error"].mean()
    named = ", ".join(f"{name} {value:.3f}" for name, value in levels.items())
    sentences = [f"{named[0].upper()}{named[1:]}."] if named else []
    means = table.groupby(["epsilon", "method"], sort=False)["error"].mean()
    for epsilon in sorted(table["epsilon"].dropna().unique()):
        named = ", ".join(f"{name} {value:.3f}" for name, value in means[epsilon].items())
        sentences.append(f"Epsilon {epsilon:g}: {named}.")
    return sentences
