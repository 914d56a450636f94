"""Algorithm 3: the version of AdaMix that the theorems are about."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .features import PublicSample
from .noisy_gd import NoisyGradients, Path, descend
from .softmax import Array, gradient

__all__ = ["regularised_descent", "theorem_penalty"]


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


def regularised_descent(
    gradients: NoisyGradients,
    public: PublicSample,
    reference: Array,
    steps: int,
    *,
    clip: float,
    penalty: float,
    mixing: float,
    path: Path,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    r"""NoisyGD on the sum of all losses plus :math:`\lambda / 2 \|w - w_{ref}\|^2`.

    Rates are :math:`2 / (\lambda (t + 1))`, the answer is :math:`\sum_t 2 t w_t / (T (T + 1))`.
    Erratum: the printed update lacks :math:`\lambda (w_t - w_{ref})`, the gradient of its own
    objective. Gradients are clipped at L, which makes it a Lipschitz constant; the set of weights
    is all of space.

    Parameters
    ----------
    gradients : NoisyGradients
    public : PublicSample
    reference : ndarray of shape (d, c)
        w_ref, where the descent starts.
    steps : int
        T.
    clip : float
        L.
    penalty : float
        lambda.
    mixing : float
        Weight of public gradients; 1 in the paper.
    path : Path

    Examples
    --------
    >>> public = PublicSample(np.zeros((0, 1)), np.zeros(0, dtype=int), 2)
    >>> def quiet(W, clip):  # as if there were neither private rows nor noise
    ...     return np.zeros_like(W)
    >>> reference, path = np.array([[1.0, -1.0]]), Path(keep=False)
    >>> regularised_descent(quiet, public, reference, 5, clip=1.0, penalty=2.0, mixing=1.0,
    ...                     path=path)
    array([[ 1., -1.]])
    """

    def slope(W: Array, t: int) -> tuple[Array, float]:
        mixed = gradients(W, clip) + mixing * gradient(public.rows, public.codes, W)
        return mixed + penalty * (W - reference), clip

    descend(
        reference,
        steps,
        slope,
        lambda t: 2 / (penalty * (t + 1)),
        path=path,
        mass=float,
        progress=progress,
    )
    return np.asarray(path.mean)
