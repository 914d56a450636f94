"""The populations of paper 003 are what they say: divergences, shares of labels, what moves."""

import numpy as np
import pytest
from scipy import stats

from reproduce.hybrid.data import SETTINGS, draw_setting
from reproduce.hybrid.populations import (
    Bimodal,
    Correlated,
    Shifted,
    Shrunk,
    SkewedBits,
    _gaussian_chi2,
)

SMALL = [name for name in SETTINGS if not name.startswith("figure")]


def rows(name, which, n=20_000, seed=0):
    known = draw_setting(name, seed).population
    return getattr(known, which)(n, np.random.default_rng([seed, len(which)]))


@pytest.mark.parametrize(
    ("name", "excess"),
    [("figure 1", 3e15), ("figure 2", 39.1), ("EASY", 1.35), ("HARD", 39.1), ("MEAN", 54.5)],
)
def test_divergence_is_the_one_that_the_paper_prints(name, excess):
    # the paper prints them as lower bounds, cut after the last digit
    assert excess < draw_setting(name).population.chi2 + 1 < 1.02 * excess


@pytest.mark.parametrize(("name", "share"), [("figure 1", 0.01), ("figure 2", 0.3), ("EASY", 0.4),
                                             ("HARD", 0.3), ("UNIFORM", 0.3), ("T4", 0.3),
                                             ("LAPLACE", 0.3), ("AR1", 0.3)])  # fmt: skip
def test_share_of_the_target_with_label_minus_one(name, share):
    n = 10_000
    _, y = rows(name, "target", n)
    assert np.mean(y < 0) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / n))


def test_cap_on_norms_of_the_paper_is_the_quantile_that_it_says():
    X, _ = rows("figure 2", "source", 20_000)
    assert np.quantile(np.linalg.norm(X**2, axis=1), 0.9) == pytest.approx(27.9, abs=0.4)


@pytest.mark.parametrize("name", SETTINGS)
def test_draws_depend_on_the_seed_alone(name):
    assert draw_setting(name, 3) == draw_setting(name, 3)
    assert draw_setting(name, 3) != draw_setting(name, 4)
    known = draw_setting(name, 3).population
    X, y = known.source(5, np.random.default_rng(0))
    again, _ = known.source(5, np.random.default_rng(0))
    assert np.array_equal(X, again)
    assert set(y) <= {-1.0, 1.0}


@pytest.mark.parametrize("name", SMALL)
def test_labels_are_one_function_of_the_row_for_both_populations(name):
    known = draw_setting(name, 1).population
    for which in ("source", "target"):
        X, y = getattr(known, which)(2_000, np.random.default_rng(0))
        if name == "parity":
            X = X > 0.5
        assert np.array_equal(known._label(X).y, y)


@pytest.mark.parametrize("name", ["HARD", "UNIFORM", "T4"])
def test_only_the_named_columns_shrink(name):
    known = draw_setting(name, 2).population
    source, target = (rows(name, which, seed=2)[0] for which in ("source", "target"))
    ratio = np.median(np.abs(target), axis=0) / np.median(np.abs(source), axis=0)
    expected = np.ones(8)
    expected[list(known.columns)] = 0.4
    assert ratio == pytest.approx(expected, rel=0.06)


def mean_square_ratio(draws, target, source):
    """E_S[(dT/dS)^2] by simulation."""
    return np.mean((target(draws) / source(draws)) ** 2)


@pytest.mark.parametrize(
    ("law", "draw", "density"),
    [
        ("laplace", lambda rng, n: rng.laplace(size=n), stats.laplace.pdf),
        ("t4", lambda rng, n: rng.standard_t(4, size=n), stats.t(4).pdf),
        ("normal", lambda rng, n: rng.normal(size=n), stats.norm.pdf),
    ],
)
def test_divergence_of_a_shrunk_column_by_simulation(law, draw, density):
    known = Shrunk(3, (0, 2), 0.5, 0.3, law=law)
    one = mean_square_ratio(
        draw(np.random.default_rng(0), 300_000), lambda x: 2 * density(2 * x), density
    )
    assert known.chi2 + 1 == pytest.approx(one**2, rel=0.02)


def test_divergences_with_a_formula():
    assert Shrunk(3, (0, 1), 0.5, 0.3, law="uniform").chi2 + 1 == pytest.approx(4.0)
    assert Correlated(2, (0, 1), correlation=0.6).chi2 + 1 == pytest.approx(1 / (1 - 0.36))
    # a column that others depend on says more when it shrinks
    assert Shrunk(2, (0,), 0.4, 0.3, law="ar1").chi2 > Shrunk(2, (0,), 0.4, 0.3).chi2
    assert _gaussian_chi2(2.5 * np.eye(2), np.eye(2)) == np.inf


def test_divergence_of_two_modes_by_simulation():
    known = Bimodal((1.0, 0.0), (0.0, 1.0), mode=0.7, spread=0.6)

    def modes(x):
        return (stats.norm.pdf(x, -0.7, 0.6) + stats.norm.pdf(x, 0.7, 0.6)) / 2

    found = mean_square_ratio(np.random.default_rng(0).normal(size=300_000), modes, stats.norm.pdf)
    assert known.chi2 + 1 == pytest.approx(found, rel=0.02)


def test_a_target_that_is_wider_is_refused():
    with pytest.raises(ValueError, match="factor"):
        Shrunk(2, (0, 1), 1.6, 0.3)


@pytest.mark.parametrize(("name", "wrong"), [("MEANB", 0.926), ("CORR", 0.993), ("BIMOD", 0.992)])
def test_what_the_source_teaches_is_wrong_for_the_target(name, wrong):
    known = draw_setting(name, 0).population
    X, y = rows(name, "target")
    taught = {
        Shifted: lambda k: X @ np.array(k.direction),
        Bimodal: lambda k: X @ np.array(k.direction),
        Correlated: lambda k: -(X[:, k.pair[0]] + X[:, k.pair[1]]),
    }[type(known)](known)
    assert np.mean(np.sign(taught) != y) == pytest.approx(wrong, abs=0.01)


def test_parity_of_fair_bits_is_balanced_and_cannot_be_guessed_from_one_bit():
    X, y = rows("parity", "target", 20_000)
    assert np.mean(y > 0) == pytest.approx(0.5, abs=0.02)
    assert np.abs(np.corrcoef(np.column_stack([X, y]), rowvar=False)[-1, :-1]).max() < 0.04
    skew, _ = rows("parity", "source", 20_000)
    assert skew.mean() == pytest.approx(0.45, abs=0.005)
    assert SkewedBits(2, (0,), 0.5).chi2 == pytest.approx(0.0)


def test_unknown_setting_is_refused():
    with pytest.raises(ValueError, match="HARD50"):
        draw_setting("EASIER")
