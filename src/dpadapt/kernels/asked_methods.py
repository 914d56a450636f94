"""How a private kernel model is asked: by one path of noise, or by updates of a public model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from dpadapt._constraints import Count, OneOf, Table
from dpadapt._strategy import Strategy
from dpadapt.privacy.mechanisms import GaussianPath
from dpadapt.privacy.mechanisms.asked_model import Asked
from dpadapt.privacy.mechanisms.machine_constants import (
    PINPConstants,
    Setting,
    SparseVectorConstants,
)

from .constants import Bounds, Constants

__all__ = ["PINP", "AskedMethod", "NoisePath", "SparseVector"]


class AskedMethod(Strategy):
    """A way to answer questions about a private model.

    Examples
    --------
    >>> isinstance(NoisePath(), AskedMethod)
    True
    """

    @abstractmethod
    def mechanism(self, facts: Constants, outputs: int, epsilon: float, delta: float) -> Asked:
        """Return the mechanism; by how much answers move is proved in :mod:`.queries`.

        Parameters
        ----------
        facts : Constants
        outputs : int
        epsilon, delta : float
        """


@dataclass(frozen=True)
class NoisePath(AskedMethod):
    """One path of a Gaussian process, for any number of questions.

    Examples
    --------
    >>> NoisePath()
    NoisePath()
    """

    def mechanism(self, facts: Constants, outputs: int, epsilon: float, delta: float) -> Asked:
        """Noise by how far the whole model moves."""
        return GaussianPath(facts.sensitivity)


@dataclass(frozen=True)
class PINP(AskedMethod):
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

    _constraints: ClassVar[Table] = {
        "calibration": [OneOf("tight", "paper")],
        "questions": [Count()],
    }

    def mechanism(self, facts: Constants, outputs: int, epsilon: float, delta: float) -> Asked:
        """One draw decides and answers."""
        setting = _setting(facts, outputs, epsilon, delta, self.questions)
        if self.calibration == "paper":
            return PINPConstants.paper(setting)
        return PINPConstants.calibrated(setting)


@dataclass(frozen=True)
class SparseVector(AskedMethod):
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

    _constraints: ClassVar[Table] = {"questions": [Count()]}

    def mechanism(self, facts: Constants, outputs: int, epsilon: float, delta: float) -> Asked:
        """A noisy threshold, and noisy answers."""
        return SparseVectorConstants.calibrated(
            _setting(facts, outputs, epsilon, delta, self.questions)
        )


def _setting(
    facts: Constants, outputs: int, epsilon: float, delta: float, questions: int
) -> Setting:
    if outputs != 1:
        raise ValueError(
            "method: 'pinp' and 'sparse-vector' have one output: two classes, or a number."
        )
    one = Bounds.each(facts)
    return Setting(one.prediction, one.radius, one.norm, epsilon, delta, questions)
