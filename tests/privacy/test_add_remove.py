"""Sessions under add-remove: sums instead of means, and nothing that tells the number of rows."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpadapt.privacy import Cleaning, PrivacyError, Private, Request, SecondMoment
from dpadapt.privacy import session as session_module
from dpadapt.privacy.composition import compose_epsilon
from independent_accountant import recompute_epsilon

CLEANING = Cleaning(radius=1.0)


@dataclass(frozen=True)
class RowSum:
    """Sum of the rows; one contributes at most 1."""

    cleaning: Cleaning = CLEANING
    label: str = "row sum"
    magnitude: float = 1.0

    def shape(self, n_columns):
        return (n_columns,)

    def block(self, X, y):
        return X.sum(axis=0)

    def sensitivity(self, n_rows):
        return 2 / n_rows

    def norms(self, X, y):
        return np.linalg.norm(X, axis=1)

    def kept(self, X, y, keep):
        return X[keep].sum(axis=0)


def opened(X, relation="add-remove", **options):
    given = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0} | options
    return Private(X).open(relation=relation, **given)


def unnoised(hidden):
    return hidden._value


def test_the_session_does_not_tell_how_many_rows_there_are():
    with opened(np.ones((37, 2))) as session:
        for ask in (lambda: session.n_rows, session.size, lambda: session.split(0.5)):
            with pytest.raises(PrivacyError) as refusal:
                ask()
            assert "37" not in str(refusal.value)
        with pytest.raises(PrivacyError, match="hide_sum"):
            session.hide(SecondMoment(CLEANING))
        with pytest.raises(PrivacyError, match="hide_sum"):
            session.hide_rows(CLEANING)
        (grant,) = session.plan(session.hide_sum(RowSum()).request())
        session.gaussian(grant, session.hide_sum(RowSum()))
        guarantee = session.guarantee
    assert guarantee.relation == "add-remove"
    assert "37" not in guarantee.to_json()
    assert "adding or removing any one private row" in guarantee.sentence.lower()


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_the_guarantee_is_the_same_for_every_number_of_rows(n):
    with opened(np.ones((n, 2)), delta=1e-2) as session:
        session.plan(session.hide_sum(RowSum()).request(count=3))
        told = session.guarantee.to_json()
    with opened(np.ones((50, 2)), delta=1e-2) as session:
        session.plan(session.hide_sum(RowSum()).request(count=3))
        assert session.guarantee.to_json() == told


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_sums_move_by_no_more_than_their_sensitivity(relation):
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(200):
        n = int(rng.integers(1, 40))
        X = rng.normal(size=(n, 3)) * rng.choice([0.1, 1.0, 1e6])
        place = int(rng.integers(n))
        other = np.delete(X, place, axis=0)
        if relation == "replace-one":
            other = X.copy()
            other[place] = -X[place]
        with opened(X, relation) as one, opened(other, relation) as two:
            hidden = one.hide_sum(RowSum()), two.hide_sum(RowSum())
        moved = np.linalg.norm(unnoised(hidden[0]) - unnoised(hidden[1]))
        assert moved <= hidden[0].sensitivity
        worst = max(worst, moved / hidden[0].sensitivity)
    assert worst > 0.99  # attained
    # half the sensitivity would not do
    assert worst * 2 > 1


def test_under_add_remove_the_noise_is_half_that_of_replace_one():
    scales = {}
    for relation in ("add-remove", "replace-one"):
        with opened(np.ones((100, 2)), relation) as session:
            (grant,) = session.plan(session.hide_sum(RowSum()).request(count=4))
            scales[relation] = grant.scale
            claimed = session.guarantee.epsilon
            low, high = recompute_epsilon(session.guarantee.events, 1e-6)
            assert low * (1 - 1e-6) <= claimed <= high * 1.01
    assert scales["replace-one"] / scales["add-remove"] == pytest.approx(2, rel=2e-3)


def test_noise_on_a_sum_has_the_scale_of_its_grant():
    with opened(np.zeros((3, 1))) as session:
        hidden = session.hide_sum(RowSum())
        (grant,) = session.plan(hidden.request(count=4000))
        drawn = np.array([session.gaussian(grant, hidden)[0] for _ in range(4000)])
    assert drawn.std() == pytest.approx(grant.scale, rel=0.06)
    assert drawn.std() != pytest.approx(0.7 * grant.scale, rel=0.06)


def test_relations_do_not_mix_on_one_sample():
    private = Private(np.ones((10, 1)))
    for relation in ("add-remove", "replace-one"):
        with private.open(epsilon=1.0, delta=1e-6, relation=relation) as session:
            session.plan(session.hide_sum(RowSum()).request())
    with pytest.raises(ValueError, match="keep to one relation"):
        _ = private.spent(1e-6).epsilon


def test_bad_relation_is_refused():
    with pytest.raises(ValueError, match=r"^relation must be one of 'replace-one', 'add-remove'"):
        opened(np.ones((2, 1)), "add_remove")


def test_random_stopping_states_the_relation():
    with opened(np.ones((5, 1))) as session:
        hidden = session.hide_sum(RowSum())
        for (grant,) in session.plan_random_stopping(hidden.request(), shape=0.0, gamma=0.1):
            session.gaussian(grant, hidden)
    assert session.guarantee.relation == "add-remove"
    assert session.guarantee.epsilon <= 1 + 1e-9


def test_rows_that_do_not_fit_are_not_kept(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40_000, 2))
    sums = []
    for limit in (0, 1 << 30):
        monkeypatch.setattr(session_module, "KEPT_BYTES", limit)
        with opened(X) as session:
            first = unnoised(session.hide_sum(RowSum(), keep=True))
            sums.append(first)
            assert bool(session._clean) == bool(limit)
            np.testing.assert_array_equal(first, unnoised(session.hide_sum(RowSum(), keep=True)))
    np.testing.assert_array_equal(*sums)


# the individual filter -------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaled(RowSum):
    """Rows times a public factor: what a row contributes shrinks from step to step."""

    factor: float = 1.0

    def block(self, X, y):
        return self.factor * X.sum(axis=0)

    def norms(self, X, y):
        return self.factor * np.linalg.norm(X, axis=1)

    def kept(self, X, y, keep):
        return self.factor * X[keep].sum(axis=0)


def filtered_sums(X, factors, *, count, relation="add-remove"):
    """Un-noised sums of every step, and the noise."""
    with opened(X, relation) as session:
        sensitivity = session.sum_sensitivity(RowSum())
        request = Request(
            "gaussian", "row sum", sensitivity, X.shape[1], count=count, releases=len(factors)
        )
        (grant,) = session.plan(request)
        sums = []
        for factor in factors:
            hidden = session.hide_filtered(Scaled(factor=factor), grant)
            sums.append(unnoised(hidden))
            session.gaussian(grant, hidden)
        return np.array(sums), grant.scale, session.guarantee


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_no_row_ever_spends_more_than_it_was_given(relation):
    """Realised mu of a pair of samples, over all steps, against the mu of the event."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(60):
        n, steps, count = int(rng.integers(1, 8)), int(rng.integers(1, 40)), int(rng.integers(1, 5))
        X = rng.normal(size=(n, 2)) * rng.choice([0.05, 1.0, 50.0])
        factors = rng.uniform(0, 1, size=steps) if rng.random() < 0.5 else np.ones(steps)
        place = int(rng.integers(n))
        other = np.delete(X, place, axis=0)
        if relation == "replace-one":
            other = X.copy()
            other[place] = -X[place]
        one, scale, guarantee = filtered_sums(X, factors, count=count, relation=relation)
        two, _, _ = filtered_sums(other, factors, count=count, relation=relation)
        realised = np.linalg.norm(one - two) / scale
        allowed = guarantee.events[0].gaussian_mu
        assert realised <= allowed
        worst = max(worst, realised / allowed)
    assert worst > 0.95  # and the budget can be used up


def test_without_the_filter_the_same_steps_would_cost_more():
    steps, count = 30, 3
    one, scale, guarantee = filtered_sums(np.array([[1.0, 0.0]]), np.ones(steps), count=count)
    unfiltered = math.sqrt(steps) / scale
    assert unfiltered > 3 * guarantee.events[0].gaussian_mu
    assert np.linalg.norm(one) / scale <= guarantee.events[0].gaussian_mu
    assert compose_epsilon(guarantee.events, 1e-6) <= 1 + 1e-9


def test_small_contributions_last_for_more_steps_than_were_paid_for():
    sums, _, _ = filtered_sums(np.array([[1.0, 0.0]]), np.full(50, 0.2), count=3)
    assert (sums[:, 0] > 0).all()  # 50 * 0.04 = 2 of 3
    sums, _, _ = filtered_sums(np.array([[1.0, 0.0]]), np.full(100, 0.2), count=3)
    assert (sums[:, 0] > 0).sum() in (74, 75)  # 3 / 0.04, a hair of it for rounding


def test_it_goes_on_when_every_row_is_dropped():
    sums, _, guarantee = filtered_sums(np.ones((4, 2)), np.ones(20), count=1)
    assert not sums[2:].any()
    empty, _, same = filtered_sums(np.ones((0, 2)), np.ones(20), count=1)
    assert not empty.any()
    assert same.to_json() == guarantee.to_json()


def test_a_filtered_sum_is_released_once_and_by_its_own_grant():
    with opened(np.ones((4, 2))) as session:
        bound = session.sum_sensitivity(RowSum())
        request = Request("gaussian", "row sum", bound, 2, count=1, releases=2)
        grant, plain = session.plan(request, replace(request, releases=None, count=5))
        with pytest.raises(PrivacyError, match="releases="):
            session.hide_filtered(RowSum(), plain)
        with pytest.raises(PrivacyError, match="hide_filtered"):
            session.gaussian(grant, session.hide_sum(RowSum()))
        hidden = session.hide_filtered(RowSum(), grant)
        with pytest.raises(PrivacyError, match="hide_filtered"):
            session.gaussian(grant, hidden, lambda value: 2 * value)
        session.gaussian(grant, hidden)
        with pytest.raises(PrivacyError, match="hide_filtered"):
            session.gaussian(grant, hidden)
        session.hide_filtered(RowSum(), grant)
        with pytest.raises(PrivacyError, match="as often as it was planned"):
            session.hide_filtered(RowSum(), grant)


def test_what_rows_paid_for_under_one_grant_another_one_does_not_release():
    """The rows have two budgets, one for each grant; a sum is on the account of its own."""
    with opened(np.ones((4, 2))) as session:
        bound = session.sum_sensitivity(RowSum())
        request = Request("gaussian", "row sum", bound, 2, count=1, releases=3)
        one, two = session.plan(request, replace(request, label="again"))
        hidden = session.hide_filtered(RowSum(), one)
        with pytest.raises(PrivacyError, match="hide_filtered"):
            session.gaussian(two, hidden)
        session.gaussian(one, hidden)


def test_threads_take_turns_at_a_filter():
    """What a row has spent is read and then written: two at a time would each see it unspent."""
    inside, most = [0], [0]

    class Slow(RowSum):
        def norms(self, X, y):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)  # room for another thread, if it is let in
            inside[0] -= 1
            return super().norms(X, y)

    with opened(np.ones((4, 2))) as session:
        bound = session.sum_sensitivity(Slow())
        (grant,) = session.plan(Request("gaussian", "row sum", bound, 2, count=2, releases=8))
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(session.hide_filtered, Slow(), grant) for _ in range(8)]
        taking_part = [unnoised(job.result()).any() for job in jobs]
    assert most[0] == 1
    assert sum(taking_part) <= 2


def test_a_filter_needs_continuous_gaussian_noise():
    with pytest.raises(ValueError, match="releases"):
        Request("laplace", "x", 1.0, releases=3)
    with opened(np.ones((4, 2)), noise="exact", random_state=None) as session:
        bound = session.sum_sensitivity(RowSum())
        with pytest.raises(PrivacyError, match="noise='secure'"):
            session.plan(Request("gaussian", "row sum", bound, 2, count=1, releases=2))
