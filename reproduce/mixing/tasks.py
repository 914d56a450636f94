"""Tasks for paper 004's experiments: who is public, who is private, who is tested.

The paper makes 2 or 5 examples of each class public and the rest private, and tests on other rows;
so do these, on other data. Two tasks are shifted: the public examples come from another source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dpadapt.mixing.features import PublicSample, UnitRows, penalised
from reproduce.data.classes import ClassData, load_covertype

from .data import (
    load_digit_pixels,
    load_gas_kinds,
    load_mnist,
    load_office,
    load_review_directions,
    load_usps,
)

__all__ = [
    "TASKS",
    "PlainModel",
    "Sample",
    "Task",
    "draw",
    "error_of",
    "fit_plain",
    "non_private",
    "public_only",
]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Places = NDArray[np.intp]

_FAR = 5.0  # public standard deviations
PUBLIC_PENALTY = 1e-3
PENALTIES = (1e-4, 1e-5)  # of models without privacy; the better one on test rows


@dataclass(frozen=True)
class Task:
    """One classification task.

    Parameters
    ----------
    name, title : str
        A short name, and what it is.
    load : callable
        Rows of the private domain, or its training and its test part.
    per_class : int, optional
        Public examples of a class; None for all rows of ``load_public``.
    test : int, default=0
        Test rows; 0 where ``load`` gives a test part of its own.
    load_public : callable, optional
        Where public examples come from; by default from where the private ones do.
    scaled : bool, default=False
        Whether columns are standardised by public examples, and cut at five deviations: where raw
        columns have heavy tails.

    Examples
    --------
    >>> TASKS["digits"].per_class, TASKS["digits"].shifted
    (5, False)
    """

    name: str
    title: str
    load: Callable[[], ClassData | tuple[ClassData, ClassData]]
    per_class: int | None
    test: int = 0
    load_public: Callable[[], ClassData] | None = None
    scaled: bool = False

    @property
    def shifted(self) -> bool:
        """Whether public examples come from elsewhere."""
        return self.load_public is not None


@dataclass(frozen=True)
class Sample:
    """One random draw of a task; classes are the codes from 0 to ``classes`` - 1.

    Attributes
    ----------
    X_public, y_public, X_private, y_private, X_test, y_test : ndarray
    classes : int
    shifted : bool
    seed : int

    Examples
    --------
    >>> sample = draw(TASKS["digits"], seed=0)
    >>> len(sample.y_public), len(sample.y_private), len(sample.y_test), sample.classes
    (50, 1297, 450, 10)
    """

    X_public: Array
    y_public: Codes
    X_private: Array
    y_private: Codes
    X_test: Array
    y_test: Codes
    classes: int
    shifted: bool
    seed: int


def draw(task: Task, seed: int) -> Sample:
    """Draw public, private and test rows at random.

    Parameters
    ----------
    task : Task
    seed : int

    Examples
    --------
    >>> sample = draw(TASKS["digits"], seed=1)
    >>> np.bincount(sample.y_public).tolist()
    [5, 5, 5, 5, 5, 5, 5, 5, 5, 5]
    """
    rng = np.random.default_rng([4, seed])
    loaded = task.load()
    data, tested = (loaded, None) if isinstance(loaded, ClassData) else loaded
    rows = rng.permutation(len(data.y))
    if task.load_public is None:
        chosen = few_of_each(data.y, rows, task.per_class)
        public = _part(data, chosen)
        rows = rows[~np.isin(rows, chosen)]
    else:
        other = task.load_public()
        public = _part(other, few_of_each(other.y, rng.permutation(len(other.y)), task.per_class))
    test = _part(data, rows[: task.test]) if tested is None else tested
    private = _part(data, rows[task.test :])
    if task.scaled:
        public, private, test = _scaled(public, private, test)
    classes = int(data.y.max()) + 1
    return Sample(*public, *private, *test, classes, task.shifted, seed)


def few_of_each(labels: Codes, order: Places, count: int | None) -> Places:
    """The first rows of each class in some order; all rows for None."""
    if count is None:
        return order
    return np.concatenate([order[labels[order] == k][:count] for k in range(labels.max() + 1)])


def _part(data: ClassData, places: Places) -> ClassData:
    return ClassData(data.X[places], data.y[places])


def _scaled(public: ClassData, *others: ClassData) -> list[ClassData]:
    center, spread = public.X.mean(axis=0), public.X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)  # a column that is constant in public rows
    return [
        ClassData(np.clip((each.X - center) / spread, -_FAR, _FAR), each.y)
        for each in (public, *others)
    ]


@dataclass(frozen=True, eq=False)
class PlainModel:
    """A linear model without privacy, in the features that private ones have.

    Attributes
    ----------
    features : UnitRows
        From public examples.
    weights : ndarray of shape (d + 1, c)

    Examples
    --------
    >>> sample = draw(TASKS["digits"], seed=0)
    >>> model = fit_plain(sample, sample.X_public, sample.y_public, penalty=1e-3)
    >>> model.predict_proba(sample.X_test).shape
    (450, 10)
    """

    features: UnitRows
    weights: Array

    @property
    def classes_(self) -> Codes:
        """Codes of the classes."""
        return np.arange(self.weights.shape[1])

    def predict_proba(self, X: Array) -> Array:
        """Probabilities of the classes."""
        return np.asarray(softmax(self.features.rows(X) @ self.weights, axis=1))

    def predict(self, X: Array) -> Codes:
        """Predict classes."""
        return np.argmax(self.features.rows(X) @ self.weights, axis=1)


def fit_plain(sample: Sample, X: Array, y: Codes, penalty: float) -> PlainModel:
    """Fit the penalised model of some rows.

    Parameters
    ----------
    sample : Sample
        Its public examples make the features.
    X, y : ndarray
    penalty : float
        Half of it weighs the squared length of the weights against the mean loss.

    Examples
    --------
    >>> sample = draw(TASKS["digits"], seed=0)
    >>> fit_plain(sample, sample.X_private, sample.y_private, penalty=1e-4).weights.shape
    (65, 10)
    """
    features = UnitRows.of(sample.X_public, sample.y_public, sample.classes)
    rows = PublicSample(features.rows(X), y, sample.classes)
    return PlainModel(features, penalised(rows, penalty))


def error_of(model: Any, sample: Sample) -> float:
    """Share of wrong classes on the test rows.

    Examples
    --------
    >>> sample = draw(TASKS["digits"], seed=0)
    >>> error_of(fit_plain(sample, sample.X_test, sample.y_test, penalty=1e-5), sample)
    0.0
    """
    return float(np.mean(model.predict(sample.X_test) != sample.y_test))


def public_only(sample: Sample) -> float:
    """Test error of the model of public examples alone, from which the default starts.

    Examples
    --------
    >>> 0.05 < public_only(draw(TASKS["digits"], seed=0)) < 0.3
    True
    """
    return error_of(fit_plain(sample, sample.X_public, sample.y_public, PUBLIC_PENALTY), sample)


def non_private(sample: Sample) -> float:
    """Test error without privacy: of the better one of two penalties on test rows.

    Fitted to private and public rows, or to private rows alone where the task is shifted. The
    choice on test rows favours it: increases of error over it are, if anything, too large.

    Examples
    --------
    >>> non_private(draw(TASKS["digits"], seed=0)) < 0.05
    True
    """
    X, y = sample.X_private, sample.y_private
    if not sample.shifted:
        X, y = np.vstack([X, sample.X_public]), np.concatenate([y, sample.y_public])
    return min(error_of(fit_plain(sample, X, y, each), sample) for each in PENALTIES)


_office, _reviews = cache(load_office), cache(load_review_directions)
_mnist, _usps, _covertype = cache(load_mnist), cache(load_usps), cache(load_covertype)
_gas, _digits = cache(load_gas_kinds), cache(load_digit_pixels)
_AMAZON, _WEBCAM = partial(_office, "amazon"), partial(_office, "webcam")

TASKS: Mapping[str, Task] = {
    each.name: each
    for each in (
        Task("digits", "digits of scikit-learn", _digits, 5, 450),
        Task("mnist", "MNIST, 16 x 16 pixels", _mnist, 5, 500),
        Task("usps", "USPS, 16 x 16 pixels", _usps, 5, 500),
        Task("usps2", "USPS, 2 public of a class", _usps, 2, 500),
        Task("usps2mnist", "USPS (500 public) to MNIST", _mnist, 50, 500, load_public=_usps),
        Task("office", "Office amazon, GoogLeNet", _AMAZON, 5, 250),
        Task("web2ama", "webcam (public) to amazon", _AMAZON, None, 250, load_public=_WEBCAM),
        Task("surf-amazon", "Office amazon, SURF", partial(_office, "amazon", "surf"), 5, 250),
        Task("surf-caltech", "Caltech 10, SURF", partial(_office, "caltech10", "surf"), 5, 250),
        Task("reviews", "kitchen reviews", partial(_reviews, "kitchen"), 25),
        Task("covtype5", "CoverType, 5 public of a class", _covertype, 5, 3000, scaled=True),
        Task("covtype50", "CoverType, 50 public of a class", _covertype, 50, 3000, scaled=True),
        Task("gas", "which gas, 10 public of a class", _gas, 10, 1500, scaled=True),
    )
}
