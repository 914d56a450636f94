"""Code that is not ours sees one row at a time; blocks are for maps that are known, bit by bit."""
# ruff: noqa: NPY002

from __future__ import annotations

import collections
import contextvars
import decimal
import functools
import gc
import logging
import os
import random
import signal
import sys
import types
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import NMF, PCA, TruncatedSVD
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from dpadapt import (
    AdaMixClassifier,
    AdaptationPipeline,
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    KernelClassifier,
    KernelRegressor,
    NoisyGDClassifier,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
)
from dpadapt.evaluation.facts import compared_models
from dpadapt.features.cells import DateCells
from dpadapt.kernels import RBF, FunctionKernel
from dpadapt.privacy import Cleaning, PrivacyError, RowMean, Rows
from dpadapt.privacy.mechanisms import SymmetricGaussian
from dpadapt.privacy.rows import quiet
from dpadapt.privacy.rows.foreign import Alone, apply
from dpadapt.privacy.rows.row_wise import _PARTS, _ROW_WISE, closed, row_wise
from dpadapt.privacy.rows.sources import MemoryRows
from dpadapt.privacy.rows.views import MappedRows
from dpadapt.privacy.statistics import Gram, Prepared, SecondMoment

ROWS, PLACE = 300, 17
REST = np.arange(ROWS) != PLACE
RNG = np.random.default_rng(0)
PUBLIC = np.abs(RNG.normal(size=(400, 4)))
LABELS = PUBLIC @ [1.0, 2.0, 0.0, -1.0]
X = np.abs(RNG.normal(size=(ROWS, 4)))
TOWNS = pd.DataFrame(
    {"town": RNG.choice(["A", "B", "C"], ROWS), "size": RNG.choice(["s", "m"], ROWS)}, dtype=object
)
HOSTILE = [np.nan, np.inf, -1e300, 1e308, 5e-324, 0.0, -0.0]


def numbers(found, rows):
    return (np.asarray(found.toarray() if hasattr(found, "toarray") else found),)


def values(function, table):
    (results, failed) = apply(function, (table,), len(table), numbers)
    return np.where(failed.reshape(-1, *[1] * (results[0].ndim - 1)), np.nan, results[0])


# Known maps: every bit of the others stays ------------------------------------------------------

TWO = (np.median(LABELS) < LABELS).astype(int)
MAPS = {
    **{
        type(step).__name__: step.fit(PUBLIC, LABELS).transform
        for step in (
            Binarizer(),
            MaxAbsScaler(),
            MinMaxScaler(),
            Normalizer(),
            PolynomialFeatures(3),
            RobustScaler(),
            StandardScaler(copy=False),
            SimpleImputer(add_indicator=True),
            PCA(2, whiten=True),
            TruncatedSVD(2),
            VarianceThreshold(),
            FunctionTransformer(np.log1p),
        )
    },
    **{
        type(model).__name__: model.fit(PUBLIC, LABELS).predict
        for model in (
            ElasticNet(),
            Lasso(),
            LinearRegression(),
            Ridge(),
            DecisionTreeRegressor(),
            HistGradientBoostingRegressor(max_iter=5),
            DummyRegressor(),
        )
    },
    **{
        type(model).__name__: model.fit(PUBLIC, TWO).predict_proba
        for model in (
            LogisticRegression(),
            DecisionTreeClassifier(),
            HistGradientBoostingClassifier(max_iter=5),
        )
    },
    "several": make_pipeline(
        SimpleImputer(), make_union(StandardScaler(), PCA(2)), PolynomialFeatures()
    )
    .fit(PUBLIC)
    .transform,
    "columns": make_column_transformer((StandardScaler(), [0, 1]), remainder="passthrough")
    .fit(PUBLIC)
    .transform,
}
ENCODERS = {
    "OneHotEncoder": OneHotEncoder().fit(TOWNS),
    "OneHotEncoder, ignore": OneHotEncoder(handle_unknown="ignore", min_frequency=3).fit(TOWNS),
    "OrdinalEncoder": OrdinalEncoder().fit(TOWNS),
    "SimpleImputer": make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    ).fit(TOWNS),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_known_map_of_a_block_leaves_every_bit_of_the_others(name):
    function = MAPS[name]
    assert row_wise(function)
    usual = values(function, X)
    for cell in HOSTILE:
        for columns in ([0], slice(None)):
            odd = X.copy()
            odd[PLACE, columns] = cell
            found = values(function, odd)
            assert found[REST].tobytes() == usual[REST].tobytes(), (name, cell)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("cell", [None, np.nan, "new", "", "A" * 10_000, 7, "nan", pd.NA])
def test_an_encoder_leaves_every_bit_of_the_others(name, cell):
    function = ENCODERS[name].transform
    assert row_wise(function)
    odd = TOWNS.copy()
    odd.iloc[PLACE, 0] = cell
    assert values(function, odd)[REST].tobytes() == values(function, TOWNS)[REST].tobytes()


def test_every_listed_class_is_tried():
    listed = {name for names in _ROW_WISE.values() for name in names.split()}
    listed |= {name.rpartition(".")[2] for name in _PARTS}
    tried = {*MAPS, *ENCODERS, "Pipeline", "FeatureUnion", "ColumnTransformer"}
    same = {"ElasticNetCV", "LassoCV", "LogisticRegressionCV", "RidgeCV"}  # predict as their model
    assert listed - tried == same


ESTIMATORS = [
    (AutoRegressor, LABELS),
    (AutoClassifier, TWO),
    (ReweightingRegressor, LABELS),
    (ReweightingClassifier, TWO),
    (DiscrepancyRegressor, LABELS),
    (KernelRegressor, LABELS),
    (KernelClassifier, TWO),
    (AdaMixClassifier, TWO),
    (NoisyGDClassifier, TWO),
]


@pytest.mark.parametrize(("kind", "y"), ESTIMATORS, ids=lambda each: getattr(each, "__name__", ""))
def test_our_own_models_are_known(kind, y):
    model = kind(epsilon=1.0, delta=1e-6).fit(PUBLIC, y)
    assert row_wise(model.predict)
    assert row_wise(compared_models(model, None).answer)
    model.predict = lambda X: X.mean()
    assert not row_wise(compared_models(model, None).answer)


class Number(float):
    def __call__(self, X):
        return X - X.mean(axis=0)


class Odd(np.ndarray):
    """Would be asked about every product."""


def odd_components():
    pca = PCA(2).fit(PUBLIC)
    pca.components_ = pca.components_.view(Odd)
    return pca.transform


class Acting:
    """No array, and asked about every sum."""

    def __array_ufunc__(self, ufunc, method, X, *others, **more):
        return X - X.mean(axis=0)


def acting_mean():
    scaler = StandardScaler().fit(PUBLIC)
    scaler.mean_ = Acting()
    return scaler.transform


class Multiplying:
    """No array, and asked about every product."""

    __array_priority__ = 1e9

    def __rmatmul__(self, X):
        return X.mean(axis=0)

    def __getattr__(self, name):
        return getattr(np.ones(4), name)


def acting_coefficients():
    model = LinearRegression().fit(PUBLIC, LABELS)
    model.coef_ = Multiplying()
    return model.predict


class Scaler(StandardScaler):
    def transform(self, X):
        return X - X.mean(axis=0)


def patched():
    scaler = StandardScaler().fit(PUBLIC)
    scaler.transform = lambda X: X - X.mean(axis=0)
    return scaler


class Weight:
    """No number, and asked about every product."""

    __array_ufunc__ = None

    def __rmul__(self, X):
        return X - X.mean(axis=0)


def weighted():
    union = make_union(StandardScaler(), PCA(2)).fit(PUBLIC)
    return union.set_params(transformer_weights={"pca": Weight()}).transform


UNKNOWN = {
    "what learns from the rows": StandardScaler().fit_transform,
    "what learns from the rows, in parts": make_pipeline(StandardScaler()).fit_transform,
    "what counts the rows": StandardScaler().partial_fit,
    "what scores the rows": LogisticRegression().score,
    "ours, which learns from the rows": DateCells().fit_transform,
    "ours, which learns": DateCells().fit,
    "of two tables": np.multiply,
    "a subclass": Scaler().fit(PUBLIC).transform,
    "a method of its own": make_pipeline(patched()).transform,
    "a function": lambda X: X,
    "a function inside": FunctionTransformer(lambda X: X).fit(PUBLIC).transform,
    "one of numpy that is none": np.frompyfunc(lambda x: x, 1, 1),
    "of several": np.mean,
    "a product": np.matmul,
    "told where to write": partial(np.square, out=np.zeros((ROWS, 4))),
    "told where to write, inside": FunctionTransformer(
        np.square, kw_args={"out": np.zeros((ROWS, 4))}
    ).transform,
    "a number that acts": acting_mean(),
    "a number": Number(1.0),
    "odd arrays": odd_components(),
    "a weight that acts": weighted(),
    "vectorised": np.vectorize(lambda x: x),
    "a part": make_pipeline(StandardScaler(), KNNImputer()).fit(PUBLIC).transform,
    "a column": ColumnTransformer([("a", KNNImputer(), [0])]).fit(PUBLIC).transform,
    "partial": partial(lambda a, X: X, 1),
    "factors": NMF(2).fit(PUBLIC).transform,
    "a kernel": FunctionKernel(lambda A, B: A @ B.T, bound=1.0).within(),
    "an array's method": PUBLIC.dot,
    "a frame's method": pd.DataFrame(PUBLIC).join,
    "a type": reversed,
    "the other way round": make_pipeline(
        FunctionTransformer(reversed), FunctionTransformer(list)
    ).transform,
    "a number of its own product": acting_coefficients(),
    "of a file of ours": types.FunctionType(
        compile("lambda X: X - X.mean(axis=0)", row_wise.__code__.co_filename, "eval").co_consts[0],
        {"__name__": row_wise.__module__},
    ),
    "ours, of a function that is not for tables": FunctionTransformer(row_wise).transform,
    "in processes": make_union(StandardScaler(), PCA(2)).fit(PUBLIC).set_params(n_jobs=2).transform,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_to_be_row_wise_is_not(name):
    assert not row_wise(UNKNOWN[name])


@pytest.mark.parametrize("as_part", [False, True])
def test_a_method_that_somebody_put_into_a_class_of_scikit_learn_is_foreign(as_part, monkeypatch):
    def transform(self, X):
        return X - X.mean(axis=0)

    scaler = StandardScaler().fit(PUBLIC)
    whole = make_pipeline(scaler) if as_part else scaler
    assert row_wise(whole.transform)
    monkeypatch.setattr(StandardScaler, "transform", transform)
    assert not row_wise(whole.transform)
    monkeypatch.setattr(StandardScaler, "transform", partial(transform, scaler))
    assert not row_wise(whole.transform)


def test_what_stands_in_a_file_of_the_core_is_held_and_not_called():
    assert closed(quiet._MUTED)
    assert closed(PrivacyError())
    assert not closed(MemoryRows(X, None))  # of a file beside them


def test_a_class_that_says_it_is_of_the_core_is_copied():
    class Counting:
        rows = 0

        def __call__(self, X):
            self.rows += 1
            return X + self.rows

    Counting.__module__ = Cleaning.__module__
    assert not closed(Counting())
    np.testing.assert_array_equal(values(Counting(), X), X + 1)


def test_a_class_that_says_it_is_ours_is_not():
    class Ours(BaseEstimator):
        def transform(self, X):
            return X

    Ours.__module__ = AdaptationPipeline.__module__
    assert not row_wise(Ours().transform)


class Centring(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X - X.mean(axis=0)


@pytest.mark.parametrize("name", ["pandas.core.frame", "datetime", "numpy.random.mtrand"])
def test_a_class_that_says_it_is_of_a_library_is_not(name):
    kind = type("Centring", (Centring,), {"__module__": name})
    assert not row_wise(make_pipeline(kind()).transform)


@pytest.mark.parametrize("name", ["datetime_features", "decimals", "pathlib2", "pandas_extra"])
def test_a_module_whose_name_begins_alike_is_not(name, monkeypatch):
    module = types.ModuleType(name)
    module.Centring = type("Centring", (Centring,), {"__module__": name})
    monkeypatch.setitem(sys.modules, name, module)
    assert not row_wise(make_pipeline(module.Centring()).transform)


def test_data_that_maps_hold_is_known():
    held = [np.random.default_rng(0), pd.Index([1.0]), pd.Timestamp(0), Path("a"), np.float64]
    assert row_wise([*held, float, decimal.Decimal(1), np.int8(3)])


def test_our_kernels_are_known():
    assert row_wise(RBF(gamma=0.5).within())


# Anything else: one row a call ------------------------------------------------------------------

GAPS = np.where(np.random.default_rng(1).random((ROWS, 4)) < 0.2, np.nan, X)
MIXING = {
    "neighbours": KNNImputer().fit(PUBLIC),
    "iterative": IterativeImputer(max_iter=3, random_state=0).fit(PUBLIC),
    "iterative, by draws": IterativeImputer(
        max_iter=3, sample_posterior=True, random_state=np.random.RandomState(0)
    ).fit(PUBLIC),
    "factors": NMF(2, max_iter=50, random_state=0).fit(PUBLIC),
    "centred": FunctionTransformer(lambda X: X - np.nanmean(X, axis=0)).fit(PUBLIC),
    "ranks": FunctionTransformer(lambda X: X.argsort(axis=0).argsort(axis=0)).fit(PUBLIC),
}


@pytest.mark.parametrize("name", MIXING)
def test_no_transformer_lets_a_row_touch_another(name):
    few = 24
    rows = (X if name == "factors" else GAPS)[:few]
    usual = values(MIXING[name].transform, rows)
    assert np.isfinite(usual).any()
    for cell in (np.nan, 1e6, 0.0):
        odd = rows.copy()
        odd[PLACE] = cell
        found = values(MIXING[name].transform, odd)
        assert found[REST[:few]].tobytes() == usual[REST[:few]].tobytes()


def test_the_test_above_has_power():
    """They mix rows where they are given a block."""
    for name in ("iterative, by draws", "centred", "ranks"):
        odd = GAPS.copy()
        odd[PLACE] = 1e6
        one, two = (MIXING[name].transform(each.copy()) for each in (GAPS, odd))
        assert one[REST].tobytes() != two[REST].tobytes()


def _empty(X):
    made = np.empty_like(X)
    made[X > 0] = X[X > 0]
    return made


def _torch_empty(X):
    import torch

    made = torch.empty(X.shape, dtype=torch.float64)
    made[torch.from_numpy(X > 0)] = torch.from_numpy(X[X > 0])
    return made.numpy()


UNFILLED = {
    "ratio": lambda X: np.divide(X[:, :1], X, where=X > 0),
    "logarithm": lambda X: np.log(X, where=X > 0),
    "empty": _empty,
    "ufunc with a mask": FunctionTransformer(
        np.log, kw_args={"where": np.array([True, False, False, False])}
    ).transform,
}


def _unfilled(function):
    """How many rows an odd one changes, where it leaves most of the memory of the others."""
    rows = np.zeros((400, 4))
    rows[:, 0] = 1.0
    one, two = rows.copy(), rows.copy()
    one[1], two[1] = (0.1, 0.1, 5.0, 5.0), (8.0, 8.0, 0.2, 0.2)
    found = [values(function, each) for each in (one, two)]
    return sum(a.tobytes() != b.tobytes() for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("name", UNFILLED)
def test_memory_that_is_not_filled_holds_no_other_row(name):
    assert _unfilled(UNFILLED[name]) == 1


def test_memory_of_torch_that_is_not_filled_holds_no_other_row():
    torch = pytest.importorskip("torch")
    before = torch.are_deterministic_algorithms_enabled()
    assert _unfilled(_torch_empty) == 1
    assert torch.are_deterministic_algorithms_enabled() == before


def test_the_tests_of_memory_have_power(monkeypatch):
    monkeypatch.setattr("dpadapt.privacy.rows.foreign._clean_memory", nullcontext)
    assert _unfilled(UNFILLED["empty"]) > 1


def test_numpy_has_its_own_memory_again():
    kept = values(lambda X: np.divide(X, 2.0), X)
    assert np._core.multiarray.get_handler_name() == "default_allocator"
    assert np.isfinite(kept).all()


class Running(TransformerMixin, BaseEstimator):
    """Remembers what it transforms, in all the ways there are."""

    def fit(self, X, y=None):
        self.sum_, self.seen_, self.big_ = np.zeros(4), [], np.zeros(10_000)
        return self

    def transform(self, X):
        X = np.asarray(X)
        self.sum_ += X.sum(axis=0)
        self.seen_.append(X)
        self.big_[0] += X[0, 0]
        self.last_ = X
        return X + self.sum_ + self.big_[0] + len(self.seen_)


def test_every_row_finds_the_same_state_and_leaves_nothing():
    running = Running().fit(PUBLIC)
    found = values(running.transform, X)
    for i in (0, PLACE):
        np.testing.assert_array_equal(found[i], values(running.transform, X[i : i + 1])[0])
    assert not running.sum_.any()
    assert not running.big_.any()
    assert running.seen_ == []
    assert not hasattr(running, "last_")


def closure():
    total = [0.0]

    def function(X, kept=[]):  # noqa: B006
        total[0] += X.sum()
        kept.append(X)
        return X + total[0] + len(kept)

    return function


@contextmanager
def no_row_decides():
    """Whether the work ends, or how, is the same for all rows: it goes on."""
    try:
        yield
    except BaseException as error:
        raise AssertionError(f"it ended with {type(error).__name__}") from error


def test_cells_of_closures_and_defaults_are_fresh_too():
    function = closure()
    with no_row_decides():
        found = values(function, X)
    alone = np.concatenate([values(closure(), X[i : i + 1]) for i in range(ROWS)])
    np.testing.assert_array_equal(found, alone)
    np.testing.assert_array_equal(function(X[:1]), alone[:1])  # it was never called itself


def cached():
    seen = []

    @functools.lru_cache
    def place(value):
        seen.append(value)
        return len(seen)

    return lambda X: X * 0 + place(float(X[0, 0]))


def bound():
    seen = []
    add = seen.append
    return lambda X: add(X) or X * 0 + len(seen)


def method():
    seen = []

    def function(self, X):
        seen.append(X)
        return X * 0 + len(seen)

    return types.MethodType(function, BaseEstimator())


def factory():
    seen = []
    ids = collections.defaultdict(lambda: seen.append(0) or len(seen))
    return lambda X: X * 0 + ids[float(X[0, 0])]


def queued():
    seen = []
    work = collections.deque([lambda: seen.append(0) or len(seen)])
    return lambda X: X * 0 + work[0]()


class Named(tuple):
    pass


def named():
    kept = Named((1, 2))
    kept.seen = []
    return lambda X: kept.seen.append(0) or X * 0 + len(kept.seen)


REMEMBERING = {
    "a cache": cached,
    "a bound method": bound,
    "a method with cells": method,
    "a factory": factory,
    "a queue": queued,
    "attributes of a tuple": named,
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_no_way_of_remembering_outlives_a_row(name):
    function = REMEMBERING[name]()
    with no_row_decides():
        found = values(function, X[:9])
    assert len(np.unique(found)) == 1
    together = [function(X[[i]])[0, 0] for i in range(9)]
    assert len(set(together)) == 9  # it does remember


class ItsOwnCopy(Running):
    def __deepcopy__(self, memo):
        return self


class Slotted:
    """Is its own copy, and can remember though it has no attributes of its own yet."""

    __slots__ = ("last",)

    def __deepcopy__(self, memo):
        return self


class OwnDict(dict):
    def __deepcopy__(self, memo):
        return self


class OwnArray(np.ndarray):
    def __deepcopy__(self, memo):
        return self


class Later:
    """Has no state before its first row."""

    def __deepcopy__(self, memo):
        return self


KEPT = Running()
ITS_OWN = {
    "attributes": lambda: ItsOwnCopy().fit(X),
    "slots": Slotted,
    "a dict": OwnDict,
    "an array": lambda: np.zeros(3).view(OwnArray),
    "later": Later,
    "a weak reference": lambda: weakref.ref(KEPT),
}


@pytest.mark.parametrize("kind", ITS_OWN)
def test_who_says_to_be_its_own_copy_is_refused(kind):
    own = ITS_OWN[kind]()

    def function(X):
        return X if own is not None else own

    with pytest.raises(TypeError, match="its own copy"):
        Private(X).map(function, 4)
    with pytest.raises(TypeError, match="its own copy"):  # and by whoever forgets to ask
        values(function, X)


def test_weak_references_inside_a_copy_are_taken():
    class Pair:
        def __init__(self):
            self.one = Running()
            self.other = weakref.ref(self.one)

        def __deepcopy__(self, memo):
            return Pair()

        def __call__(self, X):
            return X

    np.testing.assert_array_equal(values(Pair(), X), X)


# What one row leaves in the process -------------------------------------------------------------

VARIABLE = contextvars.ContextVar("VARIABLE", default=0.0)


def _floats(X):
    before = np.seterr(all="raise")
    made = np.exp(X)  # may fail, and then nobody puts the settings back
    np.seterr(**before)
    with np.errstate():
        return made / np.zeros_like(made)


def _variable(X):
    found = X + VARIABLE.get()
    VARIABLE.set(X[0, 0])
    return found


def _decimals(X):
    found = X + float(decimal.Decimal(1) / 3)
    decimal.getcontext().prec = 3
    return found


def _filters(X):
    warnings.warn("odd", stacklevel=1)
    warnings.simplefilter("error")
    return X


def _environ(X):
    found = X + float(os.environ.get("DPADAPT_TEST_ROW", 0))
    os.environ["DPADAPT_TEST_ROW"] = str(X[0, 0])
    return found


def _scikit(X):
    found = X + sklearn.get_config()["working_memory"]
    sklearn.set_config(working_memory=int(X[0, 0] * 100))
    return found


def _torch_type(X):
    import torch

    found = X + torch.ones(1).element_size() + torch.is_grad_enabled()
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return found


LEAVING = {
    "floats": _floats,
    "a variable": _variable,
    "decimals": _decimals,
    "filters": _filters,
    "environment": _environ,
    "scikit-learn": _scikit,
    "torch": _torch_type,
}


@pytest.mark.parametrize("name", LEAVING)
def test_no_setting_that_a_row_leaves_reaches_the_next(name):
    if name == "torch":
        pytest.importorskip("torch")
    rows = np.abs(X[:40])
    usual, odd = values(LEAVING[name], rows), rows.copy()
    odd[PLACE] = 1e4
    rest = np.arange(40) != PLACE
    assert values(LEAVING[name], odd)[rest].tobytes() == usual[rest].tobytes()
    assert len({values(LEAVING[name], rows[i : i + 1]).tobytes() for i in (0, 0)}) == 1
    for i in (0, 39):
        assert usual[i].tobytes() == values(LEAVING[name], rows[i : i + 1])[0].tobytes()
    assert "DPADAPT_TEST_ROW" not in os.environ


def test_a_row_of_another_shape_stays_with_itself():
    def function(rows, labels):
        return rows, None if rows[0, 0] > 1 else np.ones(1)

    def finish(found, rows):
        return found

    with no_row_decides():
        (results, failed) = apply(function, (X, None), ROWS, finish)
    assert (X[0, 0] > 1) == (results[1] is None)
    np.testing.assert_array_equal(failed, (X[:, 0] > 1) != (X[0, 0] > 1))
    with Private(X).open(epsilon=1.0, delta=1e-6) as session:
        session.hide(Rows(Prepared(Cleaning(99.0), function, 4)))


def _handled(X):
    log = logging.getLogger("of a row")
    log.handle(log.makeRecord("of a row", logging.ERROR, "", 0, f"secret {X}", (), None))
    return X


def _enabled(X):
    logging.disable(logging.NOTSET)
    logging.getLogger("of a row").error("secret %s", X)
    return X


def _first(X):
    for stream in (sys.__stdout__, sys.__stderr__):
        print(f"secret {X}", file=stream)
    return X


class Leaving:
    def __init__(self, text):
        self.text, self.circle = text, self

    def __del__(self):
        print(self.text)


def _circle(X):
    Leaving(f"secret {X}")
    return X


def test_a_stream_that_a_logger_took_before_says_nothing(capfd, monkeypatch):
    taken = sys.stderr
    monkeypatch.setitem(globals(), "TAKEN", taken)

    def speaking(X):
        print(f"secret {X}", file=TAKEN)  # noqa: F821
        TAKEN.write("secret")  # noqa: F821
        return X

    values(speaking, X[:5])
    print("public", file=taken)
    assert capfd.readouterr().err == "public\n"


class Heard:
    """A stream whose writing nobody can replace: only its name, or who speaks to it."""

    __slots__ = ("texts",)

    def __init__(self):
        self.texts = []

    def write(self, text):
        self.texts.append(text)
        return len(text)

    def flush(self): ...


@pytest.mark.parametrize("function", [_handled, _enabled, _first, _circle])
def test_nothing_is_said_whoever_speaks(function, capfd, monkeypatch):
    said = Heard()
    handler = logging.StreamHandler(said)
    logging.getLogger("of a row").addHandler(handler)
    monkeypatch.setattr(sys, "__stdout__", said)
    monkeypatch.setattr(sys, "__stderr__", said)
    try:
        values(function, X[:5])
        gc.collect()
    finally:
        logging.getLogger("of a row").removeHandler(handler)
    assert "secret" not in "".join([*said.texts, *capfd.readouterr()])
    assert sys.__stdout__ is said


@pytest.mark.parametrize("caught_inside", [False, True])
def test_an_interrupt_is_heard_without_a_text(caught_inside):
    def function(X):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            if not caught_inside:
                error.args = (f"private {X}",)
                raise
        return X

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        values(function, X)
    assert caught.value.args == ()
    assert caught.value.__context__ is None
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_what_code_raises_by_itself_is_a_row_without_a_value(kind):
    """Otherwise a row would decide whether a fit ends."""

    def function(X):
        if X[0, 0] > 1:
            raise kind("private")
        return X

    with no_row_decides():
        found = values(function, X)
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), X[:, 0] > 1)


class Quitting:
    def __float__(self):
        raise KeyboardInterrupt("private")


class QuittingArray(np.ndarray):
    def __getitem__(self, place):
        raise SystemExit("private")


UNWRITABLE = {  # rows, and labels
    "a text": (np.array([["a"] * 4], dtype=object), np.array(["a"], dtype=object)),
    "what leaves": (np.array([[Quitting()] * 4]), np.array([Quitting()])),
    "an array that leaves": tuple(np.ones(s).view(QuittingArray) for s in ((1, 4), (1,))),
}


@pytest.mark.parametrize("name", UNWRITABLE)
@pytest.mark.parametrize("place", [0, 1])
def test_what_cannot_be_written_down_as_numbers_stays_with_its_row(name, place):
    """Otherwise a row would decide whether a fit ends, or what is raised."""
    odd, odd_label = UNWRITABLE[name]

    def function(rows, labels):
        if rows[0, 0] > 1:
            return rows, labels
        return (odd, labels) if place == 0 else (rows, odd_label)

    prepared = Prepared(Cleaning(99.0, label_range=(-9.0, 9.0)), function, 4)
    kept = X[:, 0] > 1
    with no_row_decides():
        rows, labels = prepared(X, np.ones(ROWS))
    np.testing.assert_array_equal(rows[kept], X[kept])
    np.testing.assert_array_equal(labels[kept], 1.0)


@pytest.mark.parametrize("odd", [None, 3.0, np.zeros((1, 2))], ids=["None", "number", "wide"])
def test_labels_of_another_shape_stay_with_their_row(odd):
    def function(rows, labels):
        return rows, labels if rows[0, 0] > 1 else odd

    prepared = Prepared(Cleaning(99.0, label_range=(-9.0, 9.0)), function, 4)
    rows, labels = prepared(X, np.ones(ROWS))
    kept = X[:, 0] > 1
    np.testing.assert_array_equal(labels, kept)
    np.testing.assert_array_equal(rows[~kept], 0.0)


def test_two_threads_find_the_same_chance():
    def function(X):
        return X * 0 + np.random.random() + random.random()

    random.seed(3)
    np.random.seed(3)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: values(function, X[:50]), range(4)))
    assert len(np.unique(found)) == 1
    after = random.random(), np.random.random()
    random.seed(3)
    np.random.seed(3)
    assert after == (random.random(), np.random.random())


def test_the_global_generators_say_the_same_to_every_row():
    def function(X):
        draws = 1 + int(X[0, 0] > 1)
        return X * 0 + np.random.random(draws)[-1] + random.random()

    random.seed(3)
    np.random.seed(3)
    found = values(function, X)
    after = random.random(), np.random.random()
    random.seed(3)
    np.random.seed(3)
    assert after == (random.random(), np.random.random())  # and are given back
    assert len(np.unique(found)) == 2
    odd = X.copy()
    odd[PLACE] = 1 - X[PLACE]
    assert values(function, odd)[REST].tobytes() == found[REST].tobytes()


def test_what_it_is_given_is_its_own():
    def function(X):
        X += 1.0
        return X

    before = X.copy()
    np.testing.assert_array_equal(values(function, X), before + 1.0)
    np.testing.assert_array_equal(X, before)


def test_the_type_of_the_first_row_is_not_that_of_all():
    def function(X):
        return [[int(x) if x > 1 else x for x in X[0]]]

    order = np.argsort(-X.min(axis=1))
    found = values(function, X[order])
    alone = np.concatenate([values(function, X[[i]]) for i in order])
    np.testing.assert_array_equal(found, alone)
    np.testing.assert_array_equal(found, np.where(X > 1, np.trunc(X), X)[order])


def leaves(X):
    print("a private value", X)
    logging.getLogger("somebody").critical("a private value")
    if X[0, 0] > 1:
        raise SystemExit("a private value")
    return X


def test_nothing_is_said_and_nobody_leaves(capfd, caplog):
    with no_row_decides():
        found = values(leaves, X)
    np.testing.assert_array_equal(np.isnan(found[:, 0]), X[:, 0] > 1)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


CALLS = []


def counted(X):
    CALLS.append(len(X))
    return X[:, :2]


def test_a_slow_map_sees_every_row_once_for_all_passes():
    CALLS.clear()
    private = Private(X, LABELS[:ROWS]).map(counted, 2)
    told = []
    with private.open(epsilon=1.0, delta=1e-6, progress=lambda *done: told.append(done)) as session:
        first = session.hide(Rows(Cleaning(9.0)))._value
        again = session.hide(Rows(Cleaning(8.0)))._value
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(first[:, :2], X[:, :2])
    assert CALLS == [1] * ROWS
    assert told[:2] == [(256, ROWS), (ROWS, ROWS)]  # the bar moves within a block
    with private.encode([0, 1]).open(epsilon=1.0, delta=1e-6) as session:
        session.hide(Rows(Cleaning(9.0)))
    assert CALLS == [1] * ROWS


def test_a_guarantee_names_the_code_of_others_that_it_rests_on():
    private = Private(X, LABELS[:ROWS])
    slow = private.map(counted, 2)
    for source, names in ((slow, ["counted"]), (private.map(np.sin, 3), []), (slow, ["counted"])):
        with source.open(epsilon=1.0, delta=1e-6) as session:
            total = session.hide(SecondMoment(Cleaning(9.0)))
            session.plan(moment=SymmetricGaussian.of(total))
        told = [each for each in session.guarantee.caveats if "code of others" in each]
        assert len(told) == len(names), "also where its rows were kept"
        assert all(name in told[0] for name in names)


def test_drawn_rows_are_their_own():
    rows = MappedRows(MemoryRows(X, None), counted, 2)
    list(rows.blocks())
    drawn = rows.sampled(np.array([5, 5, 2]))
    np.testing.assert_array_equal(np.concatenate([t for t, _ in drawn.blocks()]), X[[5, 5, 2], :2])


def test_what_cannot_be_copied_is_refused_before_a_row_is_read(tmp_path):
    with open(tmp_path / "log", "w", encoding="utf-8") as log:

        def function(X):
            log.write("x")
            return X

        with pytest.raises(TypeError, match="cannot be copied"):
            Private(X).map(function, 4)


def test_a_function_of_cells_alone_is_not_copied():
    function = UNKNOWN["a function"]
    assert Alone(function).fresh() is function


# Kernels ----------------------------------------------------------------------------------------


def mixing_kernel(A, B):
    """Divided by the longest row of a call."""
    return A @ B.T / max((A**2).sum(axis=1).max(), (B**2).sum(axis=1).max())


def test_no_kernel_lets_a_row_touch_another():
    few, odd = X[:30], X[:30].copy()
    odd[PLACE] = 50.0
    usual, found = (Gram(mixing_kernel, 9.0).table([each], [None]) for each in (few, odd))
    rest = np.ix_(REST[:30], REST[:30])
    assert usual[rest].tobytes() == found[rest].tobytes()
    whole = [mixing_kernel(each, each)[rest] for each in (few, odd)]
    assert whole[0].tobytes() != whole[1].tobytes()  # it has power


def test_a_row_fails_only_with_itself():
    """A kernel that fails for rows far apart: one row may be far from many, they keep theirs."""

    def near(A, B):
        if np.abs(A - B).max() > 3:
            raise ValueError
        return np.exp(-np.square(A - B).sum(axis=1, keepdims=True))

    rows = np.linspace(0, 4, 40)[:, None]
    usual = Gram(near, 1.0).table([rows], [None])
    rows[-1] = -40.0  # it fails with all others, and was one with which some of them failed
    odd = Gram(near, 1.0).table([rows], [None])
    assert usual[:-1, :-1].tobytes() == odd[:-1, :-1].tobytes()
    np.testing.assert_allclose(np.diagonal(odd), 1.0)


def test_prepared_rows_are_their_own():
    prepared = Prepared(Cleaning(9.0), lambda X, y: (X - X.mean(axis=0), y), 4)
    found, _ = prepared(X, None)
    np.testing.assert_array_equal(found, 0.0)


class Loud(RowMean):
    label, cleaning, magnitude = "loud", Cleaning(radius=1.0), 1.0

    def shape(self, columns):
        return (columns,)

    def block(self, X, y):
        print("private", X)
        return X.sum(axis=0)

    def sensitivity(self, n_rows):
        return 2.0 / n_rows


def test_what_a_statistic_prints_stays_inside(capfd):
    with Private(X).open(epsilon=1.0, delta=1e-6) as session:
        session.hide(Loud())
    assert capfd.readouterr() == ("", "")
