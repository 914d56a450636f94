"""The command line: one file a command, and quick to say --help.

Heavy imports (pandas, scikit-learn, SQLAlchemy) wait inside the commands; a test looks.
"""

from __future__ import annotations

import os
import sys
from inspect import cleandoc
from typing import Annotated, Any

import typer

from .. import __version__
from . import (
    agent,
    audit,
    check,
    demo,
    evaluate,
    export,
    fit,
    ledger,
    predict,
    preview,
    report,
)

__all__ = ["app"]

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


def _help_text(text: str) -> str:
    r"""Join the lines of each paragraph; break examples before options, as a shell reads them.

    A paragraph is an example if it begins with two blanks.

    Examples
    --------
    >>> print(_help_text("First\nline.\n\n  dpadapt " + "--option value " * 6))
    First line.
    <BLANKLINE>
      dpadapt --option value --option value --option value --option value \
          --option value --option value
    """
    parts = cleandoc(text).split("\n\n")
    return "\n\n".join(_example(each) if each.startswith("  ") else _joined(each) for each in parts)


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


def _app(text: str, *, completion: bool = False) -> _App:
    return _App(
        help=_help_text(text),
        no_args_is_help=True,
        add_completion=completion,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,  # a traceback with local variables would show private rows
        context_settings={"help_option_names": ["-h", "--help"]},
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
    completion=True,
)
_ledger_app = _app(
    "Keep the privacy budget of data sets, across fits, people and machines.\n\n"
    "[bold]Examples[/]\n\n"
    "  dpadapt ledger create --ledger budget.db --dataset patients --epsilon 3 --delta 1e-6\n\n"
    "  dpadapt ledger show --ledger budget.db"
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpadapt {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Do nothing by itself; the text of --help is the application's."""


for _command in (
    demo.demo,
    check.check,
    preview.preview,
    fit.fit,
    predict.predict,
    evaluate.evaluate,
    export.export,
    report.report,
    audit.audit,
    agent.agent,
):
    app.command(help=_help_text(str(_command.__doc__)))(_command)
for _command in ledger.COMMANDS:
    _ledger_app.command(help=_help_text(str(_command.__doc__)))(_command)
app.add_typer(_ledger_app, name="ledger")
