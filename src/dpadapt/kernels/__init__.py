"""Private kernel models, released or asked point by point (paper 002).

The paper's own algorithms stand in :mod:`dpadapt.papers.kernels`; their names here are found there.
"""

from dpadapt._lazy import lazily

from .constants import KernelFacts, path_error
from .erm import certified_gradient, certified_gram_gradient
from .features import Fourier, Nystroem
from .interactive_predictor import InteractivePredictor, NoisePath
from .kernel import RBF, Chi2, Cosine, FunctionKernel, InnerProduct, Laplacian, Linear, Polynomial
from .kernel_classifier import KernelClassifier
from .kernel_regressor import KernelRegressor
from .release import GaussianProcess

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
    "InnerProduct",
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

__getattr__ = lazily(
    __name__,
    {
        "..papers.kernels.interactive_methods": "PINP SparseVector",
        "..papers.kernels.error_bounds": (
            "answer_error error_of_tdil excess_of_tddl points_of_tddl rows_for_tddl"
        ),
        "..papers.kernels.tddl": "TDDL pool_size",
        "..papers.kernels.tdil": "TDIL",
    },
)
