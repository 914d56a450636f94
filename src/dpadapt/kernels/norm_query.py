"""The norm of a private model on the span of a pool, with its sensitivity."""

from __future__ import annotations

import math

import numpy as np

from dpadapt.privacy import Hidden, Session

from .constants import Bounds
from .pool import Pool
from .queries import whitened_sensitivity

__all__ = ["norm_at_pool"]


def norm_at_pool(session: Session, hidden: Hidden, pool: Pool, bounds: Bounds) -> Hidden:
    r"""Norm of w* on the span of the pool, \|L^{-1} p\|: it moves by no more than that vector does.

    \|\|c\| - \|c'\|\| <= \|c - c'\|, bounded by :func:`.queries.whitened_sensitivity`; attained
    where c' is a multiple of c. (Erratum: the paper takes \|w*\| to be public.)

    Parameters
    ----------
    session, hidden, pool, bounds
        As in :func:`.queries.whitened`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> session = Private(np.eye(2)).open(epsilon=1.0, delta=1e-6)
    >>> hidden = session.hide(Rows(Cleaning(radius=1.0)))
    >>> norm_at_pool(session, hidden, Pool.of(np.eye(2)), Bounds(0.1, norm=1.0)).shape
    (1,)
    """
    claim = whitened_sensitivity(pool, bounds, math.prod(hidden.shape[1:]))
    length = lambda p: np.array([np.linalg.norm(pool.whiten(p))])  # noqa: E731
    return session.derive(hidden, length, label="norm of the model", sensitivity=claim)
