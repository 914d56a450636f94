"""A kernel of the caller's: total, whatever his function does, and bounded by what he states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Like, Positive, Table
from dpadapt.privacy.core.errors import LET_THROUGH

from .kernel import Kernel, KernelForm, is_sparse, length_of


@dataclass(frozen=True)
class FunctionKernel(KernelForm):
    """A kernel of one's own: it reads rows as they are, numbers or texts.

    Parameters
    ----------
    function : callable
        Of two tables of rows; gives the matrix of their values. Where it fails on a pair, or is
        not finite, the value is 0. It must be a kernel: positive semi-definite on whatever rows
        there are, as an inner product of features is. **The guarantee rests on that**, and only
        public points are looked at.
    bound : float
        R^2, public bound on K(x, x); longer feature vectors are scaled down to it.

    Examples
    --------
    >>> shared = lambda A, B: [[len(set(a) & set(b)) for b in B] for a in A]
    >>> FunctionKernel(shared, bound=26).within()(["ab", "bc"], ["abc"]).ravel()
    array([2., 2.])
    """

    function: Callable[[Any, Any], Any]
    bound: float

    _constraints: ClassVar[Table] = {
        "function": [Like("be a function of two tables of rows", "__call__")],
        "bound": [Positive()],
    }
    name: ClassVar[str] = "of one's own"
    numeric: ClassVar[bool] = False

    def within(self, radius: float | None = None, middle: float | None = None) -> Kernel:
        """R^2 as it was stated."""
        return Kernel(self, float(self.bound))

    def values(self, A: Any, B: Any) -> Any:
        """What the function says."""
        return _values(self.function, A, B)

    def own_values(self, A: Any) -> Any:
        """One by one, unless the function has a ``diagonal``."""
        return _own_values(self.function, A)


def _values(kernel: Callable[[Any, Any], Any], A: Any, B: Any) -> FloatArray:
    """Values of a caller's kernel; where it fails on a pair or is not finite, 0.

    Private rows come here one at a time (:mod:`dpadapt.privacy.rows.foreign`).
    """
    shape = (length_of(A), length_of(B))
    with np.errstate(all="ignore"):
        try:
            values = _dense(kernel(A, B))
        except LET_THROUGH:
            raise
        except BaseException:  # it may depend on a value
            pairs = ((A[i : i + 1], B[j : j + 1]) for i, j in np.ndindex(*shape))
            values = np.reshape([_one(kernel, a, b) for a, b in pairs], shape)
    if values.shape != shape:
        raise ValueError(
            "kernel: the callable must return one value for each pair of rows, of shape "
            f"{shape}; got {values.shape}."
        )
    return values


def _dense(values: Any) -> FloatArray:
    """A copy: the caller's array is not ours to scale."""
    return np.array(values.toarray() if is_sparse(values) else values, dtype=np.float64)


def _one(kernel: Callable[[Any, Any], Any], a: Any, b: Any) -> float:
    try:
        return float(_dense(kernel(a, b)).reshape(()))
    except LET_THROUGH:
        raise
    except BaseException:  # it may depend on a value
        return 0.0


def _own_values(kernel: Callable[[Any, Any], Any], A: Any) -> FloatArray:
    if hasattr(kernel, "diagonal"):
        return np.nan_to_num(np.asarray(kernel.diagonal(A), dtype=np.float64))
    ones = (_one(kernel, A[i : i + 1], A[i : i + 1]) for i in range(length_of(A)))
    return np.nan_to_num(np.fromiter(ones, dtype=np.float64, count=length_of(A)), posinf=0.0)
