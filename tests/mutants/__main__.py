"""Every mutant of the table must be killed: ``make mutants``.

Words on the command line choose the mutants whose names hold one of them; ``--jobs`` says how
many run at a time. The named tests must first pass on the sources as they are.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from mutants.mutation import ROOT, load, mutated_copy
from mutants.runner import Job, Outcome, run, warm


def main(words: list[str], workers: int) -> int:
    """Run the chosen mutants; gives the exit code."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # numpy comes with warm()
    start = time.monotonic()
    chosen = [m for m in load() if not words or any(word in m.name for word in words)]
    warm()
    bad: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for outcome in run(unmutated(chosen, workers), ROOT, _new(work, "before"), workers=workers):
            print(f"{outcome.passed} tests pass on the sources as they are", flush=True)
            if outcome.failed or outcome.broken:
                print("but not:", *outcome.failed, *outcome.broken, sep="\n", flush=True)
                return 2
        jobs = [Job(m.name, partial(mutated_copy, m), m.tests) for m in chosen]
        for outcome in run(jobs, ROOT, _new(work, "after"), workers=workers):
            by = (outcome.failed or ["nobody"])[0]
            said = f"{outcome.verdict:9}{outcome.seconds:4.0f} s  {outcome.name}  ({by})"
            print(said, *outcome.broken, sep="\n", flush=True)
            if outcome.verdict != "killed":
                bad.append(outcome)
    took = f"{time.monotonic() - start:.0f} s"
    print(f"{len(chosen) - len(bad)} of {len(chosen)} mutants killed in {took}")
    for outcome in bad:
        print(f"{outcome.verdict.upper()}: {outcome.name}")
    return 1 if bad or not chosen else 0


def unmutated(chosen: list, workers: int) -> list[Job]:
    """The named tests, each once, in as many parts as there are workers; a file in one part."""
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    files = sorted({test.partition("::")[0] for test in tests})
    parts = [set(files[i::workers]) for i in range(workers)]
    return [
        Job(
            f"part {i}",
            lambda _: ROOT / "src",
            tuple(test for test in tests if test.partition("::")[0] in part),
            stop_at_first=False,
        )
        for i, part in enumerate(parts)
        if part
    ]


def _new(work: Path, name: str) -> Path:
    (work / name).mkdir()
    return work / name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of names; all mutants by default")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sys.exit(main(options.words, options.jobs))
