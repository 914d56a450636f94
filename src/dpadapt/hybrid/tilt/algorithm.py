"""The hybrid tilt: agents say where they are, the curator trains there, agents refine and certify.

Two descents on the logistic loss: the curator's on tilted rows, the agents' on themselves.

Every choice between two releases (which rows weigh what, which rule goes on, where a cap lies) is a
function of public facts, of what the curator has released and of what agents have sent. The shares
of the budget do not depend on it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import descend, within
from dpadapt.privacy import Grant, RowSum, Session
from dpadapt.privacy.local.poll import Poll
from dpadapt.privacy.local.randomisers import BinaryResponse
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import Prepared

from ..queries import Agreements, tilted_rows, tilted_slope
from ..questions import Slope
from ..rules import LinearRule, feature_count, raw_features
from .laws import (
    CLEAR_SIGNAL,
    DRAWS,
    locate,
    marginal_mechanisms,
    moved,
    release_marginals,
    unit_weights,
)
from .plan import (
    LAST,
    MARGINALS,
    PAIRS,
    PLAIN,
    ROUNDS,
    STEPS,
    TILTED,
    AgentShares,
    uses_pairs,
    with_share,
)
from .ratio import Cap, Law
from .target import ask_shape, ask_shift
from .trials import Outcome, Trials, best

_STEP, _RADIUS = 6.0, 8.0
_BATCHES = 20
_LARGEST_STEP = 3.0  # of agents
_FROM_NOTHING, _FROM_GOOD = 0.2, 0.15


def slope_noise(grant: Grant, n_rows: int, width: int) -> float:
    """Noise of the coefficients of one gradient together, in standardised units, for W = 1.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import Gaussian
    >>> slope_noise(Grant(Gaussian("slope"), 50.0), n_rows=10_000, width=9)
    0.045
    """
    return grant.scale / n_rows * width


def tilted_descent(
    session: Session,
    grant: Grant,
    rows: Prepared,
    start: LinearRule,
    cap: Cap,
    steps: int = STEPS,
) -> LinearRule:
    r"""Noisy gradient descent on rows that weigh at most 1; the mean of the last half of the steps.

    v <- v - 6 C^2 W / (rho n) (sum + noise), cut to norm 8 C. Rows weigh w / W here, so that the
    noise of the sum is the same for every cap, and can be planned before there is one.

    Parameters
    ----------
    session : Session
    grant : Grant
        For ``steps`` gradients at least.
    rows : Prepared
        By :func:`~dpadapt.hybrid.queries.tilted_rows`.
    start : LinearRule
    cap : Cap
    steps : int, default=25

    Examples
    --------
    >>> from dpadapt import Private
    >>> from dpadapt.hybrid.tilt.plan import with_share
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> start = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1))
    >>> rows = tilted_rows(start, lambda X, y: np.ones(len(X)))
    >>> private = Private(X, X[:, 0] > 0).encode([0, 1])
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     planned = with_share(session, tilted_slope(rows, np.zeros(2)), 1.0, 2, count=STEPS)
    ...     grants = session.plan(slopes=planned)
    ...     rule = tilted_descent(session, grants.slopes, rows, start, Cap.none(0.0))
    >>> bool((rule.predict(X) == (X[:, 0] > 0)).mean() > 0.95)
    True
    """
    size = _STEP * start.clip**2 * cap.weight / (cap.kept * max(1, session.n_rows))

    def slope(v: FloatArray) -> FloatArray:
        hidden = session.hide(RowSum(tilted_slope(rows, v)), keep=True)
        return np.ravel(session.release(grant, hidden))

    ball = within(_RADIUS * start.clip)
    return start.with_coefficients(descend(slope, start.coefficients, size, steps, project=ball))


def refine(poll: Poll, count: int, start: LinearRule) -> LinearRule:
    r"""Gradient descent on the agents' own loss, by their randomised directions; batch by batch.

    v <- v - a C^2 / sqrt(r) mean(messages); mean of the last half. The noise s of a coefficient of
    one batch is known in advance. From a rule that is good already a = 0.15 / (p s^2): what is
    gained grows with a, what noise costs with p (a s)^2. From nothing there is a way to go, and
    a = 0.2 / s.

    Examples
    --------
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).normal(size=(40_000, 1))
    >>> start = LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1))
    >>> with Agents(X, (X[:, 0] > 0).astype(int)).open(epsilon=2.0) as poll:
    ...     rule = refine(poll, 40_000, start)
    >>> bool((rule.predict(X) == (X[:, 0] > 0)).mean() > 0.9)
    True
    """
    batch = count // _BATCHES
    contrast = BinaryResponse(poll.epsilon).contrast
    noise = 1.25 * start.clip / contrast / math.sqrt(max(1, batch))
    step = _FROM_NOTHING / noise
    if start.coefficients.any():
        step = _FROM_GOOD / (start.width * noise**2)
    size = min(_LARGEST_STEP, step) * start.clip**2
    numbers = itertools.count(1)

    def slope(v: FloatArray) -> FloatArray:
        root = math.sqrt(next(numbers))
        replies = poll.ask(Slope(start.with_coefficients(v)), batch).values
        return replies.mean(axis=0) / root if len(replies) else np.zeros_like(v)

    ball = within(_RADIUS * start.clip)
    found = descend(slope, start.coefficients, size, _BATCHES, project=ball)
    return start.with_coefficients(found)


_REWEIGH, _ANEW = 0.25, 0.40  # errors above which rows are reweighed, agents begin anew
_RATES = (1.5, 1.0)  # of the reweighings
_LEVEL = 4  # part of the gradients' agents, one in so many, that first tell where a bad rule cuts
_NARROWEST = 0.25
_FLAT = Cap.none(0.0)


@dataclass(frozen=True, eq=False)
class Columns:
    """Public facts of the columns and of the rules.

    Parameters
    ----------
    features : {"linear", "squares", "quadratic"}
    classes : two labels
    origin, unit : ndarray of shape (d,)
        Location and order of magnitude of the columns.

    Examples
    --------
    >>> Columns("squares", (0, 1), np.zeros(3), np.ones(3)).blank.width
    4
    """

    features: str
    classes: tuple[Any, Any]
    origin: FloatArray
    unit: FloatArray

    @property
    def blank(self) -> LinearRule:
        """Rule without coefficients or scale."""
        width = feature_count(self.features, len(self.unit))
        zero = np.zeros(width + 1)
        return LinearRule(self.features, zero[1:], zero[1:] + 1, zero, self.classes)

    def scaled(self, law: Law) -> LinearRule:
        """Rule without coefficients whose features have mean 0 and variance 1 under a law."""
        values = raw_features(self.features, law.draw(DRAWS))
        centre, scale = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-100)
        return LinearRule(self.features, centre, scale, np.zeros(len(centre) + 1), self.classes)


def tilt_mechanisms(session: Session, columns: Columns, *, agents: bool) -> dict[str, Gaussian]:
    """Everything that the curator will release, by name; the shares of the squared mu sum to 1.

    Examples
    --------
    >>> from dpadapt import Private
    >>> columns = Columns("linear", (0, 1), np.zeros(2), np.ones(2))
    >>> with Private([[0.0, 1.0]]).open(epsilon=1.0, delta=1e-6) as session:
    ...     planned = tilt_mechanisms(session, columns, agents=True)
    >>> {name: each.count for name, each in planned.items()}
    {'histograms': 1, 'shares': 1, 'plain': 25, 'tilted': 25, 'last': 50, 'pairs': 1}
    >>> round(sum(each.count * each.weight**2 for each in planned.values()), 12)
    1.0
    """
    width, rule = session.n_columns, columns.blank
    planned = marginal_mechanisms(session, MARGINALS)
    slope = tilted_slope(tilted_rows(rule, unit_weights), rule.coefficients)

    def slopes(share: float, count: int) -> Gaussian:
        return with_share(session, slope, share, rule.width, count)

    if not agents:
        return planned | {"plain": slopes(1 - MARGINALS, STEPS)}
    left = 1 - MARGINALS - (PAIRS if uses_pairs(width) else 0.0)
    planned |= {
        "plain": slopes(left * PLAIN, STEPS),
        "tilted": slopes(left * TILTED, STEPS),
        "last": slopes(left * LAST, ROUNDS * STEPS),
    }
    if not uses_pairs(width):
        return planned
    query = Agreements(slope.cleaning, np.zeros(width))
    return planned | {"pairs": with_share(session, query, PAIRS, math.comb(width, 2))}


def curator_alone(session: Session, grants: Any, columns: Columns) -> LinearRule:
    """Descent on the rows as they are, in their own scale: the whole of it without agents.

    Examples
    --------
    >>> from dpadapt import Private
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> columns = Columns("linear", (0, 1), np.zeros(1), np.ones(1))
    >>> private = Private(X, X[:, 0] > 0).encode([0, 1])
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(**tilt_mechanisms(session, columns, agents=False))
    ...     rule = curator_alone(session, grants, columns)
    >>> bool((rule.predict(X) == (X[:, 0] > 0)).mean() > 0.95)
    True
    """
    source = release_marginals(session, grants, columns.origin, columns.unit)
    plain = columns.scaled(source.law)
    return tilted_descent(session, grants.plain, tilted_rows(plain, unit_weights), plain, _FLAT)


def hybrid_tilt(
    session: Session,
    grants: Any,
    poll: Poll,
    shares: AgentShares,
    columns: Columns,
) -> Outcome:
    """Run the whole of it.

    Parameters
    ----------
    session : Session
    grants : namespace of Grant
        Of :func:`tilt_mechanisms`.
    poll : Poll
    shares : AgentShares
    columns : Columns

    Examples
    --------
    >>> from dpadapt import Private
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> columns = Columns("linear", (0, 1), np.zeros(1), np.ones(1))
    >>> private = Private(X, X[:, 0] > 0).encode([0, 1])
    >>> agents = Agents(X / 2, (X[:, 0] > 0).astype(int))
    >>> with (
    ...     private.open(epsilon=1.0, delta=1e-6) as session,
    ...     agents.open(epsilon=1.0) as poll,
    ... ):
    ...     grants = session.plan(**tilt_mechanisms(session, columns, agents=True))
    ...     found = hybrid_tilt(session, grants, poll, AgentShares.of(20_000, 1), columns)
    >>> found.best.guess < 0.2, agents.n_left < 5
    (True, True)
    """
    source = release_marginals(session, grants, columns.origin, columns.unit)
    pairs = grants.pairs if uses_pairs(session.n_columns) else None
    found = locate(session, pairs, poll, shares, source)
    target = columns.scaled(found.target)
    # a scale that is mostly noise teaches nothing: then both runs are one, in the agents' scale
    plain = columns.scaled(source.law) if source.clear else target
    plain_rows = tilted_rows(plain, unit_weights)
    plain = tilted_descent(session, grants.plain, plain_rows, plain, _FLAT)

    noise = slope_noise(grants.tilted, session.n_rows, target.width)
    tilt = found.tilt(noise)
    weighted = tilted_rows(target, tilt.weight)
    begin = target if source.clear else plain
    tilted = tilted_descent(session, grants.tilted, weighted, begin, tilt.cap)

    trials = Trials(poll, shares)
    name = "source scale" if source.clear else "target scale, first run"
    one, two = trials.first(name, plain), trials.first("target scale", tilted)
    start = best([one, two])
    if start.guess > _REWEIGH and noise <= CLEAR_SIGNAL:
        reweighed = _reweighed(session, grants.last, trials, plain, target)
        start = trials.clearly_better(reweighed, start)
        last = start.rule
    else:  # good, or bad because of noise: more of the same
        ours = start is one
        rows, cap, share = (plain_rows, _FLAT, PLAIN) if ours else (weighted, tilt.cap, TILTED)
        more = tilted_descent(session, grants.last, rows, start.rule, cap, ROUNDS * STEPS)
        last = _mean(start.rule, more, share / (share + LAST))

    count = shares.slopes + found.spare
    guess = start.guess
    if guess > _REWEIGH:
        levelled = trials.levelled(last, count // _LEVEL)
        last, guess, count = levelled.rule, levelled.guess, count - count // _LEVEL
    if guess <= _ANEW:
        refined = refine(poll, count, last)
        finals = {"curator": last, "agents": refined, "mean of both": _mean(last, refined, 0.5)}
    else:
        finals = {"curator": last, "agents": refine(poll, count, target)}
    chosen = trials.verdict(finals, (one, two))
    return Outcome(chosen, tuple(trials.seen), tilt.cap, tilt.overlap)


def agents_alone(
    poll: Poll, shares: AgentShares, columns: Columns, start: LinearRule | None
) -> Outcome:
    """Without a curator: agents give the scale, gradients and the certificate.

    Parameters
    ----------
    poll : Poll
    shares : AgentShares
    columns : Columns
    start : LinearRule or None
        A rule of public rows; tested beside the agents' own.

    Examples
    --------
    >>> from dpadapt.privacy.local.agents import Agents
    >>> X = np.random.default_rng(0).normal(size=(60_000, 1))
    >>> columns = Columns("linear", (0, 1), np.zeros(1), np.ones(1))
    >>> with Agents(X, (X[:, 0] > 0).astype(int)).open(epsilon=2.0) as poll:
    ...     found = agents_alone(poll, AgentShares.of(60_000, 1), columns, start=None)
    >>> found.best.name, found.best.guess < 0.15
    ('agents', True)
    """
    shift = ask_shift(poll, shares.moments, columns.origin, columns.unit).cut(0.0)
    centre, spread = moved(columns.origin, columns.unit, shift)
    # much narrower than its unit is an atom, say of a 0/1 column, rather than the column
    spread = np.maximum(spread, _NARROWEST * columns.unit)
    shape = ask_shape(poll, shares.shape, centre, spread)
    target = columns.scaled(Law(centre, spread, np.eye(len(spread)), shape))
    # nobody is asked about pairs or about the curator's rules
    count = shares.slopes + shares.pairs + 2 * shares.trial
    finals = {"agents": refine(poll, count, target)}
    if start is not None:
        finals["public"] = start
    trials = Trials(poll, shares)
    return Outcome(trials.verdict(finals), tuple(trials.seen), _FLAT, not shift.at_the_edge)


def _reweighed(
    session: Session, grant: Grant, trials: Trials, first: LinearRule, target: LinearRule
) -> list[Any]:
    """A few rounds of multiplicative weights on target-scaled features: no density is modelled.

    Rows that earlier rules get right weigh less, by a fixed factor each: still a public function
    of one row, and at most 1.
    """
    rules, tested = [first], []
    for _ in range(ROUNDS):
        past = tuple(zip(_RATES, rules, strict=False))

        def weight(X: FloatArray, y: FloatArray, past: Any = past) -> FloatArray:
            right = [rate * (rule.predict_sign(X) == y) for rate, rule in past]
            return np.asarray(np.exp(-np.sum(right, axis=0)))

        rule = tilted_descent(session, grant, tilted_rows(target, weight), target, _FLAT)
        rules.append(rule)
        tested.append(trials.round(rule))
    return tested


def _mean(one: LinearRule, two: LinearRule, part: float) -> LinearRule:
    return one.with_coefficients(part * one.coefficients + (1 - part) * two.coefficients)
