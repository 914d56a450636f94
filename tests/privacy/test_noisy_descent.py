"""A noisy descent takes the steps it says, with the noise it was charged for."""

import math

import numpy as np
import pytest

from dpadapt.papers.hybrid.doors._compiled import steps
from dpadapt.papers.hybrid.doors.descent import Descent, DrawnDescent
from dpadapt.papers.hybrid.doors.draws import draws
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.papers.hybrid.doors.weights import RowWeights, reweigh
from dpadapt.privacy import Cleaning, PrivacyError, Private
from dpadapt.privacy.accounting.composition import compose_epsilon

ROWS = Cleaning(radius=1.0, label_range=(-1.0, 1.0))


def reference(Z, y, noise, *, loss, margin, clip, radius, scale, start):
    """The same descent, line by line."""
    h, total = start.copy(), np.zeros_like(start)
    length = math.sqrt(clip**2 + scale**2 * len(h))
    for r, (z, label, v) in enumerate(zip(Z, np.sign(y), noise, strict=True), start=1):
        total += h
        score = label * (h @ z)
        if loss == "hinge":
            gradient = -label * z * (score < margin)
        else:
            gradient = -label * z / (1 + np.exp(score))
        gradient *= min(1.0, clip / max(np.linalg.norm(gradient), 1e-300))
        h = h - radius / (length * math.sqrt(r)) * (gradient + scale * v)
        h *= min(1.0, radius / np.linalg.norm(h))
    return total / len(Z)


def compiled(Z, y, noise, *, loss, margin, clip, radius, scale, start, grid=0.0, cut=7):
    at, total = start.copy(), np.zeros_like(start)
    rate = radius / math.sqrt(clip**2 + scale**2 * len(start))
    for done in range(0, len(Z), cut):
        part = slice(done, done + cut)
        facts = (done, loss == "hinge", margin, clip, radius, rate, scale, grid)
        steps(at, total, Z[part].copy(), y[part].copy(), noise[part].copy(), *facts)
    return total / len(Z)


@pytest.mark.parametrize("scale", [0.0, 0.8])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_loop_agrees_with_a_line_by_line_descent(loss, scale):
    rng = np.random.default_rng(0)
    for _ in range(20):
        d = int(rng.integers(1, 9))
        Z, noise = rng.normal(size=(60, d)), rng.normal(size=(60, d))
        y = rng.integers(-1, 2, 60).astype(float)
        facts = {"loss": loss, "margin": 0.7, "clip": float(rng.choice([0.5, 5.0]))}
        facts |= {"radius": 2.0, "scale": scale, "start": rng.normal(size=d) * 0.3}
        expected = reference(Z, y, noise, **facts)
        np.testing.assert_allclose(compiled(Z, y, noise, **facts), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_no_row_moves_a_step_by_more_than_twice_the_clip(loss):
    """Whatever is in a row: the first step is -(gradient) with rate 1 and no noise."""
    rng = np.random.default_rng(1)
    clip, most = 0.6, 0.0
    odd = [np.array([np.nan, 0, 0]), np.array([np.inf, 1, 0]), np.array([1e300, 1e300, 1e300])]
    for case in range(400):
        moves = []
        for _ in range(2):
            z = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 5)
            z = odd[rng.integers(3)] if case % 7 == 0 else z
            label = float(rng.choice([-1, 1, 0, 0.2, -40]))
            at = np.zeros(3)
            noise = np.zeros((1, 3))
            facts = (0, loss == "hinge", 1.0, clip * (1 - 1e-14), 1e9, 1.0, 1.0, 0.0)
            steps(at, np.zeros(3), z[None], np.array([label]), noise, *facts)
            assert np.isfinite(at).all()
            moves.append(at)
        most = max(most, float(np.linalg.norm(moves[0] - moves[1])) / (2 * clip))
    assert 0.9 < most <= 1


def test_rows_of_no_class_have_no_gradient():
    Z, noise = np.ones((30, 2)), np.zeros((30, 2))
    facts = {"loss": "logistic", "margin": 1.0, "clip": 1.0, "radius": 1.0, "scale": 0.0}
    start = np.array([0.3, 0.1])
    result = compiled(Z, np.zeros(30), noise, start=start, **facts)
    np.testing.assert_allclose(result, start, rtol=1e-14)


def run(descent, *, n_rows=300, sigma=None, seed=0, X=None, y=None, density=1.0, **options):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n_rows, 3)) if X is None else X
    y = np.sign(X[:, 0]) if y is None else y
    settings = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": seed, **options}
    with Private(X, y).open(**settings) as session:
        weights = RowWeights(session)
        planned = DrawnDescent.planned(descent, "descent", density, len(X), printed=sigma)
        grant = session.plan(it=planned).it
        return session.release(grant, draws(weights, density), descent=descent), session, grant


def test_noise_has_the_variance_of_the_grant():
    """Two steps without gradients: the average is half of minus the first noisy step."""
    descent = Descent(ROWS, clip=100.0, radius=1.0, steps=2)  # short steps, far from the ball
    sigma = 3.0
    rate = 1 / math.sqrt(100.0**2 + 3 * sigma**2)
    X, y = np.zeros((50, 3)), np.zeros(50)
    drawn = [run(descent, sigma=sigma, seed=s, X=X, y=y)[0] * 2 / rate for s in range(1500)]
    assert np.std(drawn) == pytest.approx(sigma, rel=0.05)
    assert abs(0.7 * np.std(drawn) - sigma) > 0.05 * sigma  # noise x 0.7 would be seen


def test_every_step_is_charged_for():
    descent = Descent(ROWS, clip=0.5, radius=1.0, steps=1000)
    _, session, grant = run(descent, sigma=2.0, n_rows=3000)
    (event,) = session.guarantee.events
    assert isinstance(event, OneDrawGaussianEvent)
    assert (event.clip, event.scale, event.count) == (0.5, 2.0, 1000)
    assert event.rate == pytest.approx(1 / 3000, rel=1e-6)
    assert event.rate > 1 / 3000
    assert session._left[grant] == 0


@pytest.mark.slow
def test_calibrated_noise_meets_the_budget():
    descent = Descent(ROWS, clip=1.0, radius=1.0, steps=500)
    _, session, grant = run(descent, n_rows=2000)
    spent = compose_epsilon(session.guarantee.events, 1e-6)
    assert 0.97 < spent <= 1.0
    assert grant.scale > 0


def test_a_grant_buys_as_many_steps_as_it_was_planned_for():
    X = np.random.default_rng(2).normal(size=(200, 2))
    descent = Descent(ROWS, clip=1.0, radius=1.0, steps=100)
    with Private(X, X[:, 0]).open(epsilon=5.0, delta=1e-6) as session:
        weights = RowWeights(session)
        planned = DrawnDescent.planned(descent, "descent", 0.5, 200, rounds=2, printed=4.0)
        assert planned.count == 200
        grant = session.plan(it=planned).it
        session.release(grant, draws(weights, 0.5), descent=descent)
        longer = Descent(ROWS, clip=1.0, radius=1.0, steps=101)
        with pytest.raises(PrivacyError, match="as often as"):
            session.release(grant, draws(weights, 0.5), descent=longer)
        session.release(grant, draws(weights, 0.5), descent=descent)
        with pytest.raises(PrivacyError, match="as often as"):
            session.release(grant, draws(weights, 0.5), descent=descent)


def test_longer_gradients_sparser_weights_and_foreign_grants_are_refused():
    X = np.random.default_rng(3).normal(size=(200, 2))
    descent = Descent(ROWS, clip=1.0, radius=1.0, steps=10)
    with Private(X, X[:, 0]).open(epsilon=5.0, delta=1e-6) as session:
        weights = RowWeights(session)
        grant = session.plan(it=DrawnDescent.planned(descent, "descent", 0.5, 200, printed=4.0)).it
        wide = Descent(ROWS, clip=1.1, radius=1.0, steps=10)
        with pytest.raises(PrivacyError, match="longer"):
            session.release(grant, draws(weights, 0.5), descent=wide)
        with pytest.raises(PrivacyError, match="less dense"):
            session.release(grant, draws(weights, 0.49), descent=descent)
        odd = Descent(ROWS, clip=1.0, radius=1.0, steps=10, start=np.zeros(3))
        with pytest.raises(ValueError, match="start must hold 2 numbers"):
            session.release(grant, draws(weights, 0.5), descent=odd)
        assert session._left[grant] == 10  # nothing of it was spent
        other = Private(X, X[:, 0]).open(epsilon=5.0, delta=1e-6)
        with pytest.raises(PrivacyError, match="from this session"):
            other.release(grant, draws(RowWeights(other), 0.5), descent=descent)


def test_exact_noise_and_missing_labels_are_refused():
    pytest.importorskip("opendp")
    X = np.ones((200, 2))
    descent = Descent(ROWS, clip=1.0, radius=1.0, steps=10)
    exact = Private(X, X[:, 0]).open(epsilon=1.0, delta=1e-6, noise="exact")
    with pytest.raises(PrivacyError, match="noise='secure'"):
        exact.plan(it=DrawnDescent.planned(descent, "descent", 0.5, 200))
    with Private(X).open(epsilon=1.0, delta=1e-6) as session:
        weights = RowWeights(session)
        grant = session.plan(it=DrawnDescent.planned(descent, "descent", 0.5, 200, printed=4.0)).it
        with pytest.raises(ValueError, match="labels"):
            session.release(grant, draws(weights, 0.5), descent=descent)


def test_it_learns_where_there_are_rows_enough():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200_000, 4))
    truth = np.array([0.5, -0.5, 0.7, 0.1])
    descent = Descent(ROWS, clip=1.0, radius=3.0, steps=30_000, loss="logistic")
    rule, session, _ = run(descent, X=X, y=np.sign(X @ truth), sigma=2.0)
    assert rule @ truth / np.linalg.norm(rule) / np.linalg.norm(truth) > 0.97
    assert session.guarantee.epsilon < 0.5


def test_draws_of_a_descent_follow_the_weights():
    """Rows of the one class have lost their weight, so the rule votes for the other."""
    X = np.ones((1000, 1))
    y = np.where(np.arange(1000) < 500, 1.0, -1.0)
    descent = Descent(ROWS, clip=1.0, radius=1.0, steps=4000)
    with Private(X, y).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        weights = RowWeights(session)
        grant = session.plan(it=DrawnDescent.planned(descent, "descent", 0.5, 1000, printed=0.5)).it
        reweigh(weights, lambda Z, labels: labels > 0, ROWS, 100.0)
        assert session.release(grant, draws(weights, 0.5), descent=descent)[0] > 0.8


def test_memory_mapped_rows_are_read_in_place(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(6).normal(size=(5000, 3)).astype(np.float32))
    X = np.load(path, mmap_mode="r")
    private = Private(X, np.ones(5000, dtype=np.int8))
    assert np.shares_memory(private._rows._X, X)
    assert private._rows._y.dtype == np.int8
    descent = Descent(ROWS, clip=1.0, radius=1.0, steps=100)
    assert np.isfinite(run(descent, X=X, y=np.ones(5000, dtype=np.int8), sigma=4.0)[0]).all()


@pytest.mark.parametrize(
    "wrong", [{"clip": 0.0}, {"radius": -1.0}, {"steps": 0}, {"loss": "squared"}, {"margin": -1.0}]
)
def test_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Descent(ROWS, **{"clip": 1.0, "radius": 1.0, "steps": 10, **wrong})
