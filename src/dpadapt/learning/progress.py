"""A progress bar for work over many rows; silent unless asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def row_progress(title: str, verbose: int) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback (rows done, rows in all) that draws a bar, or None if ``verbose`` is 0.

    The bar goes to standard error; where that is no terminal, only the last state is written.

    Examples
    --------
    >>> with row_progress("reading", verbose=0) as report:
    ...     print(report)
    None
    """
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)  # this one, also while foreign code is kept from writing
    with Progress(
        *columns,
        console=console,
        transient=console.is_terminal,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:

        def report(done: int, total: int) -> None:
            if not bar.tasks:  # no bar before there is anything to count
                bar.add_task(title, total=total)
            bar.update(bar.tasks[0].id, completed=done, total=total)

        yield report
