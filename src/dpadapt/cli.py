"""The command line: thin, and quick to say --help (heavy imports wait inside the commands)."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dpadapt._commands.agent import agent
from dpadapt._commands.screens import plain_errors, say, say_note

__all__ = ["app"]


def _app(text: str) -> typer.Typer:
    return typer.Typer(
        help=text,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,  # a traceback with local variables would show private rows
        context_settings={"help_option_names": ["-h", "--help"]},
    )


app = _app(
    "Learn a predictor for a private domain with the help of public data, with a "
    "differential-privacy guarantee that is computed from what really ran.\n\n"
    "[bold]Examples[/]\n\n"
    "  dpadapt demo\n\n"
    "  dpadapt fit --public a.csv --private b.parquet --label y --epsilon 1 --delta 1e-6 "
    "--out model/\n\n"
    "  dpadapt predict --model model/ --input new.csv --out predictions.csv"
)
ledger_app = _app(
    "Keep the privacy budget of data sets, across fits, people and machines.\n\n"
    "[bold]Examples[/]\n\n"
    "  dpadapt ledger create --ledger budget.db --dataset patients --epsilon 3 --delta 1e-6\n\n"
    "  dpadapt ledger show --ledger budget.db"
)
app.add_typer(ledger_app, name="ledger")
app.command()(agent)


class Noise(StrEnum):
    """Where noise comes from."""

    secure = "secure"
    seeded = "seeded"
    exact = "exact"


LedgerPath = Annotated[
    str, typer.Option("--ledger", help="SQLite file of the ledger, or postgresql:// URL.")
]
DatasetName = Annotated[str, typer.Option("--dataset", help="Name of the data set in the ledger.")]
ModelPath = Annotated[Path, typer.Option("--model", help="Model folder, written by fit.")]
Trusted = Annotated[
    list[str] | None,
    typer.Option("--trust", help="Also accept this class or function in it; may be repeated."),
]


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


@app.command()
@plain_errors()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for report, table and picture.")] = Path("demo"),
    runs: Annotated[int, typer.Option(min=1, max=100, help="Random splits a setting.")] = 5,
) -> None:
    """Show on real wages what adaptation gains, what it costs in privacy, and where it cannot help.

    [bold]Example[/]

      dpadapt demo --out demo --runs 5
    """
    from dpadapt._commands.demo import show_demo

    show_demo(out, runs)


@app.command()
@plain_errors()
def fit(
    public: Annotated[Path, typer.Option(help="Public rows with labels: CSV or Parquet.")],
    private: Annotated[Path, typer.Option(help="Private rows: CSV, Parquet or folder of Parquet.")],
    label: Annotated[str, typer.Option(help="Column of the public file to predict.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget; smaller is more private.")],
    delta: Annotated[float, typer.Option(help="Probability that epsilon may fail, e.g. 1e-6.")],
    out: Annotated[Path, typer.Option(help="Folder for the model; must not exist.")],
    degree: Annotated[
        int, typer.Option(min=1, max=2, help="2 adds squares and products of numbers.")
    ] = 1,
    ledger: Annotated[
        str | None, typer.Option(help="Charge this ledger before anything is released.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Data set of the ledger that the private rows are.")
    ] = None,
    noise: Annotated[Noise, typer.Option(help="seeded is for tests only.")] = Noise.secure,
    random_state: Annotated[
        int | None, typer.Option(min=0, help="Seed, for --noise seeded only.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False,
) -> None:
    """Learn from public labelled rows for the people in a private, unlabelled table.

    The private rows serve for one noisy release; private labels, if any, are not read.

    [bold]Examples[/]

      dpadapt fit --public a.csv --private b.parquet --label y --epsilon 1 --delta 1e-6 --out model/

      dpadapt fit --public a.csv --private b.csv --label y --epsilon 0.5 --delta 1e-6 --out model/ \
--degree 2 --ledger budget.db --dataset patients
    """
    if (ledger is None) != (dataset is None):
        raise typer.BadParameter("--ledger and --dataset belong together; give both or neither.")
    if (random_state is None) == (noise is Noise.seeded):
        raise typer.BadParameter("--random-state is needed with --noise seeded, and only then.")
    from dpadapt._commands.fit import Job, fit_table

    fit_table(
        Job(
            public=public,
            private=private,
            label=label,
            out=out,
            epsilon=epsilon,
            delta=delta,
            degree=degree,
            noise=noise.value,
            random_state=random_state,
            ledger=ledger,
            dataset=dataset,
            force=force,
        )
    )


@app.command()
@plain_errors()
def predict(
    model: ModelPath,
    input: Annotated[Path, typer.Option(help="Rows to predict for: CSV or Parquet.")],
    out: Annotated[Path, typer.Option(help="File for the predictions: .csv or .parquet.")],
    trust: Trusted = None,
) -> None:
    """Predict for new rows. Costs no privacy, however often it is done.

    [bold]Example[/]

      dpadapt predict --model model/ --input new.csv --out predictions.csv
    """
    import pandas as pd

    from dpadapt._commands.outputs import refuse_database
    from dpadapt._commands.tables import TableError, read_table, write_table
    from dpadapt.modelfolder import load_model

    _refuse_inside(out, model)
    refuse_database(out)
    fitted, rows = load_model(model, trusted=trust or ()), read_table(input)
    names = list(getattr(fitted, "feature_names_in_", rows.columns))
    if missing := [str(name) for name in names if name not in rows.columns]:
        raise TableError(f"{input} lacks the column(s) {', '.join(missing)} that the model needs.")
    write_table(pd.DataFrame({"prediction": fitted.predict(rows[names])}), out)
    say("wrote", f"{out}: {len(rows):,} predictions, in the order of {input}.")


@app.command()
@plain_errors()
def audit(
    public: Annotated[
        Path | None, typer.Option(help="Public rows with labels: CSV or Parquet.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None,
    delta: Annotated[float | None, typer.Option(help="As you will give it to fit.")] = None,
    degree: Annotated[int, typer.Option(min=1, max=2, help="As you will give it to fit.")] = 1,
    runs: Annotated[
        int, typer.Option(min=10, max=100_000, help="Runs of the attack; more finds more.")
    ] = 300,
    out: Annotated[Path, typer.Option(help="Folder for audit.json and audit.png.")] = Path("audit"),
    seed: Annotated[int, typer.Option(min=0, help="Of coins and noise of the attack.")] = 0,
    library: Annotated[
        bool, typer.Option("--library", help="Replay every estimator and option instead.")
    ] = False,
    pairs: Annotated[
        int, typer.Option(min=1, max=1000, help="Of --library: neighbours of each combination.")
    ] = 2,
) -> None:
    """Attack a fit as you would run it, on public rows that play the private ones.

    No private row is read and no ledger is charged. Half of the public rows play the private
    table. A replay checks that no un-noised value moves by more than its stated sensitivity when
    one row changes; an attacker who sees every release then tells the worst pair apart, run after
    run, which gives a lower bound on epsilon. Exit code 1 if the guarantee is refuted.

    [bold]Examples[/]

      dpadapt audit --public a.csv --label y --epsilon 1 --delta 1e-6 --out audit/

      dpadapt report --model model/ --audit audit/audit.json

      dpadapt audit --library
    """
    from dpadapt._commands.audit import AuditJob, audit_fit, audit_library

    if library:
        if not audit_library(pairs):
            raise typer.Exit(1)
        return
    if public is None or label is None or epsilon is None or delta is None:
        raise typer.BadParameter("give --public, --label, --epsilon and --delta, or --library.")
    job = AuditJob(public, label, out, epsilon, delta, degree, runs, seed=seed)
    holds = audit_fit(job)
    say("wrote", f"{out} (audit.json, audit.png)")
    if not holds:
        raise typer.Exit(1)


@app.command()
@plain_errors()
def report(
    model: ModelPath,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    ledger: Annotated[str | None, typer.Option(help="Ledger to show the state of.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Data set of that ledger.")] = None,
    trust: Trusted = None,
    audit: Annotated[
        Path | None, typer.Option(help="Show this audit.json, of dpadapt audit.")
    ] = None,
) -> None:
    """Write the privacy report of a model: one HTML file, for whoever signs off its release.

    [bold]Examples[/]

      dpadapt report --model model/ --out report.html

      dpadapt report --model model/ --ledger budget.db --dataset patients

      dpadapt report --model model/ --audit audit/audit.json
    """
    if (ledger is None) != (dataset is None):
        raise typer.BadParameter("--ledger and --dataset belong together; give both or neither.")
    from dpadapt._commands.outputs import refuse_database
    from dpadapt._commands.tables import require_file
    from dpadapt.modelfolder import load_model
    from dpadapt.report import ReportContext, write_report

    _refuse_inside(out, model)
    refuse_database(out, ledger)
    fitted = load_model(model, trusted=trust or ())
    state = _ledger(ledger).dataset(dataset) if ledger is not None else None
    tested = None
    if audit is not None:
        from dpadapt.audit.result import AuditResult

        require_file(audit)
        tested = AuditResult.load(audit)
    write_report(fitted, out, context=ReportContext(ledger=state, audit=tested))
    say("guarantee", fitted.guarantee_.sentence)
    say("wrote", str(out))


@ledger_app.command("create")
@plain_errors()
def ledger_create(
    ledger: LedgerPath,
    dataset: DatasetName,
    epsilon: Annotated[float, typer.Option(help="Budget of the data set's whole life.")],
    delta: Annotated[float, typer.Option(help="Delta of that budget.")],
) -> None:
    """Add a data set with its budget; the ledger is created if there is none.

    [bold]Example[/]

      dpadapt ledger create --ledger budget.db --dataset patients --epsilon 3 --delta 1e-6
    """
    _ledger(ledger).create(dataset, epsilon=epsilon, delta=delta)
    say("created", f"{dataset}: epsilon {epsilon:g} at delta {delta:g}, for its whole life.")


@ledger_app.command("show")
@plain_errors()
def ledger_show(
    ledger: LedgerPath,
    dataset: Annotated[str | None, typer.Option(help="Show the charges of this one.")] = None,
) -> None:
    """Show budgets, what is spent and what is left; with --dataset also every charge.

    [bold]Examples[/]

      dpadapt ledger show --ledger budget.db

      dpadapt ledger show --ledger budget.db --dataset patients
    """
    from dpadapt._commands import screens

    opened = _ledger(ledger)
    shown = opened.datasets() if dataset is None else [opened.dataset(dataset)]
    if not shown:
        say_note("the ledger has no data sets yet; add one with `dpadapt ledger create`.")
        return
    console = screens.console()
    console.print(screens.datasets_table(shown))
    if dataset is not None:
        console.print(screens.charges_table(dataset, shown[0].charges, shown[0].delta))


@ledger_app.command("export")
@plain_errors()
def ledger_export(
    ledger: LedgerPath,
    dataset: DatasetName,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default the screen.")] = None,
) -> None:
    """Write everything about one data set as JSON: budget, spent, left, every charge and event.

    [bold]Example[/]

      dpadapt ledger export --ledger budget.db --dataset patients --out patients.json
    """
    import json

    from dpadapt._commands.outputs import refuse_database, write_whole

    if out is not None:
        refuse_database(out, ledger)
    text = json.dumps(_ledger(ledger).export(dataset), indent=2)
    if out is None:
        typer.echo(text)
    else:
        write_whole(out, text + "\n")
        say("wrote", str(out))


@ledger_app.command("check")
@plain_errors()
def ledger_check(ledger: LedgerPath) -> None:
    """Compose every data set anew from all its charges, and compare with what the ledger keeps.

    [bold]Example[/]

      dpadapt ledger check --ledger budget.db
    """
    _say_checked(_ledger(ledger).check())


@ledger_app.command("adopt")
@plain_errors()
def ledger_adopt(ledger: LedgerPath) -> None:
    """Bring a ledger into use that was moved, copied or restored, or that an older dpadapt wrote.

    It is checked first, and converted if it is old; its old records are kept in it. Charges of
    another copy are not in this one: compare the numbers with what you expect, and use no other
    copy any more.

    [bold]Example[/]

      dpadapt ledger adopt --ledger budget.db
    """
    _say_checked(_ledger(ledger).adopt())


def _say_checked(datasets: Any) -> None:
    for each in datasets:
        last = f", the last on {each.charges[-1].created[:16]} UTC" if each.charges else ""
        say(
            "checked", f"{each.name}: {len(each.charges)} charges{last}. All digests and sums hold."
        )
    if not datasets:
        say_note("the ledger has no data sets yet; add one with `dpadapt ledger create`.")


def _refuse_inside(out: Path, model: Path) -> None:
    """Refuse to write into a model folder, by whatever path."""
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(model)):
        raise typer.BadParameter("--out must not be inside the model folder, which is sealed.")


def _ledger(location: Any) -> Any:
    from dpadapt.privacy import Ledger

    return Ledger(location)
