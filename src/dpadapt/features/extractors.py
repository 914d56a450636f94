"""Features of texts, from a sentence encoder, and of images or anything else that torch takes.

They share their form, and the proof that they treat items one by one.
"""

from __future__ import annotations

import importlib
from copy import deepcopy
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy.rows.errors import LET_THROUGH

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


_FILL = 16  # items: shorter batches take kernels that round differently


class TorchFeatures(Extractor):
    """Features from any torch module, in evaluation mode; needs the extra ``dpadapt[torch]``.

    The module is copied when it is fitted to public items, and never changed. Public items go
    through it in batches, **private ones one by one**, each through a copy of the module: layers
    that look at a batch, or that remember one, cannot carry anything from one person to another.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of items to one tensor with a row for each; more dimensions are flattened.
    shape : tuple of int, optional
        Of one item, (channels, height, width) for images: rows of numbers are brought into it.
        Private images are given as rows, ``Private(images.reshape(n, -1))``.
    prepare : callable, optional
        From one item to the tensor that the module takes (scaling, cropping, tokens). With
        ``shape`` it is given a float64 array of that shape, whatever the type of the rows. Without
        it, items become tensors of the module's own precision.
    batch_size : int, default=256
        Of public items, and of those that are predicted for.
    device : str, default="cpu"

    Attributes
    ----------
    module_ : torch.nn.Module
        The copy.
    item_shape_ : tuple of int
        Of what the module takes, without the batch.

    Notes
    -----
    An item for which ``prepare`` fails, or that is no tensor of the right shape, has NaN for its
    features. Rows of another width than the public ones are an error, which
    :meth:`dpadapt.Private.map` takes for a failure of every row; an
    :class:`~dpadapt.AdaptationPipeline` compares the widths first.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.AdaptiveAvgPool2d(1))
    >>> images = np.random.default_rng(0).normal(size=(20, 64))
    >>> extractor = TorchFeatures(module, shape=(1, 8, 8)).fit(images)
    >>> extractor.transform(images).shape
    (20, 4)
    >>> from dpadapt import Private
    >>> Private(images).map(extractor.extract, n_columns=extractor.n_features)
    Private(20 rows, 4 columns, unlabelled)
    """

    def __init__(
        self,
        module: Any,
        *,
        shape: tuple[int, ...] | None = None,
        prepare: Any = None,
        batch_size: int = 256,
        device: str = "cpu",
    ) -> None:
        self.module = module
        self.shape = shape
        self.prepare = prepare
        self.batch_size = batch_size
        self.device = device

    def fit(self, X: Any, y: Any = None) -> Self:
        """Copy the module, and try it on a few public items.

        Parameters
        ----------
        X : array, tensor, DataFrame or list of arrays
            Public items, one a row; at least one.
        y : ignored
        """
        torch = _torch()
        validate.count("batch_size", self.batch_size)
        for size in self.shape or ():
            validate.count("shape", size)
        if not isinstance(self.module, torch.nn.Module):
            raise TypeError(f"module must be a torch.nn.Module; got {type(self.module).__name__}.")
        items = self._items(X)[:PROBED]
        if len(items) == 0:
            raise ValueError("X must hold at least one public item.")
        module = deepcopy(self.module).to(self.device).eval()
        tensors = [self._tensor(module, item) for item in items]
        if any(each.shape != tensors[0].shape for each in tensors):
            raise ValueError("X must hold items of one shape; bring them to one with prepare.")
        batch = torch.stack([*tensors, torch.zeros_like(tensors[0])])  # zeros differ from any item
        together = self._run(module, batch)
        apart = [self._run(module, batch[i : i + 1]) for i in range(len(batch))]
        refuse_mixing("module", together, np.concatenate(apart))
        self.module_, self.item_shape_ = module, tuple(tensors[0].shape)
        self._precision = tensors[0].dtype
        self._remember(X, together.shape[1])
        return self

    def extract(self, items: Any) -> FloatArray:
        """Features of items, in the forms that :meth:`fit` takes; NaN for one that has none."""
        check_is_fitted(self)
        given = self._items(items)
        plain = self.prepare is None and self.shape is None and isinstance(given, np.ndarray)
        if plain and given.shape[1:] != self.item_shape_:
            raise ValueError(
                f"X must hold items of shape {self.item_shape_}, like the public ones; got shape "
                f"{given.shape}."
            )
        features = np.full((len(given), self.n_features), np.nan)
        for start in range(0, len(given), self.batch_size):
            cut = slice(start, start + self.batch_size)
            batch, read = self._batch(given[cut], fill=len(given) > 1)
            found = self._run(self.module_, batch)[: len(read)]
            features[cut][read] = found[read]
        return features

    def _items(self, X: Any) -> Any:
        """Items as one array of numbers if they are one, else one by one."""
        torch = _torch()
        if isinstance(X, torch.Tensor):
            X = X.detach().cpu()
            X = list(X) if self.prepare is not None and self.shape is None else X.double().numpy()
        items = X.to_numpy() if hasattr(X, "iloc") else X
        if isinstance(items, np.ndarray):
            cells = None if self.shape is None else int(np.prod(self.shape))
            if items.ndim < 2 or (cells is not None and items[:1].size != cells * len(items[:1])):
                wanted = "a row of numbers" if cells is None else f"{cells} numbers"
                raise ValueError(f"X must hold {wanted} for each item; got shape {items.shape}.")
            return items
        return list(items)

    def _tensor(self, module: Any, item: Any) -> Any:
        """What the module takes for one item."""
        torch = _torch()
        if self.shape is not None:
            item = np.asarray(item, dtype=np.float64).reshape(self.shape)
        if self.prepare is not None:
            item = self.prepare(item)
        if not isinstance(item, torch.Tensor):
            item = torch.from_numpy(np.array(item, dtype=np.float64))
        # tokens are whole numbers, and stay what they are
        return item.detach().to(_precision(module) if item.is_floating_point() else item.dtype)

    def _batch(self, items: Any, *, fill: bool) -> tuple[Any, NDArray[np.bool_]]:
        """A batch, filled up if so wanted, and which of the items could be read."""
        torch = _torch()
        multiple = min(_FILL, self.batch_size) if fill else 1
        size = -(-len(items) // multiple) * multiple
        batch = torch.zeros((size, *self.item_shape_), dtype=self._precision)
        if self.prepare is None and isinstance(items, np.ndarray) and items.dtype.kind in "biuf":
            numbers = np.array(items, dtype=np.float64).reshape(len(items), *self.item_shape_)
            batch[: len(items)] = torch.from_numpy(numbers)
            return batch, np.ones(len(items), dtype=bool)
        read = np.zeros(len(items), dtype=bool)
        for place, item in enumerate(items):
            try:
                made = self._tensor(self.module_, item)
            except LET_THROUGH:
                raise
            except BaseException:  # of one item, which may be a private one: nothing is said of it
                continue
            if tuple(made.shape) == self.item_shape_:
                batch[place], read[place] = made, True
        return batch, read

    def _run(self, module: Any, batch: Any) -> FloatArray:
        torch = _torch()
        with torch.no_grad():
            out = module(batch.to(self.device))
        if not isinstance(out, torch.Tensor) or out.ndim < 1 or len(out) != len(batch):
            got = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
            raise TypeError(
                f"module must return one tensor with a row for each item; got {got} for "
                f"{len(batch)} items."
            )
        return np.asarray(out.reshape(len(batch), -1).cpu().double().numpy())


def _precision(module: Any) -> Any:
    """Type of the module's own real numbers."""
    torch = _torch()
    tensors = [*module.parameters(), *module.buffers()]
    return next((each.dtype for each in tensors if each.is_floating_point()), torch.float32)


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError("TorchFeatures needs torch: pip install 'dpadapt[torch]'.") from error
