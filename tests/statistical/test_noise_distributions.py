"""Is the noise the noise that was charged for? Tests with a declared false-positive rate.

Every function ``p_...`` below is a test: it answers a p-value that is valid (exact, or Bonferroni
over exact ones) under the law that the mechanism states. The noise passes if the p-value is above
``ALPHA``, one in a million. Each is shown to have power in the same breath: the same function, on
noise of 0.7 and 1.3 times the scale, must reject. The sizes are such that a wrong scale is missed
less than once in a million runs: a relative error of 0.3 in a scale is more than ten standard
deviations of the statistic away, while the thresholds are at five.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from dpadapt.papers.selection.exponential import noisy_argmin
from dpadapt.papers.selection.laplace import laplace as add_laplace
from dpadapt.papers.selection.random_stopping import random_runs
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.core.noise import ExactNoise, NoiseSource, SecureNoise, SeededNoise
from dpadapt.privacy.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    RandomisedResponse,
    SymmetricGaussian,
)
from dpadapt.privacy.mechanisms.gaussian import NUGGET, gaussian_process, symmetric_gaussian
from dpadapt.privacy.mechanisms.gaussian import gaussian as add_gaussian
from dpadapt.privacy.mechanisms.randomised_response import randomised_response
from dpadapt.privacy.statistics import SecondMoment

ALPHA = 1e-6
WRONG = (0.7, 1.3)
SCALES = (1.0, 3.7e-5, 8.1e6)
SOURCES: dict[str, Callable[[], NoiseSource]] = {
    "secure": SecureNoise,
    "seeded": lambda: SeededNoise(20_240_229),
    "exact": ExactNoise,
}
SIZE = {"secure": 20_000, "seeded": 20_000, "exact": 3_000}  # numbers
CALLS = {"secure": 6_000, "seeded": 6_000, "exact": 2_200}  # one call each
SLOW_SIZE = {"secure": 2_000_000, "seeded": 2_000_000, "exact": 200_000}
SLOW_CALLS = {"secure": 200_000, "seeded": 200_000, "exact": 20_000}

sources = pytest.mark.parametrize("name", SOURCES)
exact_slowly = pytest.mark.parametrize(  # whose numbers are tested one by one in the fast suite
    "name", ["secure", "seeded", pytest.param("exact", marks=pytest.mark.slow)]
)


def both_sizes(fast: dict[str, int], slow: dict[str, int]) -> pytest.MarkDecorator:
    """Fast sizes, and the larger ones behind the marker ``slow``."""
    return pytest.mark.parametrize(
        "size", [fast, pytest.param(slow, marks=pytest.mark.slow)], ids=["fast", "large"]
    )


# The tests themselves --------------------------------------------------------------------------


def bonferroni(*p_values: float) -> float:
    return min(1.0, len(p_values) * min(p_values))


def two_sided(law, value: float) -> float:
    return min(1.0, 2 * min(law.cdf(value), law.sf(value)))


def p_gaussian(noise: np.ndarray, scale: float) -> float:
    """Independent N(0, scale^2): second moment (exact), mean (exact), shape (Kolmogorov)."""
    z = noise.ravel() / scale
    return bonferroni(
        two_sided(stats.chi2(z.size), float(z @ z)),
        two_sided(stats.norm(), float(z.sum()) / math.sqrt(z.size)),
        float(stats.kstest(z, "norm").pvalue),
    )


def p_laplace(noise: np.ndarray, scale: float) -> float:
    """Independent Laplace(scale): sum of sizes (exact), signs (exact), shape (Kolmogorov)."""
    z = noise.ravel() / scale
    return bonferroni(
        two_sided(stats.gamma(z.size), float(np.abs(z).sum())),
        float(stats.binomtest(int((z > 0).sum()), int((z != 0).sum())).pvalue),
        float(stats.kstest(z, "laplace").pvalue),
    )


def p_independent(white: np.ndarray) -> float:
    """Columns of a table are independent standard normal: each column and each pair (exact)."""
    n, columns = white.shape
    p_values = [two_sided(stats.chi2(n), float(column @ column)) for column in white.T]
    unit = white / np.linalg.norm(white, axis=0)
    r = (unit.T @ unit)[np.triu_indices(columns, 1)]
    t = r * math.sqrt(n - 1) / np.sqrt(1 - r**2)  # Student with n - 1 degrees for known means
    p_values += list(2 * stats.t(n - 1).sf(np.abs(t)))
    return bonferroni(p_gaussian(white, 1.0), bonferroni(*p_values))


def p_frequencies(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Frequencies of categories: a binomial test of each (exact) and a chi-square."""
    n = int(counts.sum())
    cells = [
        float(stats.binomtest(int(k), n, min(1.0, float(p))).pvalue)
        for k, p in zip(counts, probabilities, strict=True)
    ]
    p_values = [bonferroni(*cells)]
    if n * probabilities.min() >= 50:  # where the chi-square approximation is good far out
        p_values.append(float(stats.chisquare(counts, n * probabilities).pvalue))
    return bonferroni(*p_values)


def accepts_only_the_right_scale(
    draw: Callable[[float], np.ndarray], p_value: Callable[[np.ndarray, float], float], scale: float
) -> None:
    assert p_value(draw(scale), scale) > ALPHA
    for factor in WRONG:
        assert p_value(draw(factor * scale), scale) < ALPHA


# The tests tell one law from another -----------------------------------------------------------


def test_the_tests_tell_gaussian_from_laplace_and_biased_from_centred():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(20_000)
    double = rng.laplace(scale=math.sqrt(0.5), size=20_000)  # of variance 1
    assert p_gaussian(normal, 1.0) > ALPHA
    assert p_gaussian(double, 1.0) < ALPHA
    assert p_laplace(double, math.sqrt(0.5)) > ALPHA
    assert p_laplace(normal, math.sqrt(2 / math.pi)) > 0  # same mean size ...
    assert p_laplace(normal, math.sqrt(2 / math.pi)) < ALPHA  # ... other shape
    assert p_gaussian(normal + 0.1, 1.0) < ALPHA
    table = normal.reshape(-1, 4)
    assert p_independent(table) > ALPHA
    mixed = table.copy()
    mixed[:, 1] = (table[:, 0] + 3 * table[:, 1]) / math.sqrt(10)
    assert p_independent(mixed) < ALPHA


def test_the_rate_of_false_positives_is_the_declared_one():
    """P-values of the right law are not too small: against the uniform law."""
    rng = np.random.default_rng(1)
    squares = (rng.normal(size=(200, 100)) ** 2).sum(axis=1)
    p_values = [two_sided(stats.chi2(100), float(total)) for total in squares]
    assert stats.kstest(p_values, "uniform").pvalue > ALPHA
    combined = [p_gaussian(rng.normal(size=200), 1.0) for _ in range(200)]
    assert np.mean(np.array(combined) < 0.05) < 0.1  # Bonferroni: at most 0.05 in the mean


# Every mechanism, every source -----------------------------------------------------------------


@sources
@pytest.mark.parametrize("scale", SCALES)
@both_sizes(SIZE, SLOW_SIZE)
def test_gaussian(name, scale, size):
    source = SOURCES[name]()
    value = np.zeros(size[name])
    accepts_only_the_right_scale(
        lambda s: add_gaussian(source, value, s) - value, p_gaussian, scale
    )


@sources
@pytest.mark.parametrize("scale", SCALES)
@both_sizes(SIZE, SLOW_SIZE)
def test_laplace(name, scale, size):
    source = SOURCES[name]()
    value = np.zeros(size[name])
    accepts_only_the_right_scale(lambda s: add_laplace(source, value, s) - value, p_laplace, scale)


@sources
def test_noise_does_not_depend_on_the_value(name):
    source, value = SOURCES[name](), np.linspace(-50, 50, SIZE[name])
    assert p_gaussian(add_gaussian(source, value, 2.0) - value, 2.0) > ALPHA
    assert p_laplace(add_laplace(source, value, 2.0) - value, 2.0) > ALPHA


def isometric(matrices: np.ndarray) -> np.ndarray:
    """Coordinates in which the Frobenius norm is the Euclidean one; not the library's svec."""
    d = matrices.shape[1]
    columns = [matrices[:, i, i] for i in range(d)]
    columns += [math.sqrt(2) * matrices[:, i, j] for i in range(d) for j in range(i)]
    return np.stack(columns, axis=1)


def p_symmetric(matrices: np.ndarray, scale: float) -> float:
    d = matrices.shape[1]
    diagonal = matrices[:, range(d), range(d)]
    above = matrices[:, *np.triu_indices(d, 1)]
    return bonferroni(
        p_independent(isometric(matrices) / scale),
        p_gaussian(diagonal, scale),
        p_gaussian(above, scale / math.sqrt(2)),
    )


@pytest.mark.slow
@exact_slowly
def test_symmetric_gaussian(name):
    source, d, scale = SOURCES[name](), 3, 0.4
    value = np.arange(9.0).reshape(3, 3) + np.arange(9.0).reshape(3, 3).T
    draws = {"secure": 4000, "seeded": 4000, "exact": 1200}[name]

    def draw(s: float) -> np.ndarray:
        noisy = [symmetric_gaussian(source, value, s) for _ in range(draws)]
        return np.stack(noisy) - value

    accepts_only_the_right_scale(draw, p_symmetric, scale)
    noise = draw(scale)
    assert np.array_equal(noise, noise.transpose(0, 2, 1))
    # the ratio of the variances is one half: F-test, and the two usual mistakes are rejected
    diagonal = noise[:, range(d), range(d)].ravel()
    above = noise[:, *np.triu_indices(d, 1)].ravel()
    law = stats.f(above.size, diagonal.size)
    ratio = np.mean(above**2) / np.mean(diagonal**2)
    assert two_sided(law, ratio / 0.5) > ALPHA
    assert two_sided(law, ratio / 1.0) < ALPHA
    assert two_sided(law, ratio / 0.25) < ALPHA


def test_the_usual_mistakes_with_symmetric_noise_are_rejected():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(4000, 3, 3))
    mirrored = np.triu(full) + np.triu(full, 1).transpose(0, 2, 1)  # full variance off-diagonal
    averaged = (full + full.transpose(0, 2, 1)) / 2  # half off-diagonal: isotropic, and right
    assert p_symmetric(mirrored, 1.0) < ALPHA
    assert p_symmetric(averaged, 1.0) > ALPHA
    assert p_symmetric(full, 1.0) < ALPHA


POINTS = np.linspace(-1, 1, 8)
KERNEL = np.exp(-0.5 * (POINTS[:, None] - POINTS) ** 2) + np.outer(POINTS, POINTS)  # near singular
SMOOTH = np.exp(-2.0 * (POINTS[:, None] - POINTS) ** 2) * 5.0


def p_process(noise: np.ndarray, scale: float, kernel: np.ndarray, nugget: float = NUGGET) -> float:
    covariance = kernel + nugget * np.trace(kernel) / len(kernel) * np.eye(len(kernel))
    white = np.linalg.solve(np.linalg.cholesky(covariance), noise.T).T / scale
    return p_independent(white)


@pytest.mark.slow
@exact_slowly
@pytest.mark.parametrize("kernel", [KERNEL, SMOOTH], ids=["singular", "smooth"])
def test_gaussian_process(name, kernel):
    source, scale = SOURCES[name](), 0.3
    values = np.linspace(0, 1, 8)
    draws = {"secure": 3000, "seeded": 3000, "exact": 700}[name]

    def draw(s: float) -> np.ndarray:
        noisy = [gaussian_process(source, values, kernel, s) for _ in range(draws)]
        return np.stack(noisy) - values

    accepts_only_the_right_scale(draw, lambda noise, s: p_process(noise, s, kernel), scale)
    # independent noise is another law, and so is a forgotten or larger nugget where it matters
    noise = draw(scale)
    assert p_process(noise, scale, np.eye(8)) < ALPHA
    if kernel is KERNEL:
        assert p_process(noise, scale, kernel, nugget=1e-9) < ALPHA
        assert p_process(noise, scale, kernel, nugget=1e-4) < ALPHA


SCORES = np.array([2.0, 0.0, 2.0, 3.0]) + 17.0


def softmax(scores: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp(-(scores - scores.min()) / scale)
    return weights / weights.sum()


def p_choices(choices: np.ndarray, scale: float) -> float:
    scores = SCORES * scale
    return p_frequencies(np.bincount(choices, minlength=4), softmax(scores, scale))


@sources
@pytest.mark.parametrize("unit", [1.0, pytest.param(1e-4, marks=pytest.mark.slow)])
@both_sizes(CALLS, SLOW_CALLS)
def test_noisy_argmin(name, unit, size):
    source = SOURCES[name]()

    def draw(scale: float) -> np.ndarray:
        scores = SCORES * unit
        choices = [noisy_argmin(source, scores, scale) for _ in range(size[name])]
        return np.array(choices)

    accepts_only_the_right_scale(draw, p_choices, unit)


def test_the_wrong_sign_of_the_gumbel_noise_is_rejected():
    rng = np.random.default_rng(0)
    gumbel = rng.gumbel(size=(6000, 4))
    assert p_choices(np.argmin(SCORES - gumbel, axis=1), 1.0) > ALPHA
    assert p_choices(np.argmin(SCORES + gumbel, axis=1), 1.0) < ALPHA
    # nor is Gaussian noise of the same variance the exponential mechanism, or none
    gaussian = rng.normal(scale=math.pi / math.sqrt(6), size=(60_000, 4))
    assert p_choices(np.argmin(SCORES + gaussian, axis=1), 1.0) < ALPHA
    assert p_choices(np.full(6000, 1), 1.0) < ALPHA


def p_answers(answers: np.ndarray, epsilon: float, categories: int) -> float:
    """Answers to a question whose true answer is always 1."""
    probabilities = np.full(categories, 1 / (math.exp(epsilon) + categories - 1))
    probabilities[1] *= math.exp(epsilon)
    return p_frequencies(np.bincount(answers, minlength=categories), probabilities)


@sources
@pytest.mark.parametrize("categories", [2, 5])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response(name, categories, epsilon):
    source, truth = SOURCES[name](), np.ones(30_000, dtype=np.int64)

    def draw(e: float) -> np.ndarray:
        return randomised_response(source, truth, categories, e)

    accepts_only_the_right_scale(draw, lambda a, e: p_answers(a, e, categories), epsilon)


def p_runs(runs: np.ndarray, shape: float, gamma: float) -> float:
    """Number of runs against the truncated negative binomial law, from gamma functions."""
    k = np.arange(1, 2000)
    if shape == 0:
        log_mass = -np.log(k) + k * math.log1p(-gamma)
    else:
        rising = gammaln(k + shape) - (0 if shape < 0 else gammaln(shape))
        log_mass = rising - gammaln(k + 1) + k * math.log1p(-gamma)
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    counts = np.bincount(np.minimum(runs, 20), minlength=21)[1:]
    return p_frequencies(counts, np.append(mass[:19], mass[19:].sum()))


@sources
@pytest.mark.parametrize("shape", [0.0, 1.0, 0.5, -0.5])
@pytest.mark.parametrize("gamma", [pytest.param(0.1, marks=pytest.mark.slow), 0.4])
def test_random_runs(name, shape, gamma):
    source = SOURCES[name]()

    def draw(g: float) -> np.ndarray:
        return np.array([random_runs(u, shape, g) for u in source.uniform(40_000)])

    accepts_only_the_right_scale(draw, lambda k, g: p_runs(k, shape, g), gamma)


@sources
def test_uniform(name):
    u = SOURCES[name]().uniform(20_000)
    assert 0 <= u.min() <= u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > ALPHA
    assert stats.kstest(u**1.1, "uniform").pvalue < ALPHA


# The whole path --------------------------------------------------------------------------------


def weakened(source: NoiseSource, factor: float) -> NoiseSource:
    """The same source, with less (or more) noise than it is asked for."""
    for method in ("add_gaussian", "add_laplace", "noisy_argmin"):
        honest = getattr(source, method)
        setattr(source, method, lambda v, s, honest=honest: honest(v, factor * s))
    return source


SAMPLE = np.random.default_rng(3).normal(size=(400, 2))
MOMENT = SecondMoment(Cleaning(radius=2.0))


def releases(noise: str, count: int, factor: float = 1.0) -> dict[str, float]:
    """P-values of what two sessions release, at the scales that their events state."""
    options = {"noise": noise, "random_state": 5 if noise == "seeded" else None}
    with Private(SAMPLE).open(epsilon=1.0, delta=1e-6, **options) as session:
        weakened(session._source, factor)
        hidden = session.hide(MOMENT)
        kinds = SymmetricGaussian, Gaussian
        grants = session.plan(each=[kind.of(hidden, count=count) for kind in kinds]).each
        matrices, numbers = (
            np.stack([session.release(grant, hidden) - hidden._value for _ in range(count)])
            for grant in grants
        )
    gaussian, other = session.guarantee.events
    assert [grant.scale for grant in grants] == [gaussian.scale, other.scale]

    with Private(SAMPLE).open(epsilon=1.0, delta=0.0, **options) as session:
        weakened(session._source, factor)
        hidden = session.hide(MOMENT)
        grants = session.plan(
            sums=Laplace("sums", 1.0, dimension=4, count=count),
            choice=Exponential("choice", 0.1, count=3 * count),
        )
        laplace, choice = session.guarantee.events
        sums = [session.release(grants.sums, hidden) - hidden._value for _ in range(count)]
        scores = session.derive(hidden, lambda _: SCORES * choice.scale, sensitivity=0.1)
        choices = [session.release(grants.choice, scores) for _ in range(3 * count)]
    assert (grants.sums.scale, grants.choice.scale) == (laplace.scale, choice.scale)
    return {
        "symmetric": p_symmetric(matrices, gaussian.scale),
        "gaussian": p_gaussian(numbers, gaussian.scale),
        "laplace": p_laplace(np.stack(sums), laplace.scale),
        "argmin": p_choices(np.array(choices), choice.scale),
    }


@exact_slowly
def test_what_a_session_releases_has_the_noise_of_its_events(name):
    count = {"secure": 1500, "seeded": 1500, "exact": 800}[name]
    assert min(releases(name, count).values()) > ALPHA
    for factor in WRONG:
        assert max(releases(name, count, factor).values()) < ALPHA


@pytest.mark.parametrize("factor", [1.0, *WRONG])
def test_one_release_from_each_of_many_sessions(factor):
    """Every session draws afresh, and all of them together have the stated scale."""
    noise = []
    for _ in range(500):
        with Private(SAMPLE).open(epsilon=1.0, delta=1e-6) as session:
            weakened(session._source, factor)
            hidden = session.hide(MOMENT)
            grant = session.plan(it=SymmetricGaussian.of(hidden)).it
            released = session.release(grant, hidden)
            (event,) = session.guarantee.events
            noise.append((released - hidden._value) / event.scale)
    p_value = p_symmetric(np.stack(noise), 1.0)
    assert p_value > ALPHA if factor == 1.0 else p_value < ALPHA


@sources
def test_randomised_response_of_a_session(name):
    seed = 5 if name == "seeded" else None
    private = Private(SAMPLE)
    with private.open(epsilon=6000.0, delta=0.0, noise=name, random_state=seed) as session:
        hidden = session.hide(MOMENT)
        one = session.derive(hidden, lambda _: 1)
        grant = session.plan(it=RandomisedResponse("bits", count=6000)).it
        answers = np.array([int(session.release(grant, one, categories=3)) for _ in range(6000)])
    (event,) = session.guarantee.events
    assert p_answers(answers, event.epsilon, 3) > ALPHA
    for factor in WRONG:
        assert p_answers(answers, event.epsilon * factor, 3) < ALPHA
