"""Who is asked what, and for which part of the budget: public, fixed before anything is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpadapt.privacy import RowMean, RowSum, Session
from dpadapt.privacy.local.randomisers import BinaryResponse
from dpadapt.privacy.mechanisms import Gaussian

STEPS = 25  # R, gradients of one run; the last run takes twice as many
ROUNDS = 2  # reweighings, if there are any
WIDEST_PAIRS = 16  # d above which pairs of columns are not looked at

# parts of the curator's budget (of the squared mu), the rest going to gradients
MARGINALS, PAIRS = 0.08, 0.04
# parts of what the gradients get: source's own scale, target's scale, whichever is better
PLAIN, TILTED, LAST = 0.15, 0.45, 0.40


@dataclass(frozen=True)
class AgentShares:
    """How many agents answer which question; disjoint, and fixed in advance.

    Attributes
    ----------
    moments, pairs, shape : int
        Where the target population is.
    trial : int
        Of each of the first two rules, to choose where to go on.
    round : int
        Of each reweighed rule, if there are any.
    slopes : int
        For gradients.
    verdict : int
        For all of the last candidates together; they get those of unused rounds, too.

    Examples
    --------
    >>> AgentShares.of(100_000, n_columns=8)  # doctest: +NORMALIZE_WHITESPACE
    AgentShares(moments=15000, pairs=15000, shape=4000, trial=4000, round=2000, slopes=37000,
                verdict=17000)
    >>> AgentShares.of(100_000, n_columns=50).pairs
    0
    """

    moments: int
    pairs: int
    shape: int
    trial: int
    round: int
    slopes: int
    verdict: int

    @classmethod
    def of(cls, n_agents: int, n_columns: int) -> AgentShares:
        """Shares of so many agents."""
        where = int(0.30 * n_agents)
        pairs = where // 2 if uses_pairs(n_columns) else 0
        shape, trial = int(0.04 * n_agents), int(0.04 * n_agents)
        each, slopes = int(0.02 * n_agents), int(0.37 * n_agents)
        used = where + shape + 2 * trial + ROUNDS * each + slopes
        return cls(where - pairs, pairs, shape, trial, each, slopes, n_agents - used)


def uses_pairs(n_columns: int) -> bool:
    """Whether correlations are looked at: if there are two columns, and not too many.

    Examples
    --------
    >>> uses_pairs(8), uses_pairs(50)
    (True, False)
    """
    return 2 <= n_columns <= WIDEST_PAIRS


def agents_required(n_columns: int, epsilon: float) -> int:
    r"""Agents below which the target's scales would be a guess.

    The log-scale of a column is known to about :math:`c / (0.97 \sqrt{0.4 m / d})` from m answers
    on d columns, :math:`c = 1 / (1 - 2p)`; here that is at most 1/2.

    Examples
    --------
    >>> agents_required(8, epsilon=1.0), agents_required(8, epsilon=0.5)
    (2655, 9450)
    """
    part = 0.15 if uses_pairs(n_columns) else 0.30
    contrast = BinaryResponse(epsilon).contrast
    answers = n_columns / 0.4 * (2 / (0.97 * contrast)) ** 2
    return max(200, math.ceil(answers / part))


def with_share(
    session: Session, query: RowMean, share: float, dimension: int, count: int = 1
) -> Gaussian:
    """Plan for ``count`` sums of a query, which together get a share of the squared mu.

    Examples
    --------
    >>> from dpadapt import Private
    >>> from dpadapt.privacy import Cleaning
    >>> from dpadapt.hybrid.queries import Agreements
    >>> import numpy as np
    >>> with Private([[0.0, 1.0]]).open(epsilon=1.0, delta=1e-6) as session:
    ...     planned = with_share(session, Agreements(Cleaning(1.0), np.zeros(2)), 0.5, 1, count=2)
    >>> planned.weight
    0.5
    """
    sensitivity = session.sensitivity(RowSum(query))
    weight = math.sqrt(share / count)
    return Gaussian(query.label, sensitivity, dimension, count, weight, divided=False)
