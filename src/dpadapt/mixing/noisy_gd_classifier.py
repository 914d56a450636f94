"""The scikit-learn face of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpadapt.privacy import _validate as validate
from dpadapt.privacy.events import Relation

from ._classifier import Training, UnitClassifier
from .adamix import Recipe, mixed_descent
from .features import PublicSample, UnitRows
from .public_phase import penalised
from .softmax import Array

__all__ = ["NoisyGDClassifier"]


class NoisyGDClassifier(UnitClassifier):
    r"""Linear classifier by noisy gradient descent on private rows (paper 004, Algorithm 1).

    Features are directions: a row x becomes (x - m) / |x - m|, with m from public rows. Each
    step takes the sum of the private rows' gradients, each clipped, plus Gaussian noise.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        What the guarantee is about. The paper's is "add-remove": half the noise for the same
        numbers, and a weaker promise; the number of private rows is then a secret.
    classes : sequence, optional
        All class labels, where the public labels do not have them all.
    start : {"zero", "public"} or array of shape (c, d) or (c, d + 1), default="zero"
        Where to start: zero, the model of the public rows, or weights of directions.
    steps : int, optional
        T; the noise follows from it.
    sigma : float, optional
        Noise over clip; T follows from it. By default 20, as in the paper.
    learning_rate : float, default=2.0
        On the mean gradient. 2 is one over the curvature of the loss of unit rows.
    clip : float, default=1.0
        tau, bound on a row's gradient norm, which is at most 1.42 anyway.
    penalty : float, default=0.0
        lambda, of the squared norm of the weights.
    average : bool, default=False
        Return the mean of the iterates instead of the last.
    sample_size : float, optional
        Public guess of the number of private rows, for the mean gradient. By default their number
        under replace-one, a noisy count under add-remove.
    individual_filter : float, optional
        f >= 1: noise as for T / f steps only; a row takes part until it has paid for so many.
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
    >>> from dpadapt import Private
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> private = Private(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> model = NoisyGDClassifier(epsilon=1.0, delta=1e-6, steps=30, classes=["no", "yes"])
    >>> model.fit(private=private).predict([[2.0, 0.1], [-2.0, 0.1]])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        relation: Relation = "replace-one",
        classes: Sequence[Any] | None = None,
        start: Any = "zero",
        steps: int | None = None,
        sigma: float | None = None,
        learning_rate: float = 2.0,
        clip: float = 1.0,
        penalty: float = 0.0,
        average: bool = False,
        sample_size: float | None = None,
        individual_filter: float | None = None,
        keep_trajectory: bool = False,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.classes = classes
        self.start = start
        self.steps = steps
        self.sigma = sigma
        self.learning_rate = learning_rate
        self.clip = clip
        self.penalty = penalty
        self.average = average
        self.sample_size = sample_size
        self.individual_filter = individual_filter
        self.keep_trajectory = keep_trajectory
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _check(self) -> None:
        super()._check()
        validate.positive("learning_rate", self.learning_rate)
        validate.positive("clip", self.clip)
        validate.non_negative("penalty", self.penalty)
        if isinstance(self.start, str):
            validate.choice("start", self.start, ("zero", "public"))

    def _train(self, given: Training) -> dict[str, Any]:
        units = given.units
        if isinstance(self.start, str) and self.start == "zero":
            W = np.zeros((units.width, units.classes))
        else:
            W = self._public_model(given.public, units)
        recipe = Recipe(rate=self.learning_rate, clip=self.clip, penalty=self.penalty)
        last = mixed_descent(
            given.gradients,
            given.public,
            given.public,
            W,
            given.steps,
            given.sample_size,
            recipe,
            path=given.path,
            progress=given.progress,
        )
        return {"weights": given.path.mean if self.average else last}

    def _public_model(self, public: PublicSample, units: UnitRows) -> Array:
        return penalised(public) if isinstance(self.start, str) else self._given_start(units)
