"""One curator with private rows, many people who trust nobody (paper 003: Kohen, Sheffet).

:class:`HybridTilt` is the default; the paper's method stands in :mod:`dpadapt.papers.hybrid`, and
its names here are found there.
"""

from dpadapt._lazy import lazily
from dpadapt.privacy import Agents

from ._classifier import FeatureUnits, NotCertified
from .hybrid_tilt import HybridTilt

__all__ = [
    "Agents",
    "BitTest",
    "Divergences",
    "EstimatorLearner",
    "FeatureUnits",
    "FiniteClassLearner",
    "GradientLearner",
    "HybridTilt",
    "NotCertified",
    "PaperSchedule",
    "PaperTest",
    "ParityLearner",
    "SGDLearner",
    "SubsampleTestReweigh",
    "TightSchedule",
    "non_private_subsample_test_reweigh",
    "parity_rows",
    "rounds_with_schedule",
    "rows_for_a_finite_class",
    "rows_for_utility",
    "sizes_of_algorithm_1",
    "sizes_of_algorithm_2",
    "sizes_of_algorithm_4",
]

__getattr__ = lazily(
    __name__,
    {
        "..papers.hybrid.finite_class": "FiniteClassLearner",
        "..papers.hybrid.learners": (
            "EstimatorLearner GradientLearner ParityLearner SGDLearner parity_rows"
        ),
        "..papers.hybrid.non_private": "Divergences non_private_subsample_test_reweigh",
        "..papers.hybrid.rounds": "BitTest PaperSchedule PaperTest TightSchedule",
        "..papers.hybrid.sample_sizes": (
            "rounds_with_schedule rows_for_a_finite_class rows_for_utility sizes_of_algorithm_1 "
            "sizes_of_algorithm_2 sizes_of_algorithm_4"
        ),
        "..papers.hybrid.subsample_test_reweigh": "SubsampleTestReweigh",
    },
)
