"""DiscrepancyRegressor: the contract, and what this method promises beyond it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from audit import epsilon_lower_bound
from dpadapt import DiscrepancyRegressor, Private, ReweightingRegressor
from dpadapt.baselines import PublicOnlyRegressor
from dpadapt.discrepancy import AdaptationWarning, Moments, discrepancy, minimise_discrepancy
from dpadapt.discrepancy.moments import release_second_moment
from dpadapt.discrepancy.second_stage import shrunken_fit
from dpadapt.learning.cautions import CautionWarning
from dpadapt.learning.checks import public_scaling
from dpadapt.learning.public_fits import public_ridge
from dpadapt.privacy import Cleaning
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms.gaussian import from_svec, symmetric_gaussian
from dpadapt.testing.tape import releases, taped


def make(**params):
    given = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0} | params
    return DiscrepancyRegressor(**given)


def problem(seed=0, m=3000, n=8000, d=2, noise=0.1):
    """Covariate shift under which the best line is another one: y is a parabola."""
    rng = np.random.default_rng(seed)

    def label(X):
        return X[:, 0] + X[:, 0] ** 2 + noise * rng.normal(size=len(X))

    X = rng.normal(size=(m, d))
    target = np.eye(1, d)[0] + 0.7 * rng.normal(size=(n, d))
    return X, label(X), target, label(target)


# weights


def test_weights_are_in_the_simplex_and_move_towards_the_private_rows():
    X, y, target, _ = problem()
    model = make().fit(X, y, private=Private(target))
    assert model.adapted_ is True
    assert (model.weights_ >= 0).all()
    assert math.isclose(model.weights_.sum(), 1.0, rel_tol=1e-12)
    before, wanted = X[:, 0].mean(), target[:, 0].mean()
    assert abs(model.weights_ @ X[:, 0] - wanted) < 0.25 * abs(before - wanted)


def test_duplicates_get_equal_weights():
    X, y, target, _ = problem(m=400)
    model = make().fit(np.vstack([X, X]), np.concatenate([y, -y]), private=Private(target))
    np.testing.assert_allclose(model.weights_[:400], model.weights_[400:], rtol=1e-9)
    assert np.ptp(model.weights_) > 0.1 / 800


def test_target_like_source_gives_uniform_weights_exactly():
    X, y, _, _ = problem(m=500)
    model = make(epsilon=5.0).fit(X, y, private=Private(X))
    public_only = make().fit(X, y)
    np.testing.assert_array_equal(model.weights_, np.full(500, 1 / 500))
    np.testing.assert_array_equal(model.coef_, public_only.coef_)
    assert model.intercept_ == public_only.intercept_
    assert model.guarantee_.epsilon > 0


def test_labels_of_the_private_sample_do_not_matter():
    X, y, target, labels = problem(m=300, n=500)
    one = make().fit(X, y, private=Private(target))
    two = make().fit(X, y, private=Private(target, labels))
    np.testing.assert_array_equal(one.coef_, two.coef_)


# the limit without noise, and what is reported


def test_without_noise_it_is_discrepancy_minimisation():
    X, y, target, _ = problem(m=500, n=700, d=3)
    model = make(epsilon=1e6, radius=20.0).fit(X, y, private=Private(target))
    center, scale = public_scaling(X)
    rows, private = (np.column_stack([(Z - center) / scale, np.ones(len(Z))]) for Z in (X, target))
    moment = private.T @ private / len(private)
    exact = minimise_discrepancy(rows, moment)
    assert model.discrepancy_ <= exact.discrepancy + 0.02 * exact.uniform_discrepancy
    assert model.discrepancy_ >= exact.lower_bound - 1e-2
    assert discrepancy(rows, model.weights_, moment) <= exact.discrepancy * 1.02 + 1e-3
    ridge = public_ridge(rows, y[:, None]).strength / len(rows)
    slopes = shrunken_fit(rows, y, exact.weights, ridge=ridge).coefficients
    np.testing.assert_allclose(model.coef_, slopes[:-1] / scale, atol=0.02)


def test_reported_discrepancy_is_that_of_the_noisy_matrix():
    X, y, target, _ = problem(m=300, n=900)
    with taped() as tape:
        model = make().fit(X, y, private=Private(target))
    (draw,) = releases(tape)
    noisy = from_svec(draw.answer)
    noisy[-1, -1] = 1.0  # known to everybody
    center, scale = public_scaling(X)
    rows = (X - center) / scale
    norms = np.linalg.norm(rows, axis=1)
    shrunk = rows * np.minimum(1, np.quantile(norms, 0.99) / norms)[:, None]
    rows = np.column_stack([shrunk, np.ones(len(X))])
    uniform = np.full(len(X), 1 / len(X))
    assert math.isclose(model.discrepancy_, discrepancy(rows, model.weights_, noisy), rel_tol=1e-6)
    assert math.isclose(model.uniform_discrepancy_, discrepancy(rows, uniform, noisy), rel_tol=1e-9)
    unnoised = from_svec(draw.value)
    assert not math.isclose(
        model.uniform_discrepancy_, discrepancy(rows, uniform, unnoised), rel_tol=1e-6
    )


def test_public_only_reports_no_discrepancy():
    X, y, _, _ = problem(m=100)
    model = make().fit(X, y)
    assert model.discrepancy_ == model.uniform_discrepancy_ == model.share_ == 0.0
    assert model.adapted_ is False


def test_the_public_model_is_the_one_of_the_library():
    X, y, _, _ = problem(m=300, d=3)
    X[:, 1] *= 50
    X = np.column_stack([X, np.random.default_rng(5).normal(size=(300, 40))])  # noise to be shrunk
    ours = make().fit(X, y).predict(X)
    for other in (ReweightingRegressor(epsilon=1.0, delta=1e-6), PublicOnlyRegressor()):
        np.testing.assert_allclose(other.fit(X, y).predict(X), ours, rtol=1e-6, atol=1e-8)
    center, scale = public_scaling(X)
    ridge = RidgeCV(alphas=np.logspace(-3, 4, 15)).fit((X - center) / scale, y)
    np.testing.assert_allclose(ridge.predict((X - center) / scale), ours, rtol=1e-6, atol=1e-8)


def test_adapted_means_that_the_model_moved():
    X, y, target, _ = problem(m=500)
    alike = make(epsilon=5.0).fit(X, y, private=Private(X))
    assert not alike.adapted_
    moved = make(epsilon=5.0).fit(X, y, private=Private(target))
    assert moved.adapted_
    assert moved.share_ > 0
    straight = make(epsilon=5.0).fit(X, X[:, 0], private=Private(target))  # nothing to correct
    assert straight.adapted_ is (straight.share_ > 0)
    assert straight.adapted_ or np.allclose(straight.coef_, make().fit(X, X[:, 0]).coef_)


def test_noise_that_hides_the_difference_is_said_to():
    X, y, target, _ = problem(m=500, n=300)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        models = [
            make(epsilon=epsilon).fit(X, y, private=Private(target))
            for epsilon in np.geomspace(0.1, 1.0, 12)
        ]
    texts = [str(each.message) for each in said]
    assert any("times the noise" in text for text in texts)
    assert not any("at least 0%" in text for text in texts)
    for model in models:
        assert model.adapted_ is (model.share_ > 0)


# where no weights help


def test_private_rows_out_of_reach_leave_the_public_model():
    X, y, _, _ = problem(m=300)
    far = np.random.default_rng(1).normal([8.0, 0.0], 0.1, size=(4000, 2))
    with pytest.warns(AdaptationWarning, match=r"\d+% of the discrepancy.*max_remaining=1") as said:
        model = make(radius=15.0, epsilon=5.0).fit(X, y, private=Private(far))
    assert said[0].filename == __file__
    public_only = make().fit(X, y)
    assert model.adapted_ is False
    assert model.share_ == 0.0
    assert model.discrepancy_ == model.uniform_discrepancy_ > 0
    np.testing.assert_array_equal(model.weights_, public_only.weights_)
    np.testing.assert_array_equal(model.coef_, public_only.coef_)
    assert model.guarantee_.epsilon == pytest.approx(5.0)  # it was charged all the same

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        forced = make(radius=15.0, epsilon=5.0, solver=Moments(max_remaining=1.0)).fit(
            X, y, private=Private(far)
        )
    assert forced.adapted_ is True
    assert forced.discrepancy_ < forced.uniform_discrepancy_
    assert np.ptp(forced.weights_) > 0


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "all", None])
def test_bad_numbers_are_named(value):
    X, y, target, _ = problem(m=50, n=50)
    if value is not None:
        with pytest.raises(ValueError, match="ridge"):
            make(ridge=value).fit(X, y, private=Private(target))
    with pytest.raises(ValueError, match="max_remaining"):
        Moments(max_remaining=value)


@pytest.mark.parametrize("radius", [0, -1.0, math.nan, math.inf, "large"])
def test_bad_radius_is_named(radius):
    X, y, target, _ = problem(m=50, n=50)
    with pytest.raises(ValueError, match="radius"):
        make(radius=radius).fit(X, y, private=Private(target))


# the radius


def test_radius_comes_from_public_rows_alone():
    """A quantile of public norms, or the given one; one wild row of either sample does nothing."""
    X, y, target, _ = problem(m=800, n=60)
    X[0] = 30.0
    far = target.copy()
    far[0] = 1e6
    center, scale = public_scaling(X)
    norms = np.linalg.norm((X - center) / scale, axis=1)
    assert np.quantile(norms, 0.99) < 0.3 * norms.max()
    for given, used in ((None, np.quantile(norms, 0.99)), (2.5, 2.5)):
        for rows in (target, far):
            guarantee = make(radius=given).fit(X, y, private=Private(rows)).guarantee_
            assert guarantee.bounds["radius (second moment)"] == pytest.approx(used, rel=1e-12)
            mu = gaussian_mu(1.0, 1e-6)
            expected = math.sqrt(2) * (used**2 + 1) / (60 * mu)
            assert guarantee.events[0].scale == pytest.approx(expected, rel=1e-6)


def test_constant_public_columns_need_a_radius():
    X, y = np.full((20, 2), 3.0), np.arange(20.0)
    private = Private(np.full((50, 2), 3.0))
    with taped() as tape, pytest.raises(ValueError, match="radius"):
        make().fit(X, y, private=private)
    assert tape == []
    assert private.spent(1e-6).epsilon == 0
    model = make(radius=1.0).fit(X, y, private=private)
    np.testing.assert_allclose(model.predict(X), y.mean())
    np.testing.assert_allclose(make().fit(X, y).predict(X), y.mean())


# units


@pytest.mark.parametrize("unit", [1.0, 1e-15, 1e12, 3.0, 1e-160, 1e160])
def test_units_of_the_columns_do_not_matter(unit):
    X, y, target, _ = problem(m=400, n=2000, d=3)
    gain, shift = np.array([unit, 1.0, 2.0]), np.array([5.0 * unit, -4.0, 0.0])
    one = make().fit(X, y, private=Private(target))
    two = make().fit(X * gain + shift, y, private=Private(target * gain + shift))
    np.testing.assert_allclose(two.weights_, one.weights_, rtol=1e-4)
    np.testing.assert_allclose(
        two.predict(target * gain + shift), one.predict(target), rtol=1e-4, atol=1e-4
    )
    assert np.ptp(one.weights_) > 0.1 / 400


@pytest.mark.parametrize("unit", [1e-100, 1e9, 1e100, 1e200, 1e-200])
def test_units_of_the_label_do_not_matter(unit):
    X, y, target, _ = problem(m=400, n=2000)
    one = make().fit(X, y, private=Private(target)).predict(target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        two = make().fit(X, y * unit, private=Private(target)).predict(target)
    np.testing.assert_allclose(two / unit, one, rtol=1e-6, atol=1e-9)


# odd shapes


@pytest.mark.parametrize(
    ("m", "n", "d"),
    [
        *[(200, 1, 2), (1, 200, 2), (1, 1, 1), (2, 2, 5), (300, 400, 1), (10, 3000, 2)],
        *[(3000, 5, 2), (8, 300, 20), (300, 300, 40)],
    ],
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1e6])
def test_odd_shapes_are_taken(m, n, d, epsilon):
    rng = np.random.default_rng([m, n, d])
    X, target = rng.normal(size=(m, d)), rng.normal(0.3, 1.0, size=(n, d))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CautionWarning)
        warnings.simplefilter("ignore", AdaptationWarning)
        model = make(epsilon=epsilon, radius=3.0).fit(X, X.sum(axis=1), private=Private(target))
    assert np.isfinite(model.predict(target)).all()
    assert math.isclose(model.weights_.sum(), 1.0, rel_tol=1e-9)
    assert model.guarantee_.epsilon <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("max_remaining", [0.2, 1.0])
def test_collinear_and_constant_columns_are_taken(max_remaining):
    X, y, target, _ = problem(m=400, n=2000)
    plain = make(solver=Moments(max_remaining=max_remaining)).fit(X, y, private=Private(target))

    def widened(Z):
        return np.column_stack([Z, Z[:, 0] * 2 + Z[:, 1], np.full(len(Z), 7.0)])

    model = make(solver=Moments(max_remaining=max_remaining)).fit(
        widened(X), y, private=Private(widened(target))
    )
    assert np.isfinite(model.predict(widened(target))).all()
    assert model.adapted_
    gap = np.abs(model.predict(widened(target)) - plain.predict(target)).max()
    assert gap < 0.5 * np.abs(make().fit(X, y).predict(target) - plain.predict(target)).max()


def test_constant_label_is_predicted():
    X, _, target, _ = problem(m=200, n=500)
    model = make().fit(X, np.full(200, 4.5), private=Private(target))
    np.testing.assert_allclose(model.predict(target), 4.5, rtol=1e-9)


# what it is for


@pytest.mark.parametrize("seed", range(5))
def test_covariate_shift_is_recovered_at_epsilon_one(seed):
    X, y, target, labels = problem(seed=seed)

    def error(model):
        return float(np.mean((model.predict(target) - labels) ** 2))

    public_only = error(make().fit(X, y))
    free = error(make(epsilon=1e6).fit(X, y, private=Private(target)))
    adapted = error(make(random_state=seed).fit(X, y, private=Private(target)))
    assert adapted < 0.6 * public_only
    assert adapted < free + 0.1 * (public_only - free)


# the release itself


@pytest.mark.parametrize("d", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_one_shot_error_is_within_its_tail_bound(d):
    """P(||M^ - M_0||_2 <= s_0 (sqrt(2d) + t)) >= 1 - exp(-t^2 / 2), through the real release."""
    sample = np.random.default_rng(3).uniform(-0.3, 0.3, size=(50, d))
    exact = sample.T @ sample / 50
    private, cleaning = Private(sample), Cleaning(radius=1.0)
    errors = np.empty(2000)
    for seed in range(2000):
        noisy = release_second_moment(
            private, cleaning, epsilon=1.0, delta=1e-6, noise="seeded", random_state=seed
        )
        errors[seed] = np.linalg.norm(noisy.matrix - exact, 2) / noisy.scale
    assert noisy.scale == pytest.approx(math.sqrt(2) / (50 * gaussian_mu(1.0, 1e-6)), rel=1e-6)
    assert noisy.noise_floor == pytest.approx(noisy.scale * math.sqrt(2 * d))
    for t in (0.0, 1.0, 2.0):
        inside = (errors <= math.sqrt(2 * d) + t).mean()
        promised = 1 - math.exp(-(t**2) / 2)
        assert inside >= promised - 5 * math.sqrt(promised * (1 - promised) / 2000)
    assert errors.mean() <= math.sqrt(2 * d)
    assert errors.mean() >= 0.5 * math.sqrt(2 * d)  # the bound is no empty one


def audited(runs: int, factor: float) -> float:
    """Lower bound on epsilon of the released matrix, on a pair that attains the sensitivity.

    A large delta: then two thousand runs are enough to notice half the noise.
    """
    one, two = np.zeros((5, 2)), np.zeros((5, 2))
    one[0], two[0] = [1.0, 0.0], [0.0, 1.0]
    direction = np.diag([1.0, -1.0])
    right = symmetric_gaussian
    samples = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dpadapt.privacy.mechanisms.gaussian.symmetric_gaussian",
            lambda source, value, scale: right(source, value, factor * scale),
        )
        for start, rows in ((0, one), (runs, two)):
            private = Private(rows)
            released = (
                release_second_moment(
                    private,
                    Cleaning(radius=1.0),
                    epsilon=1.0,
                    delta=0.05,
                    noise="seeded",
                    random_state=start + seed,
                ).matrix
                for seed in range(runs)
            )
            samples.append([float(np.vdot(direction, matrix)) for matrix in released])
    return epsilon_lower_bound(*samples, delta=0.05)


@pytest.mark.parametrize("runs", [500, pytest.param(2000, marks=pytest.mark.slow)])
def test_audit_of_the_released_matrix_stays_below_the_claim(runs):
    assert audited(runs=runs, factor=1.0) <= 1.0


@pytest.mark.slow
def test_audit_notices_half_the_noise():
    assert audited(runs=2000, factor=0.5) > 1.0


@pytest.mark.slow
def test_audit_with_many_runs():
    assert 0.5 < audited(runs=20_000, factor=1.0) <= 1.0
    assert audited(runs=20_000, factor=0.7) > 1.0
