r"""Per-example gradients of a torch module, clipped: what a network takes from private rows.

A module is used through the flat vector of its trainable parameters. Every row passes through it
alone (``torch.func.functional_call`` under ``vmap``), in evaluation mode: no row sees another one,
and dropout does nothing. Torch is imported when it is needed, never with the package.
"""

from __future__ import annotations

import importlib
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import PrivacyError, RowMap

__all__ = ["NetworkGradient", "check_module", "flat", "load_torch", "scores", "with_parameters"]

Array = npt.NDArray[np.float64]
_CELLS = 1 << 22  # numbers in the gradients that are held at once


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


def flat(module: Any) -> Array:
    """The trainable parameters of a module, as one vector.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> flat(torch.nn.Linear(3, 2)).shape
    (8,)
    """
    parts = [p.detach().double().numpy().ravel() for p in _trainable(module).values()]
    return np.concatenate([np.zeros(0), *parts])


def with_parameters(module: Any, parameters: Array) -> Any:
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
        for name, value in _shaped(module, parameters).items():
            copied.get_parameter(name).copy_(value)
    return copied


def check_module(module: Any, X: Array, n_classes: int) -> None:
    """Refuse a module that has no gradient for every row: one that mixes rows, above all.

    Layers that take statistics of a batch are named. Others are found on a few public rows, whose
    outputs must not depend on each other.

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
    trainable = _trainable(module).values()
    if not trainable or any(not p.is_floating_point() or p.device.type != "cpu" for p in trainable):
        raise ValueError("module must have trainable parameters, real ones, on the CPU.")
    rows, copied = as_rows(module, X[:8]), deepcopy(module).eval()
    with torch.no_grad():
        together = copied(rows)
        if tuple(together.shape) != (len(rows), n_classes):
            raise ValueError(
                f"module must give {n_classes} numbers a row, one for each class; "
                f"gave shape {tuple(together.shape)} for {len(rows)} rows."
            )
        apart = torch.cat([copied(rows[i : i + 1]) for i in range(len(rows))])
    near = 1e-3 if together.dtype == torch.float32 else 1e-7
    if not torch.allclose(together, apart, rtol=near, atol=near * float(together.abs().max())):
        raise ValueError(
            "module mixes rows, or is random: its output for a row must be finite and its own."
        )


def as_rows(module: Any, X: Array) -> Any:
    """Rows as a tensor of the module's own precision."""
    torch = load_torch()
    kind = next(iter(_trainable(module).values())).dtype
    return torch.from_numpy(np.ascontiguousarray(X)).to(kind)


@dataclass(frozen=True, eq=False)
class NetworkGradient:
    r"""Mean over private rows of the gradient of their logistic loss, each clipped to length C.

    With p the flat trainable parameters of the module and :math:`g_i` the gradient of the loss of
    row i alone, a row contributes :math:`s_i g_i \min(1, C / |s_i g_i|)`, where :math:`s_i` is 1 or
    the profiled weight :math:`\min(1, \sqrt{\kappa / loss_i})`. A row of no class, or whose
    gradient is not finite, contributes nothing.

    Sensitivity under replace-one: a contribution is a function of its row alone and has a length of
    C at most, so the mean moves by 2C/n at most; attained by two rows with opposite gradients of
    length C or more, as (x, 0) and (x, 1) have where two classes get equal outputs. The length is
    taken in float64 of the numbers that are summed, whatever the precision of the module, and C is
    cut by what rounding can do to it.

    Parameters
    ----------
    cleaning : RowMap
        With ``classes``.
    module : torch.nn.Module
        Its structure and buffers, which must be public.
    parameters : ndarray of shape (p,)
        Public or released.
    clip : float
        C.
    kappa : float, optional
        :math:`\kappa`; None for :math:`s_i = 1`.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from dpadapt.privacy import Cleaning
    >>> module, cleaning = torch.nn.Linear(1, 2), Cleaning(radius=5.0, classes=2)
    >>> query = NetworkGradient(cleaning, module, np.zeros(4), clip=9.0)
    >>> query.block(np.array([[1.0], [3.0]]), np.array([0.0, -1.0])).round(6)
    array([-0.5,  0.5, -0.5,  0.5])
    >>> query.sensitivity(100)
    0.18
    """

    cleaning: RowMap
    module: Any
    parameters: Array
    clip: float
    kappa: float | None = None
    label: str = "clipped network gradient"

    @property
    def magnitude(self) -> float:
        """Bound on one row's contribution."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the parameters."""
        return self.parameters.shape

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of the clipped gradients of one block, a few rows at a time."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        total, few = np.zeros(self.parameters.size), max(1, _CELLS // self.parameters.size)
        for i in range(0, len(X), few):
            gradients, losses = self.each(X[i : i + few], y[i : i + few])
            length = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
            scale = np.where(y[i : i + few] >= 0, 1.0, 0.0)
            if self.kappa is not None:
                scale = scale * np.sqrt(self.kappa / np.maximum(losses, self.kappa))
            rounding = 4 * float(np.finfo(np.float64).eps) * (self.parameters.size + 4)
            factor = scale * self.clip * (1 - rounding) / np.maximum(scale * length, self.clip)
            fine = np.isfinite(length) & np.isfinite(factor)
            total += np.where(fine, factor, 0.0) @ np.where(fine[:, None], gradients, 0.0)
        return total

    def each(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Gradient (unclipped) and loss of every row; of class 0 where a row has no class."""
        torch = load_torch()
        frame = deepcopy(self.module).eval()

        def loss(parameters: Any, row: Any, code: Any) -> Any:
            logits = torch.func.functional_call(frame, parameters, (row[None],))
            return torch.nn.functional.cross_entropy(logits, code[None])

        one = torch.func.vmap(torch.func.grad_and_value(loss), in_dims=(None, 0, 0))
        codes = torch.from_numpy(np.maximum(y, 0).astype(np.int64))
        parameters = _shaped(self.module, self.parameters)
        gradients, losses = one(parameters, as_rows(self.module, X), codes)
        columns = [gradients[name].reshape(len(X), -1) for name in parameters]
        return torch.cat(columns, dim=1).double().numpy(), losses.double().numpy()

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Euclidean norm."""
        return 2 * self.clip / n_rows


def jacobian(module: Any, parameters: Array, X: Array) -> Array:
    """Derivative of the outputs by the parameters, of shape (rows, outputs, p)."""
    torch = load_torch()
    frame = deepcopy(module).eval()

    def outputs(values: Any, row: Any) -> Any:
        return torch.func.functional_call(frame, values, (row[None],))[0]

    shaped = _shaped(module, parameters)
    each = torch.func.vmap(torch.func.jacrev(outputs), in_dims=(None, 0))
    found = each(shaped, as_rows(module, X))
    parts = [found[name].reshape(*found[name].shape[:2], -1) for name in shaped]
    derivative: Array = torch.cat(parts, dim=2).double().numpy()
    return derivative


def public_gradient(
    module: Any, parameters: Array, X: Array, codes: npt.NDArray[Any], kappa: float | None
) -> Array:
    """Mean gradient of the loss of public rows, weighed by their profiled weights; not clipped."""
    torch = load_torch()
    moved = with_parameters(module, parameters)
    with torch.enable_grad():
        each = torch.nn.functional.cross_entropy(
            moved(as_rows(module, X)), torch.from_numpy(codes), reduction="none"
        )
        if kappa is not None:
            each = each * torch.sqrt(kappa / each.detach().clamp(min=kappa))
        found = torch.autograd.grad(each.mean(), list(_trainable(moved).values()))
    return np.concatenate([one.double().numpy().ravel() for one in found])


def logits(module: Any, parameters: Array, X: Array) -> Array:
    """Outputs, centred over the classes: what the logistic loss can see of them."""
    found = scores(with_parameters(module, parameters), X)
    return np.asarray(found - found.mean(axis=1, keepdims=True))


def scores(module: Any, X: npt.ArrayLike) -> Array:
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
    found: Array = outputs.double().numpy()
    return found


def _trainable(module: Any) -> dict[str, Any]:
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def _shaped(module: Any, parameters: Array) -> dict[str, Any]:
    """A flat vector as the module's named tensors."""
    torch, found, done = load_torch(), {}, 0
    for name, p in _trainable(module).items():
        piece = torch.from_numpy(parameters[done : done + p.numel()])
        found[name] = piece.reshape(p.shape).to(p.dtype)
        done += p.numel()
    return found
