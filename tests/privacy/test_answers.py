"""Interactive answers: remembered, on disk before they leave, drawn once."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sqlite3
import time

import numpy as np
import pytest

from contracts import everything_said
from dpadapt.privacy import Gram, PrivacyError, Private, Request
from dpadapt.privacy.answers import Oracle, PathAnswers
from dpadapt.privacy.secret_state import Remembered, SecretState

FACTS = {"epsilon": 1.0, "kernel": "rbf"}
X = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
Y = np.sign(X[:, 0])


def rbf(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2)


class Points:
    def encode(self, table):
        return [np.round(row, 6).tobytes() for row in np.asarray(table, dtype=float)]

    def decode(self, texts):
        return np.array([np.frombuffer(text) for text in texts])


def solve(table):
    n = len(table)
    return np.linalg.solve(table[:, :n] + n * 0.1 * np.eye(n), Y)[:, None]


def opened(state=None, *, resume=None, noise="secure", **options):
    """Predictor, its grant and its session."""
    session = Private(X).open(epsilon=1.0, delta=1e-6, noise=noise, **options)
    gram = Gram(rbf, 1.0)
    model = session.derive(session.hide_gram(gram), solve, "model")
    request = Request("gaussian", "answers", 0.5)
    if resume is None:
        (grant,) = session.plan(request)
    else:
        scale, events = resume
        grant = session.resume(events, request, scale)
    answers = PathAnswers(session, grant, Oracle(session, gram, model), gram, 1, Points(), state)
    return answers, grant, session


def grid(m, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(m, 2))


def test_the_same_question_has_the_same_answer():
    answers, _, session = opened()
    Z = grid(20)
    first = answers.ask(Z)
    np.testing.assert_array_equal(answers.ask(Z), first)
    np.testing.assert_array_equal(answers.ask(Z[::-1]), first[::-1])
    np.testing.assert_array_equal(
        answers.ask(np.repeat(Z[:1], 5, axis=0)), np.repeat(first[:1], 5, axis=0)
    )
    np.testing.assert_array_equal(answers.ask(Z + 1e-9), first)  # within the grid
    assert len(answers) == 20
    assert session.guarantee.epsilon == pytest.approx(1.0)  # however many


def test_answers_are_the_model_plus_noise_of_the_stated_scale():
    Z = grid(4)
    plain = rbf(Z, X) @ solve(rbf(X, X))
    drawn = []
    for _ in range(150):
        answers, grant, _ = opened()
        drawn.append((answers.ask(Z) - plain)[:, 0] / grant.scale)
    covariance = np.cov(np.array(drawn).T)
    assert np.abs(covariance - rbf(Z, Z)).max() < 0.6
    assert np.abs(0.49 * covariance - rbf(Z, Z)).max() > 0.3


def test_one_grant_one_path():
    _, grant, session = opened()
    with pytest.raises(PrivacyError, match="as often as it was planned"):
        session.spend(grant)


def test_nothing_of_it_can_be_read_or_copied():
    answers, *_ = opened()
    answers.ask(grid(3))
    for thing in (answers, answers._oracle, answers._path):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
    assert repr(answers._oracle) == "Oracle()"
    with pytest.raises(PrivacyError):
        Oracle(
            Private(X).open(epsilon=1.0, delta=1e-6), Gram(rbf, 1.0), answers._oracle._coefficients
        )
    answers.close()
    with pytest.raises(PrivacyError, match="closed"):
        answers.ask(grid(1, seed=9))


def test_a_kernel_that_fails_on_a_question_is_silent():
    def picky(A, B):
        if (A > 5).any() or (B > 5).any():
            raise RuntimeError(f"secret {X[0, 0]}")
        return rbf(A, B)

    session = Private(X).open(epsilon=1.0, delta=1e-6)
    gram = Gram(picky, 1.0)
    model = session.derive(session.hide_gram(gram), solve, "model")
    (grant,) = session.plan(Request("gaussian", "answers", 0.5))
    answers = PathAnswers(session, grant, Oracle(session, gram, model), gram, 1, Points())
    with everything_said() as said:
        values = answers.ask(np.array([[9.0, 9.0], [0.0, 0.0]]))
    assert np.isfinite(values).all()
    assert said.all.strip() == ""


# on disk -----------------------------------------------------------------------------------------


def test_answers_survive_a_restart(tmp_path):
    Z = grid(30)
    state = SecretState.create(tmp_path / "state.db", FACTS)
    answers, grant, session = opened(state)
    first = answers.ask(Z)
    answers.close()
    state = SecretState.open(tmp_path / "state.db")
    assert state.facts == FACTS
    again, _, resumed = opened(state, resume=(grant.scale, session.guarantee.events))
    np.testing.assert_array_equal(again.ask(Z), first)
    assert resumed.guarantee.events == session.guarantee.events
    more = again.ask(grid(10, seed=3))
    assert np.isfinite(more).all()
    # near an old question the new answer is near, too: it is the same path
    near = again.ask(Z[:1] + 1e-4)
    assert abs(near[0, 0] - first[0, 0]) < 0.02 * grant.scale
    fresh, *_ = opened()
    assert abs(fresh.ask(Z[:1] + 1e-4)[0, 0] - first[0, 0]) > 1e-4 * grant.scale


def test_the_file_is_for_its_owner_alone(tmp_path):
    SecretState.create(tmp_path / "state.db", FACTS).close()
    assert (tmp_path / "state.db").stat().st_mode & 0o077 == 0
    with pytest.raises(PrivacyError, match="exists already"):
        SecretState.create(tmp_path / "state.db", FACTS)


def damaged(path):
    data = bytearray(path.read_bytes())
    data[5000:9000] = os.urandom(4000)
    path.write_bytes(bytes(data))


def foreign(path):
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("create table facts (text text)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (damaged, "damaged"),
        (foreign, "not the state of a predictor"),
        (lambda path: path.write_bytes(b"no database at all" * 100), "damaged, or no state"),
        (lambda path: path.write_bytes(b""), "not the state|damaged"),
        (lambda path: path.unlink(), "there is no file"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(tmp_path, spoil, match):
    file = tmp_path / "state.db"
    state = SecretState.create(file, FACTS)
    with state.locked():
        state.append([Remembered(bytes([i]), b"q" * 900, b"s" * 900, b"a" * 8) for i in range(99)])
    state.close()
    for beside in tmp_path.glob("state.db-*"):
        beside.unlink()
    spoil(file)
    with pytest.raises(PrivacyError, match=match):
        SecretState.open(file)


def test_a_failed_draw_leaves_nothing_behind(tmp_path, monkeypatch):
    state = SecretState.create(tmp_path / "state.db", FACTS)
    answers, *_ = opened(state)
    answers.ask(grid(3))

    def broken(rows):
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(state, "append", broken)
    with pytest.raises(sqlite3.OperationalError):
        answers.ask(grid(2, seed=5))
    assert len(answers) == 3  # not answered from memory either


def test_two_predictors_on_one_file_agree(tmp_path):
    state = SecretState.create(tmp_path / "state.db", FACTS)
    one, grant, session = opened(state)
    two, *_ = opened(
        SecretState.open(tmp_path / "state.db"), resume=(grant.scale, session.guarantee.events)
    )
    Z = grid(12)
    first = one.ask(Z[:6])
    second = two.ask(Z)
    np.testing.assert_array_equal(second[:6], first)
    np.testing.assert_array_equal(one.ask(Z), second)


def _child(path, pipe, resume, seed):
    """Answer questions until killed; tell each answer as soon as it is there."""
    state = SecretState.open(path)
    answers, *_ = opened(state, resume=resume)
    rng = np.random.default_rng(seed)
    while True:
        number = int(rng.integers(400))
        value = answers.ask(grid(400)[number : number + 1])[0, 0]
        os.write(pipe, np.array([number, value]).tobytes())


def run_and_kill(path, resume, seed, seconds):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            _child(path, writer, resume, seed)
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    heard = b""
    while part := os.read(reader, 1 << 16):
        heard += part
    os.close(reader)
    return np.frombuffer(heard[: len(heard) // 16 * 16]).reshape(-1, 2)


@pytest.mark.slow
def test_killed_at_any_moment_it_never_answers_twice_differently(tmp_path):
    """200 kills; every answer that anybody has heard is the one that is given ever after."""
    file = tmp_path / "state.db"
    state = SecretState.create(file, FACTS)
    answers, grant, session = opened(state)
    resume = (grant.scale, session.guarantee.events)
    answers.close()
    heard: dict[int, float] = {}
    chance = random.Random(0)
    for kill in range(200):
        for number, value in run_and_kill(file, resume, kill, chance.uniform(0.02, 0.15)):
            assert heard.setdefault(int(number), value) == value
    assert len(heard) > 100
    again, *_ = opened(SecretState.open(file), resume=resume)
    for number, value in heard.items():
        assert again.ask(grid(400)[number : number + 1])[0, 0] == value
