"""``dpadapt predict``: a model and new rows to predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .formats import Form, given_form, guess_form
from .options import (
    ClassWeight,
    ModelPath,
    Threshold,
    Trusted,
    numbers_by_class,
    require_probabilities,
    takes,
    weights_of,
)
from .outputs import refuse_out, write_frame
from .public_table import listed_names
from .screens import plain_errors, say, say_note
from .tables import TableError, is_csv, read_table, require_file

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PredictOptions:
    """What was asked for on the command line."""

    model: ModelPath
    input: Annotated[Path, typer.Option(help="Rows to predict for: CSV or Parquet.")]
    out: Annotated[Path, typer.Option(help="File for the predictions: .csv or .parquet.")]
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Columns of the input to write beside, such as an id: a,b."),
    ] = None
    proba: Annotated[bool, typer.Option("--proba", help="Also the probability of each class.")] = (
        False
    )
    threshold: Threshold = None
    class_weight: ClassWeight = None
    sep: Annotated[str | None, typer.Option(help="Separator of the CSV file; guessed.")] = None
    decimal: Annotated[str | None, typer.Option(help="Decimal sign: . or , ; guessed.")] = None
    encoding: Annotated[str | None, typer.Option(help="Of the CSV file, e.g. latin-1.")] = None
    trust: Trusted = None


@plain_errors()
@takes(PredictOptions)
def predict_command(job: PredictOptions) -> None:
    """Predict for new rows. Costs no privacy, however often it is done.

    [bold]Examples[/]

      dpadapt predict --model model/ --input new.csv --out predictions.csv

      dpadapt predict --model model/ --input new.csv --out predictions.csv --keep person_id --proba

      dpadapt predict --model model/ --input new.csv --out predictions.csv --threshold yes=0.1
    """
    from dpadapt.modelfolder import load_model

    refuse_out(job.out, job.input, model=job.model)
    is_csv(job.out)  # or it is refused
    said = given_form(job.sep, job.decimal, job.encoding)
    fitted = load_model(job.model, trusted=job.trust or ())
    if job.proba and not hasattr(fitted, "predict_proba"):
        raise TableError("--proba: this model predicts numbers, which have no probabilities.")
    choose = _choice(job, fitted)
    require_file(job.input, "--input")
    rows = read_table(job.input, guess_form(job.input, said) if is_csv(job.input) else Form())
    write_frame(_predictions(job, fitted, rows, choose), job.out)
    say("wrote", f"{job.out}: {len(rows):,} predictions, in the order of {job.input}.")
    if job.keep is None:
        say_note("no id stands beside the predictions; to join by one, give --keep and its name.")


def _choice(job: PredictOptions, fitted: Any) -> Callable[[Any], Any]:
    """How classes are chosen: as the model does, by thresholds, or by weights."""
    if not (job.threshold or job.class_weight):
        return fitted.predict
    option = "--threshold" if job.threshold else "--class-weight"
    if job.threshold and job.class_weight:
        raise typer.BadParameter("--threshold and --class-weight both choose classes; give one.")
    require_probabilities(option, fitted)
    from dpadapt.rare import predict_classes

    given: dict[str, Any] = {"class_weight": weights_of(job.class_weight, fitted.classes_)}
    if job.threshold:
        given = {"threshold": numbers_by_class(option, job.threshold, fitted.classes_)}
    return partial(predict_classes, fitted, **given)


def _predictions(
    job: PredictOptions, fitted: Any, rows: pd.DataFrame, choose: Callable[[Any], Any]
) -> pd.DataFrame:
    """Predictions, beside them what was asked for."""
    names = list(getattr(fitted, "feature_names_in_", rows.columns))
    if missing := [str(name) for name in names if name not in rows.columns]:
        raise TableError(
            f"{job.input} lacks the column(s) {', '.join(missing)} that the model needs."
        )
    table = rows[listed_names(rows.columns, "--keep", job.keep, str(job.input))].copy()
    columns: dict[str, Any] = {"prediction": _call_model(job, choose, rows[names])}
    if job.proba:
        shares = _call_model(job, fitted.predict_proba, rows[names])
        for place, name in enumerate(fitted.classes_):
            columns[f"probability_{name}"] = shares[:, place]
    if twice := [name for name in columns if name in table.columns]:
        raise TableError(f"--keep {twice[0]}: that is what the predictions are called.")
    return table.assign(**columns)


def _call_model(job: PredictOptions, answer: Callable[[Any], Any], rows: Any) -> Any:
    """What a model answers; parts that do not fit together, as a forger leaves them, are told."""
    from dpadapt.modelfolder import ModelFolderError

    try:
        return answer(rows)
    except (TypeError, AttributeError, LookupError, ArithmeticError, AssertionError) as error:
        raise ModelFolderError(
            f"the model in {job.model} is damaged: its parts do not fit together "
            f"({type(error).__name__}). Copy it again from where it was made."
        ) from None
