"""Two descents on the logistic loss: the curator's on tilted rows, the agents' on themselves."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import descend, within
from dpadapt.privacy import Grant, RowSum, Session
from dpadapt.privacy.local.poll import Poll
from dpadapt.privacy.local.randomisers import BinaryResponse
from dpadapt.privacy.statistics import Prepared

from ..queries import tilted_slope
from ..questions import Slope
from ..rules import LinearRule
from .plan import STEPS
from .ratio import Cap

_STEP, _RADIUS = 6.0, 8.0
_BATCHES = 20
_LARGEST_STEP = 3.0  # of agents
_FROM_NOTHING, _FROM_GOOD = 0.2, 0.15


def slope_noise(grant: Grant, n_rows: int, width: int) -> float:
    """Noise of the coefficients of one gradient together, in standardised units, for W = 1.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> slope_noise(Grant(Gaussian("slope"), 50.0), n_rows=10_000, width=9)
    0.045
    """
    return grant.scale / n_rows * width


def tilted_descent(
    session: Session,
    grant: Grant,
    rows: Prepared,
    start: LinearRule,
    cap: Cap,
    steps: int = STEPS,
) -> LinearRule:
    r"""Noisy gradient descent on rows that weigh at most 1; the mean of the last half of the steps.

    v <- v - 6 C^2 W / (rho n) (sum + noise), cut to norm 8 C. Rows weigh w / W here, so that the
    noise of the sum is the same for every cap, and can be planned before there is one.

    Parameters
    ----------
    session : Session
    grant : Grant
        For ``steps`` gradients at least.
    rows : Prepared
        By :func:`~dpadapt.hybrid.queries.tilted_rows`.
    start : LinearRule
    cap : Cap
    steps : int, default=25

    Examples
    --------
    >>> from dpadapt import Private
    >>> from dpadapt.hybrid.queries import tilted_rows
    >>> from dpadapt.hybrid.tilt.plan import with_share
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> start = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1))
    >>> rows = tilted_rows(start, lambda X, y: np.ones(len(X)))
    >>> private = Private(X, X[:, 0] > 0).encode([0, 1])
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     planned = with_share(session, tilted_slope(rows, np.zeros(2)), 1.0, 2, count=STEPS)
    ...     grants = session.plan(slopes=planned)
    ...     rule = tilted_descent(session, grants.slopes, rows, start, Cap.none(0.0))
    >>> bool((rule.predict(X) == (X[:, 0] > 0)).mean() > 0.95)
    True
    """
    size = _STEP * start.clip**2 * cap.weight / (cap.kept * max(1, session.n_rows))

    def slope(v: FloatArray) -> FloatArray:
        hidden = session.hide(RowSum(tilted_slope(rows, v)), keep=True)
        return np.ravel(session.release(grant, hidden))

    ball = within(_RADIUS * start.clip)
    return start.with_coefficients(descend(slope, start.coefficients, size, steps, project=ball))


def refine(poll: Poll, count: int, start: LinearRule) -> LinearRule:
    r"""Gradient descent on the agents' own loss, by their randomised directions; batch by batch.

    v <- v - a C^2 / sqrt(r) mean(messages); mean of the last half. The noise s of a coefficient of
    one batch is known in advance. From a rule that is good already a = 0.15 / (p s^2): what is
    gained grows with a, what noise costs with p (a s)^2. From nothing there is a way to go, and
    a = 0.2 / s.

    Examples
    --------
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).normal(size=(40_000, 1))
    >>> start = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1))
    >>> with Agents(X, (X[:, 0] > 0).astype(int)).open(epsilon=2.0) as poll:
    ...     rule = refine(poll, 40_000, start)
    >>> bool((rule.predict(X) == (X[:, 0] > 0)).mean() > 0.9)
    True
    """
    batch = count // _BATCHES
    contrast = BinaryResponse(poll.epsilon).contrast
    noise = 1.25 * start.clip / contrast / math.sqrt(max(1, batch))
    step = _FROM_NOTHING / noise
    if start.coefficients.any():
        step = _FROM_GOOD / (start.width * noise**2)
    size = min(_LARGEST_STEP, step) * start.clip**2
    numbers = itertools.count(1)

    def slope(v: FloatArray) -> FloatArray:
        root = math.sqrt(next(numbers))
        replies = poll.ask(Slope(start.with_coefficients(v)), batch).values
        return replies.mean(axis=0) / root if len(replies) else np.zeros_like(v)

    ball = within(_RADIUS * start.clip)
    found = descend(slope, start.coefficients, size, _BATCHES, project=ball)
    return start.with_coefficients(found)
