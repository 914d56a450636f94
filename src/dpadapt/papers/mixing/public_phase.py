"""The public phases of Algorithms 2 and 3: where mixed training starts."""

from __future__ import annotations

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.softmax import gradient, residuals
from dpadapt.mixing.features import PublicSample, with_unseen
from dpadapt.privacy import shrink_factors


def few_shot(public: PublicSample, *, steps: int, rate: float, penalty: float) -> FloatArray:
    """Gradient descent from zero on the mean public loss (Algorithm 2, first phase).

    Parameters
    ----------
    public : PublicSample
    steps : int
        T_pub.
    rate : float
    penalty : float
        lambda, of the squared norm.

    Examples
    --------
    >>> public = PublicSample(np.array([[1.0, 0.3], [-1.0, 0.3]]), np.array([0, 1]), 2)
    >>> few_shot(public, steps=200, rate=2.0, penalty=1e-2)[0].round(2)
    array([ 1.96, -1.96])
    """
    W = np.zeros((public.width, public.classes))
    for _ in range(steps if len(public) else 0):
        W = W - rate * (gradient(public.rows, public.codes, W) / len(public) + penalty * W)
    return with_unseen(public, W)


def one_pass(public: PublicSample, *, curvature: float, clip: float, seed: int) -> FloatArray:
    r"""One pass of stochastic gradient descent (Algorithm 3, first phase).

    Rates are :math:`\eta_t = 2 / (c (t + 1))` with c the ``curvature`` of the expected loss, a
    guess; gradients are clipped, so that the Lipschitz constant of the theorem holds.

    Examples
    --------
    >>> public = PublicSample(np.eye(2), np.array([0, 1]), 2)
    >>> one_pass(public, curvature=1.0, clip=1.0, seed=0).shape
    (2, 2)
    """
    W = np.zeros((public.width, public.classes))
    for t, place in enumerate(np.random.default_rng(seed).permutation(len(public)), start=1):
        one = public.part([place])
        step = one.rows.T @ residuals(one.rows, one.codes, W)
        step *= shrink_factors(np.linalg.norm(step), clip)
        W = W - 2 / (curvature * (t + 1)) * step
    return W
