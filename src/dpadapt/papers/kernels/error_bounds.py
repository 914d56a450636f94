"""What the theorems of paper 002 promise, as numbers: errors of answers, excess losses, rows.

Every bound is computed from public facts alone (n, lambda, L, R, epsilon, delta), before or after a
fit, and holds with probability 1 - beta over the noise (and the draw of the pool). Two columns:
``calibration="printed"`` evaluates the rate as the paper prints it, with 1 for the constant that
it does not give; the others are proved here, with every constant.

**Interactive answers (Theorems 3 and 10).** While no noise is above sigma/4, an answer without a
step is within sigma + sigma/4 of <w*, phi(z)>, and an answer with a step within sigma/4; and B
steps are enough. So every one of T answers is within 5 sigma/4, :func:`answer_error`.

**A path of noise.** s R sqrt(2 ln(2T/beta)), with s = Delta/mu: T Gaussian numbers of standard
deviation s R at most. The rate is 1/(n lambda epsilon), Theorem 3's is the root of that.

**TDDL (Theorems 5 and 13).** Let p and p^ be the predictions of w* and w^ at the pool. w* is in the
ball, so |p^ - p - b|^2 <= |b|^2, hence |p^ - p| <= 2 |b|, and the mean of |p^_t - p_t| is at most
2 |b| / sqrt(T). From the pool to the population, over all w of norm C: the Rademacher mean of
|<w - w*, phi>| is at most C R / sqrt(T) (contraction), its range 2 C R, so with probability
1 - beta/2

    E |<w^ - w*, phi(z)>| <= 2 |b| / sqrt(T) + 2 C R / sqrt(T) + 2 C R sqrt(ln(2/beta) / (2T)).

|b| / sqrt(T) is at most nu ln(2T/beta) for Laplace noise and s (1 + sqrt(2 ln(2/beta) / T)) for
Gaussian noise, but for beta/2. With k outputs, of which w and the ball are the joint ones, b has
T k numbers, and each output keeps to sqrt(k) times the noise and to ln(2k/beta). The excess loss is
at most L times that (:func:`excess_of_tddl`); it is never above 2 L C R. Theorem 5 says this of a
finite test set that the pool is drawn from, Theorem 13 of a population: the numbers are the same.

**TDIL (Theorem 8).** A choice among N points misses the largest difference by at most
(2S/e) ln(2BN/beta), for all B rounds. In a round without a step the difference at the chosen point
is at most 5 sigma/4; so it is at most 5 sigma/4 + (2S/e) ln(2BN/beta) at *every* point of the pool
(:func:`error_of_tdil`). It is a statement about the model of the first round without a step, which
is what the paper's proof is about; later steps bring the model nearer to w* in norm, and nothing
is proved of its answers: a fitted TDIL model gives no ``error_bound``.

**Rows (Corollary 6).** The least n at which TDDL's excess is what was asked for
(:func:`rows_for_tddl`). Erratum: the corollary bounds the loss itself, which no number of rows
does where labels are noisy; what its proof gives is the loss above that of w*.
"""

from __future__ import annotations

import math
from dataclasses import replace

from scipy.optimize import brentq

from dpadapt import _validate as validate
from dpadapt.kernels.constants import Bounds, KernelFacts
from dpadapt.privacy.accounting.calibration import calibrate, gaussian_mu
from dpadapt.privacy.accounting.events import LaplaceEvent

from .machines import MachineFacts, PINPConstants
from .rounds import Rounds


def composed_epsilon(count: int, epsilon: float, delta: float) -> float:
    """e_0 of which ``count`` fit into (epsilon, delta) by advanced composition.

    Solves sqrt(2 T ln(1/delta)) e_0 + T e_0 (exp(e_0) - 1) = epsilon (Dwork, Rothblum, Vadhan 2010;
    Theorem 11 of the paper), from below.

    Examples
    --------
    >>> round(math.sqrt(2) / composed_epsilon(100, 0.1, 1e-6))  # noise in units of S
    746
    """
    validate.count("count", count)
    linear = math.sqrt(2 * count * -math.log(validate.delta(delta)))

    def excess(e: float) -> float:
        return linear * e + count * e * math.expm1(e) - epsilon

    high = validate.epsilon(epsilon) / linear
    return float(brentq(excess, 0.0, high, rtol=1e-12, xtol=1e-300)) * (1 - 1e-11)


_MOST_POINTS = 1 << 40  # of a pool


def answer_error(facts: KernelFacts, questions: int, *, calibration: str = "tight") -> float:
    """Largest error of T answers of Algorithm 1, PINP (Theorems 3 and 10).

    Parameters
    ----------
    facts : KernelFacts
    questions : int
        T.
    calibration : {"tight", "paper", "printed"}, default="tight"
        The least noise, the constants of Theorem 9, or Theorem 3's rate with the constant 1.

    Examples
    --------
    >>> facts = KernelFacts(rows=10**8, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> few, many = (answer_error(facts, T) for T in (100, 10_000))
    >>> few < many < 1.5 * few  # T counts by its logarithm
    True
    """
    validate.choice("calibration", calibration, ("tight", "paper", "printed"))
    if calibration == "printed":
        logs = math.sqrt(facts.lipschitz * math.log(questions / facts.beta))
        top = facts.ball * facts.radius**2 * logs * math.log(1 / facts.delta) ** 2
        return top / math.sqrt(facts.rows * facts.epsilon * facts.penalty)
    setting = MachineFacts(
        facts.prediction,
        facts.radius,
        facts.ball,
        facts.epsilon,
        facts.delta,
        questions,
        facts.beta,
    )
    make = PINPConstants.paper if calibration == "paper" else PINPConstants.calibrated
    return 1.25 * make(setting).threshold


def excess_of_tddl(facts: KernelFacts, points: int, *, calibration: str = "gaussian") -> float:
    """Loss of Algorithm 2, TDDL, above that of the model without noise (Theorems 5 and 13).

    Parameters
    ----------
    facts : KernelFacts
    points : int
        T, of the pool, drawn from the population (or the test set) that the loss is taken over.
    calibration : {"gaussian", "laplace", "paper", "printed"}, default="gaussian"
        The noise; or the printed rate, with the constant 1.

    Examples
    --------
    >>> facts = KernelFacts(rows=10**8, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> [round(excess_of_tddl(facts, T), 2) for T in (10**4, 10**7, 10**10)]
    [4.72, 0.2, 1.69]
    """
    T = validate.count("points", points)
    L, R, C = facts.lipschitz, facts.radius, facts.ball
    validate.choice("calibration", calibration, ("gaussian", "laplace", "paper", "printed"))
    if calibration == "printed":
        logs = math.sqrt(C * math.sqrt(math.log(1 / facts.delta))) * math.log(T / facts.beta)
        return (L * R) ** 1.5 * logs / math.sqrt(facts.rows * facts.epsilon * facts.penalty)
    noise = _pool_noise(facts, T, calibration)
    rare = math.log(2 * facts.outputs / facts.beta)
    learnt = 2 * C * R * (1 + math.sqrt(rare / 2)) / math.sqrt(T)
    return L * min(2 * C * R, 2 * noise + learnt)


def _pool_noise(facts: KernelFacts, T: int, calibration: str) -> float:
    """Bound of |b| / sqrt(T), but for beta/2."""
    S, epsilon, delta = facts.prediction, facts.epsilon, facts.delta
    rare, k = 2 / facts.beta, facts.outputs
    if calibration == "gaussian":
        scale = math.sqrt(T) * S / gaussian_mu(epsilon, delta)
        return scale * (math.sqrt(k) + math.sqrt(2 * math.log(rare) / T))
    if k > 1:
        raise ValueError("calibration: for more than one output a bound is that of 'gaussian'.")
    if calibration == "paper":
        return S / composed_epsilon(T, epsilon, delta) * math.log(T * rare)
    unit = calibrate(lambda nu: [LaplaceEvent("predictions", 1.0, nu, count=T)], epsilon, delta)
    return S * unit * math.log(T * rare)


def points_of_tddl(facts: KernelFacts, *, calibration: str = "gaussian") -> int:
    """T at which the bound of TDDL is least (the T of Theorem 5), to a factor of 1.2.

    Examples
    --------
    >>> facts = KernelFacts(rows=10**8, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> T = points_of_tddl(facts)
    >>> excess_of_tddl(facts, T) <= min(excess_of_tddl(facts, t) for t in (T // 2, 2 * T))
    True
    """
    tried, T = [1], 1.0
    while T < _MOST_POINTS:
        T *= 1.2
        tried.append(math.ceil(T))
    return min(tried, key=lambda points: excess_of_tddl(facts, points, calibration=calibration))


def rows_for_tddl(facts: KernelFacts, excess: float, *, calibration: str = "gaussian") -> int:
    """Least n, to a hundredth, at which TDDL's excess loss is at most ``excess`` (Corollary 6).

    Parameters
    ----------
    facts : KernelFacts
        ``rows`` is not looked at.
    excess : float
        Loss above that of the model without noise.
    calibration : {"gaussian", "paper", "printed"}, default="gaussian"
        "printed": L^4 R^3 log^2(1/beta) log^(1/2)(1/delta) / (excess^2 epsilon).

    Examples
    --------
    >>> facts = KernelFacts(rows=1, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> n = rows_for_tddl(facts, 0.5)
    >>> n / rows_for_tddl(facts, 1.0) > 3  # as one over the square
    True
    """
    validate.positive("excess", excess)
    L, R = facts.lipschitz, facts.radius
    if calibration == "printed":
        logs = math.log(1 / facts.beta) ** 2 * math.sqrt(math.log(1 / facts.delta))
        return math.ceil(L**4 * R**3 * logs / (excess**2 * facts.epsilon))
    validate.choice("calibration", calibration, ("gaussian", "paper", "printed"))

    def at(rows: float) -> float:
        known = replace(facts, rows=math.ceil(rows))
        points = points_of_tddl(known, calibration=calibration)
        return excess_of_tddl(known, points, calibration=calibration)

    low = high = 1.0
    while at(high) > excess:
        low, high = high, 8 * high
    while high > 1.01 * low and high > 1:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if at(middle) > excess else (low, middle)
    return math.ceil(high)


def error_of_tdil(
    facts: KernelFacts,
    points: int,
    *,
    calibration: str = "tight",
    columns: int = 1,
    stretch: float = math.e,
) -> float:
    """Largest error of Algorithm 3, TDIL, at any of N points (Theorem 8).

    Parameters
    ----------
    facts : KernelFacts
    points : int
        N, of the pool (of the net, in the paper).
    calibration : {"tight", "printed"}, default="tight"
        The repaired algorithm; or the printed rate with the constant 1.
    columns : int, default=1
        d, for the printed rate.
    stretch : float, default=e
        L_phi, for the printed rate: at 1 (a linear kernel) that is 0 (an erratum).

    Examples
    --------
    >>> facts = KernelFacts(rows=10**8, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> error_of_tdil(facts, 300) < facts.ball / 10
    True
    """
    validate.choice("calibration", calibration, ("tight", "printed"))
    L, R = facts.lipschitz, facts.radius
    if calibration == "printed":
        logs = math.log(stretch) * math.log(1 / facts.beta) * math.log(1 / facts.delta) ** 2
        top = R * columns ** (1 / 3) * L ** (8 / 3) * logs
        return top / ((facts.penalty**2 * facts.rows) ** (2 / 3) * math.sqrt(facts.epsilon))
    rounds = Rounds.of(
        Bounds(facts.model, facts.ball, R),
        epsilon=facts.epsilon,
        delta=facts.delta,
        failure=facts.beta / 2,
    )
    # no more noise than zCDP asks for: rho = B (e^2/8 + (S/s)^2/2), divided as the rounds do
    rare = math.log(1 / facts.delta)
    rho = (math.sqrt(rare + facts.epsilon) - math.sqrt(rare)) ** 2 / rounds.count
    choice = 2 * facts.prediction / math.sqrt(8 * rounds.share * rho)
    measure = facts.prediction / math.sqrt(2 * (1 - rounds.share) * rho)
    missed = choice * math.log(2 * rounds.count * points / facts.beta)
    return 1.25 * rounds.threshold(measure) + missed
