"""As the budget grows, every estimator approaches what it is without noise, on five real tables.

That the defaults of reweighting then are the models of the private rows is tested with them, in
``test_moments.py`` and ``test_plan.py``. What other estimators keep at any
budget is a bias of their own: a penalty, a clip, a number of steps, labels that they do not read.
Their docstrings tell it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
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
from dpadapt.hybrid import BitTest, HybridTilt, SubsampleTestReweigh
from dpadapt.kernels import InteractivePredictor
from dpadapt.privacy import Agents
from real_tables import class_tables, halves, regression_tables

pytestmark = pytest.mark.slow

REGRESSORS = [
    (DiscrepancyRegressor, {}),
    (KernelRegressor, {}),
    (ReweightingRegressor, {}),
    (ReweightingRegressor, {"solver": "gradient"}),
    (ReweightingRegressor, {"solver": "profiled"}),
    (ReweightingRegressor, {"solver": "statistics"}),
]
CLASSIFIERS = [
    (AdaMixClassifier, {}),
    (KernelClassifier, {}),
    (NoisyGDClassifier, {"steps": 200}),  # by default the noise is given, and T grows with epsilon
    (ReweightingClassifier, {}),
    (ReweightingClassifier, {"solver": "gradient"}),
    (ReweightingClassifier, {"solver": "profiled"}),
]
BY_AGENTS = [(SubsampleTestReweigh, {"test": BitTest(batch=200)}, name) for name in class_tables()]
BY_AGENTS += [(HybridTilt, {}, name) for name in class_tables() if name.startswith("2")]
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


@pytest.mark.parametrize("name", regression_tables())
def test_questions_about_numbers_are_within_two_percent_of_their_limit(name):
    table, (T, t) = halves(regression_tables()[name])
    errors = [
        float(np.mean((asked(KernelRegressor, table, epsilon, T) - t) ** 2))
        for epsilon in (MORE[KernelRegressor], WITHOUT_NOISE)
    ]
    assert errors[0] <= 1.02 * errors[1]


@pytest.mark.parametrize("name", class_tables())
def test_questions_about_classes_are_within_two_percent_of_their_limit(name):
    table, (T, t) = halves(class_tables()[name])
    losses = []
    for epsilon in (MUCH, WITHOUT_NOISE):
        scores = asked(KernelClassifier, table, epsilon, T, "decision_function")
        chances = expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
        losses.append(log_loss(t, chances))
    assert losses[0] <= 1.02 * losses[1]


def asked(kind, table, epsilon, T, what="predict"):
    X, y, *private = table
    model = kind(epsilon=epsilon, delta=1e-6, noise="seeded", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = InteractivePredictor(model).fit(X, y, private=Private(*private))
    answers = getattr(predictor, what)(T)
    predictor.close()
    return answers


@pytest.mark.parametrize(("kind", "options", "name"), BY_AGENTS)
def test_rules_by_agents_are_within_two_percent_of_their_limit(kind, options, name):
    """A few rows of the source set the units; columns that are constant there are left out."""
    (X, y, T, t), (others, truth) = halves(class_tables()[name])
    kept = (X.std(axis=0) > 0) & (T.std(axis=0) > 0)
    X, T, others = X[:, kept], T[:, kept], others[:, kept]
    losses = []
    for epsilon in (MUCH, WITHOUT_NOISE):
        budget = {"epsilon": epsilon, "agent_epsilon": epsilon, "delta": 1e-6}
        model = kind(**budget, classes=sorted(set(y)), noise="seeded", random_state=0, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[:500], y[:500], private=Private(X[500:], y[500:]), agents=Agents(T, t))
        losses.append(log_loss(truth, model.predict_proba(others)))
    assert losses[0] <= 1.02 * losses[1]
