"""Errors that name the cure: labels that are missing or lists, other pipelines, a good delta."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dpadapt import (
    AdaMixClassifier,
    AutoClassifier,
    AutoRegressor,
    KernelRegressor,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
)
from dpadapt.features import column_roles
from dpadapt.learning.cautions import budget_cautions, good_delta

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
X = np.random.default_rng(0).normal(size=(60, 2))
TABLE = pd.DataFrame(X, columns=["age", "size"])
NUMBERS, NAMES = X[:, 0].copy(), np.where(X[:, 0] > 0, "yes", "no").astype(object)
CLASSIFIERS = (AutoClassifier, ReweightingClassifier, AdaMixClassifier)
REGRESSORS = (AutoRegressor, ReweightingRegressor, KernelRegressor)


@pytest.mark.parametrize("rows", [X, TABLE], ids=["array", "table"])
@pytest.mark.parametrize("gap", [np.nan, None])
@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_missing_public_labels_are_told_with_a_cure(kind, gap, rows):
    labels = (NAMES if kind in CLASSIFIERS else NUMBERS).astype(object)
    labels[3] = gap
    if kind in REGRESSORS:
        labels = labels.astype(float)
    with pytest.raises(ValueError, match=r"y has missing labels .* leave those public rows out"):
        kind(**BUDGET).fit(rows, labels)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_labels_that_are_lists_are_told_with_a_cure(kind):
    labels = pd.Series([[1, 2], [3]] * 30)
    with pytest.raises(ValueError, match=r"one label for each row.*entries are lists"):
        kind(**BUDGET).fit(X, labels)


@pytest.mark.parametrize("kind", [AutoRegressor, ReweightingRegressor])
def test_an_estimator_at_the_end_of_another_pipeline_names_the_right_one(kind):
    private = {f"{kind.__name__.lower()}__private": Private(TABLE, NUMBERS)}
    wider = make_pipeline(PolynomialFeatures(), kind(**BUDGET))
    with pytest.raises(ValueError, match=r"dpadapt\.AdaptationPipeline"):
        wider.fit(TABLE, NUMBERS, **private)
    scaled = make_pipeline(StandardScaler(), kind(**BUDGET))
    with pytest.warns(UserWarning, match=r"(?s)have names.*dpadapt\.AdaptationPipeline"):
        scaled.fit(TABLE, NUMBERS, **private)


def test_the_same_names_or_none_are_no_reason_to_warn():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*have names")
        for public, private in ((X, X), (TABLE, TABLE), (TABLE, X)):
            ReweightingRegressor(**BUDGET).fit(public, NUMBERS, private=Private(private, NUMBERS))


@pytest.mark.parametrize("rows", [10, 900, 1_000_000, 1_000_001, 30_000_000])
def test_a_delta_that_is_proposed_is_really_below_one_over_the_rows(rows):
    assert good_delta(rows) <= 0.01 / rows * (1 + 1e-9)
    assert not any("delta" in each for each in budget_cautions(1.0, good_delta(rows), rows))
    (told,) = (each for each in budget_cautions(1.0, 1 / rows, rows) if "delta" in each)
    assert f"Choose {good_delta(rows):g}," in told


def test_short_numbers_are_taken_as_they_are():
    small = TABLE.astype(np.float16)
    model = AutoRegressor(**BUDGET, experts=["linear"])
    model.fit(small, NUMBERS.astype(np.float16), private=Private(small, small["age"]))
    assert np.isfinite(model.predict(small)).all()


def test_columns_of_lists_are_texts_and_short_numbers_are_numbers():
    rows = np.arange(40)
    lists = {"made": [[1], [2]] * 20, "read": [np.ones(2), np.ones(3)] * 20}  # as Parquet has them
    table = pd.DataFrame({**lists, "size": rows % 7})
    table["short"], table["row"] = (rows % 7).astype(np.float16), rows.astype(np.float16)
    kinds = [role.kind for role in column_roles(table)]
    assert kinds == ["feature", "feature", "feature", "feature", "id"]
