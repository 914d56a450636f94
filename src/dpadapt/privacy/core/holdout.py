r"""One private sample as two: people to learn from, and people to measure on.

*The rule.* The person (or row) at place p is held out if floor((p + 1) h) > floor(p h), h the share
to hold out: evenly through the sample, by public places. Whatever anybody's cells are, everybody
lies in one part, and a neighbour, in which one person is replaced, differs in that part alone.

*What both cost.* Let fit and evaluation be what was released of the two parts, each a function of
its part and of what was released before. Between two neighbours one part is the same, and what is
released of it has the same law, given the rest: only what is released of the other part tells them
apart. So both together cost the larger of the two, which is what
:class:`~dpadapt.privacy.accounting.events.ParallelEvent` states. It must be charged before the
first release: the first charge of the training part pays at once for an evaluation of the stated
epsilon and delta as well, as one Gaussian release of their mu. Gaussian releases of the held-out
part are then free as long as the squares of their mu add up to no more (mu-GDP composes so, see
:class:`~dpadapt.privacy.mechanisms.GaussianPurse`); what is more than that is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from dpadapt._types import FloatArray, IntArray

from ... import _validate
from ..accounting.calibration import gaussian_mu
from ..accounting.events import Event, GaussianEvent, ParallelEvent
from ..accounting.reserves import Reserve, reserve_label
from ..rows.arrow import ArrowBlock
from ..rows.errors import PrivacyError
from ..rows.people import People
from ..rows.schema import ReadBlock
from ..rows.sources import Block, RowSource
from ..rows.tables import Table
from ..rows.total import taken
from .home import Home
from .pricing import Budget
from .private import Private

_ROUNDING = 1e-12  # of a square of mu, which adds up from several


class HeldOut(NamedTuple):
    """Two parts of a private sample.

    Parameters
    ----------
    train, test : Private

    Examples
    --------
    >>> HeldOut(*hold_out(Private([[1.0]] * 10), 0.2, epsilon=0.5, delta=1e-6)).test
    Private(2 rows, 1 column, unlabelled)
    """

    train: Private
    test: Private


def hold_out(
    private: Private, share: float, *, epsilon: float, delta: float, ledger: Budget | None = None
) -> HeldOut:
    """Split a private sample into two, so that fit and evaluation cost the larger of both.

    Fit a model on ``train`` first, then evaluate it on ``test``. Both charge the ledger that is
    given *here*, once: do not give it to the estimator or to the evaluation as well. What both have
    cost together is in ``private.spent(delta)``.

    Parameters
    ----------
    private : Private
    share : float
        Of the people (or rows) to hold out, between 0 and 1.
    epsilon, delta : float
        What the evaluation may cost.
    ledger : Account, optional

    Returns
    -------
    HeldOut
        ``train`` and ``test``, both a :class:`Private`.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor, evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> private = Private(X, X[:, 0])
    >>> train, test = hold_out(private, 0.2, epsilon=0.5, delta=1e-6)
    >>> model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6).fit(X[:50], X[:50, 0], private=train)
    >>> found = evaluate(model, test, epsilon=0.5, delta=1e-6, label_range=(-3, 3))
    >>> round(private.spent(1e-6).epsilon, 3)
    1.0
    """
    if not isinstance(private, Private):
        raise TypeError(f"private must be a dpadapt.Private; got {type(private).__name__}.")
    share = _validate.fraction("share", share)
    mu = gaussian_mu(_validate.epsilon(epsilon), _validate.delta(delta))
    if not 0 < math.floor(private.n_people * share) < private.n_people:
        raise ValueError("share: one of the two parts would have nobody; hold out another share.")
    label = reserve_label(share, private.n_people)
    return _parts(private, share, _Both(private._charged, ledger, mu, label))


def paid_part(private: Private, reserve: Reserve, ledger: Budget) -> Private:
    """Return the people that a fit has held out and paid to measure, after a crash: once.

    Parameters
    ----------
    private : Private
        The same people in the same order.
    reserve : Reserve
        One of ``ledger.reserves()``.
    ledger : Account

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpadapt import DiscrepancyRegressor, evaluate
    >>> from dpadapt.privacy.ledger.ledger import Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> account = Ledger(pathlib.Path(folder.name) / "b.db").create("rows", epsilon=3, delta=1e-6)
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> private, budget = Private(X, X[:, 0]), {"epsilon": 1.0, "delta": 1e-6}
    >>> train, _ = hold_out(private, 0.5, **budget, ledger=account)
    >>> model = DiscrepancyRegressor(**budget).fit(X[:50], X[:50, 0], private=train)
    >>> (reserve,) = account.reserves()
    >>> test = paid_part(Private(X, X[:, 0]), reserve, account)
    >>> evaluate(model, test, **budget, label_range=(-3, 3)).people, account.reserves()
    (100, ())
    >>> folder.cleanup()
    """
    if private.n_people != reserve.people:
        raise PrivacyError(
            f"those held out are some of {reserve.people:,}, and these are {private.n_people:,}: "
            "give the same private file as to fit. Nothing was released."
        )
    both = _Both(private._charged, ledger, reserve.mu, "")
    both.resume(reserve.number)
    return _parts(private, reserve.share, both).test


def _parts(private: Private, share: float, both: _Both) -> HeldOut:
    rows = private._rows
    return HeldOut(
        Private._of(PartRows(rows, share, held=False), _Charged(both.train)),
        Private._of(PartRows(rows, share, held=True), _Charged(both.test)),
    )


class PartRows(RowSource):
    """The rows of one part, by public places; of people, if they have several rows each.

    Examples
    --------
    >>> from dpadapt.privacy.rows.sources import MemoryRows
    >>> rows = PartRows(MemoryRows([[0.0], [1.0], [2.0], [3.0]], None), 0.5, held=True)
    >>> [block.tolist() for block, _ in rows.blocks()]
    [[[1.0], [3.0]]]
    """

    def __init__(self, source: RowSource, share: float, *, held: bool) -> None:
        source.need_order("a part that is held out")
        self._source, self._share, self._wanted = source, share, held
        self.columns, self.n_columns = source.columns, source.n_columns
        self.labelled, self.keeping = source.labelled, source.keeping
        whose = np.arange(source.n_rows) if source.people is None else source.people.of
        mine = self._mine(whose)
        self._places: IntArray = np.flatnonzero(mine)
        self.n_rows = len(self._places)
        if source.people is not None:
            chosen = self._mine(np.arange(source.people.size))
            self.people = People((np.cumsum(chosen) - 1)[whose[mine]], source.people.each)

    def _mine(self, unit: Any) -> Any:
        held = np.floor((unit + 1) * self._share) > np.floor(unit * self._share)
        return held == self._wanted

    def blocks(self) -> Iterator[Block]:
        done = 0
        for table, y in self._source.blocks():
            size = int(table.shape[0])
            first, last = np.searchsorted(self._places, [done, done + size])
            at = self._places[first:last] - done
            yield _rows_at(table, at), None if y is None else y[at]
            done += size

    def labels(self) -> FloatArray:
        return self._source.labels()[self._places]

    def take(self, places: IntArray) -> Block:
        return self._source.take(self._places[places])

    def sampled(self, places: IntArray) -> RowSource:
        return self._source.sampled(self._places[places])

    def coded(self, classes: Any) -> PartRows:
        return PartRows(self._source.coded(classes), self._share, held=self._wanted)

    def raw(self) -> PartRows:
        return PartRows(self._source.raw(), self._share, held=self._wanted)


def _rows_at(table: Table, places: IntArray) -> Table:
    if isinstance(table, ReadBlock):
        return ReadBlock(_rows_at(table.table, places), table.schema, table._places)
    return table.at(places) if isinstance(table, ArrowBlock) else taken(table, places)


class _Both:
    """Charges both parts of a sample to its ledger and to its own memory."""

    def __init__(
        self, charged: list[tuple[Event, ...]], ledger: Budget | None, mu: float, label: str
    ) -> None:
        self._charged, self._ledger, self._mu, self._label = charged, ledger, mu, label
        self._paid_by: int | None = None  # charge of a ledger whose reserve is not used yet
        self._left: float | None = None  # of the square of mu, once it is paid for
        self._home: Home | None = None  # where it was paid for
        self._count = Lock()

    def train(self, events: tuple[Event, ...]) -> None:
        """Charge a fit, the first one with an evaluation."""
        with self._count:
            self._check_home()
            if self._left is not None:
                self._charge(events, "fit")
                return
            reserve = GaussianEvent("evaluation", self._mu, 1.0, relation=events[0].relation)
            branches = (events, (reserve,))
            both = ParallelEvent(self._label, branches, relation=events[0].relation)
            number = self._charge((both,), "fit, and an evaluation on people held out")
            self.resume(number)

    def resume(self, number: int | None) -> None:
        """From now on an evaluation is paid for, by a charge of a ledger if there is one."""
        self._paid_by = number
        self._left = self._mu**2 * (1 + _ROUNDING)
        self._home = Home("the reserve for people held out (hold_out)")

    def test(self, events: tuple[Event, ...]) -> None:
        """Take an evaluation from what was paid for; without a fit it is charged by itself."""
        with self._count:
            self._check_home()
            if self._left is None:
                self._charge(events, "evaluation")
                return
            used = math.fsum(event.gaussian_mu**2 for event in events)
            if not used <= self._left:
                raise PrivacyError(
                    "the evaluation costs more than was set aside when the sample was split "
                    "(hold_out), or was made already; noise='exact' is not covered. Nothing was "
                    "released."
                )
            if self._paid_by is not None:  # first, so that no other process uses it as well
                self._ledger.redeem(self._paid_by, events[0].relation)  # type: ignore[union-attr]
                self._paid_by = None
            self._left -= used

    def _check_home(self) -> None:
        if self._home is not None:
            self._home.check()

    def _charge(self, events: tuple[Event, ...], label: str) -> int | None:
        number = None if self._ledger is None else self._ledger.charge(events, label)
        self._charged.append(events)
        return number


class _Charged(list[tuple[Event, ...]]):
    """What was charged on one part; every charge is made on the whole as well, and first."""

    def __init__(self, charge: Any) -> None:
        super().__init__()
        self._charge = charge

    def append(self, events: tuple[Event, ...]) -> None:
        if any(event.relation == "add-remove" for event in events):
            raise PrivacyError(
                "a sample that was split (hold_out) is for relation='replace-one': without a row, "
                "those behind it would change parts."
            )
        self._charge(events)
        super().append(events)
