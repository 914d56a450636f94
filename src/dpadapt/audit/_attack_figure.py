"""The figure of attacks: success against epsilon, beside what a guarantee allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt import _validate as validate
from dpadapt.learning.figures import BLUE, GREY, ORANGE, blank, plain, set_title
from dpadapt.privacy.accounting.calibration import gaussian_mu

from .membership import (
    AttackResult,
    advantage_bound,
    auc_bound,
    gaussian_advantage_bound,
    gaussian_auc_bound,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 80
_MARKERS = ("o", "s", "D", "^", "v")
_COLOURS = (ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
Results = Mapping[float, AttackResult]


def draw_attack(
    results: Results | Mapping[str, Results], *, delta: float, title: str = "Membership inference"
) -> Figure:
    """Draw the success of attacks against epsilon, with the most that privacy allows.

    Points are attacks, with bars of two standard errors (a jackknife over the victims). The solid
    line bounds every (epsilon, delta)-DP training, the dashed one those whose noise is all Gaussian
    and calibrated to (epsilon, delta). The figure depends on private rows: do not publish it.

    Parameters
    ----------
    results : mapping of epsilon to AttackResult, or of names to such mappings
        An epsilon of infinity stands for training without privacy.
    delta : float
        Of the guarantees.
    title : str, default="Membership inference"

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> scores, members = np.array([[0.2, 0.9], [0.1, 0.3]]), np.array([[0, 1], [1, 0]], bool)
    >>> figure = draw_attack({1.0: AttackResult(scores, members)}, delta=1e-5)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['area under the curve', 'advantage']
    """
    validate.delta(delta)
    named = _named(results)
    epsilons = sorted({epsilon for each in named.values() for epsilon in each})
    finite = [epsilon for epsilon in epsilons if math.isfinite(epsilon)] or [1.0]
    low, high = finite[0] / 1.5, finite[-1] * 1.5
    places = {epsilon: min(epsilon, high * 1.6) for epsilon in epsilons}  # infinity: at the right
    figure, panels = blank(9.4, 3.8, columns=2)
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize=11, weight="bold")
    _panel(panels[0], named, places, lambda each: each.auc)
    _panel(panels[1], named, places, lambda each: each.advantage)
    grid = np.geomspace(low, high, _POINTS)
    mus = [gaussian_mu(float(epsilon), delta) for epsilon in grid]
    for axes, bound, gaussian, guessing in (
        (panels[0], auc_bound, gaussian_auc_bound, 0.5),
        (panels[1], advantage_bound, gaussian_advantage_bound, 0.0),
    ):
        limits = [bound(float(epsilon), delta) for epsilon in grid]
        axes.fill_between(grid, limits, 1.0, color=GREY, alpha=0.12, lw=0)
        axes.plot(grid, limits, color=BLUE, lw=2, label="limit for any attack")
        label = "limit, Gaussian noise"
        axes.plot(grid, list(map(gaussian, mus)), "--", color=BLUE, lw=1.5, label=label)
        axes.axhline(guessing, color=GREY, ls=":", lw=1.2, label="guessing")
        axes.set_ylim(guessing - 0.04 - 0.04 * guessing, 1.02)
        axes.set_xscale("log")
        axes.set_xticks(
            list(places.values()),
            ["no\nprivacy" if math.isinf(each) else f"{each:g}" for each in epsilons],
        )
        axes.minorticks_off()
        axes.set_xlabel(f"epsilon (delta {delta:.0e})")
    set_title(panels[0], "How often a member scores higher")
    set_title(panels[1], "Detections minus false alarms")
    panels[0].set_ylabel("area under the curve")
    panels[1].set_ylabel("advantage")
    figure.legend(
        *panels[1].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4 if len(named) == 1 else 3,
        frameon=False,
    )
    return figure


def _panel(
    axes: Any,
    named: Mapping[str, Results],
    places: Mapping[float, float],
    measure: Callable[[AttackResult], float],
) -> None:
    for number, (name, results) in enumerate(named.items()):
        spread = 0.035 * (number - (len(named) - 1) / 2)  # side by side on the log scale
        axes.errorbar(
            [places[epsilon] * math.exp(spread) for epsilon in sorted(results)],
            [measure(results[epsilon]) for epsilon in sorted(results)],
            yerr=[2 * _standard_error(results[epsilon], measure) for epsilon in sorted(results)],
            fmt=_MARKERS[number % len(_MARKERS)],
            color=_COLOURS[number % len(_COLOURS)],
            ms=6,
            capsize=3,
            zorder=3,
            label=plain(name),
        )


def _standard_error(result: AttackResult, measure: Callable[[AttackResult], float]) -> float:
    """Of a measure over other draws of the victims; 0 where there is only one."""
    victims = len(result.scores)
    if victims < 2:
        return 0.0
    left_out = [measure(result.without(victim)) for victim in range(victims)]
    return float(np.std(left_out) * math.sqrt(victims - 1))


def _named(results: Results | Mapping[str, Results]) -> dict[str, Results]:
    """Results by name; one mapping alone is called "attack"."""
    if not results:
        raise ValueError("results must hold at least one attack.")
    groups: dict[Any, Any] = dict(results)
    if any(isinstance(each, AttackResult) for each in groups.values()):
        groups = {"attack": groups}
    for group in groups.values():
        for epsilon, result in group.items():
            if not isinstance(result, AttackResult) or not epsilon > 0:
                raise TypeError("results must map epsilons above 0 to AttackResults.")
    return groups
