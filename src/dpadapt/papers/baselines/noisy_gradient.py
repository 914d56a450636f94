"""Noisy full-batch gradient descent: from zero (private rows only), or from the public model.

T steps, each on the mean of per-row gradients cut to a norm C. One step is a Gaussian release of
sensitivity 2 C / n (:class:`~.queries.ClippedGradient`); T of them, each chosen by the ones
before, are calibrated together by exact Gaussian accounting. Started from the public model this is
DP fine-tuning. T, C and the step size are given, or tuned on public rows only.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, Null, OneOf, ParameterTable, Positive
from dpadapt.privacy import Guarantee, Mechanism, Private
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import Gaussian

from ._base import PrivateClassifier, PrivateRegressor
from ._descent import DEFAULT, filled_from_row, median_norm, noisy_descent, smoothness, tuned
from ._tasks import BaselineTask
from .queries import ClippedGradient

_TABLE: ParameterTable = {
    "start": [OneOf("zero", "public")],
    "steps": [Count(), Null()],
    "step_size": [Positive(), Null()],
    "clip": [Positive(), Null()],
}


class NoisyGradientRegressor(PrivateRegressor):
    """Linear regression by noisy gradient descent on the private rows.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    start : {"zero", "public"}, default="zero"
        "zero" learns from the private rows alone, "public" fine-tunes the public model.
    steps : int, optional
        T. What is not given of the three is tuned on public rows.
    step_size : float, optional
        In units of one over the smoothness of the public loss.
    clip : float, optional
        In units of the median norm of a public row's gradient at the start.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
    verbose : int, default=0

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    guarantee_ : Guarantee

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = NoisyGradientRegressor(epsilon=1.0, delta=1e-6, start="public", steps=20)
    >>> model = model.fit(X, X[:, 0], private=Private(X, X[:, 0] + 1))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    _constraints: ClassVar[ParameterTable] = _TABLE

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        start: str = "zero",
        steps: int | None = None,
        step_size: float | None = None,
        clip: float | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.start = start
        self.steps = steps
        self.step_size = step_size
        self.clip = clip
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        return _noisy_descent(self, task, private, options)


class NoisyGradientClassifier(PrivateClassifier):
    """Logistic regression (softmax for three and more classes) by noisy gradient descent.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    start : {"zero", "public"}, default="zero"
        "zero" learns from the private rows alone, "public" fine-tunes the public model.
    steps : int, optional
        T. What is not given of the three is tuned on public rows.
    step_size : float, optional
        In units of one over the smoothness of the public loss.
    clip : float, optional
        In units of the median norm of a public row's gradient at the start.
    classes : sequence, optional
        All class labels; by default those of the public labels.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray
    coef_, intercept_ : ndarray
    guarantee_ : Guarantee

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = NoisyGradientClassifier(epsilon=1.0, delta=1e-6, start="public", steps=20)
    >>> model = model.fit(X, X[:, 0] > 0, private=Private(X, X[:, 0] > 0.5))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    _constraints: ClassVar[ParameterTable] = _TABLE

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        start: str = "zero",
        steps: int | None = None,
        step_size: float | None = None,
        clip: float | None = None,
        classes: Any = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.start = start
        self.steps = steps
        self.step_size = step_size
        self.clip = clip
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        return _noisy_descent(self, task, private, options)


def _noisy_descent(
    model: NoisyGradientRegressor | NoisyGradientClassifier,
    task: BaselineTask,
    private: Private,
    options: dict[str, Any],
) -> tuple[FloatArray, Guarantee]:
    """Coefficients in public units."""
    mu = gaussian_mu(options["epsilon"], options["delta"])
    given = (model.steps, model.step_size, model.clip)
    first = task.public_fit() if model.start == "public" else task.zero()
    look = task.look(first, private.n_rows, mu) if model.start == "public" else None
    if look is None:
        steps, step_size, clip = tuned(task, model.start, private.n_rows, mu, given)
        clip *= median_norm(task.rows, task.targets, first, task.classes)
    else:
        steps, step_size, clip = filled_from_row(given, DEFAULT)
        clip *= median_norm(task.rows, task.left(first), task.zero(), task.classes)
    rows, size = task.prepared(), 1.0
    with private.open(**options) as session:
        model._count(session)
        hidden = session.hide(ClippedGradient(rows, first, clip, task.classes), keep=True)
        planned: dict[str, Mechanism] = {"gradient": Gaussian.of(hidden, count=steps)}
        if look is not None:
            planned |= look.mechanisms(session, planned)
        grants = session.plan(**planned)
        if look is not None:
            size = look.release(session, grants)
            rows = task.prepared(size)

        def gradient(w: FloatArray) -> FloatArray:
            query = ClippedGradient(rows, w, clip, task.classes)
            return np.asarray(session.release(grants.gradient, session.hide(query, keep=True)))

        step = step_size / smoothness(task.rows, task.classes)
        found = size * noisy_descent(gradient, first / size, steps, step)
    return found, session.guarantee
