"""The rule of a parity: whether an odd number of some bits is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray

from .rules import two_labels


@dataclass(frozen=True)
class ParityRule:
    """Whether an odd number of the bits of a mask is set.

    A cell counts as a set bit if it is above 1/2; one that is no number does not.

    Parameters
    ----------
    mask : sequence of 0 and 1
        One for each column.
    classes : sequence of two labels
        For even, and for odd.

    Examples
    --------
    >>> rule = ParityRule((1, 0, 1), ("even", "odd"))
    >>> rule.predict(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])).tolist()
    ['odd', 'even']
    >>> ParityRule.from_dict(rule.to_dict()) == rule
    True
    """

    mask: tuple[int, ...]
    classes: tuple[Any, Any] = (0, 1)

    def __post_init__(self) -> None:
        mask = tuple(int(bit) for bit in self.mask)
        if not mask or not set(mask) <= {0, 1}:
            raise ValueError("mask must hold 0 and 1, one for each column.")
        object.__setattr__(self, "mask", mask)
        object.__setattr__(self, "classes", two_labels(self.classes))

    def check(self, n_columns: int) -> None:
        """Raise if rows of that many columns do not fit."""
        if n_columns != len(self.mask):
            raise ValueError(f"the rule is for {len(self.mask)} columns; got {n_columns}.")

    def predict_sign(self, X: FloatArray) -> FloatArray:
        """1 for odd, -1 for even."""
        chosen = np.asarray(X)[:, np.flatnonzero(self.mask)] > 0.5
        return np.where(np.count_nonzero(chosen, axis=1) % 2 == 1, 1.0, -1.0)

    def predict(self, X: FloatArray) -> Any:
        """Class labels."""
        return np.asarray(self.classes)[(self.predict_sign(X) > 0).astype(np.int64)]

    def losses(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """1 for a mistake, infinite for a label of no class; labels in -1, 0, 1."""
        return np.where(y == 0, np.inf, 1.0 * (self.predict_sign(X) != y))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"rule": "parity", "mask": list(self.mask), "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ParityRule:
        """Rebuild from :meth:`to_dict`."""
        if data.get("rule") != "parity":
            raise ValueError(f"unknown kind of rule {data.get('rule')!r}.")
        return cls(tuple(data["mask"]), two_labels(data["classes"]))
