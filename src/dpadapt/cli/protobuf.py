"""Messages of protocol buffers, written by hand: as much of them as an ONNX file needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

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
