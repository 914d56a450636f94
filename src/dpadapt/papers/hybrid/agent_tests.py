"""How fresh agents test a rule: with randomised bits, or as printed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dpadapt.hybrid.questions import Loss, Mistake
from dpadapt.hybrid.rules import Rule
from dpadapt.learning.constraints import Count, Flag, Fraction, Null, ParameterTable, Positive
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy.local import Estimate, Poll, estimate

from .sample_sizes import Calibration, agents_for_test


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
