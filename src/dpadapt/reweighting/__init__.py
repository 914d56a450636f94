"""Public labelled source, private labelled target: supervised adaptation (paper 001)."""

from .classifier import ReweightingClassifier
from .regressor import ReweightingRegressor

__all__ = ["ReweightingClassifier", "ReweightingRegressor"]
