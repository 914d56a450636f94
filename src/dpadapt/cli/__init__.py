"""The command line: one file a command, and quick to say --help.

The file of a command is imported when the command is asked for. Heavy imports (pandas,
scikit-learn, SQLAlchemy) wait inside the commands; a test looks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__

__all__ = ["app", "help_text"]

_COMMANDS = (
    *("demo", "check", "preview", "fit", "predict", "evaluate", "export", "report", "audit"),
    *("agent", "ledger"),
)
_WIDTH = 76  # of a line of an example: a terminal of 80 columns has margins


class _App(typer.Typer):
    """The program; a closed output (``>&-``) is no reason to fail after budget is spent."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _open_closed_streams()
        return super().__call__(*args, **kwargs)


def _open_closed_streams() -> None:
    """Give a closed input or output (``>&-``) to nobody, before a file gets its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def help_text(text: str) -> str:
    r"""Join the lines of each paragraph; break examples before options, as a shell reads them.

    A paragraph is an example if it begins with two blanks. An empty paragraph after the first one
    keeps them: typer takes away the blanks that all later lines but one begin with.

    Examples
    --------
    >>> print(help_text("First\nline.\n\n  dpadapt " + "--option value " * 6))
    First line.
    <BLANKLINE>
    <BLANKLINE>
    <BLANKLINE>
      dpadapt --option value --option value --option value --option value \
          --option value --option value
    """
    first, *parts = cleandoc(text).split("\n\n")
    later = (_example(each) if each.startswith("  ") else _joined(each) for each in parts)
    return "\n\n".join([_joined(first), *([""] * bool(parts)), *later])


def _joined(part: str) -> str:
    return " ".join(part.split())


def _example(part: str) -> str:
    words = _joined(part.replace("\\\n", " ")).replace(" --", "\n--").split("\n")
    lines = [f"  {words[0]}"]
    for each in words[1:]:
        if len(lines[-1]) + len(each) + 3 > _WIDTH:
            lines[-1] += " \\"
            lines.append(f"      {each}")
        else:
            lines[-1] += f" {each}"
    return "\n".join(lines)


class _Commands(Mapping[str, Any]):
    """Commands by name, in the order of --help; the file of one is imported when it is taken."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in _COMMANDS:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = _command(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


def _command(name: str) -> Any:
    """What stands in the file of a command, made ready to parse what it is given."""
    module = import_module(f".{name}", __name__)
    if name == "ledger":
        app, commands = _app(_LEDGER), module.COMMANDS
    else:
        app, commands = _app(""), {name: getattr(module, f"{name}_command")}
    for each, run in commands.items():
        app.command(each, help=help_text(str(run.__doc__)))(run)
    made = typer.main.get_command(app)
    made.name = name
    return made


def _app(text: str, *, cls: type[TyperGroup] = TyperGroup, completion: bool = False) -> _App:
    return _App(
        cls=cls,
        help=help_text(text),
        no_args_is_help=True,
        add_completion=completion,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,  # a traceback with local variables would show private rows
        context_settings={"help_option_names": ["-h", "--help"]},
    )


_LEDGER = (
    "Keep the privacy budget of data sets, across fits, people and machines.\n\n"
    "[bold]Examples[/]\n\n"
    "  dpadapt ledger create --ledger budget.db --dataset patients --epsilon 3 --delta 1e-6\n\n"
    "  dpadapt ledger show --ledger budget.db"
)
app = _app(
    "Learn a predictor for a private domain with the help of public data, with a "
    "differential-privacy guarantee that is computed from what really ran.\n\n"
    "[bold]Examples[/]\n\n"
    "  dpadapt demo\n\n"
    "  dpadapt preview --public a.csv --label y --rows 20000 --epsilon 0.25 1 4\n\n"
    "  dpadapt check --public a.csv --private b.parquet --label y --epsilon 1\n\n"
    "  dpadapt fit --public a.csv --private b.parquet --label y --epsilon 1 --delta 1e-6 "
    "--out model/\n\n"
    "  dpadapt predict --model model/ --input new.csv --out predictions.csv --keep person_id\n\n"
    "[bold]Exit codes[/]\n\n"
    "  0 done, 1 input refused, 2 wrong usage, 3 budget would be passed\n\n"
    "  4 ledger or disk cannot be read or written, 5 out of memory\n\n"
    "  70 a fault of dpadapt, 128 + n ended by signal n",
    cls=_Group,
    completion=True,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpadapt {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Do nothing by itself; the text of --help is the application's."""
