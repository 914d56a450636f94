"""From plain data to a model: one short function for each thing that a tree can say.

An object of scikit-learn gets its attributes last: checked by the table, or derived again.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from dpadapt.privacy import Guarantee
from dpadapt.privacy.files.guarantees import read_guarantee

from .files import ModelFolderError
from .states import EVERY, STATES, Only, vocabulary
from .types import ESTIMATORS, Names
from .writing import DEEPEST, NUMBER_TYPES, SPARSE, ArrayFeed, parse_dtype, parse_shape

_VERSION_KEY = "_sklearn_version"
_CELLS = (type(None), bool, int, float, str, np.generic)


def decode(tree: Any, numbers: bytes, trusted: Collection[str] = ()) -> Any:
    """Model of a tree and its bytes: an estimator of this library, or ModelFolderError.

    Every name in the tree is checked before the first object is made.

    Parameters
    ----------
    tree : JSON values
    numbers : bytes
    trusted : collection of str
        Names beside those of the list.

    Examples
    --------
    >>> decode({"object": ["subprocess.Popen", [["args", ["id"]]]]}, b"")
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: subprocess.Popen is not on the list of what a \
model folder may hold, and could do anything. If you trust it and its maker, allow it by name: \
trusted=['subprocess.Popen'], or --trust subprocess.Popen.
    """
    names, feed = Names(trusted), ArrayFeed(numbers)
    _check(tree, names, 0)
    _check_is_ours(tree, names)
    reader = _Reader(names, feed)
    model = reader.value(tree)
    if feed.left:
        raise ModelFolderError(f"{feed.left} bytes of arrays belong to nothing.")
    _tell_versions(reader.versions)
    return model


def _check(tree: Any, names: Names, depth: int) -> None:
    """Refuse a tree that says anything unknown, or names anything that is not on the list."""
    if depth > 2 * DEEPEST:  # what is one step for a value can be two here
        raise ModelFolderError("it is nested too deeply.")
    if isinstance(tree, list):
        for each in tree:
            _check(each, names, depth + 1)
    if not isinstance(tree, dict):
        return
    tag, content = _single(tree)
    if tag == "object":
        names.check(_parts(content, 2)[0])
    if tag == "name" and names.check(content) not in names.trusted:
        raise ModelFolderError(f"{content} is a value, but only objects of it may be.")
    if tag != "guarantee":
        _check(content, names, depth + 1)


def _check_is_ours(tree: Any, names: Names) -> None:
    """Refuse what is not an estimator of this library, or a pipeline that does not end in one."""
    place = tree
    for _ in range(2):
        content = place.get("object") if isinstance(place, dict) else None
        if content is None or names.check(content[0]) not in ESTIMATORS | names.trusted:
            raise ModelFolderError("it does not hold a fitted estimator of this library.")
        state = dict(map(_pair, content[1]))
        place = state.get("estimator_", place)


def _here(known: type) -> dict[str, str]:
    """Version of scikit-learn for its own classes, which would speak of any other themselves."""
    import sklearn

    return {_VERSION_KEY: sklearn.__version__} if known.__module__.startswith("sklearn.") else {}


def _tell_versions(versions: set[str]) -> None:
    import sklearn

    others = sorted(versions - {sklearn.__version__})
    if others:
        warnings.warn(
            f"the model was made with scikit-learn {others[0]}, and here is "
            f"{sklearn.__version__}: its predictions may differ.",
            stacklevel=4,
        )


class _Reader:
    def __init__(self, names: Names, feed: ArrayFeed) -> None:
        self.names = names
        self.feed = feed
        self.versions: set[str] = set()  # of scikit-learn, as the file states them

    def value(self, tree: Any) -> Any:
        """Value of a tree."""
        if isinstance(tree, list):
            return [self.value(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        tag, content = _single(tree)
        return _READ[tag](self, content)

    def _float(self, content: Any) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise ModelFolderError(f"{content!r} is no number.")
        return float(content)

    def _tuple(self, content: Any) -> tuple[Any, ...]:
        return tuple(self.value(each) for each in _list(content))

    def _dict(self, content: Any) -> dict[Any, Any]:
        pairs = [_parts(pair, 2) for pair in _list(content)]
        found = {self._key(key): self.value(each) for key, each in pairs}
        if len(found) < len(pairs):
            raise ModelFolderError("a dictionary holds a key twice.")
        return found

    def _key(self, tree: Any) -> Any:
        key = self.value(tree)
        parts = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(part, _CELLS) for part in parts):
            raise ModelFolderError("a key of a dictionary is no plain value.")
        return key

    def _slice(self, content: Any) -> slice:
        places = _parts(content, 3)
        if not all(place is None or type(place) is int for place in places):
            raise ModelFolderError("a slice is made of whole numbers.")
        return slice(*places)

    def _array(self, content: Any) -> Any:
        return self.feed.take(content)

    def _scalar(self, content: Any) -> Any:
        array = self.feed.take(content)
        if array.shape != ():
            raise ModelFolderError("a single number has no shape.")
        return array[()]

    def _cells(self, content: Any) -> Any:
        sizes, trees = _parts(content, 2)
        values = [self.value(each) for each in _list(trees)]
        if not all(isinstance(value, (*_CELLS, np.ndarray)) for value in values):
            raise ModelFolderError("a cell of a table is no plain value.")
        flat = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            flat[place] = value
        return flat.reshape(parse_shape(sizes))

    def _dtype(self, content: Any) -> Any:
        return np.dtype(object) if content == "object" else parse_dtype(content)

    def _number_type(self, content: Any) -> Any:
        if content not in NUMBER_TYPES:
            raise ModelFolderError(f"{content!r} is no type of numbers.")
        return getattr(np, content)

    def _sparse(self, content: Any) -> Any:
        import scipy.sparse

        name, sizes, specs = _parts(content, 3)
        if name not in SPARSE:
            raise ModelFolderError(f"{name!r} is no sparse table.")
        parts = tuple(self.feed.take(spec) for spec in _parts(specs, 3))
        table = getattr(scipy.sparse, name)(parts, shape=parse_shape(sizes))
        table.check_format(full_check=True)  # compiled code takes the places as they are
        return table

    def _guarantee(self, content: Any) -> Guarantee:
        return read_guarantee(content)

    def _name(self, content: Any) -> Any:
        return self.names.find(content)

    def _object(self, content: Any) -> Any:
        name, pairs = _parts(content, 2)
        known = self.names.find(name)
        if not isinstance(known, type):
            raise ModelFolderError(f"{name} is no class, so that there are no objects of it.")
        state = {key: self.value(each) for key, each in map(_pair, _list(pairs))}
        if len(state) < len(pairs):
            raise ModelFolderError(f"a {known.__name__} holds an attribute twice.")
        if dataclasses.is_dataclass(known) or issubclass(known, tuple):
            return known(**state)  # checks itself
        _check_attributes(known, state)
        made = object.__new__(known)
        if known.__module__.startswith("sklearn.") and hasattr(known, "get_params"):
            self.versions.add(check_version(state.pop(_VERSION_KEY, None)))
        if name in STATES:
            _fill(name, made, state)
        elif hasattr(made, "__setstate__"):
            made.__setstate__(state | _here(known))
        else:
            vars(made).update(state)
        return made


_READ: dict[str, Callable[[_Reader, Any], Any]] = {
    "float": _Reader._float,
    "tuple": _Reader._tuple,
    "dict": _Reader._dict,
    "slice": _Reader._slice,
    "array": _Reader._array,
    "scalar": _Reader._scalar,
    "cells": _Reader._cells,
    "dtype": _Reader._dtype,
    "number type": _Reader._number_type,
    "sparse": _Reader._sparse,
    "guarantee": _Reader._guarantee,
    "name": _Reader._name,
    "object": _Reader._object,
}


def _check_attributes(known: type, state: dict[str, Any]) -> None:
    """Refuse attributes that would hide what the class itself says."""
    for key in state:
        if not key.isidentifier() or key.startswith("__") or _of_class(known, key):
            raise ModelFolderError(f"{key!r} is no attribute that a {known.__name__} may be given.")


def _of_class(known: type, key: str) -> bool:
    missing = object()
    return inspect.getattr_static(known, key, missing) is not missing


def _single(tree: dict[str, Any]) -> tuple[str, Any]:
    if len(tree) != 1 or next(iter(tree)) not in _READ:
        raise ModelFolderError("it says something that no model says.")
    return next(iter(tree.items()))


def _list(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise ModelFolderError("a part of it is no list.")
    return content


def _parts(content: Any, count: int) -> list[Any]:
    if len(_list(content)) != count:
        raise ModelFolderError(f"a part of it does not have {count} entries.")
    return content


def _pair(content: Any) -> tuple[str, Any]:
    key, each = _parts(content, 2)
    if not isinstance(key, str):
        raise ModelFolderError("an attribute has no name.")
    return key, each


_VERSION = re.compile(r"\d{1,4}(\.\w{1,12}){0,5}", re.ASCII)


def _derive_one_hot(made: Any) -> None:
    if not hasattr(made, "categories_"):
        return
    made._check_infrequent_enabled()
    if made._infrequent_enabled:
        made._default_to_infrequent_mappings = [
            None if places is None else _grouped(len(levels), places)
            for levels, places in zip(made.categories_, made._infrequent_indices, strict=True)
        ]
    made._set_drop_idx()
    made._n_features_outs = made._compute_n_features_outs()


def _grouped(count: int, places: Any) -> Any:
    """New place of every level, the rare ones together at the end."""
    rare = np.isin(np.arange(count), places)
    return np.where(rare, count - len(places), np.cumsum(~rare) - 1)


def _derive_polynomial(made: Any) -> None:
    if hasattr(made, "n_features_in_"):
        import scipy.sparse
        from sklearn.base import clone

        again = clone(made).fit(scipy.sparse.csr_array((1, made.n_features_in_)))
        vars(made).update(vars(again) | vars(made))


_DERIVED: Mapping[str, tuple[frozenset[str], Callable[[Any], None]]] = {
    "sklearn.preprocessing.OneHotEncoder": (
        frozenset(
            [
                "_infrequent_enabled",
                "_default_to_infrequent_mappings",
                "_drop_idx_after_grouping",
                "drop_idx_",
                "_n_features_outs",
            ]
        ),
        _derive_one_hot,
    ),
    "sklearn.preprocessing.PolynomialFeatures": (
        frozenset(["_min_degree", "_max_degree", "n_output_features_", "_n_out_full"]),
        _derive_polynomial,
    ),
}
"""Attributes that are not taken from a file, and what computes them from the others."""


def _fill(name: str, made: Any, state: Mapping[str, Any]) -> None:
    """Give an object of scikit-learn its attributes, if all are what a fit could have made.

    Parameters
    ----------
    name : str
        Of its class, in :data:`STATES`.
    made : object
        Without attributes.
    state : mapping
        Attributes of a file.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> state = {**HashingVectorizer().get_params(), "n_features": 0}
    >>> _fill("sklearn.feature_extraction.text.HashingVectorizer", HashingVectorizer(), state)
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: an argument of a HashingVectorizer is none that \
it takes.
    """
    derived, derive = _DERIVED.get(name, (frozenset(), None))
    given = {key: each for key, each in state.items() if key not in derived}
    if "n_jobs" in given:
        given["n_jobs"] = None  # how many processes, says whoever uses the model
    arguments = _arguments(made)
    rules = {**EVERY, **STATES[name]}
    for key, rule in rules.items():
        if isinstance(rule, Only) and not (key in given and rule(made, given[key])):
            raise ModelFolderError(f"{key} of a {type(made).__name__} must be {rule.value!r}.")
    vars(made).update(given)
    for key, value in given.items():
        if key not in arguments and (key not in rules or not rules[key](made, value)):
            raise ModelFolderError(f"{key} of a {type(made).__name__} is not what a fit makes it.")
    _check_arguments(made, arguments)
    if derive is not None:
        derive(made)


def _arguments(made: Any) -> frozenset[str]:
    names = getattr(type(made), "_get_param_names", list)
    return frozenset(names())


def _check_arguments(made: Any, arguments: frozenset[str]) -> None:
    if not hasattr(made, "_parameter_constraints"):
        return
    try:
        made._validate_params()
        sound = "dtype" not in arguments or _is_number_type(made.dtype)
        if "vocabulary" in arguments and isinstance(made.vocabulary, dict):
            sound = sound and vocabulary(made, made.vocabulary)
    except Exception:  # its text would quote the file
        sound = False
    if not sound:
        raise ModelFolderError(f"an argument of a {type(made).__name__} is none that it takes.")


def _is_number_type(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, (type, np.dtype)) and np.dtype(value).kind in "biuf"


def check_version(version: Any) -> str:
    """Version of scikit-learn, as a file states it; anything but a version is refused.

    Examples
    --------
    >>> check_version("1.9.1")
    '1.9.1'
    >>> check_version("1.9; drop table")
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: it does not say which scikit-learn made it.
    """
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise ModelFolderError("it does not say which scikit-learn made it.")
    return version
