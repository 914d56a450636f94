"""The error of a model on private rows: what is measured, said and refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dpadapt
from dpadapt import (
    AdaptationPipeline,
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    InteractivePredictor,
    KernelRegressor,
    Private,
    ReweightingClassifier,
    Schema,
    evaluate,
)
from dpadapt.evaluation import Evaluation
from dpadapt.evaluation.facts import compared_models, is_public, public_baseline
from dpadapt.evaluation.intervals import Chance
from dpadapt.evaluation.measures import EvaluationFacts
from dpadapt.evaluation.private_error import _part
from dpadapt.features import table_features
from dpadapt.privacy import Ledger
from dpadapt.testing.tape import releases, taped

LARGE = {"epsilon": 1e4, "delta": 1e-6, "noise": "seeded", "random_state": 0}  # almost no noise


def people(n, seed, classes=2, names=None):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    scores = X @ [1.0, -2.0, 0.5] + rng.logistic(size=n)
    if not classes:
        return X, scores
    codes = np.digitize(scores, np.linspace(-2, 2, classes + 1)[1:-1])
    return X, codes if names is None else np.asarray(names)[codes]


def fitted(kind=LogisticRegression, classes=2, names=None):
    return kind().fit(*people(400, 0, classes, names))


def test_measures_are_those_of_scikit_learn():
    model, (T, t) = fitted(), people(3000, 1)
    found = evaluate(
        model, Private(T, t), metrics=["accuracy", "error", "log_loss", "auc"], **LARGE
    )
    chances = np.clip(model.predict_proba(T), 0.01, 1.0)
    true = {
        "accuracy": model.score(T, t),
        "error": 1 - model.score(T, t),
        "log_loss": -np.log(chances[np.arange(len(t)), t]).mean(),
        "auc": roc_auc_score(t, model.predict_proba(T)[:, 1]),
    }
    for name, value in true.items():
        assert found[name].model.value == pytest.approx(value, abs=2e-3), name
        assert found[name].baseline is None
    assert len(found.guarantee.events) == 3, "accuracy and error are one release"


def test_errors_of_numbers():
    model, (T, t) = fitted(LinearRegression, 0), people(3000, 1, 0)
    base = LinearRegression().fit(T[:9], t[:9])
    found = evaluate(
        model, Private(T, t), baseline=base, label_range=(-20, 20), largest_error=12.0, **LARGE
    )
    for each, side in ((model, "model"), (base, "baseline")):
        errors = np.abs(each.predict(T) - t)
        assert getattr(found["mse"], side).value == pytest.approx((errors**2).mean(), rel=0.01)
        assert getattr(found["mae"], side).value == pytest.approx(errors.mean(), rel=0.01)
    apart = found["mae"].model.value - found["mae"].baseline.value
    assert found["mae"].difference.value == pytest.approx(apart)
    assert found["mae"].verdict == "better"
    assert "clamped to the public range -20 to 20" in " ".join(found.caveats)


def test_many_classes_and_their_calibration():
    names = ["low", "middle", "high"]
    model, (T, t) = fitted(classes=3, names=names), people(4000, 1, 3, names)
    asked = ["accuracy", "log_loss", "calibration"]
    found = evaluate(model, Private(T, t), metrics=asked, **LARGE)
    assert list(found.measures) == asked
    true = log_loss(t, model.predict_proba(T), labels=model.classes_)
    assert found["log_loss"].model.value == pytest.approx(true, abs=0.02)
    p, right = model.predict_proba(T).max(axis=1), model.predict(T) == t
    at = np.minimum((p * 5).astype(int), 4)
    gaps = np.bincount(at, p - right, minlength=5) / len(t)
    assert found["calibration"].model.value == pytest.approx(np.abs(gaps).sum(), abs=0.02)
    shares = [row[2] for row in found.bins]
    np.testing.assert_allclose(shares, np.bincount(at, minlength=5) / len(t), atol=2e-3)


def test_a_model_that_is_sure_and_wrong_is_badly_calibrated():
    class Sure(LogisticRegression):
        def predict_proba(self, X):
            return np.where(super().predict_proba(X) > 0.5, 0.99, 0.01)

    private = Private(*people(6000, 1))
    found = evaluate(fitted(Sure), private, metrics="calibration", baseline=fitted(), **LARGE)
    assert found["calibration"].verdict == "worse"


def test_the_public_model_of_auto_is_the_baseline():
    X, y = people(200, 0)
    T, t = people(2000, 1)
    model = AutoClassifier(epsilon=1.0, delta=1e-6, experts=["linear"])
    model.fit(X, y, private=Private(T, 1 - t))
    found = evaluate(model, Private(*people(3000, 2)), **LARGE)
    assert found.against == "public only"
    recalls = {"recall of 0", "recall of 1"}
    assert set(found.measures) == {"accuracy", "balanced_accuracy", *recalls, "log_loss", "auc"}
    assert found["accuracy"].verdict == "worse", "it has learnt the opposite of the truth"
    assert "public only" in found.sentence
    inside = AdaptationPipeline([("scale", StandardScaler())], model).fit(X, y)
    own = public_baseline(inside)
    same = evaluate(inside, Private(*people(500, 2)), baseline=own, **LARGE)
    assert same["accuracy"].difference.value == pytest.approx(0.0, abs=0.01)


def frame(n, seed):
    rng = np.random.default_rng([n, seed])
    table = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(3),
            "town": rng.choice(["A", "B", "C"], n),
            "member": rng.random(n) < 0.5,
        }
    )
    score = table["size"] + 2 * (table["town"] == "A") + table["member"]
    return table, score + rng.normal(size=n) * 0.1


def test_tables_of_any_cells_are_read_as_the_model_needs_them():
    X, y = frame(300, 0)
    T, t = frame(3000, 1)
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"]).fit(X, y)
    true = float(np.mean((model.predict(T) - t) ** 2))
    texts = T.astype(str)  # as a CSV file has them
    for rows in (T, texts[["town", "member", "size"]], T.assign(other=1)):
        for schema in (None, Schema.of(X)):
            found = evaluate(
                model, Private(rows, t), metrics=["mse"], schema=schema, largest_error=2.0, **LARGE
            )
            assert found["mse"].model.value == pytest.approx(true, abs=2e-3)


def dated(n, seed, how="%d.%m.%Y"):
    T, t = frame(n, seed)
    days = np.random.default_rng([n, seed, 1]).integers(0, 900, n)
    since = pd.Timestamp(2020, 1, 1) + pd.to_timedelta(days, unit="D")
    return T.assign(since=since.strftime(how) if how else since), t + days / 300


@pytest.mark.parametrize("how", ["%d.%m.%Y", "%Y-%m-%d", None])
def test_dates_are_read_as_the_model_needs_them(how):
    X, y = dated(300, 0, how)
    T, t = dated(3000, 1, how)
    auto = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    within = AdaptationPipeline([("features", table_features(X, 1))], auto)
    texts = T.astype(str)  # as a CSV file has them
    typed = dated(3000, 1, None)[0]  # as a Parquet file may have them
    for model in (auto.fit(X, y), within.fit(X, y)):
        true = float(np.mean((model.predict(T) - t) ** 2))
        for rows in (T, texts, typed):
            found = evaluate(model, Private(rows, t), metrics=["mse"], largest_error=2.0, **LARGE)
            assert found["mse"].model.value == pytest.approx(true, abs=2e-3)


def test_table_features_that_do_not_tell_kinds_need_a_schema(tmp_path):
    X, y = frame(300, 0)
    encode = ColumnTransformer([("levels", OneHotEncoder(), ["town"])], remainder="drop")
    plain = make_pipeline(encode, LinearRegression()).fit(X, y)
    ours = AdaptationPipeline([("encode", encode)], DiscrepancyRegressor(epsilon=1.0, delta=1e-6))
    account = Ledger(tmp_path / "budget.db").create("people", epsilon=1.0, delta=1e-6)
    options = {"epsilon": 0.5, "delta": 1e-6, "label_range": (-5, 5), "metrics": ["mae"]}
    for model in (plain, ours.fit(X, y)):
        with taped() as tape, pytest.raises(ValueError, match="schema must be given"):
            evaluate(model, Private(*frame(3000, 1)), ledger=account, **options)
        assert releases(tape) == []
        assert account.ledger.dataset("people").spent() == 0
        found = evaluate(model, Private(*frame(3000, 1)), schema=Schema.of(X), **options)
        assert found["mae"].model.low < 2


def test_estimators_of_the_library():
    model = ReweightingClassifier(epsilon=1.0, delta=1e-6).fit(*people(200, 0))
    found = evaluate(model, Private(*people(500, 1)), epsilon=1.0, delta=1e-6)
    assert found["accuracy"].model.high > 0.5


def test_any_model_with_predict_will_do():
    class Level:
        def predict(self, X):
            return np.zeros(len(X))

    found = evaluate(Level(), Private(*people(2000, 1, 0)), label_range=(-8, 8), **LARGE)
    assert found["mae"].model.value == pytest.approx(
        np.abs(np.clip(people(2000, 1, 0)[1], -8, 8)).mean(), rel=0.02
    )
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(*people(200, 0))
    assert evaluate(forest, Private(*people(500, 1)), **LARGE)["auc"].model.value > 0.7


def test_rows_without_an_answer_count_as_the_worst():
    model = fitted()
    T, t = people(1000, 1)
    T[:500] = np.nan  # LogisticRegression refuses them
    found = evaluate(model, Private(T, t), metrics=["error", "log_loss", "auc"], **LARGE)
    assert found["error"].model.value == pytest.approx(
        0.5 + np.sum(model.predict(T[500:]) != t[500:]) / 1000, abs=2e-3
    )
    assert found["log_loss"].model.value > 0.5 * np.log(100)


@pytest.mark.parametrize("foreign", [False, True])
def test_a_row_that_one_model_cannot_answer_is_lost_for_that_model_alone(foreign):
    X, y = people(300, 0)
    kind = RandomForestClassifier if foreign else HistGradientBoostingClassifier
    sure = kind(random_state=0, **({"n_estimators": 3} if foreign else {})).fit(X, y)
    T, t = people(150 if foreign else 1000, 1)
    T[::2, 1] = np.nan  # LogisticRegression refuses them
    right = sure.predict(T) == t
    names = ["accuracy", "recall", "log_loss", "calibration"]
    alone = evaluate(sure, Private(T, t), metrics=names, **LARGE)
    beside = evaluate(sure, Private(T, t), baseline=fitted(), metrics=names, **LARGE)
    for name, each in beside.measures.items():
        assert each.model.value == pytest.approx(alone[name].model.value, abs=5e-3), name
    assert beside["accuracy"].model.value == pytest.approx(right.mean(), abs=5e-3)
    assert beside["accuracy"].baseline.value < 0.51
    told = evaluate(sure, Private(T, t), baseline=fitted(), metrics=["auc"], **LARGE).caveats
    assert (
        "counts as the worst for that model, but for the AUC: there it is lost for both" in told[1]
    )


def test_public_rows_that_no_model_answers_are_refused():
    model, rows = fitted(), Private(*people(100, 1))
    with pytest.raises(ValueError, match="public: model answers none of these rows"):
        evaluate(model, rows, public=(np.zeros((9, 17)), [0] * 9), epsilon=1.0, delta=1e-6)


def test_rows_without_a_label_count_in_nothing():
    model, (T, t) = fitted(), people(3000, 1)
    labels = t.astype(object)
    labels[::2] = [None, np.nan, "", "?", 17][:5] * 300  # no label, or of none of the classes
    found = evaluate(model, Private(T, labels), **LARGE)
    right = evaluate(model, Private(T[1::2], t[1::2]), **LARGE)
    for name, each in found.measures.items():
        assert each.model.value == pytest.approx(right[name].model.value, abs=2e-3), name
        assert each.model.low == pytest.approx(right[name].model.low, abs=4e-3), name
        assert each.model.high == pytest.approx(right[name].model.high, abs=4e-3), name
    assert "counts in nothing: about 50% of the rows have one" in found.caveats[0]
    assert "counts in nothing: at least 99% of the rows have one" in right.caveats[0]


@pytest.mark.parametrize("places", [1, 5])
def test_people_are_counted_and_not_their_places(places):
    T, t = people(1000, 1)
    labels = t.astype(object)
    labels[:250] = np.nan
    rows = Private(T, labels, unit=np.arange(1000), max_rows=places)
    found = evaluate(fitted(), rows, metrics=["recall", "calibration"], **LARGE)
    for (_, seen), true in zip(found.classes, np.bincount(t[250:]), strict=True):
        assert seen.value == pytest.approx(true, abs=3)
    assert found.class_rows()[0] == ("class", "people with this label")
    assert found.bin_rows()[0][1] == "share of people"
    assert "about 75% of the people have one" in found.caveats[0]
    both = np.vstack([T, T]), np.append(labels, ["?"] * 1000)
    twice = Private(*both, unit=[*range(1000)] * 2, max_rows=2)
    found = evaluate(fitted(), twice, metrics=["recall"], **LARGE)
    assert sum(seen.value for _, seen in found.classes) == pytest.approx(750, abs=5)
    assert "about 75% of the people have one" in found.caveats[0]


def test_intervals_of_counts_hold_where_one_class_is_all_there_is():
    model, (T, t), missed = fitted(), people(1000, 1), 0
    for seed in range(40):
        given = {"metrics": ["recall"], "noise": "seeded", "random_state": seed}
        found = evaluate(model, Private(T, t * 0), epsilon=0.5, delta=1e-6, **given)
        many, none = (each for _, each in found.classes)
        missed += not (many.low <= 1000 <= many.high and none.low <= 0 <= none.high)
    assert missed <= 6


@pytest.mark.parametrize(("part", "told"), [(0.999, "at least 99%"), (0.9965, "about 99%")])
def test_a_part_of_the_rows_is_never_told_as_all_of_them(part, told):
    assert _part(Chance(0.0, 1000, 0.95, part, 0.001)).startswith(told)


def test_a_baseline_of_other_labels_is_refused_in_words():
    X, y = people(50, 1)
    with pytest.raises(ValueError, match="baseline must have the classes of model"):
        compared_models(fitted(), LogisticRegression().fit(X, y.astype(str)))
    names = np.array(["no", "yes"])
    one, two = (LogisticRegression().fit(X, names[y].astype(kind)) for kind in (object, str))
    assert compared_models(one, two).models == 2
    with pytest.raises(ValueError, match="baseline predicts classes"):
        compared_models(LinearRegression().fit(X, y), fitted())


def test_numbers_that_are_no_label_count_in_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = X[:, 0] + rng.normal(size=3000)
    model = LinearRegression().fit(X, y)
    labels = y.copy()
    labels[::3] = np.tile([np.nan, np.inf, -np.inf, np.nan, np.inf], 200)
    found = evaluate(model, Private(X, labels), label_range=(-9, 9), **LARGE)
    kept = np.isfinite(labels)
    errors = model.predict(X[kept]) - y[kept]
    assert found["mse"].model.value == pytest.approx(np.mean(errors**2), abs=0.02)
    assert found["mae"].model.value == pytest.approx(np.mean(np.abs(errors)), abs=0.02)


def test_labels_that_nobody_can_read_are_told():
    labels = np.array(["?"] * 1000, dtype=object)
    lost = evaluate(fitted(), Private(people(1000, 1)[0], labels), metrics=["accuracy"], **LARGE)
    assert (lost["accuracy"].model.low, lost["accuracy"].model.high) == (0.0, 1.0)
    assert "labels could not be read" in lost.caveats[-1]


def test_what_one_row_is_worth_does_not_depend_on_others():
    facts = EvaluationFacts(compared_models(fitted(), None))
    X = np.array([[1.0, 0.2, 0.8], [np.nan, np.nan, np.nan], [0.0, 1.0, 0.0]])
    y = np.array([1.0, 1.0, np.nan])
    for worth in (facts.wrong, facts.log_losses):
        whole = worth(X, y)
        alone = np.vstack([worth(X[i : i + 1], y[i : i + 1]) for i in range(3)])
        np.testing.assert_array_equal(whole, alone)


def test_fewer_measures_are_more_precise():
    model, private = fitted(), Private(*people(2000, 1))
    options = {"epsilon": 0.1, "delta": 1e-6}
    one = evaluate(model, private, metrics=["accuracy"], **options)["accuracy"].model
    many = ["accuracy", "log_loss", "auc", "calibration"]
    four = evaluate(model, private, metrics=many, **options)["accuracy"].model
    assert (four.high - four.low) > 1.5 * (one.high - one.low)


def test_an_evaluation_can_be_written_read_and_shown():
    found = evaluate(fitted(), Private(*people(300, 1)), baseline=fitted(), **LARGE)
    again = Evaluation.from_dict(json.loads(found.to_json()))
    assert again.to_dict() == found.to_dict()
    assert again.guarantee == found.guarantee
    page = found._repr_html_()
    assert "<th>baseline</th>" in page
    assert "no verdict" in page
    assert found.sentence in str(found)
    changed = json.loads(found.to_json())
    changed["guarantee"]["epsilon"] = 0.1
    with pytest.raises(ValueError, match="changed after it was written"):
        Evaluation.from_dict(changed)
    with pytest.raises(ValueError, match="no evaluation"):
        Evaluation.from_dict({"format": "other"})


def test_it_is_charged_to_a_ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("patients", epsilon=1.0, delta=1e-6)
    found = evaluate(
        fitted(),
        Private(*people(300, 1)),
        epsilon=0.3,
        delta=1e-6,
        ledger=ledger.account("patients"),
    )
    state = ledger.dataset("patients")
    assert [charge.label for charge in state.charges] == ["evaluation"]
    assert state.charges[0].events == found.guarantee.events
    assert state.spent() == pytest.approx(0.3, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": ["mse"]}, "for models that predict numbers"),
        ({"metrics": ["fun"]}, "'fun' is none of mse, mae"),
        ({"metrics": []}, "at least one"),
        ({"metrics": ["auc", "auc"]}, "different names"),
        ({"confidence": 1.0}, "confidence must lie strictly between"),
        ({"epsilon": 0}, "epsilon must be a positive"),
        ({"delta": 2.0}, "delta must lie strictly between"),
        ({"label_range": (0, 1)}, "for models that predict numbers"),
        ({"private": Private(people(9, 1)[0])}, "private must have labels"),
        ({"private": Private(*people(0, 1))}, "private has no rows"),
        ({"private": Private(np.zeros((5, 2)), np.zeros(5))}, "2 columns"),
        ({"baseline": fitted(classes=3)}, "classes of model"),
        ({"model": LogisticRegression()}, "not fitted yet"),
    ],
)
def test_what_is_wrong_is_refused_and_costs_nothing(change, words):
    private = Private(*people(50, 1))
    given = {"model": fitted(), "private": private, "epsilon": 1.0, "delta": 1e-6} | change
    with pytest.raises(ValueError, match=words):
        evaluate(**given)
    assert private.spent(1e-6).epsilon == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "label_range must be given"),
        ({"label_range": (1.0, 1.0)}, "low below high"),
        ({"label_range": (0.0, np.inf)}, "low below high"),
        ({"label_range": (0.0, 1e200)}, "a width whose square is a number"),
        ({"label_range": (-1e308, 1e308)}, "a width whose square is a number"),
        ({"label_range": (0.0, 1e-200)}, "a width whose square is a number"),
        ({"label_range": (0.0, 1.0), "largest_error": 1e-200}, "largest_error is too small"),
        ({"label_range": (0.0, 1.0), "confidence": 1 - 1e-16}, "that differs from 1"),
        ({"label_range": (0.0, 1.0), "largest_error": -1.0}, "largest_error must be a positive"),
        ({"metrics": ["auc"]}, "two classes"),
    ],
)
def test_what_is_wrong_with_numbers(change, words):
    model = fitted(LinearRegression, 0)
    given = {"label_range": (-9, 9)} if "metrics" in change else {}
    private = Private(*people(50, 1, 0))
    with pytest.raises(ValueError, match=words):
        evaluate(model, private, epsilon=1.0, delta=1e-6, **given, **change)
    assert private.spent(1e-6).epsilon == 0.0


def test_wrong_types_are_refused():
    budget = {"epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(TypeError, match=r"must be a dpadapt\.Private"):
        evaluate(fitted(), people(9, 1), **budget)
    with pytest.raises(TypeError, match="fitted model with predict"):
        evaluate("model", Private(*people(9, 1)), **budget)
    X, y = people(40, 0, 0)
    kernel = KernelRegressor(epsilon=1.0, delta=1e-6)
    predictor = InteractivePredictor(kernel).fit(X, y, private=Private(X, y))
    with pytest.raises(TypeError, match="must not be asked private rows"):
        evaluate(predictor, Private(X, y), label_range=(-9, 9), **budget)
    assert predictor.questions_asked_ == 0
    predictor.close()


def test_a_regressor_whose_label_range_nobody_knows():
    X, y = people(60, 0, 0)
    model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6).fit(X, y)
    with pytest.raises(ValueError, match="label_range must be given"):
        evaluate(model, Private(X, y), epsilon=1.0, delta=1e-6)


def test_the_name_is_where_users_look():
    assert dpadapt.evaluate is evaluate
    assert "evaluate" in dir(dpadapt)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_a_model_that_is_the_public_one_is_compared_with_nothing(classes):
    kind = AutoClassifier if classes else AutoRegressor
    model = kind(epsilon=1.0, delta=1e-6, experts=["linear"], noise="seeded", random_state=0)
    (X, y), (T, t) = people(200, 0, classes), people(1000, 1, classes)
    model.fit(X, y, private=Private(T + 1, t))
    assert not is_public(model)
    assert evaluate(model, Private(T, t), **LARGE).against == "public only"
    moved = model.adapted_
    if classes:
        model.adapted_ = model.public_facts(X, y).start(precision=0.0)
    else:
        none = {"constant": 0.0, "on_scores": 0 * moved.on_scores}
        model.adapted_ = replace(moved, on_features=0 * moved.on_features, **none)
    np.testing.assert_allclose(model.predict(T), model.public_model_.predict(T))
    found = evaluate(model, Private(T, t), **LARGE)
    assert found.against == ""
    assert all(each.difference is None for each in found.measures.values())
    assert found.caveats[0] == "The model is the public model: there is nothing to compare."
    assert evaluate(model, Private(T, t), baseline=model.public_model_, **LARGE).against
