"""The trusted core, which reads private rows; beside it only the files that ``READERS`` names.

Private rows go through three states. :class:`Private` holds them, a :class:`Session` turns them
into :class:`Hidden` statistics that nobody can look at, and a mechanism releases those with noise
that was calibrated and charged for beforehand. The :class:`Guarantee` follows from the events.

Here stands what every method needs. What may come out is in ``dpadapt.privacy.mechanisms``, more
statistics are in ``dpadapt.privacy.statistics``, people who trust nobody in
``dpadapt.privacy.local``, and the arithmetic of budgets in ``dpadapt.privacy.accounting``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.cleaning import Cleaning, RowMap, shrink_factors
from .core.guarantee import Guarantee
from .core.hidden import Hidden
from .core.mechanism import Grant, Mechanism
from .core.private import Private
from .core.session import Session
from .core.statistic import RowMean, Rows, RowSum, Statistic
from .local.agents import Agents
from .rows.errors import BudgetExceeded, LedgerError, PrivacyError, StorageError
from .rows.schema import Schema

if TYPE_CHECKING:
    from .ledger.ledger import Account, Ledger

__all__ = [
    "Account",
    "Agents",
    "BudgetExceeded",
    "Cleaning",
    "Grant",
    "Guarantee",
    "Hidden",
    "Ledger",
    "LedgerError",
    "Mechanism",
    "PrivacyError",
    "Private",
    "RowMap",
    "RowMean",
    "RowSum",
    "Rows",
    "Schema",
    "Session",
    "Statistic",
    "StorageError",
    "shrink_factors",
]


def __getattr__(name: str) -> Any:
    """Import the ledger, and with it SQLAlchemy, only when it is asked for."""
    if name in ("Ledger", "Account"):
        return getattr(import_module(".ledger.ledger", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
