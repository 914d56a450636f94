"""Private fine-tuning of a linear classifier with a few public examples (paper 004)."""

from .adamix import AdaMix
from .adamix_classifier import AdaMixClassifier
from .bounds import DescentFacts, average_gap, last_distance, public_distance
from .clipping import AdaptiveClip, FixedClip
from .constraint import Ball, Box
from .known_noise import KnownNoise
from .noisy_gd import NoisyGD
from .noisy_gd_classifier import NoisyGDClassifier
from .projection import FeatureProjection, GradientProjection
from .steps import Steps, StepsAtNoise
from .theory import Theory
from .unsafe import unsafe_individual_losses

__all__ = [
    "AdaMix",
    "AdaMixClassifier",
    "AdaptiveClip",
    "Ball",
    "Box",
    "DescentFacts",
    "FeatureProjection",
    "FixedClip",
    "GradientProjection",
    "KnownNoise",
    "NoisyGD",
    "NoisyGDClassifier",
    "Steps",
    "StepsAtNoise",
    "Theory",
    "average_gap",
    "last_distance",
    "public_distance",
    "unsafe_individual_losses",
]
