"""A linear model as an ONNX file.

The graph is a product, a sum and, for classes, a softmax and the name of the largest. Its input are
the features as numbers, in the order that the file lists under the key "features". No package is
needed to write it.
"""

from __future__ import annotations

import json

from .plain_models import PlainModel
from .protobuf import FLOAT, classes_tensor, field_bytes, model_bytes, node, tensor, value


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
