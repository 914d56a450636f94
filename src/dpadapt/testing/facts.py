"""What the battery must be told of an estimator, because it cannot see it from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Facts:
    """What is special about an estimator, for :func:`dpadapt.testing.check_private_estimator`.

    Parameters
    ----------
    labels : bool, default=False
        Whether private labels are read, and needed.
    classes : int or None
        Number of classes of the labels: 2 or 3, and 0 for numbers. By default 2 for a classifier
        and 0 for all others.
    relation : {"replace-one", "add-remove"}
        Which tables are neighbours.
    rows : int, default=400
        Number of private rows that a usual fit gets.
    least_spent : float, default=0.9
        Part of epsilon that a fit spends at least.
    releases_all : bool, default=True
        Whether a fit makes every release that it charged for.
    few_answers : bool, default=False
        Whether chance chooses among a few answers only: two fits may then have the same one.
    progress_end : int or None
        Steps that a progress bar counts; by default it counts private rows.
    left_out : mapping of str to str
        Checks that are not made, by name, each with the reason.

    Examples
    --------
    >>> Facts(labels=True, left_out={"check_estimator": "needs three classes or more"}).labels
    True
    >>> Facts(left_out={"check_estimator": ""})
    Traceback (most recent call last):
    ...
    ValueError: left_out: give a reason why check_estimator is not made.
    """

    labels: bool = False
    classes: int | None = None
    relation: str = "replace-one"
    rows: int = 400
    least_spent: float = 0.9
    releases_all: bool = True
    few_answers: bool = False
    progress_end: int | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.relation not in ("replace-one", "add-remove"):
            raise ValueError(
                f"relation must be 'replace-one' or 'add-remove', got {self.relation!r}."
            )
        if self.classes not in (None, 0, 2, 3):
            raise ValueError(f"classes must be 0, 2 or 3, got {self.classes!r}.")
        for name, reason in self.left_out.items():
            if not reason.strip():
                raise ValueError(f"left_out: give a reason why {name} is not made.")
