"""Errors name the argument, before anything is spent."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpadapt import Private

from .expecting import refused, require
from .hostile import SENTINEL
from .subject import Subject
from .tape import taped

BAD: dict[str, tuple[object, ...]] = {
    "epsilon": (0, -1.0, math.inf, math.nan, None, "1", True),
    "delta": (0, 1, -1e-6, math.nan, None, "1e-6", math.inf),
    "noise": ("quantum", None, 3),
    "ledger": ("budget.db", 3, object()),
    "solver": ("magic", None),
    "method": ("magic",),
}


def check_bad_parameters_are_named(subject: Subject) -> None:
    """A bad parameter is refused by its name before any noise, with and without private rows."""
    known = subject.core(subject.make()).get_params(deep=False)
    for argument, values in BAD.items():
        for value in values if argument in known else ():
            for private in (subject.private(), None):
                with (
                    taped() as tape,
                    refused((ValueError, TypeError), rf"\b{argument}\b", f"{argument}={value!r}"),
                ):
                    subject.fit(subject.make(**{argument: value}), private)
                require(tape == [], f"{argument}={value!r}: noise was drawn")


def check_private_must_be_private(subject: Subject) -> None:
    """Private rows that are not wrapped in Private are refused."""
    for value in ([[1.0, 2.0, 3.0]], np.zeros((5, subject.columns)), "private.csv", 3):
        with refused(TypeError, r"\bprivate\b.*Private\(", "private rows that are not Private"):
            subject.fit(subject.make(), value)


def check_wrong_columns_are_listed(subject: Subject) -> None:
    """Columns that the private table lacks are named, and no others."""
    names = subject.names
    frame = pd.DataFrame(subject.rows(), columns=[*names[:-1], "other"])
    labels, y = subject.labels(subject.rows()), subject.public()[1]
    with refused(ValueError, rf"\bprivate\b.*'{names[-1]}'", "a missing column") as caught:
        subject.fit(subject.make(), Private(frame, labels), subject.public_frame(), y)
    others = [name for name in names[:-1] if f"'{name}'" in str(caught.error)]
    require(not others, f"columns are listed that are not missing: {others}")


def check_wrong_number_of_columns_is_told(subject: Subject) -> None:
    """A private table with another number of columns is refused with both numbers."""
    right = subject.columns
    for width in {1, right - 1, right + 1} - {0, right}:
        labels = np.zeros(9) if subject.facts.labels else None
        pattern = rf"\bprivate\b.*\b{width} columns?.*\b{right}\b"
        with refused(ValueError, pattern, f"{width} columns, not {right}"):
            subject.fit(subject.make(), Private(np.ones((9, width)), labels))


def check_two_columns_of_one_name_are_refused(subject: Subject) -> None:
    """A private table with two columns of one name is refused."""
    frame = pd.DataFrame(np.ones((9, 3)), columns=["alpha", "alpha", "gamma"])
    with refused(ValueError, r"\bX\b.*alpha", "two columns of one name"):
        Private(frame)


def check_labels_are_asked_for_where_they_are_needed(subject: Subject) -> None:
    """Private labels are asked for if they are read, and change nothing if they are not."""
    private = Private(subject.rows())
    if subject.facts.labels:
        with refused(ValueError, r"\bprivate\b.*label", "private rows without labels"):
            subject.fit(subject.make(), private)
    else:
        unlabelled = subject.answers(subject.fit(subject.make(), private))
        labelled = Private(subject.rows(), np.full(len(subject.rows()), SENTINEL))
        found = subject.answers(subject.fit(subject.make(), labelled))
        np.testing.assert_array_equal(found, unlabelled)
