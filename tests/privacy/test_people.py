"""Several rows a person: what counts, what is public, and that a whole person is protected."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpadapt import (
    AdaMixClassifier,
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    Guarantee,
    InteractivePredictor,
    KernelRegressor,
    PrivacyError,
    Private,
    ReweightingRegressor,
    Schema,
    evaluate,
)
from dpadapt.audit import replay
from dpadapt.cli.tables import open_private
from dpadapt.papers.hybrid.doors.draws import DrawsEvent
from dpadapt.privacy import Cleaning, Ledger, RowSum
from dpadapt.privacy.accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from dpadapt.privacy.core.holdout import hold_out
from dpadapt.privacy.mechanisms import (
    Exponential,
    FilteredGaussian,
    Gaussian,
    GaussianPurse,
    Laplace,
    RandomisedResponse,
    SymmetricGaussian,
)
from dpadapt.privacy.rows.groups import of_people
from dpadapt.privacy.rows.people import People
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.testing.independent_accountant import recompute_epsilon
from dpadapt.testing.search import HOSTILE_LABELS, HOSTILE_ROWS, hostile_row
from dpadapt.testing.tape import releases, taped

CLEANING = Cleaning(radius=2.0)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SEEDED = {**BUDGET, "noise": "seeded", "random_state": 0}


def test_the_first_rows_count_and_fill_all_places():
    people = People.named(list("abacabad"), 3)
    assert people.size == 4
    found = people.places.reshape(4, 3).tolist()
    assert sorted(found) == [[0, 2, 4], [1, 5, 1], [3, 3, 3], [7, 7, 7]]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_everybody_has_as_many_places(k):
    ids = np.random.default_rng(0).integers(0, 60, 150)
    people = People.named(ids.tolist(), k)
    owners = people.of[people.places].reshape(-1, k)
    assert (owners == np.arange(people.size)[:, None]).all()


NO_IDS = [None, math.nan, "", " ", "\t", "\u00a0", "\0", b"", b" ", pd.NA, pd.NaT, ["a"], object()]


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("place", range(len(NO_IDS)))
def test_no_id_makes_its_person_vanish(place, rows):
    """Whatever the id of one person becomes, as many are there, and nobody else changes."""
    ids = [f"p{i % 20}" for i in range(20 * rows)]
    X = np.arange(len(ids), dtype=float)[:, None]
    other = [NO_IDS[place] if each == "p7" else each for each in ids]
    before, after = (Private(X, unit=each, max_rows=3) for each in (ids, other))
    assert before.n_people == after.n_people == 20
    assert sorted(blocks(before).ravel()) == sorted(blocks(after).ravel())


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8])
def test_numbers_of_few_bits_are_ids(kind):
    """They were nobody's: no number of few bits can be compared with a very large one."""
    people = People.named([kind(7), 7, kind(8), None], 1)
    assert people.size == 3
    assert people.of[0] == people.of[1]


def test_rows_without_an_id_have_the_places_of_one_person():
    """However many somebody has: who could make each a person of its own would be many."""
    X = np.arange(1003.0)[:, None]
    private = Private(X, unit=[*NO_IDS[:10] * 100, "a", "b", "c"], max_rows=2)
    assert private.n_people == 4
    assert sorted(blocks(private).ravel()) == [0, 1, 1000, 1000, 1001, 1001, 1002, 1002]


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "array", "masked"])
def test_a_missing_id_is_the_same_wherever_it_stands(tmp_path, kind):
    """Fifty people of two rows each, of whom one has no id."""
    ids = [None if i % 50 == 7 else f"p{i % 50}" for i in range(100)]
    frame = pd.DataFrame({"a": np.arange(100.0), "who": ids})
    if kind == "csv":
        frame.to_csv(tmp_path / "p.csv", index=False)
        private = open_private(tmp_path / "p.csv", unit="who", max_rows=2)
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "p.parquet")
        private = Private.from_parquet(tmp_path / "p.parquet", unit="who", max_rows=2)
    elif kind == "frame":
        private = Private(frame, unit="who", max_rows=2)
    else:
        whose = np.array(["" if each is None else each for each in ids])
        if kind == "masked":
            whose = np.ma.array(whose, mask=[each is None for each in ids])
        private = Private(frame[["a"]], unit=whose, max_rows=2)
    assert private.n_people == 50
    people = private._rows.people
    assert people.of[7] == people.of[57]
    assert sorted(people.places) == list(range(100))


def test_ids_are_read_one_by_one():
    assert People.named([1, "1", 1.0, b"1", " 1 "], 1).size == 1
    assert People.named([2**60, 2**60 + 1, str(2**60)], 1).size == 2
    people = People.named([*NO_IDS, "a"], 2)
    assert len(set(people.of[:-1].tolist())) == 1, "whose id is missing is one person"
    assert people.size == 2
    assert People.named(["9" * 5000, object(), b"\xff"], 1).size == 3
    assert People.named(["12e345", "99e999", "inf"], 1).size == 3
    assert People.named([b"\xff", b"\xfe", uuid.UUID(int=1), uuid.UUID(int=2)], 1).size == 4


BIG = 10**17


@pytest.mark.parametrize(
    "one",
    [
        [BIG, str(BIG), f" {BIG}", f"+{BIG}", f"{BIG}.0", str(BIG).encode(), Decimal(BIG), 1e17],
        [-BIG, f"-{BIG}", -1e17, Fraction(-BIG)],
        [10**39, str(10**39)],
        [10**50, str(10**50), Decimal(10) ** 50],
        [int(1e50), str(int(1e50)), 1e50],
        [0, -0.0, "0", "-0", "+0.0", "000."],
        ["ann", " ann ", b"ann", "ann\0", np.str_("ann")],
        [10**5000, "1" + "0" * 5000],
        [True, 1, np.True_, np.float32(1), "1", "01"],
    ],
)
def test_one_id_is_one_person_however_it_is_written(one):
    assert People.named(one, 1).size == 1


OTHERS = [
    ["0", "0e123456", "0e654321", "0e1"],
    ["nan", "Nan", "NaN", "None", "none", "null", "NA", "<NA>", "NaT"],
    ["1000", "1e3", "1_000", "1E3", "0x3e8", "1,000", "\u0661\u0660\u0660\u0660"],
    ["1", "true", "True", "1+0j", "1.0.0", "1 0"],
    ["inf", "Infinity", "-inf", "1e999"],
    ["1" * 41, "1" * 40 + "2", "1" * 42],
    ["9" * 5000, "9" * 4999 + "8", 10**5000, 10**5000 + 1],
    ["2020-01-01", "2020-01-01 00:00:00", "2020-01-01T00:00"],
    ["a\ud800", "a\ud801", "a?"],
    [0.5, "0.50", ".5"],
]


@pytest.mark.parametrize("ids", OTHERS)
def test_other_texts_are_other_people(ids):
    """Only plain digits are numbers: who has an odd id is neither nobody nor somebody else."""
    people = People.named(ids, 1)
    assert people.size == len(ids)
    assert sorted(people.of.tolist()) == list(range(len(ids)))


def test_random_ids_of_any_alphabet_stay_apart():
    rng = np.random.default_rng(0)
    for letters in ("0123456789abcdef", "0123456789e", "0123456789eE.+-", "nNaAoOeE"):
        drawn = rng.choice(list(letters), size=(20_000, 8))
        # what makes a number of plain digits another text of the same number
        ids = {each for each in map("".join, drawn) if not re.fullmatch(r"[+-]?\d*\.?0*", each)}
        assert People.named(sorted(ids), 1).size == len(ids), letters


class Odd:
    """Claims to be a number, and fails at everything."""

    __class__ = int

    def __int__(self):
        raise RuntimeError("a private value")

    __eq__ = __lt__ = __gt__ = __float__ = __hash__ = None


ODD_IDS = {
    "long": 10**5000,
    "no time": np.timedelta64("NaT"),
    "days": np.timedelta64(3, "D"),
    "fails": Odd(),
}


@pytest.mark.parametrize("name", ODD_IDS)
def test_no_id_raises(name):
    assert Private([[1.0], [2.0]], unit=["a", ODD_IDS[name]], max_rows=2).n_people in (1, 2)


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "category"])
def test_a_missing_id_changes_no_other(kind):
    ids = [BIG + place for place in range(100)]
    whole, gap = (pd.Series(pd.array(e, dtype="Int64")) for e in (ids, [*ids[:-1], None]))
    if kind == "category":
        whole, gap = (each.astype("category") for each in (whole, gap))
    elif kind != "Int64":
        whole, gap = (each.astype(kind) for each in (whole, gap))
    X = np.arange(100.0)[:, None]
    assert Private(X, unit=whole, max_rows=1).n_people == 100
    assert Private(X, unit=gap, max_rows=1).n_people == 100, "the one without is one, too"


def test_a_mask_is_no_id():
    ids = np.ma.array([1, 2, 3, 3], mask=[0, 0, 0, 1])
    people = Private([[1.0]] * 4, unit=ids, max_rows=2)._rows.people
    assert people.size == 4
    assert people.of[3] != people.of[2]


@pytest.mark.parametrize("kind", [np.uint8, np.int64, int])
def test_a_number_of_numpy_is_a_number(kind):
    private = Private([[1.0]] * 300, unit=range(300), max_rows=kind(100))
    assert private.n_rows == 30_000
    assert type(private._rows.people.each) is int


def test_too_many_places_are_refused_before_any_charge():
    with pytest.raises(ValueError, match="2 people with 100000000000000 places each"):
        Private([[1.0], [2.0]], unit=[1, 2], max_rows=10**14)


@pytest.mark.parametrize("labels", [[1.0], np.ones((7, 2)), 1.0])
def test_an_error_does_not_tell_how_many_rows_there_are(labels):
    with pytest.raises(ValueError, match=r"^y must hold one label for each row of X\.$"):
        Private([[1.0]] * 7, labels, unit=[1] * 7, max_rows=2)


def table(seed=0, people=6):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(people), rng.integers(1, 5, people))
    rng.shuffle(ids)
    X = rng.normal(size=(len(ids), 3))
    return X, X @ [1.0, -1.0, 0.5], ids


def replaced(X, y, ids, who, rows, labels):
    """Return the table with all rows of one person replaced by others, of any number."""
    first = int(np.flatnonzero(ids == who)[0])
    keep = ids != who
    keep[first] = True
    at = int(keep[:first].sum())
    X, y, ids = X[keep], y[keep], ids[keep]
    X, y = np.delete(X, at, axis=0), np.delete(y, at)
    ids = np.delete(ids, at)
    X, y = np.insert(X, at, rows, axis=0), np.insert(y, at, labels)
    return X, y, np.insert(ids, at, [who] * len(rows))


def hostile_people(columns=3):
    for i, name in enumerate(HOSTILE_ROWS):
        label = HOSTILE_LABELS[i % len(HOSTILE_LABELS)]
        count = (1, 3, 9)[i % 3]
        yield np.array([hostile_row(name, columns)] * count), np.full(count, label)
    yield np.array([[1e6, 0, 0], [0, 1e6, 0], [0, 0, -1e6], [-1e6, 0, 0]]), np.full(4, 1e9)


def moved(X, y, ids, who, rows, labels):
    """Return the table with all rows of one person replaced by others, which stand at the end."""
    keep = ids != who
    return (
        np.vstack([X[keep], rows]),
        np.append(y[keep], labels),
        np.append(ids[keep], [who] * len(rows)),
    )


def blocks(private):
    return np.vstack([X for X, _ in private._rows.by_people().blocks()])


def test_what_a_person_has_changes_no_other_place():
    X, y, ids = table()
    whole = blocks(Private(X, y, unit=ids, max_rows=3))
    for who in range(6):
        for rows, labels in hostile_people():
            for change in (replaced, moved):
                other = change(X, y, ids, who, rows, labels)
                again = blocks(Private(other[0], other[1], unit=other[2], max_rows=3))
                assert again.shape == whole.shape
                place = People.named(ids.tolist(), 3).of[ids == who][0]
                same = np.arange(18) // 3 != place
                np.testing.assert_array_equal(again[same], whole[same])


def dealt(sample):
    """Release a moment of the train part of a split, and of one part that was held out."""
    X, y, ids = sample
    private = Private(X, y, unit=ids, max_rows=3)
    train, _ = hold_out(private, 0.5, **BUDGET)
    for each, part in ((private, "train"), (train, "all")):
        with each.open(**SEEDED) as session:
            if part == "train":
                session.split(0.5)
            moment = session.hide(SecondMoment(CLEANING), part)
            session.release(session.plan(one=SymmetricGaussian.of(moment)).one, moment)


@pytest.mark.parametrize("change", [replaced, moved])
def test_whoever_is_replaced_others_stay_in_their_parts(change):
    sample = table(people=20)
    for who in range(0, 20, 3):
        for rows, labels in hostile_people():
            found = replay(dealt, sample, change(*sample, who, rows, labels))
            assert found.holds, found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_no_reserve():
    X, y, ids = table(people=40)
    train, test = hold_out(Private(X, y, unit=ids, max_rows=3), 0.5, **BUDGET)
    DiscrepancyRegressor(**SEEDED).fit(X, y, private=train)

    def released():
        with test.open(**BUDGET) as session:
            moment = session.hide(SecondMoment(CLEANING))
            session.release(session.plan(one=SymmetricGaussian.of(moment)).one, moment)

    child = os.fork()
    if not child:
        try:
            released()
        except PrivacyError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    released()


def test_the_order_of_people_is_random(monkeypatch):
    """Somebody with another id stands anywhere: the order is that of a secret key."""
    first = []
    for place in range(200):
        monkeypatch.setattr("dpadapt.privacy.rows.people._KEY", bytes([place] * 32))
        people = People.named(["ann", "bob", "cy", "di"], 1)
        first.append(int(people.of[0]))
    assert min(np.bincount(first, minlength=4)) > 25, "50 expected, standard deviation 6"


def test_sizes_that_are_public_and_those_that_are_not():
    X, y, ids = table()
    private = Private(X, y, unit=ids, max_rows=3)
    assert (private.n_rows, private.n_people) == (18, 6)
    assert repr(private) == "Private(6 people, up to 3 rows each, 3 columns, labelled)"
    assert str(len(ids)) not in repr(private)
    with private.open(**BUDGET) as session:
        assert session.n_rows == 18
    assert Private(X).n_people == len(X)


def test_views_and_labels_keep_people():
    X, y, ids = table()
    frame = pd.DataFrame(X, columns=list("abc")).assign(id=ids)
    private = Private(frame, y > 0, unit="id", max_rows=2)
    assert private.columns == ("a", "b", "c")
    whole = blocks(private.select(["b"]))
    assert whole.shape == (12, 1)
    read = private.read(Schema.given({"c": "number"})).map(lambda rows: rows * 2, n_columns=1)
    np.testing.assert_allclose(blocks(read)[:, 0], 2 * blocks(private.select(["c"]))[:, 0])
    assert private.encode([False, True]).n_people == 6


@pytest.mark.parametrize("kind", ["whole", "text", "parts"])
def test_parquet_gives_the_same_places(tmp_path, kind):
    X, y, ids = table()
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, id=ids)
    if kind == "text":
        frame["id"] = [f"p{each}" for each in ids]
        frame["a"] = frame["a"].astype(str).astype("category")
    cut = 5 if kind == "parts" else 0
    for part, rows in enumerate((frame[:cut], frame[cut:])):
        rows.to_parquet(tmp_path / f"{part}.parquet")
    private = Private.from_parquet(tmp_path, label="y", unit="id", max_rows=3)
    assert private.columns == ("a", "b", "c")
    assert private.n_people == 6
    moments = []
    for each in (private.select(["c", "a"]), Private(X[:, [2, 0]], y, unit=ids, max_rows=3)):
        with each.open(**SEEDED) as session:
            moment = session.hide(SecondMoment(CLEANING))
            grants = session.plan(moment=SymmetricGaussian.of(moment))
            moments.append(session.release(grants.moment, moment))
    np.testing.assert_allclose(moments[0], moments[1])


MECHANISMS = {
    "gaussian": (Gaussian, 1.0),
    "symmetric": (SymmetricGaussian, 1.0),
    "laplace": (Laplace, 3.0),
}


def released(sample, kind, k):
    X, y, ids = sample
    with Private(X, y, unit=ids, max_rows=k).open(**SEEDED) as session:
        moment = session.hide(SecondMoment(CLEANING))
        mechanism, stretch = MECHANISMS[kind]
        plan = mechanism("moment", stretch * moment.sensitivity, 9)
        session.release(session.plan(one=plan).one, moment)
    return session.guarantee.events


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("k", [1, 3])
def test_a_whole_person_moves_no_release_beyond_what_was_charged(kind, k):
    sample, largest = table(), 0.0
    with taped() as tape:
        (event,) = released(sample, kind, k)
    (first,) = releases(tape)
    far = hostile_row("huge norm", 3)
    people = [*hostile_people(), ([far * 0, far * 0, far * 0], np.zeros(3))]
    people += [([[0, 9, 9]] * 3, np.zeros(3)), ([far] * 3, np.zeros(3))]
    for who in range(6):
        for rows, labels in people:
            with taped(replay=tape) as again:
                released(replaced(*sample, who, np.array(rows), labels), kind, k)
            (second,) = releases(again)
            apart = (np.asarray(first.value) - second.value).ravel()
            moved = np.abs(apart).sum() if kind == "laplace" else np.linalg.norm(apart)
            assert moved / first.scale <= event.ratio * (1 + 1e-9)
            largest = max(largest, moved / first.scale / event.ratio)
    assert largest > (0.1 if kind == "laplace" else 0.4)
    assert event.relation == "replace-unit"


def test_the_bound_for_a_person_is_attained():
    X, ids = np.zeros((12, 2)), np.repeat(np.arange(4), 3)
    X[:, 0] = 2.0
    values = []
    for changed in (False, True):
        if changed:
            X[ids == 1] = [0.0, 2.0]
        with taped() as tape, Private(X, unit=ids, max_rows=3).open(**SEEDED) as session:
            moment = session.hide(SecondMoment(CLEANING))
            session.release(session.plan(one=SymmetricGaussian.of(moment)).one, moment)
        (draw,) = releases(tape)
        values.append(np.asarray(draw.value))
    (event,) = session.guarantee.events
    assert np.linalg.norm(values[0] - values[1]) == pytest.approx(event.sensitivity, rel=1e-6)


def charged(k, **options):
    X, y, ids = table()
    private = Private(X, y, unit=ids, max_rows=k)
    with private.open(**{**BUDGET, **options}) as session:
        moment = session.hide(SecondMoment(CLEANING))
        scores = session.derive(
            moment, lambda m: m[0], sensitivity=moment.sensitivity, norm="range"
        )
        grants = session.plan(
            moment=SymmetricGaussian.of(moment, weight=3.0),
            purse=GaussianPurse("look"),
            choice=Exponential("choice", scores.sensitivity),
        )
        session.release(grants.moment, moment)
        session.release(grants.purse, moment, share=0.5)
        session.release(grants.choice, scores)
    return private, session.guarantee


@pytest.mark.parametrize("k", [1, 4])
def test_the_guarantee_says_who_is_protected(k):
    private, guarantee = charged(k)
    low, high = recompute_epsilon(guarantee.events, 1e-6)
    assert low * (1 - 1e-9) <= guarantee.epsilon <= 1.01 * high
    assert guarantee.epsilon == pytest.approx(1.0, rel=1e-3)
    assert guarantee.relation == "replace-unit"
    assert guarantee.bounds["rows a person"] == k
    assert guarantee.bounds["people"] == 6
    assert f"all rows of any one person, up to {k} of which count" in guarantee.sentence
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    spent = private.spent(1e-6)
    assert spent.events == guarantee.events
    assert f"up to {k} of which" in spent.sentence


def test_noise_grows_with_the_rows_of_a_person():
    one, four = (charged(k)[1].events[0] for k in (1, 4))
    assert four.scale == pytest.approx(one.scale, rel=1e-3), "4 times the rows, 4 times the factor"
    assert four.sensitivity == pytest.approx(one.sensitivity, rel=1e-3)


def test_a_ledger_keeps_rows_and_people_apart(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("patients", epsilon=5.0, delta=1e-6)
    account = ledger.account("patients")
    charged(3, ledger=account)
    charged(2, ledger=account)
    assert ledger.dataset("patients").spent() > 1.0
    X, y, _ = table()
    with Private(X, y).open(**BUDGET, ledger=account) as session:
        moment = session.hide(SecondMoment(CLEANING))
        with pytest.raises(PrivacyError, match="relation"):
            session.plan(moment=SymmetricGaussian.of(moment))


def test_a_split_deals_whole_people():
    X, y, ids = table(people=20)
    seen = {}
    with Private(X, y, unit=ids, max_rows=4).open(**SEEDED) as session:
        session.split(0.3)
        assert (session.size("train"), session.size("holdout")) == (56, 24)
        for part in ("train", "holdout"):
            rows = session._part(part).blocks(Cleaning(radius=1e9))
            found = np.vstack([block for block, *_ in rows])
            seen[part] = {int(ids[np.flatnonzero((row == X).all(axis=1))[0]]) for row in found}
        assert not seen["train"] & seen["holdout"]
        sums = {
            part: session.hide(RowSum(SecondMoment(CLEANING)), part)
            for part in ("train", "holdout")
        }
        session.plan(**{part: SymmetricGaussian.of(each) for part, each in sums.items()})
    (event,) = session.guarantee.events
    assert event.relation == "replace-unit"
    assert session.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomisedResponse("answer"),
        FilteredGaussian("filtered", 1.0, 3, releases=9),
    ],
)
def test_what_is_proved_for_rows_only_is_refused_by_name(mechanism):
    X, y, ids = table()
    private = Private(X, y, unit=ids, max_rows=2)
    with private.open(**BUDGET) as session:
        session.hide(SecondMoment(CLEANING))
        with pytest.raises(PrivacyError, match=f"{type(mechanism).__name__} is proved for one row"):
            session.plan(one=mechanism)
    assert private.spent(1e-6).epsilon == 0.0


def test_methods_that_cannot_are_refused_before_anything_is_spent():
    X, y, ids = table(people=30)
    private = Private(X, y, unit=ids, max_rows=2)
    predictor = InteractivePredictor(KernelRegressor(**BUDGET))
    with pytest.raises(PrivacyError, match="people with several rows"):
        predictor.fit(X, y, private=private)
    coded = Private(X, (y > 0).astype(int), unit=ids, max_rows=2)
    added = AdaMixClassifier(**BUDGET, relation="add-remove")
    with pytest.raises(PrivacyError, match="relation='add-remove' is about rows"):
        added.fit(X, (y > 0).astype(int), private=coded)
    assert private.spent(1e-6).epsilon == coded.spent(1e-6).epsilon == 0.0


def test_events_of_people_cost_as_many_times():
    for event in (
        GaussianEvent("a", 0.5, 2.0, count=3),
        DiscreteGaussianEvent("a", 0.5, 2.0),
        LaplaceEvent("a", 0.5, 2.0, count=2),
        BoundedRangeEvent("a", 0.5, 2.0),
        PureEvent("a", 0.25),
    ):
        five, orders = of_people(event, 5), np.array([1.5, 8.0])
        assert five.gaussian_mu == 5 * event.gaussian_mu
        assert five.pure_epsilon == 5 * event.pure_epsilon
        assert (five.renyi(orders) >= 4.99 * event.renyi(orders)).all()


def test_events_that_say_nothing_about_people():
    with pytest.raises(PrivacyError, match="'draws' says nothing about people"):
        of_people(DrawsEvent("learner", 1.0, 0.0, draws=10, rate=1e-3), 3)
    with pytest.raises(PrivacyError, match="says nothing about people"):
        of_people(GaussianEvent("sum", 1.0, 2.0, relation="add-remove"), 3)


@pytest.mark.parametrize("make", [AutoRegressor, DiscrepancyRegressor, ReweightingRegressor])
def test_hostile_people_move_no_release_of_a_fit(make):
    X, y, _ = table(9, people=40)
    more = {"experts": ["linear"]} if make is AutoRegressor else {}

    def fit(sample):
        rows, labels, ids = sample
        private = Private(rows, labels, unit=ids, max_rows=3)
        return make(**SEEDED, **more).fit(X, y, private=private)

    sample, largest = table(3, people=5), 0.0
    for rows, labels in hostile_people():
        found = replay(fit, sample, replaced(*sample, 2, rows, labels))
        assert found.holds, found
        largest = max(largest, found.largest)
    assert largest > 0.1


def test_a_fit_and_an_evaluation_by_people():
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(800), 3)
    X = rng.normal(size=(2400, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.normal(size=2400) > 0).astype(int)
    model = AutoClassifier(**BUDGET, experts=["linear"])
    model.fit(X[:100], y[:100], private=Private(X, y, unit=people, max_rows=3))
    assert "any one person, up to 3" in model.guarantee_.sentence
    found = evaluate(model, Private(X, y, unit=people, max_rows=3), **BUDGET, metrics=["accuracy"])
    assert found.people == 800
    assert found.sentence.startswith("On 800 people")
    alone = evaluate(model, Private(X, y), **BUDGET, metrics=["accuracy"])
    wide, narrow = (each["accuracy"].model for each in (found, alone))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": None}, "belong together"),
        ({"max_rows": None}, "belong together"),
        ({"max_rows": 0}, "max_rows must be a whole number"),
        ({"max_rows": 2.5}, "max_rows must be a whole number"),
        ({"unit": [1, 2]}, "one id for each row"),
        ({"unit": "id"}, "X has no column 'id'"),
    ],
)
def test_what_is_wrong_is_said(change, words):
    X, y, ids = table()
    with pytest.raises(ValueError, match=words):
        Private(X, y, **{"unit": ids, "max_rows": 2, **change})


@pytest.mark.parametrize("cell", [60, None, "sixty", dt.date(2020, 1, 1), b"\xff"])
def test_files_of_one_folder_need_not_agree_on_types(tmp_path, cell):
    known = {"who": [1, 2], "age": [30, 40], "y": [1.0, 2.0]}
    pd.DataFrame(known).to_parquet(tmp_path / "1.parquet")
    other = {"who": ["3", None], "age": pd.Series([cell, cell]), "y": [1, None]}
    pd.DataFrame(other).to_parquet(tmp_path / "2.parquet")
    private = Private.from_parquet(tmp_path, label="y", unit="who", max_rows=2)
    assert private.n_people == 4, "1, 2, 3 and whoever has no id"
    read = private.read(Schema.given({"age": "number"})).map(lambda rows: rows, n_columns=1)
    found = np.vstack([X for X, _ in read._rows.blocks()])
    wanted = [30, 40, *([60, 60] if cell == 60 else [math.nan] * 2)]
    np.testing.assert_array_equal(np.asarray(found, dtype=float).ravel(), wanted)


def test_many_categories_are_no_matter(tmp_path):
    for part in range(2):
        names = pd.Categorical([f"{part}-{place}" for place in range(120)])
        frame = pd.DataFrame({"who": range(120), "town": names})
        frame.to_parquet(tmp_path / f"{part}.parquet")
    assert Private.from_parquet(tmp_path, unit="who", max_rows=2).n_people == 120


def test_wrong_columns_of_parquet(tmp_path):
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="unit must be the name of a column"):
        Private.from_parquet(tmp_path, unit="id", max_rows=2)
    with pytest.raises(PrivacyError, match="cannot be drawn"):
        Private([[1.0]], unit=["a"], max_rows=2)._rows.by_people().take(np.array([0]))
