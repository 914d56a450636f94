"""The part of a session that draws rows from weights: descents, learners; and parities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _validate
from ._quiet import quiet
from .descent import Descent, check_start, descend
from .errors import LET_THROUGH, PrivacyError
from .events import FloatArray
from .grants import Grant, Hidden
from .loans import Loan
from .noise import SecureNoise, _ContinuousNoise
from .parity import parity_masks
from .rows import Places, unreadable
from .weighted import WeightedSession, cap_of
from .weights import RowWeights, draw_rate

if TYPE_CHECKING:
    from .private import Private

__all__ = ["DrawnSession"]

Model = TypeVar("Model")


class DrawnSession(WeightedSession):
    """Rows drawn from weights; inherited by :class:`dpadapt.privacy.Session`."""

    def noisy_descent(
        self, grant: Grant, weights: RowWeights, density: float, descent: Descent
    ) -> FloatArray:
        """Release the average iterate of a descent on rows drawn from the projected weights.

        Parameters
        ----------
        grant : Grant
            Of :meth:`Descent.request`. Each step uses up one of its count.
        weights : RowWeights
        density : float
            kappa; at least the one that the request was made for.
        descent : Descent
        """
        self._check_drawn(grant, weights, density)
        if 2 * descent.clip > grant.request.sensitivity:
            raise PrivacyError("the gradients may be longer than the grant allows.")
        rows = self._open_rows()
        check_start(descent, rows)  # before anything is spent
        scale = self._spend(grant, "one-draw-gaussian", descent.steps)
        draw = self._draws(weights, density)
        failure = None
        with quiet():
            try:
                return descend(descent, rows, draw, self._source, scale, self._progress)
            except (PrivacyError, *LET_THROUGH):
                raise
            except BaseException as error:
                failure = unreadable(error)
        raise failure  # out here, so that it does not carry the first error along

    def learn_on_draws(
        self,
        grant: Grant,
        weights: RowWeights,
        density: float,
        size: int,
        learner: Callable[[Private], Model],
    ) -> Model:
        """Run a private learner on rows drawn from the projected weights, with replacement.

        The grant's request is of "draws"; the learner may spend ``grant.epsilon`` and
        ``grant.request.delta`` on the sample, under replace-one *of the drawn rows*: a row that was
        drawn twice is two of them, and the amplification counts one draw at a time. What it spent
        is checked afterwards, from the charges on the sample; the sample is then closed.

        Parameters
        ----------
        grant : Grant
        weights : RowWeights
        density : float
            kappa; at least the one that the request was made for.
        size : int
            How many rows are drawn: at most the draws of the request.
        learner : callable
            From a :class:`Private` of the drawn rows to anything.
        """
        self._check_drawn(grant, weights, density)
        if _validate.count("size", size) > (grant.request.draws or 0):
            raise PrivacyError(
                f"{grant.request.label!r} was planned with {grant.request.draws} draws; got {size}."
            )
        rows = self._open_rows()
        self._spend(grant, "draws", 1)
        with quiet():
            loan = Loan(rows.sampled(self._draws(weights, density)(size)))
        with loan as sample:
            return loan.run(learner, sample, grant.epsilon, grant.request.delta)

    def parity(self, grant: Grant, hidden: Hidden, batches: int) -> list[NDArray[np.uint8] | None]:
        """Release one parity, or None, for each batch of rows; pure, see :mod:`.parity`.

        The batches are disjoint, so all of them together are paid for once, with the
        ``grant.epsilon`` of a request of "pure".

        Parameters
        ----------
        grant : Grant
        hidden : Hidden
            From :meth:`Session.hide_rows`: rows of 0 and 1, their label in the last column.
        batches : int
        """
        _validate.count("batches", batches)
        if hidden._owner is not self or len(hidden.shape) != 2 or hidden.shape[1] < 2:
            raise PrivacyError("parity needs labelled rows that this session has hidden.")
        if hidden.label != "rows" or grant.part != hidden.part:
            raise PrivacyError("parity needs the rows themselves, of the part of its grant.")
        self._spend(grant, "pure", 1)
        failure = None
        with quiet():
            try:
                rows, labels = hidden._value[:, :-1], hidden._value[:, -1]
                return parity_masks(rows, labels, grant.epsilon, batches, self._source.uniform)
            except LET_THROUGH:
                raise
            except BaseException as error:
                failure = unreadable(error)
        raise failure  # out here, so that it does not carry the first error along

    def _check_drawn(self, grant: Grant, weights: RowWeights, density: float) -> None:
        self._check_weights(weights)
        if weights.part != "all":
            raise PrivacyError("rows are drawn from all rows, not from a part of a split.")
        if draw_rate(density, self._n_rows) > (grant.request.rate or 0.0):
            raise PrivacyError("the weights are less dense than the grant allows.")

    def _draws(self, weights: RowWeights, density: float) -> Callable[[int], Places]:
        """Places of rows drawn from the weights, by the session's own randomness."""
        if weights._draws is None or weights._draws[0] != density:
            from ._alias import DrawTable

            weights._draws = None  # so that there are never two tables
            with quiet():
                table = DrawTable(weights._log, cap_of(weights, density), density)
            weights._draws = (density, table)
        table = weights._draws[1]
        source = self._source if isinstance(self._source, _ContinuousNoise) else SecureNoise()
        return lambda size: table.draw(source._generator(), size)
