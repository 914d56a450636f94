"""Rare classes: they are counted on public rows, told of, and found by weights and thresholds."""

from __future__ import annotations

import html
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor

from dpadapt import (
    AutoClassifier,
    AutoRegressor,
    Private,
    ReweightingClassifier,
    class_errors,
    load_model,
    predict_classes,
    save_model,
)
from dpadapt.learning.cautions import CautionWarning
from dpadapt.rare import THRESHOLDS, ClassErrors, chosen_class, keep_class_errors
from dpadapt.report import write_report

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}


def patients(n, seed, share=0.04):
    """A rare class that shows itself by a little, so that it is never the most likely one."""
    rng = np.random.default_rng([n, seed])
    ill = rng.random(n) < share
    table = pd.DataFrame({"fever": rng.normal(size=n) + 1.2 * ill, "age": rng.normal(size=n)})
    return table, np.where(ill, "ill", "well")


@pytest.fixture(scope="module")
def fitted():
    (X, y), (T, t) = patients(1500, 0), patients(2000, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = AutoClassifier(**BUDGET, experts=["linear"]).fit(X, y, private=Private(T, t))
    return model, [str(each.message) for each in caught if each.category is CautionWarning]


def test_a_class_that_is_never_predicted_is_told_with_what_to_do(fitted):
    (text,) = fitted[1]
    ill = int((patients(1500, 0)[1] == "ill").sum())
    assert re.match(r"Class 'ill' is (never|hardly ever) predicted: ", text)
    assert f"{ill} of 1,500 public rows are of it" in text
    assert "predict_classes(model, X, threshold=...)" in text
    assert "class_weight='balanced'" in text
    assert "public rows that the experts of the model had not seen" in text


def test_nothing_is_told_of_classes_that_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CautionWarning)
        AutoClassifier(**BUDGET, experts=["linear"]).fit(
            X, X[:, 0] > 1.5, private=Private(X, X[:, 0] > 1.5)
        )
    (X, y), (T, t) = patients(1500, 0), patients(2000, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CautionWarning)
        fair = AutoClassifier(**BUDGET, experts=["linear"], class_weight="balanced")
        fair.fit(X, y, private=Private(T, t))
        AutoClassifier(**BUDGET, experts=["linear"]).fit(X, y)  # no private row: as quiet as others


def test_whoever_makes_errors_of_warnings_keeps_the_model_that_was_paid_for():
    (X, y), (T, t) = patients(900, 0), patients(900, 1)
    model = AutoClassifier(**BUDGET, experts=["linear"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CautionWarning)
        with pytest.raises(CautionWarning, match="predicted"):
            model.fit(X, y, private=Private(T, t))
    assert model.guarantee_.events
    assert model.predict(T).shape == (900,)


def test_counts_of_thresholds_are_what_predicting_with_them_gives():
    rng = np.random.default_rng(0)
    shares, codes = rng.dirichlet([1, 2, 9], size=700), rng.integers(0, 3, 700)
    names = np.array(["a", "b", "c"])
    errors = ClassErrors.of(shares, codes, names)
    for place, name in enumerate(names):
        for line, least in zip(errors.lines(name)[-len(THRESHOLDS) :], THRESHOLDS, strict=True):
            chosen = chosen_class(shares, {place: least})
            np.testing.assert_array_equal(chosen == place, shares[:, place] >= least)
            assert line.found == np.sum((chosen == place) & (codes == place))
            assert line.alarms == np.sum((chosen == place) & (codes != place))
            assert line.wrong == np.sum(chosen != codes)
    usual = shares.argmax(axis=1)
    assert errors.table()[0] == (
        "a",
        sum(codes == 0),
        sum(usual == 0),
        sum((usual == codes)[codes == 0]),
    )
    first = errors.lines("b")[0]
    assert (first.rule, first.wrong) == ("as it is", np.sum(usual != codes))


def test_a_threshold_and_a_weight_after_the_fit_are_those_of_the_probabilities(fitted):
    model, _ = fitted
    T, t = patients(3000, 2)
    shares = model.predict_proba(T)[:, 0]
    np.testing.assert_array_equal(
        predict_classes(model, T, threshold={"ill": 0.08}) == "ill", shares >= 0.08
    )
    (X, y), (P, p) = patients(1500, 0), patients(2000, 1)
    fair = AutoClassifier(**BUDGET, experts=["linear"], class_weight="balanced")
    fair.fit(X, y, private=Private(P, p))
    np.testing.assert_array_equal(
        predict_classes(model, T, class_weight="balanced"), fair.predict(T)
    )
    found = [np.mean(each[t == "ill"] == "ill") for each in (model.predict(T), fair.predict(T))]
    assert found[0] < 0.05
    assert found[1] > 0.5
    line = fair.class_errors_.lines("ill")
    assert line[0].found > 0.5 * fair.class_errors_.counts[0]
    assert line[1].rule == "the most likely class"
    assert model.class_errors_.lines("ill")[1].rule == "--class-weight balanced"
    assert model.class_errors_.lines("ill")[1].found == line[0].found


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "either threshold"),
        ({"threshold": {"ill": 0.1}, "class_weight": "balanced"}, "not both"),
        ({"threshold": {"sick": 0.1}}, "'sick' is none of the classes"),
        ({"threshold": {"ill": 0.0}}, "a probability above 0 and at most 1"),
        ({"threshold": {"ill": "half"}}, "a probability above 0 and at most 1"),
        ({"threshold": {}}, "name a class"),
        ({"class_weight": "fair"}, "must be 'balanced', or a dict"),
        ({"class_weight": {"sick": 2.0}}, "'sick' is none of the classes"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_cure(fitted, given, told):
    with pytest.raises(ValueError, match=told):
        predict_classes(fitted[0], patients(5, 0)[0], **given)


def test_models_without_probabilities_or_memory_are_refused_with_a_cure():
    X, y = patients(400, 0)
    line = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, X["age"])
    with pytest.raises(TypeError, match="AutoRegressor has no probabilities of classes"):
        predict_classes(line, X, threshold={"ill": 0.1})
    assert class_errors(line, X, X["age"]) is None
    other = ReweightingClassifier(**BUDGET).fit(X, y)
    with pytest.raises(ValueError, match="does not remember"):
        predict_classes(other, X, class_weight="balanced")
    assert keep_class_errors(other, X, y).seen
    assert (predict_classes(other, X, class_weight="balanced") == "ill").mean() > 0.1


def test_a_model_folder_remembers_what_was_counted(fitted, tmp_path):
    again = load_model(save_model(fitted[0], tmp_path / "model"))
    pd.testing.assert_frame_equal(
        again.class_errors_.to_frame(), fitted[0].class_errors_.to_frame()
    )
    assert again.class_errors_.hardly_predicted == ["ill"]


def test_a_class_of_two_rows_in_thousands_is_not_told_to_be_none():
    answers = np.tile([1.0, 0.0], (7617, 1))
    counted = ClassErrors.of(answers, (np.arange(7617) < 2) * 1, np.arange(2))
    assert "2 of 7,617 public rows are of it (less than 0.1%)" in counted.sentences()[0]


def test_counts_of_another_shape_are_refused():
    good = ClassErrors.of(np.eye(2), np.arange(2), np.arange(2))
    with pytest.raises(ValueError, match="counts of 2 classes"):
        ClassErrors(**{**vars(good), "usual": np.zeros((2, 9), dtype=int)})
    with pytest.raises(ValueError, match="counts of 2 classes"):
        ClassErrors(**{**vars(good), "counts": np.array([0.5, 0.5])})


def test_few_public_rows_are_those_that_were_fitted_to():
    X, y = patients(120, 0, share=0.1)
    model = AutoClassifier(**BUDGET).fit(X, y)
    assert model.class_errors_.seen
    assert "looks better than it is" in model.class_errors_.where
    np.testing.assert_array_equal(
        model.class_errors_.usual[0], [np.sum(model.predict(X) == name) for name in model.classes_]
    )


def test_the_public_model_of_classes_is_a_classifier_with_the_same_weights():
    X, y = patients(600, 0)
    model = AutoClassifier(**BUDGET, experts=["linear"], class_weight="balanced").fit(X, y)
    start = model.public_model_
    assert is_classifier(start)
    np.testing.assert_array_equal(start.classes_, model.classes_)
    np.testing.assert_array_equal(start.predict(X), model.predict(X))
    numbers = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, X["age"])
    assert is_regressor(numbers.public_model_)
    assert not hasattr(numbers.public_model_, "classes_")


def test_a_report_has_what_was_counted_in_all_its_forms(fitted, tmp_path):
    model = fitted[0]
    line = next(each for each in model.class_errors_.lines("ill") if each.rule.endswith("=0.05"))
    for ending in (".html", ".md", ".json"):
        text = write_report(model, tmp_path / f"report{ending}").read_text(encoding="utf-8")
        assert "--threshold ill=0.05" in text
        assert model.class_errors_.sentences()[0].partition(" is ")[2] in html.unescape(text)
    filed = json.loads(text)["classes"]
    assert filed["costs"]["ill"][-2] == line._asdict()
    assert filed["hardly_predicted"] == ["ill"]
    assert len(filed["classes"]) == 2


def test_no_word_of_the_trade_is_left_in_what_people_read(fitted):
    told = " ".join(fitted[0].explain_) + " ".join(each.said for each in fitted[0].releases_)
    assert "noise and chance alone" in told
    for word in ("energy", "horizon", "slope", "log-loss"):
        assert word not in told


def test_the_picture_says_what_was_kept_and_draws_no_line_through_words(fitted):
    figure = fitted[0].explain_figure()
    _, right = figure.axes
    assert [each.get_text() for each in right.get_yticklabels()][-1] == "kept"
    assert right.patches[-1].get_width() == pytest.approx(fitted[0].no_harm_.kept)
    assert figure._suptitle.get_text().replace("\n", " ") == fitted[0]._result()
    assert not any(line.get_visible() for line in right.get_xgridlines() + right.get_ygridlines())


def test_one_row_is_and_two_rows_are(fitted):
    good = fitted[0].class_errors_
    told = [
        replace(good, counts=np.array([60, 1440]), usual=np.array([[k, 1500 - k], [k, 1440]]))
        for k in (1, 2)
    ]
    one, two = (each.sentences()[0] for each in told)
    assert "1 is predicted to be, and 1 of the 60 is found." in one
    assert "2 are predicted to be, and 2 of the 60 are found." in two
