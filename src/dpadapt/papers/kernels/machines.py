"""Machines that answer questions, their constants and their event: of Algorithm 1, PINP.

Under the rules of :mod:`dpadapt.privacy.mechanisms`: a session plans what is on the closed list
and no other.

**Rounds of which few change the public model, each with one draw of noise: the event, its proof.**

In each round a private value with Laplace noise b, of sensitivity S, is compared with a public
model. Within a threshold of it the round tells so and nothing else; else the noisy value itself is
released and the model makes a step. After B steps there are no more rounds.

Each round is e-DP, e = S / b, with one outcome ("no step") that costs no step and others that cost
one of B. Let M_0 and M_1 be the parts of E'[(p/p')^alpha] that a round has at these outcomes, p and
p' the two laws. If M_1 <= G (1 - M_0) for every e-DP round, the product over all rounds until B
steps, however the questions are chosen, is at most G^B: by induction, M_0 G^j + M_1 G^{j-1} <=
G^j. M_1 is greatest where p/p' takes the values e^{+-e} alone, and is then linear in their
masses, while 1 - M_0 is concave (x^alpha y^{1-alpha} is convex): the ratio is quasi-convex, and so
greatest at a vertex of the polygon of possible masses. With x = pi e^{(alpha-1)e}, y = (1 - pi)
e^{-(alpha-1)e} and pi = 1 / (1 + e^{-e}) the vertices give x/(1-y), y/(1-x) and x + y, of which
the second is the greatest:

    D_alpha <= B log(1 + (x + y - 1) / (1 - x)) / (alpha - 1)    while x < 1,

about alpha e^2 a step, what two e-DP releases cost.

**Algorithm 1 of Jain and Thakurta (2013), private interactive prediction (PINP), repaired.**

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
:class:`UpdatesEvent` states what it costs, with the proof: about what two e-DP releases
cost a step, e = S / b. By that account the constants of Theorem 9 ask for hundreds of times the
noise that they need.

The alternative, a sparse vector, decides and answers with separate noise. Constants are public, and
what both cost follows from them alone. The machines that run them see un-noised answers, so only
:class:`_MachineAnswers` makes them, for a session that has charged for their constants.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.calibration import calibrate, gaussian_mu
from dpadapt.privacy.accounting.events import Addition, Event, NoisyEvent, PureEvent
from dpadapt.privacy.core.noise import NoiseSource, SecureNoise
from dpadapt.privacy.mechanisms.answers import Answers
from dpadapt.privacy.mechanisms.interactive_model import Interactive, InteractiveModel
from dpadapt.privacy.mechanisms.secret_state import Remembered
from dpadapt.privacy.rows.quiet import withhold_errors


@dataclass(frozen=True, slots=True)
class UpdatesEvent(NoisyEvent):
    """Rounds of Laplace noise, as many as are asked for, of which ``count`` change the model.

    A round whose noisy value stays within a threshold tells that alone. The proof stands at the
    head of this file. No statement at delta = 0: any number of rounds may pass.

    Examples
    --------
    >>> event = UpdatesEvent("answers", sensitivity=1.0, scale=100.0, count=10)
    >>> float(event.renyi(np.array([2.0]))[0].round(5))  # about two pure releases a step
    0.00203
    """

    kind: ClassVar[str] = "updates"
    adds: ClassVar[Addition | None] = "laws"
    most: ClassVar[int] = 64

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Count * log(1 + (x + y - 1) / (1 - x)) / (alpha - 1), inf where x >= 1."""
        e, a = self.sensitivity / self.scale, orders - 1
        log_x = a * e - math.log1p(math.exp(-e))
        finite = log_x < 0
        half = np.where(finite, a * e / 2, 0.0)
        excess = 2 * np.sinh(half) * (np.sinh(half) + math.tanh(e / 2) * np.cosh(half))
        room = -np.expm1(np.where(finite, log_x, -1.0))
        return np.where(finite, self.count * np.log1p(excess / room) / a, math.inf)


POTENTIAL = 16 / 5  # steps, at most, in units of (C R / sigma)^2

Score = Callable[[Any], float]
_Kernel = Callable[[Any, Sequence[Any]], FloatArray]


@dataclass(frozen=True)
class MachineFacts:
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
    >>> MachineFacts(1e-4, bound=1.0, norm=1.0, epsilon=1.0, delta=1e-6, questions=10).failure
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

    def _answers(
        self,
        session: Any,
        model: InteractiveModel,
        coefficients: FloatArray,
        scale: float,
        state: Any,
    ) -> Answers:
        return _MachineAnswers(session, model, coefficients, scale, state)


@dataclass(frozen=True)
class PINPConstants(_Constants):
    """Constants of :class:`PINPMachine`; made by :meth:`paper` or :meth:`calibrated`.

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
    >>> setting = MachineFacts(1e-4, bound=1.0, norm=10.0, epsilon=1.0, delta=1e-6, questions=1000)
    >>> PINPConstants.paper(setting).updates, PINPConstants.calibrated(setting).updates
    (2, 707)
    """

    @classmethod
    def paper(cls, setting: MachineFacts) -> PINPConstants:
        """Constants of Theorem 9, corrected (see the module)."""
        unit = 200 * setting.prediction * math.log(4 / setting.delta) / setting.epsilon
        updates = setting.updates(unit * setting.rare)
        scale = unit * math.sqrt(updates)
        facts = (setting.prediction, setting.bound, setting.norm)
        return cls(updates, *facts, 4 * scale * setting.rare, scale)

    @classmethod
    def calibrated(cls, setting: MachineFacts) -> PINPConstants:
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
    """Constants of :class:`SparseVectorMachine`; made by :meth:`calibrated`.

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
    >>> setting = MachineFacts(1e-4, bound=1.0, norm=10.0, epsilon=1.0, delta=1e-6, questions=1000)
    >>> SparseVectorConstants.calibrated(setting).updates
    89
    """

    segment: float

    @classmethod
    def calibrated(cls, setting: MachineFacts, *, share: float = 0.5) -> SparseVectorConstants:
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


class Answer(NamedTuple):
    """An answer, and whether the state changed: then save it before the answer goes out.

    Examples
    --------
    >>> Answer(0.5, changed=False).value
    0.5
    """

    value: float
    changed: bool


class _Machine(ABC):
    """The state of the public model w_t, and how a question is put to it."""

    kind: ClassVar[str]
    constants_type: ClassVar[type[PINPConstants | SparseVectorConstants]]

    def __init__(
        self,
        constants: Any,
        score: Score,
        kernel: _Kernel,
        source: NoiseSource,
    ) -> None:
        self.constants, self.updates_used = constants, 0
        self._score, self._kernel, self._noise = score, kernel, source
        self._questions: list[Any] = []
        self._coefficients: list[float] = []
        self._begin()

    def _begin(self) -> None:  # noqa: B027
        """Draw what is drawn before the first question; nothing by default."""

    def __reduce__(self) -> Any:
        raise TypeError("it holds the private model and cannot be pickled; save its state().")

    @property
    def updates_left(self) -> int:
        """How many steps are paid for still; at 0 the private model is not asked any more."""
        return int(self.constants.updates) - self.updates_used

    def predict(self, question: Any) -> float:
        """<w_t, phi(z)>, from what is public already."""
        if not self._questions:
            return 0.0
        values = np.asarray(self._kernel(question, self._questions), dtype=np.float64)
        return float(values @ np.array(self._coefficients))

    def ask(self, question: Any) -> Answer:
        """Answer a question; if the state changed, save it before the answer goes out."""
        most = self.constants.norm * self._norm(question)  # that |<w*, phi(z)>| can be
        guess = self.predict(question)
        if self.updates_left < 1:
            return Answer(guess, False)
        released = self._decide(self._private(question, most), guess)
        if released is None:
            return Answer(guess, False)
        step = math.copysign(self.constants.step, released - guess)  # of the noisy difference
        self._questions.append(question)
        self._coefficients.append(step)
        self.updates_used += 1
        return Answer(released, True)

    def _norm(self, question: Any) -> float:
        """Norm of the question's features; public."""
        square = float(np.asarray(self._kernel(question, [question]))[0])
        norm = math.sqrt(square) if 0 <= square < math.inf else math.inf
        if norm > self.constants.bound * (1 + 1e-9):
            raise ValueError(
                f"the question has a norm of {norm:.6g} in the kernel's space, above the bound "
                f"{self.constants.bound:g}; rescale it."
            )
        return norm

    def _private(self, question: Any, most: float) -> float:
        """<w*, phi(z)>, within what its bounds allow; an error tells nothing of it."""
        value = withhold_errors(lambda: float(self._score(question)))
        return min(max(value, -most), most) if math.isfinite(value) else 0.0

    @abstractmethod
    def _decide(self, private: float, guess: float) -> float | None:
        """The released value, if it is far from the guess."""

    def state(self) -> dict[str, Any]:
        """Everything that a restart needs, in plain values and arrays. Some of it is secret."""
        return {
            "kind": self.kind,
            "constants": dataclasses.asdict(self.constants),
            "questions": list(self._questions),
            "coefficients": np.array(self._coefficients, dtype=np.float64),
        }

    @classmethod
    def from_state(
        cls,
        state: dict[str, Any],
        score: Score,
        kernel: _Kernel,
        source: NoiseSource,
    ) -> Self:
        """Go on where a saved state left off."""
        try:
            if state["kind"] != cls.kind:
                raise ValueError(f"it is of kind {state['kind']!r}")
            constants = cls.constants_type(**state["constants"])
            coefficients = np.asarray(state["coefficients"], dtype=np.float64)
            questions = list(state["questions"])
            new = cls(constants, score, kernel, source)
            if coefficients.shape != (len(questions),) or not np.isfinite(coefficients).all():
                raise ValueError("its questions and coefficients do not fit")
            if len(questions) > constants.updates:
                raise ValueError("it has more steps than were paid for")
            new._restore(state)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a saved state of {cls.__name__}: {error}.") from None
        new._questions, new._coefficients = questions, [float(c) for c in coefficients]
        new.updates_used = len(questions)
        return new

    def _restore(self, state: dict[str, Any]) -> None:  # noqa: B027
        """Take over what a kind adds to the state; nothing by default."""


class PINPMachine(_Machine):
    """Answers to any number of questions, of which at most B change the public model.

    Parameters
    ----------
    constants : PINPConstants
        Their events were charged.
    score : callable
        From a question z to <w*, phi(z)>; private. Not called any more after B steps.
    kernel : callable
        From a question z and a list of questions to the array of K(z, each); public. A question
        with K(z, z) > R^2 is refused.
    source : NoiseSource

    Examples
    --------
    >>> truth = np.array([0.8, -0.6])
    >>> from dpadapt.privacy.core.noise import SecureNoise
    >>> setting = MachineFacts(1e-5, bound=1.0, norm=1.0, epsilon=1.0, delta=1e-6, questions=500)
    >>> constants = PINPConstants.calibrated(setting)
    >>> kernel = lambda z, past: np.stack(past) @ z
    >>> model = PINPMachine(constants, lambda z: truth @ z, kernel, SecureNoise())
    >>> rng = np.random.default_rng(0)
    >>> for z in rng.normal(size=(500, 2)):
    ...     answer = model.ask(z / np.linalg.norm(z))
    >>> z = np.array([1.0, 0.0])
    >>> bool(abs(model.ask(z).value - 0.8) < 2 * constants.threshold)
    True
    """

    kind = "pinp"
    constants_type = PINPConstants

    def _decide(self, private: float, guess: float) -> float | None:
        noisy = float(self._noise.add_laplace(np.array([private]), self.constants.scale)[0])
        return noisy if abs(noisy - guess) > self.constants.threshold else None


class SparseVectorMachine(_Machine):
    """As :class:`PINPMachine`, but deciding and answering with separate noise.

    A segment of questions ends with the first one whose noisy |<w* - w_t, phi(z)>|, of sensitivity
    S, is above a noisy threshold: Laplace(2S/e_1) on the threshold, drawn once a segment, and
    Laplace(4S/e_1) on each question make the segment e_1-DP (Dwork and Roth 2014, Theorem 3.23).
    That question is answered with Gaussian noise of its own; the step follows the released answer.

    The noise of the threshold is part of the state, and secret: save the state before the first
    question too.

    Parameters
    ----------
    constants : SparseVectorConstants
    score, kernel, source
        As in :class:`PINPMachine`.

    Examples
    --------
    >>> truth = np.array([0.8, -0.6])
    >>> from dpadapt.privacy.core.noise import SecureNoise
    >>> setting = MachineFacts(1e-5, bound=1.0, norm=1.0, epsilon=1.0, delta=1e-6, questions=500)
    >>> constants = SparseVectorConstants.calibrated(setting)
    >>> kernel = lambda z, past: np.stack(past) @ z
    >>> model = SparseVectorMachine(constants, lambda z: truth @ z, kernel, SecureNoise())
    >>> rng = np.random.default_rng(0)
    >>> for z in rng.normal(size=(500, 2)):
    ...     answer = model.ask(z / np.linalg.norm(z))
    >>> bool(abs(model.ask(np.array([1.0, 0.0])).value - 0.8) < 2 * constants.threshold)
    True
    """

    kind = "sparse-vector"
    constants_type = SparseVectorConstants

    def _begin(self) -> None:
        self._raised = self._laplace(2)

    def _laplace(self, units: float) -> float:
        """Laplace noise of so many S/e_1, not rounded: only a comparison of it comes out."""
        exponential = -np.log1p(-self._noise.uniform(2))
        scale = units * self.constants.prediction / self.constants.segment
        return float(scale * (exponential[0] - exponential[1]))

    def _decide(self, private: float, guess: float) -> float | None:
        far = abs(private - guess) + self._laplace(4) >= self.constants.threshold + self._raised
        if not far:
            return None
        self._raised = self._laplace(2)  # of the next segment
        return float(self._noise.add_gaussian(np.array([private]), self.constants.scale)[0])

    def state(self) -> dict[str, Any]:
        """Everything that a restart needs; the noise of the threshold is secret."""
        return {**super().state(), "raised": self._raised}

    def _restore(self, state: dict[str, Any]) -> None:
        if not math.isfinite(float(state["raised"])):
            raise ValueError("its threshold is not a number")
        self._raised = float(state["raised"])


_MACHINES = {PINPConstants: PINPMachine, SparseVectorConstants: SparseVectorMachine}


class _MachineAnswers(Answers):
    """Answers of a mechanism that decides itself when it looks at the private model."""

    def _prepare(self) -> None:
        facts = (self._score, self._kernel, self._session._source)
        constants = self._model.mechanism
        kind: Any = _MACHINES[type(constants)]
        self._machine: PINPMachine | SparseVectorMachine = kind(constants, *facts)
        start = None if self._state is None else self._state.read("start")
        if start is not None:
            self._load(start)

    def _score(self, key: bytes) -> float:
        return float(self._scores(self._model.questions.decode([key]))[0, 0])

    def _kernel(self, key: bytes, past: Sequence[bytes]) -> FloatArray:
        gram, decode = self._model.gram, self._model.questions.decode
        one, others = decode([key]), decode(past)
        values = gram.between(one, others, gram.factors(one), gram.factors(others))
        return np.asarray(values[0])

    def _draw(self, keys: Sequence[bytes]) -> list[Remembered]:
        drawn = []
        for key in keys:
            answer = self._machine.ask(key)
            secret = self._dump() if answer.changed else b""
            drawn.append(Remembered(key, secret, np.array([answer.value]).tobytes()))
        return drawn

    def _adopt(self, others: Sequence[Remembered]) -> None:
        changed = [one.secret for one in others if one.secret]
        if changed:
            self._load(changed[-1])

    def _start(self) -> bytes:
        return self._dump()  # its first noise is a secret too

    def _dump(self) -> bytes:
        state = self._machine.state()
        texts = [base64.b64encode(question).decode() for question in state["questions"]]
        return json.dumps(
            {**state, "questions": texts, "coefficients": state["coefficients"].tolist()}
        ).encode()

    def _load(self, dump: bytes) -> None:
        state = json.loads(dump)
        state["questions"] = [base64.b64decode(text) for text in state["questions"]]
        kind = type(self._machine)
        self._machine = kind.from_state(state, self._score, self._kernel, self._session._source)

    @property
    def updates_used(self) -> int:
        return self._machine.updates_used

    @property
    def updates_left(self) -> int:
        return self._machine.updates_left
