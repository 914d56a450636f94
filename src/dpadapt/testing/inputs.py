"""Inputs: their forms, their names, and that they stay as they are."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd

from dpadapt import Private

from .expecting import require
from .subject import Subject


def check_inputs_are_not_modified(subject: Subject) -> None:
    """A fit changes none of its inputs, arrays or frames."""
    (X, y), (rows, labels) = subject.public(), subject.marked()
    rows[1] = np.resize([np.nan, np.inf, 1e300], subject.columns)
    arrays: list[Any] = [X, y, rows, labels]
    frames: list[Any] = [subject.public_frame(), pd.Series(y), subject.marked_frame(), labels]
    for given in (arrays, frames):
        before = copy.deepcopy(given)
        private = Private(given[2], given[3])
        subject.fit(subject.make(), private, given[0], given[1]).predict(given[0])
        for one, two in zip(before, given, strict=True):
            if isinstance(one, pd.DataFrame):
                pd.testing.assert_frame_equal(one, two)
            elif one is not None:
                np.testing.assert_array_equal(one, two)


def check_read_only_inputs_are_taken(subject: Subject) -> None:
    """Arrays that cannot be written to give the same model."""
    (X, y), rows = subject.public(), subject.rows()
    labels = subject.labels(rows)
    for array in (X, y, rows, labels):
        if array is not None:
            array.flags.writeable = False
    model = subject.fit(subject.make(), Private(rows, labels), X, y)
    np.testing.assert_array_equal(subject.answers(model), subject.usual.answers)


def check_public_sample_may_come_in_any_form(subject: Subject) -> None:
    """Lists, integers, single precision and frames of public rows give the same answers."""
    X, y = subject.public()
    X, y = np.rint(4 * X), y if y.dtype.kind not in "f" else np.rint(y)
    numeric = y.dtype.kind == "f"
    forms = {
        "list": (X.tolist(), y.tolist()),
        "int": (X.astype(int), y.astype(int) if numeric else y),
        "float32": (X.astype(np.float32), y.astype(np.float32) if numeric else y),
        "frame": (pd.DataFrame(X, columns=subject.names), pd.Series(y)),
        "column-major": (np.asfortranarray(X), y),
    }
    plain = subject.fit(subject.make(), subject.private(), X, y)
    expected = subject.coded(plain, plain.predict(X))
    for name, (some, labels) in forms.items():
        model = subject.fit(subject.make(), subject.private(), some, labels)
        found = subject.coded(model, model.predict(some))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=name)


def check_private_frames_are_matched_by_name(subject: Subject) -> None:
    """Columns of a private frame are found by name, in any order, and others are left alone."""
    y, public, rows = subject.public()[1], subject.public_frame(), subject.rows()
    labels = subject.labels(rows)
    frame = pd.DataFrame(rows, columns=subject.names)
    shuffled = frame[subject.names[::-1]].assign(extra=1.0)
    expected = subject.predictions(subject.usual.model)
    for some in (frame, shuffled):
        model = subject.fit(subject.make(), Private(some, labels), public, y)
        found = subject.predictions(model, public)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def check_public_names_and_sizes_are_kept(subject: Subject) -> None:
    """The fitted model knows the number and the names of the public columns."""
    model = subject.usual.model
    require(model.n_features_in_ == subject.columns, f"n_features_in_ is {model.n_features_in_}")
    require(not hasattr(model, "feature_names_in_"), "names of columns that have none")
    y, frame = subject.public()[1], subject.public_frame()
    model = subject.fit(subject.make(), subject.private(), frame, y)
    require(list(model.feature_names_in_) == subject.names, "the names are not the public ones")
