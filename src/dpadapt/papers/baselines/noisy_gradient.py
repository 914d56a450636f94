r"""Noisy descent on clipped per-row gradients: the loop, public tuning, and two baselines.

**Noisy full-batch gradient descent: from zero (private rows only), or from the public model.**

T steps, each on the mean of per-row gradients cut to a norm C. One step is a Gaussian release of
sensitivity 2 C / n (:class:`~.queries.ClippedGradient`); T of them, each chosen by the ones
before, are calibrated together by exact Gaussian accounting. Started from the public model this is
DP fine-tuning. T, C and the step size are given, or tuned on public rows only.

**Noisy stochastic gradient descent on the private target alone (Bassily et al. 2019).**

As printed: T steps on minibatches of :math:`\max(n \sqrt{\epsilon / (4T)}, 1)` rows drawn in
secret, within a ball, with noise :math:`\sigma^2 = 8 T G^2 \log(1/\delta) / (n \epsilon)^2` on the
mean gradient, G a bound on a gradient's norm; the answer is the mean of all iterates.

Secret sampling is not something a session does, so every step here takes *all* rows: the same
noise, no sampling error, and an event that is exactly Gaussian. With ``calibration="paper"`` the
noise is the printed one and the guarantee says what it gives over full batches (mu is
:math:`\epsilon / \sqrt{2 \log(1/\delta)}`, whatever T); with "tight" it is calibrated exactly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, Null, OneOf, ParameterTable, Positive
from dpadapt.learning.descent import descend, within
from dpadapt.privacy import Guarantee, Mechanism, Private
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import Gaussian

from ._tasks import (
    BaselineTask,
    PrivateClassifier,
    PrivateRegressor,
    fit_logistic,
    fit_ridge,
    loss_derivatives,
)
from .queries import ClippedGradient, clipped_gradient

Gradient = Callable[[FloatArray], FloatArray]

GRID = [(t, s, c) for t in (5, 20, 80, 320) for s in (0.1, 0.5, 1.0) for c in (0.3, 1.0)]
DEFAULT = (20, 0.5, 1.0)  # where there are too few public rows to try settings
_FEW, _MOST, _DRAWS = 40, 2000, 2  # public rows to tune on at least, at most; noises per setting


def noisy_descent(
    gradient: Gradient,
    start: FloatArray,
    steps: int,
    step_size: float,
    *,
    keep: float = 0.5,
    radius: float = math.inf,
) -> FloatArray:
    """Mean of the last part ``keep`` of the iterates, each within ``radius``."""
    first = min(steps - 1, math.floor((1 - keep) * steps))
    return descend(gradient, start, step_size, steps, last=steps - first, project=within(radius))


def smoothness(rows: FloatArray, classes: int) -> float:
    """Largest curvature of the mean loss."""
    top = float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1])
    return top * (1.0 if not classes else 0.25 if classes <= 2 else 0.5)


def median_norm(rows: FloatArray, labels: Any, coefficients: FloatArray, classes: int) -> float:
    """Median norm of a public row's gradient; never zero."""
    errors = loss_derivatives(rows @ coefficients, labels, classes)
    norms = np.linalg.norm(errors, axis=1) * np.linalg.norm(rows, axis=1)
    return max(float(np.median(norms)), 1e-3)


def tuned(
    task: BaselineTask, start: str, n_rows: int, mu: float, given: tuple[Any, Any, Any]
) -> tuple[int, float, float]:
    """Settings (steps, step size, clip) that do best on public rows at the real n and budget.

    Step sizes are multiples of one over the smoothness, clip norms of the median norm of a public
    gradient at the start. From zero: on random halves of the public rows. From the public model:
    on a made-up shift, the model fitted to public rows below the median of the first principal
    direction, the noisy steps and the validation on those above it. Settings that are given stay.
    """
    settings = sorted({filled_from_row(given, row) for row in GRID})
    default = filled_from_row(given, DEFAULT)
    m = len(task.rows)
    if len(settings) == 1 or m < _FEW:
        return default
    rng = np.random.default_rng(0)
    rows, labels, classes = task.rows, task.targets, task.classes
    if start == "public":
        moved = rows - rows.mean(axis=0)
        along = moved @ np.linalg.eigh(moved.T @ moved)[1][:, -1]
        above = along > np.median(along)
        source, pool = np.flatnonzero(~above), rng.permutation(np.flatnonzero(above))
        if len(pool) < _FEW // 4 or len(source) < _FEW // 4:
            return default
        first = (
            fit_logistic(rows[source], labels[source], classes)
            if classes
            else fit_ridge(rows[source], labels[source][:, None])
        )
    else:
        source, pool, first = np.arange(m), rng.permutation(m), task.zero()
    size = min(n_rows, _MOST, len(pool) // 2)
    train, test = pool[:size], pool[size : size + _MOST]
    curvature = smoothness(rows[source], classes)
    unit = median_norm(rows[source], labels[source], first, classes)

    def error(setting: tuple[int, float, float]) -> float:
        steps, step, clip = setting
        scale = 2 * clip * unit * math.sqrt(steps) / (mu * n_rows)
        losses = []
        for draw in range(_DRAWS):
            noise = np.random.default_rng([1, draw])

            def gradient(w: FloatArray, noise: Any = noise) -> FloatArray:
                mean = clipped_gradient(rows[train], labels[train], w, clip * unit, classes) / size
                return mean + scale * noise.standard_normal(w.shape)

            w = noisy_descent(gradient, first, steps, step / curvature)
            losses.append(_loss(rows[test] @ w, labels[test], classes))
        return float(np.mean(losses))

    with np.errstate(all="ignore"):
        return min(settings, key=lambda setting: np.nan_to_num(error(setting), nan=math.inf))


def filled_from_row(
    given: tuple[Any, Any, Any], row: tuple[int, float, float]
) -> tuple[Any, Any, Any]:
    """What is given, and the rest from the row."""
    steps, step, clip = (new if old is None else old for old, new in zip(given, row, strict=True))
    return steps, step, clip


def _loss(scores: FloatArray, labels: Any, classes: int) -> float:
    """Mean squared error, or the rate of wrong classes."""
    if not classes:
        return float(np.mean((scores[:, 0] - labels) ** 2))
    places = scores.argmax(axis=1) if classes > 2 else (scores[:, 0] > 0).astype(int)
    return float(np.mean(places != labels))


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
    size_query = task.size_query(first, private.n_rows, mu) if model.start == "public" else None
    if size_query is None:
        steps, step_size, clip = tuned(task, model.start, private.n_rows, mu, given)
        clip *= median_norm(task.rows, task.targets, first, task.classes)
    else:
        steps, step_size, clip = filled_from_row(given, DEFAULT)
        clip *= median_norm(task.rows, task.planning_residuals(first), task.zero(), task.classes)
    rows, size = task.prepared(), 1.0
    with private.open(**options) as session:
        model._count(session)
        hidden = session.hide(ClippedGradient(rows, first, clip, task.classes), keep=True)
        planned: dict[str, Mechanism] = {"gradient": Gaussian.of(hidden, count=steps)}
        if size_query is not None:
            planned |= size_query.mechanisms(session, planned)
        grants = session.plan(**planned)
        if size_query is not None:
            size = size_query.release(session, grants)
            rows = task.prepared(size)

        def gradient(w: FloatArray) -> FloatArray:
            query = ClippedGradient(rows, w, clip, task.classes)
            return np.asarray(session.release(grants.gradient, session.hide(query, keep=True)))

        step = step_size / smoothness(task.rows, task.classes)
        found = size * noisy_descent(gradient, first / size, steps, step)
    return found, session.guarantee


_MOST_STEPS = 200  # by default: every one reads all rows


class NoisySGDRegressor(PrivateRegressor):
    """Linear regression by the noisy SGD of Bassily et al. (2019) on the private rows.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    calibration : {"tight", "paper"}, default="tight"
        Noise calibrated to what was asked, or the printed one.
    steps : int, optional
        T; by default the number of private rows, at most 200.
    norm_bound : float, optional
        Radius of the ball of coefficients, in public units (columns and labels standardised). By
        default twice the norm of the public coefficients.
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
    >>> model = NoisySGDRegressor(epsilon=1.0, delta=1e-6)
    >>> model = model.fit(X, X[:, 0], private=Private(X, X[:, 0] + 1))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    _constraints: ClassVar[ParameterTable] = {
        "calibration": [OneOf("tight", "paper")],
        "steps": [Count(), Null()],
        "norm_bound": [Positive(), Null()],
    }

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        calibration: str = "tight",
        steps: int | None = None,
        norm_bound: float | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.calibration = calibration
        self.steps = steps
        self.norm_bound = norm_bound
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        n = private.n_rows
        steps = min(n, _MOST_STEPS) if self.steps is None else self.steps
        ball = self.norm_bound or max(2 * float(np.linalg.norm(task.public_fit())), 1e-6)
        # |gradient| = |z| |z.w - t| within the ball, for rows of norm R and labels within the bound
        largest = task.radius * (ball * task.radius + task.label_bound)
        rows, start = task.prepared(), task.zero()
        with private.open(**options) as session:
            self._count(session)
            first = session.hide(ClippedGradient(rows, start, largest, 0), keep=True)
            noisy = Gaussian.of(first, count=steps)
            if self.calibration == "paper":
                printed = largest * math.sqrt(8 * steps * math.log(1 / options["delta"]))
                noisy = dataclasses.replace(noisy, printed=printed / (n * options["epsilon"]))
            grants = session.plan(gradient=noisy)

            def gradient(w: FloatArray) -> FloatArray:
                query = ClippedGradient(rows, w, largest, 0)
                return np.asarray(session.release(grants.gradient, session.hide(query, keep=True)))

            # the step of the paper: balances the ball against gradient and noise
            noise = len(start) * grants.gradient.scale**2
            step = ball / math.sqrt(steps * (largest**2 + noise))
            found = noisy_descent(gradient, start, steps, step, keep=1.0, radius=ball)
        return found, session.guarantee
