"""The sizes that the theorems of paper 003 ask for, as printed and repaired."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.papers.hybrid.doors.draws import DrawsEvent
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.papers.hybrid.sample_sizes import (
    agents_for_test,
    least_density,
    rounds_with_schedule,
    sizes_of_algorithm_1,
    sizes_of_algorithm_2,
    sizes_of_algorithm_4,
)
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.local.randomisers import BinaryResponse

EXCESS = 0.1**4 / (0.07**2 * (2 * 0.1**2 - 0.07**2))  # chi^2 + 1 of the paper's private setting
SETTING = {"alpha": 0.08, "beta": 1e-6, "epsilon": 0.5, "delta": 1e-4, "chi2": EXCESS - 1}


def test_algorithm_1_by_hand():
    found = sizes_of_algorithm_1(alpha=0.125, beta=0.05, chi2=3.0, dimension=2)
    assert found.rounds == 32 * 8 * 64  # log2(8 * 4 * 8) = 8
    rows = 800 * 4 * math.log(8) * 64 * (2 * math.log(800 * 512) + math.log(160))
    assert found.rows == math.ceil(rows)
    assert found.agents == 0


def test_algorithm_2_by_hand():
    found = sizes_of_algorithm_2(
        alpha=0.125, beta=0.05, epsilon=1.0, delta=1e-4, chi2=3.0, draws=100, calibration="paper"
    )
    assert found.density == 0.125 / 32
    assert found.rounds == 128 * 8 * 64
    logs = math.log(2e4)
    assert found.agents_per_round == math.ceil(4 * logs * math.log(8 * 65536 / 0.05) * 64)
    assert found.rows == math.ceil(100 * math.sqrt(288 * 65536 * logs) * 256)
    assert found.agents == found.agents_per_round * found.rounds


def test_the_papers_private_run():
    """324.7 million rows fit 50 million steps only with 997 rounds, and half the density."""
    density, steps, rounds = 2 * least_density(0.08, EXCESS - 1), 50_000_000, 997
    unit = 52 * steps * rounds / (8 * density**2 * 0.5)
    assert math.sqrt(unit * math.log(unit)) == pytest.approx(324.7e6, rel=1e-3)
    found = sizes_of_algorithm_4(**SETTING, dimension=8, calibration="paper")
    assert found.rounds == pytest.approx(141_569, abs=1)
    assert found.noise == pytest.approx(math.sqrt(20))
    assert found.steps == math.ceil(9 * (1 + 20 * 8) / 0.08**2)


def test_printed_noise_grows_where_rows_are_few():
    """sigma and n are defined by each other; both hold at what is returned."""
    known = SETTING | {"epsilon": 0.01, "alpha": 0.12, "beta": 0.1}
    found = sizes_of_algorithm_4(**known, dimension=2, calibration="paper")
    needed = (1600 * math.log(1e4) + 8) / math.log(found.density * found.rows)
    assert found.noise**2 == pytest.approx(max(20, needed), rel=1e-6)
    assert found.noise**2 > 20


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_tight_sizes_are_smaller_and_no_smaller_than_needed(epsilon):
    known = {**SETTING, "epsilon": epsilon, "beta": 0.05, "alpha": 0.12}
    printed, tight = (
        sizes_of_algorithm_4(**known, dimension=8, calibration=c) for c in ("paper", "tight")
    )
    assert tight.rows < printed.rows / 2
    assert tight.agents_per_round < printed.agents_per_round / 10
    spent = [
        compose_epsilon(
            [
                OneDrawGaussianEvent(
                    "descent",
                    1.0,
                    tight.noise,
                    rate=1 / (tight.density * tight.rows * part),
                    count=tight.steps * tight.rounds,
                )
            ],
            1e-4,
        )
        for part in (1.0, 0.98)
    ]
    assert spent[0] <= epsilon * (1 + 1e-6) < spent[1]


def test_errata_can_make_a_size_larger():
    """The noise is bounded in expectation only: at a small beta that is not enough steps."""
    printed, tight = (
        sizes_of_algorithm_4(**SETTING, dimension=8, calibration=c) for c in ("paper", "tight")
    )
    bound = (
        1.5 * math.sqrt(1 + 20 * 8) + math.sqrt(8 * math.log(4e6)) + math.sqrt(40 * math.log(2e6))
    )
    assert bound / math.sqrt(tight.steps) == pytest.approx(0.08, rel=1e-3)
    assert bound / math.sqrt(printed.steps) > 0.1


def test_tight_rows_of_algorithm_2_are_what_the_accountant_needs():
    known = {**SETTING, "alpha": 0.3, "beta": 0.05, "draws": 100}
    printed, tight = (sizes_of_algorithm_2(**known, calibration=c) for c in ("paper", "tight"))
    assert tight.rows < printed.rows / 3
    delta = 1e-4 / (math.e * math.sqrt(2 * tight.rounds))
    spent = [
        compose_epsilon(
            [DrawsEvent("draws", 1.0, delta, 100, 1 / (tight.density * rows), tight.rounds)], 1e-4
        )
        for rows in (tight.rows, 0.97 * tight.rows)
    ]
    assert spent[0] <= 0.5 * (1 + 1e-6) < spent[1]


def test_agents_tell_the_error_as_well_as_promised():
    """Randomised bits of the stated number of people miss alpha rarely; of a tenth, often."""
    rng = np.random.default_rng(0)
    response, truth, alpha = BinaryResponse(1.0), 0.3, 0.05
    count = agents_for_test(alpha, 0.05, 1.0)
    chance = response.lie + response.contrast * truth
    for people, often in ((count, False), (count // 10, True)):
        means = rng.binomial(people, chance, size=4000) / people
        missed = np.mean(np.abs(response.debias(means) - truth) > alpha)
        assert (missed > 0.1) == often
        assert often or missed <= 0.05


def test_randomised_bits_need_a_twentieth_of_the_people():
    ratio = agents_for_test(0.08, 0.001, 0.5, 1e-4, "paper") / agents_for_test(0.08, 0.001, 0.5)
    assert 15 < ratio < 30


def test_a_larger_loss_needs_more_people():
    assert agents_for_test(0.1, 0.05, 1.0, bound=3.0) == pytest.approx(
        9 * agents_for_test(0.1, 0.05, 1.0), abs=9
    )


def test_the_schedule_reaches_the_density():
    for density in (0.5, 0.1, 0.0074):
        rounds = rounds_with_schedule(density, 0.2)
        assert math.exp(-0.2 * (rounds - 1)) <= density < math.exp(-0.2 * (rounds - 2))


@pytest.mark.parametrize("chi2", [math.inf, math.nan, -0.1, None, "1"])
def test_a_divergence_that_is_not_finite_is_refused(chi2):
    with pytest.raises(ValueError, match="chi2"):
        least_density(0.1, chi2)
    with pytest.raises(ValueError, match="chi2"):
        sizes_of_algorithm_4(**(SETTING | {"chi2": chi2}), dimension=8)


@pytest.mark.parametrize(
    ("name", "value"),
    [("alpha", 0.0), ("beta", 1.0), ("epsilon", -1.0), ("delta", 0.0), ("draws", 0)],
)
def test_bad_arguments_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        sizes_of_algorithm_2(**(SETTING | {"draws": 10, name: value}))


def test_an_unknown_calibration_is_refused():
    with pytest.raises(ValueError, match="calibration"):
        sizes_of_algorithm_2(**SETTING, draws=10, calibration="loose")
