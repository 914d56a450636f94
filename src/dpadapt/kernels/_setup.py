"""What a kernel model knows before it reads a private row: public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt._checks import public_scaling
from dpadapt.privacy import Cleaning, Gram, Prepared, gaussian_mu
from dpadapt.privacy import _validate as validate

from .erm import Constants, constants, solve
from .features import (
    FourierFeatures,
    Kernel,
    LinearFeatures,
    NystroemFeatures,
    PolynomialFeatures,
    check_positive_definite,
    resolve_kernel,
)
from .gram import solve_gram
from .losses import Loss

Array = NDArray[np.float64]

FEATURES = ("auto", "none", "linear", "polynomial", "fourier", "nystroem")
_BOUNDED = ("rbf", "laplacian", "cosine", "chi2")  # K(x, x) is at most 1, however long a row is
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

    def rows(self, X: Any) -> Any:
        """Public rows, or questions, as kernel and features take them."""
        return X if self.cleaning is None else self.cleaning(X, None)[0]

    def values(self, A: Any, B: Any) -> Array:
        """Kernel values of rows as they were given."""
        return self.kernel(self.rows(A), self.rows(B))

    def diagonal(self, A: Any) -> Array:
        """K(x, x) of rows as they were given."""
        return self.kernel.diagonal(self.rows(A))

    def gram(self, labels: Cleaning, pool: Any = None) -> Gram:
        """Kernel values that a session may hide."""
        return Gram(CleanKernel(self), self.kernel.squared_bound, pool, labels)

    def prepared(self, labels: Cleaning) -> Prepared:
        """Explicit features that a session may hide."""
        features = self.features
        return Prepared(labels, lambda X, y: (features(X), y), features.n_features)

    def facts(self, loss: Loss, penalty: float, rows: int, columns: int) -> Constants:
        """Sensitivity and bounds of a problem."""
        width = None if self.features is None else self.features.n_features
        return constants(loss, self.radius, penalty, rows, width=width, columns=columns)

    def solve(self, values: Array, targets: Array, loss: Loss, penalty: float) -> Array:
        """Weights from features, or coefficients from kernel values; one column an output."""
        run = solve_gram if self.features is None else solve
        found = run(values, targets, loss, penalty, self.radius)
        return found.reshape(found.shape[0], -1)


@dataclass(frozen=True, eq=False)
class CleanKernel:
    """A kernel of rows as they were given."""

    setup: Setup

    def __call__(self, A: Any, B: Any) -> Array:
        """Kernel values."""
        return self.setup.values(A, B)

    def diagonal(self, A: Any) -> Array:
        """K(x, x)."""
        return self.setup.diagonal(A)


def make_setup(estimator: Any, X: Any, n_rows: int) -> Setup:
    """Setup from the parameters of an estimator, public rows, and the number of private rows."""
    validate.choice("features", estimator.features, FEATURES)
    named = isinstance(estimator.kernel, str)
    cleaning = _cleaning(estimator, X) if named else None
    length = None if cleaning is None else math.hypot(cleaning.radius, cleaning.intercept)
    kernel = resolve_kernel(
        estimator.kernel,
        radius=length,
        gamma=_gamma(estimator, cleaning, X),
        degree=estimator.degree,
        coef0=estimator.coef0,
        bound=estimator.bound,
    )
    setup = Setup(cleaning, kernel, None)
    if X.shape[0]:
        check_positive_definite(kernel, setup.rows(X[: min(X.shape[0], 300)]))
    return Setup(cleaning, kernel, _features(estimator, setup, X, n_rows))


def _cleaning(estimator: Any, X: Array) -> Cleaning:
    center, scale = public_scaling(X)
    radius = estimator.radius
    if radius is None:
        # a bound that few rows come near makes a polynomial flat; but in few dimensions norms
        # spread by themselves, and a bound in their middle would cut half of the rows
        far = _FAR if estimator.kernel in _BOUNDED else 0.5 + 0.49 / X.shape[1]
        norms = np.linalg.norm((X - center) / scale, axis=1)
        radius = float(np.quantile(norms, far)) or 1.0
    constant = 1.0 if estimator.kernel == "linear" else 0.0
    return Cleaning(validate.positive("radius", radius), center, scale, constant)


def _gamma(estimator: Any, cleaning: Cleaning | None, X: Any) -> float | None:
    """Width of a bounded kernel: by the median of the public norms, unless it is given."""
    if estimator.gamma is not None or cleaning is None or estimator.kernel not in _BOUNDED:
        return estimator.gamma
    if estimator.kernel == "chi2":
        return None
    middle = float(np.median(np.linalg.norm(cleaning(X, None)[0], axis=1))) or 1.0
    return 1 / middle if estimator.kernel == "laplacian" else 1 / middle**2


def _features(estimator: Any, setup: Setup, X: Any, n_rows: int) -> Any:
    """Explicit features: those asked for; by default exact ones if they are few."""
    kind, name = estimator.features, setup.kernel.name
    cleaning = setup.cleaning
    if kind == "auto":
        kind = _choose(estimator, setup, X, n_rows)
    if kind == "none":
        return None
    if kind == "nystroem":
        return NystroemFeatures(setup.kernel, setup.rows(X[: estimator.n_components]))
    if cleaning is None:
        raise ValueError(f"features={kind!r}: a kernel of one's own has 'nystroem' or 'none'.")
    width = X.shape[1] + (cleaning.intercept != 0)
    length = math.hypot(cleaning.radius, cleaning.intercept)
    wanted = {"linear": ("linear",), "polynomial": ("poly", "polynomial"), "fourier": ("rbf",)}
    if name not in wanted[kind]:
        raise ValueError(f"features={kind!r} are those of kernel={wanted[kind][-1]!r}.")
    if kind == "linear":
        return LinearFeatures(width, length)
    gamma = setup.kernel.gamma
    if kind == "polynomial":
        return PolynomialFeatures(width, length, estimator.degree, gamma, estimator.coef0)
    return FourierFeatures(width, gamma, estimator.n_components)


def _choose(estimator: Any, setup: Setup, X: Any, n_rows: int) -> str:
    name = setup.kernel.name
    if name == "linear" and X.shape[1] < _EXPLICIT:
        return "linear"
    few = math.comb(X.shape[1] + estimator.degree, estimator.degree) <= _EXPLICIT
    if name in ("poly", "polynomial") and few:
        return "polynomial"
    return "nystroem" if n_rows > _LARGEST_GRAM else "none"


def choose_penalty(
    setup: Setup,
    loss: Loss,
    *,
    rows: int,
    columns: int,
    epsilon: float,
    delta: float,
    noise: float,
) -> float:
    """Lambda at which a prediction carries noise of about ``noise``; public.

    Less leaves more noise than the model is worth, more shrinks the model for nothing.
    """
    mu, radius = gaussian_mu(epsilon, delta), setup.radius
    least = _LEAST_PENALTY * radius**2

    def carried(penalty: float) -> float:
        return setup.facts(loss, penalty, rows, columns).sensitivity * radius / mu

    low, high = least, max(least, 1.0)
    while carried(high) > noise and high < 1e12:
        high *= 4
    if carried(low) <= noise:
        return low
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if carried(middle) <= noise else (middle, high)
    return high
