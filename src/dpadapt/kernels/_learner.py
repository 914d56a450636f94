"""A kernel problem that is ready for rows: from labels to losses, from rows to a hidden model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import vstack

from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Hidden, Rows, Session
from dpadapt.privacy.statistics import Gram, Prepared

from . import queries
from ._setup import PublicModel, Setup
from .constants import SLACK, Constants, KernelFacts
from .kernel import FunctionKernel
from .losses import ConvexLoss, Shifted
from .pool import Pool
from .release import Release

_NO_RADIUS = 1e150  # rows that a kernel of one's own reads are not shortened
_MOST = 0.95  # of the public rows have a residual within reach
_NEAREST, _FARTHEST = 0.1, 2.0  # bounds of the reach, in units of half the range of labels


@dataclass(frozen=True, eq=False)
class KernelTask:
    """Labels of a problem: how they are cleaned, and what the loss makes of them.

    Parameters
    ----------
    loss : Loss
    labels : mapping
        Options of a cleaning that concern the label.
    targets : callable
        From cleaned labels to what the loss takes.
    outputs : int
        Scores of a row.
    noise : float
        What a prediction may carry, for the default penalty.
    attributes : mapping
        What a fitted model tells of its labels.
    public_loss : Loss
        For public rows alone.
    residual : bool
        Whether what the public model leaves over is learnt as a label of its own; else the loss
        is taken at the sum of both scores.
    """

    loss: ConvexLoss
    labels: Mapping[str, Any]
    targets: Callable[[FloatArray], FloatArray]
    outputs: int
    noise: float
    attributes: Mapping[str, Any]
    public_loss: ConvexLoss
    residual: bool = False

    @property
    def columns(self) -> int:
        """Separate problems on the same rows."""
        return 1 if self.loss.joint else self.outputs


@dataclass(frozen=True, eq=False)
class CleanKernel:
    """A kernel of rows as they were given."""

    setup: Setup

    def __call__(self, A: Any, B: Any) -> FloatArray:
        """Kernel values."""
        return self.setup.values(A, B)

    def diagonal(self, A: Any) -> FloatArray:
        """K(x, x)."""
        return self.setup.diagonal(A)


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """A loss, a penalty, a kernel or features: all that is decided before a row is read.

    Parameters
    ----------
    setup : Setup
    task : Task
    penalty : float
    public : PublicModel, optional
        That private rows correct; without one they make the model alone.
    reach : float, default=1.0
        Y, the unit of a correction.
    """

    setup: Setup
    task: KernelTask
    penalty: float
    public: PublicModel | None = None
    reach: float = 1.0

    @property
    def attributes(self) -> dict[str, Any]:
        """What a fitted model has of it; public."""
        return {"setup_": self.setup, "penalty_": self.penalty, **self.task.attributes}

    @property
    def loss(self) -> ConvexLoss:
        """Of private rows."""
        if self.public is None or self.task.residual:
            return self.task.loss
        return Shifted(self.task.loss, self.task.outputs)

    def reach_for(self, noise: float) -> tuple[float, float]:
        """Y, the unit in which a correction is learnt, and the noise that it may carry in it.

        A residual beyond Y counts as Y. That of most public rows is within; where noise is little,
        Y grows, up to all that there can be, so that no bias is left.

        Parameters
        ----------
        noise : float
            Of a prediction at a weak penalty, for Y = 1.
        """
        if self.public is None or not self.task.residual:
            return 1.0, self.task.noise
        usual = float(np.quantile(np.abs(self.public.left), _MOST))
        usual = min(_FARTHEST, max(_NEAREST, usual))
        reach = min(_FARTHEST, usual * max(1.0, self.task.noise / noise))
        return reach, self.task.noise * usual / reach

    def facts(self, rows: int) -> Constants:
        """Sensitivity and bounds for so many rows."""
        return self.setup.facts(self.loss, self.penalty, rows, self.task.columns)

    def kernel_facts(self, session: Session) -> KernelFacts:
        """What bounds of errors are computed from; public."""
        facts = self.facts(session.n_rows)
        slope = facts.lipschitz * math.sqrt(facts.columns)
        return KernelFacts(
            session.n_rows,
            self.penalty,
            session.epsilon,
            session.delta,
            slope * (1 + SLACK),
            facts.radius,
            math.sqrt(facts.columns) * facts.norm_bound,
            outputs=self.task.outputs,
        )

    def solve(
        self, values: FloatArray, labels: FloatArray, base: FloatArray | None = None
    ) -> FloatArray:
        """Weights from features, or coefficients from kernel values, and cleaned labels.

        Parameters
        ----------
        values : ndarray of shape (n, D) or (n, n)
        labels : ndarray of shape (n,)
        base : ndarray of shape (n, k), optional
            Scores of the public model, row by row.
        """
        targets = self.task.targets(labels)
        if base is not None:
            targets = self._corrected(targets.reshape(len(base), -1), base)
        return self.setup.solve(values, targets, self.loss, self.penalty)

    def _corrected(self, targets: FloatArray, base: FloatArray) -> FloatArray:
        """What is left to learn: a function of the row, its label, and the public model."""
        if self.task.residual:
            return np.asarray((targets - base) / self.reach)  # the loss clamps it to [-1, 1]
        return np.hstack([targets, base])

    def gram(self, pool: Any = None) -> Gram:
        """Kernel values, with one another and with a pool, that a session may hide."""
        labels, form = Cleaning(1.0, **self.task.labels), self.setup.kernel.form
        # of the caller's, the function alone: it is called for each pair, and Gram bounds it
        kernel = form.function if isinstance(form, FunctionKernel) else CleanKernel(self.setup)
        return Gram(kernel, self.setup.kernel.squared_bound, pool, labels)

    # public rows alone

    def public_targets(self, y: FloatArray) -> FloatArray:
        """Public labels, cleaned as private ones are."""
        labels = Cleaning(1.0, **self.task.labels)(np.zeros((len(y), 1)), y)[1]
        assert labels is not None
        return self.task.targets(labels)

    def from_public(self) -> dict[str, Any]:
        """Model of the public rows, without noise."""
        assert self.public is not None
        if self.public.anchors is None:
            return {"feature_coef_": self.public.coefficients}
        return {"dual_coef_": self.public.coefficients, "pool_": self.public.anchors}

    # private rows

    def from_private(
        self, session: Session, release: Release, points: Any, X: Any
    ) -> dict[str, Any]:
        """Model of the private rows, released; with the public model that it corrects.

        Parameters
        ----------
        session : Session
            With nothing planned.
        release : Release
        points : public rows
            The pool, if the release needs one.
        X : public rows
        """
        facts = self.facts(session.n_rows)
        setup, public = self.setup, self.public
        if self.by_weights(release):
            weights = queries.weights(
                session, self._hidden_features(session), self._from_features, facts
            )
            at_public = setup.features(setup.rows(X[: min(X.shape[0], 500)]))
            found = self.reach * release.weights(session, weights, facts, at_public)
            return {"feature_coef_": found if public is None else public.coefficients + found}
        pool = Pool.of(setup.values(points, points))
        predictions = self._predictions(session, points)
        alpha = self.reach * release.coefficients(session, predictions, pool, facts)
        if public is None:
            return {"dual_coef_": alpha, "pool_": points}
        return self._both(alpha, points, public)

    def by_weights(self, release: Release) -> bool:
        """Whether weights of explicit features are released, without a pool."""
        explicit = self.setup.features is not None
        return explicit and release.by_weights(self.setup.linear, self.task.outputs)

    def _both(self, alpha: FloatArray, points: Any, public: PublicModel) -> dict[str, Any]:
        """The correction at the pool and the public model, as one."""
        own, setup = public.coefficients, self.setup
        if public.anchors is not None:
            return {
                "dual_coef_": np.vstack([alpha, own]),
                "pool_": rows_below(points, public.anchors),
            }
        at_pool = setup.features(setup.rows(points))
        return {"feature_coef_": own + at_pool.T @ alpha}

    def _hidden_features(self, session: Session) -> Hidden:
        setup, labels = self.setup, self.task.labels
        cleaning = setup.cleaning or Cleaning(_NO_RADIUS)
        features = Prepared(
            replace(cleaning, **labels),
            lambda X, y: (setup.features(X), y),
            setup.features.n_features,
        )
        return session.hide(Rows(features))

    def _from_features(self, table: FloatArray) -> FloatArray:
        features = table[:, :-1]
        base = None if self.public is None else features @ self.public.coefficients
        return self.solve(features, table[:, -1], base)

    def _predictions(self, session: Session, points: Any) -> Hidden:
        """Predictions of the un-noised model (or correction) at public points, hidden."""
        if self.setup.features is not None:
            at_pool = self.setup.features(self.setup.rows(points))
            rows = self._hidden_features(session)
            return queries.predictions(session, rows, lambda t: at_pool @ self._from_features(t))
        n, T, public = session.n_rows, points.shape[0], self.public

        def predict(table: FloatArray) -> FloatArray:
            own, cross = table[:, :n], table[:, n : n + T]
            base = None if public is None else table[:, n + T : -1] @ public.coefficients
            return np.asarray(cross.T @ self.solve(own, table[:, -1], base))

        at = points if public is None else rows_below(points, public.anchors)
        return queries.predictions(session, session.hide(self.gram(at)), predict)


def rows_below(first: Any, second: Any) -> Any:
    """Public rows of the same kind, one below the other."""
    if hasattr(first, "toarray"):
        return vstack([first, second], format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second])
    return np.concatenate([np.asarray(first), np.asarray(second)])
