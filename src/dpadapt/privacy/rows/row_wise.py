"""Maps that may be given whole blocks of private rows, because each row of a block is on its own.

What a map is made of is walked through: its objects, their parts, the cells of its closures. Every
one of them must be known, by identity: of this library, plain data, numpy's functions of cells, or
on a short list of scikit-learn's classes. Whatever else is found, the map is given one row at a
time (:mod:`.foreign`).
"""

from __future__ import annotations

import os
import sys
from abc import ABCMeta
from collections import deque
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_HOME = f"{Path(__file__).parents[2]}{os.sep}"
# Public names in scikit-learn of what treats every row of a block on its own, proved by reading
# them: cells are looked up or computed one by one, or a row is multiplied by a public matrix, whose
# rounding goes by the shapes of a call alone. `tests/privacy/test_foreign.py` checks each bit.
_ROW_WISE = {
    "sklearn.preprocessing": (
        "Binarizer MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder "
        "PolynomialFeatures RobustScaler StandardScaler"
    ),
    "sklearn.impute": "SimpleImputer",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.feature_selection": "VarianceThreshold",
    "sklearn.linear_model": (
        "ElasticNet ElasticNetCV Lasso LassoCV LinearRegression LogisticRegression "
        "LogisticRegressionCV Ridge RidgeCV"
    ),
    "sklearn.tree": "DecisionTreeClassifier DecisionTreeRegressor",
    "sklearn.ensemble": "HistGradientBoostingClassifier HistGradientBoostingRegressor",
    "sklearn.dummy": "DummyRegressor",
}
# What is made of others, and where it keeps them; FunctionTransformer's may be numpy's own.
_PARTS = {
    "sklearn.pipeline.Pipeline": ("steps",),
    "sklearn.pipeline.FeatureUnion": ("transformer_list", "transformer_weights"),
    "sklearn.compose.ColumnTransformer": ("transformers_",),
    "sklearn.preprocessing.FunctionTransformer": ("func", "kw_args"),
}
# What was proved of them: of other methods, some learn from the rows that they are given, or sum
# over them (fit_transform, partial_fit, score).
_METHODS = ("transform", "predict", "predict_proba", "predict_log_proba", "decision_function")
_LEARNING = ("fit", "partial_fit", "fit_transform", "fit_predict", "score")
_LOSSES = "sklearn._loss._loss"  # compiled; before 1.9 its classes say that they are of "_loss"
# Where values come from that an object may hold: their objects are data, and none can be called.
_HOLDERS = ("numpy.random", "pandas", "pathlib", "datetime", "decimal")
_CELLS = (bool, int, float, complex, str, bytes, object)  # types of cells, and no maps of tables
# Of the trusted core, what a map may hold and does not call; statistics may hold code of others.
_CLOSED = tuple(
    f"dpadapt.privacy.{name}."
    for name in (
        *("accounting", "core", "files", "ledger", "local", "mechanisms"),
        *("rows.errors", "rows.people", "rows.quiet"),
    )
)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))
_SETS = (list, tuple, set, frozenset)
_ARRAYS = (np.ndarray, np.memmap)


def row_wise(function: Any) -> bool:
    """Whether a map may be given whole blocks: everything it is made of is known to be row-wise.

    Known are this library's own functions and objects, plain data, functions of numpy of one table
    that work cell by cell, and a short list of scikit-learn's classes: by identity, so that no
    subclass and no object with a method of its own passes. Whatever learns from the rows it is
    given (``fit_transform``) is not known.

    Parameters
    ----------
    function : callable
        Or an object with methods.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.impute import KNNImputer
    >>> row_wise(StandardScaler().transform), row_wise(KNNImputer().transform), row_wise(np.log)
    (True, False, True)
    >>> row_wise(lambda X: X - X.mean()), row_wise(StandardScaler().fit_transform)
    (False, False)
    """
    return not any(True for _ in _unknown(function))


def names_of_unknown(function: Any) -> set[str]:
    """Names of whatever a map is made of that is not known to be row-wise.

    Examples
    --------
    >>> from sklearn.impute import KNNImputer
    >>> names_of_unknown(KNNImputer().transform)
    {'KNNImputer'}
    """
    named = (FunctionType, type)
    kinds: Any = (each if isinstance(each, named) else type(each) for each in _unknown(function))
    return {str(kind.__qualname__).rpartition("<locals>.")[2].split(".")[0] for kind in kinds}


def _unknown(function: Any) -> Iterator[Any]:
    return (each for each in parts_of(function, known_only=True) if not _known(each))


def parts_of(root: Any, *, known_only: bool = False) -> Iterator[Any]:
    """Every object that a function reaches, each once; plain numbers and texts are left out.

    Parameters
    ----------
    root : object
    known_only : bool, default=False
        Leave out what a known object holds and does not call.

    Examples
    --------
    >>> list(parts_of([1, (2.0, ["a"])]))
    [[1, (2.0, ['a'])], (2.0, ['a']), ['a']]
    """
    seen: dict[int, Any] = {}
    ahead = [root]
    while ahead:
        each = ahead.pop()
        if type(each) in _PLAIN or id(each) in seen:
            continue
        seen[id(each)] = each  # held, so that no other object gets its address
        yield each
        ahead.extend(_known_parts(each) if known_only else _inside(each))


def _known_parts(part: Any) -> Any:
    """What a known object is made of, as far as it can call it."""
    kind: Any = type(part)
    listed = _listed(kind)
    if listed is None:
        return () if closed(part) else _inside(part)
    return [vars(part).get(name) for name in listed]


def _inside(part: Any) -> list[Any]:
    """What an object is made of."""
    if type(part) is dict:
        return [*part.keys(), *part.values()]
    if type(part) in _SETS:
        return list(part)
    if isinstance(part, np.ndarray):
        return part.ravel().tolist() if part.dtype.hasobject else []
    if isinstance(part, MethodType):
        owner, name = part.__self__, part.__func__.__name__
        kind: Any = type(owner)
        known = name in _METHODS and (ours(kind) or _listed(kind) is not None)
        own = known and getattr(getattr(owner, name, None), "__func__", None) is part.__func__
        return [owner] if own else [owner, part.__func__]
    if isinstance(part, partial):
        return [part.func, part.args, part.keywords]
    if isinstance(part, FunctionType):
        cells = [content(cell) for cell in part.__closure__ or ()]
        return [*cells, part.__defaults__, part.__kwdefaults__, vars(part)]
    if isinstance(part, (type, ModuleType)):
        return []
    slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
    held = [getattr(part, name) for name in slots if isinstance(name, str) and hasattr(part, name)]
    if isinstance(part, (dict, deque, *_SETS)):  # of a kind of their own
        held += [*part, *(part.values() if isinstance(part, dict) else ())]
    held += [getattr(part, name, None) for name in ("default_factory", "__wrapped__")]
    return [*getattr(part, "__dict__", {}).values(), *held]


def content(cell: CellType) -> Any:
    """What a cell of a closure holds; None for an empty one.

    Examples
    --------
    >>> content(CellType(3))
    3
    """
    try:
        return cell.cell_contents
    except ValueError:
        return None


def closed(part: Any) -> bool:
    """Whether an object is one of the trusted core's that a map holds and does not call.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> closed(Cleaning(1.0)), closed([])
    (True, False)
    """
    kind: Any = type(part)
    own = f"{kind.__module__}.".startswith(_CLOSED) and ours(kind)
    return own and not getattr(kind, "remembers", False)


def _known(part: Any) -> bool:
    """Whether an object alone is known to leave rows to themselves."""
    kind: Any = type(part)
    if kind in (*_SETS, dict, MethodType, object):
        return True
    if kind is partial:  # numpy's own functions can be told to write elsewhere, or not everywhere
        return not isinstance(part.func, np.ufunc)
    if kind is FunctionType:
        return _own_function(part) and part.__name__ not in _LEARNING
    if isinstance(part, type):
        return ours(part) or part in _CELLS or _of_numpy(part)
    if kind is np.ufunc:  # of single cells, and not one that somebody made of a function; one of
        # two tables would put the label of a row into a column of all rows
        return part.signature is None and part.nin == 1 and _of_numpy(part)
    if kind in _ARRAYS or isinstance(part, np.dtype) or _of_numpy(kind):
        return True
    if _defined_in(kind, _HOLDERS):
        return not callable(part)
    if ours(kind):
        if getattr(kind, "remembers", False):  # what it was asked
            return False
        return not _has_method_of_its_own(part) and not _has_odd_array(part)
    parts = _listed(kind)
    if parts is None or _has_method_of_its_own(part) or not _as_shipped(kind):
        return False
    return _runs_here(part) if parts else _holds_data(part)


def _own_function(part: FunctionType) -> bool:
    """Whether a file of this library defines a function: its variables are those of the module."""
    module = sys.modules.get(part.__module__)
    own = module is not None and part.__globals__ is vars(module)
    return own and str(getattr(module, "__file__", None)).startswith(_HOME)


def _of_numpy(part: Any) -> bool:
    """Whether numpy shows a function, or a type of cells, under its name."""
    if isinstance(part, type) and not issubclass(part, np.generic):
        return False
    return getattr(np, part.__name__, None) is part


def _has_method_of_its_own(part: Any) -> bool:
    own, kind = getattr(part, "__dict__", {}), type(part)
    return any(isinstance(getattr(kind, name, None), FunctionType) for name in own)


def _as_shipped(kind: type) -> bool:
    """Whether all functions in a class of scikit-learn are its own: nobody put others there."""
    found = (each for base in kind.__mro__ for each in vars(base).values() if callable(each))
    return all(_shipped(each) for each in found)


def _shipped(part: Any) -> bool:
    where = part.__globals__["__name__"] if type(part) is FunctionType else type(part).__module__
    return str(where).partition(".")[0] in ("sklearn", "builtins", "abc")


def _has_odd_array(part: Any) -> bool:
    own = getattr(part, "__dict__", {}).values()
    return any(isinstance(each, np.ndarray) and type(each) not in _ARRAYS for each in own)


def _runs_here(part: Any) -> bool:
    """Whether what is made of others calls them in this process; functions are numpy's, bare."""
    own = vars(part)
    if own.get("n_jobs") not in (None, 1):  # others would be handed rows, through files
        return False
    function = own.get("func")
    return function is None or (isinstance(function, np.ufunc) and not own.get("kw_args"))


def _holds_data(part: Any) -> bool:
    """Whether a listed object holds nothing but data and scikit-learn's own, all the way down.

    Anything else could act in its sums and products.
    """
    return all(_is_data(each) for each in parts_of(vars(part)))


def _is_data(part: Any) -> bool:
    kind: Any = type(part)
    if kind in (*_SETS, dict, object, *_ARRAYS) or isinstance(part, np.dtype):
        return True
    if kind in (type, ABCMeta, FunctionType, np.ufunc):  # they do not act in arithmetic
        return True
    return _of_numpy(kind) or _defined_in(kind, (*_HOLDERS, "sklearn")) or _is(kind, _LOSSES)


def _named(kind: type) -> Any:
    """What stands under the name of a class, in the module that it says it is of."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found


@cache
def _defined_in(kind: type, packages: tuple[str, ...]) -> bool:
    """Whether a class is of one of these packages: under its own name, not one that says so."""
    names = (kind.__module__ == each or kind.__module__.startswith(f"{each}.") for each in packages)
    return any(names) and _named(kind) is kind


@cache
def ours(kind: type) -> bool:
    """Whether a file of this library defines a class: under its own name, not one that says so.

    Examples
    --------
    >>> ours(type("Cleaning", (), {})), ours(int)
    (False, False)
    """
    module = sys.modules.get(kind.__module__)
    return _named(kind) is kind and str(getattr(module, "__file__", None)).startswith(_HOME)


@cache
def _listed(kind: type) -> tuple[str, ...] | None:
    """Where a listed class of scikit-learn keeps its parts; None for any other class."""
    if kind.__module__.partition(".")[0] != "sklearn":
        return None
    for module, names in _ROW_WISE.items():
        if kind.__name__ in names.split() and _is(kind, module):
            return ()
    for name, parts in _PARTS.items():
        module, _, own = name.rpartition(".")
        if kind.__name__ == own and _is(kind, module):
            return parts
    return None


def _is(kind: type, module: str) -> bool:
    return getattr(sys.modules.get(module), kind.__name__, None) is kind
