"""A private row is scored by the public experts once a fit, and not once a sum."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from dpadapt import AutoClassifier, AutoRegressor, Private
from dpadapt.auto.stacking import PublicStack

ROWS = 900
RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(80, 3)), RNG.uniform(-1, 1, size=(ROWS, 3))  # within public ones
BUDGET = {"epsilon": 3.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}


def labels(rows, classes):
    numbers = np.tanh(rows[:, 0]) - rows[:, 1]
    return (numbers > 0).astype(float) if classes else numbers


def times_seen(blocks):
    """How often each private row is in blocks; to six digits, as it is centred and put back."""
    place = {tuple(row): i for i, row in enumerate(T.round(6).tolist())}
    seen = [place.get(tuple(row)) for block in blocks for row in np.round(block, 6).tolist()]
    return np.bincount([i for i in seen if i is not None], minlength=ROWS).tolist()


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("estimator", [AutoRegressor, AutoClassifier])
def test_experts_see_a_private_row_once(estimator, spilled, tmp_path, monkeypatch):
    rows, scores = [], PublicStack.scores

    def counted(self, X):
        rows.append(X)
        return scores(self, X)

    monkeypatch.setattr(PublicStack, "scores", counted)
    classes = estimator is AutoClassifier
    given = labels(T, classes)
    given[3] = np.nan
    private = Private(T, given).kept(memory=0 if spilled else None, folder=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(**BUDGET, experts=["linear"]).fit(X, labels(X, classes), private=private)
    assert sum(each.times for each in model.releases_) > 20  # as many sums
    assert times_seen(rows) == [1] * ROWS


@pytest.mark.parametrize("estimator", [AutoRegressor, AutoClassifier])
def test_code_of_others_is_asked_once_a_row(estimator, monkeypatch):
    classes = estimator is AutoClassifier
    kind = KNeighborsClassifier if classes else KNeighborsRegressor
    name, calls = "predict_proba" if classes else "predict", []
    predict = getattr(kind, name)

    def counted(self, X):
        calls.append(np.array(X, dtype=np.float64))
        return predict(self, X)

    monkeypatch.setattr(kind, name, counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(**BUDGET, experts=[kind(2)])
        model.fit(X, labels(X, classes), private=Private(T, labels(T, classes)))
    assert times_seen(calls) == [1] * ROWS
