"""Every claim of the paper's algorithms on how far private rows can move something, with its proof.

Statistics of rows are classes, what is derived from a hidden statistic a function that returns it
hidden. No other file of this folder claims a sensitivity; what the default claims, too, is in
:mod:`dpadapt.reweighting.queries`.
"""

from .adaptation import StepClaims, candidate_sensitivity, hidden_candidate_discrepancy
from .labelled_moment import LabelledMoment, hidden_labelled_discrepancy, hidden_loss
from .profiled_gradients import HuberGradient, LogisticGradient

__all__ = [
    "HuberGradient",
    "LabelledMoment",
    "LogisticGradient",
    "StepClaims",
    "candidate_sensitivity",
    "hidden_candidate_discrepancy",
    "hidden_labelled_discrepancy",
    "hidden_loss",
]
