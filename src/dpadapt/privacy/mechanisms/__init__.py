"""Read one: what may come out of a session, each with its event, its sampler and its proof.

Those that only the papers' own algorithms use stand in :mod:`dpadapt.papers`, and are found here by
name.
"""

from ..._lazy import lazily
from .counted import count_labels
from .descent import Descent, DrawnDescent
from .draws import LearnOnDraws
from .filtered import EachRow, FilteredGaussian, FilteredMean
from .gaussian import Gaussian, GaussianInside, GaussianProcess, SymmetricGaussian
from .parity import Parity
from .path import GaussianPath
from .purse import GaussianPurse
from .randomised_response import RandomisedResponse

_WHERE = {
    "...papers.selection.candidates": (
        "CandidateLosses best_of_random_runs hide_losses holdout_choice"
    ),
    "...papers.selection.exponential": "Exponential ExponentialOnBall",
    "...papers.selection.laplace": "Laplace LaplaceMin",
}

__all__ = [
    "CandidateLosses",
    "Descent",
    "DrawnDescent",
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
    "LearnOnDraws",
    "Parity",
    "RandomisedResponse",
    "SymmetricGaussian",
    "best_of_random_runs",
    "count_labels",
    "hide_losses",
    "holdout_choice",
]

__getattr__ = lazily(__name__, _WHERE)
