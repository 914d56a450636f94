"""What a report tells of a model, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .wording import RADII, number

__all__ = ["Fact", "Story", "class_facts"]

_MOST_CLASSES = 20  # that are named


class Fact(NamedTuple):
    """One line of the table of how the model came about.

    Examples
    --------
    >>> Fact("steps", "100", "noisy gradients").value
    '100'
    """

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Story:
    """How a model came about, in plain words.

    Parameters
    ----------
    summary : str
    facts : tuple of Fact
    warning : str
        Shown in a box in the place of the summary; ``title`` is its first words.
    title : str
    assumption : str
    reads_labels : bool
        Of the private rows.
    public_rows : int or None
        None where the model does not know.
    public_use : str
        What public rows were used for.
    radius : str
        Where bounds on private rows came from.
    radii : mapping of str to str
        The same by name, for those that came from elsewhere.
    features : str
        What the coefficients are for.
    made : mapping of str to int
        Releases that an individual filter made more often than they were charged for.

    Examples
    --------
    >>> Story("The model of the public rows.").reads_labels
    True
    """

    summary: str
    facts: tuple[Fact, ...] = ()
    warning: str = ""
    title: str = ""
    assumption: str = (
        "Private labels are read, through the releases above alone: where they depend on the "
        "columns in another way than public ones do, the model can learn it."
    )
    reads_labels: bool = True
    public_rows: int | None = None
    public_use: str = "everything, without protection: fitting, scaling, bounds"
    radius: str = RADII["far"]
    radii: Mapping[str, str] = field(default_factory=dict)
    features: str = "feature"
    made: Mapping[str, int] = field(default_factory=dict)


def class_facts(estimator: Any) -> tuple[Fact, ...]:
    """The line on the classes, for a classifier.

    Examples
    --------
    >>> class_facts(object())
    ()
    """
    if not hasattr(estimator, "classes_"):
        return ()
    names = [str(each) for each in estimator.classes_]
    told = ", ".join(names[:_MOST_CLASSES]) + (", ..." if len(names) > _MOST_CLASSES else "")
    return (Fact("classes", number(len(names)), told),)
