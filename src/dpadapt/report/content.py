"""What a report says, as plain values: facts, cautions, measures, and the story of the method."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.evaluation.intervals import SECOND_MODEL, Interval
from dpadapt.features.columns import named_like_a_person
from dpadapt.learning.story import Story, label_count_sentence, plain_story
from dpadapt.privacy import Guarantee
from dpadapt.privacy.accounting.composition import compose_delta, pld_epsilon

from . import wording
from .card import QUESTIONS, Card
from .evidence import audited, charged, together, together_cost
from .wording import list_releases

if TYPE_CHECKING:
    from .page import ReportContext


def odds_sentence(guarantee: Guarantee) -> str:
    """What the guarantee means for one of the people, in odds.

    Whoever must guess which of two neighbouring tables was used, both equally likely, is right
    with a chance of at most a half and half the distance of the two distributions, and that
    distance is at most delta at epsilon 0 of all releases together.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> odds_sentence(Guarantee((GaussianEvent("mean", 1.0, 4.5),), 1e-6))[-50:]
    'a coin is right 50 times, they at most 54.5 times.'
    >>> odds_sentence(Guarantee())
    'Nothing about you was used.'
    """
    if not guarantee.events:
        return "Nothing about you was used."
    right = (1 + min(1.0, compose_delta(guarantee.events, 0.0))) / 2
    times = math.ceil(1000 * right) / 10
    return (
        "Suppose somebody wonders which of two things is true of you, thinks both equally likely, "
        "and knows everything about everybody else in the data. They may look at all that was "
        "released, as long as they like. Of 100 such guesses, a coin is right 50 times, they at "
        f"most {times:g} times."
    )


def unprotected(guarantee: Guarantee) -> tuple[str, ...]:
    """Quantities about the private table that are not protected.

    Examples
    --------
    >>> unprotected(Guarantee())
    ()
    """
    if not guarantee.events:
        return ()
    told = ["the names of the columns", "the bounds under which rows were read, from public facts"]
    if counted := wording.public_counts(guarantee.relation):
        told.insert(0, f"the number of {counted}")
    return (*told, "the classes, where classes are predicted", "how long the computation took")


def schema_digest(model: Any) -> str:
    """SHA-256 of the names of the columns, in order; of their number where they have no names.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> schema_digest(model)[:8]
    '080a9ed4'
    """
    names = getattr(model, "feature_names_in_", None)
    known = int(model.n_features_in_) if names is None else [str(name) for name in names]
    return hashlib.sha256(json.dumps([known]).encode()).hexdigest()


def columns_used(model: Any, context: ReportContext) -> dict[str, Any]:
    """Columns of the model by name, those left out and why, and what to ask about.

    Parameters
    ----------
    model : estimator
        Fitted.
    context : ReportContext

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dpadapt.report import ReportContext
    >>> model = SimpleNamespace(feature_names_in_=["age", "surname"], n_features_in_=2)
    >>> found = columns_used(model, ReportContext(left_out=[("id", "as ids"), ("key", "as ids")]))
    >>> found["left_out"], found["name_people"]
    ({'as ids': ['id', 'key']}, ['surname'])
    """
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    left_out: dict[str, list[str]] = {}
    for name, why in context.left_out:
        left_out.setdefault(why, []).append(name)
    if context.unit and context.unit not in [name for name, _ in context.left_out]:
        left_out["says whose row it is"] = [context.unit]  # public rows lack it
    return {
        "count": int(model.n_features_in_),
        "used": names,
        "left_out": left_out,
        "name_people": [name for name in names if named_like_a_person(name)],
    }


def filled(card: Card | None) -> dict[str, list[tuple[str, str, str]]]:
    """Title, answer and question of every field of a card, by section.

    Examples
    --------
    >>> filled(None)["Use"][0]
    ('Name of the product', '', 'as it will be published')
    """
    given = card or Card()
    found: dict[str, list[tuple[str, str, str]]] = {each.section: [] for each in QUESTIONS}
    for each in QUESTIONS:
        found[each.section].append((each.title, getattr(given, each.name), each.asks))
    return found


def cautions(evaluation: Any) -> list[str]:
    """What limits an evaluation: its own caveats, and those of its noise.

    Parameters
    ----------
    evaluation : mapping
        What ``Evaluation.to_dict()`` gives, or the like.

    Examples
    --------
    >>> cautions({"caveats": ["few rows"], "guarantee": {"caveats": ["the noise is seeded"]}})
    ['few rows', 'the noise is seeded']
    """
    noise = evaluation.get("guarantee") or {}
    return [str(each) for each in (*evaluation.get("caveats", ()), *noise.get("caveats", ()))]


def heading(number: int, evaluation: Any) -> str:
    """Which evaluation it is: of whom, by which rule, at which epsilon, as far as is on record.

    Parameters
    ----------
    number : int
        Place among those of the report.
    evaluation : mapping
        What ``Evaluation.to_dict()`` gives, or the like.

    Examples
    --------
    >>> heading(1, {"people": 500, "held_out": True, "guarantee": {"epsilon": 0.5}})
    'Evaluation 1: 500 private rows, held out from the fit, epsilon 0.5'
    """
    cost, facts = evaluation.get("guarantee") or {}, []
    if "people" in evaluation:
        facts.append(f"{evaluation['people']:,} {wording.people(cost.get('relation', ''))}")
    if evaluation.get("held_out"):
        facts.append("held out from the fit")
    if evaluation.get("rule"):
        facts.append(f"predicting {evaluation['rule']}")
    if "epsilon" in cost:
        facts.append(f"epsilon {cost['epsilon']:.4g}")
    return f"Evaluation {number}{': ' * bool(facts)}{', '.join(facts)}"


def measured_rows(evaluation: Any) -> list[tuple[str, ...]]:
    """Title, model, baseline, difference and verdict of each measure of an evaluation, as texts.

    Parameters
    ----------
    evaluation : mapping
        What ``Evaluation.to_dict()`` gives, or the like.

    Examples
    --------
    >>> measured_rows({"measures": {"error": {"title": "error rate",
    ...                                       "model": {"value": 0.2, "low": 0.1, "high": 0.3}}}})
    [('error rate', '0.20 (0.10 to 0.30)', '–', '–', '–')]
    """
    if not isinstance(evaluation, dict) or not isinstance(evaluation.get("measures"), dict):
        raise ValueError("evaluation: it has no measures; give what dpadapt evaluate wrote.")
    return [
        (
            str(each.get("title", name)),
            *_intervals(each),
            _verdict(each),
        )
        for name, each in evaluation["measures"].items()
    ]


def found_words(evaluation: Any) -> str:
    """In which measures a model is better or worse than what it was compared with, in words.

    Parameters
    ----------
    evaluation : mapping
        What ``Evaluation.to_dict()`` gives, or the like.

    Examples
    --------
    >>> measures = {"a": {"title": "accuracy", "verdict": "better"},
    ...             "b": {"title": "AUC", "verdict": "no verdict"}}
    >>> found_words({"measures": measures, "against": "public only"})
    'The model is better than the public model in accuracy. No verdict: AUC.'
    >>> print(found_words({"measures": {"b": measures["b"]}, "against": "baseline"}))
    No verdict: from these rows, at this epsilon, it cannot be told whether the model is better \
or worse than the baseline.
    """
    against = str(evaluation.get("against") or "")
    if not against:
        return ""
    other = SECOND_MODEL.get(against, f"the {against}")
    named: dict[str, list[str]] = {}
    for name, each in evaluation["measures"].items():
        named.setdefault(str(each.get("verdict")), []).append(str(each.get("title", name)))
    if not {"better", "worse"} & {*named}:
        return (
            "No verdict: from these rows, at this epsilon, it cannot be told whether the model is "
            f"better or worse than {other}."
        )
    ways = [way for way in ("better", "worse") if way in named]
    told = [f"{way}{'' if at else f' than {other}'} in {', '.join(named[way])}"
            for at, way in enumerate(ways)]  # fmt: skip
    rest = f" No verdict: {', '.join(named['no verdict'])}." if "no verdict" in named else ""
    return f"The model is {', and '.join(told)}.{rest}"


def counted_classes(evaluation: Any) -> list[tuple[str, str]]:
    """How many people or rows of each class were counted, with noise, as texts.

    Parameters
    ----------
    evaluation : mapping
        What ``Evaluation.to_dict()`` gives, or the like.

    Examples
    --------
    >>> counted_classes({"classes": [["yes", {"value": 41.2, "low": 6.0, "high": 76.4}]]})
    [('yes', '41 (6 to 76)')]
    """
    return [(str(name), _interval(rows, 0, None)) for name, rows in evaluation.get("classes") or ()]


def _verdict(measure: Any) -> str:
    """What is said of the model, and from which difference on that could be seen."""
    verdict, seen = measure.get("verdict"), measure.get("seen")
    return f"{verdict or '–'}{f' ({seen})' if seen else ''}"


def _intervals(measure: Any) -> tuple[str, str, str]:
    """With the digits that a screen has: those of both columns are the same."""
    model, baseline, difference = (measure.get(key) for key in ("model", "baseline", "difference"))
    largest = measure.get("largest")
    digits = finer = max((_digits(each) for each in (model, baseline) if each), default=0)
    if difference:
        finer = min(max(digits, _digits(difference)), digits + 2)
    first, second = (_interval(side, digits, largest) for side in (model, baseline))
    return first, second, _interval(difference, finer, largest)


def _digits(given: Mapping[str, float]) -> int:
    wide = given["high"] - given["low"] or abs(given["value"])
    return min(6, max(0, 1 - math.floor(math.log10(max(wide, 1e-12)))))


def _interval(given: Any, digits: int, largest: float | None) -> str:
    if not given:
        return "–"
    side = Interval(*(given[key] for key in ("value", "low", "high")))
    value, low, high = (f"{each:z,.{digits}f}" for each in (side.value, side.low, side.high))
    return f"{'–' if side.says_nothing(largest) else value} ({low} to {high})"


def filing(model: Any, context: ReportContext) -> dict[str, Any]:
    """Return the whole report as plain values, ready for JSON.

    Parameters
    ----------
    model : estimator
        Fitted, with a guarantee.
    context : ReportContext

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> from dpadapt.report import ReportContext
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> filing(model, ReportContext())["method"]
    'DiscrepancyRegressor'
    """
    import dpadapt

    estimator, guarantee = getattr(model, "estimator_", model), model.guarantee_
    errors = getattr(estimator, "class_errors_", None)
    told, second = story(estimator, guarantee), pld_epsilon(guarantee.events, guarantee.delta)
    ledger, card = context.ledger, context.card or Card()
    whole = together_cost(context.evaluations, guarantee, held_out=context.held_out) or guarantee
    return {
        "format": "dpadapt report 2",
        "title": context.title,
        "dpadapt": dpadapt.__version__,
        "method": type(estimator).__name__,
        "label": context.label,
        "guarantee": guarantee.to_dict(),
        "second_opinion_epsilon": second if math.isfinite(second) else None,
        "together": together(context.evaluations, guarantee, held_out=context.held_out),
        "for_people": odds_sentence(whole),
        "unit": wording.unit(guarantee.relation) if guarantee.events else "none",
        "relation": wording.relation(guarantee.relation),
        "unprotected": list(unprotected(guarantee)),
        "lasts": _lasts(ledger, guarantee),
        "before_private_rows": wording.BEFORE,
        "columns": columns_used(model, context),
        "releases": [
            each._asdict() for each in list_releases(guarantee.events, told.made, told.parts)
        ],
        "result": told.result or outcome(estimator, guarantee),
        "model": told.warning or told.summary,
        "classes": None if errors is None else errors.to_dict(),
        "card": asdict(card),
        "blanks": list(card.blanks),
        "evaluations": [dict(each) for each in context.evaluations],
        "audit": None
        if context.audit is None
        else {**asdict(context.audit), "sentence": audited(context.audit)},
        "ledger": None
        if ledger is None
        else {
            "dataset": ledger.name,
            "epsilon": ledger.epsilon,
            "delta": ledger.delta,
            "spent": ledger.spent(),
            "left": ledger.left(),
            "charges": len(ledger.charges),
        },
        "digests": {**dict(context.digests), "names of the columns": schema_digest(model)},
    }


def _lasts(ledger: Any, guarantee: Guarantee) -> str:
    """Who keeps count of what all releases about the same people cost."""
    if ledger is None:
        return wording.LIFE
    return wording.KEPT if charged(ledger, guarantee) else wording.NOT_IN_IT


_NEGLIGIBLE = 0.01  # of the way


def story(estimator: Any, guarantee: Guarantee) -> Story:
    """Tell how a fitted model came about; any linear model that reads private labels by default.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> told = story(model, model.guarantee_)
    >>> told.public_rows, told.reads_labels
    (2, False)
    """
    own = getattr(estimator, "_story", None)
    told = plain_story(estimator, guarantee) if own is None else own()
    if not (guarantee.events and told.reads_labels and told.assumption):
        return told
    return replace(told, assumption=f"{told.assumption} {label_count_sentence(guarantee)}")


def outcome(estimator: Any, guarantee: Guarantee) -> str:
    """What became of the public model, in a sentence, where a method does not tell it itself.

    Examples
    --------
    >>> outcome(object(), Guarantee())
    'Kept the public model: no private row was used.'
    """
    if not guarantee.events:
        return "Kept the public model: no private row was used."
    weights, share = getattr(estimator, "weights_", None), getattr(estimator, "share_", None)
    if weights is not None and hasattr(estimator, "adapted_"):
        if not estimator.adapted_ or np.ptp(weights) == 0:
            return "Kept the public model: the public rows keep their weights."
        return (
            "Moved away from the public model: public rows are weighted to look like private ones."
        )
    if isinstance(share, float) and share < _NEGLIGIBLE:
        return "Kept the public model, or nearly so: what was released is hardly more than noise."
    if isinstance(share, float):
        return f"Moved {share:.0%} of the way from the public model to what private rows ask for."
    return ""
