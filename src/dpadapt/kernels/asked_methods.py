"""How a private kernel model is asked; by default, by one path of noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from dpadapt._strategy import Strategy
from dpadapt.privacy.mechanisms import GaussianPath
from dpadapt.privacy.mechanisms.asked_model import Interactive

from .constants import Constants

__all__ = ["AskedMethod", "NoisePath"]


class AskedMethod(Strategy):
    """A way to answer questions about a private model.

    Examples
    --------
    >>> isinstance(NoisePath(), AskedMethod)
    True
    """

    @abstractmethod
    def mechanism(
        self, facts: Constants, outputs: int, epsilon: float, delta: float
    ) -> Interactive:
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

    def mechanism(
        self, facts: Constants, outputs: int, epsilon: float, delta: float
    ) -> Interactive:
        """Noise by how far the whole model moves."""
        return GaussianPath(facts.sensitivity)
