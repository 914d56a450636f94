r"""Choosing alpha and kappa with privacy, charged for.

Three rules. :func:`choose_on_holdout`, for the solver "statistics": all candidates are functions of
*one* release of the training part, and the exponential mechanism chooses among them on a disjoint
hold-out; a changed row lies in one part, so that training and choice together cost the larger of
the two, not the sum. :func:`choose_by_score`: a score that is itself a function of the released
statistics (a certificate) is free. :func:`choose_by_random_stopping`, for solvers that must run
again for every candidate: a secret, random number of runs, of which only the best is published.

Never take the least of un-noised validation losses: that is not private at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Any

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Session
from dpadapt.privacy.mechanisms import (
    CandidateLosses,
    Gaussian,
    best_of_random_runs,
    hide_losses,
    holdout_choice,
)

from .moment_regression import MomentRegression, ReleasedMoment
from .profiled import ProfiledRegression

_SCORE_SHARE = 0.1  # of the squared noise budget of a run, for its score


@dataclass(frozen=True)
class Candidate:
    r"""What is chosen: :math:`\alpha`, :math:`\kappa` and the offset d of public losses.

    Examples
    --------
    >>> Candidate(alpha=0.5, kappa=0.01).offset
    0.0
    """

    alpha: float
    kappa: float
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate that was chosen, its place among all, and its coefficients.

    Examples
    --------
    >>> Choice(Candidate(0.5, 0.01), 0, np.zeros(2)).candidate.alpha
    0.5
    """

    candidate: Candidate
    index: int
    coefficients: FloatArray


def candidate_grid(
    solver: MomentRegression | ProfiledRegression,
    alphas: Sequence[float] = (0.05, 0.5, 0.9),
    kappas: Sequence[float] = (0.25, 1.0, 100.0),
) -> list[Candidate]:
    r"""All pairs; :math:`\kappa` in units of the public model's mean square residual.

    Examples
    --------
    >>> len(candidate_grid(ProfiledRegression(np.ones((3, 1)), np.zeros(3)), alphas=(0.0, 0.5)))
    6
    """
    model = solver.public_model if isinstance(solver, MomentRegression) else solver
    return [Candidate(alpha, kappa * model.residual**2) for alpha in alphas for kappa in kappas]


def public_loss_bound(
    X: FloatArray, y: FloatArray, coefficients: FloatArray, quantile: float = 0.99
) -> float:
    """Where losses are clipped when candidates are compared: a quantile of public losses.

    The range sensitivity is proportional to it. A loss of the public model that few public rows
    have says little about which candidate is better.

    Examples
    --------
    >>> public_loss_bound(np.ones((2, 1)), np.array([0.5, 0.5]), np.zeros(1))
    0.25
    """
    return max(float(np.quantile((X @ coefficients - y) ** 2, quantile)), 1e-6)


def choose_on_holdout(
    session: Session,
    cleaning: Cleaning,
    solver: MomentRegression,
    candidates: Sequence[Candidate],
    *,
    holdout: float = 0.3,
    loss_bound: float | None = None,
) -> Choice:
    """Spend a session on one moment of a training part, and a choice on the rest.

    The exponential mechanism on losses clipped to [0, bound] has range sensitivity
    2 bound / n_holdout, whatever the number of candidates: one loss may go up while another goes
    down (attained). Its excess loss is about 2 bound log(candidates) / (n_holdout epsilon).

    Parameters
    ----------
    session : Session
        Fresh: not split, not planned.
    cleaning : Cleaning
    solver : MomentRegression
    candidates : sequence of Candidate
    holdout : float, default=0.3
        Share of the rows, by public position. There is no refit on all rows afterwards: that
        would cost the sum.
    loss_bound : float, optional
        By default :func:`public_loss_bound` of the public model.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(500, 2)), np.ones(500)])
    >>> solver = MomentRegression(X, X @ [0.2, 0.1, 0.0] + 0.1 * rng.normal(size=500))
    >>> T = rng.normal(size=(9000, 2))
    >>> cleaning = Cleaning(5.0, intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private(T, T @ [0.2, -0.1]).open(epsilon=1.0, delta=1e-6) as session:
    ...     chosen = choose_on_holdout(session, cleaning, solver, candidate_grid(solver))
    >>> chosen.candidate.alpha < 0.9, session.guarantee.epsilon <= 1.0
    (True, True)
    """
    candidates = _some(candidates)
    model = solver.public_model
    if loss_bound is None:
        loss_bound = public_loss_bound(solver.X, solver.y, model.start / model.row_unit)
    session.split(validate.fraction("holdout", holdout))
    grants = session.plan(
        **solver.mechanisms(session, cleaning, "train"),
        best=holdout_choice(session, loss_bound, label="choice of alpha and kappa"),
    )
    sized = solver.sized(session, grants, cleaning, "train")
    moment = sized.release(session, grants.moment, cleaning, "train")
    answers = np.array([_solve(sized, moment, each) for each in candidates])
    squares = _squares(answers, sized.size)
    losses = CandidateLosses(squares, len(candidates), loss_bound, cleaning)
    best = session.release(grants.best, hide_losses(session, losses, "holdout"))
    return Choice(candidates[best], best, answers[best])


def choose_by_score(
    moment: ReleasedMoment,
    solver: MomentRegression,
    candidates: Sequence[Candidate],
    score: Callable[[Candidate, FloatArray], float],
) -> Choice:
    """The candidate with the least score, where scores are functions of what is released: free.

    Parameters
    ----------
    moment : ReleasedMoment
    solver : MomentRegression
    candidates : sequence of Candidate
    score : callable
        Of a candidate and its coefficients. It must not see private rows, only the moment and
        public data: a certificate's bound, say. A score that is not a number is the worst.

    Examples
    --------
    >>> solver = MomentRegression(np.ones((3, 1)), np.zeros(3))
    >>> moment = solver.exact(np.ones((3, 1)), np.full(3, 0.001))
    >>> grid = [Candidate(alpha, 1.0) for alpha in (0.1, 0.9)]
    >>> choose_by_score(moment, solver, grid, lambda each, w: -w[0]).candidate.alpha
    0.1
    """
    candidates = _some(candidates)
    answers = [_solve(solver, moment, each) for each in candidates]
    scores = [float(score(each, w)) for each, w in zip(candidates, answers, strict=True)]
    best = int(np.argmin(np.nan_to_num(scores, nan=math.inf, posinf=math.inf)))
    return Choice(candidates[best], best, answers[best])


def bound_score(
    moment: ReleasedMoment, solver: MomentRegression, n_rows: int, *, confidence: float = 0.95
) -> Callable[[Candidate, FloatArray], float]:
    r"""Score of :func:`choose_by_score`: the learning bound, anchored at the reference weights.

    Every term is that of :mod:`.certificate` at :math:`q = p_0`, estimated on the released moment
    and the shrunk public rows: losses, :math:`\alpha \hat d`, complexity and deviation, the last
    two in proportion to :math:`|p_0|_2`.

    Parameters
    ----------
    moment : ReleasedMoment
    solver : MomentRegression
    n_rows : int
    confidence : float, default=0.95

    Examples
    --------
    >>> solver = MomentRegression(np.ones((3, 1)), np.zeros(3))
    >>> moment = solver.exact(np.ones((900, 1)), np.zeros(900))
    >>> score = bound_score(moment, solver, 900)
    >>> score(Candidate(0.1, 1.0), np.zeros(1)) < score(Candidate(0.9, 1.0), np.zeros(1))
    True
    """
    X, y = solver.public_model.public
    residual, distance = y - X @ solver.center, max(0.0, solver.discrepancy(moment))
    loss_bound = (solver.label_bound + solver.ball) ** 2
    spread = 4 * math.sqrt(loss_bound) * solver.ball
    spread += loss_bound * math.sqrt(math.log(1 / (1 - confidence)) / 2)

    def score(candidate: Candidate, w: FloatArray) -> float:
        shift = w * solver.public_model.row_unit - solver.center
        model, alpha = np.append(shift, -1.0), candidate.alpha
        private = max(0.0, float(model @ moment.matrix @ model))
        public = float(np.mean((X @ shift - residual) ** 2))
        norm = math.hypot(alpha / math.sqrt(len(y)), (1 - alpha) / math.sqrt(n_rows))
        return alpha * (public + distance) + (1 - alpha) * private + spread * norm

    return score


def choose_by_random_stopping(
    session: Session,
    cleaning: Cleaning,
    solvers: Sequence[ProfiledRegression],
    *,
    loss_bound: float | None = None,
    mean_runs: float = 10.0,
    random_state: int | None = None,
) -> tuple[int, FloatArray]:
    """Spend a session on the best of a secret number of runs, each of a solver drawn at random.

    A run releases the gradients of its solver and one score: the mean loss of its answer over all
    private rows, clipped, with Gaussian noise for bound / n. Gradients are measured in units of
    the knee, so every candidate has the same sensitivity, and the runs are identically
    distributed, as the theorem of Papernot and Steinke asks for.

    Parameters
    ----------
    session : Session
    cleaning : Cleaning
    solvers : sequence of ProfiledRegression
        Candidates: the same public rows, row bound and number of steps, without a released offset.
    loss_bound : float, optional
        By default :func:`public_loss_bound` of the first solver's public model.
    mean_runs : float, default=10
    random_state : int, optional
        For tests only: who knows which solvers were drawn learns something of how many runs there
        were. By default the draws come from the operating system.

    Returns
    -------
    index : int
        Of the solver whose run was best.
    coefficients : ndarray of shape (d,)

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(500, 2)), np.ones(500)])
    >>> y = X @ [0.2, 0.1, 0.0] + 0.1 * rng.normal(size=500)
    >>> solvers = [ProfiledRegression(X, y, alpha=alpha) for alpha in (0.0, 0.5)]
    >>> T = rng.normal(size=(4000, 2))
    >>> cleaning = Cleaning(5.0, intercept=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> with Private(T, T @ [0.2, -0.1]).open(epsilon=2.0, delta=1e-6) as session:
    ...     index, w = choose_by_random_stopping(session, cleaning, solvers)
    >>> index in (0, 1), session.guarantee.epsilon <= 2.0
    (True, True)
    """
    first = _same_releases(solvers)
    if loss_bound is None:
        loss_bound = public_loss_bound(first.X, first.y, first.start / first.row_unit)
    draw = SystemRandom() if random_state is None else Random(random_state)
    rows = first.prepared(cleaning)

    def losses(w: FloatArray, size: float = 1.0) -> CandidateLosses:
        label = "mean loss of a run"
        return CandidateLosses(_squares(w[None, :], size), 1, loss_bound, cleaning, label=label)

    weight = math.sqrt(first.steps * _SCORE_SHARE / (1 - _SCORE_SHARE))
    score = Gaussian.of(session.hide(losses(first.start)), weight=weight)

    def run(grants: Any) -> tuple[float, tuple[int, FloatArray]]:
        index = draw.randrange(len(solvers))
        solver = solvers[index].sized(session, grants, rows)
        w = solver.descend(session, grants, rows)
        loss = session.release(grants.score, session.hide(losses(w, solver.size)))
        return float(loss[0]), (index, w)

    released: dict[str, Any] = {**first.mechanisms(session, rows), "score": score}
    chosen: tuple[int, FloatArray] = best_of_random_runs(
        session, released, run, mean_runs=mean_runs
    )
    return chosen


def _same_releases(solvers: Sequence[ProfiledRegression]) -> ProfiledRegression:
    """The first solver, if a run of every other releases what a run of it does."""
    if not solvers:
        raise ValueError("solvers must hold at least one.")
    first = solvers[0]
    for other in solvers:
        if (other.row_unit, other.steps) != (first.row_unit, first.steps):
            raise ValueError("solvers must have the same row bound and number of steps.")
        if other.X.shape[1] != first.X.shape[1] or other.offset == "private" or other.alpha == 1:
            raise ValueError("solvers must have the same columns, alpha below 1, a public offset.")
    return first


def _some(candidates: Sequence[Candidate]) -> list[Candidate]:
    if not candidates:
        raise ValueError("candidates must hold at least one.")
    return list(candidates)


def _solve(solver: MomentRegression, moment: ReleasedMoment, candidate: Candidate) -> FloatArray:
    return solver.solve(
        moment, alpha=candidate.alpha, kappa=candidate.kappa, offset=candidate.offset
    )


def _squares(
    answers: FloatArray, size: float = 1.0
) -> Callable[[FloatArray, FloatArray | None], FloatArray]:
    """Squared losses of each of several coefficient vectors, one column for each."""

    def losses(X: FloatArray, y: FloatArray | None) -> FloatArray:
        if y is None:
            return np.zeros((len(X), len(answers)))
        return np.asarray(((X @ answers.T - y[:, None]) / size) ** 2)

    return losses
