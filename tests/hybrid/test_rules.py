"""Rules answer for every row, and their slopes are what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpadapt.hybrid.rules import FEATURES, FunctionRule, LinearRule, feature_count, raw_features


def make(features="linear", d=3, seed=0, **given):
    rng = np.random.default_rng(seed)
    k = feature_count(features, d)
    return LinearRule(
        features,
        rng.normal(size=k),
        rng.uniform(0.1, 3.0, size=k),
        4 * rng.normal(size=k + 1),
        given.pop("classes", (0, 1)),
        **given,
    )


def rows(n=200, d=3, seed=1):
    return np.random.default_rng(seed).standard_t(1, size=(n, d)) * 10


ODD = np.array(
    [
        [np.nan, np.inf, -np.inf],
        [1e308, -1e308, 1e308],
        [1e200, 1.0, 0.0],
        [5e-324, -0.0, 0.0],
        [np.inf, 1.0, 2.0],
    ]
)


@pytest.mark.parametrize("features", FEATURES)
def test_rows_are_standardised_and_shrunk(features):
    rule, X = make(features), rows()
    u = np.column_stack([(raw_features(features, X) - rule.centre) / rule.scale, np.ones(len(X))])
    length = np.linalg.norm(u, axis=1, keepdims=True)
    assert rule.clip == pytest.approx(np.sqrt(rule.width))
    assert rule.embed(X) == pytest.approx(u * np.minimum(1, rule.clip / length) / rule.clip)
    assert (length > rule.clip).any()
    assert (length < rule.clip).any() or features != "linear"


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("clip", [0.01, 1.0, 50.0])
def test_norms_never_exceed_one(features, clip):
    rule = make(features, clip=clip)
    X = np.vstack([rows(5000), 1e-3 * rows(100), 1e6 * rows(100), ODD])
    for y in (1.0, -1.0, 0.0):
        for array in (rule.embed(X), rule.slopes(X, np.full(len(X), y))):
            assert np.isfinite(array).all()
            assert np.linalg.norm(array, axis=1).max() <= 1.0
    assert np.linalg.norm(rule.embed(X), axis=1).max() > 1 - 1e-12 or clip == 50.0


def test_the_norm_test_has_power():
    rule = make()
    unshrunk = np.column_stack([(rows() - rule.centre) / rule.scale, np.ones(200)]) / rule.clip
    assert np.linalg.norm(unshrunk, axis=1).max() > 1


def test_cells_that_are_not_finite_count_as_the_centre():
    rule = make()
    there = rule.embed(np.array([[np.nan, 0.3, np.inf]]))
    assert there == pytest.approx(rule.embed(np.array([[rule.centre[0], 0.3, rule.centre[2]]])))


@pytest.mark.parametrize("features", FEATURES)
def test_a_row_does_not_change_what_another_becomes(features):
    rule, X = make(features), rows(20)
    assert np.array_equal(rule.embed(np.vstack([X, ODD]))[:20], rule.embed(X))


@pytest.mark.parametrize("features", FEATURES)
def test_slopes_are_gradients_of_losses(features):
    rule, X = make(features), rows(30)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    slopes, step = rule.slopes(X, y), 1e-6
    for j in range(rule.width):
        move = step * np.eye(rule.width)[j]
        up = rule.with_coefficients(rule.coefficients + move).losses(X, y)
        down = rule.with_coefficients(rule.coefficients - move).losses(X, y)
        assert (up - down) / (2 * step) == pytest.approx(slopes[:, j], abs=1e-7)
        assert (up - down) / (2 * step) != pytest.approx(-slopes[:, j], abs=1e-7)


def test_labels_of_no_class_have_no_slope_and_any_loss():
    rule, X = make(), rows(4)
    assert not rule.slopes(X, np.zeros(4)).any()
    assert np.isinf(rule.losses(X, np.zeros(4))).all()


def test_huge_coefficients_do_not_overflow():
    rule = make().with_coefficients(np.full(4, 1e100))
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    with np.errstate(all="raise"):
        assert np.isfinite(rule.slopes(ODD, y)).all()
        assert not np.isnan(rule.losses(ODD, y)).any()


def test_signs_and_labels_agree():
    rule, X = make(classes=("no", "yes")), rows()
    signs = rule.predict_sign(X)
    assert set(signs) == {-1.0, 1.0}
    assert np.array_equal(rule.predict(X) == "yes", signs == 1)
    assert np.array_equal(signs == 1, rule.scores(X) > 0)
    tied = rule.with_coefficients(np.zeros(4))
    assert (tied.predict_sign(X) == -1).all()


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("classes", [(0, 1), ("a", "b"), (np.int64(3), np.int64(-1)), (0.5, 2.5)])
def test_round_trip_through_json_is_exact(features, classes):
    rule = make(features, classes=classes, clip=0.1)
    back = LinearRule.from_dict(json.loads(json.dumps(rule.to_dict(), allow_nan=False)))
    for name in ("centre", "scale", "coefficients"):
        assert np.array_equal(getattr(back, name), getattr(rule, name))
    assert (back.features, back.classes, back.clip) == (rule.features, rule.classes, rule.clip)
    assert np.array_equal(back.scores(rows()), rule.scores(rows()))


def test_features_are_counted():
    for name in FEATURES:
        assert raw_features(name, np.ones((2, 5))).shape == (2, feature_count(name, 5))
        make(name, d=5).check(5)
        with pytest.raises(ValueError, match="features"):
            make(name, d=5).check(4)
    cross = raw_features("quadratic", np.array([[2.0, 3.0, 5.0]]))[0]
    assert list(cross) == [2, 3, 5, 4, 6, 10, 9, 15, 25]


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": "cubes"},
        {"scale": np.array([1.0, 0.0, 1.0])},
        {"centre": np.array([1.0, np.nan, 1.0])},
        {"coefficients": np.ones(3)},
        {"classes": (1, 1)},
        {"classes": (1, 2, 3)},
        {"classes": (1, None)},
        {"classes": (1, [2])},
        {"classes": (1, float("nan"))},
        {"clip": -1.0},
        {"clip": np.inf},
    ],
)
def test_rules_that_are_none(wrong):
    good = {
        "features": "linear",
        "centre": np.zeros(3),
        "scale": np.ones(3),
        "coefficients": np.ones(4),
        "classes": (0, 1),
    }
    with pytest.raises(ValueError):  # noqa: PT011 - each says another thing
        LinearRule(**{**good, **wrong})


def test_arrays_of_a_rule_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        make().coefficients[0] = 1.0


# Functions -------------------------------------------------------------------------------------


def test_a_function_that_fails_on_a_row_fails_for_that_row_only():
    def predict(X):
        if (X[:, 0] == 13).any():
            raise RuntimeError("13")
        return np.where(X[:, 0] > 0, "yes", "no")

    X = np.array([[1.0], [-1.0], [13.0], [np.nan], [2.0]])
    rule = FunctionRule(predict, ("no", "yes"))
    assert list(rule.predict_sign(X)) == [1, -1, 0, -1, 1]
    assert list(rule.losses(X, np.array([1.0, 1.0, 1.0, -1.0, 0.0]))) == [0, 1, 1, 0, 1]


def test_own_losses_and_their_failures():
    def loss(X, y):
        if (X[:, 0] == 13).any():
            raise RuntimeError("13")
        return np.maximum(0, 1 - y * X[:, 0])

    rule = FunctionRule(lambda X: X[:, 0] > 0, (False, True), loss)
    found = rule.losses(np.array([[3.0], [3.0], [13.0], [0.5]]), np.array([1.0, -1.0, 1.0, 0.0]))
    assert list(found) == [0.0, 4.0, np.inf, np.inf]


def test_a_function_of_the_wrong_shape_is_of_no_class():
    rule = FunctionRule(lambda X: np.ones((len(X), 2)), (0, 1))
    assert list(rule.predict_sign(np.zeros((3, 1)))) == [0, 0, 0]


def test_a_function_cannot_be_sent():
    with pytest.raises(TypeError, match="cannot be sent"):
        FunctionRule(lambda X: X[:, 0], (0, 1)).to_dict()
