"""Every claim of this method on how far private rows can move something, with its proof.

Statistics of rows are classes, what is derived from a hidden statistic a function that returns it
hidden. No other file of the method claims a sensitivity.
"""

from .adaptation import StepClaims, candidate_sensitivity, hidden_candidate_discrepancy
from .gradients import ClippedGradient, Level, LogisticGradient, RowGradient
from .moments import BoundedMoment, LabelledMoment, hidden_discrepancy, hidden_loss
from .network_gradient import NetworkGradient
from .shares import CellShares

__all__ = [
    "BoundedMoment",
    "CellShares",
    "ClippedGradient",
    "LabelledMoment",
    "Level",
    "LogisticGradient",
    "NetworkGradient",
    "RowGradient",
    "StepClaims",
    "candidate_sensitivity",
    "hidden_candidate_discrepancy",
    "hidden_discrepancy",
    "hidden_loss",
]
