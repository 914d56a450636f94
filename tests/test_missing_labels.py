"""A private row without a label counts in nothing: a fit is that of the table without such rows.

With almost no noise (epsilon of a million) a fit on a table in which every second row has no label,
and cells far away, is the fit on the table without these rows, within a tolerance that is far below
what leaving out other rows does.
"""

from __future__ import annotations

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from dpadapt import (
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    InteractivePredictor,
    KernelClassifier,
    KernelRegressor,
    Private,
    ReweightingRegressor,
)
from dpadapt import baselines as b
from dpadapt.audit import library
from dpadapt.audit.library import combinations
from dpadapt.audit.replaying import task_labels
from dpadapt.learning.story import label_count_sentence
from dpadapt.papers.hybrid.doors.weights import RowWeights, Weighted, reweigh
from dpadapt.papers.hybrid.queries import ClassLosses
from dpadapt.privacy import Cleaning, PrivacyError, RowSum
from dpadapt.privacy.mechanisms import Gaussian, GaussianPurse, count_labels
from dpadapt.privacy.mechanisms.counted import COUNTED, LabelledRows, counted
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.privacy.statistics.forms import mean_number

SURE = {"epsilon": 1e6, "delta": 1e-6, "noise": "seeded", "random_state": 0}
ROWS = 400
NUMBERS = [np.nan, np.inf, -np.inf, None, "", "no number"]  # none of them is a label
CLASSES = [None, np.nan, "", "of no class", 99]
WITHOUT = {  # no count, by a proof that the tests below are about
    "KernelRegressor",
    "KernelClassifier",
    "InteractivePredictor",
    "SubsampleTestReweigh",
    "DiscrepancyRegressor",
}


_PLANNED = "ReweightingRegressor(solver='known-noise')"


def chosen():
    """Each estimator with each solver, not those of printed constants, which have no count."""
    seen = set()
    for one in combinations():
        solver = re.split(r"[,()]", one.name.partition("solver=")[2])[0]
        kind = (one.estimator, solver, one.task, one.relation)
        paper = "calibration='paper'" in one.name
        if paper or one.task == "agents" or one.estimator in WITHOUT or kind in seen:
            continue
        seen.add(kind)
        yield pytest.param(one, id=f"{one.name} {one.task} {one.relation}"[:100])


def sample(task, rows=ROWS):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, 3)) + 0.3
    y = task_labels(task, X)
    return X, np.where(rng.random(rows) < 0.1, rng.permutation(y), y)


def with_rows_of_no_label(X, y, none):
    """Every second row has no label, and stands far away."""
    rng = np.random.default_rng(4)
    whole = np.empty((2 * len(X), X.shape[1]))
    whole[::2], whole[1::2] = X, np.array([4.0, -3.0, 5.0]) * rng.uniform(0.5, 2, (len(X), 1))
    labels = np.empty(2 * len(X), dtype=object)
    labels[::2] = y.tolist()
    labels[1::2] = [none[i % len(none)] for i in range(len(X))]
    return whole, labels


def answers(model, task):
    X = library.public_sample(task)[0][:20]
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            return np.ravel(getattr(model, name)(X))
    return np.ravel(model.predict(X)).astype(float)


@pytest.fixture(autouse=True)
def quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("one", list(chosen()))
def test_a_table_gives_what_it_gives_without_rows_of_no_label(one, monkeypatch):
    monkeypatch.setitem(library.BUDGET, "epsilon", SURE["epsilon"])
    X, y = sample(one.task)
    none = NUMBERS if one.task == "regression" else CLASSES
    right = answers(one.fit((X, y)), one.task)
    found = answers(one.fit(with_rows_of_no_label(X, y, none)), one.task)
    fewer = answers(one.fit((X[::3], y[::3])), one.task)
    assert np.abs(found - right).max() < 2e-3
    # rows matter; residuals of exact public labels cut private ones so short that they hardly do
    planned = one.name in ("AutoRegressor(experts=['linear'])", _PLANNED)
    least = 0.0 if planned else 1e-4
    assert np.abs(fewer - right).max() > max(3 * np.abs(found - right).max(), least)


@pytest.mark.parametrize("make", [partial(AutoRegressor, experts=["linear"]), ReweightingRegressor])
def test_the_defaults_for_numbers_where_public_labels_have_noise(make):
    rng = np.random.default_rng(8)
    X, T = rng.normal(size=(300, 3)), rng.normal(size=(ROWS, 3))
    y, t = (Z @ [1.0, -1.0, 0.5] + rng.normal(size=len(Z)) for Z in (X, T))
    t += 1 + T[:, 0]
    whole = Private(*with_rows_of_no_label(T, t, NUMBERS))
    right, found, fewer = (
        make(**SURE).fit(X, y, private=private).predict(X)
        for private in (Private(T, t), whole, Private(T[::3], t[::3]))
    )
    assert np.abs(found - right).max() < 5e-3
    assert np.abs(fewer - right).max() > 0.05


@pytest.mark.parametrize("auto", [AutoRegressor, AutoClassifier])
def test_auto_with_people_and_tables(auto):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(4000, 2)), columns=["a", "b"])
    X["c"] = np.where(rng.random(4000) < 0.5, "u", "v")
    number = 2 * X.a + (X.c == "u") + rng.normal(size=4000)
    y = number if auto is AutoRegressor else np.where(number > 0.5, "yes", "no")
    public, ids = slice(0, 400), np.arange(3600) // 3
    T, t = X[400:].reset_index(drop=True), pd.Series(np.asarray(y)[400:]).astype(object)
    lost = ids % 3 + np.arange(3600) % 2 == 0  # some lose none, some one, some two of their rows
    lost |= ids % 7 == 0  # some all
    labels = t.copy()
    labels[lost] = None
    model = auto(**SURE, experts=["linear"])
    model.fit(X[public], y[public], private=Private(T, labels, unit=ids, max_rows=3))
    told = " ".join(model.explain_)
    found = answers_of(model, X)
    model.fit(
        X[public], y[public], private=Private(T[~lost], t[~lost], unit=ids[~lost], max_rows=3)
    )
    assert np.abs(found - answers_of(model, X)).max() < 5e-3
    assert "About 86% of the people have a row with a label" in told  # six of seven
    everybody = sorted(set(ids[~lost]))
    assert model.guarantee_.bounds["people"] == len(everybody)


def answers_of(model, X):
    return model.predict(X) if isinstance(model, AutoRegressor) else model.predict_proba(X)[:, 1]


@pytest.mark.parametrize("kind", ["array", "frame", "sparse", "parquet"])
def test_every_source_of_rows_and_labels(kind, tmp_path):
    X, y = sample("regression")
    T, t = with_rows_of_no_label(X, y, [None, np.nan])
    if kind == "frame":
        T = pd.DataFrame(T, columns=list("abc"))
        private = Private(T, pd.Series(t).astype("Float64"))
    elif kind == "sparse":
        private = Private.from_sparse(csr_matrix(T), t)
    elif kind == "parquet":
        pd.DataFrame(T, columns=list("abc")).assign(y=t.astype(float)).to_parquet(tmp_path / "t")
        private = Private.from_parquet(tmp_path / "t", label="y")
    else:
        private = Private(T, t.astype(float))
    Z, z = library.public_sample("regression")
    Z = pd.DataFrame(Z, columns=list("abc")) if kind in ("frame", "parquet") else Z
    found = b.AdaSSPRegressor(**SURE).fit(Z, z, private=private)
    right = b.AdaSSPRegressor(**SURE).fit(np.asarray(Z), z, private=Private(X, y))
    np.testing.assert_allclose(found.coef_, right.coef_, atol=1e-3)


# methods without a count


@pytest.mark.parametrize("kind", [KernelRegressor, KernelClassifier])
def test_a_kernel_model_has_its_penalty_for_all_rows(kind):
    task = "regression" if kind is KernelRegressor else "two classes"
    (X, y), public = sample(task, 150), library.public_sample(task)
    none = NUMBERS if task == "regression" else CLASSES
    whole = Private(*with_rows_of_no_label(X, y, none))
    found = kind(**SURE, penalty=0.05).fit(*public, private=whole)
    right = kind(**SURE, penalty=0.1).fit(*public, private=Private(X, y))
    np.testing.assert_allclose(answers(found, task), answers(right, task), atol=2e-3)
    assert COUNTED not in [event.label for event in found.guarantee_.events]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_usual_penalty_of_a_kernel_model_needs_no_count(epsilon):
    """Chosen for so much noise: twice the rows, half of the penalty, which is that of half."""
    budget = SURE | {"epsilon": epsilon}
    (X, y), public = sample("regression", 150), library.public_sample("regression")
    whole = Private(*with_rows_of_no_label(X, y, NUMBERS))
    found = KernelRegressor(**budget).fit(*public, private=whole)
    right = KernelRegressor(**budget).fit(*public, private=Private(X, y))
    assert found.penalty_ == pytest.approx(right.penalty_ / 2, rel=0.02)


@pytest.mark.parametrize("kind", [KernelRegressor, KernelClassifier])
def test_questions_to_a_predictor(kind):
    task = "regression" if kind is KernelRegressor else "two classes"
    (X, y), public = sample(task, 150), library.public_sample(task)
    none = NUMBERS if task == "regression" else CLASSES

    def asked(penalty, private):
        model = InteractivePredictor(kind(**SURE, penalty=penalty)).fit(*public, private=private)
        scores = model.predict if task == "regression" else model.decision_function
        return scores(public[0][:9])

    found = asked(0.05, Private(*with_rows_of_no_label(X, y, none)))
    np.testing.assert_allclose(found, asked(0.1, Private(X, y)), atol=5e-3)


def test_weights_of_rows():
    """A row of no label adds nothing to a weighted sum, and fades as one that is always right."""
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [1.0, np.nan, 0.0, 1.0]
    rows = Cleaning(radius=9.0, classes=2)

    class Rules(list):
        def mistakes(self, X, y, weights):
            return weights.sum() * np.array([1.0, 0.5])

    with Private(X, y).open(**SURE) as session:
        weights = RowWeights(session)
        hidden = session.hide(Weighted(ClassLosses(Rules([0, 1]), rows), weights, 1.0))
        grant = session.plan(sums=Gaussian.of(hidden)).sums
        np.testing.assert_allclose(session.release(grant, hidden), [0.75, 0.375], atol=1e-3)
        reweigh(weights, lambda X, y: np.ones(len(X)), rows, rate=0.5)
        assert weights._log.tolist() == [0.0, -0.5, 0.0, 0.0]


def test_a_method_that_reads_no_labels_uses_all_rows():
    X, y = sample("regression")
    public = library.public_sample("regression")
    found = [
        DiscrepancyRegressor(**SURE).fit(*public, private=private).coef_
        for private in (Private(X), Private(X, y), Private(X, np.full(len(X), np.nan)))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


# the count


def half_labelled(n):
    return Private(np.zeros((n, 1)), np.where(np.arange(n) % 2 == 0, 1.0, np.nan))


def test_the_count_is_planned_charged_once_and_small():
    with half_labelled(100_000).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as s:
        count_labels(s)
        assert s.n_rows == 100_000
        purse = s.plan(purse=GaussianPurse("step")).purse
        assert abs(s.n_rows - 50_000) < 300
        assert s.n_given == 100_000
    plain = half_labelled(9).open(epsilon=1.0, delta=1e-6)
    assert purse.scale / plain.plan(purse=GaussianPurse("step")).purse.scale < 1.0051
    assert [event.label for event in s.guarantee.events] == ["step", COUNTED]
    assert s.guarantee.epsilon == pytest.approx(1.0)
    count = s.guarantee.events[1]
    assert (count.sensitivity, count.count) == (pytest.approx(1.0, rel=1e-6), 1)
    assert s.guarantee.bounds["rows with a label, about"] == s.n_rows


def test_of_people_it_says_how_many_have_a_label():
    ids, labels = np.arange(30_000) // 3, np.ones(30_000)
    labels[ids % 4 == 0] = np.nan  # all rows of a quarter
    labels[ids % 4 == 1] = np.tile([1.0, np.nan, np.nan], 2_500)  # and some of another
    private = Private(np.zeros((30_000, 1)), labels, unit=ids, max_rows=5)
    with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as s:
        count_labels(s)
        s.plan(purse=GaussianPurse("step"))
        about = s.guarantee.bounds["people with a label, about"]
    assert abs(about - 7_500) < 400
    assert "rows with a label, about" not in s.guarantee.bounds
    assert label_count_sentence(s.guarantee).startswith(
        f"About {about / 10_000:.0%} of the people have"
    )


def test_means_are_divided_by_the_count_also_those_hidden_before():
    cleaning = Cleaning(radius=2.0, label_range=(-1.0, 1.0))
    X = np.full((1000, 1), 1.5)
    labels = np.where(np.arange(1000) < 400, 0.0, np.nan)
    with Private(X, labels).open(**SURE) as session:
        count_labels(session)
        early = session.hide(SecondMoment(cleaning))
        total = session.hide(RowSum(SecondMoment(cleaning)))
        grants = session.plan(
            early=Gaussian.of(early), late=Gaussian.of(early), total=Gaussian.of(total)
        )
        assert session.n_rows == 400
        late = session.hide(SecondMoment(cleaning))
        assert session._now(early).sensitivity == pytest.approx(late.sensitivity)
        for grant, hidden in ((grants.early, early), (grants.late, late)):
            assert float(session.release(grant, hidden)[0, 0]) == pytest.approx(2.25, rel=1e-3)
        assert float(session.release(grants.total, total)[0, 0]) == pytest.approx(900, rel=1e-3)
        planned = session.guarantee.events[0]  # what was charged is what the noise still costs
        assert grants.late.scale / grants.late.mechanism.sensitivity == pytest.approx(
            planned.scale / planned.sensitivity
        )
        assert late.sensitivity == pytest.approx(2.5 * early.sensitivity)


def test_rounding_grows_with_what_a_sum_is_divided_by():
    cleaning = Cleaning(radius=1e-3, intercept=1e3, label_range=(-1.0, 1.0))
    query = SecondMoment(cleaning)
    with half_labelled(1000).open(**SURE) as session:
        count_labels(session)
        before = session.sensitivity(query)
        session.plan(purse=GaussianPurse())
        assert session.n_rows == 500
        assert session.sensitivity(query) == pytest.approx(2 * before, rel=1e-14)


def test_what_was_derived_before_the_count_is_not_released():
    with half_labelled(1000).open(**SURE) as session:
        count_labels(session)
        moment = session.hide(SecondMoment(Cleaning(radius=2.0, label_range=(-1.0, 1.0))))
        least = session.derive(moment, lambda value: value, sensitivity=1.0)
        grants = session.plan(least=Gaussian.of(least))
        with pytest.raises(PrivacyError, match="plan first, then derive"):
            session.release(grants.least, least)


def test_a_row_of_no_label_adds_nothing_whatever_its_cells_are():
    cleaning = Cleaning(radius=2.0, intercept=1.0, label_range=(-1.0, 1.0))
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.linspace(-1, 1, 50)
    found = []
    for cells, label in (([1e9, 1.0], np.nan), ([0.0, 0.0], np.inf), ([np.nan, -3.0], -np.inf)):
        rows, labels = X.copy(), y.copy()
        rows[7], labels[7] = cells, label
        rows[9], labels[9] = [0.0, 1.0], np.nan
        with Private(rows, labels).open(**SURE) as session:
            hidden = session.hide(RowSum(SecondMoment(cleaning)))
            grant = session.plan(moment=Gaussian.of(hidden)).moment
            found.append(session.release(grant, hidden))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    rest = np.column_stack([X, np.ones(50)])[~np.isin(np.arange(50), [7, 9])]
    rest *= np.minimum(1, 2 / np.linalg.norm(rest[:, :2], axis=1))[:, None] ** [1, 1, 0]
    np.testing.assert_allclose(found[0], rest.T @ rest, atol=0.02)


def test_a_row_of_no_label_may_be_farther_away_than_any_other():
    """With a long constant two rows with a label are near each other, and both far from nothing."""
    cleaning = Cleaning(radius=0.1, intercept=3.0, label_range=(-1.0, 1.0))
    query, X = SecondMoment(cleaning), np.zeros((10, 1))
    values, claims = [], []
    for label in (0.0, np.nan):
        y = np.zeros(10)
        y[4] = label
        with Private(X, y).open(**SURE) as session:
            hidden = session.hide(query)
            claims.append(hidden.sensitivity)
            grant = session.plan(moment=Gaussian.of(hidden)).moment
            values.append(session.release(grant, hidden))
    moved = np.linalg.norm(values[0] - values[1])
    assert moved == pytest.approx(0.9, rel=1e-3)
    assert moved <= claims[0] * (1 + 1e-4)
    assert query.sensitivity(10) < 0.1 * moved  # of two rows with a label
    with Private(X).open(**SURE) as session:
        assert session.sensitivity(query) == pytest.approx(query.sensitivity(10))


def test_what_a_row_of_zeros_adds_is_taken_off():
    query = mean_number(Cleaning(9.0, label_range=(-1.0, 1.0)), lambda X, y: X[:, 0] - 3, -5.0, 5.0)
    X, y = np.full((6, 1), 4.0), [0.0, np.nan, 1.0, np.nan, 0.0, None]
    with Private(X, y).open(**SURE) as session:
        hidden = session.hide(RowSum(query))
        grant = session.plan(sum=Gaussian.of(hidden)).sum
        assert float(session.release(grant, hidden)[0]) == pytest.approx(3.0, abs=0.05)


def test_a_count_of_a_part_reads_labels_alone():
    def broken(X):
        raise RuntimeError

    y = np.where(np.arange(900) % 3 == 0, np.nan, 1.0)
    private = Private(np.zeros((900, 1)), y).map(broken, n_columns=1)
    with private.open(**SURE) as session:
        session.split(0.4)
        for part, expected in (("train", 360.0), ("holdout", 240.0)):
            hidden = session.hide(LabelledRows(), part)
            assert hidden.shape == ()
            assert float(hidden._value) == expected


def test_the_sensitivity_of_the_count_is_attained():
    found = []
    for label in (1.0, np.nan):
        with Private(np.zeros((5, 1)), [1.0, np.nan, label, 2.0, 3.0]).open(**SURE) as session:
            hidden = session.hide(LabelledRows())
            grant = session.plan(count=Gaussian.of(hidden)).count
            found.append(float(session.release(grant, hidden)))
            assert hidden.sensitivity == 1.0
    assert found == pytest.approx([4.0, 3.0], abs=0.02)


def test_a_count_that_tells_nothing_changes_nothing():
    assert counted(990.0, 10.0, 1000) == 1000
    assert counted(2000.0, 10.0, 1000) == 1000
    assert counted(970.0, 10.0, 1000) == 970
    assert counted(-50.0, 10.0, 1000) == 10
    assert counted(-50.0, 5000.0, 1000) == 1000


def test_people_lose_no_weight_by_rows_of_no_label():
    X, ids = np.arange(6.0)[:, None], ["a", "a", "a", "b", "b", "c"]
    y = [np.nan, 1.0, 2.0, np.nan, 4.0, np.nan]
    with Private(X, y, unit=ids, max_rows=2).open(**SURE) as session:
        session.leave_out_unlabelled()
        rows = np.concatenate([t for t, _ in session._part("all").rows.blocks()])
        assert sorted(rows.ravel().tolist()) == [1.0, 2.0, 4.0, 4.0, 5.0, 5.0]
        hidden = session.hide(LabelledRows())
        grant = session.plan(count=Gaussian.of(hidden)).count
        assert float(session.release(grant, hidden)) == pytest.approx(4.0, abs=0.05)


def test_noise_of_a_fit_without_missing_labels_is_half_a_percent_larger():
    X, y = sample("regression")
    public, budget = library.public_sample("regression"), SURE | {"epsilon": 1.0}
    model = ReweightingRegressor(**budget).fit(*public, private=Private(X, y))
    *others, count = model.guarantee_.events
    assert count.label == COUNTED
    mu = np.sqrt(sum(event.gaussian_mu**2 for event in others))
    assert count.gaussian_mu**2 / (mu**2 + count.gaussian_mu**2) == pytest.approx(0.01, rel=1e-6)


def test_the_grid_of_exact_noise_grows_as_its_scale():
    """Else rounding to it would cost more than was charged where the count crosses a power of 2."""
    pytest.importorskip("opendp")
    y = np.where(np.arange(900) % 3 == 0, np.nan, 1.0)
    with Private(np.zeros((900, 1)), y).open(epsilon=9.0, delta=1e-6, noise="exact") as session:
        count_labels(session)
        hidden = session.hide(SecondMoment(Cleaning(1.0, label_range=(0.0, 1.0))))
        planned = Gaussian.of(hidden)
        grant = session.plan(moment=planned).moment
        event = next(each for each in session.guarantee.events if each.label == hidden.label)
        grown = grant.scale / event.scale
    assert grown > 1
    assert np.log2(grown) == round(np.log2(grown))
