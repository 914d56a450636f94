"""One curator with private rows, many people who trust nobody (paper 003: Kohen, Sheffet)."""

from dpadapt.privacy import Agents

from .agent_tests import BitTest, PaperTest
from .certificate import NotCertified
from .divergences import Divergences
from .estimator_learner import EstimatorLearner
from .finite_class import FiniteClassLearner
from .gradient_learner import GradientLearner
from .hybrid_tilt import HybridTilt
from .non_private import non_private_subsample_test_reweigh
from .parity import ParityLearner, parity_rows
from .sample_sizes import (
    rounds_with_schedule,
    rows_for_a_finite_class,
    rows_for_utility,
    sizes_of_algorithm_1,
    sizes_of_algorithm_2,
    sizes_of_algorithm_4,
)
from .schedules import PaperSchedule, TightSchedule
from .sgd_learner import SGDLearner
from .subsample_test_reweigh import SubsampleTestReweigh
from .units import FeatureUnits

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
