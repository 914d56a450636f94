"""What objects of scikit-learn may be made of: every attribute by name, and by value.

A file gives values, so the question for every class is what its ``transform`` does with them in
compiled code. numpy's own indexing, products and broadcasting check their bounds; scipy's sparse
tables do not (what builds one from bare places writes wherever these point), and arrays made by
``numpy.empty`` show old memory where nothing is written. The answers, class by class:

==========================================  =======================================================
FeatureUnion, Pipeline, ColumnTransformer   Python around their parts, each checked by itself;
                                            columns are taken by numpy and pandas. ``n_jobs`` would
                                            start processes: it is set back to None.
OneHotEncoder (also in KBinsDiscretizer)    A sparse table of bare places. Only ``categories_`` and
                                            ``_infrequent_indices`` are read, and checked (numbers
                                            in order: a binary search in others ends beyond them);
                                            everything else is derived from them again.
CountVectorizer, TfidfVectorizer            A sparse table of bare places, those of the vocabulary:
                                            exactly 0 to n - 1.
HashingVectorizer                           Compiled, divides by ``n_features``: its constructor's
                                            arguments are validated, as those of all the others.
PolynomialFeatures                          ``numpy.empty`` of a stored width: derived again.
OrdinalEncoder, SimpleImputer,              numpy, or tables of scipy that come from the rows and
MissingIndicator, VarianceThreshold,        are indexed with checks; shapes and types are checked
TfidfTransformer, all scalers, PCA,         here so that damage is told on loading.
TruncatedSVD, RBFSampler, Nystroem,
PolynomialCountSketch, KBinsDiscretizer,
PowerTransformer, QuantileTransformer,
GaussianRandomProjection
SparseRandomProjection                      Its sparse table is checked in full when it is read.
Binarizer, Normalizer,                      Hold nothing. What a FunctionTransformer calls must be
FunctionTransformer, make_column_selector   trusted by name.
==========================================  =======================================================

A class that is not in this table is not on the closed list: DictVectorizer and FeatureHasher (rows
of a table are no dictionaries), TargetEncoder (``numpy.empty``), trees (a node's numbers are places
in memory).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_Rule = Callable[[Any, Any], bool]
"""Whether an object may have this value for an attribute."""

_MOST_COLUMNS = 2**31 - 1


@dataclass(frozen=True)
class Only:
    """Rule for an argument that must be there and be this, because another value reads files.

    Examples
    --------
    >>> Only("content")(None, "filename")
    False
    """

    value: Any

    def __call__(self, made: Any, value: Any) -> bool:
        return type(value) is type(self.value) and value == self.value


def _anything(made: Any, value: Any) -> bool:
    return True


def _flag(made: Any, value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _text(made: Any, value: Any) -> bool:
    return isinstance(value, str)


def _number(made: Any, value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _count(made: Any, value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and 0 <= int(value) <= _MOST_COLUMNS


def _array(*shape: str | None, kinds: str = "biuf") -> _Rule:
    """Rule for arrays: of these kinds, and as long as other attributes say."""

    def check(made: Any, value: Any) -> bool:
        wanted = [None if name is None else getattr(made, name, -1) for name in shape]
        return (
            isinstance(value, np.ndarray)
            and value.dtype.kind in kinds
            and value.ndim == len(wanted)
            and all(one in (None, two) for one, two in zip(wanted, value.shape, strict=True))
        )

    return check


def _or_none(rule: _Rule) -> _Rule:
    return lambda made, value: value is None or rule(made, value)


def _part(name: str) -> _Rule:
    """Rule for a part of one class, which was checked when it was made."""
    return lambda made, value: (
        value is None
        or (type(value).__name__ == name and type(value).__module__.startswith("sklearn."))
    )


def _names(made: Any, value: Any) -> bool:
    named = _array("n_features_in_", kinds="O")(made, value)
    return named and all(isinstance(each, str) for each in value)


def _output(made: Any, value: Any) -> bool:
    return value in ({}, *({"transform": each} for each in ("default", "pandas", "polars")))


def vocabulary(made: Any, value: Any) -> bool:
    """Each word has a place of its own, and the places are 0 to n - 1."""
    return (
        isinstance(value, dict)
        and all(isinstance(word, str) for word in value)
        and all(type(place) is int or isinstance(place, np.integer) for place in value.values())
        and sorted(value.values()) == list(range(len(value)))
    )


def _categories(made: Any, value: Any) -> bool:
    columns = getattr(made, "n_features_in_", None)
    return isinstance(value, list) and len(value) == columns and all(map(_in_order, value))


def _in_order(levels: Any) -> bool:
    """Whether levels are different, and their numbers rising, with NaN at the end."""
    if not (isinstance(levels, np.ndarray) and levels.ndim == 1 and levels.size):
        return False
    if levels.dtype.kind not in "biufOUSmM":
        return False
    cells = levels.tolist() if levels.dtype.kind not in "mM" else levels.astype("i8").tolist()
    if not all(isinstance(cell, (str, bytes, int, float, type(None))) for cell in cells):
        return False
    if any(cell != cell for cell in cells[:-1]) or len(set(cells)) < len(cells):
        return False
    numbers = [cell for cell in cells if isinstance(cell, (int, float)) and cell == cell]
    return numbers == sorted(numbers)


def _infrequent(made: Any, value: Any) -> bool:
    levels = getattr(made, "categories_", None)
    return (
        isinstance(value, list)
        and isinstance(levels, list)
        and len(value) == len(levels)
        and all(
            places is None
            or (
                _array(None, kinds="iu")(made, places)
                and places.size > 0
                and places[0] >= 0
                and places[-1] < len(column)
                and bool(np.all(np.diff(places.astype(np.int64)) > 0))
            )
            for places, column in zip(value, levels, strict=True)
        )
    )


def _edges(made: Any, value: Any) -> bool:
    ends = _array("n_features_in_", kinds="O")(made, value)
    return ends and all(_array(None)(made, each) for each in value)


def _sparse_or_table(made: Any, value: Any) -> bool:
    wanted = (getattr(made, "n_components_", -1), getattr(made, "n_features_in_", -1))
    return getattr(value, "shape", None) == wanted and getattr(value, "dtype", None) in (
        np.float64,
        np.float32,
    )


def _seen(made: Any, value: Any) -> bool:
    return _number(made, value) or _array("n_features_in_")(made, value)


_COLUMNS, _MAYBE_COLUMNS = _array("n_features_in_"), _or_none(_array("n_features_in_"))
_VECTOR, _TABLE, _OF_COLUMNS = _array(None), _array(None, None), _array(None, "n_features_in_")

EVERY: Mapping[str, _Rule] = {
    "n_features_in_": _count,
    "feature_names_in_": _names,
    "_sklearn_output_config": _output,
}
"""Attributes that an object of any class may have."""

_CONTENT: Mapping[str, _Rule] = {
    "input": Only("content"),  # the others read the files that the rows name
    "_stop_words_id": _anything,
}
_WORDS: Mapping[str, _Rule] = {
    **_CONTENT,
    "vocabulary_": vocabulary,
    "fixed_vocabulary_": _flag,
}
_SPECTRUM: Mapping[str, _Rule] = {
    "components_": _OF_COLUMNS,
    "explained_variance_": _VECTOR,
    "explained_variance_ratio_": _VECTOR,
    "singular_values_": _VECTOR,
}
_PROJECTION: Mapping[str, _Rule] = {
    "n_components_": _count,
    "components_": _sparse_or_table,
    "inverse_components_": _TABLE,
    "density_": _number,
    "_n_features_out": _count,
}
_LEVELS: Mapping[str, _Rule] = {"categories_": _categories, "_infrequent_indices": _infrequent}

STATES: Mapping[str, Mapping[str, _Rule]] = {
    "sklearn.pipeline.FeatureUnion": {},
    # a cache on disk is made of pickles, which the next fit would load
    "sklearn.pipeline.Pipeline": {"memory": Only(None)},
    "sklearn.compose.ColumnTransformer": dict.fromkeys(
        [
            "_columns",
            "_transformer_to_input_indices",
            "_remainder",
            "sparse_output_",
            "transformers_",
            "output_indices_",
            "_name_to_fitted_passthrough",
            "_transformers_feature_names_out",
        ],
        _anything,
    ),
    "sklearn.compose.make_column_selector": dict.fromkeys(
        ("pattern", "dtype_include", "dtype_exclude"), _anything
    ),
    "sklearn.decomposition.PCA": {
        **_SPECTRUM,
        "mean_": _COLUMNS,
        "n_components_": _count,
        "n_samples_": _count,
        "noise_variance_": _number,
        "_fit_svd_solver": _text,
    },
    "sklearn.decomposition.TruncatedSVD": _SPECTRUM,
    "sklearn.feature_extraction.text.CountVectorizer": _WORDS,
    "sklearn.feature_extraction.text.TfidfVectorizer": {
        **_WORDS,
        "_tfidf": _part("TfidfTransformer"),
    },
    "sklearn.feature_extraction.text.HashingVectorizer": _CONTENT,
    "sklearn.feature_extraction.text.TfidfTransformer": {"idf_": _COLUMNS},
    "sklearn.feature_selection.VarianceThreshold": {"variances_": _COLUMNS},
    "sklearn.impute.MissingIndicator": {
        "features_": _array(None, kinds="iu"),
        "_n_features": _count,
        "_precomputed": _flag,
    },
    "sklearn.impute.SimpleImputer": {
        "statistics_": _array("n_features_in_", kinds="biufOUS"),
        "indicator_": _part("MissingIndicator"),
        "_fit_dtype": _anything,
        "_fill_dtype": _anything,
    },
    "sklearn.kernel_approximation.Nystroem": {
        "components_": _OF_COLUMNS,
        "component_indices_": _array(None, kinds="iu"),
        "normalization_": _TABLE,
        "_n_features_out": _count,
    },
    "sklearn.kernel_approximation.PolynomialCountSketch": {
        "indexHash_": _array(None, None, kinds="iu"),
        "bitHash_": _array(None, None, kinds="iu"),
        "_n_features_out": _count,
    },
    "sklearn.kernel_approximation.RBFSampler": {
        "random_weights_": _array("n_features_in_", None),
        "random_offset_": _VECTOR,
        "_gamma": _number,
        "_n_features_out": _count,
    },
    "sklearn.preprocessing.Binarizer": {},
    "sklearn.preprocessing.FunctionTransformer": {},
    "sklearn.preprocessing.KBinsDiscretizer": {
        "bin_edges_": _edges,
        "n_bins_": _array("n_features_in_", kinds="iu"),
        "_encoder": _part("OneHotEncoder"),
        "_random_state": _anything,
    },
    "sklearn.preprocessing.MaxAbsScaler": {
        "scale_": _COLUMNS,
        "max_abs_": _COLUMNS,
        "n_samples_seen_": _seen,
    },
    "sklearn.preprocessing.MinMaxScaler": {
        **dict.fromkeys(["scale_", "min_", "data_min_", "data_max_", "data_range_"], _COLUMNS),
        "n_samples_seen_": _seen,
    },
    "sklearn.preprocessing.Normalizer": {},
    "sklearn.preprocessing.OneHotEncoder": _LEVELS,
    "sklearn.preprocessing.OrdinalEncoder": {
        **_LEVELS,
        "_infrequent_enabled": _flag,
        "_default_to_infrequent_mappings": _anything,
        "_missing_indices": _anything,
    },
    "sklearn.preprocessing.PolynomialFeatures": {},
    "sklearn.preprocessing.PowerTransformer": {
        "lambdas_": _COLUMNS,
        "_scaler": _part("StandardScaler"),
    },
    "sklearn.preprocessing.QuantileTransformer": {
        "quantiles_": _array("n_quantiles_", "n_features_in_"),
        "references_": _array("n_quantiles_"),
        "n_quantiles_": _count,
    },
    "sklearn.preprocessing.RobustScaler": {"center_": _MAYBE_COLUMNS, "scale_": _MAYBE_COLUMNS},
    "sklearn.preprocessing.StandardScaler": {
        **dict.fromkeys(("mean_", "var_", "scale_"), _MAYBE_COLUMNS),
        "n_samples_seen_": _seen,
    },
    "sklearn.random_projection.GaussianRandomProjection": _PROJECTION,
    "sklearn.random_projection.SparseRandomProjection": _PROJECTION,
}
"""Attributes of fitted objects, and those arguments of constructors that allow one value only."""
