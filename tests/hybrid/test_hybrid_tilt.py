"""HybridTilt: the contract, the settings, bad input."""

from __future__ import annotations

import math
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from dpadapt import BudgetExceeded, Private
from dpadapt.hybrid._classifier import NotCertified
from dpadapt.hybrid.hybrid_tilt import HybridTilt
from dpadapt.privacy.local import Agents, NotEnoughAgents
from dpadapt.testing import Facts, Subject
from dpadapt.testing.independent_accountant import recompute_epsilon
from dpadapt.testing.tape import Refusing, paid_by, planned, releases, taped
from reproduce.hybrid.data import draw_setting

SEEDED = {"noise": "seeded", "random_state": 0}


def label(X):
    return (X @ [1.0, -1.0, 0.5] > 0).astype(float)


def people(n=3000, seed=3, move=0.5):
    X = np.random.default_rng(seed).normal(move, 0.6, size=(n, 3))
    return X, label(X)


def test_noise_is_the_noise_of_the_events_with_agents():
    """All that the curator charged for is drawn; the rest are directions of agents."""
    made = Subject(HybridTilt(epsilon=1.0, delta=1e-6, agent_epsilon=2.0), Facts(labels=True))
    with taped() as tape, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        model = made.make().fit(*made.public(), private=made.private(), agents=Agents(*people()))
    events, drawn = model.guarantee_.events, releases(tape)
    theirs = [draw for draw in drawn if not paid_by(draw, events)]
    assert all(draw.scale == 1.0 and not draw.value.any() for draw in theirs)
    for plan in planned(events):
        same = [draw for draw in drawn if plan in paid_by(draw, events)]
        assert len(same) == plan.count


# settings


def fit_setting(name, seed, n, count, epsilon, agent_epsilon, **params):
    setting = draw_setting(name, seed)
    source, target, test = (np.random.default_rng([seed, part]) for part in (1, 2, 3))
    model = HybridTilt(
        epsilon=epsilon,
        delta=1e-4,
        agent_epsilon=agent_epsilon,
        features=setting.features,
        classes=[-1.0, 1.0],
        target_error=setting.level,
        noise="seeded",
        random_state=1000 + seed,
        **params,
    )
    private = Private(*setting.population.source(n, source))
    agents = Agents(*setting.population.target(count, target))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        model.fit(private=private, agents=agents)
    X, y = setting.population.target(20_000, test)
    return model, float((model.predict(X) != y).mean()), agents


@pytest.mark.parametrize(
    ("name", "n", "count", "epsilon", "agent_epsilon", "most"),
    [
        ("EASY", 20_000, 50_000, 0.5, 0.5, 0.16),
        ("HARD", 50_000, 200_000, 2.0, 1.0, 0.10),
        ("UNIFORM", 50_000, 200_000, 2.0, 1.0, 0.10),
        ("CORR", 50_000, 200_000, 2.0, 1.0, 0.10),
        ("MEAN", 10_000, 50_000, 1.0, 1.0, 0.06),
        ("MEANB", 50_000, 200_000, 2.0, 1.0, 0.12),
        ("BIMOD", 50_000, 200_000, 2.0, 1.0, 0.12),
    ],
)
def test_one_default_survives_the_settings(name, n, count, epsilon, agent_epsilon, most):
    start = time.perf_counter()
    model, error, agents = fit_setting(name, 400, n, count, epsilon, agent_epsilon)
    assert error <= most
    assert error <= model.certificate_.upper
    assert time.perf_counter() - start < 20
    assert agents.n_left < 10  # all were asked, none twice
    assert model.guarantee_.epsilon == pytest.approx(epsilon, rel=1e-6)
    low, _ = recompute_epsilon(model.guarantee_.events, 1e-4)
    assert model.guarantee_.epsilon >= low * (1 - 1e-9)
    assert model.agents_guarantee_.epsilon == pytest.approx(agent_epsilon, rel=1e-9)
    assert model.agents_guarantee_.delta == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "count", "epsilon", "agent_epsilon"),
    [("EASY", 20_000, 50_000, 0.5, 0.5), ("HARD", 50_000, 200_000, 2.0, 1.0)],
)
def test_nine_of_ten_seeds_reach_the_target(name, n, count, epsilon, agent_epsilon):
    level = draw_setting(name).level
    errors = [
        fit_setting(name, seed, n, count, epsilon, agent_epsilon)[1] for seed in range(300, 310)
    ]
    assert sum(error <= level for error in errors) >= 9


def test_without_the_tilt_hard_is_not_solved():
    """The curator's rule in its own scale calls everybody +1; agents say so."""
    model, error, _ = fit_setting("HARD", 401, 50_000, 100_000, 2.0, 1.0)
    names = {each.name: each for each in model.candidates_}
    assert names["source scale"].error.value > 0.25
    assert names["target scale"].error.value < 0.15
    assert error < 0.12
    assert model.cap_.weight > 2


# what agents are for


def curator(n=8000, seed=0, flip=False):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return Private(X, 1 - label(X) if flip else label(X))


def make(**params):
    given = {"epsilon": 1.0, "delta": 1e-6, "agent_epsilon": 2.0, "classes": [0.0, 1.0]}
    return HybridTilt(**{**given, **SEEDED, **params})


def test_a_certificate_needs_agents():
    alone = make().fit(private=curator())
    assert not alone.certificate_.certified
    assert alone.certificate_.error is None
    assert alone.agents_guarantee_.epsilon == 0
    assert alone.candidates_ == ()
    both = make().fit(private=curator(), agents=Agents(*people(20_000)))
    assert both.certificate_.certified
    assert both.certificate_.agents > 1000


def test_agents_alone_learn_too():
    X, y = people(60_000)
    model = make().fit(agents=Agents(X, y))
    assert model.guarantee_.epsilon == 0
    assert (model.predict(X) == y).mean() > 0.9
    assert not hasattr(model, "cap_")


def test_labels_that_mean_something_else_here_are_seen():
    X, y = people(60_000)
    model = make().fit(private=curator(flip=True), agents=Agents(X, y))
    assert (model.predict(X) == y).mean() > 0.9
    found = {each.name: each.error.value for each in model.candidates_}
    assert found["source scale"] > 0.7
    assert "reweighed 2" in found


def test_disjoint_supports_are_told():
    X = np.random.default_rng(9).normal(40.0, 1.0, size=(20_000, 3))
    y = (X[:, 0] > 40).astype(float)
    with pytest.warns(NotCertified, match="hardly any private rows"):
        model = make(target_error=0.05).fit(private=curator(), agents=Agents(X, y))
    assert not model.certificate_.certified
    assert not model.overlap_
    assert model.cap_.weight == 1.0
    near = make().fit(private=curator(), agents=Agents(*people(20_000)))
    assert near.overlap_


def test_a_missed_target_warns_and_says_by_how_much():
    agents = Agents(*people(4000))
    with pytest.warns(NotCertified, match=r"at most 0\.001"):
        model = make(target_error=0.001).fit(private=curator(), agents=agents)
    assert not model.certificate_.certified


def test_the_fit_does_not_depend_on_the_target_error():
    models = []
    for target in (0.01, 0.5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)
            model = make(target_error=target).fit(private=curator(), agents=Agents(*people()))
        models.append(model.rule_.coefficients)
    np.testing.assert_array_equal(*models)


def test_certificates_hold():
    """Upper bounds at 95%, with a union bound: none of 20 should fail."""
    X, y = people(20_000, seed=11)
    held = 0
    for seed in range(20):
        model = make(random_state=seed, target_error=0.4)
        model.fit(private=curator(1500, seed), agents=Agents(*people(4000, seed)))
        held += (model.predict(X) != y).mean() <= model.certificate_.upper
    assert held >= 19


# bad input


def test_too_few_agents_are_counted():
    agents = Agents(*people(100))
    with pytest.raises(NotEnoughAgents, match=r"\d+ agents are needed, but only 100") as caught:
        make().fit(private=curator(), agents=agents)
    assert caught.value.needed > 100
    assert agents.n_left == 100
    enough = Agents(*people(caught.value.needed))
    make(target_error=0.9).fit(private=curator(), agents=enough)
    with pytest.raises(NotEnoughAgents):  # those are spent
        make().fit(private=curator(), agents=enough)


def test_a_refused_charge_asks_nobody():
    agents = Agents(*people())
    with taped() as tape, pytest.raises(BudgetExceeded):
        make(ledger=Refusing()).fit(private=curator(), agents=agents)
    assert tape == []
    assert agents.n_left == 3000


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": 0}, "epsilon"),
        ({"agent_epsilon": 0}, "agent_epsilon"),
        ({"agent_epsilon": -1.0}, "agent_epsilon"),
        ({"agent_epsilon": math.inf}, "agent_epsilon"),
        ({"agent_epsilon": math.nan}, "agent_epsilon"),
        ({"features": "cubes"}, "features"),
        ({"unit": 0.0}, "unit"),
        ({"target_error": 1.5}, "target_error"),
        ({"classes": None}, "classes"),
        ({"classes": [0, 1, 2]}, "binary"),
        ({"classes": [0]}, "classes"),
    ],
)
@pytest.mark.parametrize("with_private", [True, False])
def test_bad_parameters_are_named_before_anybody_is_asked(params, match, with_private):
    agents = Agents(*people())
    private = curator() if with_private else None
    with pytest.raises(ValueError, match=match):
        make(**params).fit(private=private, agents=agents)
    assert agents.n_left == 3000


def test_agents_must_be_agents_with_labels_and_the_same_columns():
    X, y = people()
    with pytest.raises(TypeError, match=r"Agents\(X, y\)"):
        make().fit(private=curator(), agents=(X, y))
    with pytest.raises(ValueError, match="labels"):
        make().fit(private=curator(), agents=Agents(X))
    with pytest.raises(ValueError, match="2 columns"):
        make().fit(private=curator(), agents=Agents(X[:, :2], y))
    with pytest.raises(ValueError, match=r"\bX\b"):
        make().fit()


@pytest.mark.parametrize("cell", [math.nan, math.inf, -math.inf, 1e300, -1.7e308])
def test_hostile_cells_of_rows_and_agents_do_no_harm(cell):
    X, y = people(4000)
    X[::7, 1] = cell
    y[::11] = 5.0  # of no class
    rows = np.random.default_rng(1).normal(size=(3000, 3))
    labels = label(rows)
    rows[::5, 2] = cell
    labels[::9] = math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", NotCertified)
        model = make().fit(private=Private(rows, labels), agents=Agents(X, y))
    assert np.isfinite(model.rule_.coefficients).all()
    assert np.isfinite(model.predict_proba(np.ones((2, 3)))).all()


@pytest.mark.parametrize("n", [1, 2, 30])
def test_few_or_constant_rows_are_taken(n):
    private = Private(np.full((n, 3), 0.25), np.ones(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", NotCertified)
        model = make().fit(private=private, agents=Agents(*people(4000)))
    assert np.isfinite(model.rule_.coefficients).all()
    assert model.cap_.weight == 1.0  # marginals are noise: no tilt


def test_constant_columns_of_agents_are_taken():
    X, y = people(4000)
    X[:, 1] = 7.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", NotCertified)
        model = make().fit(private=curator(), agents=Agents(X, y))
    assert np.isfinite(model.rule_.coefficients).all()


@pytest.mark.parametrize("features", ["linear", "squares", "quadratic"])
@pytest.mark.parametrize("width", [1, 3, 20])
def test_all_features_and_widths(features, width):
    rng = np.random.default_rng(2)
    rows, X = rng.normal(size=(3000, width)), rng.normal(size=(30_000, width))
    private = Private(rows, (rows[:, 0] ** 2 > 0.5).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        model = make(features=features, classes=[0, 1]).fit(
            private=private, agents=Agents(X, (X[:, 0] ** 2 > 0.5).astype(int))
        )
    assert model.predict(X[:5]).shape == (5,)
    assert model.guarantee_.epsilon == pytest.approx(1.0, rel=1e-6)


def test_text_labels_and_names_of_columns():
    X, y = people(4000)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(3000, 3)), columns=list("abc"))
    words = np.array(["no", "yes"])
    private = Private(frame, words[label(frame.to_numpy()).astype(int)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        model = make(classes=["no", "yes"]).fit(
            private=private, agents=Agents(X, words[y.astype(int)])
        )
    assert set(model.predict(frame)) <= {"no", "yes"}
    assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_public_rows_set_the_units():
    """Columns of a millionth: without public rows or a unit they are below the grid."""
    rng = np.random.default_rng(3)
    rows = 1e-6 * rng.normal(size=(8000, 3)) + 5.0
    public = 1e-6 * rng.normal(size=(50, 3)) + 5.0
    sign = (rows[:, 0] > 5.0).astype(float)
    model = make().fit(public, (public[:, 0] > 5.0).astype(float), private=Private(rows, sign))
    assert (model.predict(rows) == sign).mean() > 0.9


def test_exact_noise_costs_no_more():
    model = make(noise="exact", random_state=None).fit(private=curator(2000))
    assert model.guarantee_.epsilon <= 1.0 * (1 + 1e-9)
    assert model.guarantee_.noise == "exact"
