r"""AdaSSP (Wang 2018): least squares from noisy sufficient statistics, with an adaptive ridge.

Three statistics of the private rows are released: the least eigenvalue of :math:`Z^T Z / n`, the
matrix itself, and :math:`Z^T T / n`, with |z| <= R and |t| <= B. Under replace-one their
sensitivities are, in that order,

* R^2 / n, because :math:`z z^T - z' z'^T` lies between :math:`-R^2 I` and :math:`R^2 I`
  (Weyl's inequality);
* :math:`\sqrt 2 R^2 / n` in the Frobenius norm, from :math:`|z|^4 + |z'|^4 - 2 (z \cdot z')^2`;
* 2 R B / n, because :math:`|z t^T|_F = |z| |t|`.

They are calibrated together, with equal shares, by the exact Gaussian mechanism. The rest is
post-processing. A row longer than R is shrunk together with its label, which is a weight of the
row: the linear relation stays what it was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt.privacy import Guarantee, Prepared, Private, Request

from ._base import PrivateClassifier, PrivateRegressor
from ._tasks import Array, Task, bound_of, fit_ridge, shrinkage, signed

__all__ = ["AdaSSPClassifier", "AdaSSPRegressor", "CrossMoment", "RowMoment"]

_FAILS = 0.05  # chance that the noise exceeds what the ridge is chosen for (Wang's rho)


@dataclass(frozen=True)
class RowMoment:
    """Mean of z z^T over rows whose first ``width`` columns are z, of norm ``radius`` at most.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = RowMoment(Cleaning(radius=2.0), radius=2.0, width=1)
    >>> query.block(np.array([[1.0, 5.0], [2.0, 5.0]]), None), query.sensitivity(1) == 4 * 2**0.5
    (array([[5.]]), True)
    """

    cleaning: Any
    radius: float
    width: int
    label: str = "second moment"

    @property
    def magnitude(self) -> float:
        """R^2."""
        return self.radius**2

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """Square."""
        return (self.width, self.width)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of z z^T."""
        rows = X[:, : self.width]
        return np.asarray(rows.T @ rows)

    def sensitivity(self, n_rows: int) -> float:
        """Frobenius sensitivity of the mean."""
        return math.sqrt(2) * self.radius**2 / n_rows


@dataclass(frozen=True)
class CrossMoment:
    """Mean of z t^T over rows (z, t), with |z| <= ``radius`` and |t| <= ``bound``.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = CrossMoment(Cleaning(radius=9.0), radius=2.0, bound=5.0, width=1, outputs=1)
    >>> query.block(np.array([[1.0, 5.0], [2.0, 5.0]]), None), query.sensitivity(10)
    (array([[15.]]), 2.0)
    """

    cleaning: Any
    radius: float
    bound: float
    width: int
    outputs: int
    label: str = "moment with the label"

    @property
    def magnitude(self) -> float:
        """R B."""
        return self.radius * self.bound

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One column for each output."""
        return (self.width, self.outputs)

    def block(self, X: Array, y: Array | None) -> Array:
        """Sum of z t^T."""
        return np.asarray(X[:, : self.width].T @ X[:, self.width :])

    def sensitivity(self, n_rows: int) -> float:
        """Frobenius sensitivity of the mean."""
        return 2 * self.radius * self.bound / n_rows


class AdaSSPRegressor(PrivateRegressor):
    """Private least squares by AdaSSP; on the private rows alone, or on public residuals.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    residual : bool, default=False
        Whether to fit the residuals of the public ridge model, so that noise shrinks the result to
        the public model and not to zero.
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
    >>> model = AdaSSPRegressor(epsilon=1.0, delta=1e-6, residual=True)
    >>> model = model.fit(X, X[:, 0], private=Private(X, X[:, 0] + 1))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        residual: bool = False,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.residual = residual
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _solve(
        self, task: Task, private: Private, options: dict[str, Any]
    ) -> tuple[Array, Guarantee]:
        return _adassp(task, private, options, residual=self.residual)


class AdaSSPClassifier(PrivateClassifier):
    """Classification by AdaSSP: least squares on labels -1 and 1, or one-hot labels.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    residual : bool, default=False
        Whether to fit the residuals of public least squares.
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

    Notes
    -----
    The scores are least-squares ones: ``predict_proba`` orders the classes rightly, but it is not
    calibrated.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = AdaSSPClassifier(epsilon=1.0, delta=1e-6)
    >>> model = model.fit(X, X[:, 0] > 0, private=Private(X, X[:, 0] > 0))
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        residual: bool = False,
        classes: Any = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.residual = residual
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _solve(
        self, task: Task, private: Private, options: dict[str, Any]
    ) -> tuple[Array, Guarantee]:
        return _adassp(task, private, options, residual=self.residual)


def _adassp(
    task: Task, private: Private, options: dict[str, Any], *, residual: bool
) -> tuple[Array, Guarantee]:
    """Coefficients in public units."""
    targets = _targets(task.targets, task.classes)
    base = fit_ridge(task.rows, targets) if residual else task.zero()
    bound = bound_of(targets - task.rows @ base)
    rows = _residual_rows(task, base, bound, wide_labels=residual)
    d = task.rows.shape[1]
    with private.open(**options) as session:
        moment = session.hide(RowMoment(rows, task.radius, d), keep=True)
        cross = session.hide(CrossMoment(rows, task.radius, bound, d, task.outputs), keep=True)
        least = Request("gaussian", "least eigenvalue", moment.sensitivity / math.sqrt(2))
        first, second, third = session.plan(least, moment.request(), cross.request())
        lowest = session.gaussian(first, moment, lambda matrix: np.linalg.eigvalsh(matrix)[:1])
        noisy = session.symmetric_gaussian(second, moment)
        right = session.gaussian(third, cross)
    # what the eigenvalue is at least, but for the chance that Wang allows, and so the ridge that
    # outweighs the noise; his constant is for noise twice as large off the diagonal
    sure = max(float(lowest[0]) - first.scale * math.sqrt(2 * math.log(6 / session.delta)), 0.0)
    noise_norm = second.scale * math.sqrt(d * math.log(2 * d * d / _FAILS) / 2)
    ridge = max(0.0, noise_norm - sure)
    found = np.linalg.lstsq(noisy + ridge * np.eye(d), right, rcond=None)[0]
    return base + found, session.guarantee


def _targets(labels: Any, classes: int) -> Array:
    return signed(labels, classes) if classes else np.asarray(labels)[:, None]


def _residual_rows(task: Task, base: Array, bound: float, *, wide_labels: bool) -> Prepared:
    """Rows (z, t): t the residual of the base model cut to the bound; both shrunk as z is to R."""
    cleaning = task.cleaning(wide_labels=wide_labels)
    radius, classes = task.radius, task.classes
    half = 0.0
    if not classes and cleaning.label_range is not None:
        half = (cleaning.label_range[1] - cleaning.label_range[0]) / 2 / task.label_scaling[1]

    def rows(X: Array, y: Array | None) -> tuple[Array, Array | None]:
        labels = np.zeros(len(X)) if y is None else y
        left = _targets(labels if classes else half * labels, classes) - X @ base
        norms = np.linalg.norm(left, axis=1)
        left *= np.minimum(1.0, bound / np.maximum(norms, 1e-300))[:, None]
        weights = shrinkage(X, radius) * (labels >= 0 if classes else 1.0)
        return np.column_stack([X, left]) * weights[:, None], None

    return Prepared(cleaning, rows, task.rows.shape[1] + task.outputs)
