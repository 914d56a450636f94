import math

import numpy as np
import pytest
from scipy import stats

from audit import epsilon_lower_bound
from dpadapt.discrepancy import minimise_discrepancy
from dpadapt.discrepancy.matrices import row_scores, weighted_moment
from dpadapt.papers.discrepancy.first_stage import NoisyFrankWolfe
from dpadapt.papers.discrepancy.parameters import zcdp_rho
from dpadapt.papers.discrepancy.queries import RowBounds
from dpadapt.papers.discrepancy.smoothing import PNorm, Softmax
from dpadapt.papers.selection.exponential import noisy_argmin
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import BoundedRangeEvent, PureEvent
from dpadapt.privacy.core.noise import SeededNoise
from dpadapt.privacy.statistics import SecondMoment

QUERY = SecondMoment(Cleaning(radius=1.0))


def samples(seed=0, m=50, n=400, d=3):
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(m, d)) / 3, 0.2 * rng.normal(size=(n, d)) + 0.3
    return X, QUERY.cleaning(T, None)[0]


def excess(X, weights, target):
    found = minimise_discrepancy(X, target, gap=1e-3)
    norm = np.abs(np.linalg.eigvalsh(target - weighted_moment(X, weights))).max()
    return norm - found.lower_bound


def release(algorithm, rows, *, epsilon=1.0, delta=1e-3, seed=0, calibration="tight"):
    options = {"noise": "seeded", "random_state": seed}
    with Private(rows).open(epsilon=epsilon, delta=delta, **options) as session:
        vertex = algorithm.mechanism(session, QUERY, calibration=calibration)
        grant = session.plan(vertex=vertex).vertex
        weights = algorithm.release(session, grant, session.hide(QUERY))
    return weights, session.guarantee


@pytest.mark.parametrize("mu", [5.0, 30.0])
def test_without_noise_it_reaches_the_minimum_within_the_proved_bound(mu):
    X, T = samples()
    target, K = T.T @ T / len(T), 2000
    reach = np.linalg.norm(X, axis=1).max()
    bound = 9 * mu * reach**4 / K + math.log(2 * X.shape[1]) / mu
    assert excess(X, NoisyFrankWolfe(X, Softmax(mu), K).minimise(target), target) <= bound


def test_sharper_is_better_without_noise():
    X, T = samples()
    target = T.T @ T / len(T)
    assert excess(X, NoisyFrankWolfe(X, Softmax(300.0), 3000).minimise(target), target) < 5e-3
    assert excess(X, NoisyFrankWolfe(X, PNorm(4), 3000).minimise(target), target) < 5e-3


def test_private_run_with_a_huge_epsilon_is_the_run_without_noise():
    X, T = samples()
    algorithm = NoisyFrankWolfe(X, Softmax(30.0), 300)
    weights, _ = release(algorithm, T, epsilon=1e6)
    target = T.T @ T / len(T)
    bound = 9 * 30 * np.linalg.norm(X, axis=1).max() ** 4 / 300 + math.log(6) / 30
    assert excess(X, weights, target) <= bound
    assert np.abs(weights - algorithm.minimise(target)).sum() < 0.2


def test_every_step_stays_in_the_simplex_and_keeps_its_moment():
    X, T = samples()
    target, source = T.T @ T / len(T), SeededNoise(0)
    algorithm = NoisyFrankWolfe(X, Softmax(20.0), 1200, penalty=0.01)
    for weights, moment in algorithm.path(lambda s: noisy_argmin(source, s(target), 0.01)):
        assert abs(weights.sum() - 1) <= 1e-12
        assert (weights >= 0).all()
        assert np.abs(moment - weighted_moment(X, weights)).max() <= 1e-10


def test_steps_are_the_papers():
    """Three over k + 2: the first step forgets the start, and q_{K+1} is returned."""
    chosen = iter([0, 1, 2])
    algorithm = NoisyFrankWolfe(np.eye(4), Softmax(1.0), 3)
    *_, (weights, _) = algorithm.path(lambda scores: next(chosen))
    assert np.allclose(weights, [0.1, 0.3, 0.6, 0.0])


def test_scores_are_the_penalised_gradient():
    X, T = samples()
    target, seen = T.T @ T / len(T), []
    algorithm = NoisyFrankWolfe(X, Softmax(7.0), 1, penalty=0.5)
    list(algorithm.path(lambda scores: seen.append(scores(target)) or 0))
    uniform = np.full(len(X), 1 / len(X))
    H = Softmax(7.0).gradient(target - weighted_moment(X, uniform))
    assert np.allclose(seen[0], row_scores(X, H) + 0.5 / len(X))


def test_penalty_spreads_the_weights():
    X, T = samples()
    target = T.T @ T / len(T)
    plain, spread = (
        np.linalg.norm(NoisyFrankWolfe(X, Softmax(50.0), 2000, lam).minimise(target))
        for lam in (0, 5.0)
    )
    assert spread < 0.7 * plain


def test_seeds_repeat_and_differ():
    X, T = samples()
    algorithm = NoisyFrankWolfe(X, Softmax(5.0), 20)
    one, again, other = (release(algorithm, T, seed=s)[0] for s in (1, 1, 2))
    assert (one == again).all()
    assert not (one == other).all()


def test_event_has_the_tight_range_and_spends_the_budget():
    X, T = samples()
    algorithm = NoisyFrankWolfe(X, Softmax(5.0), 40)
    _, guarantee = release(algorithm, T, epsilon=1.0, delta=1e-3)
    (event,) = guarantee.events
    tau = 5.0 * 1.0 * np.linalg.norm(X, axis=1).max() ** 2 / len(T)
    assert isinstance(event, BoundedRangeEvent)
    assert event.count == 40
    assert event.sensitivity == pytest.approx(tau, rel=1e-6)
    assert event.sensitivity >= tau
    assert 0.999 < guarantee.epsilon <= 1.0
    assert 40 * event.ratio**2 / 8 == pytest.approx(zcdp_rho(1.0, 1e-3), rel=1e-3)


def test_intercept_enters_the_sensitivity():
    X, T = samples()
    query = SecondMoment(Cleaning(radius=1.0, intercept=2.0))
    algorithm = NoisyFrankWolfe(np.column_stack([X, np.full(len(X), 2.0)]), Softmax(5.0), 3)
    with Private(T).open(epsilon=1.0, delta=1e-3) as session:
        vertex = algorithm.mechanism(session, query)
        grant = session.plan(vertex=vertex).vertex
        algorithm.release(session, grant, session.hide(query))
    reach = np.linalg.norm(algorithm.X, axis=1).max()
    assert vertex.sensitivity == pytest.approx(5.0 * 5.0 * reach**2 / len(T))


@pytest.mark.parametrize(("epsilon", "real"), [(1.0, 0.1477), (10.0, 2.0138)])
def test_printed_noise_gives_much_less_than_it_claims(epsilon, real):
    """Its sensitivity is four times too large in range, its factor for argmin two too small."""
    X, T = samples(n=30)
    algorithm = NoisyFrankWolfe(X, Softmax(5.0), 1000)
    options = {"epsilon": epsilon, "delta": 1 / 8000, "calibration": "paper"}
    _, guarantee = release(algorithm, T, **options)
    (event,) = guarantee.events
    bounds = RowBounds.of(QUERY, X, len(T))
    sigma = 4 * 5.0 * bounds.public**2 * math.sqrt(2 * 1000 * math.log(8000)) / (30 * epsilon)
    assert event.epsilon == pytest.approx(Softmax(5.0).range_sensitivity(bounds) / sigma)
    assert event.count == 1000
    assert guarantee.epsilon == pytest.approx(real, rel=1e-3)


def test_printed_proof_would_not_hold_for_the_printed_sensitivity():
    """E2: with scores as sensitive as the paper says, epsilon 10 would be exceeded."""
    claimed = 10 / math.sqrt(2 * 1000 * math.log(8000))  # 2 tau / sigma for each choice
    assert compose_epsilon([PureEvent("choice", claimed, 1000)], 1 / 8000) > 10.5
    halved = compose_epsilon([PureEvent("choice", claimed / 2, 1000)], 1 / 8000)
    assert halved < 10


# the audit: two rows of norm 1 and two of norm 0; the one private row is 1 or 0

WORST = np.array([[1.0], [1.0], [0.0], [0.0]])
PICKS = {0.0: 0, 0.1: 1, 0.3: 1, 0.6: 1, 0.4: 2, 0.7: 2, 0.9: 2, 1.0: 3}  # from the mass on 1s


def audited_epsilon(multiple, runs, *, epsilon, delta):
    algorithm = NoisyFrankWolfe(WORST, Softmax(0.01), 3)
    with Private([[1.0]]).open(epsilon=epsilon, delta=delta) as session:
        grant = session.plan(vertex=algorithm.mechanism(session, QUERY)).vertex
    source, scale = SeededNoise(5), multiple * grant.scale

    def picks(target):
        counts = []
        for _ in range(runs):
            *_, (weights, _) = algorithm.path(lambda s: noisy_argmin(source, s(target), scale))
            counts.append(PICKS[round(float(weights[:2].sum()), 6)])
        return counts

    return epsilon_lower_bound(picks(np.eye(1)), picks(np.zeros((1, 1))), delta)


@pytest.mark.slow
def test_audit_never_exceeds_the_claim_and_has_power():
    assert 0.6 < audited_epsilon(1.0, 6000, epsilon=2.0, delta=1e-3) <= 2.0
    assert audited_epsilon(0.3, 6000, epsilon=2.0, delta=1e-3) > 2.0


def test_vertex_frequencies_are_the_exponential_mechanisms():
    """And so is their log-ratio between neighbours: at most range over scale."""
    source, scale = SeededNoise(3), 0.02
    X, _ = samples(m=5)
    uniform, smoothing = weighted_moment(X, np.full(5, 0.2)), Softmax(4.0)
    bounds = RowBounds(1.0, float(np.linalg.norm(X, axis=1).max()), 50)
    x, other = np.eye(3)[0], np.eye(3)[1]

    def probabilities(row):
        scores = row_scores(
            X, smoothing.gradient(np.outer(row, row) / 50 + np.eye(3) / 4 - uniform)
        )
        unnormalised = np.exp(-(scores - scores.min()) / scale)
        return scores, unnormalised / unnormalised.sum()

    (scores, p), (_, p2) = probabilities(x), probabilities(other)
    assert np.ptp(np.log(p / p2)) <= smoothing.range_sensitivity(bounds) / scale
    drawn = np.bincount([noisy_argmin(source, scores, scale) for _ in range(20_000)], minlength=5)
    assert stats.chisquare(drawn, 20_000 * p).pvalue > 1e-6


def test_wild_private_rows_raise_nothing():
    X, _ = samples()
    wild = np.array([[np.nan, 1.0, 0.0], [np.inf, -np.inf, 0.0], [1e300, 1e300, 1e-300]])
    weights, _ = release(NoisyFrankWolfe(X, Softmax(5.0), 10), wild)
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("X", "rows"),
    [
        (np.array([[1.0, 2.0]]), np.ones((5, 2))),  # m = 1
        (np.array([[1.0], [2.0], [2.0]]), np.ones((1, 1))),  # d = 1, n = 1
        (np.tile([[1.0, 0.0, 2.0]], (4, 1)), np.ones((2, 3))),  # d > n, duplicated rows
        (np.array([[0.0, 0.0], [1.0, 0.0]]), np.zeros((3, 2))),  # rows of zeros
    ],
)
def test_small_and_degenerate_samples(X, rows):
    for calibration in ("tight", "paper"):
        weights, _ = release(NoisyFrankWolfe(X, Softmax(5.0), 7), rows, calibration=calibration)
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": math.nan}, "penalty"),
        ({"X": np.zeros((0, 2))}, "X"),
        ({"X": np.array([[1.0, np.nan]])}, "X"),
    ],
)
def test_bad_arguments_are_named(change, named):
    with pytest.raises(ValueError, match=named):
        NoisyFrankWolfe(**{"X": np.eye(2), "smoothing": Softmax(1.0), "steps": 3, **change})


def test_bad_calibration_and_rows_of_zeros_are_named():
    with Private(np.eye(2)).open(epsilon=1.0, delta=1e-3) as session:
        with pytest.raises(ValueError, match="calibration"):
            NoisyFrankWolfe(np.eye(2), Softmax(1.0), 3).mechanism(
                session, QUERY, calibration="loose"
            )
        with pytest.raises(ValueError, match="X must"):
            NoisyFrankWolfe(np.zeros((3, 2)), Softmax(1.0), 3).mechanism(session, QUERY)
    with pytest.raises(ValueError, match="target_moment"):
        NoisyFrankWolfe(np.eye(2), Softmax(1.0), 3).minimise(np.full((2, 2), np.nan))


@pytest.mark.slow
def test_figure_1_of_the_paper():
    """n = 8000, epsilon = 1, K = 1000: tight noise halves what uniform weights leave."""
    from reproduce.discrepancy.data import figure_data

    data = figure_data(np.random.default_rng(0), n=8000)
    query = SecondMoment(Cleaning(radius=float(np.linalg.norm(data.X_public, axis=1).max())))
    T = query.cleaning(data.X_private, None)[0]
    norms = {}
    for calibration in ("tight", "paper"):
        algorithm = NoisyFrankWolfe(data.X_public, Softmax(15.0), 1000, 0.001)
        private = Private(data.X_private)
        options = {"noise": "seeded", "random_state": 0}
        with private.open(epsilon=1.0, delta=1 / 8000, **options) as session:
            vertex = algorithm.mechanism(session, query, calibration=calibration)
            grant = session.plan(vertex=vertex).vertex
            weights = algorithm.release(session, grant, session.hide(query))
        residual = T.T @ T / 8000 - weighted_moment(data.X_public, weights)
        norms[calibration] = np.abs(np.linalg.eigvalsh(residual)).max()
    assert norms["tight"] <= 0.18
    assert 0.28 <= norms["paper"] <= 0.40
