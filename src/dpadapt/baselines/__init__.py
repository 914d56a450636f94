"""What people would use instead: the methods that this library's own are compared with.

Private ones follow the conventions of the library. Those that read the target in the clear
(``NonPrivate*``, ``KMM*``, ``DiscrepancyMinimisationRegressor``) are yardsticks: they take plain
arrays, never a ``Private``.
"""

from .adassp import AdaSSPClassifier, AdaSSPRegressor
from .discrepancy_minimisation import DiscrepancyMinimisationRegressor
from .kernel_mean_matching import (
    KMMClassifier,
    KMMRegressor,
    MatchingSolution,
    kernel_mean_matching,
)
from .noisy_gradient import NoisyGradientClassifier, NoisyGradientRegressor
from .noisy_sgd import NoisySGDRegressor
from .objective_perturbation import (
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
)
from .pooled import NonPrivateClassifier, NonPrivateRegressor
from .public_only import PublicOnlyClassifier, PublicOnlyRegressor

__all__ = [
    "AdaSSPClassifier",
    "AdaSSPRegressor",
    "DiscrepancyMinimisationRegressor",
    "KMMClassifier",
    "KMMRegressor",
    "MatchingSolution",
    "NoisyGradientClassifier",
    "NoisyGradientRegressor",
    "NoisySGDRegressor",
    "NonPrivateClassifier",
    "NonPrivateRegressor",
    "ObjectivePerturbationClassifier",
    "ObjectivePerturbationRegressor",
    "PublicOnlyClassifier",
    "PublicOnlyRegressor",
    "kernel_mean_matching",
]
