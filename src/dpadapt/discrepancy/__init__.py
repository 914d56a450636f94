"""Public labelled source, private unlabelled target (paper 000: Bassily, Mohri, Suresh 2023)."""

from .certificate import Certificate, certify
from .estimator import AdaptationWarning, DiscrepancyRegressor, GuaranteeWarning
from .minimisation import DiscrepancySolution, discrepancy, minimise_discrepancy

__all__ = [
    "AdaptationWarning",
    "Certificate",
    "DiscrepancyRegressor",
    "DiscrepancySolution",
    "GuaranteeWarning",
    "certify",
    "discrepancy",
    "minimise_discrepancy",
]
