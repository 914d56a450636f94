"""Learners of paper 003's non-private experiments: a hard separator, and an ellipse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoxedHinge", "HardMargin", "subsample_size"]

Array = NDArray[Any]
Rule = Callable[[Array], Array]


def subsample_size(dimension: int, alpha: float, rounds: int) -> int:
    """Rows that the paper draws in a round: (d + ln(0.05 / T)) / alpha.

    The sign of the logarithm is the paper's; it is negative, and hardly matters.

    Examples
    --------
    >>> subsample_size(500, 0.01, 1300)
    48983
    """
    return int((dimension + np.log(0.05 / rounds)) / alpha)


@dataclass
class HardMargin:
    """Linear separator of largest margin of drawn rows (the paper's SVM with C = 1e30).

    Rows that violate the margin join a working set, on which coordinate ascent runs; rows without
    a pull leave it. The next round begins from the rows that pulled in this one and were drawn
    again. The number of turns is limited: of 49,000 rows in 500 columns about one in a thousand is
    still on the wrong side then.

    Parameters
    ----------
    draws : int
        Rows drawn in a round, with replacement.
    rng : Generator
    turns, passes, slack : int, int, float
        Of the working set; of the ascent in each turn; of the margin.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)).astype(np.float32)
    >>> y = np.where(X[:, 0] > 0.2, 1.0, -1.0).astype(np.float32)
    >>> rule = HardMargin(4000, rng)(X, y, np.full(2000, 1 / 2000))
    >>> bool(np.mean(rule(X) != y) < 0.01)
    True
    """

    draws: int
    rng: np.random.Generator
    turns: int = 12
    passes: int = 400
    slack: float = 0.05
    _set: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)
    _pulls: Array = field(default_factory=lambda: np.empty(0), repr=False)

    def __call__(self, X: Array, y: Array, weights: Array) -> Rule:
        """A rule from weighted rows."""
        from .ascent import ascend

        drawn = self.rng.multinomial(self.draws, weights) > 0
        kept = drawn[self._set]
        members, pulls = self._set[kept], self._pulls[kept]
        plane = _with_one(X[members]).T @ (pulls * y[members]).astype(X.dtype)
        for _ in range(self.turns):
            margins = y * (X @ plane[:-1] + plane[-1])
            outside = np.flatnonzero(drawn & (margins < 1 - self.slack))
            if not len(outside):
                break
            new = np.setdiff1d(outside, members)
            new = new[np.argsort(margins[new])[: 2 * X.shape[1]]]
            members = np.concatenate([members, new])
            pulls = np.concatenate([pulls, np.zeros(len(new))])
            rows = _with_one(X[members])
            squares = np.einsum("ij,ij->i", rows, rows)
            ascend(rows, y[members], squares, pulls, plane, self.passes, self.slack / 2)
            members, pulls = members[pulls > 0], pulls[pulls > 0]
        self._set, self._pulls = members, pulls
        return _linear(plane[:-1], plane[-1])


@dataclass
class BoxedHinge:
    """Ellipse by a linear rule in squares, coefficients and threshold in [0, 1] as in the paper.

    Minimises the squared hinge loss with a margin on drawn rows, from where the last round ended.

    Parameters
    ----------
    draws : int
        Rows drawn in a round, with replacement.
    rng : Generator
    margin : float, default=0.1
    steps : int, default=30
        Most steps of L-BFGS-B in a round.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> squares = rng.normal(size=(4000, 3)) ** 2
    >>> y = np.where(squares[:, 0] <= 0.5, -1.0, 1.0)
    >>> learner = BoxedHinge(4000, rng)
    >>> for _ in range(4):
    ...     rule = learner(squares, y, np.full(4000, 1 / 4000))
    >>> bool(np.mean(rule(squares) != y) < 0.02)
    True
    """

    draws: int
    rng: np.random.Generator
    margin: float = 0.1
    steps: int = 30
    _last: Array | None = field(default=None, repr=False)

    def __call__(self, X: Array, y: Array, weights: Array) -> Rule:
        """A rule from weighted rows."""
        from scipy.optimize import minimize

        counts = self.rng.multinomial(self.draws, weights)
        drawn = np.flatnonzero(counts)
        rows, labels = X[drawn], y[drawn]
        shares = (counts[drawn] / self.draws).astype(X.dtype)

        def loss(given: Array) -> tuple[float, Array]:
            scores = rows @ given[:-1].astype(rows.dtype) - rows.dtype.type(given[-1])
            gaps = np.maximum(1 - labels * scores / self.margin, 0)
            pushes = -2 * shares * gaps * labels / self.margin
            slopes = np.append((pushes @ rows).astype(np.float64), -pushes.sum(dtype=np.float64))
            # a larger scale keeps the solver's tolerances from ending the search too early
            return 1e3 * float((shares * gaps) @ gaps), 1e3 * slopes

        start = np.full(X.shape[1] + 1, 0.01) if self._last is None else self._last
        found = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)] * len(start),
            options={"maxiter": self.steps, "maxfun": 2 * self.steps, "ftol": 1e-9, "gtol": 1e-9},
        )
        self._last = found.x
        return _linear(found.x[:-1].astype(X.dtype), -found.x[-1])


def _with_one(rows: Array) -> Array:
    return np.column_stack([rows, np.ones(len(rows), dtype=rows.dtype)])


def _linear(coefficients: Array, intercept: float) -> Rule:
    def predict(X: Array) -> Array:
        return np.where(X @ coefficients + intercept > 0, 1.0, -1.0)

    return predict
