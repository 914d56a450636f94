"""What fresh agents' answers promise about a rule."""

from __future__ import annotations

from dataclasses import dataclass

from dpadapt.privacy.local.replies import Estimate


class NotCertified(UserWarning):
    """No rule was shown to meet the target error; the best one seen was returned."""


@dataclass(frozen=True)
class AgentsCertificate:
    """Error of the chosen rule on the agents' population, with a bound that holds in advance.

    The agents who were asked are a random sample of that population, and those who answer speak for
    those who do not: the bound knows nothing of the silent.

    Attributes
    ----------
    error : float or None
        Unbiased estimate for the rule, if it was the only one; None if nobody answered.
    upper : float
        Above the true error with probability ``confidence`` at least, though the rule was chosen
        among others by the same answers (union bound).
    confidence : float
    target : float
        What was asked for.
    agents : int
        Answers that it rests on.
    about : str, default="mistakes"
        What the error is: the share of mistakes, or a loss over its bound.

    Examples
    --------
    >>> said = {"error": 0.04, "upper": 0.08, "confidence": 0.95, "target": 0.1}
    >>> AgentsCertificate(**said, agents=20_000).certified
    True
    >>> AgentsCertificate.none(target=0.1).certified
    False
    """

    error: float | None
    upper: float
    confidence: float
    target: float
    agents: int
    about: str = "mistakes"

    @property
    def certified(self) -> bool:
        """Whether the bound is at most the target."""
        return self.upper <= self.target

    @classmethod
    def of(cls, found: Estimate, confidence: float, target: float) -> AgentsCertificate:
        """Certificate of an estimate whose interval has room for the union bound already."""
        value = found.value if found.count else None
        return cls(value, found.high, confidence, target, found.count)

    @classmethod
    def none(cls, target: float) -> AgentsCertificate:
        """Nobody was asked, nothing is promised."""
        return cls(None, 1.0, 1.0, target, 0)
