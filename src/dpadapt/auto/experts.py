"""Public experts: models of the public rows alone, whose scores are what the private step moves.

=================  =================================================================================
"linear"           Ridge, its strength by leave-one-out; or logistic regression.
"trees"            Gradient-boosted trees (``HistGradientBoosting``).
"fourier"          Regression only: ridge on random Fourier features and on the columns.
"linear+trees"     Regression only: ridge, and boosted trees on what it leaves.
=================  =================================================================================

Any model with ``fit`` and ``predict`` (``predict_proba`` for classes) can be one too; one that is
fitted already is taken as it is. An expert must treat every row on its own: it is applied to
private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dpadapt._types import FloatArray, IntArray
from dpadapt.learning.public_fits import fit_logistic, fit_ridge
from dpadapt.learning.softmax import softmax
from dpadapt.privacy import shrink_factors
from dpadapt.reweighting.problem import descent_units

REGRESSION = ("linear", "trees", "fourier", "linear+trees")
CLASSIFICATION = ("linear", "trees")
_WAVES, _SEED, _PAIRS = 300, 3, 400  # Fourier features, and rows whose distances give their width
LINEAR_PART = 1 / 3  # weight of the columns beside Fourier features
PROBABILITY_FLOOR = 1e-3  # of a class, by an expert
_MOST_LOGIT = 8.0  # of a linear expert
_PROBE = 16  # public rows on which a user's model must prove that it treats rows one by one


@dataclass(frozen=True, eq=False)
class LinearExpert:
    """Linear scores.

    Examples
    --------
    >>> LinearExpert(np.array([[2.0]]), np.array([1.0]))(np.array([[3.0]]))
    array([[7.]])
    """

    coef: FloatArray
    intercept: FloatArray

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores, of shape (n, k)."""
        return np.asarray(X @ self.coef + self.intercept)


_STRENGTHS = np.logspace(-3, 4, 15)


def quick_ridge(X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ridge with its strength by leave-one-out; the constant is not penalised.

    Errors of rows that are left out follow from the errors of the whole fit and from the rows'
    leverages, for every strength from the same eigenvectors. The work is that of one moment of the
    columns; a decomposition of the rows, which is exact to more digits, takes six times as long.

    Parameters
    ----------
    X : ndarray of shape (m, p)
    y : ndarray of shape (m,)

    Returns
    -------
    coef : ndarray of shape (p, 1)
    intercept : ndarray of shape (1,)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> coef, intercept = quick_ridge(X, X @ [1.0, -2.0] + 3.0)
    >>> coef.round(2).ravel(), intercept.round(2)
    (array([ 1., -2.]), array([3.]))
    """
    center, mean = X.mean(axis=0), float(y.mean())
    rows, targets = X - center, y - mean
    values, axes = np.linalg.eigh(rows.T @ rows)
    values = np.maximum(values, 0.0)
    places = rows @ axes
    along, squares = places.T @ targets, places**2
    tried = []
    for strength in _STRENGTHS:
        found = along / (values + strength)
        leverages = 1 / len(y) + squares @ (1 / (values + strength))
        left_out = (targets - places @ found) / np.maximum(1 - leverages, 1e-6)
        tried.append((float(np.mean(left_out**2)), strength))
    found = axes @ (along / (values + min(tried)[1]))
    return found[:, None], np.array([mean - float(center @ found)])


def column_units(X: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Means and standard deviations of columns, 1 for a constant one; which ones are constant.

    Examples
    --------
    >>> column_units(np.array([[1.0, 7.0], [3.0, 7.0]]))
    (array([2., 7.]), array([1., 1.]), array([False,  True]))
    """
    center, spread = X.mean(axis=0), X.std(axis=0)
    constant = spread <= 1e-12 * (np.abs(center) + 1e-300)
    return center, np.where(constant, 1.0, spread), constant


@dataclass(frozen=True, eq=False)
class Waves:
    """Random Fourier features of standardised columns: cosines of random width and phase.

    Examples
    --------
    >>> waves = Waves.of(np.random.default_rng(0).normal(size=(50, 2)), ratio=1.0, seed=0)
    >>> waves(np.zeros((1, 2))).shape
    (1, 300)
    """

    center: FloatArray
    scale: FloatArray
    frequencies: FloatArray
    phases: FloatArray

    @classmethod
    def of(cls, X: FloatArray, *, ratio: float, seed: int) -> Waves:
        """Features whose width is ``ratio`` times the median distance of public rows."""
        rng = np.random.default_rng(seed)
        center, scale, constant = column_units(X)
        some = (X[rng.permutation(len(X))[:_PAIRS]] - center) / scale
        squares = (some**2).sum(axis=1)
        apart = np.sqrt(np.maximum(squares[:, None] + squares - 2 * some @ some.T, 0.0))
        width = float(np.median(apart[apart > 1e-6])) if (apart > 1e-6).any() else 1.0
        frequencies = rng.standard_normal((X.shape[1], _WAVES)) / (ratio * width)
        frequencies[constant] = 0.0
        return cls(center, scale, frequencies, rng.random(_WAVES) * 2 * np.pi)

    def standardised(self, X: FloatArray) -> FloatArray:
        """Columns in public standard deviations."""
        return np.asarray((X - self.center) / self.scale)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Features, of shape (n, 300)."""
        return np.cos(self.standardised(X) @ self.frequencies + self.phases)


@dataclass(frozen=True, eq=False)
class FourierExpert:
    """Ridge on Fourier features and on the columns.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> smooth = fit_expert("fourier", X, np.sin(3 * X[:, 0]))
    >>> bool(abs(smooth(np.array([[0.5]]))[0, 0] - np.sin(1.5)) < 0.05)
    True
    """

    waves: Waves
    linear: LinearExpert

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores, of shape (n, 1)."""
        return self.linear(_beside(self.waves, X))


def _beside(waves: Waves, X: FloatArray) -> FloatArray:
    return np.hstack([waves(X), LINEAR_PART * waves.standardised(X)])


# trees

Nodes = NDArray[np.int32]
_STAY = float(np.finfo(np.float64).max)  # threshold of a leaf: everybody stays
_DEEPEST = 64  # 31 leaves are 30 deep at most
_NODES_AT_ONCE = 1 << 16  # nodes that are looked at in one go: what is at hand for the processor
_ROWS_AT_ONCE = 1 << 13
_ROWS_COMPILED, _TREES_COMPILED = 1024, 1 << 24  # rows of a call, trees before it, to compile for
_WALKED = [0]  # trees that rows of this process were led down by numpy
_RATE, _ROUNDS = 0.1, 100  # of regression
_LIGHT_RATE, _LIGHT_ROUNDS = 0.2, 50  # of a trial: nearly the same scores in half the time
_CLASS_ROUNDS, _CLASS_LEAVES = (60, 30), (31, 15)  # for two classes, and for more
_LEAST_LEAF, _MOST_LEAF, _LEAVES = 2, 20, 50  # rows of a leaf: one in fifty, within these


@dataclass(frozen=True, eq=False)
class Trees:
    """Sum of trees, for one output or several; a leaf leads to itself.

    A model folder holds no tree of scikit-learn, because a node's numbers are places in memory
    there. Here they are places in arrays of numpy, which checks them: a damaged file raises, and
    does no more.

    Parameters
    ----------
    base : ndarray of shape (k,)
        What the trees are added to.
    roots : ndarray of shape (rounds, k)
        Places of their first nodes.
    feature, left, right : ndarray of int
        Column that a node splits, and the places of its children.
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
    roots: Nodes
    feature: Nodes
    left: Nodes
    right: Nodes
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
                parts["t"].append(np.where(leaf, _STAY, nodes["num_threshold"]))
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
        for begin, nodes in self._leaf_batches(X):
            values = self.value[nodes].reshape(len(nodes), rounds, outputs)
            out[begin : begin + len(nodes)] = self.base + values.sum(axis=1)
        return out

    def leaves(self, X: FloatArray) -> Nodes:
        """Places of the leaves that rows fall into, of shape (n, trees)."""
        out = np.empty((len(X), self.roots.size), dtype=np.int32)
        for begin, nodes in self._leaf_batches(X):
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

    def _leaf_batches(self, X: FloatArray) -> Iterator[tuple[int, Nodes]]:
        """Some rows at a time: the place of the first one, and the leaves of all of them."""
        size = max(1, _NODES_AT_ONCE // max(1, self.roots.size))
        if self._compiled(X):
            for begin in range(0, len(X), _ROWS_AT_ONCE):
                yield begin, self._led(X[begin : begin + _ROWS_AT_ONCE])
            return
        _WALKED[0] += len(X) * self.roots.size
        for begin in range(0, len(X), size):
            rows = X[begin : begin + size]
            node = np.tile(self.roots.ravel(), (len(rows), 1))
            row = np.arange(len(rows))[:, None]
            for _ in range(self.depth):
                left = rows[row, self.feature[node]] <= self.threshold[node]
                node = np.where(left, self.left[node], self.right[node])
            yield begin, node

    def _compiled(self, X: FloatArray) -> bool:
        """Whether it pays to compile the way, which takes a second; a damaged tree has no way."""
        much = len(X) >= _ROWS_COMPILED and _WALKED[0] >= _TREES_COMPILED
        return much and int(self.feature.max(initial=0)) < X.shape[1]

    def _led(self, X: FloatArray) -> Nodes:
        from .tree_walk import leaves_of  # not before: it takes its time

        out = np.empty((len(X), self.roots.size), dtype=np.int32)
        rows = np.ascontiguousarray(X, dtype=np.float64)
        ways = (self.feature, self.threshold, self.left, self.right)
        leaves_of(rows, self.roots.ravel(), *ways, self.depth, out)
        return out


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


# scores of classes, users' models, sums


@dataclass(frozen=True, eq=False)
class Sum:
    """Scores of several experts, added up.

    Examples
    --------
    >>> line = LinearExpert(np.array([[2.0]]), np.array([1.0]))
    >>> Sum((line, line))(np.array([[3.0]]))
    array([[14.]])
    """

    parts: tuple[Any, ...]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores, of shape (n, k)."""
        return np.asarray(sum(part(X) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Centred:
    """Scores of classes: centred over the classes, and none beyond what an expert may say.

    Parameters
    ----------
    expert : callable
        Scores of those classes that it knows; one column stands for two classes.
    known : ndarray of int
        Their places among all classes.
    classes : int
    cut : float or None
        Bound on a centred score, to which a row's scores are shrunk together; without one, chances
        are cut at one in a thousand.

    Examples
    --------
    >>> line = LinearExpert(np.array([[9.0]]), np.array([0.0]))
    >>> Centred(line, np.array([0, 1]), 2, cut=8.0)(np.array([[3.0]]))
    array([[-8.,  8.]])
    """

    expert: Any
    known: IntArray
    classes: int
    cut: float | None = None

    def __call__(self, X: FloatArray) -> FloatArray:
        """Centred scores, of shape (n, classes)."""
        scores = self.expert(X)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores / 2, scores / 2])
        if self.cut is not None:
            centred = scores - scores.mean(axis=1, keepdims=True)
            longest = np.abs(centred).max(axis=1, keepdims=True)  # the order of classes stays
            return np.asarray(centred * shrink_factors(longest, self.cut))
        return _log_chances(softmax(scores), self.known, self.classes)


@dataclass(frozen=True, eq=False)
class Own:
    """A user's model as an expert.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> Own(DummyRegressor().fit([[0.0]], [3.0]))(np.zeros((2, 1)))
    array([[3.],
           [3.]])
    """

    model: Any
    known: IntArray | None = None
    classes: int = 0

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores, of shape (n, 1), or centred ones for each class."""
        if self.known is None:
            return np.asarray(self.model.predict(X), dtype=np.float64).reshape(len(X), 1)
        chances = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        return _log_chances(chances, self.known, self.classes)


def _log_chances(chances: FloatArray, known: IntArray, classes: int) -> FloatArray:
    out = np.full((len(chances), classes), PROBABILITY_FLOOR)
    out[:, known] = np.clip(chances, PROBABILITY_FLOOR, 1.0)
    logs = np.log(out)
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def expert_kinds(given: Sequence[Any] | None, names: Any = None) -> tuple[Any, ...]:
    """Check a user's experts; those of the recipe without any.

    Parameters
    ----------
    given : list of str or estimator, or None
    names : ndarray, optional
        The classes; None for regression.

    Examples
    --------
    >>> expert_kinds(None, names=np.array(["a", "b"]))
    ('linear', 'trees')
    >>> expert_kinds(["forest"])
    Traceback (most recent call last):
    ...
    ValueError: experts: 'forest' is none; give 'linear', 'trees', 'fourier', 'linear+trees' or a \
model with fit and predict.
    """
    own = REGRESSION if names is None else CLASSIFICATION
    if given is None:
        return own
    if isinstance(given, str) or not hasattr(given, "__iter__") or not list(given):
        raise ValueError(f"experts must be a list with at least one expert; got {given!r}.")
    method = "predict" if names is None else "predict_proba"
    for each in given:
        if each not in own if isinstance(each, str) else not hasattr(each, method):
            listed = ", ".join(map(repr, own))
            raise ValueError(
                f"experts: {each!r} is none; give {listed} or a model with fit and {method}."
            )
    return tuple(_as_it_is(each, names) for each in given)


def _as_it_is(kind: Any, names: Any) -> Any:
    """A model that is fitted already, as an expert; anything else as it was given."""
    try:
        if isinstance(kind, str):
            return kind
        check_is_fitted(kind)
    except (NotFittedError, TypeError):
        return kind
    if names is None:
        return Own(deepcopy(kind))
    known = np.asarray(getattr(kind, "classes_", names))
    if not np.isin(known, names).all():
        raise ValueError("experts: a fitted classifier knows a class that y and classes do not.")
    return Own(deepcopy(kind), np.searchsorted(names, known).astype(np.int64), len(names))


def fit_expert(kind: Any, X: FloatArray, y: Any, classes: int = 0, *, light: bool = False) -> Any:
    """Fit one expert to public rows.

    Parameters
    ----------
    kind : str or estimator
    X : ndarray of shape (m, d)
    y : ndarray of shape (m,)
        Numbers, or class codes.
    classes : int, default=0
        0 for regression.
    light : bool, default=False
        Trees for numbers in half the time, for a trial on rows that are held out.

    Examples
    --------
    >>> fit_expert("linear", np.eye(3), np.arange(3.0))(np.eye(3)).shape
    (3, 1)
    """
    if isinstance(kind, Own):
        return _row_wise(kind, X)
    if not isinstance(kind, str):
        fitted = (clone(kind) if hasattr(kind, "get_params") else deepcopy(kind)).fit(X, y)
        known = np.asarray(fitted.classes_).astype(np.int64) if classes else None
        return _row_wise(Own(fitted, known, classes), X)
    if classes:
        return _class_expert(kind, X, y, classes)
    numbers: dict[str, Callable[[FloatArray, FloatArray], Any]] = {
        "linear": _ridge,
        "trees": partial(fit_trees, light=light),
        "fourier": _fourier,
        "linear+trees": partial(_ridge_and_trees, light=light),
    }
    return numbers[kind](X, y)


def _ridge(X: FloatArray, y: FloatArray) -> LinearExpert:
    found = fit_ridge(np.column_stack([X, np.ones(len(X))]), y[:, None])
    return LinearExpert(found[:-1], found[-1])


def _fourier(X: FloatArray, y: FloatArray) -> FourierExpert:
    waves = Waves.of(X, ratio=1.0, seed=_SEED)
    return FourierExpert(waves, LinearExpert(*quick_ridge(_beside(waves, X), y)))


def _ridge_and_trees(X: FloatArray, y: FloatArray, *, light: bool) -> Sum:
    line = _ridge(X, y)
    return Sum((line, fit_trees(X, y - line(X)[:, 0], light=light)))


def _class_expert(kind: str, X: FloatArray, codes: IntArray, classes: int) -> Centred:
    known = np.unique(codes)
    if kind == "linear" or len(known) < 2:
        units = descent_units(X)
        found = fit_logistic(np.column_stack([units.rows(X), np.ones(len(X))]), codes, classes)
        return Centred(LinearExpert(*units.linear(found)), np.arange(classes), classes, _MOST_LOGIT)
    return Centred(fit_class_trees(X, codes, len(known)), known, classes)


def _row_wise(expert: Own, X: FloatArray) -> Own:
    picked = np.linspace(len(X) - 1, 0, min(_PROBE, len(X))).astype(int)
    whole = expert(X)
    if whole.shape != (len(X), max(1, expert.classes)) or not np.allclose(
        expert(X[picked]), whole[picked], rtol=1e-5, atol=1e-8
    ):
        raise ValueError(
            f"experts: {type(expert.model).__name__} gives a row another score when it comes with "
            "other rows; private rows need a model that treats every row on its own."
        )
    return expert
