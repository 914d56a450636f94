"""Errors name the argument."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from contracts.hostile import NAMES, SENTINEL
from contracts.sample import Sample
from contracts.tape import taped
from dpadapt import Private


class RefusalChecks(Sample):
    """What is wrong is named, before anything is spent."""

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            *(("epsilon", value) for value in (0, -1.0, math.inf, math.nan, None, "1", True)),
            *(("delta", value) for value in (0, 1, -1e-6, math.nan, None, "1e-6", math.inf)),
            *(("noise", value) for value in ("quantum", None, 3)),
            *(("ledger", value) for value in ("budget.db", 3, object())),
            ("solver", "magic"),
            ("solver", None),
            ("method", "magic"),
        ],
    )
    @pytest.mark.parametrize("with_private", [True, False])
    def test_bad_parameters_are_named(self, argument, value, with_private):
        if argument not in self.core(self.make()).get_params(deep=False):
            pytest.skip(f"there is no parameter {argument}")
        private = self.private() if with_private else None
        with taped() as tape, pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
            self.fit(self.make(**{argument: value}), private)
        assert tape == []

    @pytest.mark.parametrize("value", [[[1.0, 2.0, 3.0]], np.zeros((5, 3)), "private.csv", 3])
    def test_private_must_be_private(self, value):
        with pytest.raises(TypeError, match=r"\bprivate\b.*Private\("):
            self.fit(self.make(), value)

    def test_wrong_columns_are_listed(self):
        X, y = self.public()
        frame = pd.DataFrame(self.rows(), columns=[NAMES[0], "other", NAMES[2]])
        labels = self.labels(self.rows())
        with pytest.raises(ValueError, match=r"\bprivate\b.*'beta'") as caught:
            self.fit(self.make(), Private(frame, labels), pd.DataFrame(X, columns=NAMES), y)
        assert "'alpha'" not in str(caught.value)

    @pytest.mark.parametrize("width", [1, 2, 4])
    def test_wrong_number_of_columns_is_told(self, width):
        rows = np.ones((9, width))
        labels = np.zeros(9) if self.needs_labels else None
        with pytest.raises(ValueError, match=rf"\bprivate\b.*\b{width} columns.*\b3\b"):
            self.fit(self.make(), Private(rows, labels))

    def test_two_columns_of_one_name_are_refused(self):
        frame = pd.DataFrame(self.rows(), columns=["alpha", "alpha", "gamma"])
        with pytest.raises(ValueError, match=r"\bX\b.*alpha"):
            Private(frame)

    def test_labels_are_asked_for_where_they_are_needed(self):
        private = Private(self.rows())
        if self.needs_labels:
            with pytest.raises(ValueError, match=r"\bprivate\b.*label"):
                self.fit(self.make(), private)
        else:
            unlabelled = self.answers(self.fit(self.make(), private))
            labelled = Private(self.rows(), np.full(len(self.rows()), SENTINEL))
            np.testing.assert_array_equal(self.answers(self.fit(self.make(), labelled)), unlabelled)
