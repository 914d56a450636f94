"""The scikit-learn face of private kernel regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from dpadapt.privacy import Cleaning
from dpadapt.privacy import _validate as validate

from ._estimator import KernelModel, Task
from .losses import EpsilonInsensitive, Loss, Squared

__all__ = ["KernelRegressor"]

Array = NDArray[np.float64]

LOSSES = ("squared", "epsilon-insensitive")
_NOISE = 0.05  # of a prediction, over half the range of labels


class KernelRegressor(RegressorMixin, KernelModel):
    """Private kernel regression: any positive definite kernel, released as a whole.

    Noise is drawn in the kernel's own space, so that the noise of a prediction does not depend on
    how many predictions are made (``release="gaussian-process"``). Private rows alone make the
    model; public rows set units, the range of labels and a pool of points.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    kernel : str or callable, default="rbf"
        "linear", "polynomial", "rbf", "laplacian", "cosine", "chi2", or a function
        of two tables of rows (numbers, texts) that gives the matrix of their values.
    gamma : float, optional
        In standardised columns; by default one over the squared median (of public norms), or
        radius for "polynomial".
    degree : int, default=3
    coef0 : float, default=1.0
        Of "polynomial".
    bound : float, optional
        R^2, bound on K(x, x), for kernels of one's own; longer feature vectors
        are scaled down to it.
    radius : float, optional
        Bound on a row in standardised columns; longer rows are shrunk. By default the 99% quantile
        of the public norms for kernels that are bounded anyway; else nearer to their median, the
        more columns there are.
    penalty : float, optional
        lambda, of half the squared norm. By default so that a prediction carries a small, known
        noise.
    loss : {"squared", "epsilon-insensitive"}, default="squared"
    label_range : (float, float), optional
        Range of the labels; others are clamped. By default that of the public labels.
    features : {"auto", "none", "linear", "polynomial", "fourier", "nystroem"}, default="auto"
        Explicit features instead of kernel values. "auto": exact ones if there are few, kernel
        values up to 10,000 private rows, beyond that features of public landmarks.
    n_components : int, default=300
        Points of the pool, landmarks, or random features.
    release : {"gaussian-process", "tddl", "tdil"}, default="gaussian-process"
        "tddl" is the paper's Algorithm 2, "tdil" its Algorithm 3 with the corrected choice.
    calibration : {"gaussian", "laplace", "paper"}, default="gaussian"
        Noise of "tddl".
    pool : array-like of shape (T, d), optional
        Public points; by default public rows.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar while private rows are read.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (T, 1)
        Coefficients of the pool's points; or
    feature_coef_ : ndarray of shape (D, 1)
        those of explicit features.
    pool_ : array of shape (T, d)
    penalty_ : float
    setup_ : Setup
        Public map, kernel, features.
    label_range_ : (float, float)
    guarantee_ : Guarantee
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    InteractivePredictor : questions one by one, without a pool.

    Notes
    -----
    With no private sample the model is the one of the public rows and epsilon is 0.

    Examples
    --------
    >>> from dpadapt import Private
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.uniform(-3, 3, size=(200, 1)), rng.uniform(-3, 3, size=(8000, 1))
    >>> model = KernelRegressor(epsilon=1.0, delta=1e-6, gamma=2.0)
    >>> model = model.fit(X, np.sin(X[:, 0]), private=Private(T, np.sin(T[:, 0])))
    >>> bool(np.corrcoef(model.predict(X), np.sin(X[:, 0]))[0, 1] > 0.9)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        bound: float | None = None,
        radius: float | None = None,
        penalty: float | None = None,
        loss: str = "squared",
        label_range: tuple[float, float] | None = None,
        features: str = "auto",
        n_components: int = 300,
        release: str = "gaussian-process",
        calibration: str = "gaussian",
        pool: Any = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.bound = bound
        self.radius = radius
        self.penalty = penalty
        self.loss = loss
        self.label_range = label_range
        self.features = features
        self.n_components = n_components
        self.release = release
        self.calibration = calibration
        self.pool = pool
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _check(self) -> None:
        super()._check()
        validate.choice("loss", self.loss, LOSSES)
        if self.label_range is not None:
            low, high = self.label_range
            if not -np.inf < low < high < np.inf:
                raise ValueError(f"label_range must be (low, high); got {self.label_range!r}.")

    def _task(self, labels: Any) -> Task:
        loss: Loss = Squared(1.0) if self.loss == "squared" else EpsilonInsensitive(bound=1.0)
        cleaning = Cleaning(1.0, label_range=self._range(labels), unit_labels=True)
        return Task(loss, cleaning, np.asarray, 1, False, _NOISE)

    def _range(self, labels: Any) -> tuple[float, float]:
        if self.label_range is not None:
            return float(self.label_range[0]), float(self.label_range[1])
        values = np.asarray(labels, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        return (low, high) if low < high else (low - 1.0, high + 1.0)

    def _codes(self, labels: Any) -> Array:
        low, high = self._range(labels)
        return np.clip((np.asarray(labels, dtype=np.float64) - low) / (high - low) * 2 - 1, -1, 1)

    def _finish(self, labels: Any) -> None:
        self.label_range_ = self._range(labels)

    def predict(self, X: Any) -> Array:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        """
        return self.answers_of(self._outputs(X))

    def answers_of(self, outputs: Array) -> Array:
        """Labels from outputs of the model."""
        low, high = self.label_range_
        return np.asarray((outputs[:, 0] + 1) / 2 * (high - low) + low)
