r"""Certified minimisers of a regularised loss, from explicit features.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from .constants import Constants, constants
from .losses import ConvexLoss, SoftmaxLoss
from .spaces import Explicit, KernelMatrix, Space, total

_NEWTON_STEPS = 100
_CONJUGATE_STEPS = 200
_NEARLY = 30  # times the target, for softer losses
_FLATTER = 0.1  # of the slope, after a line search: 0.5 zigzags between small knees
_LARGEST_GRAM = 10_000  # rows for which wide features are replaced by their kernel matrix


def _line(slope: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    """Steps along directions of descent to a much smaller slope, by doubling and halving."""
    low, high = np.zeros_like(start), np.full_like(start, np.inf)
    step = np.ones_like(start)
    for _ in range(60):
        now = slope(step)
        if (np.abs(now) <= _FLATTER * np.abs(start)).all():
            break
        low, high = np.where(now < 0, step, low), np.where(now > 0, step, high)
        middle = np.where(np.isinf(high), 2 * step, (low + np.minimum(high, 1e300)) / 2)
        step = np.where(np.abs(now) <= _FLATTER * np.abs(start), step, middle)
    return step


def newton(
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
        x, xs, work = _conjugate_gradients(space, g * open_, bend, loss, facts, precondition)
        along = total(space.pairing(w, x, xs), loss.joint) * facts.penalty
        length = total(space.pairing(x, x, xs), loss.joint) * facts.penalty

        def slope(t: FloatArray) -> FloatArray:
            losses = total(loss.derivative(f + t * xs, y) * xs, loss.joint) / space.rows  # noqa: B023
            return np.asarray(losses + along + t * length)  # noqa: B023

        moved = w + _line(slope, slope(np.zeros_like(along))) * x
        if not np.isfinite(moved).all():
            break
        w = moved
    return w, False


def _conjugate_gradients(
    space: Space,
    g: FloatArray,
    bend: FloatArray,
    loss: ConvexLoss,
    facts: Constants,
    precondition: Callable[[FloatArray], FloatArray] | None,
) -> tuple[FloatArray, FloatArray, int]:
    """Newton direction to a hundredth, its scores, and the number of iterations."""

    def divided(a: FloatArray, b: FloatArray) -> FloatArray:
        return np.divide(a, b, out=np.zeros_like(a), where=b > 0)

    r = -g
    x, xs = np.zeros_like(g), np.zeros_like(bend)
    z = r if precondition is None else precondition(r)
    zs = space.scores(z)
    p, ps = z, zs
    rz, first = (total(space.pairing(r, c, zs), loss.joint) for c in (z, r))
    for done in range(_CONJUGATE_STEPS):
        # measured by r itself: an old preconditioner hides what curved then and is flat now
        if (total(space.pairing(r, r, zs), loss.joint) <= 1e-4 * first).all():
            return x, xs, done
        bent = loss.curve(bend, ps)
        energy = total(bent * ps, loss.joint) / space.rows
        energy = energy + facts.penalty * total(space.pairing(p, p, ps), loss.joint)
        step = divided(rz, energy)
        x, xs = x + step * p, xs + step * ps
        r = r - step * (space.lift(bent) / space.rows + facts.penalty * p)
        z = r if precondition is None else precondition(r)
        zs = space.scores(z)
        before, rz = rz, total(space.pairing(r, z, zs), loss.joint)
        turn = divided(rz, before)
        p, ps = z + turn * p, zs + turn * ps
    return x, xs, _CONJUGATE_STEPS


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


def minimise(space: Space, y: FloatArray, loss: ConvexLoss, facts: Constants) -> FloatArray:
    """Newton's steps, then, should they not suffice, the descents that must."""
    with np.errstate(all="ignore"):
        w, proved = newton(space, y, loss, facts)
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
        w = minimise(space, labels, loss, facts) if w is None else w
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
        w = space.lift(newton(matrix, y, loss, facts)[0])
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
