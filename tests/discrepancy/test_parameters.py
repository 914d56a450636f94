import math

import numpy as np
import pytest

from dpadapt.papers.discrepancy.parameters import (
    PublicFacts,
    SingleStageConstants,
    frank_wolfe_parameters,
    mirror_descent_parameters,
    norm_power,
    single_stage_parameters,
    zcdp_rho,
)
from dpadapt.papers.discrepancy.queries import RowBounds, gradient_spread
from dpadapt.papers.discrepancy.smoothing import PNorm, Softmax
from dpadapt.privacy import Cleaning
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.statistics import SecondMoment

QUERY = SecondMoment(Cleaning(radius=1.1))
X = np.random.default_rng(0).normal(size=(300, 10)) / 4
Y = X[:, 0]


def facts(n=8000, epsilon=1.0, delta=1 / 8000, calibration="tight", rows=X):
    return PublicFacts(rows, QUERY, n, epsilon, delta, calibration)


def test_frank_wolfe_minimises_the_corrected_bound():
    known = facts()
    reach, r = np.linalg.norm(X, axis=1).max(), 1.1
    (m, d), rho = X.shape, zcdp_rho(1.0, 1 / 8000)

    def bound(K):
        noise = r**2 * reach**2 / 8000 * math.sqrt(K / (8 * rho))
        return 9 * reach**4 / K + noise * math.log(m * K / 0.05)

    found = frank_wolfe_parameters(known)
    assert bound(found.steps) <= min(bound(K) for K in range(1, 5000)) * (1 + 1e-9)
    assert found.smoothing.mu == pytest.approx(math.sqrt(math.log(2 * d) / bound(found.steps)))


def test_more_privacy_or_fewer_rows_means_fewer_steps_and_a_blunter_softmax():
    for choose in (
        frank_wolfe_parameters,
        mirror_descent_parameters,
        lambda known: single_stage_parameters(known, Y, radius=1.0),
    ):
        little, much = choose(facts(n=500, epsilon=0.5)), choose(facts(n=50_000, epsilon=2.0))
        assert little.steps < much.steps
        assert little.smoothing.mu < much.smoothing.mu
        assert 1 <= little.steps <= much.steps <= 10_000


def test_printed_noise_means_fewer_steps():
    assert (
        frank_wolfe_parameters(facts(calibration="paper")).steps
        < frank_wolfe_parameters(facts()).steps
    )


def test_noise_scales_are_those_of_the_algorithms():
    known, reach = facts(), np.linalg.norm(X, axis=1).max()
    tau = 3.0 * 1.1**2 * reach**2 / 8000
    rho, mu = zcdp_rho(1.0, 1 / 8000), gaussian_mu(1.0, 1 / 8000)
    smoothing = Softmax(3.0)
    assert known.vertex_noise(smoothing) == pytest.approx(tau / math.sqrt(8 * rho), rel=1e-6)
    assert known.gradient_noise(smoothing, "matrix") == pytest.approx(tau / mu, rel=1e-6)
    spread = gradient_spread(X) / reach**2
    assert known.gradient_noise(smoothing, "gradient") == pytest.approx(tau * spread / mu, rel=1e-6)
    printed = 4 * tau * math.sqrt(2 * math.log(8000))
    paper = facts(calibration="paper")
    assert paper.vertex_noise(smoothing) == pytest.approx(printed)
    assert paper.gradient_noise(smoothing, "gradient") == pytest.approx(printed * math.sqrt(300))


def test_mirror_descent_step_is_the_bounds():
    known = facts()
    found = mirror_descent_parameters(known, smoothing=Softmax(10.0), steps=400, penalty=0.01)
    slope = np.linalg.norm(X, axis=1).max() ** 2 + 0.01
    noise = known.gradient_noise(Softmax(10.0), "matrix") * math.sqrt(400)
    eta = math.sqrt(2 * math.log(300) / (400 * (slope**2 + 2 * noise**2 * math.log(600))))
    assert found.step_size == pytest.approx(eta)
    assert (found.smoothing, found.steps) == (Softmax(10.0), 400)
    options = {"smoothing": Softmax(10.0), "steps": 400, "penalty": 0.01}
    other = mirror_descent_parameters(known, geometry="p-norm", **options)
    assert other.step_size == pytest.approx(eta * math.sqrt(2) / math.e)
    printed = mirror_descent_parameters(
        facts(calibration="paper"), noise_on="gradient", geometry="p-norm", **options
    )
    assert printed.step_size == pytest.approx(2 / slope * math.sqrt(math.log(300) / 400))


def test_constants_of_the_single_stage():
    """Written out for Lambda = 2, r_hat = 1.5, Y = 0.5, mu = 3."""
    found = SingleStageConstants.of(Softmax(3.0), RowBounds(1.0, 1.5, 10), 2.0, 0.5)
    gamma_q = 3.5**2 + 16 * 1.5**2
    gamma_w = 2 * 3.5 * 1.5
    assert found.slope == pytest.approx(2 * gamma_q + 4 * gamma_w)
    curvature = 4 * 16 * 3.0 * 1.5**4 + 16 * 2 * 1.5**2 + 2 * gamma_w * 2 * 4
    assert found.curvature == pytest.approx(curvature)


def test_single_stage_step_and_count():
    known = facts(n=50_000)
    found = single_stage_parameters(known, Y, radius=1.0, smoothing=Softmax(5.0))
    A, C = SingleStageConstants.of(Softmax(5.0), known.bounds, 1.0, float(np.abs(Y).max()))

    def bound(K):
        noise = 4 * known.vertex_noise(Softmax(5.0)) * math.log(2 * 300 * K / 0.05)
        return math.sqrt(2 * A * C / K) + noise * math.sqrt(K)

    assert bound(found.steps) <= min(bound(K) for K in range(1, 10_001)) * (1 + 1e-9)
    assert found.step_size == pytest.approx(min(1.0, math.sqrt(2 * A / (C * found.steps))))


def test_what_the_user_has_chosen_is_kept():
    for choose in (
        frank_wolfe_parameters,
        mirror_descent_parameters,
        lambda known, **given: single_stage_parameters(known, Y, radius=1.0, **given),
    ):
        assert choose(facts(), steps=17).steps == 17
        assert choose(facts(), smoothing=PNorm(2)).smoothing == PNorm(2)
    assert mirror_descent_parameters(facts(), step_size=0.3).step_size == 0.3
    assert single_stage_parameters(facts(), Y, radius=1.0, step_size=0.3).step_size == 0.3


@pytest.mark.parametrize("rows", [np.ones((1, 1)), np.ones((1, 3)), np.ones((4, 1))])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_one_row_and_one_column(rows, calibration):
    known = facts(n=1, rows=rows, calibration=calibration)
    for found in (
        frank_wolfe_parameters(known),
        mirror_descent_parameters(known, noise_on="gradient"),
        single_stage_parameters(known, np.zeros(len(rows)), radius=1.0),
    ):
        assert found.steps >= 1
        assert 0 < found.step_size < math.inf
        assert 0 < found.smoothing.mu < math.inf


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: frank_wolfe_parameters(facts(), steps=0), "steps"),
        (lambda: mirror_descent_parameters(facts(), steps=-1), "steps"),
        (lambda: mirror_descent_parameters(facts(), step_size=0.0), "step_size"),
        (lambda: single_stage_parameters(facts(), Y, radius=0.0), "radius"),
        (lambda: facts(epsilon=0), "epsilon"),
        (lambda: facts(delta=0.0), "delta"),
        (lambda: facts(calibration="loose"), "calibration"),
        (lambda: frank_wolfe_parameters(facts(rows=np.zeros((2, 2)))), "X must"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_power_of_the_norm_keeps_the_relative_error_small():
    for d in (1, 2, 10, 1000):
        assert d ** (1 / (2 * norm_power(d))) <= math.sqrt(math.e)
