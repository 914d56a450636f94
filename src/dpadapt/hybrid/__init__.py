"""One curator with private rows, many people who trust nobody (paper 003: Kohen, Sheffet)."""

from dpadapt.privacy import Agents

from .certificate import NotCertified
from .estimator import HybridTilt
from .estimator_learner import EstimatorLearner
from .finite_class import FiniteClassLearner
from .gradient_learner import GradientLearner
from .parity import ParityLearner
from .sgd_learner import SGDLearner
from .str_estimator import SubsampleTestReweigh

__all__ = [
    "Agents",
    "EstimatorLearner",
    "FiniteClassLearner",
    "GradientLearner",
    "HybridTilt",
    "NotCertified",
    "ParityLearner",
    "SGDLearner",
    "SubsampleTestReweigh",
]
