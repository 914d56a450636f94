"""The trusted core: the only package that reads private rows.

Private rows go through three states. :class:`Private` holds them, a :class:`Session` turns them
into :class:`Hidden` statistics that nobody can look at, and a mechanism releases those with noise
that was calibrated and charged for beforehand. The :class:`Guarantee` follows from the events.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .agents import AgentAskedTwice, Agents, NotEnoughAgents, Poll
from .calibration import calibrate, gaussian_mu, zcdp_rho
from .cleaning import Cleaning, Directions, Prepared, RowMap
from .composition import compose_delta, compose_epsilon, pld_epsilon
from .descent import Descent
from .errors import BudgetExceeded, LedgerError, PrivacyError
from .gram import Gram
from .grants import Grant, Hidden, Request
from .guarantee import Guarantee
from .private import Private
from .queries import Query, SecondMoment
from .randomisers import BallResponse, BinaryResponse, GaussianResponse
from .replies import Estimate, Replies, agents_needed, estimate
from .schema import Schema
from .selection import CandidateLosses, best_of_random_runs, holdout_request
from .session import Session
from .weighted import WeightedQuery, weighted_sensitivity
from .weights import RowWeights, density_schedule, draw_rate

if TYPE_CHECKING:
    from .ledger import Account, Ledger

__all__ = [
    "Account",
    "AgentAskedTwice",
    "Agents",
    "BallResponse",
    "BinaryResponse",
    "BudgetExceeded",
    "CandidateLosses",
    "Cleaning",
    "Descent",
    "Directions",
    "Estimate",
    "GaussianResponse",
    "Gram",
    "Grant",
    "Guarantee",
    "Hidden",
    "Ledger",
    "LedgerError",
    "NotEnoughAgents",
    "Poll",
    "Prepared",
    "PrivacyError",
    "Private",
    "Query",
    "Replies",
    "Request",
    "RowMap",
    "RowWeights",
    "Schema",
    "SecondMoment",
    "Session",
    "WeightedQuery",
    "agents_needed",
    "best_of_random_runs",
    "calibrate",
    "compose_delta",
    "compose_epsilon",
    "density_schedule",
    "draw_rate",
    "estimate",
    "gaussian_mu",
    "holdout_request",
    "pld_epsilon",
    "weighted_sensitivity",
    "zcdp_rho",
]


def __getattr__(name: str) -> Any:
    """Import the ledger, and with it SQLAlchemy, only when it is asked for."""
    if name in ("Ledger", "Account"):
        return getattr(import_module(".ledger", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
