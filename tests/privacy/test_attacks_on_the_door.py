"""What broke when the one door was attacked, and holds now."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from dpadapt import DiscrepancyRegressor, Private
from dpadapt.papers.hybrid.doors.descent import Descent
from dpadapt.papers.selection.random_stopping import RandomStopping
from dpadapt.privacy import Cleaning, PrivacyError, RowMean, Rows
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import GaussianEvent, LaplaceEvent
from dpadapt.privacy.core.hidden import claimed
from dpadapt.privacy.core.noise import SecureNoise
from dpadapt.privacy.mechanisms import (
    CandidateLosses,
    EachRow,
    Exponential,
    ExponentialOnBall,
    FilteredGaussian,
    FilteredMean,
    Gaussian,
    GaussianPurse,
    RandomisedResponse,
    hide_losses,
)
from dpadapt.privacy.recording.recording import recording
from dpadapt.privacy.statistics import MeanOuter, MeanVector, Prepared, SecondMoment

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
CLEANING = Cleaning(radius=1.0)
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(40, 2))


class Light(float):
    """A number that weighs nothing in products."""

    def __mul__(self, other):
        return 0.0

    __rmul__ = __truediv__ = __pow__ = __mul__


@pytest.mark.parametrize("bound", [np.array(240, dtype=np.uint8), Light(240.0)], ids=type)
def test_a_bound_that_calculates_as_it_likes_is_a_plain_number(bound):
    labels = Cleaning(300.0, label_range=(-1.0, 1.0))
    rows = [np.zeros((6, 2)) for _ in range(2)]
    rows[0][0], rows[1][0] = (240.0, 0.0), (0.0, 240.0)
    for query in (
        MeanOuter(labels, 3, bound),
        MeanVector(labels, lambda X, y: np.sign(X) * 1e9, 2, bound),
        *([SecondMoment(Cleaning(bound))] if isinstance(bound, float) else []),
    ):
        found = []
        for table in rows:
            with Private(table, np.zeros(6)).open(epsilon=1.0, delta=1e-6) as session:
                hidden = session.hide(query)
                found.append(hidden._value)
        assert np.linalg.norm(found[0] - found[1]) <= hidden.sensitivity
    with pytest.raises(PrivacyError, match="must be a number"):
        claimed(np.array(3, dtype=np.uint8))


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32])
def test_numbers_that_wrap_around_bound_what_they_say(kind):
    """np.uint8(200) ** 2 is 64: a fraction of the sensitivity was claimed."""
    with Private(X).open(**BUDGET) as session:
        right = session.hide(SecondMoment(Cleaning(radius=200.0))).sensitivity
        radius = kind(200)
        found = session.hide(SecondMoment(Cleaning(radius=radius))).sensitivity
    assert found == pytest.approx(right * (float(radius) / 200) ** 2)


def test_claims_clips_and_parameters_of_few_bits_are_refused_or_made_plain():
    assert 2 * Descent(CLEANING, np.uint8(200), 1.0, 5).clip == 400
    with Private(X).open(**BUDGET) as session:
        losses = CandidateLosses(lambda X, y: X, 2, np.uint8(200), CLEANING)
        assert hide_losses(session, losses).sensitivity == pytest.approx(400 / 40, rel=1e-6)
        hidden = session.hide(SecondMoment(CLEANING))
        with pytest.raises(PrivacyError, match="sensitivity must be a number"):
            session.derive(hidden, np.copy, sensitivity=np.uint8(3))
    with pytest.raises(TypeError, match="radius must not be a uint8"):
        DiscrepancyRegressor(**BUDGET, radius=np.uint8(200)).fit(X, X[:, 0])


@dataclass(frozen=True)
class Outer(FilteredMean):
    """Rows z z^T of length 1: twice the magnitude is more than the diameter root 2."""

    cleaning: Cleaning = CLEANING
    label: str = "outer products"
    magnitude = 1.0

    def shape(self, n_columns):
        return (n_columns, n_columns)

    def block(self, X, y):
        return X.T @ X

    def sensitivity(self, n_rows):
        return np.sqrt(2.0).item() / n_rows

    def norms(self, X, y):
        return np.einsum("ij,ij->i", X, X)

    def kept(self, X, y, keep):
        return X[keep].T @ X[keep]


def test_a_filter_is_not_cheaper_than_half_its_sensitivity():
    with Private(X).open(**BUDGET) as session:
        planned = FilteredGaussian("outer", 1.5, 4, count=2, releases=5)
        sums = session.release(session.plan(it=planned).it, session.hide(EachRow(radius=1.0)))
        with pytest.raises(PrivacyError, match="twice the magnitude"):
            sums.release(Outer())
    with Private(X).open(**BUDGET) as session:
        planned = FilteredGaussian("outer", 2.1, 4, count=2, releases=5)
        sums = session.release(session.plan(it=planned).it, session.hide(EachRow(radius=1.0)))
        assert sums.release(Outer()).shape == (2, 2)


def test_a_recording_leaves_other_threads_alone():
    found = []

    def other():
        found.append(SecureNoise().uniform(4).tolist())
        with Private(X).open(**BUDGET) as session:
            hidden = session.hide(SecondMoment(CLEANING))
            session.release(session.plan(it=Gaussian.of(hidden)).it, hidden)

    for _ in range(2):
        with recording() as heard:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert not heard.values
        assert not heard.facts
    assert found[0] != found[1]


class Budget:
    charged = 0

    def charge(self, events, label):
        Budget.charged += 1


def test_a_recording_charges_no_ledger_of_a_session_that_was_open_before():
    with Private(X).open(**BUDGET, ledger=Budget()) as session:
        hidden = session.hide(SecondMoment(CLEANING))
        with recording(), pytest.raises(PrivacyError, match="no ledger"):
            session.plan(it=Gaussian.of(hidden))
    assert not Budget.charged


@pytest.mark.parametrize("radius", [-1e5, 0.0, np.nan, np.inf])
def test_a_ball_has_a_radius(radius):
    with pytest.raises(ValueError, match="radius"):
        ExponentialOnBall("points", 1.0, radius=radius)


def test_the_radius_of_a_ball_is_planned_not_told():
    with Private(X).open(**BUDGET) as session:
        hidden = session.hide(SecondMoment(CLEANING))
        flat = session.derive(hidden, np.ravel, sensitivity=0.1)
        grant = session.plan(it=ExponentialOnBall("points", 0.1)).it
        z = session.release(grant, flat, radius=1e7)
    assert np.linalg.norm(z) <= 1


def test_a_claim_in_one_norm_is_none_in_another():
    losses = CandidateLosses(lambda X, y: np.tile(X[:, :1], 50), 50, 1.0, CLEANING)
    with Private(X).open(**BUDGET) as session:
        scores = hide_losses(session, losses)
        mechanisms = [Gaussian("x", 1.0, 50), Exponential("y", 1.0), GaussianPurse("z")]
        wrong, right, purse = session.plan(each=mechanisms).each
        with pytest.raises(PrivacyError, match="norm 'range'"):
            session.release(wrong, scores)
        with pytest.raises(PrivacyError, match="norm 'range'"):
            session.release(purse, scores, share=0.1)
        assert 0 <= session.release(right, scores) < 50


def test_categories_are_few_enough_to_lie_evenly():
    with Private(X).open(**BUDGET) as session:
        hidden = session.derive(session.hide(SecondMoment(CLEANING)), lambda v: v[0, 0])
        grant = session.plan(it=RandomisedResponse("coin")).it
        with pytest.raises(ValueError, match="at most 1048576"):
            session.release(grant, hidden, categories=2**60)


def test_what_a_function_prints_and_logs_is_not_heard(capsys, caplog):
    import logging

    def talks(value):
        print("it is", value)
        logging.warning("it is %s", value)
        return value

    with Private(X).open(**BUDGET) as session:
        session.derive(session.hide(SecondMoment(CLEANING)), talks)
    assert capsys.readouterr().out == ""
    assert not caplog.records


@dataclass(frozen=True)
class Doubling(RowMean):
    """Changes the rows that it is given."""

    cleaning: Cleaning = CLEANING
    label: str = "doubled"
    magnitude = 1.0

    def shape(self, n_columns):
        return (n_columns,)

    def block(self, X, y):
        X *= 2
        return X.sum(axis=0)

    def sensitivity(self, n_rows):
        return 2.0 / n_rows


def test_a_statistic_cannot_change_rows_that_are_kept():
    with (
        Private(X).open(**BUDGET) as session,
        pytest.raises(PrivacyError, match="withheld"),
    ):
        session.hide(Doubling(), keep=True)


def test_runs_that_were_planned_cannot_be_changed_afterwards():
    runs = [("it", Gaussian("x"))]
    planned = RandomStopping(runs, 0.0, 0.5)
    runs[0] = ("it", Gaussian("x", printed=1e-9))
    with Private(X).open(**BUDGET) as session:
        assert all(grants.it.scale > 0.1 for grants in session.plan(it=planned).it)


def test_progress_stops_for_views_that_were_made_before():
    told = []
    with Private(X).open(**BUDGET, progress=lambda *facts: told.append(facts)) as session:
        view = session.hide(EachRow(radius=1.0))
        session.plan(it=RandomStopping((("x", Gaussian("x")),), 0.0, 0.5))
        list(view._value.blocks(Cleaning(radius=1.0)))
    assert not told


class Dropping:
    """A map that loses rows."""

    radius, intercept = 1.0, 0.0

    def __call__(self, X, y):
        return np.asarray(X)[:-1], y


def test_a_map_that_loses_rows_is_refused():
    with Private(X).open(**BUDGET) as session, pytest.raises(PrivacyError, match="every row"):
        session.hide(Rows(Dropping()))


def test_the_guarantee_names_the_largest_radius():
    with Private(X).open(**BUDGET) as session:
        for radius in (9.0, 2.0):
            hidden = session.hide(SecondMoment(Cleaning(radius=radius)))
        session.plan(it=Gaussian.of(hidden))
        assert session.guarantee.bounds["radius (second moment)"] == 9.0


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.uint8])
def test_a_purse_of_few_bits_has_the_noise_of_a_whole_one(kind):
    """With np.float16(1) the scale had eleven bits, and small noise was none at all."""
    with Private(X).open(**BUDGET) as session:
        grant = session.plan(purse=GaussianPurse("purse", weight=kind(1))).purse
    with Private(X).open(**BUDGET) as session:
        assert grant.scale == session.plan(purse=GaussianPurse("purse")).purse.scale
    assert type(grant.scale) is float


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint16])
def test_counts_of_few_bits_do_not_wrap_around(kind):
    """Three times np.uint8(100) is 44."""
    for event in (GaussianEvent, LaplaceEvent):
        parts = [event(name, 1.0, 100.0, kind(100)) for name in "abc"]
        assert {type(part.count) for part in parts} == {int}
        whole = compose_epsilon([event("all", 1.0, 100.0, 300)], 1e-6)
        assert compose_epsilon(parts, 1e-6) == pytest.approx(whole, rel=1e-9)
    with Private(X).open(**BUDGET) as session:
        plans = {name: Gaussian(name, 1.0, count=kind(100)) for name in "abc"}
        scale = session.plan(**plans).a.scale
    assert compose_epsilon([GaussianEvent("all", 1.0, scale, 300)], 1e-6) <= 1 + 1e-9


def test_bounds_whose_squares_underflow_are_refused():
    """The length of a vector of 1e-162 is 0, and no clip shortens it."""
    with Private(X).open(**BUDGET) as session:
        for radius in (1e-76, 1e-160):
            with pytest.raises(ValueError, match=r"at least 1e-150, or squares could underflow"):
                session.hide(SecondMoment(Cleaning(radius=radius)))
        assert session.hide(SecondMoment(Cleaning(radius=1e-74))).sensitivity > 0


def test_the_name_of_a_class_that_was_made_up_is_not_told():
    def fail(value):
        raise type(f"x{value[0, 0]!r}", (Exception,), {})

    with Private(X).open(**BUDGET) as session:
        hidden = session.hide(SecondMoment(CLEANING))
        with pytest.raises(PrivacyError, match="could not be read or reduced; the reason"):
            session.derive(hidden, fail)


class Holder(RowMean):
    """A statistic that holds on to the sample that it was lent."""

    label, cleaning, magnitude = "holder", CLEANING, 1.0

    def __init__(self):
        self.held = []

    def shape(self, n_columns):
        return (1,)

    def block(self, X, y):
        return np.zeros(1)

    def sensitivity(self, n_rows):
        return 2 / n_rows

    def reduce(self, sample):
        self.held.append(sample)
        return super().reduce(sample)


def test_rows_that_were_kept_are_gone_with_the_turn_of_their_statistic():
    holder = Holder()
    with Private(X).open(**BUDGET) as session:
        session.hide(holder, keep=True)
        for _ in range(2):
            with pytest.raises(PrivacyError, match="out of turn"):
                holder.held[0].blocks(CLEANING)
        session.hide(holder, keep=True)  # the rows are kept still, for the session
    with pytest.raises(PrivacyError, match="closed"):
        holder.held[1].blocks(CLEANING)


def sparse_rows(indices):
    """Ten rows of three columns, one entry in each; the sixth row has the given indices."""
    places = [[0]] * 5 + [indices] + [[1]] * 4
    ends = np.cumsum([0, *map(len, places)])
    matrix = sparse.csr_matrix((10, 3))
    matrix.indices = np.concatenate(places).astype(np.int32)
    matrix.data, matrix.indptr = np.ones(len(matrix.indices)), ends.astype(np.int32)
    return matrix


@pytest.mark.parametrize("indices", [[4], [-1], [7, 8], [2**31 - 1], [-(2**31)]])
def test_an_entry_of_a_column_that_does_not_exist_is_none(indices):
    """It was written over another row, or beyond the memory of all."""
    with Private.from_sparse(sparse_rows([2])).open(**BUDGET) as session:
        right = session.hide(Rows(CLEANING))._value
    try:
        private = Private.from_sparse(sparse_rows(indices))
    except ValueError:
        pytest.fail("whether it raises must not depend on a row")
    with private.open(**BUDGET) as session:
        found = session.hide(Rows(CLEANING))._value
    others = np.arange(10) != 5
    np.testing.assert_array_equal(found[others], right[others])
    np.testing.assert_array_equal(found[5], np.zeros(3))


def test_a_sparse_matrix_without_rows_of_its_own_is_refused():
    matrix = sparse_rows([2])
    matrix.indptr = matrix.indptr[::-1].copy()
    with pytest.raises(ValueError, match="no sound sparse matrix"):
        Private.from_sparse(matrix)


def test_a_row_that_is_none_is_a_row_of_missing_cells():
    def failing():
        yield 1.0
        raise ValueError("secret 42")

    for odd in (None, 5.0, failing()):
        with Private([[1.0, 0.5], odd]).open(**BUDGET) as session:
            found = session.hide(Rows(Cleaning(radius=9.0)))._value
        np.testing.assert_array_equal(found, [[1.0, 0.5], [0.0, 0.0]])
    with pytest.raises(ValueError, match="every row needs the same number of columns"):
        Private([1.0, 2.0])


def test_what_a_map_inside_a_statistic_prints_stays_inside(capfd, caplog):
    def loud(rows, labels):
        print("private", rows)
        logging.getLogger("model").critical("private %s", rows)
        return rows, labels

    with Private(X).open(**BUDGET) as session:
        session.hide(Rows(Prepared(CLEANING, loud, 2)))
    assert capfd.readouterr() == ("", "")
    assert not caplog.messages


def exact(self, hidden, *_, **__):
    return hidden._value


def test_a_grant_of_another_class_buys_nothing():
    with Private(X).open(**BUDGET) as session:
        grant, hidden = session.plan(one=GaussianPurse("one")).one, session.hide(Rows(CLEANING))

        class Forged:
            mechanism = type("M", (), {"part": "all", "unbounded": True, "release": exact})()
            scale = 0.0

            def __hash__(self):
                return hash(grant)

            def __eq__(self, other):
                return True

        with pytest.raises(PrivacyError, match="must come from this session"):
            session.release(Forged(), hidden)


@pytest.mark.parametrize("name", ["__class__", "release"])
def test_a_mechanism_that_was_changed_after_the_plan_releases_nothing(name):
    evil = type("Evil", (GaussianPurse,), {"release": exact})
    mechanism = GaussianPurse("one")
    with Private(X).open(**BUDGET) as session:
        grant, hidden = session.plan(one=mechanism).one, session.hide(SecondMoment(CLEANING))
        object.__setattr__(mechanism, name, evil if name == "__class__" else exact)
        with pytest.raises(PrivacyError, match=r"only mechanisms of|attributes of its own"):
            session.release(grant, hidden, share=0.5)


def test_a_share_that_counts_as_less_than_it_is_is_refused():
    class Share(float):
        def as_integer_ratio(self):
            return 1, 10**12

    with Private(X).open(**BUDGET) as session:
        grant, hidden = (
            session.plan(one=GaussianPurse("one")).one,
            session.hide(SecondMoment(CLEANING)),
        )
        with pytest.raises(ValueError, match="share must lie above 0"):
            session.release(grant, hidden, share=Share(1.0))
