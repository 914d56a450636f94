"""What objective perturbation releases must not lie on a comb that the true rows alone explain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from dpadapt import Private
from dpadapt.baselines import ObjectivePerturbationClassifier
from dpadapt.papers.baselines._tasks import BaselineTask
from dpadapt.papers.baselines.queries import needed_strength
from dpadapt.privacy import Cleaning, PrivacyError, Rows
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.core.noise import _power_of_two
from dpadapt.privacy.mechanisms import GaussianInside

ALPHA = 1e-6
EPSILON, DELTA = 1.0, 1e-6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Y = X[:, 0] > 0
T = RNG.normal(size=(100, 2))
LABELS = T[:, 0] + 0.3 * RNG.normal(size=100) > 0
OTHER = T.copy()
OTHER[0] *= 1.01  # the neighbour: one row moved by one hundredth


def fitted(rows):
    model = ObjectivePerturbationClassifier(epsilon=EPSILON, delta=DELTA)
    return model.fit(X, Y, private=Private(rows, LABELS))


def linear_terms(models, rows):
    """The linear term that each model would come from, were these the rows."""
    task = BaselineTask(X, Y.astype(int), np.array([False, True]))
    mu = gaussian_mu(EPSILON, DELTA) / math.hypot(1.0, 0.1)
    strength = needed_strength(mu, task.radius, 0.25) * (1 + 1e-9)
    center, scale = task.scaling
    Z, codes = task.prepared()(rows, LABELS.astype(float))
    signs = 2 * codes - 1
    terms = []
    for model in models:
        w = model.coef_.ravel()
        w = np.append(w * scale, model.intercept_.ravel()[0] + w @ center)
        terms.append(-(Z.T @ (-signs * expit(-signs * (Z @ w))) + strength * w))
    return np.array(terms)


def off_grid(terms, grid):
    """Distance of the worst coordinate from the grid, in steps."""
    return np.abs(terms / grid - np.rint(terms / grid)).max(axis=1)


def guesses(runs):
    """How often "these are the rows" is said, under the rows and under their neighbour."""
    counts = []
    for rows in (T, OTHER):
        models = [fitted(rows) for _ in range(runs)]
        grid = _power_of_two(models[0].guarantee_.events[0].scale, 12)
        one, two = (off_grid(linear_terms(models, given), grid) for given in (T, OTHER))
        counts.append(int((one < two).sum()))
    return counts


def p_same(counts, runs):
    return stats.fisher_exact([[k, runs - k] for k in counts]).pvalue


def rounded(self, hidden, scale, source, *, function):
    """The broken twin: a linear term on the grid of a release."""
    noise = source.add_gaussian(np.zeros(self.dimension), scale)
    return function(hidden._value, noise)


@pytest.mark.parametrize("runs", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_the_release_does_not_tell_which_rows_explain_it(monkeypatch, runs):
    assert p_same(guesses(runs), runs) > ALPHA
    monkeypatch.setattr(GaussianInside, "release", rounded)
    assert p_same(guesses(runs), runs) < ALPHA


def planned(dimension=2, **options):
    session = Private(T).open(epsilon=1.0, delta=1e-6, **options)
    rows = session.hide(Rows(Cleaning(radius=3.0)))
    return session, rows, session.plan(inside=GaussianInside("inside", 1.0, dimension)).inside


def test_noise_inside_a_function_is_paid_for_and_stays_inside():
    session, rows, grant = planned()
    hidden = session.release(grant, rows, function=lambda X, b: X.sum(axis=0) + b)
    assert repr(hidden) == "Hidden('inside', shape=(2,))"
    assert math.isinf(hidden.sensitivity)  # released only with a sensitivity that is claimed
    seen = []
    with pytest.raises(PrivacyError, match="as often as it was planned"):
        session.release(grant, rows, function=lambda X, b: seen.append(b))
    _, others, _ = planned()
    with pytest.raises(PrivacyError, match="from this session"):
        session.release(grant, others, function=lambda X, b: seen.append(b))
    assert not seen


def test_noise_inside_a_function_has_the_scale_of_its_grant():
    session, rows, grant = planned(dimension=5000)
    drawn = session.release(grant, rows, function=lambda X, b: b)._value
    assert drawn.shape == (5000,)
    square = float((drawn**2).sum()) / grant.scale**2
    law = stats.chi2(5000)
    for factor, likely in ((1.0, True), (0.7, False), (1.3, False)):
        p = 2 * min(law.cdf(factor**2 * square), law.sf(factor**2 * square))
        assert (p > ALPHA) == likely


def test_exact_noise_has_none_of_this_kind():
    session, rows, grant = planned(noise="exact")
    with pytest.raises(PrivacyError, match="noise='secure'"):
        session.release(grant, rows, function=lambda X, b: b)
