"""The order of a session, what a grant buys, and what may never come out."""

from __future__ import annotations

import copy
import io
import math
import pickle
import signal
import sys
import traceback
import warnings
from dataclasses import replace
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import pytest

from dpadapt.cli.screens import Stopped
from dpadapt.papers.selection.random_stopping import RandomStopping
from dpadapt.privacy import BudgetExceeded, Cleaning, Grant, PrivacyError, Private, RowMean, Rows
from dpadapt.privacy.core.mechanism import Noise
from dpadapt.privacy.core.noise import SeededNoise
from dpadapt.privacy.mechanisms import (
    CandidateLosses,
    Exponential,
    ExponentialOnBall,
    Gaussian,
    GaussianPool,
    Laplace,
    LaplaceMin,
    RandomisedResponse,
    SymmetricGaussian,
    hide_losses,
    holdout_choice,
)
from dpadapt.privacy.rows import sources as rows_module
from dpadapt.privacy.statistics import SecondMoment

SECRET = 0.271828
MOMENT = SecondMoment(Cleaning(radius=1.0))


class Mean(RowMean):
    """Mean of the cleaned rows; replace-one moves it by 2 radius / n."""

    label = "mean"

    def __init__(self, radius: float = 1.0) -> None:
        self.cleaning = Cleaning(radius=radius)

    @property
    def magnitude(self):
        return self.cleaning.radius

    def shape(self, n_columns):
        return (n_columns,)

    def block(self, X, y):
        return X.sum(axis=0)

    def sensitivity(self, n_rows):
        return 2 * self.magnitude / n_rows


@pytest.fixture
def private() -> Private:
    return Private(np.full((200, 2), SECRET))


def stopped(hidden):
    return RandomStopping((("moment", SymmetricGaussian.of(hidden)),), shape=0.0, gamma=0.1)


def opened(private, **options):
    chosen = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0} | options
    return private.open(**chosen)


class CountingNoise(SeededNoise):
    """Seeded noise that writes down every draw."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(0)
        self._log = log

    def _generator(self):
        self._log.append("noise")
        return super()._generator()


class Budget:
    """A budget that writes down its charges, or refuses them."""

    def __init__(self, log: list[str], refuse: type[Exception] | None = None) -> None:
        self.log, self.refuse, self.events = log, refuse, []

    def charge(self, events, label):
        self.log.append("charge")
        if self.refuse is BudgetExceeded:
            raise BudgetExceeded(spent=1, asked=1, left=0, budget_epsilon=1, budget_delta=1e-6)
        if self.refuse is not None:
            raise self.refuse("the disk is full")
        self.events += list(events)


# Charge before noise ---------------------------------------------------------------------------


def test_the_charge_comes_before_the_first_draw(private):
    log: list[str] = []
    budget = Budget(log)
    with opened(private, ledger=budget) as session:
        session._source = CountingNoise(log)
        hidden = session.hide(MOMENT)
        assert log == []
        grant = session.plan(it=SymmetricGaussian.of(hidden, count=2)).it
        assert log == ["charge"]
        session.release(grant, hidden)
        session.release(grant, hidden)
    assert log == ["charge", "noise", "noise"]
    assert tuple(budget.events) == session.guarantee.events


@pytest.mark.parametrize("refusal", [BudgetExceeded, OSError])
def test_a_refused_charge_leaves_no_noise_no_grant_and_no_guarantee(private, refusal):
    log: list[str] = []
    with opened(private, ledger=Budget(log, refusal)) as session:
        session._source = CountingNoise(log)
        hidden = session.hide(MOMENT)
        with pytest.raises(refusal):
            session.plan(it=SymmetricGaussian.of(hidden))
        with pytest.raises(refusal):
            session.plan(runs=stopped(hidden))
        assert log == ["charge", "charge"]
        assert session._left == {}
        assert session.guarantee.epsilon == 0
    assert private.spent(delta=1e-6).epsilon == 0  # the ledger refused before memory was charged


def test_random_stopping_is_charged_before_the_number_of_runs_is_drawn(private):
    from dpadapt.privacy.mechanisms import best_of_random_runs

    log: list[str] = []
    with opened(private, ledger=Budget(log)) as session:
        session._source = CountingNoise(log)
        hidden = session.hide(MOMENT)

        def run(grants):
            return float(session.release(grants.moment, hidden)[0, 0]), None

        best_of_random_runs(session, {"moment": SymmetricGaussian.of(hidden)}, run)
    assert log[0] == "charge"
    assert log.count("charge") == 1
    assert "noise" in log


def test_one_plan_a_session(private):
    with opened(private) as session:
        hidden = session.hide(MOMENT)
        session.plan(it=SymmetricGaussian.of(hidden))
        with pytest.raises(PrivacyError, match="planned already"):
            session.plan(it=SymmetricGaussian.of(hidden))
        with pytest.raises(PrivacyError, match="planned already"):
            session.plan(runs=stopped(hidden))
        with pytest.raises(PrivacyError, match="split comes first"):
            session.split(0.5)
    assert len(private.spent(delta=1e-6).events) == 1


# Grants ----------------------------------------------------------------------------------------


def test_a_grant_is_used_up(private):
    with opened(private) as session:
        hidden = session.hide(MOMENT)
        grant = session.plan(it=SymmetricGaussian.of(hidden, count=3)).it
        for _ in range(3):
            session.release(grant, hidden)
        for _ in range(2):
            with pytest.raises(PrivacyError, match="as often as it was planned"):
                session.release(grant, hidden)


def test_a_grant_that_was_copied_changed_or_made_up_buys_nothing(private):
    with opened(private) as session:
        hidden = session.hide(MOMENT)
        grant = session.plan(it=SymmetricGaussian.of(hidden)).it
        for false in (copy.copy(grant), Grant(grant.mechanism, grant.scale)):
            with pytest.raises(PrivacyError, match="must come from this session"):
                session.release(false, hidden)
        with pytest.raises(AttributeError):
            grant.scale = 1e-9
        with pytest.raises(AttributeError):
            hidden.sensitivity = 1e-9
        with pytest.raises(AttributeError):
            grant.mechanism.count = 99


def test_grants_and_hidden_statistics_stay_in_their_session(private):
    with opened(private) as session, opened(private) as other:
        hidden, theirs = session.hide(MOMENT), other.hide(MOMENT)
        grant = session.plan(it=SymmetricGaussian.of(hidden)).it
        their_grant = other.plan(it=SymmetricGaussian.of(theirs)).it
        for wrong in ((their_grant, hidden), (grant, theirs)):
            with pytest.raises(PrivacyError, match="must come from this session"):
                session.release(*wrong)
        session.release(grant, hidden)  # and the refusals have used nothing up


def test_a_sum_of_absolute_values_is_no_less_sensitive_than_the_euclidean_norm(private):
    with opened(private) as session:
        hidden = session.hide(Mean())
        grant = session.plan(it=Laplace("mean", hidden.sensitivity / 2, dimension=2)).it
        with pytest.raises(PrivacyError, match="more sensitive"):
            session.release(grant, hidden)


@pytest.mark.parametrize("kind", [Laplace, LaplaceMin, Exponential])
def test_a_euclidean_sensitivity_is_no_other_one(private, kind):
    """The sum of d absolute values is up to sqrt(d) of it, a difference of two up to sqrt(2)."""
    with opened(private) as session:
        hidden = session.hide(Mean())
        least = math.sqrt(2) * hidden.sensitivity
        grants = session.plan(
            less=kind.of(hidden), enough=kind("mean", least * (1 + 1e-9), dimension=2)
        )
        with pytest.raises(PrivacyError, match="more sensitive"):
            session.release(grants.less, hidden)
        session.release(grants.enough, hidden)


def test_a_euclidean_sensitivity_is_none_in_the_norm_of_a_kernel(private):
    """With a tiny covariance the noise would be tiny, and the charge the same."""
    with opened(private) as session:
        hidden = session.hide(Mean())
        grant = session.plan(it=GaussianPool("mean", 9.0, dimension=2)).it
        with pytest.raises(PrivacyError, match="more sensitive"):
            session.release(grant, hidden, covariance=1e-30 * np.eye(2))
        claimed = session.derive(hidden, np.copy, sensitivity=9.0)
        assert session.release(grant, claimed, covariance=np.eye(2)).shape == (2,)


def test_a_point_of_a_ball_is_paid_for_by_its_radius(private):
    with opened(private) as session:
        hidden = session.hide(Mean())
        points = ExponentialOnBall("point", 2.0 * hidden.sensitivity, count=2)
        larger = replace(points, radius=1.01)
        wide, grant = session.plan(each=[larger, points]).each
        with pytest.raises(PrivacyError, match="more sensitive"):
            session.release(wide, hidden)
        assert session.release(grant, hidden).shape == (2,)


@pytest.mark.parametrize("kind", [Gaussian, Laplace, Exponential, RandomisedResponse])
def test_a_grant_is_for_the_mechanism_that_was_planned(private, kind):
    """There is one verb: what is drawn is what was charged for, whatever else is asked."""
    with opened(private) as session:
        hidden = session.hide(Mean())
        chosen = session.derive(hidden, lambda v: v[0], sensitivity=1.0)
        grant = session.plan(it=kind("x", 1.0, dimension=2)).it
        session.release(grant, chosen, categories=2, covariance=np.eye(1))
        assert type(grant.mechanism) is kind
        (event,) = session.guarantee.events
        assert event == grant.mechanism.event(grant.scale, session._source)
        with pytest.raises(PrivacyError, match="as often as it was planned"):
            session.release(grant, chosen, categories=2)


def test_a_grant_is_for_one_part(private):
    with opened(private) as session:
        session.split(0.5)
        train, held = session.hide(MOMENT, "train"), session.hide(MOMENT, "holdout")
        grants = session.plan(one=SymmetricGaussian.of(train), other=SymmetricGaussian.of(held))
        grant, held_grant = grants.one, grants.other
        for wrong in ((grant, held), (held_grant, train)):
            with pytest.raises(PrivacyError, match="the grant is for part"):
                session.release(*wrong)
        session.release(grant, train)
        session.release(held_grant, held)


def test_what_was_hidden_before_a_split_cannot_be_released_after_it(private):
    with opened(private) as session:
        everything = session.hide(MOMENT)
        session.split(0.5)
        with pytest.raises(PrivacyError, match="part"):
            session.plan(it=SymmetricGaussian.of(everything))
        planned = SymmetricGaussian("moment", everything.sensitivity, 4, part="train")
        grant = session.plan(it=planned).it
        with pytest.raises(PrivacyError, match="part"):
            session.release(grant, everything)


def test_nothing_works_after_the_session_is_closed(private):
    with opened(private) as session:
        hidden = session.hide(MOMENT)
        grant = session.plan(it=SymmetricGaussian.of(hidden)).it
    closed = [
        lambda: session.release(grant, hidden),
        lambda: session.hide(MOMENT),
    ]
    for use in closed:
        with pytest.raises(PrivacyError, match="closed"):
            use()
    with opened(private) as unused:
        pass
    with pytest.raises(PrivacyError, match="closed"):
        unused.plan(it=SymmetricGaussian.of(hidden))


def test_a_more_sensitive_statistic_needs_a_larger_grant(private):
    with opened(private) as session:
        small, large = session.hide(Mean(0.5)), session.hide(Mean(1.0))
        grant = session.plan(it=Gaussian.of(small, count=2)).it
        with pytest.raises(PrivacyError, match="more sensitive"):
            session.release(grant, large)
        session.release(grant, small)


def test_more_numbers_than_planned_are_refused(private):
    """The grid of discrete noise, and a randomised answer, are paid for number by number."""
    with opened(private) as session:
        hidden = session.hide(Mean())
        grants = session.plan(
            one=Gaussian("one", 1.0), answer=RandomisedResponse("bit", dimension=9)
        )
        three = session.derive(hidden, lambda v: [0, 1, 1])
        with pytest.raises(PrivacyError, match="fewer numbers"):
            session.release(grants.one, hidden)
        with pytest.raises(PrivacyError, match="fewer numbers"):
            session.release(grants.answer, three, categories=2)


def test_every_number_of_a_hidden_table_counts(private):
    class Table(Mean):
        def shape(self, n_columns):
            return (n_columns, 3, 2)

        def block(self, X, y):
            return np.zeros((2, 3, 2))

    with opened(private) as session:
        assert Gaussian.of(session.hide(Table())).dimension == 12
        assert Gaussian.of(session.hide(MOMENT)).dimension >= 3


# Hidden ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        *(lambda h, p=p: pickle.dumps(h, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
        copy.copy,
        copy.deepcopy,
        lambda h: joblib.dump(h, io.BytesIO()),
        np.asarray,
        np.array,
        np.sum,
        lambda h: h + 1,
        lambda h: np.ones((2, 2)) @ h,
        lambda h: h < h,
        lambda h: h[0],
        len,
        iter,
        float,
        vars,
        lambda h: f"{h:.3f}",
        lambda h: np.save(io.BytesIO(), h),
        pd.DataFrame,
    ],
)
def test_a_hidden_statistic_cannot_be_read(private, use):
    with opened(private) as session:
        hidden = session.hide(MOMENT)
        with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
            use(hidden)
        assert "0.07" not in str(caught.value)  # SECRET squared


def test_a_hidden_statistic_prints_its_label_and_shape(private):
    with opened(private) as session:
        hidden = session.hide(MOMENT)
    assert repr(hidden) == str(hidden) == "Hidden('second moment', shape=(2, 2))"
    with pytest.raises(TypeError, match="session cannot be copied or pickled"):
        pickle.dumps(session)
    with pytest.raises(TypeError, match="session cannot be copied or pickled"):
        copy.copy(session)


# A function of a hidden value ------------------------------------------------------------------


def told(error: BaseException) -> str:
    """Everything an error says, its causes and contexts included, the source lines left out."""
    text = ""
    while error is not None:
        text += f"{type(error).__name__} {error} {error.args} "
        error = error.__cause__ or error.__context__
    return text


def fail(value):
    raise ValueError(f"the value is {value}")


def test_a_function_that_raises_tells_nothing(private):
    with opened(private) as session:
        hidden = session.hide(Mean())
        with pytest.raises(PrivacyError, match=r"ValueError.*withheld") as caught:
            session.derive(hidden, fail, sensitivity=1.0)
    with pytest.raises(ValueError, match=r"0\.27"):  # power: the function itself would tell
        fail(hidden._value)
    assert "0.27" not in told(caught.value)
    assert "0.27" not in "".join(traceback.format_exception(caught.value))


def test_a_query_that_raises_tells_nothing(private):
    class Fussy(Mean):
        def block(self, X, y):
            return fail(X)

    with opened(private) as session, pytest.raises(PrivacyError, match="withheld") as caught:
        session.hide(Fussy())
    assert "0.27" not in told(caught.value)


def test_no_warning_escapes(private):
    def warn(value):
        warnings.warn(f"the value is {value}", stacklevel=2)
        return np.log(value - value) * 0 + np.array([1e308]) * 1e308

    class Warning_(Mean):
        def block(self, X, y):
            return warn(X.sum(axis=0))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with opened(private) as session:
            hidden = session.hide(Warning_())
            grant = session.plan(it=Gaussian.of(hidden, count=2)).it
            session.release(grant, hidden)
            session.release(grant, session.derive(hidden, warn, sensitivity=hidden.sensitivity))
    assert seen == []


TINY = np.full((50, 2), 1e-160)  # squares are subnormal: most operations on them underflow
HUGE = np.full((50, 2), 1e308)


@pytest.mark.parametrize(
    "rows", [TINY, HUGE, np.full((50, 2), np.nan)], ids=["tiny", "huge", "nan"]
)
@pytest.mark.parametrize("noise", ["secure", "exact"])
def test_numpy_settings_of_the_user_do_not_raise_on_private_values(rows, noise):
    settings = np.seterr(all="raise")
    try:
        with Private(rows).open(epsilon=1.0, delta=1e-6, noise=noise) as session:
            moment, mean = session.hide(MOMENT), session.hide(Mean(1e3))
            grants = session.plan(
                moment=SymmetricGaussian.of(moment),
                mean=Gaussian.of(mean),
                process=GaussianPool.of(mean),
                l1=Laplace("l1", 1e9, dimension=2),
                choice=Exponential("choice", 1e9),
                bit=RandomisedResponse("bit"),
            )

            def derived(function):
                return session.derive(mean, function, sensitivity=mean.sensitivity)

            session.release(grants.moment, moment)
            session.release(grants.mean, derived(lambda v: v * 1e-300 * 1e-10))
            session.release(grants.process, derived(np.copy), covariance=np.eye(2))
            session.release(grants.l1, derived(lambda v: np.exp(1e3 * (1 + v))))
            session.release(grants.choice, derived(lambda v: v / (v - v)))
            session.release(grants.bit, derived(lambda v: np.log(-1 - v[0])), categories=2)
        assert session.guarantee.epsilon <= 1.0
    finally:
        np.seterr(**settings)


def test_what_is_not_finite_does_not_come_out(private):
    class Overflowing(Mean):
        def block(self, X, y):
            return np.array([np.inf, np.nan])

    with opened(private) as session:
        hidden = session.hide(Overflowing())
        grant = session.plan(it=Gaussian.of(hidden, count=2)).it
        lost = session.derive(hidden, lambda v: v * np.nan, sensitivity=hidden.sensitivity)
        assert np.isfinite(session.release(grant, hidden)).all()
        assert np.isfinite(session.release(grant, lost)).all()


def test_a_function_cannot_change_what_is_hidden(private):
    def spoil(value):
        value += 1e6
        return value

    with opened(private) as session:
        hidden = session.hide(Mean())
        before = hidden._value.copy()
        with pytest.raises(PrivacyError, match="withheld"):
            session.derive(hidden, spoil, sensitivity=0.01)
        same = session.derive(hidden, lambda v: v, sensitivity=0.01)
        np.testing.assert_array_equal(hidden._value, before)
        np.testing.assert_array_equal(same._value, before)
        assert not hidden._value.flags.writeable
        assert not same._value.flags.writeable


def test_a_function_has_no_way_to_what_is_hidden(private):
    def spoil(value):
        for each in (value, value.base):
            if each is not None:
                each.flags.writeable = True
                each *= 1000
        return value

    with opened(private) as session:
        hidden = session.hide(Mean())
        before = hidden._value.copy()
        session.derive(hidden, spoil, sensitivity=0.01)
        np.testing.assert_array_equal(hidden._value, before)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_ends_a_program_says_nothing_of_a_value(private, kind):
    def leave(value):
        raise kind(f"the value is {value}")

    with opened(private) as session:
        hidden = session.hide(Mean())
        with pytest.raises(kind) as caught:
            session.derive(hidden, leave, sensitivity=1.0)
    assert "0.27" not in str(caught.value)
    assert getattr(caught.value, "code", 1) == 1
    with pytest.raises(SystemExit) as caught, opened(private) as session:
        session.derive(session.hide(Mean()), lambda _: sys.exit(3), sensitivity=1.0)
    assert caught.value.code == 3  # a number may be said


def test_a_signal_that_ends_a_program_keeps_its_number(private):
    def leave(value):
        raise Stopped(signal.SIGTERM)

    with opened(private) as session:
        hidden = session.hide(Mean())
        with pytest.raises(Stopped) as caught:
            session.derive(hidden, leave, sensitivity=1.0)
    assert caught.value.code == 128 + signal.SIGTERM


# The guarantee ---------------------------------------------------------------------------------

MIXES = {
    "gaussian": [Gaussian("a", 0.3, dimension=5)],
    "two gaussians": [Gaussian("a", 0.3), Gaussian("b", 2.0, count=7)],
    "weights": [Gaussian("a", 1.0, weight=3.0), Gaussian("b", 1.0)],
    "laplace": [Laplace("a", 0.1, dimension=3)],
    "argmin": [Exponential("a", 0.1)],
    "argmins": [Exponential("a", 0.1, count=20)],
    "response": [RandomisedResponse("a", count=2)],
    "gaussian and argmin": [Gaussian("a", 0.3), Exponential("b", 0.1)],
    "all": [
        Gaussian("a", 0.3, count=3),
        Laplace("b", 0.1),
        Exponential("c", 0.1, count=2, weight=0.5),
        RandomisedResponse("d", weight=0.5),
    ],
}


@pytest.mark.parametrize("noise", ["secure", "exact"])
@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES.keys())
def test_the_guarantee_is_what_was_planned_and_spends_what_was_asked(private, mix, noise):
    with private.open(epsilon=1.0, delta=1e-6, noise=noise) as session:
        grants = session.plan(mix=mix).mix
    guarantee = session.guarantee
    assert guarantee.epsilon <= 1.0
    assert guarantee.epsilon >= 1.0 - 1e-3
    assert guarantee.delta == 1e-6
    assert guarantee.noise == noise
    multipliers = [g.scale * g.mechanism.weight / unit(g.mechanism) for g in grants]
    assert np.allclose(multipliers, multipliers[0])
    expected = tuple(m.event(m.scale_at(multipliers[0]), session._source) for m in mix)
    assert [e.kind for e in guarantee.events] == [e.kind for e in expected]
    for event, grant in zip(guarantee.events, grants, strict=True):
        assert event.label == grant.mechanism.label
        assert event.count == grant.mechanism.count
        if event.kind == "pure":
            assert event.epsilon == 1 / grant.scale
        else:
            assert event.scale == grant.scale
            assert event.sensitivity >= grant.mechanism.sensitivity
            assert event.sensitivity == pytest.approx(grant.mechanism.sensitivity, rel=1e-6)
    assert private.spent(delta=1e-6).epsilon == guarantee.epsilon


def unit(mechanism: Noise) -> float:
    return 1.0 if isinstance(mechanism, RandomisedResponse) else mechanism.sensitivity


def test_pure_requests_fit_a_budget_without_delta(private):
    with opened(private, delta=0.0) as session:
        session.plan(a=Laplace("a", 0.1), b=Exponential("b", 0.1))
    assert 1 - 1e-3 <= session.guarantee.epsilon <= 1
    with opened(private, delta=0.0) as session, pytest.raises(ValueError, match="delta is 0"):
        session.plan(a=Gaussian("a", 0.1))


def test_many_pure_requests_fit_a_budget_without_delta(private):
    """A delta that underflows is not a delta of zero."""
    with opened(private, delta=0.0) as session:
        session.plan(a=Exponential("a", 0.1, count=1000))
    assert 1 - 1e-3 <= session.guarantee.epsilon <= 1


def test_without_a_plan_nothing_is_claimed(private):
    with opened(private) as session:
        session.hide(MOMENT)
    assert session.guarantee.epsilon == 0
    assert session.guarantee.noise == "none"


def test_the_bounds_and_caveats_are_stated(private):
    with opened(private) as session:
        session.plan(it=SymmetricGaussian.of(session.hide(MOMENT)))
    assert session.guarantee.bounds == {"private rows": 200, "radius (second moment)": 1.0}
    assert any("seeded" in caveat for caveat in session.guarantee.caveats)
    with private.open(epsilon=1.0, delta=1e-6) as session:
        session.plan(it=SymmetricGaussian.of(session.hide(MOMENT)))
    assert not any("seeded" in caveat for caveat in session.guarantee.caveats)
    assert any("float64" in caveat for caveat in session.guarantee.caveats)
    with private.open(epsilon=1.0, delta=1e-6, noise="exact") as session:
        session.plan(it=SymmetricGaussian.of(session.hide(MOMENT)))
    assert session.guarantee.caveats == ()


@pytest.mark.parametrize(("delta", "expected"), [(0.006, True), (0.005, False), (1e-6, False)])
def test_a_delta_above_one_over_the_rows_has_a_caveat(private, delta, expected):
    with opened(private, delta=delta) as session:
        session.plan(it=SymmetricGaussian.of(session.hide(MOMENT)))
    caveat = any(
        "larger than one over the 200 private rows" in c for c in session.guarantee.caveats
    )
    assert caveat is expected


def test_plan_refuses_a_mixture_of_parts_and_no_parts(private):
    whole, train, holdout = (Gaussian("a", 1.0, part=p) for p in ("all", "train", "holdout"))
    with opened(private) as session:
        for nothing in ({}, {"none": []}):
            with pytest.raises(PrivacyError, match="at least one mechanism"):
                session.plan(**nothing)
        for wrong in ({"a": train}, {"a": [holdout]}, {"a": whole, "b": train}):
            with pytest.raises(PrivacyError, match="part"):
                session.plan(**wrong)
        session.split(0.5)
        for wrong in ({"a": whole}, {"a": [train, whole]}):
            with pytest.raises(PrivacyError, match="part"):
                session.plan(**wrong)
        with pytest.raises(PrivacyError, match="part"):
            session.plan(a=Gaussian("a", 1.0, part="elsewhere"))
        assert session.guarantee.epsilon == 0
        with pytest.raises(PrivacyError, match="after split"):
            session.hide(MOMENT)
        with pytest.raises(PrivacyError, match="split comes first, once"):
            session.split(0.5)
    with opened(private) as session, pytest.raises(PrivacyError, match="after split"):
        session.hide(MOMENT, "train")


def test_a_mechanism_checks_its_arguments():
    for name, wrong in {"sensitivity": 0.0, "dimension": 0, "count": 0, "weight": -1.0}.items():
        with pytest.raises(ValueError, match=name):
            Gaussian("x", **{name: wrong})


# Parts -----------------------------------------------------------------------------------------


class Positions(RowMean):
    """Hides which positions are in a part: row i has a one in column i (test only)."""

    label = "positions"
    cleaning = Cleaning(radius=1.0)
    magnitude = 1.0

    def shape(self, n_columns):
        return (n_columns,)

    def block(self, X, y):
        return X.sum(axis=0)

    def sensitivity(self, n_rows):
        return 2 / n_rows


def positions(n: int, holdout: float) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    with opened(Private(np.eye(n))) as session:
        session.split(holdout)
        sizes = session.size("train"), session.size("holdout")
        parts = [
            np.flatnonzero(np.rint(session.hide(Positions(), part)._value * max(1, size)))
            for part, size in zip(("train", "holdout"), sizes, strict=True)
        ]
    return *parts, sizes


@pytest.mark.parametrize("n", [1, 2, 3, 10, 101, 400])
@pytest.mark.parametrize("holdout", [0.5, 0.1, 0.2, 1 / 3, 0.7, 0.999, 1e-3])
def test_parts_are_disjoint_cover_everything_and_are_evenly_spread(n, holdout):
    train, held, sizes = positions(n, holdout)
    assert sorted([*train, *held]) == list(range(n))
    assert (len(train), len(held)) == sizes
    assert len(held) == math.floor(n * holdout)
    # every stretch of the sample holds its share, up to one row
    counts = np.concatenate([[0], np.cumsum(np.isin(np.arange(n), held))])
    for start in range(0, n, max(1, n // 7)):
        for stop in range(start, n + 1, max(1, n // 5)):
            share = (stop - start) * holdout
            assert abs(counts[stop] - counts[start] - share) <= 1 + 1e-9


@pytest.mark.parametrize("block", [1, 7, 64, 333])
def test_parts_do_not_depend_on_the_size_of_blocks(monkeypatch, block):
    train, held, sizes = positions(333, 0.3)
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", block)
    again_train, again_held, again_sizes = positions(333, 0.3)
    assert (train == again_train).all()
    assert (held == again_held).all()
    assert sizes == again_sizes


def test_training_and_choice_compose_in_parallel(private):
    """Property test 18: the choice on the hold-out leaves the training budget untouched."""
    with opened(private) as alone:
        alone.split(0.25)
        grant_alone = alone.plan(it=SymmetricGaussian.of(alone.hide(MOMENT, "train"))).it
    with opened(private) as session:
        session.split(0.25)
        hidden = session.hide(MOMENT, "train")
        grants = session.plan(
            moment=SymmetricGaussian.of(hidden), choice=holdout_choice(session, bound=1.0)
        )
        train, choice = grants.moment, grants.choice
        session.release(train, hidden)
        losses = CandidateLosses(lambda X, y: X**2, 2, 1.0, Cleaning(radius=1.0))
        assert session.release(choice, hide_losses(session, losses, "holdout")) in (0, 1)
    assert train.scale == grant_alone.scale
    # the exponential mechanism has the whole epsilon too: scale 2B / (n_val eps), or less
    assert choice.scale <= 2 * 1.0 / (session.size("holdout") * 1.0) * (1 + 1e-6)
    guarantee = session.guarantee
    assert 1 - 1e-3 <= guarantee.epsilon <= 1
    (event,) = guarantee.events
    assert event.kind == "parallel"
    # power: had they been charged one after the other, the budget would have been passed
    from dpadapt.privacy.accounting.composition import compose_epsilon

    assert compose_epsilon([e for branch in event.branches for e in branch], 1e-6) > 1.2


def test_a_changed_row_moves_one_part_only():
    X = np.random.default_rng(0).normal(size=(40, 2))
    other = X.copy()
    other[17] = 0
    values = []
    for rows in (X, other):
        with opened(Private(rows)) as session:
            session.split(0.4)
            values.append([session.hide(MOMENT, p)._value for p in ("train", "holdout")])
    changed = [not np.array_equal(a, b) for a, b in zip(*values, strict=True)]
    assert sorted(changed) == [False, True]


# Sums ------------------------------------------------------------------------------------------


def test_sums_are_compensated(monkeypatch):
    """Neumaier's sum over blocks against exact arithmetic, where a plain sum loses digits."""
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", 1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000) * 10.0 ** rng.uniform(-12, 3, size=3000)
    x = np.concatenate([x, [1e8], -x[::-1] * (1 + 1e-12), [-1e8]])
    with opened(Private(x[:, None])) as session:
        ours = session.hide(Mean(radius=1e9))._value[0] * len(x)
    exact = float(sum(map(Fraction, x)))
    assert exact == math.fsum(x)
    assert ours == pytest.approx(exact, rel=1e-12)
    plain = 0.0
    for value in x:
        plain += value
    assert abs(plain - exact) > 1e3 * abs(ours - exact)


def test_the_sensitivity_holds_an_allowance_for_rounding(private):
    with opened(private) as session:
        hidden = session.hide(MOMENT)
    added = hidden.sensitivity - MOMENT.sensitivity(200)
    worst = rows_module.BLOCK_ROWS * np.finfo(float).eps * MOMENT.magnitude
    assert worst <= added <= 4 * worst  # two sums, each off by at most BLOCK_ROWS * eps / 2


@pytest.mark.parametrize("seed", range(3))
def test_blocks_are_off_by_less_than_the_allowance(seed):
    """Two neighbours, summed exactly: the computed means move by no more than stated."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=40_000)
    other = x.copy()
    x[123], other[123] = 1.0, 0.0
    with opened(Private(x[:, None])) as one, opened(Private(other[:, None])) as two:
        hidden, neighbour = one.hide(MOMENT), two.hide(MOMENT)
    exact = math.fsum(x**2) / len(x)
    allowance = hidden.sensitivity - MOMENT.sensitivity(len(x))
    assert abs(hidden._value[0, 0] - exact) <= allowance / 2
    assert abs(hidden._value[0, 0] - neighbour._value[0, 0]) <= hidden.sensitivity


# Progress --------------------------------------------------------------------------------------


def test_progress_counts_rows(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", 30)
    seen: list[tuple[int, int]] = []
    private = Private(np.ones((100, 1)))
    with opened(private, progress=lambda done, total: seen.append((done, total))) as session:
        session.hide(MOMENT)
        assert seen == [(30, 100), (60, 100), (90, 100), (100, 100)]
        seen.clear()
        session.split(0.3)
        session.hide(MOMENT, "holdout")
        assert seen == [(30, 100), (60, 100), (90, 100), (100, 100)]


def test_a_file_and_an_array_hide_the_same(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.to_parquet(tmp_path / "rows.parquet")
    values = []
    sources = [Private(X), Private(frame), Private.from_parquet(tmp_path / "rows.parquet")]
    for source in sources:
        with opened(source) as session:
            session.split(0.2)
            values.append(session.hide(MOMENT, "train")._value)
    assert np.allclose(values[0], values[1], rtol=1e-14)
    assert np.allclose(values[0], values[2], rtol=1e-14)


def test_what_a_row_map_raises_is_withheld(private):
    class Tells(Cleaning):
        def __call__(self, table, labels=None):
            raise RuntimeError(f"the row is {SECRET}")

    def hide_mean(session):
        mean = Mean()
        mean.cleaning = Tells(radius=1.0)
        return session.hide(mean)

    with opened(private) as session:
        for hide in (lambda: session.hide(Rows(Tells(radius=1.0))), lambda: hide_mean(session)):
            with pytest.raises(PrivacyError, match="withheld") as caught:
                hide()
            assert str(SECRET) not in str(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
