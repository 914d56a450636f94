"""What AutoRegressor and AutoClassifier have made, as steps: experts, their stack, what was added.

Everything that is linear is put together beforehand, so that a step or two are left of it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from dpadapt.auto import AutoClassifier, AutoRegressor
from dpadapt.auto.auto_classifier import DirectionScores
from dpadapt.auto.classification_step import ClassScores
from dpadapt.auto.curves import Curves, Leaves
from dpadapt.auto.experts import (
    LINEAR_PART,
    PROBABILITY_FLOOR,
    Centred,
    FourierExpert,
    LinearExpert,
    Own,
    Sum,
    Trees,
    Waves,
)
from dpadapt.auto.regression_step import Correction
from dpadapt.auto.stacking import Reader
from dpadapt.privacy import shrink_factors

from .programs import PlainModel, Program, feature_origins
from .scorer import answers
from .tables import TableError

_ROWS = "rows"
_TRIED = 64  # rows on which the steps are compared with the model
_WHOLE = float(shrink_factors(1.0, 1.0))  # 1, less a hair


def linear_program(model: PlainModel) -> Program:
    """A linear model as steps.

    Examples
    --------
    >>> one = {"name": "x", "column": "x", "kind": "number"}
    >>> linear_program(PlainModel([one], np.ones((1, 1)), np.ones(1), None, {})).outputs
    ['prediction']
    """
    program = Program(model.features, model.classes, model.guarantee)
    program.answer(program.affine("features", model.weights.T, model.constants))
    return program


def auto_program(model: Any) -> Program:
    """An AutoRegressor or AutoClassifier, or a pipeline of one, as steps.

    Examples
    --------
    >>> from dpadapt.cli.scorer import answers
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, X[:, 0])
    >>> found = answers(X, auto_program(model).to_dict())["prediction"]
    >>> bool(np.allclose(found, model.predict(X)))
    True
    """
    fitted = getattr(model, "estimator_", model)
    start = fitted.public_model_
    classes = None if start.classes is None else np.asarray(start.classes).tolist()
    features = feature_origins(model, len(start.low))
    program = Program(features, classes, model.guarantee_.to_dict())
    above = program.step("Max", "features", start.low)
    program.step("Min", above, start.high, name=_ROWS)
    if isinstance(fitted, AutoRegressor):
        program.answer(_numbers(program, fitted))
    else:
        program.answer(_classes(program, fitted), np.log(fitted.class_weights_))
    if not all(np.isfinite(each).all() for each in program.arrays.values()):
        raise TableError("the model holds numbers that are not finite, and cannot be written.")
    _check(program, fitted)
    return program


def _check(program: Program, fitted: Any) -> None:
    """Try some rows: whoever computes the steps must get what the model predicts."""
    draw = np.random.default_rng(0)
    usual = [each.get("if_missing", 0.0) for each in program.features]
    size = (_TRIED, len(usual))
    rows = usual + draw.normal(size=size) * 10.0 ** draw.integers(-1, 4, size)
    bare = copy(fitted)  # the same without its columns, which are numbers already
    bare.public_model_ = replace(fitted.public_model_, reader=Reader())
    bare.n_features_in_ = len(usual)
    vars(bare).pop("feature_names_in_", None)
    found = answers(rows, program.to_dict())
    if program.classes is None:
        same = np.allclose(found["prediction"], bare.predict(rows), rtol=1e-9, atol=1e-12)
    else:
        same = np.allclose(found["probabilities"], bare.predict_proba(rows), rtol=0, atol=1e-9)
    if not same:
        raise TableError(
            "what was to be written does not predict what the model does; this is a fault of "
            "dpadapt. Nothing was written. Serve the model from Python."
        )


def _numbers(program: Program, fitted: AutoRegressor) -> str:
    start, added = fitted.public_model_, fitted.adapted_
    whole = program.step("Concat", *(_expert(program, each) for each in start.experts))
    whole = program.step("Max", whole, np.array([start.score_range[0]]))
    whole = program.step("Min", whole, np.array([start.score_range[1]]))
    if added is None:
        return program.step("MatMul", whole, start.weights[:, None])
    if not isinstance(added, Correction):
        raise _unknown(added)
    count, columns, features = len(start.experts), len(start.low), added.features
    of_columns, of_scores, of_curves = np.split(added.on_features, [columns, columns + count - 1])
    apart = added.on_scores + np.append(of_scores * features.score_scale, 0.0)
    weights = start.weights.copy()  # of scores: apart are those of their differences
    weights[1:] += apart[:-1]
    weights[0] += apart[-1] - apart[:-1].sum()
    constant = added.constant - apart[-1] * features.label
    scores = program.affine(whole, weights[:, None], [constant])
    moved = program.step("MatMul", _ROWS, (of_columns / features.column_scale)[:, None])
    scores = program.step("Add", scores, moved)
    if features.curves is None:
        return scores
    bent = program.step("MatMul", _curves(program, features.curves), of_curves[:, None])
    return program.step("Add", scores, bent)


def _classes(program: Program, fitted: AutoClassifier) -> str:
    start, added = fitted.public_model_, fitted.adapted_
    if isinstance(added, DirectionScores):  # needs no expert
        return _directions(program, added)
    count = len(start.classes)
    logits = program.step("Concat", *(_expert(program, each) for each in start.experts))
    if added is None:
        return program.step("MatMul", logits, np.kron(start.weights[:, None], np.eye(count)))
    if not isinstance(added, ClassScores):
        raise _unknown(added)
    experts, columns = len(start.experts), len(start.low)
    if count == 2:
        one = np.kron(np.eye(experts), np.array([[-1.0], [1.0]]))
        logits = program.step("MatMul", logits, one)
    scale = np.broadcast_to(np.asarray(added.column_scale, dtype=np.float64), (columns,))
    parts = [
        program.step("Mul", logits, np.array([added.logit_scale])),
        program.step("Mul", _ROWS, np.array(scale)),
    ]
    if added.curves is not None:
        parts.append(_curves(program, added.curves))
    features = program.step("Concat", *parts)
    scores = program.affine(features, added.coefficients[:-1], added.coefficients[-1])
    if added.move is None:
        return scores
    geometry = added.geometry
    away = program.affine(features, geometry.matrix, -geometry.mean @ geometry.matrix)
    squares = _sum(program, program.step("Mul", away, away))
    squares = program.step("Add", squares, np.array([geometry.level**2]))
    factor = _shrink(program, program.step("Sqrt", squares), 1.0)
    moved = program.affine(away, added.move[:-1], geometry.level * added.move[-1])
    return program.step("Add", scores, program.step("Mul", moved, factor))


def _expert(program: Program, expert: Any) -> str:
    """Scores of an expert, of one column or one for each class."""
    if isinstance(expert, LinearExpert):
        return program.affine(_ROWS, expert.coef, expert.intercept)
    if isinstance(expert, Trees):
        return _trees(program, expert)
    if isinstance(expert, FourierExpert):
        center, scale = expert.waves.center, expert.waves.scale
        split = len(expert.waves.phases)
        on_rows = LINEAR_PART * expert.linear.coef[split:] / scale[:, None]
        waves = program.step("MatMul", _waves(program, expert.waves), expert.linear.coef[:split])
        line = program.affine(_ROWS, on_rows, expert.linear.intercept - center @ on_rows)
        return program.step("Add", waves, line)
    if isinstance(expert, Sum):
        scores = [_expert(program, part) for part in expert.parts]
        total = scores[0]
        for each in scores[1:]:
            total = program.step("Add", total, each)
        return total
    if isinstance(expert, Centred):
        return _centred(program, expert)
    if isinstance(expert, DirectionScores):
        return _directions(program, expert)
    raise _unknown(expert)


def _unknown(part: Any) -> TableError:
    if isinstance(part, Own):
        return TableError(
            f"one of the experts is a model of your own ({type(part.model).__name__}), which only "
            "its own package can compute. Fit with experts of dpadapt, or serve the model from "
            "Python."
        )
    return TableError(f"a part of this model, {type(part).__name__}, cannot be written.")


def _trees(program: Program, trees: Trees) -> str:
    parts = []
    for output, base in enumerate(trees.base):
        leaves = _walk(program, trees, np.ascontiguousarray(trees.roots[:, output]))
        total = _sum(program, program.step("Gather", trees.value, leaves))
        parts.append(program.step("Add", total, np.array([base])))
    return parts[0] if len(parts) == 1 else program.step("Concat", *parts)


def _walk(program: Program, trees: Trees, roots: Any) -> str:
    nodes = (trees.feature, trees.threshold, trees.left, trees.right)
    return program.step("Walk", _ROWS, roots, *nodes, depth=max(1, trees.depth))


def _waves(program: Program, waves: Waves) -> str:
    frequencies = waves.frequencies / waves.scale[:, None]
    centred = program.step("Sub", _ROWS, waves.center)
    product = program.step("MatMul", centred, frequencies)
    return program.step("Cos", program.step("Add", product, waves.phases))


def _curves(program: Program, curves: Curves) -> str:
    line = curves.line @ curves.axes
    on_rows = line[:-1] / curves.scale[:, None]
    straight = program.affine(_ROWS, on_rows, line[-1] - curves.center @ on_rows)
    if isinstance(curves.cells, Leaves):
        cells, trees = curves.cells, curves.cells.trees
        table = np.zeros((len(trees.left), len(curves)))
        table[cells.places] = curves.axes
        leaves = _walk(program, trees, np.ascontiguousarray(trees.roots.ravel()))
        found = _sum(program, program.step("Gather", table, leaves), keepdims=0)
    else:
        found = program.step("MatMul", _waves(program, curves.cells), curves.axes)
    rest = program.step("Sub", found, straight)
    return program.step("Min", program.step("Max", rest, -curves.reach), curves.reach)


def _centred(program: Program, expert: Centred) -> str:
    scores = _expert(program, expert.expert)
    known = len(expert.known)
    if _width(expert.expert) == 1:  # stands for two classes
        scores = program.step("MatMul", scores, np.array([[-0.5, 0.5]]))
    if expert.cut is not None:
        mean = np.full((expert.classes, expert.classes), 1 / expert.classes)
        scores = program.step("MatMul", scores, np.eye(expert.classes) - mean)
        longest = program.step("ReduceMax", program.step("Abs", scores))
        return program.step("Mul", scores, _shrink(program, longest, expert.cut))
    placed = np.zeros((known, expert.classes))
    placed[np.arange(known), expert.known] = 1.0
    chances = program.step("MatMul", program.step("Softmax", scores), placed)
    logs = program.step("Log", program.step("Max", chances, np.array([PROBABILITY_FLOOR])))
    middle = program.step("MatMul", logs, np.full((expert.classes, 1), 1 / expert.classes))
    return program.step("Sub", logs, middle)


def _width(expert: Any) -> int:
    return len(expert.base) if isinstance(expert, Trees) else int(expert.coef.shape[1])


def _directions(program: Program, scores: DirectionScores) -> str:
    units, classes = scores.units, scores.weights.shape[1]
    weights, constants = units.linear(scores.weights)
    centred = np.eye(classes) - 1 / classes
    away = program.step("Div", program.step("Sub", _ROWS, units.center), units.scale)
    largest = program.step("ReduceMax", program.step("Abs", away))
    away = program.step("Div", away, program.step("Max", largest, np.array([1e-300])))
    squares = _sum(program, program.step("Mul", away, away))
    length = program.step("Sqrt", program.step("Max", squares, np.array([0.25])))
    turned = program.step("Div", away, length)
    return program.affine(turned, weights @ centred, constants @ centred)


def _sum(program: Program, rows: str, keepdims: int = 1) -> str:
    return program.step("ReduceSum", rows, keepdims=keepdims)


def _shrink(program: Program, lengths: str, radius: float) -> str:
    """Factors that make no length more than the radius."""
    factors = program.step("Div", np.array([radius * _WHOLE]), lengths)
    return program.step("Min", factors, np.array([1.0]))
