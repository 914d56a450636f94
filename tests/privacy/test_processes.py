"""Sessions, predictors and polls work in the process that opened them, and in no other.

A fork copies the count of what was released and draws noise of its own: without the check one
charge pays for as many releases as there are children.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle

import numpy as np
import pytest

from dpadapt import InteractivePredictor, KernelRegressor
from dpadapt.hybrid.questions import Below
from dpadapt.kernels import RBF
from dpadapt.papers.hybrid.doors.descent import Descent, DrawnDescent
from dpadapt.papers.hybrid.doors.draws import draws
from dpadapt.papers.hybrid.doors.weights import RowWeights, Weighted, reweigh
from dpadapt.papers.selection.random_stopping import RandomStopping
from dpadapt.privacy import Agents, Cleaning, PrivacyError, Private, Rows, RowSum
from dpadapt.privacy.core.home import Home
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import Gram, SecondMoment

ROWS = np.random.default_rng(0).normal(size=(200, 2))
LABELS = np.sign(ROWS[:, 0])
CHILDREN, TRIES = 10, 10  # each child tries so often
CLEAN = Cleaning(radius=3.0)


def in_a_child(act):
    """What a forked child makes of it: a value, or the name and text of an error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = ("value", act())
        except Exception as error:
            said = (type(error).__name__, str(error))
        finally:
            os.write(writer, pickle.dumps(said))
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    data = b""
    while part := os.read(reader, 1 << 16):
        data += part
    os.close(reader)
    return pickle.loads(data)


def refused(act, tries=1):
    """Whether a child is refused, every time that it tries."""

    def outcome():
        try:
            act()
        except PrivacyError as error:
            return str(error)
        return "done"

    kind, said = in_a_child(lambda: [outcome() for _ in range(tries)])
    return kind == "value" and all("opened in another process" in each for each in said)


@pytest.fixture
def broken(monkeypatch):
    """The library without the check."""
    monkeypatch.setattr(Home, "check", lambda self: None)


def planned():
    session = Private(ROWS).open(epsilon=1.0, delta=1e-6)
    moment = session.hide(SecondMoment(CLEAN))
    grant = session.plan(it=Gaussian.of(moment)).it
    return session, grant, moment


def predictor(state=None):
    model = KernelRegressor(epsilon=1.0, delta=1e-6, kernel=RBF(gamma=1.0), label_range=(-1.0, 1.0))
    asked = InteractivePredictor(model, state=state)
    return asked.fit(ROWS[:20], LABELS[:20], private=Private(ROWS, LABELS))


def test_one_grant_buys_one_release_however_many_children_there_are():
    session, grant, moment = planned()
    for _ in range(CHILDREN):
        assert refused(lambda: session.release(grant, moment), TRIES)
    session.release(grant, moment)  # and the one that was paid for is still there


def test_without_the_check_children_release_for_nothing(broken):
    session, grant, moment = planned()
    said = [in_a_child(lambda: float(session.release(grant, moment)[0, 0])) for _ in range(5)]
    assert len({value for kind, value in said if kind == "value"}) == 5


@pytest.mark.parametrize(
    "act",
    [
        lambda s: s.hide(SecondMoment(CLEAN)),
        lambda s: s.hide(RowSum(SecondMoment(CLEAN))),
        lambda s: s.hide(Rows(CLEAN)),
        lambda s: s.hide(Gram(lambda A, B: A @ B.T, 9.0)),
        lambda s: RowWeights(s),
        lambda s: s.plan(it=planned_of(s)),
        lambda s: list(s.plan(it=RandomStopping((("one", planned_of(s)),), 0.0, 0.5)).it),
    ],
)
def test_a_session_does_nothing_in_another_process(act):
    session = Private(ROWS).open(epsilon=1.0, delta=1e-6)
    session.asked = session.hide(SecondMoment(CLEAN))
    assert refused(lambda: act(session))
    act(session)


def planned_of(session):
    return Gaussian.of(session.asked)


def test_derived_values_weights_and_descents_stay_at_home():
    session = Private(ROWS, LABELS).open(epsilon=1.0, delta=1e-6)
    weights, moment = RowWeights(session), session.hide(SecondMoment(CLEAN))
    rows = Cleaning(radius=3.0, label_range=(-1.0, 1.0))
    descent = Descent(rows, clip=1.0, radius=1.0, steps=10)
    grant = session.plan(
        it=DrawnDescent.planned(descent, "d", density=1.0, n_rows=200, printed=9.0)
    ).it
    for act in (
        lambda: session.derive(moment, np.trace, label="trace"),
        lambda: reweigh(weights, lambda X, y: np.ones(len(X)), CLEAN, 0.1),
        lambda: session.hide(Weighted(SecondMoment(CLEAN), weights, 1.0)),
        lambda: session.release(grant, draws(weights, 1.0), descent=descent),
    ):
        assert refused(act)
    session.release(grant, draws(weights, 1.0), descent=descent)


@pytest.mark.parametrize("kept", [False, True])
def test_a_predictor_answers_at_home_only(tmp_path, kept):
    asked = predictor(tmp_path / "secret.db" if kept else None)
    old = asked.predict([[0.1, 0.2]])
    assert all(refused(lambda: asked.predict([[0.25, 0.5]]), TRIES) for _ in range(CHILDREN))
    assert refused(lambda: asked.predict([[0.1, 0.2]]))  # simple: not even an old question
    np.testing.assert_array_equal(asked.predict([[0.1, 0.2]]), old)
    asked.close()


def test_without_the_check_one_question_has_many_answers(broken):
    asked = predictor()
    said = [in_a_child(lambda: float(asked.predict([[0.25, 0.5]])[0])) for _ in range(5)]
    assert len({value for _, value in said}) == 5
    asked.close()


def test_workers_of_multiprocessing_are_refused_too():
    global _ASKED
    _ASKED = predictor()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_ask, range(20)) == ["PrivacyError"] * 20
    _ASKED.close()


def _ask(number):
    try:
        return float(_ASKED.predict([[0.25, 0.5]])[0])
    except Exception as error:
        return type(error).__name__


def test_agents_are_asked_from_one_process_only():
    agents = Agents(np.zeros((5, 1)))
    poll = agents.open(epsilon=1.0)
    question = Below(np.zeros(1, int), np.ones(1))
    assert refused(lambda: poll.ask(question, ids=[0]))
    assert refused(lambda: agents.open(epsilon=1.0))
    assert agents.n_left == 5
    poll.ask(question, ids=[0])


def test_without_the_check_an_agent_is_asked_in_every_process(broken):
    agents = Agents(np.zeros((5, 1)))
    poll = agents.open(epsilon=1.0)
    question = Below(np.zeros(1, int), np.ones(1))
    for _ in range(3):
        assert in_a_child(lambda: bool(poll.ask(question, ids=[0])) or True) == ("value", True)
    poll.ask(question, ids=[0])


def test_a_process_that_got_the_same_id_again_is_another(monkeypatch):
    home, number = Home("it"), os.getpid()

    def check_as_the_parent():
        monkeypatch.setattr(os, "getpid", lambda: number)
        home.check()

    assert refused(check_as_the_parent)
    home.check()
