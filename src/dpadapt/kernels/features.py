r"""Kernels with a public bound K(x, x) <= R^2, and explicit feature maps of some of them.

A sensitivity is 2LR/(lambda n), so R must be known before a row is seen. For rows of norm at most
r it follows from the kernel (linear r^2, polynomial (gamma r^2 + coef0)^degree, and 1 for those of
a distance); for a kernel of the caller's it is his to state. A row with a larger K(x, x), private
or asked about, is scaled down by the public rule

    K(x, y) s(x) s(y),    s(x) = min(1, R/sqrt(K(x, x))),

again a kernel, whose features have norm at most R.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.metrics import pairwise

from dpadapt.privacy import _validate as validate
from dpadapt.privacy._total import by_pairs
from dpadapt.privacy.errors import LET_THROUGH

__all__ = [
    "FourierFeatures",
    "Kernel",
    "LinearFeatures",
    "NystroemFeatures",
    "PolynomialFeatures",
    "check_positive_definite",
    "resolve_kernel",
]

Array = NDArray[np.float64]

NAMES = ("chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf")
_NOT_KERNELS = ("additive_chi2", "sigmoid")
_FLOOR = 1e-6  # of the largest eigenvalue: below it landmarks add rounding, not features
_ROUNDING = 1e-12  # of a squared norm: the tolerance of a solver covers it
_CHUNK = 4096  # rows mapped at a time


@dataclass(frozen=True, eq=False)
class Kernel:
    """A positive definite kernel with a public bound; made by :func:`resolve_kernel`.

    Values that are not finite count as 0.

    Parameters
    ----------
    name : str
    squared_bound : float
        R^2: no K(x, x) is larger.
    gamma, degree, coef0 : float, int, float
        Of the kernels that have them.
    function : callable, optional
        A kernel of the caller's.

    Examples
    --------
    >>> kernel = resolve_kernel("linear", radius=2.0)
    >>> kernel(np.array([[1.0], [8.0]]), np.array([[1.0]])).ravel()  # 8 is scaled down to 2
    array([1., 2.])
    """

    name: str
    squared_bound: float
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0
    function: Callable[[Any, Any], Any] | None = None

    def _matrix(self, A: Any, B: Any) -> Any:
        if self.function is not None:
            return _values(self.function, A, B)
        if self.name == "polynomial":
            return pairwise.polynomial_kernel(A, B, self.degree, self.gamma, self.coef0)
        plain: dict[str, Callable[[Any, Any], Any]] = {
            "cosine": pairwise.cosine_similarity,
            "linear": pairwise.linear_kernel,
        }
        if self.name in plain:
            return plain[self.name](A, B)
        wide = {"rbf": pairwise.rbf_kernel, "laplacian": pairwise.laplacian_kernel, "chi2": _chi2}
        return wide[self.name](A, B, gamma=self.gamma)

    def _self_values(self, A: Any) -> Any:
        if self.function is not None:
            return _own_values(self.function, A)
        if self.name == "polynomial":
            return _polynomial_self(A, self.degree, self.gamma, self.coef0)
        own: dict[str, Callable[[Any], Any]] = {
            "linear": _squares,
            "cosine": _cosine_self,
        }
        return own.get(self.name, _ones)(A)

    def __call__(self, A: Any, B: Any) -> Array:
        """Values of the rows of A with those of B, of shape (len(A), len(B)), in float64."""
        left, right = _double(A), _double(B)
        if not (_length(left) and _length(right)):
            return np.zeros((_length(left), _length(right)))
        values = np.asarray(self._matrix(left, right), dtype=np.float64)
        np.nan_to_num(values, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        return self._scaled(values, self._scales(left), self._scales(right))

    def _scaled(self, values: Array, left: Array, right: Array) -> Array:
        if (left < 1).any():
            values *= left[:, None]
        if (right < 1).any():
            values *= right
        return values

    def diagonal(self, A: Any) -> Array:
        """K(x, x) of every row, at most R^2."""
        return np.minimum(self._raw(A), self.squared_bound)

    def _raw(self, A: Any) -> Array:
        return np.maximum(np.asarray(self._self_values(A), dtype=np.float64), 0.0)

    def _scales(self, A: Any) -> Array:
        """s; 1 where a value exceeds its bound by rounding only."""
        squares = self._raw(A)
        above = squares > self.squared_bound * (1 + _ROUNDING)
        return np.sqrt(
            np.divide(self.squared_bound, squares, out=np.ones_like(squares), where=above)
        )


def resolve_kernel(
    kernel: Any = "rbf",
    *,
    radius: float | None = None,
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    bound: float | None = None,
) -> Kernel:
    r"""Kernel of a name or of the caller, with its bound.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "polynomial" ("poly"), "rbf", "laplacian", "cosine", "chi2" (of features that are
        not negative: others count as 0), or a function of two lists of rows that
        returns the matrix of their values. Rows may be sparse, or strings, if it can read them.
    radius : float, optional
        r: bound of the norm of a row.
    gamma : float, optional
        1/r^2 by default (1/r for "laplacian"), 1 without a radius.
    degree : int, default=3
    coef0 : float, default=1.0
    bound : float, optional
        R^2, of a callable.

    Examples
    --------
    >>> resolve_kernel("polynomial", radius=5.0).squared_bound  # (x.y/25 + 1)^3
    8.0
    >>> shared = lambda A, B: [[len(set(a) & set(b)) for b in B] for a in A]
    >>> resolve_kernel(shared, bound=26)(["ab", "bc"], ["abc"]).ravel()
    array([2., 2.])
    >>> resolve_kernel("sigmoid")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: kernel: 'sigmoid' is not positive definite, ...
    """
    if callable(kernel):
        limit = _stated(bound, "a callable")
        name = getattr(kernel, "__name__", type(kernel).__name__)
        return Kernel(name, limit, function=kernel)
    refuse_table(kernel)
    if kernel in _NOT_KERNELS:
        raise ValueError(
            f"kernel: {kernel!r} is not positive definite, so it has no features to protect; "
            f"choose one of {', '.join(NAMES)}."
        )
    validate.choice("kernel", kernel, NAMES)
    r = None if radius is None else validate.positive("radius", radius)
    if kernel == "cosine":
        return Kernel("cosine", 1.0)
    if kernel in ("linear", "poly", "polynomial") and r is None:
        raise ValueError(f"radius: the kernel {kernel!r} has no bound without that of the rows.")
    if kernel == "linear":
        return Kernel("linear", r**2)  # type: ignore[operator]
    default = 1.0 if r is None or kernel == "chi2" else 1 / (r if kernel == "laplacian" else r**2)
    width = default if gamma is None else validate.positive("gamma", gamma)
    if kernel in ("poly", "polynomial"):
        power, shift = validate.count("degree", degree), validate.non_negative("coef0", coef0)
        limit = (width * r**2 + shift) ** power  # type: ignore[operator]
        return Kernel("polynomial", limit, width, power, shift)
    return Kernel(kernel, 1.0, width)


def refuse_table(kernel: Any) -> None:
    """Refuse a table of kernel values in place of a kernel.

    Examples
    --------
    >>> refuse_table("rbf")
    """
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "kernel: 'precomputed' is refused: a row of such a table has values with all other "
            "rows, so it is not one person's, and nothing bounds it. Give the rows themselves, and "
            "as kernel a name or a function of two tables of rows with its bound."
        )


def _stated(bound: float | None, what: str) -> float:
    if bound is None:
        raise ValueError(f"bound: {what} needs a public bound of K(x, x), such as bound=1.0.")
    return validate.positive("bound", bound)


def _double(rows: Any) -> Any:
    """Numbers in double precision: single precision amplifies rounding beyond a sensitivity."""
    kind = getattr(getattr(rows, "dtype", None), "kind", "")
    return rows.astype(np.float64, copy=False) if kind in ("b", "i", "u", "f") else rows


def _length(rows: Any) -> int:
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _values(kernel: Callable[[Any, Any], Any], A: Any, B: Any) -> Array:
    """Values of a caller's kernel; where it fails on a pair or is not finite, 0."""
    shape = (_length(A), _length(B))
    with np.errstate(all="ignore"):
        values = np.asarray(by_pairs(lambda a, b: _dense(kernel(a, b)), A, B, *shape))
    if values.shape != shape:
        raise ValueError(
            "kernel: the callable must return one value for each pair of rows, of shape "
            f"{shape}; got {values.shape}."
        )
    return values


def _dense(values: Any) -> Array:
    """A copy: the caller's array is not ours to scale."""
    return np.array(values.toarray() if _sparse(values) else values, dtype=np.float64)


def _sparse(rows: Any) -> bool:
    return bool(issparse(rows))


def _one(kernel: Callable[[Any, Any], Any], a: Any, b: Any) -> float:
    try:
        return float(_dense(kernel(a, b)).reshape(()))
    except LET_THROUGH:
        raise
    except BaseException:  # it may depend on a value
        return 0.0


def _own_values(kernel: Callable[[Any, Any], Any], A: Any) -> Array:
    if hasattr(kernel, "diagonal"):
        return np.nan_to_num(np.asarray(kernel.diagonal(A), dtype=np.float64))
    ones = (_one(kernel, A[i : i + 1], A[i : i + 1]) for i in range(_length(A)))
    return np.nan_to_num(np.fromiter(ones, dtype=np.float64, count=_length(A)), posinf=0.0)


def _squares(A: Any) -> Array:
    if _sparse(A):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", A, A)


def _polynomial_self(A: Any, degree: int, gamma: float, coef0: float) -> Array:
    return np.asarray((gamma * _squares(A) + coef0) ** degree)


def _cosine_self(A: Any) -> Array:
    return (_squares(A) > 0).astype(np.float64)


def _ones(A: Any) -> Array:
    return np.ones(_length(A))


def _chi2(A: Any, B: Any, gamma: float) -> Array:
    if _sparse(A) or _sparse(B):
        raise TypeError("kernel: 'chi2' needs dense rows.")
    return np.asarray(
        pairwise.chi2_kernel(np.maximum(A, 0.0), np.maximum(B, 0.0), gamma=gamma), dtype=np.float64
    )


def check_positive_definite(kernel: Callable[[Any, Any], Any], points: Any) -> None:
    """Say that a kernel is not one, if its matrix on PUBLIC points shows it.

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
    least = float(np.linalg.eigvalsh((values + values.T) / 2).min(initial=0.0))
    if least < -1e-9 * size:
        raise ValueError(
            "kernel is not positive definite: its matrix on public points has eigenvalue "
            f"{least:.3g}. Privacy rests on that; use another kernel."
        )


def _within(features: Array, squared_bound: float) -> Array:
    """Rows scaled down to the bound of their norm, in place."""
    squares = np.einsum("ij,ij->i", features, features)
    above = squares > squared_bound * (1 + _ROUNDING)
    if above.any():
        features[above] *= np.sqrt(squared_bound / squares[above])[:, None]
    return features


@dataclass(frozen=True)
class LinearFeatures:
    """The rows themselves: K(x, y) = x.y.

    Parameters
    ----------
    width : int
        Number of columns.
    radius : float
        Rows of a larger norm are scaled down to it.

    Examples
    --------
    >>> LinearFeatures(2, radius=1.0)(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """

    width: int
    radius: float

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.width

    @property
    def squared_bound(self) -> float:
        """R^2."""
        return self.radius**2

    def __call__(self, X: Array) -> Array:
        """Features of every row."""
        return _within(np.array(X, dtype=np.float64), self.squared_bound)


@dataclass(frozen=True)
class PolynomialFeatures:
    r"""Exact features of (gamma x.y + coef0)^degree: all weighted monomials.

    With v = (sqrt(gamma) x, sqrt(coef0)) the kernel is (v.v')^q, the sum over multisets alpha of q
    coordinates of q!/prod(alpha_i!) v^alpha v'^alpha. So the features are
    sqrt(q!/prod(alpha_i!)) v^alpha, C(d + q, q) of them (C(d + q - 1, q) if coef0 is 0), of
    squared norm K(x, x) <= (gamma r^2 + coef0)^q.

    Parameters
    ----------
    width : int
        d.
    radius : float
        r; rows of a larger norm count as the nearest of norm r.
    degree : int, default=3
        q.
    gamma : float, default=1.0
    coef0 : float, default=1.0

    Examples
    --------
    >>> features = PolynomialFeatures(2, radius=1.0, degree=2)
    >>> x, y = np.array([[0.6, 0.8]]), np.array([[1.0, 0.0]])
    >>> features.n_features, features.squared_bound
    (6, 4.0)
    >>> float((features(x) @ features(y).T)[0, 0].round(12)), 1.6**2
    (2.56, 2.5600000000000005)
    """

    width: int
    radius: float
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("degree", self.degree)
        validate.positive("radius", self.radius)
        validate.positive("gamma", self.gamma)
        validate.non_negative("coef0", self.coef0)

    @property
    def _variables(self) -> int:
        return self.width + (self.coef0 > 0)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return math.comb(self._variables + self.degree - 1, self.degree)

    @property
    def squared_bound(self) -> float:
        """R^2."""
        return float((self.gamma * self.radius**2 + self.coef0) ** self.degree)

    def __call__(self, X: Array) -> Array:
        """Features of every row."""
        rows = math.sqrt(self.gamma) * _within(np.array(X, dtype=np.float64), self.radius**2)
        out = np.empty((len(rows), self.n_features))
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK].T
            if self.coef0 > 0:
                part = np.vstack([part, np.full((1, part.shape[1]), math.sqrt(self.coef0))])
            out[start : start + _CHUNK] = self._monomials(np.ascontiguousarray(part)).T
        return _within(out, self.squared_bound)

    def _monomials(self, v: Array) -> Array:
        """Weighted monomials of degree q of the rows of v, one in a row.

        Degree by degree: those that begin with coordinate j are v_j times those of one degree less
        in the coordinates from j on. The weight of v_j^m is 1/sqrt(m!), gathered as 1/sqrt(run)
        from the length of each run of equal coordinates, and sqrt(q!) at the end.
        """
        count = len(v)
        values = np.ones((1, v.shape[1]))
        first, run = np.full(1, count), np.zeros(1)  # first coordinate, and how often it repeats
        for _ in range(self.degree):
            blocks, heads, runs = [], [], []
            for j in range(count):
                tail = first >= j
                again = np.where(first[tail] == j, run[tail] + 1, 1.0)
                blocks.append(v[j] * (values[tail] / np.sqrt(again)[:, None]))
                heads.append(np.full(len(again), j))
                runs.append(again)
            values = np.concatenate(blocks)
            first, run = np.concatenate(heads), np.concatenate(runs)
        return np.asarray(values * math.sqrt(math.factorial(self.degree)))


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    r"""Random Fourier features of exp(-gamma \|x - y\|^2): public draws, norm exactly 1.

    cos(w.x) and sin(w.x) for D/2 frequencies w from N(0, 2 gamma I), divided by sqrt(D/2): the
    squares of each pair sum to 2/D, so \|phi(x)\| = 1 for every x.

    Parameters
    ----------
    width : int
        Number of columns.
    gamma : float, default=1.0
    n_components : int, default=512
        D; even.
    seed : int, default=0
        Public: it protects nothing.

    Examples
    --------
    >>> features = FourierFeatures(1, gamma=0.5, n_components=4000)
    >>> float((features(np.zeros((1, 1))) @ features(np.ones((1, 1))).T)[0, 0].round(2))
    0.61
    """

    width: int
    gamma: float = 1.0
    n_components: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        validate.positive("gamma", self.gamma)
        if validate.count("n_components", self.n_components) % 2:
            raise ValueError(f"n_components must be even; got {self.n_components}.")
        draws = np.random.default_rng(self.seed).standard_normal(
            (validate.count("width", self.width), self.n_components // 2)
        )
        object.__setattr__(self, "_frequencies", math.sqrt(2 * self.gamma) * draws)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_components

    @property
    def squared_bound(self) -> float:
        """1."""
        return 1.0

    def __call__(self, X: Array) -> Array:
        """Features of every row."""
        angles = np.asarray(X, dtype=np.float64) @ self._frequencies  # type: ignore[attr-defined]
        half = self.n_components // 2
        out = np.empty((len(angles), self.n_components))
        np.cos(angles, out=out[:, :half])
        np.sin(angles, out=out[:, half:])
        out /= math.sqrt(half)
        return _within(out, 1.0)


@dataclass(frozen=True, eq=False)
class NystroemFeatures:
    r"""Features of any kernel on the span of public landmarks Z: S^{-1/2} U^T K(Z, x).

    K_ZZ = U S U^T, only eigenvalues above a millionth of the largest being kept. The columns of
    Phi_Z^T U S^{-1/2} are orthonormal, so phi(x) holds the coordinates of a projection of the
    kernel's own features, and \|phi(x)\|^2 <= K(x, x) <= R^2. What rounding adds to that is cut
    off.

    Parameters
    ----------
    kernel : Kernel
    landmarks : public rows

    Examples
    --------
    >>> kernel = resolve_kernel("linear", radius=1.0)
    >>> features = NystroemFeatures(kernel, np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    >>> features.n_features
    2
    >>> x = np.array([[0.6, 0.8]])
    >>> float(np.linalg.norm(features(x)).round(6))
    1.0
    """

    kernel: Kernel
    landmarks: Any

    def __post_init__(self) -> None:
        check_positive_definite(self.kernel, self.landmarks)
        values = self.kernel(self.landmarks, self.landmarks)
        scales, axes = np.linalg.eigh((values + values.T) / 2)
        kept = scales > _FLOOR * max(float(scales[-1]), np.finfo(float).tiny)
        if not kept.any():
            raise ValueError("landmarks: the kernel is 0 on all of them; choose others.")
        object.__setattr__(self, "_map", axes[:, kept] / np.sqrt(scales[kept]))

    @property
    def n_features(self) -> int:
        """Number of features: at most that of the landmarks."""
        return int(self._map.shape[1])  # type: ignore[attr-defined]

    @property
    def squared_bound(self) -> float:
        """R^2."""
        return self.kernel.squared_bound

    def __call__(self, X: Any) -> Array:
        """Features of every row."""
        features = self.kernel(X, self.landmarks) @ self._map  # type: ignore[attr-defined]
        return _within(features, self.squared_bound)
