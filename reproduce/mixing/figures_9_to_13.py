"""Figures 9 to 13 of paper 004: test error, and success of an attack, against epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.audit import gaussian_auc_bound
from dpadapt.learning.figures import GREY, INK, set_title
from dpadapt.privacy.accounting.calibration import gaussian_mu
from reproduce.page import panels
from reproduce.runs import Options, run_cells

from .errors import QUICK_EPSILONS, run_errors
from .methods import (
    DELTA,
    FEW_SHOT,
    NO_PRIVACY,
    OURS,
    PRIVATE,
    WEAK,
    Run,
    fit_private,
    plain_fit,
    with_private,
)
from .style import NOTE, STYLES, caveat, curve, finish, mean_and_spread, percent_axis, title_of
from .tasks import TASKS, draw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "AttackCell",
    "curve_findings",
    "draw_curves",
    "run_attack",
    "run_curve",
    "summarise_curves",
]

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
ATTACKED = (0.5, 1.0, 3.0, 8.0)
SHADOWS, VICTIMS = 16, 8


@dataclass(frozen=True)
class AttackCell:
    """An attack on one method.

    Parameters
    ----------
    task, method : str
    epsilon : float
        Infinity for the model without privacy.
    shadows, victims : int
        Models that the attacker trains, and models that it attacks.
    """

    task: str
    method: str
    epsilon: float
    shadows: int
    victims: int


def run_curve(options: Options, *, task: str) -> pd.DataFrame:
    """Figures 9 to 13: error and success of an attack against epsilon, on one data set."""
    import pandas as pd

    budgets = QUICK_EPSILONS if options.quick else EPSILONS
    runs = [Run(name, epsilon) for name in (*PRIVATE, WEAK) for epsilon in budgets]
    errors = run_errors((task,), runs, options, f"{task}, error", ends=True)
    shadows, victims = (4, 2) if options.quick else (SHADOWS, VICTIMS)
    attacked = [
        AttackCell(task, name, epsilon, shadows, victims)
        for epsilon in (QUICK_EPSILONS[:1] if options.quick else ATTACKED)
        for name in PRIVATE
    ]
    attacked.append(AttackCell(task, NO_PRIVACY, math.inf, shadows, victims))
    attacks = run_cells(run_attack, attacked[::-1], options, f"{task}, attack")
    return pd.concat([errors.assign(measure="error"), attacks], ignore_index=True)


def run_attack(cell: AttackCell) -> list[dict[str, Any]]:
    """One line: how well an attack tells members from others; see ``dpadapt.audit``.

    Examples
    --------
    >>> line = run_attack(AttackCell("digits", "dpadapt", 1.0, 4, 2))[0]
    >>> line["measure"], 0 <= line["advantage"] <= 1
    ('attack', True)
    """
    from dpadapt.audit import membership_attack

    sample = draw(TASKS[cell.task], 0)

    def fit(X: Any, y: Any, seed: int) -> Any:
        if math.isinf(cell.epsilon):
            return plain_fit(sample, X, y)
        return fit_private(with_private(sample, X, y), Run(cell.method, cell.epsilon), seed)

    found = membership_attack(
        fit,
        sample.X_private,
        sample.y_private,
        shadows=cell.shadows,
        targets=cell.victims,
        relation="add-remove",
    )
    return [
        {
            "dataset": cell.task,
            "n": len(sample.y_private) // 2,
            "measure": "attack",
            "method": cell.method,
            "epsilon": cell.epsilon,
            "auc": found.auc,
            "auc_error": _jackknife(found),
            "advantage": found.advantage,
        }
    ]


def _jackknife(found: Any) -> float:
    """Standard error of the area under the curve over other draws of the victims."""
    victims = len(found.scores)
    areas = [found.without(victim).auc for victim in range(victims)]
    return float(np.std(areas) * math.sqrt(victims - 1))


def summarise_curves(table: pd.DataFrame) -> pd.DataFrame:
    """Errors in percent and areas under the attack's curve, a line for each method.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "method": "dpadapt", "epsilon": 1.0}
    >>> table = pd.DataFrame([line | {"measure": "error", "error": 0.1},
    ...                       line | {"measure": "attack", "auc": 0.51}])
    >>> summarise_curves(table).iloc[0, 1:3].tolist()
    ['10.0', '0.510']
    """
    import pandas as pd

    lines = []
    for method, part in table.groupby("method", sort=False):
        line: dict[str, Any] = {"method": method}
        for kind, name in (("error", "error, %"), ("attack", "attack, AUC")):
            cells = part[part["measure"] == kind]
            for epsilon in sorted(set(cells["epsilon"])):
                cell = cells[cells["epsilon"] == epsilon]
                at = f", ε {epsilon:g}" if 0 < epsilon < math.inf else ""
                shown = mean_and_spread(list(cell["error"])) if kind == "error" else ""
                line[f"{name}{at}"] = shown or f"{cell['auc'].iloc[0]:.3f}"
        lines.append(line | {"not the paper's": caveat(str(table["dataset"].iloc[0]))})
    found = pd.DataFrame(lines).fillna("")
    last = "not the paper's"
    order = sorted(found.columns, key=lambda name: (name == last, name.startswith("attack")))
    return found[["method", *(name for name in order if name != "method")]]


def draw_curves(table: pd.DataFrame) -> Figure:
    """Error at the left, attack at the right with the most that privacy allows.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "method": "dpadapt", "epsilon": 1.0}
    >>> table = pd.DataFrame([line | {"measure": "error", "error": 0.1},
    ...                       line | {"measure": "attack", "auc": 0.51, "auc_error": 0.01}])
    >>> len(draw_curves(table).axes)
    2
    """
    figure, grid = panels(10.5, 4.4, 1, 2)
    task = str(table["dataset"].iloc[0])
    errors = table[table["measure"] == "error"].assign(percent=lambda each: 100 * each["error"])
    _errors(grid[0, 0], errors)
    _attacks(grid[0, 1], table[table["measure"] == "attack"])
    set_title(grid[0, 0], f"{title_of(task)}: test error")
    set_title(grid[0, 1], "Membership inference on the training rows")
    finish(figure, grid, 2, columns=4, note=f"{NOTE} δ = 10⁻⁵, add/remove.")
    return figure


def _errors(axes: Axes, errors: pd.DataFrame) -> None:
    for name in (FEW_SHOT, NO_PRIVACY):
        ends = errors.loc[errors["method"] == name, "percent"]
        if len(ends):
            axes.axhline(ends.mean(), lw=1.6, label=name, **STYLES[name])
    finite = errors[np.isfinite(errors["epsilon"]) & (errors["epsilon"] > 0)]
    for name in (*PRIVATE, WEAK):
        lines = finite[finite["method"] == name]
        curve(axes, lines, "epsilon", "percent", name, STYLES[name])
    percent_axis(axes, sorted(set(finite["epsilon"])))
    axes.set_xlabel("ε")
    others = errors.loc[errors["method"] != "NoisyGD", "percent"]
    axes.set_ylim(0, min(axes.get_ylim()[1], 2.2 * others.max()))  # it may leave the panel


def _attacks(axes: Axes, attacks: pd.DataFrame) -> None:
    finite = attacks[np.isfinite(attacks["epsilon"])]
    budgets = sorted(set(finite["epsilon"]))
    right = 2.2 * max(budgets, default=1.0)
    for number, name in enumerate((*PRIVATE, NO_PRIVACY)):
        lines, style = attacks[attacks["method"] == name], STYLES[name]
        beside = 0.0 if name == NO_PRIVACY else 0.05 * (number - 1)
        places = lines["epsilon"].clip(upper=right) * math.exp(beside)
        axes.errorbar(
            places, lines["auc"], yerr=2 * lines["auc_error"].fillna(0.0), capsize=3, ms=5.5,
            fmt=style.get("marker", "D"), color=style["color"],
            label=None if name in PRIVATE else f"{name}, attacked",
        )  # fmt: skip
    grid = np.geomspace(min(budgets, default=1.0) / 1.5, right / 1.5, 40)
    bound = [gaussian_auc_bound(gaussian_mu(float(epsilon), DELTA)) for epsilon in grid]
    axes.plot(grid, bound, color=INK, lw=1.3, label="most that any attack can reach")
    axes.axhline(0.5, color=GREY, ls=":", lw=1.2)
    percent_axis(axes, [*budgets, right], "area under the attack's ROC curve")
    axes.set_xticks([*budgets, right], [*(f"{each:g}" for each in budgets), "no\nprivacy"])
    axes.set_xlabel("ε")
    axes.annotate("guessing", (grid[-1], 0.5), (0, -4), textcoords="offset points",
                  fontsize=8, color=GREY, va="top", ha="right")  # fmt: skip


def curve_findings(table: pd.DataFrame) -> list[str]:
    """Errors at a small and a large epsilon, and the largest success of the attack.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"dataset": "digits", "method": "dpadapt", "epsilon": 1.0}
    >>> table = pd.DataFrame([line | {"measure": "error", "error": 0.1}])
    >>> curve_findings(table)
    ['Test error at epsilon 1: dpadapt 10.0%.']
    """
    errors = table[table["measure"] == "error"]
    finite = sorted({each for each in errors["epsilon"] if 0 < each < math.inf})
    sentences = []
    for epsilon in finite:
        part = errors[errors["epsilon"].isin([0.0, epsilon, math.inf])]
        means = 100 * part.groupby("method", sort=False)["error"].mean()
        named = ", ".join(f"{name} {means[name]:.1f}%" for name in means.index)
        sentences.append(f"Test error at epsilon {epsilon:g}: {named}.")
    means = errors.groupby(["method", "epsilon"])["error"].mean()
    best = {epsilon: means.xs(epsilon, level="epsilon").idxmin() for epsilon in finite}
    behind = [f"{epsilon:g} ({name})" for epsilon, name in best.items() if name != OURS]
    if behind and len(finite) > 1:
        sentences.append(
            f"Another private method has the smaller error at epsilon {', '.join(behind)}."
        )
    few = means.get((FEW_SHOT, 0.0), 1.0)
    worse = [f"{each:g}" for each in finite if means.get((OURS, each), 0.0) > few]
    if worse:
        sentences.append(f"Ours is behind public examples alone at epsilon {', '.join(worse)}.")
    attacks = table[table["measure"] == "attack"]
    if len(attacks):
        private = attacks[np.isfinite(attacks["epsilon"])]
        most = private.loc[private["auc"].idxmax()]
        plain = attacks.loc[attacks["method"] == NO_PRIVACY, "auc"].max()
        sentences.append(
            f"The attack tells members from others with an area of {plain:.3f} without privacy, "
            f"and of {most['auc']:.3f} at most with it ({most['method']}, epsilon "
            f"{most['epsilon']:g}); guessing gives 0.5."
        )
    return sentences
