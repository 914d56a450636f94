r"""Sharpness, number of steps and step size for the paper's algorithms, from public facts only.

Each choice minimises a proved bound on what the algorithm loses: the error of the smoothing (which
asks for a sharp one), plus that of the optimiser (many steps), plus that of the noise (a blunt one,
few steps). The bounds are the corrected ones: the paper's leave out the square 4 of the simplex'
diameter, and its formula for K gives less than one step at n = 1000. Nothing here depends on
private rows, so nothing is charged; what the caller has chosen is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.calibration import calibrate, gaussian_mu
from dpadapt.privacy.accounting.events import DiscreteGaussianEvent
from dpadapt.privacy.statistics import SecondMoment

from .queries import RowBounds, Smoothing, gradient_spread
from .smoothing import Softmax

_MOST_STEPS = 10_000
_FAILURE = 0.05  # beta, the probability with which the bounds may fail
_SHARPNESS = np.geomspace(1e-2, 1e5, 141)  # of the softmax, in units of 1 / r_hat^2


class Tuning(NamedTuple):
    r"""What was chosen.

    Attributes
    ----------
    smoothing : Smoothing
    steps : int
        K.
    step_size : float
        :math:`\eta`; for Frank-Wolfe, whose steps are 3 / (k + 2), the first one.

    Examples
    --------
    >>> Tuning(Softmax(mu=5.0), steps=100)
    Tuning(smoothing=Softmax(mu=5.0), steps=100, step_size=1.0)
    """

    smoothing: Smoothing
    steps: int
    step_size: float = 1.0


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Everything a choice may depend on.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    query : SecondMoment
        Whose cleaning bounds the private rows.
    n_rows : int
        Number of private rows.
    epsilon, delta : float
    calibration : {"tight", "paper"}, default="tight"
        Whose noise: the calibrated or the printed one.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> facts = PublicFacts(np.eye(2), SecondMoment(Cleaning(radius=1.0)), 8000, 1.0, 1e-6)
    >>> round(facts.vertex_noise(Softmax(mu=10.0)) / 10, 6)
    0.000283
    """

    X: FloatArray
    query: SecondMoment
    n_rows: int
    epsilon: float
    delta: float
    calibration: str = "tight"

    def __post_init__(self) -> None:
        validate.epsilon(self.epsilon)
        validate.delta(self.delta)
        validate.choice("calibration", self.calibration, ("tight", "paper"))

    @cached_property
    def bounds(self) -> RowBounds:
        """Bounds on private and public rows."""
        return RowBounds.of(self.query, self.X, self.n_rows)

    def vertex_noise(self, smoothing: Smoothing) -> float:
        """Scale of the noise on scores in Algorithm 2 with one step; grows with sqrt(K)."""
        if self.calibration == "paper":
            return 2 * smoothing.printed_sensitivity(self.bounds) * self._printed
        return smoothing.range_sensitivity(self.bounds) / math.sqrt(8 * self._rho)

    def gradient_noise(self, smoothing: Smoothing, noise_on: str) -> float:
        """Standard deviation on entries of the gradient in Algorithm 3 with one step."""
        if self.calibration == "paper":
            return math.sqrt(len(self.X)) * self.vertex_noise(smoothing)
        spread = self.bounds.public**2 if noise_on == "matrix" else gradient_spread(self.X)
        return smoothing.matrix_sensitivity(self.bounds) * spread / self._gaussian_mu

    @cached_property
    def _printed(self) -> float:
        return math.sqrt(2 * math.log(1 / self.delta)) / self.epsilon

    @cached_property
    def _rho(self) -> float:
        return zcdp_rho(self.epsilon, self.delta)

    @cached_property
    def _gaussian_mu(self) -> float:
        return gaussian_mu(self.epsilon, self.delta)


def frank_wolfe_parameters(
    facts: PublicFacts, *, smoothing: Smoothing | None = None, steps: int | None = None
) -> Tuning:
    r"""Sharpness and number of steps for :class:`~.frank_wolfe.NoisyFrankWolfe`.

    With b the scale of one step's noise at :math:`\mu = 1`, the discrepancy exceeds the least one
    by at most :math:`\mu C_K + \log(2d)/\mu`,
    :math:`C_K = 9 \hat r^4 / K + b \sqrt K \log(mK/\beta)`: K minimises :math:`C_K`, and
    :math:`\mu = \sqrt{\log(2d) / C_K}`.

    Parameters
    ----------
    facts : PublicFacts
    smoothing, steps : optional
        Kept where they are given.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> facts = PublicFacts(np.eye(2), SecondMoment(Cleaning(radius=1.0)), 8000, 1.0, 1e-6)
    >>> found = frank_wolfe_parameters(facts)
    >>> found.steps, round(found.smoothing.mu, 2)
    (314, 4.27)
    """
    m, d = facts.X.shape
    function = Softmax(1.0) if smoothing is None else smoothing
    counts = _counts(steps)
    loss = 9 * function.smoothness(facts.bounds.public) / counts
    loss += facts.vertex_noise(function) * np.sqrt(counts) * np.log(m * counts / _FAILURE)
    best = int(np.argmin(loss))
    if smoothing is None:
        function = Softmax(math.sqrt(math.log(2 * d) / loss[best]))
    return Tuning(function, int(counts[best]))


def mirror_descent_parameters(
    facts: PublicFacts,
    *,
    smoothing: Smoothing | None = None,
    steps: int | None = None,
    step_size: float | None = None,
    penalty: float = 0.0,
    geometry: str = "entropy",
    noise_on: str = "matrix",
) -> Tuning:
    r"""Sharpness, number of steps and step size for :class:`~.mirror_descent.NoisyMirrorDescent`.

    With noise of standard deviation :math:`s \sqrt K` on an entry and slopes of at most L, the
    average of the iterates loses at most
    :math:`\sqrt{2 \log m \, (L^2 / K + 2 s^2 \log(2m))}` at the step
    :math:`\eta = \sqrt{2 \log m / (K (L^2 + 2 K s^2 \log(2m)))}`. More steps never hurt; K is
    where both terms are equal. The p-norm's :math:`\Phi` is only :math:`2/e^2`-strongly convex:
    its step is smaller by :math:`\sqrt 2 / e`. With the printed noise also the printed step,
    :math:`2 \sqrt{\log m / K} / L`.

    Parameters
    ----------
    facts : PublicFacts
    smoothing, steps, step_size : optional
        Kept where they are given.
    penalty, geometry, noise_on
        As in :class:`~.mirror_descent.NoisyMirrorDescent`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> facts = PublicFacts(np.eye(2), SecondMoment(Cleaning(radius=1.0)), 8000, 1.0, 1e-6)
    >>> found = mirror_descent_parameters(facts)
    >>> found.steps, round(found.smoothing.mu, 1), round(found.step_size, 4)
    (1294, 31.6, 0.0231)
    """
    m = len(facts.X)
    log_m = math.log(max(m, 2))

    def parts(function: Smoothing) -> tuple[float, float]:
        noise = facts.gradient_noise(function, noise_on)
        return (function.slope(facts.bounds) + penalty) ** 2, 2 * noise**2 * math.log(2 * m)

    def balanced(function: Smoothing) -> int:
        if steps is not None:
            return validate.count("steps", steps)
        slope, noise = parts(function)
        return int(np.clip(math.ceil(slope / max(noise, 1e-300)), 1, _MOST_STEPS))

    def loss(function: Smoothing) -> float:
        slope, noise = parts(function)
        return math.sqrt(2 * log_m * (slope / balanced(function) + noise))

    function = _sharpest(facts, loss, 1.0) if smoothing is None else smoothing
    K = balanced(function)
    if step_size is None:
        slope, noise = parts(function)
        if facts.calibration == "paper":
            step_size = 2 * math.sqrt(log_m / K / slope)
        else:
            step_size = math.sqrt(2 * log_m / (K * (slope + K * noise)))
            step_size *= 1.0 if geometry == "entropy" else math.sqrt(2) / math.e
    return Tuning(function, K, validate.positive("step_size", step_size))


class SingleStageConstants(NamedTuple):
    r"""Constants of Theorem 4 for the paper's objective, from which K and the step follow.

    Attributes
    ----------
    slope : float
        A: diameters times Lipschitz constants.
    curvature : float
        C: squared diameters times moduli of smoothness, and twice the cross term.

    Examples
    --------
    >>> SingleStageConstants(slope=24.0, curvature=56.0).curvature
    56.0
    """

    slope: float
    curvature: float

    @classmethod
    def of(
        cls, smoothing: Smoothing, bounds: RowBounds, radius: float, largest_label: float
    ) -> SingleStageConstants:
        r"""Constants for coefficients of norm :math:`\Lambda` and labels of size Y.

        The paper's :math:`\mu_w = \hat r^2` is half of the squared loss' modulus: 2 here.

        Examples
        --------
        >>> SingleStageConstants.of(Softmax(1.0), RowBounds(1.0, 1.0, 100), 1.0, 1.0)
        SingleStageConstants(slope=24.0, curvature=56.0)
        """
        strength, reach = 4 * radius**2, bounds.public
        residual = radius * reach + largest_label
        gamma_q = residual**2 + strength * smoothing.slope(bounds)
        gamma_w = gamma_qw = 2 * residual * reach
        mu_q, mu_w = strength * smoothing.smoothness(reach), 2 * reach**2
        d_q, d_w = 2.0, 2 * radius
        return cls(
            d_q * gamma_q + d_w * gamma_w,
            d_q**2 * mu_q + d_w**2 * mu_w + 2 * gamma_qw * d_q * d_w,
        )


def single_stage_parameters(
    facts: PublicFacts,
    y: FloatArray,
    *,
    radius: float,
    smoothing: Smoothing | None = None,
    steps: int | None = None,
    step_size: float | None = None,
) -> Tuning:
    r"""Sharpness, number of steps and step size for :class:`~.single_stage.NoisySingleStage`.

    The gap is at most :math:`\sqrt{2 A C / K} + s \sqrt K \log(2mK/\beta)` on average, s the scale
    of one step's noise, at the step :math:`\eta = \sqrt{2A / (CK)}`; the smoothing's error
    :math:`4 \Lambda^2 \log(2d) / \mu` comes on top.

    Parameters
    ----------
    facts : PublicFacts
    y : ndarray of shape (m,)
        Public labels; their largest size is the paper's Y.
    radius : float
        :math:`\Lambda`.
    smoothing, steps, step_size : optional
        Kept where they are given.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> facts = PublicFacts(np.eye(2), SecondMoment(Cleaning(radius=1.0)), 8000, 1.0, 1e-6)
    >>> found = single_stage_parameters(facts, np.array([1.0, -1.0]), radius=1.0)
    >>> found.steps > 100, found.step_size <= 1
    (True, True)
    """
    m = len(facts.X)
    validate.positive("radius", radius)
    largest = float(np.abs(y).max())
    counts = _counts(steps)
    # the paper's Algorithm 1 has twice the noise of its Algorithm 2
    strength = 4 * radius**2 * (2 if facts.calibration == "paper" else 1)

    def losses(function: Smoothing) -> FloatArray:
        slope, curvature = SingleStageConstants.of(function, facts.bounds, radius, largest)
        noise = strength * facts.vertex_noise(function) * np.log(2 * m * counts / _FAILURE)
        return np.asarray(np.sqrt(2 * slope * curvature / counts) + noise * np.sqrt(counts))

    def loss(function: Smoothing) -> float:
        return float(losses(function).min())

    function = _sharpest(facts, loss, 4 * radius**2) if smoothing is None else smoothing
    K = int(counts[np.argmin(losses(function))])
    if step_size is None:
        slope, curvature = SingleStageConstants.of(function, facts.bounds, radius, largest)
        step_size = min(1.0, math.sqrt(2 * slope / (curvature * K)))
    return Tuning(function, K, step_size)


def norm_power(d: int) -> int:
    """Power p of :class:`~.smoothing.PNorm` whose relative error on the norm is at most sqrt(e).

    Examples
    --------
    >>> norm_power(10), norm_power(1)
    (3, 1)
    """
    return max(1, math.ceil(math.log(d)))


def _counts(steps: int | None) -> FloatArray:
    """Numbers of steps to choose from."""
    if steps is None:
        return np.arange(1.0, _MOST_STEPS + 1)
    return np.array([float(validate.count("steps", steps))])


def _sharpest(facts: PublicFacts, loss: Callable[[Smoothing], float], factor: float) -> Softmax:
    """Softmax with the least loss of the optimiser plus ``factor`` times its own error."""
    error = factor * math.log(2 * facts.X.shape[1])
    options = [Softmax(float(mu)) for mu in _SHARPNESS / facts.bounds.public**2]
    return min(options, key=lambda option: loss(option) + error / option.mu)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho (from below) such that rho-zCDP implies (epsilon, delta)-DP.

    Examples
    --------
    >>> round(zcdp_rho(1.0, 1 / 8000), 4)
    0.0419
    """
    validate.epsilon(epsilon)
    validate.delta(delta)
    scale = calibrate(
        lambda noise: [DiscreteGaussianEvent("rho", 1.0, noise)], epsilon, delta, relative=1e-10
    )
    return 0.5 / scale**2
