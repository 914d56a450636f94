"""The durable budget: what fits is charged, what does not is refused, and nothing is ever lost."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy import BudgetExceeded, LedgerError
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)
from dpadapt.privacy.ledger.ledger import Account, Ledger
from dpadapt.privacy.ledger.records import Balance, chain, digest_of
from dpadapt.privacy.ledger.sqlite import SqliteStore
from dpadapt.privacy.ledger.store import Store

EPSILON, DELTA = 1.0, 1e-6
MU = gaussian_mu(EPSILON, DELTA)


def gaussian(mu: float) -> list[GaussianEvent]:
    return [GaussianEvent("mean", sensitivity=mu, scale=1.0)]


SMALL = gaussian(MU / 1000)


@pytest.fixture(params=["sqlite", "postgres"])
def any_location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place without a ledger, of each kind."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "budget.db")


@pytest.fixture
def any_account(any_location: str) -> Account:
    return Ledger(any_location).create("hospital", epsilon=EPSILON, delta=DELTA)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def account(path: Path) -> Account:
    """A SQLite ledger with three charges."""
    account = Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    for number in range(3):
        account.charge(SMALL, f"fit {number}")
    return account


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "busy_seconds", 0.2)


def sql(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


# the budget --------------------------------------------------------------------------------------


def test_a_new_data_set_has_spent_nothing(any_account: Account) -> None:
    assert any_account.events() == ()
    assert any_account.spent() == 0.0
    assert any_account.left() == pytest.approx(EPSILON, rel=1e-9)


def test_ten_equal_charges_fit_where_adding_epsilons_would_allow_three(
    any_account: Account,
) -> None:
    tenth = gaussian(MU / math.sqrt(10) * (1 - 1e-9))
    assert math.floor(EPSILON / compose_epsilon(tenth, DELTA)) == 3
    for number in range(10):
        any_account.charge(tenth, f"fit {number}")
    assert any_account.spent() == pytest.approx(EPSILON, rel=1e-6)
    with pytest.raises(BudgetExceeded):
        any_account.charge(tenth, "one too many")
    assert len(any_account.events()) == 10


def test_a_refusal_says_spent_asked_left_and_writes_nothing(any_account: Account) -> None:
    any_account.charge(gaussian(0.6 * MU), "fit")
    asked = gaussian(0.9 * MU)
    with pytest.raises(BudgetExceeded) as refusal:
        any_account.charge(asked, "too much")
    assert refusal.value.spent == any_account.spent()
    assert refusal.value.asked == compose_epsilon(asked, DELTA)
    assert refusal.value.left == any_account.left()
    assert any_account.events() == tuple(gaussian(0.6 * MU))
    any_account.charge(gaussian(0.7 * MU), "less")


@pytest.mark.parametrize("spent", [0.0, 1e-3, 0.6, 0.999, 1 - 1e-9])
def test_left_is_exact_for_gaussian_charges_and_can_be_charged(path: Path, spent: float) -> None:
    account = Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    account.charge(gaussian(spent * MU), "fit")
    left = account.left()
    exact = MU * math.sqrt(1 - spent**2)
    assert left == pytest.approx(compose_epsilon(gaussian(exact), DELTA), rel=1e-3)
    with pytest.raises(BudgetExceeded):
        account.charge(gaussian(exact * 1.01), "more than is left")
    if left > 0:
        account.charge(gaussian(gaussian_mu(left, DELTA)), "all that is left")
        assert account.left() < 1e-3


def test_left_with_charges_of_other_kinds(path: Path) -> None:
    account = Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    account.charge([LaplaceEvent("count", 1.0, 4.0)], "fit")
    left = account.left()
    assert 0.5 < left < EPSILON
    with pytest.raises(BudgetExceeded):
        account.charge(gaussian(gaussian_mu(left * 1.01, DELTA)), "more than is left")
    account.charge(gaussian(gaussian_mu(left, DELTA)), "all that is left")
    account.charge([PureEvent("free", 0.0)], "nothing")


def test_an_exhausted_pure_budget_has_nothing_left(path: Path) -> None:
    account = Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    account.charge([PureEvent("answer", EPSILON)], "fit")
    assert account.spent() == pytest.approx(EPSILON, abs=1e-5)
    assert account.left() < 0.05
    with pytest.raises(BudgetExceeded):
        account.charge([PureEvent("answer", 0.5)], "again")


def test_no_events_no_charge(account: Account) -> None:
    account.charge([], "nothing")
    assert len(account.events()) == 3


def test_every_kind_of_event_comes_back_equal(any_account: Account) -> None:
    events: list[Event] = [
        GaussianEvent("α \0 'quoted'", np.float64(0.1), 1e6, count=np.int64(3)),
        LaplaceEvent("count", 1.0, 1e6),
        PoissonGaussianEvent("gradient", 1.0, np.float32(1000.0), 0.01),
        ParallelEvent("parts", branches=((PureEvent("a", 1e-6),), (*SMALL,))),
        RandomStoppingEvent("tuning", tuple(SMALL), shape=1.0, gamma=0.5),
    ]
    for event in events:
        any_account.charge([event], event.kind)
    assert any_account.events() == tuple(events)


def test_relations_do_not_mix(account: Account) -> None:
    account.charge([PoissonGaussianEvent("a", 1.0, 1e3, 0.01)], "fit")
    with pytest.raises(LedgerError, match="under add-remove and replace-one"):
        account.charge([PoissonGaussianEvent("b", 1.0, 1e3, 0.01, relation="add-remove")], "fit")
    assert len(account.events()) == 4


def test_any_number_of_different_hold_outs_is_charged(any_account: Account) -> None:
    """Of fits whose branches can be ordered, and of such whose branches cannot."""
    for number in range(60):
        size = 1e-5 * (1 + number / 100)
        fit: Event = [gaussian(size)[0], PureEvent("pure", size)][number % 2]
        reserve = gaussian(1.1e-5 * (1 + number % 7))[0]
        any_account.charge([ParallelEvent("fit and evaluation", ((fit,), (reserve,)))], "fit")
    assert len(any_account.events()) == 60
    (dataset,) = any_account.ledger.check()
    assert len(dataset.balance.sums) < 12
    assert any_account.spent() < EPSILON


# reading -----------------------------------------------------------------------------------------


def test_charges_are_numbered_dated_and_labelled(any_account: Account) -> None:
    for number in range(3):
        any_account.charge(SMALL, f"fit {number}")
    charges = any_account.ledger.charges("hospital")
    assert [charge.id for charge in charges] == [1, 2, 3]
    assert [charge.label for charge in charges] == ["fit 0", "fit 1", "fit 2"]
    assert all(charge.events == tuple(SMALL) for charge in charges)
    dates = [datetime.fromisoformat(charge.created) for charge in charges]
    assert dates == sorted(dates)
    assert all(date.utcoffset() == timedelta(0) for date in dates)


def test_data_sets_are_apart(any_account: Account) -> None:
    ledger = any_account.ledger
    other = ledger.create("airline", epsilon=2.0, delta=1e-5)
    other.charge(SMALL, "fit")
    assert any_account.events() == ()
    found = [(d.name, d.epsilon, d.delta, len(d.charges)) for d in ledger.datasets()]
    assert found == [("airline", 2.0, 1e-5, 1), ("hospital", EPSILON, DELTA, 0)]


def test_export_is_json(any_account: Account) -> None:
    any_account.charge(SMALL, "fit")
    exported = json.loads(json.dumps(any_account.ledger.export("hospital"), allow_nan=False))
    assert exported["budget"] == {"epsilon": EPSILON, "delta": DELTA}
    assert exported["spent"] == any_account.spent()
    assert exported["left"] == any_account.left()
    assert exported["charges"][0]["label"] == "fit"
    assert exported["charges"][0]["events"] == [SMALL[0].to_dict()]


def test_a_second_data_set_of_the_same_name_is_refused(any_account: Account) -> None:
    any_account.charge(SMALL, "fit")
    with pytest.raises(LedgerError, match="already has a data set named 'hospital'"):
        any_account.ledger.create("hospital", epsilon=9.0, delta=DELTA)
    assert any_account.ledger.dataset("hospital").epsilon == EPSILON
    assert len(any_account.events()) == 1


# bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", None, True])
def test_bad_epsilon(path: Path, epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        Ledger(path).create("hospital", epsilon=epsilon, delta=DELTA)
    assert not path.exists()


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan, "x", None])
def test_bad_delta(path: Path, delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        Ledger(path).create("hospital", epsilon=EPSILON, delta=delta)
    assert not path.exists()


@pytest.mark.parametrize("name", ["", " ", "a\n", "\0", "x" * 201, " a", 3, None, "\ud800"])
def test_bad_name(path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name must be 1 to 200 printable"):
        Ledger(path).create(name, epsilon=EPSILON, delta=DELTA)
    assert not path.exists()


@pytest.mark.parametrize("label", ["", "a\nb", "\0", None, "x" * 501])
def test_bad_label(account: Account, label: str) -> None:
    with pytest.raises(ValueError, match="label must be"):
        account.charge(SMALL, label)
    assert len(account.events()) == 3


@pytest.mark.parametrize("location", ["", "  ", "a\0b", ":memory:", "sqlite://", "mysql://u@h/d"])
def test_bad_location(location: str) -> None:
    with pytest.raises(ValueError, match="path of a file or a postgresql:// URL"):
        Ledger(location)


@dataclass(frozen=True, slots=True)
class UnknownEvent(Event):
    kind: ClassVar[str] = "unknown"


@pytest.mark.parametrize("value", [math.nan, math.inf, "much", object()])
def test_a_broken_event_never_gets_in(account: Account, value: object) -> None:
    event = copy.copy(SMALL[0])
    object.__setattr__(event, "sensitivity", value)
    with pytest.raises(ValueError, match="events cannot be stored"):
        account.charge([event], "fit")
    assert len(account.events()) == 3


def test_unknown_and_foreign_events_never_get_in(account: Account) -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        account.charge([UnknownEvent("new")], "fit")
    with pytest.raises(TypeError, match="must hold Event objects"):
        account.charge([*SMALL, 0.1], "fit")  # type: ignore[list-item]
    assert len(account.events()) == 3


# ledgers that are not there, not ours, or not whole ----------------------------------------------


def test_a_missing_ledger_is_not_created_by_using_it(path: Path) -> None:
    for use in (Ledger(path).datasets, Account(Ledger(path), "hospital").spent):
        with pytest.raises(LedgerError, match=r"no ledger at .*budget.db.*dpadapt ledger create"):
            use()
    with pytest.raises(LedgerError, match="no ledger at"):
        Account(Ledger(path), "hospital").charge(SMALL, "fit")
    assert not path.exists()


def test_an_empty_database_is_not_a_ledger(any_location: str) -> None:
    missing = r"not a dpadapt ledger|no ledger at"
    with pytest.raises(LedgerError, match=rf"({missing}).*dpadapt ledger create"):
        Ledger(any_location).datasets()
    Ledger(any_location).create("hospital", epsilon=EPSILON, delta=DELTA)


def test_an_empty_file_is_a_ledger_cut_off_and_never_a_place_for_a_new_one(path: Path) -> None:
    path.touch()
    refuses_everything(path, r"damaged or not a ledger: it is empty \(0 bytes\), and was cut off")


def test_a_missing_data_set(any_account: Account) -> None:
    for use in (any_account.ledger.account, any_account.ledger.charges):
        with pytest.raises(LedgerError, match=r"no data set named 'hotel' \(it has: 'hospital'\)"):
            use("hotel")
    with pytest.raises(LedgerError, match="no data set named 'hotel'"):
        Account(any_account.ledger, "hotel").charge(SMALL, "fit")


def refuses_everything(path: Path, match: str) -> None:
    """Reading, charging and creating all say so, and leave the file as it was."""
    before, ledger = path.read_bytes(), Ledger(path)
    with pytest.raises(LedgerError, match=match):
        ledger.datasets()
    with pytest.raises(LedgerError, match=match) as error:
        Account(ledger, "hospital").charge(SMALL, "fit")
    assert str(path) in str(error.value)
    assert "sqlalche" not in str(error.value).lower()
    assert error.value.__suppress_context__ or error.value.__context__ is None
    with pytest.raises(LedgerError, match=match):
        ledger.create("other", epsilon=EPSILON, delta=DELTA)
    assert path.read_bytes() == before


def test_a_foreign_database_is_left_alone(path: Path) -> None:
    sql(path, "CREATE TABLE patients (name TEXT)", "INSERT INTO patients VALUES ('x')")
    refuses_everything(path, "not a dpadapt ledger")


def test_a_foreign_file_is_left_alone(path: Path) -> None:
    path.write_text("name,age\nx,3\n" * 500)
    refuses_everything(path, "damaged or not a ledger")


def test_a_newer_version(account: Account, path: Path) -> None:
    sql(path, "UPDATE dpadapt_schema SET version = 3")
    refuses_everything(path, r"newer dpadapt \(ledger version 3.*Upgrade")
    sql(path, "UPDATE dpadapt_schema SET version = 2")
    assert len(account.events()) == 3


@pytest.mark.parametrize("change", ["version = 'x'", "version = -1"])
def test_a_broken_version(account: Account, path: Path, change: str) -> None:
    sql(path, f"UPDATE dpadapt_schema SET {change}")
    refuses_everything(path, "damaged")


def test_a_directory_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is a directory"):
        Ledger(tmp_path).datasets()
    with pytest.raises(LedgerError, match="is a directory"):
        Ledger(tmp_path).create("hospital", epsilon=EPSILON, delta=DELTA)


def test_a_missing_directory(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "nowhere" / "budget.db")
    with pytest.raises(LedgerError, match="cannot be opened: No such file"):
        ledger.create("hospital", epsilon=EPSILON, delta=DELTA)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE dpadapt_dataset SET epsilon = 100",
        "UPDATE dpadapt_dataset SET delta = 1e-3",
        "UPDATE dpadapt_dataset SET epsilon = x'00ff'",
        "UPDATE dpadapt_charge SET events = replace(events, '1.0', '9.0') WHERE number = 2",
        "UPDATE dpadapt_charge SET events = '[]' WHERE number = 3",
        "UPDATE dpadapt_charge SET label = 'fit 9' WHERE number = 1",
        "UPDATE dpadapt_charge SET events = x'ff00' WHERE number = 1",
        "UPDATE dpadapt_charge SET created = 7 WHERE number = 1",
        "UPDATE dpadapt_charge SET number = 7 WHERE number = 3",
        "UPDATE dpadapt_charge SET sums = 'x' WHERE number = 2",
        "UPDATE dpadapt_dataset SET sums = '[]'",
        "UPDATE dpadapt_dataset SET sums = x'00'",
        "DELETE FROM dpadapt_charge WHERE number = 3",
        "DELETE FROM dpadapt_charge WHERE number = 1",
        "DELETE FROM dpadapt_charge",
        "DROP TABLE dpadapt_charge",
    ],
)
def test_a_changed_or_lost_record_is_noticed(account: Account, path: Path, tampering: str) -> None:
    sql(path, tampering)
    with pytest.raises(LedgerError, match="damaged"):
        account.spent()
    with pytest.raises(LedgerError, match="damaged"):
        account.charge(SMALL, "fit")


def test_a_charge_taken_back_with_its_sums_is_noticed(account: Account, path: Path) -> None:
    sql(path, "CREATE TABLE before AS SELECT sums FROM dpadapt_dataset")
    account.charge(SMALL, "fit")
    sql(
        path,
        "UPDATE dpadapt_dataset SET sums = (SELECT sums FROM before)",
        "DELETE FROM dpadapt_charge WHERE number = 4",
    )
    with pytest.raises(LedgerError, match="charges are missing"):
        account.spent()


def test_an_event_of_a_later_version_is_not_guessed(account: Account, path: Path) -> None:
    head = account.ledger.dataset("hospital").balance.head
    created, events = "2030-01-01T00:00:00+00:00", '[{"kind": "quantum", "label": "x"}]'
    digest = chain(head, 4, created, "fit", events, digest_of(events))
    row = f"('hospital', 4, '{created}', 'fit', '{events}', '{digest_of(events)}', '{digest}')"
    sql(
        path,
        f"INSERT INTO dpadapt_charge VALUES {row}",
        f"UPDATE dpadapt_dataset SET head = '{digest}', sums = '{events}'",
    )
    for use in (account.spent, account.left, lambda: account.charge(SMALL, "fit")):
        with pytest.raises(LedgerError, match="sums cannot be understood: unknown kind"):
            use()
    with pytest.raises(LedgerError, match="charge 4 cannot be understood: unknown kind"):
        account.events()


def test_damage_at_random_bytes_is_noticed_or_harmless(account: Account, path: Path) -> None:
    whole, before = path.read_bytes(), account.ledger.dataset("hospital")
    random = np.random.default_rng(20250101)
    record = whole.index(b'"gaussian"')  # every second flip hits the events of a charge
    noticed = []
    for turn in range(60):
        damaged = bytearray(whole)
        at = record + random.integers(60) if turn % 2 else random.integers(len(whole))
        damaged[at] ^= int(random.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert account.ledger.dataset("hospital") == before
            account.charge(SMALL, "after the damage")
            assert account.ledger.dataset("hospital").charges[:-1] == before.charges
        except LedgerError as error:
            noticed.append((turn, str(error), path.read_bytes() == damaged))
    assert all(str(path) in text and unchanged for _, text, unchanged in noticed)
    assert {turn for turn, _, _ in noticed} >= set(range(1, 60, 2))


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_a_truncated_file(account: Account, path: Path, fraction: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * fraction)])
    with pytest.raises(LedgerError, match=r"damaged|not a dpadapt ledger"):
        account.charge(SMALL, "fit")
    path.write_bytes(whole)
    assert len(account.events()) == 3


# locks, rights, processes ------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
def test_a_lock_held_by_another_process(account: Account, path: Path) -> None:
    holder = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(LedgerError, match=r"locked by another process \(waited 0.2 s\)"):
            account.charge(SMALL, "fit")
        assert len(account.events()) == 3  # readers do not wait for writers
        process.communicate()
    account.charge(SMALL, "fit")


@pytest.mark.usefixtures("impatient")
def test_a_row_locked_on_postgres(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    account = Ledger(postgres_url).create("hospital", epsilon=EPSILON, delta=DELTA)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT * FROM dpadapt_dataset FOR UPDATE")
        with pytest.raises(LedgerError, match=r"locked by another process \(waited 0.2 s\)"):
            account.charge(SMALL, "fit")
        assert account.events() == ()
    account.charge(SMALL, "fit")


@pytest.mark.usefixtures("impatient")
def test_a_table_locked_on_postgres_ends_the_wait_of_readers_too(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    account = Ledger(postgres_url).create("hospital", epsilon=EPSILON, delta=DELTA)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE dpadapt_charge IN ACCESS EXCLUSIVE MODE")
        for ask in (account.events, lambda: account.charge(SMALL, "fit")):
            with pytest.raises(LedgerError, match=r"locked by another process \(waited 0.2 s\)"):
                ask()
    account.charge(SMALL, "fit")


def test_a_statement_that_does_not_end_on_postgres(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    account = Ledger(postgres_url).create("hospital", epsilon=EPSILON, delta=DELTA)
    monkeypatch.setattr(Store, "busy_seconds", 0.2)
    monkeypatch.setattr("dpadapt.privacy.ledger.postgres._GRACE", 0.1)
    with (
        pytest.raises(LedgerError, match=r"did not end a statement in 0.3 s"),
        account.ledger._store.transaction() as connection,
    ):
        connection.exec_driver_sql("SELECT pg_sleep(20)")


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def unprivileged(task: Callable[[], object]) -> str:
    """What ``task`` answers or raises for a user who is bound by permission bits (not root)."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            answer = repr(task())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(sink, answer.encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as answer_of_child:
        answer = answer_of_child.read()
    os.waitpid(pid, 0)
    return answer


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_read_only_file_can_be_read_but_not_charged(shared_folder: Path) -> None:
    path = shared_folder / "budget.db"
    account = Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    account.charge(SMALL, "fit")
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    shared_folder.chmod(0o777)
    before = path.read_bytes()
    assert unprivileged(lambda: len(account.events())) == "1"
    answer = unprivileged(lambda: account.charge(SMALL, "fit"))
    assert answer.startswith(f"LedgerError: the ledger {path} is read-only")
    assert path.read_bytes() == before
    assert len(account.events()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_read_only_folder(shared_folder: Path) -> None:
    account = Ledger(shared_folder / "budget.db").create("hospital", epsilon=EPSILON, delta=DELTA)
    shared_folder.chmod(0o555)
    answer = unprivileged(lambda: account.charge(SMALL, "fit"))
    assert answer.startswith("LedgerError: the ledger")
    assert "writable" in answer or "write access" in answer
    other = Ledger(shared_folder / "other.db")
    answer = unprivileged(lambda: other.create("hospital", epsilon=EPSILON, delta=DELTA))
    assert "cannot be opened: Permission denied" in answer
    shared_folder.chmod(0o755)
    assert account.events() == ()


def test_a_full_disk_charges_nothing(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    original = SqliteStore._begin

    def on_a_small_disk(store, connection, write):  # type: ignore[no-untyped-def]
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        original(store, connection, write)

    monkeypatch.setattr(SqliteStore, "_begin", on_a_small_disk)
    with pytest.raises(LedgerError, match=r"disk.*is full or failing"):
        account.charge(SMALL * 500, "fit")
    assert len(account.events()) == 3


def test_threads_share_an_account(any_account: Account) -> None:
    fifth = gaussian(MU / math.sqrt(5) * (1 - 1e-9))

    def attempt(number: int) -> bool:
        try:
            any_account.charge(fifth, f"thread {number}")
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(12))) == 5


def test_a_charge_that_was_overtaken_is_measured_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    read, quicker = Ledger._balance, [PureEvent("quicker", 0.6 * EPSILON)]

    def overtaken(ledger: Ledger, name: str) -> Balance:
        balance = read(ledger, name)
        if quicker:  # somebody charges after the look at the balance
            Account(Ledger(path), name).charge([quicker.pop()], "other")
        return balance

    monkeypatch.setattr(Ledger, "_balance", overtaken)
    with pytest.raises(Exception, match="would be passed"):
        account.charge([PureEvent("slower", 0.6 * EPSILON)], "fit")
    assert [event.label for event in account.events()] == ["quicker"]


def test_creators_race_for_a_new_ledger(any_location: str) -> None:
    def create(number: int) -> Account:
        return Ledger(any_location).create(f"set {number % 4}", epsilon=EPSILON, delta=DELTA)

    with ThreadPoolExecutor(8) as pool:
        errors = [future.exception() for future in [pool.submit(create, n) for n in range(8)]]
    refused = [error for error in errors if error is not None]
    assert len(refused) == 4
    assert all("already has a data set" in str(error) for error in refused)
    assert len(Ledger(any_location).datasets()) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_charges_the_same_budget(any_account: Account) -> None:
    any_account.charge(SMALL, "parent")
    pid = os.fork()
    if pid == 0:
        any_account.charge(SMALL, "child")
        os._exit(0)
    any_account.charge(SMALL, "parent again")
    assert os.waitpid(pid, 0)[1] == 0
    labels = {charge.label for charge in any_account.ledger.charges("hospital")}
    assert labels == {"parent", "child", "parent again"}


def test_a_charge_is_in_the_file_when_it_returns(account: Account, path: Path) -> None:
    copied = path.with_name("copy.db")
    account.charge(SMALL, "last")
    copied.write_bytes(path.read_bytes())
    assert Ledger(copied).adopt()[0].charges[-1].label == "last"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# copies ------------------------------------------------------------------------------------------


class Estimator(BaseEstimator):  # type: ignore[misc]
    def __init__(self, ledger: Account | None = None) -> None:
        self.ledger = ledger


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda account: pickle.loads(pickle.dumps(account)),
        lambda account: clone(Estimator(ledger=account)).ledger,
    ],
    ids=["copy", "deepcopy", "pickle", "clone"],
)
def test_a_copy_charges_the_same_budget(
    account: Account, copied: Callable[[Account], Account]
) -> None:
    twin = copied(account)
    assert twin == account
    assert hash(twin) == hash(account)
    twin.charge(SMALL, "twin")
    assert len(account.events()) == 4


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    account = Ledger("odd name?#%20.db").create("hospital", epsilon=EPSILON, delta=DELTA)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    account.charge(SMALL, "fit")
    assert Ledger(f"sqlite:///{tmp_path}/odd name?#%20.db").charges("hospital")[0].id == 1
    assert (tmp_path / "odd name?#%20.db").exists()


SECRET = "s3cr:t/word"
URLS = [
    "postgresql://ann:s3cr%3At%2Fword@127.0.0.1:1/db",
    "postgres://ann@127.0.0.1:1/db?password=s3cr%3At%2Fword",
]


@pytest.mark.parametrize("url", URLS)
def test_a_password_is_never_shown_or_pickled(url: str) -> None:
    pytest.importorskip("psycopg")
    account = Account(Ledger(url), "hospital")
    with pytest.raises(LedgerError, match=r"cannot be reached.*Connection refused") as error:
        account.charge(SMALL, "fit")
    pickled = pickle.dumps(account)
    texts = [repr(account), str(error.value), pickled.decode(errors="replace")]
    texts.append(repr(pickle.loads(pickled)))
    for text in texts:
        assert SECRET not in text
        assert "s3cr" not in text
    assert error.value.__suppress_context__
    assert pickle.loads(pickled) == account


def test_a_malformed_url_does_not_show_its_password() -> None:
    with pytest.raises(ValueError, match="not a valid PostgreSQL URL") as error:
        Ledger("postgresql://ann:s3cr@t:word@host:port/db")
    assert "s3cr" not in str(error.value)
    assert "word@" not in str(error.value)


def test_a_pickle_finds_its_password_in_the_environment(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    account = Ledger(postgres_url).create("hospital", epsilon=EPSILON, delta=DELTA)
    password = psycopg.conninfo.conninfo_to_dict(postgres_url).get("password")
    if password is None:
        pytest.skip("the server asks for no password")
    copy.deepcopy(account).charge(SMALL, "a copy in this process keeps the password")
    twin = pickle.loads(pickle.dumps(account))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(LedgerError, match=r"cannot be reached: .*password"):
        twin.events()
    monkeypatch.setenv("PGPASSWORD", password)
    assert len(twin.events()) == 1


def test_without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install 'dpadapt\[postgres\]'"):
        Ledger(URLS[0]).datasets()


def test_sqlalchemy_is_imported_only_for_a_ledger() -> None:
    check = "import sys, dpadapt, dpadapt.privacy; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0
