"""The scikit-learn face of private kernel classification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin

from dpadapt._types import FloatArray
from dpadapt.base import Problem
from dpadapt.learning.constraints import OneOf, ParameterTable
from dpadapt.learning.linear import class_indices, probabilities_of

from ._learner import KernelTask
from ._model import KernelModel
from .losses import ConvexLoss, HuberisedHinge, Logistic, SoftmaxLoss, one_against_rest

_NOISE = 0.2  # of a score
_SHARP = 0.05  # knee that stands for a hinge: an exact one has no solver that is sure to end


class KernelClassifier(ClassifierMixin, KernelModel):
    """Private kernel classification: any positive definite kernel, released as a whole.

    Noise is drawn in the kernel's own space, so that the noise of a prediction does not depend on
    how many predictions are made (``release="gaussian-process"``). Private rows correct the model
    of the public rows, and what of the correction is not more than its known noise is dropped: the
    model is never worse than the public one by more than noise. With the paper's releases, and
    with ``GaussianProcess(start="zero")``, private rows alone make the model.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    kernel : str or kernel object, default="rbf"
        "linear", "polynomial", "rbf", "laplacian", "cosine", "chi2"; or, with options of its own,
        ``RBF(gamma=0.5)``, ``Polynomial(degree=2)``, ...; or ``FunctionKernel(function, bound)``
        for a function of two tables of rows (numbers, texts) that gives the matrix of their values.
        ``InnerProduct(bound)`` is x.y of rows as they are, sparse ones too. ``gamma`` is in
        standardised columns.
    radius : float, optional
        Bound on a row in standardised columns; longer rows are shrunk. By default the 99% quantile
        of the public norms for kernels that are bounded anyway; else nearer to their median, the
        more columns there are.
    penalty : float, optional
        lambda, of half the squared norm of what private rows teach. By default so that a prediction
        carries a small, known noise. That of the public model is chosen on public rows held out.
    loss : {"logistic", "hinge", "huberised-hinge"}, default="logistic"
        A hinge is huberised with a knee of 0.05 ("hinge") or 0.5.
    multiclass : {"softmax", "one-vs-rest"}, default="softmax"
        For more than two classes: one joint problem (logistic loss only), whose sensitivity does
        not grow with the number of classes, or one problem each.
    classes : sequence, optional
        All class labels, where the public labels do not have them all. A private row of another
        class is left out, and nothing tells that it was there.
    features : str, Fourier or Nystroem, default="auto"
        Explicit features instead of kernel values: "none", "linear", "polynomial", "fourier",
        "nystroem"; ``Fourier(n_components=100)``, ``Nystroem(n_components=100)``. "auto": exact
        ones if there are few, kernel values up to 10,000 private rows, beyond that features of
        public landmarks.
    release : str or release object, default="gaussian-process"
        "gaussian-process", "tddl" (the paper's Algorithm 2) or "tdil" (its Algorithm 3 with the
        corrected choice); ``GaussianProcess(points=100)``, ``TDDL(calibration="laplace")``,
        ``TDIL(pool=Z)``.
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
    >>> from dpadapt.kernels import Polynomial
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.uniform(-1, 1, size=(200, 2)), rng.uniform(-1, 1, size=(9000, 2))
    >>> y, t = (np.where(rows[:, 0] * rows[:, 1] > 0, "same", "other") for rows in (X, T))
    >>> model = KernelClassifier(epsilon=1.0, delta=1e-6, kernel=Polynomial(degree=2))
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
        radius: float | None = None,
        penalty: float | None = None,
        loss: str = "logistic",
        multiclass: str = "softmax",
        classes: Sequence[Any] | None = None,
        features: Any = "auto",
        release: Any = "gaussian-process",
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.kernel = kernel
        self.radius = radius
        self.penalty = penalty
        self.loss = loss
        self.multiclass = multiclass
        self.classes = classes
        self.features = features
        self.release = release
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    _constraints: ClassVar[ParameterTable] = {
        "loss": [OneOf("logistic", "hinge", "huberised-hinge")],
        "multiclass": [OneOf("softmax", "one-vs-rest")],
    }

    def _task(self, problem: Problem, start: bool) -> KernelTask:
        k = len(problem.names)
        told = {"classes_": problem.names}
        loss: ConvexLoss
        targets: Callable[[FloatArray], FloatArray]
        if k == 2:
            loss, targets, outputs = self._loss(), _signs, 1
        elif self.multiclass == "one-vs-rest":
            loss, targets, outputs = self._loss(), lambda y: one_against_rest(y + 1, k), k
        elif self.loss != "logistic":
            raise ValueError(
                f"multiclass='softmax' is of the logistic loss; with loss={self.loss!r} and more "
                "than two classes take multiclass='one-vs-rest'."
            )
        else:
            loss, targets, outputs = SoftmaxLoss(k), lambda y: y + 1, k
        return KernelTask(loss, {"classes": k}, targets, outputs, _NOISE, told, public_loss=loss)

    def _loss(self) -> ConvexLoss:
        if self.loss == "logistic":
            return Logistic()
        return HuberisedHinge(_SHARP) if self.loss == "hinge" else HuberisedHinge()

    def decision_function(self, X: Any) -> FloatArray:
        """Scores: of the second class for two classes, else one for each class.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        """
        return _scores(self._outputs(X))

    def predict_proba(self, X: Any) -> FloatArray:
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

    def answers_of(self, outputs: FloatArray) -> Any:
        """Classes from outputs of the model."""
        return self.classes_[class_indices(_scores(outputs))]


def _scores(outputs: FloatArray) -> FloatArray:
    """Outputs as scikit-learn has them: one number for two classes."""
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def _signs(codes: FloatArray) -> FloatArray:
    """Codes 0 and 1 as -1 and +1; -1, a row of no class, as 0."""
    return np.where(codes < 0, 0.0, 2 * codes - 1)
