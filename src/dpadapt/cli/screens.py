"""What the command line shows, and the signals that end it.

Tables, sentences, and errors of one line. An interrupt from the keyboard (SIGINT), a batch queue
or a container that ends (SIGTERM), a terminal that is gone (SIGHUP): all end a command alike, with
the exit code 128 + the number of the signal, and at once while nothing is paid for. From the moment
in which a ledger is charged they wait until what was paid for is kept; another signal changes
nothing about that. Only SIGKILL ends a command at once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from dpadapt.privacy.ledger.records import Charge, Dataset


def console(*, stderr: bool = False) -> Console:
    """Return a console on the present output."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            try:
                super().on_broken_pipe()  # so that nothing fails once more at the end
            except SystemExit:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None

    return Plain(stderr=stderr, highlight=False)


def say(title: str, text: str, style: str = "") -> None:
    """Print a titled line; the text is shown as it is, whatever it holds."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=10, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(title, style="bold"), Text(_printable(text), style=style))
    console().print(Padding(grid, (0, 0, 0, 1)))


def say_note(text: str) -> None:
    """Print a line that needs attention."""
    say("note", text, style="yellow")


def say_aside(text: str) -> None:
    """Print a line on the standard error; that this fails stops nothing."""
    from rich.text import Text

    with suppress(OSError):
        _print_aside(Text(_printable(text), style="yellow"))


def _print_aside(text: Any) -> None:
    """On a screen broken between words; in a file or a pipe on one line, to be searched."""
    aside = console(stderr=True)
    aside.print(text, soft_wrap=not aside.is_terminal)


@contextmanager
def fall_back_to_stderr(otherwise: str) -> Iterator[None]:
    """Say what is done already: if nobody can read it any more, say ``otherwise`` aside."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
        say_aside(f"The standard output cannot be written. {otherwise}")


def _discard(stream: Any) -> None:
    """Let nothing fail once more at the end, when what is still in the buffer would be written."""
    with suppress(OSError, ValueError):  # also: no stream of the system, in a test
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors into one red line and an exit code; nothing is told about unforeseen ones.

    The text of an unforeseen error could speak of a private value, so only its type is shown.
    The codes are those of :class:`Code`; signals end a command with 128 + their number.
    """
    try:
        with handle_signals():
            yield
        return
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
        code: int = Code.storage
    except (ValueError, TypeError, ImportError) as error:
        text, code = " ".join(str(error).split()), _code(error)
    except KeyboardInterrupt as error:
        stopped = error if isinstance(error, Stopped) else Stopped(signal.SIGINT)
        text, code = f"ended by {signal.Signals(stopped.number).name}.", stopped.code
    except (typer.Exit, typer.Abort, typer.BadParameter, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        text, code = _of_other(error), _code(error)
    _fail(text, code)


class Code(IntEnum):
    """Exit codes; 2 is what the parser of the command line ends with."""

    refused = 1  # the input: a file, its columns, a setting
    usage = 2
    budget = 3  # of a data set would be passed
    storage = 4  # a ledger or a disk cannot be read or written
    memory = 5
    fault = 70  # of dpadapt


def _code(error: BaseException) -> int:
    from dpadapt.modelfolder import ModelWriteError
    from dpadapt.privacy.rows.errors import (
        BudgetExceeded,
        LedgerError,
        PrivacyError,
        StorageError,
    )

    kinds: list[tuple[Any, Code]] = [
        (BudgetExceeded, Code.budget),
        ((LedgerError, ModelWriteError, StorageError), Code.storage),
        (MemoryError, Code.memory),
        ((ValueError, TypeError, ImportError, PrivacyError), Code.refused),
    ]
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.fault)


def _of_other(error: BaseException) -> str:
    """What is told of other errors: the words of our own, and of unforeseen ones the type."""
    from dpadapt.privacy.rows.errors import PrivacyError  # not before: it takes its time
    from dpadapt.privacy.rows.memory import NotEnoughMemory

    if isinstance(error, PrivacyError):
        return " ".join(str(error).split())
    if isinstance(error, NotEnoughMemory):
        return str(error)
    if isinstance(error, MemoryError):
        return (
            "out of memory. Take fewer public rows or columns, or a machine or container that has "
            "more of it."
        )
    return f"something went wrong that dpadapt did not foresee ({type(error).__name__})."


def _fail(text: str, code: int) -> None:
    from rich.text import Text

    line = Text(f"Error: {_printable(text)}", style="bold red")
    with suppress(OSError):
        _print_aside(line)
    raise typer.Exit(int(code))


def _printable(text: str) -> str:
    """Text without what a terminal would obey."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def datasets_table(datasets: Sequence[Dataset]) -> Table:
    """Budget, spent and left of data sets."""
    table = _table("data set", ("epsilon", "delta", "spent", "left", "charges"))
    table.title = "Privacy budgets (spent and left: epsilon at that delta)"
    for each in datasets:
        left = each.left()
        colour = "red" if left < each.epsilon / 10 else "green"
        table.add_row(
            _text(each.name),
            f"{each.epsilon:g}",
            f"{each.delta:g}",
            f"{each.spent():.4g}",
            f"[{colour}]{left:.4g}[/]",
            str(len(each.charges)),
        )
    return table


def charges_table(name: str, charges: Sequence[Charge], delta: float) -> Table:
    """Every charge of one data set."""
    from dpadapt.privacy.accounting.composition import compose_epsilon

    table = _table("no.", ("epsilon",), right=("when (UTC)", "who asked", "released"))
    table.title = _text(f"Charges of {name} (epsilon of each alone, at delta {delta:g})", "bold")
    for charge in charges:
        table.add_row(
            str(charge.id),
            f"{compose_epsilon(charge.events, delta):.4g}",
            charge.created[:16].replace("T", " "),
            _text(charge.label),
            _text(", ".join(event.label for event in charge.events)),
        )
    return table


def results_table(name: str, summary: pd.DataFrame) -> Table:
    """Errors of the demo's methods in one setting."""
    table = _table("method", ("error (MSE)", "spread", "gap closed"))
    table.title = _text(f"Setting: {name}", "bold")
    for row in summary.to_dict("records"):
        ours = str(row["method"]).startswith("dpadapt")
        closed = f"{row['gap']:.0%} ± {row['gap_spread']:.0%}"
        unadapted = ours and row["adapted"] < 0.5
        table.add_row(
            _text(str(row["method"])),
            f"{row['mse']:.4f}",
            f"{row['spread']:.4f}".replace("nan", "–"),
            "did not adapt" if unadapted else closed.replace(" ± nan%", ""),
            style="bold" if ours else "",
        )
    return table


def numbers_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Lines of short texts, none of which is broken, under their heads."""
    table = _table(heads[0], heads[1:])
    table.title = _text(title, "bold")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _table(first: str, numbers: Sequence[str], right: Sequence[str] = ()) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title_justify="left")
    table.title_style = "bold"
    table.add_column(first, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for name in right:
        table.add_column(name, overflow="fold")
    return table


def _text(value: str, style: str = "") -> Any:
    """Text that Rich does not take for markup."""
    from rich.text import Text

    return Text(value, style=style)


_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end.

    Examples
    --------
    >>> Stopped(signal.SIGTERM).code
    143
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def code(self) -> int:
        """Exit code, as shells know it."""
        return 128 + self.number


class _SignalHandler:
    """Ends a command at a signal, or keeps the first one until what was paid for is kept."""

    def __init__(self) -> None:
        self.paid: Callable[[], bool] = lambda: False
        self.tell: Callable[[str], None] = lambda text: None
        self.number: int | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        if not self.paid():
            raise Stopped(number)
        if self.number is None:
            self.number = number
            self.tell(
                f"{signal.Signals(number).name}: the ledger is charged already, so this ends as "
                "soon as what was paid for is kept. Nothing but SIGKILL ends it sooner."
            )


_handler = _SignalHandler()


@contextmanager
def handle_signals() -> Iterator[None]:
    """Let signals end what runs inside, by :class:`Stopped`; one that is ignored stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}
    try:
        for name in _SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, _handler.handle)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def defer_signals(paid: Callable[[], bool], tell: Callable[[str], None]) -> Iterator[None]:
    """Let signals wait for the end of what runs inside, from the moment in which ``paid()`` holds.

    What raises inside is not replaced by the signal.
    """
    _handler.paid, _handler.tell = paid, tell
    try:
        yield
    finally:
        number, _handler.number = _handler.number, None
        _handler.paid = lambda: False
    if number is not None:
        raise Stopped(number)
