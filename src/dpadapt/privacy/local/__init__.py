"""Read for hybrid methods: agents who randomise their own answers, a second core."""

from .agents import Agents
from .poll import AgentAskedTwice, NotEnoughAgents, Poll
from .randomisers import BallResponse, BinaryResponse, GaussianResponse
from .replies import Estimate, Replies, agents_needed, estimate

__all__ = [
    "AgentAskedTwice",
    "Agents",
    "BallResponse",
    "BinaryResponse",
    "Estimate",
    "GaussianResponse",
    "NotEnoughAgents",
    "Poll",
    "Replies",
    "agents_needed",
    "estimate",
]
