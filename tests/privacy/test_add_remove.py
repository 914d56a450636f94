"""Sessions under add-remove: sums instead of means, and nothing that tells the number of rows."""

from __future__ import annotations

import copy
import math
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpadapt.papers.selection.random_stopping import RandomStopping
from dpadapt.privacy import Cleaning, PrivacyError, Private, Rows, RowSum
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.mechanisms import EachRow, FilteredGaussian, FilteredMean, Gaussian
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.testing.independent_accountant import recompute_epsilon

CLEANING = Cleaning(radius=1.0)


@dataclass(frozen=True)
class Total(FilteredMean):
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
    private = X if isinstance(X, Private) else Private(X)
    return private.open(relation=relation, **given)


def unnoised(hidden):
    return hidden._value


def test_the_session_does_not_tell_how_many_rows_there_are():
    with opened(np.ones((37, 2))) as session:
        for ask in (lambda: session.n_rows, session.size, lambda: session.split(0.5)):
            with pytest.raises(PrivacyError) as refusal:
                ask()
            assert "37" not in str(refusal.value)
        with pytest.raises(PrivacyError, match="hide a RowSum"):
            session.hide(SecondMoment(CLEANING))
        with pytest.raises(PrivacyError, match="hide a RowSum"):
            session.hide(Rows(CLEANING))
        grant = session.plan(it=Gaussian.of(session.hide(RowSum(Total())))).it
        session.release(grant, session.hide(RowSum(Total())))
        guarantee = session.guarantee
    assert guarantee.relation == "add-remove"
    assert "37" not in guarantee.to_json()
    assert "adding or removing any one private row" in guarantee.sentence.lower()


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_the_guarantee_is_the_same_for_every_number_of_rows(n):
    with opened(np.ones((n, 2)), delta=1e-2) as session:
        session.plan(it=Gaussian.of(session.hide(RowSum(Total())), count=3))
        told = session.guarantee.to_json()
    with opened(np.ones((50, 2)), delta=1e-2) as session:
        session.plan(it=Gaussian.of(session.hide(RowSum(Total())), count=3))
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
            hidden = one.hide(RowSum(Total())), two.hide(RowSum(Total()))
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
            grant = session.plan(it=Gaussian.of(session.hide(RowSum(Total())), count=4)).it
            scales[relation] = grant.scale
            claimed = session.guarantee.epsilon
            low, high = recompute_epsilon(session.guarantee.events, 1e-6)
            assert low * (1 - 1e-6) <= claimed <= high * 1.01
    assert scales["replace-one"] / scales["add-remove"] == pytest.approx(2, rel=2e-3)


def test_noise_on_a_sum_has_the_scale_of_its_grant():
    with opened(np.zeros((3, 1))) as session:
        hidden = session.hide(RowSum(Total()))
        grant = session.plan(it=Gaussian.of(hidden, count=4000)).it
        drawn = np.array([session.release(grant, hidden)[0] for _ in range(4000)])
    assert drawn.std() == pytest.approx(grant.scale, rel=0.06)
    assert drawn.std() != pytest.approx(0.7 * grant.scale, rel=0.06)


def test_relations_do_not_mix_on_one_sample():
    private = Private(np.ones((10, 1)))
    for relation in ("add-remove", "replace-one"):
        with private.open(epsilon=1.0, delta=1e-6, relation=relation) as session:
            session.plan(it=Gaussian.of(session.hide(RowSum(Total()))))
    with pytest.raises(ValueError, match="keep to one relation"):
        _ = private.spent(1e-6).epsilon


def test_bad_relation_is_refused():
    with pytest.raises(ValueError, match=r"^relation must be one of 'replace-one', 'add-remove'"):
        opened(np.ones((2, 1)), "add_remove")


def test_random_stopping_states_the_relation():
    with opened(np.ones((5, 1))) as session:
        hidden = session.hide(RowSum(Total()))
        stopping = RandomStopping((("sum", Gaussian.of(hidden)),), shape=0.0, gamma=0.1)
        for grants in session.plan(runs=stopping).runs:
            session.release(grants.sum, hidden)
    assert session.guarantee.relation == "add-remove"
    assert session.guarantee.epsilon <= 1 + 1e-9


def test_rows_that_do_not_fit_are_not_kept():
    X = np.random.default_rng(0).normal(size=(40_000, 2))
    sums = []
    for limit in (0, 1 << 30):
        with opened(Private(X).kept(memory=limit, spill=False)) as session:
            first = unnoised(session.hide(RowSum(Total()), keep=True))
            sums.append(first)
            assert bool(session._samples["all"]._kept) == bool(limit)
            np.testing.assert_array_equal(first, unnoised(session.hide(RowSum(Total()), keep=True)))
    np.testing.assert_array_equal(*sums)


# the individual filter -------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaled(Total):
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
        sensitivity = session.sensitivity(RowSum(Total()))
        planned = FilteredGaussian(
            "row sum", sensitivity, X.shape[1], count=count, releases=len(factors)
        )
        grant = session.plan(it=planned).it
        handle = session.release(grant, session.hide(EachRow(1.0)))
        seen = watched(handle)
        for factor in factors:
            handle.release(Scaled(factor=factor))
        return np.array(seen), grant.scale, session.guarantee


def watched(handle):
    """What reaches the noise of a handle, un-noised."""
    seen, honest = [], handle._noisy

    def noisy(value):
        seen.append(np.array(value))
        return honest(value)

    handle._noisy = noisy
    return seen


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


def test_a_filter_is_handed_out_once_and_keeps_its_own_count():
    with opened(np.ones((4, 2))) as session:
        bound = session.sensitivity(RowSum(Total()))
        planned = FilteredGaussian("row sum", bound, 2, count=1, releases=2)
        grants = session.plan(filtered=planned, plain=Gaussian("row sum", bound, 2, count=5))
        rows = session.hide(EachRow(1.0))
        with pytest.raises(PrivacyError, match="no bounded sensitivity"):
            session.release(grants.plain, rows)
        with pytest.raises(PrivacyError, match="EachRow"):
            session.release(grants.filtered, session.hide(RowSum(Total())))
        sums = session.release(grants.filtered, rows)
        with pytest.raises(PrivacyError, match="as often as it was planned"):
            session.release(grants.filtered, rows)  # a second handle would have unspent rows
        assert sums.release(Total()).shape == (2,)
        sums.release(Total())
        with pytest.raises(PrivacyError, match="as often as it was planned"):
            sums.release(Total())


def test_the_sample_behind_a_filter_cannot_be_derived_read_or_copied():
    with opened(np.ones((4, 2))) as session:
        bound = session.sensitivity(RowSum(Total()))
        grant = session.plan(it=FilteredGaussian("row sum", bound, 2, releases=2)).it
        rows = session.hide(EachRow(1.0))
        with pytest.raises(PrivacyError, match="withheld"):
            session.derive(rows, lambda sample: sample, sensitivity=bound)
        handle = session.release(grant, rows)
        for use in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="copied or pickled"):
                use(handle)
    for use in (lambda: handle.release(Total()), lambda: session.release(grant, rows)):
        with pytest.raises(PrivacyError, match="closed"):
            use()


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (Total(magnitude=2.0), "more sensitive"),
        (Total(cleaning=Cleaning(radius=1.5)), "larger radius"),
        (Total(magnitude=math.nan), "overflow"),
    ],
)
def test_a_filtered_sum_keeps_to_what_was_planned(wrong, match):
    with opened(np.ones((4, 2))) as session:
        bound = session.sensitivity(RowSum(Total()))
        grants = session.plan(
            both=FilteredGaussian("row sum", bound, 2, releases=2),
            one=FilteredGaussian("one number", bound, 1, releases=2),
        )
        both = session.release(grants.both, session.hide(EachRow(1.0)))
        one = session.release(grants.one, session.hide(EachRow(1.0)))
        with pytest.raises((PrivacyError, ValueError), match=match):
            both.release(wrong)
        with pytest.raises(PrivacyError, match="fewer numbers"):
            one.release(Total())
        for handle in (both, one):
            assert handle._filter.left == 2  # the refusals have used nothing up


def test_what_a_filtered_mean_raises_is_withheld():
    class Tells(Total):
        def norms(self, X, y):
            raise PrivacyError(f"the row is {X}")

    with opened(np.full((4, 2), 0.2718)) as session:
        bound = session.sensitivity(RowSum(Total()))
        grant = session.plan(it=FilteredGaussian("row sum", bound, 2, releases=2)).it
        sums = session.release(grant, session.hide(EachRow(1.0)))
        with pytest.raises(PrivacyError, match="withheld") as caught:
            sums.release(Tells())
    assert "0.27" not in str(caught.value)
    assert caught.value.__context__ is None


def test_what_rows_paid_for_under_one_grant_another_one_does_not_release():
    """The rows have two budgets, one for each grant; a sum is on the account of its own."""
    with opened(np.array([[1.0, 0.0]])) as session:
        bound = session.sensitivity(RowSum(Total()))
        planned = FilteredGaussian("row sum", bound, 2, count=1, releases=3)
        grants = session.plan(each=[planned, replace(planned, label="again")]).each
        handles = [session.release(grant, session.hide(EachRow(1.0))) for grant in grants]
        seen = [watched(handle) for handle in handles]
        for handle in (handles[0], handles[0], handles[1], handles[1]):
            handle.release(Scaled(factor=0.9))  # of 1: the second time it cannot pay
    for each in seen:  # a row that was dropped by the one still pays with the other
        assert each[0].any()
        assert not each[1].any()


def test_threads_take_turns_at_a_filter():
    """What a row has spent is read and then written: two at a time would each see it unspent."""
    inside, most = [0], [0]

    class Slow(Total):
        def norms(self, X, y):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)  # room for another thread, if it is let in
            inside[0] -= 1
            return super().norms(X, y)

    with opened(np.ones((4, 2))) as session:
        bound = session.sensitivity(RowSum(Slow()))
        grant = session.plan(it=FilteredGaussian("row sum", bound, 2, count=2, releases=8)).it
        sums = session.release(grant, session.hide(EachRow(1.0)))
        seen = watched(sums)
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(sums.release, Slow()) for _ in range(8)]
        assert [job.result().shape for job in jobs] == [(2,)] * 8
    assert most[0] == 1
    assert sum(value.any() for value in seen) <= 2


def test_a_filter_needs_continuous_gaussian_noise():
    with pytest.raises(ValueError, match="releases"):
        FilteredGaussian("x", 1.0, releases=0)
    with opened(np.ones((4, 2)), noise="exact", random_state=None) as session:
        bound = session.sensitivity(RowSum(Total()))
        with pytest.raises(PrivacyError, match="noise='secure'"):
            session.plan(it=FilteredGaussian("row sum", bound, 2, count=1, releases=2))
