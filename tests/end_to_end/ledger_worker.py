"""Processes that race for a ledger or are killed while they write to it.

Run as a script: the imports are paid once, every child is a fork.

    ledger_worker.py race   LEDGER NAME PROCESSES SCALE [BUG]
    ledger_worker.py crash  LEDGER NAME KILLS RELEASES [BUG]

BUG plants a fault, to show that the tests would notice: ``check-outside`` decides before it takes
the lock, ``release-first`` releases before it charges.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from dpadapt.privacy._ledger_records import encode
from dpadapt.privacy.errors import BudgetExceeded
from dpadapt.privacy.events import GaussianEvent
from dpadapt.privacy.ledger import Account, Ledger, _append


def check_outside(account: Account, events: list[GaussianEvent], label: str) -> None:
    """Charge as one should not: another process can charge between the check and the write."""
    dataset = account.ledger.dataset(account.name)
    if not dataset.admits(events):
        raise dataset.refusal(events)
    time.sleep(0.3)
    with account.ledger._store.transaction(write=True) as connection:
        dataset = account.ledger._read(connection, account.name, lock=True)
        _append(connection, dataset, encode(events), label)


def race(account: Account, processes: int, scale: float, bug: str) -> dict[str, int]:
    """All processes start at once and try one charge each; count the outcomes."""
    charge = check_outside if bug == "check-outside" else Account.charge
    gate, opener = os.pipe()
    children = []
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            os.close(opener)
            os.read(gate, 1)  # returns when the parent closes the other end
            os._exit(_try(charge, account, scale, f"process {number}"))
        children.append(pid)
    os.close(opener)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    names = {0: "charged", 3: "refused"}
    return dict(Counter(names.get(code, "failed") for code in codes))


def _try(charge, account: Account, scale: float, label: str) -> int:  # type: ignore[no-untyped-def]
    try:
        charge(account, [GaussianEvent("mean", 1.0, scale)], label)
    except BudgetExceeded:
        return 3
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def crash(account: Account, kills: int, releases: str, bug: str) -> dict[str, int]:
    """Kill a child that charges and releases without end, at a random moment, ``kills`` times."""
    moment = random.Random()
    ended = Counter[int]()
    for round_ in range(kills):
        pid = os.fork()
        if pid == 0:
            _charge_and_release(account, round_, Path(releases), bug)
        time.sleep(moment.uniform(0.0, 0.12))
        os.kill(pid, signal.SIGKILL)
        ended[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])] += 1
    killed = ended.pop(-signal.SIGKILL, 0)
    return {"killed": killed, "failed": sum(ended.values())}


def _charge_and_release(account: Account, round_: int, path: Path, bug: str) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for number in range(1_000_000):
            label = f"{round_}-{number}"
            steps = [
                lambda label=label: account.charge([GaussianEvent("mean", 1.0, 1e4)], label),
                lambda label=label: (os.write(file, f"{label}\n".encode()), os.fsync(file)),
            ]
            for step in reversed(steps) if bug == "release-first" else steps:
                step()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(task: str, location: str, name: str, number: str, extra: str, bug: str = "") -> None:
    account = Account(Ledger(location), name)
    account.ledger.dataset(name)  # the imports of the driver happen here, before the forks
    if task == "race":
        print(json.dumps(race(account, int(number), float(extra), bug)))
    else:
        print(json.dumps(crash(account, int(number), extra, bug)))


if __name__ == "__main__":
    main(*sys.argv[1:])
