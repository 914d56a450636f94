"""The trusted core: the only package that reads private rows.

Private rows go through three states. :class:`Private` holds them, a :class:`Session` turns them
into :class:`Hidden` statistics that nobody can look at, and a mechanism releases those with noise
that was calibrated and charged for beforehand. The :class:`Guarantee` follows from the events.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .accounting.calibration import calibrate, gaussian_mu
from .accounting.composition import compose_delta, compose_epsilon, pld_epsilon
from .core.cleaning import Cleaning, RowMap, shrink_factors
from .core.errors import BudgetExceeded, LedgerError, PrivacyError
from .core.guarantee import Guarantee
from .core.hidden import Hidden
from .core.mechanism import Grant, Mechanism
from .core.private import Private
from .core.session import Session
from .core.statistic import RowMean, Rows, RowSum, Statistic
from .local.agents import AgentAskedTwice, Agents, NotEnoughAgents, Poll
from .local.randomisers import BallResponse, BinaryResponse, GaussianResponse
from .local.replies import Estimate, Replies, agents_needed, estimate
from .mechanisms.descent import Descent, DrawnDescent
from .mechanisms.draws import LearnOnDraws, draws
from .mechanisms.exponential import Exponential, ExponentialOnBall
from .mechanisms.filtered import EachRow, FilteredGaussian, FilteredMean
from .mechanisms.gaussian import Gaussian, GaussianInside, GaussianProcess, SymmetricGaussian
from .mechanisms.laplace import Laplace, LaplaceMin
from .mechanisms.parity import Parity
from .mechanisms.path import GaussianPath
from .mechanisms.purse import GaussianPurse
from .mechanisms.randomised_response import RandomisedResponse
from .mechanisms.selection import CandidateLosses, best_of_random_runs, hide_losses, holdout_choice
from .rows.schema import Schema
from .statistics.directions import Directions
from .statistics.gram import Gram
from .statistics.prepared import Prepared
from .statistics.second_moment import SecondMoment
from .statistics.weighted import Weighted, WeightedMean, reweigh, weighted_sensitivity
from .statistics.weights import RowWeights, density_schedule, draw_rate

if TYPE_CHECKING:
    from .ledger.ledger import Account, Ledger

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
    "DrawnDescent",
    "EachRow",
    "Estimate",
    "Exponential",
    "ExponentialOnBall",
    "FilteredGaussian",
    "FilteredMean",
    "Gaussian",
    "GaussianInside",
    "GaussianPath",
    "GaussianProcess",
    "GaussianPurse",
    "GaussianResponse",
    "Gram",
    "Grant",
    "Guarantee",
    "Hidden",
    "Laplace",
    "LaplaceMin",
    "LearnOnDraws",
    "Ledger",
    "LedgerError",
    "Mechanism",
    "NotEnoughAgents",
    "Parity",
    "Poll",
    "Prepared",
    "PrivacyError",
    "Private",
    "RandomisedResponse",
    "Replies",
    "RowMap",
    "RowMean",
    "RowSum",
    "RowWeights",
    "Rows",
    "Schema",
    "SecondMoment",
    "Session",
    "Statistic",
    "SymmetricGaussian",
    "Weighted",
    "WeightedMean",
    "agents_needed",
    "best_of_random_runs",
    "calibrate",
    "compose_delta",
    "compose_epsilon",
    "density_schedule",
    "draw_rate",
    "draws",
    "estimate",
    "gaussian_mu",
    "hide_losses",
    "holdout_choice",
    "pld_epsilon",
    "reweigh",
    "shrink_factors",
    "weighted_sensitivity",
]


def __getattr__(name: str) -> Any:
    """Import the ledger, and with it SQLAlchemy, only when it is asked for."""
    if name in ("Ledger", "Account"):
        return getattr(import_module(".ledger.ledger", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
