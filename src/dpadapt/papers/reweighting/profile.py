r"""The objective of reweighting with the weights minimised in closed form, and its gradient.

The objective is, for :math:`u_i \ge 1/a_i` with :math:`a_i = \alpha/m` on public and
:math:`(1-\alpha)/n` on private rows, :math:`z_i` the squared loss (on public rows with an offset
d added),

.. math:: F(w, u) = \sum_i \frac{z_i(w)}{u_i} + \kappa \Big(\sum_i a_i^2 u_i - 1\Big).

For given w it is least at :math:`u_i = \max(1, \sqrt{z_i/\kappa}) / a_i`, which leaves

.. math:: F(w) = \sum_i a_i \varphi(z_i) - \kappa, \quad
   \varphi(z) = \begin{cases} z + \kappa & z \le \kappa \\ 2\sqrt{\kappa z} & z > \kappa
   \end{cases}, \quad \varphi'(z) = \min(1, \sqrt{\kappa/z}).

F is convex with a continuous gradient; the weights are :math:`q_i = a_i \varphi'(z_i)`. On private
rows, where z is the squared loss alone, :math:`\varphi` is a Huber loss with its knee at
:math:`\sqrt\kappa`: the weight of a private row never leaves the mechanism, costs nothing, and
bounds the gradient that its row can cause.

The private part of the gradient, and how far a row can move it:
:class:`~dpadapt.papers.reweighting.queries.ClippedGradient`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray


def profile(losses: npt.ArrayLike, kappa: float) -> tuple[FloatArray, FloatArray]:
    r""":math:`\varphi` and :math:`\varphi'` of losses; the latter is each row's relative weight.

    Examples
    --------
    >>> profile([0.5, 1.0, 4.0], kappa=1.0)
    (array([1.5, 2. , 4. ]), array([1. , 1. , 0.5]))
    """
    z = np.asarray(losses, dtype=np.float64)
    outside = np.maximum(z, kappa)
    slope = np.sqrt(kappa / outside) if kappa > 0 else (z <= 0).astype(np.float64)
    return np.where(z <= kappa, z + kappa, 2 * np.sqrt(kappa * outside)), slope


class ProfiledObjective(NamedTuple):
    """Value, gradient and minimising weights of the profiled objective at one w.

    Examples
    --------
    >>> ProfiledObjective(0.0, np.zeros(1), np.ones(1), np.ones(1)).value
    0.0
    """

    value: float
    gradient: FloatArray
    public_weights: FloatArray
    private_weights: FloatArray


def profiled_objective(
    w: npt.ArrayLike,
    public: tuple[FloatArray, FloatArray],
    private: tuple[FloatArray, FloatArray],
    *,
    alpha: float,
    kappa: float,
    private_kappa: float | None = None,
    offset: float = 0.0,
) -> ProfiledObjective:
    r"""The objective minimised over the weights, without noise, for data that may be looked at.

    Parameters
    ----------
    w : array-like of shape (d,)
    public, private : (X, y)
    alpha : float
        Share of the public sample, from 0 to 1.
    kappa : float
        :math:`\kappa`, the price of weights that are not uniform.
    private_kappa : float, optional
        Another price on private rows; their knee is its root.
    offset : float, default=0
        d, added to public losses.

    Examples
    --------
    >>> X, y = np.ones((2, 1)), np.array([0.0, 3.0])
    >>> found = profiled_objective([0.0], (X, y), (X, y), alpha=0.5, kappa=1.0)
    >>> found.value, found.gradient, found.private_weights
    (2.5, array([-1.]), array([0.25      , 0.08333333]))
    """
    w = np.asarray(w, dtype=np.float64)
    value, gradient, weights = 0.0, np.zeros_like(w), []
    prices = (kappa, kappa if private_kappa is None else private_kappa)
    for (X, y), share, price, added in zip(
        (public, private), (alpha, 1 - alpha), prices, (offset, 0.0), strict=True
    ):
        residuals = X @ w - y
        phi, slope = profile(residuals**2 + added, price)
        q = share / max(1, len(y)) * slope
        value += share * (float(np.mean(phi)) - price) if share else 0.0
        gradient = gradient + 2 * X.T @ (q * residuals)
        weights.append(q)
    return ProfiledObjective(value, gradient, *weights)
