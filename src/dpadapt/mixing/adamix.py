"""Algorithm 2 (AdaMix): noisy steps, clipped and projected by what public gradients look like.

Reconstructed from the paper's supplement; its main text and its code were not at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .clipping import adaptive_clip
from .features import PublicSample
from .noisy_gd import NoisyGradients, Path, descend
from .projection import GradientSpan
from .softmax import Array, gradient

__all__ = ["Recipe", "mixed_descent"]

LEAST_CLIP = 1e-3  # below it public gradients say nothing about private ones


@dataclass(frozen=True)
class Recipe:
    """What a step of Algorithm 2 does.

    Parameters
    ----------
    rate : float
        eta, on the mean gradient.
    penalty : float
        lambda.
    clip : float
        tau, if ``percentile`` is None.
    percentile : float, optional
        Clip at this percentile of the public gradient norms, anew in every step.
    mixing : float
        Weight of public gradients.
    in_span : bool
        Whether gradients are projected on the span of the public ones.
    rank : int, optional
        Dimensions of that span, at most.
    clip_first : bool
        Clip, then project; else project, then clip.

    Examples
    --------
    >>> Recipe(rate=2.0, clip=1.0).mixing
    0.0
    """

    rate: float
    clip: float
    penalty: float = 0.0
    percentile: float | None = None
    mixing: float = 0.0
    in_span: bool = False
    rank: int | None = None
    clip_first: bool = False


def mixed_descent(
    gradients: NoisyGradients,
    public: PublicSample,
    held_out: PublicSample,
    W: Array,
    steps: int,
    sample_size: float,
    recipe: Recipe,
    *,
    path: Path,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """Run the mix-training phase from the public model W.

    Parameters
    ----------
    gradients : NoisyGradients
    public : PublicSample
        Rows whose gradients are mixed in and span the subspace.
    held_out : PublicSample
        Public rows that the public model has not seen, for the clip: gradients of fitted rows are
        too small (erratum).
    W : ndarray of shape (d, c)
    steps : int
        T.
    sample_size : float
        Public, or noisy: the number of private rows itself would be told by the public term,
        which has no noise outside the span.
    recipe : Recipe
    path : Path

    Examples
    --------
    >>> import numpy as np
    >>> public = PublicSample(np.eye(2), np.array([0, 1]), 2)
    >>> def quiet(W, clip):  # as if there were neither private rows nor noise
    ...     return np.zeros_like(W)
    >>> recipe, path = Recipe(rate=1.0, clip=1.0, mixing=1.0), Path(keep=False)
    >>> mixed_descent(quiet, public, public, np.zeros((2, 2)), 1, 0.0, recipe, path=path)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    count = sample_size + recipe.mixing * len(public)
    inner = public.rows @ public.rows.T if recipe.in_span else None

    def slope(W: Array, t: int) -> tuple[Array, float]:
        clip = recipe.clip
        if recipe.percentile is not None:
            clip = adaptive_clip(
                held_out.rows, held_out.codes, W, recipe.percentile, floor=LEAST_CLIP
            )
        if recipe.in_span:
            span = GradientSpan.of(public.rows, public.codes, W, recipe.rank, inner=inner)
            total = gradients.within(W, clip, span, clip_first=recipe.clip_first)
        else:
            total = gradients(W, clip)
        if recipe.mixing:
            total = total + recipe.mixing * gradient(public.rows, public.codes, W)
        return total / count + recipe.penalty * W, clip

    return descend(W, steps, slope, lambda t: recipe.rate, path=path, progress=progress)
