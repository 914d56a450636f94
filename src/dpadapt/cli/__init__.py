"""The command line: one file a command, and quick to say --help.

Heavy imports (pandas, scikit-learn, SQLAlchemy) wait inside the commands; a test looks.
"""

from __future__ import annotations

from typing import Annotated

import typer

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


def _app(text: str, *, completion: bool = False) -> typer.Typer:
    return typer.Typer(
        help=text,
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
    "  dpadapt predict --model model/ --input new.csv --out predictions.csv --keep person_id",
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
        from importlib.metadata import version

        typer.echo(f"dpadapt {version('dpadapt')}")
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
    app.command()(_command)
for _command in ledger.COMMANDS:
    _ledger_app.command()(_command)
app.add_typer(_ledger_app, name="ledger")
