"""Solver "known-noise" of both estimators, and the model of the public rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, Flag, Null, Table
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Session

from ._problems import ClassificationProblem, LinearModel, RegressionProblem
from ._units import descent_cleaning, descent_units, wide_labels
from .known_noise import KnownNoiseDescent

if TYPE_CHECKING:
    from .network import NetworkAdaptation

_CERTIFICATE_ALPHA = 0.5


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
    _constraints: ClassVar[Table] = {"shrink": [Flag()], "steps": [Count(), Null()]}

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
