"""What an evaluation found: values, intervals, and what they cost. Nothing private."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dpadapt.privacy import Guarantee
from dpadapt.privacy.files.guarantees import read_guarantee

from .intervals import Interval

_FORMATS = ("dpadapt evaluation 1", "dpadapt evaluation 2")  # the first had no limits


@dataclass(frozen=True)
class Measured:
    """One measure of a model, and beside it that of the baseline and their difference.

    Parameters
    ----------
    title : str
        For people.
    model : Interval
    baseline, difference : Interval or None
        The difference is model minus baseline, of the same rows.
    larger : bool
        Whether more is better.
    limit : float or None
        Least difference that could be seen, as it was known before anything was spent.
    largest : float or None
        How large the measure can be: with a limit beyond it there were too few rows.

    Examples
    --------
    >>> Measured("accuracy", Interval(0.8, 0.75, 0.85), None, None, True).verdict
    ''
    >>> found = Interval(0.8, 0.75, 0.85), Interval(0.76, 0.7, 0.82), Interval(0.04, 0.01, 0.07)
    >>> [Measured("accuracy", *found, True, limit).verdict for limit in (0.03, 0.05)]
    ['better', 'no verdict']
    """

    title: str
    model: Interval
    baseline: Interval | None
    difference: Interval | None
    larger: bool
    limit: float | None = None
    largest: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the model is better than the baseline, as far as that can be seen.

        There is a verdict where the interval of the difference leaves out 0, and the difference is
        not below the limit.
        """
        if self.difference is None:
            return ""
        gain = self.difference if self.larger else self.difference.flipped(0.0)
        if self.limit is not None and abs(gain.value) < self.limit:
            return "no verdict"
        if gain.low > 0:
            return "better"
        return "worse" if gain.high < 0 else "no verdict"

    @property
    def seen(self) -> str:
        """From which difference on something could be seen, in words; empty if not known."""
        if self.limit is None:
            return ""
        if self.largest is not None and self.limit >= self.largest:
            return "too few rows"
        return f"seen from {self.limit:,.{self._figures}f}"

    @property
    def texts(self) -> tuple[str, str, str]:
        """Model, baseline and difference; both columns with the same digits."""
        digits = finer = self._figures
        if self.difference is not None:
            finer = min(max(digits, _digits(self.difference)), digits + 2)
        first, second = (_text(each, digits, self.largest) for each in (self.model, self.baseline))
        return first, second, _text(self.difference, finer, self.largest)

    @property
    def _figures(self) -> int:
        return max(_digits(each) for each in (self.model, self.baseline) if each is not None)


@dataclass(frozen=True)
class Evaluation:
    """Error of a model on private rows, with noise; safe to show to anybody.

    Parameters
    ----------
    measures : mapping of str to Measured
    bins : tuple of (from, to, share, gap)
        Reliability table: share of rows, and mean of probability minus outcome (NaN where a bin is
        lost in the noise). Empty if calibration was not measured.
    people : int
        Private rows, or people where they have several rows each.
    confidence : float
        Of the intervals.
    guarantee : Guarantee
        What it cost.
    caveats : tuple of str
        What the numbers do not say.
    against : str
        What the baseline is; empty if there is none.
    model : str
        Digest of the model folder that was measured; empty if the model was in no folder.
    classes : tuple of (str, Interval)
        How many of the private rows are of each class, or of the people, where they have several
        rows: who has rows of two classes counts in both, in parts. Empty if not counted.
    rule : str
        From which probability on classes were predicted; empty if as the model does.
    held_out : bool
        Whether these people were held out from the fit of the model, so that nobody is in both.

    Examples
    --------
    >>> error = Measured("error rate", Interval(0.2, 0.15, 0.25), None, None, False)
    >>> print(Evaluation({"error": error}, (), 500, 0.95, Guarantee(), ()).sentence)
    On 500 private rows, with 95 % intervals that include the noise: error rate 0.20 (0.15 to 0.25).
    """

    measures: Mapping[str, Measured]
    bins: tuple[tuple[float, ...], ...]
    people: int
    confidence: float
    guarantee: Guarantee
    caveats: tuple[str, ...]
    against: str = ""
    model: str = ""
    classes: tuple[tuple[str, Interval], ...] = ()
    rule: str = ""
    held_out: bool = False

    @property
    def where(self) -> str:
        """On whom it was measured, and by which rule."""
        rule = f", predicting {self.rule}" if self.rule else ""
        return f"{self.people:,} {self.who}{rule}"

    @property
    def who(self) -> str:
        """What there are so many of."""
        return "people" if self.guarantee.relation == "replace-unit" else "private rows"

    def __getitem__(self, name: str) -> Measured:
        return self.measures[name]

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        parts = []
        for each in self.measures.values():
            model, baseline, difference = each.texts
            part = f"{each.title} {model}"
            if baseline:
                part += f", {self.against} {baseline}, difference {difference}, {each.verdict}"
                part += f" ({each.seen})" if each.seen else ""
            parts.append(part)
        return (
            f"On {self.where}, with {100 * self.confidence:g} % intervals that include the noise: "
            f"{'; '.join(parts)}."
        )

    def __str__(self) -> str:
        return f"{self.sentence} {self.guarantee.sentence}"

    def rows(self) -> list[tuple[str, ...]]:
        """Cells of the table of measures, the head first."""
        lines = [
            (each.title, *each.texts, each.seen, each.verdict if each.difference else "")
            for each in self.measures.values()
        ]
        head = ("", "model", self.against, "difference", "a difference is", "the model is")
        shown = 6 if self.against else 2
        return [line[:shown] for line in (head, *lines)]

    def class_rows(self) -> list[tuple[str, ...]]:
        """Cells of the table of classes, the head first; empty if they were not counted."""
        if not self.classes:
            return []
        cells = [(name, _text(rows, 0)) for name, rows in self.classes]
        return [("class", f"{self.who} with this label"), *cells]

    def bin_rows(self) -> list[tuple[str, ...]]:
        """Cells of the reliability table, the head first; empty if noise left nothing of it."""
        if all(math.isnan(gap) for *_, gap in self.bins):
            return []
        what = "people" if self.who == "people" else "rows"
        head = ("probability", f"share of {what}", "predicted minus observed")
        cells = [
            (
                f"{low:.1f} to {high:.1f}",
                *(("too few", "") if math.isnan(gap) else (f"{share:.3f}", f"{gap:+.3f}")),
            )
            for low, high, share, gap in self.bins
        ]
        return [head, *cells]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; :meth:`from_dict` is the inverse."""
        return {
            "format": "dpadapt evaluation 2",
            "sentence": self.sentence,
            "measures": {
                name: {**asdict(each), "verdict": each.verdict, "seen": each.seen}
                for name, each in self.measures.items()
            },
            "bins": [[None if math.isnan(x) else x for x in row] for row in self.bins],
            "people": self.people,
            "confidence": self.confidence,
            "guarantee": self.guarantee.to_dict(),
            "caveats": list(self.caveats),
            "against": self.against,
            "model": self.model,
            "classes": [[name, asdict(rows)] for name, rows in self.classes],
            "rule": self.rule,
            "held_out": self.held_out,
        }

    def to_json(self) -> str:
        """Indented JSON of :meth:`to_dict`."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """Rebuild from :meth:`to_dict`; refuses a guarantee that does not add up."""
        if not isinstance(data, Mapping) or data.get("format") not in _FORMATS:
            raise ValueError("this is no evaluation that dpadapt has written.")
        measures = {
            str(name): Measured(
                str(each["title"]),
                _interval(each["model"]),
                _interval(each["baseline"]),
                _interval(each["difference"]),
                bool(each["larger"]),
                *(_positive(each.get(name)) for name in ("limit", "largest")),
            )
            for name, each in data["measures"].items()
        }
        bins = tuple(tuple(math.nan if x is None else float(x) for x in r) for r in data["bins"])
        people, confidence = int(data["people"]), float(data["confidence"])
        if people < 1 or not 0 < confidence < 1 or any(len(row) != 4 for row in bins):
            raise ValueError("this evaluation was changed after it was written.")
        return cls(
            measures,
            bins,
            people,
            confidence,
            read_guarantee(data["guarantee"]),
            tuple(map(str, data["caveats"])),
            str(data["against"]),
            str(data.get("model", "")),
            tuple((str(name), _interval(rows)) for name, rows in data.get("classes", ())),
            str(data.get("rule", "")),
            data.get("held_out") is True,
        )

    def _repr_html_(self) -> str:
        tables = "".join(map(_html_table, (self.rows(), self.class_rows(), self.bin_rows())))
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.caveats)
        told = html.escape(self.guarantee.sentence)
        return f"<div>{tables}<p><strong>{told}</strong></p><ul>{notes}</ul></div>"


def _html_table(rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head, *body = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table><tr>{head.replace('td>', 'th>')}</tr>{lines}</table>"


def _interval(data: Any) -> Any:
    if data is None:
        return None
    numbers = [float(data[key]) for key in ("value", "low", "high")]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("an interval of this evaluation is not finite.")
    return Interval(*numbers)


def _positive(data: Any) -> float | None:
    number = None if data is None else float(data)
    if number is not None and not (math.isfinite(number) and number >= 0):
        raise ValueError("a limit of this evaluation is not a number.")
    return number


def _digits(side: Interval) -> int:
    wide = side.high - side.low or abs(side.value)
    return min(6, max(0, 1 - math.floor(math.log10(max(wide, 1e-12)))))


def _text(side: Interval | None, digits: int, largest: float | None = None) -> str:
    """A value with its interval; no value where nothing was seen: its interval is all there is."""
    if side is None:
        return ""
    value, low, high = (f"{x:z,.{digits}f}" for x in (side.value, side.low, side.high))
    return f"{'–' if side.says_nothing(largest) else value} ({low} to {high})"
