"""Two classes without private labels: the sign of a regression on -1 and +1, as far as (1) goes."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt import DiscrepancyRegressor, Private

BUDGET = {"epsilon": 4.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}


def two_kinds(rng, rows, share):
    """Rows of two kinds, with a boundary of its own each; the private ones are of the first."""
    kind = np.where(rng.random(rows) < share, 1.0, -1.0)
    X = rng.normal(size=(rows, 3))
    X[:, 0] = 2 * kind + 0.3 * X[:, 0]
    return X, np.where(X[:, 1] + kind * X[:, 2] > 0, 1.0, -1.0)


def test_a_wrong_sign_is_never_counted_more_than_the_squared_loss():
    rng = np.random.default_rng(0)
    scores, labels = 3 * rng.normal(size=10_000), rng.choice([-1.0, 1.0], size=10_000)
    assert ((np.sign(scores) != labels) <= (scores - labels) ** 2).all()


def test_unlabelled_private_rows_correct_the_sign():
    rng = np.random.default_rng(1)
    X, y = two_kinds(rng, 2000, share=0.25)
    T, t = two_kinds(rng, 5000, share=1.0)
    public = DiscrepancyRegressor(**BUDGET).fit(X, y)
    adapted = DiscrepancyRegressor(**BUDGET).fit(X, y, private=Private(T))
    errors = [float(np.mean(np.sign(each.predict(T)) != t)) for each in (adapted, public)]
    assert errors[0] < 0.7 * errors[1]
    assert errors[0] <= np.mean((adapted.predict(T) - t) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_halfspaces_can_differ_where_second_moments_agree(seed):
    """Lemma 1 needs the squared loss: equal moments, and disagreements that are far apart."""
    rng = np.random.default_rng(seed)
    square = rng.choice([-1.0, 1.0], size=(40_000, 2))
    angle = rng.uniform(0, 2 * np.pi, size=40_000)
    circle = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])
    moments = [rows.T @ rows / len(rows) for rows in (square, circle)]
    assert np.linalg.norm(moments[0] - moments[1], 2) < 0.03
    w, v = np.array([1.0, 0.5]), np.array([1.0, -0.5])
    differ = [float(np.mean((rows @ w > 0) != (rows @ v > 0))) for rows in (square, circle)]
    assert abs(differ[0] - differ[1]) > 0.25
