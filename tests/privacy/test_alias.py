"""The packed alias table draws from the projected weights, and from nothing else."""

import sys

import numpy as np
import pytest
from scipy import stats

from dpadapt.papers.hybrid.doors._compiled import DrawTable
from dpadapt.papers.hybrid.doors.weights import (
    draw_rate,
    log_cap,
    mass_of,
    projected,
    threshold_bits,
)
from dpadapt.privacy.core.noise import SecureNoise


def table_of(log_weights, density):
    return DrawTable(log_weights, log_cap(log_weights, density), density)


def mu(log_weights, density):
    cap = log_cap(log_weights, density)
    return projected(log_weights, cap) / mass_of(density, len(log_weights))


def probabilities(table):
    """What the table gives every row, from its words, as exact whole numbers over their sum."""
    one = 1 << table._bits
    out = [0] * len(table._table)
    for column, word in enumerate((~table._table).tolist()):
        own, place = word >> table._place_bits, word & ((1 << table._place_bits) - 1)
        out[column] += own
        out[place] += one - own
    assert sum(out) == one * len(out)
    return np.array([each / (one * len(out)) for each in out])


SPREADS = [0.0, 1e-9, 0.3, 5.0, 100.0]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("n", "density"), [(1, 1.0), (2, 0.5), (1024, 1 / 1024), (3000, 0.03)])
def test_table_is_as_near_to_the_weights_as_stated(n, density, spread):
    log_weights = -spread * np.random.default_rng(0).random(n)
    table = table_of(log_weights, density)
    assert (table._table < 0).all()  # every row was dealt with
    distance = 0.5 * np.abs(probabilities(table) - mu(log_weights, density)).sum()
    assert distance <= 2.0 ** -(threshold_bits(n) + 1) + 1e-14


def test_coarse_thresholds_stay_within_the_stated_distance(monkeypatch):
    """With few bits the rounding is visible, also where every weight is rounded the same way."""
    bits = 6
    monkeypatch.setattr("dpadapt.papers.hybrid.doors._compiled.threshold_bits", lambda n: bits)
    rng = np.random.default_rng(1)
    most = 0.0
    for case in range(300):
        n = int(rng.integers(2, 200))
        log_weights = -rng.choice([0.1, 1.0, 4.0]) * rng.random(n)
        if case % 3 == 0:
            log_weights = np.where(np.arange(n) < n // 2, 0.0, -rng.random())
        density = float(rng.uniform(1 / n, 1))
        got = probabilities(table_of(log_weights, density))
        distance = 0.5 * np.abs(got - mu(log_weights, density)).sum()
        most = max(most, distance * 2 ** (bits + 1))
    assert 0.5 < most <= 1 + 1e-9


def test_uniform_weights_give_every_row_its_own_column():
    table = table_of(np.full(100, -2.0), 0.4)
    assert (~table._table == np.arange(100)).all()


@pytest.mark.parametrize("source", [np.random.default_rng(5), SecureNoise()._generator()])
def test_frequencies_of_draws(source):
    log_weights = -3 * np.random.default_rng(2).random(50)
    drawn = table_of(log_weights, 0.3).draw(source, 400_000)
    counts = np.bincount(drawn, minlength=50)
    expected = mu(log_weights, 0.3) * 400_000
    assert stats.chisquare(counts, expected).pvalue > 1e-6
    assert stats.chisquare(counts, np.full(50, 8000.0)).pvalue < 1e-6  # the test can fail


def test_draws_are_independent_of_each_other():
    drawn = table_of(np.log([3.0, 1.0, 1.0]), 1 / 1.8).draw(np.random.default_rng(6), 300_000)
    pairs = np.bincount(3 * drawn[::2] + drawn[1::2], minlength=9)
    single = np.bincount(drawn, minlength=3) / len(drawn)
    assert stats.chisquare(pairs, np.outer(single, single).ravel() * pairs.sum()).pvalue > 1e-6


def test_the_overlap_of_two_tables_is_within_the_rate_that_is_charged_for():
    rng = np.random.default_rng(7)
    most = 0.0
    for _ in range(300):
        n = int(rng.integers(2, 80))
        log_weights = -4 * rng.random(n)
        other = log_weights.copy()
        i = int(rng.integers(n))
        other[i] = rng.choice([0.0, -50.0, -4 * rng.random()])
        density = float(rng.uniform(1 / n, 1))
        both = np.minimum(*(probabilities(table_of(w, density)) for w in (log_weights, other)))
        most = max(most, (1 - np.delete(both, i).sum()) / draw_rate(density, n))
    assert 0.999 < most <= 1


def test_float32_thresholds_would_break_the_rate():
    """Why the table is of whole numbers: a heavy row collects n rounding errors."""
    n = 1 << 22
    log_weights = np.zeros(n)
    log_weights[17] = np.log(1.3)
    share = n / (n + 0.3)  # what a column has of its own; row 17 collects the rest of all columns
    assert n * (1 - share) == pytest.approx(0.3, rel=1e-6)
    assert abs(n * (1 - float(np.float32(share))) - 0.3) > 0.04
    table = table_of(log_weights, 0.5)
    words, one = ~table._table, 1 << table._bits
    own, place = words >> table._place_bits, words & ((1 << table._place_bits) - 1)
    collected = float(own[17] + (one - own)[place == 17].sum()) / one
    assert collected == pytest.approx(1.3, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 1 << 20, 324_700_000, (1 << 31) + 1, 1 << 33])
def test_a_word_holds_a_threshold_and_a_place(n):
    places = max(1, (n - 1).bit_length())
    assert threshold_bits(n) + places <= 63
    assert n * 2 ** threshold_bits(n) <= 2**63  # one row may hold all of it
    assert threshold_bits(n) >= 30


def test_importing_the_package_does_not_load_numba():
    import subprocess

    code = "import sys, dpadapt.privacy; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
