"""Read if used: kernel values of rows, second moments, rows as a public function sees them."""

from .directions import Directions
from .gram import Gram
from .prepared import Prepared
from .second_moment import SecondMoment

__all__ = [
    "Directions",
    "Gram",
    "Prepared",
    "SecondMoment",
]
