"""Public labelled source, private labelled target: supervised adaptation (paper 001).

Here stands what the defaults need. The paper's own algorithms, its theorems and its certificate are
in :mod:`dpadapt.papers.reweighting`, and are found here by name.
"""

from .._lazy import lazily
from .known_noise import KnownNoise
from .reweighting_classifier import ReweightingClassifier
from .reweighting_regressor import ReweightingRegressor

_WHERE = {
    "..papers.reweighting.certificate": "anchored_bound printed_bound",
    "..papers.reweighting.classification_solvers": "GeneralGradient ProfiledLogistic",
    "..papers.reweighting.general_adaptation": "GeneralAdaptation",
    "..papers.reweighting.labelled_discrepancy": (
        "difference_of_convex local_discrepancy one_sided_discrepancy unlabelled_discrepancy"
    ),
    "..papers.reweighting.objective": "HuberLoss SquaredLoss profile_weights profiled_objective",
    "..papers.reweighting.regression_solvers": (
        "ConvexGradient GeneralRegression Profiled Statistics"
    ),
    "..papers.reweighting.theorems": (
        "ConvexSetting gradient_mapping theorem_2 theorem_2_steps theorem_4"
    ),
}

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
    "profile_weights",
    "profiled_objective",
    "theorem_2",
    "theorem_2_steps",
    "theorem_4",
    "unlabelled_discrepancy",
]

__getattr__ = lazily(__name__, _WHERE)
