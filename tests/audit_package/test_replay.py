"""Replay: every estimator holds, and what is broken is found."""

from __future__ import annotations

import inspect
import math
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.audit import Moved, Replay, combinations, replay, replay_combination
from dpadapt.audit.replaying import distance_between, sample_of
from dpadapt.papers.hybrid.doors.descent import Descent, DrawnDescent
from dpadapt.papers.hybrid.doors.draws import draws
from dpadapt.papers.hybrid.doors.weights import RowWeights
from dpadapt.privacy import Agents, Cleaning, Ledger, PrivacyError, Rows
from dpadapt.privacy.core.session import Session
from dpadapt.privacy.mechanisms import (
    Exponential,
    Laplace,
    LaplaceMin,
    SymmetricGaussian,
    best_of_random_runs,
)
from dpadapt.privacy.recording.recording import recording
from dpadapt.privacy.statistics import SecondMoment

PAIRS = int(os.environ.get("DPADAPT_REPLAY_PAIRS", "1"))  # hostile neighbours of each combination
ROWS = np.random.default_rng(0).normal(size=(30, 2))
MOMENT = SecondMoment(Cleaning(radius=1.0))
ALL = combinations()
ROOT = Path(__file__).parent.parent.parent
REFUSED = (  # why a combination is left out: its option is of another way, or is one of two
    "has no option",
    "bounds rows and coefficients itself",
    "needs noise_on='gradient'",
    r"alpha must lie in \[0, 1\]; got \[",
    "alpha is a grid",
    "selection must be one of",
    "are those of kernel=",
    "weights of explicit features are released",
    "multiclass='softmax' is of the logistic loss",
    "rows are projected before any run",
    "does not count rows",
)


class Planned(BaseException):
    """A fit was not refused: it plans what it charges."""


def neighbours(first=(9.0, 9.0), second=(9.0, -9.0)):
    """The pair at which the second moment attains its sensitivity."""
    one, two = ROWS.copy(), ROWS.copy()
    one[4], two[4] = first, second
    return one, two


def opened(rows, **options):
    return Private(rows).open(**{"epsilon": 1.0, "delta": 1e-6, **options})


def release(rows, *, stated=1.0, query=MOMENT):
    """One noisy moment; ``stated`` is the part of its sensitivity that is claimed."""
    with opened(rows) as session:
        hidden = session.hide(query)
        claim = stated * hidden.sensitivity
        grant = session.plan(it=SymmetricGaussian("moment", claim, 4)).it
        same = session.derive(hidden, lambda value: value, sensitivity=claim)
        return session.release(grant, same)


def one_of_each():
    first = {}
    for one in ALL:
        first.setdefault((one.estimator, one.relation, one.task == "agents"), one)
    return list(first.values())


# the library


@pytest.mark.parametrize("one", one_of_each(), ids=lambda one: f"{one.name}-{one.task}")
def test_every_estimator_holds(one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = replay_combination(one, pairs=1)
    assert found.holds, found
    assert found.refused is None
    assert found.moved


@pytest.mark.parametrize("changed", ["rows", "agents"])
def test_a_joint_rule_of_three_classes_holds(changed):
    name = f"SubsampleTestReweigh(learner='gradient', classes=[0, 1, 2], changed='{changed}')"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = replay_combination(next(one for one in ALL if one.name == name), pairs=1)
    assert found.holds, found
    assert found.refused is None
    assert found.largest > 0.4  # the changed person was seen


def test_no_combination_is_refused_for_want_of_something(monkeypatch):
    def plan(*given, **options):
        raise Planned

    monkeypatch.setattr(Session, "plan", plan)
    refused = []
    for one in ALL:
        with pytest.raises((Planned, TypeError, ValueError)) as stopped:
            one.fit(sample_of(one.task, np.random.default_rng(11)))
        if stopped.type is not Planned:
            assert stopped.match("|".join(REFUSED)), one.name
            refused.append(one.name)
    assert not any("certificate=" in name for name in refused)
    page = " ".join((ROOT / "docs" / "audit.md").read_text(encoding="utf-8").split())
    told = re.search(r"(\d+) combinations, [\d,]+ releases, .*? (\d+) more are refused", page)
    assert [int(each) for each in told.groups()] == [len(ALL) - len(refused), len(refused)]


CERTIFIED = [one for one in ALL if "certificate=" in one.name]


@pytest.mark.parametrize("one", CERTIFIED, ids=lambda one: one.name.partition(", label")[0])
def test_a_fit_with_a_certificate_holds(one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = replay_combination(one, pairs=1)
        fitted = one.fit(sample_of(one.task, np.random.default_rng(11)))
    assert found.holds, found
    assert found.refused is None
    assert found.moved
    assert np.isfinite(fitted.certificate_.bound)


def test_all_solvers_of_both_regressors_are_replayed_with_a_certificate():
    assert len(CERTIFIED) == 8


@pytest.mark.slow
def test_every_combination_holds():
    ran = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in ALL:
            found = replay_combination(one, pairs=PAIRS)
            assert found.holds, (one.name, found)
            if found.refused is not None and not found.moved:
                assert re.search("|".join(REFUSED), found.refused), (one.name, found)
            ran += found.refused is None
    assert ran >= 345


def test_every_public_estimator_is_in_the_table():
    from sklearn.base import BaseEstimator

    from dpadapt import auto, baselines, discrepancy, hybrid, kernels, mixing, reweighting

    packages = (auto, baselines, discrepancy, hybrid, kernels, mixing, reweighting)
    named = {name: getattr(each, name) for each in packages for name in each.__all__}
    private = {
        name
        for name, thing in named.items()
        if isinstance(thing, type)
        and issubclass(thing, BaseEstimator)
        and {"epsilon", "estimator"} & set(inspect.signature(thing).parameters)
    }
    perturbed = {"ObjectivePerturbationClassifier", "ObjectivePerturbationRegressor"}
    assert len(private) > 12
    assert private - perturbed == {one.estimator for one in ALL}


# what replay sees


def test_a_tight_sensitivity_is_attained():
    found = replay(release, *neighbours())
    assert found.holds
    assert found.largest == pytest.approx(1, abs=1e-6)


def test_a_sensitivity_that_is_stated_too_small_is_found():
    found = replay(lambda rows: release(rows, stated=0.9), *neighbours())
    assert not found.holds
    assert found.largest == pytest.approx(1 / 0.9, rel=1e-6)


def test_a_forgotten_clip_is_found():
    class Unclipped(SecondMoment):
        def block(self, X, y):
            return 3.0 * super().block(X, y)

    found = replay(lambda rows: release(rows, query=Unclipped(Cleaning(radius=1.0))), *neighbours())
    assert found.largest == pytest.approx(3, rel=1e-6)
    assert not found.holds


def test_a_number_of_steps_that_depends_on_rows_is_found():
    def fit(rows):
        with opened(rows) as session:
            hidden = session.hide(MOMENT)
            grant = session.plan(it=SymmetricGaussian.of(hidden, count=5)).it
            steps = 2 if rows[4, 1] > 0 else 3
            return [session.release(grant, hidden) for _ in range(steps)]

    found = replay(fit, *neighbours())
    assert not found.holds
    assert "the end" in found.diverged
    assert not replay(fit, *reversed(neighbours())).holds


def test_noise_that_depends_on_rows_is_found():
    def fit(rows):
        with opened(rows) as session:
            hidden = session.hide(MOMENT)
            weight = 1.0 if rows[4, 1] > 0 else 2.0
            one = SymmetricGaussian.of(hidden, weight=weight)
            grant = session.plan(it=one, other=SymmetricGaussian.of(hidden)).it
            return session.release(grant, hidden)

    assert "charge" in replay(fit, *neighbours()).diverged


def test_a_pass_over_the_rows_that_depends_on_them_is_found():
    def fit(rows):
        with opened(rows) as session:
            hidden = session.hide(MOMENT)
            if rows[4, 1] > 0:
                session.hide(MOMENT)
            grant = session.plan(it=SymmetricGaussian.of(hidden)).it
            return session.release(grant, hidden)

    assert "pass" in replay(fit, *neighbours()).diverged


def test_what_comes_after_a_divergence_is_not_run():
    """What it would do is of no meaning: its releases would be those of other steps."""
    ended = []

    def fit(rows):
        with opened(rows) as session:
            hidden = session.hide(SecondMoment(Cleaning(radius=1.0 if rows[4, 1] > 0 else 2.0)))
            grant = session.plan(it=SymmetricGaussian.of(hidden)).it
            session.release(grant, hidden)
        ended.append(rows)

    assert "step 2" in replay(fit, *neighbours()).diverged
    assert len(ended) == 1


def test_an_error_that_depends_on_rows_is_found():
    def fit(rows):
        if rows[4, 1] < 0:
            raise ValueError("a negative number")
        return release(rows)

    found = replay(fit, *neighbours())
    assert "a negative number" in found.diverged
    both = replay(lambda rows: 1 / 0, *neighbours())
    assert both.holds
    assert "ZeroDivisionError" in both.refused


def test_a_value_that_goes_past_the_noise_is_found():
    class Model:
        def __init__(self, rows):
            self.noisy_ = release(rows)
            self.parts_ = {"mean": [float(rows.mean())]}

    assert "parts_" in str(replay(Model, *neighbours()).diverged)
    assert replay(lambda rows: release(rows).shape, *neighbours()).holds


def test_order_of_two_releases_is_part_of_what_is_done():
    def fit(rows):
        with opened(rows) as session:
            hidden = session.hide(MOMENT)
            each = [SymmetricGaussian.of(hidden, weight=weight) for weight in (1.0, 2.0)]
            grants = session.plan(each=each).each
            turn = grants if rows[4, 1] > 0 else reversed(grants)
            return [session.release(grant, hidden) for grant in turn]

    assert replay(fit, *neighbours()).diverged is not None


@pytest.mark.parametrize("kind", [Laplace, Exponential, LaplaceMin])
@pytest.mark.parametrize("stated", [1.0, 0.9])
def test_other_norms(kind, stated):
    def fit(rows):
        with opened(rows) as session:
            hidden = session.hide(Rows(Cleaning(radius=1.0)))
            grant = session.plan(it=kind("scores", 2 * stated, 2)).it
            scores = session.derive(hidden, lambda table: table[4], sensitivity=2 * stated)
            return session.release(grant, scores)

    one, two = neighbours((1.0, 0.0), (0.0, 1.0))  # l1 distance 2, range 2, l2 only 1.4
    assert replay(fit, one, two).largest == pytest.approx(1 / stated, rel=1e-6)


def test_an_individual_filter_is_counted_over_all_steps():
    found = next(one for one in ALL if "individual_filter" in one.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = {each.label for each in replay_combination(found, pairs=1).moved}
    assert any(label.endswith("all of them") for label in labels)


def test_a_filter_that_does_not_filter_is_found(monkeypatch):
    from dpadapt.mixing import NoisyGD, NoisyGDClassifier, Steps
    from dpadapt.papers.mixing import filtered as filtering

    def fit(sample):
        model = NoisyGDClassifier(
            epsilon=1.0,
            delta=1e-6,
            relation="add-remove",
            classes=[0, 1],
            steps=Steps(8, individual_filter=4.0),
            solver=NoisyGD(clip=0.05),  # below every gradient: each step costs the full price
        )
        return model.fit(None, None, private=Private(*sample))

    def all_of_them(self, query):
        return query.counted_block

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = np.full((20, 3), 5.0), np.zeros(20, dtype=int)
        less = rows[0][1:], rows[1][1:]
        assert replay(fit, rows, less).holds
        monkeypatch.setattr(filtering.IndividualFilter, "step", all_of_them)
        broken = replay(fit, rows, less)
    assert broken.largest > 1
    assert not broken.holds


def test_agents_each_have_an_answer_of_their_own():
    from dpadapt.hybrid.questions import Below

    class Gossip(Below):
        """Everybody tells the mean."""

        def values(self, X, y):
            return np.full(len(X), float(np.mean(super().values(X, y))))

    def fit(kind):
        def run(rows):
            with Agents(rows).open(epsilon=1.0, noise="seeded", random_state=0) as poll:
                question = kind(np.zeros(20, int), np.zeros(20))
                return poll.ask(question, ids=range(20)).__dict__

        return run

    one, two = neighbours((-5.0, 0.0), (5.0, 0.0))
    assert replay(fit(Below), one, two).largest == 1
    assert replay(fit(Gossip), one, two).largest > 1


def test_gradients_of_a_descent_are_measured(monkeypatch):
    from dpadapt.papers.hybrid.doors import _compiled

    rows = Cleaning(radius=3.0, label_range=(-1.0, 1.0))
    descent = Descent(rows, clip=0.5, radius=1.0, steps=40)

    def fit(table):
        labels = np.where(np.arange(len(table)) % 2, 1.0, -1.0)
        with Private(table, labels).open(epsilon=1.0, delta=1e-6) as session:
            planned = DrawnDescent.planned(descent, "descent", 1.0, len(table), printed=4.0)
            grant = session.plan(it=planned).it
            return session.release(grant, draws(RowWeights(session), 1.0), descent=descent)

    found = replay(fit, *neighbours())
    assert found.holds
    assert 0.99 < found.largest <= 1
    original = _compiled.steps

    def unclipped(*args):
        original(*args[:8], math.inf, *args[9:])

    monkeypatch.setattr(_compiled, "steps", unclipped)
    assert replay(fit, *neighbours()).largest > 2


def test_random_stopping_is_replayed_with_its_secret_number():
    def fit(rows):
        with opened(rows) as session:
            hidden = session.hide(MOMENT)

            def run(grants):
                value = session.release(grants.moment, hidden)
                return float(value[0, 0]), value

            return best_of_random_runs(session, {"moment": SymmetricGaussian.of(hidden)}, run)

    found = [replay(fit, *neighbours(), seed=seed) for seed in range(6)]
    assert all(each.holds for each in found)
    assert len({len(each.moved) for each in found}) > 1


def test_distances():
    one, two = np.array([0.0, 3.0]), np.array([4.0, 0.0])
    assert distance_between("l2", one, two) == 5
    assert distance_between("l1", one, two) == 7
    assert distance_between("range", one, two) == 7
    assert distance_between("rows", one, two) == 2
    assert distance_between("rows", np.array([np.nan, 1.0]), np.array([np.nan, 2.0])) == 1
    assert distance_between("draw", np.array([0.5, 0.5]), np.array([0.2, 0.8])) == 0.8


def test_replay_is_told_in_a_line():
    found = Replay((Moved("a", "gaussian", 1.5),), "step 3")
    assert "DIVERGED" in repr(found)
    assert not Replay((Moved("a", "gaussian", 1.5),)).holds


# recordings


def test_no_ledger_is_charged_by_a_recording(tmp_path):
    ledger = Ledger(f"{tmp_path}/budget.db")
    ledger.create("people", epsilon=3.0, delta=1e-6)
    with recording(), pytest.raises(PrivacyError, match="ledger"):
        opened(ROWS, ledger=ledger.account("people"))
    assert ledger.dataset("people").spent() == 0


def test_nothing_stays_wrapped():
    from dpadapt.papers.hybrid.doors import _compiled
    from dpadapt.papers.mixing import filtered
    from dpadapt.privacy import Session
    from dpadapt.privacy.core import noise
    from dpadapt.privacy.mechanisms import path

    def places():
        doors = [Session._let_out, Session.hide, filtered.FilteredSums._noisy]
        others = [_compiled.steps, path._PathAnswers._draw, noise.SecureNoise._generator]
        return [*doors, *others]

    before = places()
    with recording():
        assert all(now is not then for now, then in zip(places(), before, strict=True))
    with pytest.raises(ZeroDivisionError), recording():
        1 / 0  # noqa: B018
    assert places() == before
    with recording(), pytest.raises(PrivacyError, match="another recording"), recording():
        pass


def test_secure_noise_is_secure_again_after_a_recording():
    with recording(seed=1):
        one = release(ROWS)
    with recording(seed=1):
        two = release(ROWS)
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(release(ROWS), release(ROWS))
