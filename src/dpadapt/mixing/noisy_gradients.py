"""Noisy sums of clipped private gradients: what every algorithm here has of private rows."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpadapt._lazy import named
from dpadapt._types import FloatArray
from dpadapt.privacy import Grant, RowMap, RowMean, RowSum, Session
from dpadapt.privacy.mechanisms import Gaussian

from .queries import ClippedGradients, row_count

_COUNT_SHARE = 0.1  # mu of a noisy count over mu of all steps: half a percent more noise
NAME = "clipped gradients"
# of an individual filter: the mechanism, and what asks it
_FILTER = "dpadapt.papers.mixing.filtered.FilteredGaussian"
_FILTERED = "dpadapt.papers.mixing.queries.FilteredGradients"


class NoisyGradients:
    """Noisy sums of clipped private gradients: the only access to private rows.

    What is released is in units of the clip, so that each step costs the same whatever its clip
    and its subspace are; both come from public rows and released weights.

    Parameters
    ----------
    session : Session
    cleaning : RowMap
        Public map of the rows: unit rows.
    grant : Grant
        Of what :func:`gradient_mechanisms` names ``steps``.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> rows = Cleaning(radius=1.0, classes=2)
    >>> private = Private([[1.0], [-1.0]] * 500, [0, 1] * 500)
    >>> with private.open(epsilon=1.0, delta=1e-5, relation="add-remove") as session:
    ...     asked = gradient_mechanisms(session, rows, (1, 2), steps=3, sample_size=1000)
    ...     gradients = NoisyGradients(session, rows, session.plan(**asked).steps)
    ...     G = gradients(np.zeros((1, 2)), clip=0.5)
    >>> G.shape, round(gradients.sigma, 1)
    ((1, 2), 6.5)
    """

    kind: ClassVar[type[ClippedGradients]] = ClippedGradients

    def __init__(self, session: Session, cleaning: RowMap, grant: Grant) -> None:
        self._session, self.cleaning, self._grant = session, cleaning, grant

    @property
    def sigma(self) -> float:
        """Noise of one step over its clip."""
        return self._grant.scale

    def __call__(self, W: FloatArray, clip: float) -> FloatArray:
        """Sum at W, of shape (d, c), with noise of standard deviation ``sigma`` times ``clip``."""
        return clip * self.release(self.kind(W, clip, self.cleaning, NAME))

    def release(self, query: RowMean) -> FloatArray:
        """Sum over the rows of what a query takes of each, 1 at most, with noise of ``sigma``."""
        hidden = self._session.hide(RowSum(query), keep=True)
        return np.asarray(self._session.release(self._grant, hidden))


def gradient_mechanisms(
    session: Session,
    cleaning: RowMap,
    shape: tuple[int, int],
    steps: int,
    *,
    sample_size: float | None,
    filtered: float | None = None,
) -> dict[str, Gaussian]:
    """Plan the sums of all ``steps``, and a noisy count of ``rows`` where no public one is at hand.

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

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> private, rows = Private([[1.0]] * 9, [0] * 9), Cleaning(radius=1.0, classes=2)
    >>> with private.open(epsilon=1.0, delta=1e-5, relation="add-remove") as session:
    ...     list(gradient_mechanisms(session, rows, (1, 2), steps=3, sample_size=None))
    ['steps', 'rows']
    """
    session.foresee(steps, session.n_columns + 1)  # and a constant
    bound = session.sensitivity(RowSum(ClippedGradients(np.zeros(shape), 1.0, cleaning, NAME)))
    full = steps if filtered is None else max(1, round(steps / filtered))
    facts = (NAME, bound, math.prod(shape), full, 1 / math.sqrt(full))
    whole: Any = {"divided": False}  # sums
    kind: Any = Gaussian
    if filtered is not None:
        kind = partial(named(_FILTER), releases=steps)
    asked = {"steps": kind(*facts, **whole)}
    if sample_size is None and session.relation == "add-remove":
        count = RowSum(row_count(cleaning))
        size = session.sensitivity(count)
        asked["rows"] = Gaussian(count.label, size, weight=_COUNT_SHARE, **whole)
    return asked


def open_gradients(
    session: Session, cleaning: RowMap, grants: Any, sample_size: float | None
) -> tuple[NoisyGradients, float]:
    """Return noisy gradients, and the public or noisy number of rows that they are divided by.

    Parameters
    ----------
    session : Session
    cleaning : RowMap
    grants : namespace
        Of what :func:`gradient_mechanisms` names.
    sample_size : float or None

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> private, rows = Private([[1.0]] * 9, [0] * 9), Cleaning(radius=1.0, classes=2)
    >>> with private.open(epsilon=1.0, delta=1e-5) as session:
    ...     asked = gradient_mechanisms(session, rows, (1, 2), steps=3, sample_size=None)
    ...     gradients, size = open_gradients(session, rows, session.plan(**asked), None)
    >>> size
    9.0
    """
    plain = type(grants.steps.mechanism) is Gaussian
    kind = NoisyGradients if plain else named(_FILTERED)
    gradients = kind(session, cleaning, grants.steps)
    if sample_size is not None:
        return gradients, float(sample_size)
    if session.relation == "replace-one":
        return gradients, float(max(1, session.n_rows))
    counted = session.release(grants.rows, session.hide(RowSum(row_count(cleaning)), keep=True))
    return gradients, max(1.0, float(counted[0]))
