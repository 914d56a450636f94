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

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from dpadapt.papers.hybrid.doors.draws import DrawsEvent
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.papers.kernels.machines import UpdatesEvent
from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
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
from dpadapt.privacy.ledger.records import Balance, chain, digest_of, encode_events, genesis
from dpadapt.privacy.ledger.sums import SummedEvent, Sums, decode_sums, encode_sums, summed

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


def splits(makers: list[Callable[[float], Event]], count: int) -> list[Event]:
    """Fits with a hold-out, each its own."""
    draw = random.Random(5)
    return [
        ParallelEvent(
            "parts",
            (
                (makers[i % len(makers)](draw.uniform(0.5, 2.0)),),
                (GaussianEvent("reserve", draw.uniform(0.5, 2.0), 300.0),),
            ),
        )
        for i in range(count)
    ]


def test_a_split_is_its_worst_branch_where_there_is_one() -> None:
    split = ParallelEvent(
        "parts", ((GaussianEvent("a", 0.1, 1.0),), (GaussianEvent("b", 0.2, 1.0),))
    )
    assert sums_module.alike(summed([split] * 4), (GaussianEvent("", 0.4, 1.0),))
    more = ParallelEvent("parts", ((PureEvent("a", 0.1),), (PureEvent("a", 0.1, count=2),)))
    assert summed([more] * 3) == (PureEvent("", 0.1, count=6),)


def test_equal_splits_are_counted_and_nameless() -> None:
    split = ParallelEvent("parts", ((PureEvent("a", 0.1),), (GaussianEvent("b", 0.1, 1.0),)))
    listed = summed([split, split])
    assert len(listed) == 1
    short = listed[0]
    assert isinstance(short, ParallelEvent)
    assert short.count == 2
    assert '"a"' not in encode_sums([short])
    assert decode_sums(encode_sums([short])) == (short,)
    assert compose_epsilon([short], DELTA) == compose_epsilon([split, split], DELTA)


@pytest.mark.parametrize(
    "makers", [MAKERS[:1], MAKERS[1:2], MAKERS, OTHERS], ids=["first", "second", "all", "others"]
)
def test_many_splits_never_cost_less_than_the_worst_way_and_little_more(
    makers: list[Callable[[float], Event]],
) -> None:
    events = splits(makers, 40)
    short = summed(events)
    assert len(short) <= 20
    kept = compose_epsilon(short, DELTA)
    ways = [[branch for event in events for branch in event.ways[place]] for place in (0, 1)]
    dearer = [max(e.ways, key=lambda way: compose_epsilon(way * 40, DELTA)) for e in events]
    ways.append([event for way in dearer for event in way])
    listed = max(compose_epsilon(way, DELTA) for way in ways)
    assert listed * (1 - 1e-9) <= kept <= 1.4 * listed


def nested(draw: random.Random, depth: int, size: float) -> Event:
    """A split of one to four branches, some of whose events are splits again."""

    def single() -> Event:
        ratio, count = size * draw.uniform(0.3, 1.0), draw.choice([1, 1, 2])
        noisy = draw.choice([GaussianEvent, LaplaceEvent, BoundedRangeEvent, PureEvent])
        if noisy is PureEvent:
            return PureEvent("p", ratio, count)
        return noisy("n", ratio * 3, 3.0, count)  # type: ignore[no-any-return, operator]

    def branch() -> tuple[Event, ...]:
        inner = draw.random() < 0.6 and depth > 1
        return tuple(
            nested(draw, depth - 1, size) if inner and not place else single()
            for place in range(draw.choice([1, 1, 2]))
        )

    branches = tuple(branch() for _ in range(draw.choice([1, 2, 2, 2, 3, 4])))
    return ParallelEvent("s", branches, count=draw.choice([1, 1, 1, 3]))


def one_way(event: Event, choose: Callable[[tuple[tuple[Event, ...], ...]], int]) -> list[Event]:
    """What a record meets that is in one branch of every split, the same in all rounds."""
    if not event.ways:
        return [event]
    met = event.ways[choose(event.ways)]
    return [one for each in met for one in one_way(each, choose)] * event.law()[1]


def exact_epsilon(events: list[Event]) -> float:
    """Of Gaussians and randomised responses, which state no less than these events: a lower bound.

    An epsilon-DP event can be randomised response at epsilon, a selection of range eta one at
    eta / 2. Those of all are at least those of the strongest few, which alone are counted.
    """
    mu = math.hypot(0.0, *(e.gaussian_mu for e in events if math.isfinite(e.gaussian_mu)))
    pure = [
        unit.pure_epsilon / (2 if isinstance(unit, BoundedRangeEvent) else 1)
        for unit, count in (e.law() for e in events if math.isinf(e.gaussian_mu))
        for _ in range(count)
    ]
    losses, chances = np.zeros(1), np.ones(1)
    for epsilon in sorted(pure)[-12:]:
        p = 1 / (1 + math.exp(-epsilon))
        losses = np.concatenate([losses + epsilon, losses - epsilon])
        chances = np.concatenate([chances * p, chances * (1 - p)])

    def delta(epsilon: float) -> float:
        at = epsilon - losses
        if mu == 0:
            return float(chances @ np.maximum(0.0, -np.expm1(at)))
        return float(chances @ (ndtr(mu / 2 - at / mu) - np.exp(at + log_ndtr(-at / mu - mu / 2))))

    low, high = 0.0, 64.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= DELTA else (middle, high)
    return low


def kept_by_a_ledger(events: list[Event]) -> tuple[Event, ...]:
    """Sums as a ledger makes them: at every charge, from what it read."""
    kept: tuple[Event, ...] = ()
    for event in events:
        kept = summed((*decode_sums(encode_sums(kept)), event))
    return kept


def never_cheaper(kept: tuple[Event, ...], events: list[Event]) -> None:
    """No Renyi divergence of the sums is below that of the events: none was lost or made less."""
    orders = renyi_orders()[::40]
    now, before = (sum(e.renyi(orders) for e in some) for some in (kept, events))
    assert (now >= before * (1 - 1e-9)).all()  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(40))
def test_sums_of_nested_splits_are_never_cheaper_than_the_splits(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [draw.choice([0.001, 0.01, 0.011, 0.3]) for _ in range(24)]
    events = [nested(draw, draw.choice([1, 2, 2, 3]), size) for size in sizes]
    kept = kept_by_a_ledger(events)
    never_cheaper(kept, events)
    choices = [lambda ways: 0, lambda ways: len(ways) - 1, lambda ways: draw.randrange(len(ways))]
    for choose in choices * 2:
        never_cheaper(kept, [one for event in events for one in one_way(event, choose)])


def alike_outside(inner: Callable[[float], tuple[Event, ...]], count: int) -> list[Event]:
    """Splits that look the same from outside: a split in one branch, a pure event in the other."""
    return [
        ParallelEvent(
            "fit",
            (
                (ParallelEvent("split", tuple((event,) for event in inner(1 - 1e-4 * i))),),
                (PureEvent("other", 0.711 - 1e-4 * i),),
            ),
        )
        for i in range(count)
    ]


ALIKE_OUTSIDE = {
    "selection": lambda u: (BoundedRangeEvent("b", 0.511 * u, 1.0), PureEvent("p", 0.611 * u)),
    "Gaussian": lambda u: (GaussianEvent("g", 0.511 * u, 1.0), PureEvent("p", 0.611 * u)),
    "pure": lambda u: (PureEvent("p", 0.511 * u), GaussianEvent("g", 0.611 * u, 1.0)),
    "three": lambda u: (
        BoundedRangeEvent("b", 0.511 * u, 1.0),
        PureEvent("p", 0.611 * u),
        PureEvent("q", 6.0),
    ),
    "counted": lambda u: (BoundedRangeEvent("b", 0.511 * u, 1.0, 4), PureEvent("p", 0.611 * u)),
}


@pytest.mark.parametrize("other", ["Gaussian", "pure", "three", "counted"])
@pytest.mark.parametrize("place", [0, 8, 12])
def test_splits_that_are_alike_only_outside_stay_apart(other: str, place: int) -> None:
    """A Gaussian is no selection, and a third branch is not forgotten, whichever came first."""
    events = alike_outside(ALIKE_OUTSIDE["selection"], 12)
    events[place:place] = alike_outside(ALIKE_OUTSIDE[other], 1)
    kept = kept_by_a_ledger(events)
    assert len(kept) < 10
    never_cheaper(kept, events)


def test_many_nested_splits_cost_what_an_exact_accountant_says_or_more() -> None:
    events = alike_outside(ALIKE_OUTSIDE["selection"], 11)
    events[8:8] = alike_outside(ALIKE_OUTSIDE["Gaussian"], 1)
    spent = compose_epsilon(kept_by_a_ledger(events), DELTA)
    way = [one for i, e in enumerate(events) for one in one_way(e, lambda ways, i=i: int(i != 8))]
    exact = exact_epsilon(way)
    assert exact == pytest.approx(9.585, abs=0.002), "eleven pure releases and a Gaussian one"
    assert exact <= spent <= 1.02 * exact


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_nested_splits_cost_what_an_exact_accountant_says_or_more(seed: int) -> None:
    draw = random.Random(seed)
    size = draw.choice([0.05, 0.3, 1.0])
    events = [nested(draw, 3, size * draw.choice([0.1, 1.0])) for _ in range(12)]
    kept = compose_epsilon(kept_by_a_ledger(events), DELTA)
    assert kept >= 0.98 * compose_epsilon(events, DELTA)
    for _ in range(12):
        way = [one for e in events for one in one_way(e, lambda ways: draw.randrange(len(ways)))]
        assert kept >= exact_epsilon(way) * (1 - 1e-9)


def test_a_ledger_forgets_no_branch_whatever_is_charged_after_it(tmp_path: Path) -> None:
    """Charges of a small split, then of one with a dear third branch, then of more small ones."""
    account = Ledger(tmp_path / "budget.db").create("hospital", epsilon=8.0, delta=DELTA)

    def charge(size: float, *more: Event) -> None:
        parts = BoundedRangeEvent("b", 3 * size, 1.0), GaussianEvent("g", size, 1.0), *more
        inner = ParallelEvent("split", tuple((part,) for part in parts))
        held = GaussianEvent("evaluation", 1.2 * size, 1.0)
        account.charge([ParallelEvent("both", ((inner,), (held,)))], "fit")

    for place in range(7):
        charge(1e-4 * 1.7**place)
    charge(1e-4, PureEvent("dear", 6.0))
    for place in (7, 8, 9):
        charge(1e-4 * 1.7**place)
    assert account.spent() >= 6 * (1 - 1e-6)
    with pytest.raises(BudgetExceeded):
        charge(1e-4, PureEvent("dear", 6.0))
    account.ledger.check()


def test_splits_that_fail_add_up_what_they_fail_with() -> None:
    events = splits([OTHERS[3]], 20)
    short = summed(events)
    lost = math.fsum(event.failure for event in short)
    assert lost == pytest.approx(math.fsum(event.failure for event in events), rel=1e-9)
    assert lost >= math.fsum(event.failure for event in events) * (1 - 1e-15)


def test_sums_bit_by_bit_are_those_of_the_check() -> None:
    draw = random.Random(3)
    events = splits(MAKERS + OTHERS, 120) + mixed(MAKERS + OTHERS, 200, None)
    draw.shuffle(events)
    kept: tuple[Event, ...] = ()
    total = Sums()
    for event in events:
        kept = summed((*kept, event))
        total.add(event)
        total.settle()
    assert sums_module.alike(total.short(), kept)


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
    charge, text = dataset.charges[0], encode_events([PureEvent("answer", 0.5)])
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


def test_an_error_of_the_accountant_is_not_told_as_one_of_relations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Ledger(tmp_path / "budget.db").create("hospital", epsilon=1.0, delta=DELTA)
    account.charge([PureEvent("a", 0.1)], "fit")
    with pytest.raises(LedgerError, match="keep to one relation"):
        account.charge([PureEvent("a", 0.1, relation="replace-unit")], "fit")

    def fails(*_: object) -> bool:
        raise ValueError("out of range")

    monkeypatch.setattr(Balance, "admits", fails)
    with pytest.raises(ValueError, match=r"^out of range$"):
        account.charge([PureEvent("a", 0.1)], "fit")
    assert account.number() == 1


def fill(account: Account, events: list[Event], step: int) -> None:
    """Many charges in one transaction, as if they had been made one after another."""
    store = account.ledger._store
    with store.transaction(write=True) as connection:
        balance = tables.read_balance(connection, store, account.name)
        for start in range(0, len(events), step):
            some = events[start : start + step]
            balance = tables.append(connection, balance, "", "fit", encode_events(some), some)


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


def test_sums_of_an_older_version_hold_splits_apart_and_are_taken(tmp_path: Path) -> None:
    """As dpadapt kept them before: the check understands them, and the next charge joins them."""
    account = Ledger(tmp_path / "old.db").create("hospital", epsilon=10.0, delta=DELTA)
    events = splits(MAKERS[:2], 6)
    for event in events:
        account.charge([event], "fit")
    old = encode_sums([event.nameless() for event in events]).replace(', "count": 1}', "}")
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        name, epsilon, delta, created = connection.execute(
            "SELECT name, epsilon, delta, created FROM dpadapt_dataset"
        ).fetchone()
        head, rows = (
            genesis(name, epsilon, delta, created),
            connection.execute(
                "SELECT number, created, label, events FROM dpadapt_charge ORDER BY number"
            ).fetchall(),
        )
        for row in rows:
            head = chain(head, *row, digest_of(old))
            connection.execute(
                "UPDATE dpadapt_charge SET sums = ?, digest = ? WHERE number = ?",
                (digest_of(old), head, row[0]),
            )
        connection.execute("UPDATE dpadapt_dataset SET sums = ?, head = ?", (old, head))
    before = account.spent()
    account.ledger.check()
    account.charge([GaussianEvent("more", 1.0, 1e6)], "fit")
    account.ledger.check()
    assert account.spent() == pytest.approx(before, rel=1e-3)


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
