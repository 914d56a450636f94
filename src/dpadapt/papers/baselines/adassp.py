r"""AdaSSP (Wang 2018): least squares from noisy sufficient statistics, with an adaptive ridge.

Three statistics of the private rows are released: the least eigenvalue of :math:`Z^T Z / n`, the
matrix itself, and :math:`Z^T T / n`, with |z| <= R and |t| <= B (:mod:`.queries` has their
sensitivities and the proofs).

They are calibrated together, with equal shares, by the exact Gaussian mechanism. The rest is
post-processing. A row longer than R is shrunk together with its label, which is a weight of the
row: the linear relation stays what it was.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Flag, ParameterTable
from dpadapt.privacy import Guarantee, Mechanism, Private, shrink_factors
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import Gaussian, SymmetricGaussian
from dpadapt.privacy.statistics import Prepared

from ._tasks import BaselineTask, PrivateClassifier, PrivateRegressor, bound_of, fit_ridge, signed
from .queries import CrossMoment, RowMoment, hidden_least_eigenvalue

_FAILS = 0.05  # chance that the noise exceeds what the ridge is chosen for (Wang's rho)


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

    _constraints: ClassVar[ParameterTable] = {"residual": [Flag()]}

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

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
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

    _constraints: ClassVar[ParameterTable] = {"residual": [Flag()]}

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

    def _coefficients(
        self, task: BaselineTask, private: Private, options: dict[str, Any]
    ) -> tuple[FloatArray, Guarantee]:
        return _adassp(task, private, options, residual=self.residual)


def _adassp(
    task: BaselineTask, private: Private, options: dict[str, Any], *, residual: bool
) -> tuple[FloatArray, Guarantee]:
    """Coefficients in public units."""
    targets = _targets(task.targets, task.classes)
    base = fit_ridge(task.rows, targets) if residual else task.zero()
    bound, size_query = bound_of(targets - task.rows @ base), None
    if residual:
        mu = gaussian_mu(options["epsilon"], options["delta"])
        size_query = task.size_query(base, private.n_rows, mu)
    if size_query is not None:
        bound = bound_of(task.planning_residuals(base)[:, None])
    rows = _residual_rows(task, base, bound, wide_labels=residual)
    d, size = task.rows.shape[1], 1.0
    with private.open(**options) as session:
        # nothing is counted: moments, ridge and noise are all in units of one over n, which cancels
        session.leave_out_unlabelled()
        moment = session.hide(RowMoment(rows, task.radius, d), keep=True)
        cross = session.hide(CrossMoment(rows, task.radius, bound, d, task.outputs), keep=True)
        least = hidden_least_eigenvalue(session, moment)
        planned: dict[str, Mechanism] = {
            "least": Gaussian.of(least),
            "moment": SymmetricGaussian.of(moment),
            "cross": Gaussian.of(cross),
        }
        if size_query is not None:
            planned |= size_query.mechanisms(session, planned)
        grants = session.plan(**planned)
        if size_query is not None:
            size = size_query.release(session, grants)
            rows = _residual_rows(task, base, bound, wide_labels=residual, size=size)
            cross = session.hide(CrossMoment(rows, task.radius, bound, d, task.outputs), keep=True)
        lowest = session.release(grants.least, least)
        noisy = session.release(grants.moment, moment)
        right = session.release(grants.cross, cross)
    # what the eigenvalue is at least, but for the chance that Wang allows, and so the ridge that
    # outweighs the noise; his constant is for noise twice as large off the diagonal
    spread = grants.least.scale * math.sqrt(2 * math.log(6 / session.delta))
    sure = max(float(lowest[0]) - spread, 0.0)
    noise_norm = grants.moment.scale * math.sqrt(d * math.log(2 * d * d / _FAILS) / 2)
    ridge = max(0.0, noise_norm - sure)
    found = np.linalg.lstsq(noisy + ridge * np.eye(d), right, rcond=None)[0]
    return base + size * found, session.guarantee


def _targets(labels: Any, classes: int) -> FloatArray:
    return signed(labels, classes) if classes else np.asarray(labels)[:, None]


def _residual_rows(
    task: BaselineTask, base: FloatArray, bound: float, *, wide_labels: bool, size: float = 1.0
) -> Prepared:
    """Rows (z, t): t the residual of the base model cut to the bound; both shrunk as z is to R.

    Residuals are in units of ``size``.
    """
    cleaning = task.cleaning(wide_labels=wide_labels)
    radius, classes = task.radius, task.classes
    half = 0.0
    if not classes and cleaning.label_range is not None:
        half = (cleaning.label_range[1] - cleaning.label_range[0]) / 2 / task.label_scaling[1]

    def rows(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        labels = np.zeros(len(X)) if y is None else y
        left = (_targets(labels if classes else half * labels, classes) - X @ base) / size
        left *= shrink_factors(np.linalg.norm(left, axis=1), bound)[:, None]
        weights = shrink_factors(np.linalg.norm(X, axis=1), radius)
        weights *= labels >= 0 if classes else 1.0
        return np.column_stack([X, left]) * weights[:, None], y

    return Prepared(cleaning, rows, task.rows.shape[1] + task.outputs)
