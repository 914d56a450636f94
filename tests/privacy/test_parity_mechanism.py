"""The parity mechanism: its exact privacy by enumeration, its solutions, its bad input."""

import itertools
import math

import numpy as np
import pytest

from dpadapt.papers.hybrid.doors import parity
from dpadapt.papers.hybrid.doors.parity import pack_bits, parity_masks, thinning


class Scripted:
    """Uniform numbers that are written down before; one list for each call."""

    def __init__(self, *values):
        self.values = list(values)

    def __call__(self, size):
        value = self.values.pop(0)
        assert len(value) == size
        return np.array(value)


def outcomes(rows, labels, epsilon, keep):
    """Exact probability of every outcome of the code: all coins, kept sets and guesses."""
    n, d = rows.shape
    found = {}
    for coin in (0.1, 0.9):
        for kept in itertools.product((0.0, 1 - 2.0**-40), repeat=n):
            chance = 0.5 * math.prod(keep if u == 0.0 else 1 - keep for u in kept)
            for guess in itertools.product((0.1, 0.9), repeat=d):
                uniform = Scripted([coin], kept, guess)
                (mask,) = parity_masks(rows, labels, epsilon, 1, uniform)
                key = None if mask is None else tuple(mask.tolist())
                found[key] = found.get(key, 0.0) + chance * 0.5**d
    assert math.fsum(found.values()) == pytest.approx(1.0)
    return found


def worst_ratio(d, n, epsilon, keep):
    """Largest ratio of an outcome's probabilities over all pairs of neighbours."""
    points = list(itertools.product((0, 1), repeat=d + 1))
    tables = {}
    for sample in itertools.combinations_with_replacement(points, n):
        cells = np.array(sample)
        tables[sample] = outcomes(cells[:, :d], cells[:, d], epsilon, keep)
    worst = 0.0
    for rest in itertools.combinations_with_replacement(points, n - 1):
        near = [tables[tuple(sorted((*rest, point)))] for point in points]
        for first, second in itertools.permutations(near, 2):
            for outcome, chance in first.items():
                other = second.get(outcome, 0.0)
                worst = max(worst, chance / other if other else math.inf)
    return worst


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize(("d", "n"), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)])
def test_the_ratio_is_e_to_the_epsilon(d, n, epsilon):
    """No pair of neighbours passes it; one attains it."""
    assert worst_ratio(d, n, epsilon, thinning(epsilon)) == pytest.approx(math.exp(epsilon))


def test_other_thinnings_cost_other_epsilons():
    """The paper's epsilon / 4 wastes half; a larger probability would be seen."""
    cost = {p: math.log(worst_ratio(2, 2, 0.5, p)) for p in (0.125, 0.25, 0.3)}
    assert cost[0.125] == pytest.approx(0.2513, abs=1e-4)
    assert cost[0.25] > 0.5  # epsilon / 2, above tanh(epsilon / 2)
    assert cost[0.3] > 0.6
    assert math.log(worst_ratio(2, 2, 1.0, 0.25)) == pytest.approx(0.5108, abs=1e-4)


def test_the_enumeration_keeps_what_the_code_keeps():
    """The probability that the enumeration gives to a kept row is the code's own."""
    rows, labels = np.array([[1]]), np.array([1])
    below, above = math.nextafter(thinning(1.0), 0), thinning(1.0)
    kept = parity_masks(rows, labels, 1.0, 1, Scripted([0.9], [below], [0.9]))
    dropped = parity_masks(rows, labels, 1.0, 1, Scripted([0.9], [above], [0.9]))
    assert kept[0].tolist() == [1]
    assert dropped[0].tolist() == [0]


def test_thinning_never_passes_tanh():
    for epsilon in np.logspace(-8, 3, 200):
        p = thinning(float(epsilon))
        assert 0 < p < 1
        # the number of uniform numbers k 2^-53 below p is at most this
        highest = (math.ceil(p * 2.0**53)) * 2.0**-53
        assert 2 * math.atanh(highest) <= epsilon


# Solutions ---------------------------------------------------------------------------------------


def slow_solutions(rows, labels):
    d = rows.shape[1]
    masks = itertools.product((0, 1), repeat=d)
    return {m for m in masks if np.all((rows @ np.array(m)) % 2 == labels)}


def test_every_solution_and_no_other_comes_out():
    rng = np.random.default_rng(0)
    for _ in range(200):
        d, n = rng.integers(1, 5), rng.integers(0, 6)
        rows, labels = rng.integers(0, 2, (n, d)), rng.integers(0, 2, n)
        found = []
        for guess in itertools.product((0.1, 0.9), repeat=int(d)):
            uniform = Scripted([0.9], np.zeros(n), guess)
            found += parity_masks(rows, labels, 1.0, 1, uniform)
        exact = slow_solutions(rows, labels)
        if not exact:
            assert all(mask is None for mask in found)
        else:  # each solution comes from equally many guesses
            said = [tuple(mask.tolist()) for mask in found]
            assert set(said) == exact
            assert {said.count(mask) for mask in exact} == {2**d // len(exact)}


@pytest.mark.parametrize("d", [1, 63, 64, 65, 200])
def test_full_rank_finds_the_mask(d):
    rng = np.random.default_rng(d)
    secret = rng.integers(0, 2, d)
    X = rng.integers(0, 2, (12 * (d + 80), d))
    masks = parity_masks(X, X @ secret % 2, 1.0, 4, rng.random)
    spoken = [mask for mask in masks if mask is not None]
    assert spoken
    for mask in spoken:
        np.testing.assert_array_equal(mask, secret)


def test_one_wrong_label_is_noticed_if_it_is_kept():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (100, 5))
    y = X[:, 0].copy()
    y[17] ^= 1
    (mask,) = parity_masks(X, y, 1.0, 1, Scripted([0.9], np.zeros(100), np.zeros(5)))
    assert mask is None
    without = np.where(np.arange(100) == 17, 0.999, 0.0)
    (mask,) = parity_masks(X, y, 1.0, 1, Scripted([0.9], without, np.zeros(5)))
    assert mask.tolist() == [1, 0, 0, 0, 0]


def test_batches_are_disjoint_and_cover_the_rows():
    """A row that contradicts itself silences its own batch and no other."""
    X = np.ones((10, 1), dtype=int)
    for batches in (1, 3, 10):
        for changed in range(10):
            labels = np.ones(10, dtype=int)
            labels[changed] = 0
            edges = np.linspace(0, 10, batches + 1).astype(int)
            script = [[[0.9], np.zeros(b - a), [0.1]] for a, b in itertools.pairwise(edges)]
            masks = parity_masks(
                X, labels, 1.0, batches, Scripted(*itertools.chain.from_iterable(script))
            )
            other = [m for m, (a, b) in zip(masks, itertools.pairwise(edges), strict=True)
                     if not a <= changed < b]  # fmt: skip
            assert all(mask.tolist() == [1] for mask in other)
            assert len(other) == batches - 1


def test_half_of_the_batches_are_silent():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (40_000, 3))
    masks = parity_masks(X, X[:, 1], 3.0, 1000, rng.random)
    silent = sum(mask is None for mask in masks)
    assert abs(silent - 500) < 5 * math.sqrt(250)


# Input -------------------------------------------------------------------------------------------


def test_packed_rows_are_the_same_rows():
    rng = np.random.default_rng(3)
    for d in (1, 8, 63, 64, 65, 130):
        X = rng.integers(0, 2, (50, d))
        words = pack_bits(X)
        assert words.shape == (50, -(-d // 64))
        again = (words[:, np.arange(d) // 64] >> (np.arange(d) % 64).astype(np.uint64)) & np.uint64(
            1
        )
        np.testing.assert_array_equal(again, X)
        fresh = [np.random.default_rng(4).random for _ in range(2)]
        first = parity_masks(X, X[:, 0], 1.0, 2, fresh[0])
        second = parity_masks(words, X[:, 0], 1.0, 2, fresh[1], columns=d)
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)


def test_no_value_is_an_error():
    rng = np.random.default_rng(5)
    X = rng.choice([0.0, 1.0, np.nan, np.inf, -np.inf, 7.5, -3.0, 0.5], (300, 9))
    y = rng.choice([0.0, 1.0, np.nan, np.inf, -1.0], 300)
    clean = (X > 0.5).astype(np.uint8)
    first = parity_masks(X, y, 1.0, 5, np.random.default_rng(6).random)
    second = parity_masks(clean, y > 0.5, 1.0, 5, np.random.default_rng(6).random)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_draws_do_not_depend_on_the_rows():
    def asked(X, y):
        sizes = []

        def uniform(size):
            sizes.append(size)
            return np.full(size, 0.7)

        parity_masks(X, y, 1.0, 3, uniform)
        return sizes

    X = np.zeros((10, 4))
    assert asked(X, np.zeros(10)) == asked(X + 1, np.ones(10)) == asked(X, np.ones(10))


def test_public_facts_are_checked():
    X, y, rng = np.zeros((4, 2)), np.zeros(4), np.random.default_rng(0)
    with pytest.raises(ValueError, match="epsilon must"):
        parity_masks(X, y, 0.0, 1, rng.random)
    with pytest.raises(ValueError, match="batches must"):
        parity_masks(X, y, 1.0, 0, rng.random)
    with pytest.raises(ValueError, match="labels"):
        parity_masks(X, y[:3], 1.0, 1, rng.random)
    with pytest.raises(ValueError, match="columns"):
        parity_masks(X, y, 1.0, 1, rng.random, columns=2)
    assert parity.parity_masks(X[:0], y[:0], 1.0, 2, rng.random) is not None
