"""Paper 000: what its text says of its figures, and the rules that look it up in our tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import gt, lt

from reproduce.verdicts import (
    Claim,
    Place,
    Table,
    against_best,
    compare,
    number,
    of_kind,
    the,
    trend,
    within,
)

__all__ = ["CLAIMS"]

_FW, _MD, _SINGLE = "Frank-Wolfe, printed", "mirror descent, printed", "single stage, printed"
_MATRIX, _RIVAL = "moments", "Frank-Wolfe, tight, own K"
_AT = ("n", "epsilon")
_MUCH, _SIMILAR, _SAME = 1.5, 0.2, 0.05


def _noisy(table: Table) -> Table:
    return [line for line in table if line["epsilon"] != "infinity"]


def _much_worse(table: Table) -> list[Place]:
    return compare(_noisy(table), _MD, _FW, lambda one, two: one >= _MUCH * two, _AT)


def _wider(table: Table) -> list[Place]:
    return compare(_noisy(table), _MD, _FW, gt, _AT, parts=(1, 1))


def _lowest(table: Table) -> list[Place]:
    """Ours against the best of the paper's algorithms, in each setting."""
    names = dict.fromkeys(name for line in table for name in line)
    theirs = [name for name in names if name.startswith(("Frank", "mirror", "single"))]
    return against_best(_noisy(table), _MATRIX, theirs, lt, _AT)


def _as_private_labels(table: Table) -> list[Place]:
    """The single stage without noise, beside labels that stand in the lines with noise."""
    places = []
    for line in of_kind(table, {"epsilon": "infinity"}):
        free = number(line, _SINGLE)
        known = [each for each in _noisy(table) if each["n"] == line["n"]]
        if free is not None and known:
            labels = the(known, "private labels", {"n": line["n"]})
            good = within(_SAME)(free, labels)
            places.append(Place(f"n = {line['n']}", f"{free} against {labels}", good))
    return places


def _sides(table: Table, *, above: bool) -> list[Place]:
    """Lines on one side of d = (n epsilon)^(4/3), where the bounds cross."""
    side = [
        line
        for line in table
        if (float(line["d"]) > float(line["n epsilon"]) ** (4 / 3)) == above
    ]  # fmt: skip
    lower, higher = (_RIVAL, _MATRIX) if above else (_MATRIX, _RIVAL)
    named = [dict(line) | {"at": f"n epsilon = {line['n epsilon']}"} for line in side]
    return compare(named, lower, higher, lt, ("at", "d"))


def _changes(method: str) -> Claim:
    """Whether a method has a lower error than public data alone; not in the paper."""

    def rule(table: Table) -> list[Place]:
        one, two = (the(table, "MSE", {"method": name}) for name in (method, "public only"))
        return [Place("", f"{one} against {two}", one < two)]

    return Claim(f"{method} has a lower error than public data alone", rule, ours=True)


_REAL = tuple(
    _changes(method)
    for method in ("dpadapt, epsilon 1", "plain DM, no privacy", "kernel mean matching, no privacy")
)
_SMOOTH = "the discrepancy of Frank-Wolfe falls as {} grows"

CLAIMS: Mapping[str, Sequence[Claim]] = {
    "1": (
        Claim(_SMOOTH.format("n"), lambda table: trend(_noisy(table), _FW, "n", lt, ("epsilon",))),
        Claim(_SMOOTH.format("epsilon"), lambda table: trend(table, _FW, "epsilon", lt, ("n",))),
        Claim("mirror descent is much worse than Frank-Wolfe (1.5 times or more)", _much_worse),
        Claim("mirror descent has the larger standard deviation", _wider),
        Claim("tight Frank-Wolfe is lower if it chooses its K",
              lambda table: compare(_noisy(table), _RIVAL, "Frank-Wolfe, tight", lt, _AT),
              ours=True),
        Claim("one noisy matrix has the lowest value of all", _lowest, ours=True),
    ),
    "2": (
        Claim("without noise the single stage has the error of private labels (5%)",
              _as_private_labels),
        Claim("without noise mirror descent is similar to Frank-Wolfe (20%)",
              lambda table: compare(of_kind(table, {"epsilon": "infinity"}), _MD, _FW,
                                    within(_SIMILAR), ("n",))),
        Claim("with noise the single stage is better than Frank-Wolfe in two stages",
              lambda table: compare(_noisy(table), _SINGLE, _FW, lt, _AT)),
        Claim("with noise mirror descent is much worse than Frank-Wolfe (1.5 times or more)",
              _much_worse),
        Claim("with noise mirror descent has the larger standard deviation", _wider),
        Claim("one noisy matrix has a lower error than the paper's algorithms", _lowest, ours=True),
        Claim("one noisy matrix has a lower error than public data alone",
              lambda table: compare(_noisy(table), _MATRIX, "public only", lt, _AT), ours=True),
    ),
    "crossover": (
        Claim("the noisy matrix is lower than Frank-Wolfe up to d = (n epsilon)^(4/3)",
              lambda table: _sides(table, above=False), ours=True),
        Claim("Frank-Wolfe is lower beyond d = (n epsilon)^(4/3)",
              lambda table: _sides(table, above=True), ours=True),
    ),
    "wind": _REAL,
    "gas": _REAL,
}  # fmt: skip
