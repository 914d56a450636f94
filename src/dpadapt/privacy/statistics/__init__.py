"""Read if used: the forms of statistics, second moments, kernel values, rows as a map sees them."""

from .directions import Directions
from .forms import Histogram, MeanOuter, MeanProduct, MeanVector, clipped, histogram, mean_number
from .gram import Gram
from .prepared import Prepared
from .second_moment import SecondMoment

__all__ = [
    "Directions",
    "Gram",
    "Histogram",
    "MeanOuter",
    "MeanProduct",
    "MeanVector",
    "Prepared",
    "SecondMoment",
    "clipped",
    "histogram",
    "mean_number",
]
