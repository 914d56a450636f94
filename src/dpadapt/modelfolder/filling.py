"""How an object of scikit-learn gets its attributes: checked by the table, or derived again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._rules import Only, vocabulary
from .errors import ModelFolderError
from .states import EVERY, STATES

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


def fill(name: str, made: Any, state: Mapping[str, Any]) -> None:
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
    >>> fill("sklearn.feature_extraction.text.HashingVectorizer", HashingVectorizer(), state)
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.errors.ModelFolderError: an argument of a HashingVectorizer is none that \
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
    dpadapt.modelfolder.errors.ModelFolderError: it does not say which scikit-learn made it.
    """
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise ModelFolderError("it does not say which scikit-learn made it.")
    return version
