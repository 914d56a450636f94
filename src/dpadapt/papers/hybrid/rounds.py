r"""Algorithms 2 and 4 of paper 003: Private Subsample-Test-Reweigh, round by round.

Algorithm 4, with the paper's names::

    w_i^1 <- 1 for every row i of the curator                  (the paper: kappa)
    for t = 1, ..., T:
        mu^t <- Pi_kappa(w) / |Pi_kappa(w)|                    no row has more than 1 / (kappa n)
        h^t  <- R steps of private SGD (Algorithm 3) on rows drawn from mu^t
        a^t  <- mean of RR(L(h^t(x), l(x))) over N_0 fresh local users
        if a^t > 3 alpha + alpha_H:
            w_i^{t+1} <- w_i^t exp(-eta (1 - L(h^t(x_i), l(x_i))))    for every i
        else:
            return h^t and halt

Algorithm 2 is the same with M, any private learner, on a sample drawn from mu^t in place of SGD.
So the learner says which algorithm it is: :class:`SGDLearner` makes it Algorithm 4,
:class:`EstimatorLearner` Algorithm 2, :class:`GradientLearner` the same with the whole weighted
gradient instead of one row a step. Algorithm 1, without privacy, stands in :mod:`.non_private`;
Algorithm 3 in :mod:`.sgd_learner`. Here L is 1 for a mistake, or the loss over its bound
(``BitTest(loss_bound=...)``), kappa may be larger in the first rounds (:mod:`.schedules`), and an
upper bound on the error takes the place of a^t unless ``halt_at`` is given.

Privacy of the curator's rows: the learner's releases are planned and charged before the first
round for all T rounds, with the densities of the schedule, which are public. Given the rules of
earlier rounds, the weight of a row is a function of that row alone, so neighbouring samples have
weights that differ in one entry. When to halt is decided by the agents' answers, other people's
data; halting early spends no less, and no more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpadapt.hybrid.questions import Mistake
from dpadapt.hybrid.rules import Rule
from dpadapt.privacy import Grant, Mechanism, PrivacyError, Session
from dpadapt.privacy.core.errors import LET_THROUGH, kind_of
from dpadapt.privacy.core.quiet import raised_here
from dpadapt.privacy.local import Estimate

from .doors.weights import RowWeights
from .learners import Learner, LearningTask, WeightedRows
from .queries.mistakes import lower_weights
from .schedules import DensityRun

__all__ = ["Round", "best_of", "plan_rounds", "subsample_test_reweigh"]


def subsample_test_reweigh(
    session: Session,
    learner: Learner,
    task: LearningTask,
    runs: Sequence[tuple[DensityRun, Sequence[Grant]]],
    test: Callable[[Rule], Estimate],
    passes: Callable[[Estimate], bool],
    question: Callable[[Rule], Any] = Mistake,
) -> list[Round]:
    """Run the rounds one after another until a rule passes; of all runs, one after another.

    Parameters
    ----------
    session : Session
    learner : Learner
        M.
    task : Task
    runs : sequence of (DensityRun, sequence of Grant)
        With the grant of each round, dealt out by :func:`plan_rounds`.
    test : callable
        From a rule to what fresh agents say of its error.
    passes : callable
        Whether that is good enough to return the rule and halt.
    question : callable, default=Mistake
        From a rule to the loss that rows are weighed by.

    Returns
    -------
    list of Round
        All that were run.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.papers.hybrid.gradient_learner import GradientLearner
    >>> from dpadapt.hybrid.rules import LinearRule
    >>> from dpadapt.papers.hybrid.schedules import TightSchedule
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(5000, 1))
    >>> private = Private(X, (X[:, 0] > 1).astype(float))
    >>> task = LearningTask(5000, 1, LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1)))
    >>> learner, runs = GradientLearner(steps=10), TightSchedule(0.5, 0.2, rounds=3).runs(5000)
    >>> test = lambda rule: Estimate(0.2, 0.1, 0.3, 100)  # the agents
    >>> mechanisms, deal = plan_rounds(learner, task, runs)
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     paid = list(zip(runs, deal(session.plan(rounds=mechanisms).rounds)))
    ...     rounds = subsample_test_reweigh(
    ...         session, learner, task, paid, test, lambda error: error.high <= 0.2
    ...     )
    >>> [round(each.density, 3) for each in rounds]
    [1.0, 0.819, 0.67]
    """
    seen: list[Round] = []
    for run, grants in runs:
        weights, rule = RowWeights(session), None
        for density, grant in zip(run.densities, grants, strict=True):
            if rule is not None:  # the last one was not good enough
                lower_weights(weights, rule, task.rows, run.rate, question)
            rule = _learn(learner, WeightedRows(task, session, weights, density, grant))
            seen.append(Round(density, rule, test(rule)))
            if passes(seen[-1].error):
                return seen
    return seen


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
    learner: Learner, task: LearningTask, runs: Sequence[DensityRun]
) -> tuple[list[Mechanism], Callable[[Sequence[Grant]], list[list[Grant]]]]:
    """What all rounds of all runs release, and how the grants are dealt out to the rounds.

    Equal mechanisms become one with a larger count: the same cost, and a short event log.

    Returns
    -------
    mechanisms : list of Mechanism
    deal : callable
        From the grants of the mechanisms to the grant of every round of every run.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> class Coin(Learner):
    ...     def mechanism(self, task, density):
    ...         return Gaussian("coin", 1 / density)
    ...     def learn(self, rows): ...
    >>> mechanisms, deal = plan_rounds(Coin(), None, [DensityRun((1.0, 0.5, 0.5), 0.7)] * 2)
    >>> [each.count for each in mechanisms]
    [2, 4]
    >>> deal(["a", "b"])
    [['a', 'b', 'b'], ['a', 'b', 'b']]
    """
    asked = [learner.planned(task, run.densities) for run in runs]
    counts: dict[Any, float] = {}
    for each in itertools.chain(*asked):
        counts[each] = counts.get(each, 0) + each.count
    merged = [replace(each, count=count) for each, count in counts.items()]

    def deal(grants: Sequence[Grant]) -> list[list[Grant]]:
        of = dict(zip(counts, grants, strict=True))
        return [[of[each] for each in run] for run in asked]

    return merged, deal


def _learn(learner: Learner, rows: WeightedRows) -> Rule:
    failure = None
    try:
        return learner.learn(rows)
    except LET_THROUGH:
        raise
    except BaseException as error:
        if isinstance(error, PrivacyError) and raised_here(error):
            raise  # of the core, which public facts alone decide about
        failure = PrivacyError(
            f"the learner failed{kind_of(error)}; the reason is withheld, because it may "
            "depend on private values. The budget of the fit is spent."
        )
    raise failure  # out here, so that it does not carry the first error along
