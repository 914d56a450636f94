"""Private rows that are lent to a learner for one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from dpadapt._types import FloatArray, IntArray
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import Event
from dpadapt.privacy.core.errors import LET_THROUGH, PrivacyError, kind_of
from dpadapt.privacy.rows.sources import Block, RowSource

if TYPE_CHECKING:
    from dpadapt.privacy.core.private import Private

_Model = TypeVar("_Model")
_OVER = "the drawn rows were lent to a learner for one call, which is over."


class Loan:
    """A sample of private rows that can be read, and charged for, during one call only.

    After the call its views, its sessions and its statistics are of no more use: what the learner
    has spent is then known for good, and must fit into what it was allowed.

    Parameters
    ----------
    drawn : RowSource
        The sample.

    Examples
    --------
    >>> from dpadapt.privacy.rows.sources import MemoryRows
    >>> with Loan(MemoryRows([[1.0], [2.0]], None)) as sample:
    ...     sample
    Private(2 rows, 1 column, unlabelled)
    """

    def __init__(self, drawn: RowSource) -> None:
        self._held = [drawn]
        self._charges = _Charges()

    def __enter__(self) -> Private:
        from dpadapt.privacy.core.private import Private

        return Private._of(_LentRows(self._held, None), self._charges)

    def __exit__(self, *_: object) -> None:
        self._held.clear()
        self._charges.closed = True

    def run(
        self, learner: Callable[[Private], _Model], sample: Private, epsilon: float, delta: float
    ) -> _Model:
        """What the learner makes of the sample, if it kept to (epsilon, delta)."""
        failure = None
        try:
            model = learner(sample)
        except LET_THROUGH:
            raise
        except BaseException as error:
            failure = PrivacyError(
                f"the learner failed{kind_of(error)}; the reason is withheld, because it may "
                "depend on private values. Its share of the budget is spent."
            )
        self._check(epsilon, delta)  # first: whether a learner that overspent failed is a secret
        if failure is not None:  # out here, so that it does not carry the first error along
            raise failure
        return model

    def _check(self, epsilon: float, delta: float) -> None:
        events = [event for session in self._charges for event in session]
        if any(event.relation != "replace-one" for event in events):
            raise PrivacyError("the learner must use relation='replace-one', as its session does.")
        if events and compose_epsilon(events, delta) > epsilon * (1 + 1e-9):
            raise PrivacyError(
                f"the learner spent more on its sample than epsilon {epsilon:.6g} at delta "
                f"{delta:.6g}; what it returned is withheld."
            )


class _Charges(list[tuple[Event, ...]]):
    """Charges on the sample, until the loan is over."""

    closed = False

    def append(self, events: tuple[Event, ...]) -> None:
        if self.closed:
            raise PrivacyError(_OVER)
        super().append(events)


class _LentRows(RowSource):
    """Rows that are gone when the loan is over, for all views on them alike."""

    def __init__(self, held: list[RowSource], classes: Any) -> None:
        self._held, self._classes = held, classes
        rows = held[0]
        self.n_rows, self.columns = rows.n_rows, rows.columns
        self.n_columns, self.labelled = rows.n_columns, rows.labelled

    def _rows(self) -> RowSource:
        if not self._held:
            raise PrivacyError(_OVER)
        return self._held[0] if self._classes is None else self._held[0].coded(self._classes)

    def blocks(self) -> Iterator[Block]:
        return self._rows().blocks()

    def long_blocks(self) -> Iterator[Block]:
        return self._rows().long_blocks()

    def labels(self) -> FloatArray:
        return self._rows().labels()

    def take(self, places: IntArray) -> Block:
        return self._rows().take(places)

    def sampled(self, places: IntArray) -> RowSource:
        return self._rows().sampled(places)

    def coded(self, classes: Any) -> _LentRows:
        self._rows()
        return _LentRows(self._held, classes)
