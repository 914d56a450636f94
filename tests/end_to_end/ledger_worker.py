"""Processes that race for a ledger or are killed while they write to it.

Run as a script: the imports are paid once, every child is a fork.

    ledger_worker.py race   LEDGERS NAME PROCESSES SCALE [BUG]
    ledger_worker.py crash  LEDGER NAME KILLS RELEASES [BUG]

LEDGERS are names of one ledger, with commas between; processes take them in turn. BUG plants a
fault, to show that the tests would notice: ``check-outside`` decides before it takes the lock,
``release-first`` releases before it charges, ``write-ahead`` keeps a write-ahead log and does not
look at names.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from multiprocessing.synchronize import Barrier

from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import GaussianEvent
from dpadapt.privacy.ledger import tables as tables
from dpadapt.privacy.ledger.ledger import Account, Ledger
from dpadapt.privacy.ledger.records import encode_events
from dpadapt.privacy.ledger.sqlite import SqliteStore
from dpadapt.privacy.rows.errors import BudgetExceeded

CHECKED: Barrier  # of all processes of a race


def check_outside(account: Account, events: list[GaussianEvent], label: str) -> None:
    """Charge as one should not: another process can charge between the check and the write."""
    balance = account.ledger.dataset(account.name).balance
    if not balance.admits(events):
        raise balance.refusal(events)
    CHECKED.wait()  # for everybody else to be as far
    store = account.ledger._store
    with store.transaction(write=True) as connection:
        tables.head_of(connection, account.name)
        balance = tables.read_balance(connection, store, account.name)
        tables.append(connection, balance, "", label, encode_events(events), events)


def write_ahead(path: str) -> None:
    """Keep the ledger as the first version did: a write-ahead log, and any name will do."""
    for name in ("_check_home", "_require"):
        setattr(SqliteStore, name, lambda *_: None)
    SqliteStore._home = lambda self: ""  # type: ignore[method-assign]
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def race(accounts: list[Account], processes: int, scale: float, bug: str) -> dict[str, int]:
    """All processes start at once and try one charge each; count the outcomes."""
    global CHECKED
    CHECKED = multiprocessing.get_context("fork").Barrier(processes)
    charge = check_outside if bug == "check-outside" else Account.charge
    if bug == "write-ahead":
        write_ahead(accounts[0].ledger._store.display)
    gate, opener = os.pipe()
    children = []
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            os.close(opener)
            os.read(gate, 1)  # returns when the parent closes the other end
            account = accounts[number % len(accounts)]
            os._exit(_try(charge, account, scale, f"process {number}"))
        children.append(pid)
    os.close(opener)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    names = {0: "charged", 3: "refused", 4: "second name"}
    return dict(Counter(names.get(code, "failed") for code in codes))


def _try(charge, account: Account, scale: float, label: str) -> int:  # type: ignore[no-untyped-def]
    try:
        charge(account, [GaussianEvent("mean", 1.0, scale)], label)
    except BudgetExceeded:
        return 3
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        told = str(error)
        names = ("second name", "names (hard links)", "mounted by itself")
        return 4 if any(each in told for each in names) else 1
    return 0


def crash(ledger: Ledger, name: str, kills: int, releases: str, bug: str) -> dict[str, int]:
    """Kill a child that charges and releases without end, at a random moment, ``kills`` times.

    The moment is anywhere in the first or the second charge, however long one takes here.
    """
    moment, ended, took = random.Random(), Counter[int](), 0.05
    with open(releases, "wb") as file:
        for round_ in range(kills):
            if round_ % 50 == 0:  # a new data set: reading a long one takes ever longer
                account = ledger.create(f"{name} {round_ // 50}", epsilon=10.0, delta=1e-6)
            source, sink = os.pipe()
            began, pid = time.perf_counter(), os.fork()
            if pid == 0:
                _charge_and_release(account, round_, sink, bug)
            os.close(sink)
            if moment.random() < 0.5:
                file.write(os.read(source, 1 << 16))
                took = 0.9 * took + 0.1 * (time.perf_counter() - began)
            time.sleep(moment.uniform(0.0, took))
            os.kill(pid, signal.SIGKILL)
            ended[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])] += 1
            while said := os.read(source, 1 << 16):
                file.write(said)
            os.close(source)
    killed = ended.pop(-signal.SIGKILL, 0)
    return {"killed": killed, "failed": sum(ended.values())}


def _charge_and_release(account: Account, round_: int, sink: int, bug: str) -> None:
    try:
        for number in range(1_000_000):
            label = f"{round_}-{number}"
            steps = [
                lambda label=label: account.charge([GaussianEvent("mean", 1.0, 1e4)], label),
                lambda label=label: os.write(sink, f"{label}\n".encode()),
            ]
            for step in reversed(steps) if bug == "release-first" else steps:
                step()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(task: str, locations: str, name: str, number: str, extra: str, bug: str = "") -> None:
    ledgers = [Ledger(location) for location in locations.split(",")]
    compose_epsilon([GaussianEvent("mean", 1.0, 10.0)], 1e-6)  # before the forks
    if task == "race":
        accounts = [Account(ledger, name) for ledger in ledgers]
        print(json.dumps(race(accounts, int(number), float(extra), bug)))
    else:
        ledgers[0].datasets()  # the imports of the driver happen here, before the forks
        print(json.dumps(crash(ledgers[0], name, int(number), extra, bug)))


if __name__ == "__main__":
    main(*sys.argv[1:])
