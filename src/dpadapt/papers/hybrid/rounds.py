"""Subsample-Test-Reweigh round by round: its schedules, the tests of agents, its algorithms.

A schedule says how many rounds there are, how dense and how fast the weights are; fresh agents test
a rule with randomised bits, or as printed. Algorithm 4, with the paper's names::

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
Algorithm 3 in :mod:`.learners`. Here L is 1 for a mistake, or the loss over its bound
(``BitTest(loss_bound=...)``), kappa may be larger in the first rounds (:class:`TightSchedule`), and
an upper bound on the error takes the place of a^t unless ``halt_at`` is given.

Privacy of the curator's rows: the learner's releases are planned and charged before the first
round for all T rounds, with the densities of the schedule, which are public. Given the rules of
earlier rounds, the weight of a row is a function of that row alone, so neighbouring samples have
weights that differ in one entry. When to halt is decided by the agents' answers, other people's
data; halting early spends no less, and no more.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dpadapt.hybrid.questions import Loss, Mistake
from dpadapt.hybrid.rules import Rule
from dpadapt.learning.constraints import (
    Between,
    Count,
    Flag,
    Fraction,
    Null,
    OneOf,
    ParameterTable,
    Positive,
)
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Grant, Mechanism, PrivacyError, Session
from dpadapt.privacy.local import Estimate, Poll, estimate
from dpadapt.privacy.rows.errors import LET_THROUGH, kind_of
from dpadapt.privacy.rows.quiet import raised_here

from .doors.weights import RowWeights, density_schedule
from .learners import Learner, LearningTask, WeightedRows
from .queries import lower_weights
from .sample_sizes import Calibration, agents_for_test

_MOST_DOUBLINGS = 6


@dataclass(frozen=True)
class DensityRun:
    """The public plan of one run.

    Parameters
    ----------
    densities : tuple of float
        kappa_t of every round.
    rate : float
        eta.

    Examples
    --------
    >>> DensityRun.once().densities
    (1.0,)
    """

    densities: tuple[float, ...]
    rate: float

    @classmethod
    def once(cls) -> DensityRun:
        """One round on the rows as they are."""
        return cls((1.0,), 1.0)


@dataclass(frozen=True)
class Schedule(Strategy, ABC):
    """What both schedules have in common."""

    kappa: float | str = 0.05
    rate: float = 1.0
    rounds: int = 5

    _constraints: ClassVar[ParameterTable] = {
        "kappa": [Between(0, 1, left=False), OneOf("doubling")],
        "rate": [Positive()],
        "rounds": [Count()],
    }

    @abstractmethod
    def run(self, kappa: float) -> DensityRun:
        """The run with this least density."""

    @property
    def useful(self) -> int:
        """Doublings after which a smaller kappa changes nothing."""
        return _MOST_DOUBLINGS

    def runs(self, n_rows: int) -> list[DensityRun]:
        """One run, or one for each density that doubling tries."""
        densities = [self.kappa]
        if isinstance(self.kappa, str):
            most = min(_MOST_DOUBLINGS, max(1, self.useful), max(1, int(math.log2(n_rows))))
            densities = [2.0**-j for j in range(1, most + 1)]
        least = min(map(float, densities))
        if least * n_rows < 1:
            raise ValueError(
                f"kappa: {least:.6g} of {n_rows} rows is less than one row; give at least "
                f"1 / {n_rows}, or more rows."
            )
        return [self.run(float(density)) for density in densities]


@dataclass(frozen=True)
class TightSchedule(Schedule):
    r"""Density :math:`\max(\kappa, e^{-\eta (t-1)})` in round t: no weights are less even by then.

    Parameters
    ----------
    kappa : float or "doubling", default=0.05
        Least density of the weights: no row weighs more than 1 / (kappa n). "doubling" tries
        1/2, 1/4, ... one after another, with the budget divided among them in advance.
    rate : float, default=1.0
        eta of the reweighing. The theorem's alpha / 8 takes some thousand rounds. For
        :class:`SGDLearner`, whose noise is that of the least density, 0.2 and 10 rounds are better.
    rounds : int, default=5
        T at most. The budget is divided among all of them, also if fewer are needed.

    Examples
    --------
    >>> TightSchedule(kappa=0.5, rate=0.2).runs(n_rows=1000)[0].densities[-1]
    0.5
    """

    def run(self, kappa: float) -> DensityRun:
        """Densities that fall from 1 to kappa."""
        return DensityRun(tuple(density_schedule(kappa, [self.rate] * self.rounds)), self.rate)

    @property
    def useful(self) -> int:
        """Below the last density of the schedule, a smaller kappa changes nothing."""
        return math.ceil(self.rate * (self.rounds - 1) / math.log(2))


@dataclass(frozen=True)
class PaperSchedule(Schedule):
    """Density kappa from the first round on, as printed in Algorithms 2 and 4.

    Parameters
    ----------
    kappa : float or "doubling", default=0.05
    rate : float, default=1.0
    rounds : int, default=5
        As in :class:`TightSchedule`.

    Examples
    --------
    >>> PaperSchedule(kappa=0.1, rounds=3).runs(n_rows=1000)[0].densities
    (0.1, 0.1, 0.1)
    """

    def run(self, kappa: float) -> DensityRun:
        """The same density in every round."""
        return DensityRun((kappa,) * self.rounds, self.rate)


@dataclass(frozen=True)
class AgentTest(Strategy, ABC):
    """What both tests have in common."""

    batch: int | None = None
    agnostic: bool = False
    loss_bound: float | None = None
    halt_at: float | None = None

    _constraints: ClassVar[ParameterTable] = {
        "batch": [Count(), Null()],
        "agnostic": [Flag()],
        "loss_bound": [Positive(), Null()],
        "halt_at": [Fraction(), Null()],
    }

    def question(self, rule: Rule) -> Mistake | Loss:
        """What an agent is asked, and what rows are weighed by: a number from 0 to 1."""
        return Mistake(rule) if self.loss_bound is None else Loss(rule, self.loss_bound)

    def passes(self, error: Estimate, target_error: float) -> bool:
        """Whether a rule is good enough to return it and halt."""
        if self.agnostic:
            return False
        return error.high <= target_error if self.halt_at is None else error.value <= self.halt_at

    @property
    @abstractmethod
    def calibration(self) -> Calibration:
        """Whose number of agents is taken."""

    def polled(self, delta: float) -> dict[str, Any]:
        """How agents randomise what they say, for :meth:`dpadapt.Agents.open`."""
        return {}

    def size(self, target_error: float, beta: float, epsilon: float, delta: float) -> int:
        """N_0: as many as tell the error up to a quarter of the target, but for beta."""
        if self.batch is not None:
            return self.batch
        # one side of the interval is enough, hence twice the probability
        return agents_for_test(target_error / 4, 2 * beta, epsilon, delta, self.calibration)


@dataclass(frozen=True)
class BitTest(AgentTest):
    """One randomised bit of each agent, to the question whether the rule errs on them.

    Parameters
    ----------
    batch : int, optional
        N_0, agents of one test. By default as many as tell the error up to a quarter of the target.
    agnostic : bool, default=False
        Run all rounds, and return the best rule by the agents' answers: where no rule is near
        perfect and none can be asked for.
    loss_bound : float, optional
        LD of Algorithm 4: agents tell, and rows are weighed by, the rule's logistic loss divided by
        this bound (a larger loss counts as the bound), and ``target_error`` is one of that. By
        default a mistake is 1 and everything else 0.
    halt_at : float, optional
        Halt when the mean answer itself is at most so much (3 alpha in the paper), whatever its
        interval; by default when the upper end of the interval meets the target.

    Examples
    --------
    >>> BitTest().size(target_error=0.2, beta=0.05, epsilon=1.0, delta=1e-6)
    2806
    """

    calibration: ClassVar[Calibration] = "tight"


@dataclass(frozen=True)
class PaperTest(AgentTest):
    """Answers with Gaussian noise, and the number of agents of Algorithm 2, as printed.

    Parameters
    ----------
    batch, agnostic, loss_bound, halt_at
        As in :class:`BitTest`.

    Examples
    --------
    >>> PaperTest(batch=500).size(target_error=0.2, beta=0.05, epsilon=1.0, delta=1e-6)
    500
    """

    calibration: ClassVar[Calibration] = "paper"

    def polled(self, delta: float) -> dict[str, Any]:
        """Gaussian noise on the loss."""
        return {"response": "paper-gaussian", "delta": delta}


@dataclass(frozen=True)
class FreshAgents:
    """Asks a batch of fresh agents how often a rule errs on them.

    Parameters
    ----------
    poll : Poll
    batch : int
        N_0.
    beta : float
        Probability that the error is above the upper end of what comes out.
    question : callable, optional
        From a rule to a question; by default whether it errs.

    Examples
    --------
    >>> from dpadapt.hybrid.rules import LinearRule
    >>> from dpadapt.privacy import Agents
    >>> rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> with Agents([[2.0]] * 900, [1] * 900).open(epsilon=3.0) as poll:
    ...     FreshAgents(poll, batch=900, beta=0.05)(rule).high < 0.2
    True
    """

    poll: Poll
    batch: int
    beta: float
    question: Callable[[Rule], Mistake | Loss] = Mistake

    def __call__(self, rule: Rule) -> Estimate:
        """What they say."""
        # one side of the interval is enough for an upper bound
        return estimate(self.poll.ask(self.question(rule), self.batch), 2 * self.beta)


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
    >>> from dpadapt.papers.hybrid.learners import GradientLearner
    >>> from dpadapt.hybrid.rules import LinearRule
    >>> from dpadapt.papers.hybrid.rounds import TightSchedule
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
