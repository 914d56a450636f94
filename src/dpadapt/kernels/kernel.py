r"""Kernels with a public bound K(x, x) <= R^2.

A sensitivity is 2LR/(lambda n), so R must be known before a row is seen. For rows of norm at most
r it follows from the kernel (linear r^2, polynomial (gamma r^2 + coef0)^degree, and 1 for those of
a distance); for a kernel of the caller's it is his to state. A row with a larger K(x, x), private
or asked about, is scaled down by the public rule

    K(x, y) s(x) s(y),    s(x) = min(1, R/sqrt(K(x, x))),

again a kernel, whose features have norm at most R.

A kernel is chosen by name or as an object: ``kernel="rbf"`` or ``kernel=RBF(gamma=0.5)``.

A :class:`FunctionKernel` is total, whatever the function of the caller does, and bounded by what he
states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import pairwise

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, Like, NonNegative, Null, ParameterTable, Positive
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy.rows.errors import LET_THROUGH

_ROUNDING = 1e-12  # of a squared norm: the tolerance of a solver covers it


class KernelForm(Strategy):
    """A positive definite function of two rows, with its options.

    Examples
    --------
    >>> KERNELS["cosine"]().bounded, KERNELS["linear"]().bounded
    (True, False)
    """

    name: ClassVar[str]
    numeric: ClassVar[bool] = True
    """Whether rows are numbers, which are scaled and shortened beforehand."""
    bounded: ClassVar[bool] = True
    """Whether K(x, x) is at most 1 however long a row is."""

    def within(self, radius: float | None = None, middle: float | None = None) -> Kernel:
        """Return the kernel of rows of norm at most ``radius``, with its bound.

        Parameters
        ----------
        radius : float, optional
            r; those that are not bounded otherwise need it.
        middle : float, optional
            Typical norm of a row, for a default ``gamma``; the radius if it is not given.
        """
        return Kernel(self._scaled_to(middle or radius), 1.0)

    def _scaled_to(self, length: float | None) -> Self:
        """Fill in what follows from the length of rows."""
        return self

    @abstractmethod
    def values(self, A: Any, B: Any) -> Any:
        """Matrix of the values of the rows of A with those of B."""

    def own_values(self, A: Any) -> Any:
        """K(x, x) of every row."""
        return np.ones(length_of(A))


@dataclass(frozen=True)
class Linear(KernelForm):
    """x.y, with a constant 1 as a further column of every row.

    Examples
    --------
    >>> Linear().within(radius=3.0).squared_bound
    9.0
    """

    name: ClassVar[str] = "linear"
    bounded: ClassVar[bool] = False

    def within(self, radius: float | None = None, middle: float | None = None) -> Kernel:
        """R = r."""
        return Kernel(self, _needed(self, radius) ** 2)

    def values(self, A: Any, B: Any) -> Any:
        """x.y."""
        return pairwise.linear_kernel(A, B)

    def own_values(self, A: Any) -> Any:
        """Squared norms."""
        return _squares(A)


@dataclass(frozen=True)
class InnerProduct(KernelForm):
    """x.y of rows of numbers as they are: no column is centred or scaled, no constant is added.

    For many columns of which few are not zero (:meth:`Private.from_sparse`); a sparse product
    works row by row.

    Parameters
    ----------
    bound : float
        R^2, public bound on the squared length of a row; longer ones are scaled down to it.

    Examples
    --------
    >>> kernel = InnerProduct(bound=4.0).within()
    >>> kernel(np.array([[1.0], [8.0]]), np.array([[1.0]])).ravel()
    array([1., 2.])
    """

    bound: float

    _constraints: ClassVar[ParameterTable] = {"bound": [Positive()]}
    name: ClassVar[str] = "inner product"
    numeric: ClassVar[bool] = False

    def within(self, radius: float | None = None, middle: float | None = None) -> Kernel:
        """R^2 as it was stated."""
        return Kernel(self, float(self.bound))

    def values(self, A: Any, B: Any) -> Any:
        """x.y."""
        product = _numbers(A) @ _numbers(B).T
        return product.toarray() if _is_sparse(product) else product

    def own_values(self, A: Any) -> Any:
        """Squared lengths."""
        return _squares(_numbers(A))


@dataclass(frozen=True)
class Polynomial(KernelForm):
    """(gamma x.y + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
    gamma : float, optional
        One over the squared bound on a row by default.
    coef0 : float, default=1.0

    Examples
    --------
    >>> Polynomial().within(radius=5.0).squared_bound  # (x.y/25 + 1)^3
    8.0
    """

    degree: int = 3
    gamma: float | None = None
    coef0: float = 1.0

    _constraints: ClassVar[ParameterTable] = {
        "degree": [Count()],
        "gamma": [Positive(), Null()],
        "coef0": [NonNegative()],
    }
    name: ClassVar[str] = "polynomial"
    bounded: ClassVar[bool] = False

    def within(self, radius: float | None = None, middle: float | None = None) -> Kernel:
        """R^2 = (gamma r^2 + coef0)^degree."""
        r = _needed(self, radius)
        gamma = 1 / r**2 if self.gamma is None else self.gamma
        return Kernel(replace(self, gamma=gamma), (gamma * r**2 + self.coef0) ** self.degree)

    def values(self, A: Any, B: Any) -> Any:
        """(gamma x.y + coef0)^degree."""
        return pairwise.polynomial_kernel(A, B, self.degree, self.gamma, self.coef0)

    def own_values(self, A: Any) -> Any:
        """(gamma x.x + coef0)^degree."""
        assert self.gamma is not None  # within() fills it in
        return (self.gamma * _squares(A) + self.coef0) ** self.degree


@dataclass(frozen=True)
class RBF(KernelForm):
    r"""exp(-gamma \|x - y\|^2).

    Parameters
    ----------
    gamma : float, optional
        One over the squared median of public norms by default.

    Examples
    --------
    >>> RBF().within(radius=2.0).form
    RBF(gamma=0.25)
    """

    gamma: float | None = None

    _constraints: ClassVar[ParameterTable] = {"gamma": [Positive(), Null()]}
    name: ClassVar[str] = "rbf"

    def _scaled_to(self, length: float | None) -> Self:
        return self if self.gamma is not None else replace(self, gamma=1 / (length or 1.0) ** 2)

    def values(self, A: Any, B: Any) -> Any:
        """Of the squared distance."""
        return pairwise.rbf_kernel(A, B, gamma=self.gamma)


@dataclass(frozen=True)
class Laplacian(KernelForm):
    r"""exp(-gamma \|x - y\|_1).

    Parameters
    ----------
    gamma : float, optional
        One over the median of public norms by default.

    Examples
    --------
    >>> Laplacian().within(radius=2.0).form
    Laplacian(gamma=0.5)
    """

    gamma: float | None = None

    _constraints: ClassVar[ParameterTable] = {"gamma": [Positive(), Null()]}
    name: ClassVar[str] = "laplacian"

    def _scaled_to(self, length: float | None) -> Self:
        return self if self.gamma is not None else replace(self, gamma=1 / (length or 1.0))

    def values(self, A: Any, B: Any) -> Any:
        """Of the l1 distance."""
        return pairwise.laplacian_kernel(A, B, gamma=self.gamma)


@dataclass(frozen=True)
class Cosine(KernelForm):
    """Cosine of the angle of two rows.

    Examples
    --------
    >>> Cosine().within().squared_bound
    1.0
    """

    name: ClassVar[str] = "cosine"

    def values(self, A: Any, B: Any) -> Any:
        """The cosine."""
        return pairwise.cosine_similarity(A, B)

    def own_values(self, A: Any) -> Any:
        """1, and 0 for a row of zeros."""
        return (_squares(A) > 0).astype(np.float64)


@dataclass(frozen=True)
class Chi2(KernelForm):
    """exp(-gamma sum_j (x_j - y_j)^2 / (x_j + y_j)); negative cells count as 0.

    Parameters
    ----------
    gamma : float, default=1.0

    Examples
    --------
    >>> Chi2().within(radius=2.0).form
    Chi2(gamma=1.0)
    """

    gamma: float = 1.0

    _constraints: ClassVar[ParameterTable] = {"gamma": [Positive()]}
    name: ClassVar[str] = "chi2"

    def values(self, A: Any, B: Any) -> Any:
        """Of dense rows only."""
        if _is_sparse(A) or _is_sparse(B):
            raise TypeError("kernel: 'chi2' needs dense rows.")
        return pairwise.chi2_kernel(np.maximum(A, 0.0), np.maximum(B, 0.0), gamma=self.gamma)


KERNELS: dict[str, type[KernelForm]] = {
    each.name: each for each in (Linear, Polynomial, RBF, Laplacian, Cosine, Chi2)
}
"""Kernels by name."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A positive definite kernel with a public bound; made by :meth:`KernelForm.within`.

    Values that are not finite count as 0.

    Parameters
    ----------
    form : KernelForm
    squared_bound : float
        R^2: no K(x, x) is larger.

    Examples
    --------
    >>> kernel = Linear().within(radius=2.0)
    >>> kernel(np.array([[1.0], [8.0]]), np.array([[1.0]])).ravel()  # 8 is scaled down to 2
    array([1., 2.])
    """

    form: KernelForm
    squared_bound: float

    def __call__(self, A: Any, B: Any) -> FloatArray:
        """Values of the rows of A with those of B, of shape (len(A), len(B)), in float64."""
        left, right = _double(A), _double(B)
        if not (length_of(left) and length_of(right)):
            return np.zeros((length_of(left), length_of(right)))
        values = np.asarray(self.form.values(left, right), dtype=np.float64)
        known = np.isfinite(values)
        if not known.all():
            values = np.where(known, values, 0.0)
        return self._scaled(values, self._scales(left), self._scales(right))

    def _scaled(self, values: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        if (left < 1).any():
            values *= left[:, None]
        if (right < 1).any():
            values *= right
        return values

    def diagonal(self, A: Any) -> FloatArray:
        """K(x, x) of every row, at most R^2."""
        return np.minimum(self._raw(A), self.squared_bound)

    def _raw(self, A: Any) -> FloatArray:
        return np.maximum(np.asarray(self.form.own_values(A), dtype=np.float64), 0.0)

    def _scales(self, A: Any) -> FloatArray:
        """s; 1 where a value exceeds its bound by rounding only."""
        squares = self._raw(A)
        above = squares > self.squared_bound * (1 + _ROUNDING)
        return np.sqrt(
            np.divide(self.squared_bound, squares, out=np.ones_like(squares), where=above)
        )


def _needed(form: KernelForm, radius: float | None) -> float:
    if radius is None:
        raise ValueError(f"radius: the kernel {form.name!r} has no bound without that of the rows.")
    return radius


def _double(rows: Any) -> Any:
    """Numbers in double precision: single precision amplifies rounding beyond a sensitivity."""
    kind = getattr(getattr(rows, "dtype", None), "kind", "")
    return rows.astype(np.float64, copy=False) if kind in ("b", "i", "u", "f") else rows


def length_of(rows: Any) -> int:
    """Count rows of a table, a list or a sparse matrix."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _is_sparse(rows: Any) -> bool:
    """Whether rows are a sparse matrix."""
    return bool(issparse(rows))


def _numbers(rows: Any) -> Any:
    return rows if _is_sparse(rows) else np.asarray(rows, dtype=np.float64)


def _squares(A: Any) -> FloatArray:
    if _is_sparse(A):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", A, A)


def check_positive_definite(
    kernel: Callable[[Any, Any], Any], points: Any
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors on PUBLIC points; an error if they show that it is no kernel.

    Parameters
    ----------
    kernel : callable
    points : public rows
        A few hundred suffice.

    Examples
    --------
    >>> check_positive_definite(lambda A, B: -(A @ B.T), np.ones((2, 1)))
    Traceback (most recent call last):
    ...
    ValueError: kernel is not positive definite: its matrix on public points has eigenvalue -2. \
Privacy rests on that; use another kernel.
    """
    values = np.asarray(kernel(points, points), dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("kernel is not finite on the public points; mend or replace it.")
    size = float(np.abs(values).max(initial=0.0)) * max(len(values), 1)
    if np.abs(values - values.T).max(initial=0.0) > 1e-9 * size:
        raise ValueError("kernel is not symmetric on the public points; K(x, y) must be K(y, x).")
    eigenvalues, eigenvectors = np.linalg.eigh((values + values.T) / 2)
    least = float(eigenvalues.min(initial=0.0))
    if least < -1e-9 * size:
        raise ValueError(
            "kernel is not positive definite: its matrix on public points has eigenvalue "
            f"{least:.3g}. Privacy rests on that; use another kernel."
        )
    return eigenvalues, eigenvectors


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

    _constraints: ClassVar[ParameterTable] = {
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
    return np.array(values.toarray() if _is_sparse(values) else values, dtype=np.float64)


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
