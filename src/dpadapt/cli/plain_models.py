"""Linear models as plain data: coefficients, and how the features come from the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.pipeline import AdaptationPipeline

from .tables import TableError

_FORMAT = "dpadapt linear model 1"


@dataclass(frozen=True)
class PlainModel:
    """A linear model: one score a class, or one number.

    Parameters
    ----------
    features : list of dict
        Name of each feature, and how it comes from a column.
    weights : ndarray of shape (k, d)
    constants : ndarray of shape (k,)
    classes : list or None
        None for numbers.
    guarantee : dict
    """

    features: list[dict[str, Any]]
    weights: NDArray[np.float64]
    constants: NDArray[np.float64]
    classes: list[Any] | None
    guarantee: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        task = "regression" if self.classes is None else "classification"
        answer = (
            "the score is the prediction"
            if self.classes is None
            else "the class with the highest score; probabilities are the softmax of the scores"
        )
        return {
            "format": _FORMAT,
            "task": task,
            "classes": self.classes,
            "features": self.features,
            "coefficients": self.weights.tolist(),
            "intercepts": self.constants.tolist(),
            "answer": answer,
            "guarantee": self.guarantee,
        }


def plain_model(model: Any) -> PlainModel:
    """Return a fitted linear model as plain data; refuse one that is not linear.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyRegressor
    >>> model = PublicOnlyRegressor().fit([[0.0], [1.0], [2.0]] * 9, [1.0, 3.0, 5.0] * 9)
    >>> plain_model(model).weights.round(1)
    array([[2.]])
    """
    fitted = getattr(model, "estimator_", model)
    if not isinstance(fitted, (LinearClassifier, LinearRegressor)):
        raise TableError(
            f"this {type(fitted).__name__} is neither linear nor one of AutoRegressor and "
            "AutoClassifier, and cannot be written. Serve it with dpadapt predict or "
            "dpadapt.load_model, which need no private row; or fit with another --estimator, "
            "which costs privacy again."
        )
    weights = np.atleast_2d(np.asarray(fitted.coef_, dtype=np.float64))
    constants = np.ravel(np.asarray(fitted.intercept_, dtype=np.float64))
    if constants.size == 1:
        constants = np.full(len(weights), constants[0])
    _check_linear(fitted, weights, constants)
    classes = None
    if hasattr(fitted, "classes_"):
        classes = np.asarray(fitted.classes_).tolist()
        if len(weights) == 1:  # the score of the second class, beside which the first has 0
            weights = np.vstack([np.zeros_like(weights), weights])
            constants = np.append(0.0, constants)
    features = told_features(model, weights.shape[1])
    return PlainModel(features, weights, constants, classes, model.guarantee_.to_dict())


def _check_linear(fitted: Any, weights: Any, constants: Any) -> None:
    """Try some rows: rows of some models are made shorter before they are multiplied."""
    rows: Any = np.random.default_rng(0).normal(size=(8, weights.shape[1])) * 3
    expected = rows @ weights.T + constants
    names = getattr(fitted, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
    answer = getattr(fitted, "decision_function", fitted.predict)
    found = np.asarray(answer(rows)).reshape(len(expected), -1)
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-9, atol=1e-9):
        raise TableError(
            f"this {type(fitted).__name__} changes rows before it multiplies them, and cannot be "
            "written as coefficients alone."
        )


def told_features(model: Any, count: int) -> list[dict[str, Any]]:
    """Name of each feature of a fitted model, and how it comes from a column.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyRegressor
    >>> model = PublicOnlyRegressor().fit([[0.0], [1.0], [2.0]] * 9, [1.0, 3.0, 5.0] * 9)
    >>> told_features(model, 1)
    [{'name': 'x0', 'column': 'x0', 'kind': 'number'}]
    """
    own = getattr(getattr(model, "public_model_", None), "reader", None)
    if not isinstance(model, AdaptationPipeline) and getattr(own, "transformer", None) is None:
        names = getattr(model, "feature_names_in_", [f"x{i}" for i in range(count)])
        return [{"name": str(name), "column": str(name), "kind": "number"} for name in names]
    try:
        table = own.transformer if own else None
        if table is None:
            ((_, table),) = model.transformer_.steps
        parts = {name: (made, columns) for name, made, columns in table.transformers_}
        told = [each for name in _PARTS for each in _told(name, *parts[name])]
    except (AttributeError, KeyError, ValueError, TypeError):
        told = []
    if len(told) != count:
        raise TableError(
            "the features of this model are more than its columns and their levels; only those of "
            "dpadapt fit with --degree 1 can be written."
        )
    return told


def _told(part: str, made: Any, columns: Any) -> list[dict[str, Any]]:
    """Features of one kind of columns, in the order of the coefficients."""
    if not len(columns):
        return []
    first, last = made.steps[0][1], made.steps[-1][1]
    if len(made.steps) > 2:
        raise ValueError("degree 2")
    return _PARTS[part](first, last, [str(name) for name in columns])


def _numbers(first: Any, last: Any, columns: list[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "column": name, "kind": "number", "if_missing": float(value)}
        for name, value in zip(columns, last.statistics_, strict=True)
    ]


def _levels(first: Any, last: Any, columns: list[str]) -> list[dict[str, Any]]:
    """One feature for each common level, and one for the rare ones and those never seen."""
    told: list[dict[str, Any]] = []
    rare = getattr(last, "infrequent_categories_", [None] * len(columns))
    for name, levels, pooled in zip(columns, last.categories_, rare, strict=True):
        few = [] if pooled is None else pooled.tolist()
        common = [level for level in levels.tolist() if level not in few]
        told += [
            {"name": f"{name}_{level}", "column": name, "kind": "level", "level": level}
            for level in common
        ]
        if few:
            told.append({"name": f"{name} (other)", "column": name, "kind": "other levels"})
    return told


def _dates(first: Any, last: Any, columns: list[str]) -> list[dict[str, Any]]:
    names = first.get_feature_names_out(columns)
    pairs = [
        (column, how, part)
        for column, how, parts in zip(columns, first.formats_, first.parts_, strict=True)
        for part in parts
    ]
    return [
        {
            "name": str(name),
            "column": column,
            "kind": f"date: {part}",
            "written": how,
            "if_missing": float(value),
        }
        for name, (column, how, part), value in zip(names, pairs, last.statistics_, strict=True)
    ]


_PARTS = {"numbers": _numbers, "flags": _numbers, "levels": _levels, "dates": _dates}
