"""Every claim of this method on how far private rows can move something, with its proof.

Statistics of rows are classes, what is derived from a hidden statistic a function that returns it
hidden. No other file of the method claims a sensitivity; those of the paper's own algorithms are in
:mod:`dpadapt.papers.reweighting.queries`.
"""

from .gradients import Level, RowGradient
from .moments import BoundedMoment
from .network_gradient import NetworkGradient
from .shares import CellShares

__all__ = ["BoundedMoment", "CellShares", "Level", "NetworkGradient", "RowGradient"]
