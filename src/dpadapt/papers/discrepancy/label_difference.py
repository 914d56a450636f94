r"""The output-label discrepancy of two labelled samples: the paper's :math:`\eta_H`.

.. math:: \eta_H(S, T) = \min_{\|w\| \le \Lambda} \max_S |y - w \cdot x| + \max_T |y - w \cdot x|

is 0 where one linear function of norm :math:`\Lambda` gives all labels of both samples; it is what
no bound can do without. Private labels tell it, and they are what discrepancy minimisation does not
have: :func:`label_difference` is for samples that may be looked at, and a certificate rests on what
its user states (:class:`PrivateLabels`). Public rows alone can refute a statement that is too
small: :math:`\eta_H` is at least what their own best linear function leaves.

Without the ball it is a linear program. The ball is approached from outside by tangent planes, and
the rows are taken in as they are violated: each round's program, which knows some of the rows and
some of the planes, gives a lower bound, and its solution, shrunk into the ball, an upper one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from dpadapt import _validate as validate
from dpadapt._types import FloatArray

_Sample = tuple[npt.ArrayLike, npt.ArrayLike]

_ROUNDS = 200
_LOOKS = 30  # rounds that public rows get to refute a statement
_NEAR = 1.05  # the least that they allow is told up to this factor, if that is not too slow
_MORE = 20  # rows of a sample that join the program in a round: those with the largest errors
_SLACK = 1e-6  # of the largest label: what a linear program may miss


class LabelDifference(NamedTuple):
    """How far two samples are from one labelling function.

    Attributes
    ----------
    value : float
        Attained by ``model``: an upper bound.
    lower_bound : float
    model : ndarray of shape (d,)

    Examples
    --------
    >>> LabelDifference(0.5, 0.5, np.zeros(2)).value
    0.5
    """

    value: float
    lower_bound: float
    model: FloatArray


def label_difference(
    public: _Sample, private: _Sample, norm_bound: float, *, tolerance: float = 1e-6
) -> LabelDifference:
    r"""The :math:`\eta_H` of two labelled samples.

    Parameters
    ----------
    public, private : (X, y)
        Rows with an intercept column if there is to be one, and labels.
    norm_bound : float
        :math:`\Lambda`.
    tolerance : float, default=1e-6
        Between the value and its lower bound, in units of the largest label.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0]])
    >>> round(label_difference((X, [1.0, 2.0]), (X, [1.0, 2.0]), 5.0).value, 6)
    0.0
    >>> round(label_difference((X, [1.0, 2.0]), (X, [-1.0, -2.0]), 5.0).value, 6)
    4.0
    """
    validate.positive("norm_bound", norm_bound)
    validate.positive("tolerance", tolerance)
    (X, y), (T, t) = (_checked(name, s) for name, s in (("public", public), ("private", private)))
    d = X.shape[1]
    if T.shape[1] != d:
        raise ValueError(f"private must have the {d} columns of public; got {T.shape[1]}.")
    unit = max(float(np.abs(y).max()), float(np.abs(t).max()), 1e-300)
    found = LabelDifference(math.inf, 0.0, np.zeros(d))
    for found in _narrowed(((X, y), (T, t)), norm_bound, _ROUNDS):
        if found.value - found.lower_bound <= tolerance * unit:
            break
    return found


def least_difference(
    rows: FloatArray, labels: FloatArray, norm_bound: float, *, stated: float
) -> float | None:
    r"""What public rows show :math:`\eta_H` to be at least, if that is more than was stated.

    Examples
    --------
    Labels of -1 and 1 on the same row are 1 away from every function.

    >>> rows, labels = np.ones((2, 1)), np.array([-1.0, 1.0])
    >>> least_difference(rows, labels, 1.0, stated=1.0)
    >>> round(least_difference(rows, labels, 1.0, stated=0.5), 6)
    1.0
    """
    nobody = np.zeros((1, rows.shape[1])), np.zeros(1)
    stated = stated + _SLACK * float(np.abs(labels).max())
    least = 0.0
    for found in _narrowed(((rows, labels), nobody), norm_bound, _LOOKS):
        least = found.lower_bound
        if found.value <= stated or (least > stated and found.value < _NEAR * least):
            break
    return least if least > stated else None


def _narrowed(
    samples: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    norm_bound: float,
    rounds: int,
) -> Iterator[LabelDifference]:
    """What is known after 0, 1, ... rounds: bounds that come nearer to each other."""
    d = samples[0][0].shape[1]
    program, model, lower = _Program(d, norm_bound), np.zeros(d), 0.0
    errors = _errors(samples, model)
    best = sum(float(each.max()) for each in errors)
    yield LabelDifference(best, lower, model)
    for _ in range(rounds):
        for side, ((rows, labels), missed) in enumerate(zip(samples, errors, strict=True)):
            worst = np.argsort(missed)[-_MORE:]
            program.add_rows(rows[worst], labels[worst], side)
        solved = program.solve()
        if solved is None:  # a solver that stopped: what is known stands
            return
        w, value = solved
        lower, length = max(lower, value), float(np.linalg.norm(w))
        errors = _errors(samples, w)
        inside = w if length <= norm_bound else w * (norm_bound / length)
        reached = sum(float(each.max()) for each in _errors(samples, inside))
        if reached < best:
            best, model = reached, inside
        yield LabelDifference(best, min(lower, best), model)
        if length > norm_bound:
            program.add_plane(w / length)


def _errors(samples: tuple[tuple[FloatArray, FloatArray], ...], w: FloatArray) -> list[FloatArray]:
    return [np.abs(rows @ w - labels) for rows, labels in samples]


class _Program:
    """Least sum of the two largest errors over some of the rows, within some of the planes."""

    def __init__(self, d: int, norm_bound: float) -> None:
        self.d, self.norm_bound = d, norm_bound
        self.lines: list[FloatArray] = []
        self.limits: list[float] = []

    def add_rows(self, rows: FloatArray, labels: FloatArray, side: int) -> None:
        """Bound the errors of these rows by the largest error of their sample."""
        largest = -np.eye(2)[side]
        for x, y in zip(rows, labels, strict=True):
            self.lines += [np.append(x, largest), np.append(-x, largest)]
            self.limits += [float(y), -float(y)]

    def add_plane(self, direction: FloatArray) -> None:
        """Keep to the side of the ball of its tangent plane in this direction."""
        self.lines.append(np.append(direction, [0.0, 0.0]))
        self.limits.append(self.norm_bound)

    def solve(self) -> tuple[FloatArray, float] | None:
        """Coefficients and value; None if the solver stopped."""
        cost = np.append(np.zeros(self.d), [1.0, 1.0])
        box = [(-self.norm_bound, self.norm_bound)] * self.d + [(0, None)] * 2
        found = linprog(cost, np.array(self.lines), np.array(self.limits), bounds=box)
        if found.x is None or found.fun is None:
            return None
        return np.asarray(found.x[: self.d]), float(found.fun)


def _checked(name: str, sample: _Sample) -> tuple[FloatArray, FloatArray]:
    X, y = (np.asarray(part, dtype=np.float64) for part in sample)
    if X.ndim != 2 or not X.size or y.shape != X.shape[:1] or not np.isfinite(X).all():
        raise ValueError(f"{name} must be rows of finite numbers, and a label for each.")
    if not np.isfinite(y).all():
        raise ValueError(f"{name} must have finite labels.")
    return X, y
