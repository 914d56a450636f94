r"""Every sensitivity that is claimed of a private kernel model, with its proof.

All of them rest on one: by how much the model w* itself can move, in the norm of the kernel's own
space, when one of n private rows is replaced (:func:`weights`). What is computed from hidden
predictions of w* and from public values moves by no more than that allows. The functions return
hidden values; a session releases them. Those of the paper's algorithms stand with them.
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
    "predictions",
    "weights",
    "whitened",
    "whitened_sensitivity",
]

Array = NDArray[np.float64]

_LABEL = "predictions at the pool"
_UNIT = float(np.finfo(np.float64).eps)


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


def _outputs(hidden: Hidden) -> int:
    return math.prod(hidden.shape[1:])
