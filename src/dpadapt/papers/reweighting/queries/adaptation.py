r"""What Algorithms 1 and 2 of the paper take from private rows in a step, and how far it can move.

Of the private rows come out, in every step, their part of the gradient by w and the n losses over
:math:`u^2`. Both are functions of the whole table of cleaned rows, which have an entry of u each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import Hidden, Session

from ..objective import RowLoss, SquaredLoss, loss_gradients

_EPS = float(np.finfo(np.float64).eps)
_WORST = (1 - math.sqrt(0.5)) / 2
JOINT_SQUARED = (1 + _WORST) * math.sqrt((1 - _WORST) ** 2 + 0.25)  # root of 1.2862


@dataclass(frozen=True)
class StepClaims:
    r"""The gradients by w and u of private rows, hidden, with their sensitivities.

    Let every row have a gradient by w of length G at most and a loss in [0, B], and let
    :math:`u_i \ge n / (1 - \alpha)`.

    **By w.** A row has a weight of :math:`(1 - \alpha) / n` at most, so replacing it moves the sum
    by :math:`s_1 = 2 (1 - \alpha) G / n`; attained by opposite gradients of full length (which the
    squared loss has at a norm bound that vanishes). Arithmetic adds: a sum of n terms, each of norm
    :math:`(1 - \alpha) G / n` at most, is off by (n + d + 8) roundings of the sum of their norms,
    on either neighbour.

    **By u.** One entry of the n losses over :math:`u^2` moves, by
    :math:`s_2 = (1 - \alpha)^2 B / n^2`; attained.

    **Together**, in units of :math:`s_1` and :math:`s_2`: by :math:`\sqrt 2` for a general loss,
    since a row with a gradient of full length may have any loss. For the squared loss by less. Let
    :math:`a, a' \in [0, 1]` be the absolute residuals of the replaced row and of its replacement,
    over :math:`\sqrt B`. The gradients move by :math:`(a + a') / 2` and :math:`|a^2 - a'^2|` at
    most, together by the root of :math:`(a + a')^2 [(a - a')^2 + 1/4]`. Scaling both up increases
    it, so one of them is 1; then :math:`a' = (1 - 1/\sqrt2) / 2` is worst: 1.2862 under the root.

    Parameters
    ----------
    loss : Loss
    s_1, s_2 : float
    rounding : float
        By how much rounding can exceed the first, in units of it.
    times : float, default=1
        By what both are multiplied, and so their sensitivities: rows with a label stand for those
        without, which have the gradient 0 and the loss 0, both within what is assumed.

    Examples
    --------
    >>> claims = StepClaims.of(SquaredLoss(), 1.0, 0.0, alpha=0.5, n=10, width=3)
    >>> claims.s_1, claims.s_2, round(claims.together_sensitivity**2, 4)
    (0.2, 0.0025, 1.2862)
    """

    loss: RowLoss
    s_1: float
    s_2: float
    rounding: float
    times: float = 1.0

    @classmethod
    def of(
        cls,
        loss: RowLoss,
        length: float,
        norm_bound: float,
        *,
        alpha: float,
        n: int,
        width: int,
        times: float = 1.0,
    ) -> StepClaims:
        r"""For rows of this length at most and coefficients (``width`` of them) of this norm."""
        G, B = loss.lipschitz(length, norm_bound), loss.bound(length, norm_bound)
        slack = n * (n + width + 8) * _EPS + 1e-9
        s_1, s_2 = 2 * (1 - alpha) * G / n, (1 - alpha) ** 2 * B / n**2
        return cls(loss, s_1, s_2, slack, times)

    @property
    def together_sensitivity(self) -> float:
        """Of both, in units of s_1 and s_2."""
        joint = JOINT_SQUARED if isinstance(self.loss, SquaredLoss) else math.sqrt(2)
        return self.times * (joint * (1 + 1e-9) + self.rounding)

    @property
    def by_w_sensitivity(self) -> float:
        """Of the gradient by w."""
        return self.times * self.s_1 * (1 + self.rounding)

    @property
    def by_u_sensitivity(self) -> float:
        """Of the losses over u^2."""
        return self.times * self.s_2 * (1 + 1e-9)

    def together(self, session: Session, rows: Hidden, w: FloatArray, u: FloatArray) -> Hidden:
        """Both, one after the other, in units of s_1 and s_2; :meth:`apart` undoes it."""

        def both(table: FloatArray) -> FloatArray:
            by_w, by_u = self._exact(table, w, u)
            return np.concatenate([by_w.ravel() / self.s_1, by_u / self.s_2])

        claim = self.together_sensitivity
        return session.derive(rows, both, label="gradients", sensitivity=claim)

    def apart(self, found: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both in their own units, from what was released of :meth:`together`."""
        by_w, by_u = found[: w.size], found[w.size :]
        return by_w.reshape(w.shape) * self.s_1, by_u * self.s_2

    def by_w(self, session: Session, rows: Hidden, w: FloatArray, u: FloatArray) -> Hidden:
        """The gradient by w."""
        return session.derive(
            rows,
            lambda table: self._exact(table, w, u)[0],
            label="gradient by w",
            sensitivity=self.by_w_sensitivity,
        )

    def by_u(self, session: Session, rows: Hidden, w: FloatArray, u: FloatArray) -> Hidden:
        """The losses over u^2."""
        return session.derive(
            rows,
            lambda table: self._exact(table, w, u)[1],
            label="gradient by u",
            sensitivity=self.by_u_sensitivity,
        )

    def _exact(
        self, table: FloatArray, w: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        by_w, by_u = loss_gradients(self.loss, table[:, :-1], table[:, -1], w, u)
        return self.times * by_w, self.times * by_u


def candidate_sensitivity(loss_bound: float, n: int) -> float:
    """How far :func:`hidden_candidate_discrepancy` moves, with what rounding does to n losses.

    Examples
    --------
    >>> round(candidate_sensitivity(4.0, 8), 6)
    0.5
    """
    return loss_bound / n + 2 * (n + 8) * _EPS * loss_bound + 1e-9 * loss_bound / n


def hidden_candidate_discrepancy(
    session: Session,
    rows: Hidden,
    loss: RowLoss,
    models: Sequence[FloatArray],
    public_losses: Sequence[float],
    loss_bound: float,
) -> Hidden:
    r"""Derive the largest difference of mean losses over a public, finite set of models.

    Each :math:`|L_{priv}(h) - L_{pub}(h)|` is a mean of n losses in [0, B] less a public number: it
    moves by B/n at most (attained), and so does the largest of them. Rounding moves a mean of n
    losses by (n + 8) roundings of B, on either neighbour. Rows without a label have the loss 0, and
    the mean is multiplied by what they leave out: so is how far it moves.

    Parameters
    ----------
    session : Session
    rows : Hidden
        The table of cleaned rows, labels last.
    loss : Loss
    models : sequence of ndarray
        Public.
    public_losses : sequence of float
        Their mean losses on public rows.
    loss_bound : float
        B.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private([[1.0]] * 8, [1.0] * 8).open(epsilon=1.0, delta=1e-6) as session:
    ...     rows, models = session.hide(Rows(cleaning)), [np.zeros(1), np.ones(1)]
    ...     hidden = hidden_candidate_discrepancy(
    ...         session, rows, SquaredLoss(), models, [0.0, 0.0], loss_bound=4.0
    ...     )
    >>> hidden.label, round(hidden.sensitivity, 6)
    ('discrepancy over candidates', 0.5)
    """
    times = session.n_given / session.n_rows

    def largest(table: FloatArray) -> float:
        X, y = table[:, :-1], table[:, -1]
        means = (times * float(loss.value(X @ w, y).mean()) for w in models)
        return max(abs(mean - public) for mean, public in zip(means, public_losses, strict=True))

    return session.derive(
        rows,
        largest,
        label="discrepancy over candidates",
        sensitivity=times * candidate_sensitivity(loss_bound, session.n_given),
    )
