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

from dpadapt.privacy import Grant, Hidden, Request, SecondMoment, Session

from .frank_wolfe import public_rows, weighted_moment
from .smoothing import Array, Bounds

__all__ = ["choose_weights", "weights_request"]


def weights_request(session: Session, query: SecondMoment, X: npt.ArrayLike) -> Request:
    r"""Ask for a choice among weights on the hold-out part of a session that was split.

    Range sensitivity. Replacing x by x' moves :math:`M_{val}` by
    :math:`(x x^T - x' x'^T) / n_{val}`, of norm at most :math:`r^2 / n_{val}`; so every candidate's
    discrepancy moves by at most that much, one up and another down, and the difference of two by
    at most :math:`2 r^2 / n_{val}` (attained), whatever the number of candidates.

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
    ...     (grant,) = session.plan(holdout=[weights_request(session, query, X)])
    ...     moment = session.hide(query, "holdout")
    ...     best = choose_weights(session, grant, moment, X, candidates)
    >>> candidates[best]
    array([0.9, 0.1])
    """
    n_holdout = session.size("holdout")
    if n_holdout < 1:
        raise ValueError("session must be split first, with at least one row in the hold-out part.")
    bounds = Bounds.of(query, public_rows(X), n_holdout)
    return Request("noisy-argmin", "choice of weights", 2 * bounds.move)


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
        Of :func:`weights_request`.
    moment : Hidden
        The second moment of the hold-out part.
    X : array-like of shape (m, d)
    candidates : sequence of arrays of shape (m,)
        Weights in the simplex, not computed from the hold-out part.

    Examples
    --------
    See :func:`weights_request`.

    >>> callable(choose_weights)
    True
    """
    rows = public_rows(X)
    moments = [weighted_moment(rows, np.asarray(q, dtype=float)) for q in candidates]
    if not moments:
        raise ValueError("candidates must hold at least one set of weights.")

    def discrepancies(target: Array) -> Array:
        return np.array([np.linalg.norm(target - each, 2) for each in moments])

    return session.noisy_argmin(grant, moment, discrepancies)
