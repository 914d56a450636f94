r"""Solver "moments": one noisy second-moment matrix, then everything is free.

The only private quantity in discrepancy minimisation is :math:`M_0`, the mean of :math:`x x^T`
over the private rows. It has d(d+1)/2 numbers, whatever the number of public rows, so it is
released once:

    s_0 = sensitivity / mu,    M^ = M_0 + s_0 N,

with N symmetric Gaussian of variance 1 on and 1/2 off the diagonal, mu the exact Gaussian-DP
parameter of (epsilon, delta), and the sensitivity of ``SecondMoment``. The
weights, the second stage and every choice of a hyper-parameter are functions of M^ and of public
rows: post-processing, at no cost.

A minimiser on M^ exceeds the best by at most twice the spectral norm of the noise, and
:math:`P(\|s_0 N\|_2 > s_0 (\sqrt{2d} + t)) \le e^{-t^2/2}`: the public rows do not enter.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import NonNegative, OneOf, ParameterTable
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Cleaning, Guarantee, Private
from dpadapt.privacy.mechanisms import SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment

from .minimisation import discrepancy, minimise_discrepancy
from .second_stage import shrunken_fit
from .source import Adaptation, Source
from .variable_projection import variable_projection

_PASSES = 500  # over the public rows, at most
_TELLING = 1.5  # times the noise: a smaller difference does not tell which rows to weigh


class AdaptationWarning(UserWarning):
    """The public rows cannot be weighted to look like the private ones."""


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
        grants = opened.plan(moment=SymmetricGaussian.of(moment))
        matrix = opened.release(grants.moment, moment)
    if cleaning.intercept:
        matrix[-1, -1] = cleaning.intercept**2
    return NoisyMoment(matrix, grants.moment.scale, opened.guarantee)


@dataclass(frozen=True)
class Moments(Strategy):
    """Release the noisy second moment once; all else is free.

    Parameters
    ----------
    objective : {"two-stage", "single-stage"}, default="two-stage"
        Weights first and then the fit, or both at once (variable projection).
    max_remaining : float, default=0.2
        Adapt only if weights can bring the discrepancy down to this part of what it is with
        uniform weights, or below the noise, and if the samples differ by half as much again as the
        noise. Otherwise the private rows lie outside what public rows can be weighted to, or the
        noise hides how they differ: no weights come with a promise, and the model stays the one
        trained on public data alone, with a warning. 1 adapts wherever the samples differ by more
        than the noise.

    Examples
    --------
    >>> Moments(max_remaining=1.0)
    Moments(objective='two-stage', max_remaining=1.0)
    """

    objective: str = "two-stage"
    max_remaining: float = 0.2
    _constraints: ClassVar[ParameterTable] = {
        "objective": [OneOf("two-stage", "single-stage")],
        "max_remaining": [NonNegative()],
    }

    @property
    def at_once(self) -> bool:
        """Whether weights and coefficients are found at once, within the norm bound."""
        return self.objective == "single-stage"

    def adapt(
        self,
        source: Source,
        private: Private,
        cleaning: Cleaning,
        session: dict[str, Any],
        *,
        certificate: bool,
    ) -> Adaptation:
        """Weigh the public rows by one noisy second moment, if that can be done."""
        rows = source.matched
        noisy = release_second_moment(private, cleaning, **session)
        uniform = discrepancy(rows, source.uniform, noisy.matrix)
        kept = Adaptation(source.uniform, uniform, uniform, noisy.guarantee, released=noisy)
        if uniform <= noisy.noise_floor:  # the samples look alike
            return kept
        enough = max(noisy.noise_floor, self.max_remaining * uniform)
        if self.max_remaining < 1 and uniform < _TELLING * noisy.noise_floor:
            _warn(
                f"the public and the private rows differ by {uniform / noisy.noise_floor:.1f} "
                "times the noise, too little to tell how"
            )
            return kept
        solution = minimise_discrepancy(
            rows, noisy.matrix, tolerance=noisy.noise_floor, give_up=enough, max_iter=_PASSES
        )
        if solution.discrepancy > enough:
            proved = solution.lower_bound > enough
            left = (solution.lower_bound if proved else solution.discrepancy) / uniform
            _warn(
                "no weights of the public rows come near the private ones: "
                f"{'at least ' if proved else ''}{left:.0%} of the discrepancy would remain"
            )
            return kept
        weights, slopes, remaining = solution.weights, None, solution.discrepancy
        if self.objective == "single-stage":
            weights, slopes = variable_projection(
                rows, source.centered, noisy.matrix, radius=source.norm_bound, ridge=source.ridge
            )
            remaining = discrepancy(rows, weights, noisy.matrix)
        return Adaptation(weights, remaining, uniform, noisy.guarantee, slopes, noisy)

    def fit(self, source: Source, weights: FloatArray) -> tuple[FloatArray, float]:
        """Second stage: coefficients, and how far they moved from the public-only ones."""
        return shrunken_fit(source.rows, source.labels, weights, ridge=source.ridge)


def _warn(reason: str) -> None:
    warnings.warn(
        f"{reason}. The model stays the one trained on public data alone; "
        "solver=Moments(max_remaining=1) adapts all the same.",
        AdaptationWarning,
        stacklevel=6,
    )
