"""Read one: what may come out of a session, each with its event, its sampler and its proof."""

from .counted import count_labels
from .exponential import Exponential, ExponentialOnBall
from .filtered import EachRow, FilteredGaussian, FilteredMean
from .gaussian import Gaussian, GaussianInside, GaussianProcess, SymmetricGaussian
from .laplace import Laplace, LaplaceMin
from .path import GaussianPath
from .purse import GaussianPurse
from .randomised_response import RandomisedResponse
from .selection import CandidateLosses, best_of_random_runs, hide_losses, holdout_choice

__all__ = [
    "CandidateLosses",
    "EachRow",
    "Exponential",
    "ExponentialOnBall",
    "FilteredGaussian",
    "FilteredMean",
    "Gaussian",
    "GaussianInside",
    "GaussianPath",
    "GaussianProcess",
    "GaussianPurse",
    "Laplace",
    "LaplaceMin",
    "RandomisedResponse",
    "SymmetricGaussian",
    "best_of_random_runs",
    "count_labels",
    "hide_losses",
    "holdout_choice",
]
