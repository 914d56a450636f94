"""A torch module as a function of one flat vector: its trainable parameters.

A module is used through the flat vector of its trainable parameters, in evaluation mode: dropout
does nothing. It is given one private row a call, unless it is made of layers that are known to
treat every row on its own (:mod:`dpadapt.privacy.rows.layers`). Torch is imported when it is
needed, never with the package.
"""

from __future__ import annotations

import importlib
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.privacy.rows.foreign import Alone
from dpadapt.privacy.rows.layers import known_layers


def load_torch() -> Any:
    """Torch, or an error that says how to get it.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("torch")
    >>> load_torch().__name__
    'torch'
    """
    try:
        torch = importlib.import_module("torch")
        importlib.import_module("torch.func")
    except ImportError as error:
        raise ImportError("a network needs torch: pip install 'dpadapt[torch]'.") from error
    return torch


def flat(module: Any) -> FloatArray:
    """The trainable parameters of a module, as one vector.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> flat(torch.nn.Linear(3, 2)).shape
    (8,)
    """
    parts = [p.detach().double().numpy().ravel() for p in trainable(module).values()]
    return np.concatenate([np.zeros(0), *parts])


def with_parameters(module: Any, parameters: FloatArray) -> Any:
    """A copy of a module with other trainable parameters, in evaluation mode.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> module = with_parameters(torch.nn.Linear(1, 2), np.array([1.0, 2.0, 3.0, 4.0]))
    >>> module.weight.tolist(), module.bias.tolist(), module.training
    ([[1.0], [2.0]], [3.0, 4.0], False)
    """
    torch = load_torch()
    copied = deepcopy(module).eval()
    with torch.no_grad():
        for name, value in shaped(module, parameters).items():
            copied.get_parameter(name).copy_(value)
    return copied


def check_module(module: Any, X: FloatArray, n_classes: int) -> None:
    """Refuse a module that has no gradient for every row: one that mixes rows, above all.

    Layers that take statistics of a batch are named. Others are found on a few public rows, whose
    outputs must not depend on each other. This is for the user, who would get another network than
    the one that was trained: private rows are kept apart whatever a module does. One that cannot be
    copied is refused, because every private row needs a fresh one.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> check_module(torch.nn.BatchNorm1d(2), np.eye(2), 2)
    Traceback (most recent call last):
        ...
    ValueError: the module itself (BatchNorm1d) takes statistics of a batch, so that rows have no \
gradient of their own: use LayerNorm or GroupNorm, or freeze the layer with its eval().
    """
    torch = load_torch()
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module; got {type(module).__name__}.")
    for name, layer in module.named_modules():
        kind = type(layer).__name__
        batch = isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
        if batch and (layer.training or layer.running_mean is None):
            raise ValueError(
                f"{f'layer {name!r}' if name else 'the module itself'} ({kind}) takes statistics "
                "of a batch, so that rows have no gradient of their own: use LayerNorm or "
                "GroupNorm, or freeze the layer with its eval()."
            )
    own = trainable(module).values()
    if not own or any(not p.is_floating_point() or p.device.type != "cpu" for p in own):
        raise ValueError("module must have trainable parameters, real ones, on the CPU.")
    Alone(module).check()
    rows, copied = as_rows(module, X[:8]), deepcopy(module).eval()
    with torch.no_grad():
        together = copied(rows)
        if tuple(together.shape) != (len(rows), n_classes):
            raise ValueError(
                f"module must give {n_classes} numbers a row, one for each of the classes; "
                f"gave shape {tuple(together.shape)} for {len(rows)} rows."
            )
        apart = torch.cat([copied(rows[i : i + 1]) for i in range(len(rows))])
    near = 1e-3 if together.dtype == torch.float32 else 1e-7
    if not torch.allclose(together, apart, rtol=near, atol=near * float(together.abs().max())):
        raise ValueError(
            "module mixes rows, or is random: its output for a row must be finite and its own."
        )


def as_rows(module: Any, X: FloatArray) -> Any:
    """Rows as a tensor of the module's own precision."""
    torch = load_torch()
    kind = next(iter(trainable(module).values())).dtype
    return torch.from_numpy(np.ascontiguousarray(X)).to(kind)


def jacobian(module: Any, parameters: FloatArray, X: FloatArray) -> FloatArray:
    """Derivative of the outputs by the parameters, of shape (rows, outputs, p)."""
    torch = load_torch()
    if not known_layers(module):
        frame = with_parameters(module, parameters)
        with torch.enable_grad():
            return np.stack([_derivatives(frame, row) for row in as_rows(frame, X)])
    frame = deepcopy(module).eval()

    def outputs(values: Any, row: Any) -> Any:
        return torch.func.functional_call(frame, values, (row[None],))[0]

    tensors = shaped(module, parameters)
    each = torch.func.vmap(torch.func.jacrev(outputs), in_dims=(None, 0))
    found = each(tensors, as_rows(module, X))
    parts = [found[name].reshape(*found[name].shape[:2], -1) for name in tensors]
    derivative: FloatArray = torch.cat(parts, dim=2).double().numpy()
    return derivative


def _derivatives(frame: Any, row: Any) -> FloatArray:
    """Of the outputs for one row, without ``vmap``, which not every module can take."""
    grad, weights = load_torch().autograd.grad, list(trainable(frame).values())
    found = [
        grad(value, weights, retain_graph=True, materialize_grads=True)
        for value in frame(row[None])[0]
    ]
    return np.array([np.concatenate([g.double().numpy().ravel() for g in each]) for each in found])


def public_gradient(
    module: Any, parameters: FloatArray, X: FloatArray, codes: npt.NDArray[Any], kappa: float | None
) -> FloatArray:
    """Mean gradient of the loss of public rows, weighed by their profiled weights; not clipped."""
    torch = load_torch()
    moved = with_parameters(module, parameters)
    with torch.enable_grad():
        each = torch.nn.functional.cross_entropy(
            moved(as_rows(module, X)), torch.from_numpy(codes), reduction="none"
        )
        if kappa is not None:
            each = each * torch.sqrt(kappa / each.detach().clamp(min=kappa))
        found = torch.autograd.grad(each.mean(), list(trainable(moved).values()))
    return np.concatenate([one.double().numpy().ravel() for one in found])


def logits(module: Any, parameters: FloatArray, X: FloatArray) -> FloatArray:
    """Outputs, centred over the classes: what the logistic loss can see of them."""
    found = scores(with_parameters(module, parameters), X)
    return np.asarray(found - found.mean(axis=1, keepdims=True))


def scores(module: Any, X: npt.ArrayLike) -> FloatArray:
    """Outputs of a network for rows, in float64, a column for each class.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> module = with_parameters(torch.nn.Linear(1, 2), np.array([1.0, 2.0, 3.0, 4.0]))
    >>> scores(module, np.array([[10.0]]))
    array([[13., 24.]])
    """
    with load_torch().no_grad():
        outputs = module(as_rows(module, np.asarray(X, dtype=np.float64)))
    found: FloatArray = outputs.double().numpy()
    return found


def trainable(module: Any) -> dict[str, Any]:
    """Its parameters that need a gradient, by their names."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def shaped(module: Any, parameters: FloatArray) -> dict[str, Any]:
    """A flat vector as the module's named tensors."""
    torch, found, done = load_torch(), {}, 0
    for name, p in trainable(module).items():
        piece = torch.from_numpy(parameters[done : done + p.numel()])
        found[name] = piece.reshape(p.shape).to(p.dtype)
        done += p.numel()
    return found
