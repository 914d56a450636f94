"""Read if used: kernel values of rows, and weights of rows."""

from .directions import Directions
from .gram import Gram
from .prepared import Prepared
from .second_moment import SecondMoment
from .weighted import Weighted, WeightedMean, reweigh, weighted_sensitivity
from .weights import RowWeights, density_schedule, draw_rate

__all__ = [
    "Directions",
    "Gram",
    "Prepared",
    "RowWeights",
    "SecondMoment",
    "Weighted",
    "WeightedMean",
    "density_schedule",
    "draw_rate",
    "reweigh",
    "weighted_sensitivity",
]
