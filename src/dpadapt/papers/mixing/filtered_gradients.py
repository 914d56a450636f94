"""Noisy sums of clipped gradients under an individual filter, and in the span of public ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.mixing.noisy_gradients import NAME, NoisyGradients
from dpadapt.mixing.queries import ClippedGradients
from dpadapt.privacy import Grant, RowMap, RowMean, Session

from .filtered import EachRow
from .projection import GradientSpan
from .queries import PricedGradients, ProjectedGradients


class FilteredGradients(NoisyGradients):
    """Sums over the rows that can still pay.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.mixing.noisy_gradients import gradient_mechanisms
    >>> rows = Cleaning(radius=1.0, classes=2)
    >>> with Private([[1.0], [-1.0]] * 500, [0, 1] * 500).open(epsilon=1.0, delta=1e-5) as session:
    ...     asked = gradient_mechanisms(session, rows, (1, 2), 6, sample_size=9, filtered=2.0)
    ...     gradients = FilteredGradients(session, rows, session.plan(**asked).steps)
    ...     gradients(np.zeros((1, 2)), clip=0.5).shape
    (1, 2)
    """

    kind: ClassVar[type[ClippedGradients]] = PricedGradients

    def __init__(self, session: Session, cleaning: RowMap, grant: Grant) -> None:
        super().__init__(session, cleaning, grant)
        self._sums: Any = session.release(grant, session.hide(EachRow(cleaning.radius, NAME)))

    def release(self, query: RowMean) -> FloatArray:
        """Sum over the rows that can still pay for it."""
        return np.asarray(self._sums.release(query))


def within_span(
    gradients: NoisyGradients, W: FloatArray, clip: float, span: GradientSpan, *, clip_first: bool
) -> FloatArray:
    """Sum at W, projected on the span of public gradients; noise in that span alone.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.mixing.noisy_gradients import gradient_mechanisms
    >>> rows, W = Cleaning(radius=1.0, classes=2), np.zeros((1, 2))
    >>> span = GradientSpan.of(np.ones((1, 1)), np.array([0]), W)
    >>> with Private([[1.0], [-1.0]] * 500, [0, 1] * 500).open(epsilon=1.0, delta=1e-5) as session:
    ...     asked = gradient_mechanisms(session, rows, (1, 2), 6, sample_size=9)
    ...     gradients = NoisyGradients(session, rows, session.plan(**asked).steps)
    ...     within_span(gradients, W, 0.5, span, clip_first=False).shape
    (1, 2)
    """
    query = ProjectedGradients(W, clip, gradients.cleaning, span, clip_first, NAME)
    return clip * span.back(gradients.release(query))
