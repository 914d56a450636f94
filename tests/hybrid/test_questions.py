"""Questions: true answers by hand, parts, and a way through JSON that changes nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpadapt.hybrid.questions import (
    Below,
    Loss,
    Mistake,
    SameSide,
    Slope,
    Within,
    question_from_dict,
)
from dpadapt.hybrid.rules import FunctionRule, LinearRule

X = np.array([[0.1, -2.0], [np.nan, 5.0], [np.inf, -np.inf], [0.3, 0.3]])
Y = np.array([1.0, -1.0, 0.0, 1.0])
RULE = LinearRule("linear", np.zeros(2), np.ones(2), np.array([2.0, 0.5, -0.1]), (0, 1))
QUESTIONS = {
    "below": Below([0, 0, 1, 1], [0.1, 0.0, 0.0, 0.2]),
    "within": Within([1, 0, 0, 0], [0.0, 0.0, 0.0, 0.25], [2.0, 1.0, 1.0, 0.05]),
    "same side": SameSide([0, 0, 0, 1], [1, 1, 1, 0], [0.0] * 4, [0.0] * 4),
    "mistake": Mistake(RULE),
    "loss": Loss(RULE, 1.5),
    "slope": Slope(RULE),
}
every_question = pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)


def test_answers_by_hand():
    assert list(QUESTIONS["below"].values(X, None)) == [1, 0, 1, 0]
    assert list(QUESTIONS["within"].values(X, None)) == [1, 0, 0, 1]
    assert list(QUESTIONS["same side"].values(X, None)) == [0, 0, 0, 1]
    assert list(QUESTIONS["mistake"].values(X, Y)) == [
        float(RULE.predict_sign(X)[0] != 1),
        float(RULE.predict_sign(X)[1] != -1),
        1.0,
        float(RULE.predict_sign(X)[3] != 1),
    ]
    losses = QUESTIONS["loss"].values(X, Y)
    assert losses[0] == pytest.approx(min(1.5, np.log1p(np.exp(-RULE.scores(X)[0]))) / 1.5)
    assert losses[2] == 1.0
    assert QUESTIONS["slope"].values(X, Y) == pytest.approx(RULE.slopes(X, Y))


@every_question
def test_answers_lie_in_their_range_whatever_the_rows_are(question):
    rng = np.random.default_rng(0)
    odd = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 1.0], size=(4, 2))
    with np.errstate(all="raise"):
        for rows in (X, odd):
            values = question.values(rows, Y)
            if question.kind == "ball":
                assert values.shape == (4, question.width)
                assert np.linalg.norm(values, axis=1).max() <= 1.0
            else:
                assert values.shape == (4,)
                assert ((values >= 0) & (values <= 1)).all()
                assert set(values) <= {0.0, 1.0} or question.kind == "unit"


@every_question
def test_parts_are_those_of_the_agents(question):
    places = np.array([3, 1])
    whole, part = question.values(X, Y), question.at(places).values(X[places], Y[places])
    assert np.array_equal(part, whole[places])
    assert question.at(places).size in (None, 2)


@every_question
def test_round_trip_through_json_is_exact(question):
    back = question_from_dict(json.loads(json.dumps(question.to_dict(), allow_nan=False)))
    assert type(back) is type(question)
    assert back.to_dict() == question.to_dict()
    assert np.array_equal(back.values(X, Y), question.values(X, Y))


def test_round_trip_of_numbers_that_have_no_short_form():
    thresholds = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-300, 300, 0.6)
    back = question_from_dict(
        json.loads(json.dumps(Below(np.zeros(1000, int), thresholds).to_dict()))
    )
    assert np.array_equal(back.thresholds, thresholds)


@every_question
def test_which_labels_are_read(question):
    needs = isinstance(question, (Mistake, Loss, Slope))
    assert question.classes == ((0, 1) if needs else None)
    if needs:
        with pytest.raises(ValueError, match="labels"):
            question.values(X, None)


@every_question
def test_width_of_rows_is_checked(question):
    question.check(2)
    with pytest.raises(ValueError, match=r"must lie|features"):
        question.check(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Below([0.5], [1.0]),
        lambda: Below([0], [np.nan]),
        lambda: Below([0, 1], [1.0]),
        lambda: Below([[0]], [[1.0]]),
        lambda: Below([0], ["1"]),
        lambda: Loss(RULE, 0.0),
        lambda: Loss(RULE, np.inf),
    ],
)
def test_questions_that_are_none(make):
    with pytest.raises(ValueError, match=r"must be|entries"):
        make()


def test_a_slope_needs_a_linear_rule():
    with pytest.raises(TypeError, match="LinearRule"):
        Slope(FunctionRule(lambda X: X[:, 0], (0, 1)))


GOOD = Mistake(RULE).to_dict()


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"question": "what"},
        {"question": ["below"]},
        {"question": "below"},
        {"question": "below", "coordinates": [0], "thresholds": None},
        {"question": "below", "coordinates": [10**30], "thresholds": [0.0]},
        {"question": "below", "coordinates": [0], "thresholds": [[0.0], [0.0, 1.0]]},
        {"question": "below", "coordinates": [0], "thresholds": [0.0], "more": 1},
        {"question": "mistake", "rule": 7},
        {**GOOD, "rule": {**GOOD["rule"], "classes": [[1], [2]]}},
        {**GOOD, "rule": {**GOOD["rule"], "features": []}},
        {**GOOD, "rule": {**GOOD["rule"], "centre": [None, {}]}},
        {**GOOD, "rule": {**GOOD["rule"], "clip": "much"}},
        {"question": "loss", "rule": GOOD["rule"], "bound": {}},
        {"question": "loss", "rule": GOOD["rule"], "bound": 10**400},
    ],
)
def test_rubbish_is_no_question(data):
    with pytest.raises(ValueError, match="no question"):
        question_from_dict(data)


def test_a_function_cannot_be_asked_about_elsewhere():
    with pytest.raises(TypeError, match="cannot be sent"):
        Mistake(FunctionRule(lambda X: X[:, 0], (0, 1))).request(0, 1, 1.0)
