"""All mechanisms. A session plans with these and no others: a method can never add a door.

They stand here by name: the core needs none of them, and whoever has made one has imported it.
"""

import sys

from .. import _validate
from .core.errors import PrivacyError

__all__ = ["DOORS", "check_door"]

DOORS = frozenset(
    {
        "descent.DrawnDescent",
        "draws.LearnOnDraws",
        "exponential.Exponential",
        "exponential.ExponentialOnBall",
        "filtered.FilteredGaussian",
        "gaussian.Gaussian",
        "gaussian.GaussianInside",
        "gaussian.GaussianProcess",
        "gaussian.SymmetricGaussian",
        "laplace.Laplace",
        "laplace.LaplaceMin",
        "machine_constants.PINPConstants",
        "machine_constants.SparseVectorConstants",
        "parity.Parity",
        "path.GaussianPath",
        "purse.GaussianPurse",
        "random_stopping.RandomStopping",
        "randomised_response.RandomisedResponse",
    }
)
# what states a bound for one replaced row that adds up over several (privacy/units/groups.py)
FOR_PEOPLE = frozenset(
    {
        "exponential.Exponential",
        "gaussian.Gaussian",
        "gaussian.GaussianProcess",
        "gaussian.SymmetricGaussian",
        "laplace.Laplace",
        "laplace.LaplaceMin",
        "purse.GaussianPurse",
    }
)


def check_door(mechanism: object, people: object = None) -> None:
    """Refuse whatever is not exactly a mechanism of this package, or not for several rows a person.

    Its numbers become Python's: one of numpy's of few bits would make a noise scale of few bits,
    which is 0 below its least one.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> check_door(Gaussian("mean"))
    """
    if not _is_one_of(DOORS, mechanism):
        raise PrivacyError(
            "only mechanisms of dpadapt.privacy.mechanisms can be planned; got "
            f"{type(mechanism).__name__}."
        )
    if set(vars(mechanism)) - set(_validate.field_names(type(mechanism))):
        raise PrivacyError(f"a {type(mechanism).__name__} with attributes of its own is refused.")
    _validate.plain_numbers(mechanism)
    if people is not None and not _is_one_of(FOR_PEOPLE, mechanism):
        raise PrivacyError(
            f"{type(mechanism).__name__} is proved for one row a person, not for people with "
            "several rows (Private(unit=...)). Take a method or solver without it (AutoRegressor, "
            "AutoClassifier, and most defaults), or make one row of each person beforehand."
        )


def _is_one_of(names: frozenset[str], mechanism: object) -> bool:
    """Whether its class is one of these, looked up where they stand: what it says is not asked."""
    places = [name.split(".") for name in names]
    homes = [(sys.modules.get(f"{__package__}.mechanisms.{home}"), name) for home, name in places]
    return any(type(mechanism) is getattr(home, name, None) for home, name in homes)
