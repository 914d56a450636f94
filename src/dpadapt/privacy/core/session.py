"""A session: one budget, one event log, one noise source on one private sample.

``hide`` computes statistics that nobody can look at, ``derive`` something from them that is hidden
too. ``plan`` calibrates all noise, charges for it (durably, if there is a ledger) and hands out
grants by name. ``release`` trades a grant and a hidden value for a released one. The session knows
no statistic and no mechanism by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from threading import Lock
from types import SimpleNamespace
from typing import Any, Self

from dpadapt._types import FloatArray

from ... import _validate
from ..accounting.events import Event, ParallelEvent, Relation
from ..rows.errors import PrivacyError
from ..rows.foreign import noted
from ..rows.quiet import muted, withhold_errors
from ..rows.sources import RowSource
from .doors import check_door
from .guarantee import Guarantee
from .hidden import Hidden, Part, claimed, finite
from .home import Home
from .mechanism import Counting, Grant, Mechanism
from .noise import NoiseSource
from .pricing import Budget, calibrated, priced
from .sample import Progress, Sample
from .shown import delta_caveat, foreign_caveat, printed_caveat
from .statistic import Statistic


class Session:
    """One budget spent on one private sample; made by :meth:`dpadapt.Private.open`.

    It works in the process that opened it, and refuses every other (a forked one, say).

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.privacy import Cleaning, Private, mechanisms, statistics
    >>> private = Private(np.random.default_rng(0).normal(size=(1000, 2)))
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(statistics.SecondMoment(Cleaning(radius=3.0)))
    ...     grants = session.plan(moment=mechanisms.SymmetricGaussian.of(moment))
    ...     noisy = session.release(grants.moment, moment)
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
        progress: Progress | None,
    ) -> None:
        self.epsilon = _validate.epsilon(epsilon)
        self.delta = _validate.delta(delta, allow_zero=True)
        _validate.choice("relation", relation, ("replace-one", "add-remove"))
        self.relation, self._people, self._stated = relation, rows.people, rows.relation(relation)
        self._home, self._held, self.n_columns = Home("the session"), [rows], rows.n_columns
        self._source, self._budgets, self._label = source, budgets, label
        # under add-remove neither the guarantee nor a progress bar may tell how many rows there are
        counted, self._store = relation == "replace-one", rows.keeping.store()
        self._samples = {"all": Sample(self._held, self._home, relation, self._store)}
        self._samples["all"].progress = progress if counted else None
        self._bounds: dict[str, float] = rows.sizes() if counted else {}
        self._events: tuple[Event, ...] | None = None
        self._counting: Callable[..., Counting] | None = None  # of rows with a label, in the plan
        self._early: list[Hidden] = []  # what was hidden before they are counted
        self._foreign: set[str] = set()  # names of code of others that saw rows
        self._printed = False  # whether the noise is a paper's, and may give more than was asked
        self._count = Lock()  # of threads that would use a grant, or plan, at the same time
        self._left: dict[Grant, float | Fraction] = {}  # what each grant still buys

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._held.clear()
        self._early.clear()
        for sample in self._samples.values():
            sample.forget()
        if not any(failure):
            self._samples["all"].tell_end()

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be copied or pickled.")

    @property
    def n_rows(self) -> int:
        """Number of private rows, or about how many have a label; a secret under add-remove."""
        if self.relation == "add-remove":
            raise PrivacyError(
                "under relation='add-remove' the number of rows is a secret; take a public guess, "
                "or release a noisy count."
            )
        return self.size("all")

    @property
    def n_given(self) -> int:
        """Number of private rows, with a label or without (public); a secret under add-remove."""
        return self._samples["all"].n_rows

    def split(self, holdout: float) -> None:
        """Set a fraction of the rows aside, by public position, evenly through the sample.

        A changed row lies in one part only: the two parts cost the larger of the two, not the sum.
        """
        whole = self._samples["all"]
        whole.needs_replace_one("split")  # without its row, later rows would change parts
        if self._events is not None or len(self._samples) > 1:
            raise PrivacyError("split comes first, once: before plan and before hide.")
        share = _validate.fraction("holdout", holdout)
        self._samples |= {part: whole.part_of(part, share) for part in ("train", "holdout")}

    def leave_out_unlabelled(self) -> None:
        """From now on a row without a label adds nothing to any statistic; nothing is counted."""
        self._part("all").count(1.0)

    def size(self, part: Part = "all") -> int:
        """Number of rows in a part, or about how many of them have a label (public)."""
        if part == "holdout" and part not in self._samples:
            return 0
        sample = self._samples[part if part in self._samples else "all"]
        return sample.counted_rows if sample.n_rows else 0

    def foresee(self, sums: int, *widths: int) -> None:
        """Say how many sums over the rows will be taken, and how wide rows are that are kept.

        Rows that would find no room are refused here by public sizes, so said before ``plan`` it is
        before anything is charged. And progress counts all of these sums from here on.

        Parameters
        ----------
        sums : int
            In all. It may be said again, once more is known.
        *widths : int
            Columns of the rows that are kept at the same time, for statistics with the same
            cleaning.

        Examples
        --------
        >>> from dpadapt.privacy import Private
        >>> private = Private([[1.0, 2.0]] * 1000).kept(memory="20kB", spill=False)
        >>> with private.open(epsilon=1.0, delta=1e-6) as session:
        ...     session.foresee(100, 2)
        >>> with private.open(epsilon=1.0, delta=1e-6) as session:  # doctest: +ELLIPSIS
        ...     session.foresee(100, 2)
        ...     session.foresee(100, 3)
        Traceback (most recent call last):
        ...
        dpadapt.privacy.rows.errors.StorageError: cleaned rows take 2.4e-05 GB, and 2e-05 GB of ...
        """
        sample = self._samples["all"]
        sample.course.sums = sums + (self._counting is not None)
        if self.relation == "replace-one":  # else the number of rows is a secret
            labels = sample.labelled * 9  # bytes: one, and whether there is one
            self._store.check(self.n_given * sum(8 * width + labels for width in widths))

    def sensitivity(self, statistic: Statistic, part: Part = "all") -> float:
        """Sensitivity of a statistic of these rows, by public facts; no row is read."""
        _validate.plain_numbers(statistic)
        return claimed(statistic.sensitivity_on(self._part(part).lent(rows=False)))

    # what goes in

    def hide(self, statistic: Statistic, part: Part = "all", *, keep: bool = False) -> Hidden:
        """Compute a statistic of the rows, and keep it hidden.

        Parameters
        ----------
        statistic : Statistic
        part : {"all", "train", "holdout"}
        keep : bool, default=False
            Whether to keep cleaned rows for the next statistic with the same cleaning.
        """
        sensitivity = self.sensitivity(statistic, part)  # first: it refuses what could overflow
        view = self._part(part).lent(keep=keep)
        try:
            with noted(self._foreign):
                value = withhold_errors(lambda: finite(statistic.reduce(view)), PrivacyError)
        finally:
            view.end()
        name, radius = f"radius ({statistic.label})", statistic.entry_radius()
        self._bounds[name] = max(radius, self._bounds.get(name, 0.0))
        return self._made(Hidden(value, statistic.label, sensitivity, part, self, statistic))

    def derive(
        self,
        hidden: Hidden,
        function: Callable[[FloatArray], Any],
        *,
        label: str | None = None,
        sensitivity: float = math.inf,
        norm: str | None = None,
    ) -> Hidden:
        """Compute something from a hidden value, and keep it hidden too (a fitted model, say).

        Beside a statistic, the only place for a claim; its proof is in a method's ``queries.py``.

        Parameters
        ----------
        hidden : Hidden
        function : callable
            It is given a copy that is read-only. If it fails, nothing of the value is told.
        sensitivity : float, default=inf
            How far one row can move it, in the norm of the mechanism. Else it cannot be released.
        norm : {"l2", "l1", "range"}, optional
            Of the claim; a mechanism of another norm then refuses it.
        """
        self._own(hidden)
        claim = claimed(sensitivity)

        def computed() -> Any:
            given = hidden._value.copy()
            given.flags.writeable = False
            return finite(function(given))

        with muted(), noted(self._foreign):
            value = withhold_errors(computed)
        made = Hidden(value, label or hidden.label, claim, hidden.part, self, norm=norm)
        return self._made(made)

    def _made(self, hidden: Hidden) -> Hidden:
        if self._counting is not None and self._events is None:
            self._early.append(hidden)
        return hidden

    def _now(self, hidden: Hidden) -> Hidden:
        """What was hidden before rows were counted, divided by what means are divided by now."""
        if not any(each is hidden for each in self._early):
            return hidden
        if hidden.statistic is None and math.isfinite(hidden.sensitivity):
            raise PrivacyError("where labels are counted, plan first, then derive.")
        times = self._samples[hidden.part].times
        if times == 1 or not getattr(hidden.statistic, "divided", False):
            return hidden
        value, facts = finite(times * hidden._value), (hidden.part, self, hidden.statistic)
        return Hidden(value, hidden.label, times * hidden.sensitivity, *facts)

    def _part(self, part: Part) -> Sample:
        self._home.check()
        if part not in self._samples or (part == "all") == (len(self._samples) > 1):
            raise PrivacyError("after split, hide needs part='train' or part='holdout'; else none.")
        return self._samples[part]

    def _own(self, hidden: Hidden) -> None:
        self._home.check()
        if hidden._owner is not self:
            raise PrivacyError("the hidden statistic must come from this session.")

    # what it costs

    def plan(self, **mechanisms: Mechanism | Sequence[Mechanism]) -> SimpleNamespace:
        """Calibrate everything that will be released, charge for it, and hand out the grants.

        Raises :class:`BudgetExceeded` before any noise is drawn. One plan a session.

        Parameters
        ----------
        **mechanisms : Mechanism, or sequence of them
            By any name. Of :mod:`dpadapt.privacy.mechanisms`, and no others.

        Returns
        -------
        SimpleNamespace
            Grants by the same names; tuples for sequences.
        """
        asked = {n: tuple(m) if isinstance(m, Sequence) else (m,) for n, m in mechanisms.items()}
        every = [m for group in asked.values() for m in group]
        if not every:
            raise PrivacyError("plan takes at least one mechanism.")
        for mechanism in every:
            check_door(mechanism, self._people)  # before anything of it is asked
            self._part(mechanism.part)
        parts: tuple[Part, ...] = ("train", "holdout") if len(self._samples) > 1 else ("all",)
        branches = {part: [m for m in every if m.part == part] for part in parts}
        own = any(m.printed is not None or m.fixed for m in every)
        counting = None if own or self._counting is None else self._counting(every, parts[0])
        if counting is not None:
            check_door(counting.mechanism, self._people)
            branches[parts[0]].append(counting.mechanism)
        spend = (self.epsilon, self.delta, self.relation, self._source, self._people)
        noise = {part: calibrated(each, *spend) for part, each in branches.items()}
        events = [priced(each, noise[part], *spend) for part, each in branches.items()]
        split = ParallelEvent("split", tuple(events), relation=self._stated)
        self._charge(events[0] if len(parts) == 1 else (split,))
        self._printed = any(m.printed is not None for m in every)
        if any(m.secret_course for m in every):
            for sample in self._samples.values():
                sample.progress = None
        if counting is None:
            self._early.clear()
        else:
            self._count_rows(counting, noise[parts[0]])
        facts = {part: (self._grant, each, self._source) for part, each in noise.items()}
        made = {n: tuple(m.grants(*facts[m.part]) for m in group) for n, group in asked.items()}
        return SimpleNamespace(
            **{n: g if isinstance(mechanisms[n], Sequence) else g[0] for n, g in made.items()}
        )

    def _charge(self, events: tuple[Event, ...], budgets: Sequence[Budget] | None = None) -> None:
        self._samples["all"].rows  # noqa: B018, refuses a closed session
        with self._count:
            if self._events is not None:
                raise PrivacyError("the session's budget is planned already; one plan a session.")
            for budget in self._budgets if budgets is None else budgets:
                budget.charge(events, self._label)
            self._events = events

    def _count_rows(self, counting: Counting, noise: float) -> None:
        """Release how many rows have a label, about: means are divided by that from now on."""
        part, grant = (own := counting.mechanism).part, self._grant(own, own.scale_at(noise))
        found = float(self.release(grant, self.hide(counting.statistic, part)))
        for sample in self._samples.values():
            sample.count(counting.read(found, grant.scale, self._samples[part].n_rows))
        each = self._bounds.get("rows a person", 0)  # places of a person: all are filled, or none
        whose = "people" if each else "rows"
        self._bounds[f"{whose} with a label, about"] = self.n_rows / (each or 1)

    def _grant(self, mechanism: Mechanism, scale: float) -> Grant:
        if mechanism.divided:  # by fewer rows: both grow, and what it costs stays
            times = self._samples[mechanism.part].times
            if self._source.name == "exact":  # so that its grid, a power of two, grows as much
                times = 2.0 ** math.ceil(math.log2(times))
            mechanism, scale = mechanism.enlarged(times), times * scale
        grant = Grant(mechanism, scale)
        self._left[grant] = mechanism.allowance
        return grant

    # what comes out

    def release(self, grant: Grant, hidden: Hidden, **public: Any) -> Any:
        """Let a hidden value out through a mechanism that was planned: the one door.

        Parameters
        ----------
        grant : Grant
        hidden : Hidden
        **public : object
            Whatever else the mechanism takes; from released values and public ones alone.
        """
        self._own(hidden)
        self._samples["all"].rows  # noqa: B018, refuses a closed session
        if type(grant) is not Grant or grant not in self._left:
            raise PrivacyError("the grant must come from this session.")
        check_door(mechanism := grant.mechanism)
        if mechanism.part != hidden.part:
            raise PrivacyError(f"the grant is for part {mechanism.part!r}, not {hidden.part!r}.")
        if math.isinf(hidden.sensitivity) and not mechanism.unbounded:
            raise PrivacyError(
                "the hidden value has no bounded sensitivity; derive what is to be released, with "
                "a claim of its sensitivity."
            )
        hidden = self._now(hidden)
        used = mechanism.admit(hidden, **public)
        with self._count:
            if not used <= self._left[grant]:
                raise PrivacyError(f"{mechanism.label!r} was released as often as it was planned.")
            self._left[grant] -= used
        released = self._let_out(grant, hidden, public)
        if mechanism.hides:
            return Hidden(finite(released), mechanism.label, math.inf, hidden.part, self)
        return released

    def _let_out(self, grant: Grant, hidden: Hidden, public: dict[str, Any]) -> Any:
        release = grant.mechanism.release
        with noted(self._foreign):
            return withhold_errors(
                lambda: release(hidden, grant.scale, self._source, **public), PrivacyError
            )

    @property
    def guarantee(self) -> Guarantee:
        """What was charged, and so what may be claimed."""
        if not self._events:
            return Guarantee()
        caveats = [*self._source.caveats, *foreign_caveat(self._foreign)]
        if self._printed:
            caveats += printed_caveat(self._events, self.epsilon, self.delta)
        if self.relation == "replace-one":
            caveats += delta_caveat(self.delta, self.n_given)
        return Guarantee(
            self._events, self.delta, self._source.name, dict(self._bounds), tuple(caveats)
        )
