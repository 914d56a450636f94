"""What can be measured: for each measure what is hidden, and what its release says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import Statistic

from .answers import Asked
from .intervals import Chance, Side, losses, rankings, reliabilities
from .queries import AsAnswered, Losses, MeanLosses, Ranking, Reliability

__all__ = ["LEAST_CHANCE", "MEASURES", "Facts", "Measure", "choose"]

LEAST_CHANCE = 0.01  # a probability below counts as this in a log-loss
_BINS = 5  # of the reliability table: each costs noise
_PLACES, _LOGITS = 4096, 12.0  # of the grid of scores: logits from -12 to 12


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

    @cached_property
    def cleaning(self) -> AsAnswered:
        """One for all, so that models are asked once."""
        return AsAnswered(self.largest_error)

    def shares(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Absolute errors as shares of the largest; answers and labels are clamped first."""
        low, high = self.label_range or (0.0, 1.0)
        labels = np.clip(y, low, high)[:, None]  # NaN stays NaN: the worst
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
        return np.floor((logits + _LOGITS) / (2 * _LOGITS) * (_PLACES - 1))

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


@dataclass(frozen=True)
class Measure:
    """A measure: how it is hidden and read.

    Parameters
    ----------
    title : str
        For people.
    hide : callable
        From facts to a statistic.
    read : callable
        From a released array, facts and chance to intervals, and a table of bins or none.
    needs : {"numbers", "classes", "chances", "two classes"}
    larger : bool
        Whether more is better.

    Examples
    --------
    >>> MEASURES["mae"].title
    'mean absolute error'
    """

    title: str
    hide: Callable[[Facts], Statistic]
    read: Callable[[FloatArray, Facts, Chance], tuple[Side, tuple[tuple[float, ...], ...]]]
    needs: str
    larger: bool = False


def _of_losses(
    title: str,
    needs: str,
    loss: Callable[[Facts], Losses],
    unit: Callable[[Facts], float],
    *,
    whole: bool = False,
) -> Measure:
    def hide(facts: Facts) -> Statistic:
        return MeanLosses(facts.cleaning, loss(facts), facts.asked.models, whole, title)

    def read(found: FloatArray, facts: Facts, chance: Chance) -> tuple[Side, Any]:
        sides = losses(found, facts.asked.models, whole, chance)
        return tuple(side.times(unit(facts)) for side in sides), ()

    return Measure(title, hide, read, needs)


def _ranking(facts: Facts) -> Ranking:
    return Ranking(facts.cleaning, facts.places, facts.asked.models, _PLACES)


def _read_ranking(found: FloatArray, facts: Facts, chance: Chance) -> tuple[Side, Any]:
    return rankings(found, facts.asked.models, _ranking(facts).class_weight, chance), ()


def _reliability(facts: Facts) -> Reliability:
    return Reliability(facts.cleaning, facts.outcomes, facts.asked.models, _BINS)


def _read_reliability(found: FloatArray, facts: Facts, chance: Chance) -> tuple[Side, Any]:
    return reliabilities(found, _reliability(facts).count_weight, chance)


def _squares(facts: Facts) -> Losses:
    return lambda X, y: facts.shares(X, y) ** 2


_ERROR = _of_losses(
    "error rate", "classes", lambda facts: facts.wrong, lambda facts: 1.0, whole=True
)


def _read_accuracy(found: FloatArray, facts: Facts, chance: Chance) -> tuple[Side, Any]:
    sides, _ = _ERROR.read(found, facts, chance)
    return tuple(side.flipped(float(i < 2)) for i, side in enumerate(sides)), ()


MEASURES = {
    "mse": _of_losses(
        "mean squared error", "numbers", _squares, lambda facts: facts.largest_error**2
    ),
    "mae": _of_losses(
        "mean absolute error",
        "numbers",
        lambda facts: facts.shares,
        lambda facts: facts.largest_error,
    ),
    "error": _ERROR,
    "accuracy": replace(_ERROR, title="accuracy", read=_read_accuracy, larger=True),
    "log_loss": _of_losses(
        "log-loss",
        "chances",
        lambda facts: facts.log_losses,
        lambda facts: -math.log(LEAST_CHANCE),
    ),
    "auc": Measure("AUC", _ranking, _read_ranking, "two classes", larger=True),
    "calibration": Measure("calibration error", _reliability, _read_reliability, "chances"),
}
_USUAL = {"numbers": ("mse", "mae"), "classes": ("accuracy", "log_loss", "auc", "calibration")}
_LACKS = {
    "numbers": "is for models that predict numbers",
    "classes": "is for classifiers",
    "chances": "needs probabilities: predict_proba of the model, and of the baseline if there is "
    "one",
    "two classes": "is for two classes, with probabilities",
}


def choose(metrics: Any, asked: Asked) -> tuple[str, ...]:
    """Names of what is measured: those that were asked for, or all that the model allows.

    Parameters
    ----------
    metrics : sequence of str, or None
    asked : Asked

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpadapt.evaluation.answers import asked
    >>> choose(None, asked(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]), None))
    ('mse', 'mae')
    """
    kind = "numbers" if asked.names is None else "classes"
    if metrics is None:
        return tuple(name for name in _USUAL[kind] if _possible(name, asked))
    named = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    if not named or len(set(named)) < len(named):
        raise ValueError("metrics must be a list of different names, at least one.")
    for name in named:
        if name not in MEASURES:
            raise ValueError(f"metrics: {name!r} is none of {', '.join(MEASURES)}.")
        if not _possible(name, asked):
            raise ValueError(f"metrics: {name!r} {_LACKS[MEASURES[name].needs]}.")
    return named


def _possible(name: str, asked: Asked) -> bool:
    needs = MEASURES[name].needs
    if asked.names is None or needs == "numbers":
        return asked.names is None and needs == "numbers"
    two = needs != "two classes" or len(asked.names) == 2
    return two and (needs == "classes" or asked.chances)
