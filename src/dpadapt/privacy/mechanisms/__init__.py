"""Read one: what may come out of a session, each with its event, its sampler and its proof.

Those that only the papers' own algorithms use stand in :mod:`dpadapt.papers`, and are found here by
name.
"""

from ..._lazy import lazily
from .counted import count_labels
from .descent import Descent, DrawnDescent
from .draws import LearnOnDraws
from .exponential import Exponential, ExponentialOnBall
from .gaussian import Gaussian, GaussianInside, GaussianProcess, SymmetricGaussian
from .laplace import Laplace, LaplaceMin
from .parity import Parity
from .path import GaussianPath
from .purse import GaussianPurse
from .randomised_response import RandomisedResponse
from .selection import CandidateLosses, best_of_random_runs, hide_losses, holdout_choice

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

_WHERE = {
    "...papers.mixing.filtered": "EachRow FilteredGaussian FilteredMean",
}

__getattr__ = lazily(__name__, _WHERE)
