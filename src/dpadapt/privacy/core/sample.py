"""The rows of one part of a private sample, as a statistic reads them: cleaned, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray

from ..accounting.events import Relation
from ..rows.errors import PrivacyError, StorageError
from ..rows.kept import RowStore, Shelf, in_one_piece, locked
from ..rows.quiet import muted
from ..rows.sources import BLOCK_ROWS, RowSource
from .cleaning import RowMap
from .hidden import Opaque, Part
from .home import Home

Known = NDArray[np.bool_]
CleanBlock = tuple[FloatArray, FloatArray | None, Known | None]
Reduction = Callable[[FloatArray, FloatArray | None, Known | None], FloatArray]
Progress = Callable[[int, int], None]
# What the order of summation can do to a float64 sum, relative to one row: under add-remove every
# later row moves to another place in its block. Holds up to 1e7 rows; must not tell how many.
ORDER_SLACK = 1e-3
# What rounding can do to a mean, relative to the bound on one row's contribution.
ROUNDING = 2 * (BLOCK_ROWS + 8) * float(np.finfo(np.float64).eps)
MOST_ROWS = 1e20  # where their number is a secret: more than anybody has


@dataclass
class Foreseen:
    """Sums that were said to come, and those that are done; public numbers.

    Parameters
    ----------
    sums : int
        In all; 0 if nobody has said how many. Then each of them is shown by itself.
    done : int

    Examples
    --------
    >>> course = Foreseen(sums=20, done=3)
    >>> course.shown(50, 100)
    (350, 2000)
    >>> Foreseen(done=3).shown(50, 100)
    (50, 100)
    """

    sums: int = 0
    done: int = 0

    def shown(self, rows: int, n_rows: int) -> tuple[int, int]:
        """Rows that are done, so many of them of the present sum, and rows in all."""
        if not self.sums:
            return rows, n_rows
        begun = self.done + (rows > 0)
        return self.done * n_rows + rows, max(self.sums, begun) * n_rows

    def end(self, n_rows: int) -> tuple[int, int]:
        """The same when no sum is to come any more."""
        return (max(self.sums, self.done) * n_rows,) * 2


class Sample(Opaque):
    """Private rows of one part. It lives inside a session, and works as long as that is open.

    A changed row lies in one part only, and so do all rows of a person: people are dealt to parts
    by their public position, evenly through the sample.

    Parameters
    ----------
    held : list of RowSource
        The rows; empty once the session is closed.
    home : Home
        The process of the session.
    relation : {"replace-one", "add-remove"}
    store : RowStore
        Where cleaned rows are kept.
    part : {"all", "train", "holdout"}
    holdout : float
        Fraction of the rows in the part "holdout".
    progress : callable, optional
        Called with (rows done, rows in all).
    """

    def __init__(
        self,
        held: list[RowSource],
        home: Home,
        relation: Relation,
        store: RowStore,
        part: Part = "all",
        holdout: float = 0.0,
        progress: Progress | None = None,
    ) -> None:
        self._held, self._home, self._holdout = held, home, holdout
        self.relation, self.part, self._progress = relation, part, progress
        self.n_columns, self._n_rows = held[0].n_columns, held[0].n_rows
        self._each = getattr(held[0].people, "each", 1)
        self.labelled = held[0].labelled
        self._share: float | None = None
        self._probed: tuple[RowMap, FloatArray | None] | None = None
        self._keeps, self._origin = False, self
        self._store, self.course = store, Foreseen()
        self._kept: list[tuple[RowMap, Shelf]] = []  # one at most; shared by views

    @property
    def progress(self) -> Progress | None:
        """Whom to tell how many rows are done; for all views at once."""
        return self._origin._progress

    @progress.setter
    def progress(self, told: Progress | None) -> None:
        self._origin._progress = told

    @property
    def n_rows(self) -> int:
        """Number of rows in the part; a secret under add-remove."""
        self.needs_replace_one("the number of rows")
        held = math.floor(self._n_rows // self._each * self._holdout) * self._each
        return {"all": self._n_rows, "train": self._n_rows - held, "holdout": held}[self.part]

    @property
    def counted_rows(self) -> int:
        """What a mean is divided by: the rows, or (:meth:`count`) about how many have a label."""
        share = self._origin._share
        return max(1, self.n_rows if share is None else round(self.n_rows * share))

    @property
    def times(self) -> float:
        """How many rows there are for each that a mean is divided by, and a hair more; 1 if all."""
        if self._origin._share in (None, 1.0):
            return 1.0
        return max(1.0, self.n_rows / self.counted_rows) * (1 + 1e-12)

    def count(self, share: float) -> None:
        """From now on only rows with a label count, in all views: about this part of the rows."""
        if self._origin._share is None:  # what was kept may hold rows that count no more
            self.forget()
        self._held[:] = [rows.with_labels() for rows in self._held]
        self._origin._share = share

    def leaves_out(self, cleaning: RowMap) -> bool:
        """Whether rows without a label add nothing to a statistic; public.

        So it is if the map of the statistic reads labels, of which a row of zeros tells, and in
        every statistic once rows with a label were counted.
        """
        if not self.labelled or self._origin._share is not None:
            return self.labelled
        return self._nobody(cleaning) is not None

    def _nobody(self, cleaning: RowMap) -> FloatArray | None:
        """What a map makes of no label, on a row of zeros; None if it reads no labels."""
        known = self._origin._probed
        if known is None or known[0] is not cleaning:
            row = np.zeros((1, self.n_columns))
            known = self._origin._probed = (cleaning, cleaning(row, np.array([np.nan]))[1])
        return known[1]

    def part_of(self, part: Part, holdout: float) -> Sample:
        """One of two parts, by public position."""
        self.rows.need_order("a part that is held out")
        new = self.lent()
        new.part, new._holdout, new._held, new._origin = part, holdout, self._held, new
        new._kept = []
        return new

    @property
    def most_rows(self) -> float:
        """Public bound on the number of rows of the whole sample."""
        return max(1, self._n_rows) if self.relation == "replace-one" else MOST_ROWS

    def needs_replace_one(self, what: str) -> None:
        """Refuse what depends on the number of rows, where that is a secret."""
        if self.relation != "replace-one":
            raise PrivacyError(
                f"{what} depends on the number of rows, a secret under relation='add-remove'; "
                "hide a RowSum, or use relation='replace-one'."
            )

    @property
    def rows(self) -> RowSource:
        """All rows as they were given, in the session's own process and before it is closed."""
        self._home.check()
        if not self._held:
            raise PrivacyError(
                "the session is closed; open a new one. (Or a statistic read rows out of turn.)"
            )
        return self._held[0]

    def lent(self, *, keep: bool = False, rows: bool = True) -> Sample:
        """View for one computation; who holds on to it has nothing in hand after :meth:`end`.

        With ``keep`` cleaned rows are kept for the next pass; without ``rows`` there are public
        facts alone.
        """
        view = object.__new__(Sample)
        vars(view).update(vars(self))
        view._keeps, view._held = keep, list(self._held) if rows else []
        return view

    def end(self) -> None:
        """Take the rows away from a view that was lent."""
        self._held.clear()

    def blocks(self, cleaning: RowMap) -> Iterable[CleanBlock]:
        """Cleaned rows in order, and which of them count; None if all do.

        A row without a label (:meth:`leaves_out`) is 0 in every column, and its label is what the
        map makes of none: one public row, whatever it was, in its own place, so that no other row
        moves by a bit.
        """
        self.rows  # noqa: B018, refuses a view that has ended, also what was kept
        if not self._keeps:
            return self._counted(self._pass(cleaning))
        for known, shelf in self._kept:
            if known is cleaning:
                return self._counted(self._again(shelf))
        return self._counted(self._keeping(cleaning))

    def _counted(self, blocks: Iterator[CleanBlock]) -> Iterator[CleanBlock]:
        yield from blocks
        self.course.done += 1
        if self.course.sums:
            self._tell(0)

    def _tell(self, rows: int) -> None:
        if self.progress is not None:
            self.progress(*self.course.shown(rows, self._n_rows))

    def tell_end(self) -> None:
        """Say that all sums are done, if it was said how many there would be."""
        if self.progress is not None and self.course.sums:
            self.progress(*self.course.end(self._n_rows))

    def _keeping(self, cleaning: RowMap) -> Iterator[CleanBlock]:
        """Rows as they are cleaned, kept on the way: all of them in the end, or none."""
        if self._below(cleaning) is None:
            self._kept.clear()  # for their room
        shelf, last = None, False
        for block in self._pass(cleaning):
            X, y, known = (locked(each) for each in block)
            if not last:
                shelf, last = self._added(shelf, (X, y, known))
            yield X, y, known
        if shelf is not None and self._fits(shelf.seal):
            self._kept[:] = [(cleaning, shelf)]

    def _added(self, shelf: Shelf | None, block: CleanBlock) -> tuple[Shelf | None, bool]:
        """A shelf with one block more; or none, and that no further block is to be kept."""
        made: list[Shelf] = [] if shelf is None else [shelf]

        def add() -> None:
            made[:] = made or [self._shelf(block)]
            made[0].add(block)

        return (made[0], False) if self._fits(add) else (None, True)

    def _fits(self, keep: Callable[[], None]) -> bool:
        """Whether there was room; refused if there was none, unless the number is a secret."""
        try:
            keep()
        except StorageError:
            if self.relation == "replace-one":
                raise
            return False
        return True

    def _shelf(self, block: CleanBlock) -> Shelf:
        rows = self._n_rows if self.relation == "add-remove" else self.n_rows
        sizes = [array.nbytes for array in block if array is not None]
        return self._store.shelf(sum(sizes) / max(1, len(block[0])) * rows)

    def _again(self, shelf: Shelf) -> Iterator[CleanBlock]:
        for X, y, known in shelf:
            self.rows  # noqa: B018, refuses also in the middle
            yield X, y, known

    def forget(self) -> None:
        """Drop what was kept, also for who still holds a block of it in a file."""
        for _, shelf in self._kept:
            shelf.close()
        self._kept.clear()

    def _below(self, cleaning: RowMap) -> Shelf | None:
        """Kept rows that a map is made of, if both leave out the same ones."""
        below = getattr(cleaning, "made_of", None)
        if below is None or not self._keeps:
            return None
        shelf = next((shelf for known, shelf in self._kept if known is below), None)
        if shelf is None or self.leaves_out(below) != self.leaves_out(cleaning):
            return None
        return shelf

    def _pass(self, cleaning: RowMap) -> Iterator[CleanBlock]:
        shelf = self._below(cleaning)
        return self._read(cleaning) if shelf is None else self._further(cleaning, shelf)

    def _further(self, cleaning: Any, shelf: Shelf) -> Iterator[CleanBlock]:
        """Rows under a map of others that are kept; row by row it is what :meth:`_read` gives."""
        for before, given, known in self._again(shelf):
            X, y = cleaning.further(before, given)
            yield self._left_out(cleaning, X, y, known, before)

    def _read(self, cleaning: RowMap) -> Iterator[CleanBlock]:
        done, leaves_out = 0, self.leaves_out(cleaning)
        for table, labels in self.rows.blocks():
            self.rows  # noqa: B018, refuses also in the middle
            X, y = cleaning(table, labels)
            known = np.isfinite(labels) if labels is not None and leaves_out else None
            size = table.shape[0]
            if len(X) != size:
                raise PrivacyError("cleaning: a map of rows must keep every row.")
            X, y, known = self._left_out(cleaning, X, y, known, table)
            if self.part != "all":
                mine = self._mine(done + np.arange(size))
                X, y = X[mine], None if y is None else y[mine]
                known = None if known is None else known[mine]
            yield in_one_piece(X), None if y is None else in_one_piece(y), known
            done += size
            self._tell(done)

    def _left_out(
        self, cleaning: RowMap, X: FloatArray, y: FloatArray | None, known: Known | None, given: Any
    ) -> CleanBlock:
        """A block in which rows that do not count are one public row."""
        if known is None:
            return in_one_piece(X), None if y is None else in_one_piece(y), None
        X, none = blanked(X, known, given), self._nobody(cleaning)
        return in_one_piece(X), None if y is None else np.where(known, y, _first(none)), known

    def _mine(self, places: NDArray[np.intp]) -> Known:
        """Which places are of this part."""
        unit = places // self._each  # whole people
        held = np.floor((unit + 1) * self._holdout) > np.floor(unit * self._holdout)
        return held if self.part == "holdout" else ~held

    def labels(self) -> FloatArray:
        """Labels of this part, as they were given; no other cell is read."""
        given = self.rows.labels()
        return given if self.part == "all" else given[self._mine(np.arange(len(given)))]

    def total(self, cleaning: RowMap, reduce: Reduction, shape: tuple[int, ...]) -> FloatArray:
        """Sum of what is made of each block, compensated."""
        total = np.zeros(shape)
        lost = np.zeros_like(total)
        for each in self.blocks(cleaning):
            with muted():  # it may run code that is not ours; progress is told outside
                block = reduce(*each)
            if np.shape(block) != total.shape:  # it would be added several times
                raise PrivacyError(f"what rows add must have the shape {total.shape}.")
            grown = total + block
            part_of_block = grown - total  # Knuth's two-sum: exact, and without a branch
            lost += (total - (grown - part_of_block)) + (block - part_of_block)
            total = grown
        return np.asarray(total + lost)


def _first(labels: FloatArray | None) -> float:
    return 0.0 if labels is None else float(labels[0])


def blanked(X: FloatArray, known: Known, given: object) -> FloatArray:
    """Rows with 0 in place of those that do not count, in the same layout.

    It works in place if the map has made the rows anew, which is a fact of the map: their layout,
    which a matrix product may depend on, must not tell whether there is such a row.

    Examples
    --------
    >>> blanked(np.ones((2, 3)), np.array([True, False]), None)
    array([[1., 1., 1.],
           [0., 0., 0.]])
    """
    fresh = X.flags.owndata and X.flags.forc and X.flags.writeable and X is not given
    out = X if fresh else np.array(X, order="K")
    out[~known] = 0.0
    return out
