"""What the curator's rows are asked, with the proof of how far one row can move each answer.

Every claim of sensitivity of the hybrid methods stands here, and nowhere else: where the rows are
(:mod:`.marginals`), gradients (:mod:`.slopes`), scores and weights (:mod:`.mistakes`).
"""

from .marginals import Agreements, Histograms, Proportions, pairs_of
from .mistakes import ClassLosses, Hypotheses, hide_scores, lower_weights
from .slopes import TiltedRows, TiltedSlope, Weight, WeightedJointSlope, WeightedSlope

__all__ = [
    "Agreements",
    "ClassLosses",
    "Histograms",
    "Hypotheses",
    "Proportions",
    "TiltedRows",
    "TiltedSlope",
    "Weight",
    "WeightedJointSlope",
    "WeightedSlope",
    "hide_scores",
    "lower_weights",
    "pairs_of",
]
