r"""Solver "known-noise", the default: from the public model, as far as the known noise allows.

In ten lines. Everything but the loop and the level is public.

 1. Fit the public model; choose coordinates z(x), horizon tau, steps T and clip R
    (:mod:`.known_noise_plan`): one more unit of horizon would add more noise than it removes shift.
 2. Shrink every private row with |z| > 1 to length 1, in regression together with its residual.
 3. W = 0; T times, W <- W - tau/T (mean of clipped gradients + noise); take the mean of the last
    half. A row's gradient is clipped to length R, so that the mean moves by 2R/n at most.
 4. Shrink W by the factor max(0, 1 - N/E) of James and Stein: E is the energy of what moved, N
    what noise and sampling alone would have moved.
 5. In regression with skew residuals (the plan decides), release the mean residual with a wide
    clip of its own and add it, shrunken likewise: clipped gradients find the middle of the labels
    rather than their mean, and one number needs little of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpadapt._public_fits import fit_logistic, fit_ridge
from dpadapt.privacy import (
    Cleaning,
    Grant,
    Hidden,
    Prepared,
    Request,
    RowMap,
    Session,
    gaussian_mu,
)

from .horizon import Array
from .known_noise_plan import Plan, PublicProblem, clipped, descend, errors, plan

__all__ = ["Descent", "KnownNoise", "Level", "RowGradient", "Run"]


@dataclass(frozen=True, eq=False)
class RowGradient:
    r"""Mean of the rows' clipped gradients at W.

    A prepared row holds the features :math:`\bar z` with :math:`|\bar z| \le 1`, the scores of
    the public model (classification), and :math:`|\bar z|`. Its gradient is
    :math:`\bar z e^T`, with :math:`e = \bar z W - y` or
    :math:`e = softmax(offset + \bar z W) - onehot(y)`, shrunk to a length of R at most.

    Sensitivity under replace-one. The Frobenius norm of :math:`\bar z e^T` is
    :math:`|\bar z| |e|`, which the clip brings to R at most, whatever the row and its label are.
    The sum of n rows moves by :math:`|g - g'| \le 2R`, the mean by 2R/n; attained by rows with the
    same long features and opposite errors. A row of no class contributes 0.

    Parameters
    ----------
    cleaning : RowMap
    coefficients : ndarray of shape (D, k)
        W.
    clip : float
        R.

    Examples
    --------
    >>> rows = Prepared(Cleaning(1.0), lambda X, y: (X, y), 2)
    >>> query = RowGradient(rows, np.zeros((1, 1)), clip=0.5)
    >>> query.block(np.array([[1.0, 1.0], [0.1, 0.1]]), np.array([-9.0, 1.0])).round(6)
    array([[0.4]])
    >>> query.sensitivity(10)
    0.1
    """

    cleaning: RowMap
    coefficients: Array
    clip: float
    label: str = "clipped gradient"

    @property
    def magnitude(self) -> float:
        """R."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """That of the coefficients."""
        return self.coefficients.shape

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of the clipped gradients."""
        features, outputs = self.coefficients.shape
        if y is None:
            return np.zeros_like(self.coefficients)
        Z, lengths = X[:, :features], X[:, -1]
        if outputs == 1:
            error = errors(Z @ self.coefficients, None, y[:, None])
        else:
            targets = y[:, None] == np.arange(outputs)
            error = errors(Z @ self.coefficients, X[:, features:-1], targets.astype(float))
            error[y < 0] = 0.0
        return np.asarray(Z.T @ clipped(error, lengths, self.clip))

    def sensitivity(self, n_rows: int) -> float:
        """2R/n; see the proof above."""
        return 2 * self.clip / n_rows


@dataclass(frozen=True, eq=False)
class Level:
    """Mean residual of a model, each clipped to [-clip, clip].

    Two numbers of that interval are 2 clip apart at most, so the mean of n moves by 2 clip / n;
    attained.

    Examples
    --------
    >>> query = Level(Cleaning(1.0, intercept=1.0), np.array([0.0, 1.0]), clip=2.0)
    >>> query.block(np.array([[0.5, 1.0], [0.5, 1.0]]), np.array([9.0, 2.0]))
    array([3.])
    """

    cleaning: RowMap
    coefficients: Array
    clip: float
    label: str = "level"

    @property
    def magnitude(self) -> float:
        """The clip."""
        return self.clip

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of the clipped residuals."""
        if y is None:
            return np.zeros(1)
        residual = np.clip(y - X @ self.coefficients, -self.clip, self.clip)
        return np.array([residual.sum()])

    def sensitivity(self, n_rows: int) -> float:
        """2 clip / n."""
        return 2 * self.clip / n_rows


@dataclass(frozen=True, eq=False)
class Descent:
    """What a known-noise descent returns.

    Attributes
    ----------
    coefficients : ndarray of shape (d + 1, k)
        Of (x, 1).
    share : float
        Factor of James and Stein: 0 is the public model.
    plan : Plan

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> KnownNoise(X, X[:, 0]).minimise(X, X[:, 0] + 1).share
    1.0
    """

    coefficients: Array
    share: float
    plan: Plan


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """Noisy descent from the public model, its horizon planned from the known noise.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, in the units in which the descent is to see them; no constant column.
    y : ndarray of shape (m,)
        Their labels: numbers, or class codes.
    classes : int, default=0
        Number of classes; 0 for regression.
    shrink : bool, default=True
        Whether to shrink to the public model what moved no farther than noise would move it. If
        a shift is known to exist, False learns more of it; where there is none, it does harm.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(1000, 2)), rng.normal(size=(5000, 2))
    >>> solver = KnownNoise(X, X[:, 0] + 0.1 * rng.normal(size=1000))
    >>> cleaning = Cleaning(100.0, intercept=1.0, label_range=(-9.0, 9.0))
    >>> with Private(T, T[:, 0] + 0.5).open(epsilon=1.0, delta=1e-6) as session:
    ...     found = solver.fit(session, cleaning)
    >>> bool(abs(found.coefficients[2, 0] - 0.5) < 0.05), session.guarantee.epsilon <= 1.0
    (True, True)
    """

    X: Array
    y: npt.NDArray[np.generic]
    classes: int = 0
    shrink: bool = True

    @cached_property
    def model(self) -> Array:
        """Coefficients of the public model, of shape (d + 1, k)."""
        rows = np.column_stack([self.X, np.ones(len(self.X))])
        if not self.classes:
            return fit_ridge(rows, np.asarray(self.y, dtype=np.float64)[:, None])
        found = fit_logistic(rows, np.asarray(self.y).astype(np.int64), self.classes)
        return np.hstack([-found / 2, found / 2]) if found.shape[1] == 1 else found

    @cached_property
    def problem(self) -> PublicProblem:
        """What the plan needs to know."""
        return PublicProblem(self.X, self.y, self.model)

    def plan(self, n_rows: int, epsilon: float, delta: float) -> Plan:
        """The plan for n private rows and a budget."""
        return plan(self.problem, n_rows, gaussian_mu(epsilon, delta))

    def prepared(self, cleaning: Cleaning, chosen: Plan) -> Prepared:
        """Private rows in the coordinates of the descent; see :class:`RowGradient`."""
        geometry, model = chosen.geometry, self.model
        features, outputs = len(geometry.mean) + 1, model.shape[1]
        scores = 0 if outputs == 1 else outputs

        def prepare(X: Array, y: Array | None) -> tuple[Array, Array | None]:
            Z, offsets = geometry.features(X[:, :-1]), X @ model
            lengths = np.linalg.norm(Z, axis=1)
            weight = np.minimum(1.0, 1 / np.maximum(lengths, 1e-300))
            out = np.empty((len(X), features + scores + 1), order="F")
            np.multiply(Z, weight[:, None], out=out[:, :features])
            out[:, -1] = np.minimum(lengths, 1.0)
            if y is None or outputs > 1:
                out[:, features:-1] = offsets[:, :scores]
                return out, y
            return out, weight * (y - offsets[:, 0])

        return Prepared(cleaning, prepare, features + scores + 1)

    def fit(self, session: Session, cleaning: Cleaning) -> Descent:
        """Spend a whole session.

        Parameters
        ----------
        session : Session
        cleaning : Cleaning
            How private rows get the form of X, with an intercept of 1; for regression with a
            ``label_range``, for classification with ``classes``.
        """
        run = self.begin(session, cleaning)
        return run.release(session, session.plan(*run.requests))

    def begin(self, session: Session, cleaning: Cleaning) -> Run:
        """Make the plan, and say what will be asked for."""
        chosen = self.plan(session.n_rows, session.epsilon, session.delta)
        run = Run(self, chosen, cleaning, self.prepared(cleaning, chosen))
        asked = [run.gradient(session, np.zeros(run.shape)).request(count=chosen.steps)]
        if chosen.level_share > 0:
            odds = chosen.level_share / (1 - chosen.level_share)
            weight = math.sqrt(chosen.steps * odds)
            asked.append(run.level(session, self.model).request(weight=weight))
        return replace(run, requests=tuple(asked))

    def minimise(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Descent:
        """The same for private rows that may be looked at: no noise, no clip, no shrinkage."""
        T, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
        chosen = self.plan(len(T), 100.0, 1e-6)
        cleaning = Cleaning(1e100, intercept=1.0, label_range=(-1e100, 1e100))
        if self.classes:
            cleaning = Cleaning(1e100, intercept=1.0, classes=self.classes)
        rows = self.prepared(cleaning, chosen)
        Z, targets = rows(T, labels.astype(np.float64))
        shape = (len(chosen.geometry.mean) + 1, self.model.shape[1])

        def gradient(W: Array) -> Array:
            return RowGradient(rows, W, math.inf).block(Z, targets) / max(1, len(T))

        W = descend(gradient, shape, chosen.horizon, chosen.steps)
        return Descent(self.model + chosen.geometry.coefficients(W), 1.0, chosen)


@dataclass(frozen=True, eq=False)
class Run:
    """A planned descent: :meth:`KnownNoise.begin` makes it, ``release`` runs it.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> cleaning = Cleaning(9.0, intercept=1.0, label_range=(-9.0, 9.0))
    >>> with Private(X, X[:, 0]).open(epsilon=1.0, delta=1e-6) as session:
    ...     run = KnownNoise(X, X[:, 0]).begin(session, cleaning)
    ...     found = run.release(session, session.plan(*run.requests))
    >>> found.coefficients.shape
    (2, 1)
    """

    solver: KnownNoise
    plan: Plan
    cleaning: Cleaning
    rows: Prepared
    requests: tuple[Request, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Of the coefficients of the descent."""
        return len(self.plan.geometry.mean) + 1, self.solver.model.shape[1]

    def gradient(self, session: Session, W: Array) -> Hidden:
        """Hide the clipped gradient at W."""
        return session.hide(RowGradient(self.rows, W, self.plan.clip), keep=True)

    def level(self, session: Session, coefficients: Array) -> Hidden:
        """Hide the clipped mean residual of a model."""
        query = Level(self.cleaning, coefficients[:, 0], self.plan.level_clip)
        return session.hide(query)

    def release(self, session: Session, grants: Sequence[Grant]) -> Descent:
        """Descend; trades the grants of ``requests``."""
        solver, chosen = self.solver, self.plan
        W = descend(
            lambda W: session.gaussian(grants[0], self.gradient(session, W)),
            self.shape,
            chosen.horizon,
            chosen.steps,
        )
        share = 1.0
        if solver.shrink:
            share = chosen.shrinkage(W, grants[0].scale, session.n_rows)
        found = solver.model + share * chosen.geometry.coefficients(W)
        if chosen.level_share > 0:
            move = float(session.gaussian(grants[1], self.level(session, found))[0])
            found[-1, 0] += _shrunken(move, grants[1].scale if solver.shrink else 0.0)
        return Descent(found, share, chosen)


def _shrunken(value: float, noise: float) -> float:
    """One number with known noise, shrunken to 0 (James and Stein, positive part)."""
    return value * max(0.0, 1 - (noise / value) ** 2) if value else 0.0
