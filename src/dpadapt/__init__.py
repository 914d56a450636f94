"""Learn a predictor for a private domain with the help of public data.

With the predictor comes a differential-privacy guarantee that is computed from what really ran.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .privacy import Agents, BudgetExceeded, Guarantee, PrivacyError, Private, Schema

if TYPE_CHECKING:
    from .discrepancy import DiscrepancyRegressor
    from .hybrid import HybridTilt, SubsampleTestReweigh
    from .kernels import InteractivePredictor, KernelClassifier, KernelRegressor
    from .mixing import AdaMixClassifier, NoisyGDClassifier
    from .pipeline import AdaptationPipeline
    from .reweighting import ReweightingClassifier, ReweightingRegressor

__version__ = "0.1.0"

__all__ = [
    "AdaMixClassifier",
    "AdaptationPipeline",
    "Agents",
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
]

_WHERE = {
    "AdaMixClassifier": ".mixing",
    "AdaptationPipeline": ".pipeline",
    "DiscrepancyRegressor": ".discrepancy",
    "HybridTilt": ".hybrid",
    "InteractivePredictor": ".kernels",
    "KernelClassifier": ".kernels",
    "KernelRegressor": ".kernels",
    "NoisyGDClassifier": ".mixing",
    "ReweightingClassifier": ".reweighting",
    "ReweightingRegressor": ".reweighting",
    "SubsampleTestReweigh": ".hybrid",
}


def __getattr__(name: str) -> Any:
    """Import estimators, and with them scikit-learn and pandas, only when they are asked for."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
