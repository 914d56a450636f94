"""What dp-accounting 0.6 gets wrong or lacks, pinned, so that an upgrade cannot change us silently.

Each test states today's behaviour and, in its docstring, what to do when it fails.
"""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event, mechanism_calibration
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent

REPLACE_ONE = dp_accounting.NeighboringRelation.REPLACE_ONE
ADD_OR_REMOVE = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
DELTA = 1e-6


def test_pld_ignores_the_count_of_randomised_response():
    """Ten answers of epsilon 0.1 are accounted as one.

    If this fails the defect is repaired: ``pld.RandomisedResponseLoss`` may then be replaced by
    ``PLD.from_randomized_response`` through the accountant; until then never hand it the event.
    """
    one = dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(0.1)), 2)
    ten = dp_event.SelfComposedDpEvent(one, 10)
    claimed = PLDAccountant(REPLACE_ONE).compose(ten).get_epsilon(DELTA)
    assert claimed == pytest.approx(0.1, rel=1e-2)  # ten times too little
    by_hand = PLDAccountant(REPLACE_ONE).compose(dp_event.ComposedDpEvent([one] * 10))
    ours = compose_epsilon([PureEvent("answer", 0.1, 10)], DELTA)
    assert ours == pytest.approx(by_hand.get_epsilon(DELTA), rel=1e-3)
    assert ours > 0.99


def test_rdp_does_count_randomised_response():
    """``dpadapt.testing.independent_accountant`` relies on this half.

    If it fails, compose the events one by one there.
    """
    one = dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(0.1)), 2)
    ten = RdpAccountant([8.0], REPLACE_ONE).compose(dp_event.SelfComposedDpEvent(one, 10))
    single = RdpAccountant([8.0], REPLACE_ONE).compose(one)
    np.testing.assert_allclose(ten.rdp, 10 * single.rdp, rtol=1e-12)


def test_gaussian_under_replace_one_is_doubled_by_pld_and_not_by_rdp():
    """The same event under the same relation means two different mechanisms.

    If it fails the two accountants were made to agree: read in the release notes which sensitivity
    a GaussianDpEvent states. We stay right as long as noise over sensitivity is fed under
    add-or-remove, which the last lines check.
    """
    event = dp_event.GaussianDpEvent(2.0)

    def pld(relation):
        return PLDAccountant(relation).compose(event).get_epsilon(DELTA)

    def rdp(relation):
        return RdpAccountant(None, relation).compose(event).get_epsilon(DELTA)

    assert rdp(REPLACE_ONE) == rdp(ADD_OR_REMOVE)
    doubled = compose_epsilon([GaussianEvent("x", 2.0, 2.0)], DELTA)
    plain = compose_epsilon([GaussianEvent("x", 1.0, 2.0)], DELTA)
    assert pld(REPLACE_ONE) == pytest.approx(doubled, rel=1e-4)
    assert pld(ADD_OR_REMOVE) == pytest.approx(plain, rel=1e-4)
    assert pld(REPLACE_ONE) > rdp(REPLACE_ONE) * 1.5  # "tighter" PLD above RDP


def evaluations(bracket, epsilon):
    """Noise, how often calibrate_dp_mechanism asks the accountant, grid points in all."""
    sizes = []

    class Counting(PLDAccountant):
        def get_epsilon(self, target_delta):
            sizes.append(self._pld._pmf_remove.size)
            return super().get_epsilon(target_delta)

    noise = dp_accounting.calibrate_dp_mechanism(
        Counting, dp_event.GaussianDpEvent, epsilon, DELTA, bracket_interval=bracket
    )
    return noise, len(sizes), sum(sizes)


def test_default_bracket_wastes_accountant_work():
    """It searches from noise 0 and 1 upwards, through distributions that are far too wide.

    Against a bracket of 1% around the closed form: 17 evaluations for 7, ten times the grid
    points. If it fails because the default got cheap, ``calibration.calibrate`` may delegate to
    dp-accounting.
    """
    guess = 1 / gaussian_mu(0.1, DELTA)
    near = mechanism_calibration.ExplicitBracketInterval(guess * 0.99, guess * 1.01)
    noise, few, light = evaluations(near, 0.1)
    same, many, heavy = evaluations(None, 0.1)
    assert noise == pytest.approx(guess, rel=1e-6)
    assert same == pytest.approx(guess, rel=1e-6)
    assert many > 2 * few
    assert heavy > 5 * light


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_OR_REMOVE])
@pytest.mark.parametrize("accountant", [PLDAccountant, RdpAccountant])
def test_nobody_accounts_for_sampling_with_replacement(accountant, relation):
    """The event exists, no accountant takes it.

    If it fails, an accountant learnt it: methods that draw with replacement (papers 001, 003) may
    then use it, after a check against their own formulas.
    """
    event = dp_event.SampledWithReplacementDpEvent(1000, 10, dp_event.GaussianDpEvent(1.0))
    empty = accountant(neighboring_relation=relation)
    assert not empty.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        empty.compose(event)


def test_no_event_for_the_exponential_mechanism():
    """BoundedRangeEvent is ours: eta^2/8 zCDP and eta-DP.

    If it fails, compare the new event with ``BoundedRangeEvent.renyi`` and take the tighter.
    """
    names = [name.lower() for name in vars(dp_event) if name.endswith("DpEvent")]
    assert len(names) > 10
    assert not [n for n in names if "exponential" in n or "range" in n or "select" in n[:6]]


@pytest.mark.parametrize(
    ("rate", "noise", "steps"),
    [(0.1, 1.0, 10), pytest.param(0.01, 0.8, 300, marks=pytest.mark.slow), (0.5, 3.0, 1)],
)
def test_replace_one_poisson_gaussian_is_our_pair(rate, noise, steps):
    """dp-accounting's REPLACE adjacency is (1-q)N(0)+qN(1) against (1-q)N(0)+qN(-1), as ours.

    If it fails, do not follow: ``test_composition`` integrates our pair numerically.
    """
    event = dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise)), steps
    )
    theirs = PLDAccountant(REPLACE_ONE).compose(event).get_epsilon(DELTA)
    ours = compose_epsilon([PoissonGaussianEvent("g", 1.0, noise, rate, steps)], DELTA)
    assert ours == pytest.approx(theirs, rel=2e-4)
    if (rate, noise, steps) == (0.1, 1.0, 10):
        assert theirs == pytest.approx(4.0714795, abs=2e-6)


def test_version():
    """All of the above was seen in 0.6; pyproject.toml allows no other.

    On an upgrade run this file first, then move the bound.
    """
    from importlib.metadata import version

    assert version("dp-accounting").startswith("0.6.")
