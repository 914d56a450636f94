"""Public facts of an evaluation: what models answer, and what labels and errors may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpadapt._types import FloatArray
from dpadapt.features import DateCells, NumberCells, TextCells
from dpadapt.learning.checks import check_private, check_width
from dpadapt.privacy import Private, Schema
from dpadapt.privacy.rows.total import by_rows, taken
from dpadapt.rare import chosen_class, threshold_places

from .queries import AsAnswered


@dataclass(frozen=True, eq=False)
class ComparedModels:
    """One or two models, and how their answers stand in a row.

    For numbers a model answers one number; for classes the place of the class, then (``chances``)
    a probability for each class.

    Parameters
    ----------
    answer : callable
        From rows, as the models take them, to all answers side by side; NaN for those of a model to
        a row on which it fails.
    models : {1, 2}
    names : ndarray or None
        The classes; None for numbers.
    chances : bool
        Whether there are probabilities.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> one = compared_models(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]), None)
    >>> one.width, one.answer(np.array([[3.0]]))
    (1, array([[6.]]))
    """

    answer: Callable[[Any], FloatArray]
    models: int
    names: Any
    chances: bool

    @property
    def each(self) -> int:
        """Numbers that one model answers."""
        return 1 + len(self.names) * self.chances if self.names is not None else 1

    @property
    def width(self) -> int:
        """Numbers that all models answer."""
        return self.models * self.each

    def firsts(self, X: FloatArray) -> FloatArray:
        """Numbers, or places of the predicted classes; a column for each model."""
        return X[:, :: self.each]

    def probabilities(self, X: FloatArray) -> list[FloatArray]:
        """Probabilities of the classes, of each model."""
        starts = range(1, self.width, self.each)
        return [X[:, start : start + self.each - 1] for start in starts]


def compared_models(
    model: Any, baseline: Any, threshold: Mapping[Any, float] | None = None
) -> ComparedModels:
    """Find out what models answer; from public facts.

    Parameters
    ----------
    model : estimator
        Fitted.
    baseline : estimator or None
        Fitted, for the same rows.
    threshold : mapping of class to float, optional
        Both choose classes by it, as :func:`dpadapt.predict_classes` does.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> compared_models(model, None).width
    3
    """
    models = [_own(model, "model")]
    if baseline is not None:
        models.append(_own(baseline, "baseline"))
    names = _classes(models[0])
    if names is None and any(_classes(each) is not None for each in models):
        raise ValueError("baseline predicts classes, and model numbers: they cannot be compared.")
    chances = names is not None and all(hasattr(each, "predict_proba") for each in models)
    if threshold is not None and not chances:
        raise ValueError(
            "threshold needs probabilities of classes: predict_proba of the model, and of the "
            "baseline if there is one."
        )
    if names is None:
        if hasattr(models[0], "__sklearn_tags__") and is_classifier(models[0]):
            raise ValueError("model: a classifier must tell its classes, in classes_.")

        def number(at: int, X: Any) -> list[Any]:
            return [models[at].predict(X)]

        def numbers(X: Any) -> FloatArray:
            return np.hstack([_own_rows(partial(number, at), X, 1) for at in range(len(models))])

        return ComparedModels(numbers, len(models), *_NO)
    least = None if threshold is None else threshold_places(threshold, names)
    orders = [_order(each, names.tolist()) for each in models]

    def of_one(at: int, X: Any) -> list[Any]:
        if not chances:
            return [as_places(models[at].predict(X), names)]
        chance = np.asarray(models[at].predict_proba(X), dtype=np.float64)[:, orders[at]]
        if least is None:
            return [as_places(models[at].predict(X), names), chance]
        none = np.isnan(chance).any(axis=1)
        return [np.where(none, np.nan, chosen_class(chance, least)), chance]

    def answer(X: Any) -> FloatArray:
        width = 1 + len(names) * chances
        each = [_own_rows(partial(of_one, at), X, width) for at in range(len(models))]
        return np.hstack(each)

    return ComparedModels(answer, len(models), names, chances)


def _order(model: Any, names: list[Any]) -> list[int]:
    """Places of the classes of a model, in the order of others."""
    own = _classes(model)
    if own is None or set(own.tolist()) != set(names):
        raise ValueError(
            "baseline must have the classes of model, of the same type (0 is not '0')."
        )
    return [own.tolist().index(name) for name in names]


_NO = (None, False)  # classes and probabilities of a model of numbers


def _own_rows(answer: Callable[[Any], list[Any]], X: Any, width: int) -> FloatArray:
    """What one model answers, side by side; NaN for a row on which it fails, whoever else does not.

    Models are asked one after the other, so that what one of them cannot answer is not lost for the
    other. Where one of them is foreign code, X is a single row, with a fresh state of all models
    (:mod:`dpadapt.privacy.rows.foreign`); else it is a block, and models are known to treat every
    row on its own. A row's answers are a function of this row alone either way.
    """
    rows = int(X.shape[0]) if hasattr(X, "shape") else len(X)

    def call(places: Any) -> tuple[FloatArray]:
        given = taken(X, places)
        given = given.copy() if hasattr(given, "copy") else given
        tables = [np.asarray(each, dtype=np.float64) for each in answer(given)]
        found = np.hstack([each.reshape(len(each), -1) for each in tables])
        if found.shape != (rows if places is None else len(places), width):
            raise ValueError("a model must answer every row.")
        return (found,)

    results, failed = by_rows(call, rows)
    if results is None:
        return np.full((rows, width), np.nan)
    return np.where(failed[:, None], np.nan, results[0])


def as_places(labels: Any, names: Any) -> FloatArray:
    """Places of labels among the names of classes; NaN for none of them.

    Examples
    --------
    >>> as_places(["b", "c"], ["a", "b"])
    array([ 1., nan])
    """
    same = np.asarray(labels).reshape(-1, 1) == np.asarray(names).reshape(1, -1)
    return np.where(same.any(axis=1), same.argmax(axis=1), np.nan)


def _classes(model: Any) -> Any:
    for each in (model, getattr(model, "estimator_", None)):
        names = getattr(each, "classes_", getattr(each, "classes", None))
        if names is not None:
            return np.asarray(names)
    return None


def _own(model: Any, name: str) -> Any:
    """Copy a model: one that remembers what it was asked must not keep private rows."""
    if not hasattr(model, "predict"):
        raise TypeError(f"{name} must be a fitted model with predict; got {type(model).__name__}.")
    if hasattr(model, "fit"):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise ValueError(f"{name} is not fitted yet; call fit first.") from None
    parts = (model, getattr(model, "estimator", None), getattr(model, "estimator_", None))
    accounts = [getattr(each, "ledger", None) for each in parts]
    try:
        return deepcopy(model, {id(each): each for each in accounts if each is not None})
    except TypeError:
        raise TypeError(
            f"{name}: a {type(model).__name__} cannot be copied, and whatever keeps what it was "
            "asked must not be asked private rows. Evaluate a model that is released as a whole."
        ) from None


def public_baseline(model: Any) -> Any:
    """Model of public rows alone that a fitted model carries; None if it has none.

    Examples
    --------
    >>> from dpadapt import AutoRegressor
    >>> auto = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> auto = auto.fit([[0.0], [1.0], [2.0]] * 9, [0.0, 1.0, 2.0] * 9)
    >>> public_baseline(auto) is auto.public_model_
    True
    """
    inner = getattr(model, "estimator_", None)
    if inner is None:
        return getattr(model, "public_model_", None)
    public = getattr(inner, "public_model_", None)
    return None if public is None else _Through(model.transformer_, public)


def is_public(model: Any) -> bool:
    """Whether a model answers as the model of public rows does that it carries.

    That is a public fact: numbers of the released model say it. No row is looked at.

    Examples
    --------
    >>> from dpadapt import AutoRegressor
    >>> auto = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> is_public(auto.fit([[0.0], [1.0], [2.0]] * 9, [0.0, 1.0, 2.0] * 9))
    True
    """
    inner = getattr(model, "estimator_", model)
    public, moved = getattr(inner, "public_model_", None), getattr(inner, "adapted_", None)
    if public is None or np.ptp(getattr(inner, "class_weights_", (1.0,))) > 0:
        return False
    if moved is None:
        return True
    if hasattr(moved, "on_scores"):  # what is added to numbers
        return not any(map(np.any, (moved.constant, moved.on_scores, moved.on_features)))
    if not hasattr(moved, "coefficients") or np.any(moved.move if moved.move is not None else 0):
        return False
    classes = moved.coefficients.shape[1]
    each = np.eye(classes) if classes > 2 else np.array([[-0.5, 0.5]])
    start = np.zeros_like(moved.coefficients)
    start[: len(public.weights) * len(each)] = np.kron(public.weights[:, None], each)
    return bool(np.allclose(moved.logit_scale * moved.coefficients, start, rtol=1e-9, atol=1e-12))


class _Through:
    """A model that takes rows through fitted transformers."""

    def __init__(self, transformer: Any, model: Any) -> None:
        self.transformer, self.model, self.classes = transformer, model, _classes(model)

    def predict(self, X: Any) -> Any:
        return self.model.predict(self._rows(X))

    @available_if(lambda through: hasattr(through.model, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(self._rows(X))

    def _rows(self, X: Any) -> Any:
        rows = self.transformer.transform(X)
        return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def answered(private: Any, model: Any, questions: ComparedModels, schema: Any) -> Private:
    """Private rows as the answers of models to them, labels as places among the classes.

    Parameters
    ----------
    private : Private
        With labels.
    model : estimator
        Says which columns it takes.
    questions : Asked
    schema : Schema, optional
        How cells are read; by default as the table features of the model say, which must then say
        it; as numbers where the model has none.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])
    >>> answered(Private([[1.0]] * 5, [2.0] * 5), model, compared_models(model, None), None)
    Private(5 rows, 1 column, labelled)
    """
    check_private(private)
    if not private.labelled:
        raise ValueError("private must have labels: Private(X, y). Error is measured against them.")
    names = getattr(model, "feature_names_in_", None)
    if schema is None:
        schema = _table_schema(model, names)
    if schema is not None:
        rows = private.read(schema)
    elif names is not None and private.columns is not None:
        rows = private.select(list(names))
    else:
        rows = private
    width = getattr(model, "n_features_in_", None)
    if width is not None:
        check_width(rows, int(width))
    rows = rows.map(questions.answer, questions.width)
    return rows if questions.names is None else rows.encode(questions.names)


def _table_schema(model: Any, names: Any) -> Schema | None:
    """Kinds of columns by the table features of a model; None where it has none: numbers.

    Dates are read as text: their format is the model's, and typed dates are written in ISO.
    """
    features = _table_features(model)
    if features is None:
        return None
    kinds: dict[Any, str] = {}
    for _, step, columns in features.transformers_:
        first = step.steps[0][1] if isinstance(step, Pipeline) else step
        kind = next((kind for cells, kind in _KINDS if isinstance(first, cells)), None)
        if kind is not None and not isinstance(columns, (str, slice)):
            kinds |= dict.fromkeys(columns, kind)
    if names is None or set(kinds) != set(names):
        raise ValueError(
            "schema must be given: the model makes features of a table in a way that does not say "
            "what its columns are. Give schema=Schema.of(public rows). Nothing was charged."
        )
    return Schema.given({name: kinds[name] for name in names})


_KINDS = ((NumberCells, "number"), (TextCells, "text"), (DateCells, "text"))


def _table_features(model: Any) -> ColumnTransformer | None:
    """What reads the columns of a table first, if a model has it."""
    reader = getattr(getattr(model, "public_model_", None), "reader", None)
    found = getattr(reader, "transformer", None) or getattr(model, "transformer_", model)
    while isinstance(found, Pipeline):
        found = found.steps[0][1]
    return found if isinstance(found, ColumnTransformer) else None


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
class EvaluationFacts:
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
    >>> from dpadapt.evaluation.facts import compared_models
    >>> model = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])
    >>> facts = EvaluationFacts(compared_models(model, None), (0.0, 4.0), 4.0)
    >>> facts.shares(np.array([[5.0]]), np.array([3.0]))
    array([[0.25]])
    """

    asked: ComparedModels
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

    def farthest(
        self, square: float, rows: float, *, whole: bool = True, size: float | None = None
    ) -> float:
        """How large a mean difference may be, by differences on public rows.

        Twice what public rows say, and three deviations more, since they are a sample themselves.

        Parameters
        ----------
        square : float
            Their mean square.
        rows : float
            Public rows that it is of.
        whole : bool, default=True
            Whether differences are whole: their mean size is that square. The one of others is at
            most its root.
        size : float, optional
            Their mean size, if it is known: where few rows make the square, far below that root.
        """
        rows, share = max(rows, 1.0), max(0.0, square)
        deviation = math.sqrt((share + 1 / rows) / rows)
        if size is not None:
            return min(1.0, _FARTHER * (max(0.0, size) + 3 * deviation))
        share += 3 * deviation
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
