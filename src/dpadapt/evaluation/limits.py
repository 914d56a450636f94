"""Before anything is spent: which difference an evaluation can detect, by public facts; its power.

The limit of a measure is the half-width that the interval of the difference will have if the two
models are alike, and a tenth more: noise and sample together, by the code that reads the releases.
An evaluation gives a verdict where the interval leaves out 0 and the difference is not below the
limit. If models are alike, that happens in about 5 of 100 evaluations (at 95 %) at most; if their
difference is twice the limit, in about 98 of 100.

How spread differences are, and how large classes, is taken from public rows: the same statistics,
without noise, with differences whose squares count double. Where there are no public rows, losses
of two models are taken to be half as far apart as they can be (answers: right and wrong in a
quarter of the rows). Classes are as large as a model, or who asks before there is one, has counted
them in public rows, and equally large only where nobody has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.calibration import gaussian_mu

from .class_queries import ByClass
from .facts import ComparedModels, EvaluationFacts, OnPublic, as_places
from .intervals import Chance
from .measures import MEASURES, Query, apart_of, choose, possible, source_of, statistic
from .queries import MeanLosses, Ranking

_SPREAD = 2.0  # squares of differences on private rows, beside those on public rows
_MARGIN = 1.1  # of a limit to a half-width: so that chance alone is seen rarely, not once in twenty
_ROUGH = "That is rough as long as it is not known how far the two models are apart."
_ENOUGH = 0.01  # of the range: noise on a difference at which more than few are measured


@dataclass(frozen=True)
class Limit:
    """Least detectable difference in one measure.

    Parameters
    ----------
    title : str
        For people.
    within : float
        Half-width of the interval of the model's own value, about.
    limit : float or None
        Least difference between the models that is detectable; None if there is nothing to compare.
    most : float
        How large a difference can be, by how far the models are apart on public rows.
    largest : float
        How large the measure itself can be.

    Examples
    --------
    >>> Limit("accuracy", 0.02, 0.03, 0.01).blind
    True
    >>> Limit("accuracy", 0.6, 1.1, largest=1.0).lost
    True
    """

    title: str
    within: float
    limit: float | None = None
    most: float = math.inf
    largest: float = math.inf

    @property
    def lost(self) -> bool:
        """Whether nothing can be told, whatever the models are."""
        if self.limit is None:
            return self.within >= self.largest / 2
        return self.limit >= self.largest

    @property
    def blind(self) -> bool:
        """Whether no difference that there can be, by public rows, is detectable."""
        return self.limit is not None and self.limit >= self.most


@dataclass(frozen=True)
class Outlook:
    """Which differences an evaluation can detect, by public facts; nothing is spent on it.

    Parameters
    ----------
    limits : mapping of str to Limit
    people : int
        Private rows, or people where they have several rows each.
    who : str
        What there are so many of.
    epsilon, delta : float
    against : str
        What the model is compared with, in words; empty if with nothing.
    public_rows : int
        Public rows that told how far the models are apart; 0 for none.

    Examples
    --------
    >>> print(Outlook({"error": Limit("error rate", 0.02, 0.03)}, 500, "private rows", 1.0, 1e-6,
    ...               "the public model", 2000))
    With 500 private rows at epsilon 1, a difference between the model and the public model can be \
seen from here on: error rate 0.03. Below that there is no verdict.
    """

    limits: Mapping[str, Limit]
    people: int
    who: str
    epsilon: float
    delta: float
    against: str
    public_rows: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """Detectable differences, in words."""
        start = f"with {self.people:,} {self.who} at epsilon {self.epsilon:.4g}"
        each = [one for one in self.limits.values() if not one.lost]
        told = [*(self._compared(each, start) if self.against else self._alone(each, start))]
        if lost := [one.title for one in self.limits.values() if one.lost]:
            few = f"with so few {self.who}" if told else f"{start}, which are too few,"
            told.append(f"{few} nothing can be told about {', '.join(lost)}.")
        return tuple(f"{one[0].upper()}{one[1:]}" for one in told)

    def _alone(self, each: list[Limit], start: str) -> Iterator[str]:
        if each:
            within = ", ".join(f"{one.title} within {_number(one.within)}" for one in each)
            yield f"{start}, this will be measured: {within}."

    def _compared(self, each: list[Limit], start: str) -> Iterator[str]:
        seen = [one for one in each if not one.blind]
        if seen:
            limits = ", ".join(f"{one.title} {_number(one.limit or 0.0)}" for one in seen)
            rough = "" if self.public_rows else f" {_ROUGH}"
            yield (
                f"{start}, a difference between the model and {self.against} can be seen from here "
                f"on: {limits}. Below that there is no verdict.{rough}"
            )
        if blind := [one for one in each if one.blind]:
            facts = "; ".join(
                f"by {_number(one.most)}{'' if number else ' at most'} in {one.title}, "
                f"{'seen' if number else 'which is seen'} from {_number(one.limit or 0.0)} on"
                for number, one in enumerate(blind)
            )
            by = f"by {self.public_rows:,} public rows, doubled, " if self.public_rows else ""
            where = "in what is left, no" if seen else f"{start}, no"
            told = f"{by}they differ {facts}"
            yield (
                f"{where} verdict is to be expected: the two models are too much alike. "
                f"{told[0].upper()}{told[1:]}. More rows or a larger epsilon would be needed."
            )

    def __str__(self) -> str:
        return " ".join(self.sentences)


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def detectable_differences(
    names: tuple[str, ...],
    facts: EvaluationFacts,
    people: int,
    *,
    epsilon: float,
    delta: float,
    confidence: float,
) -> dict[str, Limit]:
    """Detectable differences of all lines of an evaluation, by their names; from public facts.

    Parameters
    ----------
    names : tuple of str
        What is measured.
    facts : Facts
    people : int
    epsilon, delta, confidence : float

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpadapt.evaluation.facts import compared_models
    >>> model = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> budget = {"epsilon": 1.0, "delta": 1e-6, "confidence": 0.95}
    >>> facts = EvaluationFacts(compared_models(model, model))
    >>> found = detectable_differences(("accuracy",), facts, 1000, **budget)
    >>> round(found["accuracy"].limit, 3)
    0.039
    """
    sources = {source_of(name, names): None for name in names}
    queries = {source: statistic(source, facts, names) for source in sources}
    noise = _noise(queries, people, epsilon, delta)
    deviation = 1 / math.hypot(*(queries[each].label_weight / noise[each] for each in queries))
    chance = Chance(0.0, people, confidence, 1.0, deviation)
    limits: dict[str, Limit] = {}
    for name in names:
        source = source_of(name, names)
        query, own = queries[source], replace(chance, noise=noise[source])
        numbers = _equally_good(query, _expected(source, query, facts))
        for line in MEASURES[name].read(numbers, query, facts, own)[0]:
            half = [(side.high - side.low) / 2 * line.unit for side in line.raw.sides]
            alone, most = len(half) == 1, line.raw.most * line.unit
            limits[line.name] = Limit(
                line.title,
                half[0],
                None if alone else _MARGIN * half[2],
                math.inf if alone else most,
                line.unit,
            )
    return limits


def _noise(
    queries: Mapping[str, Query], people: int, epsilon: float, delta: float
) -> dict[str, float]:
    """Deviation of the noise on each statistic, if they share a budget evenly."""
    each = math.sqrt(len(queries)) / gaussian_mu(epsilon, delta) / people
    return {source: query.magnitude * each for source, query in queries.items()}


def choose_metrics(
    metrics: Any,
    asked: ComparedModels,
    people: int,
    *,
    epsilon: float,
    delta: float,
    confidence: float,
) -> tuple[str, ...]:
    """What is measured: what was asked for, else few; more where there are rows enough.

    Rows are enough if, with all that is measured then, the noise on a difference of accuracies (of
    mean absolute errors, as a share of the largest) stays within 0.01 at the confidence asked for.

    Parameters
    ----------
    metrics : sequence of str, or None
    asked : Asked
    people : int
    epsilon, delta, confidence : float

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpadapt.evaluation.facts import compared_models
    >>> model, budget = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"]), (1.0, 1e-6, 0.95)
    >>> budget = {"epsilon": 1.0, "delta": 1e-6, "confidence": 0.95}
    >>> choose_metrics(None, compared_models(model, model), 1000, **budget)
    ('accuracy', 'balanced_accuracy', 'recall')
    >>> choose_metrics(None, compared_models(model, model), 10_000, **budget)[3:]
    ('log_loss', 'auc')
    """
    names = choose(metrics, asked)
    if metrics is not None:
        return names
    more, facts = choose(None, asked, enough=True), EvaluationFacts(asked, (0.0, 1.0))
    sources = {source_of(name, more): None for name in more}
    queries = {source: statistic(source, facts, more) for source in sources}
    first = source_of(more[0], more)
    noise = _noise(queries, people, epsilon, delta)[first]
    own = Chance(noise, people, confidence)
    share = 1.0 if asked.names is None else len(asked.names) / (len(asked.names) + 1)
    return more if own.z * noise * math.sqrt(2 * share) <= _ENOUGH else names


def with_public_losses(facts: EvaluationFacts, X: Any, y: Any) -> EvaluationFacts:
    """The same facts, with what public rows say about the models.

    Parameters
    ----------
    facts : Facts
    X : array-like or DataFrame
        Public rows, as the models take them.
    y : array-like
        Their labels; rows without one are left out.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpadapt.evaluation.facts import compared_models
    >>> one, two = (LinearRegression().fit([[0.0], [1.0]], [0.0, end]) for end in (1.0, 1.1))
    >>> facts = EvaluationFacts(compared_models(one, two), (0.0, 2.0), 2.0)
    >>> facts = with_public_losses(facts, [[0.0], [1.0]], [0.0, 1.0])
    >>> round(facts.public.means["mae"][2], 5)  # mean square of differences, over the largest
    0.00125
    """
    names = facts.asked.names
    labels = np.asarray(y, dtype=np.float64) if names is None else as_places(y, names)
    kept = np.isfinite(labels)
    if len(labels) != len(X) or not kept.any():
        raise ValueError("public must be (rows, labels), as many labels as rows.")
    rows = X.loc[kept] if hasattr(X, "loc") else np.asarray(X)[kept]
    labels = labels[kept]
    answers, means = facts.asked.answer(rows), {}
    for name, first in zip(("model", "baseline"), facts.asked.firsts(answers).T, strict=False):
        if np.isnan(first).all():
            raise ValueError(
                f"public: {name} answers none of these rows; give rows as it takes them."
            )
    for name in ("mae", "mse", "error", "recall", "log_loss", "auc", "calibration"):
        if possible(name, facts.asked):
            source = source_of(name, (name,))
            query = statistic(source, facts, ("precision",))
            if isinstance(query, Ranking):
                numbers = query.ranked(query.counts(answers, labels), len(labels))
            else:
                numbers = query.block(answers, labels) / len(labels)
            means[source] = tuple(map(float, numbers[:-1]))
            if isinstance(query, MeanLosses) and query.models == 2:
                each = np.clip(np.nan_to_num(query.losses(answers, labels), nan=1.0), 0.0, 1.0)
                means[apart_of(source)] = (float(np.abs(each[:, 0] - each[:, 1]).mean()),)
    return replace(facts, public=OnPublic(len(labels), facts.asked.models, means))


def _expected(source: str, query: Query, facts: EvaluationFacts) -> FloatArray:
    """What would be released without noise: as on public rows, or as if nothing were known."""
    public = facts.compared
    size = query.models + 1 if isinstance(query, Ranking) else query.shape(0)[0] - 1
    if public is not None and len(public.means.get(source, ())) >= size:
        return np.array(public.means[source][:size])
    if isinstance(query, MeanLosses):
        numbers = np.zeros(size)
        if query.models == 2:
            numbers[2] = 0.25 / _SPREAD
        return numbers
    if isinstance(query, ByClass):
        wrong = np.array([-0.25, -0.25, 0.25 / _SPREAD - 0.5][: query.kinds])
        each = facts.class_shares
        parts = [wrong, np.outer(wrong, each).ravel(), query.class_weight * each]
        parts += [query.predicted_weight * each] * (query.predicted * query.models)
        return np.concatenate(parts)
    if isinstance(query, Ranking):
        first, second = facts.class_shares
        pairs = [0.25 * first * second] * query.models
        return np.array([*pairs, query.class_weight * (second - first) / 2])
    counts = np.full(query.bins, query.count_weight / query.bins)
    return np.tile(np.concatenate([counts, np.zeros(query.bins)]), query.models)


def _equally_good(query: Query, numbers: FloatArray) -> FloatArray:
    """The same for two models that are equally good, with differences twice as spread."""
    if query.models == 1:
        return numbers
    numbers = numbers.copy()
    if isinstance(query, MeanLosses):
        numbers[1], numbers[2] = 0.0, min(_SPREAD * numbers[2], 1.0)
    elif isinstance(query, ByClass):
        classes, kinds = query.classes, query.kinds
        parts = numbers[kinds:].reshape(-1, classes)
        shares = parts[kinds] / query.class_weight
        parts[1] = parts[0]
        parts[2] = np.minimum(_SPREAD * (parts[2] + shares / 2), shares) - shares / 2
        numbers[:kinds] = parts[:kinds].sum(axis=1)
    elif isinstance(query, Ranking):
        numbers[1] = numbers[0]
    else:
        half = len(numbers) // 2
        numbers[half:] = numbers[:half]
    return numbers
