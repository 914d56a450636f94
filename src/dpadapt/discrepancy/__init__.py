"""Public labelled source, private unlabelled target (paper 000: Bassily, Mohri, Suresh 2023)."""

from .estimator import AdaptationWarning, DiscrepancyRegressor
from .minimisation import DiscrepancySolution, discrepancy, minimise_discrepancy

__all__ = [
    "AdaptationWarning",
    "DiscrepancyRegressor",
    "DiscrepancySolution",
    "discrepancy",
    "minimise_discrepancy",
]
