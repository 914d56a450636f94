"""The default: descend from the public model as far as the known noise allows; nothing to tune.

::

    w_1 <- penalised logistic regression of the public rows
    kappa <- noise of a logit that public facts allow, rate from it   (plan_horizon)
    for t = 1, ..., T do
        G_t <- sum_i clip(g_i(w_t), tau) + N(0, (sigma tau)^2 I)
        w_{t+1} <- w_t - rate G_t
    Result: w_{T+1}

A step of rate a adds noise of a times the clip times sigma to every weight, so that the noise of
the released weights is known before anything runs. It is one number, kappa: the standard deviation
of a logit of a unit row. With it the rate follows, and neither steps nor sigma matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Flag, ParameterTable, Positive
from dpadapt.learning.descent import descend
from dpadapt.learning.softmax import gradient

from .features import PublicSample, class_energy, penalised
from .solver import Run, Solver, StableSteps

_STEPS = 100  # at least; T costs no privacy, and more are taken where a step would be too long
CLIP = 0.5  # 0.3 biases at large epsilon, 1 costs noise at small ones
_CAUTION = 16.0  # signal over noise at which a logit may carry noise of one nat; 8 to 32 are alike
_PARTS = 5
_STEP = 4.0  # longest step on the mean gradient: two over 1/2, the most curvature of unit rows
MOST_STEPS = 1600


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
    steps: int = _STEPS,
    clip: float = CLIP,
    most: float = 1.0,
) -> Horizon:
    r"""Plan a horizon from public facts.

    The sum of the gradients of one class has an amplitude of about :math:`(N / c) \sqrt{\rho^2}`
    along its own direction, with :math:`\rho^2` the ``energy``, against noise of :math:`1 / m`,
    m = ``row_mu``. For small signal over noise the best weight of a noisy measurement is
    proportional to it: kappa grows with it, up to ``most`` (:func:`affordable_noise`). Then
    :math:`W_T = W_1 - \kappa (m / (T \tau) \sum_t G_t + N(0, I))`.

    No step is longer than 4 in units of the mean gradient. A row of norm 1 has a loss of curvature
    1/2 at most, whatever the weights are, so that steps of 2 / (1/2) cannot diverge. Few steps
    shorten the horizon.

    Examples
    --------
    >>> plan_horizon(1000, 0.5, 0.25, 10).kappa
    1.0
    >>> plan_horizon(100, 0.5, 0.25, 10).kappa
    0.15625
    """
    kappa = min(most, sample_size * row_mu * math.sqrt(energy) / (_CAUTION * classes))
    horizon = min(kappa * sample_size * row_mu / clip, steps * _STEP)
    return Horizon(kappa, horizon / (steps * sample_size), steps, clip, sample_size, energy)


def affordable_noise(margins: FloatArray) -> float:
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


def unseen_margins(public: PublicSample) -> FloatArray | None:
    """Margins of public rows, each by the public model of the others (five parts of each class).

    None where a class has too few rows to leave one out.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.3], [0.9, 0.3], [-1.0, 0.3], [-0.8, 0.3]])
    >>> margins = unseen_margins(PublicSample(rows, np.array([0, 0, 1, 1]), 2))
    >>> bool((margins > 0).all())
    True
    """
    scores = unseen_scores(public)
    return None if scores is None else _margins(scores, public.codes)


def unseen_scores(public: PublicSample) -> FloatArray | None:
    """Scores of public rows, each by the public model of the others; as :func:`unseen_margins`.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.3], [0.9, 0.3], [-1.0, 0.3], [-0.8, 0.3]])
    >>> unseen_scores(PublicSample(rows, np.array([0, 0, 1, 1]), 2)).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    counts = np.bincount(public.codes, minlength=public.classes)
    if not len(public) or counts[counts > 0].min() < 2:
        return None
    part = np.zeros(len(public), dtype=int)
    for code in np.flatnonzero(counts):
        part[public.codes == code] = np.arange(counts[code]) % _PARTS
    scores = np.zeros((len(public), public.classes))
    for each in np.unique(part):
        scores[part == each] = public.rows[part == each] @ penalised(public.part(part != each))
    return scores


def margins_of(public: PublicSample, W: FloatArray) -> FloatArray:
    """Score of the own class less the best score of another one.

    Examples
    --------
    >>> margins_of(PublicSample(np.eye(2), np.array([0, 0]), 2), np.array([[3.0, 1.0], [0.0, 1.0]]))
    array([ 2., -1.])
    """
    return _margins(public.rows @ W, public.codes)


def _margins(scores: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
    places = np.arange(len(codes))
    others = scores.copy()
    others[places, codes] = -np.inf
    return np.asarray(scores[places, codes] - others.max(axis=1))


@dataclass(frozen=True)
class KnownNoise(Solver):
    """Descent on the private loss, as far as the known noise allows.

    Parameters
    ----------
    clip : float, default=0.5
        tau, bound on a row's gradient norm.
    mixing : float, default=0.0
        Weight of public gradients in each step. They are worth nothing where public and private
        rows are alike, and cost accuracy where they are not.
    average : bool, default=False
        Return the mean of the iterates instead of the last.
    projection : {"features"} or FeatureProjection, optional
        Project rows on the span of the public ones.

    Examples
    --------
    >>> KnownNoise().usual_steps.least
    100
    """

    clip: float = CLIP
    mixing: float = 0.0
    average: bool = False
    projection: Any = None

    _constraints: ClassVar[ParameterTable] = {"clip": [Positive()], "average": [Flag()]}
    words: ClassVar[str] = "descent on the private loss, as far as the known noise allows"

    @property
    def usual_steps(self) -> StableSteps:
        """So many that no step is too long."""
        return StableSteps(_STEPS, MOST_STEPS, _STEP, self.clip)

    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Plan the horizon, and run the loop."""
        public, iterates = run.public, run.iterates
        plan = plan_horizon(
            run.sample_size,
            math.sqrt(iterates.number) / run.gradients.sigma,
            class_energy(public),
            public.classes,
            steps=iterates.number,
            clip=self.clip,
            most=_affordable(run),
        )

        def noisy(W: FloatArray) -> FloatArray:
            G = run.gradients(W, self.clip)
            if self.mixing and len(public):
                G = G + self.mixing * gradient(public.rows, public.codes, W)
            iterates.add(W, self.clip)
            return G

        W = descend(noisy, run.start, plan.rate, iterates.number, last=1)
        return (iterates.mean if self.average else W), {"plan_": plan}


def _affordable(run: Run) -> float:
    """Noise of a logit that the start can afford, by public rows that it has not seen."""
    if not len(run.public) or run.origin == "zero":
        return 1.0
    if run.origin == "given":
        return affordable_noise(margins_of(run.public, run.start))
    margins = unseen_margins(run.public)
    return 1.0 if margins is None else affordable_noise(margins)
