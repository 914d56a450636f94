r"""The labelled discrepancy of a public and a private sample: hidden, planned, released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Grant, Hidden, Session
from dpadapt.privacy.mechanisms import Gaussian, Laplace

from .labelled_discrepancy import labelled_moment, row_length
from .queries import LabelledMoment, hidden_labelled_discrepancy


@dataclass(frozen=True, eq=False)
class LabelledDiscrepancy:
    r"""The labelled discrepancy between a public sample and a private one, and its release.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their labels, in [-1, 1].
    norm_bound : float
        :math:`\Lambda`.
    cleaning : Cleaning
        How private rows get the same form; with ``unit_labels``.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> target = LabelledDiscrepancy(np.ones((1, 1)), np.ones(1), 1.0, cleaning)
    >>> with Private([[1.0]] * 9000, [-1.0] * 9000).open(epsilon=1.0, delta=1e-6) as session:
    ...     hidden = target.hide(session)
    ...     grants = session.plan(discrepancy=target.mechanism(session, hidden))
    ...     value = target.release(session, grants.discrepancy, hidden)
    >>> bool(abs(value - 4.0) < 0.02)
    True
    """

    X: FloatArray
    y: FloatArray
    norm_bound: float
    cleaning: Cleaning

    def __post_init__(self) -> None:
        validate.positive("norm_bound", self.norm_bound)
        if not self.cleaning.unit_labels:
            raise ValueError("cleaning must have unit_labels.")
        length = row_length(self.cleaning) * (1 + 1e-9)
        if np.linalg.norm(self.X, axis=1).max() > length or np.abs(self.y).max() > 1 + 1e-9:
            raise ValueError("X and y must be within the bounds that cleaning sets private rows.")

    @property
    def query(self) -> LabelledMoment:
        """The private moment that the discrepancy is derived from."""
        return LabelledMoment(self.cleaning)

    @property
    def loss_bound(self) -> float:
        r"""B, :math:`(\Lambda r + 1)^2`: no row, public or private, has a larger loss."""
        return (self.norm_bound * row_length(self.cleaning) + 1) ** 2

    def hide(self, session: Session) -> Hidden:
        """Hide the discrepancy to the private rows."""
        moment, width = session.hide(self.query), self.X.shape[1] + 1
        if moment.shape != (width, width):
            raise ValueError(f"X must have the {moment.shape[0] - 1} columns of the private rows.")
        public = labelled_moment(self.X, self.y)
        return hidden_labelled_discrepancy(
            session, moment, public, self.norm_bound, self.loss_bound
        )

    def mechanism(
        self,
        session: Session,
        hidden: Hidden,
        *,
        calibration: str = "gaussian",
        weight: float = 1.0,
    ) -> Gaussian | Laplace:
        """Course its release.

        Parameters
        ----------
        session : Session
        hidden : Hidden
            From :meth:`hide`.
        calibration : {"gaussian", "laplace", "paper"}, default="gaussian"
            "paper" is Laplace noise of the printed scale B/n. (Erratum: its privacy loss is 1,
            whatever epsilon was asked for. For epsilon/2 it takes 2B/(n epsilon), which is what
            "laplace" gives alone in a session of epsilon/2.)
        weight : float, default=1
            Share of the budget, relative to what else is planned.
        """
        validate.choice("calibration", calibration, ("gaussian", "laplace", "paper"))
        if calibration == "gaussian":
            return Gaussian.of(hidden, weight=weight)
        printed = self.loss_bound / session.size(hidden.part) if calibration == "paper" else None
        return Laplace(hidden.label, hidden.sensitivity, weight=weight, printed=printed)

    def release(self, session: Session, grant: Grant, hidden: Hidden) -> float:
        """Release it; trades the grant of :meth:`mechanism`."""
        return float(np.clip(session.release(grant, hidden), 0.0, self.loss_bound))
