"""The guarantee is true: what a fit claims is what it did.

Its noise is that of its events; it is charged before noise, and by as much; two threads are charged
for two fits, and a fork, which copies the count of releases, pays for nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpadapt import BudgetExceeded, Guarantee, PrivacyError, Private
from dpadapt.privacy import Ledger

from .independent_accountant import recompute_epsilon
from .search import Secrets, everything_said, refused, require
from .subject import Subject
from .tape import Refusing, Watching, paid_by, planned, releases, taped

LOOKED_AT = 20_000  # draws: enough to notice noise that is 3 % too small or too large


def check_guarantee_is_what_an_independent_accountant_finds(subject: Subject) -> None:
    """The guarantee is what an independent accountant computes from the events."""
    _recompute(subject, subject.usual.model.guarantee_, 1.0, 1e-6)


def check_guarantee_of_other_budgets(subject: Subject) -> None:
    """The guarantee is right for small, large and strict budgets as well."""
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-3), (8.0, 1e-9)):
        model = subject.fit(subject.make(epsilon=epsilon, delta=delta), subject.private())
        _recompute(subject, model.guarantee_, epsilon, delta)


def _recompute(subject: Subject, claim: Guarantee, epsilon: float, delta: float) -> None:
    low, high = recompute_epsilon(claim.events, claim.delta)
    require(
        low * (1 - 1e-9) <= claim.epsilon <= 1.01 * high,
        f"epsilon is {low} to {high}, but {claim.epsilon} is claimed",
    )
    require(
        claim.epsilon <= epsilon * (1 + 1e-9),
        f"epsilon {claim.epsilon} is spent, and {epsilon} was allowed",
    )
    least = subject.facts.least_spent * epsilon
    require(claim.epsilon >= least, f"only {claim.epsilon} of epsilon {epsilon} is spent")
    require(claim.delta <= delta, f"delta is {claim.delta}, and {delta} was allowed")


def check_guarantee_survives_json(subject: Subject) -> None:
    """The guarantee can be written and read, and names its noise and its relation."""
    guarantee = subject.usual.model.guarantee_
    again = Guarantee.from_dict(json.loads(guarantee.to_json()))
    require(again == guarantee, "the guarantee is another one after JSON")
    require(guarantee.noise == "seeded", f"the noise is called {guarantee.noise!r}, not 'seeded'")
    require(
        guarantee.relation == subject.facts.relation,
        f"neighbours are {guarantee.relation!r}, not {subject.facts.relation!r}",
    )


def check_noise_is_the_noise_of_the_events(subject: Subject) -> None:
    """Each release has the noise of an event that was charged, and each event its releases."""
    model, tape = subject.usual.model, subject.usual.tape
    _match(subject, tape, model.guarantee_.events)
    for private in (subject.private(), _half_labelled(subject)):
        with taped() as tape:
            model = subject.fit(subject.make(noise="secure", random_state=None), private)
        _match(subject, tape, model.guarantee_.events)


def _half_labelled(subject: Subject) -> Private:
    """Rows of which every second one has no label, where labels are read."""
    rows = subject.rows()
    labels = subject.labels(rows)
    if labels is not None:
        labels = np.array(labels, dtype=object)
        labels[::2] = None
    return subject.private(rows, labels)


def _match(subject: Subject, tape: list, events: tuple) -> None:
    drawn = releases(tape)
    require(drawn, "noise was charged for, but none was drawn")
    require(all(paid_by(draw, events) for draw in drawn), "a release that no event stands for")
    for plan in planned(events):
        same = [
            p for p in planned(events) if (p.mechanism, p.scale) == (plan.mechanism, plan.scale)
        ]
        count = sum(draw.share for draw in drawn if plan in paid_by(draw, events))
        paid = sum(p.count for p in same)
        require(count <= paid * (1 + 1e-9), f"{count} releases, and {paid} were charged")
        full = count >= paid * (1 - 1e-9) or not subject.facts.releases_all or paid == math.inf
        require(full, f"only {count} releases, and {paid} were charged")


def check_noise_has_the_scale_that_it_claims(subject: Subject) -> None:
    """Draws of noise are spread as their scale says."""
    seen: list[np.ndarray] = []
    for seed in range(200):
        with taped() as tape:
            subject.fit(subject.make(random_state=seed), subject.private())
        for draw in releases(tape):
            if draw.mechanism in ("add_gaussian", "add_laplace"):
                unit = (np.asarray(draw.answer) - draw.value).ravel() / draw.scale
                law = stats.norm if draw.mechanism == "add_gaussian" else stats.laplace
                seen.append(stats.norm.ppf(np.clip(law.cdf(unit), 1e-15, 1 - 1e-15)))
        draws = sum(map(len, seen))
        if draws >= LOOKED_AT or (seed >= 59 and (draws >= 100 or not draws)):
            break
    if seen:
        squares = np.concatenate(seen)[:LOOKED_AT] ** 2
        for tail in (stats.chi2.cdf, stats.chi2.sf):  # one false alarm in a million
            spread = math.sqrt(squares.mean())
            require(
                tail(squares.sum(), squares.size) > 5e-7,
                f"{squares.size} draws are {spread:.3f} times as wide as was claimed",
            )
        require(squares.size >= 100, "too few draws to notice noise that is 0.7 times too small")


def check_events_depend_on_public_facts_only(subject: Subject) -> None:
    """What is charged depends on public facts, never on private values."""
    one = subject.usual.model.guarantee_
    wild = subject.rows(seed=1) * 1e4
    two = subject.fit(subject.make(), subject.private(wild)).guarantee_
    three = subject.fit(subject.make(), subject.private(np.zeros_like(wild))).guarantee_
    require(one == two == three, "other private values give another guarantee")


def check_refit_has_a_guarantee_of_its_own(subject: Subject) -> None:
    """A second fit of the same model has the guarantee of that fit alone."""
    model = subject.fit(subject.make(), subject.private())
    first = model.guarantee_
    path = f"{subject.prefix}epsilon"
    second = subject.fit(model.set_params(**{path: 0.5}), subject.private()).guarantee_
    require(first.epsilon > second.epsilon, "half the budget, and the guarantee is no smaller")
    third = subject.fit(model, None).guarantee_
    require(third.epsilon == 0, "a fit without private rows kept an older guarantee")


def check_nothing_private_costs_nothing(subject: Subject) -> None:
    """A fit without private rows, or with an empty table, charges nothing and draws no noise."""
    for private in (None, subject.private(subject.rows(n=0))):
        with taped() as tape:
            model = subject.fit(subject.make(), private)
        require(model.guarantee_.epsilon == 0, "something was charged for no private rows")
        require(model.guarantee_.events == (), "there are events, and no private rows")
        require(tape == [], "noise was drawn for no private rows")
        require(private is None or private.spent(1e-6).epsilon == 0, "an empty table was charged")
        answers = subject.coded(model, model.predict(subject.public()[0]))
        require(np.isfinite(answers).all(), "the answers are not finite")


def check_public_only_fit_needs_no_seed(subject: Subject) -> None:
    """Without private rows there is no noise, and no rule for its seed."""
    subject.fit(subject.make(noise="seeded", random_state=None), None)
    subject.fit(subject.make(noise="secure", random_state=3), None)


def check_a_refused_charge_draws_no_noise_and_fits_nothing(subject: Subject) -> None:
    """When the ledger refuses, no noise is drawn and the model stays unfitted."""
    model, private = subject.make(ledger=Refusing()), subject.private()
    with taped() as tape, refused(BudgetExceeded, what="a fit beyond the budget"):
        subject.fit(model, private)
    require(tape == [], "noise was drawn although the charge was refused")
    with refused(NotFittedError, what="a prediction after a refused charge"):
        model.predict(subject.public()[0])
    require(not hasattr(model, "guarantee_"), "a refused fit left a guarantee")


def check_a_refused_refit_does_not_mix_two_fits(subject: Subject) -> None:
    """After a refused refit the model is the old one or none, never half of each."""
    model = subject.fit(subject.make(), subject.private())
    before, guarantee = subject.answers(model), model.guarantee_
    model.set_params(**{f"{subject.prefix}ledger": Refusing()})
    with refused(BudgetExceeded, what="a refit beyond the budget"):
        subject.fit(model, subject.private(subject.rows(seed=8)))
    if hasattr(model, "guarantee_"):  # unfitted would be as good
        require(model.guarantee_ == guarantee, "a refused refit left another guarantee")
        np.testing.assert_array_equal(subject.answers(model), before)


def check_charge_comes_before_noise(subject: Subject) -> None:
    """The ledger is charged once, with the events of the guarantee, before any noise."""
    with taped() as tape:
        ledger = Watching(tape)
        guarantee = subject.fit(subject.make(ledger=ledger), subject.private()).guarantee_
    require(ledger.charges == [guarantee.events], "the charge is not what the guarantee says")
    require(ledger.draws_before == [0], "noise was drawn before the charge")
    require(tape, "no noise was drawn")


def check_a_ledger_is_charged_the_events_of_the_guarantee(subject: Subject) -> None:
    """An account is charged what the guarantee says, and refuses what is beyond it."""
    with tempfile.TemporaryDirectory() as folder:
        account = Ledger(Path(folder) / "budget.db").create("people", epsilon=1.2, delta=1e-6)
        model = subject.fit(subject.make(ledger=account), subject.private())
        require(account.events() == model.guarantee_.events, "the account has other events")
        with refused(BudgetExceeded, what="a second fit"):
            subject.fit(clone(model), subject.private())
        require(account.events() == model.guarantee_.events, "a refused fit was charged")


def check_a_private_sample_remembers_what_was_spent(subject: Subject) -> None:
    """A private sample adds up what every fit on it has spent."""
    private = subject.private()
    one = subject.fit(subject.make(), private).guarantee_
    two = subject.fit(subject.make(epsilon=0.5), private).guarantee_
    spent = private.spent(1e-6).events
    require(spent == one.events + two.events, "the sample has not been charged both fits")


def check_progress_is_shown_only_when_asked_for(subject: Subject) -> None:
    """Nothing is printed unless verbose; progress counts public things up to their end."""
    rows, labels = subject.marked()
    with everything_said() as silent:
        subject.make(verbose=0).fit(*subject.public(), private=Private(rows, labels))
    require(silent.printed == "", "something is printed with verbose=0")
    terminal = {"COLUMNS": "100", "TERM": os.environ.get("TERM", "dumb")}
    with mock.patch.dict(os.environ, terminal), everything_said() as said:
        subject.make(verbose=1).fit(*subject.public(), private=Private(rows, labels))
    end = subject.facts.progress_end or len(rows)
    shown = [tuple(map(int, each)) for each in re.findall(r"\b(\d+)/(\d+)\b", said.printed)]
    whole = [total for done, total in shown[-1:] if done == total and total % end == 0]
    require(whole, "no progress bar up to the end")
    Secrets(rows, labels).check_text(said.all, "the progress bar")


class Meeting:
    """A ledger at which two fits meet: neither is charged before the other is there too.

    So both have opened what they open before the noise, and neither has drawn any.
    """

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)
        self.charges: list[Any] = []

    def charge(self, events: Any, label: str) -> None:
        self.charges.append(tuple(events))
        try:
            self._barrier.wait(timeout=60)  # fits that wait for each other are right as well
        except threading.BrokenBarrierError:
            return

    def __deepcopy__(self, memo: Any) -> Meeting:
        return self


def _together(calls: list[Callable[[], Any]]) -> list[Any]:
    """Results of calls, each in a thread of its own."""
    with warnings.catch_warnings(), ThreadPoolExecutor(len(calls)) as pool:
        warnings.simplefilter("ignore", UserWarning)
        return [future.result() for future in [pool.submit(call) for call in calls]]


def check_two_fits_at_once_are_two_fits(subject: Subject) -> None:
    """Two fits at the same time do not see each other, and both are charged."""
    X, y = subject.public()
    asked: list[dict[str, Any]] = [
        {"epsilon": 1.0, "random_state": 3},
        {"epsilon": 0.5, "random_state": 4},
    ]
    alone = [subject.fit(subject.make(**params), subject.private()) for params in asked]
    meeting, private = Meeting(), subject.private()
    models = [subject.make(**params, ledger=meeting) for params in asked]
    _together([partial(model.fit, X, y, private=private) for model in models])
    for model, expected in zip(models, alone, strict=True):
        require(model.guarantee_ == expected.guarantee_, "a guarantee of another fit")
        np.testing.assert_array_equal(subject.predictions(model), subject.predictions(expected))
    events = Counter(event for model in alone for event in model.guarantee_.events)
    require(Counter(private.spent(1e-6).events) == events, "charges do not add up")
    charged = Counter(e for charge in meeting.charges for e in charge)
    require(charged == events, "charges of the ledger do not add up")


class Forking:
    """A ledger that forks when it is charged: the child goes on with what the parent has paid."""

    def __init__(self) -> None:
        self._told, self._tells = os.pipe()
        self._child: int | None = None

    def charge(self, events: Any, label: str) -> None:
        if self._child is None:
            self._child = os.fork()

    def __deepcopy__(self, memo: Any) -> Forking:
        return self

    def outcome(self, call: Callable[[], Any]) -> str:
        """What became of the call in the child; in the parent it must end well."""
        said = "went on"
        try:
            call()
        except PrivacyError:
            said = "refused"
        except BaseException as error:
            if self._child != 0:
                raise
            said = f"failed: {error!r}"
        if self._child == 0:
            os.write(self._tells, said.encode())
            os._exit(0)
        os.close(self._tells)
        require(said == "went on", "the fit was refused in its own process")
        require(self._child is not None, "nothing was charged")
        os.waitpid(self._child or 0, 0)
        with os.fdopen(self._told) as pipe:
            return pipe.read()


def check_a_forked_process_cannot_go_on_with_a_fit(subject: Subject) -> None:
    """A fit that has been paid for in one process cannot be finished in another one as well."""
    if not hasattr(os, "fork"):
        return
    ledger = Forking()
    model = subject.make(noise="secure", random_state=None, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that forks and threads do not go together
        said = ledger.outcome(lambda: subject.fit(model, subject.private()))
    require(said == "refused", f"the fit in the forked process {said}")
