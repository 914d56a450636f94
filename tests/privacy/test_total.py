"""A failure stays with its row: no other row changes by a bit, and nothing is said of it."""

from __future__ import annotations

import contextlib
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpadapt.hybrid.rules import FunctionRule
from dpadapt.kernels import FunctionKernel
from dpadapt.papers.hybrid.doors.draws import Loan
from dpadapt.papers.hybrid.doors.weights import _losses
from dpadapt.privacy import Cleaning, PrivacyError, Private, RowMean, Rows, Schema
from dpadapt.privacy.mechanisms import GaussianInside
from dpadapt.privacy.rows.foreign import apply_to_pairs
from dpadapt.privacy.rows.sources import MemoryRows
from dpadapt.privacy.rows.total import by_rows, taken
from dpadapt.privacy.statistics import Gram, Prepared

SECRET, PLACE, ROWS = 7331.125, 17, 300
SMALL = 1e-12  # by which a call of another size differs, as sums of products do
RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.0, size=(ROWS, 3))
BAD = X.copy()
BAD[PLACE] = -0.5
REST = np.arange(ROWS) != PLACE


class Panic(BaseException):
    """What libraries written in Rust raise."""


@contextlib.contextmanager
def withheld():
    """What leaves is a failed assertion: it should stay with its row, or be told without a word."""
    try:
        yield
    except (Panic, PrivacyError):
        pytest.fail("a failure that did not stay in its place")


ERRORS = pytest.mark.parametrize("error", [ValueError, Panic])


def dense(A):
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def sized(error):
    """Row by row but for rounding, which goes by the size of a call; fails on a negative cell."""

    def function(A):
        if (dense(A) < 0).any():
            raise error(SECRET)
        return dense(A) + SMALL * A.shape[0]

    return function


def kernel(error):
    f = sized(error)
    return lambda A, B: f(A) @ f(B).T


class WithDiagonal:
    def __init__(self, error):
        self.f, self.kernel = sized(error), kernel(error)

    def __call__(self, A, B):
        return self.kernel(A, B)

    def diagonal(self, A):
        return (self.f(A) ** 2).sum(axis=1)


def mapped(private, error):
    with private.map(sized(error), 3).open(epsilon=1.0, delta=1e-6) as session:
        return session.hide(Rows(Cleaning(9.0)))._value


FEW = 40  # rows of which all pairs are asked one by one


def table(k, A):
    few = Gram(k, 9.0).table([A[:FEW]], [None])[:, REST[:FEW]]
    return np.concatenate([few, np.zeros((ROWS - FEW, few.shape[1]))])


def labelled(error, A):
    f = sized(error)
    rows, y = Prepared(Cleaning(9.0, label_range=(-9, 9)), lambda X, y: (f(X), f(X)[:, 0] + y), 3)(
        A, np.ones(ROWS)
    )
    return np.column_stack([rows, y])


FRAME = ["a", "b", "c"]


def together(f, A):
    """As maps are called that are known to be row-wise."""

    def call(places):
        found = f(taken(A, places))
        assert found.shape == (ROWS if places is None else len(places), 3)
        return (found,)

    results, failed = by_rows(call, ROWS)
    return np.where(failed[:, None], 0.0, results[0])


WAYS = {
    "blocks": lambda e, A: together(sized(e), A),
    "map": lambda e, A: mapped(Private(A), e),
    "map of a frame": lambda e, A: mapped(Private(pd.DataFrame(A, columns=FRAME)), e),
    "map of sparse rows": lambda e, A: mapped(Private.from_sparse(sparse.csr_matrix(A)), e),
    "Gram": lambda e, A: table(kernel(e), A),
    "Gram of a frame": lambda e, A: table(kernel(e), pd.DataFrame(A, columns=FRAME)),
    "Gram of sparse rows": lambda e, A: table(kernel(e), sparse.csr_matrix(A)),
    "Gram of a callable": lambda e, A: table(FunctionKernel(kernel(e), bound=9.0).within(), A),
    "factors": lambda e, A: Gram(WithDiagonal(e), 1e-3).factors(A),
    "Prepared": labelled,
    "losses": lambda e, A: _losses(lambda X, y: sized(e)(X)[:, 0] / 2, A, None),
    "rule": lambda e, A: FunctionRule(
        lambda X: X[:, 0] > 0, (False, True), lambda X, y: sized(e)(X)[:, 0]
    ).losses(A, np.ones(ROWS)),
}


@ERRORS
@pytest.mark.parametrize("way", WAYS)
def test_one_row_that_fails_changes_no_bit_of_the_others(way, error):
    with withheld():
        usual, odd = (np.asarray(WAYS[way](error, A)) for A in (X, BAD))
    assert usual[REST].tobytes() == odd[REST].tobytes()
    assert (usual[PLACE] != odd[PLACE]).all()  # it did fail


def test_the_test_above_has_power():
    """The broken twin: rows that are tried alone once one of them fails."""
    alone = np.concatenate([sized(ValueError)(X[i : i + 1]) for i in range(ROWS)])
    assert (sized(ValueError)(X) != alone).all()


def test_the_layout_of_prepared_rows_does_not_tell():
    for order in "CF":
        f = sized(ValueError)
        prepared = Prepared(
            Cleaning(9.0), lambda X, y, o=order, f=f: (np.array(f(X), order=o), y), 3
        )
        usual, odd = (prepared(A, None)[0] for A in (X, BAD))
        assert usual.strides == odd.strides


def test_a_label_on_which_losses_fail_stays_with_its_row():
    def losses(X, y):
        if (y < 0).any():
            raise ValueError(SECRET)
        return X[:, 0] / 2 + SMALL * len(X)

    y = np.ones(ROWS)
    usual = _losses(losses, X, y)
    y[PLACE] = -1
    odd = _losses(losses, X, y)
    assert odd[PLACE] == 1
    assert usual[REST].tobytes() == odd[REST].tobytes()


def shy(A):
    """Takes no zeros: a public row of zeros in the place of one that fails would fail, too."""
    if (A <= 0).any():
        raise ValueError(SECRET)
    return A + SMALL * len(A)


def squeezed(A):
    """Takes no single row."""
    return np.squeeze(sized(ValueError)(A))


def small(A):
    """Takes few rows at a time, which is public."""
    if len(A) > 100:
        raise MemoryError
    return sized(ValueError)(A)


@pytest.mark.parametrize("function", [shy, squeezed, small])
def test_functions_that_take_not_every_call(function):
    results = []
    for A in (X, BAD):
        with Private(A).map(function, 3).open(epsilon=1.0, delta=1e-6) as session:
            results.append(session.hide(Rows(Cleaning(9.0)))._value)
    for usual, odd in (results, [together(function, A) for A in (X, BAD)]):
        assert usual.all()  # nobody is missing
        assert usual[REST].tobytes() == odd[REST].tobytes()
        assert not odd[PLACE].any()


def test_a_function_that_always_fails_makes_every_row_missing():
    def fails(places):
        raise ValueError(SECRET)

    for rows in (0, 1, 2, 40):
        results, failed = by_rows(fails, rows)
        assert results is None
        assert failed.shape == (rows,)
        assert failed.all()


def test_where_nothing_fails_there_is_one_call():
    calls = []

    def call(places):
        calls.append(places)
        return (np.zeros(ROWS),)

    by_rows(call, ROWS)
    assert calls == [None]


def equally_long(A, B):
    """Letters in common, place by place: fails on texts of several lengths."""
    left, right = (np.array([list(text) for text in one.iloc[:, 0]]) for one in (A, B))
    return (left[:, None] == right).sum(axis=2) + SMALL * len(A)


def test_a_row_that_fails_with_the_others_only():
    """Whether it fails with many or with few is about them: it keeps its own length."""
    texts = pd.DataFrame({"text": ["abc", "abd", "xbc", "abx", "aaa"]})
    usual = Gram(equally_long, 9.0).table([texts], [None])
    texts.iloc[2, 0] = "longer"
    odd = Gram(equally_long, 9.0).table([texts], [None])
    rest = [0, 1, 3, 4]
    assert usual[np.ix_(rest, rest)].tobytes() == odd[np.ix_(rest, rest)].tobytes()
    assert not odd[2, rest].any()
    assert not odd[rest, 2].any()
    assert round(odd[2, 2]) == 6  # letters


def test_a_kernel_of_single_rows_is_asked_pair_by_pair():
    def single(A, B):
        return np.array([[float((A @ B.T).item())]])

    found = apply_to_pairs(single, X[:9], X[:4], lambda values, shape: np.reshape(values, shape))
    np.testing.assert_allclose(found, X[:9] @ X[:4].T)


def test_taken_keeps_the_layout():
    places = np.array([2, 2, 0])
    for order in "CF":
        rows = taken(np.array(X, order=order), places)
        assert rows.flags[f"{order}_CONTIGUOUS"]
        np.testing.assert_array_equal(rows, X[places])
    frame = taken(pd.DataFrame(X[:3], index=[5, 6, 7]), places)
    assert list(frame.index) == [5, 6, 7]
    assert taken(["a", "b", "c"], places) == ["c", "c", "a"]


# What is no Exception ---------------------------------------------------------------------------


def panics(*_):
    raise Panic(SECRET)


def interrupted(*_):
    raise KeyboardInterrupt


class Sum(RowMean):
    label, cleaning, magnitude = "sum", Cleaning(radius=1.0), 1.0

    def __init__(self, fails):
        self.fails = fails

    def shape(self, columns):
        return (columns,)

    def block(self, X, y):
        return self.fails()

    def sensitivity(self, n_rows):
        return 2.0 / n_rows


class Question:
    classes, width = (0, 1), 1

    def __init__(self, fails):
        self.values = fails

    def at(self, places):
        return self


def lend(fails):
    loan = Loan(MemoryRows(X, None))
    with loan as sample:
        loan.run(fails, sample, 1.0, 1e-6)


def asked(fails):
    from dpadapt.privacy.local.holders import _true

    _true(Question(fails), X, None, ())


def in_session(use):
    def run(fails):
        with Private(X).open(epsilon=1.0, delta=1e-6) as session:
            use(session, fails)

    return run


def released(session, fails):
    hidden = session.hide(Gram(np.inner, 9.0))
    grant = session.plan(it=GaussianInside("x", 1.0, dimension=1)).it
    session.release(grant, hidden, function=lambda value, noise: fails(value))


DOORS = {
    "sum": in_session(lambda session, fails: session.hide(Sum(fails))),
    "derive": in_session(
        lambda session, fails: session.derive(session.hide(Rows(Cleaning(1.0))), fails, label="x")
    ),
    "release": in_session(released),
    "learner": lend,
    "question": asked,
}


@pytest.mark.parametrize("door", DOORS)
def test_a_panic_says_nothing(door):
    with withheld(), pytest.raises(PrivacyError) as caught:
        DOORS[door](panics)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("door", DOORS)
def test_who_interrupts_is_heard(door):
    with pytest.raises(KeyboardInterrupt):
        DOORS[door](interrupted)


def test_a_cell_that_panics_is_missing():
    class Cell(Decimal):
        __str__ = __repr__ = __float__ = __int__ = panics

    rows = np.array([[Cell(2)], [1.0]], dtype=object)
    private = Private(rows).read(Schema.numbers(1))
    with private.open(epsilon=1.0, delta=1e-6) as session:
        np.testing.assert_array_equal(session.hide(Rows(Cleaning(9.0)))._value, [[0.0], [1.0]])
