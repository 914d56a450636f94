"""The paper's algorithms as ``solver=`` of a :class:`dpadapt.DiscrepancyRegressor`.

A solver is a strategy: it holds its options, and :meth:`adapt` weighs public rows by a private
sample. Each opens one session and plans everything that it will release before the first release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.discrepancy.second_stage import weighted_fit
from dpadapt.discrepancy.source import Adaptation, Source
from dpadapt.learning.certificate import NoisyNumber
from dpadapt.learning.constraints import (
    Count,
    Instance,
    NonNegative,
    Null,
    OneOf,
    ParameterTable,
    Positive,
)
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Cleaning, Guarantee, Hidden, Mechanism, Private, Session
from dpadapt.privacy.mechanisms import Exponential
from dpadapt.privacy.statistics import SecondMoment

from .certificate import planned_discrepancy, release_discrepancy
from .first_stage import NoisyFrankWolfe, NoisyMirrorDescent
from .parameters import (
    PublicFacts,
    Tuning,
    frank_wolfe_parameters,
    mirror_descent_parameters,
    norm_power,
    single_stage_parameters,
)
from .queries import Smoothing
from .single_stage import AdaptationObjective, NoisySingleStage
from .smoothing import OneSidedSoftmax, PNorm, Softmax

_PAPER: ParameterTable = {
    "calibration": [OneOf("tight", "paper")],
    "smoothing": [OneOf("softmax", "p-norm", "one-sided"), Instance(Softmax, PNorm)],
    "steps": [Count(), Null()],
    "step_size": [Positive(), Null()],
    "penalty": [NonNegative()],
}


class _PaperSolver(Strategy):
    """One of the paper's algorithms, which release K noisy steps."""

    calibration: str
    smoothing: str | Softmax | PNorm
    at_once: ClassVar[bool] = False
    _constraints: ClassVar[ParameterTable] = _PAPER

    def adapt(
        self,
        source: Source,
        private: Private,
        cleaning: Cleaning,
        session: dict[str, Any],
        *,
        certificate: bool,
    ) -> Adaptation:
        """Weigh the public rows by noisy steps."""
        choice = _Choice(self.calibration, certificate)
        budget = (session["epsilon"], session["delta"], self.calibration)
        facts = PublicFacts(source.matched, SecondMoment(cleaning), private.n_rows, *budget)
        found = self._weigh(choice, source, facts, private, session)
        # as printed the single stage has coefficients of its own; a refit on its weights is better
        slopes = found.coefficients if self.calibration == "paper" else None
        guarantee, noisy = found.guarantee, found.discrepancy
        return Adaptation(found.weights, None, None, guarantee, slopes, noisy)

    def _weigh(
        self,
        choice: _Choice,
        source: Source,
        facts: PublicFacts,
        private: Private,
        session: dict[str, Any],
    ) -> _Weighed:
        raise NotImplementedError

    def _smoothing(self, facts: PublicFacts) -> Smoothing | None:
        """The smoothing that was chosen; None leaves its sharpness open."""
        if not isinstance(self.smoothing, str):
            return self.smoothing
        return PNorm(norm_power(facts.X.shape[1])) if self.smoothing == "p-norm" else None

    def _sided(self, tuned: Tuning) -> Smoothing:
        """The smoothing that was tuned, on one side if that was asked for."""
        if self.smoothing == "one-sided" and isinstance(tuned.smoothing, Softmax):
            return OneSidedSoftmax(tuned.smoothing.mu)
        return tuned.smoothing

    def fit(self, source: Source, weights: FloatArray) -> tuple[FloatArray, float]:
        """Second stage: coefficients, all the way from the public-only ones."""
        return weighted_fit(source.rows, source.labels, weights, ridge=source.ridge), 1.0


@dataclass(frozen=True)
class FrankWolfe(_PaperSolver):
    """Noisy Frank-Wolfe: K noisy choices of a public row (the paper's Algorithm 2).

    Parameters
    ----------
    calibration : {"tight", "paper"}, default="tight"
        Noise calibrated to what was asked, or the printed constants. The guarantee tells what they
        truly give, with a warning where that is more than was asked.
    smoothing : {"softmax", "p-norm", "one-sided"}, Softmax or PNorm, default="softmax"
        The smooth stand-in for the spectral norm, or ("one-sided") for the largest eigenvalue, the
        one-sided discrepancy; ``Softmax(mu)`` and ``OneSidedSoftmax(mu)`` fix its sharpness, which
        else is chosen from public facts.
    steps : int, optional
        K; by default from public facts.
    penalty : float, default=0
        The paper's lambda, against sparse weights.

    Examples
    --------
    >>> FrankWolfe(steps=50)
    FrankWolfe(calibration='tight', smoothing='softmax', steps=50, penalty=0.0)
    """

    calibration: str = "tight"
    smoothing: str | Softmax | PNorm = "softmax"
    steps: int | None = None
    penalty: float = 0.0

    def _weigh(
        self,
        choice: _Choice,
        source: Source,
        facts: PublicFacts,
        private: Private,
        session: dict[str, Any],
    ) -> _Weighed:
        tuned = frank_wolfe_parameters(facts, smoothing=self._smoothing(facts), steps=self.steps)
        algorithm = NoisyFrankWolfe(facts.X, self._sided(tuned), tuned.steps, self.penalty)
        return _run(algorithm, choice, facts, private, session)


@dataclass(frozen=True)
class MirrorDescent(_PaperSolver):
    """Noisy mirror descent: K noisy gradients (the paper's Algorithm 3).

    Parameters
    ----------
    calibration : {"tight", "paper"}, default="tight"
        Noise calibrated to what was asked, or the printed constants, which need
        ``noise_on="gradient"``.
    smoothing : {"softmax", "p-norm", "one-sided"}, Softmax or PNorm, default="softmax"
        The smooth stand-in for the spectral norm.
    steps, step_size : optional
        K and eta; by default from public facts.
    penalty : float, default=0
        The paper's lambda, against sparse weights.
    geometry : {"entropy", "p-norm"}, default="entropy"
        Of a step.
    noise_on : {"matrix", "gradient"}, default="matrix"
        Where the noise goes: on the d x d matrix, or on m coordinates as printed.

    Examples
    --------
    >>> MirrorDescent(calibration="paper")
    Traceback (most recent call last):
    ...
    ValueError: calibration='paper' needs noise_on='gradient': nothing is printed for the matrix.
    """

    calibration: str = "tight"
    smoothing: str | Softmax | PNorm = "softmax"
    steps: int | None = None
    step_size: float | None = None
    penalty: float = 0.0
    geometry: str = "entropy"
    noise_on: str = "matrix"
    _constraints: ClassVar[ParameterTable] = {
        "geometry": [OneOf("entropy", "p-norm")],
        "noise_on": [OneOf("matrix", "gradient")],
    }

    def _check(self) -> None:
        if self.calibration == "paper" and self.noise_on != "gradient":
            raise ValueError(
                "calibration='paper' needs noise_on='gradient': nothing is printed for the matrix."
            )

    def _weigh(
        self,
        choice: _Choice,
        source: Source,
        facts: PublicFacts,
        private: Private,
        session: dict[str, Any],
    ) -> _Weighed:
        tuned = mirror_descent_parameters(
            facts,
            smoothing=self._smoothing(facts),
            steps=self.steps,
            step_size=self.step_size,
            penalty=self.penalty,
            geometry=self.geometry,
            noise_on=self.noise_on,
        )
        algorithm = NoisyMirrorDescent(
            facts.X,
            self._sided(tuned),
            tuned.steps,
            tuned.step_size,
            penalty=self.penalty,
            geometry=self.geometry,
            noise_on=self.noise_on,
            # the average of all iterates is the paper's; that of the last half is better
            average="all" if self.calibration == "paper" else "half",
        )
        return _run(algorithm, choice, facts, private, session)


@dataclass(frozen=True)
class SingleStage(_PaperSolver):
    """Noisy Frank-Wolfe on weights and coefficients at once (the paper's Algorithm 1).

    Parameters
    ----------
    calibration : {"tight", "paper"}, default="tight"
        Noise calibrated to what was asked, or the printed constants.
    smoothing : {"softmax", "p-norm", "one-sided"}, Softmax or PNorm, default="softmax"
        The smooth stand-in for the spectral norm.
    steps, step_size : optional
        K and eta; by default from public facts.
    iterate : {"last", "uniform", "select"}, default="last"
        Which iterate is returned; "select" pays for a private choice.

    Examples
    --------
    >>> SingleStage(iterate="select", steps=20).steps
    20
    """

    calibration: str = "tight"
    smoothing: str | Softmax | PNorm = "softmax"
    steps: int | None = None
    step_size: float | None = None
    iterate: str = "last"
    at_once: ClassVar[bool] = True
    _constraints: ClassVar[ParameterTable] = {"iterate": [OneOf("last", "uniform", "select")]}

    def _weigh(
        self,
        choice: _Choice,
        source: Source,
        facts: PublicFacts,
        private: Private,
        session: dict[str, Any],
    ) -> _Weighed:
        smoothing, bound = self._smoothing(facts), source.norm_bound
        tuned = single_stage_parameters(
            facts,
            source.centered,
            radius=bound,
            smoothing=smoothing,
            steps=self.steps,
            step_size=self.step_size,
        )
        objective = AdaptationObjective(facts.X, source.centered, self._sided(tuned), radius=bound)
        algorithm = NoisySingleStage(objective, tuned.steps, tuned.step_size, output=self.iterate)
        return _run_single_stage(algorithm, choice, facts, private, session)


class _Choice(NamedTuple):
    """How noise is calibrated, and whether a certificate is paid for."""

    calibration: str
    certificate: bool


class _Weighed(NamedTuple):
    """Weights of the public rows, coefficients where the solver has its own, and the cost.

    ``discrepancy`` is that of the weights, released with noise, where a certificate was asked for.
    """

    weights: FloatArray
    coefficients: FloatArray | None
    guarantee: Guarantee
    discrepancy: NoisyNumber | None


def _run(
    algorithm: NoisyFrankWolfe | NoisyMirrorDescent,
    choice: _Choice,
    facts: PublicFacts,
    private: Private,
    session: dict[str, Any],
) -> _Weighed:
    with private.open(**session) as opened:
        steps = algorithm.mechanism(opened, facts.query, calibration=choice.calibration)
        grants = opened.plan(steps=steps, certificate=_certificate(choice, facts, steps))
        moment = opened.hide(facts.query)
        weights = algorithm.release(opened, grants.steps, moment)
        noisy = _released(opened, grants, moment, facts, weights)
    return _Weighed(weights, None, opened.guarantee, noisy)


def _run_single_stage(
    algorithm: NoisySingleStage,
    choice: _Choice,
    facts: PublicFacts,
    private: Private,
    session: dict[str, Any],
) -> _Weighed:
    with private.open(**session) as opened:
        planned = algorithm.mechanisms(opened, facts.query, calibration=choice.calibration)
        grants = opened.plan(**planned, certificate=_certificate(choice, facts, planned["vertex"]))
        moment = opened.hide(facts.query)
        rng = np.random.default_rng(session.get("random_state"))  # draws an iterate, no noise
        weights, slopes = algorithm.release(opened, grants, moment, rng=rng)
        noisy = _released(opened, grants, moment, facts, weights)
    return _Weighed(weights, slopes, opened.guarantee, noisy)


def _certificate(choice: _Choice, facts: PublicFacts, steps: Mechanism) -> list[Mechanism]:
    """Plan the discrepancy with a tenth of the budget (in zCDP), if a certificate is wanted.

    K selections of weight 1 cost K/8 and K Gaussian releases K/2, one Gaussian of weight w w^2/2.
    """
    if not choice.certificate:
        return []
    weight = math.sqrt(steps.count / (4 if isinstance(steps, Exponential) else 1)) / 3
    return [planned_discrepancy(facts.query, facts.n_rows, weight, rows=facts.X)]


def _released(
    session: Session,
    grants: SimpleNamespace,
    moment: Hidden,
    facts: PublicFacts,
    weights: FloatArray,
) -> NoisyNumber | None:
    """The discrepancy of the weights, if it was planned."""
    if not grants.certificate:
        return None
    return release_discrepancy(session, grants.certificate[0], moment, facts.X, weights)
