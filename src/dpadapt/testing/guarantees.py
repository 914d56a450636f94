"""The guarantee is true: what a fit claims is what it did."""

from __future__ import annotations

import json
import math

import numpy as np
from scipy import stats

from dpadapt import Guarantee, Private

from .expecting import require
from .independent_accountant import recompute_epsilon
from .subject import Subject
from .tape import paid_by, planned, releases, taped

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
