r"""What the paper's algorithms ask a private kernel model, with the proofs of sensitivity.

They rest on by how much the model itself can move (:mod:`dpadapt.kernels.queries`).
"""

from __future__ import annotations

import math

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.kernels.constants import Bounds
from dpadapt.kernels.pool import Pool
from dpadapt.kernels.queries import whitened_sensitivity
from dpadapt.privacy import Hidden, Session

_LABEL = "predictions at the pool"
_ABOVE = 1 + 1e-9  # rounding of a public bound


def all_predictions(session: Session, hidden: Hidden, pool: Pool, bounds: Bounds) -> Hidden:
    """Predictions at the pool as they are, all at once; see :func:`all_sensitivity`.

    Parameters
    ----------
    session, hidden, pool, bounds
        As in :func:`~dpadapt.kernels.queries.whitened`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> pool, bounds = Pool.of(np.eye(2)), Bounds(0.1, norm=1.0)
    >>> round(all_predictions(session, hidden, pool, bounds).sensitivity, 6)
    0.1
    """
    claim = all_sensitivity(pool, bounds, math.prod(hidden.shape[1:]))
    return session.derive(hidden, np.asarray, label=_LABEL, sensitivity=claim)


def all_sensitivity(pool: Pool, bounds: Bounds, outputs: int = 1) -> float:
    r"""Euclidean sensitivity of all predictions p = Phi_Z w at once.

    \|Phi_Z (w - w')\| <= \|Phi_Z\| Delta = sqrt(lambda_max(K)) Delta, attained along the first
    eigenvector, and never more than sqrt(T) S; each of the T k numbers may be off by e, for each
    neighbour.

    Parameters
    ----------
    pool, bounds, outputs
        As in :func:`~dpadapt.kernels.queries.whitened_sensitivity`.

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
        As in :func:`~dpadapt.kernels.queries.whitened`.
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
    claim = each_sensitivity(pool, bounds, math.prod(hidden.shape[1:]))
    return session.derive(hidden, lambda p: p[point], label=_LABEL, sensitivity=claim)


def each_sensitivity(pool: Pool, bounds: Bounds, outputs: int = 1) -> float:
    r"""Sensitivity, in the l1 norm, of the predictions of all k outputs at one point.

    In the Euclidean norm they move by R Delta, Delta being joint; so by at most sqrt(k) R Delta in
    l1, attained where all outputs move alike and phi(z) is along them, with norm R. Each of the k
    numbers may be off by e, for each neighbour.

    Parameters
    ----------
    pool, bounds, outputs
        As in :func:`~dpadapt.kernels.queries.whitened_sensitivity`.

    Examples
    --------
    >>> round(each_sensitivity(Pool.of(np.eye(3)), Bounds(0.1, norm=1.0), outputs=4), 6)
    0.2
    """
    pool.check_within(bounds.radius * _ABOVE)
    moved = math.sqrt(validate.count("outputs", outputs)) * bounds.radius * _ABOVE * bounds.model
    return moved + outputs * (2 * bounds.error)


def norm_at_pool(session: Session, hidden: Hidden, pool: Pool, bounds: Bounds) -> Hidden:
    r"""Norm of w* on the span of the pool, \|L^{-1} p\|: it moves by no more than that vector does.

    \|\|c\| - \|c'\|\| <= \|c - c'\|, bounded by
    :func:`~dpadapt.kernels.queries.whitened_sensitivity`; attained where c' is a multiple of c.
    (Erratum: the paper takes \|w*\| to be public.)

    Parameters
    ----------
    session, hidden, pool, bounds
        As in :func:`~dpadapt.kernels.queries.whitened`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> norm_at_pool(session, hidden, Pool.of(np.eye(2)), Bounds(0.1, norm=1.0)).shape
    (1,)
    """
    claim = whitened_sensitivity(pool, bounds, math.prod(hidden.shape[1:]))
    length = lambda p: np.array([np.linalg.norm(pool.whiten(p))])  # noqa: E731
    return session.derive(hidden, length, label="norm of the model", sensitivity=claim)


def gap_scores(
    session: Session, hidden: Hidden, fitted: FloatArray, output: int, prediction: float
) -> Hidden:
    r"""-\|<w* - w_t, phi(z)>\| at the pool, lowest where w* and w_t differ most; for a choice.

    w_t is public. At any z the score moves by at most S, as a prediction does, upwards at one point
    and downwards at another: the difference of two of them by 2S, the range of the scores, which is
    attained by two points along w - w', one each side.

    Parameters
    ----------
    session : Session
    hidden : Hidden
        Of :func:`~dpadapt.kernels.queries.predictions`.
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
    >>> gap_scores(session, hidden, np.zeros(2), 0, prediction=0.1).sensitivity
    0.2
    """
    return session.derive(
        hidden,
        lambda p: -np.abs(_gap(p, fitted, output)),
        label="points",
        sensitivity=2 * prediction,
    )


def difference_at(
    session: Session, hidden: Hidden, fitted: FloatArray, output: int, point: int, prediction: float
) -> Hidden:
    """<w* - w_t, phi(z)> at one point of the pool: w_t is public, so it moves by S.

    Parameters
    ----------
    session, hidden, fitted, output, prediction
        As in :func:`gap_scores`.
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


def away_from(session: Session, hidden: Hidden, w: FloatArray, prediction: float) -> Hidden:
    r"""w_t - w*, for a choice of a point z of the ball of radius R by \|<z, w_t - w*>\|.

    The score of any z moves by at most R Delta <= S, and the difference of two of them by 2S, as in
    :func:`gap_scores`; attained at the two ends of the ball along w - w'.

    Parameters
    ----------
    session : Session
    hidden : Hidden
        Of :func:`~dpadapt.kernels.queries.weights`, one output.
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
    session: Session, hidden: Hidden, w: FloatArray, point: FloatArray, prediction: float
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


def _gap(predicted: FloatArray, fitted: FloatArray, output: int) -> FloatArray:
    return np.asarray(predicted.reshape(len(fitted), -1)[:, output] - fitted)
