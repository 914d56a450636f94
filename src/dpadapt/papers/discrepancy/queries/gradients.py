r"""How far one private row moves the gradient of a smoothed discrepancy.

The private rows enter through :math:`M(q) = M_0 - S(q)` alone, S(q) the weighted moment of the
public rows. What one row does to :math:`M_0` is said in :mod:`.bounds`; how far that turns the
gradient H of a smoothing, in :mod:`dpadapt.papers.discrepancy.smoothing`. Here is what is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.discrepancy.matrices import row_scores
from dpadapt.privacy import Hidden, Session

from .bounds import RowBounds


class Smoothing(Protocol):
    """What an algorithm needs to know of a smooth function of M. Sensitivities: replace-one."""

    def value(self, M: FloatArray) -> float:
        """Value at a symmetric matrix. Private if M is."""

    def gradient(self, M: FloatArray) -> FloatArray:
        """Gradient H with respect to M, symmetric. Private if M is."""

    def bracket(self, value: float, d: int) -> tuple[float, float]:
        """Interval that holds the approximated norm of a d x d matrix of this value."""

    def smoothness(self, reach: float) -> float:
        """Modulus with respect to the l1 norm of q, for public rows of norm up to ``reach``."""

    def slope(self, bounds: RowBounds) -> float:
        """Bound on every entry of the gradient in q."""

    def sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves any entry of the gradient in q."""

    def range_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves the difference of any two entries."""

    def matrix_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves H, in the Frobenius norm."""

    def value_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves the value."""

    def printed_sensitivity(self, bounds: RowBounds) -> float:
        """Sensitivity of the gradient's entries as the paper prints it."""


@dataclass(frozen=True, eq=False)
class Scores:
    r"""A score for every public row, as a function of the private moment.

    .. math:: g_i(M_0) = c_i - a\, x_i^T H(M_0 - S) x_i

    with public numbers :math:`c_i` (``offset``), a (``strength``) and S (``public``). A difference
    of two scores moves by at most a times the range of the smoothing's gradient: the
    :math:`c_i` are the same for neighbours.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import PNorm
    >>> Scores(np.eye(2), PNorm(1), np.zeros((2, 2)), np.array([1.0, 0.0]))(np.diag([2.0, 3.0]))
    array([-3., -6.])
    """

    X: FloatArray
    smoothing: Smoothing
    public: FloatArray
    offset: FloatArray
    strength: float = 1.0

    def __call__(self, target: FloatArray) -> FloatArray:
        """Scores for a moment. Private if that is."""
        H = self.smoothing.gradient(target - self.public)
        return np.asarray(self.strength * row_scores(self.X, H) + self.offset)

    def range_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves the difference of two scores."""
        return self.strength * self.smoothing.range_sensitivity(bounds)


def hidden_scores(session: Session, moment: Hidden, scores: Scores, bounds: RowBounds) -> Hidden:
    """Hide the scores of the public rows, to choose one; the range is that of :class:`Scores`.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> scores = Scores(np.eye(2), Softmax(5.0), np.eye(2) / 2, np.zeros(2))
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_scores(session, moment, scores, RowBounds(1.0, 1.0, 10))
    >>> round(found.sensitivity, 6)
    0.5
    """
    reach = scores.range_sensitivity(bounds)
    return session.derive(moment, scores, label="Frank-Wolfe vertex", sensitivity=reach)


def hidden_gradient_matrix(
    session: Session, moment: Hidden, smoothing: Smoothing, public: FloatArray, bounds: RowBounds
) -> Hidden:
    """Hide H, the gradient of a smoothing in M; its sensitivity is in the Frobenius norm.

    The proof is that of the smoothing: see :class:`~dpadapt.papers.discrepancy.smoothing.Softmax`.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> facts = (Softmax(5.0), np.eye(2) / 2, RowBounds(1.0, 1.0, 10))
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_gradient_matrix(session, moment, *facts)
    >>> found.shape, round(found.sensitivity, 6)
    ((2, 2), 0.5)
    """
    return session.derive(
        moment,
        lambda target: smoothing.gradient(target - public),
        label="gradient matrix",
        sensitivity=smoothing.matrix_sensitivity(bounds),
    )


def hidden_gradient(
    session: Session,
    moment: Hidden,
    smoothing: Smoothing,
    public: FloatArray,
    X: FloatArray,
    bounds: RowBounds,
    *,
    spread: float,
) -> Hidden:
    r"""Hide the gradient in q, all m entries; its sensitivity is Euclidean.

    The entries :math:`-x_i^T H x_i` move together by at most the change of H in the Frobenius norm
    times :func:`gradient_spread`. (The paper has :math:`\sqrt m` times its bound on one.)

    Parameters
    ----------
    spread : float
        ``gradient_spread(X)``, which is the same for every step.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> X = np.eye(2)
    >>> facts = (Softmax(5.0), X / 2, X, RowBounds(1.0, 1.0, 10))
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_gradient(session, moment, *facts, spread=gradient_spread(X))
    >>> found.shape, round(found.sensitivity, 6)
    ((2,), 0.5)
    """
    return session.derive(
        moment,
        lambda target: row_scores(X, smoothing.gradient(target - public)),
        label="gradient",
        sensitivity=smoothing.matrix_sensitivity(bounds) * spread,
    )


def gradient_spread(X: FloatArray) -> float:
    r"""Largest Euclidean norm of :math:`(x_i^T E x_i)_i` over symmetric E of Frobenius norm 1.

    .. math:: \sum_i (x_i^T E x_i)^2 \le \sum_i \|x_i\|^2 \|E x_i\|^2
              = Tr\, E (\sum_i \|x_i\|^2 x_i x_i^T) E
              \le \lambda_{max}(\sum_i \|x_i\|^2 x_i x_i^T) \|E\|_F^2,

    and this bound is what is returned; it is at most :math:`\sqrt m \hat r^2`.

    Examples
    --------
    >>> gradient_spread(np.array([[1.0, 0.0], [0.0, 2.0]]))
    4.0
    """
    scaled = X * np.linalg.norm(X, axis=1, keepdims=True)
    return math.sqrt(float(np.linalg.eigvalsh(scaled.T @ scaled)[-1]))
