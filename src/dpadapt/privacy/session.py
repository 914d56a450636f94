"""A session: one budget, one event log, one noise source on one private sample.

The order of a session is fixed. ``hide`` computes statistics that nobody can look at; ``plan``
calibrates the noise of everything that will be released, charges for all of it (durably, if there
is a ledger) and hands out grants; a mechanism trades a grant and a hidden value for a released one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray

from . import _validate, ball_sampler, mechanisms
from ._process import Home
from ._quiet import quiet
from .asked_model import Interactive, check_interactive
from .calibration import calibrate
from .cleaning import RowMap
from .composition import compose_epsilon
from .drawn import DrawnSession
from .errors import LET_THROUGH, PrivacyError
from .events import Event, FloatArray, ParallelEvent, RandomStoppingEvent, Relation
from .filtering import FilteredQuery, IndividualFilter
from .gram import Gram
from .grants import Grant, Hidden, Mechanism, Part, Request
from .guarantee import Guarantee
from .noise import NoiseSource
from .paths import PathRequest
from .queries import MOST_ROWS, Query, check_sum
from .rows import BLOCK_ROWS, RowSource, unreadable
from .weighted import AllRows, Cleaned, Reduction

__all__ = ["Budget", "Session"]

Function = Callable[[FloatArray], Any]
KEPT_BYTES = 1 << 30  # of cleaned rows, at most, that a session keeps for its next query
# What the order of summation can do to a float64 sum, relative to one row: under add-remove every
# later row moves to another place in its block. Holds up to 1e7 rows; must not tell how many.
ORDER_SLACK = 1e-3
_MOST = 1e300  # of a number that noise is added to


class Budget(Protocol):
    """Whoever keeps the budget of the data set (:mod:`dpadapt.privacy.ledger`)."""

    def charge(self, events: Sequence[Event], label: str) -> None:
        """Record the events durably, or raise before anything is released."""


class Session(DrawnSession):
    """One budget spent on one private sample; made by :meth:`dpadapt.Private.open`.

    It works in the process that opened it, and refuses every other (a forked one, say).

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private, SecondMoment
    >>> private = Private(np.random.default_rng(0).normal(size=(1000, 2)))
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=3.0)))
    ...     (grant,) = session.plan(moment.request())
    ...     noisy = session.symmetric_gaussian(grant, moment)
    >>> noisy.shape
    (2, 2)
    >>> round(session.guarantee.epsilon, 6)
    1.0
    """

    def __init__(
        self,
        rows: RowSource,
        *,
        epsilon: float,
        delta: float,
        relation: Relation,
        source: NoiseSource,
        budgets: Sequence[Budget],
        label: str,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.epsilon = _validate.epsilon(epsilon)
        self.delta = _validate.delta(delta, allow_zero=True)
        _validate.choice("relation", relation, get_args(Relation))
        self.relation: Relation = relation
        self.n_columns = rows.n_columns
        self._n_rows = rows.n_rows
        self._rows: RowSource | None = rows
        self._home = Home("the session")
        self._source, self._budgets = source, budgets
        self._label, self._holdout = label, 0.0
        # under add-remove neither the guarantee nor a progress bar may tell how many rows there are
        counted = relation == "replace-one"
        self._progress = progress if counted else None
        self._bounds: dict[str, float] = {"private rows": rows.n_rows} if counted else {}
        self._events: tuple[Event, ...] | None = None
        self._printed = False  # whether the noise is a paper's, and may give more than was asked
        self._count = Lock()  # of threads that would use a grant, or plan, at the same time
        self._filtering = Lock()
        self._left: dict[Grant, int] = {}  # releases that each grant still buys
        self._clean: dict[Part, tuple[RowMap, list[tuple[FloatArray, FloatArray | None]]]] = {}
        self._filters: dict[Grant, IndividualFilter] = {}
        self._filtered: dict[Hidden, Grant] = {}  # sums that their rows have paid for, once each

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows = None
        self._clean.clear()
        self._filters.clear()

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be copied or pickled.")

    # what can be hidden

    @property
    def n_rows(self) -> int:
        """Number of private rows; a secret under add-remove."""
        if self.relation == "add-remove":
            raise PrivacyError(
                "under relation='add-remove' the number of rows is a secret; take a public guess, "
                "or release a noisy count."
            )
        return self._n_rows

    def split(self, holdout: float) -> None:
        """Set a fraction of the rows aside, by public position, evenly through the sample.

        A changed row lies in one part only, so what is released from the two parts costs the
        larger of the two, not the sum.
        """
        self._needs_replace_one("split")  # without its row, later rows would change parts
        if self._events is not None or self._holdout:
            raise PrivacyError("split comes first, once: before plan and before hide.")
        self._holdout = _validate.fraction("holdout", holdout)

    def size(self, part: Part = "all") -> int:
        """Number of rows in a part (public)."""
        held = math.floor(self.n_rows * self._holdout)
        return {"all": self.n_rows, "train": self.n_rows - held, "holdout": held}[part]

    def hide(self, query: Query, part: Part = "all", *, keep: bool = False) -> Hidden:
        """Compute the mean of a query over the rows, and keep it hidden.

        Sums are taken in float64, block by block with compensation, and the sensitivity is
        enlarged by what rounding can still do.

        Parameters
        ----------
        query : Query
        part : {"all", "train", "holdout"}
        keep : bool, default=False
            Whether to keep the cleaned rows in memory until the session closes, if they fit, for
            the next query with the same cleaning object (one step of many).
        """
        self._needs_replace_one("a mean")
        self._check_part(part)
        self._check_sum(query.label, lambda: query.magnitude)
        n_rows = max(1, self.size(part))
        with quiet():
            # a query that fails on a row must not let an inf or a NaN out
            value = _finite(self._sum(query, query.block, part, keep) / n_rows)
        return Hidden(value, query, self._mean_sensitivity(query, n_rows), part, self)

    def hide_sum(self, query: Query, *, keep: bool = False) -> Hidden:
        """Compute the sum of a query over all rows, and keep it hidden; under both relations.

        Under add-remove one row moves the sum by what it contributes: the query's magnitude.
        """
        self._check_part("all")
        sensitivity = self.sum_sensitivity(query)  # first: it refuses what could overflow
        with quiet():
            value = _finite(self._sum(query, query.block, "all", keep))
        return Hidden(value, query, sensitivity, "all", self)

    def hide_filtered(self, query: FilteredQuery, grant: Grant) -> Hidden:
        """Compute a sum in which a row takes part only while its own budget lasts.

        Parameters
        ----------
        query : FilteredQuery
            A query that also tells the norm of each row's contribution.
        grant : Grant
            Of a request with ``releases``. What is hidden can be released once, with this grant.
        """
        self._open_rows()
        if grant not in self._left or grant.request.releases is None:
            raise PrivacyError("hide_filtered needs a grant of a request with releases=.")
        sensitivity = self.sum_sensitivity(query)
        if sensitivity > grant.request.sensitivity:
            raise PrivacyError("the hidden statistic is more sensitive than the grant allows.")
        with self._filtering, quiet():  # what rows have spent is read, and then written
            if grant not in self._filters:
                own = grant.request.sensitivity / (1 if self.relation == "add-remove" else 2)
                facts = (self._n_rows, grant.request.count, grant.request.releases, own)
                self._filters[grant] = IndividualFilter(*facts)
            step = self._filters[grant].step(query)
            value = _finite(self._sum(query, step, "all", keep=True))
        hidden = Hidden(value, query, sensitivity, "all", self)
        self._filtered[hidden] = grant
        return hidden

    def sum_sensitivity(self, query: Query) -> float:
        """Sensitivity of the sum of a query, with what rounding can do; public."""
        self._check_sum(query.label, lambda: query.magnitude)
        if self.relation == "add-remove":
            self._bounds.update({f"radius ({query.label})": query.cleaning.radius})
            return query.magnitude * (1 + ORDER_SLACK)
        n_rows = max(1, self._n_rows)
        return n_rows * self._mean_sensitivity(query, n_rows)

    def _mean_sensitivity(self, query: Query, n_rows: int) -> float:
        self._bounds.update({f"radius ({query.label})": query.cleaning.radius})
        rounding = 2 * (BLOCK_ROWS + 8) * float(np.finfo(np.float64).eps) * query.magnitude
        return query.sensitivity(n_rows) + rounding

    def _needs_replace_one(self, what: str) -> None:
        if self.relation != "replace-one":
            raise PrivacyError(
                f"{what} depends on the number of rows, a secret under relation='add-remove'; "
                "use hide_sum, or relation='replace-one'."
            )

    def hide_rows(self, cleaning: RowMap, part: Part = "all") -> Hidden:
        """Hide the cleaned rows themselves, their label (if any) as the last column.

        For algorithms whose state has an entry for every row. The rows are held in memory; only a
        function of them can be released, with the sensitivity that its request states.
        """
        self._needs_replace_one("a table of rows")
        self._check_part(part)
        self._check_sum("rows", lambda: cleaning.radius)
        query, failure = AllRows(cleaning), None
        with quiet():
            try:
                blocks = [
                    X if y is None else np.column_stack([X, y]) for X, y in self._part(query, part)
                ]
            except (PrivacyError, *LET_THROUGH):
                raise
            except BaseException as error:
                failure = unreadable(error)
            if failure is not None:  # out here, so that it does not carry the first error along
                raise failure
            value = _finite(np.concatenate(blocks) if blocks else np.zeros((0, self.n_columns)))
            value.flags.writeable = False  # too large to hand out copies of it
        self._bounds.update({"radius (rows)": cleaning.radius})
        return Hidden(value, query, math.inf, part, self)

    def hide_gram(self, gram: Gram) -> Hidden:
        """Hide the kernel values of the rows among each other and with a public pool.

        For kernels without explicit features. Held in memory (n x n numbers); only a function of
        them can be released, with the sensitivity that its request states.
        """
        self._needs_replace_one("a kernel matrix")
        self._check_part("all")
        self._check_sum(gram.label, lambda: gram.squared_bound)
        rows = self._open_rows()
        failure = None
        with quiet():
            try:
                blocks = list(rows.long_blocks())
                value = gram.table([X for X, _ in blocks], [y for _, y in blocks], self._progress)
            except LET_THROUGH:
                raise
            except BaseException as error:
                failure = unreadable(error)
        if failure is not None:  # out here, so that it does not carry the first error along
            raise failure
        value.flags.writeable = False
        self._bounds.update({f"radius ({gram.label})": gram.radius})
        return Hidden(value, gram, math.inf, "all", self)

    def derive(self, hidden: Hidden, function: Function, label: str) -> Hidden:
        """Compute something from a hidden value, and keep it hidden too (a fitted model, say)."""
        self._home.check()
        if hidden._owner is not self:
            raise PrivacyError("the hidden statistic must come from this session.")
        value = _apply(function, hidden._value)
        value.flags.writeable = False  # so that it need not be copied for every use of it
        return Hidden(value, _Named(label), math.inf, hidden.part, self)

    def derive_with_noise(
        self,
        grant: Grant,
        hidden: Hidden,
        function: Callable[[FloatArray, FloatArray], Any],
        size: int,
        label: str,
    ) -> Hidden:
        """Compute something from a hidden value and Gaussian noise, and keep both hidden.

        For noise inside a computation (an objective with a random linear term), whose proof needs
        a density: the noise is not rounded, and nobody but ``function`` sees it.

        Parameters
        ----------
        grant : Grant
            Of a Gaussian request whose dimension is ``size`` at least; one of its count is used up.
        hidden : Hidden
        function : callable
            From the hidden value and ``size`` independent normals of the grant's scale.
        size : int
        label : str
        """
        if hidden._owner is not self or grant.part != hidden.part:
            raise PrivacyError("grant and hidden statistic must be of one part of this session.")
        if _validate.count("size", size) > grant.request.dimension or grant.request.releases:
            raise PrivacyError(f"{grant.request.label!r} was not planned for {size} numbers.")
        scale = self._spend(grant, "gaussian")
        noise = scale * self._source.normals(size)
        found: Hidden = self.derive(hidden, lambda value: function(value, noise), label)
        return found

    def _check_part(self, part: Part) -> None:
        self._home.check()
        if (part == "all") == bool(self._holdout):
            raise PrivacyError("after split, hide needs part='train' or part='holdout'; else none.")

    def _check_sum(self, label: str, magnitude: Callable[[], float]) -> None:
        counted = self.relation == "replace-one"
        check_sum(label, magnitude, max(1, self._n_rows) if counted else MOST_ROWS)

    def _sum(self, query: Query, reduce: Reduction, part: Part, keep: bool) -> FloatArray:
        total = np.zeros(query.shape(self.n_columns))
        lost = np.zeros_like(total)
        failure = None
        try:
            for X, y in self._kept(query, part) if keep else self._part(query, part):
                block = reduce(X, y)
                grown = total + block
                part_of_block = grown - total  # Knuth's two-sum: exact, and without a branch
                lost += (total - (grown - part_of_block)) + (block - part_of_block)
                total = grown
        except (PrivacyError, *LET_THROUGH):
            raise
        except BaseException as error:
            failure = unreadable(error)
        if failure is not None:  # out here, so that it does not carry the first error along
            raise failure
        return total + lost

    def _kept(self, query: Cleaned, part: Part) -> Iterable[tuple[FloatArray, FloatArray | None]]:
        known = self._clean.get(part)
        if known is not None and known[0] is query.cleaning:
            return known[1]
        blocks = []
        for X, y in self._part(query, part):
            if X.nbytes / max(1, len(X)) * self._n_rows > KEPT_BYTES:
                return self._part(query, part)
            blocks.append((X, y))
        self._clean[part] = (query.cleaning, blocks)
        return blocks

    def _part(self, query: Cleaned, part: Part) -> Iterator[tuple[FloatArray, FloatArray | None]]:
        done = 0
        for table, labels in self._open_rows().blocks():
            X, y = query.cleaning(table, labels)
            if part != "all":
                index = done + np.arange(len(X) + 1)
                held = np.diff(np.floor(index * self._holdout)) > 0
                keep = held if part == "holdout" else ~held
                X, y = X[keep], None if y is None else y[keep]
            yield X, y
            done += len(index) - 1 if part != "all" else len(X)
            if self._progress is not None:
                self._progress(done, self._n_rows)

    # what it costs

    def plan(
        self,
        *requests: Request,
        train: Sequence[Request] = (),
        holdout: Sequence[Request] = (),
    ) -> tuple[Grant, ...]:
        """Calibrate everything that will be released, charge for it, and hand out the grants.

        Either plain requests, or after :meth:`split` requests on the two parts. Raises
        :class:`~dpadapt.privacy.BudgetExceeded` before any noise is drawn. One plan a session.
        """
        if bool(requests) == bool(train or holdout) or bool(self._holdout) == bool(requests):
            raise PrivacyError("plan takes requests, or train= and holdout= after split.")
        branches: dict[Part, Sequence[Request]] = (
            {"all": requests} if requests else {"train": train, "holdout": holdout}
        )
        noise = {part: self._multiplier(asked) for part, asked in branches.items() if asked}
        events = {
            part: tuple(self._event(request, noise[part]) for request in asked)
            for part, asked in branches.items()
        }
        self._charge(
            events["all"] if requests else (ParallelEvent("split", tuple(events.values())),)
        )
        self._printed = any(r.printed is not None for asked in branches.values() for r in asked)
        return tuple(
            self._grant(request, noise[part], part)
            for part, asked in branches.items()
            for request in asked
        )

    def plan_random_stopping(
        self, *requests: Request, shape: float, gamma: float
    ) -> Iterator[tuple[Grant, ...]]:
        """Plan for the best of a secret, random number of runs; see ``best_of_random_runs``.

        Gives one set of grants for each run, as many as chance decides. Their number is a secret:
        from here on the session tells no progress.
        """

        def events(noise: float) -> list[Event]:
            base = tuple(self._event(request, noise) for request in requests)
            name = "best of random runs"
            return [RandomStoppingEvent(name, base, shape, gamma, relation=self.relation)]

        noise = calibrate(events, self.epsilon, self.delta)
        self._charge(tuple(events(noise)))
        self._progress = None
        runs = mechanisms.random_runs(float(self._source.uniform(1)[0]), shape, gamma)
        return (tuple(self._grant(r, noise, "all") for r in requests) for _ in range(runs))

    def _event(self, request: Request, noise: float) -> Event:
        if request.releases is not None and self._source.name == "exact":
            raise PrivacyError(
                "an individual filter is proved for continuous Gaussian noise; use noise='secure'."
            )
        if request.rate is not None:
            self._needs_replace_one("a draw from weights")
        if request.mechanism == "one-draw-gaussian" and self._source.name == "exact":
            raise PrivacyError(
                "a descent takes millions of noisy steps in float64; use noise='secure'."
            )
        return replace(request.event(self._source, noise), relation=self.relation)

    def _grant(self, request: Request, noise: float, part: Part) -> Grant:
        return self._grant_of(request, request.scale(noise), part)

    def _grant_of(self, request: Request, scale: float, part: Part = "all") -> Grant:
        grant = Grant(request, scale, part)
        self._left[grant] = request.count if request.releases is None else request.releases
        return grant

    def _multiplier(self, requests: Sequence[Request]) -> float:
        printed = [request.printed is not None for request in requests]
        if all(printed):
            return 1.0  # of no consequence: nothing is calibrated
        if any(printed):
            raise PrivacyError("a plan is either calibrated or printed, not both.")
        return calibrate(
            lambda noise: [self._event(request, noise) for request in requests],
            self.epsilon,
            self.delta,
        )

    def _charge(self, events: tuple[Event, ...]) -> None:
        self._open_rows()
        with self._count:
            self._check_unplanned()
            for budget in self._budgets:
                budget.charge(events, self._label)
            self._events = events

    def _check_unplanned(self) -> None:
        if self._events is not None:
            raise PrivacyError("the session's budget is planned already; one plan a session.")

    def _buy(self, mechanism: Interactive) -> float:
        """Charge for an interactive mechanism of this package; gives the scale of its noise."""
        scale = getattr(mechanism, "scale", 0.0)
        if isinstance(mechanism, PathRequest):
            request = mechanism.request()
            scale = request.scale(self._multiplier([request]))
        self._charge(self._price(mechanism, scale))
        return scale

    def _resume(self, mechanism: Interactive, scale: float) -> None:
        """Go on with an interactive mechanism, by a secret file that goes with these rows.

        Nothing is charged, and nothing can be planned or released: only :mod:`.answers` goes on,
        with the noise that was drawn then.
        """
        self._open_rows()
        events = self._price(mechanism, scale)
        with self._count:
            self._check_unplanned()
            self._events = events

    def _price(self, mechanism: Interactive, scale: float) -> tuple[Event, ...]:
        """What it costs, computed from its constants: nobody can state another price."""
        check_interactive(mechanism)
        if not isinstance(mechanism, PathRequest):
            events = tuple(
                replace(event, relation=self.relation) for event in mechanism.events(self._source)
            )
        elif self._source.name == "exact":
            raise PrivacyError("a path of noise is continuous; use noise='secure'.")
        else:
            events = (self._event(replace(mechanism.request(), printed=scale), 1.0),)
        if compose_epsilon(events, self.delta) > self.epsilon * (1 + 1e-9):
            raise PrivacyError("the mechanism costs more than the session may spend.")
        return events

    def _spend(self, grant: Grant, mechanism: Mechanism, times: int = 1) -> float:
        """Use up a grant, that so many uses of a mechanism were paid for; gives the scale."""
        if grant not in self._left:
            raise PrivacyError("the grant must come from this session.")
        self._open_rows()
        if grant.request.mechanism != mechanism:
            raise PrivacyError(f"the grant is for {grant.request.mechanism}, not for {mechanism}.")
        with self._count:
            if self._left[grant] < times:
                raise PrivacyError(
                    f"{grant.request.label!r} was released as often as it was planned."
                )
            self._left[grant] -= times
        return grant.scale

    @property
    def guarantee(self) -> Guarantee:
        """What was charged, and so what may be claimed."""
        if not self._events:
            return Guarantee()
        caveats = list(self._source.caveats)
        spent = compose_epsilon(self._events, self.delta) if self._printed else 0.0
        if spent > self.epsilon * (1 + 1e-9):
            caveats.append(
                f"epsilon {self.epsilon:.4g} was asked for, but the printed constants give "
                f"{spent:.4g} at this delta."
            )
        if self.relation == "replace-one" and self.delta * self._n_rows > 1:
            caveats.append(
                f"delta {self.delta:.3g} is larger than one over the {self._n_rows} private rows: "
                "a mechanism that publishes one row at random would also satisfy it."
            )
        return Guarantee(
            self._events, self.delta, self._source.name, dict(self._bounds), tuple(caveats)
        )

    # what comes out

    def gaussian(
        self, grant: Grant, hidden: Hidden, function: Function | None = None
    ) -> FloatArray:
        """Release a hidden statistic, or a function of it, with independent Gaussian noise.

        A function's own sensitivity is the one stated in the request.
        """
        value = self._open(grant, "gaussian", hidden, function)
        with quiet():
            return mechanisms.gaussian(self._source, value, grant.scale)

    def symmetric_gaussian(
        self, grant: Grant, hidden: Hidden, function: Function | None = None
    ) -> FloatArray:
        """Release a symmetric matrix with noise that is isotropic in the Frobenius norm."""
        value = self._open(grant, "gaussian", hidden, function)
        with quiet():
            return mechanisms.symmetric_gaussian(self._source, value, grant.scale)

    def gaussian_process(
        self, grant: Grant, hidden: Hidden, covariance: FloatArray, function: Function
    ) -> FloatArray:
        """Release values at a pool of points with noise of the kernel's covariance.

        The sensitivity is one in the kernel's norm. That of a hidden statistic is Euclidean, so the
        function's own is stated in the request.
        """
        value = self._open(grant, "gaussian", hidden, function)
        with quiet():
            return mechanisms.gaussian_process(self._source, value, covariance, grant.scale)

    def laplace(self, grant: Grant, hidden: Hidden, function: Function | None = None) -> FloatArray:
        """Release a statistic with independent Laplace noise.

        Its l1-sensitivity is stated in the request; below the Euclidean one it cannot be.
        """
        value = self._open(grant, "laplace", hidden, function)
        with quiet():
            return mechanisms.laplace(self._source, value, grant.scale)

    def noisy_argmin(self, grant: Grant, hidden: Hidden, function: Function | None = None) -> int:
        """Choose among scores by the exponential mechanism; only the index comes out."""
        value = self._open(grant, "noisy-argmin", hidden, function, stated=True)
        with quiet():
            return mechanisms.noisy_argmin(self._source, value, grant.scale)

    def ball_exponential(
        self, grant: Grant, hidden: Hidden, function: Function, radius: float
    ) -> FloatArray:
        """Choose a point z of a ball with density proportional to exp(|<z, v>| / scale).

        v is the function's value. An exponential mechanism: the grant is of "noisy-argmin", its
        sensitivity that of score differences, 2 * radius * |v - v'|.
        """
        if self._source.name == "exact":
            raise PrivacyError(
                "the exact sampler of a ball works in float64; use noise='secure', or a pool."
            )
        value = self._open(grant, "noisy-argmin", hidden, function, stated=True)
        with quiet():
            return ball_sampler.draw(self._source.uniform, value, grant.scale, radius)

    def laplace_argmin(self, grant: Grant, hidden: Hidden, function: Function | None = None) -> int:
        """Choose the least of scores with Laplace noise (report-noisy-min); only the index."""
        value = self._open(grant, "laplace-argmin", hidden, function, stated=True)
        with quiet():
            return mechanisms.laplace_argmin(self._source, value, grant.scale)

    def randomised_response(
        self, grant: Grant, hidden: Hidden, categories: int, function: Function
    ) -> NDArray[np.int64]:
        """Answer one question about the sample truthfully only with a stated probability."""
        _validate.count("categories", categories, least=2)
        value = self._open(grant, "randomised-response", hidden, function, stated=True)
        answer = np.clip(np.rint(value), 0, categories - 1).astype(np.int64)
        return mechanisms.randomised_response(self._source, answer, categories, 1 / grant.scale)

    def _open(
        self,
        grant: Grant,
        mechanism: Mechanism,
        hidden: Hidden,
        function: Function | None,
        *,
        stated: bool = False,
    ) -> FloatArray:
        """Check that this release was paid for, and give the un-noised value to the mechanism."""
        if grant not in self._left or hidden._owner is not self:
            raise PrivacyError("grant and hidden statistic must come from this session.")
        self._open_rows()
        if grant.part != hidden.part:
            raise PrivacyError(f"the grant is for part {grant.part!r}, not {hidden.part!r}.")
        unbounded = math.isinf(hidden.sensitivity)
        too_much = hidden.sensitivity > grant.request.sensitivity
        if function is None and (unbounded or (too_much and not stated)):
            raise PrivacyError("the hidden statistic is more sensitive than the grant allows.")
        if grant.request.releases is not None:
            with self._count:
                if function is not None or self._filtered.get(hidden) is not grant:
                    raise PrivacyError(
                        "this grant buys one release of what hide_filtered made for it."
                    )
                del self._filtered[hidden]
        self._spend(grant, mechanism)
        value = hidden._value if function is None else _apply(function, hidden._value)
        # every number pays: for the grid of discrete noise, and each randomised answer in full
        pays = {"noisy-argmin": 0, "laplace-argmin": 0, "randomised-response": value.size}
        allowed = 1 if mechanism == "randomised-response" else grant.request.dimension
        if pays.get(mechanism, value.size) > allowed:
            raise PrivacyError(
                f"{grant.request.label!r} was planned with fewer numbers than are to be released; "
                "state its dimension (for randomised response: a count) in the request."
            )
        return value


@dataclass(frozen=True)
class _Named:
    """Of what is only derived from something hidden."""

    label: str


def _apply(function: Function, value: FloatArray) -> FloatArray:
    """Function of a hidden value it cannot change; if it fails, nothing of the value is told."""
    failure = None
    given = value.copy() if value.flags.writeable else value
    with quiet():
        try:
            result = np.asarray(function(given), dtype=np.float64)
        except LET_THROUGH:
            raise
        except BaseException as error:
            failure = unreadable(error)
        if failure is not None:
            raise failure
        return _finite(result)


def _finite(value: Any) -> FloatArray:
    """NaN becomes 0; what is too large is clipped, which brings no two values further apart."""
    known = np.nan_to_num(np.asarray(value, dtype=np.float64), nan=0.0, posinf=_MOST, neginf=-_MOST)
    return np.clip(known, -_MOST, _MOST)
