"""Fit and evaluation from one sample: two parts, the larger of two costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpadapt import AutoClassifier, BudgetExceeded, PrivacyError, Private, evaluate
from dpadapt.audit import replay
from dpadapt.evaluation import hold_out
from dpadapt.privacy import Cleaning, Ledger, LedgerError, RowSum
from dpadapt.privacy.core.holdout import paid_part
from dpadapt.privacy.mechanisms import SymmetricGaussian
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.testing.independent_accountant import recompute_epsilon
from dpadapt.testing.search import HOSTILE_ROWS, hostile_row
from dpadapt.testing.tape import releases, taped

DELTA = 1e-6


def people(n, seed):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    return X, (X @ [1.0, -2.0, 0.5] + rng.logistic(size=n) > 0).astype(int)


def fitted(train, epsilon=1.0, **options):
    model = AutoClassifier(epsilon=epsilon, delta=DELTA, experts=["linear"], **options)
    return model.fit(*people(60, 0), private=train)


def rows_of(private):
    return np.vstack([np.asarray(X) for X, _ in private._rows.by_people().blocks()])


@pytest.mark.parametrize(("epsilon", "most"), [(0.3, 1.0), (1.0, 1.0), (2.0, 2.0)])
def test_both_cost_the_larger_of_the_two(tmp_path, epsilon, most):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("patients", epsilon=most, delta=DELTA)
    private = Private(*people(400, 1))
    account = ledger.account("patients")
    train, test = hold_out(private, 0.25, epsilon=epsilon, delta=DELTA, ledger=account)
    assert (train.n_rows, test.n_rows) == (300, 100)
    model = fitted(train)
    found = evaluate(model, test, epsilon=epsilon, delta=DELTA, metrics=["accuracy", "auc"])
    assert found.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert model.guarantee_.epsilon == pytest.approx(1.0, rel=1e-6)
    for spent in (private.spent(DELTA).epsilon, ledger.dataset("patients").spent()):
        assert spent == pytest.approx(most, rel=1e-4)
    low, high = recompute_epsilon(private.spent(DELTA).events, DELTA)
    assert low * (1 - 1e-6) <= private.spent(DELTA).epsilon <= 1.01 * high
    charge, used = ledger.dataset("patients").charges
    assert charge.label == "fit, and an evaluation on people held out"
    assert used.label == "evaluation on people held out, paid by charge 1"
    assert used.events[0].pure_epsilon == 0


def test_everybody_is_in_one_part_by_place_alone():
    X, y = people(103, 1)
    private = Private(X, y)
    train, test = (rows_of(each) for each in hold_out(private, 0.3, epsilon=1.0, delta=DELTA))
    assert len(train) + len(test) == 103
    assert len(test) == 30
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in test]
    other = np.random.default_rng(0).permuted(X, axis=0) * 1e9
    again = rows_of(hold_out(Private(other, y), 0.3, epsilon=1.0, delta=DELTA).test)
    np.testing.assert_array_equal(again, other[places])
    assert not {tuple(row) for row in train} & {tuple(row) for row in test}


def test_people_with_several_rows_lie_in_one_part():
    ids = np.random.default_rng(0).integers(0, 40, 160)
    X = np.column_stack([ids, np.arange(160.0)])
    private = Private(X, X[:, 1] > 80, unit=ids, max_rows=3)
    train, test = hold_out(private, 0.25, epsilon=1.0, delta=DELTA)
    assert train.n_people + test.n_people == private.n_people
    assert test.n_rows == 3 * test.n_people
    one, two = ({*rows_of(each)[:, 0]} for each in (train, test))
    assert not one & two
    whole = rows_of(private)
    np.testing.assert_array_equal(rows_of(test), whole[np.isin(whole[:, 0], list(two))])
    with test.open(epsilon=1.0, delta=DELTA) as session:
        moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
        session.plan(moment=SymmetricGaussian.of(moment))
    assert private.spent(DELTA).relation == "replace-unit"


@pytest.mark.parametrize("unit", [None, "id"])
def test_parts_of_parquet_files_are_those_of_a_table(tmp_path, unit):
    X, y = people(90, 1)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    more = {"unit": unit, "max_rows": 2} if unit else {}
    if unit:
        frame["id"] = np.arange(90) % 31
    frame.to_parquet(tmp_path / "a.parquet")
    files = Private.from_parquet(tmp_path / "a.parquet", label="y", **more)
    table = Private(frame.drop(columns="y"), y, **more)
    sums = []
    for private in (files, table):
        for part in hold_out(private, 0.4, epsilon=9.0, delta=DELTA):
            narrow = part.select(["c", "a"])
            with narrow.open(epsilon=9.0, delta=DELTA, noise="seeded", random_state=0) as session:
                moment = session.hide(RowSum(SecondMoment(Cleaning(radius=5.0))))
                grants = session.plan(moment=SymmetricGaussian.of(moment))
                sums.append(session.release(grants.moment, moment))
    np.testing.assert_allclose(sums[0], sums[2])
    np.testing.assert_allclose(sums[1], sums[3])


def test_hostile_neighbours_in_either_part():
    X, y = people(20, 1)

    def run(sample):
        train, test = hold_out(Private(*sample), 0.4, epsilon=0.5, delta=DELTA)
        model = fitted(train, noise="seeded", random_state=0)
        options = {"epsilon": 0.5, "delta": DELTA, "noise": "seeded", "random_state": 1}
        return model, evaluate(model, test, **options)

    for place in (0, 2):  # one of each part
        for name in list(HOSTILE_ROWS)[:6]:
            other, labels = X.copy(), y.copy()
            other[place], labels[place] = hostile_row(name, 3), 1 - y[place]
            assert replay(run, (X, y), (other, labels)).holds, (place, name)


def test_what_was_not_set_aside_is_refused_before_noise():
    private = Private(*people(200, 1))
    train, test = hold_out(private, 0.5, epsilon=0.5, delta=DELTA)
    model = fitted(train)
    with taped() as tape, pytest.raises(PrivacyError, match="more than was set aside"):
        evaluate(model, test, epsilon=0.6, delta=DELTA)
    assert releases(tape) == []
    evaluate(model, test, epsilon=0.3, delta=DELTA)
    with taped() as tape, pytest.raises(PrivacyError, match="more than was set aside"):
        evaluate(model, test, epsilon=0.5, delta=DELTA)
    assert releases(tape) == []
    assert private.spent(DELTA).epsilon == pytest.approx(1.0, rel=1e-6)


def test_several_fits_add_up():
    private = Private(*people(200, 1))
    train, _ = hold_out(private, 0.5, epsilon=0.5, delta=DELTA)
    fitted(train)
    fitted(train)
    assert private.spent(DELTA).epsilon > 1.3


def test_an_evaluation_without_a_fit_is_charged_by_itself():
    private = Private(*people(200, 1))
    train, test = hold_out(private, 0.5, epsilon=0.5, delta=DELTA)
    evaluate(fitted(None), test, epsilon=0.5, delta=DELTA)
    assert private.spent(DELTA).epsilon == pytest.approx(0.5, rel=1e-6)
    fitted(train)
    assert private.spent(DELTA).epsilon > 1.0, "then it adds up: the fit comes first"


def test_a_ledger_refuses_before_the_fit(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("patients", epsilon=0.5, delta=DELTA)
    account = ledger.account("patients")
    private = Private(*people(200, 1))
    train, _ = hold_out(private, 0.5, epsilon=0.2, delta=DELTA, ledger=account)
    with taped() as tape, pytest.raises(BudgetExceeded):
        fitted(train)
    assert releases(tape) == []
    assert private.spent(DELTA).epsilon == 0.0


def test_what_is_wrong_is_refused():
    private = Private(*people(20, 1))
    budget = {"epsilon": 1.0, "delta": DELTA}
    for share in (0.0, 1.0, "half"):
        with pytest.raises(ValueError, match="share must lie strictly between"):
            hold_out(private, share, **budget)
    with pytest.raises(ValueError, match="would have nobody"):
        hold_out(private, 0.01, **budget)
    with pytest.raises(ValueError, match="epsilon must be"):
        hold_out(private, 0.5, epsilon=-1.0, delta=DELTA)
    with pytest.raises(TypeError, match=r"dpadapt\.Private"):
        hold_out([[1.0]], 0.5, **budget)
    train, _ = hold_out(private, 0.5, **budget)
    with train.open(**budget, relation="add-remove") as session:
        moment = session.hide(RowSum(SecondMoment(Cleaning(radius=1.0))))
        with pytest.raises(PrivacyError, match="would change parts"):
            session.plan(moment=SymmetricGaussian.of(moment))


def test_what_a_fit_has_paid_for_is_used_once_after_a_crash(tmp_path):
    account = Ledger(tmp_path / "budget.db").create("patients", epsilon=1.0, delta=DELTA)
    budget = {"epsilon": 1.0, "delta": DELTA}
    train, lost = hold_out(Private(*people(400, 1)), 0.25, **budget, ledger=account)
    model = fitted(train)
    (reserve,) = account.reserves()  # what is left after a crash: the ledger and the model
    assert (reserve.share, reserve.people, reserve.number) == (0.25, 400, 1)
    assert reserve.fit == model.guarantee_.events
    spent = account.spent()
    test = paid_part(Private(*people(400, 1)), reserve, account)
    found = evaluate(model, test, **budget, metrics=["accuracy"])
    assert found.people == 100
    assert account.reserves() == ()
    assert account.spent() == spent
    for again in (lost, paid_part(Private(*people(400, 1)), reserve, account)):
        with pytest.raises(LedgerError, match=r"charge 1 of 'patients' .* is used already"):
            evaluate(model, again, **budget, metrics=["accuracy"])
    with pytest.raises(PrivacyError, match="some of 400, and these are 399"):
        paid_part(Private(*people(399, 1)), reserve, account)
    with pytest.raises(LedgerError, match="is used already"):
        account.redeem(7)
    account.ledger.check()


def test_what_is_paid_for_covers_no_more_than_that(tmp_path):
    account = Ledger(tmp_path / "budget.db").create("patients", epsilon=3.0, delta=DELTA)
    train, _ = hold_out(Private(*people(400, 1)), 0.25, epsilon=0.5, delta=DELTA, ledger=account)
    model = fitted(train)
    test = paid_part(Private(*people(400, 1)), account.reserves()[0], account)
    with pytest.raises(PrivacyError, match="costs more than was set aside"):
        evaluate(model, test, epsilon=0.6, delta=DELTA, metrics=["accuracy"])
    assert len(account.reserves()) == 1  # a refusal uses nothing up
    evaluate(model, test, epsilon=0.5, delta=DELTA, metrics=["accuracy"])
