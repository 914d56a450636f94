"""What a kernel model knows before it reads a private row: public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.checks import public_scaling
from dpadapt.privacy import Cleaning
from dpadapt.privacy.accounting.calibration import gaussian_mu

from .constants import Constants, constants
from .erm import solve
from .features import (
    Fourier,
    FourierFeatures,
    LinearFeatures,
    Nystroem,
    NystroemFeatures,
    PolynomialFeatures,
)
from .gram import solve_gram
from .kernel import RBF, Kernel, KernelForm, Linear, Polynomial, check_positive_definite
from .losses import ConvexLoss

_FAR = 0.99  # quantile of public norms beyond which rows are shrunk, for bounded kernels
_EXPLICIT = 5000  # features up to which exact ones are made
_LARGEST_GRAM = 10_000  # private rows up to which the kernel matrix is
_LEAST_PENALTY = 1e-4  # over R^2


@dataclass(frozen=True, eq=False)
class Setup:
    """Cleaning, kernel and features of a model.

    Parameters
    ----------
    cleaning : Cleaning or None
        None for rows that are no numbers: the kernel reads them as they are.
    kernel : Kernel
    features : map or None
        Explicit features; None if the model works with kernel values.
    """

    cleaning: Cleaning | None
    kernel: Kernel
    features: Any

    @property
    def radius(self) -> float:
        """R, bound on the norm of features."""
        bound = self.kernel if self.features is None else self.features
        return math.sqrt(bound.squared_bound)

    @property
    def linear(self) -> bool:
        """Whether the features are the rows themselves."""
        return self.features is not None and isinstance(self.kernel.form, Linear)

    def rows(self, X: Any) -> Any:
        """Public rows, or questions, as kernel and features take them."""
        return X if self.cleaning is None else self.cleaning(X, None)[0]

    def values(self, A: Any, B: Any) -> FloatArray:
        """Kernel values of rows as they were given."""
        return self.kernel(self.rows(A), self.rows(B))

    def diagonal(self, A: Any) -> FloatArray:
        """K(x, x) of rows as they were given."""
        return self.kernel.diagonal(self.rows(A))

    def facts(self, loss: ConvexLoss, penalty: float, rows: int, columns: int) -> Constants:
        """Sensitivity and bounds of a problem."""
        width = None if self.features is None else self.features.n_features
        return constants(loss, self.radius, penalty, rows, width=width, columns=columns)

    def solve(
        self, values: FloatArray, targets: FloatArray, loss: ConvexLoss, penalty: float
    ) -> FloatArray:
        """Weights from features, or coefficients from kernel values; one column an output."""
        run = solve_gram if self.features is None else solve
        found = run(values, targets, loss, penalty, self.radius)
        return found.reshape(found.shape[0], -1)


def make_setup(form: KernelForm, features: Any, radius: float | None, X: Any, n_rows: int) -> Setup:
    """Decide on cleaning, bounds and features.

    Parameters
    ----------
    form : KernelForm
    features : str, Fourier or Nystroem
    radius : float, optional
        Bound on a row in standardised columns.
    X : public rows
    n_rows : int
        Number of private rows.
    """
    cleaning = _cleaning(form, radius, X) if form.numeric else None
    if cleaning is None:
        kernel = form.within()
    else:
        middle = float(np.median(np.linalg.norm(cleaning(X, None)[0], axis=1))) or 1.0
        kernel = form.within(math.hypot(cleaning.radius, cleaning.intercept), middle)
    setup = Setup(cleaning, kernel, None)
    if X.shape[0]:
        check_positive_definite(kernel, setup.rows(X[: min(X.shape[0], 300)]))
    chosen = _choose(form, X.shape[1], n_rows) if features == "auto" else features
    return setup if chosen == "none" else Setup(cleaning, kernel, _features(chosen, setup, X))


def _cleaning(form: KernelForm, radius: float | None, X: FloatArray) -> Cleaning:
    center, scale = public_scaling(X)
    if radius is None:
        # a bound that few rows come near makes a polynomial flat; but in few dimensions norms
        # spread by themselves, and a bound in their middle would cut half of the rows
        far = _FAR if form.bounded else 0.5 + 0.49 / X.shape[1]
        norms = np.linalg.norm((X - center) / scale, axis=1)
        radius = float(np.quantile(norms, far)) or 1.0
    return Cleaning(float(radius), center, scale, 1.0 if isinstance(form, Linear) else 0.0)


def _choose(form: KernelForm, columns: int, n_rows: int) -> Any:
    """Exact features if they are few; for many rows, those of public landmarks."""
    if isinstance(form, Linear) and columns < _EXPLICIT:
        return "linear"
    if isinstance(form, Polynomial) and math.comb(columns + form.degree, columns) <= _EXPLICIT:
        return "polynomial"
    return Nystroem() if n_rows > _LARGEST_GRAM else "none"


def _features(chosen: Any, setup: Setup, X: Any) -> Any:
    """Make the explicit features that were chosen, if the kernel has them."""
    form, cleaning = setup.kernel.form, setup.cleaning
    if isinstance(chosen, Nystroem):
        return NystroemFeatures(setup.kernel, setup.rows(X[: chosen.n_components]))
    if cleaning is None:
        raise ValueError("features: a kernel that takes rows as they are has 'nystroem' or 'none'.")
    width = X.shape[1] + (cleaning.intercept != 0)
    length = math.hypot(cleaning.radius, cleaning.intercept)
    if chosen == "linear" and isinstance(form, Linear):
        return LinearFeatures(width, length)
    if chosen == "polynomial" and isinstance(form, Polynomial):
        return PolynomialFeatures(width, length, form.degree, form.gamma or 1.0, form.coef0)
    if isinstance(chosen, Fourier) and isinstance(form, RBF):
        return FourierFeatures(width, form.gamma or 1.0, chosen.n_components)
    asked, owner = ("fourier", "rbf") if isinstance(chosen, Fourier) else (chosen, chosen)
    raise ValueError(f"features={asked!r} are those of kernel={owner!r}.")


@dataclass(frozen=True, eq=False)
class PenaltyNoise:
    """The noise that a prediction carries at a penalty, from public facts alone.

    Parameters
    ----------
    setup : Setup
    loss : Loss
    rows, columns : int
    epsilon, delta : float
    """

    setup: Setup
    loss: ConvexLoss
    rows: int
    columns: int
    epsilon: float
    delta: float

    def at(self, penalty: float) -> float:
        """Standard deviation at a row of norm R."""
        facts = self.setup.facts(self.loss, penalty, self.rows, self.columns)
        return facts.sensitivity * self.setup.radius / gaussian_mu(self.epsilon, self.delta)

    def penalty_for(self, noise: float) -> float:
        """Lambda at which a prediction carries noise of about ``noise``.

        Less leaves more noise than the model is worth, more shrinks the model for nothing.
        """
        low = _LEAST_PENALTY * self.setup.radius**2
        high = max(low, 1.0)
        while self.at(high) > noise and high < 1e12:
            high *= 4
        if self.at(low) <= noise:
            return low
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.at(middle) <= noise else (middle, high)
        return high
