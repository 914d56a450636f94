"""How many sums over the rows a session takes, and how far it is: for a bar of the whole fit."""

from __future__ import annotations

from dataclasses import dataclass


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
