"""A model as a list of small steps on tables of numbers, which any other program can compute.

The steps are those of ONNX with one exception: ``Walk`` goes down trees. :mod:`.scorer` computes
them with numpy, :mod:`.program_onnx` writes them as ONNX.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_FORMAT = "dpadapt program 1"
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
            "format": _FORMAT,
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
