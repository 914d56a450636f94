"""A session as its enemies see it: no door of their own, no word, no row that stays with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpadapt.papers.hybrid.doors.descent import Descent, DrawnDescent
from dpadapt.papers.hybrid.doors.draws import LearnOnDraws, draws
from dpadapt.papers.hybrid.doors.parity import Parity
from dpadapt.papers.hybrid.doors.weights import RowWeights, draw_rate
from dpadapt.papers.selection.random_stopping import RandomStopping
from dpadapt.privacy import Cleaning, PrivacyError, Private, Rows
from dpadapt.privacy.core.mechanism import Mechanism
from dpadapt.privacy.core.statistic import Statistic
from dpadapt.privacy.mechanisms import EachRow, Gaussian, GaussianInside, GaussianPurse
from dpadapt.privacy.mechanisms import gaussian as gaussian_module
from dpadapt.privacy.statistics import SecondMoment

SECRET = 0.271828
MOMENT = SecondMoment(Cleaning(radius=1.0))


def opened(**options):
    rows = np.full((50, 2), SECRET)
    settings = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0, **options}
    return Private(rows, np.sign(np.arange(50) - 25.0)).open(**settings)


# mechanisms of one's own


@dataclass(frozen=True)
class Cheap(Gaussian):
    """A subclass that says that it costs nothing, and adds nothing."""

    def event(self, scale, source):
        return source.gaussian_event(self.label, 1e-9, 1.0, 1, 1)

    def release(self, hidden, scale, source, **_):
        return hidden._value


class Own(Mechanism):
    label = "own"

    def scale_at(self, multiplier):
        return multiplier

    def events(self, scale, source):
        return ()

    def admit(self, hidden, **public):
        return 0

    def release(self, hidden, scale, source, **public):
        return hidden._value


class LooksAlike:
    """Not even a mechanism, but with all of its words."""

    label, part, printed, fixed, secret_course, count = "like", "all", None, False, False, 1
    scale_at, events, admit, release = Own.scale_at, Own.events, Own.admit, Own.release

    def check(self, relation, source):
        pass


# as if it stood in the package
Smuggled = type("Gaussian", (Gaussian,), {"__module__": gaussian_module.__name__})
FOREIGN = {
    "subclass": Cheap("x"),
    "own": Own(),
    "look-alike": LooksAlike(),
    "smuggled": Smuggled("x"),
    "text": "gaussian",
    "none": None,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_no_mechanism_from_outside_is_planned(name):
    foreign = FOREIGN[name]
    with opened() as session:
        for wrong in (foreign, [Gaussian("x"), foreign]):
            with pytest.raises(PrivacyError, match="only mechanisms of"):
                session.plan(fine=Gaussian("x"), it=wrong)
        runs = RandomStopping((("fine", Gaussian("x")), ("it", foreign)), 0.0, 0.5)
        with pytest.raises(PrivacyError, match="only mechanisms of"):
            session.plan(runs=runs)
        assert session.guarantee.epsilon == 0
        assert not session._left
        session.plan(it=Gaussian("x"))  # and nothing was used up


def test_runs_within_runs_are_refused():
    inner = RandomStopping((("x", Gaussian("x")),), 0.0, 0.5)
    with opened() as session, pytest.raises(PrivacyError, match="single releases"):
        session.plan(it=RandomStopping((("inner", inner),), 0.0, 0.5))


def test_runs_after_the_session_is_closed_release_nothing():
    with opened() as session:
        hidden = session.hide(MOMENT)
        stopping = RandomStopping((("moment", Gaussian.of(hidden)),), 0.0, 0.01)
        runs = session.plan(runs=stopping).runs
    for grants in runs:
        with pytest.raises(PrivacyError, match="closed"):
            session.release(grants.moment, hidden)


def test_names_of_grants_can_be_changed_and_buy_nothing():
    with opened() as session, opened() as other:
        hidden = session.hide(MOMENT)
        grants = session.plan(a=Gaussian.of(hidden), b=[Gaussian.of(hidden)])
        grants.a = other.plan(a=Gaussian.of(other.hide(MOMENT), count=99)).a
        with pytest.raises(PrivacyError, match="from this session"):
            session.release(grants.a, hidden)
        grants.a = grants.b[0]
        session.release(grants.a, hidden)
        with pytest.raises(PrivacyError, match="as often as"):
            session.release(grants.b[0], hidden)


def test_what_fails_after_it_was_counted_stays_counted():
    """Noise may have been drawn, and a failure may tell something: it is not for free."""

    def fails(value, noise):
        raise RuntimeError(SECRET)

    with opened() as session:
        hidden = session.hide(Rows(Cleaning(radius=1.0)))
        grant = session.plan(it=GaussianInside("inside", 1.0, 2)).it
        with pytest.raises(PrivacyError, match="withheld"):
            session.release(grant, hidden, function=fails)
        with pytest.raises(PrivacyError, match="as often as"):
            session.release(grant, hidden, function=lambda value, noise: noise)


def test_a_descent_says_twice_the_same():
    class Grows(Descent):
        """Short when it is counted, long when it runs."""

    rows = Cleaning(radius=1.0, label_range=(-1.0, 1.0))
    facts = {"clip": 1.0, "radius": 1.0, "steps": 5}
    with opened() as session:
        planned = DrawnDescent.planned(Descent(rows, **facts), "d", 1.0, 50, printed=9.0)
        grant = session.plan(it=planned).it
        drawn = draws(RowWeights(session), 1.0)
        with pytest.raises(PrivacyError, match="must be a Descent"):
            session.release(grant, drawn, descent=Grows(rows, **facts))
        session.release(grant, drawn, descent=Descent(rows, **facts))


# words


class Tells(SecondMoment):
    def block(self, X, y):
        raise PrivacyError(f"the rows are {X}")


class TellsLate(SecondMoment):
    """Catches its own error, and then has the session refuse."""

    def block(self, X, y):
        try:
            raise ValueError(f"the rows are {X}")
        except ValueError:
            self.session.release(None, self.hidden)


def of_a_statistic(session):
    session.hide(Tells(Cleaning(radius=1.0)))


def of_a_context(session):
    late = TellsLate(Cleaning(radius=1.0))
    object.__setattr__(late, "session", session)
    object.__setattr__(late, "hidden", session.hide(MOMENT))
    session.hide(late)


def tell(value, *_):
    raise PrivacyError(f"the value is {value}")


def of_a_function(session):
    session.derive(session.hide(MOMENT), tell)


def of_a_computation(session):
    grant = session.plan(it=GaussianInside("inside", 1.0, 2)).it
    session.release(grant, session.hide(MOMENT), function=tell)


def of_a_learner(session):
    planned = LearnOnDraws("learner", draws=5, rate=draw_rate(1.0, 50), delta=1e-9)
    grant = session.plan(it=planned).it

    def learner(sample):
        tell(next(iter(sample._rows.blocks())))

    session.release(grant, draws(RowWeights(session), 1.0), size=5, learner=learner)


def of_a_row_map(session):
    class Map(Cleaning):
        def __call__(self, table, labels=None):
            tell(table)

    session.hide(Rows(Map(radius=1.0)))


ENEMIES = {
    "statistic": of_a_statistic,
    "context": of_a_context,
    "function": of_a_function,
    "computation": of_a_computation,
    "learner": of_a_learner,
    "row map": of_a_row_map,
}


@pytest.mark.parametrize("enemy", ENEMIES)
def test_a_privacy_error_of_others_is_withheld(enemy):
    with opened() as session, pytest.raises(PrivacyError) as caught:
        ENEMIES[enemy](session)
    error = caught.value
    assert "0.27" not in f"{error} {error.args}"
    assert error.__cause__ is None
    assert error.__context__ is None


def test_refusals_of_the_session_itself_are_still_told():
    class Curious(SecondMoment):
        def block(self, X, y):
            return X.T @ X

        def shape(self, n_columns):
            self.sample.n_rows  # noqa: B018
            return super().shape(n_columns)

    with opened(relation="add-remove") as session:
        curious = Curious(Cleaning(radius=1.0))
        object.__setattr__(curious, "sample", session._samples["all"])
        from dpadapt.privacy import RowSum

        with pytest.raises(PrivacyError, match="a secret under relation='add-remove'"):
            session.hide(RowSum(curious))


# rows


class Keeps(Statistic):
    """Holds on to what it is lent."""

    label = "keeps"

    def __init__(self):
        self.samples, self.blocks = [], []

    def entry_radius(self):
        return 1.0

    def sensitivity_on(self, sample):
        self.samples.append(sample)
        return 1.0

    def reduce(self, sample):
        self.samples.append(sample)
        self.blocks = iter(sample.blocks(Cleaning(radius=1.0)))
        return np.zeros(2)


@pytest.mark.parametrize("keep", [False])
def test_a_statistic_that_keeps_its_sample_has_nothing(keep):
    statistic = Keeps()
    with opened() as session:
        session.hide(statistic, keep=keep)
        assert len(statistic.samples) == 2
        for sample in statistic.samples:
            with pytest.raises(PrivacyError):
                sample.rows  # noqa: B018
            with pytest.raises(PrivacyError):
                list(sample.blocks(Cleaning(radius=1.0)))
        with pytest.raises(PrivacyError):
            next(statistic.blocks)
        assert session.hide(MOMENT).shape == (2, 2)  # the session itself goes on


def test_a_sensitivity_is_stated_without_a_row():
    class Peeks(Keeps):
        def sensitivity_on(self, sample):
            return float(np.max([X.max() for X, _ in sample.blocks(Cleaning(radius=1.0))]))

    with opened() as session:
        for use in (session.hide, session.sensitivity):
            with pytest.raises(PrivacyError):
                use(Peeks())


# claims


def test_a_claim_is_needed_to_release():
    with opened() as session:
        moment = session.hide(MOMENT)
        grants = session.plan(it=Gaussian.of(moment), purse=GaussianPurse())
        for derived in (
            session.derive(moment, np.trace),
            session.derive(session.derive(moment, np.copy, sensitivity=0.1), np.trace),
        ):
            with pytest.raises(PrivacyError, match="no bounded sensitivity"):
                session.release(grants.it, derived)
            with pytest.raises(PrivacyError, match="no bounded sensitivity"):
                session.release(grants.purse, derived, share=0.5)
        claimed = session.derive(moment, np.trace, sensitivity=moment.sensitivity)
        session.release(grants.it, claimed)


@pytest.mark.parametrize("claim", [math.nan, -1.0, -math.inf], ids=["nan", "negative", "minus"])
def test_a_claim_is_a_number(claim):
    class Claims(Keeps):
        def sensitivity_on(self, sample):
            return claim

    with opened() as session:
        with pytest.raises(PrivacyError, match="sensitivity must be a number"):
            session.derive(session.hide(MOMENT), np.trace, sensitivity=claim)
        with pytest.raises(PrivacyError, match="sensitivity must be a number"):
            session.hide(Claims())


def test_only_the_rows_themselves_are_rows():
    """Neither a label, nor a subclass that shows other rows."""

    class Others(Rows):
        def reduce(self, sample):
            return np.ones((50, 3))

    labelled = Cleaning(radius=1.0, label_range=(-1.0, 1.0))
    with opened() as session:
        rows = session.hide(Rows(labelled))
        grant = session.plan(it=Parity("parity")).it
        wrong = [
            session.derive(rows, np.copy, label="rows", sensitivity=0.0),
            session.hide(Others(labelled)),
            session.hide(MOMENT),
        ]
        for hidden in wrong:
            with pytest.raises(PrivacyError, match="this session has hidden"):
                session.release(grant, hidden, batches=2)
        assert len(session.release(grant, rows, batches=2)) == 2


def test_a_subclass_of_each_row_is_none():
    from dpadapt.privacy.mechanisms import FilteredGaussian

    class Wide(EachRow):
        pass

    with opened() as session:
        grant = session.plan(it=FilteredGaussian("x", 1.0, releases=2)).it
        with pytest.raises(PrivacyError, match="EachRow"):
            session.release(grant, session.hide(Wide(1.0)))
