"""AdaSSP: contract, sensitivities, noise scales, and what it recovers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.baselines import AdaSSPClassifier, AdaSSPRegressor, PublicOnlyRegressor
from dpadapt.papers.baselines._tasks import BaselineTask
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.testing.tape import releases, taped


def shifted(seed=0, m=2000, n=4000, d=4, noise=0.3):
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=d)
    moved = 0.6 * slopes + 0.1 * rng.normal(size=d)
    X, T = rng.normal(size=(m, d)), rng.normal(0.3, 1.0, size=(n, d))
    return X, X @ slopes + noise * rng.normal(size=m), T, T @ moved + noise * rng.normal(size=n)


def test_the_three_releases_have_equal_shares_of_mu():
    X, y, T, t = shifted()
    model = AdaSSPRegressor(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0)
    with taped() as tape:
        model.fit(X, y, private=Private(T, t))
    share = gaussian_mu(1.0, 1e-6) / math.sqrt(3)
    task = BaselineTask(X, y)
    n, R, B = len(T), task.radius, task.label_bound
    least, moment, cross = (draw.scale for draw in releases(tape))
    assert math.isclose(least, R**2 / n / share, rel_tol=1e-6)
    assert math.isclose(moment, math.sqrt(2) * R**2 / n / share, rel_tol=1e-6)
    assert math.isclose(cross, 2 * R * B / n / share, rel_tol=1e-6)


def test_with_much_budget_it_is_least_squares_of_the_private_rows():
    X, y, T, t = shifted(n=20_000, noise=0.1)
    model = AdaSSPRegressor(epsilon=100.0, delta=1e-3, noise="seeded", random_state=0)
    model.fit(X, y, private=Private(T, t))
    best = np.linalg.lstsq(np.column_stack([T, np.ones(len(T))]), t, rcond=None)[0]
    np.testing.assert_allclose([*model.coef_, model.intercept_], best, atol=0.03)


def test_residuals_shrink_to_the_public_model():
    X, y, T, t = shifted(n=60)
    errors = {}
    for residual in (False, True):
        model = AdaSSPRegressor(
            epsilon=0.2, delta=1e-6, residual=residual, noise="seeded", random_state=0
        ).fit(X, y, private=Private(T, t))
        errors[residual] = np.mean((model.predict(T) - t) ** 2)
    public = np.mean((PublicOnlyRegressor().fit(X, y).predict(T) - t) ** 2)
    assert errors[True] < 1.5 * public
    assert errors[False] > 1.3 * errors[True]


@pytest.mark.parametrize("classes", [2, 3])
def test_classifier_learns_and_leaves_out_rows_of_no_class(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, classes - 1) if classes > 2 else [0.0])
    names = np.array(["a", "b", "c"])[y]
    other = np.where(rng.random(6000) < 0.1, "zzz", names)
    model = AdaSSPClassifier(epsilon=4.0, delta=1e-6, noise="seeded", random_state=0)
    model.fit(X[:300], names[:300], private=Private(X, other))
    assert model.score(X, names) > (0.9 if classes == 2 else 0.6)
    assert set(model.classes_) == set(names)
