"""``dpadapt ledger``: budgets of data sets, created, shown, exported, checked, copied, adopted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import screens
from .options import DatasetName, LedgerPath
from .outputs import refuse_out, write_whole
from .screens import plain_errors, say, say_note

if TYPE_CHECKING:
    from dpadapt.privacy.ledger.ledger import Ledger
    from dpadapt.privacy.ledger.records import Dataset


@plain_errors()
def create(
    ledger: LedgerPath,
    dataset: DatasetName,
    epsilon: Annotated[float, typer.Option(help="Budget of the data set's whole life.")],
    delta: Annotated[float, typer.Option(help="Delta of that budget.")],
) -> None:
    """Add a data set with its budget; the ledger is created if there is none.

    [bold]Example[/]

      dpadapt ledger create --ledger budget.db --dataset patients --epsilon 3 --delta 1e-6
    """
    _open(ledger).create(dataset, epsilon=epsilon, delta=delta)
    say("created", f"{dataset}: epsilon {epsilon:g} at delta {delta:g}, for its whole life.")


@plain_errors()
def show(
    ledger: LedgerPath,
    dataset: Annotated[str | None, typer.Option(help="Show the charges of this one.")] = None,
) -> None:
    """Show budgets, what is spent and what is left; with --dataset also every charge.

    [bold]Examples[/]

      dpadapt ledger show --ledger budget.db

      dpadapt ledger show --ledger budget.db --dataset patients
    """
    opened = _open(ledger)
    shown = opened.datasets() if dataset is None else [opened.dataset(dataset)]
    if not shown:
        _say_empty()
        return
    console = screens.console()
    console.print(screens.datasets_table(shown))
    say("", "Releases compose tightly: spent and left need not add up to the budget.")
    if dataset is not None:
        console.print(screens.charges_table(dataset, shown[0].charges, shown[0].delta))


@plain_errors()
def export_ledger(
    ledger: LedgerPath,
    dataset: DatasetName,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default the screen.")] = None,
) -> None:
    """Write everything about one data set as JSON: budget, spent, left, every charge and event.

    [bold]Example[/]

      dpadapt ledger export --ledger budget.db --dataset patients --out patients.json
    """
    import json

    if out is not None:
        refuse_out(out, ledger=ledger)
    text = json.dumps(_open(ledger).export(dataset), indent=2)
    if out is None:
        typer.echo(text)
    else:
        write_whole(out, text + "\n")
        say("wrote", str(out))


@plain_errors()
def check_ledger(ledger: LedgerPath) -> None:
    """Compose every data set anew from all its charges, and compare with what the ledger keeps.

    [bold]Example[/]

      dpadapt ledger check --ledger budget.db
    """
    _say_checked(_open(ledger).check())


@plain_errors()
def adopt_ledger(ledger: LedgerPath) -> None:
    """Bring a ledger into use that was moved, copied or restored, or that an older dpadapt wrote.

    It is checked first, and converted if it is old; its old records are kept in it. Charges of
    another copy are not in this one: compare the numbers with what you expect, and use no other
    copy any more.

    [bold]Example[/]

      dpadapt ledger adopt --ledger budget.db
    """
    _say_checked(_open(ledger).adopt())


@plain_errors()
def backup(
    ledger: LedgerPath,
    out: Annotated[Path, typer.Option(help="File for the copy; must not exist.")],
) -> None:
    """Copy a SQLite ledger to a file, also while others charge; the copy is checked.

    The copy is not in use. Put into the place of a ledger that is lost, it needs adopt, and lacks
    what was charged after it was made.

    [bold]Example[/]

      dpadapt ledger backup --ledger budget.db --out budget-2026-01-31.db
    """
    opened = _open(ledger)
    _say_checked(opened.check())
    opened.backup(out)
    say("wrote", f"{out}: a copy of {ledger}, not in use before `dpadapt ledger adopt`.")


COMMANDS = {
    "create": create,
    "show": show,
    "export": export_ledger,
    "check": check_ledger,
    "backup": backup,
    "adopt": adopt_ledger,
}
"""In the order in which ``dpadapt ledger --help`` lists them."""


def _say_checked(datasets: Sequence[Dataset]) -> None:
    for each in datasets:
        last = f", the last on {each.charges[-1].created[:16]} UTC" if each.charges else ""
        many = f"{len(each.charges):,} charge{'' if len(each.charges) == 1 else 's'}"
        say("checked", f"{each.name}: {many}{last}. All digests and sums hold.")
    if not datasets:
        _say_empty()


def _say_empty() -> None:
    say_note("the ledger has no data sets yet; add one with `dpadapt ledger create`.")


def _open(location: str) -> Ledger:
    from dpadapt.privacy import Ledger

    return Ledger(location)
