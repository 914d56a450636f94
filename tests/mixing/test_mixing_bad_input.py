"""Rows that are odd, few, or of no class: fitted in silence, within the budget."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpadapt import AdaptationPipeline, Private
from dpadapt.mixing import AdaMix, GradientProjection
from dpadapt.papers.mixing.adamix import LEAST_CLIP
from mixing.mixing_problems import every_variant, fitted, is_adamix, make, noisy_gd, problem


@every_variant
def test_a_class_without_public_examples(params):
    X, y, T, t = problem(n=4000)
    seen = y != 2
    with pytest.raises(ValueError, match="classes"):
        make(classes=[0, 1]).fit(X, y, private=Private(T, t))
    whole = make(classes=[0, 1, 2], **{"steps": 60, **params})
    model = fitted(whole, X[seen], y[seen], private=Private(T, t))
    assert model.predict_proba(T).shape == (len(T), 3)
    if params in ({}, {"relation": "add-remove"}):
        found = (model.predict(T) == t)[t == 2].mean()
        assert found > 0.5  # and it is learned from private rows


def test_a_class_without_public_examples_has_no_share_in_the_public_model():
    X, y, _, _ = problem()
    model = make(classes=[0, 1, 2]).fit(X[y != 2], y[y != 2])
    p = model.predict_proba(X[y != 2])[:, 2]
    assert 0 < p.max() < 0.2


@every_variant
def test_no_public_data_is_noisy_descent_from_zero(params):
    _, _, T, t = problem(n=3000)
    model = fitted(make(classes=[0, 1, 2], **params), None, None, private=Private(T, t))
    assert model.n_features_in_ == 4
    assert model.score(T, t) > 0.4
    frame = pd.DataFrame(T, columns=list("abcd"))
    named = make(classes=[0, 1, 2], **params).fit(private=Private(frame, t))
    assert list(named.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(named.coef_, model.coef_)


@pytest.mark.parametrize("build", [make, noisy_gd])
def test_without_public_data_something_must_be_given(build):
    X, y, T, t = problem()
    with pytest.raises(ValueError, match="classes: without public rows"):
        build().fit(private=Private(T, t))
    with pytest.raises(ValueError, match="X: give public rows, or private ones, or both"):
        build(classes=[0, 1]).fit()
    with pytest.raises(ValueError, match="y: public labels without public rows"):
        build(classes=[0, 1]).fit(None, y)
    with pytest.raises(TypeError, match=r"dpadapt\.Private"):
        build(classes=[0, 1]).fit(private=T)
    with pytest.raises(ValueError, match="requires y to be passed"):
        build().fit(X)


@every_variant
def test_all_public_gradients_zero(params):
    """Public rows at their center, and weights that fit: nothing but the floor of the clip."""
    _, _, T, t = problem(classes=2)
    X, y = np.zeros((6, 4)), np.array([0, 1] * 3)
    start = np.zeros((2, 4))
    model = fitted(make(start=start, **params), X, y, private=Private(T, t))
    if is_adamix(params):
        assert (model.clips_ >= LEAST_CLIP).all()


@pytest.mark.parametrize("clip_first", [False, True])
def test_an_empty_span_moves_nothing_but_what_is_public(clip_first, monkeypatch):
    """All public gradients exactly zero: the subspace has no dimension, and is charged for."""
    X, y, T, t = problem()
    from dpadapt.papers.mixing.projection import GradientSpan

    def empty(cls, rows, codes, W, rank=None, inner=None):
        return cls(rows, np.zeros((len(rows), W.shape[1])), np.zeros((len(rows), 0)))

    monkeypatch.setattr(GradientSpan, "of", classmethod(empty))
    projection = GradientProjection(clip_first=clip_first)
    solver = AdaMix(mixing=0.0, penalty=0.0, projection=projection)
    model = make(solver=solver, keep_trajectory=True)
    fitted(model, X, y, private=Private(T, t))
    np.testing.assert_array_equal(model.trajectory_[0], model.trajectory_[-1])
    assert model.guarantee_.epsilon == pytest.approx(1.0)


@every_variant
@pytest.mark.parametrize("classes", [2, 7])
def test_two_classes_and_many(params, classes):
    X, y, T, t = problem(classes=classes, m=4 * classes)
    model = fitted(make(**params), X, y, private=Private(T, t))
    scores = model.decision_function(T)
    assert scores.shape == ((len(T),) if classes == 2 else (len(T), classes))
    assert model.coef_.shape == ((1, 4) if classes == 2 else (classes, 4))
    np.testing.assert_allclose(model.predict_proba(T).sum(axis=1), 1)


def test_one_class_is_refused():
    X, _, T, t = problem()
    for build in (make, noisy_gd):
        with pytest.raises(ValueError, match="only one class"):
            build().fit(X, np.zeros(len(X)), private=Private(T, t))
        with pytest.raises(ValueError, match="only one class"):
            build(classes=[1]).fit(private=Private(T, t))


@every_variant
def test_features_of_norm_zero_and_infinity(params):
    X, y, T, t = problem()
    T = T.copy()
    T[0], T[1], T[2], T[3] = 0.0, np.inf, np.nan, 1e300
    T[4], T[5] = -1e308, 1e-320
    model = fitted(make(**params), X, y, private=Private(T, t))
    far = np.array([[1e300] * 4, [1e-320] * 4, [0.0] * 4])
    assert np.isfinite(model.decision_function(far)).all()
    np.testing.assert_array_equal(model.predict(T[6:9]), model.predict(T[6:9].copy()))


@every_variant
@pytest.mark.parametrize("n", [1, 2])
def test_one_private_row(params, n):
    X, y, T, t = problem()
    fitted(make(**params), X, y, private=Private(T[:n], t[:n]))


@every_variant
def test_more_columns_than_rows(params):
    X, y, T, t = problem(d=60, m=6, n=20)
    fitted(make(**params), X, y, private=Private(T, t))


@every_variant
def test_one_public_row_a_class(params):
    X, y, T, t = problem(m=3)
    model = fitted(make(**params), X, y, private=Private(T, t))
    public = make(**params).fit(X, y)
    assert np.abs(public.coef_).max() > 0.1  # the rows are used, though none can be held out
    if is_adamix(params):
        tiny = make(**params, epsilon=1e-9, delta=1e-9)
        tiny.set_params(solver__mixing=0.0, solver__penalty=0.0)
        start = make(**params).set_params(solver__penalty=0.0).fit(X, y)
        tiny.set_params(solver__learning_rate=1e-12).fit(X, y, private=Private(T, t))
        np.testing.assert_allclose(tiny.coef_, start.coef_, atol=1e-2)
    assert np.isfinite(model.score(T, t))


@every_variant
def test_constant_columns(params):
    X, y, T, t = problem()
    X[:, 1], T[:, 1] = 5.0, 5.0
    fitted(make(**params), X, y, private=Private(T, t))


def test_given_weights_are_where_it_starts():
    """As from a text encoder: one direction for each class, with constants or without."""
    X, y, T, t = problem()
    rng = np.random.default_rng(0)
    start, constants = rng.normal(size=(3, 4)), rng.normal(size=3)
    plain = make(start=start).fit(X, y)
    np.testing.assert_allclose(plain.coef_, start)
    np.testing.assert_allclose(plain.intercept_, 0, atol=1e-15)
    model = make(start=np.column_stack([start, constants])).fit(X, y)
    np.testing.assert_allclose(model.intercept_, constants)
    tiny = make(start=start, epsilon=1e-9, delta=1e-9).fit(X, y, private=Private(T, t))
    np.testing.assert_allclose(tiny.coef_, start, atol=1e-4)
    two = make(start=start[:1]).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(two.coef_, start[:1])
    for solver in ("adamix", "theory"):
        fitted(make(start=start, solver=solver), X, y, private=Private(T, t))


def test_a_private_row_of_no_class_is_left_out_in_silence():
    X, y, T, t = problem()
    labels = t.astype(str).astype(object)
    labels[3], labels[5], labels[7] = "unheard of", None, 17
    fitted(make(), X, y.astype(str), private=Private(T, labels))


def test_in_a_pipeline_with_text_columns():
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    X, y, T, t = problem()
    public, private = (
        pd.DataFrame(rows, columns=list("abcd")).assign(kind=["x", "z"] * (len(rows) // 2))
        for rows in (X, T)
    )
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough"
    )
    model = AdaptationPipeline([("columns", steps)], make())
    model.fit(public, y, private=Private(private, t))
    assert model.score(private, t) > 0.5
