"""Composition against high precision, numerical integration and dp-accounting's accountants."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.optimize import brentq

from dpadapt.papers.hybrid.doors.draws import DrawsEvent
from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy.accounting.composition import (
    compose_delta,
    compose_epsilon,
    gaussian_delta,
    pld_epsilon,
    quick_epsilon,
    quickly_fits,
    relation_of,
)
from dpadapt.privacy.accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)
from dpadapt.privacy.accounting.pld import _upper, distribution

REPLACE_ONE = dp_accounting.NeighboringRelation.REPLACE_ONE


def gaussian(ratio, count=1):
    return GaussianEvent("g", sensitivity=ratio * 3, scale=3.0, count=count)


# The closed form -------------------------------------------------------------------------------


def exact_gaussian_delta(epsilon, mu):
    with mpmath.workdps(80 if mu > 1e-20 else 500):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        # ncdf loses digits far in the tail, erfc does not
        upper = mpmath.erfc((epsilon / mu - mu / 2) / mpmath.sqrt(2)) / 2
        lower = mpmath.erfc((epsilon / mu + mu / 2) / mpmath.sqrt(2)) / 2
        return upper - mpmath.exp(epsilon) * lower


@pytest.mark.parametrize(
    "mu", [1e-200, 1e-17, 1e-8, 1e-4, 9.99e-3, 1.001e-2, 0.1, 1.0, 5.0, 40.0, 1400.0]
)
@pytest.mark.parametrize("where", [0.0, 0.1, 1.0, 3.0, 6.0, 12.0, 30.0])
def test_gaussian_delta_against_high_precision(mu, where):
    """Epsilon at ``where`` standard deviations above the mean loss."""
    epsilon = mu * where + mu**2 / 2
    exact = float(exact_gaussian_delta(epsilon, mu))
    assert gaussian_delta(epsilon, mu) == pytest.approx(exact, rel=3e-9, abs=1e-300)


@pytest.mark.parametrize("mu", [1e-8, 1e-3, 0.02, 1.0, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 1e-3, 0.5, 50.0, 800.0, 1e5])
def test_gaussian_delta_on_a_wide_grid(mu, epsilon):
    exact = exact_gaussian_delta(epsilon, mu)
    exact = float(exact) if exact > mpmath.mpf("1e-300") else 0.0
    assert gaussian_delta(epsilon, mu) == pytest.approx(exact, rel=1e-9, abs=1e-299)


def test_gaussian_delta_is_monotone():
    mus = np.logspace(-9, 2, 400)
    for epsilon in (0.0, 1e-4, 0.3, 3.0, 40.0):
        deltas = [gaussian_delta(epsilon, mu) for mu in mus]
        assert np.all(np.diff(deltas) >= -1e-15)
        assert deltas[-1] > deltas[0]
    epsilons = np.linspace(0, 30, 400)
    for mu in (5e-3, 0.2, 1.0, 5.0):
        deltas = [gaussian_delta(epsilon, mu) for epsilon in epsilons]
        assert np.all(np.diff(deltas) <= 0)
        assert all(0 <= delta <= 1 for delta in deltas)


def test_gaussian_delta_at_the_ends():
    assert gaussian_delta(1.0, 0.0) == 0
    assert gaussian_delta(1.0, math.inf) == 1
    assert gaussian_delta(0.0, 1e200) == 1
    assert gaussian_delta(1e300, 1e-300) == 0


# Gaussian events -------------------------------------------------------------------------------

RATIOS = [0.05, 0.11, 0.2, 0.34]
COUNTS = [1, 3, 20, 7]


def test_gaussians_compose_to_the_root_of_squares():
    events = [gaussian(r, k) for r, k in zip(RATIOS, COUNTS, strict=True)]
    mu = math.sqrt(sum(k * r**2 for r, k in zip(RATIOS, COUNTS, strict=True)))
    for epsilon in (0.1, 1.0, 5.0):
        exact = float(exact_gaussian_delta(epsilon, mu))
        assert compose_delta(events, epsilon) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_closed_form_against_pld_and_rdp_with_counts(scale, delta):
    """One PLD per release, counts unrolled: nothing merged on dp-accounting's side."""
    events = [gaussian(r * scale, k) for r, k in zip(RATIOS, COUNTS, strict=True)]
    ours = compose_epsilon(events, delta)
    step = 2e-4 * max(ours, 0.01)
    pld = PLDAccountant(value_discretization_interval=step)
    rdp = RdpAccountant(1 + np.logspace(-2, 4, 600))
    for ratio, count in zip(RATIOS, COUNTS, strict=True):
        one = dp_event.GaussianDpEvent(1 / (ratio * scale))
        pld.compose(dp_event.ComposedDpEvent([one] * count))
        rdp.compose(dp_event.SelfComposedDpEvent(one, count))
    by_pld, by_rdp = pld.get_epsilon(delta), rdp.get_epsilon(delta)
    assert ours == pytest.approx(by_pld, rel=1e-3)
    assert ours <= by_pld * (1 + 1e-9)  # theirs is rounded up
    assert by_rdp >= ours
    forgotten = compose_epsilon([replace(e, count=1) for e in events], delta)
    assert forgotten < 0.8 * by_pld  # a forgotten count would be seen


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_pure_against_pld_and_rdp_with_counts(delta):
    """dp-accounting forgets the count of a self-composed answer, so the list is written out."""
    event = dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(0.2)), 2)
    many = dp_event.ComposedDpEvent([event] * 25)
    pld = PLDAccountant(REPLACE_ONE, value_discretization_interval=0.2 / 500 * (1 + 1e-12))
    rdp = RdpAccountant(1 + np.logspace(-2, 4, 600), REPLACE_ONE)
    by_pld = pld.compose(many).get_epsilon(delta)
    by_rdp = rdp.compose(many).get_epsilon(delta)
    for events in (
        [PureEvent("a", 0.2, 25)],
        [PureEvent("a", 0.2, 20), LaplaceEvent("b", 0.4, 2.0, 5)],
        [PureEvent(str(i), 0.2) for i in range(25)],
    ):
        assert compose_epsilon(events, delta) == pytest.approx(by_pld, rel=1e-3)
    assert by_rdp >= by_pld
    assert compose_epsilon([PureEvent("a", 0.2, 25)], delta) <= by_rdp * (1 + 1e-6)


@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_laplace_noise_is_never_below_its_own_pld(delta):
    """The event states pure DP only, so the claim may be above the PLD of continuous noise."""
    for ratio, count in ((0.05, 100), (0.5, 10), (2.0, 3)):
        one = dp_event.LaplaceDpEvent(1 / ratio)
        pld = PLDAccountant(value_discretization_interval=ratio / 1000)
        theirs = pld.compose(dp_event.SelfComposedDpEvent(one, count)).get_epsilon(delta)
        ours = compose_epsilon([LaplaceEvent("x", ratio, 1.0, count)], delta)
        assert theirs * (1 - 1e-5) <= ours <= theirs * 1.1


def test_renyi_part_is_dp_accountings():
    """zCDP (discrete Gaussian, exponential mechanism): RDP on other orders, same conversion."""
    events = [DiscreteGaussianEvent("d", 0.3, 1.0, 4), BoundedRangeEvent("b", 0.5, 1.0, 9)]
    rho = 4 * 0.3**2 / 2 + 9 * 0.5**2 / 8
    for delta in (1e-9, 1e-6, 1e-2):
        accountant = RdpAccountant(1 + np.logspace(-2, 5, 2000)).compose(dp_event.ZCDpEvent(rho))
        theirs = accountant.get_epsilon(delta)
        assert compose_epsilon(events, delta) == pytest.approx(theirs, rel=1e-4)
        back = accountant.get_delta(theirs)
        assert compose_delta(events, theirs) == pytest.approx(back, rel=1e-2)


# Mixtures, and the two directions --------------------------------------------------------------

LISTS = {
    "gaussian": [gaussian(0.2, 5)],
    "one pure": [PureEvent("p", 0.7)],
    "pure": [PureEvent("p", 0.1, 30), PureEvent("q", 0.3)],
    "one selection": [BoundedRangeEvent("b", 0.7, 1.0)],
    "selections": [BoundedRangeEvent("b", 0.2, 1.0, 50)],
    "mixture": [gaussian(0.3), PureEvent("p", 0.1, 10)],
    "three": [gaussian(0.1, 9), LaplaceEvent("l", 0.3, 1.0), BoundedRangeEvent("b", 0.4, 1.0, 4)],
    "discrete": [DiscreteGaussianEvent("d", 0.2, 1.0), gaussian(0.3), PureEvent("p", 0.1)],
    "sampled": [PoissonGaussianEvent("s", 1.0, 1.2, 0.05, 40)],
    "sampled and more": [PoissonGaussianEvent("s", 2.0, 2.4, 0.05, 40), gaussian(0.2)],
    "add-remove": [
        PoissonGaussianEvent("s", 1.0, 1.2, 0.05, 40, relation="add-remove"),
        replace(gaussian(0.2), relation="add-remove"),
    ],
    "stopping": [RandomStoppingEvent("r", (gaussian(0.1),), 1.0, 0.2), PureEvent("p", 0.1)],
    "parallel": [ParallelEvent("f", ((gaussian(0.3),), (PureEvent("p", 0.4),))), gaussian(0.1)],
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("delta", [1e-9, 1e-2])
def test_epsilon_and_delta_are_inverse(name, delta):
    events = LISTS[name]
    epsilon = compose_epsilon(events, delta)
    assert 0 < epsilon < math.inf
    assert compose_delta(events, epsilon) == pytest.approx(delta, rel=1e-6)
    assert compose_delta(events, epsilon) <= delta * (1 + 1e-7)
    assert compose_delta(events, epsilon * 0.99) > delta


@pytest.mark.parametrize("name", LISTS)
def test_monotone_in_delta_and_in_events(name):
    events = LISTS[name]
    epsilons = [compose_epsilon(events, delta) for delta in (1e-9, 1e-4, 0.1)]
    assert all(a > b or a == b == 0 for a, b in itertools.pairwise(epsilons))
    deltas = [compose_delta(events, epsilon) for epsilon in (0.0, 0.2, 0.6, 2.0)]
    assert all(a > b or a == b in (0, 1) for a, b in itertools.pairwise(deltas))
    more = [*events, replace(gaussian(0.15), relation=relation_of(events))]
    assert compose_epsilon(more, 1e-6) > compose_epsilon(events, 1e-6)


@pytest.mark.parametrize("name", LISTS)
def test_pld_is_a_second_opinion(name):
    events = LISTS[name]
    claim, second = compose_epsilon(events, 1e-6), pld_epsilon(events, 1e-6)
    assert second >= claim * (1 - 1e-9)
    if name in ("discrete", "stopping"):
        assert second == math.inf
    elif name not in ("one selection", "selections", "three"):
        assert second <= claim * 1.002


def test_order_and_grouping_do_not_matter():
    events = LISTS["three"]
    same = compose_epsilon(events, 1e-6)
    for permuted in itertools.permutations(events):
        assert compose_epsilon(permuted, 1e-6) == pytest.approx(same, rel=1e-9)
    split = [replace(e, count=1) for e in events for _ in range(e.count)]
    assert compose_epsilon(iter(split), 1e-6) == pytest.approx(same, rel=1e-9)


def test_mixture_against_a_direct_sum_over_answers():
    """Randomised response k times and a Gaussian: binomial mixture of shifted Gaussian curves."""
    mu, e, k = 0.4, 0.3, 8
    events = [gaussian(mu), PureEvent("p", e, k)]
    truth = 1 / (1 + math.exp(-e))

    def exact(epsilon):
        total = 0.0
        for truths in range(k + 1):
            loss = e * (2 * truths - k)
            weight = stats.binom.pmf(truths, k, truth)
            at = epsilon - loss
            hockey = stats.norm.cdf(-at / mu + mu / 2) - math.exp(at) * stats.norm.cdf(
                -at / mu - mu / 2
            )
            total += weight * hockey
        return total

    for epsilon in (0.2, 1.0, 2.0, 3.0):
        ours = compose_delta(events, epsilon)
        assert exact(epsilon) * (1 - 1e-9) <= ours <= exact(epsilon) * 1.002


def test_one_pure_release_is_the_randomised_response_curve():
    for e, epsilon in ((0.5, 0.2), (1e-12, 3e-13), (40.0, 39.0), (1e3, 990.0)):
        with mpmath.workdps(50):
            exact = (mpmath.exp(e) - mpmath.exp(epsilon)) / (1 + mpmath.exp(e))
            exact = float(exact)
        assert compose_delta([PureEvent("p", e)], epsilon) == pytest.approx(exact, rel=1e-9)
        back = compose_epsilon([PureEvent("p", e)], exact)
        assert back == pytest.approx(epsilon, rel=1e-9)


def test_selections_use_the_bounded_range():
    """50 selections of eta 0.2: far below 50 pure releases, never above the pure sum."""
    selections = compose_epsilon([BoundedRangeEvent("b", 0.2, 1.0, 50)], 1e-6)
    assert selections < 0.65 * compose_epsilon([PureEvent("b", 0.2, 50)], 1e-6)
    assert compose_epsilon([BoundedRangeEvent("b", 0.2, 1.0, 50)], 0.0) == pytest.approx(10.0)
    assert compose_epsilon([BoundedRangeEvent("b", 3.0, 1.0)], 1e-9) <= 3.0


# Parallel composition --------------------------------------------------------------------------


def test_parallel_is_the_worst_branch():
    weak, strong = (gaussian(0.1), PureEvent("p", 0.05)), (gaussian(0.4),)
    both = ParallelEvent("folds", (weak, strong))
    for delta in (1e-8, 1e-3):
        worst = max(compose_epsilon(weak, delta), compose_epsilon(strong, delta))
        assert compose_epsilon([both], delta) == worst
        assert worst < compose_epsilon([*weak, *strong], delta)
    assert compose_delta([both], 0.5) == max(compose_delta(weak, 0.5), compose_delta(strong, 0.5))


def test_worst_branch_may_depend_on_delta():
    """A pure branch is worse at large delta, a Gaussian one at small: the maximum is of curves."""
    pure, normal = (PureEvent("p", 1.0),), (gaussian(0.25),)
    both = [ParallelEvent("folds", (pure, normal))]
    assert compose_epsilon(both, 1e-2) == compose_epsilon(pure, 1e-2)
    assert compose_epsilon(both, 1e-9) == compose_epsilon(normal, 1e-9)
    assert compose_epsilon(pure, 1e-9) < compose_epsilon(normal, 1e-9)
    assert compose_epsilon(pure, 1e-2) > compose_epsilon(normal, 1e-2)


def test_parallel_with_common_events_and_nested():
    a, b, c, common = gaussian(0.3), PureEvent("b", 0.4), gaussian(0.5), gaussian(0.2)
    inner = ParallelEvent("inner", ((a,), (b,)))
    outer = ParallelEvent("outer", ((inner, common), (c,)))
    by_hand = max(
        compose_epsilon(way, 1e-6)
        for way in ([a, common, common], [b, common, common], [c, common])
    )
    assert compose_epsilon([outer, common], 1e-6) == pytest.approx(by_hand, rel=1e-12)


def test_two_splits_meet_in_every_pair():
    """Two different splits: a record may be in the dear branch of both."""
    first = ParallelEvent("1", ((gaussian(0.3),), (gaussian(0.1),)))
    second = ParallelEvent("2", ((gaussian(0.1),), (gaussian(0.4),)))
    assert compose_epsilon([first, second], 1e-6) == pytest.approx(
        compose_epsilon([gaussian(0.5)], 1e-6), rel=1e-9
    )


def test_an_empty_branch_is_free():
    event = ParallelEvent("held out", ((), (gaussian(0.3),)))
    assert compose_epsilon([event], 1e-6) == compose_epsilon([gaussian(0.3)], 1e-6)
    assert compose_epsilon([ParallelEvent("nothing", ((),))], 1e-6) == 0


def test_many_equal_splits_do_not_explode():
    folds = tuple((GaussianEvent(f"fold {i}", 0.1, 1.0),) for i in range(10))
    events = [ParallelEvent(f"round {j}", folds) for j in range(25)]
    expected = compose_epsilon([gaussian(0.1, 25)], 1e-6)
    assert compose_epsilon(events, 1e-6) == pytest.approx(expected, rel=1e-9)


def test_gaussian_splits_cost_their_larger_mu_however_many_there_are():
    events = [
        ParallelEvent("r", tuple((gaussian(0.01 + i / 700 + j / 10_000),) for i in range(10)))
        for j in range(100)
    ]
    worst = [gaussian(0.01 + 9 / 700 + j / 10_000) for j in range(100)]
    assert compose_epsilon(events, 1e-6) == pytest.approx(compose_epsilon(worst, 1e-6), rel=1e-9)


FITS = {
    "pure": lambda u: PureEvent("p", 0.3 * u),
    "range": lambda u: BoundedRangeEvent("b", 0.4 * u, 1.0),
    "poisson": lambda u: PoissonGaussianEvent("s", 1.0, 2.0 / u, 0.1),
    "discrete": lambda u: DiscreteGaussianEvent("d", 0.1 * u, 1.0),
    "stopping": lambda u: RandomStoppingEvent("t", (gaussian(0.05 * u),), 1.0, 0.9),
    "draws": lambda u: DrawsEvent("w", 0.5, 1e-8, 100, 1e-3 * u),
}


def splits(kinds: list[str], seed: int) -> list[ParallelEvent]:
    """Fits with a hold-out, whose two branches nobody can order."""
    draw = np.random.default_rng(seed)
    size = lambda: float(draw.uniform(0.7, 1.4))  # noqa: E731
    return [
        ParallelEvent("fit and evaluation", ((FITS[k](size()),), (gaussian(0.12 * size()),)))
        for k in kinds
    ]


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
@pytest.mark.parametrize(
    ("kinds", "most"),
    [
        (["pure"] * 4, 1.01),
        (["pure", "range", "poisson", "pure", "range"], 1.1),
        (["pure", "discrete", "pure", "stopping"], 1.05),
        (["draws", "pure", "draws", "poisson"], 1.01),
    ],
)
def test_many_splits_cost_no_less_than_any_way_through_them(kinds, most, delta):
    events = splits(kinds, len(kinds))
    listed = max(
        compose_epsilon([one for branch in way for one in branch], delta)
        for way in itertools.product(*(e.branches for e in events))
    )
    together = compose_epsilon(events, delta)
    assert listed * (1 - 1e-9) <= together <= listed * most
    at = listed * 0.9
    worst = max(
        compose_delta([one for branch in way for one in branch], at)
        for way in itertools.product(*(e.branches for e in events))
    )
    assert compose_delta(events, at) >= worst * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_worst_loss_dominates_each_branch_at_every_threshold(seed):
    (split,) = splits([["pure", "range", "poisson"][seed % 3]], seed)
    worst = distribution([split])
    at = np.linspace(-0.5, 1.5, 200)
    each = [distribution(branch).get_delta_for_epsilon(at) for branch in split.branches]
    assert (worst.get_delta_for_epsilon(at) >= np.max(each, axis=0) * (1 - 1e-3) - 1e-12).all()


def test_one_split_many_times_is_many_splits():
    (split,) = splits(["pure"], 0)
    for count in (2, 40):
        once, each = replace(split, count=count), [split] * count
        assert compose_epsilon([once], 1e-6) == pytest.approx(compose_epsilon(each, 1e-6), rel=1e-3)
    assert replace(split, count=40).pure_epsilon == pytest.approx(40 * split.pure_epsilon)


def test_quick_bounds_are_bounds():
    for kinds in (["pure"] * 3, ["range", "poisson"], ["draws", "stopping"]):
        events = [*splits(kinds, 1), PureEvent("x", 0.2), gaussian(0.1)]
        epsilon = compose_epsilon(events, 1e-6)
        assert epsilon <= quick_epsilon(events, 1e-6) < math.inf
        assert not quickly_fits(events, epsilon * 0.98, 1e-6)


# Relations -------------------------------------------------------------------------------------


def test_relations_do_not_mix():
    replaced = PoissonGaussianEvent("a", 1.0, 1.0, 0.1)
    added = replace(replaced, relation="add-remove")
    assert relation_of([replaced, gaussian(0.1)]) == "replace-one"
    assert relation_of([added]) == "add-remove"
    assert relation_of([], default="add-remove") == "add-remove"
    hidden = ParallelEvent("p", ((RandomStoppingEvent("r", (added,), 1.0, 0.5),),))
    assert relation_of([hidden]) == "add-remove"
    for events in (
        [replaced, added],
        [replaced, hidden],
        [ParallelEvent("p", ((replaced,), (added,)))],
    ):
        for compose in (compose_epsilon, compose_delta, pld_epsilon):
            with pytest.raises(ValueError, match="cannot be composed"):
                compose(events, 1e-3)
    people = replace(replaced, relation="replace-unit")
    with pytest.raises(ValueError, match="replace-one and replace-unit cannot"):
        relation_of([people, replaced])


# Poisson sampling ------------------------------------------------------------------------------


def mixture_delta(q, scale, epsilon, first, second):
    """Integral of the positive part, the crossing found by root search."""

    def log_density(x, centre):
        sampled = math.log(q) + stats.norm.logpdf(x, centre, scale)
        return np.logaddexp(math.log1p(-q) + stats.norm.logpdf(x, 0, scale), sampled)

    def loss(x):
        return log_density(x, first) - log_density(x, second)

    def gap(x):
        return math.exp(log_density(x, first)) - math.exp(epsilon + log_density(x, second))

    crossing = brentq(lambda x: loss(x) - epsilon, -60 * scale - 60, 60 * scale + 60)
    end = crossing + 14 * scale * (1 if first > second else -1)
    return abs(integrate.quad(gap, crossing, end, epsabs=1e-15, epsrel=1e-10, limit=400)[0])


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("q", [0.01, 0.1, 0.7])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5])
def test_one_replace_one_step_is_the_integral(q, scale, epsilon):
    exact = mixture_delta(q, scale, epsilon, 1.0, -1.0)
    mirrored = mixture_delta(q, scale, epsilon, -1.0, 1.0)
    assert mirrored == pytest.approx(exact, rel=1e-6)
    ours = compose_delta([PoissonGaussianEvent("s", 3.0, 3.0 * scale, q)], epsilon)
    # 1e-15 of mass is cut off on the pessimistic side by dp-accounting
    assert exact * (1 - 1e-7) <= ours <= exact * 1.001 + 2e-15


@pytest.mark.parametrize(
    ("q", "epsilon", "ratio"),
    [
        pytest.param(0.01, 0.1, 1.28, marks=pytest.mark.slow),
        pytest.param(0.01, 0.5, 1.11, marks=pytest.mark.slow),
        (0.1, 0.1, 1.84),
        (0.1, 0.5, 1.64),
    ],
)
def test_replace_one_costs_more_than_add_or_remove(q, epsilon, ratio):
    """Amendment A6: the ratios of one-step deltas at noise = clip."""
    replaced = PoissonGaussianEvent("s", 1.0, 1.0, q)
    added = replace(replaced, relation="add-remove")
    deltas = compose_delta([replaced], epsilon), compose_delta([added], epsilon)
    assert deltas[0] / deltas[1] == pytest.approx(ratio, abs=0.006)
    exact = mixture_delta(q, 1.0, epsilon, 1.0, -1.0), mixture_delta(q, 1.0, epsilon, 1.0, 0.0)
    assert deltas == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("q", "noise", "count"), [(0.01, 0.8, 500), (0.1, 2.0, 50), (0.5, 8.0, 200)]
)
def test_sampled_with_counts_against_pld_and_rdp(q, noise, count, relation):
    event = dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(noise)), count
    )
    named = {"replace-one": REPLACE_ONE}.get(
        relation, dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    theirs = PLDAccountant(named, value_discretization_interval=5e-4).compose(event)
    ours = [PoissonGaussianEvent("s", 2.0, 2.0 * noise, q, count, relation=relation)]
    for delta in (1e-7, 1e-3):
        by_pld = theirs.get_epsilon(delta)
        assert compose_epsilon(ours, delta) == pytest.approx(by_pld, rel=2e-3)
        if relation == "add-remove":
            by_rdp = RdpAccountant().compose(event).get_epsilon(delta)
            assert by_rdp >= by_pld
            assert by_rdp >= compose_epsilon(ours, delta)


def test_sampling_never_costs_more_than_no_sampling():
    for q in (0.01, 0.5, 0.999):
        sampled = compose_epsilon([PoissonGaussianEvent("s", 1.0, 3.0, q, 10)], 1e-6)
        whole = compose_epsilon([GaussianEvent("w", 2.0, 3.0, 10)], 1e-6)
        assert sampled <= whole * 1.001
    assert sampled >= 0.99 * whole  # at q = 0.999


@pytest.mark.parametrize("scale", [1e-3, 0.02, 0.03, 50.0])
@pytest.mark.parametrize("q", [1e-6, 1e-3, 0.5])
def test_sampled_at_the_ends(scale, q):
    """Neither the exponentials nor the number of grid points explode."""
    event = PoissonGaussianEvent("s", 1.0, scale, q)
    epsilon = compose_epsilon([event], 1e-8)
    assert epsilon < math.inf
    # one record, in the sample with probability q: never above the whole, never below the tail
    assert epsilon <= compose_epsilon([GaussianEvent("w", 2.0, scale)], 1e-8) * 1.01 + 1e-6
    tail = stats.norm.isf(min(1e-8 / q, 0.5) * 1.01)  # P(x > 1 + tail * scale) just above delta
    point = 1 + tail * scale
    log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * point - 1) / (2 * scale**2))
    log_ratio -= np.logaddexp(math.log1p(-q), math.log(q) + (-2 * point - 1) / (2 * scale**2))
    assert epsilon <= max(0.0, log_ratio) * 1.01 + 1e-4 or scale == 50.0


# The corners -----------------------------------------------------------------------------------


def test_nothing_costs_nothing():
    for compose in (compose_epsilon, compose_delta, pld_epsilon):
        assert compose([], 1e-6) == 0
    assert compose_epsilon([], 0.0) == 0
    assert compose_delta([], 0.0) == 0


def test_zero_sensitivity_is_free_everywhere():
    free = [
        GaussianEvent("a", 0.0, 1.0),
        DiscreteGaussianEvent("b", 0.0, 1.0),
        LaplaceEvent("c", 0.0, 1.0),
        BoundedRangeEvent("d", 0.0, 1.0),
        PureEvent("e", 0.0, 5),
    ]
    for delta in (0.0, 1e-6):
        assert compose_epsilon(free, delta) == 0
        assert compose_epsilon([*free, PureEvent("p", 0.5)], delta) == compose_epsilon(
            [PureEvent("p", 0.5)], delta
        )
    assert compose_delta(free, 0.0) == 0
    assert compose_epsilon([*free, gaussian(0.3)], 1e-6) == compose_epsilon([gaussian(0.3)], 1e-6)


def test_delta_zero():
    pure = [PureEvent("a", 0.5, 2), LaplaceEvent("b", 1.0, 4.0), BoundedRangeEvent("c", 0.1, 1.0)]
    assert compose_epsilon(pure, 0.0) == pytest.approx(1.35, rel=1e-15)
    assert compose_delta(pure, compose_epsilon(pure, 0.0)) == 0
    assert compose_epsilon([*pure, gaussian(1e-6)], 0.0) == math.inf
    assert compose_epsilon([PoissonGaussianEvent("s", 1.0, 1e6, 0.1)], 0.0) == math.inf


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, "x", None, True])
def test_bad_delta_is_named(delta):
    for compose in (compose_epsilon, pld_epsilon):
        with pytest.raises(ValueError, match=r"^delta must"):
            compose([gaussian(0.1)], delta)


@pytest.mark.parametrize("epsilon", [-1e-9, math.inf, math.nan, "x", None])
def test_bad_epsilon_is_named(epsilon):
    with pytest.raises(ValueError, match=r"^epsilon must"):
        compose_delta([gaussian(0.1)], epsilon)


def test_what_is_not_an_event_is_refused():
    for bad in (0.5, "gaussian", gaussian(0.1).to_dict(), None):
        with pytest.raises(TypeError, match="events must hold Event objects"):
            compose_epsilon([gaussian(0.1), bad], 1e-6)


def test_an_event_that_states_nothing_is_never_guessed():
    @dataclass(frozen=True)
    class Mystery(Event):
        kind: ClassVar[str] = "mystery"

    events = [Mystery("?"), gaussian(0.1)]
    assert compose_epsilon(events, 1e-6) == math.inf
    assert compose_delta(events, 100.0) == 1
    assert pld_epsilon(events, 1e-6) == math.inf


def test_thousands_of_events():
    rng = np.random.default_rng(0)
    ratios = rng.uniform(1e-3, 2e-2, 5000)
    normal = [gaussian(r) for r in ratios]
    together = compose_epsilon([gaussian(float(np.linalg.norm(ratios)))], 1e-6)
    assert compose_epsilon(normal, 1e-6) == pytest.approx(together, rel=1e-10)
    pure = [PureEvent(str(i), 0.01) for i in range(3000)]
    assert compose_epsilon(pure, 1e-6) == pytest.approx(
        compose_epsilon([PureEvent("p", 0.01, 3000)], 1e-6), rel=1e-12
    )
    mixed = compose_epsilon([*normal, *pure], 1e-6)
    assert together < mixed < together + compose_epsilon(pure, 1e-6)


@pytest.mark.parametrize("size", [1e-150, 1e-12, 1e-7])
def test_tiny_events(size):
    """Below delta in total variation: epsilon is 0 at delta = 1e-6, delta is right at epsilon 0."""
    for events in (
        [gaussian(size)],
        [PureEvent("p", size)],
        [gaussian(size), PureEvent("p", size)],
    ):
        assert compose_epsilon(events, 1e-6) == 0
        at_zero = compose_delta(events, 0.0)
        assert size * 0.39 < at_zero < max(size * 1.1, 1e-8)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e100, 1e200])
def test_huge_events(size):
    assert compose_epsilon([gaussian(size)], 1e-6) >= min(size**2 / 2 if size < 1e9 else 1e9, 1e5)
    assert compose_epsilon([PureEvent("p", size)], 1e-6) == pytest.approx(size)
    mixed = compose_epsilon([PureEvent("p", size), gaussian(0.1)], 1e-6)
    assert size * (1 - 1e-9) <= mixed <= size * 1.01
    assert compose_delta([gaussian(size), PureEvent("p", size)], 10.0) == pytest.approx(1.0)
    assert compose_epsilon([gaussian(0.1, 10**12), PureEvent("p", 0.1)], 1e-6) > 1e7


@settings(max_examples=60, deadline=None)
@given(
    ratios=st.lists(st.floats(1e-3, 2.0), min_size=1, max_size=6),
    counts=st.lists(st.integers(1, 50), min_size=6, max_size=6),
    delta=st.floats(1e-12, 0.3),
)
def test_any_gaussians(ratios, counts, delta):
    events = [gaussian(r, k) for r, k in zip(ratios, counts, strict=False)]
    epsilon = compose_epsilon(events, delta)
    assert compose_delta(events, epsilon) <= delta
    mu = math.sqrt(sum(k * r**2 for r, k in zip(ratios, counts, strict=False)))
    with mpmath.workdps(40):
        assert exact_gaussian_delta(epsilon, mu) <= delta * (1 + 1e-8)
        if epsilon > 0:
            assert exact_gaussian_delta(epsilon * (1 - 1e-6), mu) > delta * (1 - 1e-8)


@settings(max_examples=15, deadline=None)
@given(
    ratio=st.floats(1e-2, 2.0),
    epsilon=st.floats(1e-2, 2.0),
    count=st.integers(1, 20),
    delta=st.floats(1e-10, 0.1),
)
@example(ratio=1 / 64, epsilon=2.0, count=4, delta=1e-10)  # the PLD's grid alone is above the sum
def test_any_mixture_is_between_its_parts_and_their_sum(ratio, epsilon, count, delta):
    normal, pure = [gaussian(ratio)], [PureEvent("p", epsilon, count)]
    mixed = compose_epsilon(normal + pure, delta)
    assert mixed >= max(compose_epsilon(normal, delta), compose_epsilon(pure, delta)) - 1e-9
    assert mixed <= compose_epsilon(normal, delta) + count * epsilon * (1 + 1e-9)


# Splits that are far out -----------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1.5, 2.5, 3.0, 21.87, 65.61, 1e3])
@pytest.mark.parametrize("beside", [(), (PureEvent("p", 0.001),)], ids=["alone", "beside"])
def test_no_split_is_too_far_out_to_be_composed(mu, beside):
    """Rounding takes a curve beyond 1, e^710 is no number, all of a distribution can be infinite.

    What is met in the dearer branch every time is the exact lower bound.
    """
    other = PureEvent("q", 0.003 if beside else mu * mu / 2)
    split = ParallelEvent("s", ((gaussian(mu), *beside), (other,)), count=9)
    exact = compose_epsilon([gaussian(mu, 9)], 1e-6)
    found = compose_epsilon([split], 1e-6)
    assert exact * (1 - 1e-9) <= found < 1.2 * exact + (0 if beside else 9 * mu * mu / 2)
    assert compose_delta([split], 0.9 * exact) >= compose_delta([gaussian(mu, 9)], 0.9 * exact)


@pytest.mark.parametrize(
    ("computed", "bound"),
    [
        ([1 + 7e-11, 0.5], [1.0, 0.5]),
        ([0.5, -1e-17], [0.5, 0.5]),
        ([0.5, -math.inf, 0.4], [0.5, 0.5, 0.4]),
        ([-math.inf, 0.4], [1.0, 0.4]),
        ([math.nan, 0.4, math.nan], [1.0, 0.4, 0.4]),
        ([0.4, 0.5, math.inf], [0.4, 0.4, 0.4]),
        ([1.0, 0.0, -0.0], [1.0, 0.0, 0.0]),
    ],
)
def test_a_curve_that_rounding_broke_is_mended_upwards(computed, bound):
    """Never to 0 what is below it: the bound before it holds, and 1 where there is none."""
    assert _upper(np.array(computed)).tolist() == bound
