"""Every claim of the paper's algorithms on how far private rows can move something, with its proof.

Statistics of rows are classes, what is derived from a hidden statistic a function that returns it
hidden. No other file of this folder claims a sensitivity; what the default claims, too, is in
:mod:`dpadapt.reweighting.queries`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.softmax import log_sum_exp
from dpadapt.privacy import Cleaning, Hidden, PrivacyError, RowMap, RowMean, Session, shrink_factors

from .labelled_discrepancy import labelled_discrepancy
from .objective import RowLoss, SquaredLoss, loss_gradients, profile

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


_TOLERANCE = 1e-10  # of the solver, relative to B: a thousand times what rounding does at d = 1000


@dataclass(frozen=True)
class LabelledMoment(RowMean):
    r"""Mean of z z^T over the private rows, z = (x, intercept, ``label_weight`` y).

    Frobenius sensitivity under replace-one. Let :math:`|x| \le r`, :math:`|y| \le Y`, c the label
    weight, i the intercept. (x, c y) is a row of length :math:`\rho = \sqrt{r^2 + c^2 Y^2}` at
    most, and z is that row with an intercept, so that the proof of
    :class:`~dpadapt.privacy.statistics.SecondMoment` holds with :math:`\rho` for r:

    .. math:: \|z z^T - z' z'^T\|_F^2 = |z|^4 + |z'|^4 - 2 (z \cdot z')^2 \le 2 (\rho^2 + i^2)^2

    with equality for orthogonal z and z' of full length, which there are if :math:`i \le \rho`: the
    sensitivity is :math:`\sqrt2 (r^2 + i^2 + c^2 Y^2) / n`. If :math:`i > \rho`, it is
    :math:`\sqrt8\, i \rho / n`, attained at x' = -x, y' = -y.

    Parameters
    ----------
    cleaning : Cleaning
        Holds r, i and the range of the labels (Y is 1 with ``unit_labels``).
    label_weight : float, default=1
        c, public: how much of the noise the label's row of the matrix is to have. Dividing the
        last row and column of the released matrix by c undoes it.

    Examples
    --------
    >>> query = LabelledMoment(Cleaning(radius=2.0, label_range=(0.0, 9.0), unit_labels=True))
    >>> query.block(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0]))
    array([[ 1.,  0.,  1.],
           [ 0.,  4., -2.],
           [ 1., -2.,  2.]])
    >>> math.isclose(query.sensitivity(100), math.sqrt(2) * 5 / 100)
    True
    """

    reads_labels: ClassVar[bool] = True
    cleaning: Cleaning
    label_weight: float = 1.0
    label: str = "labelled second moment"

    def __post_init__(self) -> None:
        validate.positive("label_weight", self.label_weight)
        if self.cleaning.label_range is None:
            raise ValueError("cleaning must have a label_range.")

    @property
    def row_bound(self) -> float:
        """Bound on the length of (x, c y), without the intercept."""
        assert self.cleaning.label_range is not None
        low, high = self.cleaning.label_range
        largest = 1.0 if self.cleaning.unit_labels else max(abs(low), abs(high))
        return math.hypot(self.cleaning.radius, self.label_weight * largest)

    @property
    def magnitude(self) -> float:
        """Bound on |z|^2, the Frobenius norm of one row's contribution."""
        return self.row_bound**2 + self.cleaning.intercept**2

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Square: the features, the intercept if there is one, the label."""
        size = n_columns + (self.cleaning.intercept != 0) + 1
        return (size, size)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of z z^T."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        Z = np.column_stack([X, self.label_weight * y])
        moment: FloatArray = Z.T @ Z
        return moment

    def sensitivity(self, n_rows: int) -> float:
        """Frobenius sensitivity of the mean; see the proof above."""
        rho, i = self.row_bound, abs(self.cleaning.intercept)
        largest = math.sqrt(2) * (rho**2 + i**2) if i <= rho else math.sqrt(8) * i * rho
        return largest / n_rows


def hidden_labelled_discrepancy(
    session: Session, moment: Hidden, public: FloatArray, norm_bound: float, loss_bound: float
) -> Hidden:
    r"""Derive the labelled discrepancy between a public moment and a hidden one.

    Sensitivity under replace-one. For every w of the ball :math:`\|w\| \le \Lambda` the loss of a
    row lies in [0, B], so replacing one private row moves the private mean by B/n at most; a
    supremum of functions moves no more than they do (attained where the row's loss falls from B to
    0 at the maximiser). Arithmetic adds twice the tolerance of the solver, and
    :math:`\Lambda^2 + 1` times what rounding does to the moment, since a loss is
    :math:`(w, -1)^T M (w, -1)`.

    Only the *global* supremum moves so little: the value of a local search
    (:func:`~dpadapt.papers.reweighting.labelled_discrepancy.difference_of_convex`) jumps.

    Parameters
    ----------
    session : Session
    moment : Hidden
        A :class:`LabelledMoment` with unit labels and a label weight of 1.
    public : ndarray of shape (d + 1, d + 1)
        The public moment, of rows within the same bounds.
    norm_bound : float
        :math:`\Lambda`.
    loss_bound : float
        B, :math:`(\Lambda r + 1)^2` for cleaned rows of length r at most.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private([[1.0]] * 8, [1.0] * 8).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(LabelledMoment(cleaning))
    ...     public = np.zeros((2, 2))
    ...     hidden = hidden_labelled_discrepancy(session, moment, public, 1.0, loss_bound=4.0)
    >>> hidden.label, round(hidden.sensitivity, 6)
    ('labelled discrepancy', 0.5)
    """
    return session.derive(
        moment,
        lambda private: labelled_discrepancy(public, private, norm_bound),
        label="labelled discrepancy",
        sensitivity=_loss_sensitivity(session, moment, norm_bound, loss_bound),
    )


def hidden_loss(
    session: Session, moment: Hidden, model: FloatArray, norm_bound: float, loss_bound: float
) -> Hidden:
    r"""Derive the mean private loss of one model w, which was released.

    Losses are in [0, B], so it moves by B/n if one row is replaced (attained); with
    :math:`\ell = (w, -1)^T M (w, -1)` rounding adds what it adds to
    :func:`hidden_labelled_discrepancy`.

    Parameters
    ----------
    session : Session
    moment : Hidden
        As there.
    model : ndarray of shape (d,)
        w, of norm :math:`\Lambda` at most.
    norm_bound, loss_bound : float
        As there.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private([[1.0]] * 8, [1.0] * 8).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(LabelledMoment(cleaning))
    ...     hidden = hidden_loss(session, moment, np.array([0.5]), 1.0, loss_bound=4.0)
    >>> hidden.label, round(hidden.sensitivity, 6)
    ('private loss', 0.5)
    """
    point = np.append(model, -1.0)
    return session.derive(
        moment,
        lambda private: point @ private @ point,
        label="private loss",
        sensitivity=_loss_sensitivity(session, moment, norm_bound, loss_bound),
    )


def _loss_sensitivity(
    session: Session, moment: Hidden, norm_bound: float, loss_bound: float
) -> float:
    n = session.size(moment.part)
    rounding = moment.sensitivity - moment.statistic.sensitivity(n)
    return loss_bound / n + 2 * _TOLERANCE * loss_bound + (norm_bound**2 + 1) * rounding


def shrink_together(X: FloatArray, y: FloatArray, bound: float) -> tuple[FloatArray, FloatArray]:
    r"""Rows in units of ``bound``, those longer than 1 shrunk to 1 *together with their label*.

    The factor :math:`c_i = \min(1, bound/|x_i|)` is then a weight of the row: a linear relation
    between x and y stays what it was. Shrinking x alone would bias it.

    Examples
    --------
    >>> X, y = shrink_together(np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([0.5, 0.5]), 2.5)
    >>> X.round(9), y.round(9)
    (array([[0.6, 0.8],
           [0.4, 0. ]]), array([0.25, 0.5 ]))
    """
    factor = shrink_factors(np.sqrt(np.einsum("ij,ij->i", X, X)), bound)
    return X * (factor / bound)[:, None], y * factor


@dataclass(frozen=True, eq=False)
class HuberGradient(RowMean):
    r"""Mean of x clip((w.x - y) / k, -1, 1) over private rows of length 1 at most.

    It is the private part of the gradient of the profiled objective (:mod:`.objective`), over
    :math:`2 (1-\alpha) k`: with residual e = w.x - y and :math:`k = \sqrt\kappa`,

    .. math:: \frac{1-\alpha}{n} \sum_j 2 x_j e_j \min(1, \sqrt\kappa / |e_j|)
       = 2 (1-\alpha) k \cdot \frac1n \sum_j x_j\, clip(e_j / k, \pm1).

    Sensitivity under replace-one: every contribution has length |x| |clip| <= 1, so the mean moves
    by 2/n at most; attained by (x, y) and (-x, y') with both residuals >= k. It does not depend on
    the knee k: candidates with different knees cost the same. If :math:`\|w\| \le \Lambda` then
    :math:`|e| \le \Lambda + 1`, and a larger k changes nothing; e is *clipped* here, so that the
    bound holds whatever w is.

    Parameters
    ----------
    cleaning : RowMap
        Must give rows of length 1 at most, as :meth:`ProfiledRegression.prepared` does.
    coefficients : ndarray of shape (d,)
        w, public or released.
    knee : float

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = HuberGradient(Cleaning(radius=1.0), np.zeros(1), knee=0.5)
    >>> query.block(np.array([[1.0], [0.5]]), np.array([9.0, -0.1])).round(9)
    array([-0.9])
    >>> query.sensitivity(100)
    0.02
    """

    reads_labels: ClassVar[bool] = True
    cleaning: RowMap
    coefficients: FloatArray
    knee: float
    label: str = "clipped gradient"

    @property
    def magnitude(self) -> float:
        """Bound on one row's contribution."""
        return 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the coefficients."""
        return self.coefficients.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum over the rows of one block."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        gradient: FloatArray = np.clip((X @ self.coefficients - y) / self.knee, -1.0, 1.0) @ X
        return gradient

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Euclidean norm."""
        return 2 / n_rows


@dataclass(frozen=True, eq=False)
class LogisticGradient(RowMean):
    r"""Mean over private rows of the gradient of their logistic loss, each clipped to length C.

    Sensitivity under replace-one: a contribution :math:`s (p - e_y) x^T`, scaled down where
    :math:`s |p - e_y| |x| > C`, has a Frobenius norm of C at most, so the mean moves by 2C/n at
    most; attained by (x, y) and (-x, y) where p is uniform. A row of no class contributes nothing.

    Parameters
    ----------
    cleaning : RowMap
        With ``classes``.
    coefficients : ndarray of shape (k, d)
        Public or released.
    clip : float
        C.
    kappa : float, optional
        Of the profiled weight s; None for s = 1.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = LogisticGradient(Cleaning(radius=1.0, classes=2), np.zeros((2, 1)), clip=9.0)
    >>> query.block(np.array([[1.0], [3.0]]), np.array([0.0, -1.0])).round(9)
    array([[-0.5],
           [ 0.5]])
    >>> query.sensitivity(100)
    0.18
    """

    reads_labels: ClassVar[bool] = True
    cleaning: RowMap
    coefficients: FloatArray
    clip: float
    kappa: float | None = None
    label: str = "clipped logistic gradient"

    @property
    def magnitude(self) -> float:
        """Bound on one row's contribution."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the coefficients."""
        return self.coefficients.shape

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the clipped gradients of one block."""
        if y is None:
            raise PrivacyError("the private sample must have labels: Private(X, y).")
        known = y >= 0
        errors, losses = logistic_errors(
            X @ self.coefficients.T, np.where(known, y, 0).astype(np.intp)
        )
        if self.kappa is not None:
            errors = errors * profile(losses, self.kappa)[1][:, None]
        length = np.sqrt(np.einsum("ij,ij->i", X, X) * np.einsum("ij,ij->i", errors, errors))
        factor = shrink_factors(length, self.clip)
        # an entry that is no number must stay with its row
        weighted = np.nan_to_num(errors * np.where(known, factor, 0.0)[:, None], posinf=0.0)
        gradient: FloatArray = weighted.T @ X
        return gradient

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Frobenius norm."""
        return 2 * self.clip / n_rows


def logistic_errors(
    logits: FloatArray, codes: npt.NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """P - e_y, and the losses."""
    logs = logits - log_sum_exp(logits)[:, None]
    place = (np.arange(len(codes)), codes)
    errors = np.exp(logs)
    errors[place] -= 1
    return errors, -logs[place]
