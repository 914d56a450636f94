r"""Solvers "profiled": noisy descent from the public model, the weights minimised in closed form.

**Regression.** The objective is in :mod:`.objective`.

**Logistic loss.** The objective is that of :mod:`.objective` with :math:`z_i` the logistic loss of
k >= 2 classes. Its gradient in the k x d coefficients is, row by row,
:math:`a_i \varphi'(z_i) (p_i - e_{y_i}) x_i^T`. Profiling does not bound it (the slope of the loss
does not vanish where the loss is large), so private contributions are clipped in the Frobenius
norm. By default the weights stay uniform, :math:`\varphi' = 1`: with this loss, reweighting private
rows was measured to lose accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.descent import affordable_step, descend, predicted_noise
from dpadapt.privacy import Cleaning, Grant, Hidden, Mechanism, RowMap, Session
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import Prepared
from dpadapt.reweighting.residual_size import ResidualSizeQuery, are_informative, ordinary

from .convex_adaptation import project
from .objective import profile
from .queries import HuberGradient, LogisticGradient, logistic_errors, shrink_together
from .released_discrepancy import LabelledDiscrepancy

_LARGEST_STEP = 0.5
_LEAST_RESIDUAL = 1e-3  # of the public model, in labels of [-1, 1]: keeps the knee above 0
_OFFSET_SHARE = 0.1  # of the squared noise budget, for the offset if it is released


@dataclass(frozen=True, eq=False)
class ProfiledRegression:
    r"""Coefficients by noisy gradient descent on the profiled objective, from the public model.

    Everything but the T gradients is public. In units of the row bound, with every row and its
    label shrunk together (:func:`shrink_together`):

        w_0 = ridge on the public rows, projected on the ball of radius Lambda
        P   = 2 (S + isotropy tr(S)/d I),   S the public second moment
        for t = 1 ... T:  w <- Proj(w - step P^-1 (gradient + noise))
        return the mean of the last half

    The step is the largest of 0.5, 0.4, 0.32, ... at which the noise of the answer, known exactly
    but for S, is predicted to cost at most ``noise_share`` times the public model's squared error.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their labels, in [-1, 1].
    alpha : float, default=0
        Share of the public sample in the objective, from 0 to 1. At 1 the private rows are not
        read, except for the offset.
    kappa : float, optional
        :math:`\kappa`; by default the mean square residual of the public model.
    private_kappa : float, optional
        The same for private rows: the root is their knee. By default ``kappa``.
    norm_bound : float, optional
        :math:`\Lambda`, of the coefficients; by default twice the norm of w_0.
    row_bound : float, optional
        Rows longer than this are shrunk with their label; by default the median public length.
    steps : int, default=40
        T.
    offset : float or "private", default=0
        d, added to public losses: a public number, or the released labelled discrepancy, which
        takes a tenth of the squared noise budget. Of no consequence at ``alpha`` 0.
    ridge, isotropy, noise_share : float
        See above; ridge in units of the row bound.
    size : float, default=1
        How many times as large private residuals are as public ones. Where public ones do not say,
        a query of it (:mod:`~dpadapt.reweighting.residual_size`) finds it.

    Notes
    -----
    Privacy: T Gaussian releases of sensitivity 2/n (:class:`HuberGradient`), and one of the
    offset; P, w_0, the knee, the step and the bounds are functions of public data, n and the noise
    scale. A step costs one pass over the private rows, and one over the public rows if alpha > 0.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(500, 2)), np.ones(500)])
    >>> solver = ProfiledRegression(X, X @ [0.2, 0.1, 0.0] + 0.1 * rng.normal(size=500))
    >>> T = rng.normal(size=(4000, 2))
    >>> cleaning = Cleaning(5.0, intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private(T, T @ [0.2, -0.1]).open(epsilon=1.0, delta=1e-6) as session:
    ...     w = solver.fit(session, cleaning)
    >>> bool(abs(w[1] + 0.1) < 0.05), session.guarantee.epsilon <= 1.0
    (True, True)
    """

    X: FloatArray
    y: FloatArray
    alpha: float = 0.0
    kappa: float | None = None
    private_kappa: float | None = None
    norm_bound: float | None = None
    row_bound: float | None = None
    steps: int = 40
    offset: float | Literal["private"] = 0.0
    ridge: float = 1e-3
    isotropy: float = 3.0
    noise_share: float = 0.05
    size: float = 1.0

    def __post_init__(self) -> None:
        X, y = np.asarray(self.X, dtype=np.float64), np.asarray(self.y, dtype=np.float64)
        if X.ndim != 2 or not X.size or y.shape != X.shape[:1]:
            raise ValueError("X must be a matrix with at least one row, y one label for each.")
        if not (np.isfinite(X).all() and np.abs(y).max() <= 1 + 1e-9):
            raise ValueError("X must be finite, and y in [-1, 1].")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        if validate.non_negative("alpha", self.alpha) > 1:
            raise ValueError(f"alpha must lie between 0 and 1; got {self.alpha!r}.")
        for name in ("kappa", "private_kappa", "norm_bound", "row_bound"):
            if getattr(self, name) is not None:
                validate.positive(name, getattr(self, name))
        for name in ("ridge", "isotropy", "noise_share", "size"):
            validate.positive(name, getattr(self, name))
        validate.count("steps", self.steps)
        if self.offset != "private":
            validate.non_negative("offset", self.offset)

    # public facts, in units of the row bound

    @cached_property
    def row_unit(self) -> float:
        """The row bound."""
        if self.row_bound is not None:
            return self.row_bound
        return float(np.median(np.linalg.norm(self.X, axis=1))) or 1.0

    @cached_property
    def public(self) -> tuple[FloatArray, FloatArray]:
        """Public rows and labels, shrunk together."""
        return shrink_together(self.X, self.y, self.row_unit)

    @cached_property
    def moment(self) -> FloatArray:
        """S, the second moment of the public rows."""
        X, _ = self.public
        return np.asarray(X.T @ X / len(X))

    @cached_property
    def _ridge_solution(self) -> FloatArray:
        X, y = self.public
        penalised = self.moment + self.ridge * np.eye(X.shape[1])
        return np.asarray(np.linalg.solve(penalised, X.T @ y / len(y)))

    @cached_property
    def ball(self) -> float:
        r""":math:`\Lambda`."""
        if self.norm_bound is not None:
            return self.norm_bound * self.row_unit
        return max(2 * float(np.linalg.norm(self._ridge_solution)), 1.0)

    @cached_property
    def start(self) -> FloatArray:
        """w_0."""
        return project(self._ridge_solution, self.ball)

    @cached_property
    def residual(self) -> float:
        """Root mean square residual of the public model (a thousandth at least)."""
        return max(float(np.sqrt(np.mean(self.planning_residuals**2))), _LEAST_RESIDUAL)

    @cached_property
    def planning_residuals(self) -> FloatArray:
        """Residuals of the public model; ordinary ones, if not informative."""
        X, y = self.public
        residuals = np.asarray(X @ self.start - y)
        return residuals if self.residuals_informative else ordinary(residuals, _LEAST_RESIDUAL)

    @cached_property
    def residuals_informative(self) -> bool:
        """Whether private residuals are about as large as public ones."""
        X, y = self.public
        return are_informative(X @ self.start - y, y, X.shape[1])

    @cached_property
    def public_kappa(self) -> float:
        r""":math:`\kappa` on public rows."""
        return self.residual**2 if self.kappa is None else self.kappa

    @cached_property
    def knee(self) -> float:
        r"""k, where private residuals are clipped: :math:`\min(\sqrt\kappa, \sqrt B)`."""
        kappa = self.public_kappa if self.private_kappa is None else self.private_kappa
        return min(self.size * math.sqrt(kappa), self.ball + 1)

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Eigenvalues and vectors of S, and the eigenvalues of 1/P."""
        values, vectors = np.linalg.eigh(self.moment)
        floor = self.isotropy * float(np.trace(self.moment)) / len(values) or 1.0
        return values, vectors, 1 / (2 * (np.maximum(values, 0.0) + floor))

    def step_size(self, scale: float) -> float:
        """The step, for noise of this scale in every released :class:`HuberGradient`."""
        values, _, inverse = self._spectrum
        scale = 2 * (1 - self.alpha) * self.knee * scale
        allowed = self.noise_share * (self.size * self.residual) ** 2

        def noise(step: float) -> float:
            variance = predicted_noise(2 * values, step * inverse, self.steps)
            return scale**2 * float(values @ variance)

        return affordable_step(noise, allowed, _LARGEST_STEP)

    # without noise

    def minimise(self, X: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Coefficients for private rows that may be looked at: the same descent without noise.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Scaled and with an intercept column, as the public rows.
        y : array-like of shape (n,)
        """
        rows = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        T, labels = shrink_together(*rows, self.row_unit)
        offset = self.offset
        if offset == "private":
            raise ValueError("offset must be a number here: there is no session to release it.")

        def gradient(w: FloatArray) -> FloatArray:
            clipped = np.clip((T @ w - labels) / self.knee, -1.0, 1.0)
            return np.asarray(clipped @ T / max(1, len(T)))

        return self._descend(gradient, _LARGEST_STEP, offset)

    # in a session

    def prepared(self, cleaning: Cleaning) -> Prepared:
        """The map of private rows to the form of the public ones; make one for a whole fit."""
        if not cleaning.unit_labels or cleaning.label_range is None:
            raise ValueError("cleaning must have a label_range and unit_labels.")

        def shrink(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
            if y is None:
                return X * 0.0, None
            return shrink_together(X, y, self.row_unit)

        return Prepared(cleaning, shrink, self.X.shape[1])

    def mechanisms(self, session: Session, rows: Prepared) -> dict[str, Mechanism]:
        """Course the T gradients, and the offset if it is to be released."""
        planned: dict[str, Mechanism] = {}
        if self.alpha < 1:
            first = self._gradient(session, rows, self.start)
            planned["gradients"] = Gaussian.of(first, count=self.steps)
        size_query = self.size_query(rows)
        if size_query is not None and planned:
            planned |= size_query.mechanisms(session, planned)
        if self.offset == "private":
            target = self._discrepancy(rows)
            weight = math.sqrt(self.steps * _OFFSET_SHARE / (1 - _OFFSET_SHARE))
            planned["offset"] = target.mechanism(session, target.hide(session), weight=weight)
        return planned

    def release(self, session: Session, grants: Any, rows: Prepared) -> FloatArray:
        """Coefficients for the private rows; trades the grants of :meth:`mechanisms`."""
        return self.sized(session, grants, rows).descend(session, grants, rows)

    def sized(self, session: Session, grants: Any, rows: Prepared) -> ProfiledRegression:
        """The solver for private residuals as large as the size query, if any, finds them."""
        size_query = None if self.alpha == 1 else self.size_query(rows)
        return (
            self if size_query is None else replace(self, size=size_query.release(session, grants))
        )

    def descend(self, session: Session, grants: Any, rows: Prepared) -> FloatArray:
        """Coefficients for the private rows, whose size is known."""
        offset = self.offset
        if offset == "private":
            target = self._discrepancy(rows)
            offset = target.release(session, grants.offset, target.hide(session))
        if self.alpha == 1:
            return self._descend(lambda w: np.zeros_like(w), _LARGEST_STEP, offset)

        def gradient(w: FloatArray) -> FloatArray:
            return np.asarray(session.release(grants.gradients, self._gradient(session, rows, w)))

        return self._descend(gradient, self.step_size(grants.gradients.scale), offset)

    def size_query(self, rows: Prepared) -> ResidualSizeQuery | None:
        """The query of the size of private residuals, where public ones are not informative."""
        if self.residuals_informative:
            return None

        def private_residuals(X: FloatArray, y: FloatArray) -> FloatArray:
            return np.asarray(X @ self.start - y)

        return ResidualSizeQuery(rows, private_residuals, self.planning_residuals)

    def fit(self, session: Session, cleaning: Cleaning) -> FloatArray:
        """Spend a whole session; coefficients of shape (d,), in the units of X.

        Parameters
        ----------
        session : Session
        cleaning : Cleaning
            How private rows get the form of X; with ``unit_labels``.
        """
        rows = self.prepared(cleaning)
        planned = self.mechanisms(session, rows)
        grants = session.plan(**planned) if planned else SimpleNamespace()
        return self.release(session, grants, rows)

    def _gradient(self, session: Session, rows: Prepared, w: FloatArray) -> Hidden:
        return session.hide(HuberGradient(rows, w, self.knee), keep=True)

    def _discrepancy(self, rows: Prepared) -> LabelledDiscrepancy:
        return LabelledDiscrepancy(self.X, self.y, self.ball / self.row_unit, rows.cleaned)

    def _descend(
        self, private_gradient: Callable[[FloatArray], FloatArray], step: float, offset: float
    ) -> FloatArray:
        X, y = self.public
        _, vectors, inverse = self._spectrum

        def gradient(w: FloatArray) -> FloatArray:
            g = 2 * (1 - self.alpha) * self.knee * private_gradient(w)
            if self.alpha > 0:
                e = X @ w - y
                _, slope = profile(e**2 + offset, self.public_kappa)
                g = g + 2 * self.alpha / len(y) * (slope * e) @ X
            return np.asarray(vectors @ (inverse * (vectors.T @ g)))

        found = descend(
            gradient, self.start, step, self.steps, project=lambda w: project(w, self.ball)
        )
        return found / self.row_unit


_SPREAD = (0.01, 2.0)  # of public logits: how small and how large a shift is reckoned with


@dataclass(frozen=True, eq=False)
class ProfiledClassification:
    r"""Coefficients of a logistic model by noisy gradient descent, from the public model.

    As :class:`.ProfiledRegression`, with the preconditioner
    :math:`P = (S + isotropy\,tr(S)/d\,I)/2` for every class (half of S bounds the curvature) and a
    step at which the noise of the answer is predicted to change logits by at most ``noise_share``
    times their public variance (2 at most: a public model may be far too sure).

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their classes, coded 0 ... k - 1.
    classes : int
        k, 2 or more.
    alpha : float, default=0
        Share of the public sample in the objective, from 0 to 1.
    kappa : float, optional
        :math:`\kappa`; None keeps the weights uniform.
    offset : float, default=0
        d, added to public losses.
    clip : float, optional
        C; by default half of the median public length of a row.
    steps : int, default=40
    ridge, isotropy, noise_share : float
        Ridge in units of the median row.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(500, 2)), np.ones(500)])
    >>> solver = ProfiledClassification(X, (X[:, 0] > 0).astype(float), classes=2)
    >>> T = rng.normal(size=(4000, 2))
    >>> cleaning = Cleaning(5.0, intercept=1.0, classes=2)
    >>> with Private(T, T[:, 0] + T[:, 1] > 0).open(epsilon=1.0, delta=1e-6) as session:
    ...     W = solver.fit(session, cleaning)
    >>> W.shape, bool(W[1, 1] > 0), session.guarantee.epsilon <= 1.0
    ((2, 3), True, True)
    """

    X: FloatArray
    y: npt.NDArray[Any]
    classes: int
    alpha: float = 0.0
    kappa: float | None = None
    offset: float = 0.0
    clip: float | None = None
    steps: int = 40
    ridge: float = 1e-4
    isotropy: float = 3.0
    noise_share: float = 0.05

    def __post_init__(self) -> None:
        X, y = np.asarray(self.X, dtype=np.float64), np.asarray(self.y)
        if X.ndim != 2 or not X.size or not np.isfinite(X).all() or y.shape != X.shape[:1]:
            raise ValueError("X must be a matrix of finite numbers, y one class for each row.")
        validate.count("classes", self.classes, least=2)
        codes = y.astype(np.intp)
        if (codes != y).any() or codes.min() < 0 or codes.max() >= self.classes:
            raise ValueError(f"y must hold class codes from 0 to {self.classes - 1}.")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", codes)
        if validate.non_negative("alpha", self.alpha) > 1:
            raise ValueError(f"alpha must lie between 0 and 1; got {self.alpha!r}.")
        for name in ("kappa", "clip"):
            if getattr(self, name) is not None:
                validate.positive(name, getattr(self, name))
        for name in ("ridge", "isotropy", "noise_share"):
            validate.positive(name, getattr(self, name))
        validate.non_negative("offset", self.offset)
        validate.count("steps", self.steps)

    @cached_property
    def row_unit(self) -> float:
        """Median public length of a row."""
        return float(np.median(np.linalg.norm(self.X, axis=1))) or 1.0

    @cached_property
    def gradient_bound(self) -> float:
        """C."""
        return self.row_unit / 2 if self.clip is None else self.clip

    @cached_property
    def start(self) -> FloatArray:
        """The public model: logistic regression with a ridge, of shape (k, d)."""
        shape, penalty = (self.classes, self.X.shape[1]), self.ridge * self.row_unit**2

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            W = flat.reshape(shape)
            errors, losses = logistic_errors(self.X @ W.T, self.y)
            gradient = errors.T @ self.X / len(self.y) + penalty * W
            return float(losses.mean() + penalty / 2 * flat @ flat), gradient.ravel()

        found = minimize(objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B")
        return np.asarray(found.x).reshape(shape)

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Eigenvalues and vectors of S (of rows cut at the row unit), and eigenvalues of 1/P."""
        rows, _ = shrink_together(self.X, np.zeros(len(self.X)), self.row_unit)
        values, vectors = np.linalg.eigh(rows.T @ rows * self.row_unit**2 / len(rows))
        values = np.maximum(values, 0.0)
        floor = self.isotropy * float(values.mean()) or 1.0
        return values, vectors, 2 / (values + floor)

    def step_size(self, scale: float) -> float:
        """The step, for noise of this scale in every released gradient."""
        values, _, inverse = self._spectrum
        logits = self.X @ self.start.T
        spread = float(np.var(logits - logits.mean(axis=1, keepdims=True), axis=0).mean())
        allowed = self.noise_share * min(max(spread, _SPREAD[0]), _SPREAD[1])
        curvature = values * (1 - 1 / self.classes) / self.classes
        scale = (1 - self.alpha) * scale

        def noise(step: float) -> float:
            variance = predicted_noise(curvature, step * inverse, self.steps)
            return scale**2 * float(values @ variance)

        return affordable_step(noise, allowed, _LARGEST_STEP)

    def minimise(self, X: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Coefficients for private rows that may be looked at: the same descent without noise."""
        T, codes = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        cleaning = Cleaning(radius=1.0, classes=self.classes)  # not applied here

        def gradient(W: FloatArray) -> FloatArray:
            return self._query(cleaning, W).block(T, codes) / max(1, len(T))

        return self._descend(gradient, _LARGEST_STEP)

    def mechanism(self, session: Session, rows: RowMap) -> Gaussian:
        """Course the T gradients."""
        return Gaussian.of(self._gradient(session, rows, self.start), count=self.steps)

    def release(self, session: Session, grant: Grant, rows: RowMap) -> FloatArray:
        """Coefficients for the private rows; trades the grant of :meth:`mechanism`."""

        def gradient(W: FloatArray) -> FloatArray:
            return np.asarray(session.release(grant, self._gradient(session, rows, W)))

        return self._descend(gradient, self.step_size(grant.scale))

    def fit(self, session: Session, cleaning: RowMap) -> FloatArray:
        """Spend a whole session; coefficients of shape (k, d), in the units of X."""
        if self.alpha == 1:
            return self._descend(np.zeros_like, _LARGEST_STEP)
        grants = session.plan(gradients=self.mechanism(session, cleaning))
        return self.release(session, grants.gradients, cleaning)

    def _gradient(self, session: Session, rows: RowMap, W: FloatArray) -> Hidden:
        return session.hide(self._query(rows, W), keep=True)

    def _query(self, rows: RowMap, W: FloatArray) -> LogisticGradient:
        return LogisticGradient(rows, W, self.gradient_bound, self.kappa)

    def _descend(
        self, private_gradient: Callable[[FloatArray], FloatArray], step: float
    ) -> FloatArray:
        _, vectors, inverse = self._spectrum
        preconditioner = (vectors * inverse) @ vectors.T

        def gradient(W: FloatArray) -> FloatArray:
            g = (1 - self.alpha) * private_gradient(W)
            if self.alpha > 0:
                errors, losses = logistic_errors(self.X @ W.T, self.y)
                if self.kappa is not None:
                    errors = errors * profile(losses + self.offset, self.kappa)[1][:, None]
                g = g + self.alpha / len(self.y) * errors.T @ self.X
            return np.asarray(g @ preconditioner)

        return descend(gradient, self.start, step, self.steps)
