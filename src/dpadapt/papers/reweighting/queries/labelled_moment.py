r"""Second moments of rows with their labels, and what is derived from them: losses, discrepancy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Hidden, PrivacyError, RowMean, Session

from ..labelled_discrepancy import labelled_discrepancy

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
