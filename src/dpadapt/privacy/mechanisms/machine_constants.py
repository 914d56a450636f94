r"""Algorithm 1 of Jain and Thakurta (2013), private interactive prediction (PINP), repaired.

Questions z_t are answered from a public model w_t while it is near the private one, w*:

    a = <w*, phi(z)> + Laplace(b),    d = a - <w_t, phi(z)>;
    |d| > sigma:  answer a, and step  w_{t+1} = w_t + eta sign(d) phi(z),  eta = sigma / (4 R^2);
    else:         answer <w_t, phi(z)>.

After B steps w* is not touched any more: w_B, which is public, answers.

Errata. The noise of Algorithm 1 is half of what its own Theorem 9 asks for, 1/b = eps / (200
sqrt(B) S log(4/delta)) with S = 2 L R^2 / (lambda n). Its B does not keep its value when the
features are rescaled; the potential argument (each step takes 5 sigma^2 / (16 R^2) off
|w_t - w*|^2 while every noise is below sigma/4) gives B = (16/5) C^2 R^2 / sigma^2. The sign is
that of the noisy d. S = R Delta needs K(z, z) <= R^2 for every question.

**Privacy.** One draw decides and is released, so this is no sparse vector technique, whose proof
needs two; nor is a run pure-DP, for any number of answers without a step may pass.
:class:`~.updates.UpdatesEvent` states what it costs, with the proof: about what two e-DP releases
cost a step, e = S / b. By that account the constants of Theorem 9 ask for hundreds of times the
noise that they need.

The alternative, a sparse vector, decides and answers with separate noise. Both are run by
:mod:`.machines`; the constants here are public, and what they cost follows from them alone.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

from ... import _validate as validate
from ..accounting.calibration import calibrate, gaussian_mu
from ..accounting.events import Event, PureEvent
from ..core.noise import NoiseSource, SecureNoise
from .interactive import Interactive
from .updates import UpdatesEvent

__all__ = ["PINPConstants", "Setting", "SparseVectorConstants"]

POTENTIAL = 16 / 5  # steps, at most, in units of (C R / sigma)^2


@dataclass(frozen=True)
class Setting:
    """The public facts from which constants are derived.

    Parameters
    ----------
    prediction : float
        S, by how much one prediction moves: R Delta, and twice the rounding error of a score.
    bound : float
        R.
    norm : float
        C, a public bound on the norm of w*.
    epsilon, delta : float
        To be spent on all answers together.
    questions : int
        T. More may be asked: of no matter for privacy.
    failure : float, default=0.05
        beta: probability that a noise of T questions is above sigma/4.

    Examples
    --------
    >>> Setting(1e-4, bound=1.0, norm=1.0, epsilon=1.0, delta=1e-6, questions=10).failure
    0.05
    """

    prediction: float
    bound: float
    norm: float
    epsilon: float
    delta: float
    questions: int
    failure: float = 0.05

    def __post_init__(self) -> None:
        for name in ("prediction", "bound", "norm"):
            validate.positive(name, getattr(self, name))
        validate.epsilon(self.epsilon)
        validate.delta(self.delta)
        validate.count("questions", self.questions)
        validate.fraction("failure", self.failure)

    @property
    def rare(self) -> float:
        """Log(2T/beta): of T Laplace noises none is above it, save with probability beta/2."""
        return math.log(2 * self.questions / self.failure)

    def updates(self, unit: float) -> int:
        """B at which sigma = 4 unit sqrt(B) and B = (16/5) (C R / sigma)^2 meet."""
        return max(1, math.ceil(math.sqrt(POTENTIAL) * self.norm * self.bound / (4 * unit)))

    def least_threshold(self, updates: int) -> float:
        """Smallest sigma at which so many steps are enough."""
        return math.sqrt(POTENTIAL / updates) * self.norm * self.bound


@dataclass(frozen=True)
class _Constants(Interactive):
    """What both algorithms fix beforehand; public."""

    updates: int
    prediction: float
    bound: float
    norm: float
    threshold: float
    scale: float

    fixed: ClassVar[bool] = True

    @property
    def label(self) -> str:  # type: ignore[override]
        """What it is, for the event log."""
        return "interactive answers"

    def scale_at(self, multiplier: float) -> float:
        """Its own, whatever the multiplier."""
        return self.scale

    def __post_init__(self) -> None:
        validate.count("updates", self.updates)
        for field in dataclasses.fields(self)[1:]:
            validate.positive(field.name, getattr(self, field.name))

    @property
    def step(self) -> float:
        """Length of a step, eta."""
        return self.threshold / (4 * self.bound**2)


@dataclass(frozen=True)
class PINPConstants(_Constants):
    """Constants of :class:`~.machines.PINPMachine`; made by :meth:`paper` or :meth:`calibrated`.

    Attributes
    ----------
    updates : int
        B.
    prediction, bound, norm : float
        S, R and C.
    threshold : float
        sigma.
    scale : float
        b, of the Laplace noise.

    Examples
    --------
    >>> setting = Setting(1e-4, bound=1.0, norm=10.0, epsilon=1.0, delta=1e-6, questions=1000)
    >>> PINPConstants.paper(setting).updates, PINPConstants.calibrated(setting).updates
    (2, 707)
    """

    @classmethod
    def paper(cls, setting: Setting) -> PINPConstants:
        """Constants of Theorem 9, corrected (see the module)."""
        unit = 200 * setting.prediction * math.log(4 / setting.delta) / setting.epsilon
        updates = setting.updates(unit * setting.rare)
        scale = unit * math.sqrt(updates)
        facts = (setting.prediction, setting.bound, setting.norm)
        return cls(updates, *facts, 4 * scale * setting.rare, scale)

    @classmethod
    def calibrated(cls, setting: Setting) -> PINPConstants:
        """The same algorithm with the least noise that :class:`UpdatesEvent` allows."""
        epsilon, delta = setting.epsilon, setting.delta
        unit = math.sqrt(2) * setting.prediction / gaussian_mu(epsilon, delta)  # about b / sqrt(B)
        updates = setting.updates(unit * setting.rare)
        noise = calibrate(lambda b: [UpdatesEvent("", 1.0, b, updates)], epsilon, delta)
        scale = noise * setting.prediction
        threshold = max(4 * scale * setting.rare, setting.least_threshold(updates))
        facts = (setting.prediction, setting.bound, setting.norm)
        return cls(updates, *facts, threshold, scale)

    def events(self, scale: float, source: NoiseSource) -> tuple[Event, ...]:
        """What to charge before the first question, for all of them."""
        # what a grid of discrete noise adds to the sensitivity
        one = source.laplace_event("", self.prediction, self.scale, 1, 1)
        total = float(getattr(one, "sensitivity", math.inf))
        return (UpdatesEvent("interactive answers", total, self.scale, self.updates),)


@dataclass(frozen=True)
class SparseVectorConstants(_Constants):
    """Constants of :class:`~.machines.SparseVectorMachine`; made by :meth:`calibrated`.

    Attributes
    ----------
    updates : int
        B.
    prediction, bound, norm : float
        S, R and C.
    threshold : float
        sigma.
    scale : float
        Of the Gaussian noise of an answer.
    segment : float
        e_1, cost of all questions up to and including one above the threshold.

    Examples
    --------
    >>> setting = Setting(1e-4, bound=1.0, norm=10.0, epsilon=1.0, delta=1e-6, questions=1000)
    >>> SparseVectorConstants.calibrated(setting).updates
    89
    """

    segment: float

    @classmethod
    def calibrated(cls, setting: Setting, *, share: float = 0.5) -> SparseVectorConstants:
        """Least noise for B segments and B answers; ``share`` of the budget for the segments.

        With probability 1 - beta no segment of T questions errs by more than 8 S log(2T/beta) / e_1
        (Dwork and Roth 2014, Theorem 3.24), a fourth of sigma.
        """
        compare, answer = math.sqrt(validate.fraction("share", share)), math.sqrt(1 - share)
        mu, rare = gaussian_mu(setting.epsilon, setting.delta), 8 * setting.rare
        updates = setting.updates(rare * setting.prediction / (mu * compare))  # e_1 sqrt(B) ~ mu

        def at(noise: float) -> tuple[Event, ...]:
            return _sparse_events(compare / noise, 1.0, noise / answer, updates, SecureNoise())

        noise = calibrate(at, setting.epsilon, setting.delta)
        segment, scale = compare / noise, setting.prediction * noise / answer
        threshold = 4 * rare * setting.prediction / segment
        threshold = max(threshold, setting.least_threshold(updates))
        facts = (setting.prediction, setting.bound, setting.norm)
        return cls(updates, *facts, threshold, scale, segment)

    def events(self, scale: float, source: NoiseSource) -> tuple[Event, ...]:
        """What to charge before the first question, for all of them."""
        return _sparse_events(self.segment, self.prediction, self.scale, self.updates, source)


def _sparse_events(
    segment: float, prediction: float, scale: float, updates: int, source: NoiseSource
) -> tuple[Event, ...]:
    return (
        PureEvent("questions above the threshold", segment, updates),
        source.gaussian_event("interactive answers", prediction, scale, 1, updates),
    )
