"""A number is a number, whatever it is stored as: cells and labels of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from contracts.hostile import NAMES
from contracts.sample import Sample
from dpadapt import Private

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


class KindChecks(Sample):
    """The same numbers and the same classes give the same model, bit for bit."""

    def test_private_cells_of_any_type_give_the_same_model(self):
        X, y = self.public()
        rows = np.rint(4 * self.rows())  # numbers that every type below can hold
        labels = self.labels(rows)
        expected = self.answers(self.fit(self.make(), Private(rows, labels), X, y))
        for name, given in cells_of_all_types(rows).items():
            model = self.fit(self.make(), Private(given, labels), X, y)
            np.testing.assert_array_equal(self.answers(model), expected, err_msg=name)

    def test_columns_of_several_types_give_the_same_model(self):
        X, y = self.public()
        public, rows = pd.DataFrame(X, columns=NAMES), np.rint(4 * self.rows())
        labels = self.labels(rows)
        plain = pd.DataFrame(rows, columns=NAMES)
        expected = self.predictions(
            self.fit(self.make(), Private(plain, labels), public, y), public
        )
        mixed = plain.astype({NAMES[0]: np.int16, NAMES[1]: np.float32, NAMES[2]: object})
        model = self.fit(self.make(), Private(mixed, labels), public, y)
        np.testing.assert_array_equal(self.predictions(model, public), expected)

    def test_labels_of_any_type_give_the_same_model(self):
        if not self.needs_labels:
            pytest.skip("private labels are not read")
        X, y = self.public()
        rows, labels = self.rows(), self.labels(self.rows())
        if not self.classifies(y):
            y, labels = np.rint(2 * y), np.rint(2 * labels)
            expected = self.answers(self.fit(self.make(), Private(rows, labels), X, y))
            for kind in (np.float32, np.int64, object):
                model = self.fit(self.make(), Private(rows, labels.astype(kind)), X, y)
                np.testing.assert_array_equal(self.answers(model), expected, err_msg=str(kind))
            return
        expected = self.codes(self.fit(self.make(), Private(rows, labels), X, y))
        for public, private in PAIRS:
            sample = Private(rows, labels_of_type(labels, private))
            model = self.fit(self.make(), sample, X, labels_of_type(y, public))
            np.testing.assert_array_equal(
                self.codes(model), expected, err_msg=f"{public}, {private}"
            )

    def classifies(self, y: np.ndarray) -> bool:
        """Whether the public labels are classes."""
        return set(np.unique(y)) <= {0.0, 1.0}

    def codes(self, model: Any) -> np.ndarray:
        """Answers of a classifier that do not depend on what its classes are called."""
        X = self.public()[0]
        places = np.searchsorted(model.classes_, model.predict(X)).astype(float)
        scores = [model.predict_proba(X).ravel()] if hasattr(model, "predict_proba") else []
        return np.concatenate([places, *scores])


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
