"""What is kept of cleaned rows: in memory up to a limit, then in a file without a name."""

from __future__ import annotations

import errno
import gc
import os
import signal
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpadapt.papers.hybrid.doors.draws import Loan
from dpadapt.privacy import Cleaning, PrivacyError, Private, RowMean, Rows, RowSum, StorageError
from dpadapt.privacy.rows import kept as kept_module
from dpadapt.privacy.rows.kept import Keeping, size_of
from dpadapt.privacy.statistics import Prepared

ROWS = 40_000
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(ROWS, 3)), RNG.normal(size=ROWS)
CLEANING = Cleaning(9.0, label_range=(-1.0, 1.0))
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
TABLE = ROWS * (8 * 4 + 1)  # with the label, and whether there is one


@dataclass(frozen=True, eq=False)
class Sum(RowMean):
    """Mean of the columns; it keeps the blocks that it was given, as no statistic should."""

    cleaning: Any = CLEANING
    held: list[Any] = field(default_factory=list)
    label: str = "sum"
    magnitude: float = 10.0

    def shape(self, n_columns):
        return (3,)

    def block(self, X, y):
        self.held.append(X)
        return X.sum(axis=0)

    def sensitivity(self, n_rows):
        return 20.0 / n_rows


class Counting(Cleaning):
    """A cleaning that counts the rows that it cleans."""

    def __call__(self, X, y):
        object.__setattr__(self, "rows", getattr(self, "rows", 0) + len(X))
        return super().__call__(X, y)


def shelf_of(session):
    return session._samples["all"]._kept[0][1]


@pytest.fixture
def spilled(tmp_path):
    """Rows of which all but the first block go into a file."""
    return Private(X, Y).kept(memory=600_000, folder=tmp_path)


@pytest.mark.parametrize("memory", [0, 600_000, "1GB"])
def test_rows_are_cleaned_once_wherever_they_are_kept(tmp_path, memory):
    cleaning = Counting(9.0, label_range=(-1.0, 1.0))
    with Private(X, Y).open(**BUDGET) as session:
        expected = session.hide(Rows(CLEANING))._value
    with Private(X, Y).kept(memory=memory, folder=tmp_path).open(**BUDGET) as session:
        for _ in range(3):
            found = session.hide(Rows(cleaning), keep=True)._value
            assert found.tobytes() == expected.tobytes()
        assert cleaning.rows <= ROWS + 1  # and a row of zeros


def test_blocks_come_back_in_the_same_layout(tmp_path):
    given = (
        np.asfortranarray(X[:100]),
        np.ascontiguousarray(X[:100]),
        X[:100, :1].copy(),
        X[:1].copy(order="F"),
        np.zeros((0, 3)),
        Y[:100] > 0,
        None,
    )
    shelf = Keeping(memory=0, folder=tmp_path).store().shelf(1.0)
    shelf.add(given)
    shelf.add(given)
    shelf.seal()
    for block in shelf:
        for was, found in zip(given, block, strict=True):
            if was is None:
                assert found is None
                continue
            assert (found.shape, found.strides, found.dtype) == (was.shape, was.strides, was.dtype)
            np.testing.assert_array_equal(found, was)


class LabelInColumn(Cleaning):
    """A map whose labels are a column of its rows: they are no piece of memory of their own."""

    def __call__(self, X, y):
        X, _ = super().__call__(X, y)
        return X, X.copy(order="C")[::-1, 0]


@pytest.mark.parametrize("memory", [0, "1GB"])
def test_labels_that_are_a_view_come_back_as_they_were(tmp_path, memory):
    cleaning = LabelInColumn(9.0)

    class Labels(Sum):
        def shape(self, n_columns):
            return (2,)

        def block(self, X, y):
            self.held.append(y.copy())
            return np.array([y @ y, float(y.flags.c_contiguous)])

    with Private(X).kept(memory=memory, folder=tmp_path).open(**BUDGET) as session:
        first, again = (session.hide(Labels(cleaning), keep=True)._value for _ in range(2))
    assert first.tobytes() == again.tobytes()
    with Private(X).open(**BUDGET) as session:
        assert session.hide(Labels(cleaning))._value.tobytes() == first.tobytes()


def test_what_is_no_piece_of_memory_is_kept_as_one(tmp_path):
    given = (X[:100, 1], Y[:100][::-1], np.broadcast_to(np.float64(3.0), 100), X[:100, ::-1])
    shelf = Keeping(memory=0, folder=tmp_path).store().shelf(1.0)
    shelf.add(given)
    shelf.seal()
    (found,) = shelf
    for was, now in zip(given, found, strict=True):
        np.testing.assert_array_equal(now, was)


def test_the_file_has_no_name_and_only_this_user_could_open_it(spilled, tmp_path):
    with spilled.open(**BUDGET) as session:
        session.hide(Sum(), keep=True)
        file = shelf_of(session)._file
        assert list(tmp_path.iterdir()) == []
        facts = os.fstat(file.fileno())
        assert facts.st_nlink == 0
        assert stat.S_IMODE(facts.st_mode) == 0o600
        assert facts.st_size >= 0.5 * TABLE
    assert file.closed


def test_no_statistic_can_change_what_is_kept(spilled):
    for private in (spilled, Private(X, Y)):
        with private.open(**BUDGET) as session:
            for _ in range(2):  # as they are cleaned, and as they come back
                session.hide(query := Sum(), keep=True)
                for block in query.held:
                    with pytest.raises(ValueError, match="read-only"):
                        block[0] = 1.0
                    with pytest.raises(ValueError, match="WRITEABLE"):
                        block.flags.writeable = True


def test_nobody_reads_rows_of_a_file_after_the_session_is_closed(spilled):
    with spilled.open(**BUDGET) as session:
        session.hide(Sum(), keep=True)
        session.hide(query := Sum(), keep=True)
        shelf = shelf_of(session)
        assert query.held[-1].any()
    assert not query.held[-1].any()  # zeros
    assert list(shelf) == []


def test_rows_of_a_file_are_gone_in_the_middle_of_a_statistic(spilled):
    with spilled.open(**BUDGET) as session:
        session.hide(Sum(), keep=True)
        blocks = iter(session._samples["all"].lent(keep=True).blocks(CLEANING))
        next(blocks)
        again = iter(shelf_of(session))
        next(again)
    with pytest.raises(PrivacyError, match="gone"):
        list(again)


def test_the_memory_of_one_map_is_given_back_for_the_next(tmp_path):
    with Private(X, Y).kept(memory=1.01 * TABLE, spill=False).open(**BUDGET) as session:
        store = session._samples["all"]._store
        for _ in range(3):
            session.hide(Sum(Cleaning(9.0, label_range=(-1.0, 1.0))), keep=True)
            gc.collect()
            assert store._taken == TABLE
    assert store._taken == 0


def test_without_a_file_what_does_not_fit_is_refused_before_a_sum():
    with Private(X, Y).kept(memory="1MB", spill=False).open(**BUDGET) as session:
        query = Sum()
        with pytest.raises(StorageError, match=r"0\.00132 GB, and 0\.001 GB of memory.*--keep-mem"):
            session.hide(query, keep=True)
        assert not query.held
        assert not session._samples["all"]._kept
        assert session.hide(Sum()).shape == (3,)  # nothing is kept


def test_a_disk_that_is_too_small_is_told_by_sizes_alone(tmp_path, monkeypatch):
    private = Private(X, Y).kept(memory=0, folder=tmp_path)
    monkeypatch.setattr(kept_module, "_free_disk", lambda folder: 1e6)
    with private.open(**BUDGET) as session, pytest.raises(StorageError, match=r"0\.001 GB are fr"):
        session.hide(Sum(), keep=True)


@pytest.mark.parametrize("where", ["posix_fallocate", "mmap"])
def test_a_disk_that_fails_keeps_no_half(tmp_path, monkeypatch, where):
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "a private value")

    monkeypatch.setattr(
        kept_module.os if where == "posix_fallocate" else kept_module.mmap, where, full
    )
    with Private(X, Y).kept(memory=600_000, folder=tmp_path).open(**BUDGET) as session:
        with pytest.raises(StorageError, match=r"could not be kept .*No space left") as told:
            session.hide(Sum(), keep=True)
        assert "a private value" not in str(told.value)
        assert "released" not in str(told.value)  # other sums may have been
        gc.collect()
        sample = session._samples["all"]
        assert not sample._kept
        assert sample._store._taken == 0


def test_where_the_number_of_rows_is_a_secret_nothing_is_refused(tmp_path, monkeypatch):
    """They are read again: that there is no room would tell how many there are."""
    told = []
    for options in ({"memory": 0, "spill": False}, {"memory": 600_000, "folder": tmp_path}, {}):
        private = Private(X, Y).kept(**options)
        if "folder" in options:

            def full(*_: Any) -> None:
                raise OSError(errno.ENOSPC, "")

            monkeypatch.setattr(os, "posix_fallocate", full)
        with private.open(**BUDGET, relation="add-remove") as session, warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found = [session.hide(RowSum(Sum()), keep=True)._value.tobytes() for _ in range(2)]
            except StorageError:
                pytest.fail("that there is no room tells how many rows there are")
            told.append((bool(session._samples["all"]._kept), *found))
    assert [each[0] for each in told] == [False, False, True]
    assert len({value for each in told for value in each[1:]}) == 1


def test_what_is_foreseen_is_refused_by_public_sizes_alone():
    private = Private(X, Y).kept(memory="1MB", spill=False)
    with private.open(**BUDGET) as session:
        session.foresee(100, 2)
        with pytest.raises(StorageError):
            session.foresee(100, 3)
    with private.open(**BUDGET, relation="add-remove") as session:
        try:
            session.foresee(100, 3)
        except PrivacyError:
            pytest.fail("that there is no room tells how many rows there are")


def test_a_statistic_that_stops_early_keeps_nothing(spilled):
    with spilled.open(**BUDGET) as session:
        next(iter(session._samples["all"].lent(keep=True).blocks(CLEANING)))
        assert not session._samples["all"]._kept


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_reads_nothing_of_it(spilled):
    with spilled.open(**BUDGET) as session, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.hide(Sum(), keep=True)
        child = os.fork()
        if not child:
            try:
                session.hide(Sum(), keep=True)
            except PrivacyError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert session.hide(Sum(), keep=True).shape == (3,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_what_a_forked_process_drops_is_still_there_for_others(spilled):
    """A child that leaves the session, holding a block, once blanked the rows of its parent."""
    with spilled.open(**BUDGET) as session, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = session.hide(Rows(CLEANING), keep=True)._value
        held = list(shelf_of(session))
        child = os.fork()
        if not child:
            try:
                session.__exit__(None, None, None)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert held[-1][0].any()
        np.testing.assert_array_equal(session.hide(Rows(CLEANING), keep=True)._value, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_may_open_the_same_rows(tmp_path):
    """What a slow map made is the view's, not the session's: a child once broke down on it."""
    private = Private(X[:300]).map(slow, 2).kept(memory=0, folder=tmp_path)
    slow.calls = 0  # type: ignore[attr-defined]
    with private.open(**BUDGET) as session:
        expected = session.hide(Rows(Cleaning(9.0)))._value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        try:
            with private.open(**BUDGET) as session:
                found = session.hide(Rows(Cleaning(9.0)))._value
            os._exit(0 if found.tobytes() == expected.tobytes() else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


_READING = """
import sys, threading, time
import numpy as np
from pathlib import Path
from dpadapt.privacy.rows.kept import Keeping

shelf = Keeping(memory=0.0, folder=Path(sys.argv[1])).store().shelf(1.6e8)
for _ in range(20):
    shelf.add((np.ones(1_000_000),))
shelf.seal()
blocks, done = [block for (block,) in shelf], []

def read():
    while not done:
        sum(block.sum() for block in blocks)

thread = threading.Thread(target=read)
thread.start()
time.sleep(0.1)
shelf.close()
done.append(True)
thread.join()
print(any(block.any() for block in blocks))
"""


def test_who_reads_a_block_while_it_is_blanked_goes_on(tmp_path):
    """A file that is cut for a moment ends the process that reads in it, with no word."""
    command = [sys.executable, "-c", _READING, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "False\n")


def test_rows_are_blanked_on_a_disk_that_cannot_free_parts_of_a_file(spilled, monkeypatch):
    monkeypatch.delattr(kept_module.mmap, "MADV_REMOVE")
    with spilled.open(**BUDGET) as session:
        session.hide(Sum(), keep=True)
        session.hide(query := Sum(), keep=True)
        assert query.held[-1].any()
    assert not any(block.any() for block in query.held[1:])


def slow(rows: Any) -> Any:
    slow.calls += len(rows)  # type: ignore[attr-defined]
    return rows[:, :2]


@pytest.mark.parametrize(
    ("memory", "spill", "calls"), [(0, True, 1), ("1MB", False, 1), (0, False, 2)]
)
def test_what_a_slow_map_made_is_kept_in_the_same_way(tmp_path, memory, spill, calls):
    slow.calls = 0  # type: ignore[attr-defined]
    private = Private(X[:300]).map(slow, 2).kept(memory=memory, spill=spill, folder=tmp_path)
    with private.open(**BUDGET) as session:
        first, again = (session.hide(Rows(Cleaning(r)))._value for r in (9.0, 8.0))
    np.testing.assert_array_equal(first, again)
    assert slow.calls == 300 * calls  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_a_view_that_keeps_otherwise_keeps_by_itself(tmp_path):
    """Rows that may be on a disk for one view are not for one that says no."""
    spilled = Private(X[:300]).map(slow, 2).kept(memory=0, folder=tmp_path)
    with spilled.open(**BUDGET) as session:
        session.hide(Rows(CLEANING))
    assert spilled._rows._kept[0]._file is not None
    assert spilled.kept(spill=False)._rows._kept == []


def test_views_keep_as_the_rows_that_they_are_of(tmp_path):
    import pandas as pd

    from dpadapt.privacy import Schema

    private = Private(pd.DataFrame(X[:50], columns=["a", "b", "c"]), Y[:50]).kept(memory="3MB")
    views = (
        private.select(["a"]),
        private.read(Schema.given({"a": "number"})),
        private.map(np.sin, 3),
        private.select(["a"]).map(np.sin, 1).encode([0, 1]),
        Private(X, Y).map(np.sin, 3).kept(memory="3MB"),
        Private(X, unit=np.arange(ROWS) // 2, max_rows=2).kept(memory="3MB"),
        Loan(private._rows.sampled(np.arange(10))).__enter__(),
        Loan(private._rows.sampled(np.arange(10))).__enter__().encode([0, 1]),
    )
    for view in views:
        with view.open(**BUDGET) as session:
            assert session._samples["all"]._store.limit == 3e6


def test_by_default_it_is_a_quarter_of_what_is_free(monkeypatch):
    monkeypatch.setattr(kept_module, "free_memory", lambda: 4000.0)
    assert Keeping().store().limit == 1000.0
    monkeypatch.setattr(kept_module, "free_memory", lambda: float("inf"))
    assert Keeping().store().limit == 1 << 30


@pytest.mark.parametrize("given", ["much", "", "GB", "-1MB", -1, True, float("nan"), None, "1 XB"])
def test_sizes_that_are_none(given):
    with pytest.raises(ValueError, match="memory must be a number of bytes"):
        size_of("memory", given)


def test_a_folder_is_where_it_was_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    private = Private(X, Y).kept(memory=0, folder=".")
    monkeypatch.chdir("/")
    assert private._rows.keeping.folder == tmp_path


def test_a_folder_where_nobody_may_write_is_told_before_the_charge(tmp_path, monkeypatch):
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "a private value")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    with Private(X, Y).kept(memory=0, folder=tmp_path).open(**BUDGET) as session:
        with pytest.raises(StorageError, match=r"could not be kept .*Permission denied") as told:
            session.foresee(100, 3)
        assert "a private value" not in str(told.value)
    with Private(X, Y).kept(memory="1GB", folder=tmp_path).open(**BUDGET) as session:
        session.foresee(100, 3)  # which needs no file


def test_a_folder_that_is_none():
    with pytest.raises(ValueError, match="folder: there is no folder"):
        Private(X).kept(folder="/nowhere/at/all")


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert kept_module.default_folder() == Path(tmp_path)
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(kept_module, "_FOLDER", "/nowhere/at/all")
    monkeypatch.setattr("tempfile.tempdir", None)
    assert kept_module.default_folder().is_dir()


def squares(X: Any, y: Any) -> Any:
    return X**2 + 1.0, y


def tangents(X: Any, y: Any) -> Any:
    return np.tanh(X[:, :2]) - 0.5, None if y is None else y / 2


SOME = 600  # rows, where a function is given one at a time


@pytest.mark.parametrize("memory", [0, "1GB"])
@pytest.mark.parametrize("part", ["all", "holdout"])
def test_rows_that_are_made_of_kept_rows_are_the_same(memory, part, tmp_path, monkeypatch):
    y = np.where(RNG.random(SOME) < 0.1, np.nan, Y[:SOME])
    cleaned: list[int] = []
    clean = Cleaning.__call__
    monkeypatch.setattr(
        Cleaning, "__call__", lambda self, X, y: cleaned.append(len(X)) or clean(self, X, y)
    )
    first = Prepared(CLEANING, squares, 3)
    second = Prepared(first, tangents, 2)
    private, found = Private(X[:SOME], y).kept(memory=memory, folder=tmp_path), []
    for before in (False, True):
        cleaned.clear()
        with private.open(**BUDGET) as session:
            if part != "all":
                session.split(0.3)
            if before:
                session.hide(Rows(first), part, keep=True)
            found += [session.hide(Rows(second), part, keep=True)._value for _ in range(2)]
        assert sum(cleaned) <= SOME + 10  # once, and rows of zeros
    assert len({each.tobytes() for each in found}) == 1
    if part == "all":
        assert not found[0][np.isnan(y), :2].any()  # what is left out stays out


@pytest.mark.parametrize("unit", [None, np.arange(SOME) // 4])
def test_rows_that_count_no_more_are_not_kept(unit):
    """Rows without a label are left out from then on, and people have others in their places."""
    y = np.where(np.arange(SOME) % 3 == 0, np.nan, Y[:SOME])
    people: dict[str, Any] = {} if unit is None else {"unit": unit, "max_rows": 3}
    for cleaning in (CLEANING, Cleaning(9.0)):
        found = []
        for keep in (False, True):
            with Private(X[:SOME], y, **people).open(**BUDGET) as session:
                before = session.hide(Rows(cleaning), keep=keep)._value
                session.leave_out_unlabelled()
                found.append(session.hide(Rows(cleaning), keep=keep)._value)
        np.testing.assert_array_equal(*found)
    assert not np.array_equal(found[0], before)


class Unlabelled:
    """A map of prepared rows that reads no labels."""

    radius = 9.0

    def __init__(self, made_of):
        self.made_of = made_of

    def __call__(self, X, y):
        return self.further(*self.made_of(X, y))

    def further(self, X, y):
        return X[:, :2].copy(), None


def test_rows_that_leave_out_others_are_made_anew():
    """The first map reads labels, and leaves out a row without one; the second counts all rows."""
    y = np.where(np.arange(SOME) == 5, np.nan, Y[:SOME])
    first = Prepared(CLEANING, squares, 3)
    second, found = Unlabelled(first), []
    for before in (False, True):
        with Private(X[:SOME], y).open(**BUDGET) as session:
            if before:
                session.hide(Rows(first), keep=True)
            found.append(session.hide(Rows(second), keep=True)._value)
    np.testing.assert_array_equal(*found)
    assert found[0][5].any()


_CRASH = """
import os, resource, signal, sys
import numpy as np
from dpadapt.privacy import Cleaning, Private, StorageError
from dpadapt.privacy.statistics import SecondMoment

if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
private = Private(np.ones((40_000, 3))).kept(memory=0, folder=sys.argv[1])
session = private.open(epsilon=1.0, delta=1e-6)
try:
    session.hide(SecondMoment(Cleaning(9.0)), keep=True)
except StorageError as error:
    print(error)
    sys.exit(9)
shelf = session._samples["all"]._kept[0][1]
print(os.fstat(shelf._file.fileno()).st_size, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of another system")
def test_a_crash_leaves_nothing_and_a_full_disk_is_told(tmp_path):
    ended = {}
    for kind in ("crash", "full"):
        given = [sys.executable, "-c", _CRASH, str(tmp_path), kind]
        ended[kind] = subprocess.run(given, capture_output=True, text=True, check=False)
        assert list(tmp_path.iterdir()) == []
    assert ended["crash"].returncode == -signal.SIGKILL, ended["crash"].stderr
    assert int(ended["crash"].stdout) >= 40_000 * 24
    assert ended["full"].returncode == 9, ended["full"].stderr
    assert "cleaned rows could not be kept" in ended["full"].stdout


@pytest.mark.parametrize("memory", [0, "1GB"])
def test_threads_that_keep_other_maps_do_not_disturb_each_other(memory, tmp_path):
    maps = [Cleaning(radius, label_range=(-1.0, 1.0)) for radius in (9.0, 1.0)]
    private = Private(X, Y).kept(memory=memory, folder=tmp_path)
    with private.open(**BUDGET) as session, ThreadPoolExecutor(2) as pool:
        expected = [session.hide(Rows(each))._value for each in maps]

        def found(place: int) -> bool:
            rows = [session.hide(Rows(maps[place]), keep=True)._value for _ in range(15)]
            return all(each.tobytes() == expected[place].tobytes() for each in rows)

        assert all(pool.map(found, [0, 1]))
