"""Gradient-boosted trees as plain arrays: fitted by scikit-learn, walked by numpy.

A model folder holds no tree of scikit-learn, because a node's numbers are places in memory there.
Here they are places in arrays of numpy, which checks them: a damaged file raises, and does no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from dpadapt._types import FloatArray

Places = NDArray[np.int32]

_FAR = float(np.finfo(np.float64).max)  # threshold of a leaf: everybody stays
_DEEPEST = 64  # 31 leaves are 30 deep at most
_TOGETHER = 1 << 19  # nodes that are looked at in one go
_RATE, _ROUNDS = 0.1, 100  # of regression
_LIGHT_RATE, _LIGHT_ROUNDS = 0.2, 50  # of a trial: nearly the same scores in half the time
_CLASS_ROUNDS, _CLASS_LEAVES = (60, 30), (31, 15)  # for two classes, and for more
_LEAST_LEAF, _MOST_LEAF, _LEAVES = 2, 20, 50  # rows of a leaf: one in fifty, within these


@dataclass(frozen=True, eq=False)
class Trees:
    """Sum of trees, for one output or several; a leaf leads to itself.

    Parameters
    ----------
    base : ndarray of shape (k,)
        What the trees are added to.
    roots : ndarray of shape (rounds, k)
        Places of their first nodes.
    feature, left, right : ndarray of int
        Column that a node looks at, and the places of its children.
    threshold, value : ndarray
        A row goes left if its cell is at most the threshold.
    depth : int
        Of the deepest tree.

    Examples
    --------
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> trees = fit_trees(X, (X[:, 0] > 0.5).astype(float))
    >>> trees(np.array([[0.1], [0.9]])).round(2)
    array([[0.],
           [1.]])
    """

    base: FloatArray
    roots: Places
    feature: Places
    left: Places
    right: Places
    threshold: FloatArray
    value: FloatArray
    depth: int

    def __post_init__(self) -> None:
        size = len(self.feature)
        own = np.arange(size)
        whole = (self.feature, self.left, self.right)
        fine = all(each.dtype.kind == "i" and each.shape == (size,) for each in whole)
        numbers = (self.threshold, self.value)
        fine = fine and all(each.dtype.kind == "f" and each.shape == (size,) for each in numbers)
        fine = fine and not np.isnan(self.threshold).any() and self.base.ndim == 1
        fine = fine and self.roots.dtype.kind == "i" and self.roots.shape[1:] == self.base.shape
        for places in (self.left, self.right):
            fine = fine and bool(((places >= own) & (places < size)).all())
        fine = fine and bool(((self.roots >= 0) & (self.roots < size)).all())
        if not fine or (self.feature < 0).any() or not 0 <= self.depth <= min(size, _DEEPEST):
            raise ValueError("the nodes of the trees do not fit together.")

    @classmethod
    def of(cls, model: Any) -> Trees:
        """Trees of a fitted ``HistGradientBoosting`` model; scores before any link function."""
        parts: dict[str, list[Any]] = {name: [] for name in ("f", "l", "r", "t", "v")}
        roots: list[list[int]] = []
        begin, depth = 0, 0
        for stage in model._predictors:
            roots.append([])
            for tree in stage:
                nodes = tree.nodes
                own, leaf = begin + np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
                roots[-1].append(begin)
                parts["f"].append(np.where(leaf, 0, nodes["feature_idx"]))
                parts["l"].append(np.where(leaf, own, begin + nodes["left"].astype(np.int64)))
                parts["r"].append(np.where(leaf, own, begin + nodes["right"].astype(np.int64)))
                parts["t"].append(np.where(leaf, _FAR, nodes["num_threshold"]))
                parts["v"].append(nodes["value"])
                begin, depth = begin + len(nodes), max(depth, int(nodes["depth"].max()))
        whole = {name: np.concatenate(each) for name, each in parts.items()}
        return cls(
            np.ravel(model._baseline_prediction).astype(np.float64),
            np.array(roots, dtype=np.int32),
            feature=whole["f"].astype(np.int32),
            left=whole["l"].astype(np.int32),
            right=whole["r"].astype(np.int32),
            threshold=whole["t"].astype(np.float64),
            value=whole["v"].astype(np.float64),
            depth=depth,
        )

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores, of shape (n, k)."""
        rounds, outputs = self.roots.shape
        out = np.empty((len(X), outputs))
        for begin, nodes in self._walked(X):
            values = self.value[nodes].reshape(len(nodes), rounds, outputs)
            out[begin : begin + len(nodes)] = self.base + values.sum(axis=1)
        return out

    def leaves(self, X: FloatArray) -> Places:
        """Places of the leaves that rows fall into, of shape (n, trees)."""
        out = np.empty((len(X), self.roots.size), dtype=np.int32)
        for begin, nodes in self._walked(X):
            out[begin : begin + len(nodes)] = nodes
        return out

    def first(self, rounds: int) -> Trees:
        """The first rounds, and their nodes alone."""
        if rounds >= len(self.roots):
            return self
        end = int(self.roots[rounds:].min())
        names = ("feature", "left", "right", "threshold", "value")
        nodes = {name: getattr(self, name)[:end] for name in names}
        return replace(self, roots=self.roots[:rounds], **nodes)

    def _walked(self, X: FloatArray) -> Iterator[tuple[int, Places]]:
        """Some rows at a time: the place of the first one, and the leaves of all of them."""
        size = max(1, _TOGETHER // max(1, self.roots.size))
        for begin in range(0, len(X), size):
            rows = X[begin : begin + size]
            node = np.tile(self.roots.ravel(), (len(rows), 1))
            row = np.arange(len(rows))[:, None]
            for _ in range(self.depth):
                left = rows[row, self.feature[node]] <= self.threshold[node]
                node = np.where(left, self.left[node], self.right[node])
            yield begin, node


def fit_trees(X: FloatArray, y: FloatArray, *, light: bool = False) -> Trees:
    """Boosted trees for numbers; ``light`` ones have half as many rounds of twice the size.

    Examples
    --------
    >>> fit_trees(np.arange(50.0)[:, None], np.arange(50.0)).roots.shape
    (100, 1)
    """
    model = HistGradientBoostingRegressor(
        max_iter=_LIGHT_ROUNDS if light else _ROUNDS,
        learning_rate=_LIGHT_RATE if light else _RATE,
        early_stopping=False,
        random_state=0,
    )
    return Trees.of(model.fit(X, y))


def fit_class_trees(X: FloatArray, codes: NDArray[np.int64], classes: int) -> Trees:
    """Boosted trees for class codes, two of which there must be at least.

    Examples
    --------
    >>> X = np.arange(60.0)[:, None]
    >>> fit_class_trees(X, np.arange(60) // 20, classes=3)(X[:1]).argmax()
    np.int64(0)
    """
    several = int(classes > 2)
    model = HistGradientBoostingClassifier(
        max_iter=_CLASS_ROUNDS[several],
        max_leaf_nodes=_CLASS_LEAVES[several],
        learning_rate=_RATE,
        early_stopping=False,
        min_samples_leaf=int(np.clip(len(X) // _LEAVES, _LEAST_LEAF, _MOST_LEAF)),
        random_state=0,
    )
    return Trees.of(model.fit(X, codes))
