"""An evaluation, checked by public facts before it is paid for, and what it can detect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpadapt import _validate
from dpadapt.privacy import Private, Schema

from .facts import (
    ComparedModels,
    EvaluationFacts,
    OnPublic,
    answered,
    compared_models,
    is_public,
    public_baseline,
)
from .intervals import BASELINE, PUBLIC_ONLY, SECOND_MODEL
from .limits import Limit, Outlook, choose_metrics, detectable_differences, with_public_losses


def outlook(
    model: Any,
    private: Private,
    *,
    epsilon: float,
    delta: float,
    metrics: Sequence[str] | None = None,
    baseline: Any = None,
    threshold: Mapping[Any, float] | None = None,
    public: Any = None,
    label_range: tuple[float, float] | None = None,
    largest_error: float | None = None,
    schema: Schema | None = None,
    confidence: float = 0.95,
) -> Outlook:
    """Which differences an evaluation would be able to see; nothing is spent, no row is read.

    Parameters
    ----------
    model, private, epsilon, delta, metrics, baseline, threshold, public
        As in :func:`evaluate`.
    label_range, largest_error, schema, confidence
        As in :func:`evaluate`.

    Returns
    -------
    Outlook

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = (X[:, 0] + rng.normal(size=500) > 0).astype(int)
    >>> one, two = (LogisticRegression().fit(X[:n], y[:n]) for n in (400, 40))
    >>> told = outlook(one, Private(X, y), baseline=two, epsilon=1.0, delta=1e-6, public=(X, y))
    >>> round(told.limits["accuracy"].limit, 2)
    0.06
    """
    options = {"metrics": metrics, "baseline": baseline, "threshold": threshold, "public": public}
    options |= {"label_range": label_range, "largest_error": largest_error, "schema": schema}
    budget = {"epsilon": epsilon, "delta": delta, "confidence": confidence}
    task = Measuring.of(model, private, **options, **budget)
    who = "private rows" if private.n_people == private.n_rows else "people"
    known = task.facts.compared
    seen = 0 if known is None else known.rows
    other = SECOND_MODEL.get(task.against, task.against)
    return Outlook(task.limits, private.n_people, who, epsilon, delta, other, seen)


def outlook_of(
    people: int,
    classes: Sequence[Any] | Mapping[Any, int] | None,
    *,
    epsilon: float,
    delta: float,
    metrics: Sequence[str] | None = None,
    label_range: tuple[float, float] | None = None,
    largest_error: float | None = None,
    confidence: float = 0.95,
    probabilities: bool = True,
) -> Outlook:
    """Which differences could be seen, before there is a model: by numbers alone.

    Parameters
    ----------
    people : int
        Private rows, or people where they have several rows each.
    classes : sequence, mapping or None
        The classes, or how many public rows each has: a rare class is measured less precisely.
        Without numbers they count as equally large. None for numbers, with ``label_range`` and
        ``largest_error``.
    epsilon, delta, metrics, label_range, largest_error, confidence
        As in :func:`evaluate`.
    probabilities : bool, default=True
        Whether both models will have probabilities of classes (``predict_proba``): where rows are
        enough they are measured as well, and everything else less precisely for it.

    Returns
    -------
    Outlook

    Examples
    --------
    >>> found = outlook_of(2000, ["no", "yes"], epsilon=1.0, delta=1e-6, metrics=["accuracy"])
    >>> round(found.limits["accuracy"].limit, 3)
    0.026
    >>> for classes in (["no", "yes"], {"no": 4500, "yes": 500}):
    ...     found = outlook_of(2000, classes, epsilon=1.0, delta=1e-6, metrics=["recall"])
    ...     print(round(found.limits["recall of yes"].limit, 2))
    0.04
    0.14
    """
    names = None if classes is None else np.asarray(list(classes))
    counts = tuple(classes.values()) if isinstance(classes, Mapping) else ()
    questions = ComparedModels(lambda X: X, 2, names, chances=probabilities and names is not None)
    span = label_range or (0.0, 1.0)
    most = span[1] - span[0] if largest_error is None else largest_error
    facts = EvaluationFacts(questions, None if names is not None else span, most, counts=counts)
    budget = {"epsilon": epsilon, "delta": delta, "confidence": confidence}
    chosen = choose_metrics(metrics, questions, people, **budget)
    limits = detectable_differences(chosen, facts, people, **budget)
    return Outlook(limits, people, "private rows", epsilon, delta, SECOND_MODEL[PUBLIC_ONLY], 0)


def public_facts(
    model: Any,
    X: Any,
    y: Any,
    *,
    baseline: Any = None,
    label_range: tuple[float, float] | None = None,
    largest_error: float | None = None,
) -> OnPublic:
    """What public rows say about two models, for evaluations that come when they are gone.

    Parameters
    ----------
    model : estimator
    X, y : array-like
        Public rows, as the model takes them, and labels.
    baseline, label_range, largest_error
        As in :func:`evaluate`, and the same there.

    Returns
    -------
    OnPublic
        For ``public=`` of :func:`evaluate`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> public_facts(model, X, y).rows
    3
    """
    questions, _, _ = _compared(model, baseline)
    known = with_public_losses(
        _facts(model, questions, label_range, largest_error), *_own(model, (X, y))
    )
    assert known.public is not None
    return known.public


class Measuring(NamedTuple):
    """What is asked, before anything is spent.

    Parameters
    ----------
    rows : Private
        Answers of the models.
    facts : Facts
    names : tuple of str
        What is measured.
    limits : dict of str to Limit
    against : str
        What the baseline is; empty if there is none.
    alone : bool
        Whether the model is the public model itself.

    Examples
    --------
    >>> Measuring._fields[2:4]
    ('names', 'limits')
    """

    rows: Private
    facts: EvaluationFacts
    names: tuple[str, ...]
    limits: dict[str, Limit]
    against: str
    alone: bool

    @classmethod
    def of(
        cls,
        model: Any,
        private: Any,
        *,
        epsilon: float,
        delta: float,
        confidence: float,
        metrics: Any,
        baseline: Any,
        threshold: Any,
        public: Any,
        label_range: Any,
        largest_error: Any,
        schema: Any,
    ) -> Measuring:
        """Check everything that is asked, by public facts."""
        confidence = _validate.fraction("confidence", confidence)
        if (1 + confidence) / 2 == 1:
            raise ValueError(
                f"confidence must be a number that differs from 1; got {confidence!r}."
            )
        budget = {"epsilon": _validate.epsilon(epsilon), "delta": _validate.delta(delta)}
        questions, against, alone = _compared(model, baseline, threshold)
        facts = _facts(model, questions, label_range, largest_error)
        rows = answered(private, model, questions, schema)
        if rows.n_rows == 0:
            raise ValueError("private has no rows: there is nothing to measure.")
        if isinstance(public, OnPublic):
            facts = replace(facts, public=public if threshold is None else None)
        elif public is not None:
            facts = with_public_losses(facts, *_own(model, public))
        budget["confidence"] = confidence
        names = choose_metrics(metrics, questions, rows.n_people, **budget)
        limits = detectable_differences(names, facts, rows.n_people, **budget)
        return cls(rows, facts, names, limits, against, alone)


def _compared(model: Any, baseline: Any, threshold: Any = None) -> tuple[ComparedModels, str, bool]:
    """Models, what the second one is, and whether the first is the public model itself."""
    against, alone = BASELINE, baseline is None and is_public(model)
    if baseline is None:
        baseline = None if alone else public_baseline(model)
        against = "" if baseline is None else PUBLIC_ONLY
    return compared_models(model, baseline, threshold), against, alone


def _counts(model: Any, names: Any) -> tuple[float, ...]:
    """Public rows of each class, if a model has counted them."""
    errors = getattr(getattr(model, "estimator_", model), "class_errors_", None)
    if errors is None:
        return ()
    known = dict(zip(errors.classes.tolist(), errors.counts.tolist(), strict=True))
    return tuple(known.get(name, 0) for name in names.tolist())


def _own(model: Any, public: Any) -> tuple[Any, Any]:
    """Public rows with the columns of a model, and labels."""
    if not isinstance(public, tuple) or len(public) != 2:
        raise TypeError("public must be (rows, labels): public=(X_public, y_public).")
    X, y = public
    names = getattr(model, "feature_names_in_", None)
    return (X[list(names)] if names is not None and hasattr(X, "columns") else X), y


def _facts(
    model: Any, questions: ComparedModels, label_range: Any, largest_error: Any
) -> EvaluationFacts:
    if questions.names is not None:
        if label_range is not None or largest_error is not None:
            raise ValueError("label_range and largest_error are for models that predict numbers.")
        return EvaluationFacts(questions, counts=_counts(model, questions.names))
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
    return EvaluationFacts(questions, (low, high), largest)
