"""Runs tests against changed sources, each in a forked child of a process that is warm.

The parent has numpy, scipy, pandas and scikit-learn in memory, never the library itself: a child
imports that from the sources that it is to test.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Job", "Outcome", "run", "warm"]

WARM = (
    *("numpy", "pandas", "pyarrow", "joblib", "numba", "randomgen", "sqlalchemy", "hypothesis"),
    *("scipy.stats", "scipy.optimize", "scipy.integrate", "scipy.sparse.linalg"),
    *("sklearn.linear_model", "sklearn.ensemble", "sklearn.model_selection", "sklearn.pipeline"),
    *("sklearn.utils.estimator_checks", "dp_accounting.pld.privacy_loss_distribution"),
)


@dataclass(frozen=True)
class Job:
    """Tests to run against the sources in a folder, which is made when its turn comes."""

    name: str
    sources: Callable[[Path], Path]
    tests: tuple[str, ...]
    stop_at_first: bool = True


@dataclass
class Outcome:
    """What became of a job.

    Attributes
    ----------
    failed : list of str
        Tests of which an assertion failed.
    broken : list of str
        What went wrong otherwise: nothing can be said of the mutant.
    """

    name: str
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if self.failed:
            return "killed"
        return "broken" if self.broken or not self.passed else "survived"


class Watch:
    """A pytest plugin that tells a failed assertion from everything else that can go wrong."""

    def __init__(self, outcome: Outcome, stop_at_first: bool) -> None:
        self.outcome, self.stop_at_first = outcome, stop_at_first

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.outcome.broken.append(f"{report.nodeid} could not be collected")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        if report.passed and call.when == "call":
            self.outcome.passed += 1
        elif report.failed:
            error = call.excinfo.value if call.excinfo else AssertionError("passed, but must not")
            if call.when == "call" and is_assertion(error):
                self.outcome.failed.append(item.nodeid)
                item.session.shouldstop = self.stop_at_first and "an assertion failed"
            else:
                self.outcome.broken.append(f"{item.nodeid}: {call.when}: {type(error).__name__}")
        return report


def is_assertion(error: BaseException) -> bool:
    """Whether an exception is the word of a test, not an accident of the code under test."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_assertion, error.exceptions))
    return isinstance(error, (AssertionError, pytest.fail.Exception))


def warm() -> None:
    """Import what nearly every test needs; chance is fixed, and no example is kept on disk."""
    for name in WARM:
        importlib.import_module(name)
    from hypothesis import settings

    settings.register_profile("mutants", derandomize=True, database=None)
    settings.load_profile("mutants")


def run(
    jobs: Sequence[Job], root: Path, work: Path, *, workers: int = 2, limit: float = 600.0
) -> Iterator[Outcome]:
    """Outcomes of jobs, as they come; a job that takes longer than ``limit`` seconds is broken."""
    context = multiprocessing.get_context("fork")
    waiting, running = list(reversed(jobs)), {}
    while waiting or running:
        while waiting and len(running) < workers:
            job = waiting.pop()
            folder = work / str(len(waiting))
            folder.mkdir()
            source = job.sources(folder)
            reader, writer = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(job, source, root, folder, writer))
            process.start()
            writer.close()
            running[process.sentinel] = (job, process, reader, folder, time.monotonic())
        multiprocessing.connection.wait(list(running), timeout=1.0)
        for sentinel, (job, process, reader, folder, start) in list(running.items()):
            seconds = time.monotonic() - start
            if process.is_alive() and not reader.poll() and seconds < limit:
                continue
            outcome = Outcome(job.name, broken=["the tests ended without a word"])
            if reader.poll():
                with contextlib.suppress(EOFError):
                    outcome = reader.recv()
            elif process.is_alive():
                outcome = Outcome(job.name, broken=[f"no end within {limit:g} s"])
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            del running[sentinel]
            outcome.seconds = seconds
            if outcome.broken:
                outcome.broken.append((folder / "log").read_text(errors="replace")[-4000:])
            yield outcome


def _child(job: Job, source: Path, root: Path, folder: Path, writer: Any) -> None:
    os.setsid()  # so that what the tests start can be ended with them
    with (folder / "log").open("w") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    os.chdir(root)
    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    outcome = Outcome(job.name)
    # a test is run because the table names it, slow or not
    options = ["-q", "-m", "", "-p", "no:cacheprovider", "--rootdir", str(root)]
    code = pytest.main([*options, *job.tests], plugins=[Watch(outcome, job.stop_at_first)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not outcome.failed:
        outcome.broken.append(f"pytest ended with {pytest.ExitCode(code).name}")
    (package,) = (path.name for path in source.iterdir() if (path / "__init__.py").exists())
    loaded = getattr(sys.modules.get(package), "__file__", None)
    if loaded is not None and not Path(loaded).is_relative_to(source):
        outcome.broken.append(f"the tests imported {loaded}")
        outcome.failed.clear()
    writer.send(outcome)
