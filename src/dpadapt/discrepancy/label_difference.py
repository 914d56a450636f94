r"""The output-label discrepancy of two labelled samples: the paper's :math:`\eta_H`.

.. math:: \eta_H(S, T) = \min_{\|w\| \le \Lambda} \max_S |y - w \cdot x| + \max_T |y - w \cdot x|

is 0 where one linear function of norm :math:`\Lambda` gives all labels of both samples; it is what
no bound can do without. Private labels tell it, and they are what discrepancy minimisation does not
have: this is for samples that may be looked at. ``certify(label_difference=...)`` takes the number.

Without the ball it is a linear program. The ball is approached from outside by tangent planes: each
round's program gives a lower bound, and its solution, shrunk into the ball, an upper one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from dpadapt import _validate as validate

__all__ = ["LabelDifference", "label_difference"]

Array = npt.NDArray[np.float64]
Sample = tuple[npt.ArrayLike, npt.ArrayLike]

_ROUNDS = 200


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
    model: Array


def label_difference(
    public: Sample, private: Sample, norm_bound: float, *, tolerance: float = 1e-6
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
    rows = np.vstack([X, T])
    first = np.repeat([1.0, 0.0], [len(X), len(T)])
    side = np.column_stack([first, 1 - first])  # which of the two largest errors a row bounds
    A = np.block([[rows, -side], [-rows, -side]])
    b = np.concatenate([y, t, -y, -t])
    cost = np.append(np.zeros(d), [1.0, 1.0])
    bounds = [(-norm_bound, norm_bound)] * d + [(0, None)] * 2
    unit = max(float(np.abs(b).max()), 1e-300)

    def value(w: Array) -> float:
        return float(np.abs(X @ w - y).max() + np.abs(T @ w - t).max())

    best, lower, model = value(np.zeros(d)), 0.0, np.zeros(d)
    for _ in range(_ROUNDS):
        found = linprog(cost, A_ub=A, b_ub=b, bounds=bounds, method="highs")
        if found.x is None or found.fun is None:  # a solver that stopped: what is known stands
            break
        w = np.asarray(found.x[:d])
        lower, length = max(lower, float(found.fun)), float(np.linalg.norm(w))
        inside = w if length <= norm_bound else w * (norm_bound / length)
        if value(inside) < best:
            best, model = value(inside), inside
        if length <= norm_bound or best - lower <= tolerance * unit:
            break
        A = np.vstack([A, np.append(w / length, [0.0, 0.0])])
        b = np.append(b, norm_bound)
    return LabelDifference(best, min(lower, best), model)


def _checked(name: str, sample: Sample) -> tuple[Array, Array]:
    X, y = (np.asarray(part, dtype=np.float64) for part in sample)
    if X.ndim != 2 or not X.size or y.shape != X.shape[:1] or not np.isfinite(X).all():
        raise ValueError(f"{name} must be rows of finite numbers, and a label for each.")
    if not np.isfinite(y).all():
        raise ValueError(f"{name} must have finite labels.")
    return X, y
