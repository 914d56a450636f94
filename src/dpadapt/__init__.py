"""Learn a predictor for a private domain with the help of public data.

With the predictor comes a differential-privacy guarantee that is computed from what really ran.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .auto import AutoClassifier, AutoRegressor
    from .discrepancy import DiscrepancyRegressor
    from .evaluation import evaluate
    from .hybrid import HybridTilt, SubsampleTestReweigh
    from .kernels import InteractivePredictor, KernelClassifier, KernelRegressor
    from .mixing import AdaMixClassifier, NoisyGDClassifier
    from .modelfolder import load_model, save_model
    from .pipeline import AdaptationPipeline
    from .privacy import Agents, BudgetExceeded, Guarantee, PrivacyError, Private, Schema
    from .rare import class_errors, predict_classes
    from .reweighting import ReweightingClassifier, ReweightingRegressor

__version__ = "0.1.0"

__all__ = [
    "AdaMixClassifier",
    "AdaptationPipeline",
    "Agents",
    "AutoClassifier",
    "AutoRegressor",
    "BudgetExceeded",
    "DiscrepancyRegressor",
    "Guarantee",
    "HybridTilt",
    "InteractivePredictor",
    "KernelClassifier",
    "KernelRegressor",
    "NoisyGDClassifier",
    "PrivacyError",
    "Private",
    "ReweightingClassifier",
    "ReweightingRegressor",
    "Schema",
    "SubsampleTestReweigh",
    "class_errors",
    "evaluate",
    "load_model",
    "predict_classes",
    "save_model",
]

_WHERE = {
    "AdaMixClassifier": ".mixing",
    "AdaptationPipeline": ".pipeline",
    "Agents": ".privacy",
    "AutoClassifier": ".auto",
    "AutoRegressor": ".auto",
    "BudgetExceeded": ".privacy",
    "DiscrepancyRegressor": ".discrepancy",
    "Guarantee": ".privacy",
    "HybridTilt": ".hybrid",
    "InteractivePredictor": ".kernels",
    "KernelClassifier": ".kernels",
    "KernelRegressor": ".kernels",
    "NoisyGDClassifier": ".mixing",
    "PrivacyError": ".privacy",
    "Private": ".privacy",
    "ReweightingClassifier": ".reweighting",
    "ReweightingRegressor": ".reweighting",
    "Schema": ".privacy",
    "SubsampleTestReweigh": ".hybrid",
    "class_errors": ".rare",
    "evaluate": ".evaluation",
    "load_model": ".modelfolder",
    "predict_classes": ".rare",
    "save_model": ".modelfolder",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and with it scikit-learn and pandas, only then."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
