"""The scikit-learn face of AdaMix: the known-noise default and Algorithms 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dpadapt.learning.constraints import Named, ParameterTable
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy.accounting.events import Relation

from .classifier import UnitClassifier
from .known_noise import KnownNoise
from .solver import Solver

_SOLVERS: Mapping[str, type | str] = {
    "known-noise": KnownNoise,
    "adamix": "dpadapt.papers.mixing.adamix.AdaMix",
    "theory": "dpadapt.papers.mixing.adamix.Theory",
}


class AdaMixClassifier(UnitClassifier):
    r"""Fine-tune a linear classifier with private rows and a few public ones.

    The default starts at the model of the public rows and descends on the private loss with a
    fixed clip, as far as the known noise allows (``solver="known-noise"``); there is nothing to
    tune. The paper's own algorithms are there with all their parts.

    Features are directions: a row x becomes (x - m) / |x - m|, m the mean of the public classes'
    means, so that no bound on the features is needed. Use it on frozen features of images or text
    (:mod:`dpadapt.features`).

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : {"known-noise", "adamix", "theory"} or object, default="known-noise"
        "adamix" is the paper's Algorithm 2, "theory" its Algorithm 3. An object holds the options
        of one of them (:class:`KnownNoise`, ``AdaMix``, ``Theory``):
        ``solver=AdaMix(clipping=AdaptiveClip(percentile=75))``.
    steps : int, Steps or StepsAtNoise, optional
        T; the noise follows from it. Or the noise, and T follows: ``steps=StepsAtNoise(20.0)``, the
        default of the paper's algorithms. By default 100 for "known-noise", and more (1,600 at
        most) where rows and budget allow to go so far that a step would be too long. Both can
        have an individual filter.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        What the guarantee is about. The paper's is "add-remove": half the noise for the same
        numbers, and a weaker promise; the number of private rows is then a secret.
    classes : sequence, optional
        All class labels, where the public labels do not have them all. A private row of another
        class is left out, and nothing tells that it was there.
    sample_size : float, optional
        Public guess of the number of private rows; a factor of two hardly matters. By default
        their number under replace-one, a noisy count (1% of the budget) under add-remove.
    start : {"public", "zero"} or array of shape (c, d) or (c, d + 1), default="public"
        Where to start: the model of the public rows, zero, or weights of directions, as from a
        text encoder.
    select : mapping of option to values, optional
        Options of the solver, as ``{"clip": [0.3, 0.5, 1]}``: try them, for a secret number of
        runs, and keep the best by a noisy count of correct private rows; all of it is charged.
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
    plan_ : Horizon
        Of "known-noise"; public.
    clips_ : ndarray of shape (T,)
    selected_ : dict
        Only with ``select``: what was chosen.
    trajectory_ : list of ndarray
        Only with ``keep_trajectory``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    NoisyGDClassifier : from zero, without public rows.
    dpadapt.mixing.unsafe_individual_losses : what each private row really lost.

    Notes
    -----
    With no private sample the model is the one of the public rows and epsilon is 0. Without
    public rows (``fit(private=...)``) it is noisy gradient descent from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt import Private
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> public = np.concatenate([np.flatnonzero(y == digit)[:5] for digit in range(10)])
    >>> rest = np.setdiff1d(np.arange(len(y)), public)
    >>> private = Private(X[rest[:1200]], y[rest[:1200]])
    >>> model = AdaMixClassifier(epsilon=3.0, delta=1e-5, noise="seeded", random_state=0)
    >>> few = model.fit(X[public], y[public]).score(X[rest[1200:]], y[rest[1200:]])
    >>> model = model.fit(X[public], y[public], private=private)
    >>> model.score(X[rest[1200:]], y[rest[1200:]]) > few + 0.05
    True
    >>> print(model.guarantee_.sentence[:44])
    Replacing any one private row by any other c
    """

    _constraints: ClassVar[ParameterTable] = {
        "solver": [Named(_SOLVERS)],
    }

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: str | Solver = "known-noise",
        steps: int | Strategy | None = None,
        relation: Relation = "replace-one",
        classes: Sequence[Any] | None = None,
        sample_size: float | None = None,
        start: Any = "public",
        select: Mapping[str, Sequence[Any]] | None = None,
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
        self.select = select
        self.keep_trajectory = keep_trajectory
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _choices(self) -> Mapping[str, Sequence[Any]] | None:
        return self.select
