"""The scikit-learn face of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dpadapt.learning.constraints import Named, ParameterTable
from dpadapt.mixing.classifier import UnitClassifier
from dpadapt.mixing.solver import Steps
from dpadapt.privacy.accounting.events import Relation

from .noisy_gd import NoisyGD
from .steps import StepsAtNoise


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
