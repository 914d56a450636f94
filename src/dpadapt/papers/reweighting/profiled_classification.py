r"""Solver "profiled" for logistic loss: noisy descent from the public model, gradients clipped.

The objective is that of :mod:`.profile` with :math:`z_i` the logistic loss of
k >= 2 classes. Its gradient in the k x d coefficients is, row by row,
:math:`a_i \varphi'(z_i) (p_i - e_{y_i}) x_i^T`. Profiling does not bound it (the slope of the loss
does not vanish where the loss is large), so private contributions are clipped in the Frobenius
norm. By default the weights stay uniform, :math:`\varphi' = 1`: with this loss, reweighting private
rows was measured to lose accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.descent import affordable_step, descend, predicted_noise
from dpadapt.privacy import Cleaning, Grant, Hidden, RowMap, Session
from dpadapt.privacy.mechanisms import Gaussian

from .profile import profile
from .queries.profiled_gradients import LogisticGradient, logistic_errors, shrink_together

_LARGEST_STEP = 0.5
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
