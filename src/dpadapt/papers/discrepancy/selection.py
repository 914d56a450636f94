r"""Choosing among candidate weights for an unlabelled private target.

Without private labels there is no loss to compare. What a hold-out part of the private rows does
show is how well candidate weights match it: the discrepancy :math:`\|M_{val}(q)\|_2`. Candidates
may come from anything released on the training part, with any mu, K or penalty; the choice costs no
more than the training did, because a changed row lies in one part only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpadapt.discrepancy.matrices import public_rows, weighted_moment
from dpadapt.privacy import Grant, Hidden, Session
from dpadapt.privacy.mechanisms import Exponential
from dpadapt.privacy.statistics import SecondMoment

from .queries import RowBounds, bounds_of, choice_range, hidden_discrepancies


def weights_choice(session: Session, query: SecondMoment, X: npt.ArrayLike) -> Exponential:
    """Plan a choice among weights on the hold-out part of a session that was split.

    Its range is proved in :func:`.queries.hidden_discrepancies`.

    Parameters
    ----------
    session : Session
        After ``session.split(holdout)``.
    query : SecondMoment
        As it will be hidden on the hold-out part.
    X : array-like of shape (m, d)
        Public rows, scaled and with an intercept column; their size decides what rounding adds.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> private = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000)
    >>> query, X = SecondMoment(Cleaning(radius=1.0)), np.eye(2)
    >>> candidates = [np.array([0.5, 0.5]), np.array([0.9, 0.1]), np.array([0.1, 0.9])]
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     session.split(holdout=0.5)
    ...     grants = session.plan(choice=weights_choice(session, query, X))
    ...     moment = session.hide(query, "holdout")
    ...     best = choose_weights(session, grants.choice, moment, X, candidates)
    >>> candidates[best]
    array([0.9, 0.1])
    """
    n_holdout = session.size("holdout")
    if n_holdout < 1:
        raise ValueError("session must be split first, with at least one row in the hold-out part.")
    bounds = RowBounds.of(query, public_rows(X), n_holdout)
    return Exponential("choice of weights", choice_range(bounds), part="holdout")


def choose_weights(
    session: Session,
    grant: Grant,
    moment: Hidden,
    X: npt.ArrayLike,
    candidates: Sequence[npt.ArrayLike],
) -> int:
    """Index of the candidate weights that match the hold-out rows best, up to the noise.

    Parameters
    ----------
    session : Session
    grant : Grant
        Of :func:`weights_choice`.
    moment : Hidden
        The second moment of the hold-out part.
    X : array-like of shape (m, d)
    candidates : sequence of arrays of shape (m,)
        Weights in the simplex, not computed from the hold-out part.

    Examples
    --------
    See :func:`weights_choice`.

    >>> callable(choose_weights)
    True
    """
    rows = public_rows(X)
    moments = [weighted_moment(rows, np.asarray(q, dtype=float)) for q in candidates]
    if not moments:
        raise ValueError("candidates must hold at least one set of weights.")

    bounds = bounds_of(session, moment, rows)
    found = hidden_discrepancies(session, moment, moments, bounds)
    return int(session.release(grant, found))
