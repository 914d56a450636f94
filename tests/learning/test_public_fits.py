"""Models of public rows alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpadapt.learning import public_fits


def test_a_logistic_regression_that_takes_long_tells_nothing_of_scikit_learn(monkeypatch):
    """A preview fits dozens of them; a warning that nobody can act on would fill the screen."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)) * [1, 10, 100, 1000, 1e4]
    rows, codes = np.column_stack([X, np.ones(400)]), (X[:, 0] + rng.normal(size=400) > 1) * 1
    monkeypatch.setattr(public_fits, "_MOST_STEPS", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = public_fits.fit_logistic(rows, codes, 2)
    assert np.isfinite(found).all()
    monkeypatch.setattr(public_fits.warnings, "simplefilter", lambda *_: None)
    with pytest.warns(public_fits.ConvergenceWarning):  # it is what was to be told
        public_fits.fit_logistic(rows, codes, 2)
