"""A number is a number, whatever it is stored as: cells and labels of every type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpadapt import Private

from .subject import Subject

# what the two classes 0 and 1 are called, by the type of the labels
CLASSES: dict[str, list[Any]] = {
    "int": [0, 1],
    "float": [0.0, 1.0],
    "bool": [False, True],
    "str": ["no", "yes"],
    "object of int": [0, 1],
    "object of str": ["no", "yes"],
}
# types of public and private labels that mean the same (scikit-learn takes no objects of int)
PAIRS = [
    *(("int", "int"), ("bool", "bool"), ("str", "str"), ("float", "int")),
    *(("int", "object of int"), ("str", "object of str"), ("object of str", "str")),
]


def check_private_cells_of_any_type_give_the_same_model(subject: Subject) -> None:
    """The same private numbers, stored in any type, give the same model bit for bit."""
    rows = np.rint(4 * subject.rows())  # numbers that every type below can hold
    labels = subject.labels(rows)
    expected = subject.answers(subject.fit(subject.make(), Private(rows, labels)))
    for name, given in cells_of_all_types(rows).items():
        model = subject.fit(subject.make(), Private(given, labels))
        np.testing.assert_array_equal(subject.answers(model), expected, err_msg=name)


def check_columns_of_several_types_give_the_same_model(subject: Subject) -> None:
    """A private frame whose columns have several types gives the same model."""
    public, y, rows = subject.public_frame(), subject.public()[1], np.rint(4 * subject.rows())
    labels = subject.labels(rows)
    plain = pd.DataFrame(rows, columns=subject.names)
    model = subject.fit(subject.make(), Private(plain, labels), public, y)
    expected = subject.predictions(model, public)
    kinds = (np.int16, np.float32, object)
    mixed = plain.astype(dict(zip(subject.names, kinds, strict=False)))
    model = subject.fit(subject.make(), Private(mixed, labels), public, y)
    np.testing.assert_array_equal(subject.predictions(model, public), expected)


def check_labels_of_any_type_give_the_same_model(subject: Subject) -> None:
    """The same labels, stored in any type or called by any name, give the same model."""
    if not subject.facts.labels:
        return
    y, rows = subject.public()[1], subject.rows()
    labels = np.asarray(subject.labels(rows))
    if not subject.classes:
        y, labels = np.rint(2 * y), np.rint(2 * labels)
        expected = subject.answers(subject.fit(subject.make(), Private(rows, labels), None, y))
        for kind in (np.float32, np.int64, object):
            model = subject.fit(subject.make(), Private(rows, labels.astype(kind)), None, y)
            np.testing.assert_array_equal(subject.answers(model), expected, err_msg=str(kind))
    elif len(names := np.unique(y)) == 2:
        codes, private_codes = np.searchsorted(names, y), np.searchsorted(names, labels)
        expected = answers_without_names(
            subject, subject.fit(subject.make(), Private(rows, labels), None, y)
        )
        for public, private in PAIRS:
            sample = Private(rows, labels_of_type(private_codes, private))
            model = subject.fit(subject.make(), sample, None, labels_of_type(codes, public))
            np.testing.assert_array_equal(
                answers_without_names(subject, model), expected, err_msg=f"{public}, {private}"
            )


def check_a_cell_means_the_same_whatever_the_others_are(subject: Subject) -> None:
    """One odd cell gives a column another type; nobody else's cells may change with it."""
    X, rows = subject.public_frame(), subject.rows(n=40)
    fits = [
        subject.answers(subject.fit(subject.make(), Private(*sample), X=X))
        for sample in same_meaning(rows, subject.labels(rows), subject.names)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other, fits[0])


def answers_without_names(subject: Subject, model: Any) -> np.ndarray:
    """Answers of a classifier that do not depend on what its classes are called."""
    places = subject.coded(model, model.predict(subject.public()[0]))
    return np.concatenate([places, subject.predictions(model)])


def cells_of_all_types(rows: np.ndarray) -> dict[str, Any]:
    """Whole numbers in every type that a table can hold them in."""
    objects = rows.astype(object)
    objects[::2] = rows[::2].astype(int)  # int and float cells side by side
    types = ("float32", "int64", ">f8")
    return {name: rows.astype(name) for name in types} | {"object": objects}


def labels_of_type(codes: np.ndarray, kind: str) -> np.ndarray:
    """Labels of two classes, named after a type of :data:`CLASSES`."""
    dtype = object if kind.startswith("object") else None
    return np.array([CLASSES[kind][int(code)] for code in codes], dtype=dtype)


def same_meaning(
    rows: np.ndarray, labels: np.ndarray | None, names: list[str]
) -> Iterator[tuple[pd.DataFrame, pd.Series | None]]:
    """Tables of one meaning, to which pandas gives different types: one person's cells are missing.

    What a session sees of them must be the same to the last bit, and so what a fit makes of it.
    """
    place = 3
    for cell in (np.nan, "x", dt.date(2020, 1, 1)):
        lists = [*rows.T.tolist(), *([] if labels is None else [labels.tolist()])]
        for cells in lists:
            cells[place] = cell
        frame = pd.DataFrame(dict(zip(names, lists, strict=False)))
        yield frame, None if labels is None else pd.Series(lists[-1])
