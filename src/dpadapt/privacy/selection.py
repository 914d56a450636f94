"""Choosing among candidates with privacy.

Two rules. On a *disjoint hold-out* the candidates are scored on rows that no candidate has seen
and the exponential mechanism chooses: split the session, hide :class:`CandidateLosses` on the
hold-out part, trade it with the grant of :func:`holdout_request`. A changed row is in one part, so
training and choice together cost the larger of the two.

For algorithms that must be run again for every candidate, :func:`best_of_random_runs` repeats a
private run a *secret, random number of times* and publishes the best only (Papernot, Steinke 2022).
Never take the best of un-noised scores: that is not private at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from . import _validate
from .cleaning import Cleaning
from .events import FloatArray, RandomStoppingEvent
from .grants import Grant, Request
from .session import Session

__all__ = ["CandidateLosses", "best_of_random_runs", "holdout_request"]


@dataclass(frozen=True)
class CandidateLosses:
    """Mean loss of each of H candidates, clipped to [0, bound].

    Replacing one row moves every mean by at most bound / n, in either direction, so the difference
    of two moves by at most 2 bound / n (attained: one up, the other down), and the vector by
    at most sqrt(H) bound / n.

    Parameters
    ----------
    losses : callable
        Maps cleaned (X, y) to an array of shape (rows, H); row-wise.
    candidates : int
        H.
    bound : float
        Losses are clipped to [0, bound]; one that is not finite counts as ``bound``.
    cleaning : Cleaning

    Examples
    --------
    >>> query = CandidateLosses(lambda X, y: X**2, 2, bound=1.0, cleaning=Cleaning(radius=5.0))
    >>> query.block(np.array([[0.5, 3.0], [np.nan, 0.0]]), None)
    array([1.25, 1.  ])
    """

    losses: Callable[[FloatArray, FloatArray | None], FloatArray]
    candidates: int
    bound: float
    cleaning: Cleaning
    label: str = "candidate losses"

    @property
    def magnitude(self) -> float:
        """Bound on the norm of one row's losses."""
        return self.bound * float(np.sqrt(self.candidates))

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number for each candidate."""
        return (self.candidates,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the clipped losses."""
        losses = np.nan_to_num(self.losses(X, y), nan=self.bound, posinf=self.bound)
        return np.asarray(np.clip(losses, 0.0, self.bound).sum(axis=0))

    def sensitivity(self, n_rows: int) -> float:
        """Euclidean sensitivity of the mean losses."""
        return self.magnitude / n_rows


def holdout_request(session: Session, bound: float, *, label: str = "choice") -> Request:
    """Ask for a choice among candidates by their :class:`CandidateLosses` on the hold-out part.

    The range sensitivity is 2 bound / n_holdout (plus the allowance for rounding), whatever the
    number of candidates, so it can be planned before there are any.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> private = Private(rng.normal(size=(2000, 1)))
    >>> guesses = np.array([-2.0, 0.0, 2.0])
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     session.split(holdout=0.5)
    ...     (grant,) = session.plan(holdout=[holdout_request(session, bound=4.0)])
    ...     query = CandidateLosses(lambda X, y: (X - guesses) ** 2, 3, 4.0, Cleaning(radius=5.0))
    ...     best = session.noisy_argmin(grant, session.hide(query, "holdout"))
    >>> float(guesses[best])
    0.0
    """
    n_holdout = max(1, session.size("holdout"))
    sensitivity = 2 * _validate.positive("bound", bound) * (1 / n_holdout + 1e-11)
    return Request("noisy-argmin", label, sensitivity)


def best_of_random_runs(
    session: Session,
    requests: tuple[Request, ...],
    run: Callable[[tuple[Grant, ...]], tuple[float, Any]],
    *,
    mean_runs: float = 10.0,
    shape: float = 0.0,
) -> Any:
    """Run a private algorithm a secret number of times and return the best result.

    Parameters
    ----------
    session : Session
        Its whole budget is used.
    requests : tuple of Request
        What *one* run releases, its own score included.
    run : callable
        Takes the grants of one run, draws a candidate (hyper-parameters, say) independently of
        other runs, and returns (score, result), both computed from releases only. Lower is better.
    mean_runs : float, default=10
        Expected number of runs.
    shape : float, default=0
        Shape of the truncated negative binomial: 0 is the logarithmic, 1 the geometric law.

    Examples
    --------
    >>> from dpadapt.privacy import Private, SecondMoment
    >>> private = Private(np.ones((5000, 1)))
    >>> with private.open(epsilon=2.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     def run(grants):
    ...         value = session.gaussian(grants[0], moment)
    ...         return abs(float(value[0, 0]) - 1.0), value
    ...     best = best_of_random_runs(session, (moment.request(),), run)
    >>> session.guarantee.epsilon <= 2.0
    True
    """
    gamma = _gamma(_validate.positive("mean_runs", mean_runs), shape)
    runs = session.plan_random_stopping(*requests, shape=shape, gamma=gamma)
    return min((run(grants) for grants in runs), key=lambda scored: scored[0])[1]


def _gamma(mean_runs: float, shape: float) -> float:
    """Parameter at which the law has the wanted mean (above 1)."""
    if mean_runs <= 1:
        raise ValueError(f"mean_runs must be above 1; got {mean_runs!r}.")

    def excess(gamma: float) -> float:
        return RandomStoppingEvent("", (), shape, gamma).mean_runs - mean_runs

    return float(brentq(excess, 1e-12, 1 - 1e-9))
