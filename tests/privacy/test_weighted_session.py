"""Weights of a session: hidden, stored as they are, and of the sensitivity that is charged for."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from dpadapt.papers.hybrid.doors.descent import DrawnDescent
from dpadapt.papers.hybrid.doors.draws import LearnOnDraws, draws
from dpadapt.papers.hybrid.doors.parity import Parity
from dpadapt.papers.hybrid.doors.weights import (
    RowWeights,
    Weighted,
    WeightedMean,
    density_schedule,
    draw_rate,
    reweigh,
    weighted_sensitivity,
)
from dpadapt.privacy import Cleaning, PrivacyError, Private, Rows
from dpadapt.privacy.mechanisms import Gaussian

UNIT = Cleaning(radius=1.0)
LABELLED = Cleaning(radius=1.0, label_range=(-1.0, 1.0))


@dataclass(frozen=True)
class Sum(WeightedMean):
    """Cleaned rows, weighted."""

    cleaning: Cleaning = UNIT
    label: str = "rows' sum"
    magnitude: float = 1.0

    def shape(self, n_columns):
        return (n_columns,)

    def block(self, X, y):
        return X.sum(axis=0)

    def weighted_block(self, X, y, weights):
        return weights @ X

    def sensitivity(self, n_rows):
        return 2 / n_rows


@dataclass(frozen=True)
class Positive(Sum):
    """Contributions in [0, 1]: their diameter is 1, not 2."""

    label: str = "shares"

    def shape(self, n_columns):
        return ()

    def weighted_block(self, X, y, weights):
        return weights @ (X[:, 0] > 0)

    def sensitivity(self, n_rows):
        return 1 / n_rows


def wrong(X, y):
    return (X[:, 0] <= 0).astype(float)


def session_of(X, y=None, **options):
    settings = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0, **options}
    return Private(X, y).open(**settings)


def places(session, weights):
    return draws(weights, 0.1)._value.places(session._source)


def one_pass(X, y, directions, density, query, rate=0.7):
    """Hidden weighted sum and log-weights after public rounds of reweighing."""
    with session_of(X, y) as session:
        weights = RowWeights(session)
        for direction in directions:
            reweigh(weights, lambda Z, _, v=direction: Z @ v > 0, UNIT, rate)
        hidden = session.hide(Weighted(query, weights, density))
        return hidden._value, weights._log.copy(), hidden.sensitivity


# stored weights


@pytest.mark.parametrize("keep", [False, True])
def test_update_rule(keep, monkeypatch):
    monkeypatch.setattr("dpadapt.privacy.rows.sources.BLOCK_ROWS", 1000)  # several blocks
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 2))
    with session_of(X) as session:
        weights = RowWeights(session)
        reweigh(weights, lambda Z, y: Z[:, 0] ** 2, UNIT, 0.3, keep=keep)
        reweigh(weights, wrong, UNIT, 0.1, keep=keep)
        Z = UNIT(X, None)[0]
        expected = -0.3 * (1 - Z[:, 0] ** 2) - 0.1 * (1 - wrong(Z, None))
        np.testing.assert_allclose(weights._log, expected, rtol=1e-14, atol=1e-16)
        assert weights.rate_spent == pytest.approx(0.4)


def test_a_changed_row_changes_its_own_weight_only_bit_for_bit(monkeypatch):
    monkeypatch.setattr("dpadapt.privacy.rows.sources.BLOCK_ROWS", 1000)  # several blocks
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2500, 3))
    directions = rng.normal(size=(5, 3))
    other = X.copy()
    other[1234] = [np.nan, 1e300, -7.0]
    one = one_pass(X, None, directions, 0.2, Sum())[1]
    two = one_pass(other, None, directions, 0.2, Sum())[1]
    same = np.delete(one, 1234) == np.delete(two, 1234)
    assert same.all()
    assert one[1234] != two[1234]


def test_what_was_computed_from_older_weights_is_not_used_again():
    X = np.random.default_rng(2).normal(size=(500, 2))
    with session_of(X) as session:
        used, fresh = RowWeights(session), RowWeights(session)
        session.hide(Weighted(Sum(), used, 0.1))
        places(session, used)(100)
        for weights in (used, fresh):
            reweigh(weights, wrong, UNIT, 3.0)
        one, two = (session.hide(Weighted(Sum(), each, 0.1))._value for each in (used, fresh))
        np.testing.assert_array_equal(one, two)
        one, two = (np.bincount(places(session, each)(20_000) // 5) for each in (used, fresh))
        assert np.corrcoef(one, two)[0, 1] > 0.8  # the same rows are heavy


def test_using_the_weights_does_not_change_them():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 2))
    with session_of(X, np.sign(X[:, 0])) as session:
        weights = RowWeights(session)
        reweigh(weights, wrong, UNIT, 3.0)
        before = weights._log.copy()
        session.hide(Weighted(Sum(), weights, 0.1))
        session.hide(Weighted(Sum(), weights, 0.6))
        places(session, weights)(100)
        assert (weights._log == before).all()


def test_losses_out_of_range_are_clipped_and_failures_stay_with_their_row():
    X = np.linspace(-1, 1, 9).reshape(-1, 1)

    def losses(Z, y):
        if (Z > 0.9).any():
            raise ValueError("a private value")
        return np.select([Z[:, 0] < -0.9, Z[:, 0] < -0.6, Z[:, 0] < -0.4], [np.nan, 7, -7], 0.25)

    with session_of(X) as session:
        weights = RowWeights(session)
        reweigh(weights, losses, UNIT, 1.0)
        gained = -weights._log
    np.testing.assert_allclose(gained, [0, 0, 1, *[0.75] * 5, 0])


def test_losses_that_are_wrong_whatever_the_rows_are_say_so():
    with session_of(np.ones((5, 2))) as session:
        weights = RowWeights(session)
        with pytest.raises(ValueError, match=r"one number for each row; got shape \(2, 2\)"):
            reweigh(weights, lambda X, y: X, UNIT, 0.1)
        with pytest.raises(ZeroDivisionError):
            reweigh(weights, lambda X, y: 1 / 0, UNIT, 0.1)
        with pytest.raises(ValueError, match="rate"):
            reweigh(weights, wrong, UNIT, -1.0)
        with pytest.raises(ValueError, match="add up to 1000"):
            reweigh(weights, wrong, UNIT, 1001.0)
        assert weights.updates == 0


# sensitivity


@pytest.mark.parametrize("query", [Sum(), Positive()])
def test_weighted_sums_of_neighbours_stay_within_the_sensitivity(query):
    rng = np.random.default_rng(3)
    most = 0.0
    for _ in range(400):
        n = int(rng.integers(2, 15))
        X = rng.normal(size=(n, 2)) * 3
        other = X.copy()
        i = int(rng.integers(n))
        other[i] = rng.choice([-X[i], rng.normal(size=2) * 5])
        directions = rng.normal(size=(int(rng.integers(0, 4)), 2))
        density = float(rng.uniform(1 / n, 1))
        rate = float(rng.choice([0.5, 40.0]))
        one, _, sensitivity = one_pass(X, None, directions, density, query, rate)
        two = one_pass(other, None, directions, density, query, rate)[0]
        most = max(most, float(np.linalg.norm(one - two)) / sensitivity)
    assert most <= 1
    assert most > 0.99  # attained: seven tenths of it would have been exceeded


def test_projecting_the_stored_weights_breaks_the_sensitivity():
    """What the test above would say of an update that feeds projected weights back."""
    from dpadapt.papers.hybrid.doors.weights import log_cap, mass_of, projected

    def run(Z, directions, density):
        log_weights = np.zeros(len(Z))
        for v in directions:
            log_weights -= 2.0 * (Z @ v <= 0)
            pi = projected(log_weights, log_cap(log_weights, density))
            log_weights = np.log(np.maximum(pi, 1e-300))
        return pi / mass_of(density, len(Z)) @ Z

    rng = np.random.default_rng(4)
    most = 0.0
    for _ in range(3000):
        n = int(rng.integers(4, 12))
        Z = UNIT(rng.normal(size=(n, 2)) * 3, None)[0]
        other = Z.copy()
        other[0] = -Z[0]
        directions = rng.normal(size=(6, 2))
        density = float(rng.uniform(1 / n, 1))
        moved = np.linalg.norm(run(Z, directions, density) - run(other, directions, density))
        most = max(most, moved * mass_of(density, n) / 2)
    assert most > 1.02


def test_sensitivity_is_known_beforehand():
    with session_of(np.ones((1000, 2))) as session:
        hidden = session.hide(Weighted(Sum(), RowWeights(session), 0.25))
    assert hidden.sensitivity == weighted_sensitivity(Sum(), 0.25, 1000)
    assert hidden.sensitivity == pytest.approx(2 / 250)
    assert hidden.sensitivity > 2 / 250
    assert weighted_sensitivity(Positive(), 0.25, 1000) == pytest.approx(1 / 250)


def test_uniform_weights_give_the_mean_and_blocks_do_not_matter():
    X = np.random.default_rng(5).normal(size=(50_000, 2))
    with session_of(X) as session:
        weighted = session.hide(Weighted(Sum(), RowWeights(session), 1.0))._value
        np.testing.assert_allclose(weighted, session.hide(Sum())._value, rtol=1e-12)


def test_density_schedule_bounds_every_round():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 2))
    rates = [0.3] * 8
    with session_of(X) as session:
        weights = RowWeights(session)
        for density, rate in zip(density_schedule(0.2, rates), rates, strict=True):
            session.hide(Weighted(Sum(), weights, density))
            largest = weights._mass[1].max()
            assert largest <= (1 + 1e-12) / (density * 300)
            v = rng.normal(size=2)
            reweigh(weights, lambda Z, y, v=v: Z @ v > 0, UNIT, rate)


def test_parts_of_a_split_have_weights_of_their_own():
    X = np.random.default_rng(7).normal(size=(1000, 2))
    with session_of(X) as session:
        session.split(0.25)
        weights = RowWeights(session, "train")
        reweigh(weights, wrong, UNIT, 1.0)
        assert len(weights._log) == 750
        hidden = session.hide(Weighted(Sum(), weights, 0.5), "train")
        assert hidden.part == "train"
        assert hidden.sensitivity == pytest.approx(2 / 375)
        with pytest.raises(PrivacyError):
            RowWeights(session)


def test_noise_is_that_of_the_sensitivity():
    X = np.zeros((200, 2))
    with session_of(X, random_state=1) as session:
        hidden = session.hide(Weighted(Sum(), RowWeights(session), 0.5))
        grant = session.plan(it=Gaussian.of(hidden, count=3000)).it
        drawn = np.array([session.release(grant, hidden) for _ in range(3000)])
        with pytest.raises(PrivacyError, match="as often as"):
            session.release(grant, hidden)
    assert drawn.std() / grant.scale == pytest.approx(1, abs=0.05)
    assert abs(0.7 * drawn.std() / grant.scale - 1) > 0.05  # noise x 0.7 would be seen
    assert session.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)


# what is refused


def test_weights_are_opaque():
    with session_of([[1.0]] * 5) as session:
        weights = RowWeights(session)
        for refused in (pickle.dumps, copy.copy, copy.deepcopy, np.asarray, float, list):
            with pytest.raises(TypeError):
                refused(weights)


def test_add_remove_is_refused():
    with session_of([[1.0]] * 5, relation="add-remove") as session:
        with pytest.raises(PrivacyError, match="add-remove"):
            RowWeights(session)
        mechanism = DrawnDescent("step", rate=0.1)
        with pytest.raises(PrivacyError, match="add-remove"):
            session.plan(it=mechanism)


def test_weights_of_another_session_and_of_a_closed_one_are_refused():
    with session_of([[1.0]] * 5) as session, session_of([[2.0]] * 5) as other:
        weights = RowWeights(session)
        with pytest.raises(PrivacyError, match="from this session"):
            other.hide(Weighted(Sum(), weights, 1.0))
    for use in (
        lambda: session.hide(Weighted(Sum(), weights, 1.0)),
        lambda: reweigh(weights, wrong, UNIT, 0.1),
    ):
        with pytest.raises(PrivacyError, match="closed"):
            use()


def test_too_small_a_density_is_a_public_fact():
    session = session_of([[1.0]] * 5)
    with pytest.raises(ValueError, match="less than one row"):
        session.hide(Weighted(Sum(), RowWeights(session), 0.1))


# learners on drawn rows


def planned(n_rows, *, draws=30, density=0.5, delta=1e-9, count=2):
    rate = draw_rate(density, n_rows)
    return LearnOnDraws("learner", draws=draws, rate=rate, delta=delta, count=count)


def learn(session, grant, weights, density, size, learner):
    return session.release(grant, draws(weights, density), size=size, learner=learner)


def mean_learner(epsilon, delta):
    def mean(sample):
        with sample.open(epsilon=epsilon, delta=delta, noise="seeded", random_state=3) as inner:
            hidden = inner.hide(Sum())
            grant = inner.plan(it=Gaussian.of(hidden)).it
            return inner.release(grant, hidden)

    return mean


def drawn_session(n_rows=400, **facts):
    X = np.random.default_rng(8).normal(size=(n_rows, 2))
    session = session_of(X, np.sign(X[:, 0]))
    weights = RowWeights(session)
    grant = session.plan(it=planned(n_rows, **facts)).it
    return session, weights, grant


def test_a_learner_gets_as_many_rows_and_as_much_budget_as_planned():
    session, weights, grant = drawn_session()
    assert grant.epsilon == 1 / grant.scale
    seen = []

    def learner(sample):
        seen.append((sample.n_rows, sample.n_columns, sample.labelled))
        return mean_learner(grant.epsilon, 1e-9)(sample)

    assert learn(session, grant, weights, 0.5, 30, learner).shape == (2,)
    learn(session, grant, weights, 0.5, 20, learner)
    assert seen == [(30, 2, True), (20, 2, True)]
    with pytest.raises(PrivacyError, match="as often as"):
        learn(session, grant, weights, 0.5, 30, learner)
    assert session.guarantee.epsilon == pytest.approx(1.0, rel=1e-3)


def test_a_learner_that_spends_more_is_found_out():
    session, weights, grant = drawn_session()
    with pytest.raises(PrivacyError, match="spent more on its sample"):
        learn(session, grant, weights, 0.5, 30, mean_learner(1.01 * grant.epsilon, 1e-9))
    with pytest.raises(PrivacyError, match="spent more on its sample"):
        learn(session, grant, weights, 0.5, 30, mean_learner(grant.epsilon, 1e-7))


def test_a_learner_that_uses_another_relation_is_refused():
    session, weights, grant = drawn_session()

    def learner(sample):
        with sample.open(epsilon=0.01, delta=1e-9, relation="add-remove") as inner:
            inner.plan(it=Gaussian("sum"))

    with pytest.raises(PrivacyError, match="replace-one"):
        learn(session, grant, weights, 0.5, 30, learner)


def test_a_learner_that_fails_tells_nothing():
    session, weights, grant = drawn_session()

    def learner(sample):
        raise ValueError("row 17 holds 4711")

    with pytest.raises(PrivacyError, match="learner failed") as caught:
        learn(session, grant, weights, 0.5, 30, learner)
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_the_name_of_an_error_that_was_made_up_is_not_told():
    session, weights, grant = drawn_session()

    def learner(sample):
        raise type("Row17Holds4711", (ValueError,), {})

    with pytest.raises(PrivacyError, match="the learner failed; the reason is withheld") as caught:
        learn(session, grant, weights, 0.5, 30, learner)
    assert "4711" not in str(caught.value)


def test_whether_a_learner_failed_after_it_spent_too_much_is_not_told():
    session, weights, grant = drawn_session()
    words = set()
    for fails in (True, False):

        def learner(sample, fails=fails):
            mean_learner(50 * grant.epsilon, 1e-9)(sample)
            if fails:
                raise ValueError

        with pytest.raises(PrivacyError) as caught:
            learn(session, grant, weights, 0.5, 30, learner)
        words.add(str(caught.value))
    assert len(words) == 1


def test_rows_that_cannot_be_read_tell_nothing():
    class Odd(Cleaning):
        def __call__(self, X, y):
            if np.asarray(X).any():
                raise RuntimeError("a cell is 4711")
            return super().__call__(X, y)

    with session_of([[1.0]] * 5) as session:
        weights = RowWeights(session)
        with pytest.raises(PrivacyError, match="withheld") as caught:
            reweigh(weights, wrong, Odd(radius=1.0), 0.1)
    assert "4711" not in str(caught.value)
    assert caught.value.__context__ is None


def test_the_sample_is_of_no_use_after_the_call():
    session, weights, grant = drawn_session()
    kept = {}

    def learner(sample):
        kept["sample"] = sample
        kept["view"] = sample.encode([-1, 1]).map(lambda X: X, 2)
        kept["session"] = sample.open(epsilon=50.0, delta=1e-9)
        kept["hidden"] = kept["session"].hide(Sum())

    learn(session, grant, weights, 0.5, 30, learner)
    for sample in (kept["sample"], kept["view"]):
        with (
            sample.open(epsilon=1.0, delta=1e-9) as late,
            pytest.raises(PrivacyError, match="over"),
        ):
            late.hide(Sum())
    with pytest.raises(PrivacyError, match="over"):
        kept["session"].plan(it=Gaussian.of(kept["hidden"]))


def test_draws_need_a_grant_of_their_density_and_size():
    session, weights, grant = drawn_session()
    learner = mean_learner(grant.epsilon, 1e-9)
    with pytest.raises(PrivacyError, match="less dense"):
        learn(session, grant, weights, 0.4, 30, learner)
    with pytest.raises(PrivacyError, match="30 draws"):
        learn(session, grant, weights, 0.5, 31, learner)
    learn(session, grant, weights, 0.9, 30, learner)  # denser costs less


def test_draws_follow_the_weights_and_keep_rows_and_labels_together():
    n_rows = 50
    X = np.arange(n_rows, dtype=float).reshape(-1, 1)
    with session_of(X, [f"class {i}" for i in range(n_rows)]) as session:
        weights = RowWeights(session)
        reweigh(weights, lambda Z, y: Z[:, 0] >= 25, Cleaning(radius=1e3), 200.0)
        grant = session.plan(it=planned(n_rows, draws=4000, count=1)).it
        seen = []

        def learner(sample):
            rows = sample.encode([f"class {i}" for i in range(n_rows)])._rows
            for table, labels in rows.blocks():
                seen.append((np.asarray(table)[:, 0].copy(), labels.copy()))

        learn(session, grant, weights, 0.5, 4000, learner)
    rows, labels = (np.concatenate(each) for each in zip(*seen, strict=True))
    assert (rows == labels).all()
    counts = np.bincount(rows.astype(int), minlength=n_rows)
    assert (counts[:25] == 0).all()
    assert counts[25:].min() > 100
    assert counts[25:].max() < 230


@pytest.mark.parametrize("kind", ["array", "frame", "view", "sparse", "mapped"])
def test_every_source_in_memory_can_be_drawn_from(kind):
    import pandas as pd
    from scipy.sparse import csr_matrix

    X, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(10)[::-1])
    private = {
        "array": lambda: Private(X, y),
        "frame": lambda: Private(frame, pd.Series(y, index=frame.index)),
        "view": lambda: Private(frame, list(y)).select(["b", "a"]),
        "sparse": lambda: Private.from_sparse(csr_matrix(X), y),
        "mapped": lambda: Private(frame, y).map(lambda Z: np.asarray(Z) * 10, 2),
    }[kind]()
    places = np.array([3, 3, 9, 0])
    expected = X[:, ::-1] if kind == "view" else X * (10 if kind == "mapped" else 1)

    def dense(table):
        return table.toarray() if hasattr(table, "toarray") else np.asarray(table)

    table, labels = private._rows.take(places)
    np.testing.assert_array_equal(dense(table), expected[places])
    np.testing.assert_array_equal(labels, places)
    sample = private._rows.coded(np.arange(5)).sampled(places)
    assert sample.n_rows == 4
    ((table, labels),) = sample.blocks()
    np.testing.assert_array_equal(dense(table), expected[places])
    np.testing.assert_array_equal(labels, [3, 3, np.nan, 0])
    ((_, again),) = private._rows.sampled(places).coded(np.arange(10)).blocks()
    np.testing.assert_array_equal(again, places)


def test_a_plan_may_mix_draws_with_gaussian_releases():
    X = np.random.default_rng(10).normal(size=(400, 2))
    with session_of(X) as session:
        weights = RowWeights(session)
        hidden = session.hide(Weighted(Sum(), weights, 0.5))
        grants = session.plan(learner=planned(400, count=1), sums=Gaussian.of(hidden))
        learner = mean_learner(grants.learner.epsilon, 1e-9)
        assert learn(session, grants.learner, weights, 0.5, 30, learner).shape == (2,)
        assert session.release(grants.sums, hidden).shape == (2,)
    assert 0.9 < session.guarantee.epsilon <= 1.0


def test_rows_are_drawn_under_exact_noise_too():
    pytest.importorskip("opendp")
    with session_of(np.ones((100, 2)), noise="exact", random_state=None) as session:
        weights = RowWeights(session)
        grant = session.plan(it=planned(100)).it
        assert learn(session, grant, weights, 0.5, 30, lambda sample: sample.n_rows) == 30


def test_rows_in_files_cannot_be_drawn(tmp_path):
    import pandas as pd

    pd.DataFrame({"a": [0.0, 1.0] * 50}).to_parquet(tmp_path / "rows.parquet")
    with Private.from_parquet(tmp_path).open(epsilon=1.0, delta=1e-6) as session:
        weights = RowWeights(session)
        grant = session.plan(it=planned(100)).it
        with pytest.raises(PrivacyError, match="Parquet"):
            learn(session, grant, weights, 0.5, 30, lambda sample: None)


# parity


def test_parity_is_paid_for_once():
    rng = np.random.default_rng(9)
    X = rng.integers(0, 2, (3000, 10)).astype(float)
    y = (X[:, 2] + X[:, 5]) % 2
    rows = Cleaning(radius=100.0, label_range=(0.0, 1.0))
    with session_of(X, y, delta=0.0) as session:
        hidden = session.hide(Rows(rows))
        grant = session.plan(it=Parity("parity")).it
        assert grant.epsilon == pytest.approx(1.0, rel=1e-3)
        masks = session.release(grant, hidden, batches=10)
        with pytest.raises(PrivacyError, match="as often as"):
            session.release(grant, hidden, batches=10)
    found = [np.flatnonzero(mask).tolist() for mask in masks if mask is not None]
    assert found
    assert all(mask == [2, 5] for mask in found)
    assert session.guarantee.epsilon <= 1.0


def test_parity_needs_the_rows_themselves():
    with session_of(np.ones((50, 3)), np.ones(50)) as session:
        hidden = session.hide(Rows(LABELLED))
        derived = session.derive(hidden, lambda rows: rows, label="rows", sensitivity=1.0)
        grant = session.plan(it=Parity("parity")).it
        with pytest.raises(PrivacyError, match="labelled rows that this session has hidden"):
            session.release(grant, derived, batches=2)


def test_what_is_derived_cannot_be_changed():
    def spoil(value):
        value[:] = 0
        return value

    with session_of(np.ones((50, 3))) as session:
        derived = session.derive(session.hide(Rows(UNIT)), lambda rows: rows + 1, label="more")
        assert not derived._value.flags.writeable
        with pytest.raises(PrivacyError):
            session.derive(derived, spoil)
