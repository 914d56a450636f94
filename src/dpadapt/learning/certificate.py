"""A bound that is a sum of named terms, and how it is shown."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple


class Term(NamedTuple):
    """One part of the bound.

    Examples
    --------
    >>> Term(0.25, "squared error on the public rows").value
    0.25
    """

    value: float
    meaning: str


class NoisyNumber(NamedTuple):
    """A released number, and the standard deviation of its Gaussian noise (0: exact).

    Examples
    --------
    >>> NoisyNumber(value=0.02, scale=0.001).scale
    0.001
    """

    value: float
    scale: float


class SummedBound:
    """What certificates of the expected squared error have in common.

    Nothing that a bound rests on is silent: ``conditions`` are a part of its sentence.

    Examples
    --------
    >>> class Two(SummedBound):
    ...     meanings = {"loss": "on public rows", "noise": "of the release"}
    ...     loss, noise, confidence, ceiling = 0.25, 0.5, 0.9, 4.0
    ...     conditions = ("labels lie in [0, 1]",)
    >>> print(Two())
    With 90% confidence, the expected squared error in the private population, of which the \
private rows are a random sample, is at most 0.75, if (1) labels lie in [0, 1].
      loss           0.25  on public rows
      noise           0.5  of the release
    """

    meanings: ClassVar[Mapping[str, str]]
    confidence: float
    ceiling: float
    conditions: tuple[str, ...]

    @property
    def bound(self) -> float:
        """Sum of the terms."""
        return math.fsum(term.value for term in self.terms().values())

    @property
    def informative(self) -> bool:
        """Whether the bound says more than the stated bounds on rows, labels and norm do."""
        return self.bound < self.ceiling

    def terms(self) -> dict[str, Term]:
        """Every term by its name: value, and meaning in one line."""
        return {name: Term(getattr(self, name), text) for name, text in self.meanings.items()}

    def __str__(self) -> str:
        wide = max(len(value) for _, value, _ in self._shown())
        lines = [f"  {name:<13}  {value:>{wide}}  {text}" for name, value, text in self._shown()]
        return "\n".join([self._sentence(), *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{name}</td><td>{value}</td><td>{html.escape(text)}</td></tr>"
            for name, value, text in self._shown()
        )
        return f"<p>{html.escape(self._sentence())}</p><table>{rows}</table>"

    def _shown(self) -> list[tuple[str, str, str]]:
        return [(n.replace("_", " "), f"{t.value:.3g}", t.meaning) for n, t in self.terms().items()]

    def _sentence(self) -> str:
        rests = "; ".join(f"({k}) {text}" for k, text in enumerate(self.conditions, start=1))
        said = (
            f"With {100 * self.confidence:.4g}% confidence, the expected squared error in the "
            "private population, of which the private rows are a random sample, is at most "
            f"{self.bound:.3g}, if {rests}."
        )
        if self.informative:
            return said
        return (
            f"{said} That says nothing: rows, labels and coefficients within their bounds never "
            f"give more than {self.ceiling:.3g}."
        )


def cut_rows(radius: float) -> str:
    """The condition of every bound that was computed on cleaned rows, in words.

    Parameters
    ----------
    radius : float
        Bound on a cleaned row with its constant.

    Examples
    --------
    >>> cut_rows(2.5)
    'rows longer than 2.5 (standardised, with a constant of 1) are cut to that length first'
    """
    return (
        f"rows longer than {radius:.3g} (standardised, with a constant of 1) are cut to that "
        "length first"
    )
