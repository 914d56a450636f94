"""``dpadapt preview``: what a budget would buy, before anything is spent."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .formats import given_form
from .options import (
    Dates,
    Decimal,
    Dropped,
    Encoding,
    Groups,
    IdColumns,
    Kept,
    OnlyColumns,
    Separator,
    TaskOption,
    takes,
)
from .outputs import refuse_out, write_figure, write_frame, write_whole
from .public_table import ColumnChoice, PublicTable, Task, read_public_table
from .screens import console, numbers_table, plain_errors, say, say_note
from .tables import public_form, require_file

if TYPE_CHECKING:
    from dpadapt.preview import Preview
    from dpadapt.preview.result import Target

_DPI = 160
_WRITTEN = ("preview.json", "preview.csv", "preview.png")


@dataclass(frozen=True)
class PreviewOptions:
    """What was asked for on the command line."""

    public: Annotated[Path, typer.Option(help="Public rows with labels: CSV or Parquet.")]
    label: Annotated[str, typer.Option(help="Column of the public file to predict.")]
    rows: Annotated[
        int,
        typer.Option(
            min=1, help="Private rows that the fit will have; people, if they have several rows."
        ),
    ]
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Budgets to try, one or more after each other.")
    ] = None
    more: Annotated[list[float] | None, typer.Argument(metavar="EPSILON", help="More budgets.")] = (
        None
    )
    delta: Annotated[float, typer.Option(help="As you will give it to fit.")] = 1e-6
    groups: Groups = None
    columns: OnlyColumns = None
    keep: Kept = None
    drop: Dropped = None
    id: IdColumns = None
    date: Dates = None
    target: Annotated[
        str | None, typer.Option(help="Solve for an error (0.2) or a share of the gap (50%).")
    ] = None
    gap: Annotated[
        float | None,
        typer.Option(help="Part of the public error that no privacy would gain, if you know it."),
    ] = None
    task: TaskOption = Task.auto
    sep: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for preview.json, preview.csv and preview.png."),
    ] = None


@plain_errors()
@takes(PreviewOptions)
def preview_command(asked: PreviewOptions) -> None:
    """Rehearse a fit on public rows: what would each epsilon buy? No private row is read.

    Public sub-populations play the private people, with the noise that so many private rows would
    get. Nothing is spent.

    [bold]Examples[/]

      dpadapt preview --public a.csv --label y --rows 20000 --epsilon 0.25 0.5 1 2 4

      dpadapt preview --public a.csv --label y --rows 20000 --groups region --target 50% --out view/
    """
    from dpadapt.preview import preview as rehearse
    from dpadapt.preview.result import Target

    if asked.out is not None:
        for each in _WRITTEN:
            refuse_out(asked.out / each, asked.public)
    target = None if asked.target is None else Target.of(asked.target)
    epsilons = [*(asked.epsilon or ()), *(asked.more or ())] or [0.25, 0.5, 1.0, 2.0, 4.0]
    _check(asked, epsilons)
    table = _public(asked)
    X = _numbers(table)
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
    say("public", f"{asked.public}: {len(X):,} rows, {table.features.shape[1]} columns, labelled")
    with console(stderr=True).status("rehearsing") as status:
        view = rehearse(
            X,
            table.labels,
            rows=asked.rows,
            epsilons=epsilons,
            delta=asked.delta,
            groups=table.groups,
            gap=asked.gap,
            task=table.task.value,
            progress=lambda done, total, name: status.update(
                f"rehearsing: {name} ({done + 1} of {total})"
            ),
        )
    _show(view, target)
    if asked.out is not None:
        write_whole(asked.out / "preview.json", json.dumps(view.to_dict(), indent=1) + "\n")
        write_frame(view.to_frame(), asked.out / "preview.csv")
        write_figure(view.draw(), asked.out / "preview.png", _DPI)
        say("wrote", f"{asked.out}: preview.json, preview.csv, preview.png")


def _check(asked: PreviewOptions, epsilons: list[float]) -> None:
    """Refuse budgets that fit would refuse, before the file is read."""
    from dpadapt import _validate

    for each in epsilons:
        _validate.epsilon(each, most=_validate.MOST_EPSILON)
    _validate.delta(asked.delta)


def _public(asked: PreviewOptions) -> PublicTable:
    """The public table as fit reads it; what is left out is told."""
    said = given_form(asked.sep, asked.decimal, asked.encoding)
    require_file(asked.public, "--public")
    form = public_form(asked.public, said)
    columns = ColumnChoice(
        asked.columns, asked.keep, asked.drop, asked.id, asked.date, asked.groups
    )
    return read_public_table(asked.public, asked.label, form=form, task=asked.task, asked=columns)


def _numbers(table: PublicTable) -> Any:
    """Rows as the estimator will see them: a table, or numbers where dates were named."""
    if table.dates is None:
        return table.features
    from dpadapt.features import table_features

    return table_features(table.features, 1, table.dates).fit_transform(table.features)


def _show(view: Preview, target: Target | None) -> None:
    short = view.measure.replace("mean squared error", "error (MSE)")
    heads = (short, "eight of ten", "gap\nclosed", "pays from\na gap of", "worse than\npublic")
    lines = [
        (
            f"{line.epsilon:g}",
            f"{line.error:.4g}",
            f"{line.low:.4g}..{line.high:.4g}",
            _percent(line.share),
            f"{max(line.cost, 0.0):.1%}",
            _percent(line.worse),
        )
        for line in view.lines
    ]
    told = f"Rehearsed on public rows: {view.rows:,} private rows, delta {view.delta:g}"
    console().print(numbers_table(told, ("epsilon", *heads), lines))
    lines_told = f"{view.public_error:.4g}; no privacy at all: {view.best_error:.4g}"
    say("public", f"data alone: {lines_told} (a gap of {max(view.gap, 0.0):.0%})")
    if target is not None:
        _solve(view, target)
    for note in view.notes:
        rare = note.startswith("Class ")
        say("rare class" if rare else "trust", note, style="yellow" if rare else "")


def _solve(view: Preview, target: Target) -> None:
    """Say the least epsilon at this number of rows, and the least rows at each epsilon."""
    least = view.least_epsilon(target)
    if math.isnan(least):
        say_note(f"no epsilon of those rehearsed reaches {target}; try larger ones.")
        return
    below = " or less" if least == view.epsilons[0] else ""
    say("target", f"{target}: about epsilon {least:.2g}{below} with {view.rows:,} rows", "bold")
    sizes = [f"{view.least_rows(target, each):,.0f} at {each:g}" for each in view.epsilons]
    say("", f"or about so many rows, at these epsilons: {', '.join(sizes)}")


def _percent(part: float) -> str:
    return "no gap" if math.isnan(part) else f"{part:.0%}"
