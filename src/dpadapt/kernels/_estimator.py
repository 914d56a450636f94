"""What kernel regressor, classifier and interactive predictor share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._checks import aligned_private, session_options, warn_of_printed
from dpadapt._progress import row_progress
from dpadapt.privacy import Cleaning, Guarantee, Hidden, Private, Request, Schema, Session
from dpadapt.privacy import _validate as validate

from . import tddl, tdil
from ._setup import FEATURES, Setup, choose_penalty, make_setup
from .erm import Constants
from .features import refuse_table
from .losses import Loss
from .pool import Pool, sum_error

Array = NDArray[np.float64]

RELEASES = ("gaussian-process", "tddl", "tdil")
CALIBRATIONS = ("gaussian", "laplace", "paper")
_FITTED = (
    *("setup_", "penalty_", "feature_coef_", "dual_coef_"),
    *("pool_", "guarantee_", "classes_", "label_range_"),
)
_PUBLIC_PENALTY = 1e-3  # over R^2, where there is no noise to hide


@dataclass(frozen=True, eq=False)
class Task:
    """Labels of a problem: how they are cleaned, and what the loss makes of them.

    Parameters
    ----------
    loss : Loss
    labels : Cleaning
        Reads nothing but the label.
    targets : callable
        From cleaned labels to what the loss takes.
    outputs : int
        Scores of a row.
    joint : bool
        Whether the outputs are one problem (softmax), not one each.
    noise : float
        What a prediction may carry, for the default penalty.
    """

    loss: Loss
    labels: Cleaning
    targets: Callable[[Array], Array]
    outputs: int
    joint: bool
    noise: float

    @property
    def columns(self) -> int:
        """Separate problems on the same rows."""
        return 1 if self.joint else self.outputs


class KernelModel(BaseEstimator):
    """A kernel model of private rows, released with noise in the kernel's own space."""

    epsilon: float
    delta: float
    kernel: Any
    gamma: float | None
    degree: int
    coef0: float
    bound: float | None
    radius: float | None
    penalty: float | None
    features: str
    n_components: int
    release: str
    calibration: str
    pool: Any
    verbose: int

    def fit(self, X: Any, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Fit to private labelled rows; public ones set units, classes and the pool.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Public rows. For a kernel of one's own, whatever it reads.
        y : array-like of shape (m,)
            Public labels: their classes, or the range of values (unless it is given).
        private : Private, optional
            Private rows and their labels.

        Returns
        -------
        estimator
            Itself, fitted.
        """
        options = session_options(self)
        self._check()
        rows, labels = self._public(X, y)
        task = self._task(labels)
        sample = self._sample(private, rows)
        n_rows = rows.shape[0] if sample is None else sample.n_rows
        setup = make_setup(self, rows, n_rows)
        if sample is None:
            penalty = _PUBLIC_PENALTY * setup.radius**2 if self.penalty is None else self.penalty
            found = self._from_public(setup, task, rows, labels, penalty)
        else:
            penalty = self._penalty(setup, task, n_rows, options)
            with (
                row_progress("reading private rows", self.verbose) as progress,
                self._encoded(sample, labels).open(
                    **options, label=type(self).__name__, progress=progress
                ) as session,
            ):
                found = self._from_private(session, setup, task, rows, penalty)
            found["guarantee_"] = session.guarantee
            warn_of_printed(found["guarantee_"], options["epsilon"])
        # only now: a fit that was refused must not put its guarantee beside an earlier model
        for name in _FITTED:
            self.__dict__.pop(name, None)
        self.setup_, self.penalty_ = setup, penalty
        for name, value in found.items():
            setattr(self, name, value)
        self._finish(labels)
        return self

    # what is checked, and made, before a private row is read

    def _check(self) -> None:
        refuse_table(self.kernel)
        validate.choice("release", self.release, RELEASES)
        validate.choice("calibration", self.calibration, CALIBRATIONS)
        validate.choice("features", self.features, FEATURES)
        validate.count("n_components", self.n_components)
        validate.count("degree", self.degree)
        if self.penalty is not None:
            validate.positive("penalty", self.penalty)
        if self.gamma is not None:
            validate.positive("gamma", self.gamma)
        if self.calibration != "gaussian" and self.release != "tddl":
            raise ValueError(f"calibration={self.calibration!r} is for release='tddl'.")
        if not isinstance(self.kernel, str) and not callable(self.kernel):
            raise TypeError(
                f"kernel must be a name or a function of two tables; got {self.kernel!r}."
            )

    @property
    def _numeric(self) -> bool:
        return isinstance(self.kernel, str)

    def _public(self, X: Any, y: Any) -> tuple[Any, Any]:
        if self._numeric:
            return validate_data(self, X, y, dtype=np.float64)
        rows = X if hasattr(X, "shape") else np.asarray(X)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels = np.asarray(y)
        if rows.shape[0] != len(labels) or not len(labels):
            raise ValueError(
                f"X and y must have as many rows, at least one; got {rows.shape[0]} and "
                f"{len(labels)}."
            )
        if rows.ndim != 2:
            raise ValueError("X must have two dimensions; a column of texts is X.reshape(-1, 1).")
        self.n_features_in_ = rows.shape[1]
        return rows, labels

    def _sample(self, private: Private | None, rows: Any) -> Private | None:
        sample = aligned_private(self, private, labelled=True)
        if sample is None or not callable(self.kernel) or hasattr(rows, "toarray"):
            return sample
        return sample.read(Schema.of(rows))  # a kernel of one's own reads what public rows are

    def _penalty(self, setup: Setup, task: Task, n_rows: int, options: dict[str, Any]) -> float:
        if self.penalty is not None:
            return float(self.penalty)
        return choose_penalty(
            setup,
            task.loss,
            rows=max(1, n_rows),
            columns=task.columns,
            epsilon=options["epsilon"],
            delta=options["delta"],
            noise=task.noise,
        )

    @abstractmethod
    def _task(self, labels: Any) -> Task:
        """Loss and labels, from public labels."""

    def _encoded(self, private: Private, labels: Any) -> Private:
        return private

    def _finish(self, labels: Any) -> None:
        """Set further attributes."""

    # the fit

    def _from_public(
        self, setup: Setup, task: Task, rows: Any, labels: Any, penalty: float
    ) -> dict[str, Any]:
        """Model of the public rows alone, without noise."""
        targets = task.targets(self._codes(labels))
        if setup.features is not None:
            W = setup.solve(setup.features(setup.rows(rows)), targets, task.loss, penalty)
            return {"feature_coef_": W, "guarantee_": Guarantee()}
        a = setup.solve(setup.values(rows, rows), targets, task.loss, penalty)
        return {"dual_coef_": a, "pool_": rows, "guarantee_": Guarantee()}

    def _codes(self, labels: Any) -> Array:
        """Public labels as the cleaning leaves private ones."""
        return np.asarray(labels, dtype=np.float64)

    def _from_private(
        self, session: Session, setup: Setup, task: Task, rows: Any, penalty: float
    ) -> dict[str, Any]:
        facts = setup.facts(task.loss, penalty, session.n_rows, task.columns)
        if setup.features is not None and self.release == "gaussian-process":
            return {"feature_coef_": self._release_weights(session, setup, task, penalty, facts)}
        if self._by_ball(setup, task):
            return {"feature_coef_": self._release_by_ball(session, setup, task, penalty, facts)}
        points = self._pool_points(rows)
        pool = Pool.of(setup.values(points, points))
        hidden = self._predictions(session, setup, task, points, penalty)
        norm = math.sqrt(task.columns) * facts.norm_bound
        if self.release == "gaussian-process":
            alpha = self._release_on_pool(session, hidden, pool, facts, norm, task.outputs)
        elif self.release == "tddl":
            alpha = self._release_tddl(session, hidden, pool, setup, facts, norm, task.outputs)
        else:
            alpha = self._release_tdil(session, hidden, pool, setup, facts, norm, task.outputs)
        return {"dual_coef_": alpha.reshape(pool.size, -1), "pool_": points}

    def _release_weights(
        self, session: Session, setup: Setup, task: Task, penalty: float, facts: Constants
    ) -> Array:
        """Weights of explicit features, with noise in all directions alike."""
        hidden = session.hide_rows(setup.prepared(self._cleaning(setup, task)))
        size = setup.features.n_features * task.outputs
        (grant,) = session.plan(Request("gaussian", "weights", facts.sensitivity, size))
        solve = self._solver(setup, task, penalty)
        return session.gaussian(grant, hidden, solve)

    def _solver(self, setup: Setup, task: Task, penalty: float) -> Callable[[Array], Array]:
        def solve(table: Array) -> Array:
            return setup.solve(table[:, :-1], task.targets(table[:, -1]), task.loss, penalty)

        return solve

    def _predictions(
        self, session: Session, setup: Setup, task: Task, points: Any, penalty: float
    ) -> Hidden:
        """Predictions of the un-noised model at the pool, hidden."""
        n = session.n_rows
        if setup.features is not None:
            at_pool = setup.features(setup.rows(points))
            solve = self._solver(setup, task, penalty)
            hidden = session.hide_rows(setup.prepared(self._cleaning(setup, task)))
            return session.derive(hidden, lambda table: at_pool @ solve(table), "predictions")

        def predict(table: Array) -> Array:
            K, cross = np.ascontiguousarray(table[:, :n]), table[:, n:-1]
            a = setup.solve(K, task.targets(table[:, -1]), task.loss, penalty)
            return np.asarray(cross.T @ a)

        gram = setup.gram(task.labels, points)
        return session.derive(session.hide_gram(gram), predict, "predictions")

    def _cleaning(self, setup: Setup, task: Task) -> Cleaning:
        """Cleaning of rows and labels."""
        facts = task.labels
        if setup.cleaning is None:
            own: dict[str, Any] = {"radius": 1e150}
        else:
            clean = setup.cleaning
            own = {
                "radius": clean.radius,
                "center": clean.center,
                "scale": clean.scale,
                "intercept": clean.intercept,
            }
        return Cleaning(
            **own,
            label_range=facts.label_range,
            unit_labels=facts.unit_labels,
            classes=facts.classes,
        )

    def _pool_points(self, rows: Any) -> Any:
        """Public points: the caller's, or public rows."""
        if self.pool is None:
            return rows[: self.n_components]
        if not self._numeric:
            return self.pool
        return validate_data(self, self.pool, dtype=np.float64, reset=False)

    def _release_on_pool(
        self,
        session: Session,
        hidden: Hidden,
        pool: Pool,
        facts: Constants,
        norm: float,
        outputs: int,
    ) -> Array:
        error = sum_error(facts.rows, norm * facts.radius)
        request = pool.request(facts.sensitivity, norm=norm, error=error, outputs=outputs)
        (grant,) = session.plan(request)
        alpha = pool.release(session, grant, hidden, lambda p: p)
        return pool.within_ball(alpha, norm)

    def _release_tddl(
        self,
        session: Session,
        hidden: Hidden,
        pool: Pool,
        setup: Setup,
        facts: Constants,
        norm: float,
        outputs: int,
    ) -> Array:
        calibration: Any = self.calibration
        request = tddl.request(
            pool,
            calibration,
            facts.sensitivity,
            bound=setup.radius,
            epsilon=session.epsilon,
            delta=session.delta,
            error=sum_error(facts.rows, norm * facts.radius),
            outputs=outputs,
        )
        (grant,) = session.plan(request)
        return tddl.release(session, grant, hidden, lambda p: p, pool, norm=norm)

    def _rounds(
        self, session: Session, setup: Setup, facts: Constants, outputs: int
    ) -> tdil.Rounds:
        error = 2 * sum_error(facts.rows, facts.norm_bound * facts.radius)
        return tdil.Rounds.of(
            setup.radius * facts.sensitivity + error,
            bound=setup.radius,
            norm=facts.norm_bound,
            epsilon=session.epsilon,
            delta=session.delta,
            outputs=outputs,
        )

    def _release_tdil(
        self,
        session: Session,
        hidden: Hidden,
        pool: Pool,
        setup: Setup,
        facts: Constants,
        norm: float,
        outputs: int,
    ) -> Array:
        rounds = self._rounds(session, setup, facts, outputs)
        choose, measure = session.plan(*rounds.requests())
        return tdil.release(session, (choose, measure), hidden, lambda p: p, pool, rounds)

    def _by_ball(self, setup: Setup, task: Task) -> bool:
        """Whether Algorithm 3 draws from the whole ball: a linear kernel, one output, no pool."""
        linear = setup.kernel.name == "linear" and setup.features is not None
        return self.release == "tdil" and linear and task.outputs == 1 and self.pool is None

    def _release_by_ball(
        self, session: Session, setup: Setup, task: Task, penalty: float, facts: Constants
    ) -> Array:
        hidden = session.hide_rows(setup.prepared(self._cleaning(setup, task)))
        solve = self._solver(setup, task, penalty)
        weights = session.derive(hidden, lambda table: solve(table)[:, 0], "weights")
        rounds = self._rounds(session, setup, facts, 1)
        choose, measure = session.plan(*rounds.requests())
        size = setup.features.n_features
        w = tdil.release_linear(session, (choose, measure), weights, lambda v: v, size, rounds)
        return w[:, None]

    # answers

    def _outputs(self, X: Any) -> Array:
        """Scores, one column an output."""
        check_is_fitted(self, "setup_")
        if self._numeric:
            X = validate_data(self, X, dtype=np.float64, reset=False)
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        if self.setup_.features is not None and hasattr(self, "feature_coef_"):
            return np.asarray(self.setup_.features(self.setup_.rows(X)) @ self.feature_coef_)
        return np.asarray(self.setup_.values(X, self.pool_) @ self.dual_coef_)
