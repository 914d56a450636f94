"""Noise sources: independence, repeatability, grids, and the events that belong to them.

Whether the noise has the stated law is tested in ``tests/statistical``.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
import sys

import numpy as np
import pytest

from dpadapt.privacy import Cleaning, PrivacyError, Private
from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon, gaussian_delta
from dpadapt.privacy.accounting.events import DiscreteGaussianEvent, GaussianEvent
from dpadapt.privacy.core.noise import ExactNoise, SecureNoise, SeededNoise, noise_source
from dpadapt.privacy.mechanisms import Gaussian, SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment

SCALES = [1.0, 0.3, 4096.0, 1e-12, 7e9, 2.0**-40 * 1.999999]


# Independence ----------------------------------------------------------------------------------


def in_a_forked_child(work) -> np.ndarray:
    """What ``work`` returns (an array of float64) in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.write(write, np.asarray(work(), dtype=np.float64).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = np.frombuffer(pipe.read(), dtype=np.float64)
    os.waitpid(child, 0)
    return answer


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@needs_fork
@pytest.mark.parametrize("used_before", [True, False])
@pytest.mark.parametrize("kind", [SecureNoise, ExactNoise])
def test_parent_and_forked_children_never_share_noise(kind, used_before):
    source = kind()
    if used_before:
        source.add_gaussian(np.zeros(1), 1.0)

    def draw() -> np.ndarray:
        return np.concatenate([source.add_gaussian(np.zeros(20), 1.0), source.uniform(20)])

    draws = [in_a_forked_child(draw), in_a_forked_child(draw), draw()]
    assert all(one.size == 40 for one in draws)
    for i, one in enumerate(draws):
        for other in draws[:i]:
            assert not np.isin(one[20:], other[20:]).any()  # uniform numbers have 53 bits
            assert not (one[:20] == other[:20]).all()
            assert abs(np.corrcoef(one[:20], other[:20])[0, 1]) < 0.95


@needs_fork
def test_a_child_with_the_number_of_its_parent_draws_a_key_of_its_own(monkeypatch):
    """Numbers of processes are used again: a grandchild may have that of its grandparent."""
    source, number = SecureNoise(), os.getpid()
    source.uniform(1)

    def draw() -> np.ndarray:
        monkeypatch.setattr(os, "getpid", lambda: number)
        return source.uniform(20)

    child = in_a_forked_child(draw)
    assert child.size == 20
    assert not np.isin(child, source.uniform(20)).any()


@needs_fork
def test_a_source_that_ignores_forks_would_be_caught():
    source = SeededNoise(0)
    child = in_a_forked_child(lambda: source.add_gaussian(np.zeros(20), 1.0))
    assert (child == source.add_gaussian(np.zeros(20), 1.0)).all()


@needs_fork
def test_a_session_releases_nothing_in_a_forked_child():
    with Private(np.ones((9, 1))).open(epsilon=1.0, delta=1e-6) as session:
        hidden = session.hide(SecondMoment(Cleaning(radius=1.0)))
        grant = session.plan(it=Gaussian.of(hidden, count=30)).it

        def draw() -> np.ndarray:
            return np.array([session.release(grant, hidden)[0, 0] for _ in range(10)])

        def refused() -> np.ndarray:
            with pytest.raises(PrivacyError, match="another process"):
                draw()
            return np.ones(1)

        assert draw().size == 10
        assert in_a_forked_child(refused).tolist() == [1.0]


@pytest.mark.parametrize("kind", [SecureNoise, ExactNoise])
def test_two_sources_and_two_draws_differ(kind):
    one, two = kind(), kind()
    a, b, again = (s.add_gaussian(np.zeros(30), 1.0) for s in (one, two, one))
    for first, second in ((a, b), (a, again), (b, again)):
        assert not (first == second).all()
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.95
    assert not (one.uniform(10) == two.uniform(10)).any()


def test_the_secure_stream_is_keyed_by_the_operating_system(monkeypatch):
    keys = []
    real = __import__("secrets").randbits
    monkeypatch.setattr("secrets.randbits", lambda bits: keys.append(bits) or real(bits))
    source = SecureNoise()
    source.uniform(1)
    source.add_gaussian(np.zeros(3), 1.0)
    assert keys == [128]
    np.random.seed(0)  # noqa: NPY002
    first = SecureNoise().uniform(3)
    np.random.seed(0)  # noqa: NPY002
    assert (SecureNoise().uniform(3) != first).all()


def test_seeded_noise_repeats_and_says_so():
    one, two, other = SeededNoise(7), SeededNoise(7), SeededNoise(8)
    scores = np.linspace(0, 1, 50)
    draws = [
        (
            s.add_gaussian(np.zeros(5), 1.0).tolist(),
            s.add_laplace(np.zeros(5), 1.0).tolist(),
            [s.noisy_argmin(scores, 1.0) for _ in range(9)],
            s.uniform(5).tolist(),
        )
        for s in (one, two, other)
    ]
    assert draws[0] == draws[1]
    assert all(a != b for a, b in zip(draws[0], draws[2], strict=True))
    assert any("seed" in caveat for caveat in one.caveats)
    assert not any("seed" in caveat for caveat in SecureNoise().caveats)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secure_source_cannot_be_pickled_or_copied(protocol):
    source = SecureNoise()
    source.uniform(1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(source, protocol)
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            duplicate(source)


def test_an_exact_source_can_be_pickled_it_has_no_state():
    assert isinstance(pickle.loads(pickle.dumps(ExactNoise())), ExactNoise)


# Grids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", [SecureNoise, lambda: SeededNoise(0)], ids=["secure", "seeded"])
@pytest.mark.parametrize("law", ["add_gaussian", "add_laplace"])
def test_continuous_noise_is_rounded_to_a_power_of_two(scale, kind, law):
    values = np.random.default_rng(0).normal(size=500) * 10 * scale
    noisy = getattr(kind(), law)(values, scale)
    grid = 2.0 ** math.floor(math.log2(scale / 4096))
    assert scale / 8192 < grid <= scale / 4096
    steps = noisy / grid  # a power of two: the division is exact
    assert (steps == np.rint(steps)).all()
    assert (np.rint(steps) % 2 == 1).any()  # and no coarser grid is
    unrounded = values + scale * np.random.default_rng(1).normal(size=500)
    assert not (unrounded / grid == np.rint(unrounded / grid)).all()  # power


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", ["add_gaussian", "add_laplace"])
def test_exact_noise_lives_on_a_finer_grid(scale, law):
    noisy = getattr(ExactNoise(), law)(np.full(40, scale / 3), scale)
    grid = 2.0 ** math.floor(math.log2(scale / 2**30))
    assert (noisy / grid == np.rint(noisy / grid)).all()
    assert (np.rint(noisy / grid) % 2 == 1).any()


@pytest.mark.parametrize("scale", SCALES)
def test_the_exact_grid_enlarges_the_sensitivity(scale):
    source = ExactNoise()
    grid = 2.0 ** math.floor(math.log2(scale / 2**30))
    for dimension in (1, 10, 5000):
        gaussian = source.gaussian_event("x", scale, scale, dimension, 3)
        laplace = source.laplace_event("x", scale, scale, dimension, 3)
        assert gaussian.kind == "discrete-gaussian"
        assert gaussian.sensitivity == pytest.approx(scale + grid * math.sqrt(dimension), abs=0)
        assert laplace.sensitivity == pytest.approx(scale + grid * dimension, abs=0)
        assert (gaussian.scale, gaussian.count) == (laplace.scale, laplace.count) == (scale, 3)
    argmin = source.argmin_event("x", scale, scale, 3)
    assert argmin.sensitivity == pytest.approx(scale + 2 * grid, abs=0)
    for seeded in (SecureNoise(), SeededNoise(0)):  # rounding afterwards costs nothing
        assert seeded.gaussian_event("x", 1.0, scale, 10, 1) == GaussianEvent("x", 1.0, scale)
        assert seeded.laplace_event("x", 1.0, scale, 10, 1).sensitivity == 1.0
        assert seeded.argmin_event("x", 1.0, scale, 1).sensitivity == 1.0


def test_rounding_inputs_to_a_grid_moves_neighbours_apart_by_no_more_than_stated():
    rng, grid = np.random.default_rng(0), 1.0
    for _ in range(2000):
        d = int(rng.integers(1, 20))
        a, b = rng.normal(size=(2, d)) * 3
        moved = np.rint(a / grid) - np.rint(b / grid)
        assert np.linalg.norm(moved) <= np.linalg.norm(a - b) + grid * math.sqrt(d)
        assert np.abs(moved).sum() <= np.abs(a - b).sum() + grid * d
        spread = (a - b).max() - (a - b).min()
        assert moved.max() - moved.min() <= spread + 2 * grid
    a, b = np.full(4, 0.499999), np.full(4, 0.500001)  # nearly attained: it cannot be left out
    assert np.linalg.norm(np.rint(a) - np.rint(b)) > 0.99 * grid * math.sqrt(4)


def test_a_session_with_exact_noise_charges_for_the_grid():
    private = Private(np.ones((50, 2)))
    with private.open(epsilon=1.0, delta=1e-6, noise="exact") as session:
        hidden = session.hide(SecondMoment(Cleaning(radius=1.0)))
        grant = session.plan(it=SymmetricGaussian.of(hidden)).it
        session.release(grant, hidden)
    (event,) = session.guarantee.events
    assert event.kind == "discrete-gaussian"
    assert event.sensitivity > hidden.sensitivity
    assert session.guarantee.epsilon <= 1.0


def test_exact_noise_clamps_what_is_out_of_reach():
    source = ExactNoise()
    far = source.add_gaussian(np.array([1e300, -1e300, 0.0]), 1.0)
    assert np.isfinite(far).all()
    assert far[0] > 2**30
    assert far[1] < -(2**30)
    assert source.noisy_argmin(np.array([1e300, -1e300, 1e300]), 1.0) == 1


# Discrete noise is not Gaussian DP -------------------------------------------------------------


def discrete_gaussian_delta(epsilon: float, sd: float, shift: int) -> float:
    """Delta of the discrete Gaussian on whole numbers, neighbours ``shift`` apart: exact sums."""
    k = np.arange(-int(40 * sd) - shift, int(40 * sd) + 2 * shift + 1)
    weight = np.exp(-((k / sd) ** 2) / 2)
    total = weight.sum()
    p, q = np.exp(-(((k - shift) / sd) ** 2) / 2) / total, weight / total
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def worst_ratio(sd: float) -> float:
    """Largest delta over that of the continuous formula, where deltas are not negligible."""
    ratios = []
    for shift in (1, 2, 3):
        for epsilon in np.linspace(0, 3, 301):
            formula = gaussian_delta(float(epsilon), shift / sd)
            if formula > 1e-12:
                ratios.append(discrete_gaussian_delta(float(epsilon), sd, shift) / formula)
    return max(ratios)


def test_a_coarse_discrete_gaussian_violates_the_gaussian_dp_formula():
    """Amendment A8: so the accounting of exact noise by zCDP matters."""
    assert worst_ratio(2.0) > 1.3
    assert worst_ratio(8.0) > 1.005
    assert worst_ratio(64.0) < 1.01  # and vanishes with the grid
    # at the same point the zCDP statement, which the event makes, does hold
    for epsilon in (0.3, 0.5, 1.0, 2.0):
        event = DiscreteGaussianEvent("x", 1.0, 2.0)
        assert discrete_gaussian_delta(epsilon, 2.0, 1) <= compose_delta([event], epsilon)


def test_discrete_noise_is_accounted_by_zcdp():
    event = ExactNoise().gaussian_event("x", 1.0, 4.0, 1, 1)
    assert math.isinf(event.gaussian_mu)
    assert event.renyi(np.array([2.0]))[0] == pytest.approx(2 * 1 / 16 / 2, rel=1e-6)
    exact = compose_epsilon([event], 1e-6)
    continuous = compose_epsilon([GaussianEvent("x", 1.0, 4.0)], 1e-6)
    assert continuous < exact < 1.2 * continuous


# Arguments -------------------------------------------------------------------------------------


def test_missing_opendp_is_said_clearly(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match=r"pip install 'dpadapt\[exact\]'.*noise='secure'"):
        ExactNoise()
    with pytest.raises(ImportError, match="needs OpenDP"):
        Private([[1.0]]).open(epsilon=1.0, delta=1e-6, noise="exact")
    assert noise_source("secure").name == "secure"  # the others do not need it


def test_the_arguments_of_noise_source():
    assert noise_source("seeded", 3).name == "seeded"
    assert noise_source("seeded", np.int64(3)).name == "seeded"
    assert noise_source("exact").name == "exact"
    with pytest.raises(ValueError, match="noise must be one of 'secure', 'seeded', 'exact'"):
        noise_source("gaussian")
    with pytest.raises(ValueError, match="noise='seeded' needs a random_state"):
        noise_source("seeded")
    for noise in ("secure", "exact"):
        with pytest.raises(ValueError, match=f"random_state was given, but noise='{noise}'"):
            noise_source(noise, 0)
    for wrong in (-1, 1.5, "7", True):
        with pytest.raises(ValueError, match="random_state"):
            noise_source("seeded", wrong)


def test_numpy_random_state_of_the_user_is_left_alone():
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for source in (SecureNoise(), SeededNoise(1), ExactNoise()):
        source.add_gaussian(np.zeros(3), 1.0)
        source.noisy_argmin(np.zeros(3), 1.0)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert Gaussian("x").event(1.0, SecureNoise()) == GaussianEvent("x", 1.0, 1.0)
