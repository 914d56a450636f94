"""Paper 003: what it says of figures and theorems, and the rules that look it up in our tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import lt

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
    trend,
)

from .figure_3 import ALONG, PAPER_ROWS, PAPER_STEPS
from .figure_3_by_steps import ROUNDS as STEPS_ROUNDS
from .methods import CURATOR, FIXED, OURS, SCHEDULE

__all__ = ["CLAIMS", "counts"]

_LIKE = 1.5  # factor between numbers of rounds that are about the same
_ALONE = "weights left alone"
_RETURNED = "loss of what is returned (%)"
_LEVEL = 16.0  # percent: 2 alpha of Figure 3


def counts(text: str) -> tuple[int, int] | None:
    """The two numbers of "3 of 10" or "(3/10)"; None if there are none.

    Examples
    --------
    >>> counts("30.0 ± 2.0 (3/10)"), counts("-")
    ((3, 10), None)
    """
    found = re.search(r"(\d+) of (\d+)|\((\d+)/(\d+)\)", text)
    if found is None:
        return None
    good, of = [int(each) for each in found.groups() if each is not None]
    return good, of


def _reweighed(table: Table) -> Table:
    return of_kind(table, {"weights": "reweighed"})


def _halts(table: Table) -> list[Place]:
    """At every n at which all runs of the paper halt."""
    places = []
    for line in _reweighed(table):
        halted = counts(line["halted at 2%"])
        if line["paper: loss (%)"] == "at most 2" and halted:
            told = f"{halted[0]} of {halted[1]} halted"
            places.append(Place(f"n = {line['n']}", told, halted[0] == halted[1]))
    if not places:
        raise NotRun("an n at which the paper's runs halt")
    return places


def _rounds(table: Table) -> list[Place]:
    """Rounds until a run halts, in rounds of the theorem's rate, beside the paper's."""
    places = []
    for line in _reweighed(table):
        ours = number(line, "rounds at rate alpha/8 would be")
        theirs = number({"rounds": line["paper: rounds"].removeprefix("about ")}, "rounds")
        if ours is not None and theirs is not None:
            good = ours <= _LIKE * theirs
            places.append(Place(f"n = {line['n']}", f"{ours} against {theirs}", good))
    if not places:
        raise NotRun("a run that halts at an n of the paper")
    return places


def _hardly_depends(table: Table) -> Found:
    """The number of rounds until a run halts, over all n at which every run halts."""
    found = {
        value: line["n"]
        for line in _reweighed(table)
        if (value := number(line, "rounds at rate alpha/8 would be")) is not None
    }
    if len(found) < 2:
        raise NotRun("runs that halt at two n")
    least, most = min(found), max(found)
    told = f"{most} at n = {found[most]} and {least} at n = {found[least]}"
    return Found(int(most <= _LIKE * least), 1, told)


def _weights_help(table: Table) -> list[Place]:
    places = []
    for control in of_kind(table, {"weights": _ALONE}):
        for line in of_kind(_reweighed(table), {"n": control["n"]}):
            both = {
                "n": line["n"],
                "with": line["loss on T (%)"],
                "without": control["loss on T (%)"],
            }
            places += compare([both], "with", "without", lt, ("n",))
    if not places:
        raise NotRun(f"{_ALONE}, at an n that was reweighed too")
    return places


def _reaches(table: Table, method: str) -> Found:
    """From which n on every run has a loss of 2 alpha; the paper's n is 324.7 million.

    Fewer rows than the paper's that do not suffice contradict nothing.
    """
    lines = sorted(of_kind(table, {"method": method}), key=lambda line: Number(line["n"]))
    good = [
        line for line in lines if (found := counts(line["at most 2α"])) and len(set(found)) == 1
    ]
    tail = [line for place, line in enumerate(lines) if all(each in good for each in lines[place:])]
    if lines and not tail and Number(lines[-1]["n"]) >= PAPER_ROWS:
        return Found(0, 1, f"not in every run with n = {lines[-1]['n']}")
    if not tail:
        most = lines[-1]["n"] if lines else "none"
        raise NotRun(f"{PAPER_ROWS:,} rows (the most here: {most}), or of fewer that suffice")
    return Found(
        1, 1, f"in every run from n = {tail[0]['n']} on ({number(tail[0], 'loss on T (%)')}%)"
    )


def _fewer_rounds(table: Table) -> list[Place]:
    """Rounds as R grows; two ends that stopped at the most rounds would have gone on."""
    lines = [line for line in table if number(line, "rounds") is not None]
    ends = {Number(line["R"]): number(line, "rounds") for line in lines if number(line, "R")}
    if len(ends) > 1 and ends[min(ends)] == ends[max(ends)] == STEPS_ROUNDS:
        raise NotRun(f"runs that stop before the last of {STEPS_ROUNDS} rounds")
    return trend(table, "rounds", "R", lt)


def _always(table: Table, method: str) -> list[Place]:
    places = []
    for line in of_kind(table, {"method": method}):
        found = counts(line["at most 2α"])
        if found:
            told = f"{found[0]} of {found[1]} runs"
            places.append(Place(f"n = {line['n']}", told, found[0] == found[1]))
    return places


def _returned(table: Table) -> Found:
    """From which R on the loss of what is returned is at most 2 alpha."""
    lines = [line for line in table if (number(line, _RETURNED)) is not None]
    if not lines:
        raise NotRun("any R")
    good = [(number(line, _RETURNED) or _LEVEL) <= _LEVEL for line in lines]
    tail = [line for place, line in enumerate(lines) if all(good[place:])]
    if not tail and Number(lines[-1]["R"]) >= PAPER_STEPS[0]:
        return Found(0, 1, f"{number(lines[-1], _RETURNED)}% with R = {lines[-1]['R']}")
    if not tail:
        raise NotRun(f"{PAPER_STEPS[0]:,} steps a round (the most here: {lines[-1]['R']})")
    return Found(1, 1, f"from R = {tail[0]['R']} on ({number(tail[0], _RETURNED)}%)")


def _falls(table: Table, column: str) -> Found:
    """The loss along runs that never halt, on average; their line stands in the table."""
    for line in table:
        found = re.match(ALONG.format(r"([\d.]+)", r"([\d.]+)"), line[column])
        if found:
            first, last = (Number(each) for each in found.groups())
            return Found(int(last < first), 1, f"{first}% in the first round, {last}% in the last")
    raise NotRun("runs that never halt")


def _meets_level(table: Table, method: str) -> list[Place]:
    places = []
    for line in table:
        found = counts(line.get(method, ""))
        if found:
            name = line["setting"].split(":")[0]
            places.append(Place(name, line[method], found[0] == found[1]))
    return places


def _parity(table: Table) -> list[Place]:
    """From which n on the secret is found in one round in every run, beside the corollary's n."""
    places = []
    column = "chance of a 1 at the source"
    for chance in dict.fromkeys(line[column] for line in table):
        lines = of_kind(table, {column: chance})
        sure = [
            (found := counts(line["secret found"])) is not None
            and found[0] == found[1]
            and line["rounds"] == "1"
            for line in lines
        ]
        tail = [line for place, line in enumerate(lines) if all(sure[place:])]
        asked = Number(lines[0]["n of Corollary B.3"])
        if tail:
            told = f"from n = {tail[0]['n']} on, asked are {asked}"
            places.append(Place(f"chance {chance}", told, Number(tail[0]["n"]) <= asked))
        elif Number(lines[-1]["n"]) >= asked:
            places.append(Place(f"chance {chance}", f"not with {lines[-1]['n']}", good=False))
    if not places:
        raise NotRun("the corollary's n, or of fewer rows that suffice")
    return places


def _fewer_rows(table: Table) -> list[Place]:
    places = []
    for line in table:
        used = line["n of the runs here"].split(" to ")[-1]
        both = dict(line) | {"used": used}
        places += compare([both], "used", "n as printed", lt, ("what",))
    return places


_FIGURE = (
    Claim("the loss on T falls as n grows",
          lambda table: trend(_reweighed(table), "loss on T (%)", "n", lt)),
    Claim("every run halts at the n at which the paper's do", _halts),
    Claim("runs halt after at most 1.5 times the paper's rounds, if its rate is alpha/8, "
          "which it does not say", _rounds),
    Claim("n hardly changes the number of rounds (factor 1.5)", _hardly_depends),
    Claim("with weights left alone the loss is larger", _weights_help, ours=True),
)  # fmt: skip
_ERROR = ": error on T (%)"

CLAIMS: Mapping[str, Sequence[Claim]] = {
    "1": _FIGURE,
    "2": _FIGURE,
    "3": (
        Claim("a loss of 2 alpha is reached, by an algorithm that pays as the paper's",
              lambda table: _reaches(table, FIXED)),
        Claim("in runs that never halt the loss falls on average",
              lambda table: _falls(table, "loss on T (%)")),
        Claim("a loss of 2 alpha is reached under the density schedule",
              lambda table: _reaches(table, SCHEDULE), ours=True),
        Claim("HybridTilt reaches it at every n", lambda table: _always(table, OURS), ours=True),
    ),
    "3R": (
        Claim("more steps a round need fewer rounds", _fewer_rounds),
        Claim("with fewer steps the loss starts higher",
              lambda table: trend(table, "loss of the first rule (%)", "R", lt)),
        Claim("in runs that never halt the loss falls on average",
              lambda table: _falls(table, _RETURNED)),
        Claim("a loss of 2 alpha is reached", _returned),
    ),
    "settings": (
        Claim("HybridTilt is at the level in every run", lambda table: _meets_level(table, OURS),
              ours=True),
        Claim("Subsample-Test-Reweigh with its defaults is at the level in every run",
              lambda table: _meets_level(table, SCHEDULE), ours=True),
        Claim("the curator alone is at the level in every run",
              lambda table: _meets_level(table, CURATOR), ours=True),
    ),
    "parity": (
        Claim("a parity is found in one round, with no more rows than Corollary B.3 asks for",
              _parity),
    ),
    "classes": (
        Claim("asking agents gives a smaller error on T than the curator alone",
              lambda table: compare(table, f"{SCHEDULE}{_ERROR}", f"{CURATOR}{_ERROR}", lt,
                                    ("classes",)), ours=True),
    ),
    "sizes": (
        Claim("repaired and counted exactly, the theorems ask for fewer rows",
              lambda table: compare(table, "n repaired", "n as printed", lt, ("what",)),
              ours=True),
        Claim("runs on this page have fewer rows than the theorems ask for", _fewer_rows,
              ours=True),
    ),
}  # fmt: skip
