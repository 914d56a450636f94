"""What can be measured: for each measure what is hidden, and what its release says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpadapt._types import FloatArray

from .class_queries import ByClass
from .facts import LEAST_CHANCE, PLACES, ComparedModels, EvaluationFacts
from .intervals import Chance, Counted, Raw, losses, rankings, reliabilities
from .queries import Losses, MeanLosses, Ranking, Reliability

Query = MeanLosses | ByClass | Ranking | Reliability
Bins = tuple[tuple[float, ...], ...]

_BINS = 5  # of the reliability table: each costs noise
_MOST_RECALLS = 10  # classes whose recall is shown unasked
_BY_CLASS = ("balanced_accuracy", "recall", "precision")


class Finding(NamedTuple):
    """One line of an evaluation, before it is cut to what can be.

    Parameters
    ----------
    name, title : str
    raw : Raw
    unit : float
        The largest value.

    Examples
    --------
    >>> from dpadapt.evaluation import Interval
    >>> Finding("mae", "mean absolute error", Raw((Interval(0.2, 0.1, 0.3),)), 4.0).unit
    4.0
    """

    name: str
    title: str
    raw: Raw
    unit: float = 1.0


@dataclass(frozen=True)
class Measure:
    """A measure: what it is read from, and how.

    Parameters
    ----------
    title : str
        For people.
    needs : {"numbers", "classes", "chances", "two classes"}
    read : callable
        From the numbers of a statistic (over the part of rows with a label, which is not among
        them), the statistic, facts and chance to findings, and a table of bins or none.
    larger : bool
        Whether more is better.

    Examples
    --------
    >>> MEASURES["mae"].title
    'mean absolute error'
    """

    title: str
    needs: str
    read: Callable[[FloatArray, Any, EvaluationFacts, Chance], tuple[list[Finding], Bins]]
    larger: bool = False


def _of_losses(
    name: str, title: str, needs: str, unit: Callable[[EvaluationFacts], float]
) -> Measure:
    def read(
        found: FloatArray, query: MeanLosses, facts: EvaluationFacts, chance: Chance
    ) -> tuple[list[Finding], Bins]:
        known, nearer, public = 1.0, 1.0, facts.compared
        if public is not None and query.models == 2 and name in public.means:
            square, rows = public.means[name][2], public.rows
            known = nearer = facts.farthest(square, rows, whole=query.whole)
            if (size := public.means.get(apart_of(name))) is not None:
                nearer = facts.farthest(square, rows, size=size[0])
        raw = losses(found, query, chance, known, min(known, nearer))
        return [Finding(name, title, raw, unit(facts))], ()

    return Measure(title, needs, read)


def apart_of(name: str) -> str:
    """Name of the mean size of differences of losses, among what is known from public rows.

    Examples
    --------
    >>> apart_of("mse")
    'mse apart'
    """
    return f"{name} apart"


def _read_accuracy(
    found: FloatArray, query: Any, facts: EvaluationFacts, chance: Chance
) -> tuple[list[Finding], Bins]:
    error, _ = _read_error(found, query, facts, chance)
    raw = error[0].raw
    sides = tuple(side.flipped(float(i < 2)) for i, side in enumerate(raw.sides))
    return [Finding("accuracy", "accuracy", raw._replace(sides=sides))], ()


def _read_error(
    found: FloatArray, query: Any, facts: EvaluationFacts, chance: Chance
) -> tuple[list[Finding], Bins]:
    if isinstance(query, MeanLosses):
        return _ERROR.read(found, query, facts, chance)
    known = _known(query, facts)
    most = facts.farthest(float(known[0] @ known[1]), known[2]) if known else 1.0
    return [Finding("error", "error rate", Counted(found, query, chance).error(most))], ()


def _read_recall(
    found: FloatArray, query: ByClass, facts: EvaluationFacts, chance: Chance
) -> tuple[list[Finding], Bins]:
    counted, most = Counted(found, query, chance), _most(query, facts)
    lines = [
        Finding(f"recall of {name}", f"recall of {name}", counted.recall(at, float(most[at])))
        for at, name in enumerate(facts.asked.names)
    ]
    return lines, ()


def _read_balanced(
    found: FloatArray, query: ByClass, facts: EvaluationFacts, chance: Chance
) -> tuple[list[Finding], Bins]:
    raw = Counted(found, query, chance).balanced(_most(query, facts))
    return [Finding("balanced_accuracy", "balanced accuracy", raw)], ()


def _read_precision(
    found: FloatArray, query: ByClass, facts: EvaluationFacts, chance: Chance
) -> tuple[list[Finding], Bins]:
    counted = Counted(found, query, chance)
    lines = [
        Finding(f"precision of {name}", f"precision of {name}", counted.precision(at))
        for at, name in enumerate(facts.asked.names)
    ]
    return lines, ()


def _known(query: ByClass, facts: EvaluationFacts) -> tuple[FloatArray, FloatArray, float] | None:
    """On public rows, the shares of classes, those in which two models differ, and rows."""
    public = facts.compared
    if public is None or query.models == 1 or "by_class" not in public.means:
        return None
    numbers = np.asarray(public.means["by_class"])
    parts = numbers[query.kinds :].reshape(-1, query.classes)
    shares = parts[query.kinds] / query.class_weight
    differ = (parts[query.kinds - 1] + shares / 2) / np.maximum(shares, 1e-12)
    return shares, differ, float(public.rows)


def _most(query: ByClass, facts: EvaluationFacts) -> FloatArray:
    """How large differences of recall may be, by public rows."""
    known = _known(query, facts)
    if known is None:
        return np.ones(query.classes)
    shares, differ, rows = known
    each = zip(differ, rows * shares, strict=True)
    return np.array([facts.farthest(float(d), float(n)) for d, n in each])


def _read_ranking(
    found: FloatArray, query: Ranking, facts: EvaluationFacts, chance: Chance
) -> tuple[list[Finding], Bins]:
    return [Finding("auc", "AUC", rankings(found, query.models, query.class_weight, chance))], ()


def _read_reliability(
    found: FloatArray, query: Reliability, facts: EvaluationFacts, chance: Chance
) -> tuple[list[Finding], Bins]:
    bins = found.reshape(query.models, 2, query.bins)
    raw, table = reliabilities(bins, query.count_weight, chance)
    return [Finding("calibration", "calibration error", raw)], table


_ERROR = _of_losses("error", "error rate", "classes", lambda facts: 1.0)
MEASURES = {
    "mse": _of_losses("mse", "mean squared error", "numbers", lambda facts: facts.largest_error**2),
    "mae": _of_losses("mae", "mean absolute error", "numbers", lambda facts: facts.largest_error),
    "error": Measure("error rate", "classes", _read_error),
    "accuracy": Measure("accuracy", "classes", _read_accuracy, larger=True),
    "balanced_accuracy": Measure("balanced accuracy", "classes", _read_balanced, larger=True),
    "recall": Measure("recall", "classes", _read_recall, larger=True),
    "precision": Measure("precision", "classes", _read_precision, larger=True),
    "log_loss": _of_losses(
        "log_loss", "log-loss", "chances", lambda facts: -math.log(LEAST_CHANCE)
    ),
    "auc": Measure("AUC", "two classes", _read_ranking, larger=True),
    "calibration": Measure("calibration error", "chances", _read_reliability),
}
_USUAL = {"numbers": ("mae",), "classes": ("accuracy", "balanced_accuracy", "recall")}
_MORE = {"numbers": ("mse",), "classes": ("log_loss", "auc")}
_LACKS = {
    "numbers": "is for models that predict numbers",
    "classes": "is for classifiers",
    "chances": "needs probabilities: predict_proba of the model, and of the baseline if there is "
    "one",
    "two classes": "is for two classes, with probabilities",
}


def source_of(name: str, names: Iterable[str]) -> str:
    """Statistic that a measure is read from: one for all that count right and wrong answers.

    Parameters
    ----------
    name : str
    names : iterable of str
        All that are measured together.

    Examples
    --------
    >>> source_of("accuracy", ["accuracy"]), source_of("accuracy", ["accuracy", "recall"])
    ('error', 'by_class')
    """
    if name in _BY_CLASS or (name in ("accuracy", "error") and set(names) & set(_BY_CLASS)):
        return "by_class"
    return "error" if name == "accuracy" else name


def statistic(source: str, facts: EvaluationFacts, names: Iterable[str]) -> Query:
    """Statistic of the private rows that measures are read from.

    Parameters
    ----------
    source : str
        As :func:`source_of` says.
    facts : Facts
    names : iterable of str
        All that are measured together.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpadapt.evaluation.facts import compared_models
    >>> model = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])
    >>> facts = EvaluationFacts(compared_models(model, None), (0.0, 4.0), 4.0)
    >>> statistic("mae", facts, ["mae"]).label
    'mean absolute error'
    """
    models = facts.asked.models
    if source == "by_class":
        classes = len(facts.asked.names)
        counted = classes > 2 and "precision" in names
        return ByClass(facts.cleaning, facts.asked.firsts, classes, models, counted)
    if source == "auc":
        return Ranking(facts.cleaning, facts.places, models, PLACES)
    if source == "calibration":
        return Reliability(facts.cleaning, facts.outcomes, models, _BINS)
    loss: dict[str, Losses] = {
        "mae": facts.shares,
        "mse": lambda X, y: facts.shares(X, y) ** 2,
        "error": facts.wrong,
        "log_loss": facts.log_losses,
    }
    title = MEASURES[source].title
    return MeanLosses(facts.cleaning, loss[source], models, source == "error", title)


def choose(metrics: Any, asked: ComparedModels, *, enough: bool = False) -> tuple[str, ...]:
    """Names of what is measured: those that were asked for, or few.

    Parameters
    ----------
    metrics : sequence of str, or None
    asked : Asked
    enough : bool, default=False
        Whether there are rows enough to measure more than few.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpadapt.evaluation.facts import compared_models
    >>> choose(None, compared_models(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]), None))
    ('mae',)
    """
    kind = "numbers" if asked.names is None else "classes"
    if metrics is None:
        usual = (*_USUAL[kind], *(_MORE[kind] if enough else ()))
        many = asked.names is not None and len(asked.names) > _MOST_RECALLS
        return tuple(
            name for name in usual if possible(name, asked) and not (many and name == "recall")
        )
    named = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    if not named or len(set(named)) < len(named):
        raise ValueError("metrics must be a list of different names, at least one.")
    for name in named:
        if name not in MEASURES:
            raise ValueError(f"metrics: {name!r} is none of {', '.join(MEASURES)}.")
        if not possible(name, asked):
            raise ValueError(f"metrics: {name!r} {_LACKS[MEASURES[name].needs]}.")
    return named


def possible(name: str, asked: ComparedModels) -> bool:
    """Whether a model can be measured so.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpadapt.evaluation.facts import compared_models
    >>> possible("auc", compared_models(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]), None))
    False
    """
    needs = MEASURES[name].needs
    if asked.names is None or needs == "numbers":
        return asked.names is None and needs == "numbers"
    two = needs != "two classes" or len(asked.names) == 2
    return two and (needs == "classes" or asked.chances)
