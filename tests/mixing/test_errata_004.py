"""Errata of paper 004 (AdaMix): each test fails if what is printed were right."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_epsilon, gaussian_delta
from dpadapt.privacy.accounting.events import GaussianEvent


def test_a_loss_that_is_read_off_the_run_is_no_guarantee_made_beforehand():
    """E4.2: Proposition 14 adds up gradient norms at the iterates that the noise happened to take.

    Two steps of unit noise. A row's gradient is .01 in the first; in the second it is 1 if the
    first released number is positive, and 0 if not. In half of all runs the printed mu is .01.
    """
    small, large = 0.01, 1.0
    epsilon = 0.5
    # the event "first number positive, second above t", with and without the row
    t = 0.5 + epsilon
    with_row = stats.norm.sf(-small) * stats.norm.sf(t - large)
    without = stats.norm.sf(0.0) * stats.norm.sf(t)
    delta = with_row - math.exp(epsilon) * without
    assert stats.norm.cdf(-small) > 0.49  # so often the run says mu = .01
    assert gaussian_delta(epsilon, small) < 1e-12
    assert delta > 0.05
    # what is fixed beforehand holds: the largest gradients that there can be
    assert delta < gaussian_delta(epsilon, math.hypot(small, large))


@pytest.mark.parametrize(("runs", "spent"), [(3, 5.66), (9, 10.98)])
def test_trying_three_learning_rates_costs_more_than_what_is_claimed(runs, spent):
    """E4.4: each of the runs reads the private rows; epsilon 3 is claimed for the best of them."""
    mu = gaussian_mu(3.0, 1e-5)
    events = [GaussianEvent("run", mu, 1.0, count=runs)]
    assert compose_epsilon(events, 1e-5) == pytest.approx(spent, abs=0.01)
    assert compose_epsilon(events, 1e-5) > 1.8 * 3.0
