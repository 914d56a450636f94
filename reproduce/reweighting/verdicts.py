"""Paper 001: what its text says of tables and figures, and the rules that look it up in ours."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from operator import ge, gt, le, lt

from reproduce.verdicts import (
    Claim,
    Found,
    NotRun,
    Number,
    Place,
    Table,
    Test,
    against_best,
    compare,
    named,
    number,
    of_kind,
    the,
    turned,
    within,
)

__all__ = ["CLAIMS"]

_DATA, _AT = ("data",), ("n", "epsilon")
_PRINTED, _CLASSES = "PCnvxAdap as printed", "PNCnvxAdap as printed"
_PAPER_ROWS = 10_000  # at which the paper finds its algorithm close to the dashed line
_LARGE = ("10", "15")  # epsilon, there
_CLOSE, _POINT = 0.05, 1.0
_SAME_STEPS = "CnvxAdap, same steps"


def _means(table: Table, own: str, other: str) -> Found:
    """The first method at most the second on each pair, with the means over the pairs."""
    counted = Found.at(compare(table, own, other, le, _DATA))
    mean = [
        statistics.fmean(value for line in table if (value := number(line, name)) is not None)
        for name in (own, other)
    ]
    return Found(counted.good, counted.of, f"mean {mean[0]:.3f} against {mean[1]:.3f}")


def _approach(table: Table, method: str, limit: str, along: str, other: str) -> list[Place]:
    """Whether a method is nearer to its limit at the largest value than at the smallest."""
    places = []
    for kind in dict.fromkeys(line[other] for line in table):
        ends = []
        for line in of_kind(table, {other: kind}):
            at, own, target = (number(line, name) for name in (along, method, limit))
            if at is not None and own is not None and target is not None:
                ends.append((at, own, target, _gap(own, target)))
        if len({at for at, *_ in ends}) > 1:
            told = ", ".join(
                f"{own} at {named(along, at)} with a limit of {target} (gap {gap})"
                for at, own, target, gap in (min(ends), max(ends))
            )
            places.append(Place(named(other, kind), told, max(ends)[-1] < min(ends)[-1]))
    if not places:
        raise NotRun(f"more than one {along}")
    return places


def _gap(own: Number, limit: Number) -> Number:
    """Between two printed numbers, with as many digits as they have."""
    digits = max(len(each.text.partition(".")[2]) for each in (own, limit))
    return Number(f"{abs(own - limit):.{digits}f}")


def _close_by(table: Table, method: str, limit: str, *, points: bool) -> list[Place]:
    """At the paper's n and epsilon: within 5% of the error, or within a point of the accuracy."""
    places = []
    for line in table:
        n, own, target = (number(line, name) for name in ("n", method, limit))
        if n is None or own is None or target is None:
            continue
        if n >= _PAPER_ROWS and line["epsilon"] in _LARGE:
            good = abs(own - target) <= (_POINT if points else _CLOSE * target)
            told = f"{own} against {target}"
            places.append(Place(f"n = {n}, epsilon {line['epsilon']}", told, good))
    if not places:
        raise NotRun(f"epsilon 10 or 15 at n = {_PAPER_ROWS:,}")
    return places


def _approaches(method: str, limit: str, *, points: bool) -> tuple[Claim, ...]:
    return (
        Claim(f"{method} approaches its limit without noise as epsilon grows",
              lambda table: _approach(table, method, limit, "epsilon", "n")),
        Claim(f"{method} approaches it as n grows",
              lambda table: _approach(table, method, limit, "n", "epsilon")),
        Claim("at epsilon 10 or 15 and n = 10,000 it is close to it "
              f"({'one point' if points else '5%'})",
              lambda table: _close_by(table, method, limit, points=points)),
    )  # fmt: skip


def _at_its_limit(table: Table, method: str, limit: str) -> list[Place]:
    given = {name for line in table for name in line if name.startswith("epsilon ")}
    most = "epsilon 1,000,000"
    if most not in given:
        raise NotRun(most)
    one, two = (the(table, most, {"method": name}) for name in (method, limit))
    return [Place(most, f"{one} against {two}", within(_CLOSE)(one, two))]


def _gains(table: Table) -> list[Place]:
    """Ours against public data alone, for each data set, n and epsilon."""
    places = []
    for line in table:
        for column in (name for name in line if name.startswith("ours at ")):
            epsilon = column.removeprefix("ours at ")
            at = f"{line['data']} (n = {line['n']}, epsilon {epsilon})"
            places += compare([dict(line) | {"at": at}], column, "public only", le, ("at",))
    return places


def _gaps(table: Table, *, largest: bool) -> list[Place]:
    """Median of the gap closed at each epsilon, over data sets with their largest n, or the other.

    A data set with one n has it among the largest.
    """
    most: dict[str, float] = {}
    for line in table:
        most[line["data"]] = max(most.get(line["data"], 0.0), Number(line["n"]))
    chosen = [line for line in table if (Number(line["n"]) == most[line["data"]]) == largest]
    places = []
    for column in dict.fromkeys(name for line in chosen for name in line):
        if column.startswith("gap closed at "):
            closed = [value for line in chosen if (value := number(line, column)) is not None]
            if closed:
                median = statistics.median(closed)
                name = f"epsilon {column.removeprefix('gap closed at ')}"
                places.append(Place(name, f"{median:.0f}%", median >= 50))
    return places


def _solvers(table: Table, others: Sequence[str], test: Test) -> list[Place]:
    """The default against the best of some solvers, for each unit and epsilon."""
    lines = turned(table, "epsilon ", ("label unit",))
    return against_best(lines, "dpadapt (default)", others, test, ("label unit", "epsilon"))


CLAIMS: Mapping[str, Sequence[Claim]] = {
    "table-1": (
        Claim("CnvxAdap has a smaller error than KMM and DM on all data sets",
              lambda table: against_best(table, "CnvxAdap", ("KMM", "DM"), lt, _DATA)),
        Claim("CnvxAdap has a smaller error than training on the target alone",
              lambda table: compare(table, "CnvxAdap", "target only", lt, _DATA)),
        Claim("the printed steps without noise come within 5% of CnvxAdap",
              lambda table: compare(table, _SAME_STEPS, "CnvxAdap", within(_CLOSE), _DATA),
              ours=True),
        Claim("dpadapt at epsilon 1 has a smaller error than source data alone",
              lambda table: compare(table, "dpadapt, epsilon 1", "source only", lt, _DATA),
              ours=True),
    ),
    "table-3": (
        Claim("PCnvxAdap at epsilon 10 has a smaller error than DM on all pairs",
              lambda table: compare(table, f"{_PRINTED}, epsilon 10", "DM", lt, _DATA)),
        Claim("CnvxAdap has a smaller error than DM on all pairs",
              lambda table: compare(table, "CnvxAdap", "DM", lt, _DATA)),
        Claim("dpadapt at epsilon 4 has at most the error of source data alone",
              lambda table: _means(table, "dpadapt, epsilon 4", "source only"), ours=True),
        Claim("dpadapt at epsilon 10 has at most the error of source data alone",
              lambda table: _means(table, "dpadapt, epsilon 10", "source only"), ours=True),
    ),
    "table-4": (
        Claim("NCnvxAdap is more accurate than KMM on all data sets",
              lambda table: compare(table, "NCnvxAdap", "KMM", gt, _DATA)),
        Claim("NCnvxAdap is more accurate than training on the source or the target alone",
              lambda table: against_best(table, "NCnvxAdap", ("source only", "target only"),
                                         gt, _DATA, best=max)),
        Claim("dpadapt at epsilon 1 is as accurate as source data alone, or more",
              lambda table: compare(table, "dpadapt, epsilon 1", "source only", ge, _DATA),
              ours=True),
        Claim("dpadapt at epsilon 1 is as accurate as PNCnvxAdap as printed, or more",
              lambda table: compare(table, "dpadapt, epsilon 1", f"{_CLASSES}, epsilon 1", ge,
                                    _DATA), ours=True),
    ),
    "1": (
        *_approaches(_PRINTED, _SAME_STEPS, points=False),
        Claim("dpadapt has a smaller error than public data alone",
              lambda table: compare(table, "dpadapt", "public only", lt, _AT), ours=True),
    ),
    "2": (
        Claim("PCnvxAdap has a smaller error than noisy SGD on the target alone",
              lambda table: compare(table, _PRINTED, "noisy SGD", lt, _AT)),
        Claim("dpadapt has a smaller error than noisy SGD",
              lambda table: compare(table, "dpadapt", "noisy SGD", lt, _AT), ours=True),
    ),
    "3": (
        Claim("private DM does not outperform PCnvxAdap with alpha = 1",
              lambda table: compare(table, "private DM as printed", "PCnvxAdap, alpha 1", ge,
                                    _AT)),
    ),
    "limit": (
        Claim("PCnvxAdap approaches its limit without noise as epsilon grows (to 5%)",
              lambda table: _at_its_limit(table, _PRINTED, _SAME_STEPS)),
        Claim("dpadapt comes as close to a tuned solver without privacy",
              lambda table: _at_its_limit(table, "dpadapt", "CnvxAdap, tuned"), ours=True),
    ),
    "4": (
        *_approaches(_CLASSES, "NCnvxAdap", points=True),
        Claim("dpadapt is as accurate as PNCnvxAdap as printed, or more",
              lambda table: compare(table, "dpadapt", _CLASSES, ge, _AT), ours=True),
    ),
    "gains": (
        Claim("dpadapt has at most the error of public data alone", _gains, ours=True),
        Claim("with the largest n of a data set it closes half of the gap to no privacy (median)",
              lambda table: _gaps(table, largest=True), ours=True),
        Claim("with the paper's n it closes half of the gap (median)",
              lambda table: _gaps(table, largest=False), ours=True),
    ),
    "components": (
        Claim("the default has a smaller error than public data alone",
              lambda table: _solvers(table, ("public only",), lt), ours=True),
        Claim("no other solver has a smaller error than the default",
              lambda table: _solvers(table, [f'solver "{name}"' for name in
                                             ("profiled", "statistics", "gradient")], le),
              ours=True),
    ),
}  # fmt: skip
