"""Models of SubsampleTestReweigh and populations to fit them to, for its tests."""

from __future__ import annotations

import numpy as np

from dpadapt.hybrid._classifier import FeatureUnits
from dpadapt.papers.hybrid.rounds import BitTest, PaperSchedule, PaperTest, TightSchedule
from dpadapt.papers.hybrid.subsample_test_reweigh import SubsampleTestReweigh

SEEDED = {"noise": "seeded", "random_state": 0}
SCHEDULES = {"tight": TightSchedule, "paper": PaperSchedule}
TESTS = {"tight": BitTest, "paper": PaperTest}


def made(*, calibration="tight", **params):
    """A model, from its own parameters and those of its schedule, test and units."""

    def given(*names):
        return {name: params.pop(name) for name in names if name in params}

    schedule = SCHEDULES[calibration](**given("kappa", "rate", "rounds"))
    test = TESTS[calibration](**given("batch", "agnostic"))
    if units := given("centre", "scale"):
        params["unit"] = FeatureUnits(**({"centre": [0.0, 0.0], "scale": [1.0, 1.0]} | units))
    return SubsampleTestReweigh(**({"schedule": schedule, "test": test} | params))


def easy(n=4000, seed=0, **params):
    """A model and two populations whose labels follow one column."""
    rng = np.random.default_rng([2, seed])
    X, T = rng.normal(size=(n, 2)), rng.normal(0.3, 0.8, size=(60_000, 2))
    known = {"epsilon": 2.0, "delta": 1e-6, "agent_epsilon": 1.0, "classes": [0, 1], "rounds": 4}
    known |= {"batch": 5000, "target_error": 0.2, **SEEDED}
    label = lambda rows: (rows[:, 0] > 0).astype(int)  # noqa: E731
    return made(**(known | params)), X, label(X), T, label(T)
