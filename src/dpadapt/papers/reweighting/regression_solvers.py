"""Solvers "gradient", "profiled" and "statistics" of the regressor: objects with their options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpadapt.learning.constraints import Between, Count, Grid, Instance, Null, OneOf, ParameterTable
from dpadapt.learning.public_fits import fit_ridge
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Session
from dpadapt.reweighting.problem import LinearModel, RegressionProblem

from ._problems import PaperRegression, PaperSample
from .choice import (
    Candidate,
    bound_score,
    candidate_grid,
    choose_by_random_stopping,
    choose_by_score,
    choose_on_holdout,
)
from .convex_adaptation import ConvexAdaptation, check_three
from .general_adaptation import GeneralAdaptation
from .labelled_discrepancy import row_length
from .moment_regression import MomentRegression
from .objective import HuberLoss, RowLoss, SquaredLoss
from .profiled import ProfiledRegression
from .theorems import ConvexSetting, theorem_2_steps

_MOST_STEPS, _MOST_GENERAL_STEPS = 10_000, 1000  # if the theorem has more

_ALPHAS, _KAPPAS = (0.05, 0.5, 0.9), (0.25, 1.0, 100.0)  # grids, where none is given


@dataclass(frozen=True)
class ConvexGradient(Strategy):
    r"""The paper's Algorithm 1, PCnvxAdap: noisy gradient descent in coefficients and weights.

    Parameters
    ----------
    alpha : float, default=0.5
        Reference weight of the public sample, from 0 to 1.
    kappa : float or three of them, default=0.05
        The paper's :math:`\kappa_1`, price of weights that differ from the reference; or
        :math:`(\kappa_1, \kappa_2, \kappa_\infty)`, with prices of their Euclidean norm and of the
        largest.
    steps : int or "theorem", default=100
        T; or that of Theorem 2, 10,000 at most. A hundred steps of the printed size do not reach
        the minimum, however large epsilon is: what is left is the bias of this solver.
    calibration : {"tight", "paper"}, default="tight"
        Noise calibrated to what was asked, from the public model; or the printed constants, from
        zero. The guarantee tells what they truly give.

    Examples
    --------
    >>> ConvexGradient(calibration="paper").steps
    100
    """

    alpha: float = 0.5
    kappa: float | Sequence[float] = 0.05
    steps: int | str = 100
    calibration: str = "tight"

    told: ClassVar[str] = (
        "the gradient descent of Bassily, Cortes, Mao and Mohri (2023), which weighs rows as it "
        "goes"
    )
    _constraints: ClassVar[ParameterTable] = {
        "alpha": [Between(0, 1)],
        "kappa": [Grid()],
        "steps": [Count(), OneOf("theorem")],
        "calibration": [OneOf("tight", "paper")],
    }

    def _check(self) -> None:
        if np.ndim(self.kappa) and np.shape(self.kappa) != (3,):
            raise ValueError(f"kappa must be one number or three; got {self.kappa!r}.")
        if not self.prices[0] > 0:
            raise ValueError(
                f"kappa must be positive, its first number if three; got {self.kappa!r}."
            )

    @property
    def prices(self) -> tuple[float, float, float]:
        """The three kappas."""
        first, second, third = (*np.atleast_1d(np.asarray(self.kappa, dtype=float)), 0.0, 0.0)[:3]
        return float(first), float(second), float(third)

    @property
    def certifiable(self) -> bool:
        """Whether the bound, which is calibrated, can be planned beside it."""
        return self.calibration == "tight"

    def regress(self, problem: RegressionProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        paper = PaperRegression(problem)
        sample = paper.sample
        algorithm = ConvexAdaptation(
            sample.rows,
            sample.labels,
            alpha=float(self.alpha),
            kappa=self.prices,
            norm_bound=paper.coefficient_bound,
            steps=self._steps(paper, session),
            start="zero" if self.calibration == "paper" else "public",
            calibration=self.calibration,
        )
        return paper.solved(
            session,
            algorithm.mechanisms(session, sample.cleaning),
            algorithm.alpha,
            lambda grants: algorithm.release(session, grants, sample.cleaning).coefficients,
        )

    def _steps(self, paper: PaperRegression, session: Session) -> int:
        """T, from public facts."""
        if not isinstance(self.steps, str):
            return self.steps
        sample, alpha = paper.sample, float(self.alpha)
        if alpha == 1:  # nothing private in a step: as many as are taken at most
            return _MOST_STEPS
        setting = ConvexSetting(
            *(len(sample.rows), session.n_rows, sample.rows.shape[1]),
            epsilon=session.epsilon / (2 if alpha > 0 else 1),
            delta=session.delta,
            alpha=alpha,
            norm_bound=paper.coefficient_bound,
            length=row_length(sample.cleaning),
            kappa=self.prices,
        )
        return min(_MOST_STEPS, theorem_2_steps(setting))


@dataclass(frozen=True)
class GeneralRegression(Strategy):
    r"""The paper's Algorithm 2, PNCnvxAdap, for a number: a smooth loss, weights as it goes.

    Parameters
    ----------
    loss : {"huber", "squared"} or Loss, default="huber"
        With labels in [-1, 1]; ``HuberLoss(knee)`` sets where it turns linear.
    alpha : float, default=0.5
        Reference weight of the public sample, from 0 to 1, below 1.
    strengths : (float, float, float), default=(0, 0, 0)
        The paper's :math:`\lambda_1, \lambda_2, \lambda_\infty`.
    candidates : int, default=0
        Public models over which the discrepancy is taken and released, for the offset of public
        losses: fits to that many parts of the public rows. 0 has no offset.
    steps : int, optional
        By default the theorem's, 1,000 at most.
    calibration : {"tight", "paper"}, default="tight"

    Examples
    --------
    >>> GeneralRegression(loss="squared", candidates=5).strengths
    (0.0, 0.0, 0.0)
    """

    loss: str | HuberLoss | SquaredLoss = "huber"
    alpha: float = 0.5
    strengths: tuple[float, float, float] = (0.0, 0.0, 0.0)
    candidates: int = 0
    steps: int | None = None
    calibration: str = "tight"

    told: ClassVar[str] = ConvexGradient.told
    certifiable: ClassVar[bool] = False
    _constraints: ClassVar[ParameterTable] = {
        "loss": [OneOf("huber", "squared"), Instance(HuberLoss, SquaredLoss)],
        "alpha": [Between(0, 1)],
        "strengths": [Grid()],
        "candidates": [Count(0)],
        "steps": [Count(), Null()],
        "calibration": [OneOf("tight", "paper")],
    }

    def _check(self) -> None:
        if self.alpha == 1:
            raise ValueError("alpha must be below 1: at 1 nothing is taken from private rows.")
        check_three("strengths", self.strengths)

    def regress(self, problem: RegressionProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        paper = PaperRegression(problem)
        sample = paper.sample
        losses: dict[str, RowLoss] = {"huber": HuberLoss(), "squared": SquaredLoss()}
        algorithm = GeneralAdaptation(
            sample.rows,
            sample.labels,
            0,
            alpha=float(self.alpha),
            strengths=self.strengths,
            norm_bound=paper.coefficient_bound,
            steps=_MOST_GENERAL_STEPS if self.steps is None else self.steps,
            start="zero" if self.calibration == "paper" else "public",
            calibration=self.calibration,
            candidates=public_candidates(sample.rows, sample.labels, self.candidates),
            seed=problem.seed or 0,
            regression=losses[self.loss] if isinstance(self.loss, str) else self.loss,
        )
        if self.steps is None:
            facts = (session.n_rows, session.epsilon, session.delta)
            theorem = algorithm.theorem_steps(row_length(sample.cleaning), *facts)
            algorithm = replace(algorithm, steps=min(_MOST_GENERAL_STEPS, theorem))
        return paper.solved(
            session,
            algorithm.mechanisms(session, sample.cleaning),
            algorithm.alpha,
            lambda grants: algorithm.release(session, grants, sample.cleaning).coefficients,
        )


def public_candidates(rows: Any, labels: Any, count: int) -> Any:
    """Models of parts of the public rows, over which a discrepancy is taken; None for none."""
    if not count:
        return None
    parts = [np.arange(start, len(rows), count) for start in range(min(count, len(rows)))]
    return np.array([fit_ridge(rows[part], labels[part][:, None])[:, 0] for part in parts])


@dataclass(frozen=True)
class _Selecting(Strategy):
    """Options of solvers whose alpha and kappa may be grids."""

    alpha: float | Sequence[float] | None = None
    kappa: float | Sequence[float] | None = None
    selection: str | None = None

    _constraints: ClassVar[ParameterTable] = {
        "alpha": [Grid(most=1.0), Null()],
        "kappa": [Grid(zero=False), Null()],
    }

    def _check(self) -> None:
        for name in ("alpha", "kappa"):
            if self.selection is None and np.ndim(getattr(self, name) or 0) > 0:
                raise ValueError(f"{name} is a grid; say with selection= how to choose from it.")

    @property
    def certifiable(self) -> bool:
        """Whether alpha is fixed beforehand, for which alone the bound holds."""
        return self.selection is None

    def one(self, alpha: float, kappa: float) -> tuple[float, float]:
        """Alpha and kappa without a selection, with these defaults."""
        given: Any = (self.alpha, self.kappa)
        first, second = given
        return (
            alpha if first is None else float(first),
            kappa if second is None else float(second),
        )

    def grids(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Alphas and kappas to choose from."""
        return _grid(self.alpha, _ALPHAS), _grid(self.kappa, _KAPPAS)


def _grid(given: Any, default: tuple[float, ...]) -> tuple[float, ...]:
    if given is None:
        return default
    return tuple(float(each) for each in np.atleast_1d(np.asarray(given, dtype=np.float64)))


@dataclass(frozen=True)
class Profiled(_Selecting):
    """Noisy gradient descent from the public model, with weights minimised in closed form.

    A bias remains at any epsilon: forty steps, and private residuals that are cut at the size of
    public ones.

    Parameters
    ----------
    alpha : float or sequence of float, optional
        Reference weight of the public sample, from 0 to 1; 0 by default.
    kappa : float or sequence of float, optional
        Price of weights that differ from the reference, in units of the public model's mean square
        error; 1 by default.
    selection : {"random-stopping"}, optional
        Choose alpha and kappa from their grids (by default public ones), within the budget, as the
        best of a secret number of runs.
    steps : int, default=40

    Examples
    --------
    >>> Profiled(alpha=[0.0, 0.5])
    Traceback (most recent call last):
    ...
    ValueError: alpha is a grid; say with selection= how to choose from it.
    """

    steps: int = 40

    told: ClassVar[str] = "noisy gradient descent with the weights of rows in closed form"
    _constraints: ClassVar[ParameterTable] = {
        "selection": [OneOf("random-stopping"), Null()],
        "steps": [Count()],
    }

    def regress(self, problem: RegressionProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        paper = PaperRegression(problem)
        sample = paper.sample
        if self.selection is not None:
            alphas, kappas = self.grids()
            solvers = [self._solver(paper, alpha, kappa) for alpha in alphas for kappa in kappas]
            place, w = choose_by_random_stopping(
                session, sample.cleaning, solvers, random_state=problem.seed
            )
            chosen = Candidate(solvers[place].alpha, solvers[place].public_kappa)
            return sample.linear(w[:, None], chosen=chosen)
        solver = self._solver(paper, *self.one(alpha=0.0, kappa=1.0))
        rows = solver.prepared(sample.cleaning)
        return paper.solved(
            session,
            solver.mechanisms(session, rows),
            solver.alpha,
            lambda grants: solver.release(session, grants, rows),
        )

    def _solver(self, paper: PaperRegression, alpha: float, kappa: float) -> ProfiledRegression:
        sample = paper.sample
        return ProfiledRegression(
            sample.rows,
            sample.labels,
            alpha=alpha,
            kappa=kappa * ProfiledRegression(sample.rows, sample.labels).residual ** 2,
            norm_bound=paper.given.norm_bound,
            steps=self.steps,
        )


@dataclass(frozen=True)
class Statistics(_Selecting):
    """One noisy moment matrix of rows and residuals, after which everything is free.

    A bias remains at any epsilon: the public rows' share alpha, and residuals that are cut at twice
    a quantile of public ones.

    Parameters
    ----------
    alpha : float or sequence of float, optional
        Reference weight of the public sample, from 0 to 1; 0.3 by default.
    kappa : float or sequence of float, optional
        Price of weights that differ from the reference, in units of the public model's mean square
        error; 1 by default.
    selection : {"holdout", "certificate"}, optional
        Choose alpha and kappa from their grids (by default public ones), within the budget: on a
        hold-out of 30% of the private rows by the exponential mechanism, or by the learning bound
        of what was released.

    Examples
    --------
    >>> Statistics(selection="holdout").certifiable
    False
    """

    told: ClassVar[str] = "least squares on one noisy matrix of moments"
    _constraints: ClassVar[ParameterTable] = {
        "selection": [OneOf("holdout", "certificate"), Null()]
    }

    def regress(self, problem: RegressionProblem, session: Session) -> LinearModel:
        """Coefficients for the private population."""
        paper = PaperRegression(problem)
        sample = paper.sample
        solver = MomentRegression(sample.rows, sample.labels, shift_bound=problem.norm_bound)
        if self.selection is not None:
            return self._selected(session, sample, solver)
        alpha, kappa = self.one(alpha=0.3, kappa=1.0)
        price = kappa * solver.public_model.residual**2

        def release(grants: Any) -> Any:
            sized = solver.sized(session, grants, sample.cleaning)
            released = sized.release(session, grants.moment, sample.cleaning)
            return sized.solve(released, alpha=alpha, kappa=price)

        planned = solver.mechanisms(session, sample.cleaning)
        return paper.solved(session, planned, alpha, release)

    def _selected(
        self, session: Session, sample: PaperSample, solver: MomentRegression
    ) -> LinearModel:
        candidates = candidate_grid(solver, *self.grids())
        if self.selection == "holdout":
            choice = choose_on_holdout(session, sample.cleaning, solver, candidates)
        else:
            moment = solver.fit(session, sample.cleaning)
            score = bound_score(moment, solver, session.n_rows)
            choice = choose_by_score(moment, solver, candidates, score)
        return sample.linear(choice.coefficients[:, None], chosen=choice.candidate)
