"""Algorithm 1 and its form as a sparse vector: asked by updates of a public model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpadapt.kernels.constants import Bounds, Constants
from dpadapt.kernels.interactive_predictor import AnswerMethod
from dpadapt.learning.constraints import Count, OneOf, ParameterTable
from dpadapt.privacy.mechanisms.interactive_model import Interactive

from .machines import MachineFacts, PINPConstants, SparseVectorConstants


@dataclass(frozen=True)
class PINP(AnswerMethod):
    """The paper's Algorithm 1, with corrected constants; one output.

    Parameters
    ----------
    calibration : {"tight", "paper"}, default="tight"
        The least noise that is proved to be enough, or the constants of Theorem 9.
    questions : int, default=10000
        How many are expected, for thresholds; more may be asked.

    Examples
    --------
    >>> PINP(questions=100).calibration
    'tight'
    """

    calibration: str = "tight"
    questions: int = 10_000

    _constraints: ClassVar[ParameterTable] = {
        "calibration": [OneOf("tight", "paper")],
        "questions": [Count()],
    }

    def mechanism(
        self, facts: Constants, outputs: int, epsilon: float, delta: float
    ) -> Interactive:
        """One draw decides and answers."""
        setting = _setting(facts, outputs, epsilon, delta, self.questions)
        if self.calibration == "paper":
            return PINPConstants.paper(setting)
        return PINPConstants.calibrated(setting)


@dataclass(frozen=True)
class SparseVector(AnswerMethod):
    """Decides and answers with separate noise; one output.

    Parameters
    ----------
    questions : int, default=10000
        How many are expected, for thresholds; more may be asked.

    Examples
    --------
    >>> SparseVector(questions=100).questions
    100
    """

    questions: int = 10_000

    _constraints: ClassVar[ParameterTable] = {"questions": [Count()]}

    def mechanism(
        self, facts: Constants, outputs: int, epsilon: float, delta: float
    ) -> Interactive:
        """A noisy threshold, and noisy answers."""
        return SparseVectorConstants.calibrated(
            _setting(facts, outputs, epsilon, delta, self.questions)
        )


def _setting(
    facts: Constants, outputs: int, epsilon: float, delta: float, questions: int
) -> MachineFacts:
    if outputs != 1:
        raise ValueError(
            "method: 'pinp' and 'sparse-vector' have one output: two classes, or a number."
        )
    one = Bounds.each(facts)
    return MachineFacts(one.prediction, one.radius, one.norm, epsilon, delta, questions)
