"""The methods that paper 002's experiments compare, with names for tables and pictures."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.baselines import ObjectivePerturbationClassifier
from dpadapt.kernels import (
    PINP,
    TDDL,
    TDIL,
    GaussianProcess,
    InteractivePredictor,
    KernelClassifier,
    NoisePath,
    SparseVector,
)
from dpadapt.privacy import Private

__all__ = ["ASKED", "RELEASED", "Split", "ask", "fit_linear", "fit_released", "plain"]

Array = NDArray[np.float64]

DELTA = 1e-6
PAPER_PENALTY = 0.002  # 1/(n C) with the paper's n = 500,000 and C = 0.001
NO_NOISE = 1e6  # epsilon at which noise does not count
OURS = "dpadapt"
MAJORITY, NO_PRIVACY = "majority class", "no privacy"
PAPER_SVM = "no privacy, SVM with the paper's lambda"
LINEAR = "objective perturbation (linear)"
PRINTED_TDDL = "TDDL as printed"
PRINTED_SVM = "TDDL as printed, SVM with the paper's lambda"
PRINTED_PINP = "PINP, constants of Theorem 9"
RELEASED: Mapping[str, dict[str, Any]] = {
    OURS: {"release": GaussianProcess(start="zero")},  # private rows alone, as in the paper
    PRINTED_SVM: {
        "release": TDDL(calibration="paper"),
        "loss": "hinge",
        "penalty": PAPER_PENALTY,
    },
    PRINTED_TDDL: {"release": TDDL(calibration="paper")},
    "TDDL, Laplace": {"release": TDDL(calibration="laplace")},
    "TDDL, Gaussian": {"release": TDDL(calibration="gaussian")},
    "TDIL, repaired": {"release": TDIL()},
}
ASKED: Mapping[str, Any] = {
    "dpadapt, asked one by one": NoisePath(),
    PRINTED_PINP: PINP(calibration="paper"),
    "PINP, least noise": PINP(),
    "sparse vector": SparseVector(),
}


@dataclass(frozen=True, eq=False)
class Split:
    """Public, private and test rows of one draw.

    Parameters
    ----------
    X, y : ndarray
        Public.
    X_private, y_private : ndarray
    X_test, y_test : ndarray
    seed : int
        Also of the noise.

    Examples
    --------
    >>> rows, labels = np.eye(2), np.array([0, 1])
    >>> Split(rows, labels, rows, labels, rows, labels, 0).private()
    Private(2 rows, 2 columns, labelled)
    """

    X: Array
    y: Any
    X_private: Array
    y_private: Any
    X_test: Array
    y_test: Any
    seed: int

    def private(self) -> Private:
        """The private rows, wrapped."""
        return Private(self.X_private, self.y_private)

    @property
    def majority(self) -> float:
        """Accuracy of saying the more frequent class of the private rows."""
        values, counts = np.unique(self.y_private, return_counts=True)
        return float(np.mean(self.y_test == values[counts.argmax()]))

    def accuracy(self, model: Any, most: int | None = None) -> float:
        """Share of right answers, to the first ``most`` test rows."""
        return float(np.mean(model.predict(self.X_test[:most]) == self.y_test[:most]))


def classifier(epsilon: float, seed: int, **options: Any) -> KernelClassifier:
    """Cubic kernel, noise from a seed."""
    return KernelClassifier(
        epsilon=epsilon,
        delta=DELTA,
        kernel="polynomial",
        noise="seeded",
        random_state=seed,
        **options,
    )


def fit_released(name: str, split: Split, epsilon: float, **options: Any) -> Any:
    """A released model of the cubic kernel.

    Parameters
    ----------
    name : one of ``RELEASED``
    split : Split
    epsilon : float
    **options
        Further ones of the classifier; ``release__pool`` is one of its release.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 1))
    >>> split = Split(X, X[:, 0] > 0, X, X[:, 0] > 0, X, X[:, 0] > 0, 0)
    >>> split.accuracy(fit_released("dpadapt", split, 1e6)) > 0.9
    True
    """
    model = classifier(epsilon, split.seed, **RELEASED[name]).set_params(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that printed constants spend less than they claim
        return model.fit(split.X, split.y, private=split.private())


def plain(split: Split, **options: Any) -> Any:
    """The same kernel model without privacy; its penalty is the least that is ever taken.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 1))
    >>> split = Split(X, X[:, 0] > 0, X, X[:, 0] > 0, X, X[:, 0] > 0, 0)
    >>> split.accuracy(plain(split)) > 0.9
    True
    """
    return fit_released(OURS, split, NO_NOISE, **options)


def ask(name: str, split: Split, epsilon: float, questions: int = 10_000) -> InteractivePredictor:
    """A model that is asked one by one.

    Parameters
    ----------
    name : one of ``ASKED``
    split : Split
    epsilon : float
    questions : int, default=10000
        How many are expected.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> split = Split(X, X[:, 0] > 0, X, X[:, 0] > 0, X, X[:, 0] > 0, 0)
    >>> ask("sparse vector", split, 1.0).updates_used_
    0
    """
    method = ASKED[name]
    if not isinstance(method, NoisePath):  # which needs no number
        method = method.with_params(questions=questions)
    predictor = InteractivePredictor(classifier(epsilon, split.seed), method=method)
    return predictor.fit(split.X, split.y, private=split.private())


def fit_linear(split: Split, epsilon: float) -> Any:
    """Objective perturbation (Chaudhuri et al. 2011), which has no kernels.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 1))
    >>> split = Split(X, X[:, 0] > 0, X, X[:, 0] > 0, X, X[:, 0] > 0, 0)
    >>> split.accuracy(fit_linear(split, 100.0)) > 0.9
    True
    """
    model = ObjectivePerturbationClassifier(
        epsilon=epsilon, delta=DELTA, noise="seeded", random_state=split.seed
    )
    return model.fit(split.X, split.y, private=split.private())
