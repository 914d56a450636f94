"""Choosing among candidates with privacy.

Two rules. On a *disjoint hold-out* the candidates are scored on rows that no candidate has seen
and the exponential mechanism chooses: split the session, hide :class:`CandidateLosses` on the
hold-out part, trade it with the grant of :func:`holdout_choice`. A changed row is in one part, so
training and choice together cost the larger of the two.

For algorithms that must be run again for every candidate, :func:`best_of_random_runs` repeats a
private run a *secret, random number of times* and publishes the best only (Papernot, Steinke 2022).
Never take the best of un-noised scores: that is not private at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning
from dpadapt.privacy.core.hidden import Hidden, Part
from dpadapt.privacy.core.mechanism import Noise
from dpadapt.privacy.core.session import Session
from dpadapt.privacy.core.statistic import RowMean

from .exponential import Exponential
from .random_stopping import RandomStopping, RandomStoppingEvent

__all__ = ["CandidateLosses", "best_of_random_runs", "hide_losses", "holdout_choice"]


@dataclass(frozen=True)
class CandidateLosses(RowMean):
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


def holdout_choice(session: Session, bound: float, *, label: str = "choice") -> Exponential:
    """Plan a choice among candidates by their :class:`CandidateLosses` on the hold-out part.

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
    ...     grants = session.plan(best=holdout_choice(session, bound=4.0))
    ...     query = CandidateLosses(lambda X, y: (X - guesses) ** 2, 3, 4.0, Cleaning(radius=5.0))
    ...     best = session.release(grants.best, hide_losses(session, query, "holdout"))
    >>> float(guesses[best])
    0.0
    """
    sensitivity = _range(_validate.positive("bound", bound), session.size("holdout"))
    return Exponential(label, sensitivity, part="holdout")


def hide_losses(session: Session, losses: CandidateLosses, part: Part = "all") -> Hidden:
    """Hide the mean losses of candidates, to choose among them.

    A difference of two of them moves by at most 2 bound / n, whatever their number: see
    :class:`CandidateLosses`.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> query = CandidateLosses(lambda X, y: X**2, 1, bound=1.0, cleaning=Cleaning(radius=5.0))
    >>> with Private([[0.5]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     round(hide_losses(session, query).sensitivity, 9)
    0.2
    """
    found = session.hide(losses, part)
    return session.derive(
        found,
        lambda value: value,
        sensitivity=_range(losses.bound, session.size(part)),
        norm="range",
    )


def _range(bound: float, n_rows: int) -> float:
    return 2 * bound * (1 / max(1, n_rows) + 1e-11)


def best_of_random_runs(
    session: Session,
    mechanisms: Mapping[str, Noise],
    run: Callable[[SimpleNamespace], tuple[float, Any]],
    *,
    mean_runs: float = 10.0,
    shape: float = 0.0,
) -> Any:
    """Run a private algorithm a secret number of times and return the best result.

    Parameters
    ----------
    session : Session
        Its whole budget is used.
    mechanisms : mapping
        What *one* run releases, its own score included, by name.
    run : callable
        Takes the grants of one run, by the same names, draws a candidate (hyper-parameters, say)
        independently of other runs, and returns (score, result), both computed from releases only.
        Lower is better.
    mean_runs : float, default=10
        Expected number of runs.
    shape : float, default=0
        Shape of the truncated negative binomial: 0 is the logarithmic, 1 the geometric law.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> private = Private(np.ones((5000, 1)))
    >>> with private.open(epsilon=2.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     def run(grants):
    ...         value = session.release(grants.moment, moment)
    ...         return abs(float(value[0, 0]) - 1.0), value
    ...     best = best_of_random_runs(session, {"moment": Gaussian.of(moment)}, run)
    >>> session.guarantee.epsilon <= 2.0
    True
    """
    gamma = _gamma(_validate.positive("mean_runs", mean_runs), shape)
    runs = session.plan(runs=RandomStopping(tuple(mechanisms.items()), shape, gamma)).runs
    return min((run(grants) for grants in runs), key=lambda scored: scored[0])[1]


def _gamma(mean_runs: float, shape: float) -> float:
    """Parameter at which the law has the wanted mean (above 1)."""
    if mean_runs <= 1:
        raise ValueError(f"mean_runs must be above 1; got {mean_runs!r}.")

    def excess(gamma: float) -> float:
        return RandomStoppingEvent("", (), shape, gamma).mean_runs - mean_runs

    return float(brentq(excess, 1e-12, 1 - 1e-9))
