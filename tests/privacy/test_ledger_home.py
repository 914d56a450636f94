"""A ledger has one identity: second names, copies and old versions are refused or brought in."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from dpadapt.privacy import LedgerError
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.events import Event, GaussianEvent, PureEvent
from dpadapt.privacy.files.file_home import home_of, is_mounted, read_on_disk
from dpadapt.privacy.ledger import tables as tables
from dpadapt.privacy.ledger.ledger import Account, Ledger
from dpadapt.privacy.ledger.records import chain, encode_events, genesis
from dpadapt.privacy.ledger.sqlite import SqliteStore

EPSILON, DELTA = 1.0, 1e-6
SMALL = [GaussianEvent("mean", gaussian_mu(EPSILON, DELTA) / 1000, 1.0)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def account(path: Path) -> Account:
    account = Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    account.charge(SMALL, "fit")
    return account


def refused(path: Path, match: str) -> None:
    for use in (
        Ledger(path).datasets,
        lambda: Account(Ledger(path), "hospital").charge(SMALL, "x"),
    ):
        with pytest.raises(LedgerError, match=match):
            use()
    with pytest.raises(LedgerError, match=match):
        Ledger(path).create("other", epsilon=EPSILON, delta=DELTA)


# names -------------------------------------------------------------------------------------------


def test_a_hard_link_is_refused_under_both_names(account: Account, path: Path) -> None:
    second = path.with_name("second.db")
    os.link(path, second)
    for name in (path, second):
        refused(name, r"2 names \(hard links\).*Remove the others")
    path.unlink()
    refused(second, "is not where it was made")  # the journal of a crash has the old name


def test_a_copy_is_refused_until_it_is_adopted(account: Account, path: Path) -> None:
    second = path.with_name("copy.db")
    shutil.copy(path, second)
    refused(second, r"moved, copied.*dpadapt ledger adopt --ledger .*copy.db")
    account.charge(SMALL, "the ledger itself goes on")
    assert len(Ledger(second).adopt()[0].charges) == 1
    Account(Ledger(second), "hospital").charge(SMALL, "fit")


def test_a_moved_ledger_and_a_moved_folder(account: Account, path: Path, tmp_path: Path) -> None:
    moved = path.with_name("moved.db")
    path.rename(moved)
    refused(moved, "is not where it was made")
    Ledger(moved).adopt()
    (tmp_path / "old").mkdir()
    Ledger(tmp_path / "old" / "b.db").create("hospital", epsilon=EPSILON, delta=DELTA)
    (tmp_path / "old").rename(tmp_path / "new")
    Account(Ledger(tmp_path / "new" / "b.db"), "hospital").charge(SMALL, "folder and file as ever")


def test_a_restored_file_in_the_same_place_is_noticed(account: Account, path: Path) -> None:
    backup = path.with_name("backup.db")
    shutil.copy(path, backup)
    account.charge(SMALL, "after the backup")
    backup.replace(path)
    refused(path, "restored")


def test_a_journal_of_another_name_loses_charges_where_names_are_not_looked_at(
    account: Account, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would happen: a crash under one name, charges under the other, then the first again."""

    def crash_and_go_on() -> list[str]:
        first = path.with_name("first.db")
        shutil.copy(path, first)
        second = path.with_name("second.db")
        with contextlib.closing(sqlite3.connect(first, isolation_level=None)) as connection:
            connection.execute("PRAGMA cache_size=1")
            connection.execute("PRAGMA cache_spill=1")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE dpadapt_charge SET label = 'half', digest = 'half'")
            connection.execute("UPDATE dpadapt_dataset SET head = 'half', sums = 'half'")
            connection.execute("CREATE TABLE half (x)")
            for _ in range(50):
                connection.execute("INSERT INTO half VALUES (zeroblob(2000))")
            journal = first.with_name("first.db-journal").read_bytes()
            connection.execute("ROLLBACK")
        os.link(first, second)
        first.with_name("first.db-journal").write_bytes(journal)  # as a killed process leaves it
        Account(Ledger(second), "hospital").charge(SMALL, "lost?")
        return [charge.label for charge in Ledger(first).charges("hospital")]

    with pytest.raises(LedgerError, match="names"):
        crash_and_go_on()
    for name in ("first.db", "second.db", "first.db-journal"):
        path.with_name(name).unlink(missing_ok=True)
    monkeypatch.setattr(SqliteStore, "_home", lambda self: "")
    monkeypatch.setattr(SqliteStore, "_check_home", lambda *_: None)
    with contextlib.suppress(LedgerError):  # pages of two times: damaged, or the charge is gone
        assert "lost?" not in crash_and_go_on()


def test_a_file_replaced_while_it_is_charged(account: Account, path: Path) -> None:
    other = path.with_name("other.db")
    shutil.copy(path, other)
    with (
        pytest.raises(LedgerError, match="replaced while it was written to"),
        account.ledger._store.transaction(write=True),
    ):
        other.replace(path)


def test_mount_points_are_read_from_the_kernel(tmp_path: Path) -> None:
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("no /proc")
    assert is_mounted(Path("/proc"))
    assert not is_mounted(tmp_path)


def test_a_write_ahead_log_is_refused_and_taken_back(account: Account, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    refused(path, r"write-ahead log.*dpadapt ledger adopt")
    Ledger(path).adopt()
    account.charge(SMALL, "fit")


def test_a_killed_creator_leaves_no_empty_ledger(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteStore, "fill", die)
    with pytest.raises(KeyboardInterrupt):
        Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("end", ["", "-journal"])
def test_what_a_killed_creator_left_is_removed_by_the_next(path: Path, end: str) -> None:
    path.with_name(f".budget.db.new{end}").write_bytes(b"half a ledger")
    Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    assert list(path.parent.iterdir()) == [path]


# journals ----------------------------------------------------------------------------------------


@pytest.fixture
def journal(account: Account, path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal that a process leaves which is killed when the charge "two" is written."""
    kept, journal = path.with_name("kept"), path.with_name("budget.db-journal")
    append = tables.append

    def keep(*arguments: object) -> object:
        appended = append(*arguments)
        os.link(journal, kept)
        return appended

    with monkeypatch.context() as patch:
        patch.setattr(tables, "append", keep)
        account.charge(SMALL, "two")
    kept.rename(journal)
    return journal


def labels(path: Path) -> list[str]:
    return [charge.label for charge in Ledger(path).charges("hospital")]


def test_a_crash_in_its_place_is_undone(journal: Path, path: Path) -> None:
    assert labels(path) == ["fit"]  # so it is a journal that SQLite plays back
    assert not journal.exists()


def test_a_ledger_renamed_after_a_crash_is_not_adopted(journal: Path, path: Path) -> None:
    moved = path.with_name("moved.db")
    path.rename(moved)
    with pytest.raises(LedgerError, match=r"budget\.db-journal.*old name back \(budget\.db\)"):
        Ledger(moved).adopt()
    with pytest.raises(LedgerError, match=r"budget\.db-journal of one that was"):
        Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    moved.rename(path)
    assert labels(path) == ["fit"]
    path.rename(moved)
    assert len(Ledger(moved).adopt()[0].charges) == 1


@pytest.mark.parametrize("looks", [True, False])
def test_a_journal_of_another_time_undoes_no_charge(
    journal: Path, path: Path, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adopted in another folder, charged there, and back: the old journal is still here."""
    moved = path.parent / "elsewhere" / "moved.db"
    moved.parent.mkdir()
    path.rename(moved)
    Ledger(moved).adopt()
    for label in ("three", "four"):
        Account(Ledger(moved), "hospital").charge(SMALL, label)
    moved.rename(path)
    if not looks:  # what would happen
        monkeypatch.setattr(SqliteStore, "_refuse_journal", lambda _: None)
        assert [len(each.charges) for each in Ledger(path).adopt()] == [1]
        return
    refused(path, r"budget\.db-journal.*would undo charges.*remove budget\.db-journal")
    with pytest.raises(LedgerError, match="would undo charges"):
        Ledger(path).adopt()
    journal.unlink()
    Ledger(path).adopt()
    assert labels(path) == ["fit", "two", "three", "four"]


def test_a_log_of_another_time_is_refused(account: Account, path: Path) -> None:
    other = path.with_name("other.db")
    shutil.copy(path, other)
    other.with_name("other.db-wal").write_bytes(b"pages of another time")
    refused(other, "other.db-wal.*would undo charges")


def test_an_adopted_file_is_another_one_with_the_same_rights(account: Account, path: Path) -> None:
    moved = path.with_name("moved.db")
    path.chmod(0o640)
    path.rename(moved)
    before = moved.stat()
    Ledger(moved).adopt()
    after = moved.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    assert list(path.parent.iterdir()) == [moved]
    assert Ledger(moved).adopt() == Ledger(moved).check()  # at home: as it is
    assert moved.stat().st_ino == after.st_ino


def test_a_backup_in_a_file_of_the_same_number_is_noticed(account: Account, path: Path) -> None:
    """The number of a removed file is given to the next one; it was not made at the same time."""
    home = home_of(path)
    if home.born is None:
        pytest.skip("the file system does not say when a file was made")
    backup = path.read_bytes()
    for _ in range(20):
        path.unlink()
        path.write_bytes(backup)
        assert home_of(path).born > home.born
        refused(path, "restored")
        if path.stat().st_ino == home.file:
            return


def test_a_file_mounted_by_itself_is_refused(
    account: Account, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpadapt.privacy.files.file_home.is_mounted", lambda _: True)
    refused(path, r"mounted by itself.*Mount its folder")


# names of data sets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("\ufb01les", "stand for others.*Write 'files'"),
        ("hospital\N{SUPERSCRIPT TWO}", "Write 'hospital2'"),
        ("hos\u034fpital", r"invisible.*U\+034F"),
        ("hospital\ufe0f", r"invisible.*U\+FE0F"),
        ("hospital\U000e0101", r"invisible.*U\+E0101"),
        ("hos\u3164pital", r"invisible.*U\+3164"),
        ("hos\u200bpital", "printable"),
    ],
)
def test_a_name_that_looks_like_another_is_refused(path: Path, name: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Ledger(path).create(name, epsilon=EPSILON, delta=DELTA)
    assert not path.exists()


def test_a_letter_in_two_forms_is_one_data_set(path: Path) -> None:
    one, two = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    assert one != two
    Ledger(path).create(two, epsilon=EPSILON, delta=DELTA).charge(SMALL, "fit")
    with pytest.raises(LedgerError, match="already has a data set"):
        Ledger(path).create(one, epsilon=EPSILON, delta=DELTA)
    Account(Ledger(path), two).charge(SMALL, "fit")
    assert len(Ledger(path).account(one).events()) == 2


def test_three_tenths_fit_into_three_tenths(path: Path) -> None:
    account = Ledger(path).create("hospital", epsilon=0.3, delta=1e-300)
    for _ in range(3):
        account.charge([PureEvent("answer", 0.1)], "fit")
    with pytest.raises(Exception, match="would be passed"):
        account.charge([PureEvent("answer", 1e-9)], "a billionth more")


# old ledgers -------------------------------------------------------------------------------------

OLD_TABLES = (
    "CREATE TABLE dpadapt_schema (version INTEGER NOT NULL)",
    "CREATE TABLE dpadapt_dataset (name VARCHAR(200) PRIMARY KEY, epsilon DOUBLE PRECISION, "
    "delta DOUBLE PRECISION, created VARCHAR(40), head VARCHAR(64))",
    "CREATE TABLE dpadapt_charge (dataset VARCHAR(200) REFERENCES dpadapt_dataset, number INTEGER,"
    " created VARCHAR(40), label TEXT, events TEXT, digest VARCHAR(64), "
    "PRIMARY KEY (dataset, number))",
    "INSERT INTO dpadapt_schema VALUES (1)",
)


def old_statements(datasets: dict[str, list[Event]]) -> Iterator[tuple[str, dict[str, object]]]:
    """What the first version wrote: one charge for each event."""
    for statement in OLD_TABLES:
        yield statement, {}
    for place, (name, events) in enumerate(datasets.items()):
        budget = (name, EPSILON + place, DELTA, "2025-01-01T00:00:00+00:00")
        head, rows = genesis(*budget), []
        for number, event in enumerate(events, start=1):
            created, stored = f"2025-02-0{number}T00:00:0{place}+00:00", encode_events([event])
            head = chain(head, number, created, "fit", stored)
            rows.append((name, number, created, "fit", stored, head))
        yield insert("dpadapt_dataset", (*budget, head))
        for row in rows:
            yield insert("dpadapt_charge", row)


def insert(table: str, row: tuple[object, ...]) -> tuple[str, dict[str, object]]:
    names = [f"v{place}" for place in range(len(row))]
    listed = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table} VALUES ({listed})", dict(zip(names, row, strict=True))


def write_old(path: Path, datasets: dict[str, list[Event]]) -> sqlite3.Connection:
    """An old ledger whose charges are in the write-ahead log alone, while this stays open."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    for statement, row in old_statements(datasets):
        connection.execute(statement, row)
    return connection


OLD: dict[str, list[Event]] = {"hospital": [*SMALL, PureEvent("answer", 0.25)], "hotel": []}


def check_converted(location: str | Path) -> None:
    hospital, hotel = Ledger(location).adopt()
    assert [list(charge.events) for charge in hospital.charges] == [[e] for e in OLD["hospital"]]
    assert [charge.created[:10] for charge in hospital.charges] == ["2025-02-01", "2025-02-02"]
    assert (hospital.epsilon, hotel.epsilon, hotel.charges) == (EPSILON, EPSILON + 1, ())
    assert 0.25 <= hospital.spent() < 0.3
    Account(Ledger(location), "hospital").charge(SMALL, "goes on")
    Ledger(location).check()


def test_an_old_ledger_is_refused_with_the_command_that_converts_it(path: Path) -> None:
    write_old(path, OLD).close()
    refused(path, r"older dpadapt.*its old records are kept: `dpadapt ledger adopt --ledger")
    check_converted(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("SELECT count(*) FROM dpadapt_v1_charge").fetchone()
    assert kept == (2,)
    assert len(Ledger(path).adopt()) == 2  # again: nothing happens


def test_charges_in_the_log_of_an_old_ledger_are_not_lost(path: Path) -> None:
    with contextlib.closing(write_old(path, OLD)):
        log = path.with_name(path.name + "-wal").read_bytes()
        shutil.copy(path, path.with_name("crashed.db"))
    crashed = path.with_name("crashed.db")  # as a killed process leaves it, the log beside it
    assert crashed.stat().st_size < len(log)
    crashed.with_name("crashed.db-wal").write_bytes(log)
    check_converted(crashed)


def test_an_old_ledger_in_use_is_not_converted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "busy_seconds", 0.2)
    with contextlib.closing(write_old(path, OLD)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM dpadapt_charge").fetchall()
        with pytest.raises(LedgerError, match="locked by another process"):
            Ledger(path).adopt()
        connection.execute("COMMIT")
    check_converted(path)


def test_an_old_ledger_on_postgres(postgres_url: str) -> None:
    ledger = Ledger(postgres_url)
    with ledger._store._engine.begin() as connection:
        for statement, row in old_statements(OLD):
            connection.execute(text(statement), row)
    with pytest.raises(LedgerError, match="older dpadapt"):
        ledger.datasets()
    check_converted(postgres_url)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE dpadapt_charge SET events = '[]' WHERE number = 1",
        "DELETE FROM dpadapt_charge WHERE number = 2",
        "UPDATE dpadapt_dataset SET epsilon = 100",
    ],
)
def test_a_damaged_old_ledger_is_left_alone(path: Path, damage: str) -> None:
    with contextlib.closing(write_old(path, OLD)) as connection:
        connection.execute(damage)
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(path).adopt()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM dpadapt_schema").fetchone() == (1,)


def test_old_names_that_are_one_become_one_with_the_smaller_budget(path: Path) -> None:
    names = [unicodedata.normalize(form, "café") for form in ("NFD", "NFC")]
    write_old(path, {name: [PureEvent("answer", 0.4)] * 2 for name in names}).close()
    (dataset,) = Ledger(path).adopt()
    assert (dataset.name, dataset.epsilon, len(dataset.charges)) == (names[1], EPSILON, 4)
    assert dataset.spent() > 1.4
    created = [charge.created for charge in dataset.charges]
    assert created == sorted(created)


@pytest.mark.parametrize("damaged", ["[" * 100_000, '{"a": 1}', "[1]", "nonsense", "[null]"])
def test_rubbish_in_a_record_is_one_clear_error(path: Path, damaged: str) -> None:
    with contextlib.closing(write_old(path, {"hospital": []})) as connection:
        budget = ("hospital", EPSILON, DELTA, "2025-01-01T00:00:00+00:00")
        head = chain(genesis(*budget), 1, "", "fit", damaged)
        connection.execute(
            "INSERT INTO dpadapt_charge VALUES (?, 1, '', 'fit', ?, ?)", ("hospital", damaged, head)
        )
        connection.execute("UPDATE dpadapt_dataset SET head = ?", (head,))
    with pytest.raises(LedgerError, match="charge 1 cannot be understood"):
        Ledger(path).adopt()


def test_a_file_between_two_pages_of_a_commit_is_read_as_it_is(path: Path) -> None:
    """The first page of a commit says how long the file will be, before it is that long."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table home (place text)")
        connection.execute("insert into home values ('here')")
        connection.execute("create table charges (text blob)")
        connection.execute("insert into charges values (zeroblob(50000))")
    os.truncate(path, path.stat().st_size - 3 * 4096)
    with contextlib.closing(sqlite3.connect(path)) as plain, pytest.raises(sqlite3.DatabaseError):
        plain.execute("select place from home").fetchone()
    assert read_on_disk(path, "select place from home") == "here"


def test_a_name_for_drafts_is_no_name_for_a_ledger(tmp_path):
    """Making "budget.db" removed ".budget.db.new", whatever it was: a ledger with charges, say."""
    with pytest.raises(ValueError, match="are for drafts"):
        Ledger(tmp_path / ".budget.db.new").create("patients", epsilon=1.0, delta=1e-6)
    assert not list(tmp_path.iterdir())
