"""A linear model as an ONNX file: a few messages of protocol buffers, written by hand.

The graph is a product, a sum and, for classes, a softmax and the name of the largest. Its input are
the features as numbers, in the order that the file lists under the key "features". No package is
needed to write it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from .plain_models import PlainModel

__all__ = ["onnx_bytes"]

_FLOAT, _INT64, _STRING = 1, 7, 8  # types of a tensor
_IR, _OPSET = 8, 13


def onnx_bytes(model: PlainModel) -> bytes:
    """Return the content of an ONNX file.

    Parameters
    ----------
    model : PlainModel
    """
    weights, constants = model.weights.T.astype("<f4"), model.constants.astype("<f4")
    tensors = [_tensor("weights", _FLOAT, weights), _tensor("constants", _FLOAT, constants)]
    nodes = [
        _node("MatMul", ["features", "weights"], "product"),
        _node("Add", ["product", "constants"], "scores"),
    ]
    if model.classes is None:
        outputs = [_value("scores", _FLOAT, 1)]
    else:
        kind, classes = _classes(model.classes)
        tensors.append(classes)
        nodes += [
            _node("Softmax", ["scores"], "probabilities", axis=1),
            _node("ArgMax", ["scores"], "place", axis=1, keepdims=0),
            _node("Gather", ["classes", "place"], "prediction", axis=0),
        ]
        outputs = [
            _value("prediction", kind, None),
            _value("probabilities", _FLOAT, len(model.classes)),
        ]
    graph = [
        *(_bytes(1, node) for node in nodes),
        _bytes(2, b"dpadapt"),
        *(_bytes(5, tensor) for tensor in tensors),
        _bytes(11, _value("features", _FLOAT, len(model.features))),
        *(_bytes(12, each) for each in outputs),
    ]
    told = {"features": model.features, "guarantee": model.guarantee}
    notes = [_pair(name, json.dumps(value)) for name, value in told.items()]
    return b"".join(
        [
            _number(1, _IR),
            _bytes(2, b"dpadapt"),
            _bytes(7, b"".join(graph)),
            _bytes(8, _bytes(1, b"") + _number(2, _OPSET)),
            *(_bytes(14, note) for note in notes),
        ]
    )


def _classes(classes: list[Any]) -> tuple[int, bytes]:
    if all(isinstance(each, (bool, int)) for each in classes):
        return _INT64, _tensor("classes", _INT64, np.array(classes, dtype="<i8"))
    texts = b"".join(_bytes(6, str(each).encode()) for each in classes)
    head = _number(1, len(classes)) + _number(2, _STRING)
    return _STRING, head + texts + _bytes(8, b"classes")


def _tensor(name: str, kind: int, values: Any) -> bytes:
    dims = b"".join(_number(1, size) for size in values.shape)
    return dims + _number(2, kind) + _bytes(8, name.encode()) + _bytes(9, values.tobytes())


def _node(kind: str, inputs: Iterable[str], output: str, **settings: int) -> bytes:
    given = b"".join(_bytes(1, name.encode()) for name in inputs)
    told = b"".join(
        _bytes(5, _bytes(1, name.encode()) + _number(3, value) + _number(20, 2))
        for name, value in settings.items()
    )
    own = _bytes(2, output.encode()) + _bytes(3, output.encode()) + _bytes(4, kind.encode())
    return given + own + told


def _value(name: str, kind: int, width: int | None) -> bytes:
    """An input or output: rows of any number, and columns."""
    dims = _bytes(1, _bytes(2, b"rows"))
    if width is not None:
        dims += _bytes(1, _number(1, width))
    tensor = _number(1, kind) + _bytes(2, dims)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))


def _pair(name: str, text: str) -> bytes:
    return _bytes(1, name.encode()) + _bytes(2, text.encode())


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """A number, seven bits a byte, the smallest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
