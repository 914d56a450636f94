"""Who may plan: mechanisms of the closed table, and no others."""

import sys

from ... import _validate
from ..accounting.reviewed import DOORS, FOR_PEOPLE
from ..rows.errors import PrivacyError


def check_door(mechanism: object, people: object = None) -> None:
    """Refuse whatever is not exactly a mechanism of this package, or not for several rows a person.

    Its numbers become Python's: one of numpy's of few bits would make a noise scale of few bits,
    which is 0 below its least one.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> check_door(Gaussian("mean"))
    """
    if not is_door(mechanism):
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


def is_door(mechanism: object) -> bool:
    """Whether it is exactly of a class on the closed list."""
    return _is_one_of(DOORS, mechanism)


def _is_one_of(names: frozenset[str], mechanism: object) -> bool:
    """Whether its class is one of these, looked up where they stand: what it says is not asked."""
    places = (f"dpadapt.{name}".rpartition(".") for name in names)
    return any(
        type(mechanism) is getattr(sys.modules.get(home), name, None) for home, _, name in places
    )
