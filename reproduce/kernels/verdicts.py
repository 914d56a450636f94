"""Paper 002: what it says of figures and theorems, and the rules that look it up in our tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import gt, le, lt

from reproduce.verdicts import (
    Claim,
    Found,
    NotRun,
    Number,
    Place,
    Table,
    compare,
    number,
    of_kind,
    the,
    turned,
    within,
)

from .algorithm_3 import PRINTED, REPAIRED
from .figure_2b import LINEAR
from .methods import MAJORITY, NO_PRIVACY, OURS, PRINTED_TDDL

__all__ = ["CLAIMS"]

_POINTS = 3.0  # of accuracy: similar
_CLOSE = 0.1  # of an error: close
_LEARNT = 90.0  # accuracy, percent
_ERRORS = 3  # standard errors
_PINP = "PINP, least noise"
_COVER, _MADE = ("data", "epsilon"), ("lambda", "epsilon")


def _similar(one: float, two: float) -> bool:
    return abs(one - two) <= _POINTS


def _cover(table: Table) -> Table:
    return turned(table, "ε ", ("data",))


def _made(table: Table) -> Table:
    return turned(table, "ε ", ("lambda",))


def _reviews(table: Table) -> Table:
    return turned(table, "ε ")


def _slow_noise(table: Table) -> Found:
    """Noise of PINP grows less than the square root of the number of questions, as TDDL's does."""
    (line,) = of_kind(table, {"method": _PINP}) or [{}]
    noise = {
        Number(name.removesuffix(" questions")): value
        for name in line
        if name.endswith(" questions") and (value := number(line, name)) is not None
    }
    if len(noise) < 2:
        raise NotRun("more than one number of questions")
    few, many = min(noise), max(noise)
    told = f"{noise[few]} at {few} and {noise[many]} at {many}"
    return Found(int(noise[many] / noise[few] < (many / few) ** 0.5), 1, told)


def _answers(table: Table) -> list[Place]:
    """Whether PINP begins to answer before an error is as large as scores are."""
    (line,) = of_kind(table, {"method": _PINP}) or [{}]
    scores = number(line, "root mean square of scores")
    if scores is None:
        raise NotRun("scores")
    return [
        Place(name, f"{distance} against {scores}", distance < scores)
        for name in line
        if name.endswith(" questions") and (distance := number(line, name)) is not None
    ]


def _half_of_nothing(table: Table) -> list[Place]:
    part = of_kind(table, {"method": "PINP"})
    return compare(part, "error", "scores", lambda one, two: one < two / 2, ("n",))


def _learnt(table: Table) -> list[Place]:
    places = []
    for line in of_kind(table, {"method": "TDIL"}):
        accuracy = number(line, "accuracy")
        if accuracy is not None:
            places.append(Place(f"n = {line['n']}", f"{accuracy}%", accuracy >= _LEARNT))
    return places


def _keeps_delta(table: Table, choice: str) -> Found:
    """A guarantee holds at every n or not at all; Monte Carlo must be clearly above it."""
    told, broken, largest = "", False, -1.0
    for line in of_kind(table, {"choice": choice}):
        claimed = the([line], "claimed delta", {})
        true, error = (number(line, "true delta (Monte Carlo)", part) for part in (0, 1))
        if true is None or error is None:
            continue
        broken |= true - _ERRORS * error > claimed
        if true > largest:
            largest = true
            told = f"delta {true} at n = {line['n']} where {claimed} is claimed"
    if not told:
        raise NotRun(choice)
    return Found(int(not broken), 1, f"{told}, and at no n more")


CLAIMS: Mapping[str, Sequence[Claim]] = {
    "2a": (
        Claim("from epsilon 0.1 on TDDL is similar to the model without privacy (3 points)",
              lambda table: compare(_cover(table), PRINTED_TDDL, NO_PRIVACY, _similar, _COVER)),
        Claim("dpadapt is more accurate than TDDL as printed",
              lambda table: compare(_cover(table), OURS, PRINTED_TDDL, gt, _COVER), ours=True),
        Claim("dpadapt is more accurate than the majority class",
              lambda table: compare(_cover(table), OURS, MAJORITY, gt, _COVER), ours=True),
    ),
    "synthetic": (
        Claim("TDDL as printed is more accurate than the majority class",
              lambda table: compare(_made(table), PRINTED_TDDL, MAJORITY, gt, _MADE), ours=True),
        Claim("TDDL as printed is similar to the model without privacy (3 points)",
              lambda table: compare(_made(table), PRINTED_TDDL, NO_PRIVACY, _similar, _MADE),
              ours=True),
        Claim("TDIL is more accurate than the majority class",
              lambda table: compare(_made(table), "TDIL, repaired", MAJORITY, gt, _MADE),
              ours=True),
        Claim("dpadapt is similar to the model without privacy (3 points)",
              lambda table: compare(_made(table), OURS, NO_PRIVACY, _similar, _MADE), ours=True),
    ),
    "questions": (
        Claim("the noise of PINP grows slowly with the number of questions (Theorem 3)",
              _slow_noise),
        Claim("PINP begins to answer at a distance that is below the scores", _answers, ours=True),
    ),
    "learning": (
        Claim("the largest error of PINP is at most the bound of Theorem 3",
              lambda table: compare(of_kind(table, {"method": "PINP"}), "largest", "bound", le,
                                    ("n",))),
        Claim("PINP errs by less than half of what always saying 0 errs by", _half_of_nothing,
              ours=True),
        Claim("TDIL has an accuracy of 90% or more", _learnt, ours=True),
    ),
    "2b": (
        Claim("TDDL has a smaller error than objective perturbation",
              lambda table: compare(_reviews(table), PRINTED_TDDL, LINEAR, lt, ("epsilon",))),
        Claim("TDDL is close to the model without privacy (10%)",
              lambda table: compare(_reviews(table), PRINTED_TDDL, NO_PRIVACY, within(_CLOSE),
                                    ("epsilon",))),
        Claim("TDDL with Gaussian noise has a smaller error than objective perturbation",
              lambda table: compare(_reviews(table), "TDDL, Gaussian", LINEAR, lt, ("epsilon",)),
              ours=True),
        Claim("dpadapt has a smaller error than objective perturbation",
              lambda table: compare(_reviews(table), OURS, LINEAR, lt, ("epsilon",)), ours=True),
    ),
    "break": (
        Claim("Algorithm 3 is private as it is printed (Theorem 7)",
              lambda table: _keeps_delta(table, PRINTED)),
        Claim("repaired, it is private on the same sample",
              lambda table: _keeps_delta(table, REPAIRED), ours=True),
    ),
}  # fmt: skip
