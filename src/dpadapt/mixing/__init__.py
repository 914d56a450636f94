"""Private fine-tuning of a linear classifier with a few public examples (paper 004)."""

from .adamix_classifier import AdaMixClassifier
from .noisy_gd_classifier import NoisyGDClassifier
from .unsafe import unsafe_individual_losses

__all__ = ["AdaMixClassifier", "NoisyGDClassifier", "unsafe_individual_losses"]
