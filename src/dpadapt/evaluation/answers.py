"""From a fitted model and private rows to its answers, row by row, inside the trusted core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
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
from dpadapt.rare.choice import threshold_places
from dpadapt.rare.errors import chosen_class


@dataclass(frozen=True, eq=False)
class Asked:
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
    >>> one = asked(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]), None)
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


def asked(model: Any, baseline: Any, threshold: Mapping[Any, float] | None = None) -> Asked:
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
    >>> asked(model, None).width
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

        return Asked(numbers, len(models), *_NO)
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

    return Asked(answer, len(models), names, chances)


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


def answered(private: Any, model: Any, questions: Asked, schema: Any) -> Private:
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
    >>> answered(Private([[1.0]] * 5, [2.0] * 5), model, asked(model, None), None)
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
