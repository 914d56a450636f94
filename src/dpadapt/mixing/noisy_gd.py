"""Algorithm 1 (NoisyGD): gradient descent on noisy sums of clipped private gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpadapt.privacy import Grant, Request, RowMap, Session

from .gradients import ClippedGradients
from .projection import GradientSpan, ProjectedGradients
from .softmax import Array

__all__ = ["NoisyGradients", "Path", "RowCount", "descend"]

_COUNT_SHARE = 0.1  # mu of a noisy count over mu of all steps: half a percent more noise
_NAME = "clipped gradients"


@dataclass(frozen=True, eq=False)
class RowCount:
    """Number of private rows that have a class.

    A row more or less changes it by 1. If one is replaced it also changes by 1 at most (a row of
    no class does not count); the bound 2 / n of the mean is safe.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = RowCount(Cleaning(radius=1.0, classes=2))
    >>> query.block(np.zeros((3, 2)), np.array([0.0, 1.0, -1.0]))
    array([2.])
    """

    cleaning: RowMap
    label: str = "number of rows"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def block(self, X: Array, y: Array | None) -> Array:
        """Rows of a class in one block."""
        return np.array([float(np.count_nonzero(y >= 0))]) if y is not None else np.zeros(1)

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, under replace-one."""
        return 2 / n_rows


@dataclass(frozen=True)
class NoisyGradients:
    """Noisy sums of clipped private gradients: the only access to private rows.

    What is released is in units of the clip, so that each step costs the same whatever its clip
    and its subspace are; both come from public rows and released weights.

    Parameters
    ----------
    session : Session
    cleaning : RowMap
        Public map of the rows; of unit rows, with their products with public rows beside them if
        there is a span and it is cheaper.
    grant : Grant

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> rows = Cleaning(radius=1.0, classes=2)
    >>> private = Private([[1.0], [-1.0]] * 500, [0, 1] * 500)
    >>> with private.open(epsilon=1.0, delta=1e-5, relation="add-remove") as session:
    ...     asked = gradient_requests(session, rows, (1, 2), steps=3, sample_size=1000)
    ...     gradients = NoisyGradients(session, rows, *session.plan(*asked))
    ...     G = gradients(np.zeros((1, 2)), clip=0.5)
    >>> G.shape, round(gradients.sigma, 1)
    ((1, 2), 6.5)
    """

    session: Session
    cleaning: RowMap
    grant: Grant

    @property
    def sigma(self) -> float:
        """Noise of one step over its clip."""
        return self.grant.scale

    def __call__(self, W: Array, clip: float) -> Array:
        """Sum at W, of shape (d, c), with noise of standard deviation ``sigma`` times ``clip``."""
        query = ClippedGradients(W, clip, self.cleaning, _NAME)
        return clip * self._release(query)

    def within(self, W: Array, clip: float, span: GradientSpan, *, clip_first: bool) -> Array:
        """The same, projected on the span of public gradients; noise in that span alone."""
        query = ProjectedGradients(W, clip, self.cleaning, span, clip_first, _NAME)
        return clip * span.back(self._release(query))

    def _release(self, query: Any) -> Array:
        if self.grant.request.releases is not None:
            return self.session.gaussian(self.grant, self.session.hide_filtered(query, self.grant))
        return self.session.gaussian(self.grant, self.session.hide_sum(query, keep=True))


def gradient_requests(
    session: Session,
    cleaning: RowMap,
    shape: tuple[int, int],
    steps: int,
    *,
    sample_size: float | None,
    filtered: float | None = None,
) -> tuple[Request, ...]:
    """Ask for the sums of all steps, and for a noisy count where no public one is at hand.

    Parameters
    ----------
    session : Session
    cleaning : RowMap
    shape : (int, int)
        Of the weights.
    steps : int
        T.
    sample_size : float or None
        The caller's; under replace-one the number of rows is public anyway.
    filtered : float, optional
        The noise is that of ``steps / filtered`` steps; a row takes part until it has paid for so
        many.
    """
    query = ClippedGradients(np.zeros(shape), 1.0, cleaning, _NAME)
    full = steps if filtered is None else max(1, round(steps / filtered))
    asked = Request(
        "gaussian",
        _NAME,
        session.sum_sensitivity(query),
        dimension=math.prod(shape),
        count=full,
        weight=1 / math.sqrt(full),
        releases=None if filtered is None else steps,
    )
    if sample_size is not None or session.relation == "replace-one":
        return (asked,)
    count = RowCount(cleaning)
    bound = session.sum_sensitivity(count)
    return asked, Request("gaussian", count.label, bound, weight=_COUNT_SHARE)


def open_gradients(
    session: Session, cleaning: RowMap, grants: tuple[Grant, ...], sample_size: float | None
) -> tuple[NoisyGradients, float]:
    """Return noisy gradients, and the public or noisy number of rows that they are divided by."""
    gradients = NoisyGradients(session, cleaning, grants[0])
    if sample_size is not None:
        return gradients, float(sample_size)
    if session.relation == "replace-one":
        return gradients, float(max(1, session.n_rows))
    counted = session.gaussian(grants[1], session.hide_sum(RowCount(cleaning), keep=True))
    return gradients, max(1.0, float(counted[0]))


@dataclass
class Path:
    """Released weights of a descent: the last, their weighted mean, and all of them if kept.

    Examples
    --------
    >>> path = Path(keep=False)
    >>> path.add(np.ones((1, 1)), 1.0, 1.0)
    >>> path.mean
    array([[1.]])
    """

    keep: bool
    weights: list[Array] = field(default_factory=list)
    clips: list[float] = field(default_factory=list)
    _total: Any = 0.0
    _mass: float = 0.0

    def add(self, W: Array, clip: float, mass: float) -> None:
        """Record weights at which a gradient was asked for."""
        if self.keep:
            self.weights.append(W)
        self.clips.append(clip)
        self._total = self._total + mass * W
        self._mass += mass

    @property
    def mean(self) -> Array:
        """Mean of the recorded weights, by mass."""
        return np.asarray(self._total / self._mass)


def descend(
    W: Array,
    steps: int,
    gradient: Callable[[Array, int], tuple[Array, float]],
    rate: Callable[[int], float],
    *,
    path: Path,
    mass: Callable[[int], float] = lambda t: 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    r"""Run :math:`w_{t+1} = w_t - \eta_t G(w_t)` for t = 1, ..., T.

    Parameters
    ----------
    W : ndarray of shape (d, c)
        w_1.
    steps : int
        T, public.
    gradient : callable
        From (w_t, t) to the noisy gradient and its clip.
    rate : callable
        eta_t.
    path : Path
    mass : callable
        Weight of w_t in the mean of the path.

    Examples
    --------
    >>> path = Path(keep=False)
    >>> descend(np.array([[4.0]]), 2, lambda W, t: (W, 1.0), lambda t: 0.5, path=path)
    array([[1.]])
    """
    for t in range(1, steps + 1):
        slope, clip = gradient(W, t)
        path.add(W, clip, mass(t))
        W = W - rate(t) * slope
        if progress is not None:
            progress(t, steps)
    return W
