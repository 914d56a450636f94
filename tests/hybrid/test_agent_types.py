"""Agents hold numbers and classes of any type: the answers are the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpadapt import Agents, HybridTilt, Private, SubsampleTestReweigh
from dpadapt.hybrid import BitTest, NotCertified, TightSchedule
from dpadapt.papers.hybrid.learners import GradientLearner
from dpadapt.testing.sklearn_rules import PAIRS, cells_of_all_types, labels_of_type

SEEDED = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
MODELS = {
    "reweigh": lambda: SubsampleTestReweigh(
        **SEEDED,
        agent_epsilon=2.0,
        learner=GradientLearner(steps=5),
        schedule=TightSchedule(kappa=0.3, rounds=2),
        test=BitTest(batch=300),
    ),
    "tilt": lambda: HybridTilt(**SEEDED, agent_epsilon=2.0),
}


def people(n, seed):
    X = np.rint(4 * np.random.default_rng(seed).normal(0.3, 0.7, size=(n, 3)))
    return X, (X @ [1.0, -1.0, 0.5] > 0).astype(float)


def answers(name, rows, public, private, theirs):
    """Scores of a model whose public, private and agents' labels are of these types."""
    X, y = people(90, 1)
    curator, agents = people(400, 2), people(3000, 3)
    model = MODELS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        model.fit(
            X,
            labels_of_type(y, public),
            private=Private(curator[0], labels_of_type(curator[1], private)),
            agents=Agents(agents[0] if rows is None else rows, labels_of_type(agents[1], theirs)),
        )
    return model.decision_function(X)


@pytest.mark.parametrize("name", MODELS)
def test_cells_of_agents_may_have_any_type(name):
    expected = answers(name, None, "float", "float", "float")
    for kind, rows in cells_of_all_types(people(3000, 3)[0]).items():
        found = answers(name, rows, "float", "float", "float")
        np.testing.assert_array_equal(found, expected, err_msg=kind)


@pytest.mark.parametrize("name", MODELS)
def test_labels_of_agents_may_have_any_type(name):
    expected = answers(name, None, "float", "float", "float")
    for public, theirs in PAIRS:
        found = answers(name, None, public, public, theirs)
        np.testing.assert_array_equal(found, expected, err_msg=f"{public}, {theirs}")


def test_another_answer_of_the_agents_would_be_seen():
    expected = answers("tilt", None, "float", "float", "float")
    other = answers("tilt", people(3000, 3)[0] + 2.0, "float", "float", "float")
    assert not np.array_equal(other, expected)
