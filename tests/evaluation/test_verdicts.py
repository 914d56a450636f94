"""What can be seen is said beforehand; below it there is no verdict; columns and differences agree.

Coverage: of 150 repeats at most 25 may miss at 5 % (binomial tail 1e-7). Seeds are fixed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, precision_score, recall_score

from dpadapt import AutoRegressor, Private, evaluate, predict_classes
from dpadapt.evaluation import Evaluation, Interval, Measured, outlook, outlook_of, public_facts
from dpadapt.evaluation.class_queries import ByClass
from dpadapt.evaluation.facts import EvaluationFacts, OnPublic, compared_models
from dpadapt.evaluation.intervals import Chance, Counted, Raw
from dpadapt.evaluation.queries import AsAnswered
from dpadapt.privacy.rows import views
from dpadapt.rare import class_errors

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
LARGE = {"epsilon": 1e4, "delta": 1e-6, "noise": "seeded", "random_state": 0}  # almost no noise
REPEATS, MOST_WRONG = 150, 25


def people(n, seed, classes=2, rare=0.5):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    scores = X @ [1.0, -2.0, 0.5] + rng.logistic(size=n)
    if not classes:
        return X, scores
    ends = np.quantile(scores, np.linspace(1 - rare, 1, classes)[:-1])
    return X, np.digitize(scores, ends)


def models(classes=2):
    (X, y), kind = people(300, 0, classes), LogisticRegression if classes else LinearRegression
    return kind().fit(X, y), kind().fit(X * [1, 1, 0], y)


def bounds(classes):
    return {} if classes else {"label_range": (-12.0, 12.0), "largest_error": 8.0}


@pytest.mark.parametrize("classes", [2, 4])
def test_measures_by_class_are_those_of_scikit_learn(classes):
    (model, base), (T, t) = models(classes), people(4000, 1, classes)
    names = ["accuracy", "balanced_accuracy", "recall", "precision"]
    found = evaluate(model, Private(T, t), baseline=base, metrics=names, **LARGE)
    assert len(found.guarantee.events) == 1, "one release for all"
    for each, side in ((model, "model"), (base, "baseline")):
        told = {name: getattr(one, side).value for name, one in found.measures.items()}
        answers = each.predict(T)
        assert told["accuracy"] == pytest.approx(each.score(T, t), abs=2e-3)
        true = balanced_accuracy_score(t, answers)
        assert told["balanced_accuracy"] == pytest.approx(true, abs=4e-3)
        recall = recall_score(t, answers, average=None)
        precision = precision_score(t, answers, average=None, zero_division=np.nan)
        for c in range(classes):
            assert told[f"recall of {c}"] == pytest.approx(recall[c], abs=0.01)
            if np.mean(answers == c) > 0.02:
                assert told[f"precision of {c}"] == pytest.approx(precision[c], abs=0.02)
    rows = [each.value for _, each in found.classes]
    np.testing.assert_allclose(rows, np.bincount(t), atol=8)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_threshold_is_measured_as_the_rule_that_it_makes(classes):
    (model, base), (T, t) = models(classes), people(4000, 1, classes)
    rule = {"metrics": ["accuracy", "recall", "precision"], "threshold": {1: 0.2}}
    found = evaluate(model, Private(T, t), baseline=base, **rule, **LARGE)
    assert found.sentence.startswith("On 4,000 private rows, predicting 1 from 0.2 on, with")
    assert Evaluation.from_dict(found.to_dict()).rule == found.rule
    for each, side in ((model, "model"), (base, "baseline")):
        told = {name: getattr(one, side).value for name, one in found.measures.items()}
        answers = predict_classes(each, T, threshold={1: 0.2})
        assert abs(np.mean(answers == t) - each.score(T, t)) > 0.01, "another rule"
        assert told["accuracy"] == pytest.approx(np.mean(answers == t), abs=2e-3)
        recall, precision = (
            kind(t, answers, average=None) for kind in (recall_score, precision_score)
        )
        assert told["recall of 1"] == pytest.approx(recall[1], abs=0.01)
        assert told["precision of 1"] == pytest.approx(precision[1], abs=0.02)


def test_what_public_rows_said_without_a_threshold_is_not_used_with_one():
    (model, base), private = models(), Private(*people(900, 1))
    given = {"baseline": base, "metrics": ["recall"], "threshold": {1: 0.1}, **BUDGET}
    public = people(300, 0)
    kept = public_facts(model, *public, baseline=base)
    nothing, facts, rows = (
        outlook(model, private, public=each, **given).limits for each in (None, kept, public)
    )
    assert facts == nothing
    assert rows != nothing


def test_a_threshold_needs_probabilities_and_a_class():
    (model, _), (X, y) = models(), people(50, 1)
    for wrong, words in (({2: 0.1}, "none of the classes"), ({1: 2.0}, "must be a probability")):
        with pytest.raises(ValueError, match=words):
            evaluate(model, Private(X, y), threshold=wrong, **BUDGET)
    line = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="threshold needs probabilities"):
        evaluate(line, Private(X, y), threshold={1: 0.1}, label_range=(0, 1), **BUDGET)


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("known", [False, True])
def test_noise_is_what_was_announced(classes, known):
    (model, base), private = models(classes), Private(*people(700, 1, classes))
    names = ["mae", "mse"] if not classes else ["recall", "precision", "log_loss"]
    given = {"baseline": base, "metrics": names, **BUDGET, **bounds(classes)}
    if known:
        given["public"] = people(300, 0, classes)
    told = outlook(model, private, **given)
    assert private.spent(1e-6).epsilon == 0.0
    halves = {name: [] for name in told.limits}
    for draw in range(5):
        found = evaluate(model, private, **given, noise="seeded", random_state=draw)
        assert {name: each.limit for name, each in found.measures.items()} == {
            name: each.limit for name, each in told.limits.items()
        }
        for name, each in found.measures.items():
            halves[name].append((each.difference.high - each.difference.low) / 2)
    for name, each in told.limits.items():
        half = np.median(halves[name])
        assert half < 1.6 * each.limit or half > 0.45, "announced and found are of one size"


def test_a_call_in_the_order_of_scikit_learn_is_told_how():
    (model, _), (X, y) = models(), people(50, 1)
    cure = r"evaluate\(model, Private\(X, y\), epsilon=\.\.\., delta=\.\.\.\)"
    for given, named in (
        ((model, X, y), {}),
        ((model, X, y), BUDGET),
        ((model, X), BUDGET),
        ((model, Private(X, y)), {}),
        ((model,), BUDGET),
    ):
        with pytest.raises(TypeError, match=cure):
            evaluate(*given, **named)


def measured(value, low, high, limit):
    side = Interval(0.5, 0.4, 0.6)
    return Measured("accuracy", side, side, Interval(value, low, high), True, limit)


@pytest.mark.parametrize(
    ("sides", "limit", "verdict"),
    [
        ((0.05, 0.01, 0.09), 0.04, "better"),
        ((-0.05, -0.09, -0.01), 0.04, "worse"),
        ((0.05, 0.01, 0.09), 0.06, "no verdict"),  # below what could be seen
        ((0.05, -0.01, 0.11), 0.04, "no verdict"),
        ((0.05, 0.01, 0.09), None, "better"),  # of an older file
    ],
)
def test_verdicts(sides, limit, verdict):
    assert measured(*sides, limit).verdict == verdict


def test_an_older_evaluation_is_read():
    model, base = models()
    found = evaluate(model, Private(*people(200, 1)), baseline=base, **LARGE)
    data = found.to_dict() | {"format": "dpadapt evaluation 1"}
    del data["classes"]
    for each in data["measures"].values():
        del each["limit"]
    assert Evaluation.from_dict(data)["accuracy"].limit is None
    data = found.to_dict()
    data["measures"]["accuracy"]["limit"] = float("nan")
    with pytest.raises(ValueError, match="limit"):
        Evaluation.from_dict(data)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_columns_and_differences_agree_however_large_the_noise(classes):
    model, base = models(classes)
    by_class = ["accuracy", "balanced_accuracy", "recall", "precision"]
    probable = ["log_loss", "calibration"]
    names = {0: ["mae", "mse"], 2: [*by_class, *probable, "auc"], 3: [*by_class, *probable]}
    for seed in range(25):
        found = evaluate(
            model,
            Private(*people(30, seed, classes)),
            baseline=base,
            public=people(300, 0, classes),
            noise="seeded",
            random_state=seed,
            metrics=names[classes],
            **BUDGET,
            **bounds(classes),
        )
        for each in found.measures.values():
            apart = each.model.value - each.baseline.value
            assert each.difference.value == pytest.approx(apart, abs=1e-9)
            for side in (each.model, each.baseline, each.difference):
                assert side.low <= side.value <= side.high
            for side in (each.model, each.baseline):
                assert side.low >= 0


def test_a_difference_is_no_larger_than_the_models_are_apart():
    (X, y), (model, _) = people(300, 0), models()
    near = LogisticRegression().fit(X, y)
    near.coef_ = near.coef_ * 1.0001
    for seed in range(20):
        given = {"baseline": near, "public": (X, y), **BUDGET}
        options = {"noise": "seeded", "random_state": seed}
        rows = Private(*people(40, seed))
        found = evaluate(model, rows, metrics=["accuracy", "log_loss"], **given, **options)
        assert abs(found["log_loss"].difference.value) < 1.0
        assert abs(found["accuracy"].difference.value) <= 0.02
        apart = found["accuracy"].difference
        assert apart.high - apart.low > 0.3, "the interval holds the noise"
        assert found["accuracy"].verdict == "no verdict"
    told = outlook(model, rows, **given)
    assert told.limits["accuracy"].blind
    assert "no verdict is to be expected: the two models are too much alike. By 300" in str(told)
    most, limit = told.limits["accuracy"].most, told.limits["accuracy"].limit
    assert "public rows, doubled, they differ by" in str(told)
    assert f"by {most:.2g} at most in accuracy, which is seen from {limit:.2g} on" in str(told)


def test_a_few_rows_that_are_far_apart_do_not_let_a_difference_of_means_look_large():
    """The mean size of differences bounds it; the root of their mean square is ten times it."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=2000), np.arange(2000) < 10])
    y = X[:, 0]
    one, two = LinearRegression().fit(X, y), LinearRegression().fit(X, y)
    two.coef_ = two.coef_ + np.array([0.0, 1.0])  # wrong on one row in 200
    given = {"baseline": two, "label_range": (0.0, 2.0), "largest_error": 2.0, "public": (X, y)}
    size = np.abs(two.predict(X) - y).mean()  # 0.005, of errors and of their squares
    for name in ("mae", "mse"):
        rows = Private(X.copy(), y)
        told = outlook(one, rows, metrics=[name], **given, **BUDGET).limits[name]
        assert 2 * size <= told.most <= 6 * size
        assert told.most < 2 * np.sqrt(size), "twice the root of the mean square"
    for share in (0.03, 0.3):  # of private people, who are such rows
        part = (y < share) * 1.0
        rows = Private(np.column_stack([y, part]), y)
        for seed in range(5):
            options = {"random_state": seed, "noise": "seeded", "metrics": ["mae"]}
            found = evaluate(one, rows, epsilon=50.0, delta=1e-6, **options, **given)["mae"]
            assert found.difference.value == pytest.approx(-part.mean(), rel=0.05)
            assert found.verdict == "better"


def test_rows_on_which_models_are_farther_apart_than_on_public_ones_count_in_full():
    corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    one = LinearRegression().fit(corners, [0.0, 1.0, 0.0])
    two = LinearRegression().fit(corners, [0.01, 1.01, -0.8])
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0.2, 0.8, 400), np.zeros(400)])  # 0.01 apart on all of them
    held, told = np.zeros(2), []
    for seed in range(20):
        T = np.column_stack([rng.uniform(0.2, 0.8, 5000), rng.random(5000) < 0.1])
        t = T[:, 0] + 0.01 * (T[:, 1] == 0)
        base = np.abs(np.clip(two.predict(T), 0, 1) - t).mean()
        true = np.abs(one.predict(T) - t).mean() - base
        given = {"baseline": two, "public": (X, X[:, 0] + 0.005), "label_range": (0.0, 1.0)}
        given |= {"metrics": ["mae"], "noise": "seeded", "random_state": seed}
        found = evaluate(one, Private(T, t), epsilon=1.0, delta=1e-6, **given)["mae"]
        held += [
            each.low <= at <= each.high
            for each, at in ((found.difference, true), (found.baseline, base))
        ]
        told.append(found.verdict)
    assert min(held) >= 17
    assert "worse" not in told
    assert told.count("better") >= 17


def test_the_closer_the_models_the_smaller_a_difference_is_seen():
    (model, base), (X, y) = models(0), people(300, 0, 0)
    base.coef_ = model.coef_ * 1.01
    base.intercept_ = model.intercept_
    given = {"baseline": base, **BUDGET, **bounds(0)}
    rows = Private(*people(1000, 1, 0))
    blind = outlook(model, rows, **given).limits["mae"].limit
    assert outlook(model, rows, public=(X, y), **given).limits["mae"].limit < blind / 1.5
    known = public_facts(model, X, y, baseline=base, **bounds(0))
    again = OnPublic.from_dict(known.to_dict())
    assert again == known
    assert (
        outlook(model, rows, public=again, **given).limits
        == outlook(model, rows, public=(X, y), **given).limits
    )
    older = OnPublic.from_dict(known.to_dict() | {"largest": {"mae": 0.1}})
    assert set(older.means) == {"mse", "mse apart", "mae apart"}
    with pytest.raises(ValueError, match="finite numbers"):
        OnPublic.from_dict(known.to_dict() | {"means": {"mae": [float("inf")]}})
    for wrong in (X, (X, y, y)):
        with pytest.raises(TypeError, match="public must be"):
            evaluate(model, rows, public=wrong, **given)
    with pytest.raises(ValueError, match="as many labels as rows"):
        evaluate(model, rows, public=(X, y[:-1]), **given)


def test_rows_without_an_answer_are_wrong_and_predicted_as_nothing():
    query = ByClass(AsAnswered(1.0), lambda X: X, 3, 1, predicted=True)
    counts = query.block(np.array([[np.nan], [7.0], [1.0]]), np.array([1.0, 1.0, 1.0]))
    total, parts = counts[0], counts[1:-1].reshape(-1, 3)
    assert total == 0.5
    np.testing.assert_allclose(parts[0], [0, 0.5, 0])
    np.testing.assert_allclose(parts[1] / query.class_weight, [0, 3, 0])
    np.testing.assert_allclose(parts[2] / query.predicted_weight, [0, 1, 0])


def test_few_are_measured_unless_rows_are_enough():
    for rows, more in ((1000, set()), (50_000, {"log_loss", "auc"})):
        (model, base), private = models(), Private(*people(rows, 1))
        told = set(outlook(model, private, baseline=base, **BUDGET).limits)
        recalls = {"recall of 0", "recall of 1"}
        assert told == {"accuracy", "balanced_accuracy", *recalls, *more}
    assert set(outlook_of(500, None, label_range=(0.0, 9.0), **BUDGET).limits) == {"mae"}
    assert set(outlook_of(50_000, None, label_range=(0.0, 9.0), **BUDGET).limits) == {"mae", "mse"}
    many = outlook_of(500, range(30), **BUDGET)
    assert set(many.limits) == {"accuracy", "balanced_accuracy"}


def test_before_a_fit_all_is_foreseen_that_will_be_measured():
    """Where rows are enough for log-loss and AUC, everything else is measured less precisely."""
    (model, base), private = models(), Private(*people(4000, 1))
    before = outlook_of(4000, [0, 1], **BUDGET)
    after = outlook(model, private, baseline=base, **BUDGET)
    assert [*before.limits] == [*after.limits]
    assert {"log_loss", "auc"} < {*before.limits}
    for name, limit in before.limits.items():
        assert limit.limit == pytest.approx(after.limits[name].limit), name
    without = outlook_of(4000, [0, 1], probabilities=False, **BUDGET).limits
    assert [*without] == [name for name in before.limits if name not in ("log_loss", "auc")]
    assert all(limit.limit < before.limits[name].limit for name, limit in without.items())


def test_a_value_of_which_nothing_was_seen_is_no_number():
    """The middle of all that can be is no measurement; its interval is all there is."""
    whole = Interval(0.5, 0.0, 1.0), Interval(0.5, 0.0, 1.0), Interval(0.0, -1.0, 1.0)
    lost = Measured("recall of a", *whole, True, limit=1.2, largest=1.0)
    assert lost.texts == ("– (0.0 to 1.0)", "– (0.0 to 1.0)", "– (-1.0 to 1.0)")
    seen = Measured("recall of a", Interval(0.5, 0.0, 0.9), *whole[1:], True, 1.2, 1.0)
    assert seen.texts[0] == "0.50 (0.00 to 0.90)"
    assert Measured("mae", Interval(0.5, 0.0, 1.0), None, None, False).texts[0].startswith("0.5")


def test_before_a_fit_classes_are_as_large_as_in_public_rows():
    """Limits by counts are those that an evaluation has, whose model knows the same counts."""
    counts = {"no": 1900, "yes": 100}
    names = {"metrics": ["accuracy", "recall", "auc"], **BUDGET}
    rare, fair = (outlook_of(5000, each, **{**names, "metrics": ["accuracy", "recall"]}).limits
                  for each in (counts, list(counts)))  # fmt: skip
    assert rare["recall of yes"].limit > 3 * fair["recall of yes"].limit
    assert rare["recall of no"].limit < fair["recall of no"].limit
    X, y = people(5000, 0, rare=0.05)
    model, base = (LogisticRegression().fit(X[:n], y[:n]) for n in (400, 300))
    told = outlook(model, Private(X, y), baseline=base, **names).limits
    model.class_errors_ = class_errors(model, X, y)
    known = outlook(model, Private(X, y), baseline=base, **names).limits
    assert known["recall of 1"].limit > 3 * told["recall of 1"].limit
    assert known["auc"].limit > 1.5 * told["auc"].limit
    truth = outlook(model, Private(X, y), baseline=base, public=(X, y), **names).limits
    assert known["auc"].limit == pytest.approx(truth["auc"].limit, rel=0.6)


def test_with_too_few_rows_it_is_said_that_nothing_can_be_told():
    """No limit beyond what a measure can be is shown as a number, before or after."""
    rare = outlook_of(60, {"no": 99, "yes": 1}, **BUDGET)
    assert rare.limits["recall of yes"].limit > 1
    assert rare.limits["recall of yes"].lost
    told = str(rare)
    assert told.startswith("With 60 private rows at epsilon 1, ")
    assert "With so few private rows nothing can be told about recall of yes." in told
    assert "recall of yes 1" not in told
    assert "1.1" not in told
    few = str(outlook_of(8, ["no", "yes"], **BUDGET))
    assert few == (
        "With 8 private rows at epsilon 1, which are too few, nothing can be told about accuracy, "
        "balanced accuracy, recall of no, recall of yes."
    )
    numbers = outlook_of(5, None, label_range=(0.0, 9.0), **BUDGET)
    assert numbers.limits["mae"].limit > 9
    assert "which are too few" in str(numbers)
    (model, base), private = models(), Private(*people(8, 1))
    for other in (base, None):
        given = {"baseline": other, **BUDGET}
        assert "which are too few" in str(outlook(model, private, **given))
        found = evaluate(model, private, **given)
        again = Evaluation.from_dict(found.to_dict())
        for each in (found, again):
            assert ("too few rows" in str(each)) == (other is not None)
            assert "seen from" not in str(each)


def test_the_model_of_a_public_table_alone_is_told_to_within_so_much():
    X, y = people(200, 0, 0)
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, y)
    told = outlook(model, Private(X, y), **BUDGET, public=(X, y))
    assert told.against == ""
    assert "mean absolute error within" in str(told)


def test_a_class_that_is_lost_in_noise_has_the_whole_range():
    query = ByClass(AsAnswered(1.0), lambda X: X, 2, 2)
    found = np.array([-0.3, -0.3, -0.5, -0.3, 0.0, -0.3, 0.0, -0.5, 0.0, 0.5, 0.001])
    raw = Counted(found, query, Chance(0.01, 500, 0.95)).recall(1)
    assert [(each.low, each.high) for each in raw.sides] == [(0.0, 1.0)] * 2 + [(-1.0, 1.0)]


def test_classes_that_are_lost_leave_their_mean_open():
    query = ByClass(AsAnswered(1.0), lambda X: X, 10, 2)
    wrong = np.array([-0.45, -0.45, -0.5])  # of two models, and how often they differ
    found = np.concatenate([wrong, np.repeat(wrong / 10, 10), np.full(10, 0.05)])
    raw = Counted(found, query, Chance(0.1, 1000, 0.95)).balanced(np.ones(10))
    assert [(each.low, each.high) for each in raw.settled()] == [(0.0, 1.0)] * 2 + [(-1.0, 1.0)]
    raw = Counted(found, query, Chance(1e-4, 10**6, 0.95)).balanced(np.ones(10))
    assert raw.sides[0].low == pytest.approx(0.95, abs=0.01)


def test_settling_widens_and_never_narrows_a_column():
    wild = Interval(1.4, 1.2, 1.6), Interval(0.2, 0.1, 0.3), Interval(1.2, 0.9, 1.5)
    model, base, apart = Raw(wild, 0.5).settled()
    assert apart == Interval(0.5, 0.5, 1.0)
    assert model.value - base.value == pytest.approx(0.5)
    assert base.low <= base.value <= base.high


@pytest.mark.parametrize("value", [1.4, -1.4])
def test_an_interval_beyond_what_can_be_keeps_its_width(value):
    found = Interval(value, value - 0.2, value + 0.2).cut(-1.0, 1.0)
    assert abs(found.value) == 1.0
    assert found.high - found.low == pytest.approx(0.2)


def test_an_interval_holds_a_difference_that_public_rows_rule_out():
    found, verdicts = 0, set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 4000).astype(float)
        moved = np.where(rng.random(4000) < 0.1, 1 - y, y)  # the second is wrong on a tenth
        query = ByClass(AsAnswered(1.0), lambda X: X, 2, 2)
        noise = 4 * query.sensitivity(4000)
        mean = query.block(np.column_stack([y, moved]), y)[:-1] / 4000
        mean += rng.normal(scale=noise, size=mean.shape)
        counted = Counted(mean, query, Chance(noise, 4000, 0.95))
        apart = counted.error(known=0.004).settled()[2]  # by public rows, 0.004 at most
        found += apart.low <= -0.1 <= apart.high
        wide = counted.error().settled()[2]
        assert apart.high - apart.low >= wide.high - wide.low - 1e-12
        assert apart.value == wide.value
        verdicts.add(apart.value < -0.05)
    assert found >= 26
    assert verdicts == {True}


def missed(classes, epsilon, n, rare, names, repeats=REPEATS):
    model, base = models(classes)
    T, t = people(200_000, 5, classes, rare)
    true = []
    for each in (model, base):
        answers = each.predict(T)
        recall = recall_score(t, answers, average=None)
        named = {f"recall of {c}": recall[c] for c in range(classes)}
        precision = precision_score(t, answers, average=None, zero_division=0)
        named |= {f"precision of {c}": precision[c] for c in range(classes)}
        named |= {"accuracy": np.mean(answers == t), "balanced_accuracy": recall.mean()}
        true.append(named)
    count = Counter()
    for seed in range(repeats):
        drawn = np.random.default_rng(seed).integers(0, len(T), n)
        options = {"noise": "seeded", "random_state": seed, "metrics": names}
        budget = {"epsilon": epsilon, "delta": 1e-6}
        rows = Private(T[drawn], t[drawn])
        found = evaluate(
            model, rows, baseline=base, public=people(300, 0, classes), **budget, **options
        )
        for name, each in found.measures.items():
            values = true[0][name], true[1][name], true[0][name] - true[1][name]
            for side, value in zip(("model", "baseline", "difference"), values, strict=True):
                interval = getattr(each, side)
                count[name, side] += not interval.low <= value <= interval.high
            gain = values[2]
            count[name, "wrong"] += each.verdict == ("worse" if gain > 0 else "better")
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "epsilon", "n", "rare"),
    [(2, 0.5, 400, 0.5), (2, 2.0, 2000, 0.08), (4, 1.0, 1000, 0.6), (2, 10.0, 60, 0.3)],
)
def test_intervals_by_class_hold_the_truth(monkeypatch, classes, epsilon, n, rare):
    assert stats.binom.sf(MOST_WRONG, REPEATS, 0.05) < 1e-6
    monkeypatch.setattr(views, "row_wise", lambda transform: True)  # these models are
    names = ["accuracy", "balanced_accuracy", "recall", "precision"]
    count = missed(classes, epsilon, n, rare, names)
    assert max(count.values()) <= MOST_WRONG, count


def test_intervals_by_class_that_forget_the_noise_are_found(monkeypatch):
    monkeypatch.setattr(views, "row_wise", lambda transform: True)
    own = Counted.__init__

    def forgetful(self, found, query, chance):
        own(self, found, query, replace(chance, noise=0.0))

    monkeypatch.setattr(Counted, "__init__", forgetful)
    count = missed(2, 0.5, 400, 0.5, ["recall"], repeats=50)
    assert count["recall of 1", "model"] > 15


def test_a_class_that_is_never_found_is_told():
    class Never(LogisticRegression):
        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    (X, y), private = people(300, 0), Private(*people(2000, 1, rare=0.1))
    found = evaluate(Never().fit(X, y), private, **LARGE)
    assert found["accuracy"].model.value > 0.85
    assert "recall of 1 is 0.0" in found.caveats[-1]
    assert "class_weight" in found.caveats[-1]


def test_facts_of_other_models_are_not_used():
    model, base = models()
    known = public_facts(model, *people(300, 0))  # of one model alone
    facts = EvaluationFacts(compared_models(model, base), public=known)
    assert facts.compared is None


def test_nothing_is_shown_as_minus_zero():
    near = Interval(-0.0012, -0.26, 0.17)
    shown = Measured("recall", Interval(0.99, 0.78, 1.0), Interval(0.99, 0.82, 1.0), near, True)
    assert shown.texts[2] == "0.00 (-0.26 to 0.17)"


def test_the_note_on_a_difference_allows_for_chance():
    (model, base), (X, y) = models(0), people(400, 1, 0)
    given = {"baseline": base, "public": (X, y), **bounds(0), **LARGE}
    found = evaluate(model, Private(X, y), **given)
    assert any("public rows and chance there allow" in each for each in found.caveats)
