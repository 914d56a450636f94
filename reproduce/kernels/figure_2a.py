"""Paper 002, Figure 2a: accuracy against epsilon on CoverType, cubic polynomial kernel."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpadapt.learning.figures import GREY, set_title
from reproduce.page import panels
from reproduce.runs import Options, Rows, run_cells, spread_note

from .data import load_cover
from .methods import (
    ASKED,
    LINEAR,
    MAJORITY,
    NO_PRIVACY,
    OURS,
    PAPER_PENALTY,
    PAPER_SVM,
    PRINTED_TDDL,
    RELEASED,
    Split,
    ask,
    fit_linear,
    fit_released,
    plain,
)
from .style import bars, budget_axis, pivot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["cover_findings", "draw_cover", "summarise_cover"]

BUDGETS = (0.1, 0.2, 0.5, 1.0)
PUBLIC = 300
TEST = {"lodgepole": 800, "upland": 4800}
TITLES = {
    "lodgepole": "lodgepole pine against the rest",
    "upland": "four upland kinds against the rest",
}
CAVEATS = {
    "lodgepole": "not the paper's 500,000 rows: 3,329 private ones of the subset, the class "
    "proportions of the whole set restored",
    "upland": "neither the paper's rows nor, as far as one can tell, its classes: 10,020 private "
    "rows of the class-balanced subset",
}
PUBLISHED = 72.3
_QUESTIONS = {"lodgepole": 400, "upland": 200}  # asked one by one: each reads all private rows
_REPEATS = 5


@dataclass(frozen=True)
class Cell:
    """One draw: data, budgets, and whether the models that are asked take part."""

    data: str
    seed: int
    budgets: tuple[float, ...]
    asked: bool


def draw_split(data: str, seed: int) -> Split:
    """Public, private and test rows."""
    X, y = load_cover(data, seed)
    end = len(y) - TEST[data]
    return Split(
        X[:PUBLIC], y[:PUBLIC], X[PUBLIC:end], y[PUBLIC:end], X[end:], y[end:], seed
    )  # fmt: skip


def run_cell(cell: Cell) -> Rows:
    """Accuracies of every method on one draw."""
    split = draw_split(cell.data, cell.seed)
    base: dict[str, Any] = {
        "data": cell.data, "n": len(split.y_private), "repeat": cell.seed, "epsilon": None,
    }  # fmt: skip
    svm = plain(split, loss="hinge", penalty=PAPER_PENALTY)
    lines = [
        base | {"method": MAJORITY, "accuracy": split.majority, "true_epsilon": 0.0},
        base | {"method": NO_PRIVACY, "accuracy": split.accuracy(plain(split))},
        base | {"method": PAPER_SVM, "accuracy": split.accuracy(svm)},
    ]

    def note(method: str, epsilon: float, model: Any, most: int | None = None) -> None:
        line = {"method": method, "epsilon": epsilon, "accuracy": split.accuracy(model, most)}
        lines.append(base | line | {"true_epsilon": model.guarantee_.epsilon})

    for epsilon in cell.budgets:
        for method in RELEASED:
            note(method, epsilon, fit_released(method, split, epsilon))
        note(LINEAR, epsilon, fit_linear(split, epsilon))
    large = cell.data == "upland"  # where a model that is asked takes its time
    for epsilon in cell.budgets[-1:] if large else cell.budgets:
        for method in ASKED if cell.asked else ():
            predictor = ask(method, split, epsilon)
            note(method, epsilon, predictor, _QUESTIONS[cell.data])
            predictor.close()
    return lines


def run_cover(options: Options) -> pd.DataFrame:
    """All draws of both sets."""
    budgets = (0.1, 1.0) if options.quick else BUDGETS
    cells = [
        Cell(data, seed, budgets, asked=data == "lodgepole" or not options.quick)
        for data in ("upland", "lodgepole")
        for seed in range(min(options.repeats, _REPEATS))
    ]
    table = run_cells(run_cell, cells, options, "CoverType")
    return table.assign(accuracy=100 * table["accuracy"])


def summarise_cover(table: pd.DataFrame) -> pd.DataFrame:
    """One table: data and method, a column for each epsilon.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"data": "upland", "method": "dpadapt", "epsilon": 1.0, "accuracy": 90.0, "n": 9}
    >>> summarise_cover(pd.DataFrame([line]))["ε 1"].tolist()
    ['90.0']
    """
    shown = table.assign(caveat=table["data"].map(CAVEATS), data=table["data"].map(TITLES))
    return pivot(_ordered(shown), ["data", "n", "method"], "accuracy", "caveat")


def draw_cover(table: pd.DataFrame) -> Figure:
    """Accuracy against epsilon: a column a set, a row a family of methods, with bars.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"data": "upland", "method": "dpadapt", "epsilon": 1.0, "accuracy": 90.0, "n": 9}
    >>> len(draw_cover(pd.DataFrame([line])).axes)
    2
    """
    sets = [data for data in TITLES if (table["data"] == data).any()]
    figure, grid = panels(3.2 + 4.2 * len(sets), 7.6, len(_FAMILIES), len(sets))
    for axes, (family, data) in zip(
        grid.flat, itertools.product(_FAMILIES.items(), sets), strict=True
    ):
        name, methods = family
        part = _ordered(table[table["data"] == data])
        shown = [each for each in dict.fromkeys(part["method"]) if each in methods]
        for place, method in enumerate(shown):
            bars(axes, part[part["method"] == method], method, 1 + 0.03 * (place - len(shown) / 2))
        budget_axis(axes, sorted(part["epsilon"].dropna().unique()), "accuracy (%)")
        set_title(axes, f"{TITLES[data]}\n(n = {part['n'].iloc[0]:,}): {name}")
    for row in grid:  # a method may be run on one of the sets only
        found = {
            label: handle
            for axes in row
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        row[-1].legend(
            found.values(), found.keys(), loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8,
            frameon=False,
        )  # fmt: skip
    figure.suptitle(
        "Not the paper's rows: 15,120 of 581,012. "
        f"{spread_note(table, 'Bars: one standard deviation.')} Marks are moved apart a little.",
        fontsize=9,
        color=GREY,
        x=0.01,
        ha="left",
    )
    return figure


def cover_findings(table: pd.DataFrame) -> list[str]:
    """Accuracies at the ends, and where a method is below the majority class.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"data": "upland", "method": "dpadapt", "epsilon": 1.0, "accuracy": 90.0, "n": 9}
    >>> cover_findings(pd.DataFrame([line | {"true_epsilon": 1.0}]))[0][-15:]
    ': dpadapt 90.0.'
    """
    sentences = []
    for data, part in table.groupby("data", sort=False):
        levels = part[part["epsilon"].isna()].groupby("method", sort=False)["accuracy"].mean()
        named = ", ".join(f"{name} {value:.1f}" for name, value in levels.items())
        size = f"{TITLES[str(data)]}, n = {part['n'].iloc[0]:,}"
        if named:
            sentences.append(f"{size}: {named}; the paper reports {PUBLISHED} without privacy.")
        means = part.groupby(["epsilon", "method"], sort=False)["accuracy"].mean()
        for epsilon in sorted(part["epsilon"].dropna().unique()):
            best = ", ".join(f"{name} {value:.1f}" for name, value in means[epsilon].items())
            sentences.append(f"{size}, epsilon {epsilon:g}: {best}.")
        if MAJORITY in levels:
            ours = [
                f"{epsilon:g}"
                for epsilon in sorted(part["epsilon"].dropna().unique())
                if means[epsilon].get(OURS, 0.0) < levels[MAJORITY]
            ]
            if ours:
                sentences.append(
                    f"{size}: ours is below the majority class at epsilon {', '.join(ours)}."
                )
    printed = table[table["method"] == PRINTED_TDDL]
    if len(printed):
        spent = printed.groupby("epsilon")["true_epsilon"].max()
        named = ", ".join(f"{value:.3g} where {key:g} is claimed" for key, value in spent.items())
        sentences.append(f"TDDL as printed truly gives epsilon {named} (delta 1e-6).")
    return sentences


# what is drawn together; ours and the two levels are in both
_ALWAYS = (OURS, MAJORITY, NO_PRIVACY)
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "TDDL": (*_ALWAYS, *(each for each in RELEASED if each.startswith("TDDL")), PAPER_SVM),
    "the others": (
        *_ALWAYS,
        LINEAR,
        *(each for each in RELEASED if each.startswith("TDIL")),
        *ASKED,
    ),
}


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    """Sets and methods in the order in which they are named."""
    methods = [*RELEASED, LINEAR, *ASKED, MAJORITY, PAPER_SVM, NO_PRIVACY]
    place = {name: i for i, name in enumerate(methods)}
    sets = {name: i for i, name in enumerate((*TITLES, *TITLES.values()))}
    keys = table["data"].map(sets) * len(methods) + table["method"].map(place)
    return table.iloc[keys.argsort(kind="stable")]
