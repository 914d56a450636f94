"""``dpadapt export``: a linear model as plain coefficients, for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import ModelPath, Trusted
from .outputs import refuse_out
from .screens import plain_errors, say, say_note

__all__ = ["export"]


@plain_errors()
def export(
    model: ModelPath,
    out: Annotated[Path, typer.Option(help="File to write: .json or .onnx.")],
    trust: Trusted = None,
) -> None:
    """Write a linear model as JSON or ONNX, for programs without dpadapt.

    JSON tells the coefficients and how each feature comes from a column. ONNX computes scores,
    probabilities and classes from the features as numbers, in the order that the file lists. The
    guarantee is in both. Costs no privacy.

    [bold]Examples[/]

      dpadapt export --model model/ --out model.json

      dpadapt export --model model/ --out model.onnx
    """
    if out.suffix not in (".json", ".onnx"):
        raise typer.BadParameter(f"--out {out}: the name must end in .json or .onnx.")
    refuse_out(out, model=model)
    from dpadapt.modelfolder import load_model

    from .onnx_file import onnx_bytes
    from .plain_models import plain_model

    plain = plain_model(load_model(model, trusted=trust or ()))
    if out.suffix == ".json":
        out.write_text(json.dumps(plain.to_dict(), indent=2) + "\n", encoding="utf-8")
    else:
        out.write_bytes(onnx_bytes(plain))
        if any(each["kind"] != "number" for each in plain.features):
            say_note("the input are features, not columns; the JSON file says how they come.")
    say("wrote", f"{out}: {len(plain.features):,} features, {plain.weights.size:,} coefficients.")
