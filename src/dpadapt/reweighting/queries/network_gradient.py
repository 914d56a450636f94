r"""Per-example gradients of a torch module, clipped: what a network takes from private rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import PrivacyError, RowMap, RowMean, shrink_factors

from ..torch_module import as_rows, load_torch, shaped

__all__ = ["NetworkGradient"]

Array = npt.NDArray[np.float64]
_CELLS = 1 << 22  # numbers in the gradients that are held at once


@dataclass(frozen=True, eq=False)
class NetworkGradient(RowMean):
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

    reads_labels: ClassVar[bool] = True
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
            # more numbers than the hair of the one function is for
            factor = scale * shrink_factors(scale * length, self.clip * (1 - rounding))
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
        parameters = shaped(self.module, self.parameters)
        gradients, losses = one(parameters, as_rows(self.module, X), codes)
        columns = [gradients[name].reshape(len(X), -1) for name in parameters]
        return torch.cat(columns, dim=1).double().numpy(), losses.double().numpy()

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Euclidean norm."""
        return 2 * self.clip / n_rows
