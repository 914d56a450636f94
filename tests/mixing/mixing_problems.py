"""What the tests of the two classifiers share: problems, and fits of every variant."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dpadapt import AdaMixClassifier, NoisyGDClassifier
from dpadapt.learning.cautions import CautionWarning
from dpadapt.mixing import (
    AdaMix,
    GradientProjection,
    KnownNoise,
    Steps,
)
from dpadapt.testing.search import everything_said

SEEDED = {"noise": "seeded", "random_state": 0}
SOLVERS = ("known-noise", "adamix", "theory")


def make(**params):
    return AdaMixClassifier(**({"epsilon": 1.0, "delta": 1e-6, "steps": 8} | SEEDED | params))


def noisy_gd(**params):
    return NoisyGDClassifier(**({"epsilon": 1.0, "delta": 1e-6, "steps": 8} | SEEDED | params))


def problem(seed=0, m=30, n=300, d=4, classes=3):
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(classes, d))
    y, t = np.arange(m) % classes, rng.integers(classes, size=n)
    return centers[y] + rng.normal(size=(m, d)), y, centers[t] + rng.normal(size=(n, d)), t


def digits(seed, n_test=450):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    test, rest = order[:n_test], order[n_test:]
    public = np.concatenate([rest[y[rest] == digit][:5] for digit in range(10)])
    private = np.setdiff1d(rest, public)
    return (X[public], y[public]), (X[private], y[private]), (X[test], y[test])


def fitted(model, *public, private):
    with everything_said() as said:
        warnings.filterwarnings("ignore", category=CautionWarning)  # of few rows, which is public
        model.fit(*public, private=private)
    assert said.all.strip() == ""
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.guarantee_.epsilon <= 1 + 1e-9
    return model


VARIANTS = [
    {},
    {"solver": "adamix"},
    {"solver": AdaMix(projection="gradients")},
    {"solver": AdaMix(projection=GradientProjection(clip_first=True))},
    {"solver": KnownNoise(projection="features")},
    {"solver": "theory"},
    {"relation": "add-remove"},
    {"steps": Steps(8, individual_filter=3.0)},
]


def is_adamix(params):
    solver = params.get("solver")
    return solver == "adamix" or isinstance(solver, AdaMix)


every_variant = pytest.mark.parametrize("params", VARIANTS, ids=str)
