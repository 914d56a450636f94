"""Verdicts: whether what a paper says of a figure holds in the table that is printed there.

A verdict is never written, it is computed: a :class:`Claim` has a rule, the rule reads the printed
table (texts, as they stand on the page) and finds the places at which the claim can be looked up,
at how many of them it is true, and the numbers that say so. Where the table lacks what a rule needs
it raises :class:`NotRun`, and there is no verdict on that claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Claim",
    "Found",
    "NotRun",
    "Number",
    "Place",
    "Table",
    "Test",
    "Verdict",
    "against_best",
    "compare",
    "judge",
    "named",
    "number",
    "of_kind",
    "printed",
    "the",
    "trend",
    "turned",
    "within",
]

Line = Mapping[str, str]
Table = Sequence[Line]
Test = Callable[[float, float], bool]

_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?")
_PARTS = re.compile(r"[;(±]")
_NAMED = 4  # places whose numbers are told; more are counted


class NotRun(LookupError):
    """What a rule needs and the table does not have.

    Examples
    --------
    >>> str(NotRun("epsilon 10"))
    'epsilon 10'
    """


class Number(float):
    """A number that is shown as it is printed in the table.

    Examples
    --------
    >>> f"{Number('1,300')} and {Number('0.50') / 2}"
    '1,300 and 0.25'
    """

    def __new__(cls, text: str) -> Number:
        """Read the text."""
        found = super().__new__(cls, text.replace(",", ""))
        found.text = text
        return found

    text: str

    def __str__(self) -> str:
        return self.text


def printed(summary: pd.DataFrame) -> Table:
    """Lines of a table, texts only: all that a rule sees.

    Examples
    --------
    >>> import pandas as pd
    >>> printed(pd.DataFrame({"n": [10], "error": ["0.5 ± 0.1"]}))
    [{'n': '10', 'error': '0.5 ± 0.1'}]
    """
    texts = summary.astype(str)
    return [dict(zip(texts.columns, line, strict=True)) for line in texts.to_numpy().tolist()]


def number(line: Line, column: str, part: int = 0) -> Number | None:
    """The number that a cell begins with, or another part of it; None where there is none.

    Parts are what "±", ";" or a bracket separates; -1 is the last one.

    Examples
    --------
    >>> line = {"a": "1,300 ± 20", "b": "14.7 (+560%)", "c": "-"}
    >>> print(number(line, "a"), number(line, "a", 1), number(line, "b", 1), number(line, "c"))
    1,300 20 +560 None
    """
    parts = _PARTS.split(line.get(column, ""))
    found = _NUMBER.match(parts[part].strip()) if part < len(parts) else None
    return Number(found.group()) if found else None


def the(table: Table, column: str, where: Line, part: int = 0) -> Number:
    """The one number of a table, or :class:`NotRun`, which names it.

    Examples
    --------
    >>> print(the([{"method": "DM", "ε 1": "0.52"}], "ε 1", {"method": "DM"}))
    0.52
    """
    for line in of_kind(table, where):
        found = number(line, column, part)
        if found is not None:
            return found
    raise NotRun(", ".join([*(named(key, text) for key, text in where.items()), column]))


def within(share: float) -> Test:
    """Whether two numbers differ by at most this share of the second.

    Examples
    --------
    >>> within(0.05)(1.04, 1.0), within(0.05)(1.06, 1.0)
    (True, False)
    """
    return lambda one, two: abs(one - two) <= share * abs(two)


def of_kind(table: Table, where: Line) -> Table:
    """The lines with these texts.

    Examples
    --------
    >>> len(of_kind([{"n": "1"}, {"n": "2"}], {"n": "2"}))
    1
    """
    return [
        line for line in table if all(line.get(key) == text for key, text in where.items())
    ]  # fmt: skip


def turned(table: Table, prefix: str, keys: Sequence[str] = (), by: str = "method") -> Table:
    """A line for each column that begins with the prefix, a column for each method.

    Parameters
    ----------
    table : Table
        A line for each method.
    prefix : str
        What is taken from such a column's name; the rest is the new column "epsilon".
    keys : sequence of str
        What tells lines of one method apart; these stay.
    by : str, default="method"

    Examples
    --------
    >>> turned([{"method": "DM", "ε 1": "0.5", "ε 4": "0.4"}], "ε ")
    [{'epsilon': '1', 'DM': '0.5'}, {'epsilon': '4', 'DM': '0.4'}]
    """
    columns = [name for line in table for name in line if name.startswith(prefix)]
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for line in table:
        for column in dict.fromkeys(columns):
            place = {key: line[key] for key in keys} | {"epsilon": column.removeprefix(prefix)}
            here = found.setdefault(tuple(place.values()), place)
            here[line[by]] = line.get(column, "")
    return list(found.values())


@dataclass(frozen=True)
class Place:
    """Where a claim can be looked up: whether it is true there, and the numbers.

    Examples
    --------
    >>> str(Place("Wind", "0.98 against 1", good=True))
    'Wind: 0.98 against 1'
    """

    name: str
    told: str
    good: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.told}" if self.name else self.told


@dataclass(frozen=True)
class Found:
    """At how many places a claim is true, and what the table says.

    Examples
    --------
    >>> found = Found.at([Place("Wind", "1.1 against 1", False), Place("Gas", "0.9", True)])
    >>> found.word, found.told
    ('holds in part (1 of 2)', 'Wind: 1.1 against 1; Gas: 0.9')
    """

    good: int
    of: int
    told: str

    @classmethod
    def at(cls, places: Iterable[Place]) -> Found:
        """Count places, and tell them, or if there are many those that are the exception."""
        given = list(places)
        if not given:
            raise NotRun("what it compares")
        good = sum(place.good for place in given)
        shown = given
        if len(given) > _NAMED:
            rare = [place for place in given if place.good == (good <= len(given) / 2)]
            shown = rare or [given[0], given[-1]]
        left = len(shown) - _NAMED
        told = "; ".join(map(str, shown[:_NAMED])) + (f"; and {left} more" if left > 0 else "")
        if len(given) > _NAMED and good not in (0, len(given)):
            told = ("not at " if good > len(given) / 2 else "only at ") + told
        return cls(good, len(given), told)

    @property
    def word(self) -> str:
        """In words: less than half of the places is not a part, but a failure."""
        count = f" ({self.good} of {self.of})" if self.of > 1 else ""
        if self.good == self.of:
            return f"holds{count}"
        return f"holds in part{count}" if 2 * self.good >= self.of else f"fails here{count}"


def compare(
    table: Table,
    left: str,
    right: str,
    test: Test,
    keys: Sequence[str],
    parts: tuple[int, int] = (0, 0),
) -> list[Place]:
    """A place for each line that has both numbers.

    Examples
    --------
    >>> from operator import lt
    >>> line = {"data": "Wind", "DM": "1.1", "KMM": "1.2"}
    >>> print(*compare([line, {"data": "Gas", "DM": "3"}], "DM", "KMM", lt, ["data"]))
    Wind: 1.1 against 1.2
    """
    places = []
    for line in table:
        one, two = number(line, left, parts[0]), number(line, right, parts[1])
        if one is not None and two is not None:
            places.append(Place(_at(line, keys), f"{one} against {two}", test(one, two)))
    return places


def against_best(
    table: Table,
    method: str,
    others: Sequence[str],
    test: Test,
    keys: Sequence[str],
    best: Callable[[list[Number]], Number] = min,
) -> list[Place]:
    """A place for each line: a method against the best of those of the others that were run.

    Examples
    --------
    >>> from operator import lt
    >>> line = {"data": "Wind", "DM": "1.1", "KMM": "1.2", "ours": "1"}
    >>> print(*against_best([line], "ours", ["DM", "KMM"], lt, ["data"]))
    Wind: 1 against 1.1
    """
    places = []
    for line in table:
        given = [value for name in others if (value := number(line, name)) is not None]
        if given:
            beside = dict(line) | {"the best": str(best(given))}
            places += compare([beside], method, "the best", test, keys)
    return places


def trend(
    table: Table, column: str, along: str, test: Test, keys: Sequence[str] = ()
) -> list[Place]:
    """A place for each kind of lines: the last number against the first, as ``along`` grows.

    Examples
    --------
    >>> from operator import lt
    >>> lines = [{"n": "10", "loss": "3"}, {"n": "20", "loss": "1"}]
    >>> print(*trend(lines, "loss", "n", lt))
    from 3 at n = 10 to 1 at n = 20
    """
    kinds: dict[tuple[str, ...], list[tuple[Number, Number]]] = {}
    for line in table:
        at, value = number(line, along), number(line, column)
        if at is not None and value is not None:
            kinds.setdefault(tuple(line[key] for key in keys), []).append((at, value))
    places = []
    for kind, values in kinds.items():
        (first, start), (last, end) = min(values), max(values)
        if first != last:
            name = _at(dict(zip(keys, kind, strict=True)), keys)
            told = f"from {start} at {named(along, first)} to {end} at {named(along, last)}"
            places.append(Place(name, told, test(end, start)))
    if not places:
        raise NotRun(f"more than one {along}")
    return places


def _at(line: Line, keys: Sequence[str]) -> str:
    return ", ".join(named(key, line.get(key, "")) for key in keys)


def named(key: str, text: object) -> str:
    """A place, as a sentence names it.

    Examples
    --------
    >>> named("n", "1,000"), named("epsilon", 1), named("classes", 3), named("data", "Wind")
    ('n = 1,000', 'epsilon 1', '3 classes', 'Wind')
    """
    if key in ("n", "d", "R"):
        return f"{key} = {text}"
    if key == "classes":
        return f"{text} {key}"
    return f"{key} {text}" if key in ("epsilon", "lambda", "chance") else f"{text}"


@dataclass(frozen=True)
class Claim:
    """What is said of a figure, and the rule that looks it up in the printed table.

    Parameters
    ----------
    says : str
        The claim, as a sentence without its end.
    rule : callable
        From the table to what is :class:`Found`, or to the places, which are counted.
    ours : bool, default=False
        Not a claim of the paper: it does not count in the verdict on the paper.

    Examples
    --------
    >>> claim = Claim("it falls", lambda table: trend(table, "loss", "n", lambda a, b: a < b))
    >>> lines = [{"n": "10", "loss": "3"}, {"n": "20", "loss": "1"}]
    >>> claim.found(lines).word
    'holds'
    """

    says: str
    rule: Callable[[Table], Found | Iterable[Place]]
    ours: bool = False

    def found(self, table: Table) -> Found:
        """What the rule finds in this table."""
        outcome = self.rule(table)
        return outcome if isinstance(outcome, Found) else Found.at(outcome)


@dataclass(frozen=True)
class Verdict:
    """One line over all claims of the paper, and one for each claim."""

    head: str
    lines: tuple[str, ...]


def judge(claims: Sequence[Claim], table: Table, draws: str = "") -> Verdict | None:
    """The verdict on a printed table; None if nothing is claimed of it.

    Parameters
    ----------
    claims : sequence of Claim
    table : Table
    draws : str
        How many draws of data and noise the run had.

    Examples
    --------
    >>> claim = Claim("it falls", lambda table: trend(table, "loss", "n", lambda a, b: a < b))
    >>> lines = [{"n": "10", "loss": "3"}, {"n": "20", "loss": "1"}]
    >>> found = judge([claim], lines, draws="1")
    >>> print(found.head, *found.lines)
    Verdict: holds (one draw). Holds: it falls: from 3 at n = 10 to 1 at n = 20.
    >>> judge([claim], lines[:1]).head
    'No verdict: the table does not tell.'
    """
    if not claims:
        return None
    lines, theirs, told = [], [], 0
    for claim in claims:
        whose = "not the paper's claim, " if claim.ours and not all(c.ours for c in claims) else ""
        try:
            found = claim.found(table)
        except NotRun as lacks:
            lines.append(f"{whose}not told, for lack of {lacks}: {claim.says}")
            continue
        told += 1
        if not claim.ours:
            theirs.append(found)
        lines.append(f"{whose}{found.word}: {claim.says}: {found.told}")
    count = f" ({'one draw' if draws == '1' else f'{draws} draws'})" if draws else ""
    if theirs:
        asked = sum(not claim.ours for claim in claims)
        part = "" if len(theirs) == asked else f" on {len(theirs)} of {asked} claims"
        head = f"Verdict{part}: {_over(theirs)}{count}."
    elif told and all(claim.ours for claim in claims):
        head = f"Not a claim of the paper; what the table says{count}:"
    else:
        head = "No verdict: the table does not tell."
    return Verdict(head, tuple(f"{line[0].upper()}{line[1:]}." for line in lines))


def _over(found: Sequence[Found]) -> str:
    """All claims hold, none does, or some do."""
    words = {each.word.split(" (")[0] for each in found}
    return words.pop() if len(words) == 1 else "holds in part"
