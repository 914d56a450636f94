r"""Every sensitivity that is claimed of a private kernel model, with its proof.

All of them rest on one: by how much the model w* itself can move, in the norm of the kernel's own
space, when one of n private rows is replaced (:func:`weights`). What is computed from hidden
predictions of w* and from public values moves by no more than that allows. The functions return
hidden values; a session releases them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpadapt import _validate as validate
from dpadapt.privacy import Hidden, Session

from .constants import Bounds, Constants
from .pool import Pool, double

__all__ = [
    "all_predictions",
    "all_sensitivity",
    "away_from",
    "difference_along",
    "difference_at",
    "each_sensitivity",
    "prediction_at",
    "predictions",
    "scores",
    "weights",
    "whitened",
    "whitened_sensitivity",
]

Array = NDArray[np.float64]

_LABEL = "predictions at the pool"
_UNIT = float(np.finfo(np.float64).eps)
_ABOVE = 1 + 1e-9  # rounding of a public bound


def weights(
    session: Session, rows: Hidden, solve: Callable[[Array], Array], facts: Constants
) -> Hidden:
    r"""Weights w~ of explicit features; they move by at most Delta.

    Let one of n records be replaced, w and w' the minimisers of J and J' (see
    :mod:`dpadapt.kernels.erm`). J is lambda-strongly convex, so
    J(w') - J(w) >= (lambda/2) \|w - w'\|^2, and the same with J' and the two exchanged. Added up,
    only the replaced record is left: lambda \|w - w'\|^2 <= (2LR/n) \|w - w'\|. The solver returns
    w~ with \|grad J(w~)\| <= r for a *public* r, hence \|w~ - w\| <= r/lambda, and

        Delta = 2LR/(lambda n) + 2r/lambda,    r = 0.005 * 2LR/n:

    one hundredth more than for exact minimisers. k models of one record each (one against the rest)
    move together by sqrt(k) Delta. The first term is attained by a hinge on one feature, if the
    replaced record changes its label and lies on the slope for both.

    Parameters
    ----------
    session : Session
    rows : Hidden
        Features of every row, and the label as the last column.
    solve : callable
        From ``rows`` to what :func:`dpadapt.kernels.erm.solve` returns.
    facts : Constants
        Of the same problem.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> from dpadapt.kernels.constants import constants
    >>> from dpadapt.kernels.losses import Logistic
    >>> facts = constants(Logistic(), radius=1.0, penalty=1.0, rows=2, width=2)
    >>> round(weights(session, hidden, lambda X: np.zeros((2, 1)), facts).sensitivity, 6)
    1.01
    """
    return session.derive(rows, solve, label="weights", sensitivity=facts.sensitivity)


def predictions(session: Session, hidden: Hidden, predict: Callable[[Array], Array]) -> Hidden:
    """Predictions of w* at a pool, of shape (T,) or (T, k), hidden and without a claim.

    Parameters
    ----------
    session : Session
    hidden : Hidden
        Rows, or kernel values.
    predict : callable
        Run once. In double precision: float32 is refused.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> predictions(session, hidden, lambda X: X @ [1.0, 0.0]).sensitivity
    inf
    """
    return session.derive(hidden, lambda value: double(predict(value)), label="predictions")


def whitened(session: Session, hidden: Hidden, pool: Pool, bounds: Bounds) -> Hidden:
    """Predictions at the pool, whitened; see :func:`whitened_sensitivity`.

    Parameters
    ----------
    session : Session
    hidden : Hidden
        Of :func:`predictions`.
    pool : Pool
    bounds : Bounds
        Of all outputs.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> round(whitened(session, hidden, Pool.of(np.eye(2)), Bounds(0.1, norm=1.0)).sensitivity, 6)
    0.1
    """
    claim = whitened_sensitivity(pool, bounds, _outputs(hidden))
    return session.derive(hidden, pool.whiten, label=_LABEL, sensitivity=claim)


def whitened_sensitivity(pool: Pool, bounds: Bounds, outputs: int = 1) -> float:
    r"""Sensitivity of the whitened predictions c = L^{-1} p (a Mahalanobis distance).

    c - c' = L^{-1} Phi_Z (w - w'), and Phi_Z Phi_Z^T = K is at most L L^T, so that the operator
    L^{-1} Phi_Z has norm at most 1 and \|c - c'\| <= \|w - w'\| <= Delta: whatever the number of
    points, and attained where phi(z) spans w - w' and j is small. With k outputs w is a matrix,
    \|w - w'\| its Frobenius norm, and the same proof holds.

    **Rounding.** If each computed prediction is within e of the exact one, c is within sqrt(T) e /
    sqrt(lambda_min(L L^T)) of its exact value: the near-singular K amplifies rounding, up to
    1/sqrt(j). That is why j is at least 1e-6 tr(K)/T, why float32 is refused (rounding of p at 6e-8
    multiplied by a thousand exceeds Delta for many rows), and why there are added, twice, once for
    each neighbour,

    - sqrt(2 T / j) e for the predictions (lambda_min is j, and j/2 if K itself is rounded), and
    - u T cond(L) C for the triangular solve (backward stable; u the unit of float64).

    The root is not exact either, but L L^T >= K is all that the proof needs, and the errors of K
    and of its root, of order u T tr(K), are below j/2 for pools of up to 40,000 points.

    Parameters
    ----------
    pool : Pool
    bounds : Bounds
        Of all outputs.
    outputs : int, default=1
        k.

    Examples
    --------
    >>> round(whitened_sensitivity(Pool.of(np.eye(3)), Bounds(0.1, norm=1.0)), 6)
    0.1
    """
    numbers = pool.size * validate.count("outputs", outputs)
    least = pool.nugget / 2
    condition = math.sqrt((float(np.trace(pool.gram)) + pool.nugget) / least)
    solve = (pool.size + 8) * _UNIT * condition * bounds.norm
    return bounds.model + 2 * (math.sqrt(numbers / least) * bounds.error + solve)


def all_predictions(session: Session, hidden: Hidden, pool: Pool, bounds: Bounds) -> Hidden:
    """Predictions at the pool as they are, all at once; see :func:`all_sensitivity`.

    Parameters
    ----------
    session, hidden, pool, bounds
        As in :func:`whitened`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> pool, bounds = Pool.of(np.eye(2)), Bounds(0.1, norm=1.0)
    >>> round(all_predictions(session, hidden, pool, bounds).sensitivity, 6)
    0.1
    """
    claim = all_sensitivity(pool, bounds, _outputs(hidden))
    return session.derive(hidden, np.asarray, label=_LABEL, sensitivity=claim)


def all_sensitivity(pool: Pool, bounds: Bounds, outputs: int = 1) -> float:
    r"""Euclidean sensitivity of all predictions p = Phi_Z w at once.

    \|Phi_Z (w - w')\| <= \|Phi_Z\| Delta = sqrt(lambda_max(K)) Delta, attained along the first
    eigenvector, and never more than sqrt(T) S; each of the T k numbers may be off by e, for each
    neighbour.

    Parameters
    ----------
    pool, bounds, outputs
        As in :func:`whitened_sensitivity`.

    Examples
    --------
    >>> round(all_sensitivity(Pool.of(np.ones((4, 4))), Bounds(0.1, norm=1.0)), 6)
    0.2
    """
    pool.check_within(bounds.radius * _ABOVE)
    largest = float(pool.spectrum[0][-1]) * _ABOVE
    numbers = pool.size * validate.count("outputs", outputs)
    return math.sqrt(largest) * bounds.model + math.sqrt(numbers) * (2 * bounds.error)


def prediction_at(
    session: Session, hidden: Hidden, point: int, pool: Pool, bounds: Bounds
) -> Hidden:
    """Predictions of all outputs at one point of the pool; see :func:`each_sensitivity`.

    Parameters
    ----------
    session, hidden, pool, bounds
        As in :func:`whitened`.
    point : int

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> pool, bounds = Pool.of(np.eye(2)), Bounds(0.1, norm=1.0)
    >>> prediction_at(session, hidden, 0, pool, bounds).shape
    (2,)
    """
    claim = each_sensitivity(pool, bounds, _outputs(hidden))
    return session.derive(hidden, lambda p: p[point], label=_LABEL, sensitivity=claim)


def each_sensitivity(pool: Pool, bounds: Bounds, outputs: int = 1) -> float:
    r"""Sensitivity, in the l1 norm, of the predictions of all k outputs at one point.

    In the Euclidean norm they move by R Delta, Delta being joint; so by at most sqrt(k) R Delta in
    l1, attained where all outputs move alike and phi(z) is along them, with norm R. Each of the k
    numbers may be off by e, for each neighbour.

    Parameters
    ----------
    pool, bounds, outputs
        As in :func:`whitened_sensitivity`.

    Examples
    --------
    >>> round(each_sensitivity(Pool.of(np.eye(3)), Bounds(0.1, norm=1.0), outputs=4), 6)
    0.2
    """
    pool.check_within(bounds.radius * _ABOVE)
    moved = math.sqrt(validate.count("outputs", outputs)) * bounds.radius * _ABOVE * bounds.model
    return moved + outputs * (2 * bounds.error)


def scores(
    session: Session, hidden: Hidden, fitted: Array, output: int, prediction: float
) -> Hidden:
    r"""-\|<w* - w_t, phi(z)>\| at the pool, lowest where w* and w_t differ most; for a choice.

    w_t is public. At any z the score moves by at most S, as a prediction does, upwards at one point
    and downwards at another: the difference of two of them by 2S, the range of the scores, which is
    attained by two points along w - w', one each side.

    Parameters
    ----------
    session : Session
    hidden : Hidden
        Of :func:`predictions`.
    fitted : ndarray of shape (T,)
        Predictions of w_t.
    output : int
    prediction : float
        S, of :attr:`~dpadapt.kernels.constants.Bounds.prediction`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> scores(session, hidden, np.zeros(2), 0, prediction=0.1).sensitivity
    0.2
    """
    return session.derive(
        hidden,
        lambda p: -np.abs(_gap(p, fitted, output)),
        label="points",
        sensitivity=2 * prediction,
    )


def difference_at(
    session: Session, hidden: Hidden, fitted: Array, output: int, point: int, prediction: float
) -> Hidden:
    """<w* - w_t, phi(z)> at one point of the pool: w_t is public, so it moves by S.

    Parameters
    ----------
    session, hidden, fitted, output, prediction
        As in :func:`scores`.
    point : int

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> difference_at(session, hidden, np.zeros(2), 0, 1, prediction=0.1).sensitivity
    0.1
    """
    return session.derive(
        hidden,
        lambda p: _gap(p, fitted, output)[point],
        label="differences",
        sensitivity=prediction,
    )


def away_from(session: Session, hidden: Hidden, w: Array, prediction: float) -> Hidden:
    r"""w_t - w*, for a choice of a point z of the ball of radius R by \|<z, w_t - w*>\|.

    The score of any z moves by at most R Delta <= S, and the difference of two of them by 2S, as in
    :func:`scores`; attained at the two ends of the ball along w - w'.

    Parameters
    ----------
    session : Session
    hidden : Hidden
        Of :func:`weights`, one output.
    w : ndarray of shape (d,)
        w_t, public.
    prediction : float
        S, of :attr:`~dpadapt.kernels.constants.Bounds.prediction`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> away_from(session, hidden, np.zeros(4), prediction=0.1).sensitivity
    0.2
    """
    return session.derive(
        hidden, lambda own: w - own.ravel(), label="points", sensitivity=2 * prediction
    )


def difference_along(
    session: Session, hidden: Hidden, w: Array, point: Array, prediction: float
) -> Hidden:
    r"""<w* - w_t, z> for a public z of the ball of radius R: it moves by R Delta <= S.

    Parameters
    ----------
    session, hidden, w, prediction
        As in :func:`away_from`.
    point : ndarray of shape (d,)
        z.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> difference_along(session, hidden, np.zeros(4), np.ones(4), prediction=0.1).shape
    ()
    """
    return session.derive(
        hidden, lambda own: (own.ravel() - w) @ point, label="differences", sensitivity=prediction
    )


def _outputs(hidden: Hidden) -> int:
    return math.prod(hidden.shape[1:])


def _gap(predicted: Array, fitted: Array, output: int) -> Array:
    return np.asarray(predicted.reshape(len(fitted), -1)[:, output] - fitted)
