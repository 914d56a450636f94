"""Measure a fitted model on private rows it was not trained on, with a guarantee for them."""

from dpadapt.privacy.units import hold_out

from .evaluation import Evaluation, Measured
from .intervals import Interval
from .private_error import evaluate

__all__ = ["Evaluation", "Interval", "Measured", "evaluate", "hold_out"]
