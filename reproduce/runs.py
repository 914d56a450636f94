"""How an experiment is run: options, and cells on several processors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Options", "run_cells"]

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
