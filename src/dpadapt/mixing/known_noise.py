"""The default: descend from the public model as far as the known noise allows; nothing to tune.

A step of rate a adds noise of a times the clip times sigma to every weight, so that the noise of
the released weights is known before anything runs. It is one number, kappa: the standard deviation
of a logit of a unit row. With it the rate follows, and neither steps nor sigma matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from .features import PublicSample
from .noisy_gd import NoisyGradients, Path, descend
from .public_phase import penalised
from .softmax import Array, gradient

__all__ = [
    "CLIP",
    "STEPS",
    "Horizon",
    "affordable_noise",
    "known_noise_descent",
    "margins_of",
    "plan_horizon",
    "unseen_margins",
]

STEPS = 100  # T costs no privacy: 50 to 400 are alike, fewer than 50 are unstable at long horizons
CLIP = 0.5  # 0.3 biases at large epsilon, 1 costs noise at small ones
_CAUTION = 16.0  # signal over noise at which a logit may carry noise of one nat; 8 to 32 are alike
_PARTS = 5
_LONGEST = 6400.0  # horizon, in steps of rate one on the mean gradient


@dataclass(frozen=True)
class Horizon:
    """How far to go; public.

    Attributes
    ----------
    kappa : float
        Standard deviation of the noise in a logit, ignoring that later steps shrink it.
    rate : float
        Of each step, on the sum of gradients.
    steps : int
    clip : float
    sample_size : float
        The public or noisy number of rows that was counted on.
    energy : float
        Between-class energy of the public rows.

    Examples
    --------
    >>> plan_horizon(1000, 0.5, 0.2, 10).steps
    100
    """

    kappa: float
    rate: float
    steps: int
    clip: float
    sample_size: float
    energy: float


def plan_horizon(
    sample_size: float,
    row_mu: float,
    energy: float,
    classes: int,
    *,
    steps: int = STEPS,
    clip: float = CLIP,
    most: float = 1.0,
) -> Horizon:
    r"""Plan a horizon from public facts.

    The sum of the gradients of one class has an amplitude of about :math:`(N / c) \sqrt{\rho^2}`
    along its own direction, with :math:`\rho^2` the ``energy``, against noise of :math:`1 / m`,
    m = ``row_mu``. For small signal over noise the best weight of a noisy measurement is
    proportional to it: kappa grows with it, up to ``most`` (:func:`affordable_noise`). Then
    :math:`W_T = W_1 - \kappa (m / (T \tau) \sum_t G_t + N(0, I))`.

    Examples
    --------
    >>> plan_horizon(1000, 0.5, 0.25, 10).kappa
    1.0
    >>> plan_horizon(100, 0.5, 0.25, 10).kappa
    0.15625
    """
    kappa = min(most, sample_size * row_mu * math.sqrt(energy) / (_CAUTION * classes))
    horizon = min(kappa * sample_size * row_mu / clip, _LONGEST)
    return Horizon(kappa, horizon / (steps * sample_size), steps, clip, sample_size, energy)


def affordable_noise(margins: Array) -> float:
    r"""Largest noise of a logit, 1 at most, that public rows can afford.

    Noise may cost no more than there is to gain: a margin m between two logits with noise
    :math:`\kappa` each is lost with probability :math:`\Phi(-m / (\sqrt{2} \kappa))`, and the
    expected number of errors that it adds may be as large as that of the errors there are (half an
    error, if there is none).

    Parameters
    ----------
    margins : ndarray
        Of public rows under models that have not seen them (:func:`unseen_margins`).

    Examples
    --------
    >>> affordable_noise(np.array([-1.0, 0.5, 2.0]))  # errors enough: noise hardly matters
    1.0
    >>> round(affordable_noise(np.array([2.0] * 50)), 2)  # nothing to gain
    0.61
    """
    errors = float(np.mean(margins < 0))
    allowed = max(errors, 0.5 / len(margins))

    def excess(kappa: float) -> float:
        lost = float(np.mean(ndtr(-margins / (math.sqrt(2) * kappa))))
        return lost - errors - allowed

    if excess(1.0) <= 0:
        return 1.0
    # the excess may fall again: the smallest noise at which it is reached counts
    grid = np.geomspace(1e-3, 1.0, 200)
    first = next(i for i, kappa in enumerate(grid) if excess(kappa) > 0)
    return float(brentq(excess, grid[first - 1], grid[first])) if first else float(grid[0])


def unseen_margins(public: PublicSample) -> Array | None:
    """Margins of public rows, each by the public model of the others (five parts of each class).

    None where a class has too few rows to leave one out.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.3], [0.9, 0.3], [-1.0, 0.3], [-0.8, 0.3]])
    >>> margins = unseen_margins(PublicSample(rows, np.array([0, 0, 1, 1]), 2))
    >>> bool((margins > 0).all())
    True
    """
    counts = np.bincount(public.codes, minlength=public.classes)
    if not len(public) or counts[counts > 0].min() < 2:
        return None
    part = np.zeros(len(public), dtype=int)
    for code in np.flatnonzero(counts):
        part[public.codes == code] = np.arange(counts[code]) % _PARTS
    margins = np.zeros(len(public))
    for each in np.unique(part):
        margins[part == each] = margins_of(
            public.part(part == each), penalised(public.part(part != each))
        )
    return margins


def margins_of(public: PublicSample, W: Array) -> Array:
    """Score of the own class less the best score of another one.

    Examples
    --------
    >>> margins_of(PublicSample(np.eye(2), np.array([0, 0]), 2), np.array([[3.0, 1.0], [0.0, 1.0]]))
    array([ 2., -1.])
    """
    scores = public.rows @ W
    own = scores[np.arange(len(public)), public.codes]
    others = scores.copy()
    others[np.arange(len(public)), public.codes] = -np.inf
    return np.asarray(own - others.max(axis=1))


def known_noise_descent(
    gradients: NoisyGradients,
    public: PublicSample,
    W: Array,
    horizon: Horizon,
    *,
    mixing: float,
    path: Path,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """Run the planned descent from the public model W.

    Parameters
    ----------
    gradients : NoisyGradients
    public : PublicSample
    W : ndarray of shape (d, c)
    horizon : Horizon
    mixing : float
        Weight of public gradients. They are worth nothing where public and private rows are
        alike, and cost accuracy where they are not.
    path : Path

    Examples
    --------
    >>> public = PublicSample(np.eye(2), np.array([0, 1]), 2)
    >>> def push(W, clip):  # in place of private rows and noise
    ...     return -clip * np.ones_like(W)
    >>> horizon, path = plan_horizon(100, 0.5, 0.25, 2), Path(keep=False)
    >>> W = known_noise_descent(push, public, np.zeros((2, 2)), horizon, mixing=0.0, path=path)
    >>> bool(np.allclose(W, horizon.kappa * 0.5))  # kappa times row_mu, whatever T and clip are
    True
    """

    def slope(W: Array, t: int) -> tuple[Array, float]:
        total = gradients(W, horizon.clip)
        if mixing and len(public):
            total = total + mixing * gradient(public.rows, public.codes, W)
        return total, horizon.clip

    return descend(W, horizon.steps, slope, lambda t: horizon.rate, path=path, progress=progress)
