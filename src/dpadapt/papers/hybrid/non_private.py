r"""Algorithm 1 of paper 003: Subsample-Test-Reweigh WITHOUT privacy, on plain arrays.

For experiments and for comparison only: rows, labels and weights lie open.
:class:`~dpadapt.hybrid.SubsampleTestReweigh` is the private method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.softmax import softmax

Predict = Callable[[Any], Any]


@dataclass(frozen=True)
class NonPrivateRun:
    """What the non-private algorithm found.

    Attributes
    ----------
    rule : callable
        h: from rows to labels. The one that passed the test, else the best one seen.
    estimates : tuple of float
        a^t: answers of the oracle, round by round.
    halted : bool
        Whether a rule passed the test.
    weights : ndarray of shape (n,)
        The last distribution over the rows.

    Examples
    --------
    >>> NonPrivateRun(np.sign, (0.3, 0.1), halted=True, weights=np.full(2, 0.5)).rounds
    2
    """

    rule: Predict
    estimates: tuple[float, ...]
    halted: bool
    weights: FloatArray

    @property
    def rounds(self) -> int:
        """Rounds that were run."""
        return len(self.estimates)


def non_private_subsample_test_reweigh(
    X: Any,
    y: Any,
    learner: Callable[[Any, Any, FloatArray], Predict],
    oracle: Callable[[Predict], float],
    *,
    threshold: float,
    rounds: int,
    rate: float = 0.2,
    draws: int | None = None,
    loss: Callable[[Predict, Any, Any], Any] | None = None,
    random_state: int | None = None,
) -> NonPrivateRun:
    r"""Learn for a target that only answers questions, from rows of another source. Not private.

    In each round: a rule from the weighted rows; if the target's mean loss of it is at most the
    threshold it is returned; else :math:`w_i \leftarrow w_i e^{-\eta (1 - L(h(x_i), y_i))}`.

    Parameters
    ----------
    X, y : arrays with n rows
    learner : callable
        M: from (rows, labels, weights that sum to 1) to a function that predicts labels.
    oracle : callable
        From such a function to its mean loss on the target (the paper's SQ oracle).
    threshold : float
        2 alpha + tau, and the error of the best hypothesis if none is perfect.
    rounds : int
        T.
    rate : float, default=0.2
        eta; the theorem's is alpha / 8, which takes some thousand rounds.
    draws : int, optional
        m: rows drawn for the learner, who then gets equal weights. By default it gets them all.
    loss : callable, optional
        From (rule, X, y) to losses in [0, 1]. By default 1 for a mistake.
    random_state : int, optional

    Examples
    --------
    The source is dense where the target is not; labels follow a threshold at 2:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(4000, 1))
    >>> y, target = X[:, 0] > 2, rng.uniform(1.5, 2.5, size=(4000, 1))
    >>> def stump(X, y, weights):
    ...     cuts = np.linspace(0, 4, 41)
    ...     errors = [weights @ ((X[:, 0] > cut) != y) + 0.3 * abs(cut - 1) for cut in cuts]
    ...     return lambda rows: rows[:, 0] > cuts[np.argmin(errors)]
    >>> oracle = lambda rule: np.mean(rule(target) != (target[:, 0] > 2))
    >>> run = non_private_subsample_test_reweigh(X, y, stump, oracle, threshold=0.05, rounds=90)
    >>> run.halted, run.estimates[0] > 0.05
    (True, True)
    """
    validate.count("rounds", rounds)
    validate.positive("rate", rate)
    if draws is not None:
        validate.count("draws", draws)
    X, y = np.asarray(X), np.asarray(y)
    rng = np.random.default_rng(random_state)
    logs = np.zeros(len(X))
    estimates: list[float] = []
    best: tuple[float, Predict] | None = None
    for _ in range(rounds):
        weights = softmax(logs)
        rule = _subsample(learner, X, y, weights, draws, rng)
        estimates.append(float(oracle(rule)))
        if best is None or estimates[-1] < best[0]:
            best = estimates[-1], rule
        if estimates[-1] <= threshold:
            return NonPrivateRun(rule, tuple(estimates), True, weights)
        found = rule(X) != y if loss is None else loss(rule, X, y)
        logs -= rate * (1 - np.clip(np.asarray(found, dtype=np.float64), 0.0, 1.0))
    assert best is not None  # there is one round at least
    return NonPrivateRun(best[1], tuple(estimates), False, weights)


def _subsample(
    learner: Callable[[Any, Any, FloatArray], Predict],
    X: Any,
    y: Any,
    weights: FloatArray,
    draws: int | None,
    rng: np.random.Generator,
) -> Predict:
    if draws is None:
        return learner(X, y, weights)
    ladder = np.cumsum(weights)
    drawn = np.searchsorted(ladder, rng.random(draws) * ladder[-1], side="right")
    drawn = np.minimum(drawn, len(X) - 1)
    return learner(X[drawn], y[drawn], np.full(draws, 1 / draws))
