"""The scikit-learn face of AdaMix: the known-noise default and Algorithms 2 and 3."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import RowMap, Session
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.events import Relation

from . import known_noise
from ._classifier import Training, UnitClassifier
from .adamix import Recipe, mixed_descent
from .clipping import held_out
from .features import PublicSample, UnitRows
from .projection import FeatureSpan, WithProducts
from .public_phase import class_energy, few_shot, one_pass, penalised
from .softmax import Array
from .theory import regularised_descent, theorem_penalty

__all__ = ["AdaMixClassifier"]

_SOLVERS = ("known-noise", "adamix", "theory")
_SELECTABLE = ("learning_rate", "clip", "percentile", "penalty", "mixing")
_RATE = 2.0  # one over the curvature of the loss of unit rows
_PENALTY = 1e-2  # the paper's lambda
_PUBLIC_STEPS = 200  # the paper's
_CURVATURE = 0.1  # of the expected loss, guessed, for the one public pass of Algorithm 3


class AdaMixClassifier(UnitClassifier):
    r"""Fine-tune a linear classifier with private rows and a few public ones.

    The default starts at the model of the public rows and descends on the private loss with a
    fixed clip, as far as the known noise allows (``solver="known-noise"``); there is nothing to
    tune. The paper's own algorithms are there with all their parts.

    Features are directions: a row x becomes (x - m) / |x - m|, m the mean of the public classes'
    means, so that no bound on the features is needed. Use it on frozen features of images or text
    (:mod:`dpadapt.extractors`).

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    solver : {"known-noise", "adamix", "theory"}, default="known-noise"
        "adamix" is the paper's Algorithm 2, "theory" its Algorithm 3.
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
    clipping : {"fixed", "adaptive"}, optional
        Adaptive: the clip of each step is a percentile of public gradient norms. By default fixed;
        adaptive for "adamix".
    clip : float, optional
        tau of fixed clipping. By default 0.5; 1 for "adamix" and "theory".
    percentile : float, default=90.0
        Of adaptive clipping, on public rows that the public phase has not seen.
    projection : {"gradients", "features"}, optional
        Project gradients on the span of the public ones, or rows on that of the public rows. The
        paper's idea; it has not helped in anything that we measured.
    rank : int, optional
        Dimensions of the projection, at most.
    clip_first : bool, default=False
        With ``projection="gradients"``: clip, then project.
    mixing : float, optional
        Weight of public gradients in each step. By default 0; 1 for "adamix" and "theory".
    steps : int, optional
        T; the noise follows from it. By default 100 for "known-noise", where it does not matter.
    sigma : float, optional
        Noise over clip; T follows from it. By default 20 for the paper's algorithms.
    learning_rate : float, optional
        For "adamix": on the mean gradient, by default 2.
    penalty : float, optional
        For "adamix": lambda of the squared norm, by default 0.01. For "theory": by default from
        Theorem 3.
    average : bool, default=False
        Return the mean of the iterates instead of the last ("theory" has its own mean).
    individual_filter : float, optional
        f >= 1: noise as for T / f steps only; a row takes part until it has paid for so many.
    select : mapping of parameter to values, optional
        Try them, for a secret number of runs, and keep the best by a noisy count of correct
        private rows; all of it is charged. For learning_rate, clip, percentile, penalty, mixing.
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

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        solver: str = "known-noise",
        relation: Relation = "replace-one",
        classes: Sequence[Any] | None = None,
        sample_size: float | None = None,
        start: Any = "public",
        clipping: str | None = None,
        clip: float | None = None,
        percentile: float = 90.0,
        projection: str | None = None,
        rank: int | None = None,
        clip_first: bool = False,
        mixing: float | None = None,
        steps: int | None = None,
        sigma: float | None = None,
        learning_rate: float | None = None,
        penalty: float | None = None,
        average: bool = False,
        individual_filter: float | None = None,
        select: Mapping[str, Sequence[float]] | None = None,
        keep_trajectory: bool = False,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.relation = relation
        self.classes = classes
        self.sample_size = sample_size
        self.start = start
        self.clipping = clipping
        self.clip = clip
        self.percentile = percentile
        self.projection = projection
        self.rank = rank
        self.clip_first = clip_first
        self.mixing = mixing
        self.steps = steps
        self.sigma = sigma
        self.learning_rate = learning_rate
        self.penalty = penalty
        self.average = average
        self.individual_filter = individual_filter
        self.select = select
        self.keep_trajectory = keep_trajectory
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def _check(self) -> None:
        super()._check()
        validate.choice("solver", self.solver, _SOLVERS)
        if isinstance(self.start, str):
            validate.choice("start", self.start, ("public", "zero"))
        if self.clipping is not None:
            validate.choice("clipping", self.clipping, ("fixed", "adaptive"))
        if self.projection is not None:
            validate.choice("projection", self.projection, ("gradients", "features"))
        if self.rank is not None:
            validate.count("rank", self.rank)
        self._refuse_others_options()
        for chosen in self._candidates() or [{}]:
            _check_numbers({**self.get_params(deep=False), **chosen})

    def _refuse_others_options(self) -> None:
        """Say which option the solver does not have, instead of leaving it out silently."""
        adamix = {"clipping": "adaptive", "projection": "gradients"}
        if self.solver != "adamix":
            for name, value in adamix.items():
                if getattr(self, name) == value:
                    raise ValueError(f"{name}={value!r} needs solver='adamix'.")
            if self.learning_rate is not None:
                raise ValueError("learning_rate needs solver='adamix'; elsewhere it follows.")
        if self.solver == "known-noise" and self.penalty is not None:
            raise ValueError("penalty needs solver='adamix' or 'theory'.")

    def _candidates(self) -> list[dict[str, Any]] | None:
        if self.select is None:
            return None
        if not self.select or not isinstance(self.select, Mapping):
            raise ValueError("select must map parameters to values, as {'clip': [0.3, 0.5, 1]}.")
        for name in self.select:
            validate.choice("select", name, _SELECTABLE)
        values = [list(values) for values in self.select.values()]
        if not all(values):
            raise ValueError("select: every parameter needs at least one value.")
        return [
            dict(zip(self.select, chosen, strict=True)) for chosen in itertools.product(*values)
        ]

    def _units(self, rows: Array, codes: NDArray[np.int64], classes: int) -> UnitRows:
        units = super()._units(rows, codes, classes)
        if self.projection != "features" or not len(rows):
            return units
        return units.project(FeatureSpan.of(units.rows(rows), self.rank).basis)

    def _cleaning(self, units: UnitRows, public: PublicSample) -> RowMap:
        if self.projection != "gradients" or self.clip_first or not len(public):
            return units
        fitted, _ = self._parts(public)
        return WithProducts(units, fitted.rows)

    def _n_steps(self, session: Session) -> int:
        if self.solver == "known-noise" and self.steps is None and self.sigma is None:
            return known_noise.STEPS
        return super()._n_steps(session)

    def _train(self, given: Training) -> dict[str, Any]:
        if self.solver == "known-noise":
            return self._by_known_noise(given)
        if self.solver == "theory":
            return self._by_theory(given)
        return self._by_adamix(given)

    def _by_known_noise(self, given: Training) -> dict[str, Any]:
        W = self._start(given.public, given.units)
        clip = given.options["clip"]
        horizon = known_noise.plan_horizon(
            given.sample_size,
            math.sqrt(given.steps) / given.gradients.sigma,
            class_energy(given.public),
            given.public.classes,
            steps=given.steps,
            clip=known_noise.CLIP if clip is None else clip,
            most=self._affordable(given.public, W),
        )
        last = known_noise.known_noise_descent(
            given.gradients,
            given.public,
            W,
            horizon,
            mixing=given.options["mixing"] or 0.0,
            path=given.path,
            progress=given.progress,
        )
        return {"weights": given.path.mean if self.average else last, "plan_": horizon}

    def _affordable(self, public: PublicSample, W: Array) -> float:
        """Noise of a logit that the start can afford, by public rows that it has not seen."""
        if not len(public) or (isinstance(self.start, str) and self.start == "zero"):
            return 1.0
        given = not isinstance(self.start, str)
        margins = known_noise.margins_of(public, W) if given else known_noise.unseen_margins(public)
        return 1.0 if margins is None else known_noise.affordable_noise(margins)

    def _by_adamix(self, given: Training) -> dict[str, Any]:
        fitted, held = self._parts(given.public)
        W = self._start(fitted, given.units)
        last = mixed_descent(
            given.gradients,
            fitted,
            held,
            W,
            given.steps,
            given.sample_size,
            self._recipe(given.options, len(given.public)),
            path=given.path,
            progress=given.progress,
        )
        return {"weights": given.path.mean if self.average else last}

    def _by_theory(self, given: Training) -> dict[str, Any]:
        clip = 1.0 if given.options["clip"] is None else given.options["clip"]
        reference = self._start(given.public, given.units)
        penalty = given.options["penalty"]
        if penalty is None:
            mu = math.sqrt(given.steps) / given.gradients.sigma
            distance = max(1.0, float(np.linalg.norm(reference)))
            penalty = theorem_penalty(reference.size, clip, mu, distance)
        mean = regularised_descent(
            given.gradients,
            given.public,
            reference,
            given.steps,
            clip=clip,
            penalty=penalty,
            mixing=1.0 if given.options["mixing"] is None else given.options["mixing"],
            path=given.path,
            progress=given.progress,
        )
        return {"weights": mean}

    def _recipe(self, options: Mapping[str, Any], n_public: int) -> Recipe:
        """Algorithm 2 with its defaults; without public rows it is Algorithm 1."""
        adaptive = options["clipping"] != "fixed" and options["clip"] is None
        return Recipe(
            rate=_RATE if options["learning_rate"] is None else options["learning_rate"],
            clip=1.0 if options["clip"] is None else options["clip"],
            penalty=_PENALTY if options["penalty"] is None else options["penalty"],
            percentile=options["percentile"] if adaptive and n_public else None,
            mixing=1.0 if options["mixing"] is None else options["mixing"],
            in_span=self.projection == "gradients" and n_public > 0,
            rank=self.rank,
            clip_first=self.clip_first,
        )

    def _parts(self, public: PublicSample) -> tuple[PublicSample, PublicSample]:
        """Rows that the public phase is fitted to, and rows that it does not see."""
        aside = held_out(public.codes)
        # where no row can be spared, all serve both purposes
        return (public if aside.all() else public.part(~aside)), public.part(aside)

    def _start(self, public: PublicSample, units: UnitRows) -> Array:
        if isinstance(self.start, str) and self.start == "zero":
            return np.zeros((units.width, units.classes))
        return self._public_model(public, units)

    def _public_model(self, public: PublicSample, units: UnitRows) -> Array:
        if not isinstance(self.start, str):
            return self._given_start(units)
        if self.solver == "theory":
            seed = self.random_state if isinstance(self.random_state, int) else 0
            return one_pass(public, curvature=_CURVATURE, clip=1.0, seed=seed)
        if self.solver == "adamix":
            penalty = _PENALTY if self.penalty is None else self.penalty
            return few_shot(public, steps=_PUBLIC_STEPS, rate=_RATE, penalty=penalty)
        return penalised(public)


def _check_numbers(options: Mapping[str, Any]) -> None:
    for name in ("clip", "learning_rate"):
        if options[name] is not None:
            validate.positive(name, options[name])
    for name in ("mixing", "penalty"):
        if options[name] is not None:
            validate.non_negative(name, options[name])
    if options["solver"] == "theory" and options["penalty"] is not None:
        validate.positive("penalty", options["penalty"])
    percentile = options["percentile"]
    if isinstance(percentile, bool) or not 0 < percentile <= 100:
        raise ValueError(f"percentile must lie in (0, 100]; got {percentile!r}.")
    if options["clipping"] == "adaptive" and options["clip"] is not None:
        raise ValueError("clip: with clipping='adaptive' it comes from public gradients.")
