"""All mechanisms. A session plans with these and no others: a method can never add a door."""

from ... import _validate
from ..core.errors import PrivacyError
from .descent import DrawnDescent
from .draws import LearnOnDraws
from .exponential import Exponential, ExponentialOnBall
from .filtered import FilteredGaussian
from .gaussian import Gaussian, GaussianInside, GaussianProcess, SymmetricGaussian
from .laplace import Laplace, LaplaceMin
from .machine_constants import PINPConstants, SparseVectorConstants
from .parity import Parity
from .path import GaussianPath
from .purse import GaussianPurse
from .random_stopping import RandomStopping
from .randomised_response import RandomisedResponse

__all__ = ["DOORS", "check_door"]

DOORS = frozenset(
    {
        DrawnDescent,
        Exponential,
        ExponentialOnBall,
        FilteredGaussian,
        Gaussian,
        GaussianInside,
        GaussianPath,
        GaussianProcess,
        GaussianPurse,
        Laplace,
        LaplaceMin,
        LearnOnDraws,
        PINPConstants,
        Parity,
        RandomStopping,
        RandomisedResponse,
        SparseVectorConstants,
        SymmetricGaussian,
    }
)
# what states a bound for one replaced row that adds up over several (privacy/units/groups.py)
FOR_PEOPLE = frozenset(
    {
        Exponential,
        Gaussian,
        GaussianProcess,
        GaussianPurse,
        Laplace,
        LaplaceMin,
        SymmetricGaussian,
    }
)


def check_door(mechanism: object, people: object = None) -> None:
    """Refuse whatever is not exactly a mechanism of this package, or not for several rows a person.

    Its numbers become Python's: one of numpy's of few bits would make a noise scale of few bits,
    which is 0 below its least one.

    Examples
    --------
    >>> check_door(Gaussian("mean"))
    """
    if type(mechanism) not in DOORS:
        raise PrivacyError(
            "only mechanisms of dpadapt.privacy.mechanisms can be planned; got "
            f"{type(mechanism).__name__}."
        )
    _validate.plain_numbers(mechanism)
    if people is not None and type(mechanism) not in FOR_PEOPLE:
        raise PrivacyError(
            f"{type(mechanism).__name__} is proved for one row a person, not for people with "
            "several rows (Private(unit=...)). Take a method or solver without it (AutoRegressor, "
            "AutoClassifier, and most defaults), or make one row of each person beforehand."
        )
