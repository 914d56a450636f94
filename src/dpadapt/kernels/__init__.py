"""Private kernel models, released or asked point by point (paper 002)."""

from .asked_methods import PINP, NoisePath, SparseVector
from .erm import certified_gradient
from .error_bounds import (
    answer_error,
    error_of_tdil,
    excess_of_tddl,
    points_of_tddl,
    rows_for_tddl,
)
from .features import Fourier, Nystroem
from .function_kernel import FunctionKernel
from .gram import certified_gram_gradient
from .interactive_predictor import InteractivePredictor
from .kernel import RBF, Chi2, Cosine, Laplacian, Linear, Polynomial
from .kernel_classifier import KernelClassifier
from .kernel_facts import KernelFacts, path_error
from .kernel_regressor import KernelRegressor
from .release import GaussianProcess
from .tddl import TDDL, pool_size
from .tdil import TDIL

__all__ = [
    "PINP",
    "RBF",
    "TDDL",
    "TDIL",
    "Chi2",
    "Cosine",
    "Fourier",
    "FunctionKernel",
    "GaussianProcess",
    "InteractivePredictor",
    "KernelClassifier",
    "KernelFacts",
    "KernelRegressor",
    "Laplacian",
    "Linear",
    "NoisePath",
    "Nystroem",
    "Polynomial",
    "SparseVector",
    "answer_error",
    "certified_gradient",
    "certified_gram_gradient",
    "error_of_tdil",
    "excess_of_tddl",
    "path_error",
    "points_of_tddl",
    "pool_size",
    "rows_for_tddl",
]
