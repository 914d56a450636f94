# The public names: a type checker reads them here, and so does Python, when one is asked for.

from .auto import AutoClassifier as AutoClassifier
from .auto import AutoRegressor as AutoRegressor
from .discrepancy import DiscrepancyRegressor as DiscrepancyRegressor
from .evaluation import evaluate as evaluate
from .hybrid import HybridTilt as HybridTilt
from .hybrid import SubsampleTestReweigh as SubsampleTestReweigh
from .kernels import InteractivePredictor as InteractivePredictor
from .kernels import KernelClassifier as KernelClassifier
from .kernels import KernelRegressor as KernelRegressor
from .mixing import AdaMixClassifier as AdaMixClassifier
from .mixing import NoisyGDClassifier as NoisyGDClassifier
from .modelfolder import load_model as load_model
from .modelfolder import save_model as save_model
from .pipeline import AdaptationPipeline as AdaptationPipeline
from .privacy import Agents as Agents
from .privacy import BudgetExceeded as BudgetExceeded
from .privacy import Guarantee as Guarantee
from .privacy import PrivacyError as PrivacyError
from .privacy import Private as Private
from .privacy import Schema as Schema
from .rare import class_errors as class_errors
from .rare import predict_classes as predict_classes
from .reweighting import ReweightingClassifier as ReweightingClassifier
from .reweighting import ReweightingRegressor as ReweightingRegressor

__version__: str
