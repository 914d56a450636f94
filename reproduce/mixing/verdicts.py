"""Paper 004: what it says of its figures, and the rules that look it up in our tables."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from operator import le, lt

from reproduce.verdicts import (
    Claim,
    Found,
    NotRun,
    Number,
    Place,
    Table,
    against_best,
    compare,
    number,
    of_kind,
    the,
    turned,
)

from .errors import EPSILON
from .figure_19 import STARTS
from .headline import PUBLISHED
from .methods import FEW_SHOT, NO_PRIVACY, OURS, WEAK, WEAK_BASE, WEAK_BOTH

__all__ = ["CLAIMS"]

_NGD, _CLIPPED, _BOTH = "NGD", "NGD + adaptive clipping", "NGD + both (gradients)"
_PROJECTED = "NGD + projection (gradients)"
_DATA = ("data",)
_USUAL = "percentile 90"
_NEAR = 0.5  # points of the error
_TWICE = 2.0
_KINDS = ("a row", "the sum")


def _budgets(table: Table) -> Table:
    return turned(table, "ε ", ("data", "relation"))


def _increase(table: Table) -> Found:
    """Mean increase of AdaMix over the data sets, at the paper's epsilon."""
    column = f"ε {EPSILON:g}"
    lines = of_kind(table, {"method": "AdaMix", "relation": "add-remove"})
    found = [value for line in lines if (value := number(line, column, part=-1)) is not None]
    if not found:
        raise NotRun(f"AdaMix at epsilon {EPSILON:g}")
    mean = statistics.fmean(found)
    return Found(int(mean <= PUBLISHED[1]), 1, f"{mean:.0f}% over {len(found)} data sets")


def _few_shot(table: Table) -> list[Place]:
    """Ours against public examples alone, which have one error at every epsilon."""
    places = []
    for line in of_kind(table, {"method": OURS}):
        for column in (name for name in line if name.startswith("ε ")):
            at = {"at": f"{line['data']}, {line['relation']}, epsilon {column.removeprefix('ε ')}"}
            places += compare([dict(line) | at], column, FEW_SHOT, le, ("at",))
    return places


def _random(table: Table, factor: float) -> list[Place]:
    """What a random subspace leaves out, over what the span of public gradients does."""
    places = []
    for line, kind in itertools.product(table, _KINDS):
        ratio = number(line, f"random / public, {kind}")
        if ratio is not None:
            name = f"{line['data']} ({kind})"
            good = ratio > factor if factor == 1 else ratio >= factor
            places.append(Place(name, f"{ratio} times", good))
    return places


def _usual_percentile(table: Table, method: str) -> list[Place]:
    """The paper's percentile against the best one on each data set."""
    places = []
    for line in of_kind(table, {"method": method}):
        values = {
            name: value
            for name in line
            if name.startswith("percentile ") and (value := number(line, name)) is not None
        }
        if _USUAL in values and len(values) > 1:
            best = min(values, key=lambda name: values[name])
            told = f"{values[_USUAL]}% against {values[best]}% ({best})"
            good = values[_USUAL] - values[best] <= _NEAR + 1e-9
            places.append(Place(line["data"], told, good))
    return places


def _largest_sigma(table: Table, method: str) -> list[Place]:
    """Whether the error is least with the largest sigma, on each data set."""
    places = []
    for line in of_kind(table, {"method": method}):
        values = {
            Number(name.removeprefix("sigma ").split(",")[0]): value
            for name in line
            if name.startswith("sigma ") and (value := number(line, name)) is not None
        }
        if len(values) > 1:
            told = " / ".join(map(str, values.values()))
            good = values[max(values)] == min(values.values())
            places.append(Place(line["data"], told, good))
    return places


def _errors(table: Table) -> Table:
    return turned(table, "error, %, ε ")


def _least_error(table: Table) -> list[Place]:
    """Ours against the best of the other private methods at each epsilon."""
    return against_best(_errors(table), OURS, ("NoisyGD", "AdaMix", WEAK), le, ("epsilon",))


def _attack(table: Table) -> list[Place]:
    """The largest success of the attack on a private model, beside that without privacy."""
    free = the(table, "attack, AUC", {"method": NO_PRIVACY})
    found = [
        (value, f"{line['method']}, epsilon {name.removeprefix('attack, AUC, ε ')}")
        for line in table
        for name in line
        if name.startswith("attack, AUC, ε ") and (value := number(line, name)) is not None
    ]
    if not found:
        raise NotRun("an attack on a private model")
    most, where = max(found)
    return [Place("", f"an area of {most} at most ({where}), {free} without", most < free)]


def _starts(table: Table, epsilon: str) -> dict[str, dict[str, Number]]:
    """Errors of AdaMix from each start on each task."""
    column = f"error (%), ε {epsilon}"
    tasks: dict[str, dict[str, Number]] = {}
    for line in of_kind(table, {"method": "AdaMix"}):
        value = number(line, column)
        if value is not None:
            tasks.setdefault(line["data"], {})[line["start"]] = value
    whole = {task: errors for task, errors in tasks.items() if len(errors) == len(STARTS)}
    if not whole:
        raise NotRun(f"AdaMix from {', '.join(STARTS)} at epsilon {epsilon}")
    return whole


def _levels(errors: Mapping[str, Number]) -> str:
    return " / ".join(str(errors[start]) for start in STARTS) + "%"


def _same_order(table: Table, epsilon: str) -> Found:
    """No two starts of which one is better on one data set and the other on another.

    Two starts within half a point of each other have no order.
    """
    tasks = _starts(table, epsilon)
    if len(tasks) < 2:
        raise NotRun("more than one data set")
    orders = [
        {errors[one] < errors[two] for errors in tasks.values()
         if abs(errors[one] - errors[two]) >= _NEAR}
        for one, two in itertools.combinations(STARTS, 2)
    ]  # fmt: skip
    told = ", ".join(f"{task} {_levels(errors)}" for task, errors in tasks.items())
    from_all = f"from {' / '.join(STARTS)}: {told}"
    if not any(orders):
        raise NotRun(f"starts that differ by half a point ({from_all})")
    return Found(int(all(len(order) < 2 for order in orders)), 1, from_all)


def _matters(table: Table, epsilon: str) -> list[Place]:
    return [
        Place(task, _levels(errors), max(errors.values()) - min(errors.values()) >= _NEAR)
        for task, errors in _starts(table, epsilon).items()
    ]


_CURVES = (
    Claim("AdaMix has a smaller error than NoisyGD",
          lambda table: compare(_errors(table), "AdaMix", "NoisyGD", lt, ("epsilon",))),
    Claim("under privacy the attack gains less than without", _attack),
    Claim("dpadapt has the smallest error of all private methods", _least_error, ours=True),
)  # fmt: skip

CLAIMS: Mapping[str, Sequence[Claim]] = {
    "headline": (
        Claim(f"at epsilon 3 the mean error of AdaMix is {PUBLISHED[0]} to {PUBLISHED[1]}% above "
              "that without privacy, or less", _increase),
        Claim("dpadapt has at most the error of AdaMix",
              lambda table: compare(_budgets(table), OURS, "AdaMix", le,
                                    ("data", "relation", "epsilon")), ours=True),
        Claim("dpadapt has at most the error of public examples alone", _few_shot, ours=True),
    ),
    "5": (
        Claim("adaptive clipping has a smaller error than NGD",
              lambda table: compare(table, _CLIPPED, _NGD, lt, _DATA)),
        Claim("adaptive clipping gives more than projection",
              lambda table: compare(table, _CLIPPED, _PROJECTED, lt, _DATA)),
        Claim("both together are best",
              lambda table: against_best(table, _BOTH, (_NGD, _CLIPPED, _PROJECTED), lt, _DATA)),
        Claim("with the weak penalty adaptive clipping has a smaller error than NGD",
              lambda table: compare(table, WEAK, WEAK_BASE, lt, _DATA), ours=True),
        Claim("with the weak penalty both together are best",
              lambda table: against_best(table, WEAK_BOTH, (WEAK_BASE, WEAK), lt, _DATA),
              ours=True),
    ),
    "6": (
        Claim("a random subspace leaves out more than the span of public gradients",
              lambda table: _random(table, 1.0)),
        Claim("it leaves out at least twice as much", lambda table: _random(table, _TWICE)),
    ),
    "7": (
        Claim("with percentile 90 the error is within half a point of the best one",
              lambda table: _usual_percentile(table, "AdaMix")),
        Claim("the same with the weak penalty", lambda table: _usual_percentile(table, WEAK),
              ours=True),
    ),
    "8": (
        Claim("NoisyGD has its least error with the largest sigma",
              lambda table: _largest_sigma(table, "NoisyGD")),
        Claim("AdaMix has its least error with the largest sigma",
              lambda table: _largest_sigma(table, "AdaMix")),
        Claim("the same with the weak penalty", lambda table: _largest_sigma(table, WEAK),
              ours=True),
    ),
    **{f"{figure}": _CURVES for figure in range(9, 14)},
    "19": (
        Claim("at epsilon 3 the starts of AdaMix have the same order on all data sets",
              lambda table: _same_order(table, f"{EPSILON:g}")),
        Claim("at epsilon 3 the start matters (half a point or more)",
              lambda table: _matters(table, f"{EPSILON:g}"), ours=True),
        Claim("at epsilon 0.25 the starts of AdaMix have the same order on all data sets",
              lambda table: _same_order(table, "0.25"), ours=True),
    ),
}  # fmt: skip
