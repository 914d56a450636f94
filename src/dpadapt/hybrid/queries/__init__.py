"""What the curator's rows are asked, with the proof of how far one row can move each answer.

Every claim of sensitivity of HybridTilt stands here, and nowhere else: where the rows are
(:mod:`.marginals`), and gradients (:mod:`.slopes`).
"""

from .marginals import Agreements, Histograms, Proportions, pairs_of
from .slopes import TiltedRows, TiltedSlope, Weight

__all__ = [
    "Agreements",
    "Histograms",
    "Proportions",
    "TiltedRows",
    "TiltedSlope",
    "Weight",
    "pairs_of",
]
