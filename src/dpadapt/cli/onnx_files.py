"""Models as ONNX files, for which no package is needed.

Of a linear model the graph is a product, a sum and, for classes, a softmax and the name of the
largest. Its input are the features as numbers, in the order that the file lists under the key
"features". Of a program, columns as they are go in: numbers are 64-bit floats, a missing one NaN;
texts are texts, a missing one empty; of a date its parts go in, as numbers. Every step is one
operation of ONNX, but for trees, down which all rows go together, a level at a time. The last part
writes messages of protocol buffers, as much of them as such a file needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .programs import PlainModel, Program
from .tables import TableError


def onnx_bytes(model: PlainModel) -> bytes:
    """Return the content of an ONNX file.

    Parameters
    ----------
    model : PlainModel
    """
    weights, constants = model.weights.T.astype("<f4"), model.constants.astype("<f4")
    tensors = [tensor("weights", FLOAT, weights), tensor("constants", FLOAT, constants)]
    nodes = [
        node("MatMul", ["features", "weights"], "product"),
        node("Add", ["product", "constants"], "scores"),
    ]
    if model.classes is None:
        outputs = [value("scores", FLOAT, 1)]
    else:
        kind, classes = classes_tensor("classes", model.classes)
        tensors.append(classes)
        nodes += [
            node("Softmax", ["scores"], "probabilities", axis=1),
            node("ArgMax", ["scores"], "place", axis=1, keepdims=0),
            node("Gather", ["classes", "place"], "prediction", axis=0),
        ]
        outputs = [
            value("prediction", kind, None),
            value("probabilities", FLOAT, len(model.classes)),
        ]
    graph = [
        *(field_bytes(1, each) for each in nodes),
        field_bytes(2, b"dpadapt"),
        *(field_bytes(5, each) for each in tensors),
        field_bytes(11, value("features", FLOAT, len(model.features))),
        *(field_bytes(12, each) for each in outputs),
    ]
    told = {"features": model.features, "guarantee": model.guarantee}
    notes = {name: json.dumps(each) for name, each in told.items()}
    return model_bytes(b"".join(graph), notes)


_MISSING = "(missing)"
_OWN = "dpadapt: "  # what names of steps and numbers begin with
_SETTINGS: dict[str, dict[str, Any]] = {
    "ArgMax": {"axis": 1, "keepdims": 0},
    "Concat": {"axis": 1},
    "Gather": {"axis": 0},
    "ReduceMax": {"axes": [1], "keepdims": 1},
    "Softmax": {"axis": 1},
}


def program_onnx(program: Program) -> bytes:
    """Return the content of an ONNX file.

    Parameters
    ----------
    program : Program

    Examples
    --------
    >>> program = Program([{"name": "x", "column": "x", "kind": "number"}], None, {})
    >>> program.answer(program.affine("features", [[2.0]], [1.0]))
    >>> b"prediction" in program_onnx(program)
    True
    """
    return _Graph(program).content()


class _Graph:
    """Nodes, tensors, inputs and outputs, as they come."""

    def __init__(self, program: Program) -> None:
        self.program, self.nodes, self.tensors = program, list[bytes](), list[bytes]()
        self.inputs: dict[str, dict[str, Any]] = {}
        self.count = 0

    def content(self) -> bytes:
        """The file."""
        program = self.program
        self.columns()
        for name, values in program.arrays.items():
            self.number(values, _OWN + name)
        for name, kind, inputs, settings in program.steps:
            self.step(name, kind, [_OWN + each for each in inputs], settings)
        outputs = self.outputs()
        kinds = {"number": DOUBLE, "text": STRING}
        given = [value(name, kinds[each["kind"]], 1) for name, each in self.inputs.items()]
        graph = [
            *(field_bytes(1, each) for each in self.nodes),
            field_bytes(2, b"dpadapt"),
            *(field_bytes(5, each) for each in self.tensors),
            *(field_bytes(11, each) for each in given),
            *(field_bytes(12, each) for each in outputs),
        ]
        told = {
            "inputs": [{"name": name} | each for name, each in self.inputs.items()],
            "guarantee": program.guarantee,
        }
        notes = {name: json.dumps(each) for name, each in told.items()}
        ml = any(each["kind"] == "text" for each in self.inputs.values())
        return model_bytes(b"".join(graph), notes, ml=ml)

    def outputs(self) -> list[bytes]:
        """What comes out, by names without ours."""
        classes = self.program.classes
        if classes is None:
            self.do("Identity", _OWN + "prediction", name="prediction")
            return [value("prediction", DOUBLE, None)]
        kind, names = classes_tensor(_OWN + "classes", classes)
        self.tensors.append(names)
        self.do("Gather", _OWN + "classes", _OWN + "prediction", name="prediction", axis=0)
        self.do("Identity", _OWN + "probabilities", name="probabilities")
        return [value("prediction", kind, None), value("probabilities", DOUBLE, len(classes))]

    def number(self, values: Any, name: str = "") -> str:
        """Numbers of the file, by name."""
        name = name or self.new()
        whole = np.asarray(values)
        kind, form = (INT64, "<i8") if whole.dtype.kind == "i" else (DOUBLE, "<f8")
        self.tensors.append(tensor(name, kind, whole.astype(form)))
        return name

    def do(self, kind: str, *inputs: str, name: str = "", ml: bool = False, **given: Any) -> str:
        """Name of what an operation makes."""
        name = name or self.new()
        self.nodes.append(node(kind, inputs, name, ml=ml, **given))
        return name

    def new(self) -> str:
        """A name that nobody has."""
        self.count += 1
        return f"{_OWN}{self.count}"

    def step(self, name: str, kind: str, inputs: list[str], settings: dict[str, int]) -> None:
        """One step of the program."""
        if kind == "Walk":
            self.walk(_OWN + name, inputs, **settings)
            return
        if kind == "ReduceSum":
            inputs = [*inputs, self.number(np.array([1]))]
        self.do(kind, *inputs, name=_OWN + name, **(_SETTINGS.get(kind, {}) | settings))

    def walk(self, name: str, inputs: list[str], depth: int) -> None:
        """Go down trees: the first level is the same for all rows, others are looked up."""
        rows, roots, *nodes = inputs
        feature, threshold, left, right = (self.do("Gather", each, roots, axis=0) for each in nodes)
        cells = self.do("Gather", rows, feature, axis=1)
        for level in range(depth):
            small = self.do("LessOrEqual", cells, threshold)
            place = self.do("Where", small, left, right, name=name if level == depth - 1 else "")
            if level < depth - 1:
                feature, threshold, left, right = (
                    self.do("Gather", each, place, axis=0) for each in nodes
                )
                cells = self.do("GatherElements", rows, feature, axis=1)

    def columns(self) -> None:
        """From the inputs to the features."""
        parts = [each for group in _groups(self.program.features) for each in self.features(group)]
        self.do("Concat", *parts, name=_OWN + "features", axis=1)

    def features(self, group: list[dict[str, Any]]) -> Iterator[str]:
        """Features of one column."""
        first = group[0]
        if first["kind"] in ("level", "other levels"):
            yield self.levels(group)
            return
        for each in group:
            about = {"kind": "number", "column": each["column"]}
            if each["kind"] != "number":
                about |= {"date": each["kind"].removeprefix("date: "), "written": each["written"]}
            cells = self.input(each["name"], about)
            if "if_missing" in each:
                odd = self.do("IsNaN", self.do("Sub", cells, cells))  # infinite ones as well
                usual = self.number(np.array([[each["if_missing"]]]))
                cells = self.do("Where", odd, usual, cells)
            yield cells

    def levels(self, group: list[dict[str, Any]]) -> str:
        """One 0 or 1 for each level, and one for all others."""
        name, names = group[0]["column"], [each["level"] for each in group if "level" in each]
        other = len(names)
        keys, places = list(names), list(range(other))
        if _MISSING in names and "" not in names:
            keys, places = [*keys, ""], [*places, names.index(_MISSING)]
        cells = self.input(name, {"kind": "text", "column": name})
        if not keys:
            keys, places = [""], [other]
        place = self.do(
            "LabelEncoder",
            cells,
            ml=True,
            keys_strings=keys,
            values_int64s=places,
            default_int64=other,
        )
        each = self.number(np.arange(len(group))[None])
        return self.do("Cast", self.do("Equal", place, each), to=DOUBLE)

    def input(self, name: str, about: dict[str, Any]) -> str:
        """An input by the name of its column; names must tell inputs and outputs apart."""
        if not name or name in self.inputs or name in ("prediction", "probabilities"):
            raise TableError(
                f"an ONNX file has one name for each of its inputs and outputs, and {name!r} is "
                "none or there twice; write a Python file instead (--out score.py)."
            )
        if name.startswith(_OWN):
            raise TableError(f"an ONNX file keeps names that begin with {_OWN!r} for itself.")
        self.inputs[name] = about
        return name


def _groups(features: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Features that stand together and are of one column and kind."""
    group: list[dict[str, Any]] = []
    for each in features:
        if group and not _together(group[-1], each):
            yield group
            group = []
        group.append(each)
    yield group


def _together(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one["column"] == other["column"] and one["kind"] != "number" != other["kind"]


FLOAT, INT64, STRING, BOOL, DOUBLE = 1, 7, 8, 9, 11  # types of a tensor
_IR, _OPSET, _ML_OPSET = 8, 13, 2
_ML = "ai.onnx.ml"


def model_bytes(graph: bytes, notes: dict[str, str], *, ml: bool = False) -> bytes:
    """The content of an ONNX file, from its graph and notes; ``ml`` if nodes of that domain are."""
    parts = [
        field_number(1, _IR),
        field_bytes(2, b"dpadapt"),
        field_bytes(7, graph),
        field_bytes(8, field_bytes(1, b"") + field_number(2, _OPSET)),
    ]
    if ml:
        parts.append(field_bytes(8, field_bytes(1, _ML.encode()) + field_number(2, _ML_OPSET)))
    return b"".join([*parts, *(field_bytes(14, _pair(*each)) for each in notes.items())])


def tensor(name: str, kind: int, values: Any) -> bytes:
    """Numbers that stand in the file, in the byte order of ONNX."""
    dims = b"".join(field_number(1, size) for size in values.shape)
    own = field_bytes(8, name.encode()) + field_bytes(9, values.tobytes())
    return dims + field_number(2, kind) + own


def classes_tensor(name: str, classes: list[Any]) -> tuple[int, bytes]:
    """Class labels, and their type: whole numbers, or texts."""
    if all(isinstance(each, (bool, int)) for each in classes):
        return INT64, tensor(name, INT64, np.array(classes, dtype="<i8"))
    texts = b"".join(field_bytes(6, str(each).encode()) for each in classes)
    head = field_number(1, len(classes)) + field_number(2, STRING)
    return STRING, head + texts + field_bytes(8, name.encode())


def node(kind: str, inputs: Iterable[str], output: str, *, ml: bool = False, **given: Any) -> bytes:
    """An operation; settings are whole numbers, lists of them or lists of texts."""
    own = b"".join(field_bytes(1, name.encode()) for name in inputs)
    own += field_bytes(2, output.encode()) + field_bytes(3, output.encode())
    own += field_bytes(4, kind.encode())
    own += b"".join(field_bytes(5, _setting(name, value)) for name, value in given.items())
    return own + (field_bytes(7, _ML.encode()) if ml else b"")


def _setting(name: str, given: int | Sequence[int] | Sequence[str]) -> bytes:
    own = field_bytes(1, name.encode())
    if isinstance(given, int):
        return own + field_number(3, given) + field_number(20, 2)
    if all(isinstance(each, str) for each in given):
        texts = b"".join(field_bytes(9, str(each).encode()) for each in given)
        return own + texts + field_number(20, 8)
    return own + b"".join(field_number(8, int(each)) for each in given) + field_number(20, 7)


def value(name: str, kind: int, width: int | None) -> bytes:
    """An input or output: rows of any number, and columns."""
    dims = field_bytes(1, field_bytes(2, b"rows"))
    if width is not None:
        dims += field_bytes(1, field_number(1, width))
    of = field_number(1, kind) + field_bytes(2, dims)
    return field_bytes(1, name.encode()) + field_bytes(2, field_bytes(1, of))


def _pair(name: str, text: str) -> bytes:
    return field_bytes(1, name.encode()) + field_bytes(2, text.encode())


def field_number(field: int, number: int) -> bytes:
    """A field that is a number."""
    return _varint(field << 3) + _varint(number)


def field_bytes(field: int, content: bytes) -> bytes:
    """A field that is a text, bytes or a message."""
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """A number, seven bits a byte, the smallest first; one below 0 as 64 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
