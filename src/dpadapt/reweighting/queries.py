r"""What the descents ask of private rows.

Functions of single rows, whose answers the core bounds and sums
(:mod:`dpadapt.privacy.statistics.forms`): nothing is claimed here of them. A network gives one long
vector for each row, a few rows at a time: that one statistic has a claim and a proof of its own.
What the paper's own algorithms ask is in :mod:`dpadapt.papers.reweighting.queries`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.softmax import softmax
from dpadapt.privacy import PrivacyError, RowMap, RowMean, shrink_factors
from dpadapt.privacy.rows.foreign import Alone, apply
from dpadapt.privacy.rows.layers import known_layers
from dpadapt.privacy.rows.total import by_rows, taken
from dpadapt.privacy.statistics import MeanProduct, MeanVector, Prepared, mean_number

from .torch_module import as_rows, load_torch, shaped, trainable, with_parameters

_CELLS = 1 << 22  # numbers in the gradients that are held at once


def errors(scores: FloatArray, offsets: FloatArray | None, targets: FloatArray) -> FloatArray:
    """Derivative of the loss in the scores, in their place: regression where there is no offset."""
    found = scores if offsets is None else softmax(offsets + scores)
    return np.subtract(found, targets, out=found)


def descent_gradient(rows: Prepared, coefficients: FloatArray, clip: float) -> MeanProduct:
    r"""Mean of the rows' clipped gradients at W.

    A prepared row holds the features :math:`\bar z`, shrunk to the reach of the course, the scores
    of the public model (classification), and :math:`|\bar z|`, which the core measures. Its
    gradient is :math:`\bar z e^T`, with :math:`e = \bar z W - y` or
    :math:`e = softmax(offset + \bar z W) - onehot(y)`. A row of no class contributes 0.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> rows = Prepared(Cleaning(1.0), lambda X, y: (np.hstack([X, X]), y), 2, measured=1)
    >>> query = descent_gradient(rows, np.zeros((1, 1)), clip=0.5)
    >>> query.block(np.array([[1.0, 1.0], [0.1, 0.1]]), np.array([-9.0, 1.0])).round(6)
    array([[0.4]])
    >>> query.sensitivity(10)
    0.1
    """
    features, outputs = coefficients.shape
    return MeanProduct(rows, partial(_errors_at, coefficients), features, outputs, clip)


def _errors_at(coefficients: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
    features, outputs = coefficients.shape
    scores = X[:, :features] @ coefficients
    if outputs == 1:
        return errors(scores, None, y[:, None])
    targets = (y[:, None] == np.arange(outputs)).astype(np.float64)
    found = errors(scores, X[:, features:-1], targets)
    found[y < 0] = 0.0
    return found


def level(rows: RowMap, coefficients: FloatArray, clip: float) -> MeanVector:
    """Mean residual of a model, each clipped to [-clip, clip].

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = level(Cleaning(1.0, intercept=1.0), np.array([0.0, 1.0]), clip=2.0)
    >>> query.block(np.array([[0.5, 1.0], [0.5, 1.0]]), np.array([9.0, 2.0]))
    array([3.])
    """
    return mean_number(rows, partial(_left, coefficients), -clip, clip, "level")


def _left(coefficients: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(y - X @ coefficients)


@dataclass(frozen=True, eq=False)
class NetworkGradient(RowMean):
    r"""Mean over private rows of the gradient of their logistic loss, each clipped to length C.

    With p the flat trainable parameters of the module and :math:`g_i` the gradient of the loss of
    row i alone, a row contributes :math:`s_i g_i \min(1, C / |s_i g_i|)`, where :math:`s_i` is 1 or
    the profiled weight :math:`\min(1, \sqrt{\kappa / loss_i})`. A row of no class, on which the
    module fails, or whose gradient is not finite, contributes nothing.

    Sensitivity under replace-one: a contribution is a function of its row alone (the network is
    given one row a call, or is made of layers that treat every row of a block on its own) and has a
    length of C at most, so the mean moves by 2C/n at most; attained by two rows with opposite
    gradients of length C or more, as (x, 0) and (x, 1) have where two classes get equal outputs.
    The length is taken in float64 of the numbers that are summed, whatever the precision of the
    module, and C is cut by what rounding can do to it.

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
    parameters: FloatArray
    clip: float
    kappa: float | None = None
    label: str = "clipped network gradient"

    def __post_init__(self) -> None:
        if not known_layers(self.module):
            Alone(self.module).check()

    @property
    def magnitude(self) -> float:
        """Bound on one row's contribution."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the parameters."""
        return self.parameters.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
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

    def each(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (unclipped) and loss of every row; of class 0 where a row has no class.

        A network of known layers is given all rows at once, any other one row a call, each with
        fresh state (:mod:`dpadapt.privacy.rows.layers`); 0 for a row on which it fails (an index,
        a root).
        """
        if known_layers(self.module):
            results, failed = by_rows(lambda at: self._together(taken(X, at), taken(y, at)), len(X))
        else:
            one = partial(_alone, with_parameters(self.module, self.parameters))
            results, failed = apply(one, (X, y), len(X), self._finish)
        if results is None:
            return np.zeros((len(X), self.parameters.size)), np.zeros(len(X))
        return np.where(failed[:, None], 0.0, results[0]), np.where(failed, 0.0, results[1])

    def _together(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        torch = load_torch()
        frame: Any = Alone(self.module).fresh()
        frame.eval()

        def loss(parameters: Any, row: Any, code: Any) -> Any:
            logits = torch.func.functional_call(frame, parameters, (row[None],))
            return torch.nn.functional.cross_entropy(logits, code[None])

        one = torch.func.vmap(torch.func.grad_and_value(loss), in_dims=(None, 0, 0))
        parameters = shaped(self.module, self.parameters)
        gradients, losses = one(parameters, as_rows(self.module, X), _codes(y))
        columns = [gradients[name].reshape(len(X), -1) for name in parameters]
        return torch.cat(columns, dim=1).double().numpy(), losses.double().numpy()

    def _finish(self, found: Any, rows: int) -> tuple[FloatArray, FloatArray]:
        """Of one row (or copies of it), as plain arrays, whatever a network makes of it."""
        gradient, loss = (np.asarray(each, dtype=np.float64) for each in found)
        if rows > 2 or gradient.shape != (1, self.parameters.size) or loss.shape != (1,):
            raise ValueError("the network must give one number for each parameter.")
        return gradient, loss

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Euclidean norm."""
        return 2 * self.clip / n_rows


def _alone(frame: Any, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and loss of one row (or of the first of its copies), by a network of anybody's."""
    torch = load_torch()
    weights = list(trainable(frame).values())
    with torch.enable_grad():
        losses = torch.nn.functional.cross_entropy(
            frame(as_rows(frame, X)), _codes(y), reduction="none"
        )
        gradients = torch.autograd.grad(losses[0], weights, materialize_grads=True)
    flat = torch.cat([each.reshape(1, -1) for each in gradients], dim=1)
    return flat.double().numpy(), losses[:1].detach().double().numpy()


def _codes(y: FloatArray) -> Any:
    return load_torch().from_numpy(np.maximum(y, 0).astype(np.int64))
