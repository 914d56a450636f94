"""Interactive answers: remembered, on disk before they leave, drawn once."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import shutil
import signal
import sqlite3
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpadapt.kernels import RBF
from dpadapt.papers.kernels import machines
from dpadapt.papers.kernels.machines import PINPConstants, SparseVectorConstants
from dpadapt.privacy import Cleaning, Grant, PrivacyError, Private, Rows
from dpadapt.privacy.mechanisms import Gaussian, asking
from dpadapt.privacy.mechanisms._digest import keyed_digest
from dpadapt.privacy.mechanisms.asking import _facts, open_answers, restore_answers
from dpadapt.privacy.mechanisms.interactive_model import InteractiveModel
from dpadapt.privacy.mechanisms.path import GaussianPath
from dpadapt.privacy.mechanisms.secret_state import SecretState
from dpadapt.privacy.rows.schema import ReadBlock, Schema
from dpadapt.privacy.rows.sources import MemoryRows
from dpadapt.privacy.statistics import Gram
from dpadapt.testing.search import everything_said

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
    return np.linalg.solve(table[:, :n] + n * 0.1 * np.eye(n), Y[:n])[:, None]


FACTS = {"kernel": "rbf"}
PATH = GaussianPath(0.5)
PINP = PINPConstants(20, 1e-3, 1.0, 1.0, threshold=0.05, scale=0.2)
SPARSE = SparseVectorConstants(20, 1e-3, 1.0, 1.0, threshold=0.05, scale=0.2, segment=0.05)
KILLS = int(os.environ.get("DPADAPT_KILLS", "200"))


def model(mechanism=PATH, **options):
    return InteractiveModel(
        **{
            "gram": Gram(rbf, 1.0),
            "solve": solve,
            "mechanism": mechanism,
            "questions": Points(),
            "facts": FACTS,
            **options,
        }
    )


def session_on(rows=X, labels=Y, **options):
    return Private(rows, labels).open(**{"epsilon": 1.0, "delta": 1e-6, **options})


def opened(state=None, mechanism=PATH, **options):
    return open_answers(session_on(), model(mechanism, **options), state)


def restored(state, mechanism=PATH, rows=X, labels=Y, **options):
    return restore_answers(session_on(rows, labels), model(mechanism, **options), state)


def grid(m, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(m, 2))


mechanisms = pytest.mark.parametrize("mechanism", [PATH, PINP, SPARSE], ids=["path", "pinp", "sv"])


@mechanisms
def test_the_same_question_has_the_same_answer(mechanism):
    answers = opened(mechanism=mechanism)
    Z = grid(20)
    first = answers.ask(Z)
    np.testing.assert_array_equal(answers.ask(Z), first)
    np.testing.assert_array_equal(answers.ask(Z[::-1]), first[::-1])
    np.testing.assert_array_equal(
        answers.ask(np.repeat(Z[:1], 5, axis=0)), np.repeat(first[:1], 5, axis=0)
    )
    np.testing.assert_array_equal(answers.ask(Z + 1e-9), first)  # within the grid
    assert len(answers) == 20
    assert 0 < answers._session.guarantee.epsilon <= 1 + 1e-6  # however many


def test_answers_are_the_model_plus_noise_of_the_stated_scale():
    Z, rows = grid(4), X[:12]
    plain = rbf(Z, rows) @ solve(rbf(rows, rows))
    drawn = []
    for _ in range(150):
        answers = open_answers(session_on(rows, Y[:12]), model())
        drawn.append((answers.ask(Z) - plain)[:, 0] / answers._scale)
    covariance = np.cov(np.array(drawn).T)
    assert np.abs(covariance - rbf(Z, Z)).max() < 0.6
    assert np.abs(0.49 * covariance - rbf(Z, Z)).max() > 0.3


def test_nothing_of_it_can_be_read_or_copied():
    answers = opened()
    answers.ask(grid(3))
    for thing in (answers, answers._path):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
    assert repr(answers) == "Answers()"
    answers.close()
    with pytest.raises(PrivacyError, match="closed"):
        answers.ask(grid(1, seed=9))


@mechanisms
def test_private_rows_ask_nothing(mechanism):
    """How many different questions there were is told: of private rows it would be a secret."""
    answers = opened(mechanism=mechanism)

    def asked(rows):
        return answers.ask(rows)

    for function in (answers.ask, asked):
        with pytest.raises(TypeError, match="cannot be copied"):
            Private(grid(5)).map(function, n_columns=1)
    assert len(answers) == 0


def test_a_kernel_that_fails_on_a_question_is_silent():
    def picky(A, B):
        if (A > 5).any() or (B > 5).any():
            raise RuntimeError(f"secret {X[0, 0]}")
        return rbf(A, B)

    answers = opened(gram=Gram(picky, 1.0))
    with everything_said() as said:
        values = answers.ask(np.array([[9.0, 9.0], [0.0, 0.0]]))
    assert np.isfinite(values).all()
    assert said.all.strip() == ""


# one door ----------------------------------------------------------------------------------------


class Looks:
    """A mechanism of one's own that would hand on what it sees."""

    label, part, scale = "looks", "all", 1.0

    def __init__(self, score=None):
        self.score = score

    def events(self, scale, source):
        return ()


@dataclass(frozen=True)
class Cheap(PINPConstants):
    """A subclass that says it costs nothing."""

    def events(self, scale, source):
        return ()


@dataclass(frozen=True)
class CheapPath(GaussianPath):
    def events(self, scale, source):
        return ()


@pytest.mark.parametrize(
    "own", [Looks(), Cheap(20, 1e-3, 1.0, 1.0, 0.05, 0.2), CheapPath(0.5), lambda score: score]
)
def test_no_mechanism_from_outside_sees_an_answer(own):
    with pytest.raises(PrivacyError, match="only those of"):
        model(own)
    forced = model()
    object.__setattr__(forced, "mechanism", own)  # past the first check: the session has its own
    private = Private(X, Y)
    session = private.open(epsilon=1.0, delta=1e-6)
    with pytest.raises(PrivacyError, match="only mechanisms of"):
        session.plan(it=own)
    with pytest.raises(PrivacyError, match="only mechanisms of"):
        open_answers(session, forced)
    with pytest.raises(PrivacyError, match="only those of"):
        asking._price(session, forced, 1.0)  # of what is restored from a file
    assert private.spent(1e-6).epsilon == 0


def test_with_an_open_door_the_model_would_be_read(monkeypatch):
    """The test above could fail: without the check a subclass answers for nothing."""
    for check in ("core.session.check_door", "mechanisms.interactive_model.check_interactive"):
        monkeypatch.setattr(f"dpadapt.privacy.{check}", lambda *_: None)
    session = session_on()
    tiny = Cheap(10**6, 1e-9, 1.0, 1e3, 1e-12, 1e-9)
    monkeypatch.setitem(machines._MACHINES, Cheap, machines.PINPMachine)
    found = open_answers(session, model(tiny)).ask(grid(5))
    np.testing.assert_allclose(found, rbf(grid(5), X) @ solve(rbf(X, X)), atol=1e-6)
    assert session.guarantee.epsilon == 0


@mechanisms
def test_the_session_charges_what_the_constants_cost(mechanism):
    private = Private(X, Y)
    session = private.open(epsilon=1.0, delta=1e-6)
    open_answers(session, model(mechanism))
    assert private.spent(1e-6).epsilon == pytest.approx(session.guarantee.epsilon)
    assert session.guarantee.epsilon > 0.01
    with pytest.raises(PrivacyError, match="planned already"):
        open_answers(session, model(mechanism))
    with pytest.raises(PrivacyError, match="planned already"):
        session.plan(it=Gaussian("more", 0.1))


def test_a_mechanism_that_costs_too_much_is_refused_and_leaves_no_file(tmp_path):
    private = Private(X, Y)
    session = private.open(epsilon=1.0, delta=1e-6)
    loud = replace(PINP, scale=1e-3)
    with pytest.raises(PrivacyError, match="costs more"):
        open_answers(session, model(loud), tmp_path / "state.db")
    assert list(tmp_path.iterdir()) == []
    assert private.spent(1e-6).epsilon == 0


def test_no_grant_is_given_for_nothing(tmp_path):
    answers = opened(tmp_path / "state.db")
    answers.close()
    session = session_on()
    hidden = session.hide(Gram(rbf, 1.0))
    again = restore_answers(session, model(), tmp_path / "state.db")
    mechanism = Gaussian("x", 1e-9, 10_000)
    with pytest.raises(PrivacyError, match="planned already"):
        session.plan(it=mechanism)
    claimed = session.derive(hidden, lambda K: K, sensitivity=1e-9)
    with pytest.raises(PrivacyError, match="from this session"):
        session.release(Grant(mechanism, 1e-12), claimed)
    assert not session._left  # there is no grant at all
    again.close()
    for door in ("resume", "charge", "spend"):
        assert not hasattr(session, door)


def test_a_grant_used_by_many_threads_buys_one_release():
    class Slow(dict):
        def __getitem__(self, key):  # a switch of threads between the check and the count
            value = super().__getitem__(key)
            time.sleep(0.01)
            return value

    session = session_on()
    hidden = session.hide(Rows(Cleaning(radius=1.0)))
    claimed = session.derive(hidden, lambda K: K, sensitivity=1.0)
    grant = session.plan(it=Gaussian("x", 1.0, 120)).it
    session._left = Slow(session._left)
    outcomes = at_once(8, lambda i: session.release(grant, claimed))
    assert sum(isinstance(each, np.ndarray) for each in outcomes) == 1

    session._left, session._count = Slow({grant: 1}), contextlib.nullcontext()  # the twin
    outcomes = at_once(8, lambda i: session.release(grant, claimed))
    assert sum(isinstance(each, np.ndarray) for each in outcomes) > 1


def at_once(count, act):
    """What so many threads get that begin together: results, or errors."""
    out, start = [None] * count, threading.Barrier(count)

    def run(i):
        start.wait()
        try:
            out[i] = act(i)
        except Exception as error:
            out[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


# threads -----------------------------------------------------------------------------------------


@pytest.fixture
def switching():
    """Threads that are switched as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@mechanisms
@pytest.mark.parametrize("kept", [False, True])
def test_32_threads_get_one_answer_to_each_question(tmp_path, switching, mechanism, kept):
    answers = opened(tmp_path / "state.db" if kept else None, mechanism)
    Z = grid(40)
    found = at_once(32, lambda i: answers.ask(Z[np.random.default_rng(i).permutation(40)[:20]]))
    told = {}
    for i, values in enumerate(found):
        assert isinstance(values, np.ndarray), values
        for place, value in zip(np.random.default_rng(i).permutation(40)[:20], values, strict=True):
            assert told.setdefault(int(place), float(value[0])) == float(value[0])
    assert len(answers) == len(told)
    np.testing.assert_array_equal(answers.ask(Z[list(told)])[:, 0], list(told.values()))
    answers.close()


def test_without_the_lock_threads_disagree(switching):
    seen = False
    for _ in range(20):
        answers = opened()
        answers._lock = contextlib.nullcontext()
        draw = answers._draw

        def slowly(keys, draw=draw):
            time.sleep(0.01)
            return draw(keys)

        answers._draw = slowly
        found = at_once(8, lambda i, answers=answers: float(answers.ask(grid(1))[0, 0]))
        seen = seen or len({each for each in found if isinstance(each, float)}) > 1
        if seen:
            break
    assert seen


def test_a_cap_on_questions_is_named_and_keeps_the_old_ones(tmp_path):
    answers = opened(tmp_path / "s.db", most=5)
    first = answers.ask(grid(4))
    with pytest.raises(ValueError, match=r"most_questions: 4 different .* 2 more .* the 5"):
        answers.ask(grid(6))
    np.testing.assert_array_equal(answers.ask(grid(4)), first)
    answers.ask(grid(1, seed=7))
    with pytest.raises(ValueError, match="most_questions"):
        answers.ask(grid(1, seed=8))
    np.testing.assert_array_equal(answers.ask(grid(4)), first)
    answers.close()
    more = restored(tmp_path / "s.db", most=6)  # it may be raised
    assert len(more) == 5
    more.ask(grid(1, seed=8))
    more.close()


# on disk -----------------------------------------------------------------------------------------


@mechanisms
def test_answers_survive_a_restart(tmp_path, mechanism):
    Z = grid(30)
    answers = opened(tmp_path / "state.db", mechanism)
    first = answers.ask(Z)
    guarantee, used = answers._session.guarantee, answers.updates_used
    answers.close()
    private = Private(X, Y)
    session = private.open(epsilon=1.0, delta=1e-6)
    again = restore_answers(session, model(mechanism, solve=no_solver), tmp_path / "state.db")
    np.testing.assert_array_equal(again.ask(Z), first)
    assert (session.guarantee, again.updates_used) == (guarantee, used)
    assert private.spent(1e-6).epsilon == 0  # nothing is charged again
    assert np.isfinite(again.ask(grid(10, seed=3))).all()
    again.close()


def no_solver(table):
    raise AssertionError("the model is that of the file")


def test_after_a_restart_it_is_the_same_path(tmp_path):
    answers = opened(tmp_path / "state.db")
    first = answers.ask(grid(30))
    answers.close()
    again = restored(tmp_path / "state.db")
    near = again.ask(grid(30)[:1] + 1e-4)
    assert abs(near[0, 0] - first[0, 0]) < 0.02 * again._scale
    fresh = opened()
    assert abs(fresh.ask(grid(30)[:1] + 1e-4)[0, 0] - first[0, 0]) > 1e-4 * again._scale
    again.close()


def test_a_restart_solves_nothing_and_takes_the_memory_that_is_said(tmp_path, monkeypatch):
    size = 1000
    known = Gram(RBF(gamma=0.5).within(radius=2.0), 1.0)  # ours: not called pair by pair
    answers = opened(tmp_path / "state.db", gram=known)
    first = answers.ask(grid(size))
    answers.close()

    def no_solving(*_):
        raise AssertionError("a restart must not solve anything")

    monkeypatch.setattr("dpadapt.privacy.mechanisms.path._forward", no_solving)
    tracemalloc.start()
    try:
        again = restored(tmp_path / "state.db", gram=known)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * size * (size + 256) + 8192 * size
    assert most > 4 * size * size  # so it is seen
    np.testing.assert_array_equal(again.ask(grid(size)), first)
    again.close()


def test_the_first_threshold_of_a_sparse_vector_is_kept(tmp_path):
    answers = opened(tmp_path / "state.db", SPARSE)
    raised = answers._machine.state()["raised"]
    answers.close()
    again = restored(tmp_path / "state.db", SPARSE)
    assert again._machine.state()["raised"] == raised
    again.close()


def changed(values, place, value):
    out = values.copy()
    out[place] = value
    return out


@pytest.mark.parametrize(
    "other",
    [
        {"rows": changed(X, (7, 1), np.nextafter(X[7, 1], 9.0))},
        {"rows": X[::-1].copy()},
        {"rows": X.astype(np.float32)},
        {"labels": changed(Y, 3, -Y[3])},
        {"labels": changed(Y, 3, np.nan)},
        {"labels": None},
        {"rows": X[:-1], "labels": Y[:-1]},
        {"facts": {"kernel": "rbf", "gamma": 2.0}},
        {"facts": {}},
        {"mechanism": GaussianPath(0.4)},
        {"mechanism": GaussianPath(0.5, "others")},
        {"mechanism": PINP},
        {"gram": Gram(rbf, 2.0)},
    ],
)
def test_a_file_goes_with_its_rows_labels_and_parameters(tmp_path, other):
    opened(tmp_path / "state.db").close()
    with pytest.raises(PrivacyError, match="other data or parameters") as caught:
        restored(tmp_path / "state.db", **other)
    private_only = {"rows", "labels"} >= set(other) and len(other.get("rows", X)) == 40
    assert private_only == ("differs in" not in str(caught.value))  # only what is public is named
    restored(tmp_path / "state.db").close()


@pytest.mark.parametrize("options", [{"epsilon": 0.5}, {"delta": 1e-5}, {"noise": "seeded"}])
def test_a_file_goes_with_its_budget(tmp_path, options):
    opened(tmp_path / "state.db").close()
    seed = {"random_state": 0} if "noise" in options else {}
    with pytest.raises(PrivacyError, match=f"differs in: {next(iter(options))}"):
        restore_answers(session_on(**options, **seed), model(), tmp_path / "state.db")


def test_without_the_digest_other_rows_would_be_told_apart(tmp_path, monkeypatch):
    """One person's row is replaced between two runs: the old noise shows it, if it is used."""
    monkeypatch.setattr(
        "dpadapt.privacy.mechanisms.secret_state.keyed_digest", lambda *_: b"the same"
    )
    answers = opened(tmp_path / "state.db")
    first = answers.ask(grid(20))
    noise = answers._scale
    answers.close()
    again = restored(tmp_path / "state.db", rows=changed(X, 0, [0.9, 0.9]))
    moved = again.ask(grid(20) + 1e-5) - first
    assert 1e-4 < np.abs(moved).max() < noise / 10
    again.close()


def read(table, **kinds):
    """Block of rows under a schema, as a session sees it."""
    return ReadBlock(table, Schema.given(kinds))


@pytest.mark.parametrize(
    "tables",
    [
        (read(pd.DataFrame({"a": ["x"]}), a="text"), read(pd.DataFrame({"a": ["y"]}), a="text")),
        (
            read(pd.DataFrame({"a": ["ab", "c"]}), a="text"),
            read(pd.DataFrame({"a": ["a", "bc"]}), a="text"),
        ),
        (read(pd.DataFrame({"a": [1]}), a="text"), read(pd.DataFrame({"a": [1]}), a="number")),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.0000000001]})),
        (np.array([[0.0]]), np.array([[np.nan]])),
        (sparse.csr_matrix(np.eye(3)), sparse.csr_matrix(np.eye(3)[::-1])),
    ],
)
def test_digests_tell_tables_apart(tables):
    one, two = (keyed_digest(b"k", b"", [(table, None)]) for table in tables)
    assert one != two
    assert one == keyed_digest(b"k", b"", [(tables[0], None)])
    assert one != keyed_digest(b"other", b"", [(tables[0], None)])


@pytest.mark.parametrize("cell", [1, 1.0, "1", True, np.int8(1), b"1"])
def test_cells_that_mean_the_same_have_one_digest(cell):
    given = [np.array([[cell]], dtype=object), pd.DataFrame({0: [cell]})]
    plain = [np.array([[1.0]]), pd.DataFrame({0: [1.0]})]
    for one, two in zip(given, plain, strict=True):
        one, two = (keyed_digest(b"k", b"", [(table, None)]) for table in (one, two))
        assert one == two


def test_digests_do_not_depend_on_blocks():
    frame = pd.DataFrame({"a": np.arange(9.0), "b": list("abcdefghi")})
    for table in (
        read(frame, a="number", b="text"),
        frame.to_numpy(),
        np.eye(9),
        sparse.csr_matrix(np.eye(9)),
    ):
        whole = keyed_digest(b"k", b"t", [(table, np.arange(9.0))])
        cut = [(table[a:b], np.arange(9.0)[a:b]) for a, b in ((0, 2), (2, 9))]
        assert keyed_digest(b"k", b"t", cut) == whole


def test_a_cell_that_cannot_be_shown_raises_nothing():
    class Odd:
        def __repr__(self):
            raise RuntimeError("secret 42")

    keyed_digest(b"k", b"", [(np.array([[Odd()]], dtype=object), None)])


def test_the_file_is_for_its_owner_alone(tmp_path):
    opened(tmp_path / "state.db").close()
    assert (tmp_path / "state.db").stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir()] == ["state.db"]  # no log beside it
    with pytest.raises(PrivacyError, match="exists already"):
        opened(tmp_path / "state.db")


def damage(path):
    data = bytearray(path.read_bytes())
    data[5000:9000] = os.urandom(4000)
    path.write_bytes(bytes(data))


def foreign(path):
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("create table facts (text text)")
    connection.commit()
    connection.close()


def of_version(number):
    def spoil(path):
        connection = sqlite3.connect(path)
        connection.execute(f"pragma user_version = {number}")
        connection.close()

    return spoil


def unfinished(path):
    path.unlink()
    rows = MemoryRows(X, Y).long_blocks()
    facts = _facts(session_on(), model())
    SecretState.create(path, facts, rows).close()


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (damage, "damaged"),
        (foreign, "not the state of a predictor"),
        (lambda path: path.write_bytes(b"no database at all" * 100), "damaged, or no state"),
        (lambda path: path.write_bytes(b""), "not the state|damaged"),
        (lambda path: path.unlink(), "there is no file"),
        (of_version(1), "format 1.* stays charged.* another file"),
        (of_version(2), "format 2.*its place.* stays charged.* another file"),
        (of_version(4), "not the state of a predictor"),
        (unfinished, "never finished.* that charge stands"),
        (lambda path: os.link(path, path.with_name("second.db")), r"2 names \(hard links\)"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(tmp_path, spoil, match):
    file = tmp_path / "state.db"
    answers = opened(file)
    answers.ask(grid(99))
    answers.close()
    spoil(file)
    with pytest.raises(PrivacyError, match=match):
        restored(file)


def test_a_second_name_or_another_file_is_noticed_while_it_answers(tmp_path):
    answers = opened(tmp_path / "state.db")
    answers.ask(grid(1))
    os.link(tmp_path / "state.db", tmp_path / "second.db")
    with pytest.raises(PrivacyError, match="2 names"):
        answers.ask(grid(1, seed=2))
    (tmp_path / "second.db").unlink()
    answers.ask(grid(1, seed=2))
    (tmp_path / "state.db").rename(tmp_path / "moved.db")
    with pytest.raises(PrivacyError, match="is gone"):
        answers.ask(grid(1, seed=3))
    shutil.copy(tmp_path / "moved.db", tmp_path / "state.db")
    with pytest.raises(PrivacyError, match="was replaced"):
        answers.ask(grid(1, seed=3))


@pytest.mark.parametrize("away", [os.rename, shutil.copy])
def test_a_file_is_restored_in_its_own_place_alone(tmp_path, away):
    file, other = tmp_path / "state.db", tmp_path / "other.db"
    answers = opened(file)
    first = answers.ask(grid(3))
    answers.close()
    away(file, other)
    with pytest.raises(PrivacyError, match=r"not where it was made.*called 'state.db'.*charged"):
        restored(other)
    if away is os.rename:
        other.rename(file)  # the file itself, back in its place
    again = restored(file)
    np.testing.assert_array_equal(again.ask(grid(3)), first)
    again.close()
    shutil.copy(file, other)
    file.unlink()
    shutil.copy(other, file)  # a backup; the number of the file may be the old one
    with pytest.raises(PrivacyError, match="not where it was made"):
        restored(file)


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path, monkeypatch):
    answers = opened(tmp_path / "state.db")
    monkeypatch.setattr("dpadapt.privacy.files.file_home.is_mounted", lambda _: True)
    with pytest.raises(PrivacyError, match=r"mounted by itself.*Mount its folder"):
        answers.ask(grid(1))
    answers.close()
    with pytest.raises(PrivacyError, match="mounted by itself"):
        restored(tmp_path / "state.db")


def test_a_journal_of_another_time_undoes_no_answer(tmp_path, monkeypatch):
    """A crash leaves a journal; the file answers under another name, and has its name back."""
    file, other = tmp_path / "state.db", tmp_path / "other.db"
    journal = tmp_path / "state.db-journal"
    opened(file).close()

    def crash_and_go_on(seed):
        answers = restored(file)
        commit = answers._state.commit

        def keep():  # the journal, as a process leaves it that is killed before it deletes it
            os.link(journal, tmp_path / "kept")
            commit()

        answers._state.commit = keep
        answers.ask(grid(1, seed=seed))
        answers.close()
        file.rename(other)
        (tmp_path / "kept").rename(journal)
        with contextlib.closing(restored(other)) as again:
            first = again.ask(grid(2, seed=9))
        other.rename(file)
        with contextlib.closing(restored(file)) as again:
            return first, again.ask(grid(2, seed=9))

    with pytest.raises(PrivacyError, match="not where it was made"):
        crash_and_go_on(seed=7)
    with pytest.raises(PrivacyError, match=r"state.db-journal of one that was"):
        opened(file)
    other.rename(file)
    journal.unlink()
    monkeypatch.setattr("dpadapt.privacy.mechanisms.secret_state._require_home", lambda _: None)
    first, second = crash_and_go_on(seed=8)  # what would happen
    assert not np.array_equal(first, second)


def test_bit_flips_never_change_an_answer(tmp_path):
    file = tmp_path / "state.db"
    answers = opened(file)
    first = answers.ask(grid(60))
    answers.close()
    data, chance = file.read_bytes(), random.Random(3)
    same = refused = 0
    for _ in range(150):
        spoilt = bytearray(data)
        spoilt[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(spoilt)  # the same file: a copy is refused anyway
        try:
            again = restored(file)
        except PrivacyError:
            refused += 1
            continue
        np.testing.assert_array_equal(again.ask(grid(60)), first)
        again.close()
        same += 1
    assert same > 5  # in parts of the file that nobody reads
    assert refused > 30


# what fails --------------------------------------------------------------------------------------


class Failing:
    """A connection whose n-th command from now on fails, as on a full disk."""

    def __init__(self, connection, number):
        self.connection, self.number = connection, number
        self.commands = []

    def execute(self, command, *values):
        self.commands.append(command)
        if len(self.commands) == self.number:
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.execute(command, *values)

    def close(self):
        self.connection.close()


@mechanisms
@pytest.mark.parametrize("number", range(1, 8))
def test_no_answer_leaves_that_is_not_on_disk(tmp_path, mechanism, number):
    """Each step of writing fails in turn: begin, read, three answers, commit; then none."""
    file = tmp_path / "state.db"
    answers = opened(file, mechanism)
    first = answers.ask(grid(2))
    answers._state._connection = failing = Failing(answers._state._connection, number)
    heard = None
    if number > 6:
        heard = answers.ask(grid(3, seed=5))
        assert failing.commands[-1] == "commit"
    else:
        said = "cannot be locked" if number == 1 else "could not be written"
        with pytest.raises(PrivacyError, match=said):
            answers.ask(grid(3, seed=5))
    if 1 < number <= 6:  # closed for good, for old questions too
        for Z in (grid(3, seed=5), grid(2)):
            with pytest.raises(PrivacyError, match="closed itself"):
                answers.ask(Z)
    answers.close()
    again = restored(file, mechanism)
    np.testing.assert_array_equal(again.ask(grid(2)), first)
    assert len(again) == (5 if heard is not None else 2)
    if heard is not None:
        np.testing.assert_array_equal(again.ask(grid(3, seed=5)), heard)
    again.close()


def test_memory_before_the_commit_would_be_seen(tmp_path):
    """A twin that remembers first answers from memory, and otherwise after a restart."""
    answers = opened(tmp_path / "state.db")
    draw = answers._draw

    def hasty(keys):
        drawn = draw(keys)
        answers._known |= {one.question: np.frombuffer(one.answer) for one in drawn}
        return drawn

    answers._draw, answers._shut = hasty, lambda error: PrivacyError("not closed")
    connection = answers._state._connection
    answers._state._connection = Failing(connection, 4)
    with pytest.raises(PrivacyError, match="not closed"):
        answers.ask(grid(1))
    answers._state._connection = connection
    heard = answers.ask(grid(1))
    answers.close()
    again = restored(tmp_path / "state.db")
    assert again.ask(grid(1))[0, 0] != heard[0, 0]
    again.close()


def test_a_failure_while_drawing_closes_without_a_word_of_it(tmp_path, monkeypatch):
    answers = opened(tmp_path / "state.db")
    first = answers.ask(grid(2))

    def broken(table):
        raise RuntimeError("secret 42")

    monkeypatch.setattr(answers._path, "extend", broken)
    with pytest.raises(PrivacyError, match="withheld") as caught:
        answers.ask(grid(2, seed=5))
    assert "42" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(PrivacyError, match="closed itself"):
        answers.ask(grid(2))
    again = restored(tmp_path / "state.db")
    np.testing.assert_array_equal(again.ask(grid(2)), first)
    again.close()


def test_a_full_disk_while_the_fit_is_written_down(tmp_path, monkeypatch):
    def full(self, name, note):
        raise sqlite3.OperationalError("database or disk is full")

    private = Private(X, Y)
    monkeypatch.setattr(SecretState, "write", full)
    with pytest.raises(PrivacyError, match="could not be written"):
        open_answers(private.open(epsilon=1.0, delta=1e-6), model(), tmp_path / "state.db")
    assert private.spent(1e-6).epsilon > 0.9  # charged: it stands
    monkeypatch.undo()
    with pytest.raises(PrivacyError, match="never finished"):
        restored(tmp_path / "state.db")


def test_two_predictors_on_one_file_agree(tmp_path):
    one = opened(tmp_path / "state.db")
    two = restored(tmp_path / "state.db")
    Z = grid(12)
    first = one.ask(Z[:6])
    second = two.ask(Z)
    np.testing.assert_array_equal(second[:6], first)
    np.testing.assert_array_equal(one.ask(Z), second)
    one.close()
    two.close()


# killed ------------------------------------------------------------------------------------------


def _child(path, pipe, seed):
    """Answer questions until killed; tell each answer as soon as it is there."""
    answers = restored(path)
    rng = np.random.default_rng(seed)
    while True:
        number = int(rng.integers(400))
        value = answers.ask(grid(400)[number : number + 1])[0, 0]
        os.write(pipe, np.array([number, value]).tobytes())


def run_and_kill(path, seed, chance):
    """Kill a child at a random moment after it has begun to answer, or before."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            _child(path, writer, seed)
        finally:
            os._exit(1)
    os.close(writer)
    heard = b"" if chance.random() < 0.2 else os.read(reader, 16)
    time.sleep(chance.uniform(0.0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(reader, 1 << 16):
        heard += part
    os.close(reader)
    return np.frombuffer(heard[: len(heard) // 16 * 16]).reshape(-1, 2)


@pytest.mark.slow
def test_killed_at_any_moment_it_never_answers_twice_differently(tmp_path):
    """Every answer that anybody has heard is the one that is given ever after.

    DPADAPT_KILLS says how many kills, 25 on each file: so there are new questions to the end.
    """
    told, asked, chance = 0, 0, random.Random(0)
    for first in range(0, KILLS, 25):
        file = tmp_path / f"{first}.db"
        opened(file).close()
        heard: dict[int, float] = {}
        for kill in range(first, min(KILLS, first + 25)):
            for number, value in run_and_kill(file, kill, chance):
                assert heard.setdefault(int(number), value) == value
                told += 1
        again = restored(file)
        for number, value in heard.items():
            assert again.ask(grid(400)[number : number + 1])[0, 0] == value
        again.close()
        asked += len(heard)
    print(f"{KILLS} kills, {told} answers to {asked} questions, 0 changed")
    assert told > asked > KILLS / 2  # old questions were asked again, too
