r"""How many rows, people, rounds and steps the theorems of paper 003 ask for.

Two columns for each algorithm: the numbers as printed, and what the same proofs need once their
errata are repaired (marked below) and the privacy is counted by this library's accountant. The
formulas are worst cases; the experiments need far fewer.

Errata of the printed numbers:

- Algorithm 2 counts :math:`\epsilon^* = 6 \epsilon_M m / (\kappa n)` for a round, which is false
  for large :math:`\epsilon_M` (it needs :math:`\epsilon_M \le 1`). The exact loss of m draws is
  :math:`m \ln(1 + (e^{\epsilon_M} - 1) / (\kappa n))`.
- Algorithm 3's number of steps: :math:`LD \sqrt{8 \ln(2/\beta)/R} \le \alpha/2` needs
  :math:`32 D^2 L^2 \ln(2/\beta)/\alpha^2`, printed is 8; and the noise is bounded in expectation
  only, where a term :math:`D \sigma \sqrt{2 \ln(1/\beta)/R}` is missing.
- Agents: Gaussian answers of variance :math:`2 \ln(2/\delta)/\epsilon^2`; randomised bits do with
  about a twentieth of the people, without a delta.
- The appendix's private run uses :math:`\kappa = \alpha / (4 (\chi^2 + 1))`, the theorem needs 8;
  and its n of 324.7 million fits R = 50 million only with T = 997, far below the theorem's T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dpadapt import _validate as validate
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_delta
from dpadapt.privacy.local.replies import agents_needed

from .doors.draws import DrawsEvent
from .doors.one_draw import OneDrawGaussianEvent

__all__ = [
    "SampleSizes",
    "agents_for_test",
    "least_density",
    "rounds_with_schedule",
    "rows_for_a_finite_class",
    "rows_for_utility",
    "sizes_of_algorithm_1",
    "sizes_of_algorithm_2",
    "sizes_of_algorithm_4",
]

Calibration = Literal["tight", "paper"]


@dataclass(frozen=True)
class SampleSizes:
    """What an algorithm needs for its theorem.

    Attributes
    ----------
    rows : int
        n, of the curator.
    rounds : int
        T.
    density : float
        kappa; 1 where there is no projection.
    agents_per_round : int
        N_0; 0 where a statistical-query oracle answers.
    steps : int
        R, of one run of the descent; 0 where there is none.
    noise : float
        sigma, of a step of the descent; 0 where there is none.

    Examples
    --------
    >>> sizes_of_algorithm_1(alpha=0.1, beta=0.05, chi2=1.0, dimension=2).agents
    0
    """

    rows: int
    rounds: int
    density: float = 1.0
    agents_per_round: int = 0
    steps: int = 0
    noise: float = 0.0

    @property
    def agents(self) -> int:
        """N = N_0 T."""
        return self.agents_per_round * self.rounds


def sizes_of_algorithm_1(*, alpha: float, beta: float, chi2: float, dimension: int) -> SampleSizes:
    """Sizes of the non-private algorithm (Theorem 3.1).

    Parameters
    ----------
    alpha, beta : float
        Error, and probability of failure.
    chi2 : float
        chi-squared divergence of the target from the source.
    dimension : int
        Pseudo-dimension of the hypotheses.

    Examples
    --------
    >>> sizes_of_algorithm_1(alpha=0.1, beta=0.05, chi2=0.35, dimension=8).rounds
    21616
    """
    excess = _checked(alpha, beta, chi2)
    d = validate.count("dimension", dimension)
    capacity = d * math.log(400 * d / alpha**3) + math.log(8 / beta)
    rows = 800 * excess * math.log(1 / alpha) / alpha**2 * capacity
    return SampleSizes(math.ceil(rows), _rounds(32, alpha, excess))


def sizes_of_algorithm_2(
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    chi2: float,
    draws: int,
    calibration: Calibration = "tight",
) -> SampleSizes:
    """Sizes of the private algorithm with any learner that is (1, delta_M)-private.

    Parameters
    ----------
    alpha, beta, chi2 : float
        As for Algorithm 1.
    epsilon, delta : float
        Of the curator's rows, and of the agents.
    draws : int
        m_1, rows that the learner needs for error alpha at epsilon 1.
    calibration : {"tight", "paper"}

    Examples
    --------
    >>> known = dict(alpha=0.2, beta=0.05, epsilon=0.5, delta=1e-4, chi2=0.35, draws=100)
    >>> printed = sizes_of_algorithm_2(**known, calibration="paper")
    >>> tight = sizes_of_algorithm_2(**known)
    >>> tight.rows < printed.rows, tight.agents_per_round < printed.agents_per_round / 15
    (True, True)
    """
    excess = _checked(alpha, beta, chi2)
    _checked_budget(epsilon, delta, calibration)
    validate.count("draws", draws)
    density, rounds = least_density(alpha, chi2), _rounds(128, alpha, excess)
    agents = agents_for_test(alpha, beta / rounds, epsilon, delta, calibration)
    if calibration == "paper":
        rows = draws * math.sqrt(288 * rounds * math.log(2 / delta)) / (epsilon * density)
        return SampleSizes(math.ceil(rows), rounds, density, agents)
    learner_delta = delta / (math.e * math.sqrt(2 * rounds))

    def spent(n: int) -> float:
        rate = min(1.0, 1 / (density * n))
        event = DrawsEvent("draws", 1.0, learner_delta, draws=draws, rate=rate, count=rounds)
        return compose_delta([event], epsilon)

    # by the central limit: rounds that each lose m b (e - 1) at most
    lost = draws * math.expm1(1.0) * math.sqrt(rounds)
    guess = lost / (density * gaussian_mu(epsilon, delta))
    return SampleSizes(_least(spent, delta, guess), rounds, density, agents)


def sizes_of_algorithm_4(
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    chi2: float,
    dimension: int,
    lipschitz: float = 1.0,
    diameter: float = 1.0,
    convexity: float | None = None,
    calibration: Calibration = "tight",
) -> SampleSizes:
    """Sizes of the private algorithm with gradient descent, one row a step (Theorem A.4).

    Parameters
    ----------
    alpha, beta, chi2 : float
        As for Algorithm 1; the loss is at most ``lipschitz * diameter``.
    epsilon, delta : float
        Of the curator's rows, and of the agents.
    dimension : int
        d, of the hypotheses.
    lipschitz, diameter : float
        L of the loss, D of the hypotheses.
    convexity : float, optional
        lambda, of a strongly convex loss: fewer steps are enough.
    calibration : {"tight", "paper"}

    Examples
    --------
    >>> paper = sizes_of_algorithm_4(alpha=0.08, beta=1e-6, epsilon=0.5, delta=1e-4, chi2=0.3515,
    ...                              dimension=8, calibration="paper")
    >>> paper.rounds
    141569
    """
    excess = _checked(alpha, beta, chi2)
    _checked_budget(epsilon, delta, calibration)
    d = validate.count("dimension", dimension)
    L, D = validate.positive("lipschitz", lipschitz), validate.positive("diameter", diameter)
    density = least_density(alpha, chi2)
    rounds = math.ceil((L * D) ** 2 * _rounds_exact(128, alpha, excess))
    agents = agents_for_test(alpha, beta / rounds, epsilon, delta, calibration, bound=L * D)
    printed = calibration == "paper"
    variance = 20 * L**2

    def descent(variance: float) -> int:
        square = L**2 + variance * d
        if convexity is not None:  # the mean of the iterates is off by G^2 (1 + ln R)/(2 lambda R)
            unit = square / (validate.positive("convexity", convexity) * alpha)
            few = 4 * unit * math.log(max(unit, math.e))
            chance = (8 if printed else 32) * (D * L) ** 2 * math.log(2 / beta) / alpha**2
            return math.ceil(max(few, chance))
        if printed:
            spread = 9 * D**2 * square
            return math.ceil(max(spread, 8 * (D * L) ** 2 * math.log(2 / beta)) / alpha**2)
        # expectation, chance of the draws, chance of the noise: their sum is at most alpha
        spread = 1.5 * math.sqrt(L**2 + variance * d)
        chance = L * math.sqrt(8 * math.log(4 / beta)) + math.sqrt(
            2 * variance * math.log(2 / beta)
        )
        return math.ceil((D * (spread + chance) / alpha) ** 2)

    steps = descent(variance)
    if printed:
        # sigma and n are defined by each other: a few turns settle them
        for _ in range(20):
            steps = descent(variance)
            unit = 52 * steps * rounds / (8 * density**2 * epsilon)
            rows = math.ceil(math.sqrt(unit * math.log(unit)))
            needed = (16 / epsilon * L**2 * math.log(1 / delta) + 8 * L**2) / math.log(
                density * rows
            )
            variance = max(20 * L**2, needed)
        return SampleSizes(rows, rounds, density, agents, steps, math.sqrt(variance))

    scale = math.sqrt(variance)

    def spent(n: int) -> float:
        rate = min(1.0, 1 / (density * n))
        event = OneDrawGaussianEvent("descent", L, scale, rate=rate, count=steps * rounds)
        return compose_delta([event], epsilon)

    # by the central limit, with the variance of both signs of the loss
    lost = math.sqrt(2 * steps * rounds * math.expm1(4 * L**2 / variance))
    rows = _least(spent, delta, lost / (density * gaussian_mu(epsilon, delta)))
    return SampleSizes(rows, rounds, density, agents, steps, scale)


def rows_for_utility(*, alpha: float, beta: float, chi2: float, dimension: int) -> int:
    r"""Rows of the curator that Theorem 4.3 needs for its error of 4 alpha, privacy aside.

    :math:`(\chi^2 + 1) \ln(1/\alpha) / \alpha^2 (d \ln(d/\alpha) + \ln(1/\beta))` up to a
    constant that is not printed; here with the constants of Theorem 3.1, whose argument it repeats.
    Algorithm 2 needs as many as this *and* as many as :func:`sizes_of_algorithm_2` says.

    Examples
    --------
    >>> rows_for_utility(alpha=0.1, beta=0.05, chi2=0.35, dimension=8)
    31061142
    """
    return sizes_of_algorithm_1(alpha=alpha, beta=beta, chi2=chi2, dimension=dimension).rows


def rows_for_a_finite_class(
    *, alpha: float, beta: float, epsilon: float, delta: float, chi2: float, rules: int
) -> int:
    r"""Rows of the curator for a finite class by the exponential mechanism (Corollary 4.4).

    One round needs :math:`m = 4 \ln(2 T |H| / \beta) / \alpha` draws: the mechanism at epsilon 1
    chooses a rule that errs on at most alpha m / 2 more of them than the best, and m draws tell a
    rule of error alpha from a perfect one. The number of rows follows as for Algorithm 2; it grows
    as :math:`(\chi^2 + 1) \ln(|H|/\beta) / (\alpha^3 \epsilon)`, as printed.

    Parameters
    ----------
    alpha, beta, epsilon, delta, chi2
        As for Algorithm 2.
    rules : int
        Size of the class, H.

    Examples
    --------
    >>> known = dict(alpha=0.2, beta=0.05, epsilon=1.0, delta=1e-6, chi2=0.35)
    >>> rows_for_a_finite_class(**known, rules=10) < rows_for_a_finite_class(**known, rules=10_000)
    True
    """
    rounds = _rounds(128, alpha, _checked(alpha, beta, chi2))
    draws = math.ceil(4 * math.log(2 * rounds * validate.count("rules", rules) / beta) / alpha)
    return sizes_of_algorithm_2(
        alpha=alpha, beta=beta, epsilon=epsilon, delta=delta, chi2=chi2, draws=draws
    ).rows


def agents_for_test(
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float = 0.0,
    calibration: Calibration = "tight",
    bound: float = 1.0,
) -> int:
    r"""People whose answers tell a mean loss up to alpha, with probability 1 - beta (N_0).

    "tight" is Hoeffding's inequality for randomised bits,
    :math:`\ln(2/\beta) B^2 c^2 / (2 \alpha^2)` with
    :math:`c = (e^\epsilon + 1) / (e^\epsilon - 1)`; "paper" is Algorithm 2's number for answers
    with Gaussian noise.

    Parameters
    ----------
    alpha, beta : float
    epsilon, delta : float
        Of a person's answer; delta for "paper" only.
    calibration : {"tight", "paper"}
    bound : float, default=1.0
        B, of the loss. Erratum: the printed number does not grow with it.

    Examples
    --------
    >>> agents_for_test(0.05, 0.05, epsilon=1.0)
    3455
    """
    if calibration == "paper":
        return math.ceil(4 * math.log(2 / delta) * math.log(8 / beta) / (epsilon * alpha) ** 2)
    return agents_needed(alpha / bound, epsilon, beta)


def least_density(alpha: float, chi2: float) -> float:
    r"""Density that the theorems need, :math:`\kappa = \alpha / (8 (\chi^2 + 1))`.

    Examples
    --------
    >>> round(least_density(0.08, 0.3515), 4)
    0.0074
    >>> least_density(0.08, math.inf)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: chi2 must be a finite number, at least 0; got inf. ...
    """
    return alpha / (8 * _checked(alpha, 0.5, chi2))


def rounds_with_schedule(density: float, rate: float) -> int:
    r"""Rounds until the density schedule :math:`e^{-\eta (t - 1)}` comes down to the density.

    Before, every round is cheaper than the printed algorithm's, which pays for the least density
    from the first round on.

    Examples
    --------
    >>> rounds_with_schedule(density=0.0148, rate=0.2)
    23
    """
    return 1 + math.ceil(math.log(1 / validate.fraction("density", density)) / rate)


def _checked(alpha: float, beta: float, chi2: float) -> float:
    """chi^2 + 1, after a look at what was given."""
    validate.fraction("alpha", alpha)
    validate.fraction("beta", beta)
    if not (isinstance(chi2, (int, float)) and 0 <= chi2 < math.inf):
        raise ValueError(
            f"chi2 must be a finite number, at least 0; got {chi2!r}. If the target has rows where "
            "the source has none, no number of rows is enough."
        )
    return chi2 + 1


def _checked_budget(epsilon: float, delta: float, calibration: str) -> None:
    validate.epsilon(epsilon)
    validate.delta(delta)
    validate.choice("calibration", calibration, ("tight", "paper"))


def _rounds_exact(factor: float, alpha: float, excess: float) -> float:
    return factor * math.log2(8 * excess / alpha) / alpha**2


def _rounds(factor: float, alpha: float, excess: float) -> int:
    return math.ceil(_rounds_exact(factor, alpha, excess))


def _least(spent: Callable[[int], float], delta: float, guess: float) -> int:
    """Least n, to a thousandth, at which no more than delta is spent; near a guess."""
    low = high = max(1, math.ceil(guess))
    while spent(high) > delta:
        low, high = high, math.ceil(1.5 * high)
    while low == high or (low > 1 and spent(low) <= delta):
        low, high = math.floor(low / 1.5), low
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return high
