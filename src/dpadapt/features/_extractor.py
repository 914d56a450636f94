"""What the extractors share: their form, and the proof that they treat items one by one."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpadapt._types import FloatArray

PROBED = 8  # public items on which an extractor must prove that it treats items one by one
_TOLERANCE = 1e-3  # of the largest feature: far above rounding, far below what a batch norm does


@runtime_checkable
class FeatureExtractor(Protocol):
    """What turns items into rows of numbers: row-wise, and fitted on public data only.

    Enough for ``private.map(extractor.extract, n_columns=extractor.n_features)``.
    """

    @property
    def n_features(self) -> int:
        """Numbers that an item becomes."""

    def extract(self, items: Any) -> FloatArray:
        """Features of shape (n, n_features); NaN for an item that has none."""


class Extractor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Extractors as scikit-learn transformers."""

    def transform(self, X: Any) -> FloatArray:
        """Features of items in the form of the public ones.

        Parameters
        ----------
        X : items
            As in :meth:`fit`; a data frame must have the same columns.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns") and list(X.columns) != list(names):
            raise ValueError("X must have the columns of the public items, in the same order.")
        return self.extract(X)

    def extract(self, items: Any) -> FloatArray:
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        """Numbers that an item becomes."""
        check_is_fitted(self)
        return int(self._n_features_out)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_n_features_out")

    def _remember(self, X: Any, n_features: int) -> None:
        """Keep what the public items told: their columns, and the width of the features."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if np.ndim(X) == 2 and hasattr(X, "shape"):
            self.n_features_in_ = int(X.shape[1])
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self._n_features_out = n_features


def refuse_mixing(name: str, together: FloatArray, apart: FloatArray) -> None:
    """Refuse an extractor whose answer for an item depends on the other items of a call."""
    finite = np.abs(together[np.isfinite(together)])
    near = _TOLERANCE * float(finite.max(initial=0.0))
    same = together.shape == apart.shape and np.allclose(
        together, apart, rtol=0.0, atol=near, equal_nan=True
    )
    if not same:
        raise ValueError(
            f"{name} gives an item other features when it comes with other items, or is random; "
            "private items need a map that treats every item on its own."
        )
