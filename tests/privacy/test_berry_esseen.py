"""The constants of the normal law's error, against moments that are integrated here."""

from __future__ import annotations

import math

import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpadapt.papers.hybrid.doors import one_draw
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.privacy.accounting.composition import _normal_delta
from dpadapt.privacy.accounting.events import GaussianEvent

FAR = 450.0  # an epsilon at which the normal law itself has nothing left: delta is its error
SAME, OTHERS = 0.4748, 0.56  # Shevtsova 2011 and 2010
ESSEEN = (math.sqrt(10) + 3) / (6 * math.sqrt(2 * math.pi))  # no smaller constant is true (1956)


def steps(rate, count, scale=4.0):
    return OneDrawGaussianEvent("steps", clip=1.0, scale=scale, rate=rate, count=count)


def moments(event):
    """Variance and third absolute central moment of one step's loss, by adaptive quadrature."""
    m, q = 2 * event.clip / event.scale, event.rate

    def loss(z):
        return math.log1p(q * math.expm1(m * z - m * m / 2))

    def mean_of(function):
        """Of the pair: x with density V phi, -x with density phi, both beyond m/2; else 0."""

        def density(z):
            x = loss(z)
            return norm.pdf(z) * (math.exp(x) * function(x) + function(-x))

        silent = 1 - quad(lambda z: norm.pdf(z) * (math.exp(loss(z)) + 1), m / 2, 30)[0]
        return quad(density, m / 2, 30, limit=200)[0] + silent * function(0.0)

    mean = mean_of(lambda x: x)
    return mean_of(lambda x: (x - mean) ** 2), mean_of(lambda x: abs(x - mean) ** 3)


def constant(events):
    """C in delta = C * (third moments) / (variances)^(3/2), at an epsilon far out."""
    drawn = [event for event in events if isinstance(event, OneDrawGaussianEvent)]
    variance = math.fsum(e.count * moments(e)[0] for e in drawn)
    third = math.fsum(e.count * moments(e)[1] for e in drawn)
    variance += math.fsum(
        event.gaussian_mu**2 for event in events if isinstance(event, GaussianEvent)
    )
    return _normal_delta(events, FAR) / (third / variance**1.5)


ONE_LAW = {
    "one event": [steps(1e-2, 10**6)],
    "the same law twice": [steps(1e-2, 10**6), steps(1e-2, 10**5)],
}
SEVERAL = {
    "two laws": [steps(1e-2, 10**6), steps(2e-2, 10**6)],
    "two scales": [steps(1e-2, 10**6), steps(1e-2, 10**6, scale=5.0)],
    "with a Gaussian": [steps(1e-2, 10**6), GaussianEvent("g", 1.0, 3.0)],
}


@pytest.mark.parametrize("name", ONE_LAW)
def test_the_constant_for_steps_of_one_law(name):
    found = constant(ONE_LAW[name])
    assert SAME <= found <= 1.02 * SAME  # the third moment is bounded from above, not much
    assert found > ESSEEN


@pytest.mark.parametrize("name", SEVERAL)
def test_the_constant_for_steps_of_several_laws(name):
    assert OTHERS <= constant(SEVERAL[name]) <= 1.1 * OTHERS


def test_draws_of_rate_1_and_a_gaussian_of_their_mu_are_two_laws():
    drawn, plain = steps(1.0, 400), GaussianEvent("g", 2.0, 4.0)
    assert (drawn.strength, drawn.rate) == (plain.gaussian_mu, 1.0)  # the same numbers
    other = GaussianEvent("g", 2.0, 4.0 * (1 + 1e-9))  # and not even these
    found, expected = (_normal_delta([drawn, event], FAR) for event in (plain, other))
    assert found == pytest.approx(expected, rel=1e-6)
    assert constant([drawn, plain]) > OTHERS


def test_halved_constants_are_seen(monkeypatch):
    honest = one_draw.loss_moments

    def halved(*facts):
        mean, variance, third = honest(*facts)
        return mean, variance, third / 2

    monkeypatch.setattr(one_draw, "loss_moments", halved)
    assert constant(ONE_LAW["one event"]) < ESSEEN
    assert constant(SEVERAL["two laws"]) < ESSEEN
