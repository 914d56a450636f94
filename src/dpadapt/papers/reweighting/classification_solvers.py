r"""The paper's solvers, for a small torch network.

"profiled" is the descent of :mod:`dpadapt.reweighting.network` with rows weighed down by
:math:`\min(1, \sqrt{\kappa/loss})` (:mod:`.objective`), and nothing shrunk. "gradient" is Algorithm
2 of the paper with its weights frozen at their start (they hardly move, see
:mod:`.general_adaptation`): a constant step, and an iterate drawn at random. The paper's G, a bound
on gradients, does not exist for a network: ``clip`` takes its place, and is enforced. Nor does a
bound on the curvature: the step is one over the curvature of the linearised network.

**Solvers "gradient" and "profiled" of the classifier, as objects with their options.**
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Between, Count, Grid, Null, OneOf, ParameterTable, Positive
from dpadapt.learning.descent import Map, descend
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Cleaning, Session
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.reweighting.known_noise import KnownNoiseDescent, public_classification
from dpadapt.reweighting.network import NetworkAdaptation
from dpadapt.reweighting.problem import ClassificationProblem, LinearModel
from dpadapt.reweighting.queries import NetworkGradient
from dpadapt.reweighting.torch_module import public_gradient

from ._problems import classification_sample
from .convex_adaptation import check_three
from .general_adaptation import GeneralAdaptation
from .labelled_discrepancy import row_length
from .profiled import ProfiledClassification


@dataclass(frozen=True, eq=False)
class ProfiledNetwork(NetworkAdaptation):
    r"""A network, adapted with the weights of rows in closed form.

    Parameters
    ----------
    alpha : float, default=0
        Share of the public sample in the objective, from 0 to 1. At 1 nothing is asked of the
        private rows, and the public network is the answer.
    kappa : float, optional
        :math:`\kappa`; None keeps the weights uniform.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> codes = (X[:, 0] > 0).astype(int)
    >>> solver = ProfiledNetwork(X, codes, 2, torch.nn.Linear(2, 2), kappa=0.5, steps=5)
    >>> with Private(X, codes).open(epsilon=1.0, delta=1e-6) as session:
    ...     network = solver.fit(session, Cleaning(5.0, classes=2))
    >>> tuple(network.weight.shape)
    (2, 2)
    """

    shrink: bool = False
    alpha: float = 0.0
    kappa: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if validate.non_negative("alpha", self.alpha) > 1:
            raise ValueError(f"alpha must lie between 0 and 1; got {self.alpha!r}.")
        if self.kappa is not None:
            validate.positive("kappa", self.kappa)

    def fit(self, session: Session, cleaning: Cleaning) -> Any:
        """Spend a whole session; the adapted network, in evaluation mode."""
        return self.pretrain() if self.alpha == 1 else super().fit(session, cleaning)

    def noise_energy(self, scale: float, step: float) -> float:
        """Variance of a logit due to noise of this scale in every released gradient."""
        return super().noise_energy((1 - self.alpha) * scale, step)

    def _query(self, cleaning: Cleaning, parameters: FloatArray) -> NetworkGradient:
        return replace(super()._query(cleaning, parameters), kappa=self.kappa)

    def _mixed(self, private_gradient: Map) -> Map:
        """The gradient of both samples."""

        def gradient(now: FloatArray) -> FloatArray:
            g = (1 - self.alpha) * private_gradient(now)
            if self.alpha > 0:
                public = public_gradient(self.module, now, self.X, self.codes, self.kappa)
                g = g + self.alpha * public
            return np.asarray(g)

        return gradient

    def _descend(self, gradient: Map, step: float) -> FloatArray:
        return super()._descend(self._mixed(gradient), step)


@dataclass(frozen=True, eq=False)
class GradientNetwork(ProfiledNetwork):
    r"""A network, adapted by the paper's Algorithm 2.

    Parameters
    ----------
    alpha : float, default=0.5
        Share of the public sample in the objective, from 0 to 1.
    calibration : {"tight", "paper"}, default="tight"
        "paper": the noise :math:`2 s_1 \sqrt{T \log(2/\delta)} / \epsilon`,
        :math:`s_1 = 2 (1 - \alpha) G / n`, as printed.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> GradientNetwork(X, (X[:, 0] > 0).astype(int), 2, torch.nn.Linear(2, 2)).alpha
    0.5
    """

    alpha: float = 0.5
    calibration: str = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.choice("calibration", self.calibration, ("tight", "paper"))

    def mechanism(self, session: Session, cleaning: Cleaning) -> Gaussian:
        """Plan the T gradients."""
        tight = super().mechanism(session, cleaning)
        if self.calibration == "tight":
            return tight
        moved, delta = 2 * self.gradient_bound / session.n_rows, validate.delta(session.delta)
        noise = 2 * moved * math.sqrt(self._count * math.log(2 / delta)) / session.epsilon
        return replace(tight, printed=noise)

    def step(self, scale: float) -> float:
        """One over the curvature, if no other was given."""
        return self.longest_step if self.step_size is None else self.step_size

    def _descend(self, gradient: Map, step: float) -> FloatArray:
        # the index tells nothing of the rows
        steps = int(np.random.default_rng(self.seed).integers(1, self._count + 1))
        return descend(self._mixed(gradient), self.start, step, steps, last=1)


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
        facts: dict[str, Any] = {"alpha": self.alpha, "kappa": self.kappa, "steps": self.steps}
        return ProfiledNetwork(X, codes, classes, module, seed=seed, **facts)
