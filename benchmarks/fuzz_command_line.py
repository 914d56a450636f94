"""Odd command lines and inputs: which end badly, show a private value or are paid for nothing.

    python -m benchmarks.fuzz_command_line [runs] [seed] [--public]

Each run calls ``dpadapt`` in a forked process, as a shell would, on small files of which something
is odd: cells, labels, names, encodings, options, places for files, the budget. Private cells hold
a mark that must never be seen. Bad is a traceback, a fault (exit code 70), the mark, a model or an
evaluation without a charge, and a charge without a model or a word about it. With ``--public`` only
numbers of the public file are odd, with every estimator.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpadapt.report
from dpadapt.cli.estimators import known_estimators
from dpadapt.evaluation import evaluate
from dpadapt.privacy import Ledger, Private
from dpadapt.privacy.ledger.ledger import Account

MARK = "SECRET7731"
SECRET = 7731.4242  # as a number
NUMBERS: tuple[Any, ...] = (
    *(1e308, -1e308, 1e200, 1e155, 1e100, 1e76, 1e75, 1e40, 1e18, 2**63, 1e-300, 5e-324, -0.0, 0),
    *("inf", "-inf", "nan", "", "NA", "1e400", "1e-400", "0x10", "1,5", "١٢", "text", "\ufeff7"),
)
TIMEOUT = 120
WHOLE = dpadapt.report.write_report


def people(draw: np.random.Generator, rows: int, level: float, secret: bool) -> pd.DataFrame:
    """A small table: numbers, a text, two labels; the private one holds the mark."""
    table = pd.DataFrame(
        {
            "age": draw.integers(20, 60, rows),
            "town": draw.choice(["A", "B"], rows),
            "x": draw.normal(size=rows).round(3),
        }
    )
    table["wage"] = (level + table["age"] / 10 + draw.normal(size=rows)).round(3)
    table["rich"] = np.where(table["wage"] > level + 4, "yes", "no")
    if secret:
        table = table.astype(object)
        table.loc[3, "town"], table.loc[5, "x"] = MARK, SECRET
        table.loc[7, "wage"], table.loc[9, "rich"] = SECRET, MARK
    return table


def spoil(table: pd.DataFrame, draw: random.Random) -> tuple[pd.DataFrame, str]:
    """Odd numbers in a column, a few or all."""
    table = table.astype(object)
    column, value = draw.choice(["age", "x", "wage", "wage"]), draw.choice(NUMBERS)
    rows = draw.choice([1, 1, 3, 20, len(table)])
    if draw.random() < 0.3:  # the same sign is not enough to overflow
        values = [draw.choice([value, f"-{value}"]) for _ in range(rows)]
    else:
        values = [value] * rows
    table.loc[table.index[:rows], column] = pd.Series(values, index=table.index[:rows])
    return table, f"{column}={value} x{rows}"


class Case:
    """One call, in a folder of its own, and how it must end."""

    def __init__(self, folder: Path, draw: random.Random, public_only: bool) -> None:
        self.folder, self.draw, self.notes = folder, draw, []
        seed = np.random.default_rng(draw.randrange(2**32))
        self.public = people(seed, draw.choice([40, 60]), 5.0, False)
        self.private = people(seed, draw.choice([60, 100]), 8.0, True)
        self.label = draw.choice(["wage", "wage", "rich"])
        self.ledger = folder / "budget.db"
        self.options: dict[str, Any] = {}
        if public_only or draw.random() < 0.4:
            self.public, note = spoil(self.public, draw)
            self.notes.append(note)
        if not public_only:
            self._odd_files()

    def _odd_files(self) -> None:
        draw = self.draw
        if draw.random() < 0.3:
            self.private, note = spoil(self.private, draw)
            self.notes.append(f"private {note}")
        if draw.random() < 0.1:
            frame = draw.choice(["public", "private"])
            setattr(self, frame, getattr(self, frame).drop(columns=draw.choice(["x", self.label])))
            self.notes.append(f"{frame} lacks a column")
        if draw.random() < 0.1:
            self.private = self.private.head(draw.choice([0, 1, 2, 8, 20]))
            self.notes.append(f"{len(self.private)} private rows")
        if draw.random() < 0.1:
            self.public = self.public.head(draw.choice([0, 1, 2, 3]))
            self.notes.append(f"{len(self.public)} public rows")
        if draw.random() < 0.1:
            self.public = self.public.rename(
                columns={"x": draw.choice(["age", "", "\x1b[2J", MARK])}
            )

    def write(self) -> None:
        """Write both files, oddly at times."""
        form: dict[str, Any] = {"index": False}
        self.public.to_csv(self.folder / "public.csv", **form)
        if self.draw.random() < 0.1:
            form |= self.draw.choice([{"sep": ";"}, {"encoding": "utf-16"}, {"sep": "\t"}])
            self.notes.append(str(form))
        self.private.to_csv(self.folder / "private.csv", **form)
        if self.draw.random() < 0.05:
            content = bytearray((self.folder / "private.csv").read_bytes())
            for _ in range(20):
                content[self.draw.randrange(len(content))] = self.draw.randrange(256)
            (self.folder / "private.csv").write_bytes(content)
            self.notes.append("private bytes")

    def fit(self, public_only: bool) -> list[str]:
        """A call of fit."""
        draw = self.draw
        end = "Classifier" if self.label == "rich" else "Regressor"
        known = [name for name in sorted(known_estimators()) if name.endswith(end)]
        estimator = draw.choice([None, *known])
        said = {
            "--public": "public.csv",
            "--private": "private.csv",
            "--label": self.label,
            "--epsilon": "1",
            "--delta": "1e-6",
            "--out": "model",
            "--ledger": "budget.db",
            "--dataset": "rows",
        }
        if estimator is not None:
            said["--estimator"] = estimator
        if draw.random() < 0.3:
            said["--holdout"] = draw.choice(
                ["0.2", "0.5"] + ["0", "1.5", "nan"] * (not public_only)
            )
        flags: list[str] = []
        if not public_only and draw.random() < 0.5:
            name, value = draw.choice(ODD)
            if value is None:
                flags.append(name)
            else:
                said[name] = value
            self.notes.append(f"{name} {value}")
        if not public_only and draw.random() < 0.1:
            said.pop(draw.choice(sorted(said)))
        return ["fit", *(each for pair in said.items() for each in pair), *flags]


ODD: list[tuple[str, str | None]] = [
    *(("--epsilon", each) for each in ("0", "-1", "nan", "inf", "1e9", "1e-12", "100", "x", "")),
    *(("--delta", each) for each in ("0", "1", "0.5", "nan", "1e-300", "1e-400", "")),
    *(("--label", each) for each in ("age", "town", "nobody", "", MARK, "\x1b[31m", "label " * 99)),
    *(("--out", each) for each in (".", "..", "model/../model", "public.csv", "a/b/c", "", "\n")),
    *(("--out", each) for each in ("budget.db", "x" * 300, "private.csv/m", "/proc/m", "é")),
    *(("--estimator", each) for each in ("Nobody", "", "HybridTilt", "os.system", "Ridge")),
    *(("--set", each) for each in ("solver=x", "alpha", "=", "epsilon=9", "noise=exact", "a=b=c")),
    *(("--task", each) for each in ("regression", "classification", "auto", "no")),
    *(("--columns", each) for each in ("x", "x,age", "wage", "nobody", "", "x,x", ",")),
    *(("--drop", each) for each in ("x", "age,x,town", "nobody", "wage")),
    *(("--id", each) for each in ("x", "age", "wage")),
    *(("--date", each) for each in ("x", "town", "age")),
    *(("--groups", each) for each in ("town", "x", "wage", "nobody")),
    *(("--sep", each) for each in (";", "", ",,", "\n", "\t")),
    *(("--decimal", each) for each in (",", ".", "x")),
    *(("--encoding", each) for each in ("utf-16", "latin-1", "klingon", "rot13", "idna")),
    *(("--unit", each) for each in ("age", "x", "nobody")),
    *(("--noise", each) for each in ("exact", "seeded", "none")),
    *(("--ledger", each) for each in ("nothing.db", "public.csv", ".", "postgresql://nobody@::")),
    *(("--ledger", each) for each in ("sqlite:///budget.db", "http://x", "postgresql://h:1/x")),
    *(("--dataset", each) for each in ("nobody", "", "rows ", "\u200brows")),
    *(("--private", each) for each in ("public.csv", ".", "nobody.csv", "model", "budget.db")),
    *(("--degree", each) for each in ("2", "3", "0")),
    *(("--evaluation-out", each) for each in ("public.csv", "no/such/e.json", "budget.db")),
    ("--max-rows", "3"),
    ("--random-state", "1"),
    ("--force", None),
    ("--nothing", None),
]


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work there."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def called(arguments: list[str], told: Path) -> int:
    """Exit code of a forked call; minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        file = os.open(told, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), errors="replace")
            for number in (1, 2)
        )
        signal.alarm(TIMEOUT)
        code = 99
        try:
            from dpadapt.cli import app

            app(args=arguments, prog_name="dpadapt")
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def follow_up(draw: random.Random, case: Case) -> list[list[str]]:
    """Calls on a model that was fitted."""
    every = [
        ["predict", "--model", "model", "--input", draw.choice(["private.csv", "public.csv"])],
        ["evaluate", "--model", "model", "--private", "private.csv", "--label", case.label],
        [
            "export",
            "--model",
            "model",
            "--out",
            draw.choice(["m.json", "m.onnx", "s.py", "m.txt", "."]),
        ],
        ["report", "--model", "model", "--out", draw.choice(["r.html", "r.md", "r.json", "r"])],
        ["ledger", draw.choice(["show", "check"]), "--ledger", "budget.db"],
        ["ledger", "backup", "--ledger", "budget.db", "--out", draw.choice(["c.db", "budget.db"])],
    ]
    every[0] += ["--out", draw.choice(["p.csv", "p.parquet", "p.txt", "public.csv"])]
    every[1] += ["--epsilon", draw.choice(["1", "0", "50"]), "--delta", "1e-6"]
    every[1] += draw.choice([[], ["--holdout"], ["--metric", "nothing"]])
    every[1] += ["--ledger", "budget.db", "--dataset", "rows"]
    return draw.sample(every, 2)


def judge(code: int, text: str, charges: int, kept: Path | None, command: str) -> str:
    """What is wrong with how a call ended; nothing if nothing is."""
    if "Traceback" in text or code in (70, 99):
        return "traceback or fault"
    if code < 0:
        return f"ended by signal {-code}"
    if MARK in text or "7731" in text:
        return "a private value"
    if command == "fit":
        if charges and not kept and "ledger was charged" not in text and "is kept in" not in text:
            return "a charge without a model or a word"
        if charges and not kept:
            return "a charge without a model"
        if kept and not charges and paid(kept):
            return "a model without a charge"
    if command == "evaluate" and code == 0 and not charges:
        return "an evaluation without a charge"
    return ""


def warm() -> None:
    """Import once what each forked process would import again."""
    table = people(np.random.default_rng(0), 50, 5.0, False)
    features, labels = table[["age", "x"]].to_numpy(dtype=float), table["wage"].to_numpy()
    for name, kind in known_estimators().items():
        if name in ("AutoRegressor", "ReweightingRegressor", "KernelRegressor"):
            model = kind(epsilon=1.0, delta=1e-6)
            model.fit(features, labels, private=Private(features, labels))
    evaluate(model, Private(features, labels), epsilon=1.0, delta=1e-6, label_range=(0, 20))


def paid(folder: Path) -> bool:
    """Whether a model says that it has cost privacy."""
    return float(json.loads((folder / "guarantee.json").read_text())["epsilon"]) > 0


class Counts:
    """How calls ended."""

    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()
        self.bad = 0

    @property
    def done(self) -> int:
        """How many calls there were."""
        return self.ended.total()

    def call(self, case: Case, account: Account, arguments: list[str], told: Path) -> int:
        """Make one call, and judge it."""
        before = account.number()
        dpadapt.report.write_report = short if arguments[0] == "fit" else WHOLE
        code = called(arguments, told)
        raw = told.read_text(errors="replace")
        if MARK in " ".join(arguments) or MARK in case.public.columns:  # then it is public
            raw = raw.replace(MARK, "")
        text = " ".join(raw.split())
        out = arguments[arguments.index("--out") + 1] if "--out" in arguments else ""
        kept = Path(out) if out and os.path.isfile(f"{out}/guarantee.json") else None
        wrong = judge(code, text, account.number() - before, kept, arguments[0])
        self.ended[f"{arguments[0]} {code}"] += 1
        if wrong:
            self.bad += 1
            print(f"BAD: {wrong} ({code}); {case.notes} {arguments}\n    {text[-300:]}", flush=True)
        return code


def short(model: Any, path: Any, context: Any = None) -> Path:
    """Stand for a report, whose pictures take their time."""
    Path(path).write_text("report")
    return Path(path)


def main() -> None:
    """Print what is bad, and a table of how calls ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=2000)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--public", action="store_true")
    given = parser.parse_args()
    warm()
    counts, number = Counts(), 0
    with tempfile.TemporaryDirectory() as parent:
        while counts.done < given.runs:
            number += 1
            draw = random.Random(f"{given.seed} {number}")
            folder = Path(parent) / "case"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            with in_folder(folder):
                case = Case(folder, draw, given.public)
                case.write()
                account = Ledger(case.ledger).create("rows", epsilon=3.0, delta=1e-5)
                told = Path(parent) / "told"
                code = counts.call(case, account, case.fit(given.public), told)
                if code == 0 and not given.public:
                    for arguments in follow_up(draw, case):
                        counts.call(case, account, arguments, told)
            if number % 50 == 0:
                print(f"{counts.done} calls, {counts.bad} bad", flush=True)
    print(f"{counts.done} calls, {counts.bad} bad: {dict(sorted(counts.ended.items()))}")
    sys.exit(counts.bad > 0)


if __name__ == "__main__":
    main()
