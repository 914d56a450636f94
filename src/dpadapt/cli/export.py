"""``dpadapt export``: a model as a file that other programs compute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import ModelPath, Trusted
from .outputs import refuse_out, write_whole
from .screens import plain_errors, say, say_note
from .tables import TableError

_ENDINGS = (".json", ".onnx", ".py")


@plain_errors()
def export_command(
    model: ModelPath,
    out: Annotated[Path, typer.Option(help="File to write: .py, .onnx or .json.")],
    trust: Trusted = None,
) -> None:
    """Write a model as Python, ONNX or JSON, for programs without dpadapt.

    A .py file predicts for a CSV file and needs numpy alone. ONNX computes
    predictions, and probabilities of classes. Both hold all that AutoRegressor
    and AutoClassifier make: trees, curves and the way from columns to numbers.
    JSON tells the coefficients of a linear model. The guarantee is in each.
    Costs no privacy.

    [bold]Examples[/]

      dpadapt export --model model/ --out score.py

      dpadapt export --model model/ --out model.onnx

      dpadapt export --model model/ --out model.json
    """
    if out.suffix not in _ENDINGS:
        raise typer.BadParameter(f"--out {out}: the name must end in .py, .onnx or .json.")
    refuse_out(out, model=model)
    from dpadapt.modelfolder import ModelFolderError, load_model

    from .estimators import is_auto

    fitted = load_model(model, trusted=trust or ())
    auto = is_auto(getattr(fitted, "estimator_", fitted))
    if out.suffix == ".json" and auto:
        raise TableError(
            "JSON is for coefficients of linear models, and this one has more than those. Write "
            "a Python file (--out score.py) or ONNX (--out model.onnx)."
        )
    try:
        content, told = _auto(fitted, out) if auto else _linear(fitted, out)
    except (TypeError, AttributeError, LookupError, ArithmeticError, AssertionError) as error:
        raise ModelFolderError(
            f"the model in {model} is damaged: its parts do not fit together "
            f"({type(error).__name__}). Copy it again from where it was made."
        ) from None
    write_whole(out, content)
    say("wrote", f"{out}: {told}")
    if out.suffix == ".py":
        say("use", f"python {out.name} rows.csv > predictions.csv (needs numpy alone)")
    elif auto:
        say_note(
            "columns go in by name: numbers as 64-bit floats (NaN if missing), texts as texts "
            "(empty if missing), of dates their parts; the file lists them under 'inputs'."
        )


def _auto(fitted: Any, out: Path) -> tuple[str | bytes, str]:
    """Content of a file for a model that chose by itself, and what it holds."""
    from .auto_programs import auto_program
    from .onnx_files import program_onnx
    from .programs import scorer_text

    program = auto_program(fitted)
    content = scorer_text(program) if out.suffix == ".py" else program_onnx(program)
    columns = len({each["column"] for each in program.features})
    numbers = sum(each.size for each in program.arrays.values())
    return content, f"{columns:,} columns, {len(program.steps):,} steps, {numbers:,} numbers."


def _linear(fitted: Any, out: Path) -> tuple[str | bytes, str]:
    """Content of a file for a linear model, and what it holds; others are refused."""
    from .auto_programs import linear_program
    from .onnx_files import onnx_bytes
    from .programs import plain_model, scorer_text

    plain = plain_model(fitted)
    told = f"{len(plain.features):,} features, {plain.weights.size:,} coefficients."
    if out.suffix == ".json":
        return json.dumps(plain.to_dict(), indent=2) + "\n", told
    if out.suffix == ".py":
        return scorer_text(linear_program(plain)), told
    if any(each["kind"] != "number" for each in plain.features):
        say_note("the input are features, not columns; the JSON file says how they come.")
    return onnx_bytes(plain), told
