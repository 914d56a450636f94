r"""Solver "moments": one noisy second-moment matrix, then everything is free.

The only private quantity in discrepancy minimisation is :math:`M_0`, the mean of :math:`x x^T`
over the private rows. It has d(d+1)/2 numbers, whatever the number of public rows, so it is
released once:

    s_0 = sensitivity / mu,    M^ = M_0 + s_0 N,

with N symmetric Gaussian of variance 1 on and 1/2 off the diagonal, mu the exact Gaussian-DP
parameter of (epsilon, delta), and the sensitivity of :class:`~dpadapt.privacy.SecondMoment`. The
weights, the second stage and every choice of a hyper-parameter are functions of M^ and of public
rows: post-processing, at no cost.

A minimiser on M^ exceeds the best by at most twice the spectral norm of the noise, and
:math:`P(\|s_0 N\|_2 > s_0 (\sqrt{2d} + t)) \le e^{-t^2/2}`: the public rows do not enter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Cleaning, Guarantee, Private, SecondMoment

__all__ = ["NoisyMoment", "release_second_moment"]


@dataclass(frozen=True)
class NoisyMoment:
    """A released second moment.

    Attributes
    ----------
    matrix : ndarray of shape (d, d)
        M^, symmetric; the entry of the intercept with itself is known and exact.
    scale : float
        s_0, the standard deviation of the noise on the diagonal.
    guarantee : Guarantee

    Examples
    --------
    >>> NoisyMoment(np.eye(2), scale=0.1, guarantee=Guarantee()).noise_floor
    0.2
    """

    matrix: NDArray[np.float64]
    scale: float
    guarantee: Guarantee

    @property
    def noise_floor(self) -> float:
        r"""Expected spectral norm of the noise, at most :math:`s_0 \sqrt{2d}`."""
        return self.scale * math.sqrt(2 * len(self.matrix))


def release_second_moment(private: Private, cleaning: Cleaning, **session: Any) -> NoisyMoment:
    """Spend a whole session on the second moment of the cleaned private rows.

    Parameters
    ----------
    private : Private
    cleaning : Cleaning
        Holds the radius, the public scaling and the intercept.
    **session
        ``epsilon``, ``delta`` and the other arguments of :meth:`dpadapt.Private.open`.

    Examples
    --------
    >>> private = Private([[1.0, 0.0], [0.0, 1.0]] * 500)
    >>> noisy = release_second_moment(private, Cleaning(radius=1.0), epsilon=1.0, delta=1e-6)
    >>> noisy.matrix.shape, round(noisy.guarantee.epsilon, 6)
    ((2, 2), 1.0)
    """
    with private.open(**session) as opened:
        moment = opened.hide(SecondMoment(cleaning))
        (grant,) = opened.plan(moment.request())
        matrix = opened.symmetric_gaussian(grant, moment)
    if cleaning.intercept:
        matrix[-1, -1] = cleaning.intercept**2
    return NoisyMoment(matrix, grant.scale, opened.guarantee)
