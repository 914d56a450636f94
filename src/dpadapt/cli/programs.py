"""Models as plain data, for programs without dpadapt.

A linear model is coefficients, and how the features come from the columns. Any other is a list of
small steps on tables of numbers, those of ONNX with one exception: ``Walk`` goes down trees.
:mod:`.scorer` computes them with numpy, :mod:`.onnx_files` writes them as ONNX.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.pipeline import AdaptationPipeline

from .tables import TableError

_LINEAR_FORMAT = "dpadapt linear model 1"


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
            "format": _LINEAR_FORMAT,
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
    features = feature_origins(model, weights.shape[1])
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


def feature_origins(model: Any, count: int) -> list[dict[str, Any]]:
    """Name of each feature of a fitted model, and how it comes from a column.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyRegressor
    >>> model = PublicOnlyRegressor().fit([[0.0], [1.0], [2.0]] * 9, [1.0, 3.0, 5.0] * 9)
    >>> feature_origins(model, 1)
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
        told = [each for name in _PARTS for each in _origins(name, *parts[name])]
    except (AttributeError, KeyError, ValueError, TypeError):
        told = []
    if len(told) != count:
        raise TableError(
            "the features of this model are more than its columns and their levels; only those of "
            "dpadapt fit with --degree 1 can be written."
        )
    return told


def _origins(part: str, made: Any, columns: Any) -> list[dict[str, Any]]:
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


_PROGRAM_FORMAT = "dpadapt program 1"
_PLACE = 'loaded("{}")'  # in the text of the scorer


@dataclass(eq=False)
class Program:
    """Steps that lead from features to predictions.

    Parameters
    ----------
    features : list of dict
        Name of each feature, and how it comes from a column.
    classes : list or None
        None for numbers.
    guarantee : dict

    Attributes
    ----------
    steps : list of (name, kind, inputs, settings)
        The input of the first ones is "features".
    arrays : dict
        Numbers of the model, by name.
    outputs : list of str

    Examples
    --------
    >>> program = Program([{"name": "x", "column": "x", "kind": "number"}], None, {})
    >>> program.answer(program.affine("features", [[2.0]], [1.0]))
    >>> from dpadapt.cli.scorer import predict
    >>> predict([{"x": "3"}], program.to_dict())
    [7.0]
    """

    features: list[dict[str, Any]]
    classes: list[Any] | None
    guarantee: dict[str, Any]
    steps: list[tuple[str, str, list[str], dict[str, int]]] = field(default_factory=list)
    arrays: dict[str, Any] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    _known: dict[int, tuple[str, Any]] = field(default_factory=dict)

    def array(self, values: Any) -> str:
        """Name of numbers of the model, which are written once."""
        if id(values) in self._known:
            return self._known[id(values)][0]
        name = f"array {len(self.arrays)}"
        whole = np.asarray(values).dtype.kind in "iu"
        self.arrays[name] = np.asarray(values, dtype=np.int64 if whole else np.float64)
        self._known[id(values)] = (name, values)  # kept, so that no other has its number
        return name

    def step(self, kind: str, *inputs: Any, name: str = "", **settings: int) -> str:
        """Name of what a step makes; inputs are names, or numbers of the model."""
        given = [each if isinstance(each, str) else self.array(each) for each in inputs]
        name = name or f"step {len(self.steps)}"
        self.steps.append((name, kind, given, settings))
        return name

    def affine(self, rows: str, weights: Any, constants: Any) -> str:
        """Products with weights, and constants."""
        product = self.step("MatMul", rows, np.asarray(weights, dtype=np.float64))
        return self.step("Add", product, np.asarray(constants, dtype=np.float64))

    def answer(self, scores: str, weights: Any = None) -> None:
        """End with scores: of one column for numbers, or one for each class.

        ``weights`` are added to scores before the class of the largest is taken.
        """
        if self.classes is None:
            self.step("ReduceSum", scores, name="prediction", keepdims=0)
            self.outputs = ["prediction"]
            return
        self.step("Softmax", scores, name="probabilities")
        weighed = scores if weights is None else self.step("Add", scores, weights)
        self.step("ArgMax", weighed, name="prediction")
        self.outputs = ["prediction", "probabilities"]

    def to_dict(self) -> dict[str, Any]:
        """What the scorer computes; the arrays are those of numpy."""
        return {
            "format": _PROGRAM_FORMAT,
            "classes": self.classes,
            "guarantee": self.guarantee,
            "features": self.features,
            "steps": [list(each) for each in self.steps],
            "outputs": self.outputs,
            "arrays": dict(self.arrays),
        }


def scorer_text(program: Program) -> str:
    """The text of a Python file that predicts as the model does, and needs numpy alone.

    Examples
    --------
    >>> program = Program([{"name": "x", "column": "x", "kind": "number"}], None, {})
    >>> program.answer(program.affine("features", [[2.0]], [1.0]))
    >>> "import dpadapt" in scorer_text(program)
    False
    """
    from importlib.resources import files

    whole = program.to_dict()
    arrays = whole.pop("arrays")
    lines = [f"{_text(name)}: {_text(each)}" for name, each in whole.items()]
    numbers = [f"{_text(name)}: {_text(_listed(each))}" for name, each in arrays.items()]
    data = "{" + ",\n".join([*lines, '"arrays": {' + ",\n".join(numbers) + "}"]) + "}"
    source = files(__package__).joinpath("scorer.py").read_text(encoding="utf-8")
    before, found, after = source.partition(_PLACE)
    assert found
    return f"{before}loaded(r'''\n{data}\n'''){after}"


def _listed(values: Any) -> list[Any]:
    kind = "int" if values.dtype.kind == "i" else "float"
    return [kind, list(values.shape), values.ravel().tolist()]


def _text(values: Any) -> str:
    """As JSON without any quote that would end a text of Python."""
    return json.dumps(values, allow_nan=False).replace("'", "\\u0027")
