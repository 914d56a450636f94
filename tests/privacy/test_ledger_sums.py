"""What a ledger keeps composed: never below what the single events cost, and quick to add to."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpadapt.privacy import BudgetExceeded, LedgerError
from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon, fits
from dpadapt.privacy.accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)
from dpadapt.privacy.accounting.renyi import renyi_orders
from dpadapt.privacy.ledger import sums as sums_module
from dpadapt.privacy.ledger import tables as tables
from dpadapt.privacy.ledger.ledger import Account, Ledger
from dpadapt.privacy.ledger.records import Balance, chain, digest_of, encode, genesis
from dpadapt.privacy.ledger.sums import SummedEvent, decode_sums, encode_sums, summed
from dpadapt.privacy.mechanisms.draws import DrawsEvent
from dpadapt.privacy.mechanisms.one_draw import OneDrawGaussianEvent
from dpadapt.privacy.mechanisms.poisson import PoissonGaussianEvent
from dpadapt.privacy.mechanisms.random_stopping import RandomStoppingEvent
from dpadapt.privacy.mechanisms.updates import UpdatesEvent

DELTA = 1e-6
MANY = int(os.environ.get("DPADAPT_LEDGER_CHARGES", "10000"))  # of the slow test
MAKERS: list[Callable[[float], Event]] = [
    lambda u: GaussianEvent("a", u, 300.0),
    lambda u: LaplaceEvent("b", u, 300.0),
    lambda u: PureEvent("c", u / 300, count=2),
    lambda u: BoundedRangeEvent("d", u, 300.0),
    lambda u: PoissonGaussianEvent("e", 1.0, 20 * u, 0.01 * u),
]
OTHERS: list[Callable[[float], Event]] = [
    lambda u: DiscreteGaussianEvent("f", u, 300.0),
    lambda u: UpdatesEvent("g", u, 3000.0, count=3),
    lambda u: RandomStoppingEvent("h", (GaussianEvent("x", u, 300.0),), shape=1.0, gamma=0.5),
    lambda u: DrawsEvent("i", 0.5, 1e-9 * u, 100, 1e-6 * u),
    lambda u: OneDrawGaussianEvent("j", 1.0, 10 * u, 1e-4 * u, count=20),
]


def mixed(makers: list[Callable[[float], Event]], count: int, laws: int | None) -> list[Event]:
    """Events of several kinds, of so many different laws, or each of a law of its own."""
    draw = random.Random(7)
    scales = [draw.uniform(0.5, 2.0) for _ in range(laws or count)]
    return [makers[i % len(makers)](scales[i // len(makers) % len(scales)]) for i in range(count)]


@pytest.mark.parametrize("makers", [MAKERS, [MAKERS[0]], [MAKERS[1]], OTHERS], ids=len)
def test_few_laws_cost_what_they_cost(makers: list[Callable[[float], Event]]) -> None:
    events = mixed(makers, 20, 2)
    short = summed(events)
    assert len(short) <= 20
    assert compose_epsilon(short, DELTA) == pytest.approx(compose_epsilon(events, DELTA), rel=1e-6)


@pytest.mark.parametrize("makers", [MAKERS, OTHERS], ids=["mixed", "others"])
def test_many_laws_never_cost_less_and_little_more(makers: list[Callable[[float], Event]]) -> None:
    events = mixed(makers, 150, None)
    short = summed(events)
    assert len(short) < 100
    long, kept = compose_epsilon(events, DELTA), compose_epsilon(short, DELTA)
    assert long * (1 - 1e-9) <= kept <= 1.35 * long


def test_a_merge_that_takes_the_best_law_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    events = mixed([MAKERS[1]], 200, None)
    monkeypatch.setattr(sums_module, "max", min, raising=False)
    assert compose_epsilon(summed(events), DELTA) < compose_epsilon(events, DELTA)


@pytest.mark.parametrize("maker", [*MAKERS, *OTHERS])
def test_laws_grow_with_what_is_rounded_up(maker: Callable[[float], Event]) -> None:
    """Of neighbours in a cell the worst is taken: it costs no less, whatever the direction."""
    event = maker(1.0)
    if isinstance(event, (RandomStoppingEvent, GaussianEvent, DiscreteGaussianEvent)):
        return  # these are added exactly
    unit, _ = event.law()
    other = maker(1.01).law()[0]
    (worst,) = sums_module._merged({unit: 1, other: 1}, lambda facts: ())  # type: ignore[arg-type]
    for each in (unit, other):
        assert compose_delta([worst] * 5, 1e-3) >= compose_delta([each] * 5, 1e-3) * (1 - 1e-9)


def test_random_stoppings_add_up_order_by_order() -> None:
    events = mixed([OTHERS[2]], 30, None)
    (short,) = summed(events)
    assert isinstance(short, SummedEvent)
    orders = renyi_orders()
    total = sum(event.renyi(orders) for event in events)
    assert short.renyi(orders) == pytest.approx(total, rel=1e-11)
    assert (short.renyi(orders) >= total).all()
    between = (orders[:-1] + orders[1:]) / 2
    assert (short.renyi(between) >= sum(e.renyi(between) for e in events) * (1 - 1e-12)).all()
    assert decode_sums(encode_sums([short])) == (short,)


def test_splits_are_kept_apart_and_nameless() -> None:
    split = ParallelEvent("parts", ((PureEvent("a", 0.1),), (PureEvent("b", 0.2),)))
    short = summed([split, split])
    assert len(short) == 2
    assert '"a"' not in encode_sums(short)
    assert compose_epsilon(short, DELTA) == compose_epsilon([split, split], DELTA)


def test_the_order_of_charges_does_not_matter() -> None:
    events = mixed(MAKERS, 300, 3)
    whole = summed(events)
    bit_by_bit: tuple[Event, ...] = ()
    for event in events:
        bit_by_bit = summed((*bit_by_bit, event))
    assert sums_module.alike(whole, bit_by_bit)


@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 2.0])
@pytest.mark.parametrize("makers", [MAKERS, OTHERS], ids=["mixed", "others"])
def test_fits_is_composition(makers: list[Callable[[float], Event]], factor: float) -> None:
    events = mixed(makers, 20, 2)
    epsilon = compose_epsilon(events, DELTA) * factor
    assert fits(events, epsilon, DELTA) == (compose_delta(events, epsilon) <= DELTA) == (factor > 1)


# in a ledger -------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def any_account(request: pytest.FixtureRequest, tmp_path: Path) -> Account:
    location = str(tmp_path / "budget.db")
    if request.param == "postgres":
        location = str(request.getfixturevalue("postgres_url"))
    return Ledger(location).create("hospital", epsilon=1.0, delta=DELTA)


def test_what_is_kept_is_what_was_charged(any_account: Account) -> None:
    events = mixed(MAKERS, 20, 2)
    for event in events:
        any_account.charge([event], "fit")
    assert any_account.events() == tuple(events)
    assert any_account.spent() == pytest.approx(compose_epsilon(events, DELTA), rel=1e-6)
    (dataset,) = any_account.ledger.check()
    assert dataset.balance.number == 20


def test_sums_that_forget_a_charge_are_found_by_the_check(tmp_path: Path) -> None:
    """Digests alone cannot: whoever writes can make the sums of fewer charges fit the chain."""
    path = tmp_path / "budget.db"
    account = Ledger(path).create("hospital", epsilon=1.0, delta=DELTA)
    account.charge([PureEvent("answer", 0.5)], "fit")
    dataset = account.ledger.dataset("hospital")
    charge, text = dataset.charges[0], encode([PureEvent("answer", 0.5)])
    start = genesis("hospital", 1.0, DELTA, dataset.created)
    head = chain(start, 1, charge.created, "fit", text, digest_of("[]"))
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        row = {"sums": digest_of("[]"), "head": head}
        connection.execute("UPDATE dpadapt_charge SET sums = :sums, digest = :head", row)
        connection.execute("UPDATE dpadapt_dataset SET sums = '[]', head = :head", row)
    assert account.spent() == 0.0
    with pytest.raises(LedgerError, match="its sums are not those of its charges"):
        account.ledger.check()


@pytest.mark.parametrize("damaged", ["[" * 100_000, "[1]", "null", '[{"kind": "summed"}]'])
def test_rubbish_for_sums_is_one_clear_error(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "budget.db"
    account = Ledger(path).create("hospital", epsilon=1.0, delta=DELTA)
    dataset = account.ledger.dataset("hospital")
    start = genesis("hospital", 1.0, DELTA, dataset.created)
    head = chain(start, 1, "", "fit", "[]", digest_of(damaged))
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        row = ("hospital", 1, "", "fit", "[]", digest_of(damaged), head)
        connection.execute("INSERT INTO dpadapt_charge VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("UPDATE dpadapt_dataset SET sums = ?, head = ?", (damaged, head))
    for use in (account.spent, lambda: account.charge([PureEvent("a", 0.1)], "fit")):
        with pytest.raises(LedgerError, match="its sums cannot be understood"):
            use()


def test_whoever_is_overtaken_begins_again_and_then_takes_the_lock(
    any_account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else charges while we compose, every time: we still get our turn, and it counts."""
    ledger, composed = any_account.ledger, []
    third = [PureEvent("answer", 0.2)]
    original = Balance.admits

    def overtaken(balance: Balance, events: list[Event]) -> bool:
        answer = original(balance, events)
        composed.append(balance.number)
        monkeypatch.setattr(Balance, "admits", original)
        if len(composed) <= 3:
            any_account.charge([PureEvent("other", 0.2)], "another")
        monkeypatch.setattr(Balance, "admits", overtaken)
        return answer

    monkeypatch.setattr(Balance, "admits", overtaken)
    any_account.charge(third, "overtaken")
    monkeypatch.setattr(Balance, "admits", original)
    assert composed == [0, 1, 2, 3]
    assert [c.label for c in ledger.charges("hospital")] == ["another"] * 3 + ["overtaken"]
    any_account.charge(third, "the last that fits")
    with pytest.raises(BudgetExceeded):
        any_account.charge(third, "one too many")


def test_the_lock_is_not_held_while_composing(
    any_account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, inside = Balance.admits, []

    def admits(balance: Balance, events: list[Event]) -> bool:
        if not inside:
            inside.append(1)
            any_account.charge([PureEvent("other", 1e-3)], "meanwhile")  # would wait for the lock
        return original(balance, events)

    monkeypatch.setattr(type(any_account.ledger._store), "busy_seconds", 0.2)
    monkeypatch.setattr(Balance, "admits", admits)
    any_account.charge([PureEvent("answer", 1e-3)], "slow")
    labels = [charge.label for charge in any_account.ledger.charges("hospital")]
    assert labels == ["meanwhile", "slow"]


def fill(account: Account, events: list[Event], step: int) -> None:
    """Many charges in one transaction, as if they had been made one after another."""
    store = account.ledger._store
    with store.transaction(write=True) as connection:
        balance = tables.read_balance(connection, store, account.name)
        for start in range(0, len(events), step):
            some = events[start : start + step]
            balance = tables.append(connection, balance, "", "fit", encode(some), some)


def steps_of(task: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many releases a task composes: what its time grows with."""
    counted = [0]
    original = sums_module.summed

    def counting(events: object) -> tuple[Event, ...]:
        events = tuple(events)  # type: ignore[arg-type]
        counted[0] += len(events)
        return original(events)

    monkeypatch.setattr("dpadapt.privacy.ledger.records.summed", counting)
    task()
    monkeypatch.setattr("dpadapt.privacy.ledger.records.summed", original)
    return counted[0]


def test_one_more_charge_composes_the_sums_and_not_the_charges(
    any_account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(any_account, mixed(MAKERS, 1000, 4), 50)
    more = [PureEvent("answer", 1e-3)]
    assert steps_of(lambda: any_account.charge(more, "fit"), monkeypatch) < 60


@pytest.mark.slow
@pytest.mark.parametrize("laws", [4, None], ids=["few laws", "each its own"])
def test_one_more_charge_after_ten_thousand(
    any_account: Account, laws: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    events = mixed(
        [lambda u, m=make: m(u / math.sqrt(MANY / 100)) for make in MAKERS[:4]], MANY, laws
    )
    fill(any_account, events, 1)
    compose_epsilon(mixed(MAKERS, 5, 5), DELTA)  # the imports
    took = []
    for task in (
        lambda: any_account.charge([PureEvent("answer", 1e-3)], "fit"),
        any_account.spent,
        any_account.left,
    ):
        began = time.process_time()
        task()
        took.append(time.process_time() - began)
    with capsys.disabled():
        print(f"\n{MANY} charges: charge, spent, left", json.dumps([round(t, 2) for t in took]))
    assert took[0] < 3  # seconds of the processor; below 1 on a quiet machine
    assert took[1] < 3
