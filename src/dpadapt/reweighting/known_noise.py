r"""Solver "known-noise", the default: from the public model, as far as the known noise allows.

In ten lines. Everything but the loop and the level is public.

 1. Fit the public model; choose coordinates z(x), horizon tau, steps T and clip R
    (:mod:`.plan`): one more unit of horizon would add more noise than it removes
    shift.
 2. Shrink every private row with |z| > 1 to length 1, in regression together with its residual.
 3. W = 0; T times, W <- W - tau/T (mean of clipped gradients + noise); take the mean of the last
    half. A row's gradient is clipped to length R, so that the mean moves by 2R/n at most.
 4. Shrink W by the factor max(0, 1 - N/E) of James and Stein: E is the energy of what moved, N
    what noise and sampling alone would have moved.
 5. In regression with skew residuals (the course decides), release the mean residual with a wide
    clip of its own and add it, shrunken likewise: clipped gradients find the middle of the labels
    rather than their mean, and one number needs little of the budget.

In regression, where public residuals do not say how large private ones are, a query of their size
comes first (:mod:`.residual_size`), and steps 2 to 5 are taken in units of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, Flag, Null, ParameterTable
from dpadapt.learning.public_fits import fit_logistic, fit_ridge
from dpadapt.learning.shrinkage import james_stein
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Cleaning, Hidden, Mechanism, RowMap, Session, shrink_factors
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import Gaussian, SymmetricGaussian
from dpadapt.privacy.statistics import Prepared

from .moments import MomentCourse, choose_moments, moment_query, solve_shift
from .plan import Course, PublicProblem, choose_class_course, choose_course
from .problem import (
    ClassificationProblem,
    LinearModel,
    RegressionProblem,
    descent_cleaning,
    descent_units,
    wide_labels,
)
from .queries import descent_gradient, level
from .residual_size import ResidualSizeQuery

_CERTIFICATE_ALPHA = 0.5


@dataclass(frozen=True, eq=False)
class DescentResult:
    """What a known-noise descent returns.

    Attributes
    ----------
    coefficients : ndarray of shape (d + 1, k)
        Of (x, 1).
    share : float
        Factor of James and Stein: 0 is the public model.
    course : Course

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> KnownNoiseDescent(X, X[:, 0]).minimise(X, X[:, 0] + 1).share
    1.0
    """

    coefficients: FloatArray
    share: float
    course: Course | MomentCourse


@dataclass(frozen=True, eq=False)
class KnownNoiseDescent:
    """Noisy descent from the public model, its horizon chosen from the known noise.

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
    >>> solver = KnownNoiseDescent(X, X[:, 0] + 0.1 * rng.normal(size=1000))
    >>> cleaning = Cleaning(100.0, intercept=1.0, label_range=(-9.0, 9.0))
    >>> with Private(T, T[:, 0] + 0.5).open(epsilon=1.0, delta=1e-6) as session:
    ...     found = solver.fit(session, cleaning)
    >>> bool(abs(found.coefficients[2, 0] - 0.5) < 0.05), session.guarantee.epsilon <= 1.0
    (True, True)
    """

    X: FloatArray
    y: npt.NDArray[np.generic]
    classes: int = 0
    shrink: bool = True

    @cached_property
    def model(self) -> FloatArray:
        """Coefficients of the public model, of shape (d + 1, k)."""
        rows = np.column_stack([self.X, np.ones(len(self.X))])
        if not self.classes:
            return fit_ridge(rows, np.asarray(self.y, dtype=np.float64)[:, None])
        found = fit_logistic(rows, np.asarray(self.y).astype(np.int64), self.classes)
        return np.hstack([-found / 2, found / 2]) if found.shape[1] == 1 else found

    @cached_property
    def problem(self) -> PublicProblem:
        """What the choice of a course needs to know."""
        return PublicProblem(self.X, self.y, self.model)

    def course(self, n_rows: int, epsilon: float, delta: float) -> Course:
        """The course for n private rows and a budget."""
        choose = choose_class_course if self.classes else choose_course
        return choose(self.problem, n_rows, gaussian_mu(epsilon, delta))

    def prepared(self, cleaning: Cleaning, chosen: Course, size: float = 1.0) -> Prepared:
        """Private rows in the coordinates of the descent; see :func:`~.queries.descent_gradient`.

        Residuals are in units of ``size``.
        """
        geometry, model = chosen.geometry, self.model
        features, outputs = len(geometry.mean) + 1, model.shape[1]
        scores = 0 if outputs == 1 else outputs

        def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
            Z, offsets = geometry.features(X[:, :-1]), X @ model
            lengths = np.linalg.norm(Z, axis=1)
            weight = shrink_factors(lengths, chosen.reach)
            out = np.empty((len(X), features + scores + 1), order="F")
            np.multiply(Z, weight[:, None], out=out[:, :features])
            if y is None or outputs > 1:
                out[:, features:-1] = offsets[:, :scores]
                return out, y
            return out, weight * ((y - offsets[:, 0]) / size)

        return Prepared(cleaning, prepare, features + scores + 1, measured=features)

    def fit(self, session: Session, cleaning: Cleaning) -> DescentResult:
        """Spend a whole session.

        Parameters
        ----------
        session : Session
        cleaning : Cleaning
            How private rows get the form of X, with an intercept of 1; for regression with a
            ``label_range``, for classification with ``classes``.
        """
        run = self.begin(session, cleaning)
        return run.release(session, session.plan(**run.mechanisms))

    def moments(self, n_rows: int, epsilon: float, delta: float) -> MomentCourse | None:
        """The other way, for n private rows and a budget; None for classes: they have no moment."""
        if self.classes:
            return None
        return choose_moments(self.problem, n_rows, gaussian_mu(epsilon, delta))

    def begin(self, session: Session, cleaning: Cleaning) -> DescentRun | MomentRun:
        """Choose the course, and say what will be released."""
        facts = (session.n_rows, session.epsilon, session.delta)
        chosen, other = self.course(*facts), self.moments(*facts)
        size_query = self.size_query(cleaning)
        mechanisms: dict[str, Mechanism] = {}
        if other is not None and other.expected < chosen.expected:
            hidden = session.hide(moment_query(other, self.model, cleaning))
            mechanisms["moment"] = SymmetricGaussian.of(hidden)
            run: DescentRun | MomentRun = MomentRun(self, other, cleaning, hidden, size_query)
        else:
            run = DescentRun(self, chosen, cleaning, self.prepared(cleaning, chosen), size_query)
            session.foresee(run.sums, run.rows.width)
            first = run.gradient(session, np.zeros(run.shape))
            mechanisms["gradients"] = Gaussian.of(first, count=chosen.steps)
            if chosen.level_share > 0:
                odds = chosen.level_share / (1 - chosen.level_share)
                weight = math.sqrt(chosen.steps * odds)
                mechanisms["level"] = Gaussian.of(run.level(session, self.model), weight=weight)
        if size_query is not None:
            mechanisms |= size_query.mechanisms(session, mechanisms)
        return replace(run, mechanisms=mechanisms)

    def size_query(self, cleaning: Cleaning) -> ResidualSizeQuery | None:
        """The query of the size of private residuals, where public ones are not informative."""
        if self.problem.residuals_informative:
            return None

        def private_residuals(X: FloatArray, y: FloatArray) -> FloatArray:
            return np.asarray(y - (X @ self.model)[:, 0])

        return ResidualSizeQuery(cleaning, private_residuals, self.problem.targets[:, 0])

    def minimise(self, X: npt.ArrayLike, y: npt.ArrayLike) -> DescentResult:
        """The same for private rows that may be looked at: no noise, no clip, no shrinkage."""
        T, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
        chosen = self.course(len(T), 100.0, 1e-6)
        cleaning = Cleaning(1e100, intercept=1.0, label_range=(-1e100, 1e100))
        if self.classes:
            cleaning = Cleaning(1e100, intercept=1.0, classes=self.classes)
        rows = self.prepared(cleaning, chosen)
        Z, targets = rows(T, labels.astype(np.float64))

        def gradient(W: FloatArray) -> FloatArray:
            return descent_gradient(rows, W, math.inf).block(Z, targets) / max(1, len(T))

        W = chosen.descend(gradient)
        return DescentResult(self.model + chosen.geometry.coefficients(W), 1.0, chosen)


@dataclass(frozen=True, eq=False)
class DescentRun:
    """A descent with its course: :meth:`KnownNoiseDescent.begin` makes it, ``release`` runs it.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> cleaning = Cleaning(9.0, intercept=1.0, label_range=(-9.0, 9.0))
    >>> with Private(X, X[:, 0]).open(epsilon=1.0, delta=1e-6) as session:
    ...     run = KnownNoiseDescent(X, X[:, 0]).begin(session, cleaning)
    ...     found = run.release(session, session.plan(**run.mechanisms))
    >>> found.coefficients.shape
    (2, 1)
    """

    solver: KnownNoiseDescent
    course: Course
    cleaning: Cleaning
    rows: Prepared
    size_query: ResidualSizeQuery | None = None
    mechanisms: Mapping[str, Mechanism] = field(default_factory=dict)
    size: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Of the coefficients of the descent."""
        return len(self.course.geometry.mean) + 1, self.solver.model.shape[1]

    @property
    def sums(self) -> int:
        """Sums over the private rows: of each kind one is taken before the plan."""
        levels = 2 * (self.course.level_share > 0)
        return 1 + self.course.steps + levels + 2 * (self.size_query is not None)

    def gradient(self, session: Session, W: FloatArray) -> Hidden:
        """Hide the clipped gradient at W."""
        return session.hide(descent_gradient(self.rows, W, self.course.clip), keep=True)

    def level(self, session: Session, coefficients: FloatArray) -> Hidden:
        """Hide the clipped mean residual of a model."""
        rows: RowMap = self.cleaning
        if self.size != 1:
            size, width = self.size, len(coefficients)

            def sized(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
                return X, None if y is None else y / size

            rows = Prepared(self.cleaning, sized, width)
        return session.hide(level(rows, coefficients[:, 0] / self.size, self.course.level_clip))

    def release(self, session: Session, grants: Any) -> DescentResult:
        """Descend; trades the grants of ``mechanisms``."""
        if self.size_query is None:
            return self._descend(session, grants)
        size = self.size_query.release(session, grants)
        rows = self.solver.prepared(self.cleaning, self.course, size)
        return replace(self, rows=rows, size=size)._descend(session, grants)

    def _descend(self, session: Session, grants: Any) -> DescentResult:
        solver, chosen = self.solver, self.course
        W = chosen.descend(
            lambda W: np.asarray(session.release(grants.gradients, self.gradient(session, W)))
        )
        share = 1.0
        if solver.shrink:
            share = chosen.shrinkage(W, grants.gradients.scale, session.n_rows)
        found = solver.model + self.size * share * chosen.geometry.coefficients(W)
        if chosen.level_share > 0:
            move = float(session.release(grants.level, self.level(session, found))[0])
            noise = grants.level.scale if solver.shrink else 0.0
            found[-1, 0] += self.size * james_stein(move**2, noise**2) * move
        return DescentResult(found, share, chosen.sized(self.size))


@dataclass(frozen=True, eq=False)
class MomentRun:
    """One noisy moment, solved for the shift: :meth:`KnownNoiseDescent.begin` makes it.

    Examples
    --------
    Where rows are many it is expected to be better than a descent:

    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> cleaning = Cleaning(9.0, intercept=1.0, label_range=(-9.0, 9.0))
    >>> with Private(X, X[:, 0] ** 2).open(epsilon=1e6, delta=1e-6) as session:
    ...     run = KnownNoiseDescent(X, X[:, 0] + X[:, 0] ** 2).begin(session, cleaning)
    ...     found = run.release(session, session.plan(**run.mechanisms))
    >>> list(run.mechanisms), found.coefficients.shape
    (['moment'], (2, 1))
    """

    solver: KnownNoiseDescent
    course: MomentCourse
    cleaning: Cleaning
    hidden: Hidden
    size_query: ResidualSizeQuery | None = None
    mechanisms: Mapping[str, Mechanism] = field(default_factory=dict)

    def release(self, session: Session, grants: Any) -> DescentResult:
        """Solve; trades the grants of ``mechanisms``."""
        hidden, course = self.hidden, self.course
        if self.size_query is not None:
            course = course.sized(self.size_query.release(session, grants))
            hidden = session.hide(moment_query(course, self.solver.model, self.cleaning))
        noisy = session.release(grants.moment, hidden)
        shift, share = solve_shift(noisy, grants.moment.scale, session.n_rows, course)
        if not self.solver.shrink and share > 0:
            shift, share = shift / share, 1.0
        return DescentResult(self.solver.model + shift, share, course)


if TYPE_CHECKING:
    from .network import NetworkAdaptation


@dataclass(frozen=True)
class KnownNoise(Strategy):
    """Descend from the public model on the private loss, as far as the known noise allows.

    Parameters
    ----------
    shrink : bool, default=True
        Shrink to the public model what moved no farther than noise would have moved it. False
        learns more where a shift is known to exist, and does harm where none is.
    steps : int, optional
        Of a network (default 100); a linear model chooses its own number from public facts.

    Examples
    --------
    >>> KnownNoise(shrink=False)
    KnownNoise(shrink=False, steps=None)
    """

    shrink: bool = True
    steps: int | None = None

    told: ClassVar[str] = "noisy gradient descent from the model of the public rows"
    certifiable: ClassVar[bool] = True
    _constraints: ClassVar[ParameterTable] = {"shrink": [Flag()], "steps": [Count(), Null()]}

    def regress(self, problem: RegressionProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        reach = problem.label_range or wide_labels(problem.labels)
        units = descent_units(problem.X, reach)
        cleaning = descent_cleaning(units, problem.X, label_range=reach, unit_labels=True)
        rows, labels = units.rows(problem.X), units.labels(problem.labels)
        run = KnownNoiseDescent(rows, labels, shrink=self.shrink).begin(session, cleaning)
        certified = problem.certification(session, run.mechanisms, _CERTIFICATE_ALPHA)
        grants = session.plan(**run.mechanisms, **(certified.mechanisms if certified else {}))
        found = run.release(session, grants)
        linear = units.linear(found.coefficients)
        certificate = certified and certified.release(session, grants, *linear)
        return LinearModel(*linear, found.share, found.course, certificate=certificate)

    def classify(self, problem: ClassificationProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        units, k = descent_units(problem.X), problem.classes
        descent = KnownNoiseDescent(units.rows(problem.X), problem.labels, k, shrink=self.shrink)
        found = descent.fit(session, descent_cleaning(units, problem.X, classes=k))
        return LinearModel(*units.linear(found.coefficients), found.share, found.course)

    def network(
        self, X: FloatArray, codes: Any, classes: int, module: Any, seed: int
    ) -> NetworkAdaptation:
        """The adaptation of a network: public rows, class codes, number of classes, module."""
        from .network import NetworkAdaptation

        return NetworkAdaptation(
            X, codes, classes, module, steps=self.steps, shrink=self.shrink, seed=seed
        )


def check_network(solver: Any) -> None:
    """Refuse options of a linear model: a network has no ball, no weights and no discrepancy."""
    if getattr(solver, "norm_bound", None) is not None:
        raise ValueError("norm_bound: a network has none; leave it None.")
    if any(getattr(solver, "strengths", ())):
        raise ValueError(
            "strengths: the weights of a network's rows stay where they start; leave them 0."
        )
    if getattr(solver, "candidates", 0):
        raise ValueError("candidates: for a network no discrepancy is released; leave it 0.")


def check_linear(solver: KnownNoise, **bounds: float | None) -> None:
    """Refuse what this solver does not use for a linear model."""
    if solver.steps is not None:
        raise ValueError("steps: a linear model chooses their number itself; leave it None.")
    for name, value in bounds.items():
        if value is not None:
            raise ValueError(
                f"{name}: solver='known-noise' bounds rows and coefficients itself; leave it None, "
                "or take another solver."
            )


def public_regression(problem: RegressionProblem) -> LinearModel:
    """The ridge regression of the public rows."""
    units = descent_units(problem.X, wide_labels(problem.labels))
    model = KnownNoiseDescent(units.rows(problem.X), units.labels(problem.labels)).model
    return LinearModel(*units.linear(model), share=0.0)


def public_classification(problem: ClassificationProblem) -> LinearModel:
    """The logistic regression of the public rows."""
    units = descent_units(problem.X)
    model = KnownNoiseDescent(units.rows(problem.X), problem.labels, problem.classes).model
    return LinearModel(*units.linear(model), share=0.0)
