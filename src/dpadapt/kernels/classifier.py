"""The scikit-learn face of private kernel classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin

from dpadapt._linear import class_labels, places_of, probabilities_of
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy import _validate as validate

from ._estimator import KernelModel, Task
from .losses import HuberisedHinge, Logistic, Loss, Softmax, one_against_rest

__all__ = ["KernelClassifier"]

Array = NDArray[np.float64]

LOSSES = ("logistic", "hinge", "huberised-hinge")
MULTICLASS = ("softmax", "one-vs-rest")
_NOISE = 0.2  # of a score
_SHARP = 0.05  # knee that stands for a hinge: an exact one has no solver that is sure to end


class KernelClassifier(ClassifierMixin, KernelModel):
    """Private kernel classification: any positive definite kernel, released as a whole.

    Noise is drawn in the kernel's own space, so that the noise of a prediction does not depend on
    how many predictions are made (``release="gaussian-process"``). Private rows alone make the
    model; public rows set units, classes and a pool of points.

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
    loss : {"logistic", "hinge", "huberised-hinge"}, default="logistic"
        A hinge is huberised with a knee of 0.05 ("hinge") or 0.5.
    multiclass : {"softmax", "one-vs-rest"}, default="softmax"
        For more than two classes: one joint problem (logistic loss only), whose sensitivity does
        not grow with the number of classes, or one problem each.
    classes : sequence, optional
        All class labels, where the public labels do not have them all. A private row of another
        class is left out, and nothing tells that it was there.
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
    classes_ : ndarray of shape (k,)
    dual_coef_ : ndarray of shape (T, 1), or (T, k) for more than two classes
        Coefficients of the pool's points; or
    feature_coef_ : ndarray of shape (D, 1) or (D, k)
        those of explicit features.
    pool_ : array of shape (T, d)
    penalty_ : float
    setup_ : Setup
        Public map, kernel, features.
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
    >>> X, T = rng.uniform(-1, 1, size=(200, 2)), rng.uniform(-1, 1, size=(9000, 2))
    >>> y, t = (np.where(rows[:, 0] * rows[:, 1] > 0, "same", "other") for rows in (X, T))
    >>> model = KernelClassifier(epsilon=1.0, delta=1e-6, kernel="polynomial", degree=2)
    >>> model = model.fit(X, y, private=Private(T, t))
    >>> model.score(X, y) > 0.85
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
        loss: str = "logistic",
        multiclass: str = "softmax",
        classes: Sequence[Any] | None = None,
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
        self.multiclass = multiclass
        self.classes = classes
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
        validate.choice("multiclass", self.multiclass, MULTICLASS)

    def _task(self, labels: Any) -> Task:
        classes = class_labels(labels, self.classes)
        cleaning = Cleaning(1.0, classes=len(classes))
        k = len(classes)
        if k == 2:
            return Task(self._loss(), cleaning, _signs, 1, False, _NOISE)
        if self.multiclass == "softmax" and self.loss == "logistic":
            return Task(Softmax(k), cleaning, lambda y: y + 1, k, True, _NOISE)
        if self.multiclass == "softmax":
            raise ValueError(
                f"multiclass='softmax' is of the logistic loss; with loss={self.loss!r} and more "
                "than two classes take multiclass='one-vs-rest'."
            )
        return Task(self._loss(), cleaning, lambda y: one_against_rest(y + 1, k), k, False, _NOISE)

    def _loss(self) -> Loss:
        if self.loss == "logistic":
            return Logistic()
        return HuberisedHinge(_SHARP) if self.loss == "hinge" else HuberisedHinge()

    def _encoded(self, private: Private, labels: Any) -> Private:
        return private.encode(class_labels(labels, self.classes))

    def _codes(self, labels: Any) -> Array:
        classes = class_labels(labels, self.classes)
        return np.searchsorted(classes, labels).astype(np.float64)

    def _finish(self, labels: Any) -> None:
        self.classes_ = class_labels(labels, self.classes)

    def decision_function(self, X: Any) -> Array:
        """Scores: of the second class for two classes, else one for each class.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        """
        return _scores(self._outputs(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes by the logistic model of the scores.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1 or self.multiclass == "softmax":
            return probabilities_of(scores)
        each = expit(scores) + 1e-300
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:
        """Predict classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        return self.answers_of(self._outputs(X))

    def answers_of(self, outputs: Array) -> Any:
        """Classes from outputs of the model."""
        return self.classes_[places_of(_scores(outputs))]


def _scores(outputs: Array) -> Array:
    """Outputs as scikit-learn has them: one number for two classes."""
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def _signs(codes: Array) -> Array:
    """Codes 0 and 1 as -1 and +1; -1, a row of no class, as 0."""
    return np.where(codes < 0, 0.0, 2 * codes - 1)
