"""AutoClassifier: few public rows, class weights, probabilities, what the noise costs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from dpadapt import AdaMixClassifier, AutoClassifier, PrivacyError, Private
from dpadapt.audit import replay
from dpadapt.auto import classification_inference
from dpadapt.auto.classification_inference import Observation, centred, shift_posterior, slopes
from dpadapt.auto.classification_step import _prepared, _scored, _wrong
from dpadapt.auto.releases import StepBudget
from dpadapt.modelfolder import load_model, save_model
from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics import mean_number
from dpadapt.rare import weights_of_classes
from dpadapt.reweighting.plan import choose_course
from dpadapt.testing.search import HOSTILE_LABELS, HOSTILE_ROWS, hostile_row
from dpadapt.testing.tape import taped

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}


def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    few = np.concatenate([order[y[order] == digit][:5] for digit in range(10)])
    rest = np.setdiff1d(order, few)
    return (X[few], y[few]), (X[rest[:1200]], y[rest[:1200]]), (X[rest[1200:]], y[rest[1200:]])


def rows(n, seed, classes=2, at=0.0, noise=0.0):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    places = X[:, 0] + X[:, 1] / 2 + noise * rng.normal(size=n)
    return X, np.digitize(places, np.linspace(at, at + 1, classes - 1))


def test_few_public_rows_are_adamix():
    public, private, test = digits()
    model = AutoClassifier(**{**BUDGET, "epsilon": 4.0}).fit(*public, private=Private(*private))
    peer = AdaMixClassifier(**{**BUDGET, "epsilon": 4.0}).fit(*public, private=Private(*private))
    np.testing.assert_array_equal(model.predict(test[0]), peer.predict(test[0]))
    start = np.mean(model.public_model_.predict(test[0]) == test[1])
    assert model.score(*test) > start + 0.04
    assert model.guarantee_.epsilon == pytest.approx(4.0, rel=1e-6)
    assert "AdaMix" in model.explain_[-1]


@pytest.mark.parametrize("size", [299, pytest.param(300, marks=pytest.mark.slow)])
def test_experts_of_a_user_are_used_however_few_rows_there_are(size):
    X, y = rows(size, 0)
    model = AutoClassifier(**BUDGET).fit(X, y)
    assert len(model.public_model_.experts) == (1 if size < 300 else 2)
    given = AutoClassifier(**BUDGET, experts=["linear", "trees"]).fit(X, y)
    assert len(given.public_model_.experts) == 2


def test_few_rows_of_one_class_and_constant_columns():
    (X, _), (T, t) = rows(3, 0), rows(200, 1)
    X = np.column_stack([X, np.full(3, 5.0)])
    wild = np.random.default_rng(0).normal(size=200)
    found = [
        AutoClassifier(**BUDGET, classes=["no", "yes"]).fit(
            X, ["no"] * 3, private=Private(np.column_stack([T, column]), np.where(t, "yes", "no"))
        )
        for column in (np.full(200, 5.0), 1e9 * wild)
    ]
    assert "Of their columns 1 have one value only" in " ".join(found[0].explain_)
    one, two = (model.predict_proba(np.column_stack([T, wild])) for model in found)
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_folder_holds_the_model_of_few_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")
    (X, y), (T, t) = rows(40, 0, 3), rows(200, 1, 3)
    model = AutoClassifier(**BUDGET, class_weight="balanced").fit(X, y, private=Private(T, t))
    assert model._story().facts[0].value.startswith("directions ")
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(T), model.predict(T))


@pytest.mark.slow
def test_hostile_neighbours_of_few_public_rows_move_no_release_beyond_its_sensitivity():
    (X, y), (T, t) = rows(20, 0), rows(12, 1)
    t = t.astype(float)

    def fit(sample):
        return AutoClassifier(**BUDGET).fit(X, y, private=Private(*sample))

    largest = 0.0
    people = [(hostile_row(name, 3), t[4]) for name in list(HOSTILE_ROWS)[:6]]
    people += [(hostile_row("huge norm", 3), label) for label in HOSTILE_LABELS]
    for row, label in people:
        other, labels = T.copy(), t.copy()
        other[4], labels[4] = row, label
        found = replay(fit, (T, t), (other, labels))
        assert found.holds, (row, label)
        largest = max(largest, found.largest)
    assert largest > 0.1, "neighbours that move nothing prove nothing"


def test_rows_of_the_descent_are_no_longer_than_one():
    """Its clip takes them for that: a public row far away allows private ones there."""
    X, y = rows(60, 0)
    X[0] = 50.0
    model = AutoClassifier(**BUDGET, experts=["linear"])
    facts = model.public_facts(X, y)
    start = facts.start(0.0)
    geometry = choose_course(facts.problem(start, 0.0), 500, 0.2).geometry
    features = len(geometry.mean) + 1
    T = np.array([[9e9, -9e9, 9e9], [np.nan, np.inf, 60.0], [0.0, 0.0, 0.0], [40.0, 40.0, -2.0]])
    Z, _ = _prepared(_scored(facts), start, geometry, (features, 2))(T, np.zeros(4))
    lengths = np.linalg.norm(Z[:, :features], axis=1)
    assert lengths.max() == pytest.approx(1.0)
    assert (lengths <= 1).all()
    np.testing.assert_allclose(Z[:, -1], lengths)


# class weights


def test_class_weights_move_the_threshold_and_no_probability():
    (X, y), (T, t) = rows(400, 0, at=1.5), rows(500, 1, at=1.5)
    plain, fair, given = (
        AutoClassifier(**BUDGET, experts=["linear"], class_weight=weight).fit(
            X, y, private=Private(T, t)
        )
        for weight in (None, "balanced", {1: 1e30})
    )
    np.testing.assert_array_equal(plain.predict_proba(T), fair.predict_proba(T))
    assert plain.guarantee_ == fair.guarantee_
    assert plain.predict(T).mean() < fair.predict(T).mean() < given.predict(T).mean() == 1
    expected = (fair.predict_proba(T) * fair.class_weights_).argmax(axis=1)
    np.testing.assert_array_equal(fair.predict(T), expected)
    shift = np.log(fair.class_weights_[1] / fair.class_weights_[0])
    np.testing.assert_allclose(fair.decision_function(T), plain.decision_function(T) + shift)


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        ("fair", "class_weight must be one of 'balanced', or be a dict"),
        (3.0, "class_weight must be one of 'balanced', or be a dict"),
        ({"maybe": 1.0}, "'maybe' is none of the classes"),
        ({"yes": 0.0}, "must be a number above 0"),
        ({"yes": np.inf}, "must be a number above 0"),
        ({"yes": np.nan}, "must be a number above 0"),
        ({"yes": "much"}, "must be a number above 0"),
        ({"yes": None}, "must be a number above 0"),
    ],
)
def test_a_wrong_class_weight_is_refused_before_anything_is_spent(weight, told):
    X, y = rows(30, 0)
    private = Private(X, np.where(y, "yes", "no"))
    with pytest.raises(ValueError, match=told):
        AutoClassifier(**BUDGET, class_weight=weight).fit(
            X, np.where(y, "yes", "no"), private=private
        )
    assert private.spent(1e-6).epsilon == 0


def test_a_class_without_public_rows_has_a_weight():
    found = weights_of_classes("balanced", np.array([0, 0, 1]), np.array(["a", "b", "c"]))
    np.testing.assert_allclose(found, [0.5, 1.0, 2.0])


# noise


def test_a_count_of_errors_takes_any_scores_and_labels():
    query = mean_number(Cleaning(9.0, classes=3), _wrong, 0.0, 1.0)
    wild = np.array([[np.nan, np.inf, 1.0], [-np.inf, -np.inf, np.nan], [1, 2, 3], [1, 2, 3]])
    labels = np.array([1.0, -1.0, 0.0, 2.0])
    each = [float(query.block(wild[i : i + 1], labels[i : i + 1])[0]) for i in range(4)]
    assert each[0] in (0.0, 1.0)
    assert each[1:] == [0.0, 1.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 5])
def test_the_rehearsal_is_what_a_step_does_without_a_shift(classes, monkeypatch):
    """With noise and 400 other rows of the same people: how long a move is, and how steep.

    In the mean of four public tables and many chains: one table of 1,500 rows has a chance of its
    own (rehearsed slopes of .01 to .10), and the four chains of a fit scatter by a half. Experts of
    a fold have seen fewer rows than those of the model, so there is a little more to mend.
    """
    monkeypatch.setattr(classification_inference, "_CHAINS", 20)
    rehearsed, real, lengths = [], [], []
    for table in range(4):
        X, y = rows(1500, 100 * table, classes, noise=0.5)
        facts = AutoClassifier(**BUDGET, experts=["linear"]).public_facts(X, y)
        start = facts.start(100.0)
        course = choose_course(facts.problem(start, 100.0), 400, 0.5)
        simulation, shape = (
            facts.simulation(start, course),
            (len(course.geometry.mean) + 1, classes),
        )
        prepared = _prepared(_scored(facts), start, course.geometry, shape)
        for seed in range(6):
            T, t = rows(400, 100 * table + seed + 1, classes, noise=0.5)
            private = Private(T, t).encode(list(range(classes)))
            with private.open(**{**BUDGET, "epsilon": 2.0, "random_state": seed}) as session:
                budget = StepBudget.open(session)
                given = (course.clip, course.horizon, course.steps, 1.0)
                move = centred(budget.descend(prepared, shape, *given))
            energy, (Z, _) = simulation.energy(move), prepared(T - X.mean(axis=0), t)
            each = slopes(Z[:, : shape[0]] @ move, Z[:, shape[0] : -1], t, energy)
            real.append((energy, np.clip(each, -1, 1).mean()))
        scale = 2 * course.clip / budget.precision * course.steps**0.5
        rehearsed.append(simulation.run(400, scale)[:2])
        lengths.append([simulation.run(n, scale=0.0)[0] for n in (400, 10**6)])
    few, many = np.mean(lengths, axis=0)
    assert few > many, "few rows make a move longer, too"
    (by_chance, usual), (energy, slope) = np.mean(rehearsed, axis=0), np.mean(real, axis=0)
    assert 0.6 * energy < by_chance < 1.6 * energy
    assert -0.01 < usual - slope < 0.08, "too steep gives back too much, too flat harms"


def test_energy_knows_only_what_moves_classes_apart():
    X, y = rows(300, 0)
    facts = AutoClassifier(**BUDGET, experts=["linear"]).public_facts(X, y)
    start = facts.start(100.0)
    course = choose_course(facts.problem(start, 100.0), 400, 0.5)
    simulation = facts.simulation(start, course)
    width = len(simulation.course.geometry.mean) + 1
    assert simulation.energy(np.full((width, 2), 9.0)) == 0.0
    assert simulation.energy(np.outer(np.ones(width), [0.0, 1.0])) > 0.0


@pytest.mark.parametrize("n", [200, 1000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_shares_of_the_looks_and_the_descent_add_up(n):
    (X, y), (T, t) = rows(60, 0), rows(n, 1)
    with taped() as tape:
        try:
            model = AutoClassifier(**BUDGET, experts=["linear"]).fit(X, y, private=Private(T, t))
        except PrivacyError as error:
            pytest.fail(f"a fit asked for more than its purse holds: {error}")
    event, _ = model.guarantee_.events
    _, *draws = [draw for draw in tape if draw.mechanism == "add_gaussian"]  # after the count
    spent = [(1 / n / draw.scale * event.scale) ** 2 for draw in draws]  # in sensitivities of 1/n
    back = 4 * spent.pop() if "look back" in " ".join(model.explain_) else 0.0
    assert (back > 0) == (n > 200), "a look that cannot tell is not paid"
    assert back <= 0.1 + 1e-4
    steps, share = spent[1:], 1 - spent[0] - back
    assert np.ptp(steps) < 1e-9
    clips = np.sqrt(share / sum(steps)) / 2
    assert np.isclose(clips, (0.25, 0.35, 0.5, 0.7, 1.0, 1.5), rtol=1e-4).any()


# what is kept


def chance(wrong=0.2, length=1.0, slope=None, noise=0.02):
    given = None if slope is None else Observation(slope, noise, expected=0.05)
    return shift_posterior(Observation(wrong, 0.03, expected=0.2), length, given)


def test_each_finding_alone_tells_a_shift():
    assert chance() < 0.05
    assert chance(wrong=0.4) > 0.95
    assert chance(length=4.0) > 0.9
    assert chance(slope=0.2) > 0.9
    assert chance(slope=0.05) < 0.02


def test_a_finding_that_is_larger_is_never_taken_for_less_of_a_shift():
    for name, values in {
        "wrong": np.linspace(0, 1, 30),
        "length": np.geomspace(1e-3, 1e9, 30),
        "slope": np.linspace(-1, 1, 30),
    }.items():
        found = [chance(**{name: float(value)}) for value in values]
        assert np.diff(found).min() > -1e-12, name
        assert 0 <= found[0] <= found[-1] <= 1


def test_noise_tells_nothing():
    blind = chance(slope=0.5, noise=1e6)
    assert blind == pytest.approx(chance(), rel=1e-6)


@pytest.mark.parametrize("expected", [0.0, 0.95])
def test_models_that_are_always_right_or_hardly_ever(expected):
    for wrong in (-9.0, 0.0, 1.0, 9.0):
        assert 0 <= shift_posterior(Observation(wrong, 0.1, expected=expected), 0.0) <= 1


@pytest.mark.parametrize("public", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_as_epsilon_grows_each_arm_reaches_its_own_limit(public):
    """The same model whatever the noise, and as good as one that reads the rows in the clear."""
    (X, y), (T, t) = rows(public, 0, 3, noise=0.5), rows(3000, 1, 3, at=0.7, noise=0.5)
    one, two = (
        AutoClassifier(**{**BUDGET, "epsilon": 1e3, "random_state": seed}).fit(
            X, y, private=Private(T, t)
        )
        for seed in (0, 1)
    )
    seen = one.adapted_.units.rows(T) if public < 300 else T  # few rows are directions
    best = LogisticRegression(C=100).fit(seen, t).score(seen, t)
    assert np.mean(one.predict(T) != two.predict(T)) < 0.01
    assert one.score(T, t) > best - 0.03


# what is told


def test_what_the_step_costs_without_a_shift_is_rehearsed():
    (X, y), (T, t), (U, u) = (rows(n, n, noise=0.5) for n in (600, 800, 4000))
    model = AutoClassifier(**BUDGET, experts=["linear"]).fit(X, y, private=Private(T, t))
    said = model.no_harm_
    assert model.explain_[-1] == str(said)
    assert 0 <= said.kept < 0.5
    assert 0 <= said.after - said.error < 0.02
    cost = np.mean(model.predict(U) != u) - np.mean(model.public_model_.predict(U) != u)
    assert cost < said.after - said.error + 0.02


def test_more_of_a_move_by_chance_costs_more():
    X, y = rows(600, 0, noise=0.5)
    facts = AutoClassifier(**BUDGET, experts=["linear"]).public_facts(X, y)
    start = facts.start(50.0)
    course = choose_course(facts.problem(start, 50.0), 200, 0.05)
    simulation = facts.simulation(start, course)
    moves = simulation.run(200, scale=0.3).moves
    errors = [simulation.error(moves, part) for part in (0.0, 0.5, 1.0, 4.0)]
    assert errors[0] == facts.error
    assert errors[0] < errors[2] < errors[3]


def test_the_picture_shows_the_releases_of_classes():
    public, private, _ = digits()
    (X, y), (T, t) = rows(400, 0), rows(900, 1, at=0.7)
    for model, names in (
        (AutoClassifier(**BUDGET).fit(*public, private=Private(*private)), ["descent"]),
        (
            AutoClassifier(**BUDGET, experts=["linear"]).fit(X, y, private=Private(T, t)),
            ["look", "descent", "look back", "kept"],
        ),
        (AutoClassifier(**BUDGET, experts=["linear"]).fit(X, y), []),
    ):
        left, right = model.explain_figure().axes
        assert [each.get_text() for each in right.get_yticklabels()] == names
        assert left.get_xlim()[1] >= model.public_model_.weights.max()
