"""The Gaussian purse: whatever is chosen on the way, no more is spent than was charged."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import threading
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from audit import epsilon_lower_bound
from dpadapt.audit import replay
from dpadapt.papers.selection.random_stopping import RandomStopping
from dpadapt.privacy import Cleaning, PrivacyError, Private, RowMean
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.mechanisms import purse as purse_module
from dpadapt.privacy.mechanisms.purse import GaussianPurse
from dpadapt.privacy.statistics import SecondMoment

ROWS = np.random.default_rng(0).normal(size=(60, 3))
ALPHA = 1e-6  # false positives of every statistical test here


@dataclass(frozen=True)
class Mean(RowMean):
    """Mean of the cleaned rows, or of their first column; one row moves it by 2 radius / n."""

    cleaning: Cleaning
    columns: int = 3
    label: str = "mean"

    @property
    def magnitude(self):
        return self.cleaning.radius

    def shape(self, n_columns):
        return (self.columns,)

    def block(self, X, y):
        return X[:, : self.columns].sum(axis=0)

    def sensitivity(self, n_rows):
        return 2 * self.cleaning.radius / n_rows


def opened(rows=ROWS, **options):
    settings = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0, **options}
    return Private(rows).open(**settings)


def started(**options):
    session = opened(**options)
    return session, session.plan(purse=GaussianPurse()).purse, session.hide(Mean(Cleaning(1.0)))


class Watched:
    """A source of noise that writes down every scale that it is asked for."""

    def __init__(self, session):
        self.scales, honest = [], session._source.add_gaussian

        def add_gaussian(value, scale):
            self.scales.append(float(scale))
            return honest(value, scale)

        session._source.add_gaussian = add_gaussian


# what is spent


@pytest.mark.parametrize("seed", range(12))
def test_an_adversary_who_chooses_every_step_cannot_pass_one(seed):
    """Share, clip, dimension and statistic depend on what was released; the squares on nothing."""
    rng = np.random.default_rng(seed)
    with opened(random_state=seed) as session:
        grant = session.plan(purse=GaussianPurse()).purse
        watched, spent, last, mus = Watched(session), Fraction(0), 0.0, []
        for _ in range(200):
            greedy = abs(math.sin(1e3 * last)) or 0.5
            share = float(rng.choice([greedy, 0.1, 1 / 3, 1e-3, 1e-17, 5e-324, 1.0]))
            cleaning = Cleaning(float(np.clip(abs(last), 0.1, 10.0)))
            symmetric = bool(rng.random() < 0.5)
            mean = Mean(cleaning, columns=1 + int(1e6 * abs(last)) % 3)
            hidden = session.hide(SecondMoment(cleaning) if symmetric else mean)
            try:
                released = session.release(grant, hidden, share=share, symmetric=symmetric)
            except PrivacyError:
                assert spent + Fraction(share) > 1  # it was let through wherever it fits
                continue
            spent += Fraction(share)
            mus.append(hidden.sensitivity / watched.scales[-1])
            last = float(np.ravel(np.nan_to_num(released))[0]) % 7.0
    assert len(mus) > 1
    assert math.fsum(mu**2 for mu in mus) <= grant.scale**-2
    assert session.guarantee.epsilon <= 1


def squares(shares, seed=0):
    """Sum of the realised squares of mu, over what was charged, and how many were let through."""
    total, passed = 0.0, 0
    with opened(random_state=seed) as session:
        grant = session.plan(purse=GaussianPurse()).purse
        hidden, watched = session.hide(Mean(Cleaning(1.0))), Watched(session)
        for share in shares:
            try:
                session.release(grant, hidden, share=share)
            except PrivacyError:
                continue
            passed += 1
            total += (hidden.sensitivity / watched.scales[-1] * grant.scale) ** 2
    return total, passed


@pytest.mark.parametrize(
    ("share", "fits"), [(0.1, 10), (1 / 3, 3), (0.2, 5), (1.0, 1), (0.7, 1), (1e-3, 1000)]
)
def test_shares_that_add_up_to_one_fit_and_no_more(share, fits):
    total, passed = squares([share] * (fits + 5))
    assert passed == fits
    assert total <= 1
    assert total == pytest.approx(fits * share, rel=1e-8)


def test_tiny_shares_are_counted_however_small_they_are():
    """In float64, 1 - 1e-17 is 1: any number of them would be free."""
    session, grant, hidden = started()
    before = session._left[grant]
    for _ in range(50):
        session.release(grant, hidden, share=1e-17)
    assert before - session._left[grant] == 50 * Fraction(1e-17)
    session.release(grant, hidden, share=1.0 - 2**-53)
    with pytest.raises(PrivacyError, match="as often as"):
        session.release(grant, hidden, share=1e-6)


def test_half_of_the_noise_and_a_forgotten_square_would_be_seen(monkeypatch):
    shares = [0.5, 0.25, 0.25]
    assert squares(shares)[0] == pytest.approx(1, rel=1e-8)
    with monkeypatch.context() as broken:
        honest = GaussianPurse.release
        broken.setattr(
            GaussianPurse,
            "release",
            lambda self, hidden, scale, *rest, **public: honest(
                self, hidden, scale / 2, *rest, **public
            ),
        )
        assert squares(shares)[0] > 3.9
    honest = GaussianPurse.admit

    def forgets(self, hidden, *, share, **public):
        honest(self, hidden, share=share, **public)
        return Fraction(0) if share == 0.5 else Fraction(share)

    monkeypatch.setattr(GaussianPurse, "admit", forgets)
    assert squares([0.5, 0.5, 0.25, 0.25, 0.25, 0.25])[0] > 1.9


def test_threads_at_once_spend_one_purse():
    session, grant, hidden = started()
    passed, start = [], threading.Barrier(8)

    def spend():
        start.wait()
        for _ in range(20):
            with contextlib.suppress(PrivacyError):
                passed.append(session.release(grant, hidden, share=0.05))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 20


# what is refused


@pytest.mark.parametrize(
    "share",
    [math.nan, math.inf, -math.inf, True, False, -0.1, 0, 0.0, 2, 1 + 1e-15, "1", None, [0.5], 1j],
)
def test_what_is_no_share_is_refused_and_costs_nothing(share):
    session, grant, hidden = started()
    before = session._left[grant]
    with pytest.raises((ValueError, TypeError)):
        session.release(grant, hidden, share=share)
    assert session._left[grant] == before
    session.release(grant, hidden, share=1)


def test_a_share_must_be_named():
    session, grant, hidden = started()
    with pytest.raises(TypeError, match="share"):
        session.release(grant, hidden)
    assert session._left[grant] >= 1


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf, True])
def test_a_weight_is_a_positive_number(weight):
    with pytest.raises((ValueError, TypeError)):
        GaussianPurse(weight=weight)


def test_discrete_noise_and_random_runs_are_refused():
    with opened() as session, pytest.raises(PrivacyError, match="single releases"):
        session.plan(it=RandomStopping((("purse", GaussianPurse()),), 0.0, 0.5))
    pytest.importorskip("opendp")
    with (
        opened(noise="exact", random_state=None) as exact,
        pytest.raises(PrivacyError, match="noise='secure'"),
    ):
        exact.plan(purse=GaussianPurse())


def test_a_purse_is_of_one_session_one_part_and_ends_with_it():
    with opened() as session, opened() as other:
        session.split(0.5)
        grant = session.plan(purse=GaussianPurse(part="train")).purse
        theirs = other.hide(Mean(Cleaning(1.0)))
        with pytest.raises(PrivacyError, match="from this session"):
            session.release(grant, theirs, share=0.5)
        with pytest.raises(PrivacyError, match="from this session"):
            other.release(grant, theirs, share=0.5)
        with pytest.raises(PrivacyError, match="part"):
            session.release(grant, session.hide(Mean(Cleaning(1.0)), "holdout"), share=0.5)
        train = session.hide(Mean(Cleaning(1.0)), "train")
        session.release(grant, train, share=0.5)
        with pytest.raises(PrivacyError, match="from this session"):
            session.release(copy.copy(grant), train, share=0.5)
    with pytest.raises(PrivacyError, match="closed"):
        session.release(grant, train, share=0.5)


def test_what_has_no_bounded_sensitivity_is_refused():
    session, grant, hidden = started()
    with pytest.raises(PrivacyError, match="no bounded sensitivity"):
        session.release(grant, session.derive(hidden, np.sum), share=0.5)
    for claim in (math.nan, -1.0):
        with pytest.raises(PrivacyError, match="sensitivity must be a number"):
            session.derive(hidden, np.sum, sensitivity=claim)
    with pytest.raises(PrivacyError, match="no row can change"):
        session.release(grant, session.derive(hidden, np.sum, sensitivity=0.0), share=0.5)
    with pytest.raises(ValueError, match="square"):
        session.release(grant, hidden, share=0.5, symmetric=True)
    session.release(grant, hidden, share=1.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_no_purse():
    session, grant, hidden = started()
    child = os.fork()
    if child == 0:
        try:
            session.release(grant, hidden, share=0.5)
        except PrivacyError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    session.release(grant, hidden, share=1.0)


def test_a_purse_shares_a_plan_by_its_weight():
    with opened() as session:
        grants = session.plan(purse=GaussianPurse(weight=2.0), mean=Gaussian("mean", 0.5))
    assert grants.purse.scale * 2 == pytest.approx(grants.mean.scale / 0.5)
    assert 1 - 1e-3 <= session.guarantee.epsilon <= 1


# the noise


def p_value(factor=1.0, draws=4000):
    """Whether noise of the stated scale, at shares that change, is what comes out."""
    with opened(random_state=3, epsilon=50.0) as session:
        grant = session.plan(purse=GaussianPurse()).purse
        hidden = session.hide(Mean(Cleaning(1.0)))
        honest = session._source.add_gaussian
        session._source.add_gaussian = lambda value, scale: honest(value, factor * scale)
        noise = []
        for i in range(draws):
            share = (1 + i % 3) / (3 * draws)
            stated = hidden.sensitivity * grant.scale / math.sqrt(share)
            noise.append((session.release(grant, hidden, share=share) - hidden._value) / stated)
    numbers = np.ravel(noise)
    tail = stats.chi2.cdf(float(numbers @ numbers), numbers.size)
    spread = 2 * min(tail, 1 - tail)
    return 2 * min(spread, stats.kstest(numbers, "norm").pvalue)  # two tests


def test_noise_has_the_stated_scale():
    assert p_value() > ALPHA
    assert p_value(0.7) < ALPHA
    assert p_value(1.3) < ALPHA


# an audit

DELTA, RUNS = 0.05, 12_000


def told(runs, sign, *, scale, forgets):
    """Scores of an adversary who looks, and then decides what to buy, against the purse itself.

    The first release costs a share of 0.95. If it speaks for the first neighbour, the rest is spent
    at once, else in two parts. The twin that ``forgets`` does not count the first.
    """
    rows = np.zeros((20, 1))
    rows[0] = sign
    scores = []
    with opened(rows, epsilon=2.0, delta=DELTA, random_state=int(10 + sign)) as session:
        hidden = session.hide(Mean(Cleaning(1.0), 1))
        for _ in range(runs):
            grant = session._grant(GaussianPurse(), scale)  # a purse for every run
            first = float(session.release(grant, hidden, share=0.95)[0])
            if forgets:
                session._left[grant] += Fraction(0.95)
            left = 1.0 if forgets else 0.05
            shares = [left] if first > 0 else [left / 2, left / 2]
            rest = [float(session.release(grant, hidden, share=share)[0]) for share in shares]
            scores.append(0.95 * first + float(np.dot(shares, rest)))
        with pytest.raises(PrivacyError, match="as often as"):
            session.release(grant, hidden, share=1e-6)
    return scores


@pytest.mark.slow
def test_an_adaptive_purse_stays_below_its_epsilon_and_not_if_a_square_is_forgotten():
    epsilon = 2.0
    with opened(epsilon=epsilon, delta=DELTA) as session:
        scale = session.plan(purse=GaussianPurse()).purse.scale
    assert session.guarantee.epsilon <= epsilon
    bounds = [
        epsilon_lower_bound(
            *(told(RUNS, sign, scale=scale, forgets=forgets) for sign in (1.0, -1.0)), DELTA
        )
        for forgets in (False, True)
    ]
    assert 0.5 * epsilon < bounds[0] <= epsilon
    assert bounds[1] > epsilon


# replay


def look_then_measure(rows, share=0.1, understated=1.0):
    with Private(rows).open(epsilon=1.0, delta=1e-6) as session:
        purse = session.plan(purse=GaussianPurse()).purse
        wide = session.hide(SecondMoment(Cleaning(radius=9.0)))
        look = session.release(purse, wide, share=share, symmetric=True)
        radius = 2 * float(np.sqrt(max(1e-3, np.trace(look))))
        narrow = session.hide(Mean(Cleaning(radius)))
        claim = understated * narrow.sensitivity
        same = session.derive(narrow, lambda value: value, sensitivity=claim)
        return session.release(purse, same, share=0.9)


def test_a_user_of_a_purse_is_replayed():
    one, two = ROWS.copy(), ROWS.copy()
    one[4], two[4] = [90.0, 90.0, 0.0], [90.0, -90.0, 0.0]  # the moment moves by all it can
    found = replay(look_then_measure, one, two)
    assert found.holds, found
    look, _, all_of_them = found.moved
    assert look.ratio == pytest.approx(1, abs=1e-6)
    assert all_of_them.label == "purse: all of them"
    assert all_of_them.ratio < 1
    understated = replay(lambda rows: look_then_measure(rows, understated=0.5), one, two)
    assert not understated.holds
    secret = replay(lambda rows: look_then_measure(rows, 0.1 if rows[4, 1] > 0 else 0.05), one, two)
    assert secret.diverged is not None


def test_replay_finds_a_purse_that_was_spent_twice(monkeypatch):
    one, two = ROWS.copy(), ROWS.copy()
    one[4], two[4] = [90.0, 90.0, 0.0], [90.0, -90.0, 0.0]

    def twice(rows):
        with Private(rows).open(epsilon=1.0, delta=1e-6) as session:
            purse = session.plan(purse=GaussianPurse()).purse
            moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
            return [session.release(purse, moment, share=0.9, symmetric=True) for _ in "ab"]

    refused = replay(twice, one, two)
    assert "as often as" in refused.refused
    monkeypatch.setattr(GaussianPurse, "admit", lambda self, hidden, **public: 0)
    found = replay(twice, one, two)
    assert found.largest == pytest.approx(math.sqrt(1.8), rel=1e-6)
    assert not found.holds


def test_a_hair_is_more_than_what_rounding_allows():
    allowed = GaussianPurse().allowance
    assert allowed < Fraction(1 + purse_module.PURSE_ROUNDING) ** 2
    assert allowed > 10 * Fraction(0.1)
