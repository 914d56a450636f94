"""Networks that may be given whole blocks of private rows, because each row of a block is alone.

``torch.func.vmap`` runs a network once for a block, as if for every row by itself. It keeps rows
apart for torch's own operations only: an operation may bring a rule for blocks of its own, and any
code can take the wrapper off a tensor and find the block. So blocks are for networks made of
nothing but a short list of torch's layers, by identity, with nothing of anybody else's in them.
Whatever else is found, a network is given one row at a time (:mod:`.foreign`).
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

# Names in `torch.nn` of layers that do to every example of a batch what they do to it alone, when
# nothing is trained (dropout does nothing then): cells one by one, sums within an example, products
# with a public matrix. `tests/privacy/test_layers.py` checks each, to the last bit.
_NAMES = (
    "Sequential Identity Flatten Unflatten Linear Conv1d Conv2d Conv3d LayerNorm GroupNorm "
    "AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d "
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d "
    "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout "
    "ReLU ReLU6 LeakyReLU PReLU ELU SELU CELU GELU SiLU Mish GLU Tanh Sigmoid Softplus "
    "Softsign LogSigmoid Tanhshrink Softshrink Hardshrink Hardtanh Hardsigmoid Hardswish "
    "Threshold Softmax LogSoftmax"
)
_LISTED = frozenset(_NAMES.split())
_PLAIN = (type(None), bool, int, float, str)
_TABLES = (dict, OrderedDict)
_ELSEWHERE = ("/Meta", "/CUDA", "/MPS", "/XPU")  # devices on which no private row is
_SETS = (list, tuple, set)


def known_layers(module: Any) -> bool:
    """Whether a network may be given whole blocks under ``vmap``, in evaluation mode.

    Every part of it is a listed layer of torch itself: no subclass, no ``forward`` of an object's
    own, no hook (of a layer, or of all), no parametrisation, no parameter but torch's own, on the
    CPU; and torch itself has no mode on that is asked about every operation, and no operation that
    somebody replaced.

    Parameters
    ----------
    module : torch.nn.Module

    Examples
    --------
    >>> import pytest
    >>> nn = pytest.importorskip("torch").nn
    >>> known_layers(nn.Sequential(nn.Linear(2, 3), nn.ReLU())), known_layers(nn.BatchNorm1d(2))
    (True, False)
    >>> class Own(nn.Linear):
    ...     pass
    >>> known_layers(Own(2, 3))
    False
    """
    torch = sys.modules.get("torch")
    if torch is None or torch.nn.modules.module._has_any_global_hook():
        return False
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return False
    if _replaced(torch):
        return False
    seen, ahead = {}, [module]
    while ahead:
        layer = ahead.pop()
        if id(layer) in seen:
            continue
        seen[id(layer)] = layer
        if not _known(torch, layer):
            return False
        ahead.extend(vars(layer)["_modules"].values())
    return True


def _replaced(torch: Any) -> bool:
    """Whether somebody told torch, in Python, how to do one of its own operations on the CPU.

    That can be a rule for blocks (``torch.library.register_vmap("aten::relu", ...)``). Torch has
    such rules as well, in a library of its own.
    """
    told = [name for name in torch.library._impls if not name.endswith(_ELSEWHERE)]
    homes = (sys.modules.get(f"torch._functorch.{name}") for name in ("predispatch", "vmap"))
    libraries = (getattr(home, "VMAP_DECOMPOSITIONS_LIB", None) for home in homes)
    own = set().union(*(getattr(each, "_op_impls", ()) for each in libraries))
    return any(name.startswith("aten/") and name not in own for name in told)


def _known(torch: Any, layer: Any) -> bool:
    """Whether a layer is listed, and holds only plain data, parameters and further layers."""
    kind: Any = type(layer)
    if kind.__name__ not in _LISTED or getattr(torch.nn, kind.__name__, None) is not kind:
        return False
    own, forward = dict(vars(layer)), getattr(kind, "forward", None)
    if getattr(forward, "__globals__", None) is not vars(sys.modules[kind.__module__]):
        return False  # somebody put another one there
    inside, weights = own.pop("_modules", None), own.pop("_parameters", None)
    if type(inside) not in _TABLES or type(weights) not in _TABLES:
        return False
    if not _plain(own) or not _plain([*inside, *weights]):
        return False
    return all(_usual(torch, each) for each in weights.values())


def _plain(value: Any) -> bool:
    """Numbers and texts, and sets of them: a method of an object's own is none, nor is a hook."""
    if type(value) in _TABLES:
        return all(_plain(each) for each in (*value.keys(), *value.values()))
    if type(value) in _SETS:
        return all(_plain(each) for each in value)
    return type(value) in _PLAIN


def _usual(torch: Any, weight: Any) -> bool:
    """Whether a parameter is one of torch's own, which does nothing but hold numbers."""
    if weight is None:
        return True
    if type(weight) is not torch.nn.Parameter or vars(weight):
        return False
    return bool(weight.layout is torch.strided and weight.device.type == "cpu")
