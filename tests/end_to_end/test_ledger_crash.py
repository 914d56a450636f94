"""A writer killed at any moment never leaves a release without its charge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpadapt.privacy.ledger.ledger import Ledger

WORKER = Path(__file__).with_name("ledger_worker.py")


KILLS = int(os.environ.get("DPADAPT_LEDGER_KILLS", "200"))  # of each slow test


def crash(location: str, folder: Path, kills: int, bug: str = "") -> tuple[list[str], list[str]]:
    """Labels that were charged and labels that were released, in order."""
    ledger, releases = Ledger(location), folder / "releases.txt"
    ledger.create("empty", epsilon=10.0, delta=1e-6)
    arguments = ["crash", location, "hospital", str(kills), str(releases), bug]
    done = subprocess.run([sys.executable, WORKER, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"killed": kills, "failed": 0}, done.stderr
    datasets = sorted(ledger.check(), key=lambda dataset: dataset.created)
    charged = [charge.label for dataset in datasets for charge in dataset.charges]
    released = releases.read_text().split()
    print(f"{kills} kills: {len(charged)} charges, {len(released)} releases")
    return charged, released


def check(charged: list[str], released: list[str], kills: int) -> None:
    assert len(set(charged)) == len(charged)
    assert len(set(released)) == len(released) > 0
    wasted = set(charged) - set(released)
    assert set(released) <= set(charged)
    # a kill wastes at most the one charge that it interrupts
    assert len(wasted) == len({label.split("-")[0] for label in wasted}) <= kills
    assert [label for label in charged if label not in wasted] == released


@pytest.mark.parametrize("kills", [20, pytest.param(KILLS, marks=pytest.mark.slow)])
def test_sqlite(tmp_path: Path, kills: int) -> None:
    check(*crash(str(tmp_path / "budget.db"), tmp_path, kills), kills)


@pytest.mark.slow
def test_postgres(tmp_path: Path, postgres_url: str) -> None:
    check(*crash(postgres_url, tmp_path, KILLS), KILLS)


def test_the_kills_would_notice_a_release_before_its_charge(tmp_path: Path) -> None:
    charged, released = crash(str(tmp_path / "budget.db"), tmp_path, 20, "release-first")
    assert not set(released) <= set(charged)
