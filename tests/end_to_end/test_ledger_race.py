"""Many processes, one budget: exactly as many charges as it holds."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.ledger.ledger import Ledger

WORKER = Path(__file__).with_name("ledger_worker.py")
EPSILON, DELTA = 1.0, 1e-6


def race(locations: str, processes: int, holds: int, bug: str = "") -> dict[str, int]:
    """Outcomes of processes that try one charge each, for a budget of ``holds`` charges."""
    # they fill the budget but for a billionth, one more does not fit
    scale = math.sqrt(holds) / gaussian_mu(EPSILON, DELTA) * (1 + 1e-9)
    arguments = ["race", locations, "hospital", str(processes), repr(scale), bug]
    done = subprocess.run([sys.executable, WORKER, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    assert "failed" not in counts, done.stderr
    return counts


def one_name(location: str, processes: int, holds: int, bug: str = "") -> dict[str, int]:
    Ledger(location).create("hospital", epsilon=EPSILON, delta=DELTA)
    counts = race(location, processes, holds, bug)
    assert len(Ledger(location).charges("hospital")) == counts["charged"]
    return counts


def test_eight_processes_on_sqlite(tmp_path: Path) -> None:
    assert one_name(str(tmp_path / "budget.db"), 8, holds=5) == {"charged": 5, "refused": 3}


@pytest.mark.slow
def test_eight_processes_on_postgres(postgres_url: str) -> None:
    assert one_name(postgres_url, 8, holds=5) == {"charged": 5, "refused": 3}


@pytest.mark.slow
def test_the_race_would_notice_a_check_outside_the_lock(tmp_path: Path) -> None:
    assert one_name(str(tmp_path / "budget.db"), 8, 5, "check-outside")["charged"] > 5


@pytest.mark.slow
def test_sixty_four_processes_on_sqlite(tmp_path: Path) -> None:
    assert one_name(str(tmp_path / "budget.db"), 64, holds=40) == {"charged": 40, "refused": 24}


@pytest.mark.slow
def test_sixty_four_processes_on_postgres(postgres_url: str) -> None:
    assert one_name(postgres_url, 64, holds=40) == {"charged": 40, "refused": 24}


@pytest.mark.slow
def test_the_race_would_notice_a_check_outside_the_lock_on_postgres(postgres_url: str) -> None:
    assert one_name(postgres_url, 16, 10, "check-outside")["charged"] > 10


# two names of one ledger -------------------------------------------------------------------------


def two_names(first: Path, second: Path, processes: int, holds: int, bug: str = "") -> Counter[str]:
    return Counter(race(f"{first},{second}", processes, holds, bug))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "budget.db"
    Ledger(path).create("hospital", epsilon=EPSILON, delta=DELTA)
    return path


PROCESSES = [8, pytest.param(64, marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize("processes", PROCESSES)
def test_symbolic_links_are_the_ledger(ledger: Path, tmp_path: Path, processes: int) -> None:
    (tmp_path / "other").symlink_to(tmp_path)
    second = tmp_path / "link.db"
    second.symlink_to(tmp_path / "other" / "budget.db")
    found = two_names(ledger, second, processes, holds=3)
    assert found == {"charged": 3, "refused": processes - 3}
    assert len(Ledger(second).charges("hospital")) == 3


@pytest.mark.parametrize("processes", PROCESSES)
def test_hard_links_are_refused(ledger: Path, tmp_path: Path, processes: int) -> None:
    second = tmp_path / "link.db"
    os.link(ledger, second)
    assert two_names(ledger, second, processes, holds=3) == {"second name": processes}
    second.unlink()
    assert Ledger(ledger).charges("hospital") == []


@pytest.mark.slow
def test_a_hard_link_doubles_the_budget_of_a_ledger_with_a_write_ahead_log(
    ledger: Path, tmp_path: Path
) -> None:
    second = tmp_path / "link.db"
    os.link(ledger, second)
    assert two_names(ledger, second, 16, 3, "write-ahead")["charged"] > 3


def mounts() -> bool:
    """Whether this user may mount, in a space of its own that ends with the process."""
    command = ["unshare", "-m", "mount", "--bind", "/", "/"]
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run(command, capture_output=True).returncode
    )


@pytest.mark.parametrize("processes", PROCESSES)
def test_a_file_mounted_by_itself_is_refused(ledger: Path, tmp_path: Path, processes: int) -> None:
    if not mounts():
        pytest.skip("needs the right to mount")
    (tmp_path / "container").mkdir()
    second = tmp_path / "container" / "budget.db"
    second.touch()
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    scale = math.sqrt(3) / gaussian_mu(EPSILON, DELTA) * (1 + 1e-9)
    worker = [sys.executable, WORKER, "race", f"{ledger},{second}", "hospital", str(processes)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", ledger, second, *worker, repr(scale)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    half = processes // 2
    assert json.loads(done.stdout) == {"charged": 3, "refused": half - 3, "second name": half}
    assert len(Ledger(ledger).charges("hospital")) == 3


def test_a_folder_mounted_elsewhere_is_the_ledger(ledger: Path, tmp_path: Path) -> None:
    if not mounts():
        pytest.skip("needs the right to mount")
    second = tmp_path.with_name(tmp_path.name + "-container")
    second.mkdir()
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    scale = math.sqrt(3) / gaussian_mu(EPSILON, DELTA) * (1 + 1e-9)
    names = f"{ledger},{second / 'budget.db'}"
    worker = [sys.executable, WORKER, "race", names, "hospital", "8", repr(scale)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", tmp_path, second, *worker],
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == {"charged": 3, "refused": 5}, done.stderr
