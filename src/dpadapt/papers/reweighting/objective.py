r"""The objectives of the paper, and what is left of them when weights are minimised.

**The objective of reweighting with the weights minimised in closed form, and its gradient.**

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
:class:`~dpadapt.papers.reweighting.queries.HuberGradient`.

**The two objectives of the paper, over coefficients w and one weight 1/u for every row.**

Row i has the loss :math:`z_i = \ell_i(w) + \hat d\, 1_{public}` and the reference weight
:math:`p_i`: :math:`\alpha / m` for each of the m public rows, :math:`(1 - \alpha) / n` for each of
the n private ones. Its weight is :math:`q_i = 1 / u_i \le p_i`. At :math:`\alpha` = 1 the private
rows have no weight, at :math:`\alpha` = 0 the public ones: they are left out.

**Convex** (:class:`ConvexPenalty`, the paper's (6)), for the squared loss:

.. math:: F(w, u) = \sum_i \frac{z_i}{u_i} + \kappa_1 \Big[\sum_i p_i^2 u_i - 1\Big]
   + \kappa_2 \|1/u\|_2 + \kappa_\infty / \min_i u_i.

The bracket is the tangent bound :math:`1/u \ge 2p - p^2 u` on :math:`\|p - q\|_1 = 1 - \sum 1/u`,
with equality at u = 1/p. F is jointly convex: quadratic over linear, and norms of convex positive
functions.

**General** (:class:`SmoothPenalty`, the paper's (7)), for a smooth loss:

.. math:: J(w, u) = \sum_i \frac{z_i}{u_i} + \lambda_1 \Big[1 - \sum_i \frac1{u_i}\Big]
   + \lambda_2 \|1/u\|_2 + \frac{\lambda_\infty}{\mu} \log \sum_i e^{\mu / u_i}.

The last term exceeds :math:`\lambda_\infty \|q\|_\infty` by :math:`\lambda_\infty \log(m+n) / \mu`
at most. (Erratum: the printed :math:`\mu = \sqrt{m + n}` makes that much larger than
:math:`\|q\|_\infty`, which is about 1/m; the default is :math:`10\, m \log(m + n)`.)

**Lemma 1**, for both: with :math:`\bar B = B + \kappa_1 + \kappa_2 + \kappa_\infty`,
:math:`\|\nabla_w\| \le G`, :math:`\|\nabla_u\| \le \alpha^2 (B + \bar B) / m^{3/2}` on the public
and :math:`(1 - \alpha)^2 \bar B / n^{3/2}` on the private rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.softmax import log_sum_exp, softmax


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


class RowLoss(Protocol):
    """What the objectives and their bounds need to know of a loss of linear scores X w."""

    def value(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """Loss of each row."""

    def residual(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """Derivative of each row's loss by its scores."""

    def lipschitz(self, length: float, norm_bound: float) -> float:
        """G: bound on the gradient by w of a row of this length, for coefficients of this norm."""

    def smoothness(self, length: float) -> float:
        """Bound on the second derivative by w of a row of this length (the paper's beta)."""

    def bound(self, length: float, norm_bound: float) -> float:
        """B: the loss lies in [0, B]."""


@dataclass(frozen=True)
class SquaredLoss:
    r"""(s - y)^2, for labels in [-1, 1].

    With :math:`|s| \le \Lambda r`: :math:`B = (\Lambda r + 1)^2`,
    :math:`G = 2 r (\Lambda r + 1)`, smooth with :math:`2 r^2`.

    Examples
    --------
    >>> loss = SquaredLoss()
    >>> loss.value(np.array([0.5]), np.array([1.0])), loss.bound(1.0, 1.0), loss.lipschitz(1.0, 1.0)
    (array([0.25]), 4.0, 4.0)
    """

    def value(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """Squared error of each row."""
        return (scores - y) ** 2

    def residual(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """2 (s - y)."""
        return 2 * (scores - y)

    def lipschitz(self, length: float, norm_bound: float) -> float:
        """2 r (Lambda r + 1)."""
        return 2 * length * (norm_bound * length + 1)

    def smoothness(self, length: float) -> float:
        """2 r^2."""
        return 2 * length**2

    def bound(self, length: float, norm_bound: float) -> float:
        """(Lambda r + 1)^2."""
        return (norm_bound * length + 1) ** 2


@dataclass(frozen=True)
class HuberLoss:
    r"""Squared up to the knee k, then linear: labels in [-1, 1], smooth and Lipschitz.

    :math:`\ell = e^2` for :math:`|e| \le k`, else :math:`2k|e| - k^2`: a slope of 2k at most, so
    :math:`G = 2 k r`, smooth with :math:`2 r^2`, and B its value at :math:`|e| = \Lambda r + 1`.

    Parameters
    ----------
    knee : float, default=0.5

    Examples
    --------
    >>> loss = HuberLoss(knee=1.0)
    >>> loss.value(np.array([0.5, 4.0]), np.array([1.0, 1.0])), loss.lipschitz(1.0, 9.0)
    (array([0.25, 5.  ]), 2.0)
    """

    knee: float = 0.5

    def __post_init__(self) -> None:
        validate.positive("knee", self.knee)

    def value(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """Loss of each row."""
        size = np.abs(scores - y)
        return np.where(size <= self.knee, size**2, self.knee * (2 * size - self.knee))

    def residual(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """2 (s - y), cut at 2k."""
        return 2 * np.clip(scores - y, -self.knee, self.knee)

    def lipschitz(self, length: float, norm_bound: float) -> float:
        """2 r min(k, Lambda r + 1)."""
        return 2 * length * min(self.knee, norm_bound * length + 1)

    def smoothness(self, length: float) -> float:
        """2 r^2."""
        return 2 * length**2

    def bound(self, length: float, norm_bound: float) -> float:
        """The loss at the largest residual."""
        return float(self.value(np.array(norm_bound * length + 1), np.array(0.0)))


@dataclass(frozen=True)
class LogisticLoss:
    r"""Minus the log-probability of the class; labels are codes, a row of no class (-1) has loss 0.

    Two classes have one score s, the log-odds of class 1: :math:`\ell = \log(1 + e^{\mp s})`, with
    :math:`|\ell'| \le 1`, :math:`\ell'' \le 1/4`, so G = r, smooth with :math:`r^2 / 4`,
    :math:`B = \log(1 + e^{\Lambda r})`.

    k > 2 classes have k scores, s = x W with W of Frobenius norm :math:`\Lambda` at most:
    :math:`\ell = \log \sum_j e^{s_j - s_y}`. Its gradient by s is p minus a unit vector, no longer
    than :math:`\sqrt 2`; its Hessian diag(p) - pp^T has norm 1/2 at most (variance of a value in an
    interval); :math:`s_j - s_y \le \sqrt 2\, \Lambda r`. Hence :math:`G = \sqrt 2\, r`, smooth with
    :math:`r^2 / 2`, :math:`B = \log(1 + (k - 1) e^{\sqrt2 \Lambda r})`. (Erratum: B is not
    :math:`G \Lambda`, as printed, since the loss at 0 is log k.)

    Parameters
    ----------
    n_classes : int, default=2

    Examples
    --------
    >>> LogisticLoss().value(np.array([0.0, 0.0]), np.array([1.0, -1.0])).round(6)
    array([0.693147, 0.      ])
    >>> LogisticLoss(3).residual(np.zeros((1, 3)), np.array([2.0])).round(3)
    array([[ 0.333,  0.333, -0.667]])
    """

    n_classes: int = 2

    def __post_init__(self) -> None:
        validate.count("n_classes", self.n_classes, least=2)

    def value(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """Minus the log-probability of each row's class."""
        if self.n_classes == 2:
            losses = np.logaddexp(0.0, np.where(y == 1, -scores, scores))
        else:
            own = np.take_along_axis(scores, np.maximum(y, 0).astype(np.intp)[:, None], axis=1)
            losses = log_sum_exp(scores - own)
        return np.where(y >= 0, losses, 0.0)

    def residual(self, scores: FloatArray, y: FloatArray) -> FloatArray:
        """Probabilities minus the indicator of the class."""
        if self.n_classes == 2:
            return np.where(y >= 0, 0.5 * (1 + np.tanh(scores / 2)) - (y == 1), 0.0)
        share = softmax(scores) - (y[:, None] == np.arange(self.n_classes))
        return np.where(y[:, None] >= 0, share, 0.0)

    def lipschitz(self, length: float, norm_bound: float) -> float:
        """r, or sqrt(2) r with more than two classes."""
        return length if self.n_classes == 2 else math.sqrt(2) * length

    def smoothness(self, length: float) -> float:
        """r^2 / 4, or r^2 / 2 with more than two classes."""
        return length**2 / (4 if self.n_classes == 2 else 2)

    def bound(self, length: float, norm_bound: float) -> float:
        """log(1 + (k - 1) e^range), with the range of a difference of scores."""
        reach = norm_bound * length * (1 if self.n_classes == 2 else math.sqrt(2))
        return float(np.logaddexp(0.0, math.log(self.n_classes - 1) + reach))


def loss_gradients(
    loss: RowLoss, X: FloatArray, y: FloatArray, w: FloatArray, u: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gradient by w of the losses over u, and the losses over u^2 (less which is the one by u).

    Examples
    --------
    >>> loss_gradients(SquaredLoss(), np.eye(2), np.ones(2), np.zeros(2), np.array([2.0, 4.0]))
    (array([-1. , -0.5]), array([0.25  , 0.0625]))
    """
    scores = X @ w
    weighted = (loss.residual(scores, y).T / u).T
    return X.T @ weighted, loss.value(scores, y) / u**2


def reference_weights(m: int, n: int, alpha: float) -> FloatArray:
    r"""The paper's :math:`p^0`, of the rows that have any weight: public ones first.

    Examples
    --------
    >>> reference_weights(2, 4, 0.5)
    array([0.25 , 0.25 , 0.125, 0.125, 0.125, 0.125])
    >>> reference_weights(2, 4, 1.0)
    array([0.5, 0.5])
    """
    public = np.full(m if alpha > 0 else 0, alpha / m)
    return np.concatenate([public, np.full(n if alpha < 1 else 0, (1 - alpha) / n)])


def gradient_bounds(
    m: int, n: int, alpha: float, bound: float, kappa: tuple[float, float, float]
) -> tuple[float, float]:
    r"""Lemma 1: bounds on the gradient by the public and by the private u.

    Examples
    --------
    >>> gradient_bounds(4, 4, 0.5, 1.0, (0.0, 0.0, 0.0))
    (0.0625, 0.03125)
    """
    total = bound + math.fsum(kappa)
    return alpha**2 * (bound + total) / m**1.5, (1 - alpha) ** 2 * total / n**1.5


@dataclass(frozen=True, eq=False)
class ConvexPenalty:
    """F as a function of the rows' losses and of u; see this module.

    Parameters
    ----------
    reference : ndarray of shape (m + n,)
        Of :func:`reference_weights`.
    kappa : (float, float, float)
        Strengths of the three penalties: distance from the reference, l2 norm, largest weight.

    Examples
    --------
    >>> penalty = ConvexPenalty(reference_weights(1, 1, 0.5), (1.0, 0.0, 0.0))
    >>> penalty.value(np.array([1.0, 2.0]), np.array([2.0, 2.0]))
    1.5
    """

    reference: FloatArray
    kappa: tuple[float, float, float]

    def value(self, z: FloatArray, u: FloatArray) -> float:
        """F, with z the losses (offset included)."""
        k1, k2, k3 = self.kappa
        distance = float(self.reference**2 @ u) - 1
        return float(z @ (1 / u)) + k1 * distance + k2 * _norm(1 / u) + k3 / float(u.min())

    def gradient(self, u: FloatArray) -> FloatArray:
        """Gradient by u of the penalties: all of it but -z / u^2, and free of private rows."""
        k1, k2, k3 = self.kappa
        out: FloatArray = k1 * self.reference**2 - k2 * u**-3.0 / _norm(1 / u)
        smallest = int(np.argmin(u))  # of several, one: a subgradient
        out[smallest] -= k3 / u[smallest] ** 2
        return out


@dataclass(frozen=True, eq=False)
class SmoothPenalty:
    r"""J as a function of the rows' losses and of u; see this module.

    Parameters
    ----------
    reference : ndarray of shape (m + n,)
    strengths : (float, float, float)
        :math:`\lambda_1, \lambda_2, \lambda_\infty`.
    sharpness : float
        :math:`\mu` of the softmax.

    Examples
    --------
    >>> penalty = SmoothPenalty(reference_weights(1, 1, 0.5), (1.0, 0.0, 0.0), sharpness=10.0)
    >>> penalty.value(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    1.25
    """

    reference: FloatArray
    strengths: tuple[float, float, float]
    sharpness: float

    def value(self, z: FloatArray, u: FloatArray) -> float:
        """J, with z the losses (offset included)."""
        l1, l2, l3 = self.strengths
        largest = float(np.logaddexp.reduce(self.sharpness / u)) / self.sharpness
        return (
            float(z @ (1 / u)) + l1 * (1 - float((1 / u).sum())) + l2 * _norm(1 / u) + l3 * largest
        )

    def gradient(self, u: FloatArray) -> FloatArray:
        """Gradient by u of the penalties: all of it but -z / u^2, and free of private rows."""
        l1, l2, l3 = self.strengths
        share = softmax(self.sharpness / u)
        out: FloatArray = (l1 - l3 * share) / u**2 - l2 * u**-3.0 / _norm(1 / u)
        return out

    def smoothness(self, bound: float, offset: bool = True) -> float:
        r"""Bound on the norm of the Hessian of J by u (Lemma 3's :math:`\beta'`).

        With c the largest weight and :math:`v = q^3`: losses and :math:`\lambda_1` give the
        diagonal :math:`2 (z_i - \lambda_1) q_i^3`, at most :math:`2 c^3 \max(2B, \lambda_1)`
        (the printed :math:`|2B - \lambda_1|` is no bound at z = 0); :math:`\lambda_2` the diagonal
        :math:`3 q_i^4 / \|q\| \le 3 c^3` and :math:`-v v^T / \|q\|^3`, of norm :math:`c^3`;
        the softmax, with shares s, the diagonal :math:`s_i (2 q_i^3 + \mu q_i^4)` and
        :math:`-\mu (q^2 s)(q^2 s)^T`, of norm :math:`\mu c^4`.

        Parameters
        ----------
        bound : float
            B, of the losses.
        offset : bool, default=True
            Whether public losses have the discrepancy added, up to B again.
        """
        l1, l2, l3 = self.strengths
        c = float(self.reference.max())
        largest = max((2 if offset else 1) * bound, l1)
        return c**3 * (2 * largest + 4 * l2 + 2 * l3) + 2 * l3 * self.sharpness * c**4


def profile_weights(z: FloatArray, reference: FloatArray, kappa: float) -> tuple[float, FloatArray]:
    r"""Minimise F over u where only :math:`\kappa_1` is positive: value, and weights 1/u.

    :math:`u_i = \max(1, \sqrt{z_i / \kappa_1}) / p_i`, and so
    :math:`\min_u F = \sum_i p_i \varphi(z_i) - \kappa_1` with :math:`\varphi(z) = z + \kappa_1` up
    to :math:`\kappa_1` and :math:`2 \sqrt{\kappa_1 z}` beyond: for the squared loss of a private
    row, a Huber loss.

    Examples
    --------
    >>> profile_weights(np.array([1.0, 4.0]), np.array([0.5, 0.5]), kappa=1.0)
    (2.0, array([0.5 , 0.25]))
    """
    cost, slope = profile(z, kappa)
    return float(reference @ cost) - kappa, reference * slope


def _norm(values: FloatArray) -> float:
    return float(np.linalg.norm(values))
