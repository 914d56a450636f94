"""Kernel values of private rows, and private rows of sparse matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpadapt.privacy import Cleaning, PrivacyError, Private, Schema
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import Gram, SecondMoment
from dpadapt.testing.search import everything_said

SECRET = 7331.125


def linear(A, B):
    return A @ B.T


def by_text(A, B):
    """Number of common letters; fails on what is no text."""
    left, right = ([set(text) for text in table.iloc[:, 0]] for table in (A, B))
    return np.array([[len(a & b) for b in right] for a in left], dtype=float)


def hidden_table(private, gram):
    with private.open(epsilon=1.0, delta=1e-6) as session:
        return session.hide(gram)._value.copy()


def test_values_labels_and_pool_stand_where_they_should(monkeypatch):
    from dpadapt.privacy.rows import sources as rows

    monkeypatch.setattr(rows, "BLOCK_ROWS", 4)  # several blocks
    rng = np.random.default_rng(0)
    X, Z, y = rng.normal(size=(10, 3)) / 9, rng.normal(size=(5, 3)) / 9, rng.normal(size=10)
    gram = Gram(linear, 1.0, Z, Cleaning(1.0, label_range=(-1.0, 1.0)))
    table = hidden_table(Private(X, y), gram)
    np.testing.assert_allclose(table[:, :10], X @ X.T, atol=1e-12)
    np.testing.assert_array_equal(table[:, :10], table[:, :10].T)
    np.testing.assert_allclose(table[:, 10:15], X @ Z.T, atol=1e-12)
    np.testing.assert_array_equal(table[:, 15], np.clip(y, -1, 1))


def test_long_feature_vectors_are_scaled_to_the_bound():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [1e200, 0.0], [np.nan, 1.0]])
    table = hidden_table(Private(X), Gram(linear, 1.0, np.array([[2.0, 0.0], [0.5, 0.0]])))
    diagonal = np.diagonal(table[:, :5])
    assert (diagonal <= 1.0).all()
    assert diagonal[0] == pytest.approx(1.0)
    assert diagonal[1] == pytest.approx(0.25)
    assert table[0, 5] == pytest.approx(0.6)  # both are scaled
    assert table[0, 6] == pytest.approx(0.3)
    assert np.isfinite(table).all()


def test_one_row_changes_its_own_values_only():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 3))
    other = X.copy()
    other[2] = [1e300, np.inf, -1.0]
    one, two = (hidden_table(Private(rows), Gram(linear, 2.0)) for rows in (X, other))
    rest = np.arange(8) != 2
    np.testing.assert_array_equal(one[np.ix_(rest, rest)], two[np.ix_(rest, rest)])


def test_a_kernel_that_fails_on_a_row_says_nothing_and_leaves_the_others():
    frame = pd.DataFrame({"text": ["abc", "cab", SECRET, "xyz", None]})
    with everything_said() as said:
        table = hidden_table(Private(frame).read(Schema.of(frame)), Gram(by_text, 3.0))
    assert said.all.strip() == ""
    np.testing.assert_allclose(table[2], 0)
    np.testing.assert_allclose(table[4], 0)
    assert table[0, 1] == pytest.approx(3.0)
    assert table[0, 3] == 0


def test_a_kernel_matrix_cannot_be_read():
    private = Private(np.full((3, 2), SECRET))
    with private.open(epsilon=1.0, delta=1e-6) as session:
        hidden = session.hide(Gram(linear, 1.0))
        for forbidden in (np.asarray, pickle.dumps, lambda h: h[0]):
            with pytest.raises((TypeError, AttributeError)):
                forbidden(hidden)
        assert str(SECRET) not in repr(hidden)
        grant = session.plan(it=Gaussian("x", 1.0, dimension=1)).it
        with pytest.raises(PrivacyError, match="no bounded sensitivity"):
            session.release(grant, hidden)
        released = session.release(
            grant,
            session.derive(
                hidden, lambda table: table[:1, 0], sensitivity=grant.mechanism.sensitivity
            ),
        )
    assert released.shape == (1,)


def test_under_add_remove_it_is_refused():
    with (
        Private(np.ones((3, 2))).open(epsilon=1.0, delta=1e-6, relation="add-remove") as session,
        pytest.raises(PrivacyError, match="replace-one"),
    ):
        session.hide(Gram(linear, 1.0))


@pytest.mark.parametrize("build", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_rows_are_rows(build):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 7)) * (rng.random((60, 7)) < 0.3)
    y = rng.normal(size=60)
    dense, thin = Private(X, y), Private.from_sparse(build(X), y)
    assert repr(thin) == repr(dense)
    query = SecondMoment(Cleaning(radius=1.0, intercept=1.0))
    values = []
    for private in (dense, thin):
        with private.open(epsilon=1.0, delta=1e-6) as session:
            values.append(session.hide(query)._value.copy())
    np.testing.assert_allclose(values[0], values[1], atol=1e-15)
    tables = [hidden_table(private, Gram(linear, 1.0)) for private in (dense, thin)]
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-12)
    mapped = thin.map(lambda rows: rows[:, :2].toarray(), n_columns=2)
    with mapped.open(epsilon=1.0, delta=1e-6) as session:
        assert session.hide(query).shape == (3, 3)
    assert thin.encode([0.0, 1.0]).labelled


def test_bad_sparse_input():
    with pytest.raises(TypeError, match=r"Private\.from_sparse"):
        Private(sparse.csr_matrix(np.eye(2)))
    with pytest.raises(TypeError, match="sparse matrix of SciPy; got ndarray"):
        Private.from_sparse(np.eye(2))
    with pytest.raises(ValueError, match="one label for each"):
        Private.from_sparse(sparse.csr_matrix(np.eye(2)), [1.0])
    odd = sparse.csr_matrix(np.array([[np.inf, 0.0], [np.nan, 1.0]]))
    with Private.from_sparse(odd).open(epsilon=1.0, delta=1e-6) as session:
        assert np.isfinite(session.hide(SecondMoment(Cleaning(radius=1.0)))._value).all()
