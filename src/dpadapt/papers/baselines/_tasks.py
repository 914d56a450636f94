"""What the baselines share: the facts of public rows, and the face that scikit-learn asks for.

A private baseline says how it solves (``_coefficients``: from a :class:`BaselineTask` and a private
sample to coefficients in public units and their guarantee). Without a private sample it is the
public-only model.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator, Problem, read_public
from dpadapt.learning.checks import public_scaling
from dpadapt.learning.linear import LinearClassifier, LinearRegressor
from dpadapt.learning.public_fits import fit_logistic, fit_ridge
from dpadapt.learning.softmax import softmax
from dpadapt.privacy import Cleaning, Guarantee, Private, Session, shrink_factors
from dpadapt.privacy.statistics import Prepared
from dpadapt.reweighting.residual_size import (
    ResidualSizeQuery,
    are_informative,
    ordinary,
    size_share,
)

_FAR = 1e6  # rows are first cut here, in radii: only so that nothing overflows
_LEAST_RESIDUAL = 1e-3  # to plan with, in standard deviations of public labels
_WIDE = 10.0  # labels are first cut here, in label bounds, where residuals are bounded later


@dataclass(frozen=True, eq=False)
class BaselineTask(Problem):
    """Public rows in public units: columns standardised, a last column of ones."""

    @classmethod
    def of(cls, problem: Problem) -> Self:
        return cls(problem.X, problem.labels, problem.names)

    @property
    def classes(self) -> int:
        """Number of classes; 0 for regression."""
        return 0 if self.names is None else len(self.names)

    @cached_property
    def scaling(self) -> tuple[FloatArray, FloatArray]:
        return public_scaling(self.X)

    @cached_property
    def label_scaling(self) -> tuple[float, float]:
        center, scale = public_scaling(np.asarray(self.labels, dtype=float)[:, None])
        return float(center[0]), float(scale[0])

    @cached_property
    def rows(self) -> FloatArray:
        """Shape (m, d + 1)."""
        return self.in_units(self.X)

    def in_units(self, X: FloatArray) -> FloatArray:
        center, scale = self.scaling
        return np.column_stack([(X - center) / scale, np.ones(len(X))])

    @cached_property
    def targets(self) -> Any:
        """Standardised labels, or the class codes."""
        if self.classes:
            return self.labels
        center, scale = self.label_scaling
        return (self.labels - center) / scale

    @property
    def outputs(self) -> int:
        """Columns of the coefficients: one, or one for each of three and more classes."""
        return self.classes if self.classes > 2 else 1

    @cached_property
    def radius(self) -> float:
        """R: the 99% quantile of the norms of public rows, the column of ones included."""
        return float(np.quantile(np.linalg.norm(self.rows, axis=1), 0.99))

    @cached_property
    def label_bound(self) -> float:
        """The 99.5% quantile of public labels, in public units."""
        return bound_of(self.targets[:, None])

    # public-only fits

    def public_fit(self) -> FloatArray:
        """Ridge or logistic coefficients of shape (d + 1, outputs)."""
        if self.classes:
            return fit_logistic(self.rows, self.labels, self.classes)
        return fit_ridge(self.rows, self.targets[:, None])

    def zero(self) -> FloatArray:
        return np.zeros((self.rows.shape[1], self.outputs))

    def linear(self, coefficients: FloatArray) -> dict[str, Any]:
        """Fitted attributes: coefficients and intercept in the units of the caller."""
        center, scale = self.scaling
        if self.names is None:
            middle, unit = self.label_scaling
            slopes = unit * coefficients[:-1, 0] / scale
            constant = float(middle + unit * coefficients[-1, 0] - center @ slopes)
            return {"coef_": slopes, "intercept_": constant}
        slopes = np.ascontiguousarray((coefficients[:-1] / scale[:, None]).T)
        return {"coef_": slopes, "intercept_": coefficients[-1] - slopes @ center}

    # private rows in the same units

    def cleaning(self, *, wide_labels: bool = False) -> Cleaning:
        """The public map into public units, but for the radius R."""
        center, scale = self.scaling
        far = _FAR * self.radius
        if self.classes:
            return Cleaning(far, center, scale, 1.0, classes=self.classes)
        middle, unit = self.label_scaling
        half = unit * self.label_bound * (_WIDE if wide_labels else 1.0)
        return Cleaning(
            far, center, scale, 1.0, label_range=(middle - half, middle + half), unit_labels=True
        )

    def size_query(self, start: FloatArray, n_rows: int, mu: float) -> ResidualSizeQuery | None:
        """The query of the size of a start's private residuals, if public ones are uninformative.

        None where so many rows and so much budget do not pay for one.
        """
        if self.classes or self.residuals_informative(start) or not size_share(n_rows * mu):
            return None
        cleaning = self.cleaning(wide_labels=True)
        bound = _WIDE * self.label_bound

        def private_residuals(X: FloatArray, y: FloatArray) -> FloatArray:
            return np.asarray(bound * y - (X @ start)[:, 0])

        return ResidualSizeQuery(cleaning, private_residuals, self.planning_residuals(start))

    def residuals_informative(self, start: FloatArray) -> bool:
        """Whether private residuals of a start are about as large as public ones."""
        residual = self.targets - (self.rows @ start)[:, 0]
        return are_informative(residual, self.targets, self.rows.shape[1] - 1 if start.any() else 0)

    def planning_residuals(self, start: FloatArray) -> FloatArray:
        """Public residuals of a start, to plan with: ordinary ones, if not informative."""
        residual = np.asarray(self.targets - (self.rows @ start)[:, 0])
        return (
            residual if self.residuals_informative(start) else ordinary(residual, _LEAST_RESIDUAL)
        )

    def prepared(self, size: float = 1.0) -> Prepared:
        """Rows shrunk to R, their labels by the same factor; class codes stay as they are.

        Labels are in units of ``size``.
        """
        radius, classes = self.radius, self.classes
        bound = 0.0 if classes else self.label_bound / size

        def shrink(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
            factor = shrink_factors(np.linalg.norm(X, axis=1), radius)
            if y is None:
                return X * factor[:, None], None
            return X * factor[:, None], y if classes else y * bound * factor

        return Prepared(self.cleaning(), shrink, self.rows.shape[1])


def bound_of(labels: FloatArray) -> float:
    """The 99.5% quantile of the norms of label vectors; never zero."""
    return max(float(np.quantile(np.linalg.norm(labels, axis=1), 0.995)), 1e-6)


def signed(codes: FloatArray, classes: int) -> FloatArray:
    """Label vectors of norm 1: -1 and 1 for two classes, else one-hot; 0 for no class."""
    places = np.asarray(codes)
    if classes <= 2:
        return np.where(places < 0, 0.0, 2.0 * places - 1.0)[:, None]
    return (places[:, None] == np.arange(classes)).astype(float)


def loss_derivatives(scores: FloatArray, labels: FloatArray, classes: int) -> FloatArray:
    """Derivative of the loss in the scores: half a square, logistic, softmax; 0 for no class."""
    if not classes:
        return scores - labels[:, None]
    if classes <= 2:
        known = labels >= 0
        return np.where(known, expit(scores[:, 0]) - labels, 0.0)[:, None]
    chances = softmax(scores) - (labels[:, None] == np.arange(classes))
    return np.where(labels[:, None] >= 0, chances, 0.0)


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
