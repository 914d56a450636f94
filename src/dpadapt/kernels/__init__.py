"""Private kernel models, released or asked point by point (paper 002)."""

from .classifier import KernelClassifier
from .interactive import InteractivePredictor
from .regressor import KernelRegressor

__all__ = ["InteractivePredictor", "KernelClassifier", "KernelRegressor"]
