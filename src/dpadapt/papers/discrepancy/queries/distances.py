r"""How far one private row moves the discrepancy :math:`\|M_0 - S(q)\|_2` of public weights q."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.discrepancy.minimisation import discrepancy
from dpadapt.privacy import Hidden, Session
from dpadapt.privacy.statistics import SecondMoment

from .bounds import RowBounds


def discrepancy_move(query: SecondMoment, X: FloatArray, n_rows: int) -> float:
    r"""Sensitivity of the discrepancy of public rows X with public weights.

    Replacing x by x' moves M(q) by :math:`(x x^T - x' x'^T) / n`, which lies between
    :math:`-x' x'^T / n` and :math:`x x^T / n`: the norm moves by :math:`r^2 / n` at most (attained
    where the public weights sit at zero and x' = 0), and by what rounding adds.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> round(discrepancy_move(SecondMoment(Cleaning(radius=2.0)), np.eye(2), 100), 6)
    0.04
    """
    r = math.sqrt(query.magnitude)
    longest = max(r, float(np.linalg.norm(X, axis=1).max()))  # zero rows need no rule of their own
    return RowBounds(r, longest, n_rows).move


def hidden_discrepancy(
    session: Session, moment: Hidden, X: FloatArray, weights: FloatArray
) -> Hidden:
    """Hide the discrepancy of given weights, for Gaussian noise: :func:`discrepancy_move`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_discrepancy(session, moment, np.eye(2), np.array([0.5, 0.5]))
    >>> round(found.sensitivity, 6)
    0.1
    """
    return session.derive(
        moment,
        lambda target: discrepancy(X, weights, target),
        label="discrepancy",
        sensitivity=discrepancy_move(moment.statistic, X, session.size(moment.part)),
    )


def hidden_discrepancies(
    session: Session, moment: Hidden, moments: Sequence[FloatArray], bounds: RowBounds
) -> Hidden:
    r"""Hide the discrepancies of several weights, by their moments S(q), to choose the least.

    Every one moves by at most :math:`r^2 / n` (:func:`discrepancy_move`), one up and another down,
    and the difference of two by at most :math:`2 r^2 / n` (attained), whatever the number of
    candidates.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     both = [np.eye(2) / 2, np.diag([1.0, 0.0])]
    ...     found = hidden_discrepancies(session, moment, both, RowBounds(1.0, 1.0, 10))
    >>> found.shape, round(found.sensitivity, 6)
    ((2,), 0.2)
    """
    return session.derive(
        moment,
        lambda target: np.array([np.linalg.norm(target - each, 2) for each in moments]),
        label="choice of weights",
        sensitivity=choice_range(bounds),
    )


def choice_range(bounds: RowBounds) -> float:
    """Twice how far one row moves a discrepancy: one may rise while another falls.

    Examples
    --------
    >>> round(choice_range(RowBounds(1.0, 1.0, 10)), 6)
    0.2
    """
    return 2 * bounds.move
