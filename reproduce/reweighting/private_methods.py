"""The private methods of paper 001's tables and figures, and what they are measured against.

Nothing here looks at a private row outside a session, and nothing is tuned on private rows; the two
oracles are the exception, and say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Private

from .methods_without_privacy import Fit
from .splits import Split

__all__ = [
    "DELTA",
    "PAPER_DELTA",
    "known_noise",
    "noisy_gradient",
    "noisy_sgd",
    "oracle_pooled",
    "oracle_private",
    "own_limit",
    "plain_public",
    "printed",
    "printed_discrepancy",
    "private_discrepancy",
    "public_only",
]

Array = NDArray[np.float64]

DELTA = 1e-6  # of ours
PAPER_DELTA = 0.01  # of the paper; more than 1/n


def public_only(split: Split) -> Fit:
    """What ours is without private rows: the model that it starts from.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> public_only(split).epsilon
    0.0
    """
    model = _estimator(split, epsilon=1.0, delta=DELTA).fit(split.X, split.y)
    return Fit(model.predict, model.guarantee_.epsilon)


def plain_public(split: Split) -> Fit:
    """Ridge or logistic regression on standardised public columns, as people would do it.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> plain_public(split).epsilon
    0.0
    """
    from dpadapt.baselines import PublicOnlyClassifier, PublicOnlyRegressor

    model: Any = PublicOnlyClassifier() if split.classes else PublicOnlyRegressor()
    return Fit(model.fit(split.X, split.y).predict, 0.0)


def known_noise(split: Split, epsilon: float) -> Fit:
    """Ours, as it comes: the default solver at delta 1e-6.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(known_noise(split, epsilon=1.0).epsilon, 3)
    1.0
    """
    return _fitted(split, _estimator(split, epsilon=epsilon, delta=DELTA))


def printed(split: Split, epsilon: float, alpha: float = 0.5, steps: int | str = "theorem") -> Fit:
    """The paper's algorithm (PCnvxAdap, for classes PNCnvxAdap) as printed, at its delta 0.01.

    T is that of Theorem 2 (10,000 at most) or what is given, for classes that of Theorem 4 (1,000
    at most).

    Examples
    --------
    >>> import warnings
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], False, 0)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     bool(printed(split, epsilon=0.5).epsilon > 0.5)
    True
    """
    from dpadapt.reweighting import ConvexGradient, GeneralGradient

    solver: Any = GeneralGradient(alpha=alpha, calibration="paper")
    if not split.classes:
        solver = ConvexGradient(alpha=alpha, calibration="paper", steps=steps)
    return _fitted(split, _estimator(split, epsilon=epsilon, delta=PAPER_DELTA, solver=solver))


def own_limit(split: Split, alpha: float = 0.5, steps: int = 10_000) -> Fit:
    """The same algorithm (regression) without noise, with the most steps: what it can reach.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], False, 0)
    >>> own_limit(split, steps=50).epsilon
    inf
    """
    from dpadapt.papers.reweighting._problems import PaperRegression
    from dpadapt.papers.reweighting.convex_adaptation import ConvexAdaptation
    from dpadapt.reweighting.problem import RegressionProblem

    paper = PaperRegression(RegressionProblem(split.X, split.y))
    sample = paper.sample
    algorithm = ConvexAdaptation(
        sample.rows,
        sample.labels,
        alpha=alpha,
        kappa=(0.05, 0.0, 0.0),
        norm_bound=paper.coefficient_bound,
        steps=steps,
    )
    rows, labels = sample.cleaning(split.X_private, split.y_private)
    assert labels is not None
    found = sample.linear(algorithm.minimise(rows, labels).coefficients[:, None])
    return Fit(lambda X: X @ found.slopes[:, 0] + found.constants[0])


def printed_discrepancy(split: Split, epsilon: float) -> Fit:
    """Private discrepancy minimisation as paper 000 prints it: its Algorithm 2, without labels.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], False, 0)
    >>> bool(printed_discrepancy(split, epsilon=1.0).epsilon < 1)
    True
    """
    from dpadapt.discrepancy import DiscrepancyRegressor, FrankWolfe

    model = DiscrepancyRegressor(
        epsilon=epsilon,
        delta=PAPER_DELTA,
        solver=FrankWolfe(calibration="paper"),
        noise="seeded",
        random_state=split.seed,
    )
    model.fit(split.X, split.y, private=Private(split.X_private))
    return Fit(model.predict, model.guarantee_.epsilon)


def private_discrepancy(split: Split, epsilon: float) -> Fit:
    """Private discrepancy minimisation (paper 000; here our solver): labels are not read.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(private_discrepancy(split, epsilon=1.0).epsilon, 3)
    1.0
    """
    from dpadapt.discrepancy import DiscrepancyRegressor

    model = DiscrepancyRegressor(
        epsilon=epsilon, delta=PAPER_DELTA, noise="seeded", random_state=split.seed
    )
    model.fit(split.X, split.y, private=Private(split.X_private))
    return Fit(model.predict, model.guarantee_.epsilon)


def noisy_sgd(split: Split, epsilon: float) -> Fit:
    """Noisy SGD on private rows only (Bassily et al. 2019), as printed, at the paper's delta.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], False, 0)
    >>> bool(0 < noisy_sgd(split, epsilon=1.0).epsilon)
    True
    """
    from dpadapt.baselines import NoisySGDRegressor

    model = NoisySGDRegressor(
        epsilon=epsilon,
        delta=PAPER_DELTA,
        calibration="paper",
        noise="seeded",
        random_state=split.seed,
    )
    return _fitted(split, model)


def noisy_gradient(split: Split, epsilon: float) -> Fit:
    """Noisy gradient descent from zero on private rows only, at delta 1e-6.

    80 steps, gradients cut to the median norm of public ones, step size tuned on public rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0] / 4, X, X[:, 0] / 4, X, X[:, 0], X, X[:, 0], False, 0)
    >>> round(noisy_gradient(split, epsilon=1.0).epsilon, 3)
    1.0
    """
    from dpadapt import baselines

    kind = "Classifier" if split.classes else "Regressor"
    model = getattr(baselines, f"NoisyGradient{kind}")(
        epsilon=epsilon,
        delta=DELTA,
        steps=80,
        clip=1.0,
        noise="seeded",
        random_state=split.seed,
    )
    return _fitted(split, model)


def oracle_private(split: Split) -> Fit:
    """Trained on the private rows without privacy; nothing is chosen on other target rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0], X, -X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> bool(oracle_private(split).predict(X[:1])[0] * X[0, 0] < 0)
    True
    """
    return _oracle(split, pooled=False)


def oracle_pooled(split: Split) -> Fit:
    """Trained on both samples, each with half of the weight, without privacy.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> split = Split(X, X[:, 0], X, X[:, 0], X, X[:, 0], X, X[:, 0], False, 0)
    >>> bool(oracle_pooled(split).predict(X[:1])[0] * X[0, 0] > 0)
    True
    """
    return _oracle(split, pooled=True)


def _oracle(split: Split, *, pooled: bool) -> Fit:
    from dpadapt.baselines import NonPrivateClassifier, NonPrivateRegressor

    kind = NonPrivateClassifier if split.classes else NonPrivateRegressor
    model: Any = kind(pooled=pooled)
    model.fit(split.X, split.y, target=(split.X_private, split.y_private))
    return Fit(model.predict)


def _estimator(split: Split, **settings: Any) -> Any:
    import dpadapt

    kind = "ReweightingClassifier" if split.classes else "ReweightingRegressor"
    return getattr(dpadapt, kind)(noise="seeded", random_state=split.seed, **settings)


def _fitted(split: Split, model: Any) -> Fit:
    model.fit(split.X, split.y, private=Private(split.X_private, split.y_private))
    return Fit(model.predict, model.guarantee_.epsilon)
