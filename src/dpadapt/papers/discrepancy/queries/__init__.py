"""What this method claims about one replaced row, each claim with its proof.

All of it rests on the private second moment (:class:`dpadapt.privacy.statistics.SecondMoment`):
:mod:`.bounds` says how far one row moves it, :mod:`.gradients` what that does to the gradient of a
smoothing, :mod:`.joint` to the steps of the single stage, :mod:`.distances` to the discrepancy.
"""

from .bounds import RowBounds, bounds_of
from .distances import choice_range, discrepancy_move, hidden_discrepancies, hidden_discrepancy
from .gradients import (
    Scores,
    Smoothing,
    gradient_spread,
    hidden_gradient,
    hidden_gradient_matrix,
    hidden_scores,
)
from .joint import (
    Objective,
    gap_range,
    hidden_coefficient_gradient,
    hidden_gaps,
    hidden_weight_gradient,
    vertex_range,
)

__all__ = [
    "Objective",
    "RowBounds",
    "Scores",
    "Smoothing",
    "bounds_of",
    "choice_range",
    "discrepancy_move",
    "gap_range",
    "gradient_spread",
    "hidden_coefficient_gradient",
    "hidden_discrepancies",
    "hidden_discrepancy",
    "hidden_gaps",
    "hidden_gradient",
    "hidden_gradient_matrix",
    "hidden_scores",
    "hidden_weight_gradient",
    "vertex_range",
]
