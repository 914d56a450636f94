r"""Algorithm 2 (AdaMix) of paper 004: public gradients set the clip and the subspace, and join in.

::

    Data: public rows D_pub, private rows D, (epsilon, delta), sigma, percentile p, rate eta,
          penalty lambda, mixing m
    Public phase, on rows of D_pub that the clip is not taken from:   (public_phase.few_shot)
        w <- 0; 200 times: w <- w - eta (mean of g~_j(w) + lambda w);  w_1 <- w
    T <- Calibrate(epsilon, delta, sigma)                             (steps.steps_for_noise)
    Mix-training phase:
    for t = 1, ..., T do
        tau_t <- p-th percentile of the public |g~_j(w_t)|            (clipping.AdaptiveClip)
        U_t   <- basis of the span of the public g~_j(w_t)            (projection.GradientSpan)
        G_t   <- U_t (sum_i clip(U_t^T g_i(w_t), tau_t) + N(0, (sigma tau_t)^2 I))
        w_{t+1} <- w_t - eta ((G_t + m sum_j g~_j(w_t)) / (N + m N_pub) + lambda w_t)
    Result: w_{T+1}, or the mean of w_1, ..., w_T

Clip and subspace come from public rows and released weights: they cost no privacy. Erratum: rows
that w was fitted to have gradients that are too small, so the clip is taken from others. N is
public or noisy. Without a projection U_t is the identity. Reconstructed from the paper's
supplement; its main text and its code were not at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Flag, Named, NonNegative, Null, ParameterTable, Positive
from dpadapt.learning.descent import descend
from dpadapt.learning.softmax import gradient
from dpadapt.learning.strategy import strategy_of
from dpadapt.mixing.features import PublicSample
from dpadapt.mixing.solver import Run

from .clipping import AdaptiveClip, FixedClip, held_out
from .filtered_gradients import within_span
from .projection import FeatureProjection, GradientProjection, GradientSpan
from .public_phase import few_shot
from .steps import PaperSolver

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
        paper's idea; it has not helped in anything that we measured.

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
        """Public rows that the clip is not taken from."""
        aside = held_out(public.codes)
        # where no row can be spared, all serve both purposes
        return public if aside.all() else public.part(~aside)

    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Run the mix-training phase."""
        public, unseen = self.fitted_part(run.public), run.public.part(held_out(run.public.codes))
        clipping, span = strategy_of(self, "clipping"), self.span if len(public) else None
        inner = public.rows @ public.rows.T if span else None
        count = run.sample_size + self.mixing * len(public)
        iterates = run.iterates

        def noisy(W: FloatArray) -> FloatArray:
            clip = clipping.at(W, unseen)
            if span is None:
                G = run.gradients(W, clip)
            else:
                U = GradientSpan.of(public.rows, public.codes, W, span.rank, inner=inner)
                G = within_span(run.gradients, W, clip, U, clip_first=span.clip_first)
            if self.mixing:
                G = G + self.mixing * gradient(public.rows, public.codes, W)
            iterates.add(W, clip)
            return G / count + self.penalty * W

        W = descend(noisy, run.start, self.learning_rate, iterates.number, last=1)
        return (iterates.mean if self.average else W), {}
