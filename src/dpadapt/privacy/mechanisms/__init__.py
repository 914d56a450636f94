"""Read one: what may come out of a session, each with its event, its sampler and its proof.

Those that only the papers' own algorithms use stand in :mod:`dpadapt.papers`, and are found here by
name.
"""

from ..._lazy import lazily
from .counted import count_labels
from .gaussian import Gaussian, GaussianInside, GaussianPool, SymmetricGaussian
from .path import GaussianPath
from .purse import GaussianPurse
from .randomised_response import RandomisedResponse

_WHERE = {
    "...papers.mixing.filtered": "EachRow FilteredGaussian FilteredMean",
    "...papers.selection.candidates": (
        "CandidateLosses best_of_random_runs hide_losses holdout_choice"
    ),
    "...papers.selection.exponential": "Exponential ExponentialOnBall",
    "...papers.selection.laplace": "Laplace LaplaceMin",
}

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
    "GaussianPool",
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

__getattr__ = lazily(__name__, _WHERE)
