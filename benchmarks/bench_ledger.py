"""What one more charge costs after ten thousand: processor seconds, beside those after ten.

    python -m benchmarks.bench_ledger [charges] [--postgres URL]

Charges are of ten kinds, each with a law of its own; every tenth is a fit with a hold-out, whose
two branches nobody can order. Then 64 processes charge at once.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dpadapt.papers.hybrid.doors.draws import DrawsEvent
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.papers.kernels.machines import UpdatesEvent
from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy import BudgetExceeded, Ledger
from dpadapt.privacy.accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)
from dpadapt.privacy.ledger import tables
from dpadapt.privacy.ledger.ledger import Account
from dpadapt.privacy.ledger.records import encode_events

KINDS: list[Callable[[float], Event]] = [
    lambda u: GaussianEvent("a", u, 3000.0),
    lambda u: LaplaceEvent("b", u, 3000.0),
    lambda u: PureEvent("c", u / 3000, count=2),
    lambda u: BoundedRangeEvent("d", u, 3000.0),
    lambda u: PoissonGaussianEvent("e", 1.0, 2000 * u, 0.01 * u),
    lambda u: DiscreteGaussianEvent("f", u, 3000.0),
    lambda u: UpdatesEvent("g", u, 30000.0, count=3),
    lambda u: RandomStoppingEvent("h", (GaussianEvent("x", u, 3000.0),), shape=1.0, gamma=0.9),
    lambda u: DrawsEvent("i", 0.5, 1e-11 * u, 100, 1e-6 * u),
    lambda u: OneDrawGaussianEvent("j", 1.0, 10 * u, 1e-5 * u, count=20),
]
SMOOTH = [0, 1, 2, 3, 4, 9]  # kinds that have a privacy loss distribution


def charge(draw: random.Random, number: int, kinds: list[int]) -> tuple[Event, ...]:
    """The events of a charge; every tenth is a fit with a hold-out."""
    event = KINDS[kinds[number // 10 % len(kinds)] if number % 10 == 0 else draw.choice(kinds)](
        draw.uniform(0.5, 1.5)
    )
    if number % 10:
        return (event,)
    reserve = GaussianEvent("evaluation", draw.uniform(0.5, 1.5) / 3000, 1.0)
    return (ParallelEvent("fit and evaluation", ((event,), (reserve,))),)


def fill(account: Account, count: int, kinds: list[int]) -> None:
    """Write charges as the ledger does, all in one transaction."""
    draw, store = random.Random(1), account.ledger._store
    with store.transaction(write=True) as connection:
        balance = tables.read_balance(connection, store, account.name)
        for number in range(balance.number, count):
            events = charge(draw, number, kinds)
            now = "2026-01-01T00:00:00.000000+00:00"
            balance = tables.append(connection, balance, now, "fit", encode_events(events), events)


def seconds(task: Callable[[], object]) -> float:
    """Processor seconds of a task."""
    began = time.process_time()
    task()
    return time.process_time() - began


def refused(account: Account) -> None:
    """A charge far above any budget."""
    try:
        account.charge([PureEvent("answer", 10_000.0)], "too much")
    except BudgetExceeded:
        return
    raise AssertionError("was charged")


def measure(account: Account, kinds: list[int]) -> dict[str, float]:
    """Processor seconds: the median of nine charges, a refusal, what is spent and left, a check."""
    draw = random.Random(2)
    events = [charge(draw, number, kinds) for number in range(9)]
    each = sorted(seconds(lambda e=e: account.charge(e, "fit")) for e in events)
    ledger = account.ledger
    return {
        "charge": each[4],
        "dearest of 9": each[-1],
        "refusal": seconds(lambda: refused(account)),
        "spent": seconds(account.spent),
        "left": seconds(account.left),
        "check": seconds(ledger.check),
    }


def race(account: Account, racers: int, kinds: list[int]) -> tuple[int, float]:
    """How many of so many processes charge, and the processor seconds of all."""
    before = len(account.ledger.charges(account.name))
    pids = []
    for number in range(racers):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                account.charge(charge(random.Random(number), number, kinds), f"racer {number}")
                status = 0
            finally:
                os._exit(status)
        pids.append(pid)
    began = os.times()
    done = sum(os.waitpid(pid, 0)[1] == 0 for pid in pids)
    ended = os.times()
    added = len(account.ledger.charges(account.name)) - before
    if added != done:
        raise AssertionError(f"{done} were told of a charge, {added} are in the ledger")
    spent = ended.children_user + ended.children_system
    return done, spent - began.children_user - began.children_system


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("charges", type=int, nargs="?", default=10_000)
    parser.add_argument("--racers", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, kinds in (("ten kinds", list(range(10))), ("six with a distribution", SMOOTH)):
            ledger = Ledger(Path(folder) / f"{len(kinds)}.db")
            account = ledger.create("rows", epsilon=1000.0, delta=1e-5)
            fill(account, 10, kinds)
            measure(account, kinds)  # imports
            for count in (10, given.charges):
                fill(account, count, kinds)
                found = {what: round(took, 3) for what, took in measure(account, kinds).items()}
                print(f"{name}, after {count}: {found}", flush=True)
            done, took = race(account, given.racers, kinds)
            print(f"{name}: {done} of {given.racers} racers charged, {took / done:.3f} s each")


if __name__ == "__main__":
    main()
