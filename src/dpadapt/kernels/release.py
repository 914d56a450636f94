"""How a kernel model is released: what the three ways share, and the default one.

A release is a strategy: ``release="tddl"`` or ``release=TDDL(calibration="laplace", points=50)``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.constraints import Count, OneOf, ParameterTable
from dpadapt.learning.shrinkage import shrunk
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Hidden, Session
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.mechanisms import Gaussian

from . import queries
from .constants import Bounds, Constants, KernelFacts, path_error
from .pool import Pool


@dataclass(frozen=True, eq=False)
class Release(Strategy):
    """A way to release a private kernel model.

    Parameters
    ----------
    points : int, default=300
        How many public rows are the pool.
    pool : array-like of shape (T, d), optional
        Public points instead of public rows.

    Examples
    --------
    >>> GaussianProcess(points=50).with_params(points=20).points
    20
    """

    points: int = 300
    pool: Any = None

    _constraints: ClassVar[ParameterTable] = {"points": [Count()]}
    told: ClassVar[str]
    """How the model was released, for a report."""

    def by_weights(self, linear: bool, outputs: int) -> bool:
        """Whether weights of explicit features are released, without a pool.

        Parameters
        ----------
        linear : bool
            Whether the features are the rows themselves.
        outputs : int
        """
        return False

    def check_no_pool(self) -> None:
        """Refuse options of a pool where there is none."""
        given = {"points": self.points != Release.points, "pool": self.pool is not None}
        for name in (name for name, there in given.items() if there):
            raise ValueError(
                f"{name}: weights of explicit features are released, without a pool; leave it as "
                "it is, or take features='none'."
            )

    @abstractmethod
    def coefficients(
        self, session: Session, predictions: Hidden, pool: Pool, facts: Constants
    ) -> FloatArray:
        """Release a model by its hidden predictions at a pool; coefficients of the pool's points.

        Parameters
        ----------
        session : Session
            With nothing planned.
        predictions : Hidden
            Of shape (T, k).
        pool : Pool
        facts : Constants
        """

    def weights(
        self, session: Session, weights: Hidden, facts: Constants, public: FloatArray
    ) -> FloatArray:
        """Release weights of explicit features.

        Parameters
        ----------
        session : Session
            With nothing planned.
        weights : Hidden
            Of shape (D, k).
        facts : Constants
        public : ndarray of shape (m, D)
            Features of public rows.
        """
        raise NotImplementedError

    @abstractmethod
    def error_bound(self, facts: KernelFacts, questions: int, size: int, explicit: bool) -> float:
        """How far answers are, at most, from those of the model without noise.

        Parameters
        ----------
        facts : KernelFacts
        questions : int
        size : int
            Points of the pool, or numbers in the weights of explicit features.
        explicit : bool
            Whether weights of explicit features were released.
        """

    @property
    def from_public(self) -> bool:
        """Whether private rows correct the public model; else they make the model alone."""
        return False


@dataclass(frozen=True, eq=False)
class GaussianProcess(Release):
    """Gaussian noise in the kernel's own space, once: on weights, or on whitened predictions.

    The noise of a prediction does not depend on the number of points in the pool, nor on how many
    predictions are made. See :mod:`dpadapt.kernels.pool`.

    Parameters
    ----------
    points, pool
        As in :class:`Release`; where there are explicit features there is no pool, and both are
        refused.
    start : {"public", "zero"}, default="public"
        "public": private rows correct the model of the public rows, and what of the correction is
        not more than its known noise is dropped (:mod:`dpadapt.learning.shrinkage`). "zero":
        private rows alone make the model, as in the paper.

    Examples
    --------
    >>> GaussianProcess().by_weights(linear=False, outputs=3)
    True
    """

    start: str = "public"

    _constraints: ClassVar[ParameterTable] = {"start": [OneOf("public", "zero")]}
    told: ClassVar[str] = "released once, with Gaussian noise in the kernel's own space"

    @property
    def from_public(self) -> bool:
        """As ``start`` says."""
        return self.start == "public"

    def by_weights(self, linear: bool, outputs: int) -> bool:
        """Always, where there are explicit features: it is the same noise."""
        return True

    def error_bound(self, facts: KernelFacts, questions: int, size: int, explicit: bool) -> float:
        """Largest error of so many answers.

        Noise of s in each of D numbers moves an answer by s R at most but for chance
        (:func:`~dpadapt.kernels.constants.path_error`). What is dropped as noise is no longer
        than s in each number: |c^_b| min(1, d s^2/|c^_b|^2) <= s sqrt(d).
        """
        if not explicit:
            raise ValueError(
                "release: between the points of a pool nothing is known of the model; a bound is "
                "that of explicit features (features='nystroem' or 'fourier'), or of TDDL."
            )
        noise = facts.prediction / gaussian_mu(facts.epsilon, facts.delta)
        dropped = noise * math.sqrt(size) if self.from_public else 0.0
        return path_error(facts, questions) + dropped

    def coefficients(
        self, session: Session, predictions: Hidden, pool: Pool, facts: Constants
    ) -> FloatArray:
        """Noise on whitened predictions."""
        return released(session, predictions, pool, Bounds.joint(facts), shrink=self.from_public)

    def weights(
        self, session: Session, weights: Hidden, facts: Constants, public: FloatArray
    ) -> FloatArray:
        """Noise in all directions alike."""
        grant = session.plan(weights=Gaussian.of(weights)).weights
        noisy = np.asarray(session.release(grant, weights))
        return shrunk(noisy, grant.scale, public) if self.from_public else noisy


def released(
    session: Session, predictions: Hidden, pool: Pool, bounds: Bounds, *, shrink: bool = False
) -> FloatArray:
    """Coefficients of the model that hidden predictions belong to, with noise; in the ball of C.

    Parameters
    ----------
    session : Session
        With nothing planned.
    predictions : Hidden
        Of shape (T,) or (T, k).
    pool : Pool
    bounds : Bounds
        Of all outputs.
    shrink : bool, default=False
        Whether what is not more than noise is dropped.

    Examples
    --------
    Predictions of a mean of private rows (linear kernel, rows in the unit ball: replacing one of
    n moves the mean by at most 2/n), released at four points and turned into a model:

    >>> from dpadapt.privacy import Cleaning, Private, Rows
    >>> Z = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])
    >>> pool = Pool.of(Z @ Z.T)
    >>> private = Private(np.tile([0.8, -0.6], (5000, 1)))
    >>> with private.open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
    ...     rows = session.hide(Rows(Cleaning(radius=1.0)))
    ...     predicted = queries.predictions(session, rows, lambda X: Z @ X.mean(axis=0))
    ...     alpha = released(session, predicted, pool, Bounds(2 / 5000, norm=1.0))
    >>> np.round(Z.T @ alpha, 2)
    array([ 0.8, -0.6])
    """
    whitened = queries.whitened(session, predictions, pool, bounds)
    grant = session.plan(predictions=Gaussian.of(whitened)).predictions
    noisy = session.release(grant, whitened)
    if shrink:
        noisy = shrunk(noisy.reshape(pool.size, -1), grant.scale, pool.root).reshape(noisy.shape)
    return pool.within_ball(pool.coefficients(noisy), bounds.norm)
