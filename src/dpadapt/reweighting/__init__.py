"""Public labelled source, private labelled target: supervised adaptation (paper 001)."""

from .certificate import anchored_bound, printed_bound
from .classification_solvers import GeneralGradient, ProfiledLogistic
from .general_adaptation import GeneralAdaptation
from .known_noise_solver import KnownNoise
from .labelled_discrepancy import difference_of_convex
from .objective import HuberLoss, SquaredLoss
from .other_discrepancies import (
    local_discrepancy,
    one_sided_discrepancy,
    unlabelled_discrepancy,
)
from .profile import profiled_objective
from .regression_solvers import ConvexGradient, GeneralRegression, Profiled, Statistics
from .reweighting_classifier import ReweightingClassifier
from .reweighting_regressor import ReweightingRegressor
from .theorems import (
    ConvexSetting,
    gradient_mapping,
    theorem_2,
    theorem_2_steps,
    theorem_4,
)

__all__ = [
    "ConvexGradient",
    "ConvexSetting",
    "GeneralAdaptation",
    "GeneralGradient",
    "GeneralRegression",
    "HuberLoss",
    "KnownNoise",
    "Profiled",
    "ProfiledLogistic",
    "ReweightingClassifier",
    "ReweightingRegressor",
    "SquaredLoss",
    "Statistics",
    "anchored_bound",
    "difference_of_convex",
    "gradient_mapping",
    "local_discrepancy",
    "one_sided_discrepancy",
    "printed_bound",
    "profiled_objective",
    "theorem_2",
    "theorem_2_steps",
    "theorem_4",
    "unlabelled_discrepancy",
]
