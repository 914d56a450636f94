r"""The values of the paper's theorems: what its algorithms promise, with which K and which mu.

Theorem 4 and Corollary 2 are about Algorithm 1, Theorem 10 and Corollary 3 about Algorithm 2,
Theorem 11 and Corollary 4 about Algorithm 3. Each function gives the number that is printed, or
with ``printed=False`` what its proof really gives for the same (printed) noise. Nothing private
enters: the values are known before anything is charged.

A bound is on the smoothed objective unless it says "discrepancy", which is
:math:`4 \Lambda^2 \|M(q)\|_2`. What to compare it with: the discrepancy of any weights is at most
:math:`4 \Lambda^2 \max(r, \hat r)^2` (:attr:`Setting.trivial`).

**Choosing among candidate weights for an unlabelled private target.**

Without private labels there is no loss to compare. What a hold-out part of the private rows does
show is how well candidate weights match it: the discrepancy :math:`\|M_{val}(q)\|_2`. Candidates
may come from anything released on the training part, with any mu, K or penalty; the choice costs no
more than the training did, because a changed row lies in one part only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt.discrepancy.matrices import public_rows, weighted_moment
from dpadapt.privacy import Grant, Hidden, Session
from dpadapt.privacy.mechanisms import Exponential
from dpadapt.privacy.statistics import SecondMoment

from .parameters import SingleStageConstants
from .queries import RowBounds, bounds_of, choice_range, hidden_discrepancies
from .smoothing import Softmax

_MOST_STEPS = 10**7
_DIAMETER_SQUARED = 4  # of the simplex in the l1 norm


class Promise(NamedTuple):
    """What a theorem says.

    Attributes
    ----------
    bound : float
        Holds with probability 1 - beta.
    steps : float
        K, not rounded: below 1 the theorem asks for no step at all.
    mu : float
        Sharpness of the softmax.

    Examples
    --------
    >>> Promise(bound=0.5, steps=20.0, mu=3.0).bound
    0.5
    """

    bound: float
    steps: float
    mu: float


@dataclass(frozen=True)
class Setting:
    r"""The public numbers that the theorems speak of.

    Parameters
    ----------
    m, d, n : int
        Public rows, columns, private rows.
    epsilon, delta : float
    public_radius, private_radius : float, default=1
        :math:`\hat r` and r.
    norm_bound, largest_label : float, default=1
        :math:`\Lambda` and Y.
    penalty : float, default=0
        :math:`\lambda`, of Algorithms 2 and 3.
    beta : float, default=0.05
        The bounds may fail with this probability.

    Examples
    --------
    >>> Setting(m=1000, d=10, n=8000, epsilon=1.0, delta=1 / 8000).trivial
    4.0
    """

    m: int
    d: int
    n: int
    epsilon: float
    delta: float
    public_radius: float = 1.0
    private_radius: float = 1.0
    norm_bound: float = 1.0
    largest_label: float = 1.0
    penalty: float = 0.0
    beta: float = 0.05

    def __post_init__(self) -> None:
        for name in ("m", "d", "n"):
            validate.count(name, getattr(self, name))
        validate.epsilon(self.epsilon)
        validate.delta(self.delta)
        for name in ("public_radius", "private_radius", "norm_bound"):
            validate.positive(name, getattr(self, name))
        for name in ("largest_label", "penalty"):
            validate.non_negative(name, getattr(self, name))
        validate.fraction("beta", self.beta)

    @property
    def trivial(self) -> float:
        """Bound on the discrepancy of any weights whatever."""
        return self.strength * max(self.public_radius, self.private_radius) ** 2

    @property
    def strength(self) -> float:
        """4 Lambda^2, by which the discrepancy exceeds a spectral norm."""
        return 4 * self.norm_bound**2

    @property
    def _reach(self) -> float:
        return self.private_radius**2 * self.public_radius**2

    @property
    def _log(self) -> float:
        return math.log(1 / self.delta)


def theorem_4(setting: Setting, mu: float, *, printed: bool = True) -> Promise:
    r"""Algorithm 1: bound on the stationarity gap of :math:`L_T(q, w)`, and its K.

    As printed, the bound is :math:`5 \sqrt{\bar D \sigma_0 \log(\bar D m / (\sigma_0 \beta))}` at
    :math:`K = \sqrt{2 \bar D} / (\sigma_0 \log(\cdot))`, with :math:`\sigma_0 = 4 \tau_q \sqrt{2
    \log(1/\delta)} / \epsilon`, :math:`\tau_q = 8 \Lambda^2 \mu r^2 \hat r^2 / n`. (Errata: a
    number of steps cannot depend on the unit of the labels, it is :math:`\sqrt 2 \bar D` over the
    rest; and the squared loss has the modulus :math:`2 \hat r^2`.) With ``printed=False``: the
    average gap, :math:`\sqrt{2 A C / K} + 2 \sigma_0 \sqrt K \log(2 m K / \beta)`, at the K where
    it is least.

    Parameters
    ----------
    setting : Setting
    mu : float
        Sharpness of the softmax.
    printed : bool, default=True

    Examples
    --------
    >>> setting = Setting(m=1000, d=10, n=8000, epsilon=1.0, delta=1 / 8000)
    >>> theorem_4(setting, 5.0).bound > setting.trivial
    True
    """
    validate.positive("mu", mu)
    bounds = RowBounds(setting.private_radius, setting.public_radius, setting.n)
    slope, curvature = SingleStageConstants.of(
        Softmax(mu), bounds, setting.norm_bound, setting.largest_label
    )
    if printed:  # half of the modulus in w
        curvature -= (2 * setting.norm_bound) ** 2 * setting.public_radius**2
    tau = 2 * setting.strength * mu * setting._reach / setting.n
    noise = 4 * tau * math.sqrt(2 * setting._log) / setting.epsilon
    spread = math.sqrt(slope * curvature)
    if printed:
        rest = noise * math.log(spread * setting.m / (noise * setting.beta))
        return Promise(5 * math.sqrt(spread * rest), math.sqrt(2 * spread) / rest, mu)

    def gap(K: float) -> float:
        lost = 2 * noise * math.sqrt(K) * math.log(2 * setting.m * K / setting.beta)
        return math.sqrt(2 / K) * spread + lost

    return _least(gap, mu)


def corollary_2(setting: Setting, mu: float) -> Promise:
    r"""Theorem 4 with its constants put in, as printed.

    Examples
    --------
    >>> found = corollary_2(Setting(m=1000, d=10, n=8000, epsilon=1.0, delta=1 / 8000), 5.0)
    >>> round(found.bound), round(found.steps)
    (16, 47)
    """
    validate.positive("mu", mu)
    reach, radius, bound = setting.public_radius, setting.private_radius, setting.norm_bound
    residual, bend = bound * reach + setting.largest_label, 1 + 2 * mu * reach**2
    logs = math.log(setting.m * setting.n / setting.beta)
    budget = setting.epsilon * setting.n
    gap = 32 * bend**0.25 * (bound * reach) ** 1.5 * radius
    gap *= math.sqrt(residual * mu * logs) * setting._log**0.25 / math.sqrt(budget)
    steps = budget * residual * math.sqrt(bend)
    steps /= 4 * bound * reach * radius**2 * mu * logs * math.sqrt(setting._log)
    return Promise(gap, steps, mu)


def theorem_10(setting: Setting, steps: float, mu: float, *, printed: bool = True) -> float:
    r"""Algorithm 2: how far the penalised softmax may end above its minimum after K steps.

    As printed :math:`2 (\mu \hat r^4 + \lambda) / K` for the steps and :math:`8 \mu r^2 \hat r^2
    \sqrt{2 K \log(1/\delta)} \log K \log(m K / \beta) / (\epsilon n)` for the noise. With
    ``printed=False``, what follows for steps 3 / (k + 2): :math:`9 / 4` times the modulus times the
    squared diameter 4 of the simplex, that is 9; the noise without :math:`\log K`.

    Examples
    --------
    >>> setting = Setting(m=1000, d=10, n=10**9, epsilon=1.0, delta=1 / 8000)
    >>> round(theorem_10(setting, 100, 5.0) / theorem_10(setting, 100, 5.0, printed=False), 2)
    0.22
    """
    K, modulus = validate.positive("steps", steps), mu * setting.public_radius**4 + setting.penalty
    noise = 8 * mu * setting._reach * math.sqrt(2 * K * setting._log)
    noise *= math.log(setting.m * K / setting.beta) / (setting.epsilon * setting.n)
    if printed:
        return 2 * modulus / K + noise * math.log(K)
    return 9 / 4 * _DIAMETER_SQUARED * modulus / K + noise


def corollary_3(setting: Setting, *, printed: bool = True) -> Promise:
    r"""Algorithm 2: excess of the discrepancy over the least one, with the printed K and mu.

    The bound is that of :func:`theorem_10` plus the softmax' own error (:math:`\log(m + n) / \mu`
    as printed, :math:`\log(2d) / \mu` in truth), times :math:`4 \Lambda^2`; the part
    :math:`\lambda \|q^*\|^2 / 2` is left out. With ``printed=False`` K and mu are the ones of least
    bound.

    Examples
    --------
    >>> small = Setting(m=1000, d=10, n=1000, epsilon=1.0, delta=1 / 8000)
    >>> round(corollary_3(small).steps, 2)  # not one step
    0.67
    """
    if not printed:
        return _least_excess(
            setting, lambda mu: _least(lambda K: theorem_10(setting, K, mu, printed=False), mu)
        )
    logs = setting._log ** (1 / 3) * math.log(setting.n) ** (2 / 3)
    logs *= math.log(setting.m * setting.n / setting.beta) ** (2 / 3)
    steps = (setting.public_radius / setting.private_radius) ** (4 / 3)
    steps *= (setting.epsilon * setting.n) ** (2 / 3) / (3 * logs)
    mu = math.sqrt(steps * math.log(setting.m + setting.n) / 8) / setting.public_radius**2
    excess = theorem_10(setting, max(steps, 1.0), mu) + math.log(setting.m + setting.n) / mu
    return Promise(setting.strength * excess, steps, mu)


def theorem_11(setting: Setting, mu: float, *, printed: bool = True) -> Promise:
    r"""Algorithm 3: how far the penalised softmax may end above its minimum, and its K.

    As printed :math:`46 (\lambda + \hat r^2) \mu r^2 \hat r^2 \log(2m/\beta) \sqrt{m
    \log(1/\delta)} / (\epsilon n)`. (Errata: at the printed K the slope :math:`L = \lambda +
    \hat r^2` cancels, so that the factor does not belong there, and the bound is too small where it
    is below 0.7; and :math:`\Phi` is :math:`2/e^2`-strongly convex, not 1.) With ``printed=False``
    what mirror descent gives: :math:`e \sqrt{2 \log m\, (L^2 / K + 4 s^2 \log(2m/\beta))} + 2 s
    \sqrt{\log(1/\beta)}`, :math:`s \sqrt K` the printed noise of an entry, at the printed K (at
    least 1).

    Examples
    --------
    >>> setting = Setting(m=1000, d=10, n=8000, epsilon=1.0, delta=1 / 8000)
    >>> round(theorem_11(setting, 1.0).bound, 1)
    5.8
    """
    validate.positive("mu", mu)
    slope, logs = setting.public_radius**2 + setting.penalty, math.log(2 * setting.m / setting.beta)
    budget = setting.epsilon * setting.n
    steps = (slope * budget / (mu * setting._reach)) ** 2 / (128 * setting.m * logs * setting._log)
    noise = mu * setting._reach * math.sqrt(setting.m * setting._log) / budget
    if printed:
        return Promise(46 * slope * noise * logs, steps, mu)
    entry = 4 * math.sqrt(2) * noise
    rest = slope**2 / max(steps, 1.0) + 4 * entry**2 * logs
    bound = math.e * math.sqrt(2 * math.log(max(setting.m, 2)) * rest)
    return Promise(bound + 2 * entry * math.sqrt(math.log(1 / setting.beta)), steps, mu)


def corollary_4(setting: Setting, *, printed: bool = True) -> Promise:
    r"""Algorithm 3: excess of the discrepancy over the least one, with the printed mu.

    As :func:`corollary_3`, for :func:`theorem_11`.

    Examples
    --------
    >>> many = Setting(m=1000, d=10, n=10**6, epsilon=1.0, delta=1 / 8000)
    >>> bool(corollary_4(many, printed=False).bound < corollary_4(many).bound)
    True
    """
    if not printed:
        return _least_excess(setting, lambda mu: theorem_11(setting, mu, printed=False))
    slope, logs = setting.public_radius**2 + setting.penalty, math.log(2 * setting.m / setting.beta)
    mu = math.sqrt(setting.epsilon * setting.n) * math.log(setting.m + setting.n) ** 0.25
    mu /= 4 * setting.private_radius * setting.public_radius * math.sqrt(slope * logs)
    mu /= (setting.m * setting._log) ** 0.25
    found = theorem_11(setting, mu)
    excess = found.bound + math.log(setting.m + setting.n) / mu
    return Promise(setting.strength * excess, found.steps, mu)


def _least_excess(setting: Setting, promise: Callable[[float], Promise]) -> Promise:
    """Least excess of the discrepancy over all mu, from that of the softmax."""

    def total(mu: float) -> Promise:
        found = promise(mu)
        error = math.log(2 * setting.d) / mu
        return found._replace(bound=setting.strength * (found.bound + error))

    sharpness = np.geomspace(1e-3, 1e4, 71) / setting.public_radius**2
    return min((total(float(mu)) for mu in sharpness), key=lambda each: each.bound)


def _least(bound: Callable[[float], float], mu: float) -> Promise:
    """Least value over the number of steps."""
    counts = np.unique(np.geomspace(1, _MOST_STEPS, 300).round())
    values = [bound(float(K)) for K in counts]
    best = int(np.argmin(values))
    return Promise(values[best], float(counts[best]), mu)


def weights_choice(session: Session, query: SecondMoment, X: npt.ArrayLike) -> Exponential:
    """Plan a choice among weights on the hold-out part of a session that was split.

    Its range is proved in :func:`.queries.hidden_discrepancies`.

    Parameters
    ----------
    session : Session
        After ``session.split(holdout)``.
    query : SecondMoment
        As it will be hidden on the hold-out part.
    X : array-like of shape (m, d)
        Public rows, scaled and with an intercept column; their size decides what rounding adds.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> private = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000)
    >>> query, X = SecondMoment(Cleaning(radius=1.0)), np.eye(2)
    >>> candidates = [np.array([0.5, 0.5]), np.array([0.9, 0.1]), np.array([0.1, 0.9])]
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     session.split(holdout=0.5)
    ...     grants = session.plan(choice=weights_choice(session, query, X))
    ...     moment = session.hide(query, "holdout")
    ...     best = choose_weights(session, grants.choice, moment, X, candidates)
    >>> candidates[best]
    array([0.9, 0.1])
    """
    n_holdout = session.size("holdout")
    if n_holdout < 1:
        raise ValueError("session must be split first, with at least one row in the hold-out part.")
    bounds = RowBounds.of(query, public_rows(X), n_holdout)
    return Exponential("choice of weights", choice_range(bounds), part="holdout")


def choose_weights(
    session: Session,
    grant: Grant,
    moment: Hidden,
    X: npt.ArrayLike,
    candidates: Sequence[npt.ArrayLike],
) -> int:
    """Index of the candidate weights that match the hold-out rows best, up to the noise.

    Parameters
    ----------
    session : Session
    grant : Grant
        Of :func:`weights_choice`.
    moment : Hidden
        The second moment of the hold-out part.
    X : array-like of shape (m, d)
    candidates : sequence of arrays of shape (m,)
        Weights in the simplex, not computed from the hold-out part.

    Examples
    --------
    See :func:`weights_choice`.

    >>> callable(choose_weights)
    True
    """
    rows = public_rows(X)
    moments = [weighted_moment(rows, np.asarray(q, dtype=float)) for q in candidates]
    if not moments:
        raise ValueError("candidates must hold at least one set of weights.")

    bounds = bounds_of(session, moment, rows)
    found = hidden_discrepancies(session, moment, moments, bounds)
    return int(session.release(grant, found))
