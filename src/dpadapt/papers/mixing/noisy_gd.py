"""Algorithm 1 (NoisyGD) of paper 004: gradient descent on noisy sums of clipped gradients.

Before it, what Algorithms 2 and 3 need too: how many steps of stated noise a budget buys, and the
sets W that weights are kept in; after it, its scikit-learn face.

::

    Data: private rows D, (epsilon, delta), noise sigma, clip tau, rate eta, penalty lambda
    T <- Calibrate(epsilon, delta, sigma)                             (steps_for_noise)
    w_1 = 0
    for t = 1, ..., T do
        G_t <- sum_i g_i(w_t) min(1, tau / |g_i(w_t)|) + N(0, (sigma tau)^2 I)
        w_{t+1} <- P_W(w_t - eta (G_t / N + lambda w_t))
    Result: w_{T+1}, or the mean of w_1, ..., w_T

N is public or noisy. Reconstructed from the paper's supplement; its main text was not at hand.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.constraints import (
    Flag,
    Instance,
    Named,
    NonNegative,
    Null,
    ParameterTable,
    Positive,
)
from dpadapt.learning.descent import descend
from dpadapt.learning.strategy import Strategy
from dpadapt.mixing.classifier import UnitClassifier
from dpadapt.mixing.solver import FILTER, Run, Solver, Steps, row_mu
from dpadapt.privacy import Session
from dpadapt.privacy.accounting.events import Relation


@dataclass(frozen=True)
class StepsAtNoise(Strategy):
    """So much noise in each step; their number follows from the budget, as in the paper.

    Parameters
    ----------
    sigma : float, default=20.0
        Noise over clip; the default is the paper's.
    individual_filter : float, optional
        As in :class:`~dpadapt.mixing.solver.Steps`.

    Examples
    --------
    >>> StepsAtNoise().sigma
    20.0
    """

    sigma: float = 20.0
    individual_filter: float | None = None

    _constraints: ClassVar[ParameterTable] = {"sigma": [Positive()], "individual_filter": FILTER}

    def number(self, session: Session) -> int:
        """T = Calibrate(epsilon, delta, sigma)."""
        return steps_for_noise(self.sigma, session.epsilon, session.delta, session.relation)


class PaperSolver(Solver):
    """An algorithm of the paper: so many steps as the paper's noise allows.

    Examples
    --------
    >>> from dpadapt.mixing import Theory
    >>> isinstance(Theory(), PaperSolver), Theory().usual_steps
    (True, StepsAtNoise(sigma=20.0, individual_filter=None))
    """

    @property
    def usual_steps(self) -> StepsAtNoise:
        """How much noise in each step, if nobody says."""
        return StepsAtNoise()


def steps_for_noise(sigma: float, epsilon: float, delta: float, relation: str) -> int:
    r"""Steps that noise of ``sigma`` clips allows: T = Calibrate(epsilon, delta, sigma).

    A step is :math:`1/\sigma`-GDP, T steps are :math:`\sqrt{T}/\sigma`-GDP (Lemma 8), so T is the
    whole part of :math:`(\mu \sigma)^2`. Erratum: Proposition 9 prints T^2 for T in its rho.

    Examples
    --------
    >>> [steps_for_noise(20.0, epsilon, 1e-5, "add-remove") for epsilon in (1.0, 3.0, 8.0)]
    [28, 206, 1110]
    >>> [steps_for_noise(20.0, epsilon, 1e-5, "replace-one") for epsilon in (1.0, 3.0, 8.0)]
    [7, 51, 277]
    """
    noise = validate.positive("sigma", sigma)
    mu = row_mu(epsilon, delta, relation)
    steps = math.floor((mu * noise) ** 2)
    if steps < 1:
        raise ValueError(
            f"sigma={sigma:g} is too small: not one step fits into epsilon {epsilon:g} at delta "
            f"{delta:g} under {relation}. Take at least {1 / mu:.4g}, or give steps instead."
        )
    return steps


@dataclass(frozen=True)
class ConstraintSet(Strategy, ABC):
    """A closed convex set of weights; public, so projecting costs no privacy.

    Examples
    --------
    >>> isinstance(Ball(radius=1.0), ConstraintSet)
    True
    """

    @abstractmethod
    def project(self, weights: FloatArray, start: FloatArray) -> FloatArray:
        """Nearest weights of the set.

        Parameters
        ----------
        weights : ndarray of shape (d, c)
        start : ndarray of shape (d, c)
            Where training started: the set may lie around it.
        """


@dataclass(frozen=True)
class Ball(ConstraintSet):
    """Weights within a distance of where training started.

    Parameters
    ----------
    radius : float

    Examples
    --------
    >>> Ball(radius=1.0).project(np.array([[3.0], [4.0]]), np.zeros((2, 1))).ravel()
    array([0.6, 0.8])
    """

    radius: float

    _constraints: ClassVar[ParameterTable] = {"radius": [Positive()]}

    def project(self, weights: FloatArray, start: FloatArray) -> FloatArray:
        """Shorten the way from the start."""
        away = weights - start
        length = float(np.linalg.norm(away))
        return weights if length <= self.radius else start + away * (self.radius / length)


@dataclass(frozen=True)
class Box(ConstraintSet):
    """Every weight between two bounds of the same size.

    Parameters
    ----------
    bound : float

    Examples
    --------
    >>> Box(bound=1.0).project(np.array([[3.0], [-0.5]]), np.zeros((2, 1))).ravel()
    array([ 1. , -0.5])
    """

    bound: float

    _constraints: ClassVar[ParameterTable] = {"bound": [Positive()]}

    def project(self, weights: FloatArray, start: FloatArray) -> FloatArray:
        """Cut every number."""
        return np.clip(weights, -self.bound, self.bound)


@dataclass(frozen=True)
class NoisyGD(PaperSolver):
    """Noisy gradient descent (Algorithm 1).

    Parameters
    ----------
    learning_rate : float, default=2.0
        eta, on the mean gradient. 2 is one over the curvature of the loss of unit rows.
    clip : float, default=1.0
        tau, bound on a row's gradient norm, which is at most 1.42 anyway.
    penalty : float, default=0.0
        lambda, of the squared norm of the weights.
    average : bool, default=False
        Return the mean of the iterates instead of the last.
    within : Ball or Box, optional
        W, the set that weights are projected on after every step; by default all of space.

    Examples
    --------
    >>> NoisyGD(clip=0.5).learning_rate
    2.0
    """

    learning_rate: float = 2.0
    clip: float = 1.0
    penalty: float = 0.0
    average: bool = False
    within: ConstraintSet | None = None

    _constraints: ClassVar[ParameterTable] = {
        "learning_rate": [Positive()],
        "clip": [Positive()],
        "penalty": [NonNegative()],
        "average": [Flag()],
        "within": [Instance(ConstraintSet), Null()],
    }
    words: ClassVar[str] = "noisy gradient descent (Golatkar et al. 2022, Algorithm 1)"

    def train(self, run: Run) -> tuple[FloatArray, dict[str, Any]]:
        """Run the loop."""
        iterates, allowed = run.iterates, self.within

        def noisy(W: FloatArray) -> FloatArray:
            G = run.gradients(W, self.clip)
            iterates.add(W, self.clip)
            return G / run.sample_size + self.penalty * W

        def project(W: FloatArray) -> FloatArray:
            return W if allowed is None else allowed.project(W, run.start)

        facts = (run.start, self.learning_rate, iterates.number)
        W = descend(noisy, *facts, last=1, project=project)
        return (iterates.mean if self.average else W), {}


class NoisyGDClassifier(UnitClassifier):
    r"""Linear classifier by noisy gradient descent on private rows (paper 004, Algorithm 1).

    Features are directions: a row x becomes (x - m) / |x - m|, with m from public rows. Each
    step takes the sum of the private rows' gradients, each clipped, plus Gaussian noise.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : {"noisy-gd"} or NoisyGD, default="noisy-gd"
        The descent; an object holds its options: ``solver=NoisyGD(clip=0.5)``.
    steps : int, Steps or StepsAtNoise, optional
        T; the noise follows from it. Or the noise, and T follows: by default
        ``StepsAtNoise(20.0)``, as in the paper. Both can have an individual filter.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        What the guarantee is about. The paper's is "add-remove": half the noise for the same
        numbers, and a weaker promise; the number of private rows is then a secret.
    classes : sequence, optional
        All class labels, where the public labels do not have them all.
    sample_size : float, optional
        Public guess of the number of private rows, for the mean gradient. By default their number
        under replace-one, a noisy count under add-remove.
    start : {"zero", "public"} or array of shape (c, d) or (c, d + 1), default="zero"
        Where to start: zero, the model of the public rows, or weights of directions.
    keep_trajectory : bool, default=False
        Keep the released weights of all steps.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    coef_ : ndarray of shape (1, d) for two classes, else (c, d)
        For directions, not for the rows themselves.
    intercept_ : ndarray
    features_ : UnitRows
        The public map from rows to directions.
    guarantee_ : Guarantee
    n_steps_ : int
        T. This and what follows only with a private sample.
    sigma_ : float
        Noise of a step over its clip.
    sample_size_ : float
    clips_ : ndarray of shape (T,)
    trajectory_ : list of ndarray of shape (d + 1, c)
        Only with ``keep_trajectory``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    AdaMixClassifier : makes use of public examples, and has nothing to tune.

    Notes
    -----
    With no private sample the model is the one of the public rows and epsilon is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt import Private
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> private = Private(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> model = NoisyGDClassifier(epsilon=1.0, delta=1e-6, steps=30, classes=["no", "yes"])
    >>> model.fit(private=private).predict([[2.0, 0.1], [-2.0, 0.1]])
    array(['yes', 'no'], dtype='<U3')
    """

    _constraints: ClassVar[ParameterTable] = {"solver": [Named({"noisy-gd": NoisyGD})]}

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: str | NoisyGD = "noisy-gd",
        steps: int | Steps | StepsAtNoise | None = None,
        relation: Relation = "replace-one",
        classes: Sequence[Any] | None = None,
        sample_size: float | None = None,
        start: Any = "zero",
        keep_trajectory: bool = False,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.steps = steps
        self.relation = relation
        self.classes = classes
        self.sample_size = sample_size
        self.start = start
        self.keep_trajectory = keep_trajectory
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose
