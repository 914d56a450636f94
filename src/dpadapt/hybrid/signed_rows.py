"""The curator's rows with labels -1 and 1, which all methods for agents ask things of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics import Prepared

__all__ = ["SignedRows"]

Array = NDArray[np.float64]

_LONGEST = 1e100  # of a row: squares stay finite


@dataclass(frozen=True, eq=False)
class SignedRows:
    """Rows, or public features of them, with labels -1 and 1; from labels coded 0 and 1.

    Codes of more than two classes become 1, 2, 3, ...; a label of no class is 0 in both cases.

    Parameters
    ----------
    width : int
    features : callable, optional
        From rows to rows of norm at most 1. By default rows stay as they are.
    classes : int, default=2

    Examples
    --------
    >>> SignedRows(1)(np.array([[5.0], [6.0]]), np.array([0.0, 1.0]))[1]
    array([-1.,  1.])
    """

    width: int
    features: Callable[[Array], Array] | None = None
    classes: int = 2

    @property
    def radius(self) -> float:
        """Bound on the norm of what comes out."""
        return _LONGEST if self.features is None else 1.0

    @cached_property
    def _map(self) -> Prepared:
        def prepare(X: Array, y: Array | None) -> tuple[Array, Array | None]:
            signs = None
            if y is not None:
                signs = np.where(y < 0, 0.0, 2 * y - 1 if self.classes == 2 else y + 1)
            return X if self.features is None else self.features(X), signs

        return Prepared(Cleaning(_LONGEST, classes=self.classes), prepare, self.width)

    def __call__(self, X: Array, y: Array | None) -> tuple[Array, Array | None]:
        """Map one block; total and row by row."""
        return self._map(X, y)
