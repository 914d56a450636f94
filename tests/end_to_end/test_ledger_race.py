"""Many processes, one budget: exactly as many charges as it holds."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from dpadapt.privacy import gaussian_mu
from dpadapt.privacy.ledger import Ledger

WORKER = Path(__file__).with_name("ledger_worker.py")
EPSILON, DELTA = 1.0, 1e-6


def race(location: str, processes: int, holds: int, bug: str = "") -> dict[str, int]:
    """Outcomes of processes that try one charge each, for a budget of ``holds`` charges."""
    Ledger(location).create("hospital", epsilon=EPSILON, delta=DELTA)
    # they fill the budget but for a billionth, one more does not fit
    scale = math.sqrt(holds) / gaussian_mu(EPSILON, DELTA) * (1 + 1e-9)
    arguments = ["race", location, "hospital", str(processes), repr(scale), bug]
    done = subprocess.run(
        [sys.executable, WORKER, *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    assert "failed" not in counts, done.stderr
    assert len(Ledger(location).charges("hospital")) == counts["charged"]
    return counts


def test_eight_processes_on_sqlite(tmp_path: Path) -> None:
    assert race(str(tmp_path / "budget.db"), 8, holds=5) == {"charged": 5, "refused": 3}


def test_eight_processes_on_postgres(postgres_url: str) -> None:
    assert race(postgres_url, 8, holds=5) == {"charged": 5, "refused": 3}


def test_the_race_would_notice_a_check_outside_the_lock(tmp_path: Path) -> None:
    assert race(str(tmp_path / "budget.db"), 8, 5, "check-outside")["charged"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("run", range(5))
def test_sixteen_processes_on_sqlite(tmp_path: Path, run: int) -> None:
    assert race(str(tmp_path / "budget.db"), 16, holds=10) == {"charged": 10, "refused": 6}


@pytest.mark.slow
@pytest.mark.parametrize("run", range(5))
def test_sixteen_processes_on_postgres(postgres_url: str, run: int) -> None:
    assert race(postgres_url, 16, holds=10) == {"charged": 10, "refused": 6}


@pytest.mark.slow
def test_the_race_would_notice_a_check_outside_the_lock_on_postgres(postgres_url: str) -> None:
    assert race(postgres_url, 16, 10, "check-outside")["charged"] > 10
