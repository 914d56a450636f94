"""How an experiment is run: options, and cells on several processors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Draws", "Options", "draws_of", "run_cells", "spread_note"]

Cell = TypeVar("Cell")
Rows = list[dict[str, Any]]


def _silent(done: int, total: int, name: str) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Options:
    """How much to run.

    Parameters
    ----------
    repeats : int, default=10
        Draws of data and noise.
    quick : bool, default=False
        Fewer settings, to see that it works.
    steps : int, optional
        Steps of iterative algorithms, instead of the paper's number; for tests.
    jobs : int, default=1
        Processes.
    resample : bool, default=False
        Draw private people with replacement to reach a paper's n. This voids the guarantee;
        tables and pictures say so.
    progress : callable
        Told what is done, of how many, and of what.

    Examples
    --------
    >>> Options(repeats=2, quick=True).jobs
    1
    """

    repeats: int = 10
    quick: bool = False
    steps: int | None = None
    jobs: int = 1
    resample: bool = False
    progress: Callable[[int, int, str], None] = _silent


@dataclass(frozen=True)
class Draws:
    """How many draws of data and noise a setting of a run has: the least, and the most.

    Examples
    --------
    >>> str(Draws(1, 3)), str(Draws(5, 5))
    ('1 to 3', '5')
    """

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.most}" if self.least == self.most else f"{self.least} to {self.most}"


def draws_of(table: pd.DataFrame) -> Draws | None:
    """Count the draws of each setting of a table; None if it does not tell them apart.

    Examples
    --------
    >>> import pandas as pd
    >>> str(draws_of(pd.DataFrame({"n": [1, 1, 2], "repeat": [0, 1, 0]})))
    '1 to 2'
    """
    for name in ("repeat", "seed"):
        if name in table:
            drawn = table[table[name].notna()]
            settings = [each for each in ("dataset", "setting", "d", "n") if each in table]
            if not settings:
                return Draws(drawn[name].nunique(), drawn[name].nunique())
            counts = drawn.groupby(settings)[name].nunique()
            return Draws(int(counts.min()), int(counts.max()))
    return None


def spread_note(table: pd.DataFrame, told: str) -> str:
    """What a picture says of its bars or bands; of one draw, which has none, that it is one.

    Examples
    --------
    >>> import pandas as pd
    >>> spread_note(pd.DataFrame({"repeat": [0, 0]}), "Bars: one standard deviation.")
    'One draw.'
    """
    draws = draws_of(table)
    return told if draws is not None and draws.most > 1 else "One draw."


def run_cells(
    run: Callable[[Cell], Rows], cells: Sequence[Cell], options: Options, name: str
) -> pd.DataFrame:
    """Run every cell and put the lines into one table, in the order of the cells.

    Parameters
    ----------
    run : callable
        From a cell to its lines; at the top level of a module, as processes need it.
    cells : sequence
    options : Options
    name : str
        For the progress bar.

    Examples
    --------
    >>> def square(cell):
    ...     return [{"cell": cell, "square": cell**2}]
    >>> run_cells(square, [3, 2], Options(), "squares")["square"].tolist()
    [9, 4]
    """
    import pandas as pd

    found: dict[int, Rows] = {}
    for place, rows in _outcomes(run, cells, options.jobs):
        found[place] = rows
        options.progress(len(found), len(cells), name)
    return pd.DataFrame([row for place in sorted(found) for row in found[place]])


def _outcomes(
    run: Callable[[Cell], Rows], cells: Iterable[Cell], jobs: int
) -> Iterator[tuple[int, Rows]]:
    if jobs == 1:
        for place, cell in enumerate(cells):
            yield place, run(cell)
        return
    with ProcessPoolExecutor(jobs) as pool:
        places = {pool.submit(run, cell): place for place, cell in enumerate(cells)}
        for done in as_completed(places):
            yield places[done], done.result()
