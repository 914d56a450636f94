r"""The values of the paper's theorems: how many steps, and how near to a minimum they come.

Theorem 2 is about Algorithm 1 (PCnvxAdap), Theorem 4 about Algorithm 2 (PNCnvxAdap). All numbers
are public: they are known before anything is charged. ``epsilon`` is that of the gradients, half of
the whole where the discrepancy is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray

from .convex_adaptation import project
from .general_adaptation import GeneralAdaptation
from .objective import SquaredLoss


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


def theorem_2(setting: ConvexSetting, steps: int, *, moved: tuple[float, float]) -> float:
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
    moved : (float, float)
        :math:`U_{pub}` and :math:`U_{priv}`, how far (squared) the u of the best weights are from
        those that the algorithm starts with. (0, 0) compares with the best model *at the reference
        weights*, which is less than the theorem says. (Erratum: 10 % a coordinate makes it
        :math:`0.01\, n^3 / (1-\alpha)^2`, and the bound says nothing.)

    Examples
    --------
    More steps help down to the noise, and no farther:

    >>> setting = ConvexSetting(m=4397, n=1300, d=134, epsilon=7.5, delta=0.01)
    >>> stay = (0.0, 0.0)
    >>> [round(theorem_2(setting, T, moved=stay), 3) for T in (100, 10_000, 1_000_000)]
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


def theorem_4(
    algorithm: GeneralAdaptation,
    length: float,
    n: int,
    epsilon: float,
    delta: float,
    *,
    steps: int | None = None,
    printed: bool = True,
) -> float:
    r"""Bound on the expected squared norm of the gradient mapping at the output of Algorithm 2.

    Printed (the last line of Appendix D.3, for the T of
    :meth:`~.general_adaptation.GeneralAdaptation.theorem_steps`; of the order
    :math:`\sqrt{d \log(1/\delta)} / (\epsilon n)`, which is all that the theorem itself says):

    .. math:: \frac{16 (1 - \alpha)}\epsilon \sqrt{\tilde\beta M \log(2/\delta)}
       \Big(\frac{2 \sqrt{10}\, G \sqrt d}{n} + \frac{(1 - \alpha) B}{n^{3/2}}\Big)

    ``printed=False`` is what the proof gives for any T, with the noise of lines 2 and 3:

    .. math:: \frac{8 \tilde\beta M}{T} + 10 (d \sigma_1^2 + n \sigma_2^2)
       = 8 \Big(\frac{\tilde\beta M}{T}
       + \frac{20 (1-\alpha)^2 G^2 d\, T \log(2/\delta)}{\epsilon^2 n^2}
       + \frac{5 (1-\alpha)^4 B^2\, T \log(2/\delta)}{\epsilon^2 n^3}\Big)

    (Errata: the proof prints 40 and 1 for 20 and 5, so that its last line may be too small only
    where :math:`5 G^2 d\, n < (1-\alpha)^2 B^2`; and (23) has the sign of a descent turned round.)

    Parameters
    ----------
    algorithm : GeneralAdaptation
        Its public rows, loss, alpha, strengths and norm bound.
    length : float
        r, bound on a row.
    n : int
        Private rows.
    epsilon, delta : float
        Of the gradients.
    steps : int, optional
        T, for ``printed=False``; by default the theorem's.
    printed : bool, default=True

    Examples
    --------
    >>> rows, codes = np.array([[1.0, 0.0], [0.0, 1.0]] * 250), np.array([1.0, 0.0] * 250)
    >>> algorithm = GeneralAdaptation(rows, codes, 2)
    >>> facts = {"length": 1.0, "n": 1000, "epsilon": 1.0, "delta": 1e-6}
    >>> round(theorem_4(algorithm, **facts), 3)
    0.221
    >>> round(theorem_4(algorithm, **facts, printed=False), 3)
    0.165
    """
    validate.epsilon(epsilon)
    G = algorithm.loss.lipschitz(length, algorithm.norm_bound)
    B = algorithm.loss.bound(length, algorithm.norm_bound)
    logs = math.log(2 / validate.delta(delta)) / epsilon**2
    smoothness = algorithm.smoothness(length, validate.count("n", n))
    first = smoothness * algorithm.objective_range(length, n)
    rest, d = 1 - algorithm.alpha, algorithm.width
    if printed:
        if steps is not None:
            raise ValueError("steps: the printed bound is that of the theorem's T; leave it None.")
        noise = 2 * math.sqrt(10 * d) * G / n + rest * B / n**1.5
        return 16 * rest * math.sqrt(first * logs) * noise
    T = steps or algorithm.theorem_steps(length, n, epsilon, delta)
    by_w, by_u = 20 * (rest * G / n) ** 2 * d, 5 * rest**4 * B**2 / n**3
    return 8 * (first / validate.count("steps", T) + (by_w + by_u) * T * logs)


def gradient_mapping(
    point: tuple[npt.ArrayLike, npt.ArrayLike],
    gradient: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    norm_bound: float,
    least: npt.ArrayLike,
    smoothness: float,
) -> tuple[FloatArray, FloatArray]:
    r"""The paper's measure of stationarity in W x U: :math:`\beta (v - \Pi(v - \nabla / \beta))`.

    v = (w, u); :math:`\Pi` shrinks w to the ball and raises u to its least values, one part without
    looking at the other. Without a constraint that binds it is the gradient itself; where a
    gradient points out of the set at its edge that part is 0. Theorem 4 bounds the sum of squares
    of both parts.

    Parameters
    ----------
    point : (w, u)
    gradient : (array, array)
        Of J in w and in u.
    norm_bound : float
        :math:`\Lambda`.
    least : array-like
        1/p, the least u of each row.
    smoothness : float
        :math:`\tilde\beta`.

    Examples
    --------
    >>> set_and_unit = {"norm_bound": 1.0, "least": [2.0, 2.0], "smoothness": 1.0}
    >>> gradient_mapping(([0.3], [5.0, 2.0]), ([0.5], [1.0, 1.0]), **set_and_unit)
    (array([0.5]), array([1., 0.]))
    >>> gradient_mapping(([1.0], [5.0, 2.0]), ([-5.0], [-1.0, -1.0]), **set_and_unit)
    (array([0.]), array([-1., -1.]))
    """
    validate.positive("norm_bound", norm_bound)
    validate.positive("smoothness", smoothness)
    (w, u), slopes = (
        tuple(np.asarray(each, dtype=np.float64) for each in pair) for pair in (point, gradient)
    )
    moved_w = project(w - slopes[0] / smoothness, norm_bound)
    moved_u = np.maximum(u - slopes[1] / smoothness, np.asarray(least, dtype=np.float64))
    return smoothness * (w - moved_w), smoothness * (u - moved_u)
