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

from collections.abc import Mapping

from ._rules import (
    Only,
    Rule,
    anything,
    array,
    categories,
    count,
    edges,
    flag,
    infrequent,
    names,
    number,
    or_none,
    output,
    part,
    seen,
    sparse_or_table,
    text,
    vocabulary,
)

_COLUMNS, _MAYBE_COLUMNS = array("n_features_in_"), or_none(array("n_features_in_"))
_VECTOR, _TABLE, _OF_COLUMNS = array(None), array(None, None), array(None, "n_features_in_")

EVERY: Mapping[str, Rule] = {
    "n_features_in_": count,
    "feature_names_in_": names,
    "_sklearn_output_config": output,
}
"""Attributes that an object of any class may have."""

_CONTENT: Mapping[str, Rule] = {
    "input": Only("content"),  # the others read the files that the rows name
    "_stop_words_id": anything,
}
_WORDS: Mapping[str, Rule] = {
    **_CONTENT,
    "vocabulary_": vocabulary,
    "fixed_vocabulary_": flag,
}
_SPECTRUM: Mapping[str, Rule] = {
    "components_": _OF_COLUMNS,
    "explained_variance_": _VECTOR,
    "explained_variance_ratio_": _VECTOR,
    "singular_values_": _VECTOR,
}
_PROJECTION: Mapping[str, Rule] = {
    "n_components_": count,
    "components_": sparse_or_table,
    "inverse_components_": _TABLE,
    "density_": number,
    "_n_features_out": count,
}
_LEVELS: Mapping[str, Rule] = {"categories_": categories, "_infrequent_indices": infrequent}

STATES: Mapping[str, Mapping[str, Rule]] = {
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
        anything,
    ),
    "sklearn.compose.make_column_selector": dict.fromkeys(
        ("pattern", "dtype_include", "dtype_exclude"), anything
    ),
    "sklearn.decomposition.PCA": {
        **_SPECTRUM,
        "mean_": _COLUMNS,
        "n_components_": count,
        "n_samples_": count,
        "noise_variance_": number,
        "_fit_svd_solver": text,
    },
    "sklearn.decomposition.TruncatedSVD": _SPECTRUM,
    "sklearn.feature_extraction.text.CountVectorizer": _WORDS,
    "sklearn.feature_extraction.text.TfidfVectorizer": {
        **_WORDS,
        "_tfidf": part("TfidfTransformer"),
    },
    "sklearn.feature_extraction.text.HashingVectorizer": _CONTENT,
    "sklearn.feature_extraction.text.TfidfTransformer": {"idf_": _COLUMNS},
    "sklearn.feature_selection.VarianceThreshold": {"variances_": _COLUMNS},
    "sklearn.impute.MissingIndicator": {
        "features_": array(None, kinds="iu"),
        "_n_features": count,
        "_precomputed": flag,
    },
    "sklearn.impute.SimpleImputer": {
        "statistics_": array("n_features_in_", kinds="biufOUS"),
        "indicator_": part("MissingIndicator"),
        "_fit_dtype": anything,
        "_fill_dtype": anything,
    },
    "sklearn.kernel_approximation.Nystroem": {
        "components_": _OF_COLUMNS,
        "component_indices_": array(None, kinds="iu"),
        "normalization_": _TABLE,
        "_n_features_out": count,
    },
    "sklearn.kernel_approximation.PolynomialCountSketch": {
        "indexHash_": array(None, None, kinds="iu"),
        "bitHash_": array(None, None, kinds="iu"),
        "_n_features_out": count,
    },
    "sklearn.kernel_approximation.RBFSampler": {
        "random_weights_": array("n_features_in_", None),
        "random_offset_": _VECTOR,
        "_gamma": number,
        "_n_features_out": count,
    },
    "sklearn.preprocessing.Binarizer": {},
    "sklearn.preprocessing.FunctionTransformer": {},
    "sklearn.preprocessing.KBinsDiscretizer": {
        "bin_edges_": edges,
        "n_bins_": array("n_features_in_", kinds="iu"),
        "_encoder": part("OneHotEncoder"),
        "_random_state": anything,
    },
    "sklearn.preprocessing.MaxAbsScaler": {
        "scale_": _COLUMNS,
        "max_abs_": _COLUMNS,
        "n_samples_seen_": seen,
    },
    "sklearn.preprocessing.MinMaxScaler": {
        **dict.fromkeys(["scale_", "min_", "data_min_", "data_max_", "data_range_"], _COLUMNS),
        "n_samples_seen_": seen,
    },
    "sklearn.preprocessing.Normalizer": {},
    "sklearn.preprocessing.OneHotEncoder": _LEVELS,
    "sklearn.preprocessing.OrdinalEncoder": {
        **_LEVELS,
        "_infrequent_enabled": flag,
        "_default_to_infrequent_mappings": anything,
        "_missing_indices": anything,
    },
    "sklearn.preprocessing.PolynomialFeatures": {},
    "sklearn.preprocessing.PowerTransformer": {
        "lambdas_": _COLUMNS,
        "_scaler": part("StandardScaler"),
    },
    "sklearn.preprocessing.QuantileTransformer": {
        "quantiles_": array("n_quantiles_", "n_features_in_"),
        "references_": array("n_quantiles_"),
        "n_quantiles_": count,
    },
    "sklearn.preprocessing.RobustScaler": {"center_": _MAYBE_COLUMNS, "scale_": _MAYBE_COLUMNS},
    "sklearn.preprocessing.StandardScaler": {
        **dict.fromkeys(("mean_", "var_", "scale_"), _MAYBE_COLUMNS),
        "n_samples_seen_": seen,
    },
    "sklearn.random_projection.GaussianRandomProjection": _PROJECTION,
    "sklearn.random_projection.SparseRandomProjection": _PROJECTION,
}
"""Attributes of fitted objects, and those arguments of constructors that allow one value only."""
