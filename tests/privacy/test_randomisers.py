"""Randomisers of one person's answer: exact laws, not only samples; broken forms must fail."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from dpadapt.privacy.core.noise import NoiseSource, SecureNoise, SeededNoise
from dpadapt.privacy.local.randomisers import (
    BallResponse,
    BinaryResponse,
    GaussianResponse,
    _ball,
)

EPSILONS = [1e-6, 0.01, 0.5, 1.0, 3.0, 10.0, 36.0, 50.0, 1e4]


class Fixed(SeededNoise):
    """Uniforms and normals that a test chooses."""

    def __init__(self, uniforms=None, normals=None):
        super().__init__(0)
        self.uniforms, self.chosen = uniforms, normals

    def uniform(self, size):
        return np.broadcast_to(self.uniforms, (size,)).astype(float)

    def add_gaussian(self, values, scale):
        return values + scale * np.asarray(self.chosen, dtype=float)

    def directions(self, shape):
        return np.broadcast_to(self.chosen, shape).astype(float)


# Bits ------------------------------------------------------------------------------------------


def largest_log_ratio(response, grid=None):
    """Largest log-ratio of message probabilities over all pairs of values."""
    values = np.linspace(-1.0, 2.0, 301) if grid is None else grid
    ones = response.probability(values)
    return max(math.log(p.max()) - math.log(p.min()) for p in (ones, 1 - ones))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ratio_is_e_to_the_epsilon_and_never_more(epsilon):
    ratio = largest_log_ratio(BinaryResponse(epsilon))
    assert ratio <= epsilon * (1 + 1e-14) + 1e-15
    if 1e-6 < epsilon < 20:
        assert ratio == pytest.approx(epsilon, rel=1e-9)


def test_the_probability_of_a_lie():
    assert BinaryResponse(0.5).lie == pytest.approx(1 / (1 + math.exp(0.5)), abs=1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilities_are_multiples_of_the_grain_of_uniforms(epsilon):
    lie = BinaryResponse(epsilon).lie
    assert (lie * 2.0**53).is_integer()
    assert (1 - lie) + lie == 1  # nothing was rounded
    assert lie >= 1 / (2 + math.expm1(min(epsilon, 700))) * (1 - 1e-15)


def test_the_ratio_test_has_power():
    @dataclass(frozen=True)
    class TooFewLies(BinaryResponse):
        @property
        def lie(self):
            return 0.7 / (1 + math.exp(self.epsilon))

    @dataclass(frozen=True)
    class Unclipped(BinaryResponse):
        def probability(self, values):
            return np.clip(self.lie + self.contrast * np.asarray(values), 1e-9, 1 - 1e-9)

    assert largest_log_ratio(TooFewLies(1.0)) > 1.2
    assert largest_log_ratio(Unclipped(1.0)) > 1.2


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_the_coin_is_the_stated_one(value):
    response = BinaryResponse(1.0)
    chance = float(response.probability(value))
    assert chance == pytest.approx(response.lie + (1 - 2 * response.lie) * value, abs=1e-15)
    below, above = chance - 2.0**-53, chance
    assert response.respond(Fixed(below), np.array([value])) == 1.0
    assert response.respond(Fixed(above), np.array([value])) == 0.0


def test_debiased_means_are_unbiased_exactly():
    response = BinaryResponse(0.7)
    values = np.array([0.0, 0.1, 0.6, 1.0])
    assert response.debias(response.probability(values)) == pytest.approx(values, abs=1e-14)
    assert response.debias(1 - response.probability(values)) != pytest.approx(values, abs=0.1)


@pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(3)])
def test_frequency_of_ones(source):
    response = BinaryResponse(1.0)
    sent = response.respond(source, np.full(200_000, 0.3))
    assert set(np.unique(sent)) == {0.0, 1.0}
    chance = float(response.probability(0.3))
    assert binomtest(int(sent.sum()), len(sent), chance).pvalue > 1e-6
    assert binomtest(int(sent.sum()), len(sent), 1 - chance).pvalue < 1e-9


def test_values_outside_the_range_are_clipped_and_nothing_raises():
    response = BinaryResponse(1.0)
    odd = np.array([-5.0, 7.0, np.nan, np.inf, -np.inf])
    with np.errstate(all="raise"):
        assert response.probability(odd) == pytest.approx(
            response.probability([0.0, 1.0, 0.0, 1.0, 0.0])
        )
        assert response.respond(SeededNoise(0), odd).shape == (5,)


def test_an_argument_is_never_changed():
    given = np.array([np.nan, 2.0])
    BinaryResponse(1.0).respond(SeededNoise(0), given)
    np.testing.assert_array_equal(given, [np.nan, 2.0])


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-7, np.nan, np.inf, "1"])
def test_epsilons_that_are_none(epsilon):
    for make in (BinaryResponse, lambda e: BallResponse(e, 2), lambda e: GaussianResponse(e, 1e-4)):
        with pytest.raises(ValueError, match="epsilon"):
            make(epsilon)


# Gaussian --------------------------------------------------------------------------------------


def delta_by_hand(epsilon, scale):
    return norm.cdf(1 / (2 * scale) - epsilon * scale) - math.exp(epsilon) * norm.cdf(
        -1 / (2 * scale) - epsilon * scale
    )


def test_the_papers_variance_and_its_real_delta():
    paper = GaussianResponse(0.5, 1e-4, form="paper")
    assert paper.scale**2 == pytest.approx(2 * math.log(2e4) / 0.25)
    assert paper.exact_delta == pytest.approx(1.27e-7, rel=0.01)
    assert paper.exact_delta == pytest.approx(delta_by_hand(0.5, paper.scale), rel=1e-6)
    assert GaussianResponse(8.99, 1e-4, form="paper").exact_delta <= 1e-4
    assert GaussianResponse(10.0, 1e-4, form="paper").exact_delta == pytest.approx(
        1.65e-4, rel=0.01
    )


def test_the_tight_form_meets_its_delta_and_less_noise_would_not():
    tight = GaussianResponse(0.5, 1e-4)
    assert delta_by_hand(0.5, tight.scale) == pytest.approx(1e-4, rel=1e-6)
    assert delta_by_hand(0.5, tight.scale * 0.999) > 1e-4
    assert GaussianResponse(0.5, 1e-4, "paper").scale ** 2 / tight.scale**2 == pytest.approx(
        2.28, abs=0.01
    )


def test_excess_variances_of_the_three_forms():
    lie = BinaryResponse(0.5).lie
    binary = lie * (1 - lie) / (1 - 2 * lie) ** 2
    assert binary == pytest.approx(3.92, abs=0.01)
    assert GaussianResponse(0.5, 1e-4).scale ** 2 == pytest.approx(34.7, abs=0.1)
    assert GaussianResponse(0.5, 1e-4, "paper").scale ** 2 == pytest.approx(79.2, abs=0.1)


def test_noise_is_of_the_stated_scale_and_values_are_clipped():
    tight = GaussianResponse(1.0, 1e-4)
    sent = tight.respond(SeededNoise(1), np.full(100_000, 5.0))
    assert sent.mean() == pytest.approx(1.0, abs=5 * tight.scale / math.sqrt(1e5))
    assert sent.std() == pytest.approx(tight.scale, rel=0.02)
    assert sent.std() != pytest.approx(0.7 * tight.scale, rel=0.02)
    odd = tight.respond(Fixed(normals=np.zeros(3)), np.array([np.nan, -3.0, 0.25]))
    assert odd == pytest.approx([0.0, 0.0, 0.25])


def test_the_event_is_what_was_drawn():
    tight = GaussianResponse(0.5, 1e-4)
    event = tight.event(SeededNoise(0))
    assert (event.sensitivity, event.scale) == (1.0, tight.scale)


# Ball ------------------------------------------------------------------------------------------


def law(response: BallResponse, vector, directions):
    """Exact probability of each direction and of its opposite, given that the pair was drawn.

    Of u and -u each is drawn half the time; the coin that turns it is below its threshold or not.
    """
    threshold = float(
        BinaryResponse(response.epsilon).probability(0.5 + min(1.0, np.linalg.norm(vector)) / 2)
    )
    found = np.zeros((len(directions), 2))
    for place, direction in enumerate(directions):
        for drawn in (direction, -direction):
            for uniform, weight in ((threshold / 2, threshold), (1 - 1e-12, 1 - threshold)):
                sent = response.respond(Fixed(uniform, drawn[None]), np.array([vector]))[0]
                found[place, int(sent @ direction > 0)] += weight / 2
    return found


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("width", [1, 2, 9])
def test_density_ratio_of_two_vectors(epsilon, width):
    rng = np.random.default_rng(width)
    response = BallResponse(epsilon, width)
    directions = rng.normal(size=(5, width))
    unit = rng.normal(size=width)
    unit /= np.linalg.norm(unit)
    vectors = [unit, -unit, 0.3 * unit, np.zeros(width), 7 * unit]
    laws = np.array([law(response, vector, directions) for vector in vectors])
    assert laws.sum(axis=2) == pytest.approx(np.ones(laws.shape[:2]))
    worst = np.log(laws.max(axis=0)) - np.log(laws.min(axis=0))
    assert worst.max() <= epsilon * (1 + 1e-12)
    assert worst.min() == pytest.approx(
        epsilon, rel=1e-9
    )  # everywhere, by a vector and its opposite


def test_the_ratio_of_an_unrounded_direction_would_be_seen():
    class Careless(BallResponse):
        def respond(self, source, values):
            sent = super().respond(source, values)
            return np.where(sent @ values[0] < 0, -sent, sent) if np.abs(values).max() > 0 else sent

    unit = np.array([1.0, 0.0])
    laws = np.array([law(Careless(1.0, 2), v, np.array([[1.0, 2.0]])) for v in (unit, -unit)])
    assert laws.min() == 0.0


def mean_message(response, vector, count, source: NoiseSource):
    sent = response.respond(source, np.tile(vector, (count, 1)))
    return sent, sent.mean(axis=0), sent.std(axis=0) / math.sqrt(count)


@pytest.mark.parametrize("width", [2, 9, 51])
def test_unbiased_with_constant_norm_and_stated_hemisphere(width):
    epsilon, count = 1.0, 200_000 if width < 20 else 60_000
    rng = np.random.default_rng(0)
    vector = rng.normal(size=width)
    vector /= np.linalg.norm(vector)
    response = BallResponse(epsilon, width)
    sent, mean, error = mean_message(response, vector, count, SeededNoise(width))
    np.testing.assert_allclose(np.linalg.norm(sent, axis=1), response.norm, rtol=1e-12)
    assert np.abs((mean - vector) / error).max() < 5
    assert np.abs((mean - 0.7 * vector) / error).max() > 5 or width == 51
    along = int((sent @ vector > 0).sum())
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert binomtest(along, count, share).pvalue > 1e-6
    assert binomtest(along, count, 1 - share).pvalue < 1e-9
    # the mean along the vector, where all the signal is
    inner = sent @ vector
    assert inner.mean() == pytest.approx(1.0, abs=5 * inner.std() / math.sqrt(count))
    assert inner.mean() != pytest.approx(0.7, abs=5 * inner.std() / math.sqrt(count))


def test_short_vectors_are_unbiased_too():
    vector = np.array([0.2, -0.3, 0.1])
    _, mean, error = mean_message(BallResponse(2.0, 3), vector, 300_000, SecureNoise())
    assert np.abs((mean - vector) / error).max() < 5.5


def test_the_norm_of_the_literature():
    for width in (1, 2, 9, 51, 500):
        c = (math.e + 1) / (math.e - 1)
        log_ratio = math.lgamma((width + 1) / 2) - math.lgamma(width / 2 + 1)
        by_hand = c * math.sqrt(math.pi) / 2 * width * math.exp(log_ratio)
        assert BallResponse(1.0, width).norm == pytest.approx(by_hand, rel=1e-12)
    assert BallResponse(1.0, 1).norm == pytest.approx((math.e + 1) / (math.e - 1))


def test_odd_vectors_never_raise():
    odd = np.array([[np.nan, 1.0], [np.inf, 0.0], [1e300, 1e300], [0.0, 0.0], [-1e308, 1e-300]])
    response = BallResponse(1.0, 2)
    with np.errstate(all="raise"):
        sent = response.respond(SeededNoise(0), odd)
    assert np.linalg.norm(sent, axis=1) == pytest.approx(np.full(5, response.norm))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300, 1.7e308, 1e-320])
def test_an_odd_vector_changes_no_bit_of_others(odd):
    rng = np.random.default_rng(0)
    for width in (1, 2, 7, 40):
        rows = rng.normal(size=(300, width)) * rng.choice([0.1, 1.0, 1e150], size=(300, 1))
        plain, lengths = _ball(rows)
        changed = rows.copy()
        changed[5, -1] = odd
        found, others = _ball(changed)
        kept = np.arange(300) != 5
        assert found[kept].tobytes() == plain[kept].tobytes()
        assert others[kept].tobytes() == lengths[kept].tobytes()
        assert np.isfinite(found).all()
        assert ((others >= 0) & (others <= 1)).all()
        assert np.array_equal(changed[kept], rows[kept]), "what is given stays as it is"


def test_a_huge_vector_counts_as_its_direction():
    response = BallResponse(3.0, 2)
    huge = np.tile([1e300, 1e300], (50_000, 1))
    sent = response.respond(SeededNoise(0), huge)
    share = (sent.sum(axis=1) > 0).mean()
    assert share == pytest.approx(math.exp(3) / (1 + math.exp(3)), abs=0.01)


def test_a_direction_of_zeros_is_replaced_by_a_fixed_one():
    response = BallResponse(1.0, 3)
    sent = response.respond(Fixed(0.0, np.zeros((1, 3))), np.array([[0.5, 0.0, 0.0]]))
    assert sent == pytest.approx(np.array([[response.norm, 0.0, 0.0]]))
