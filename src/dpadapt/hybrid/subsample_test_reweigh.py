r"""Subsample-Test-Reweigh: the loop of paper 003's Algorithms 1, 2 and 4.

.. code-block:: text

    w_i <- 1 for every row
    for t = 1, ..., T:
        mu <- w projected on the density kappa_t        no row weighs more than 1 / (kappa_t n)
        h  <- learner on rows weighted by mu            (epsilon, delta) of all T rounds together
        a  <- answers of N_0 fresh agents to "is h wrong on you?"
        if a is small enough: return h
        w_i <- w_i exp(-eta (1 - loss of h on row i))   rows that h gets right count less

Which algorithm it is depends on the learner: :class:`EstimatorLearner` (any private learner on
draws) makes it Algorithm 2, :class:`SGDLearner` Algorithm 4, :class:`GradientLearner` the same
with the whole weighted gradient instead of one row a step. Algorithm 1, without privacy, stands in
:mod:`.non_private`.

Privacy of the curator's rows: the learner's releases are planned and charged before the first
round for all T rounds, with the densities of the schedule, which are public. Given the rules of
earlier rounds, the weight of a row is a function of that row alone, so neighbouring samples have
weights that differ in one entry. When to halt is decided by the agents' answers, other people's
data; halting early spends no less, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpadapt.privacy import Grant, PrivacyError, Request, Session
from dpadapt.privacy.errors import LET_THROUGH
from dpadapt.privacy.replies import Estimate
from dpadapt.privacy.weights import RowWeights, density_schedule

from .learners import Learner, Task
from .questions import Mistake
from .rules import Rule

__all__ = ["Round", "Schedule", "best_of", "plan_rounds", "subsample_test_reweigh"]


@dataclass(frozen=True)
class Schedule:
    r"""The public plan of one run: how often, how dense, how fast.

    Parameters
    ----------
    densities : tuple of float
        kappa_t of every round.
    rate : float
        eta.

    Examples
    --------
    >>> Schedule.tight(least=0.5, rate=0.2, rounds=5).densities[-1]
    0.5
    """

    densities: tuple[float, ...]
    rate: float

    @classmethod
    def tight(cls, least: float, rate: float, rounds: int) -> Schedule:
        r"""Density :math:`\max(\kappa, e^{-\eta (t-1)})`: weights cannot be less even by then."""
        return cls(tuple(density_schedule(least, [rate] * rounds)), rate)

    @classmethod
    def paper(cls, least: float, rate: float, rounds: int) -> Schedule:
        """Density kappa from the first round on, as printed."""
        return cls((least,) * rounds, rate)

    @classmethod
    def once(cls) -> Schedule:
        """One round on the rows as they are."""
        return cls((1.0,), 1.0)


@dataclass(frozen=True)
class Round:
    """What one round made public.

    Attributes
    ----------
    density : float
        kappa_t.
    rule : Rule
        h^t.
    error : Estimate
        a^t: what the agents said of it.

    Examples
    --------
    >>> from dpadapt.privacy.replies import Estimate
    >>> Round(1.0, None, Estimate(0.2, 0.1, 0.3, 5000)).error.high
    0.3
    """

    density: float
    rule: Any
    error: Estimate


def best_of(rounds: Sequence[Round]) -> Round:
    """Round of whose rule the agents said least evil: the one with the lowest upper bound.

    Examples
    --------
    >>> best_of([Round(1.0, None, Estimate(a, 0.0, a + 0.1, 50)) for a in (0.3, 0.2)]).error.value
    0.2
    """
    errors = [each.error for each in rounds]
    known = [(error.high, error.value if error.count else math.inf) for error in errors]
    return rounds[known.index(min(known))]


def plan_rounds(
    learner: Learner, task: Task, schedules: Sequence[Schedule]
) -> tuple[tuple[Request, ...], Callable[[Sequence[Grant]], list[list[tuple[Grant, ...]]]]]:
    """Requests of all rounds of all runs, and how their grants are dealt out to the rounds.

    Equal requests become one with a larger count: the same cost, and a short event log.

    Returns
    -------
    requests : tuple of Request
    deal : callable
        From the grants of the requests to the grants of every round of every run.

    Examples
    --------
    >>> class Coin:
    ...     def requests(self, task, densities):
    ...         return tuple(Request("gaussian", "coin", 1 / density) for density in densities)
    >>> requests, deal = plan_rounds(Coin(), None, [Schedule((1.0, 0.5, 0.5), 0.7)] * 2)
    >>> [request.count for request in requests]
    [2, 4]
    >>> deal(["a", "b"])
    [[('a',), ('b',), ('b',)], [('a',), ('b',), ('b',)]]
    """
    counts: dict[Request, int] = {}
    asked: list[list[tuple[Request, ...]]] = []
    for schedule in schedules:
        flat = learner.requests(task, schedule.densities)
        each, left = divmod(len(flat), len(schedule.densities))
        if left or not each:
            raise ValueError("learner: requests() must state as many requests for every round.")
        asked.append([flat[i : i + each] for i in range(0, len(flat), each)])
        for request in flat:
            counts[request] = counts.get(request, 0) + request.count
    merged = tuple(replace(request, count=count) for request, count in counts.items())

    def deal(grants: Sequence[Grant]) -> list[list[tuple[Grant, ...]]]:
        of = dict(zip(counts, grants, strict=True))
        return [[tuple(of[r] for r in requests) for requests in run] for run in asked]

    return merged, deal


def subsample_test_reweigh(
    session: Session,
    grants: Sequence[tuple[Grant, ...]],
    learner: Learner,
    task: Task,
    schedule: Schedule,
    test: Callable[[Rule], Estimate],
) -> Iterator[Round]:
    """Run the rounds one after another, for as long as the caller asks for another.

    Parameters
    ----------
    session : Session
    grants : sequence of tuples of Grant
        Those of each round, dealt out by :func:`plan_rounds`.
    learner : Learner
    task : Task
    schedule : Schedule
    test : callable
        From a rule to what fresh agents say of its error.

    Yields
    ------
    Round
        Whoever is content with it stops here: that is the paper's "return and halt".

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.hybrid.gradient_learner import GradientLearner
    >>> from dpadapt.hybrid.rules import LinearRule
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(5000, 1))
    >>> private = Private(X, (X[:, 0] > 1).astype(float))
    >>> task = Task(5000, 1, LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1)))
    >>> learner, schedule = GradientLearner(steps=10), Schedule.tight(0.5, rate=0.2, rounds=3)
    >>> test = lambda rule: Estimate(0.2, 0.1, 0.3, 100)  # the agents
    >>> requests, deal = plan_rounds(learner, task, [schedule])
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     (grants,) = deal(session.plan(*requests))
    ...     rounds = subsample_test_reweigh(session, grants, learner, task, schedule, test)
    ...     [round(each.density, 3) for each in rounds if each.error.high > 0.2]
    [1.0, 0.819, 0.67]
    """
    weights = session.weigh()
    rule: Rule | None = None
    for density, own in zip(schedule.densities, grants, strict=True):
        if rule is not None:  # the last one was not good enough
            session.reweigh(weights, Mistake(rule).values, task.rows, schedule.rate)
        rule = _learn(learner, task, session, own, weights, density)
        yield Round(density, rule, test(rule))


def _learn(
    learner: Learner,
    task: Task,
    session: Session,
    grants: tuple[Grant, ...],
    weights: RowWeights,
    density: float,
) -> Rule:
    failure = None
    try:
        return learner.learn(task, session, grants, weights, density)
    except (PrivacyError, *LET_THROUGH):
        raise
    except BaseException as error:
        failure = PrivacyError(
            f"the learner failed ({type(error).__name__}); the reason is withheld, because it may "
            "depend on private values. The budget of the fit is spent."
        )
    raise failure  # out here, so that it does not carry the first error along
