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
        "..papers.mixing.adamix": "AdaMix",
        "..papers.mixing.bounds": "DescentFacts average_gap last_distance public_distance",
        "..papers.mixing.clipping": "AdaptiveClip FixedClip",
        "..papers.mixing.constraint": "Ball Box",
        "..papers.mixing.noisy_gd": "NoisyGD",
        "..papers.mixing.noisy_gd_classifier": "NoisyGDClassifier",
        "..papers.mixing.projection": "FeatureProjection GradientProjection",
        "..papers.mixing.steps": "StepsAtNoise",
        "..papers.mixing.theory": "Theory",
        "..papers.mixing.unsafe": "unsafe_individual_losses",
    },
)
