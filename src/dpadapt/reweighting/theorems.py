r"""The values of the paper's theorems: how many steps, and how near to a minimum they come.

Theorem 2 is about Algorithm 1 (PCnvxAdap), Theorem 4 about Algorithm 2 (PNCnvxAdap), whose T is
:meth:`.general_adaptation.GeneralAdaptation.theorem_steps`. All numbers are public: they are known
before anything is charged. ``epsilon`` is that of the gradients, half of the whole where the
discrepancy is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate

from .objective import SquaredLoss

__all__ = ["ConvexSetting", "gradient_mapping", "theorem_2", "theorem_2_steps", "theorem_4"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ConvexSetting:
    r"""The public numbers that Theorem 2 speaks of.

    Parameters
    ----------
    m, n, d : int
        Public rows, private rows, coefficients.
    epsilon, delta : float
    alpha : float, default=0.5
        Below 1: at 1 no gradient is private, and T has no best value.
    norm_bound, length : float, default=1
        :math:`\Lambda` and r.
    kappa : (float, float, float), default=(0.1, 0, 0)

    Examples
    --------
    >>> ConvexSetting(m=4000, n=1300, d=134, epsilon=7.5, delta=0.01).bounds
    (4.0, 4.1)
    """

    m: int
    n: int
    d: int
    epsilon: float
    delta: float
    alpha: float = 0.5
    norm_bound: float = 1.0
    length: float = 1.0
    kappa: tuple[float, float, float] = (0.1, 0.0, 0.0)

    def __post_init__(self) -> None:
        for name in ("m", "n", "d"):
            validate.count(name, getattr(self, name))
        validate.epsilon(self.epsilon)
        validate.delta(self.delta)
        if not 0 <= validate.non_negative("alpha", self.alpha) < 1:
            raise ValueError(f"alpha must be below 1; got {self.alpha!r}.")
        validate.positive("norm_bound", self.norm_bound)
        validate.positive("length", self.length)

    @property
    def bounds(self) -> tuple[float, float]:
        r"""B, and :math:`\bar B = B + \kappa_1 + \kappa_2 + \kappa_\infty`."""
        B = SquaredLoss().bound(self.length, self.norm_bound)
        return B, B + math.fsum(self.kappa)


def theorem_2_steps(setting: ConvexSetting) -> int:
    r"""The T of Theorem 2: beyond it the error is that of the noise.

    .. math:: T = \max\Big(1, \frac{n^2 \epsilon^2}{d (1 - \alpha)^2 \log(2/\delta)},
       \frac{\bar B^2 \epsilon^2}{B^2 \log(2/\delta)},
       \frac{\bar B^2 \epsilon^2 n^3}{B^2 \log(2/\delta)\, m^3}\Big)

    Examples
    --------
    >>> theorem_2_steps(ConvexSetting(m=4397, n=1300, d=134, epsilon=7.5, delta=0.01))
    535583
    """
    logs, (B, total) = math.log(2 / setting.delta), setting.bounds
    main = (setting.n * setting.epsilon / (1 - setting.alpha)) ** 2 / (setting.d * logs)
    weights = (total * setting.epsilon / B) ** 2 / logs
    return math.ceil(max(1.0, main, weights, weights * (setting.n / setting.m) ** 3))


def theorem_2(
    setting: ConvexSetting, steps: int, *, moved: tuple[float, float] = (0.0, 0.0)
) -> float:
    r"""Bound on the expected optimisation error of Algorithm 1 after T steps, from lines 2 to 4.

    .. math:: \Lambda G \sqrt{\frac1T + \frac{16 (1-\alpha)^2 d \log(2/\delta)}{\epsilon^2 n^2}}
       + \frac{(1-\alpha)^2 (U_{priv} + 1)}{2 n^{3/2}}
         \sqrt{\frac{\bar B^2}T + \frac{4 B^2 \log(2/\delta)}{\epsilon^2}}
       + \frac{\alpha^2 (U_{pub} + 1)(B + \bar B)}{2 m^{3/2} \sqrt T}

    Parameters
    ----------
    setting : ConvexSetting
    steps : int
        T.
    moved : (float, float), default=(0, 0)
        :math:`U_{pub}` and :math:`U_{priv}`, how far (squared) the weights' u are to move.
        (Erratum: 10 % a coordinate makes it :math:`0.01\, n^3 / (1-\alpha)^2`, and the bound says
        nothing.)

    Examples
    --------
    More steps help down to the noise, and no farther:

    >>> setting = ConvexSetting(m=4397, n=1300, d=134, epsilon=7.5, delta=0.01)
    >>> [round(theorem_2(setting, T), 3) for T in (100, 10_000, 1_000_000)]
    [0.401, 0.046, 0.022]
    """
    T, alpha = validate.count("steps", steps), setting.alpha
    G = SquaredLoss().lipschitz(setting.length, setting.norm_bound)
    (B, total), logs = setting.bounds, math.log(2 / setting.delta) / setting.epsilon**2
    noise = 16 * (1 - alpha) ** 2 * setting.d * logs / setting.n**2
    error = setting.norm_bound * G * math.sqrt(1 / T + noise)
    private = (1 - alpha) ** 2 * (moved[1] + 1) / (2 * setting.n**1.5)
    error += private * math.sqrt(total**2 / T + 4 * B**2 * logs)
    return error + alpha**2 * (moved[0] + 1) * (B + total) / (2 * setting.m**1.5 * math.sqrt(T))


def theorem_4(n: int, d: int, epsilon: float, delta: float) -> float:
    r"""Rate of Theorem 4: :math:`\sqrt{d \log(1/\delta)} / (\epsilon n)`.

    The squared norm of the :func:`gradient_mapping` at the output of Algorithm 2 is this times a
    constant that the paper does not state.

    Examples
    --------
    >>> round(theorem_4(n=10_000, d=48, epsilon=1.0, delta=0.01), 5)
    0.00149
    """
    validate.epsilon(epsilon)
    rest = validate.count("d", d) * math.log(1 / validate.delta(delta))
    return math.sqrt(rest) / (epsilon * validate.count("n", n))


def gradient_mapping(
    w: npt.ArrayLike, gradient: npt.ArrayLike, norm_bound: float, smoothness: float
) -> Array:
    r"""The paper's measure of stationarity in a ball: :math:`\beta (w - \Pi(w - \nabla / \beta))`.

    Without a constraint that binds it is the gradient itself; where the gradient points out of the
    ball at its edge it is 0.

    Parameters
    ----------
    w, gradient : array-like of the same shape
    norm_bound : float
        :math:`\Lambda`.
    smoothness : float
        :math:`\beta`.

    Examples
    --------
    >>> gradient_mapping([0.0, 0.0], [0.3, 0.4], norm_bound=1.0, smoothness=1.0)
    array([0.3, 0.4])
    >>> gradient_mapping([1.0, 0.0], [-5.0, 0.0], norm_bound=1.0, smoothness=1.0)
    array([0., 0.])
    """
    validate.positive("norm_bound", norm_bound)
    validate.positive("smoothness", smoothness)
    point, slope = np.asarray(w, dtype=np.float64), np.asarray(gradient, dtype=np.float64)
    moved = point - slope / smoothness
    length = float(np.linalg.norm(moved))
    if length > norm_bound:
        moved = moved * (norm_bound / length)
    return np.asarray(smoothness * (point - moved))
