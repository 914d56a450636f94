"""As the budget grows, every estimator approaches what it is without noise, on five real tables.

That the defaults of reweighting then are the models of the private rows is tested with them, in
``test_known_noise_moments.py`` and ``test_known_noise_whole.py``. What other estimators keep at any
budget is a bias of their own: a penalty, a clip, labels that they do not read.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import log_loss

from dpadapt import (
    AdaMixClassifier,
    DiscrepancyRegressor,
    KernelClassifier,
    KernelRegressor,
    NoisyGDClassifier,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
)
from real_tables import class_tables, halves, regression_tables

pytestmark = pytest.mark.slow

REGRESSORS = [
    (DiscrepancyRegressor, {}),
    (KernelRegressor, {}),
    (ReweightingRegressor, {}),
    (ReweightingRegressor, {"solver": "profiled"}),
    (ReweightingRegressor, {"solver": "statistics"}),
]
CLASSIFIERS = [
    (AdaMixClassifier, {}),
    (KernelClassifier, {}),
    (NoisyGDClassifier, {"steps": 200}),  # by default the noise is given, and T grows with epsilon
    (ReweightingClassifier, {}),
    (ReweightingClassifier, {"solver": "profiled"}),
]
MUCH, WITHOUT_NOISE = 1e4, 1e6
MORE = {KernelRegressor: 1e5}  # its noise is that of a whole function: the docstring says how slow


def named(kinds):
    return [pytest.param(*each, id=f"{each[0].__name__} {each[1] or ''}") for each in kinds]


def fitted(kind, options, table, epsilon):
    X, y, T, t = table
    private = Private(T) if kind is DiscrepancyRegressor else Private(T, t)
    model = kind(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sample is used twice
        return model.fit(X, y, private=private)


@pytest.mark.parametrize("name", regression_tables())
@pytest.mark.parametrize(("kind", "options"), named(REGRESSORS))
def test_regression_is_within_two_percent_of_its_limit(kind, options, name):
    table, (T, t) = halves(regression_tables()[name])
    errors = [
        float(np.mean((fitted(kind, options, table, epsilon).predict(T) - t) ** 2))
        for epsilon in (MORE.get(kind, MUCH), WITHOUT_NOISE)
    ]
    assert errors[0] <= 1.02 * errors[1]


@pytest.mark.parametrize("name", class_tables())
@pytest.mark.parametrize(("kind", "options"), named(CLASSIFIERS))
def test_classification_is_within_two_percent_of_its_limit(kind, options, name):
    table, (T, t) = halves(class_tables()[name])
    much, limit = (fitted(kind, options, table, each) for each in (MUCH, WITHOUT_NOISE))
    losses = [log_loss(t, each.predict_proba(T), labels=each.classes_) for each in (much, limit)]
    assert losses[0] <= 1.02 * losses[1]
