"""How many noisy steps a budget buys."""

from __future__ import annotations

import math

from dpadapt.privacy import _validate as validate
from dpadapt.privacy import gaussian_mu

__all__ = ["row_mu", "steps_for_noise"]


def row_mu(epsilon: float, delta: float, relation: str) -> float:
    r"""Mu of one row's presence that (epsilon, delta) allows.

    Under add/remove a row moves a sum of clipped gradients by one clip at most, under replace-one
    by two: half as much is left for each.

    Examples
    --------
    >>> round(row_mu(3.0, 1e-5, "add-remove") / row_mu(3.0, 1e-5, "replace-one"), 6)
    2.0
    """
    mu = gaussian_mu(epsilon, delta)
    return mu if relation == "add-remove" else mu / 2


def steps_for_noise(sigma: float, epsilon: float, delta: float, relation: str) -> int:
    r"""Steps that noise of ``sigma`` clips allows: T = Calibrate(epsilon, delta, sigma).

    A step is :math:`1/\sigma`-GDP, T steps are :math:`\sqrt{T}/\sigma`-GDP (Lemma 8), so T is the
    whole part of :math:`(\mu \sigma)^2`. Erratum: Proposition 9 prints T^2 for T in its rho.

    Examples
    --------
    >>> [steps_for_noise(20.0, epsilon, 1e-5, "add-remove") for epsilon in (1.0, 3.0, 8.0)]
    [28, 206, 1110]
    >>> [steps_for_noise(20.0, epsilon, 1e-5, "replace-one") for epsilon in (1.0, 3.0, 8.0)]
    [7, 51, 277]
    """
    noise = validate.positive("sigma", sigma)
    mu = row_mu(epsilon, delta, relation)
    steps = math.floor((mu * noise) ** 2)
    if steps < 1:
        raise ValueError(
            f"sigma={sigma:g} is too small: not one step fits into epsilon {epsilon:g} at delta "
            f"{delta:g} under {relation}. Take at least {1 / mu:.4g}, or give steps instead."
        )
    return steps
