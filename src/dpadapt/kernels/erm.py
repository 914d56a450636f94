r"""Certified minimisers of a regularised loss, from explicit features or from a kernel matrix.

    J(w) = (1/n) sum_i l(<w, phi_i>, y_i) + (lambda/2) \|w\|^2,    \|phi_i\| <= R.

A solver returns w~ with \|grad J(w~)\| <= r for a *public* tolerance r; bounds, tolerance and
rounding are in :mod:`dpadapt.kernels.constants`, what w~ reveals in
:func:`dpadapt.kernels.queries.weights`.

**The certificate cannot fail.** Newton's steps nearly always reach r in a dozen passes over the
rows. If not, two descents with steps 1/H follow, H = beta R^2 + lambda, kappa = H/lambda:

1. Nesterov's, from 0, momentum (sqrt(kappa) - 1)/(sqrt(kappa) + 1). In exact arithmetic
   J(w_k) - J(w) <= exp(-k/sqrt(kappa)) lambda C^2. Gradients are taken at points that are at most
   three times as far from w as the last two w_k, so their norm is at most
   3 H C sqrt(2) exp(-(k - 1)/(2 sqrt(kappa))): below any t after
   1 + sqrt(kappa) log(18 H^2 C^2/t^2) steps (and one look at the last).
2. The plain one, from 0, which rounding cannot stop. Let every computed gradient and step be off
   by at most rho in all. J falls by at least (\|g\|^2 - rho^2)/(2H) in each step, and
   \|g\|^2 >= 2 lambda (J - J(w)); so, while \|g\| > 2 rho, J - J(w) shrinks by 1 - 3/(4 kappa).
   As \|g\|^2 <= 2H (J - J(w)), some \|g\| <= t among the first
   (4/3) kappa log(lambda H C^2/t^2) steps, for every t >= 2 rho. J never rises, so every iterate
   has \|w_k\| <= 2C.

How many steps were needed depends on the rows, so the time taken does too; nothing else does.

**From a kernel matrix** the minimiser is w = sum_i a_i phi(x_i). Scores of the rows are K a, and
the gradient of J is sum_i r_i phi(x_i) with r = l'(K a)/n + lambda a, so

    \|grad J\|^2 = r^T K r <= n R^2 \|r\|^2.

Newton's step solves (D K/n + lambda) s = -r, D the second derivatives, by conjugate gradients in
the inner product of the kernel: one product with K each. The descents that must succeed if it
does not are the same, on coefficients; in them a_i never exceeds L/(lambda n), so
\|a\|_1 <= 2L/lambda bounds every rounding of K a.

*Rounding of the certificate.* r^T K r is off by at most c u R^2 \|r\|_1^2, with c the number of
roundings of a sum and of a kernel value (1024 are allowed for each of these); this is added before
the root. Where it would hide the norm, sqrt(n) R \|r\| is the smaller bound. In the descents
\|r\|_1 falls to twice beta R/lambda times the norm of the gradient, so the added term is at most
sqrt(4 c u) kappa times that norm: the certificate is reached for every kappa up to 10^6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpadapt._types import FloatArray
from dpadapt.learning.newton import BlockVector, Product, conjugate_gradients, line_search

from .constants import BLOCK, UNIT, Constants, constants, summing
from .losses import ConvexLoss, SoftmaxLoss

_WIDEST_FACTOR = 4000  # columns for which a Hessian is factorised
_NEWTON_STEPS = 100
_CONJUGATE_STEPS = 200
_NEARLY = 30  # times the target, for softer losses
_FLATTER = 0.1  # of the slope, after a line search: 0.5 zigzags between small knees
_LARGEST_GRAM = 10_000  # rows for which wide features are replaced by their kernel matrix


class Space(Protocol):
    """Where minimisers live: coefficients, their scores on the rows, and inner products."""

    rows: int
    size: int

    def scores(self, c: FloatArray) -> FloatArray:
        """Of the rows, for coefficients c."""

    def lift(self, r: FloatArray) -> FloatArray:
        """Coefficients of sum_i r_i phi_i."""

    def pairing(self, c: FloatArray, d: FloatArray, scores: FloatArray) -> FloatArray:
        """Terms whose sum is the inner product of c with d, whose scores are given."""

    def proved(self, c: FloatArray, g: FloatArray, joint: bool, facts: Constants) -> FloatArray:
        """Bound of the norm of the gradient g at c, less the rounding; inf if c is too far."""

    def preconditioner(
        self, weights: FloatArray, penalty: float
    ) -> Callable[[FloatArray], FloatArray] | None:
        """Approximate inverse of the Hessian with these weights of rows."""


def total(terms: FloatArray, joint: bool) -> FloatArray:
    """Sum of each column, or of all: one number for each problem, ready to broadcast.

    Examples
    --------
    >>> total(np.ones((3, 2)), joint=False)
    array([[3., 3.]])
    """
    return np.asarray(terms.sum(axis=None if joint else 0, keepdims=True))


class Explicit:
    """Features F of shape (n, D), dense or sparse by rows, in double precision.

    Examples
    --------
    >>> Explicit(np.array([[1.0], [2.0]])).lift(np.array([[1.0], [1.0]]))
    array([[3.]])
    """

    def __init__(self, features: Any) -> None:
        self.features = features.astype(np.float64, copy=False)
        self.rows, self.size = features.shape
        self._products: tuple[FloatArray, list[FloatArray]] | None = None  # of the last weights

    def scores(self, c: FloatArray) -> FloatArray:
        return np.asarray(self.features @ c)

    def lift(self, r: FloatArray) -> FloatArray:
        out = np.zeros((self.size, r.shape[1]))
        for start in range(0, self.rows, BLOCK):
            out += self.features[start : start + BLOCK].T @ r[start : start + BLOCK]
        return out

    def pairing(self, c: FloatArray, d: FloatArray, scores: FloatArray) -> FloatArray:
        return np.asarray(c * d)

    def proved(self, c: FloatArray, g: FloatArray, joint: bool, facts: Constants) -> FloatArray:
        near = np.sqrt(total(c * c, joint)) <= 2 * facts.norm_bound
        return np.where(near, np.sqrt(total(g * g, joint)), np.inf)

    def preconditioner(
        self, weights: FloatArray, penalty: float
    ) -> Callable[[FloatArray], FloatArray] | None:
        if self.size > min(_WIDEST_FACTOR, self.rows) or not isinstance(self.features, np.ndarray):
            return None
        if self._products is None or not np.array_equal(self._products[0], weights):
            self._products = weights, [self._weighted(column) for column in weights.T]
        penalised = penalty * np.eye(self.size)
        try:
            factors = [
                cho_factor(penalised + product, check_finite=False) for product in self._products[1]
            ]
        except np.linalg.LinAlgError:
            return None

        def apply(c: FloatArray) -> FloatArray:
            columns = [cho_solve(f, c[:, j], check_finite=False) for j, f in enumerate(factors)]
            return np.column_stack(columns)

        return apply

    def _weighted(self, weights: FloatArray) -> FloatArray:
        """F^T diag(weights) F / n."""
        out = np.zeros((self.size, self.size))
        active = np.flatnonzero(weights)
        for start in range(0, len(active), 4 * BLOCK):
            part = active[start : start + 4 * BLOCK]
            scaled = self.features[part] * np.sqrt(weights[part, None] / self.rows)
            out += scaled.T @ scaled
        return out


class KernelMatrix:
    """The span of n rows, by their kernel matrix: coefficients, scores and inner products.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric, in double precision; a view of a larger array will do.

    Examples
    --------
    >>> KernelMatrix(np.array([[2.0, 1.0], [1.0, 2.0]])).scores(np.array([[1.0], [0.0]])).ravel()
    array([2., 1.])
    """

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix
        self.rows = self.size = len(matrix)

    def scores(self, c: FloatArray) -> FloatArray:
        """K c, summed in blocks."""
        out = np.zeros(c.shape)
        for start in range(0, self.rows, BLOCK):
            out += self.matrix[start : start + BLOCK].T @ c[start : start + BLOCK]
        return out

    def lift(self, r: FloatArray) -> FloatArray:
        """Coefficients are multiples of the rows already."""
        return r

    def pairing(self, c: FloatArray, d: FloatArray, scores: FloatArray) -> FloatArray:
        """c^T K d, from K d."""
        return np.asarray(c * scores)

    def proved(self, c: FloatArray, g: FloatArray, joint: bool, facts: Constants) -> FloatArray:
        """Bound of the norm of sum_i g_i phi(x_i), if the coefficients c are in their bounds."""
        lengths = np.abs(c) if not joint else np.sqrt((c * c).sum(axis=1, keepdims=True))
        near = lengths.sum(axis=0, keepdims=True) <= 2 * facts.lipschitz / facts.penalty
        loose = np.sqrt(self.rows * total(g * g, joint)) * facts.radius
        if (loose <= facts.target).all():  # spares a product
            return np.where(near, loose, np.inf)
        square = np.maximum(total(g * self.scores(g), joint), 0.0)
        hidden = (2 * summing(self.rows) + BLOCK) * UNIT * facts.radius**2
        off = hidden * total(np.abs(g).sum(axis=0, keepdims=True) ** 2, joint)
        return np.where(near, np.minimum(loose, np.sqrt(square + off)), np.inf)

    def preconditioner(
        self, weights: FloatArray, penalty: float
    ) -> Callable[[FloatArray], FloatArray] | None:
        """None: the inner product of the kernel is preconditioning enough."""
        return None


def _newton_from_softer(
    space: Space, y: FloatArray, loss: ConvexLoss, facts: Constants
) -> tuple[FloatArray, bool]:
    """Newton's steps, first on softer losses; the last iterate, and whether it is proved."""
    w = np.zeros((space.size, loss.columns(y)))
    for softer in loss.softer:
        w, _ = _newton(space, y, softer, facts, w, _NEARLY * facts.target)
    return _newton(space, y, loss, facts, w, facts.target)


def _newton(
    space: Space, y: FloatArray, loss: ConvexLoss, facts: Constants, w: FloatArray, target: float
) -> tuple[FloatArray, bool]:
    """Newton's steps by preconditioned conjugate gradients, from w to a norm of the gradient.

    The preconditioner is an earlier Hessian, made anew when it no longer saves enough work.
    """
    precondition: Callable[[FloatArray], FloatArray] | None = None
    work = math.inf
    for _ in range(_NEWTON_STEPS):
        f = space.scores(w)
        g = space.lift(loss.derivative(f, y) / space.rows) + facts.penalty * w
        open_ = ~(space.proved(w, g, loss.joint, facts) <= target)  # also where it is not a number
        if not open_.any():
            return w, True
        bend = loss.curvature(f, y)
        if work > 8:
            precondition = space.preconditioner(loss.diagonal(bend), facts.penalty)
        x, xs, work = _direction(space, g * open_, bend, loss, facts, precondition)
        along = total(space.pairing(w, x, xs), loss.joint) * facts.penalty
        length = total(space.pairing(x, x, xs), loss.joint) * facts.penalty

        def slope(t: FloatArray) -> FloatArray:
            losses = total(loss.derivative(f + t * xs, y) * xs, loss.joint) / space.rows  # noqa: B023
            return np.asarray(losses + along + t * length)  # noqa: B023

        moved = w + line_search(slope, slope(np.zeros_like(along)), flat=_FLATTER) * x
        if not np.isfinite(moved).all():
            break
        w = moved
    return w, False


def _direction(
    space: Space,
    g: FloatArray,
    bend: FloatArray,
    loss: ConvexLoss,
    facts: Constants,
    precondition: Callable[[FloatArray], FloatArray] | None,
) -> tuple[FloatArray, FloatArray, int]:
    """Newton direction to a hundredth, its scores, and the number of iterations."""

    def scored(r: FloatArray) -> BlockVector:
        z = r if precondition is None else precondition(r)
        return z, space.scores(z)

    def product(search: BlockVector) -> Product:
        p, ps = search
        bent = loss.curve(bend, ps)
        energy = total(bent * ps, loss.joint) / space.rows
        energy = energy + facts.penalty * total(space.pairing(p, p, ps), loss.joint)
        return Product(search, space.lift(bent) / space.rows + facts.penalty * p, energy)

    def inner(r: FloatArray, z: BlockVector) -> FloatArray:
        return total(space.pairing(r, *z), loss.joint)

    def measure(r: FloatArray, z: BlockVector) -> FloatArray:
        # by r itself: an old preconditioner hides what curved then and is flat now
        return total(space.pairing(r, r, z[1]), loss.joint)

    zero = np.zeros_like(g), np.zeros_like(bend)
    options: dict[str, Any] = {"tolerance": 1e-4, "most": _CONJUGATE_STEPS, "measure": measure}
    (x, xs), work = conjugate_gradients(g, zero, product, scored, inner, **options)
    return x, xs, work


def certified_descent(
    space: Space, y: FloatArray, loss: ConvexLoss, facts: Constants, steps: int, momentum: float
) -> tuple[FloatArray, bool]:
    """Descent from 0 until every problem is proved; a problem that is proved stands still."""
    w = v = np.zeros((space.size, loss.columns(y)))
    for _ in range(steps):
        g = space.lift(loss.derivative(space.scores(v), y) / space.rows) + facts.penalty * v
        open_ = ~(space.proved(v, g, loss.joint, facts) <= facts.target)
        if not open_.any():
            return v, True
        new = v - g / facts.steepest
        v, w = np.where(open_, new + momentum * (new - w), v), np.where(open_, new, w)
    return v, False


def _minimise(space: Space, y: FloatArray, loss: ConvexLoss, facts: Constants) -> FloatArray:
    """Newton's steps, then, should they not suffice, the descents that must."""
    with np.errstate(all="ignore"):
        w, proved = _newton_from_softer(space, y, loss, facts)
        root = math.sqrt(facts.condition)
        plans = (
            (facts.accelerated_steps, (root - 1) / (root + 1)),
            (facts.plain_steps, 0.0),
        )
        for steps, momentum in plans:
            if not proved:
                w, proved = certified_descent(space, y, loss, facts, steps, momentum)
    return w


def problem(
    rows: int, y: Any, loss: ConvexLoss, radius: float, penalty: float, width: int | None
) -> tuple[FloatArray, Constants]:
    """Labels as columns, and the constants of one column."""
    labels = np.asarray(y, dtype=np.float64)
    if labels.shape[:1] != (rows,) or labels.ndim > 2 - isinstance(loss, SoftmaxLoss):
        raise ValueError(f"y must have one label for each of {rows} rows; got {labels.shape}.")
    labels = labels[:, None] if labels.ndim == 1 else labels
    return labels, constants(loss, radius, penalty, rows, width=width)


def solve(features: Any, y: Any, loss: ConvexLoss, penalty: float, radius: float) -> FloatArray:
    r"""Weights w with a certified gradient: \|grad J(w)\| <= r, for all finite rows and labels.

    Parameters
    ----------
    features : ndarray or CSR matrix of shape (n, D)
        Rows of norm at most ``radius``.
    y : ndarray of shape (n,) or (n, k)
        Labels; k columns are k problems on the same rows.
    loss : Loss
    penalty : float
        lambda.
    radius : float
        R.

    Returns
    -------
    ndarray of shape (D,), or (D, k) for k columns of labels or k classes of softmax

    Examples
    --------
    >>> from dpadapt.kernels.losses import Squared
    >>> solve(np.array([[1.0], [1.0]]), [1.0, 0.5], Squared(1.0), penalty=1.0, radius=1.0).round(3)
    array([0.5])
    """
    return solve_each(features, y, loss, [penalty], radius)[0]


def solve_each(
    features: Any, y: Any, loss: ConvexLoss, penalties: Sequence[float], radius: float
) -> list[FloatArray]:
    """Return what :func:`solve` does for every penalty; products of the rows are computed once.

    Parameters
    ----------
    features, y, loss, radius
        As in :func:`solve`.
    penalties : sequence of float

    Examples
    --------
    >>> from dpadapt.kernels.losses import Squared
    >>> rows, labels = np.ones((2, 1)), [1.0, 0.5]
    >>> [float(w[0].round(3)) for w in solve_each(rows, labels, Squared(1.0), [1.0, 4.0], 1.0)]
    [0.5, 0.25]
    """
    space, found = Explicit(features), []
    for penalty in penalties:
        labels, facts = problem(space.rows, y, loss, radius, penalty, space.size)
        w = _from_kernel_matrix(space, labels, loss, facts)
        w = _minimise(space, labels, loss, facts) if w is None else w
        found.append(w if np.ndim(y) == 2 or loss.joint else w[:, 0])
    return found


def _from_kernel_matrix(
    space: Any, y: FloatArray, loss: ConvexLoss, facts: Constants
) -> FloatArray | None:
    """Weights by way of n coefficients where there are more features than rows, if proved."""
    if space.size <= space.rows or space.rows > _LARGEST_GRAM:
        return None
    product = space.features @ space.features.T
    matrix = KernelMatrix(
        np.asarray(product if isinstance(product, np.ndarray) else product.todense())
    )
    with np.errstate(all="ignore"):
        w = space.lift(_newton_from_softer(matrix, y, loss, facts)[0])
        g = space.lift(loss.derivative(space.scores(w), y) / space.rows) + facts.penalty * w
        proved = space.proved(w, g, loss.joint, facts) <= facts.target
    return w if proved.all() else None


def certified_gradient(
    features: Any, y: Any, loss: ConvexLoss, penalty: float, radius: float, w: FloatArray
) -> float:
    r"""Bound of \|grad J(w)\|, rounding included: the largest of the columns; inf if w is too far.

    It depends on the rows: compare it with ``constants(...).tolerance``, and release neither it
    nor the comparison.

    Parameters
    ----------
    features, y, loss, penalty, radius
        As in :func:`solve`.
    w : ndarray
        What :func:`solve` returned, or any other weights.

    Examples
    --------
    >>> from dpadapt.kernels.losses import Logistic
    >>> rows, labels = np.ones((4, 1)), np.array([1.0, 1.0, 1.0, -1.0])
    >>> float(round(certified_gradient(rows, labels, Logistic(), 1.0, 1.0, np.zeros(1)), 6))
    0.25
    """
    labels, facts = problem(features.shape[0], y, loss, radius, penalty, features.shape[1])
    space = Explicit(features)
    c = np.asarray(w, dtype=np.float64).reshape(space.size, -1)
    with np.errstate(all="ignore"):
        g = space.lift(loss.derivative(space.scores(c), labels) / space.rows) + penalty * c
        return float(space.proved(c, g, loss.joint, facts).max() + facts.rounding)


def solve_gram(
    matrix: FloatArray, y: Any, loss: ConvexLoss, penalty: float, radius: float
) -> FloatArray:
    r"""Coefficients a of w = sum_i a_i phi(x_i) with \|grad J(w)\| <= r certified.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        K(x_i, x_j), with K(x, x) at most ``radius`` squared; in double precision.
    y : ndarray of shape (n,) or (n, k)
    loss : Loss
    penalty : float
        lambda.
    radius : float
        R.

    Returns
    -------
    ndarray of shape (n,), or (n, k) for k columns of labels or k classes of softmax
        Predictions at z are K(z, X) a.

    Examples
    --------
    >>> from dpadapt.kernels.losses import Squared
    >>> solve_gram(np.eye(2), [1.0, -1.0], Squared(1.0), penalty=1.0, radius=1.0).round(3)
    array([ 0.5, -0.5])
    """
    labels, facts = _problem(matrix, y, loss, penalty, radius)
    a = _minimise(KernelMatrix(matrix), labels, loss, facts)
    return a if np.ndim(y) == 2 or loss.joint else a[:, 0]


def _problem(
    matrix: FloatArray, y: Any, loss: ConvexLoss, penalty: float, radius: float
) -> tuple[FloatArray, Constants]:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype != np.float64:
        raise ValueError(
            "the kernel matrix must be square and of float64: single precision amplifies rounding "
            f"beyond the sensitivity; got {matrix.shape} of {matrix.dtype}."
        )
    return problem(len(matrix), y, loss, radius, penalty, None)


def certified_gram_gradient(
    matrix: FloatArray, y: Any, loss: ConvexLoss, penalty: float, radius: float, a: FloatArray
) -> float:
    r"""Bound of \|grad J(w)\|, w = sum_i a_i phi(x_i), rounding included; not to be released.

    Parameters
    ----------
    matrix, y, loss, penalty, radius
        As in :func:`solve_gram`.
    a : ndarray
        Coefficients.

    Examples
    --------
    >>> from dpadapt.kernels.losses import Squared
    >>> round(certified_gram_gradient(np.eye(1), [1.0], Squared(1.0), 1.0, 1.0, np.zeros(1)), 6)
    2.0
    """
    labels, facts = _problem(matrix, y, loss, penalty, radius)
    space = KernelMatrix(matrix)
    c = np.asarray(a, dtype=np.float64).reshape(space.size, -1)
    with np.errstate(all="ignore"):
        g = loss.derivative(space.scores(c), labels) / space.rows + penalty * c
        return float(space.proved(c, g, loss.joint, facts).max() + facts.rounding)
