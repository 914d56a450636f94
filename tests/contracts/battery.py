"""All checks together."""

from __future__ import annotations

from contracts.budgets import BudgetChecks
from contracts.chance import ChanceChecks
from contracts.guarantees import GuaranteeChecks
from contracts.inputs import InputChecks
from contracts.kinds import KindChecks
from contracts.leaks import LeakChecks
from contracts.processes import ProcessChecks
from contracts.refusals import RefusalChecks
from contracts.sklearn_rules import SklearnChecks
from contracts.threads import ThreadChecks


class EstimatorContract(
    GuaranteeChecks,
    LeakChecks,
    InputChecks,
    KindChecks,
    ChanceChecks,
    SklearnChecks,
    RefusalChecks,
    BudgetChecks,
    ThreadChecks,
    ProcessChecks,
):
    """What every estimator promises, as tests."""
