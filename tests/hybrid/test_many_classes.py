"""More than two classes: one joint rule, one bit of an agent, one gradient a step."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from dpadapt.hybrid import EstimatorLearner, FiniteClassLearner, HybridTilt, SGDLearner
from dpadapt.hybrid.device import Device
from dpadapt.hybrid.protocol import read_question, read_reply
from dpadapt.hybrid.questions import Loss, Mistake, Slope, question_from_dict
from dpadapt.hybrid.rules import LinearRule
from dpadapt.hybrid.signed_rows import SignedRows
from dpadapt.mixing import NoisyGDClassifier
from dpadapt.modelfolder import load_model, save_model
from dpadapt.papers.hybrid.doors.weights import RowWeights, weighted_sensitivity
from dpadapt.papers.hybrid.finite_class import sparse_separators
from dpadapt.papers.hybrid.learners import GradientLearner, LearningTask
from dpadapt.papers.hybrid.queries import WeightedJointSlope, lower_weights
from dpadapt.privacy import Agents, Private
from dpadapt.privacy.accounting.events import GaussianEvent
from dpadapt.report import write_report
from hybrid.reweighing import easy

NAMES = ("ant", "bee", "cat", "dog")
HOSTILE = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, 5e-324]


def blank(width=3, names=NAMES, clip=0.0):
    zero = np.zeros((width + 1, len(names)))
    return LinearRule("linear", np.zeros(width), np.ones(width), zero, names, clip)


def label(X):
    """Four quarters of the plane."""
    return np.asarray(NAMES)[2 * (X[:, 0] > 0) + (X[:, 1] > 0)]


def quarters(n=6000, **params):
    """A model and two populations of four classes."""
    rng = np.random.default_rng(1)
    X, T = rng.normal(size=(n, 2)), rng.normal(0.3, 0.8, size=(60_000, 2))
    model, *_ = easy(1, **({"classes": NAMES} | params))
    return model, X, label(X), T, label(T)


# how far one row can move the gradient


def row(rng, width=3):
    kind = rng.integers(3)
    if kind == 0:
        return rng.normal(size=width)
    return rng.choice([-1e3, 1e3], width) if kind == 1 else rng.choice(HOSTILE, width)


def part(query, X, code):
    return query.block(*query.cleaning(np.atleast_2d(X), np.atleast_1d(float(code))))


@pytest.mark.parametrize("size", [0.0, 1.0, 150.0])
def test_no_neighbour_moves_the_joint_gradient_beyond_its_sensitivity(size):
    rng = np.random.default_rng(0)
    rows = LearningTask(100, 3, blank()).embedded
    query = WeightedJointSlope(rows, size * rng.normal(size=(4, 4)))
    parts = [part(query, row(rng), rng.integers(-1, 4)) for _ in range(300)]
    assert max(map(np.linalg.norm, parts)) <= query.magnitude
    moves = [np.linalg.norm(one - two) for one in parts for two in parts]
    assert max(moves) <= query.sensitivity(1)
    if size == 150.0:  # rows of which it is sure, and wrong
        assert max(moves) > 0.7 * query.sensitivity(1)


@pytest.mark.parametrize("classes", [3, 4, 20])
def test_two_rows_attain_it_however_many_classes_there_are(classes):
    rule = blank(1, tuple(range(classes)))
    v = np.zeros((2, classes))
    v[1, 0] = 1e6  # says the first class to everybody
    query = WeightedJointSlope(LearningTask(2, 1, rule).embedded, v)
    move = np.linalg.norm(part(query, [1e3], 2) - part(query, [-1e3], 2))
    assert move == pytest.approx(2 * math.sqrt(2), rel=1e-5)
    assert move <= query.sensitivity(1)
    # a claim for two classes, 2, would be broken
    assert move > 1.4 * 2


def test_a_weighted_gradient_is_the_sum_of_the_rows():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), rng.integers(-1, 4, 40).astype(float)
    rows = LearningTask(40, 3, blank()).embedded
    V, weights = rng.normal(size=(4, 4)), rng.uniform(size=40)
    Z, labels = rows(X, y)
    expected = np.zeros((4, 4))
    for z, code, weight in zip(Z, y, weights, strict=True):
        if code >= 0:
            expected += weight * np.outer(z, softmax(V.T @ z) - np.eye(4)[int(code)])
    found = WeightedJointSlope(rows, V).weighted_block(Z, labels, weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_step_is_planned_with_the_joint_sensitivity():
    task = LearningTask(1000, 3, blank())
    planned = GradientLearner(steps=7).mechanism(task, density=0.5)
    query = WeightedJointSlope(task.embedded, np.zeros((4, 4)))
    assert planned.sensitivity == weighted_sensitivity(query, 0.5, 1000)
    assert planned.sensitivity >= 2 * math.sqrt(2) / 500
    assert (planned.count, planned.dimension) == (7, 16)


def test_the_guarantee_is_that_of_the_events_that_ran():
    model, X, y, T, people = quarters(rounds=3, target_error=0.001)
    with pytest.warns(UserWarning, match="no rule was shown"):
        model.fit(private=Private(X, y), agents=Agents(T, people))
    assert model.guarantee_.epsilon == pytest.approx(model.epsilon, rel=1e-6)
    events = [each for each in model.guarantee_.events if isinstance(each, GaussianEvent)]
    assert sum(each.count for each in events) == 3 * GradientLearner().steps
    assert model.agents_guarantee_.epsilon == model.agent_epsilon
    assert model.agents_guarantee_.delta == 0


def test_weights_of_the_others_do_not_move_when_a_row_does():
    rng = np.random.default_rng(4)
    rule = blank(2).with_coefficients(rng.normal(size=(3, 4)))
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 4, 30).astype(float)
    question = Mistake(rule)
    before = question.values(*SignedRows(2, classes=4)(X, y))
    X[7], y[7] = [math.nan, 1e300], 9.0
    after = question.values(*SignedRows(2, classes=4)(X, y))
    others = np.arange(30) != 7
    np.testing.assert_array_equal(before[others], after[others])
    assert after[7] == 1.0  # of no class: a mistake
    with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
        weights = RowWeights(session)
        lower_weights(weights, rule, SignedRows(2, classes=4), rate=0.1)
    assert weights.updates == 1


# the model


@pytest.fixture(scope="module")
def fitted():
    model, X, y, T, people = quarters()
    return model.fit(private=Private(X, y), agents=Agents(T, people)), T, people


def test_a_joint_rule_is_learnt_and_certified(fitted):
    model, T, people = fitted
    assert model.score(T, people) > 0.85
    assert model.certificate_.certified
    assert 1 - model.score(T, people) <= model.certificate_.upper
    assert model.classes_.tolist() == list(NAMES)
    assert model.decision_function(T[:5]).shape == (5, 4)
    np.testing.assert_allclose(model.predict_proba(T[:5]).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.rule_.predict(T[:50]), model.predict(T[:50]))


def test_as_many_agents_are_asked_as_for_two_classes(fitted):
    model, *_ = fitted
    two, X, y, T, people = easy(6000)
    two.fit(private=Private(X, y), agents=Agents(T, people))
    batch = two.agents_guarantee_.bounds["agents asked"] / len(two.candidates_)
    assert model.agents_guarantee_.bounds["agents asked"] == batch * len(model.candidates_)


def test_it_is_saved_and_read(fitted, tmp_path):
    model, T, _ = fitted
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(T[:100]), model.predict(T[:100]))


def test_its_report_names_the_classes_and_the_release(fitted, tmp_path):
    text = write_report(fitted[0], tmp_path / "r.html").read_text(encoding="utf-8")
    assert all(name in text for name in NAMES)
    assert "weighted joint gradient" in text


def test_weights_are_handed_on():
    model, X, y, T, people = quarters(rounds=3, target_error=0.001)
    with pytest.warns(UserWarning, match="no rule was shown"):
        model.fit(private=Private(X, y), agents=Agents(T, people))
    rules, rate = model.weighed_by_
    wrong = sum((rule.predict(X) != y).astype(float) for rule in rules)
    np.testing.assert_allclose(model.row_weights(X, y), np.exp(-rate * (len(rules) - wrong)))
    assert model.row_weights(X[:1], ["eel"]) == pytest.approx(1.0)


def test_any_estimator_of_many_classes_can_be_the_learner():
    inner = NoisyGDClassifier(epsilon=1.0, delta=1e-8, steps=30, noise="seeded", random_state=0)
    learner = EstimatorLearner(inner, draws=2000)
    given = {"learner": learner, "target_error": 0.4, "epsilon": 20.0, "rounds": 1, "kappa": 1.0}
    model, X, y, T, people = quarters(20_000, **given)
    model.fit(private=Private(X, y), agents=Agents(T, people))
    assert model.score(T, people) > 0.7
    assert set(model.predict(T)) == set(NAMES)
    assert model.decision_function(T[:7]).shape == (7, 4)
    assert model.guarantee_.epsilon <= 20.0


def test_public_rows_alone_make_the_rule_of_their_classes():
    model, X, y, *_ = quarters()
    model.fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.guarantee_.epsilon == 0
    assert model.rule_.coefficients.shape == (3, 4)


def test_agents_may_tell_the_joint_loss_itself():
    rule = blank(1, (0, 1, 2)).with_coefficients([[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    X, y = np.array([[3.0], [3.0], [3.0]]), np.array([3.0, 1.0, 0.0])
    losses = rule.losses(X, y)
    z = rule.embed(X)[0, 0]
    assert losses[0] == pytest.approx(math.log(1 + math.exp(-z) + math.exp(-2 * z)))
    assert losses[1] == pytest.approx(losses[0] + 2 * z)
    assert losses[2] == math.inf
    assert Loss(rule, 10.0).values(X, y)[2] == 1.0


# devices of their own


def test_a_device_understands_a_joint_rule(tmp_path):
    rule = blank(2).with_coefficients(np.random.default_rng(0).normal(size=(3, 4)))
    line = Mistake(rule).request(0, agent=5, epsilon=40.0)
    asked = question_from_dict(read_question(line)[0])
    np.testing.assert_array_equal(asked.rule.coefficients, rule.coefficients)
    X = np.array([[0.3, -1.2]])
    right = rule.predict(X)[0]
    for name in (right, next(each for each in NAMES if each != right), None):
        device = Device(X[0], name, epsilon=40.0, state=tmp_path / f"{name}")
        assert read_reply(device.answer(line), agent=5) == (name != right)


def test_a_question_with_a_rule_that_does_not_fit_its_classes_is_none():
    good = Mistake(blank(1)).to_dict()
    for bad in ({"classes": ["a", "b"]}, {"classes": list("abc")}, {"coefficients": [0.0, 0.0]}):
        with pytest.raises(ValueError, match="no question"):
            question_from_dict(good | {"rule": good["rule"] | bad})


# what is refused, before anything is charged


@pytest.mark.parametrize(
    "learner", [SGDLearner(steps=10), FiniteClassLearner(sparse_separators(2, 1))]
)
def test_learners_of_two_classes_say_so(learner):
    model, X, y, T, people = quarters(learner=learner)
    agents = Agents(T, people)
    with pytest.raises(ValueError, match=r"learner: .* two classes.*'gradient'"):
        model.fit(private=Private(X, y), agents=agents)
    assert agents.n_left == agents.n_agents


def test_the_tilt_is_for_two_classes_and_names_who_takes_more():
    model = HybridTilt(epsilon=1.0, delta=1e-6, agent_epsilon=1.0, classes=NAMES)
    with pytest.raises(ValueError, match=r"binary.*SubsampleTestReweigh"):
        model.fit(private=Private(np.zeros((5, 2)), ["ant"] * 5))


def test_agents_send_no_gradient_of_a_joint_rule():
    with pytest.raises(TypeError, match="two classes"):
        Slope(blank())


def test_the_shape_of_coefficients_follows_the_classes():
    with pytest.raises(ValueError, match="a column for each class"):
        blank(1, (0, 1, 2)).with_coefficients(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="coefficients must be one row"):
        LinearRule("linear", [0.0], [1.0], np.zeros((2, 2)), (0, 1))
    with pytest.raises(ValueError, match="different labels"):
        blank(1, ("a", "b", "a"))


def test_agents_of_a_file_and_of_memory_say_the_same(tmp_path):
    rule = LinearRule("linear", [0.0], [1.0], [[-1.0, 0.0, 1.0], [0.0, 0.1, 0.0]], "abc")
    X, y = np.array([[-3.0], [0.0], [3.0], [3.0]] * 9), ["a", "b", "c", "else"] * 9
    pd.DataFrame({"x": X[:, 0], "y": y}).to_parquet(tmp_path / "people.parquet")
    for agents in (Agents(X, y), Agents.from_parquet(tmp_path / "people.parquet", label="y")):
        said = agents.open(epsilon=60.0).ask(Mistake(rule), ids=range(36)).values
        np.testing.assert_array_equal(said, [0.0, 0.0, 0.0, 1.0] * 9)


SAME = [("1", "true", "x"), (0, "0", "x"), ("a", "a ", "x"), ("nan", "x", "y")]


@pytest.mark.parametrize("classes", SAME)
def test_classes_that_cells_cannot_tell_apart_are_no_question(classes, tmp_path):
    """They are refused before an agent is asked, who would have nothing to say any more."""

    def rule(labels):
        return LinearRule("linear", [0.0], [1.0], np.zeros((2, 3)), labels)

    with pytest.raises(ValueError, match="classes"):
        rule(classes)
    device = Device([1.0], "cat", epsilon=1.0, state=tmp_path / "state")
    asked = Mistake(rule(NAMES[:3])).request(0, 5, 1.0)
    names = json.dumps(list(NAMES[:3])).encode()
    assert names in asked
    hostile = asked.replace(names, json.dumps(list(classes)).encode())
    assert b'"refused": "not a question"' in device.answer(hostile)
    assert b'"refused"' not in device.answer(asked)
