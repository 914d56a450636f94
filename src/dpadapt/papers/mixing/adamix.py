"""Algorithms 2 (AdaMix) and 3 (its theory) of paper 004, their clips and public phases.

The clip is a percentile of the norms of public gradients, taken where it is not biased; the public
phases are where mixed training starts.

**Algorithm 2 (AdaMix) of paper 004: public gradients set the clip and the subspace, and join in.**

::

    Data: public rows D_pub, private rows D, (epsilon, delta), sigma, percentile p, rate eta,
          penalty lambda, mixing m
    Public phase, on rows of D_pub that the clip is not taken from:   (few_shot)
        w <- 0; 200 times: w <- w - eta (mean of g~_j(w) + lambda w);  w_1 <- w
    T <- Calibrate(epsilon, delta, sigma)                             (noisy_gd.steps_for_noise)
    Mix-training phase:
    for t = 1, ..., T do
        tau_t <- p-th percentile of the public |g~_j(w_t)|            (AdaptiveClip)
        U_t   <- basis of the span of the public g~_j(w_t)            (projection.GradientSpan)
        G_t   <- U_t (sum_i clip(U_t^T g_i(w_t), tau_t) + N(0, (sigma tau_t)^2 I))
        w_{t+1} <- w_t - eta ((G_t + m sum_j g~_j(w_t)) / (N + m N_pub) + lambda w_t)
    Result: w_{T+1}, or the mean of w_1, ..., w_T

Clip and subspace come from public rows and released weights: they cost no privacy. Erratum: rows
that w was fitted to have gradients that are too small, so the clip is taken from others. N is
public or noisy. Without a projection U_t is the identity. Reconstructed from the paper's
supplement; its main text and its code were not at hand.

**Algorithm 3 of paper 004: the version of AdaMix that the theorems are about.**

::

    Data: public rows D_pub, private rows D, (epsilon, delta), sigma, Lipschitz constant L,
          curvature c, penalty lambda
    Public phase, one pass in a shuffled order:                       (one_pass)
        w <- 0; for t = 1, ..., N_pub: w <- w - 2 / (c (t + 1)) g~_t(w);  w_ref <- w
    T <- Calibrate(epsilon, delta, sigma)                             (noisy_gd.steps_for_noise)
    Mix-training phase, on the sum of all losses plus lambda / 2 |w - w_ref|^2:
    w_1 = w_ref
    for t = 1, ..., T do
        G_t <- sum_i clip(g_i(w_t), L) + N(0, (sigma L)^2 I) + m sum_j g~_j(w_t)
        w_{t+1} <- P_W(w_t - 2 / (lambda (t + 1)) (G_t + lambda (w_t - w_ref)))
    Result: sum_t 2 t / (T (T + 1)) w_t

Erratum: the printed update lacks lambda (w_t - w_ref), the gradient of its own objective. Gradients
are clipped at L, which makes it a Lipschitz constant; W is all of space unless ``within`` is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import (
    Between,
    Flag,
    Instance,
    Named,
    NonNegative,
    Null,
    ParameterTable,
    Positive,
)
from dpadapt.learning.descent import descend
from dpadapt.learning.softmax import Codes, RealArray, gradient, gradient_norms, residuals
from dpadapt.learning.strategy import Strategy, strategy_of
from dpadapt.mixing.features import PublicSample, with_unseen
from dpadapt.mixing.solver import Run
from dpadapt.privacy import shrink_factors

from .noisy_gd import ConstraintSet, PaperSolver
from .projection import FeatureProjection, GradientProjection, GradientSpan
from .queries import within_span

LEAST_CLIP = 1e-3  # below it public gradients say nothing about private ones
_UNKNOWN = 1.0  # without public rows


@dataclass(frozen=True)
class FixedClip(Strategy):
    """The same clip in every step.

    Parameters
    ----------
    clip : float, default=1.0
        tau, bound on a row's gradient norm, which is at most 1.42 anyway.

    Examples
    --------
    >>> FixedClip(0.5)
    FixedClip(clip=0.5)
    """

    clip: float = _UNKNOWN

    _constraints: ClassVar[ParameterTable] = {"clip": [Positive()]}

    def at(self, W: FloatArray, unseen: PublicSample) -> float:
        """The clip, wherever the weights are."""
        return self.clip


@dataclass(frozen=True)
class AdaptiveClip(Strategy):
    """The clip of a step is a percentile of public gradient norms at its weights.

    Parameters
    ----------
    percentile : float, default=90.0
        Of the norms, on public rows that the public phase has not seen.

    Examples
    --------
    >>> unseen = PublicSample(np.eye(2), np.array([0, 1]), 2)
    >>> round(AdaptiveClip().at(np.zeros((2, 2)), unseen), 4)
    0.7071
    """

    percentile: float = 90.0

    _constraints: ClassVar[ParameterTable] = {"percentile": [Between(0, 100, left=False)]}

    def at(self, W: FloatArray, unseen: PublicSample) -> float:
        """The percentile at W; 1 without public rows."""
        if not len(unseen):
            return _UNKNOWN
        return adaptive_clip(unseen.rows, unseen.codes, W, self.percentile, floor=LEAST_CLIP)


def adaptive_clip(
    X: RealArray, codes: Codes, W: FloatArray, percentile: float, floor: float
) -> float:
    r"""Percentile of the gradient norms of public rows at W, at least ``floor``: tau_t.

    A function of public rows and released weights: it costs no privacy. Erratum: rows that W was
    fitted to have small gradients, so that the percentile of theirs clips many more private
    gradients than it says (see :func:`held_out`).

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Public rows.
    codes : ndarray of shape (n,)
    W : ndarray of shape (d, c)
    percentile : float
        From 0 to 100.
    floor : float
        Positive: were all public gradients 0, nothing could move.

    Examples
    --------
    >>> X, codes = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 0])
    >>> round(adaptive_clip(X, codes, np.zeros((1, 2)), 50.0, floor=0.1), 4)
    1.4142
    >>> adaptive_clip(X, codes, np.array([[1e3, -1e3]]), 10.0, floor=0.1)
    0.1
    """
    known = codes >= 0
    rows = X[known].astype(np.float64, copy=False)
    norms = gradient_norms(rows, residuals(rows, codes[known], W))
    if not norms.size:
        return floor
    return max(floor, float(np.percentile(norms, percentile)))


def held_out(codes: Codes, fraction: float = 0.2, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Choose public rows that the public phase must not fit, for the clip: some of every class.

    A class keeps at least one row to fit; one with a single row has none to spare. If no row can
    be held out (one for each class), all rows serve both purposes, and the clip is biased low.

    Parameters
    ----------
    codes : ndarray of shape (n,)
    fraction : float
        Of each class, rounded, but at least one row where there are two.
    seed : int

    Returns
    -------
    ndarray of bool, shape (n,)
        True for rows that the clip is taken from; fit the others, or all if none is left.

    Examples
    --------
    >>> held = held_out(np.array([0] * 5 + [1] * 10))
    >>> held[:5].sum(), held[5:].sum()
    (np.int64(1), np.int64(2))
    >>> held_out(np.array([0, 1, 2]))
    array([ True,  True,  True])
    """
    rng = np.random.default_rng(seed)
    held = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes[codes >= 0]):
        places = rng.permutation(np.flatnonzero(codes == code))
        count = min(max(1, round(fraction * len(places))), len(places) - 1)
        held[places[:count]] = True
    return held if held.any() else np.ones(len(codes), dtype=bool)


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


_RATE = 2.0  # one over the curvature of the loss of unit rows
_PUBLIC_STEPS = 200  # the paper's


@dataclass(frozen=True)
class AdaMix(PaperSolver):
    """AdaMix (Algorithm 2), with all its parts.

    Parameters
    ----------
    clipping : {"adaptive", "fixed"}, AdaptiveClip or FixedClip, default="adaptive"
        Where the clip of a step comes from.
    learning_rate : float, default=2.0
        eta, on the mean gradient.
    penalty : float, default=0.01
        lambda, of the squared norm of the weights; the default is the paper's.
    mixing : float, default=1.0
        m, weight of public gradients in each step.
    average : bool, default=False
        Return the mean of the iterates instead of the last.
    projection : {"gradients", "features"}, GradientProjection or FeatureProjection, optional
        Project gradients on the span of the public ones, or rows on that of the public rows. The
        paper's idea; on five of six data sets it made the error larger.

    Examples
    --------
    >>> AdaMix(clipping=AdaptiveClip(percentile=75.0)).with_params(penalty=1e-4).penalty
    0.0001
    """

    clipping: Any = "adaptive"
    learning_rate: float = _RATE
    penalty: float = 1e-2
    mixing: float = 1.0
    average: bool = False
    projection: Any = None

    _constraints: ClassVar[ParameterTable] = {
        "clipping": [Named({"adaptive": AdaptiveClip, "fixed": FixedClip})],
        "learning_rate": [Positive()],
        "penalty": [NonNegative()],
        "average": [Flag()],
        "projection": [
            Named({"gradients": GradientProjection, "features": FeatureProjection}),
            Null(),
        ],
    }
    words: ClassVar[str] = (
        "AdaMix (Golatkar et al. 2022, Algorithm 2): noisy gradient descent in which public "
        "examples set the clip and join the sums"
    )

    @property
    def span(self) -> GradientProjection | None:
        """How gradients are projected, if they are."""
        projection = strategy_of(self, "projection")
        return projection if isinstance(projection, GradientProjection) else None

    def public_model(self, public: PublicSample, seed: int) -> FloatArray:
        """Run the public phase."""
        return few_shot(public, steps=_PUBLIC_STEPS, rate=_RATE, penalty=self.penalty)

    def fitted_part(self, public: PublicSample) -> PublicSample:
        """Public rows that the clip is not taken from: all, if it is fixed."""
        if isinstance(strategy_of(self, "clipping"), FixedClip):
            return public
        aside = held_out(public.codes)
        # where no row can be spared, all serve both purposes
        return public if aside.all() else public.part(~aside)

    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Run the mix-training phase."""
        public, unseen = self.fitted_part(run.public), run.public.part(held_out(run.public.codes))
        clipping, span = strategy_of(self, "clipping"), self.span if len(public) else None
        known = run.public  # a span is fitted to nothing: no row need be spared for the clip
        inner = known.rows @ known.rows.T if span else None
        count = run.sample_size + self.mixing * len(public)
        iterates = run.iterates

        def noisy(W: FloatArray) -> FloatArray:
            clip = clipping.at(W, unseen)
            if span is None:
                G = run.gradients(W, clip)
            else:
                U = GradientSpan.of(known.rows, known.codes, W, span.rank, inner=inner)
                G = within_span(run.gradients, W, clip, U, clip_first=span.clip_first)
            if self.mixing:
                G = G + self.mixing * gradient(public.rows, public.codes, W)
            iterates.add(W, clip)
            return G / count + self.penalty * W

        W = descend(noisy, run.start, self.learning_rate, iterates.number, last=1)
        return (iterates.mean if self.average else W), {}


_CURVATURE = 0.1  # c of the expected loss, guessed
_LIPSCHITZ = 1.0  # of the public pass


@dataclass(frozen=True)
class Theory(PaperSolver):
    """AdaMix as its theorems have it (Algorithm 3).

    Parameters
    ----------
    clip : float, default=1.0
        L, at which gradients are clipped.
    penalty : float, optional
        lambda, of the squared distance from the public model. By default from Theorem 3.
    mixing : float, default=1.0
        m, weight of public gradients in each step; 1 in the paper.
    projection : {"features"} or FeatureProjection, optional
        Project rows on the span of the public ones.
    within : Ball or Box, optional
        W, the set that weights are projected on after every step; by default all of space.

    Examples
    --------
    >>> Theory(clip=0.5).mixing
    1.0
    """

    clip: float = 1.0
    penalty: float | None = None
    mixing: float = 1.0
    projection: Any = None
    within: ConstraintSet | None = None

    _constraints: ClassVar[ParameterTable] = {
        "clip": [Positive()],
        "penalty": [Positive(), Null()],
        "within": [Instance(ConstraintSet), Null()],
    }
    counts_rows: ClassVar[bool] = False
    words: ClassVar[str] = (
        "AdaMix as its theorems have it (Golatkar et al. 2022, Algorithm 3): noisy gradient "
        "descent that is held near the public model"
    )

    def public_model(self, public: PublicSample, seed: int) -> FloatArray:
        """Run the public phase."""
        return one_pass(public, curvature=_CURVATURE, clip=_LIPSCHITZ, seed=seed)

    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Run the mix-training phase."""
        W, public, iterates = run.start, run.public, run.iterates
        penalty = self._lambda(run) if self.penalty is None else self.penalty
        for t in range(1, iterates.number + 1):
            G = run.gradients(W, self.clip)
            G = G + self.mixing * gradient(public.rows, public.codes, W)
            iterates.add(W, self.clip, mass=float(t))
            W = W - 2 / (penalty * (t + 1)) * (G + penalty * (W - run.start))
            W = W if self.within is None else self.within.project(W, run.start)
        return iterates.mean, {}

    def _lambda(self, run: Run) -> float:
        mu = math.sqrt(run.iterates.number) / run.gradients.sigma
        distance = max(1.0, float(np.linalg.norm(run.start)))
        return theorem_penalty(run.start.size, self.clip, mu, distance)


def theorem_penalty(dimension: int, clip: float, mu: float, distance: float) -> float:
    r"""Lambda that minimises the bound of Theorem 3.

    The terms :math:`d L^2 / (\lambda \rho) + \lambda D^2 / 2` are least at
    :math:`\lambda = \sqrt{2 d L^2 / (\rho D^2)}` with :math:`\rho = \mu^2 / 2` (erratum: the paper
    prints the inverse). D, the distance of the optimum from the public model, is a guess made
    beforehand.

    Examples
    --------
    >>> theorem_penalty(dimension=100, clip=1.0, mu=1.0, distance=2.0)
    10.0
    """
    return math.sqrt(2 * dimension * clip**2 / (mu**2 / 2 * distance**2))
