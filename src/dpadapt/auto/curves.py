"""Curves for the private step: parts of public waves or leaves that are not linear in the columns.

A linear step cannot follow what bends. So it also gets waves (random Fourier features) or leaves of
the first public trees, whichever kind an expert has shown to be worth something on public rows that
it had not seen. Both are fixed by public rows, and a private row's curves depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray

from .experts import Trees, Waves, column_units

_RATIO, _SEED = 0.5, 11  # width of the waves
_LEAVES = 310  # about as many are taken, from the first rounds; ten of regression
_GAIN = 0.05  # of the line's error: what an expert must gain for its curves to be used
_MOST_CURVES = 40  # features
_REACH = 3.0  # standard deviations that a curve is clipped at
_ROWS_PER_COLUMN = 2  # at least: with fewer public rows, a line goes through any cells
_LEAST_SPREAD = 1e-3  # of a part, before it is scaled; cells are cosines or 0 and 1
_CELLS_AT_ONCE = 1 << 22  # cells that are computed in one go


@dataclass(frozen=True, eq=False)
class Leaves:
    """Which leaves of trees a row falls into: 1 for those, 0 for the others.

    Parameters
    ----------
    trees : Trees

    Examples
    --------
    >>> from dpadapt.auto.experts import fit_trees
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> leaves = Leaves.of(fit_trees(X, (X[:, 0] > 0.5).astype(float)))
    >>> leaves(X).sum(axis=1).mean() == leaves.trees.roots.size
    np.True_
    """

    trees: Trees

    def __post_init__(self) -> None:
        if not isinstance(self.trees, Trees):
            raise ValueError("leaves must be those of trees.")

    @classmethod
    def of(cls, trees: Trees) -> Leaves:
        """Leaves of the first rounds."""
        per_round = len(cls(trees).places) / len(trees.roots)
        return cls(trees.first(max(1, round(_LEAVES / per_round))))

    @property
    def places(self) -> NDArray[np.int64]:
        """Nodes that are leaves: they lead to themselves."""
        return np.flatnonzero(self.trees.left == np.arange(len(self.trees.left)))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Of shape (n, leaves)."""
        places = self.places
        out = np.zeros((len(X), len(places)))
        found = np.searchsorted(places, self.trees.leaves(X))
        out[np.arange(len(X))[:, None], found] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class Curves:
    """Principal parts of waves or leaves that are not linear in the columns, each clipped at 3 sd.

    Parameters
    ----------
    cells : Waves or Leaves
    center, scale : ndarray of shape (d,)
        Columns are standardised with these.
    line : ndarray
        What the cells are on a line.
    axes : ndarray
    reach : ndarray
        Where each part is clipped.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> curves = Curves.of(curve_waves(X), X, most=5, size=1.0)
    >>> Curves.of(curve_waves(X[:3]), X[:3], most=5, size=1.0) is None  # too few rows
    True
    >>> bool(np.abs(X.T @ curves(X)).max() / 200 < 0.1), curves(X).shape
    (True, (200, 5))
    """

    cells: Any
    center: FloatArray
    scale: FloatArray
    line: FloatArray
    axes: FloatArray
    reach: FloatArray

    def __post_init__(self) -> None:
        columns, cells, count = len(self.center), self.line.shape[-1], len(self.reach)
        shapes = {
            "center": (columns,),
            "scale": (columns,),
            "line": (columns + 1, cells),
            "axes": (cells, count),
            "reach": (count,),
        }
        numbers = {name: getattr(self, name) for name in shapes}
        fine = isinstance(self.cells, Waves | Leaves)
        for name, shape in shapes.items():
            fine = fine and numbers[name].shape == shape and bool(np.isfinite(numbers[name]).all())
        if not fine or not (self.scale > 0).all() or not (self.reach > 0).all():
            raise ValueError("the parts of the curves do not fit together.")

    @classmethod
    def of(cls, cells: Any, X: FloatArray, *, most: int, size: float) -> Curves | None:
        """The ``most`` largest of them, the first with the standard deviation ``size``.

        None where there are too few rows to tell, or nothing is left beside the line.
        """
        if len(X) < _ROWS_PER_COLUMN * (X.shape[1] + 1):
            return None
        center, scale, _ = column_units(X)
        rows, features = _with_one((X - center) / scale), cells(X)
        line = np.asarray(np.linalg.lstsq(rows, features, rcond=None)[0], dtype=np.float64)
        rest = features - rows @ line
        energy, axes = np.linalg.eigh(rest.T @ rest / len(rest))
        spreads = np.sqrt(np.maximum(energy[::-1][:most], 0.0))
        spreads = spreads[spreads > _LEAST_SPREAD]
        if not spreads.size:
            return None
        unit = size / spreads[0]
        reach = _REACH * spreads * unit
        return cls(cells, center, scale, line, axes[:, ::-1][:, : len(spreads)] * unit, reach)

    def times(self, factor: float) -> Curves:
        """All of them larger by a factor."""
        return replace(self, axes=factor * self.axes, reach=factor * self.reach)

    def __len__(self) -> int:
        return len(self.reach)

    def __str__(self) -> str:
        return f"{len(self)} {'waves' if isinstance(self.cells, Waves) else 'leaves of trees'}"

    def __call__(self, X: FloatArray) -> FloatArray:
        """Of shape (n, count)."""
        size = max(1, _CELLS_AT_ONCE // self.line.shape[1])
        parts = [self._of(X[begin : begin + size]) for begin in range(0, max(len(X), 1), size)]
        return np.concatenate(parts)

    def _of(self, X: FloatArray) -> FloatArray:
        rest = self.cells(X) - _with_one((X - self.center) / self.scale) @ self.line
        return np.clip(rest @ self.axes, -self.reach, self.reach)


def _with_one(rows: FloatArray) -> FloatArray:
    return np.column_stack([rows, np.ones(len(rows))])


def max_features(precision: float, per: float, *, least: int) -> int:
    """Curves that n mu pays for: one for each ``per`` of it, 40 at most; none if they are few.

    Examples
    --------
    >>> [max_features(precision, 20.0, least=4) for precision in (79.0, 80.0, 1e9)]
    [0, 4, 40]
    """
    count = min(int(precision / per), _MOST_CURVES)
    return count if count >= least else 0


def curve_waves(X: FloatArray) -> Waves:
    """Waves of half the usual width.

    Examples
    --------
    >>> curve_waves(np.eye(3))(np.eye(3)).shape
    (3, 300)
    """
    return Waves.of(X, ratio=_RATIO, seed=_SEED)


def first_trees(experts: Sequence[Any]) -> Trees | None:
    """The first boosted trees among experts, or among their parts.

    Examples
    --------
    >>> first_trees([]) is None
    True
    """
    for each in experts:
        inner = (*getattr(each, "parts", ()), getattr(each, "expert", None))
        for one in (each, *inner):
            if isinstance(one, Trees):
                return one
    return None


def beats_line(error: float, line: float) -> bool:
    """Whether an expert of curves beats the line; both are errors on rows that they had not seen.

    Examples
    --------
    >>> beats_line(0.8, 1.0), beats_line(0.97, 1.0), beats_line(float("nan"), 1.0)
    (True, False, False)
    """
    return error < (1 - _GAIN) * line
