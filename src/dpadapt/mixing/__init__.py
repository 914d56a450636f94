"""Private fine-tuning of a linear classifier with a few public examples (paper 004).

Here is what the default needs, the descent as far as known noise allows. The paper's algorithms,
clips, projections, bounds and filters stand in :mod:`dpadapt.papers.mixing`, and are shown here.
"""

from dpadapt._lazy import lazily

from .adamix_classifier import AdaMixClassifier
from .known_noise import KnownNoise
from .solver import Steps

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

__getattr__ = lazily(
    __name__,
    {
        "..papers.mixing.adamix": "AdaMix AdaptiveClip FixedClip Theory",
        "..papers.mixing.bounds": "DescentFacts average_gap last_distance public_distance",
        "..papers.mixing.noisy_gd": "Ball Box NoisyGD NoisyGDClassifier StepsAtNoise",
        "..papers.mixing.projection": "FeatureProjection GradientProjection",
        "..papers.mixing.unsafe": "unsafe_individual_losses",
    },
)
