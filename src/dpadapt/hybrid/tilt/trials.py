"""Rules before fresh agents: what was asked about which, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy.local.poll import Poll
from dpadapt.privacy.local.randomisers import BinaryResponse
from dpadapt.privacy.local.replies import Estimate, estimate

from ..questions import Mistake
from ..rules import LinearRule
from .plan import ROUNDS, AgentShares
from .ratio import Cap

FAILURE = 0.05  # probability that a certificate is wrong
_CUTS = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)  # logits
_OWN = 3
_AT_ONCE = 5  # rules that may be returned: the first two, and three at last


@dataclass(frozen=True, eq=False)
class Trial:
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
    >>> Trial("plain", rule, Estimate(0.1, 0.05, 0.15, 1000)).guess
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
    >>> only = Trial("plain", rule, Estimate(0.1, 0.05, 0.15, 1000))
    >>> Outcome(only, (only,), Cap.none(0.0), overlap=True).best.name
    'plain'
    """

    best: Trial
    candidates: tuple[Trial, ...]
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
    >>> from dpadapt.privacy.local.agents import Agents
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
        self.seen: list[Trial] = []
        self._rounds = 0

    def first(self, name: str, rule: LinearRule) -> Trial:
        """Ask about one of the first two rules."""
        return self._ask(name, rule, self.shares.trial, FAILURE / _AT_ONCE)

    def round(self, rule: LinearRule) -> Trial:
        """Ask about a reweighed rule."""
        self._rounds += 1
        return self._ask(f"reweighed {self._rounds}", rule, self.shares.round, FAILURE)

    def clearly_better(self, others: list[Trial], than: Trial) -> Trial:
        """Best of the others if it is better by a standard error of the difference at least.

        Where no rule is good, the luckiest of several small samples is not the best one.
        """
        found = best(others)
        counts = [each.error.count for each in (found, than)]
        if not min(counts):
            return best([found, than])
        variance = BinaryResponse(self.poll.epsilon).proxy * sum(1 / each for each in counts)
        return found if found.guess + math.sqrt(variance) < than.guess else than

    def levelled(self, rule: LinearRule, count: int) -> Trial:
        """Ask where the rule should cut: its own score, or one to some logits off.

        One class may be much rarer among agents than in the curator's rows. That is one number, and
        agents tell it better than a gradient in all columns. Errors at neighbouring cuts are alike,
        so they are averaged (1, 2, 1); the rule's own cut stays unless another one is better by a
        standard error.
        """
        each = count // len(_CUTS)
        rules = [rule.with_coefficients(_raised(rule, cut)) for cut in _CUTS]
        asked = [estimate(self.poll.ask(Mistake(one), each), 2 * FAILURE) for one in rules]
        if not all(one.count for one in asked):
            return Trial("level", rule, asked[_OWN])
        values = np.array([one.value for one in asked])
        padded = np.concatenate([values[:1], values, values[-1:]])
        smooth = (padded[:-2] + 2 * values + padded[2:]) / 4
        error = math.sqrt(BinaryResponse(self.poll.epsilon).proxy / max(1, each))
        place = int(smooth.argmin())
        if smooth[place] + error > smooth[_OWN]:
            place = _OWN
        found = replace(asked[place], value=float(smooth[place]))
        self.seen.append(Trial("level", rules[place], found))
        return self.seen[-1]

    def verdict(self, rules: dict[str, LinearRule], earlier: tuple[Trial, ...] = ()) -> Trial:
        """Best of the last candidates, or of earlier ones if these were clearly better.

        Upper bounds hold for all of them at once. All last candidates come from the one of the
        first two that seemed better. If that was a mistake, agents say so now.
        """
        count = self.shares.verdict + (ROUNDS - self._rounds) * self.shares.round
        each, beta = count // len(rules), FAILURE / (len(rules) + len(earlier))
        found = best([self._ask(name, rule, each, beta) for name, rule in rules.items()])
        return self.clearly_better(list(earlier), found) if earlier else found

    def _ask(self, name: str, rule: LinearRule, count: int, beta: float) -> Trial:
        # one side of the interval is enough for an upper bound
        found = estimate(self.poll.ask(Mistake(rule), count), 2 * beta)
        self.seen.append(Trial(name, rule, found))
        return self.seen[-1]


def _raised(rule: LinearRule, cut: float) -> NDArray[np.float64]:
    """Coefficients whose constant is so many logits higher."""
    raised = rule.coefficients.copy()
    raised[-1] += cut * rule.clip
    return raised


def best(candidates: list[Trial]) -> Trial:
    """Return the one with the smallest estimated error.

    Examples
    --------
    >>> rule = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], (0, 1))
    >>> errors = {"one": Estimate(0.3, 0.2, 0.4, 99), "two": Estimate(0.1, 0.0, 0.2, 99)}
    >>> best([Trial(name, rule, error) for name, error in errors.items()]).name
    'two'
    """
    return min(candidates, key=lambda each: each.guess)
