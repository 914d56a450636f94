"""Interactive mechanisms that decide themselves when they look at the private model.

Algorithm 1 of Jain and Thakurta (2013) and its form as a sparse vector; what they cost is proved
in :mod:`.machine_constants`. They see un-noised answers, so only :mod:`.answers` makes them, for a
session that has charged for their constants.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpadapt._types import FloatArray

from ..core.noise import NoiseSource
from ..core.quiet import withheld
from .machine_constants import PINPConstants, SparseVectorConstants

__all__ = ["Answer", "PINPMachine", "SparseVectorMachine"]

Score = Callable[[Any], float]
Kernel = Callable[[Any, Sequence[Any]], FloatArray]


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
        kernel: Kernel,
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
        value = withheld(lambda: float(self._score(question)))
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
        kernel: Kernel,
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
    >>> from dpadapt.privacy.mechanisms.machine_constants import Setting
    >>> from dpadapt.privacy.core.noise import SecureNoise
    >>> setting = Setting(1e-5, bound=1.0, norm=1.0, epsilon=1.0, delta=1e-6, questions=500)
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
    >>> from dpadapt.privacy.mechanisms.machine_constants import Setting
    >>> from dpadapt.privacy.core.noise import SecureNoise
    >>> setting = Setting(1e-5, bound=1.0, norm=1.0, epsilon=1.0, delta=1e-6, questions=500)
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
