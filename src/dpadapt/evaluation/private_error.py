"""The error of a model on private rows that it was not trained on, as a release of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpadapt import _validate
from dpadapt.privacy import Private, Schema, Session
from dpadapt.privacy.mechanisms import Gaussian

from .answers import Asked, answered, asked, is_public, public_baseline
from .evaluation import Evaluation, Measured
from .intervals import Chance
from .measures import LEAST_CHANCE, MEASURES, Facts, choose

__all__ = ["evaluate"]

_SAME = ("The model is the public model: there is nothing to compare.",)


def evaluate(
    model: Any,
    private: Private,
    *,
    epsilon: float,
    delta: float,
    metrics: Sequence[str] | None = None,
    baseline: Any = None,
    label_range: tuple[float, float] | None = None,
    largest_error: float | None = None,
    schema: Schema | None = None,
    confidence: float = 0.95,
    ledger: Any = None,
    noise: str = "secure",
    random_state: int | None = None,
) -> Evaluation:
    """Measure the error of a fitted model on private rows, with a guarantee for them.

    The rows must not be those that the model was trained on: its error there says little about
    other people. Everything is released with noise, charged before it is drawn.

    Parameters
    ----------
    model : estimator
        Fitted: of this library, an :class:`~dpadapt.AdaptationPipeline`, or any with ``predict``.
        It must treat every row on its own.
    private : Private
        Rows with labels, in the columns of the model.
    epsilon, delta : float
        What the evaluation may cost. No default: it is a decision.
    metrics : sequence of str, optional
        Of "mse", "mae" for numbers; "accuracy", "error", "log_loss", "auc" (two classes) and
        "calibration" for classes. By default all that the model allows. Each costs: fewer are
        measured more precisely.
    baseline : estimator, optional
        Another model, to be measured on the same rows. By default the model of public rows that
        ``AutoRegressor`` and ``AutoClassifier`` carry, unless it is the model itself.
    label_range : (float, float), optional
        For numbers: public range to which labels and predictions are clamped. By default the one
        to which ``AutoRegressor`` cuts its public scores: the public labels without a thousandth
        at either end, and a little more. ``dpadapt evaluate`` has the whole range from ``fit``.
    largest_error : float, optional
        For numbers: an error above counts as this. Public; by default the width of the range. The
        smaller, the less noise: noise on a mean squared error grows with its square.
    schema : Schema, optional
        How private cells are read; by default as the model's own table features need them, or as
        numbers where it has none. ``Schema.of(public rows)`` is never wrong.
    confidence : float, default=0.95
        Of the intervals, which hold both sampling and noise.
    ledger : Account, optional
        The durable budget to charge.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, optional
        The seed, for ``noise="seeded"`` only.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     X = rng.normal(size=(n, 2))
    ...     return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    >>> model = LogisticRegression().fit(*people(500))
    >>> found = evaluate(model, Private(*people(5000)), epsilon=0.5, delta=1e-6)
    >>> sorted(found.measures)
    ['accuracy', 'auc', 'calibration', 'log_loss']
    >>> bool(0.6 < found["accuracy"].model.value < 0.9), round(found.guarantee.epsilon, 6)
    (True, 0.5)
    """
    confidence = _validate.fraction("confidence", confidence)
    if (1 + confidence) / 2 == 1:
        raise ValueError(f"confidence must be a number that differs from 1; got {confidence!r}.")
    against, alone = "baseline", baseline is None and is_public(model)
    if baseline is None:
        baseline = None if alone else public_baseline(model)
        against = "" if baseline is None else "public only"
    questions = asked(model, baseline)
    facts = _facts(model, questions, label_range, largest_error)
    names = choose(metrics, questions)
    rows = answered(private, model, questions, schema)
    if rows.n_rows == 0:
        raise ValueError("private has no rows: there is nothing to measure.")
    options: dict[str, Any] = {"noise": noise, "random_state": random_state, "ledger": ledger}
    with rows.open(epsilon=epsilon, delta=delta, label="evaluation", **options) as session:
        measures, bins = _measured(session, names, facts, Chance(0.0, rows.n_people, confidence))
    caveats = (*_SAME * alone, *_caveats(facts, names), *_hint(measures, facts))
    told = (rows.n_people, confidence, session.guarantee, caveats, against)
    return Evaluation(measures, bins, *told)


def _measured(
    session: Session, names: tuple[str, ...], facts: Facts, sample: Chance
) -> tuple[dict[str, Measured], tuple[tuple[float, ...], ...]]:
    """Hide all, pay for all, release all; accuracy and error are one release."""
    released = {"error" if name == "accuracy" else name: name for name in names}
    hidden = {name: session.hide(MEASURES[name].hide(facts), keep=True) for name in released}
    grants = session.plan(**{name: Gaussian.of(each) for name, each in hidden.items()})
    found = {name: session.release(getattr(grants, name), hidden[name]) for name in released}
    measures: dict[str, Measured] = {}
    bins: tuple[tuple[float, ...], ...] = ()
    for name in names:
        measure, source = MEASURES[name], "error" if name == "accuracy" else name
        chance = replace(sample, noise=getattr(grants, source).scale)
        sides, table = measure.read(found[source], facts, chance)
        own, beside, apart = sides if len(sides) == 3 else (sides[0], None, None)
        measures[name] = Measured(measure.title, own, beside, apart, measure.larger)
        bins = bins or table
    return measures, bins


def _facts(model: Any, questions: Asked, label_range: Any, largest_error: Any) -> Facts:
    if questions.names is not None:
        if label_range is not None or largest_error is not None:
            raise ValueError("label_range and largest_error are for models that predict numbers.")
        return Facts(questions)
    known = label_range
    for each in (model, getattr(model, "estimator_", None)):
        if known is None:
            public = getattr(each, "public_model_", None)
            known = getattr(public, "score_range", None) or getattr(each, "label_range", None)
    if known is None:
        raise ValueError(
            "label_range must be given, as (low, high): labels are clamped to it. Take it from "
            "public rows or from what the label means, not from the private labels."
        )
    low, high = (float(each) for each in known)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"label_range must be (low, high), low below high; got {known!r}.")
    largest = high - low
    if not (math.isfinite(largest * largest) and largest * largest > 0):
        raise ValueError(
            f"label_range must have a width whose square is a number; got {known!r}. Scale the "
            "labels."
        )
    if largest_error is not None:
        largest = min(largest, _validate.positive("largest_error", largest_error))
        if largest * largest == 0:
            raise ValueError(f"largest_error is too small: its square is 0; got {largest_error!r}.")
    return Facts(questions, (low, high), largest)


def _caveats(facts: Facts, names: tuple[str, ...]) -> tuple[str, ...]:
    told = ["a row that the model cannot answer, or whose label is missing, counts as the worst"]
    if facts.label_range is not None:
        low, high = facts.label_range
        told.append(
            f"labels and predictions are clamped to the public range {low:g} to {high:g}, and an "
            f"error above {facts.largest_error:g} counts as that: errors beyond are not seen"
        )
    if "log_loss" in names:
        told.append(f"a probability below {LEAST_CHANCE:g} counts as {LEAST_CHANCE:g}")
    if facts.asked.names is not None:
        told.append("a label that is none of the model's classes counts as an error")
    return tuple(f"{each[0].upper()}{each[1:]}." for each in told)


def _hint(measures: dict[str, Measured], facts: Facts) -> tuple[str, ...]:
    """Say it where released values look as if the model could not answer at all."""
    worst = {"error": 1.0, "mae": facts.largest_error, "mse": facts.largest_error**2}
    lost = any(
        name in worst and each.model.low > 0.9 * worst[name] for name, each in measures.items()
    )
    if not lost and not ("accuracy" in measures and measures["accuracy"].model.high < 0.1):
        return ()
    return (
        "Nearly all rows count as the worst: perhaps the model could not read them. See that the "
        "private columns and labels are as the public ones were, or give a schema.",
    )
