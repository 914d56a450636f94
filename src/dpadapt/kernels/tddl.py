r"""Algorithm 2 of Jain and Thakurta (2013), the test data dependent learner (TDDL).

The predictions of the private model w* at T points of a public pool are released, each with
independent noise, and a model is fitted to them by least squares in a ball:

    w^ = argmin_{|w| <= C} (1/T) sum_t (<w, phi(z_t)> - <w*, phi(z_t)> - b_t)^2.

Private rows are read through the predictions alone; the fit is post-processing. With Delta the
sensitivity of w* and K(z, z) <= R^2 on the pool, one prediction moves by at most S = R Delta
(Cauchy-Schwarz; attained where phi(z) is along w - w' and has norm R). Three kinds of noise:

"paper"
    Laplace noise nu = S / e_0, with e_0 from the composition theorem that the paper cites,
    sqrt(2 T ln(1/delta)) e_0 + T e_0 (exp(e_0) - 1) = epsilon. The paper gives nu up to a constant;
    this is the constant of its proof. What it gives in truth (less than epsilon) is computed by
    the session.
"laplace"
    The smallest Laplace noise whose T-fold composition fits.
"gaussian"
    Gaussian noise on all predictions at once, of l2-sensitivity |Phi_Z|_op Delta =
    sqrt(lambda_max(K)) Delta, never more than sqrt(T) S.

In every one of them the noise grows with sqrt(T); :class:`~dpadapt.kernels.pool.Pool` has none of
that. With k outputs Delta is joint (the Frobenius norm of the change of all k models), and the k
predictions at one point move by at most sqrt(k) S in l1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dpadapt.privacy import Grant, Hidden, Request, Session, calibrate, gaussian_mu
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.events import LaplaceEvent

from .pool import Pool, Predict

__all__ = [
    "Calibration",
    "ball_least_squares",
    "composed_epsilon",
    "pool_size",
    "release",
    "request",
]

Array = NDArray[np.float64]
Calibration = Literal["paper", "laplace", "gaussian"]
_LABEL = "predictions at the pool"


def composed_epsilon(count: int, epsilon: float, delta: float) -> float:
    """e_0 of which ``count`` fit into (epsilon, delta) by advanced composition.

    Solves sqrt(2 T ln(1/delta)) e_0 + T e_0 (exp(e_0) - 1) = epsilon (Dwork, Rothblum, Vadhan 2010;
    Theorem 11 of the paper), from below.

    Examples
    --------
    >>> round(math.sqrt(2) / composed_epsilon(100, 0.1, 1e-6))  # noise in units of S
    746
    """
    validate.count("count", count)
    linear = math.sqrt(2 * count * -math.log(validate.delta(delta)))

    def excess(e: float) -> float:
        return linear * e + count * e * math.expm1(e) - epsilon

    high = validate.epsilon(epsilon) / linear
    return float(brentq(excess, 0.0, high, rtol=1e-12, xtol=1e-300)) * (1 - 1e-11)


def request(
    pool: Pool,
    calibration: Calibration,
    model: float,
    *,
    bound: float,
    epsilon: float,
    delta: float,
    error: float = 0.0,
    outputs: int = 1,
) -> Request:
    """What to plan for :func:`release`.

    Parameters
    ----------
    pool : Pool
    calibration : {"paper", "laplace", "gaussian"}
    model : float
        Delta, joint over all outputs.
    bound : float
        R. A pool with K(z, z) above R^2 is refused: S would be wrong.
    epsilon, delta : float
        Of the session; used by "paper" alone.
    error : float, default=0
        Bound on the rounding error of one prediction; both neighbours have it.
    outputs : int, default=1
        k.

    Examples
    --------
    >>> pool = Pool.of(np.eye(3))
    >>> asked = request(pool, "gaussian", 0.1, bound=1.0, epsilon=1.0, delta=1e-6)
    >>> asked.mechanism, round(asked.sensitivity, 6)
    ('gaussian', 0.1)
    """
    validate.choice("calibration", calibration, get_args(Calibration))
    if pool.bound > validate.positive("bound", bound) * (1 + 1e-9):
        raise ValueError(
            f"a point of the pool has a norm of {pool.bound:.6g}, above the bound {bound:g}; "
            "rescale the pool, or state a larger bound."
        )
    rounding = 2 * validate.non_negative("error", error)
    if calibration == "gaussian":
        largest = float(pool.spectrum[0][-1]) * (1 + 1e-9)
        numbers = pool.size * outputs
        total = math.sqrt(largest) * model + math.sqrt(numbers) * rounding
        return Request("gaussian", _LABEL, total, numbers)
    each = math.sqrt(outputs) * bound * (1 + 1e-9) * model + outputs * rounding
    nu = each / composed_epsilon(pool.size, epsilon, delta) if calibration == "paper" else None
    return Request("laplace", _LABEL, each, outputs, pool.size, printed=nu)


def release(
    session: Session, grant: Grant, hidden: Hidden, predict: Predict, pool: Pool, *, norm: float
) -> Array:
    """Release noisy predictions at the pool, and fit a model to them.

    Parameters
    ----------
    session : Session
    grant : Grant
        Of :func:`request`.
    hidden : Hidden
    predict : callable
        From the hidden value to the predictions at the pool, of shape (T,) or (T, k). With
        Laplace noise each point is a release of its own and runs it again: give the hidden
        predictions and the identity where they are costly.
    pool : Pool
    norm : float
        C, a public bound on the norm of w* (of all outputs); never the norm itself, which the
        paper takes to be public.

    Returns
    -------
    ndarray of shape (T,) or (T, k)
        Coefficients: the model predicts K(z, Z) alpha.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> Z = np.eye(2)
    >>> pool, private = Pool.of(Z @ Z.T), Private(np.tile([0.8, -0.6], (5000, 1)))
    >>> with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
    ...     rows = session.hide_rows(Cleaning(radius=1.0))
    ...     facts = {"bound": 1.0, "epsilon": session.epsilon, "delta": session.delta}
    ...     (grant,) = session.plan(request(pool, "laplace", 2 / 5000, **facts))
    ...     mean = lambda X: Z @ X.mean(axis=0)
    ...     alpha = release(session, grant, rows, mean, pool, norm=1.0)
    >>> np.round(Z.T @ alpha, 1)
    array([ 0.8, -0.6])
    """
    if grant.request.mechanism == "gaussian":
        noisy = session.gaussian(grant, hidden, predict)
    else:
        noisy = np.stack(
            [session.laplace(grant, hidden, _at(predict, t)) for t in range(pool.size)]
        )
    return ball_least_squares(pool, noisy, norm)


def _at(predict: Predict, point: int) -> Callable[[Array], Array]:
    return lambda value: np.asarray(predict(value))[point]


def ball_least_squares(pool: Pool, targets: Array, norm: float) -> Array:
    r"""Coefficients of the model of norm C at most that fits the targets best.

    In the eigenvectors of K the minimiser is alpha = (K + l I)^{-1} t, with l = 0 if that lies in
    the ball and else the root of the secular equation |w(l)| = C; directions in which K vanishes
    cannot be fitted and get 0. With targets of shape (T, k) the ball is that of all outputs.

    Parameters
    ----------
    pool : Pool
    targets : ndarray of shape (T,) or (T, k)
    norm : float
        C.

    Examples
    --------
    >>> ball_least_squares(Pool.of(np.eye(2)), np.array([3.0, 4.0]), norm=1.0).round(6)
    array([0.6, 0.8])
    """
    validate.positive("norm", norm)
    values, vectors = pool.spectrum
    kept = values > len(values) * float(np.finfo(np.float64).eps) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    inner = vectors.T @ targets
    energy = np.sum(inner.reshape(len(inner), -1) ** 2, axis=1)

    def size(penalty: float) -> float:
        return math.sqrt(float(np.sum(values * energy / (values + penalty) ** 2)))

    penalty = 0.0
    if size(0.0) > norm:
        # |w(l)| <= |Phi^T t| / l, so the root is below |Phi^T t| / C
        most = math.sqrt(float(np.sum(values * energy))) / norm
        penalty = float(brentq(lambda at: size(at) - norm, 0.0, most, rtol=1e-14, xtol=1e-300))
    shrunk = inner / (values + penalty).reshape(-1, *[1] * (inner.ndim - 1))
    return np.asarray(vectors @ shrunk)


def pool_size(
    calibration: Calibration,
    model: float,
    *,
    norm: float,
    epsilon: float,
    delta: float,
    available: int,
) -> int:
    """T that balances noise against generalisation, ceil(C R / A); from public facts alone.

    The error of the fit grows like A sqrt(T), with A the standard deviation of the noise of one
    prediction at T = 1, and what is not seen of other points falls like C R / sqrt(T). A is
    proportional to R, which cancels.

    Parameters
    ----------
    calibration : {"paper", "laplace", "gaussian"}
    model, norm : float
        Delta and C.
    epsilon, delta : float
    available : int
        Points at hand: the answer is not above it.

    Examples
    --------
    >>> facts = {"norm": 10.0, "epsilon": 0.5, "delta": 1e-6, "available": 1000}
    >>> pool_size("paper", 0.01, **facts), pool_size("gaussian", 0.01, **facts)
    (67, 125)
    """
    validate.choice("calibration", calibration, get_args(Calibration))
    if calibration == "gaussian":
        unit = 1 / gaussian_mu(epsilon, delta)
    elif calibration == "paper":
        unit = math.sqrt(2) / composed_epsilon(1, epsilon, delta)
    else:
        unit = math.sqrt(2) * calibrate(
            lambda noise: [LaplaceEvent(_LABEL, 1.0, noise)], epsilon, delta
        )
    wanted = math.ceil(validate.positive("norm", norm) / (unit * validate.positive("model", model)))
    return max(1, min(validate.count("available", available), wanted))
