"""Public facts that an evaluation rests on: what models answer, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from .answers import Asked
from .queries import AsAnswered

LEAST_CHANCE = 0.01  # a probability below counts as this in a log-loss
PLACES, _LOGITS = 4096, 12.0  # of the grid of scores: logits from -12 to 12
_FARTHER = 2.0  # than on public rows: as far apart two models are shown on private ones


@dataclass(frozen=True)
class OnPublic:
    """What an evaluation would find on public rows, for one model or two: a rehearsal, no secret.

    Parameters
    ----------
    rows : int
        Public rows with a label.
    models : {1, 2}
    means : mapping of str to sequence of float
        What would be released without noise, by statistic.

    Examples
    --------
    >>> known = OnPublic(100, 2, {"mae": (0.0, 0.0, 0.1, 0.0, 0.0)})
    >>> OnPublic.from_dict(known.to_dict()) == known
    True
    """

    rows: int
    models: int
    means: Mapping[str, tuple[float, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        means = {name: list(each) for name, each in self.means.items()}
        return {"rows": self.rows, "models": self.models, "means": means}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OnPublic:
        """Rebuild from :meth:`to_dict`; anything but finite numbers is refused.

        Older facts have losses in units of the largest on public rows: these are not used.
        """
        older = set(data.get("largest", ()))
        means = {str(name): tuple(map(float, each)) for name, each in data["means"].items()}
        rows, models = int(data["rows"]), int(data["models"])
        numbers = [x for each in means.values() for x in each]
        if rows < 1 or models not in (1, 2) or not all(map(math.isfinite, numbers)):
            raise ValueError("facts about public rows must be finite numbers.")
        return cls(rows, models, {name: each for name, each in means.items() if name not in older})


@dataclass(frozen=True, eq=False)
class Facts:
    """Public facts: what models answer, and what labels and errors may be.

    Parameters
    ----------
    asked : Asked
    label_range : (float, float) or None
        For numbers.
    largest_error : float
        For numbers: an error above counts as this.
    public : OnPublic or None
        What is known from public rows.
    counts : tuple of float
        For classes: public rows of each; empty if nobody has counted them.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpadapt.evaluation.answers import asked
    >>> model = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])
    >>> Facts(asked(model, None), (0.0, 4.0), 4.0).shares(np.array([[5.0]]), np.array([3.0]))
    array([[0.25]])
    """

    asked: Asked
    label_range: tuple[float, float] | None = None
    largest_error: float = 1.0
    public: OnPublic | None = None
    counts: tuple[float, ...] = ()

    @property
    def class_shares(self) -> FloatArray:
        """How large each class is among public rows; equally large if that is not known."""
        counts = np.asarray(self.counts if any(self.counts) else np.ones(len(self.asked.names)))
        return np.asarray(counts / counts.sum())

    @property
    def compared(self) -> OnPublic | None:
        """What is known from public rows about as many models."""
        known = self.public
        return known if known is not None and known.models == self.asked.models else None

    def farthest(self, square: float, rows: float, *, whole: bool = True) -> float:
        """How large a mean difference may be, by the mean square of differences on public rows.

        Twice what public rows say, and three deviations more, since they are a sample themselves.

        Parameters
        ----------
        square : float
            The mean square.
        rows : float
            Public rows that it is of.
        whole : bool, default=True
            Whether differences are whole: the mean of others is at most the root of that square.
        """
        rows, share = max(rows, 1.0), max(0.0, square)
        share += 3 * math.sqrt((share + 1 / rows) / rows)
        return min(1.0, _FARTHER * (share if whole else math.sqrt(share)))

    @cached_property
    def cleaning(self) -> AsAnswered:
        """One for all, so that models are asked once."""
        return AsAnswered(self.largest_error)

    def shares(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Absolute errors as shares of the largest; answers and labels are clamped first."""
        low, high = self.label_range or (0.0, 1.0)
        labels = np.clip(y, low, high)[:, None]
        return np.abs(np.clip(self.asked.firsts(X), low, high) - labels) / self.largest_error

    def wrong(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """1 where the class is another, or none."""
        return np.asarray(self.asked.firsts(X) != y[:, None], dtype=np.float64)

    def log_losses(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Minus the logarithm of the probability of the class, as a share of the largest."""
        known = np.isfinite(y)
        at = np.where(known, y, 0).astype(np.intp)
        rows = np.arange(len(y))
        chances = [np.where(known, p[rows, at], np.nan) for p in self.asked.probabilities(X)]
        least = np.log(LEAST_CHANCE)
        return np.log(np.clip(np.column_stack(chances), LEAST_CHANCE, 1.0)) / least

    def places(self, X: FloatArray) -> FloatArray:
        """Places of the scores of the second class on a grid of logits."""
        scores = np.column_stack([p[:, 1] for p in self.asked.probabilities(X)])
        with np.errstate(all="ignore"):
            logits = np.clip(np.log(scores) - np.log1p(-scores), -_LOGITS, _LOGITS)
        return np.floor((logits + _LOGITS) / (2 * _LOGITS) * (PLACES - 1))

    def outcomes(self, X: FloatArray, y: FloatArray) -> list[FloatArray]:
        """Probability of the second of two classes, or of the predicted one; whether it was so."""
        pairs = []
        for p, first in zip(self.asked.probabilities(X), self.asked.firsts(X).T, strict=True):
            if p.shape[1] == 2:
                chance, happened = p[:, 1], y
            else:
                at = np.where(np.isfinite(first), first, 0).astype(np.intp)
                chance, happened = p[np.arange(len(p)), at], np.where(first == y, 1.0, 0.0)
            happened = np.where(np.isfinite(y), happened, np.nan)
            pairs.append(np.column_stack([chance, happened]))
        return pairs
