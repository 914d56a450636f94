"""Solvers "gradient" and "profiled" of the classifier, as objects with their options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Between, Count, Grid, Null, OneOf, ParameterTable, Positive
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Session
from dpadapt.reweighting.known_noise import KnownNoiseDescent, public_classification
from dpadapt.reweighting.problem import ClassificationProblem, LinearModel

from ._adaptation import check_three
from ._problems import classification_sample
from .general_adaptation import GeneralAdaptation
from .labelled_discrepancy import row_length
from .profiled_classification import ProfiledClassification

if TYPE_CHECKING:
    from .network import GradientNetwork, ProfiledNetwork

_MOST_STEPS = 1000  # if the theorem has more
_PROFILED_STEPS = 40


@dataclass(frozen=True)
class GeneralGradient(Strategy):
    """The paper's Algorithm 2, PNCnvxAdap: noisy gradient descent in coefficients and weights.

    Parameters
    ----------
    alpha : float, default=0.5
        Reference weight of the public sample, from 0 to 1.
    steps : int, optional
        By default the theorem's, 1000 at most; of a network 100.
    norm_bound : float, optional
        The paper's Lambda, bound on the coefficients in standardised features. By default twice
        the norm of the public model. Refused for a network.
    calibration : {"tight", "paper"}, default="tight"
        Noise calibrated to what was asked, from the public model; or the printed constants, from
        zero. The guarantee tells what they truly give.
    strengths : (float, float, float), default=(0, 0, 0)
        The paper's lambda_1, lambda_2, lambda_inf. Refused for a network.
    candidates : int, default=0
        Public models over which the discrepancy is taken and released, for the offset of public
        losses: fits to that many parts of the public rows. 0 has no offset. Refused for a network.

    Examples
    --------
    >>> GeneralGradient(steps=50).alpha
    0.5
    """

    alpha: float = 0.5
    steps: int | None = None
    norm_bound: float | None = None
    calibration: str = "tight"
    strengths: tuple[float, float, float] = (0.0, 0.0, 0.0)
    candidates: int = 0

    told: ClassVar[str] = (
        "the gradient descent of Bassily, Cortes, Mao and Mohri (2023), which weighs rows as it "
        "goes"
    )
    _constraints: ClassVar[ParameterTable] = {
        "alpha": [Between(0, 1)],
        "steps": [Count(), Null()],
        "norm_bound": [Positive(), Null()],
        "calibration": [OneOf("tight", "paper")],
        "strengths": [Grid()],
        "candidates": [Count(0)],
    }

    def _check(self) -> None:
        check_three("strengths", self.strengths)

    def classify(self, problem: ClassificationProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        if self.alpha == 1:  # takes nothing from private rows
            return public_classification(problem)
        sample, bound = classification_sample(problem), self.norm_bound
        if bound is None:
            public = KnownNoiseDescent(sample.rows[:, :-1], problem.labels, problem.classes).model
            bound = max(2 * float(np.linalg.norm(public)), 1e-3)
        algorithm = GeneralAdaptation(
            sample.rows,
            problem.labels,
            problem.classes,
            alpha=float(self.alpha),
            norm_bound=bound,
            steps=_MOST_STEPS if self.steps is None else self.steps,
            start="zero" if self.calibration == "paper" else "public",
            calibration=self.calibration,
            strengths=self.strengths,
            candidates=self._candidates(sample.rows, problem),
            seed=problem.seed,
        )
        if self.steps is None:
            facts = (session.n_rows, session.epsilon, session.delta)
            theorem = algorithm.theorem_steps(row_length(sample.cleaning), *facts)
            algorithm = replace(algorithm, steps=min(_MOST_STEPS, theorem))
        return sample.linear(algorithm.fit(session, sample.cleaning))

    def _candidates(self, rows: Any, problem: ClassificationProblem) -> Any:
        """Models of parts of the public rows; None for none."""
        if not self.candidates:
            return None
        parts = [np.arange(start, len(rows), self.candidates) for start in range(self.candidates)]
        models = [
            KnownNoiseDescent(rows[part, :-1], problem.labels[part], problem.classes).model
            for part in parts
            if part.size
        ]
        return np.array(models)

    def network(
        self, X: FloatArray, codes: Any, classes: int, module: Any, seed: int
    ) -> GradientNetwork:
        """The adaptation of a network: public rows, class codes, number of classes, module."""
        from .network import GradientNetwork

        facts: dict[str, Any] = {
            "alpha": self.alpha,
            "calibration": self.calibration,
            "steps": self.steps,
        }
        return GradientNetwork(X, codes, classes, module, seed=seed, **facts)


@dataclass(frozen=True)
class ProfiledLogistic(Strategy):
    """Noisy gradient descent from the public model, with weights minimised in closed form.

    Parameters
    ----------
    alpha : float, default=0
        Reference weight of the public sample, from 0 to 1.
    kappa : float, optional
        Price of weights that differ from the reference; by default they do not. For the logistic
        loss weights do not lower the noise, and rarely help.
    steps : int, optional
        40 by default; of a network 100.

    Examples
    --------
    >>> ProfiledLogistic(alpha=0.3).kappa is None
    True
    """

    alpha: float = 0.0
    kappa: float | None = None
    steps: int | None = None

    told: ClassVar[str] = "noisy gradient descent with the weights of rows in closed form"
    _constraints: ClassVar[ParameterTable] = {
        "alpha": [Between(0, 1)],
        "kappa": [Positive(), Null()],
        "steps": [Count(), Null()],
    }

    def classify(self, problem: ClassificationProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        sample = classification_sample(problem)
        steps = _PROFILED_STEPS if self.steps is None else self.steps
        facts: dict[str, Any] = {"alpha": float(self.alpha), "kappa": self.kappa, "steps": steps}
        solver = ProfiledClassification(sample.rows, problem.labels, problem.classes, **facts)
        return sample.linear(solver.fit(session, sample.cleaning).T)

    def network(
        self, X: FloatArray, codes: Any, classes: int, module: Any, seed: int
    ) -> ProfiledNetwork:
        """The adaptation of a network: public rows, class codes, number of classes, module."""
        from .network import ProfiledNetwork

        facts: dict[str, Any] = {"alpha": self.alpha, "kappa": self.kappa, "steps": self.steps}
        return ProfiledNetwork(X, codes, classes, module, seed=seed, **facts)
