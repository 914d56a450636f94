"""``dpadapt agent``: the program of one person's device, which answers one question."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from .formats import split, whole_rows
from .screens import plain_errors
from .tables import TableError, require_file

_MOST_DIGITS = 400  # of a whole number; a longer one is beyond any float


@plain_errors()
def agent_command(
    row: Annotated[
        Path,
        typer.Option(
            help="Your own row: a .json file with one object, a .csv file with a header and one "
            "row, or - for JSON on the first line of the standard input."
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="The most you allow; a larger one is refused.")],
    state: Annotated[
        Path,
        typer.Option(help="File that keeps your one answer, also for a restart. Never delete it."),
    ],
    label: Annotated[str | None, typer.Option(help="Name of the label in your row.")] = None,
) -> None:
    """Answer one question about your own row, randomised on your side, and end.

    Reads one line from the standard input, writes one line to the standard output; see
    dpadapt.hybrid.protocol for what they say. The same question gets the same bytes again, another
    one is refused. Your row goes nowhere: what leaves is one random bit, or one random direction,
    that is epsilon-private for any row.

    [bold]Example[/]

      dpadapt agent --row me.json --label sick --epsilon 1 --state answered.txt < question.json
    """
    answer_one(row, label, epsilon, state, lines=sys.stdin.buffer, out=sys.stdout.buffer)


def answer_one(
    row: Path,
    label: str | None,
    epsilon: float,
    state: Path,
    *,
    lines: BinaryIO,
    out: BinaryIO,
) -> None:
    """Answer the first line, and a second one by the same answer or a refusal, and end."""
    from dpadapt.hybrid.device import Device
    from dpadapt.hybrid.protocol import LONGEST_QUESTION

    cells, own = read_row(row, label, lines)
    device = Device(cells, own, epsilon=epsilon, state=state)
    for _ in range(2):
        if not (line := lines.readline(LONGEST_QUESTION + 1)):
            return
        out.write(device.answer(line))
        out.flush()


def read_row(path: Path, label: str | None, lines: BinaryIO) -> tuple[list[Any], Any]:
    """Cells of the row in the file's order, and its label; "-" is the first of ``lines``."""
    if str(path) == "-":
        text, kind = lines.readline().decode("utf-8", "replace"), ".json"
    else:
        require_file(path)
        text, kind = path.read_bytes().decode("utf-8", "replace"), path.suffix.lower()
    row = {".json": _json_row, ".csv": _csv_row}.get(kind, _no_row)(text)
    if row is None:
        raise TableError(
            f"{path} must be a .json file with one object, or a .csv file with a header and one "
            "row: names of columns and their values."
        )
    if label is None:
        return list(row.values()), None
    if label not in row:
        raise TableError(f"{path} has no column {label!r}, which --label names.")
    return [cell for name, cell in row.items() if name != label], row[label]


def _json_row(text: str) -> dict[str, Any] | None:
    try:
        row = json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _whole(digits: str) -> int | float:
    """A whole number of any length: whether a device answers must not depend on a cell."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def _csv_row(text: str) -> dict[str, Any] | None:
    table = [cells for row in whole_rows(text.split("\n"), ",") if (cells := split(row, ","))]
    if len(table) != 2 or len(table[0]) != len(table[1]):
        return None
    return dict(zip(*table, strict=True))


def _no_row(text: str) -> None:
    return None
