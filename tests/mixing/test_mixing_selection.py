"""Options that are chosen with private rows, and charged for."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.mixing import AdaMix, AdaptiveClip
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.testing.tape import releases, taped
from mixing.mixing_problems import (
    make,
    problem,
)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_selection_is_charged(relation):
    X, y, T, t = problem(n=2000)
    model = make(
        solver="adamix", relation=relation, epsilon=3.0, select={"learning_rate": [1e-4, 2.0]}
    )
    with taped() as tape:
        model.fit(X, y, private=Private(T, t))
    assert model.selected_["learning_rate"] in (1e-4, 2.0)
    event, *count = model.guarantee_.events
    assert event.kind == "random-stopping"
    assert len(count) == (relation == "replace-one")  # of rows with a label, once for all runs
    assert model.guarantee_.relation == relation
    assert 0.9 < model.guarantee_.epsilon / 3.0 <= 1 + 1e-9
    drawn = len(releases(tape)) - len(count)
    runs = drawn / (8 + 1 + (relation == "add-remove"))
    assert runs == int(runs) >= 1
    # a run by itself costs much less than the whole: trying is paid for
    assert compose_epsilon(event.base, 1e-6) < 0.8 * model.guarantee_.epsilon


def test_selection_chooses_what_is_better():
    X, y, T, t = problem(n=3000)
    chosen = []
    for seed in range(12):
        model = make(
            solver=AdaMix(mixing=0.0),
            epsilon=8.0,
            select={"learning_rate": [1e-5, 2.0]},
            start="zero",
            random_state=seed,
        )
        model.fit(X, y, private=Private(T, t))
        chosen.append(model.selected_["learning_rate"])
    assert chosen.count(2.0) >= 8


@pytest.mark.parametrize(
    "select",
    [
        {},
        {"sigma": [1.0]},
        {"clip": []},
        {"clip": 0.3},
        {"clip": [-1.0]},
        ["clip"],
        {"epsilon": [9.0]},
        {"clipping": [AdaptiveClip()]},
        {"projection": ["features"]},
        {"projection__rank": [1]},
    ],
    ids=str,
)
def test_bad_selection_is_refused(select):
    with pytest.raises((ValueError, TypeError), match=r"^select"):
        make(select=select).fit(*problem()[:2])


@pytest.mark.slow
def test_a_random_state_instance_decides_about_candidates_too():
    X, y, T, t = problem()
    select = {"clip": list(np.geomspace(0.01, 1.0, 40))}
    fits = [
        make(select=select, steps=2, random_state=np.random.RandomState(seed)).fit(
            X, y, private=Private(T, t)
        )
        for seed in (3, 3, 3, 4)
    ]
    assert fits[0].selected_ == fits[1].selected_ == fits[2].selected_ != fits[3].selected_
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
