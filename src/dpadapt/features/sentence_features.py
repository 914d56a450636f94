"""Features of texts, from a sentence encoder."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpadapt import _validate as validate
from dpadapt._types import FloatArray

from ._extractor import PROBED, Extractor, refuse_mixing


class SentenceFeatures(Extractor):
    """Features of texts from any sentence encoder.

    Parameters
    ----------
    model : object with ``encode``
        ``encode(list of str)`` returns an array with a row for each text, as the models of
        sentence-transformers do. It must take any text, also an empty one.
    batch_size : int, default=1
        Public texts that are given to ``encode`` at once.

    Notes
    -----
    Texts are one column: a list, an array, a Series, or a DataFrame of one column. A cell that is
    no text has NaN for its features. Private texts are a table of one column, as in
    ``Private(frame[["text"]])``; outside a pipeline they are read as texts by
    ``private.read(Schema.given({"text": "text"}))``.

    **Private texts are encoded one by one**, each by a copy of the encoder: one that pads texts to
    the longest of a call, or that remembers, cannot carry anything from one person to another. A
    copy of a large encoder takes some tens of milliseconds.

    Examples
    --------
    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return np.array([[len(text), text.count(" ")] for text in texts], dtype=float)
    >>> extractor = SentenceFeatures(Lengths()).fit(["a public text", "another"])
    >>> extractor.transform(["two words", None])
    array([[ 9.,  1.],
           [nan, nan]])
    """

    def __init__(self, model: Any, *, batch_size: int = 1) -> None:
        self.model = model
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any = None) -> Self:
        """Try the model on a few public texts.

        Parameters
        ----------
        X : texts
            Public; at least one.
        y : ignored
        """
        validate.count("batch_size", self.batch_size)
        if not hasattr(self.model, "encode"):
            raise TypeError(
                f"model must have encode(texts); a {type(self.model).__name__} has not."
            )
        texts = [text for text in _texts(X) if isinstance(text, str)][:PROBED]
        if not texts:
            raise ValueError("X must hold at least one public text.")
        probed = [*texts, ""]
        together = self._encode(probed)
        apart = np.concatenate([self._encode([text]) for text in probed])
        refuse_mixing("model", together, apart)
        self._remember(X, together.shape[1])
        return self

    def extract(self, items: Any) -> FloatArray:
        """Features of texts, in the forms that :meth:`fit` takes; NaN for what is no text."""
        check_is_fitted(self)
        texts = _texts(items)
        features = np.full((len(texts), self.n_features), np.nan)
        for start in range(0, len(texts), self.batch_size):
            batch = texts[start : start + self.batch_size]
            read = [isinstance(text, str) for text in batch]
            found = self._encode([text if isinstance(text, str) else "" for text in batch])
            features[start : start + self.batch_size][read] = found[read]
        return features

    def _encode(self, texts: list[str]) -> FloatArray:
        out = self.model.encode(texts)
        found = np.asarray(out.cpu() if hasattr(out, "cpu") else out, dtype=np.float64)
        if found.ndim != 2 or len(found) != len(texts):
            raise TypeError(
                f"model.encode must return a row of numbers for each text; got shape "
                f"{found.shape} for {len(texts)} texts."
            )
        return found


def _texts(X: Any) -> list[Any]:
    """One column of texts as a list."""
    if isinstance(X, (str, bytes)):
        raise TypeError("X must be a list or a column of texts, not one text.")
    if isinstance(X, (list, tuple)):
        return list(X)
    cells = X.to_numpy(dtype=object) if hasattr(X, "iloc") else np.asarray(X)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise ValueError(
            f"X must be one column of texts; got shape {cells.shape}. For several columns, use one "
            "SentenceFeatures for each in a ColumnTransformer."
        )
    return list(cells)
