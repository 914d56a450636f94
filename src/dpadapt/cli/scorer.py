"""Predictions of a dpadapt model, without dpadapt: Python 3.11 or newer and numpy are enough.

    python score.py rows.csv > predictions.csv
    python score.py rows.csv --keep person_id --proba > predictions.csv

or, in a program: ``import score; score.predict([{"age": 30, "town": "A"}])``. A row is a dict of
cells; a cell that is missing is None, NaN or an empty text.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import json
import math
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

_Model = dict[str, Any] | None  # None is the one that stands at the end of this file

_BLOCK = 2000  # rows that are computed together
MISSING, EMPTY = "(missing)", ("", "None", "nan", "NaN", "NaT", "<NA>")
# what stands for a missing cell in a CSV file
NOTHING = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"}
NOTHING |= {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)  # a number with one
TRUTH = {"true": 1.0, "false": 0.0}
ZERO = dt.datetime(1970, 1, 1)
DATE_PARTS = {
    "days": lambda when: (when - ZERO) / dt.timedelta(days=1),
    "month": lambda when: float(when.month),
    "weekday": lambda when: float(when.weekday()),
    "hour": lambda when: when.hour + when.minute / 60,
}


def predict(rows: Sequence[dict[str, Any]], model: _Model = None) -> list[Any]:
    """Predictions: numbers, or classes."""
    model = model or MODEL
    found = answers(features(rows, model), model)["prediction"]
    classes = model["classes"]
    return found.tolist() if classes is None else [classes[place] for place in found]


def probabilities(rows: Sequence[dict[str, Any]], model: _Model = None) -> Any:
    """Probabilities of the classes, in the order of ``MODEL["classes"]``."""
    model = model or MODEL
    if model["classes"] is None:
        raise ValueError("this model predicts numbers, which have no probabilities.")
    return answers(features(rows, model), model)["probabilities"]


def features(rows: Sequence[dict[str, Any]], model: _Model = None) -> Any:
    """Cells as numbers, one column for each feature that the model lists."""
    model = model or MODEL
    out = np.empty((len(rows), len(model["features"])))
    listed = levels_of(model)
    known: dict[tuple[str, str], list[Any]] = {}
    for place, each in enumerate(model["features"]):
        name, kind = each["column"], each["kind"]
        cells = [row[name] for row in rows]
        if kind in ("level", "other levels"):
            if (name, "text") not in known:
                known[name, "text"] = [text_of(cell) for cell in cells]
            texts = known[name, "text"]
            if kind == "level":
                out[:, place] = [text == each["level"] for text in texts]
            else:
                out[:, place] = [text not in listed.get(name, ()) for text in texts]
        elif kind == "number":
            out[:, place] = [number_of(cell) for cell in cells]
        else:
            if (name, "date") not in known:
                known[name, "date"] = [date_of(cell, each["written"]) for cell in cells]
            part = DATE_PARTS[kind.removeprefix("date: ")]
            out[:, place] = [
                math.nan if when is None else part(when) for when in known[name, "date"]
            ]
        gaps = ~np.isfinite(out[:, place])
        if gaps.any() and "if_missing" not in each:
            first = int(np.flatnonzero(gaps)[0]) + 1
            raise ValueError(f"row {first} has no number in column {name!r}, and needs one.")
        out[gaps, place] = each.get("if_missing")
    return out


def levels_of(model: dict[str, Any]) -> dict[str, list[str]]:
    """Levels that have a feature of their own, column by column."""
    listed: dict[str, list[str]] = {}
    for each in model["features"]:
        if each["kind"] == "level":
            listed.setdefault(each["column"], []).append(each["level"])
    return listed


def number_of(cell: Any) -> float:
    """A cell as a number; NaN if it is none."""
    if isinstance(cell, str):
        cell = TRUTH.get(cell.strip().lower(), cell)
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def text_of(cell: Any) -> str:
    """A cell as text; a whole number reads the same whether it is 1, 1.0 or "1"."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    if text in EMPTY:
        return MISSING
    return text.capitalize() if text.lower() in TRUTH else text


def date_of(cell: Any, written: str) -> dt.datetime | None:
    """A cell as a date, written as the model's rows were or in ISO; None if it is none."""
    if isinstance(cell, np.datetime64):
        text = str(cell.astype("M8[us]").item())
    elif isinstance(cell, float) and cell.is_integer():
        text = str(int(cell))
    else:
        text = str(cell).strip()
    if written != "ISO":
        try:
            return dt.datetime.strptime(text, written)
        except (ValueError, OverflowError):
            pass
    if not text[:4].isdigit() or text[4:5] != "-":
        return None
    try:
        when = dt.datetime.fromisoformat(text)
        return when if when.tzinfo is None else when.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def answers(rows: Any, model: _Model = None) -> dict[str, Any]:
    """Run the steps of the model on features; return what it tells of each row."""
    model = model or MODEL
    parts = []
    for begin in range(0, max(len(rows), 1), _BLOCK):
        values: dict[str, Any] = {**model["arrays"], "features": rows[begin : begin + _BLOCK]}
        with np.errstate(all="ignore"):
            for name, kind, inputs, settings in model["steps"]:
                values[name] = OPERATORS[kind](*(values[each] for each in inputs), **settings)
        parts.append({each: values[each] for each in model["outputs"]})
    return {each: np.concatenate([part[each] for part in parts]) for each in model["outputs"]}


def _walk(
    rows: Any, roots: Any, feature: Any, threshold: Any, left: Any, right: Any, depth: int
) -> Any:
    """Leaves of trees that rows fall into: left if a cell is at most the threshold."""
    node = np.tile(roots, (len(rows), 1))
    row = np.arange(len(rows))[:, None]
    for _ in range(depth):
        small = rows[row, feature[node]] <= threshold[node]
        node = np.where(small, left[node], right[node])
    return node


def class_shares(scores: Any) -> Any:
    """Scores as shares."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


OPERATORS: dict[str, Any] = {
    "Abs": np.abs,
    "Add": np.add,
    "ArgMax": lambda given: given.argmax(axis=1),
    "Concat": lambda *given: np.concatenate(given, axis=1),
    "Cos": np.cos,
    "Div": np.divide,
    "Gather": lambda table, places: table[places],
    "Log": np.log,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "ReduceMax": lambda given: given.max(axis=1, keepdims=True),
    "ReduceSum": lambda given, keepdims: given.sum(axis=1, keepdims=bool(keepdims)),
    "Softmax": class_shares,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Walk": _walk,
}


def read(
    path: str, sep: str, decimal: str, encoding: str, model: dict[str, Any]
) -> list[dict[str, Any]]:
    """Rows of a CSV file; a cell that is not there, or says so, is missing (None)."""
    with open(path, encoding=encoding, newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file, delimiter=sep))
    levels = levels_of(model)
    for row in rows:
        for name, cell in row.items():
            if cell in NOTHING if isinstance(cell, str) else True:
                row[name] = cell if cell in levels.get(name, ()) else None
            elif decimal == "," and COMMA.fullmatch(cell):
                row[name] = cell.replace(",", ".")
    for name in levels.keys() & {*rows[0]} if rows else ():
        whole = [number_text(row[name]) for row in rows]
        if "" not in whole:  # a column of numbers: 01 and 1.0 are the level 1
            for row, text in zip(rows, whole, strict=True):
                row[name] = text
    return rows


def number_text(cell: str | None) -> str | None:
    """A number in one way of writing; nothing ("") for what is none, and None stays."""
    try:
        return None if cell is None else text_of(float(cell))
    except ValueError:
        return ""


def main(given: Sequence[str] | None = None, model: _Model = None) -> int:
    """Read a CSV file, and write predictions to the standard output."""
    parser = argparse.ArgumentParser(description="Predictions for the rows of a CSV file.")
    parser.add_argument("rows", help="CSV file")
    parser.add_argument("--keep", default="", help="columns to write beside: a,b")
    parser.add_argument("--proba", action="store_true", help="also probabilities of the classes")
    parser.add_argument("--sep", default=",")
    parser.add_argument("--decimal", default=".", choices=[".", ","])
    parser.add_argument("--encoding", default="utf-8-sig")
    asked = parser.parse_args(given)
    model = model or MODEL
    try:
        rows = read(asked.rows, asked.sep, asked.decimal, asked.encoding, model)
    except (OSError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        print(f"{asked.rows} cannot be read: {why}", file=sys.stderr)
        return 1
    keep = [name for name in asked.keep.split(",") if name]
    needed = dict.fromkeys([*(each["column"] for each in model["features"]), *keep])
    if missing := [name for name in needed if rows and name not in rows[0]]:
        print(f"{asked.rows} lacks the column(s) {', '.join(missing)}.", file=sys.stderr)
        return 1
    try:
        found: dict[str, Any] = {name: [row[name] for row in rows] for name in keep}
        found["prediction"] = predict(rows, model)
        if asked.proba:
            shares = probabilities(rows, model).T.tolist()
            names = [f"probability_{each}" for each in model["classes"]]
            found |= dict(zip(names, shares, strict=True))
    except ValueError as error:
        print(f"{asked.rows}: {error}", file=sys.stderr)
        return 1
    try:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(found)
        out.writerows(zip(*found.values(), strict=True))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def loaded(text: str) -> dict[str, Any]:
    """The model, from the text below."""
    model: dict[str, Any] = json.loads(text)
    kinds = {"int": np.int64, "float": np.float64}
    for name, (kind, shape, values) in model.get("arrays", {}).items():
        model["arrays"][name] = np.array(values, dtype=kinds[kind]).reshape(shape)
    return model


MODEL = loaded("{}")

if __name__ == "__main__":
    sys.exit(main())
