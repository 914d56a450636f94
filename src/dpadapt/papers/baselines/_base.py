"""The common face of the baselines: what scikit-learn asks for, around one solve.

A private baseline says how it solves (``_coefficients``: from a :class:`~._tasks.BaselineTask` and
a private sample to coefficients in public units and their guarantee). Without a private sample it
is the public-only model.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator, read_public
from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.privacy import Guarantee, Private, Session

from ._tasks import BaselineTask


class PlainFit(BaseEstimator):
    """Public rows as a task, and fitted attributes from coefficients; beside what predicts."""

    def _task(self, X: ArrayLike, y: ArrayLike) -> BaselineTask:
        return BaselineTask.of(read_public(self, X, y))

    def _store(self, task: BaselineTask, coefficients: FloatArray) -> None:
        if task.names is not None:
            self.classes_ = task.names
        for name, value in task.linear(coefficients).items():
            setattr(self, name, value)


class _PrivateBaseline(PrivateEstimator):
    """A baseline with a private sample; beside what predicts."""

    @abstractmethod
    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        """Return coefficients in public units, and what they cost."""

    def _read(self, X: Any, y: Any, private: Any) -> BaselineTask:
        return BaselineTask.of(super()._read(X, y, private))

    def _solve(self, task: BaselineTask, session: Session | None) -> dict[str, Any]:
        return task.linear(task.public_fit())

    def _adapt(
        self, task: BaselineTask, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        with self._watched(options) as watched:
            coefficients, guarantee = self._coefficients(task, sample, watched)
        return task.linear(coefficients), guarantee


class PrivateRegressor(_PrivateBaseline, LinearRegressor):
    """A private baseline for regression."""


class PrivateClassifier(_PrivateBaseline, LinearClassifier):
    """A private baseline for classification."""
