"""The rows of one part of a private sample, as a statistic reads them: cleaned, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dpadapt._types import FloatArray

from ..accounting.events import Relation
from ..rows.sources import BLOCK_ROWS, RowSource
from .cleaning import RowMap
from .errors import PrivacyError
from .hidden import Opaque, Part
from .home import Home

CleanBlock = tuple[FloatArray, FloatArray | None]
Reduction = Callable[[FloatArray, FloatArray | None], FloatArray]
Progress = Callable[[int, int], None]
KEPT_BYTES = 1 << 30  # of cleaned rows, at most, that a session keeps for its next statistic
# What the order of summation can do to a float64 sum, relative to one row: under add-remove every
# later row moves to another place in its block. Holds up to 1e7 rows; must not tell how many.
ORDER_SLACK = 1e-3
# What rounding can do to a mean, relative to the bound on one row's contribution.
ROUNDING = 2 * (BLOCK_ROWS + 8) * float(np.finfo(np.float64).eps)
MOST_ROWS = 1e20  # where their number is a secret: more than anybody has


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
        part: Part = "all",
        holdout: float = 0.0,
        progress: Progress | None = None,
    ) -> None:
        self._held, self._home, self._holdout = held, home, holdout
        self.relation, self.part, self._progress = relation, part, progress
        self.n_columns, self._n_rows = held[0].n_columns, held[0].n_rows
        self._each = getattr(held[0].people, "each", 1)
        self.labelled = held[0].labelled
        self._keeps, self._origin = False, self
        self._kept: list[tuple[RowMap, list[CleanBlock]]] = []  # one at most; shared by views

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

        With ``keep`` cleaned rows stay in memory for the next pass, if they fit; without ``rows``
        there are public facts alone.
        """
        view = object.__new__(Sample)
        vars(view).update(vars(self))
        view._keeps, view._held = keep, list(self._held) if rows else []
        return view

    def end(self) -> None:
        """Take the rows away from a view that was lent."""
        self._held.clear()

    def blocks(self, cleaning: RowMap) -> Iterable[CleanBlock]:
        """Cleaned rows in order."""
        self.rows  # noqa: B018, refuses a view that has ended, also what was kept
        if not self._keeps:
            return self._pass(cleaning)
        for known, blocks in self._kept:
            if known is cleaning:
                return blocks
        kept = []
        for X, y in self._pass(cleaning):
            if X.nbytes / max(1, len(X)) * self._n_rows > KEPT_BYTES:
                return self._pass(cleaning)
            for array in (X, y):  # a statistic must not change what the next one gets
                if array is not None:
                    array.flags.writeable = False
            kept.append((X, y))
        self._kept[:] = [(cleaning, kept)]
        return kept

    def forget(self) -> None:
        """Drop what was kept."""
        self._kept.clear()

    def _pass(self, cleaning: RowMap) -> Iterator[CleanBlock]:
        done = 0
        for table, labels in self.rows.blocks():
            self.rows  # noqa: B018, refuses also in the middle
            X, y = cleaning(table, labels)
            size = table.shape[0]
            if len(X) != size:
                raise PrivacyError("cleaning: a map of rows must keep every row.")
            if self.part != "all":
                unit = (done + np.arange(size)) // self._each  # whole people
                held = np.floor((unit + 1) * self._holdout) > np.floor(unit * self._holdout)
                mine = held if self.part == "holdout" else ~held
                X, y = X[mine], None if y is None else y[mine]
            yield X, y
            done += size
            if self.progress is not None:
                self.progress(done, self._n_rows)

    def total(self, cleaning: RowMap, reduce: Reduction, shape: tuple[int, ...]) -> FloatArray:
        """Sum of what is made of each block, compensated."""
        total = np.zeros(shape)
        lost = np.zeros_like(total)
        for X, y in self.blocks(cleaning):
            block = reduce(X, y)
            grown = total + block
            part_of_block = grown - total  # Knuth's two-sum: exact, and without a branch
            lost += (total - (grown - part_of_block)) + (block - part_of_block)
            total = grown
        return np.asarray(total + lost)
