"""Baselines without privacy: public rows alone, target rows in the clear, discrepancy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.utils.estimator_checks import check_estimator

from dpadapt import Private
from dpadapt.baselines import (
    DiscrepancyMinimisationRegressor,
    NonPrivateClassifier,
    NonPrivateRegressor,
    PublicOnlyClassifier,
    PublicOnlyRegressor,
)
from dpadapt.papers.baselines._tasks import BaselineTask, fit_logistic


@pytest.mark.parametrize(
    "model",
    [
        PublicOnlyRegressor(),
        PublicOnlyClassifier(),
        NonPrivateRegressor(pooled=True),
        NonPrivateClassifier(pooled=True),
        DiscrepancyMinimisationRegressor(),
    ],
)
def test_check_estimator(model):
    check_estimator(model)


def problem(seed=0, m=400, n=300):
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(m, 3)), rng.normal(0.5, 1.0, size=(n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=m), T, T[:, 1] + 0.1 * rng.normal(size=n)


def test_public_ridge_is_that_of_scikit_learn():
    X, y, _, _ = problem()
    model = PublicOnlyRegressor().fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    same = RidgeCV(alphas=np.logspace(-3, 4, 15)).fit(Z, y)
    np.testing.assert_allclose(model.predict(X), same.predict(Z), rtol=1e-6, atol=1e-8)


def test_private_rows_are_ignored_and_cost_nothing():
    X, y, T, t = problem()
    private = Private(T, t)
    model = PublicOnlyRegressor().fit(X, y, private=private)
    assert model.guarantee_.epsilon == 0
    assert private.spent(1e-6).events == ()
    np.testing.assert_array_equal(model.coef_, PublicOnlyRegressor().fit(X, y).coef_)


def test_target_rows_decide_and_pooled_ones_share():
    X, y, T, t = problem()
    alone = NonPrivateRegressor().fit(X, y, target=(T, t))
    both = NonPrivateRegressor(pooled=True).fit(X, y, target=(T, t))
    np.testing.assert_allclose(alone.coef_, [0, 1, 0], atol=0.05)
    np.testing.assert_allclose(both.coef_, [0.5, 0.5, 0], atol=0.1)
    with pytest.raises(TypeError, match="target"):
        NonPrivateRegressor().fit(X, y, target=Private(T, t))


def test_classes_of_the_target_only_need_to_be_given():
    X, y, T, t = problem()
    public, target = np.where(y > 0, "b", "a"), np.where(t > 0, "c", "a")
    model = NonPrivateClassifier(classes=["a", "b", "c"]).fit(X, public, target=(T, target))
    assert model.score(T, target) > 0.9
    assert NonPrivateClassifier().fit(X, public, target=(T, target)).classes_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="classes"):
        PublicOnlyClassifier(classes=["a"]).fit(X, public)
    with pytest.raises(ValueError, match="class"):
        PublicOnlyClassifier().fit(X, np.full(len(X), "a"))
    one = PublicOnlyClassifier(classes=["a", "b"]).fit(X, np.full(len(X), "a"))
    assert set(one.predict(X)) == {"a"}


def test_classes_without_public_rows_are_unlikely_not_impossible():
    X, y, _, _ = problem()
    codes = (y > 0).astype(int)
    w = fit_logistic(BaselineTask(X, codes, np.arange(3)).rows, codes, 3)
    scores = BaselineTask(X, codes, np.arange(3)).rows @ w
    assert (scores.argmax(axis=1) == codes).mean() > 0.9
    assert np.isfinite(w).all()


def test_discrepancy_weights_match_the_target_moment():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(800, 2)), rng.normal(0.5, 0.8, size=(600, 2))
    model = DiscrepancyMinimisationRegressor().fit(X, X[:, 0] ** 2, target=T)
    assert model.weights_.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(model.weights_ @ X / len(X), T.mean(axis=0), atol=0.02)
    plain = DiscrepancyMinimisationRegressor().fit(X, X[:, 0] ** 2)
    error = [np.mean((some.predict(T) - T[:, 0] ** 2) ** 2) for some in (model, plain)]
    assert error[0] < 0.8 * error[1]
