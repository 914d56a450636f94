"""Four signals at every stage of a fit: what is charged, what is kept, what is told.

    python -m benchmarks.signals_table [--holdout]

A forked process fits with a ledger and sends itself the signal when it comes to the stage, so that
nothing depends on the time. ``found`` says what is left of one such fit; the tests ask it, too.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
FIT = {
    "opening the private file": "dpadapt.cli.fit.open_private",
    "before the charge": "dpadapt.privacy.ledger.ledger.Ledger._charge",
    "inside the charge": "dpadapt.privacy.ledger.tables.append",
    "first release": "dpadapt.privacy.core.session.Session.release",
    "saving the model": "dpadapt.modelfolder.folder.Destination.write",
    "writing the report": "dpadapt.report.write_report",
    "telling": "dpadapt.cli.fit._tell",
}
HOLD_OUT = {
    **FIT,
    "before the evaluation": "dpadapt.cli.fit._measure",
    "marking the reserve as used": "dpadapt.privacy.ledger.ledger.Ledger._redeem",
    "after the evaluation": "dpadapt.cli.holdout.HoldOut.tell",
    "writing the evaluation": "dpadapt.cli.holdout.write_paid",
    "evaluation into the report": "dpadapt.cli.fit.shown_in_report",
}


@dataclass(frozen=True)
class Found:
    """What is left of a fit."""

    code: int  # minus the signal that ended it
    charged: bool
    model: bool  # in its place, and can be loaded
    kept: bool  # elsewhere, where the screen says
    evaluation: bool
    reserve: bool  # paid for, and can still be used
    told: bool  # that the ledger was charged, or that nothing was
    drafts: int
    text: str

    @property
    def lost(self) -> bool:
        """Whether something was paid for and is not there."""
        return self.charged and not (self.model or self.kept)


def tables(folder: Path) -> None:
    """Write a public and a private file."""
    draw = np.random.default_rng(0)
    for name, rows, level in (("public", 60, 5.0), ("private", 120, 8.0)):
        table = pd.DataFrame({"age": draw.integers(20, 60, rows), "x": draw.normal(size=rows)})
        table["wage"] = level + table["age"] / 10 + draw.normal(size=rows)
        table.to_csv(folder / f"{name}.csv", index=False)


@contextlib.contextmanager
def signalled(place: str, number: int, times: int) -> Iterator[None]:
    """Send this process a signal when it comes to a place, before what is there is done."""
    module, _, name = place.rpartition(".")
    try:
        owner: Any = importlib.import_module(module)
    except ModuleNotFoundError:  # a class of a module
        inner, _, kind = module.rpartition(".")
        owner = getattr(importlib.import_module(inner), kind)
    there, sent = getattr(owner, name), []

    def instead(*arguments: Any, **named: Any) -> Any:
        if not sent:
            sent.append(number)
            for _ in range(times):
                os.kill(os.getpid(), number)
        return there(*arguments, **named)

    with mock.patch.object(owner, name, instead):
        yield


def forked(task: Callable[[], None], told: Path) -> int:
    """Exit code of a task in a process of its own; minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            file = os.open(told, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            os.dup2(file, 1)
            os.dup2(file, 2)
            opened = [os.fdopen(number, "wb", closefd=False) for number in (1, 2)]
            sys.stdout, sys.stderr = (
                io.TextIOWrapper(each, line_buffering=True) for each in opened
            )
            signal.signal(signal.SIGINT, signal.default_int_handler)
            task()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def found(folder: Path, place: str, number: int, *, hold_out: bool, times: int = 1) -> Found:
    """What is left of a fit that comes to a place and gets a signal there."""
    from dpadapt.cli import app
    from dpadapt.modelfolder import ModelFolderError, load_model
    from dpadapt.privacy import Ledger

    shutil.rmtree(folder, ignore_errors=True)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(parents=True)
    tables(folder)
    account = Ledger(folder / "budget.db").create("rows", epsilon=100.0, delta=1e-5)
    said = {"--public": "public.csv", "--private": "private.csv", "--label": "wage"}
    said |= {"--epsilon": "1", "--delta": "1e-6", "--out": "model", "--ledger": "budget.db"}
    said |= {"--dataset": "rows", "--estimator": "ReweightingRegressor"}
    said |= {"--holdout": "0.25"} if hold_out else {}

    def fit() -> None:
        os.chdir(folder)
        os.environ["TMPDIR"], tempfile.tempdir = str(elsewhere), None
        with signalled(place, number, times):
            app(args=["fit", *(e for pair in said.items() for e in pair)], prog_name="dpadapt")

    code = forked(fit, folder / "told")
    text = " ".join((folder / "told").read_text(errors="replace").split())

    def loads(path: Path) -> bool:
        try:
            load_model(path)
        except ModelFolderError:
            return False
        return True

    return Found(
        code=code,
        charged=account.number() > 0,
        model=loads(folder / "model"),
        kept=any(loads(each) for each in elsewhere.glob("dpadapt-*/model")),
        evaluation=(folder / "model.evaluation.json").is_file(),
        reserve=bool(account.reserves()),
        told="charged" in text,
        drafts=len(list(folder.glob(".model*"))),
        text=text,
    )


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--holdout", action="store_true")
    parser.add_argument("--times", type=int, default=1, help="how often the signal is sent")
    given = parser.parse_args()
    heads = [each.name for each in fields(Found) if each.name != "text"]
    print("| stage | signal |", " | ".join(heads), "|")
    print("|" + "---|" * (len(heads) + 2))
    with tempfile.TemporaryDirectory() as parent:
        for stage, place in (HOLD_OUT if given.holdout else FIT).items():
            for number in SIGNALS:
                left = found(
                    Path(parent) / "fit", place, number, hold_out=given.holdout, times=given.times
                )
                cells = [str(cell) for cell in astuple(left)[:-1]]
                print(f"| {stage} | {number.name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
