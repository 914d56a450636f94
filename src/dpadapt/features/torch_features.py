"""Features of images, or of anything else that a torch module takes."""

from __future__ import annotations

import importlib
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy.core.errors import LET_THROUGH

from ._extractor import PROBED, Extractor, refuse_mixing

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
