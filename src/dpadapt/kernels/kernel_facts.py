"""Public facts of a kernel model, from which bounds of its errors are computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpadapt import _validate as validate
from dpadapt.privacy.accounting.calibration import gaussian_mu


@dataclass(frozen=True)
class KernelFacts:
    r"""Public facts of a kernel model, in the paper's letters.

    Parameters
    ----------
    rows : int
        n; the number of people where they have several rows, since noise is then theirs.
    penalty : float
        lambda.
    epsilon, delta : float
    lipschitz, radius : float, default=1.0
        L in the score, and R.
    norm : float, optional
        C; by default L R / lambda, which \|w*\| never exceeds (half of the paper's).
    beta : float, default=0.05
        Probability that a bound fails.
    outputs : int, default=1
        k, scores of an answer: a bound is for all of them at once, and L, C are those of all.

    Examples
    --------
    >>> facts = KernelFacts(rows=100_000, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> round(facts.prediction, 6), facts.ball
    (0.002, 100.0)
    """

    rows: int
    penalty: float
    epsilon: float
    delta: float
    lipschitz: float = 1.0
    radius: float = 1.0
    norm: float | None = None
    beta: float = 0.05
    outputs: int = 1

    def __post_init__(self) -> None:
        validate.count("rows", self.rows)
        validate.epsilon(self.epsilon)
        validate.delta(self.delta)
        for name in ("penalty", "lipschitz", "radius", "ball"):
            validate.positive(name, getattr(self, name))
        validate.fraction("beta", self.beta)
        validate.count("outputs", self.outputs)

    @property
    def model(self) -> float:
        """Delta = 2LR/(lambda n), by how much the model moves."""
        return 2 * self.lipschitz * self.radius / (self.penalty * self.rows)

    @property
    def prediction(self) -> float:
        """S = R Delta, by how much a prediction moves."""
        return self.radius * self.model

    @property
    def ball(self) -> float:
        """C."""
        return self.lipschitz * self.radius / self.penalty if self.norm is None else self.norm


def path_error(facts: KernelFacts, questions: int) -> float:
    """Largest error of T answers from one path of noise, or of a model with explicit features.

    Examples
    --------
    >>> facts = KernelFacts(rows=10**6, penalty=0.01, epsilon=1.0, delta=1e-6)
    >>> few, many = (path_error(facts, T) for T in (100, 10_000))
    >>> few < many < 1.5 * few  # T counts by the root of its logarithm
    True
    """
    noise = facts.prediction / gaussian_mu(facts.epsilon, facts.delta)
    rare = 2 * facts.outputs * validate.count("questions", questions) / facts.beta
    return noise * math.sqrt(2 * math.log(rare))
