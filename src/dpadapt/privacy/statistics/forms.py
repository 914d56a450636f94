"""Four forms of what a row gives: bounded, summed and priced here, so that a method claims nothing.

A method hands over a public function of cleaned rows and labels, which answers with one entry for
each row. Whatever the answer is (too long, no number, of rows on which it fails), what is summed
lies within the bound of the form, and the sensitivity follows from the form and from public numbers
alone. A function that is not known to treat every row on its own is given one row a call
(:mod:`dpadapt.privacy.rows.foreign`), with fresh state, so that no answer can mix rows, unless the
function keeps rows in variables of a module or a class; the guarantee says so, and names it. A
function in a file of this library is given blocks: that it mixes no rows is for tests to show.

==================== =============================== ================================
form                 what a row adds                 the mean of n moves by at most
==================== =============================== ================================
:class:`MeanVector`  v, at most b from a centre      2 b / n
:class:`MeanProduct` z c', its length at most b      2 b / n
:class:`MeanOuter`   z z', with a z of length b      sqrt(2) b^2 / n
:class:`Histogram`   1 in one cell of each of g rows sqrt(2 g) / n
==================== =============================== ================================

The second moment of rows with a constant is a case of the third that is known more tightly:
:class:`~dpadapt.privacy.statistics.SecondMoment`. Nobody can make a form of his own: a subclass is
refused, and so is a map of rows that is not of this package. What is none of these forms is a
:class:`~dpadapt.privacy.RowMean` with a claim and a proof of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray

from ... import _validate
from ..core.cleaning import RowMap, shrink_factors
from ..core.statistic import RowMean
from ..rows.foreign import apply
from ..rows.row_wise import row_wise
from ..rows.total import by_rows, taken
from .prepared import LEAST_LENGTH, Prepared, check_map, lengths_of

Function = Callable[[FloatArray, FloatArray], Any]


class _Form(RowMean):
    """A sum that the core takes of what rows give; its subclasses are all in this file.

    Where the sample has no labels, a function is given labels that are no numbers.
    """

    def __init_subclass__(cls, **facts: Any) -> None:
        if cls.__module__ != __name__:
            raise TypeError(
                "a form cannot be changed: make one with a function of your own, or subclass "
                "RowMean and prove its sensitivity."
            )
        super().__init_subclass__(**facts)

    def _check(self, **bounds: float) -> None:
        check_map(self.cleaning)
        for name, bound in bounds.items():
            if not 0 <= bound < math.inf:
                raise ValueError(f"{name} must be a finite number, at least 0; got {bound!r}.")

    def _answers(
        self, function: Function, X: FloatArray, y: FloatArray | None, width: int
    ) -> FloatArray:
        """One row of numbers for each row, those of a row on which the function fails being 0."""
        labels = np.full(len(X), np.nan) if y is None else y

        def finish(found: Any, count: int) -> tuple[FloatArray]:
            given = np.asarray(found, dtype=np.float64)
            if given.shape == (count,) and width == 1:
                given = given[:, None]
            if given.shape != (count, width):
                raise ValueError(f"the function must give {width} numbers for each row.")
            return (given,)

        if row_wise(function):
            rows, marks = X.view(), labels.view()
            rows.flags.writeable = marks.flags.writeable = False  # what it changed would be summed

            def call(places: Any) -> tuple[FloatArray]:
                count = len(X) if places is None else len(places)
                return finish(function(taken(rows, places), taken(marks, places)), count)

            results, failed = by_rows(call, len(X))
        else:
            results, failed = apply(function, (X, labels), len(X), finish)
        if results is None:
            return np.zeros((len(X), width))
        if failed.any():
            return np.where(failed[:, None], 0.0, results[0])
        return np.asarray(results[0])


@dataclass(frozen=True, eq=False)
class MeanVector(_Form):
    r"""Mean of a vector of each row, which lies within a public distance of a public centre.

    With m the centre, in every column, a row adds :math:`m + s (v - m)`, s being at most 1 and such
    that :math:`s |v - m| \le b`. A number that is not finite counts as 0.

    Sensitivity under replace-one. Two points of a ball of radius b are 2b apart at most, so the
    mean of n moves by 2b / n; attained by opposite points.

    Parameters
    ----------
    cleaning : RowMap
    function : callable
        From cleaned rows and labels to ``size`` numbers for each row.
    size : int
    bound : float
        b.
    label : str
    centre : float, default=0.0
        m.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = MeanVector(Cleaning(99.0), lambda X, y: X, size=2, bound=1.0)
    >>> query.block(np.array([[3.0, 4.0]]), None).round(6), query.sensitivity(10)
    (array([0.6, 0.8]), 0.2)
    """

    cleaning: RowMap
    function: Function
    size: int
    bound: float
    label: str = "mean vector"
    centre: float = 0.0

    def __post_init__(self) -> None:
        self._check(bound=self.bound)
        _validate.count("size", self.size)

    @property
    def magnitude(self) -> float:
        """|m| + b."""
        return abs(self.centre) * math.sqrt(self.size) + self.bound

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One vector."""
        return (self.size,)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the bounded vectors."""
        given = finite_rows(self._answers(self.function, X, y, self.size))
        if self.size == 1:
            near = np.clip(given, self.centre - self.bound, self.centre + self.bound)
        elif self.centre:
            near = self.centre + shrunk_rows(given - self.centre, self.bound)
        else:
            near = shrunk_rows(given, self.bound)
        return np.asarray(near.sum(axis=0))

    def sensitivity(self, n_rows: int) -> float:
        """2b / n."""
        return 2 * self.bound / n_rows


def mean_number(
    cleaning: RowMap, function: Function, low: float, high: float, label: str = "mean number"
) -> MeanVector:
    """Mean of a number of each row, cut to an interval: a vector of one number.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = mean_number(Cleaning(9.0), lambda X, y: X[:, 0] - y, -1.0, 1.0)
    >>> query.block(np.array([[5.0], [0.5]]), np.zeros(2)), query.sensitivity(10)
    (array([1.5]), 0.2)
    """
    return MeanVector(cleaning, function, 1, (high - low) / 2, label, centre=(low + high) / 2)


@dataclass(frozen=True, eq=False)
class MeanProduct(_Form):
    r"""Mean of a coefficient times the row: gradients of whatever depends on a product with it.

    With z the first ``features`` columns of the cleaned row, a row adds :math:`s\, z c'`, s being
    at most 1 and such that :math:`s |z| |c| \le b`. A coefficient that is not finite counts as 0.

    Sensitivity under replace-one. The Frobenius norm of z c' is |z| |c|, which s brings to b at
    most, whatever the row and its label are. The sum of n rows moves by 2b, the mean by 2b / n;
    attained by rows with the same z and opposite coefficients.

    Lengths are taken here, and not by the function: in every pass, or once, by a
    :class:`Prepared` that measures as many columns.

    Parameters
    ----------
    cleaning : RowMap
    function : callable
        From cleaned rows and labels to ``outputs`` numbers for each row.
    features, outputs : int
    bound : float
        b; infinite for public rows.
    label : str

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = MeanProduct(Cleaning(9.0), lambda X, y: X[:, 0] - y, 1, 1, bound=0.5)
    >>> query.block(np.array([[1.0], [0.1]]), np.array([-9.0, 1.0])).round(6)
    array([[0.41]])
    >>> query.sensitivity(10)
    0.1
    """

    cleaning: RowMap
    function: Function
    features: int
    outputs: int
    bound: float
    label: str = "clipped gradient"

    def __post_init__(self) -> None:
        self._check()
        if not self.bound > 0:
            raise ValueError(f"bound must be positive; got {self.bound!r}.")

    @property
    def magnitude(self) -> float:
        """B."""
        return self.bound

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Features and outputs."""
        return (self.features, self.outputs)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of the products."""
        Z = X[:, : self.features].astype(np.float64, copy=False)  # lengths in few bits are short
        measured = type(self.cleaning) is Prepared and self.cleaning.measured == self.features
        lengths = X[:, -1] if measured else lengths_of(Z)
        given = self._answers(self.function, X, y, self.outputs)
        return np.asarray(Z.T @ clipped(given, lengths, self.bound))

    def sensitivity(self, n_rows: int) -> float:
        """2b / n."""
        return 2 * self.bound / n_rows


@dataclass(frozen=True, eq=False)
class MeanOuter(_Form):
    r"""Mean of z z', z being the cleaned row with its label, of a public length at most.

    Frobenius sensitivity under replace-one: with |z| <= b for both rows,

    .. math:: \|z z' - w w'\|_F^2 = |z|^4 + |w|^4 - 2 (z \cdot w)^2 \le 2 b^4,

    so the mean moves by :math:`\sqrt2\,b^2 / n` at most, attained by orthogonal rows of full
    length. Longer rows are shrunk.

    Parameters
    ----------
    cleaning : RowMap
        Gives the rows and labels.
    width : int
        Entries of z, the label among them.
    bound : float
        b.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = MeanOuter(Cleaning(1.0, label_range=(-1.0, 1.0)), width=2, bound=2.0)
    >>> query.block(np.array([[1.0], [0.5]]), np.array([1.0, -1.0]))
    array([[1.25, 0.5 ],
           [0.5 , 2.  ]])
    >>> round(query.sensitivity(100) / math.sqrt(2), 9)
    0.04
    """

    reads_labels: ClassVar[bool] = True
    cleaning: RowMap
    width: int
    bound: float
    label: str = "labelled second moment"

    def __post_init__(self) -> None:
        self._check(bound=self.bound)

    @property
    def magnitude(self) -> float:
        """b^2."""
        return self.bound**2

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Square."""
        return (self.width, self.width)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Sum of z z'."""
        Z = finite_rows(np.column_stack([X, np.zeros(len(X)) if y is None else y]))
        long = np.einsum("ij,ij->i", Z, Z) > (self.bound * (1 - 1e-12)) ** 2
        if long.any():
            Z = np.where(long[:, None], shrunk_rows(Z, self.bound), Z)
        return np.asarray(Z.T @ Z)

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, in the Frobenius norm."""
        return math.sqrt(2) * self.bound**2 / n_rows


@dataclass(frozen=True, eq=False)
class Histogram(_Form):
    r"""Share of the rows in each cell, for one partition of the rows or several.

    A row counts 1 in one cell of each of g partitions, whatever the function says: places below 0
    are the first cell, those beyond the last one are the last, what is no number is 0.

    Sensitivity under replace-one. In each partition one count falls by 1 and another one rises by
    1, or none changes: the shares move by :math:`\sqrt{2 g} / n` at most, however many cells there
    are; attained by rows that share no cell.

    Parameters
    ----------
    cleaning : RowMap
    function : callable
        From cleaned rows and labels to g places for each row.
    cells : int
    groups : int, default=1
        g.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = Histogram(Cleaning(9.0), lambda X, y: np.searchsorted([0.0, 1.0], X[:, 0]), 3)
    >>> query.block(np.array([[-5.0], [0.5], [0.7]]), None), round(query.sensitivity(10), 6)
    (array([1., 2., 0.]), 0.141421)
    """

    cleaning: RowMap
    function: Function
    cells: int
    groups: int = 1
    label: str = "histogram"

    def __post_init__(self) -> None:
        self._check()
        for name in ("cells", "groups"):
            _validate.count(name, getattr(self, name))

    @property
    def magnitude(self) -> float:
        """Length of what one row adds."""
        return math.sqrt(self.groups)

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """The cells; of several partitions, a row for each."""
        return (self.cells,) if self.groups == 1 else (self.groups, self.cells)

    def block(self, X: FloatArray, y: FloatArray | None) -> FloatArray:
        """Number of rows in each cell."""
        given = self._answers(self.function, X, y, self.groups)
        places = np.clip(np.where(np.isnan(given), 0.0, given), 0, self.cells - 1).astype(np.intp)
        counts = [np.bincount(each, minlength=self.cells) for each in places.T]
        return np.array(counts, dtype=np.float64).reshape(self.shape(0))

    def sensitivity(self, n_rows: int) -> float:
        """Of the shares, in the Euclidean norm."""
        return math.sqrt(2 * self.groups) / n_rows


def histogram(
    cleaning: RowMap, function: Function, edges: FloatArray, label: str = "histogram"
) -> Histogram:
    """Histogram of a number of each row; one that is not finite is 0.

    Parameters
    ----------
    cleaning : RowMap
    function : callable
        From cleaned rows and labels to one number for each row.
    edges : ndarray
        In ascending order; a cell is closed to the right, the first one and the last one are open.
    label : str

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = histogram(Cleaning(9.0), lambda X, y: X[:, 0], np.array([0.0, 1.0]))
    >>> query.block(np.array([[-5.0], [0.5], [0.7]]), None), round(query.sensitivity(10), 6)
    (array([1., 2., 0.]), 0.141421)
    """
    return Histogram(cleaning, partial(_cells_of, edges, function), len(edges) + 1, label=label)


def _cells_of(edges: FloatArray, function: Function, X: FloatArray, y: FloatArray) -> Any:
    return np.searchsorted(edges, finite_rows(np.asarray(function(X, y), dtype=np.float64)))


def clipped(coefficients: FloatArray, lengths: FloatArray, clip: float) -> FloatArray:
    """Coefficients shrunk so that the length of each, times that of its row, is at most the clip.

    Examples
    --------
    >>> clipped(np.array([[3.0, 4.0], [np.nan, 0.0]]), np.array([2.0, 1.0]), 5.0).round(6)
    array([[1.5, 2. ],
           [0. , 0. ]])
    """
    with np.errstate(all="ignore"):
        if coefficients.shape[1] == 1:
            size = np.abs(coefficients[:, 0])
        else:
            size = np.sqrt(reduce(np.add, (coefficients * coefficients).T))
            np.maximum(size, LEAST_LENGTH, out=size)  # squares of smaller numbers underflow
        size *= lengths
        cut = coefficients * shrink_factors(size, clip)[:, None]
    finite = np.isfinite(size)  # else a length overflows, or is none
    if not finite.all():
        cut[~finite] = 0.0
    return np.asarray(cut)


def shrunk_rows(vectors: FloatArray, length: float) -> FloatArray:
    """Finite rows shrunk to a length at most.

    Examples
    --------
    >>> shrunk_rows(np.array([[3e200, 4e200], [0.0, 0.5]]), 1.0).round(6)
    array([[0.6, 0.8],
           [0. , 0.5]])
    """
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), 1e-300)
    direction = vectors / largest  # no square of it overflows
    norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", direction, direction)), 1.0)[:, None]
    return np.asarray(direction * np.minimum(largest, length * shrink_factors(norms, 1.0)))


def finite_rows(values: FloatArray) -> FloatArray:
    """The same with 0 in place of what is not finite.

    Examples
    --------
    >>> finite_rows(np.array([[np.nan, 1.0]]))
    array([[0., 1.]])
    """
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
