"""Rules before fresh agents: what was asked about which, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpadapt.privacy.agents import Poll
from dpadapt.privacy.replies import Estimate, estimate

from .questions import Mistake
from .rules import LinearRule
from .tilt_plan import ROUNDS, AgentShares
from .tilt_ratio import Cap

__all__ = ["FAILURE", "Candidate", "Outcome", "Trials", "best"]

FAILURE = 0.05  # probability that a certificate is wrong


@dataclass(frozen=True, eq=False)
class Candidate:
    """A rule that agents were asked about, and what they said.

    Attributes
    ----------
    name : str
    rule : LinearRule
    error : Estimate
        Of its error on the agents' population.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> Candidate("plain", rule, Estimate(0.1, 0.05, 0.15, 1000)).guess
    0.1
    """

    name: str
    rule: LinearRule
    error: Estimate

    @property
    def guess(self) -> float:
        """Estimated error; infinite if nobody answered."""
        return self.error.value if self.error.count else math.inf


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run found.

    Attributes
    ----------
    best : Candidate
    candidates : tuple of Candidate
        All that were compared, in order.
    cap : Cap
        Of the tilt.
    overlap : bool
        False if the agents are so far from the curator's rows that no tilt was tried.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> only = Candidate("plain", rule, Estimate(0.1, 0.05, 0.15, 1000))
    >>> Outcome(only, (only,), Cap.none(0.0), overlap=True).best.name
    'plain'
    """

    best: Candidate
    candidates: tuple[Candidate, ...]
    cap: Cap
    overlap: bool


class Trials:
    """Questions about rules, each to fresh agents.

    Attributes
    ----------
    seen : list of Candidate

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.privacy.agents import Agents
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> with Agents(X, X[:, 0] > 0.0).open(epsilon=2.0) as poll:
    ...     trials = Trials(poll, AgentShares.of(20_000, 1))
    ...     found = trials.verdict({"right": rule, "turned round": rule.with_coefficients([-1, 0])})
    >>> found.name, len(trials.seen)
    ('right', 2)
    """

    def __init__(self, poll: Poll, shares: AgentShares) -> None:
        self.poll, self.shares = poll, shares
        self.seen: list[Candidate] = []
        self._rounds = 0

    def first(self, name: str, rule: LinearRule) -> Candidate:
        """Ask about one of the first two rules."""
        return self._ask(name, rule, self.shares.trial, FAILURE)

    def round(self, rule: LinearRule) -> Candidate:
        """Ask about a reweighed rule."""
        self._rounds += 1
        return self._ask(f"reweighed {self._rounds}", rule, self.shares.round, FAILURE)

    def verdict(self, rules: dict[str, LinearRule]) -> Candidate:
        """Best of the last candidates; their upper bounds hold for all of them at once."""
        count = self.shares.verdict + (ROUNDS - self._rounds) * self.shares.round
        each, beta = count // len(rules), FAILURE / len(rules)
        return best([self._ask(name, rule, each, beta) for name, rule in rules.items()])

    def _ask(self, name: str, rule: LinearRule, count: int, beta: float) -> Candidate:
        # one side of the interval is enough for an upper bound
        found = estimate(self.poll.ask(Mistake(rule), count), 2 * beta)
        self.seen.append(Candidate(name, rule, found))
        return self.seen[-1]


def best(candidates: list[Candidate]) -> Candidate:
    """Return the one with the smallest estimated error.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> errors = {"one": Estimate(0.3, 0.2, 0.4, 99), "two": Estimate(0.1, 0.0, 0.2, 99)}
    >>> best([Candidate(name, rule, error) for name, error in errors.items()]).name
    'two'
    """
    return min(candidates, key=lambda each: each.guess)
