"""The error of a model on private rows that it was not trained on, as a release of its own."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple

from dpadapt._types import FloatArray
from dpadapt.privacy import Private, Schema, Session
from dpadapt.privacy.mechanisms import Gaussian

from .class_queries import ByClass
from .evaluation import Evaluation, Measured
from .facts import LEAST_CHANCE, EvaluationFacts
from .intervals import Chance, Counted, Interval
from .measures import MEASURES, Query, source_of, statistic
from .preparation import Measuring

_SAME = ("The model is the public model: there is nothing to compare.",)


def _explain_usage(function: Callable[..., Evaluation]) -> Callable[..., Evaluation]:
    """Refuse a call in scikit-learn's order with what to write instead."""

    @wraps(function)
    def called(*given: Any, **named: Any) -> Evaluation:
        needed = {"epsilon", "delta"} - set(named)
        private = given[1] if len(given) > 1 else named.get("private")
        if len(given) > 2 or needed or not isinstance(private, Private):
            raise TypeError(
                "evaluate takes a model, private rows with labels, and what they may cost: "
                "evaluate(model, Private(X, y), epsilon=..., delta=...). private must be a "
                f"dpadapt.Private; got {type(private).__name__}."
            )
        return function(*given, **named)

    return called


@_explain_usage
def evaluate(
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
        Rows with labels, in the columns of the model. Those without one count in nothing.
    epsilon, delta : float
        What the evaluation may cost. No default: it is a decision.
    metrics : sequence of str, optional
        Of "mae", "mse" for numbers; for classes "accuracy", "error", "balanced_accuracy",
        "recall" and "precision" (of each class), which are one release, and "log_loss", "auc"
        (two classes), "calibration". By default "mae"; or "accuracy", "balanced_accuracy" and
        "recall"; where rows are enough also "mse"; or "log_loss" and "auc". Each release costs:
        fewer are measured more precisely.
    baseline : estimator, optional
        Another model, to be measured on the same rows. By default the model of public rows that
        ``AutoRegressor`` and ``AutoClassifier`` carry, unless it is the model itself.
    threshold : mapping of class to float, optional
        Choose classes as :func:`dpadapt.predict_classes` does with it, {"yes": 0.1}, in both
        models: what is measured is that rule. It costs no more.
    public : (rows, labels), optional
        Public rows as the model takes them, with labels: they say how far the two models are apart,
        and so which differences can be seen, and how large one is shown. No private row is cut by
        them: intervals hold whatever private rows are. What ``public_facts`` has kept is of the
        model's own choice of classes, and not used with a threshold.
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
    >>> found = evaluate(model, Private(*people(1000)), epsilon=0.5, delta=1e-6)
    >>> sorted(found.measures)
    ['accuracy', 'balanced_accuracy', 'recall of 0', 'recall of 1']
    >>> bool(0.6 < found["accuracy"].model.value < 0.9), round(found.guarantee.epsilon, 6)
    (True, 0.5)
    """
    task = Measuring.of(
        model,
        private,
        epsilon=epsilon,
        delta=delta,
        metrics=metrics,
        baseline=baseline,
        threshold=threshold,
        public=public,
        label_range=label_range,
        largest_error=largest_error,
        schema=schema,
        confidence=confidence,
    )
    rows, facts, names = task.rows, task.facts, task.names
    options: dict[str, Any] = {"noise": noise, "random_state": random_state, "ledger": ledger}
    with rows.open(epsilon=epsilon, delta=delta, label="evaluation", **options) as session:
        session.leave_out_unlabelled()
        found = _released(session, names, facts)
    chance = _labelled(found, Chance(0.0, rows.n_people, confidence))
    measures, bins = _measured(found, task, chance)
    units = session.guarantee.relation == "replace-unit"
    caveats = (
        *_SAME * task.alone,
        *_caveats(facts, names, chance, units),
        *_hint(measures, facts, chance),
        *_missed(measures),
    )
    told = (rows.n_people, confidence, session.guarantee, caveats, task.against)
    classes = _classes(found, facts, rows.n_people, chance)
    return Evaluation(measures, bins, *told, classes=classes, rule=_rule(threshold))


def _rule(threshold: Mapping[Any, float] | None) -> str:
    """How classes were chosen, in words, if not by the model."""
    return ", ".join(f"{name} from {least:g} on" for name, least in (threshold or {}).items())


class _Released(NamedTuple):
    """Released numbers, their noise, and the statistic that they are of."""

    numbers: FloatArray
    noise: float
    query: Query


def _released(
    session: Session, names: tuple[str, ...], facts: EvaluationFacts
) -> dict[str, _Released]:
    """Hide all, pay for all, release all; what counts right and wrong answers is one release."""
    sources = {source_of(name, names): None for name in names}
    asked = {source: statistic(source, facts, names) for source in sources}
    hidden = {name: session.hide(each, keep=True) for name, each in asked.items()}
    grants = vars(session.plan(**{name: Gaussian.of(each) for name, each in hidden.items()}))
    return {
        name: _Released(session.release(grants[name], each), grants[name].scale, asked[name])
        for name, each in hidden.items()
    }


def _labelled(found: dict[str, _Released], sample: Chance) -> Chance:
    """Which part of the rows has a label, by all releases together."""
    weights = [each.query.label_weight for each in found.values()]
    parts = [float(each.numbers[-1]) / w for each, w in zip(found.values(), weights, strict=True)]
    precise = [(w / each.noise) ** 2 for each, w in zip(found.values(), weights, strict=True)]
    deviation = 1 / math.sqrt(math.fsum(precise))
    seen = math.fsum(map(operator.mul, parts, precise)) * deviation**2
    part = min(1.0, max(seen, deviation))
    return replace(sample, people=sample.people * part, part=part, blur=deviation / part)


def _measured(
    found: dict[str, _Released], task: Measuring, chance: Chance
) -> tuple[dict[str, Measured], tuple[tuple[float, ...], ...]]:
    """Read what was released, as means over rows with a label."""
    measures: dict[str, Measured] = {}
    bins: tuple[tuple[float, ...], ...] = ()
    for name in task.names:
        measure, source = MEASURES[name], found[source_of(name, task.names)]
        own = replace(chance, noise=source.noise / chance.part)
        numbers = source.numbers[:-1] / chance.part
        lines, table = measure.read(numbers, source.query, task.facts, own)
        for line in lines:
            sides = [each.times(line.unit) for each in line.raw.settled()]
            beside, apart = sides[1:] if len(sides) == 3 else (None, None)
            limit = task.limits[line.name].limit
            facts = (line.title, sides[0], beside, apart, measure.larger, limit, line.unit)
            measures[line.name] = Measured(*facts)
        bins = bins or table
    return measures, bins


def _classes(
    found: dict[str, _Released], facts: EvaluationFacts, people: int, chance: Chance
) -> tuple[tuple[str, Interval], ...]:
    """How many rows are of each class, if they were counted; noise alone is between.

    Where people have several rows, places are counted, of which everybody has as many: a person
    counts as one, in parts.
    """
    if "by_class" not in found:
        return ()
    released = found["by_class"]
    assert isinstance(released.query, ByClass)
    own = replace(chance, noise=released.noise / chance.part)
    counted = Counted(released.numbers[:-1] / chance.part, released.query, own)
    whole = people * chance.part
    half = chance.z * math.hypot(counted.share_noise, chance.blur)
    lines = []
    for name, share in zip(facts.asked.names, map(float, counted.shares), strict=True):
        around = Interval(share, share - half, share + half).times(whole)
        lines.append((str(name), around.cut(0.0, people)))  # not before: the whole is noisy, too
    return tuple(lines)


def _caveats(
    facts: EvaluationFacts, names: tuple[str, ...], chance: Chance, units: bool
) -> tuple[str, ...]:
    none = "a row without a label" + ", or of none of the classes," * (
        facts.asked.names is not None
    )
    told = [f"{none} counts in nothing: {_part(chance, units)}"]
    if units:
        told.append("everybody weighs the same, with one row or several")
    if facts.asked.models == 1:
        told.append("a row that the model cannot answer counts as the worst")
    else:
        both = ", but for the AUC: there it is lost for both" * ("auc" in names)
        told.append(f"a row that a model cannot answer counts as the worst for that model{both}")
    if facts.label_range is not None:
        low, high = facts.label_range
        told.append(
            f"labels and predictions are clamped to the public range {low:,.6g} to {high:,.6g}, "
            f"and an error above {facts.largest_error:,.6g} counts as that: errors beyond are not "
            "seen"
        )
    if "log_loss" in names:
        told.append(f"a probability below {LEAST_CHANCE:g} counts as {LEAST_CHANCE:g}")
    if facts.compared is not None and facts.asked.models == 2:
        told.append(
            "the value of a difference is shown no larger than the two models are apart: twice as "
            "far as on public rows and chance there allow, and farther only if private rows show "
            "it; intervals are not cut"
        )
    return tuple(f"{each[0].upper()}{each[1:]}." for each in told)


def _part(chance: Chance, units: bool = False) -> str:
    """How many rows, or people, have a label, as far as releases tell.

    Of a person, rows without a label and of none of the classes are left out before places are
    filled: all places of a person have one, or none has.
    """
    who = "people" if units else "rows"
    half = 2 * chance.blur * chance.part
    if chance.part + half >= 1:
        least = math.floor(100 * max(0.0, chance.part - half))
        return f"at least {least}% of the {who} have one"
    return f"about {min(99, round(100 * chance.part))}% of the {who} have one"


def _hint(measures: dict[str, Measured], facts: EvaluationFacts, chance: Chance) -> tuple[str, ...]:
    """Say it where released values look as if labels or rows could not be read at all."""
    if chance.part < 0.1:
        return (
            "Hardly any row has a label, if any: perhaps labels could not be read. They must be as "
            "the public ones were.",
        )
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


def _missed(measures: dict[str, Measured]) -> tuple[str, ...]:
    """Say it where a class is hardly ever found, which an accuracy does not tell."""
    return tuple(
        f"Most rows of a class are missed: {name} is {each.model.high:.2f} at most. An accuracy "
        "does not tell. A lower threshold for that class needs no new fit; "
        "class_weight='balanced' of AutoClassifier does the same in the model. Both trade other "
        "errors for these."
        for name, each in measures.items()
        if name.startswith("recall of ") and each.model.high < 0.5
    )
