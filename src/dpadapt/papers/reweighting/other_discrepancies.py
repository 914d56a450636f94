r"""Other forms of the discrepancy that the paper names: one-sided, local, without labels.

* *one-sided*: how much larger the private loss can be, not how different; the learning bound needs
  no more than that.
* *local*: over a ball around a model that is public or released (the paper: around a minimiser)
  instead of all models; smaller, and valid for models in that ball.
* *without labels*: over pairs of models, one of which gives the labels of the other, for private
  rows that have none: :math:`4 \Lambda^2 \|M_{priv} - M_{pub}\|_2`, of second moments. It
  takes the place of :math:`\hat d` in the paper's objective where both domains label alike.

All are functions of second moments, which may be released ones: then they cost nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate

from .labelled_discrepancy import ball_maximum

__all__ = ["local_discrepancy", "one_sided_discrepancy", "unlabelled_discrepancy"]


def one_sided_discrepancy(public: npt.ArrayLike, private: npt.ArrayLike, radius: float) -> float:
    r""":math:`\sup_w L_{priv}(w) - L_{pub}(w)` over the ball, at least 0 where some w attains it.

    Parameters
    ----------
    public, private : array-like of shape (d + 1, d + 1)
        As of :func:`~.labelled_discrepancy.labelled_moment`.
    radius : float
        :math:`\Lambda`.

    Examples
    --------
    Private labels of twice the size are harder, not easier:

    >>> public, private = np.diag([1.0, 1.0]), np.diag([1.0, 4.0])
    >>> one_sided_discrepancy(public, private, 1.0), one_sided_discrepancy(private, public, 1.0)
    (3.0, -3.0)
    """
    return local_discrepancy(public, private, None, radius, one_sided=True)


def local_discrepancy(
    public: npt.ArrayLike,
    private: npt.ArrayLike,
    center: npt.ArrayLike | None,
    radius: float,
    *,
    one_sided: bool = False,
) -> float:
    r"""The labelled discrepancy over the ball of this radius around a model.

    Parameters
    ----------
    public, private : array-like of shape (d + 1, d + 1)
        As of :func:`~.labelled_discrepancy.labelled_moment`.
    center : array-like of shape (d,), optional
        A model that is public or released; by default 0, which makes it the global one.
    radius : float
    one_sided : bool, default=False

    Examples
    --------
    >>> from dpadapt.papers.reweighting.labelled_discrepancy import labelled_discrepancy
    >>> public, private = np.diag([1.0, 1.0]), np.diag([2.0, 1.0])
    >>> round(local_discrepancy(public, private, [0.0], 2.0), 9)
    4.0
    >>> round(labelled_discrepancy(public, private, 2.0), 9)
    4.0
    >>> round(local_discrepancy(public, private, [0.5], 0.5), 9)  # w in [0, 1]
    1.0
    """
    change = np.asarray(private, dtype=np.float64) - np.asarray(public, dtype=np.float64)
    if change.ndim != 2 or change.shape[0] != change.shape[1] or len(change) < 2:
        raise ValueError("public and private must be square moments of rows with their labels.")
    A, b, c = change[:-1, :-1], change[:-1, -1], float(change[-1, -1])
    at = np.zeros(len(b)) if center is None else np.asarray(center, dtype=np.float64)
    if at.shape != b.shape:
        raise ValueError(f"center must have {len(b)} coefficients; got shape {at.shape}.")
    validate.positive("radius", radius)
    moved, constant = b - A @ at, float(at @ A @ at - 2 * b @ at) + c
    up = ball_maximum(A, moved, constant, radius).value
    return up if one_sided else max(up, ball_maximum(-A, -moved, -constant, radius).value)


def unlabelled_discrepancy(public: npt.ArrayLike, private: npt.ArrayLike, radius: float) -> float:
    r""":math:`4 \Lambda^2 \|M_{priv} - M_{pub}\|_2`, of two moments of rows alone.

    Examples
    --------
    >>> unlabelled_discrepancy(np.eye(2), np.diag([1.5, 1.0]), 1.0)
    2.0
    """
    change = np.asarray(private, dtype=np.float64) - np.asarray(public, dtype=np.float64)
    return float(4 * validate.positive("radius", radius) ** 2 * np.linalg.norm(change, 2))
