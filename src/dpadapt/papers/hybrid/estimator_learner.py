r"""Algorithm 2 of paper 003: any private learner, run on rows drawn from the weights.

m rows are drawn with replacement, no row with more than :math:`b = 1/(\kappa n)`, and an
:math:`(\epsilon_M, \delta_M)`-private estimator is fitted to them. A round costs
:math:`m \ln(1 + b (e^{\epsilon_M} - 1))` (``DrawsEvent``), for every
:math:`\epsilon_M`; the printed :math:`6 \epsilon_M m b` is false for large ones. The budget fixes
what a round may cost, and so :math:`\epsilon_M`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import clone

from dpadapt.hybrid.rules import FunctionRule, LinearRule, raw_features
from dpadapt.learning.constraints import Count, Fraction, ParameterTable
from dpadapt.privacy import Private

from .doors.draws import LearnOnDraws
from .doors.weights import draw_rate
from .learners import Learner, LearningTask, WeightedRows

_MOST_EPSILON = 20.0  # of one fit: beyond, noise is no matter any more


@dataclass(frozen=True, eq=False)
class EstimatorLearner(Learner):
    """A classifier of this library (or any with its interface) as the learner of a round.

    It is given the features of the rows in their public units.

    Parameters
    ----------
    estimator : estimator
        With parameters ``epsilon``, ``delta`` and ``classes``, and ``fit(private=...)``. Its own
        epsilon and delta are replaced; it must keep to them under replace-one, which is checked.
    draws : int
        m, rows that it is fitted to.
    delta : float, default=1e-8
        delta_M.
    public : (X, y), optional
        A public sample, for estimators that need one.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.mixing import NoisyGDClassifier
    >>> learner = EstimatorLearner(NoisyGDClassifier(epsilon=1, delta=1e-8, steps=20), draws=500)
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> planned = learner.mechanism(LearningTask(100_000, 2, blank), density=0.1)
    >>> planned.draws, round(planned.rate, 6)
    (500, 0.0001)
    """

    estimator: Any
    draws: int
    delta: float = 1e-8
    public: tuple[Any, Any] | None = None

    joint: ClassVar[bool] = True
    _constraints: ClassVar[ParameterTable] = {"draws": [Count()], "delta": [Fraction()]}

    def _check(self) -> None:
        known = self.estimator.get_params(deep=False)
        missing = [name for name in ("epsilon", "delta", "classes") if name not in known]
        if missing:
            raise TypeError(f"estimator lacks the parameter(s) {', '.join(missing)}.")

    def mechanism(self, task: LearningTask, density: float) -> LearnOnDraws:
        """One fit; its epsilon is what is solved for."""
        return LearnOnDraws(
            f"{type(self.estimator).__name__} on drawn rows",
            rate=draw_rate(density, task.n_rows),
            draws=self.draws,
            delta=self.delta,
        )

    def learn(self, rows: WeightedRows) -> FunctionRule:
        """Fit a clone to the drawn rows."""
        blank = rows.task.blank
        epsilon = min(rows.grant.epsilon, _MOST_EPSILON)
        model = self._clone(epsilon, rows.weights.updates, blank.classes)
        public = self._public(blank)

        def run(sample: Private) -> Any:
            mapped = sample.map(lambda X: _standardised(X, blank), blank.width - 1)
            return model.fit(*public, private=mapped)

        fitted = rows.release(rows.draws(), size=self.draws, learner=run)
        return FunctionRule(_OnRows(fitted, blank), blank.classes)

    def _clone(self, epsilon: float, turn: int, classes: tuple[Any, ...]) -> Any:
        model = clone(self.estimator)
        # the labels themselves: a sample of rows codes its labels anew, from what was given
        model.set_params(epsilon=epsilon, delta=self.delta, classes=list(classes))
        seed = model.get_params(deep=False).get("random_state")
        if isinstance(seed, int):  # every round its own noise
            model.set_params(random_state=seed + turn)
        return model

    def _public(self, blank: LinearRule) -> tuple[Any, Any]:
        if self.public is None:
            return None, None
        X, y = self.public
        return _standardised(X, blank), y


@dataclass(frozen=True, eq=False)
class _OnRows:
    """Class labels of rows by a fitted model of standardised features."""

    model: Any
    blank: LinearRule

    def __call__(self, X: Any) -> Any:
        return self.model.predict(_standardised(X, self.blank))


def _standardised(X: Any, blank: LinearRule) -> Any:
    """Features of rows in their public units, without a constant."""
    return (raw_features(blank.features, X) - blank.centre) / blank.scale
