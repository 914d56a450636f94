"""Inputs: their forms, their names, and that they stay as they are."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contracts.hostile import NAMES
from contracts.sample import Sample
from dpadapt import Private


class InputChecks(Sample):
    """A sample may come in any form, and is not changed."""

    @pytest.mark.parametrize("form", ["array", "frame"])
    def test_inputs_are_not_modified(self, form):
        (X, y), (rows, labels) = self.public(), self.marked()
        rows[1] = [math.nan, math.inf, 1e300]
        given: list[Any] = [X, y, rows, labels]
        if form == "frame":
            given = [pd.DataFrame(X, columns=NAMES), pd.Series(y), self.marked_frame(), labels]
        before = copy.deepcopy(given)
        self.fit(self.make(), Private(given[2], given[3]), given[0], given[1]).predict(given[0])
        for one, two in zip(before, given, strict=True):
            if isinstance(one, pd.DataFrame):
                pd.testing.assert_frame_equal(one, two)
            elif one is not None:
                np.testing.assert_array_equal(one, two)

    def test_read_only_inputs_are_taken(self):
        (X, y), rows = self.public(), self.rows()
        labels = self.labels(rows)
        expected = self.answers(self.fit(self.make(), Private(rows, labels), X, y))
        for array in (X, y, rows, labels):
            if array is not None:
                array.flags.writeable = False
        model = self.fit(self.make(), Private(rows, labels), X, y)
        np.testing.assert_array_equal(self.answers(model), expected)

    def test_public_sample_may_come_in_any_form(self):
        X, y = self.public()
        X, y = np.rint(4 * X), np.rint(y)
        expected = self.fit(self.make(), self.private(), X, y).predict(X)
        forms = {
            "list": (X.tolist(), y.tolist()),
            "int": (X.astype(int), y.astype(int)),
            "float32": (X.astype(np.float32), y.astype(np.float32)),
            "frame": (pd.DataFrame(X, columns=NAMES), pd.Series(y)),
            "column-major": (np.asfortranarray(X), y),
        }
        for name, (some, labels) in forms.items():
            model = self.fit(self.make(), self.private(), some, labels)
            predicted = model.predict(some)
            np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-6, err_msg=name)

    def test_private_frames_are_matched_by_name(self):
        X, y = self.public()
        public, rows = pd.DataFrame(X, columns=NAMES), self.rows()
        labels = self.labels(rows)
        frame = pd.DataFrame(rows, columns=NAMES)
        shuffled = frame[NAMES[::-1]].assign(extra=1.0)
        expected = self.predictions(self.fit(self.make(), Private(rows, labels), X, y))
        for some in (frame, shuffled):
            model = self.fit(self.make(), Private(some, labels), public, y)
            found = self.predictions(model, public)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    def test_public_names_and_sizes_are_kept(self):
        X, y = self.public()
        model = self.fit(self.make(), self.private())
        assert model.n_features_in_ == 3
        assert not hasattr(model, "feature_names_in_")
        model = self.fit(self.make(), self.private(), pd.DataFrame(X, columns=NAMES), y)
        assert list(model.feature_names_in_) == NAMES
