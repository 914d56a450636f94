r"""Solver "statistics": one noisy second moment of rows and labels, then everything is free.

With the weights of private rows frozen at :math:`(1-\alpha)/n`, all that the squared losses of the
private sample depend on is the mean of (x, y)(x, y)^T. It is released once; the discrepancy, the
coefficients and the public weights, for every :math:`\alpha`, :math:`\kappa` and offset, are
functions of it and of public rows: post-processing, at no cost.

By default the label is the *residual* of the public model, e = y - x.w_0, clamped to twice the
range that public residuals have. That is the same statistic in other coordinates, y = e + x.w_0,
but its label is bounded by the public residuals instead of 1, and so the part of the noise that a
label causes shrinks in proportion; and coefficients are then shifts from the public model.

With z = (x, b e / Y), |x| <= 1, |e| <= Y, a row of the statistic has :math:`|z|^2 \le 1 + b^2`
(:class:`~dpadapt.privacy.statistics.MeanOuter`). The noise in x e is
proportional to :math:`(1 + b^2)/b`, least at b = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Grant, Hidden, Mechanism, Session
from dpadapt.privacy.core.hidden import Part
from dpadapt.privacy.mechanisms import SymmetricGaussian
from dpadapt.privacy.statistics import MeanOuter, Prepared
from dpadapt.reweighting.residual_size import ResidualSizeQuery

from .labelled_discrepancy import ball_maximum, labelled_discrepancy, labelled_moment
from .objective import profile
from .profiled import ProfiledRegression
from .queries import shrink_together

_ROUNDS = 100  # of reweighting, at most
_SETTLED = 1e-9  # change of the coefficients at which it stops


@dataclass(frozen=True, eq=False)
class ReleasedMoment:
    """A released moment of shrunk rows and residuals, in their own units.

    Attributes
    ----------
    matrix : ndarray of shape (d + 1, d + 1)
        Symmetric, not necessarily positive: the label's row and column are the last.
    row_noise, label_noise : float
        Standard deviation of an off-diagonal entry of the rows' block, and of the label's.

    Examples
    --------
    >>> ReleasedMoment(np.eye(2), row_noise=0.1, label_noise=0.01).matrix.shape
    (2, 2)
    """

    matrix: FloatArray
    row_noise: float
    label_noise: float

    @property
    def noise_norm(self) -> float:
        r"""Spectral norm of the noise in the rows' block, about: :math:`2 \sigma \sqrt d`."""
        return 2 * self.row_noise * math.sqrt(len(self.matrix) - 1)


@dataclass(frozen=True, eq=False)
class MomentRegression:
    r"""Coefficients from one noisy release of the labelled second moment.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their labels, in [-1, 1].
    residuals : bool, default=True
        Whether the label that is released is the residual of the public model.
    shift_bound : float, optional
        How far the coefficients may be from the public model (from 0 without ``residuals``): the
        radius of the ball, in the units of X. By default the norm of the public model (twice that).
    row_bound : float, optional
        Rows longer than this are shrunk with their label; by default the median public length.
    label_quantile : float, default=0.95
        Residuals are clamped at twice this quantile of the public ones: room for a shift as large
        as they are. (A larger shift is cut, and underestimated.)
    label_weight : float, default=1
        b.
    ridge : float, default=1e-3
        Of the public model, in units of the row bound.
    size : float, default=1
        How many times as large private residuals are as public ones. Where public ones do not say,
        a query of it (:mod:`~dpadapt.reweighting.residual_size`) finds it.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(500, 2)), np.ones(500)])
    >>> solver = MomentRegression(X, X @ [0.2, 0.1, 0.0] + 0.1 * rng.normal(size=500))
    >>> T = rng.normal(size=(9000, 2))
    >>> cleaning = Cleaning(5.0, intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private(T, T @ [0.2, -0.1]).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = solver.fit(session, cleaning)
    >>> bool(abs(solver.solve(moment, alpha=0.1)[1] + 0.1) < 0.05)
    True
    """

    X: FloatArray
    y: FloatArray
    residuals: bool = True
    shift_bound: float | None = None
    row_bound: float | None = None
    label_quantile: float = 0.95
    label_weight: float = 1.0
    ridge: float = 1e-3
    size: float = 1.0

    def __post_init__(self) -> None:
        validate.fraction("label_quantile", self.label_quantile)
        validate.positive("label_weight", self.label_weight)
        validate.positive("size", self.size)
        if self.shift_bound is not None:
            validate.positive("shift_bound", self.shift_bound)
        _ = self.public_model  # checks the rest

    @cached_property
    def public_model(self) -> ProfiledRegression:
        """Public ridge, row unit and residuals, shared with the solver "profiled"."""
        return ProfiledRegression(self.X, self.y, row_bound=self.row_bound, ridge=self.ridge)

    @cached_property
    def center(self) -> FloatArray:
        """Coefficients that are taken off the labels: the public model, or 0."""
        start = self.public_model.start
        return start if self.residuals else np.zeros_like(start)

    @cached_property
    def ball(self) -> float:
        """Largest shift from the centre, for rows in units of the row bound."""
        if self.shift_bound is not None:
            return self.shift_bound * self.public_model.row_unit
        return self.public_model.ball / (2 if self.residuals else 1)

    @cached_property
    def label_bound(self) -> float:
        """Y, where the labels of the statistic are clamped."""
        if not self.residuals:
            return 1.0
        typical = float(
            np.quantile(np.abs(self.public_model.planning_residuals), self.label_quantile)
        )
        return 2 * self.size * max(typical, self.public_model.residual)

    def prepared(self, cleaning: Cleaning) -> Prepared:
        """The map of private rows to what the moment is taken of."""
        if not cleaning.unit_labels or cleaning.label_range is None:
            raise ValueError("cleaning must have a label_range and unit_labels.")

        def weighted(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
            if y is None:
                return X * 0.0, None
            rows, labels = shrink_together(X, y, self.public_model.row_unit)
            clipped = np.clip((labels - rows @ self.center) / self.label_bound, -1.0, 1.0)
            return rows, self.label_weight * clipped

        return Prepared(cleaning, weighted, self.X.shape[1])

    def hide(self, session: Session, cleaning: Cleaning, part: Part = "all") -> Hidden:
        """The moment, hidden; release it by a ``SymmetricGaussian``."""
        bound = math.hypot(1.0, self.label_weight)
        query = MeanOuter(self.prepared(cleaning), self.X.shape[1] + 1, bound)
        return session.hide(query, part)

    def size_query(self, cleaning: Cleaning) -> ResidualSizeQuery | None:
        """The query of the size of private residuals, where public ones are not informative."""
        if not self.residuals:
            return None
        return self.public_model.size_query(self.public_model.prepared(cleaning))

    def mechanisms(
        self, session: Session, cleaning: Cleaning, part: Part = "all"
    ) -> dict[str, Mechanism]:
        """Course the moment, and the size query before it if there is one."""
        hidden = self.hide(session, cleaning, part)
        planned: dict[str, Mechanism] = {"moment": SymmetricGaussian.of(hidden)}
        size_query = self.size_query(cleaning)
        if size_query is not None:
            planned |= size_query.mechanisms(session, planned, part)
        return planned

    def sized(
        self, session: Session, grants: Any, cleaning: Cleaning, part: Part = "all"
    ) -> MomentRegression:
        """The solver for private residuals as large as the size query finds them."""
        size_query = self.size_query(cleaning)
        if size_query is None:
            return self
        return replace(self, size=size_query.release(session, grants, part))

    def release(
        self, session: Session, grant: Grant, cleaning: Cleaning, part: Part = "all"
    ) -> ReleasedMoment:
        """The noisy moment, in units of rows and residuals."""
        noisy = session.release(grant, self.hide(session, cleaning, part))
        unit = np.ones(len(noisy))
        unit[-1] = self.label_bound / self.label_weight
        noise = grant.scale / math.sqrt(2)  # half of the variance off the diagonal
        return ReleasedMoment(noisy * np.outer(unit, unit), noise, noise * float(unit[-1]))

    def fit(self, session: Session, cleaning: Cleaning) -> ReleasedMoment:
        """Spend a whole session on the moment, and on the size query before it if there is one."""
        grants = session.plan(**self.mechanisms(session, cleaning))
        solver = self.sized(session, grants, cleaning)
        return solver.release(session, grants.moment, cleaning)

    def exact(self, X: npt.ArrayLike, y: npt.ArrayLike) -> ReleasedMoment:
        """The same statistic of rows that may be looked at, without noise."""
        rows, labels = shrink_together(
            np.asarray(X, dtype=np.float64),
            np.asarray(y, dtype=np.float64),
            self.public_model.row_unit,
        )
        e = np.clip(labels - rows @ self.center, -self.label_bound, self.label_bound)
        return ReleasedMoment(labelled_moment(rows, e), 0.0, 0.0)

    # what the moment tells, at no cost

    def discrepancy(self, moment: ReleasedMoment) -> float:
        r""":math:`\hat d` on the (noisy) statistics, over the ball of shifts."""
        X, y = self.public_model.public
        public = labelled_moment(X, y - X @ self.center)
        return labelled_discrepancy(public, moment.matrix, self.ball)

    def solve(
        self,
        moment: ReleasedMoment,
        *,
        alpha: float,
        kappa: float | None = None,
        offset: float = 0.0,
    ) -> FloatArray:
        r"""Coefficients (in the units of X) that minimise the objective on the moment.

        The noise makes the private curvature indefinite, and shifts along its lowest directions
        seem to be for free; a penalty as large as the norm of the noise, known in advance, takes
        that away. Public rows are reweighted in closed form as in the solver "profiled"; for given
        weights the objective is a quadratic, indefinite perhaps all the same, and its global
        minimum over the ball is found. It is concave in the losses: no round increases it.

        Parameters
        ----------
        moment : ReleasedMoment
        alpha : float
            Share of the public sample, from 0 to 1.
        kappa : float, optional
            By default the mean square residual of the public model.
        offset : float, default=0
            d, added to public losses; :meth:`discrepancy` for the paper's.
        """
        if validate.non_negative("alpha", alpha) > 1:
            raise ValueError(f"alpha must lie between 0 and 1; got {alpha!r}.")
        price = self.public_model.residual**2
        if kappa is not None:
            price = validate.positive("kappa", kappa)
        X, y = self.public_model.public
        e = y - X @ self.center
        A = moment.matrix[:-1, :-1] + moment.noise_norm * np.eye(X.shape[1])
        b, shift = moment.matrix[:-1, -1], np.zeros(X.shape[1])
        for _ in range(_ROUNDS):
            _, slope = profile((X @ shift - e) ** 2 + offset, price)
            q = alpha / len(y) * slope
            H, g = (1 - alpha) * A + (X.T * q) @ X, (1 - alpha) * b + X.T @ (q * e)
            before, shift = shift, ball_maximum(-H, -g, 0.0, self.ball).point
            if float(np.linalg.norm(shift - before)) <= _SETTLED * self.ball:
                break
        return np.asarray((self.center + shift) / self.public_model.row_unit)
