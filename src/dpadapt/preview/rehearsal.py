"""Fits on public rows that play the private ones: how they are made, and counted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dpadapt.auto import AutoClassifier, AutoRegressor
from dpadapt.auto.experts import fit_expert
from dpadapt.auto.stacking import Reader, group_folds
from dpadapt.privacy import Private
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import GaussianEvent

_TEST = 0.3  # of the rows of a part
_MOST_MU = 25.0  # beyond it noise no longer matters
_YARDSTICKS = ("linear", "trees")  # models without privacy


@dataclass(frozen=True)
class Rehearsal:
    """Errors on test rows of one sub-population.

    Parameters
    ----------
    part : str
    rows : int
        That played the private table.
    epsilon : float
        Of the real fit that was rehearsed.
    error, public, best : float
        Of the private model, of public data alone, and of the best model without privacy.

    Examples
    --------
    >>> Rehearsal("first rows", 100, 1.0, error=0.3, public=0.4, best=0.2).ratio
    0.7499999999999999
    """

    part: str
    rows: int
    epsilon: float
    error: float
    public: float
    best: float

    @property
    def ratio(self) -> float:
        """Error over that of public data alone."""
        return self.error / self.public if self.public > 0 else 1.0


def same_noise_epsilon(epsilon: float, delta: float, rows: int, played: int) -> float:
    """Epsilon at which ``played`` rows get the noise that ``rows`` rows get at ``epsilon``.

    Examples
    --------
    >>> same_noise_epsilon(1.0, 1e-6, 1000, 1000)
    1.0
    >>> round(same_noise_epsilon(0.25, 1e-6, 4000, 1000), 2)
    1.1
    """
    if played == rows:
        return epsilon
    mu = min(gaussian_mu(epsilon, delta) * rows / played, _MOST_MU)
    return compose_epsilon((GaussianEvent("rehearsal", 1.0, 1 / mu),), delta)


def with_facts(kind: type, facts: Any) -> type:
    """Return the estimator with its public side computed already.

    Examples
    --------
    >>> with_facts(AutoRegressor, None).__name__
    'AutoRegressor'
    """
    return type(kind.__name__, (kind,), {"_facts": lambda self, problem: facts})


class Roles(NamedTuple):
    """Rows of a part in one round: those that play the private table, and those that test."""

    play: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stage:
    """A part with its public side: the experts are fitted once for all epsilons.

    Parameters
    ----------
    X, y : DataFrame or ndarray, and ndarray
        All public rows.
    reader : Reader
        How rows become numbers.
    part : Part
    rows : int
        Of the real private table.
    delta : float
    classes : ndarray or None
        None for numbers.
    seed : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> first = SubPopulation("first rows", np.arange(60))
    >>> Stage(X, X[:, 0], Reader(), first, 1000, 1e-6, None, 0).played
    42
    """

    X: Any
    y: NDArray[Any]
    reader: Reader
    part: SubPopulation
    rows: int
    delta: float
    classes: NDArray[Any] | None
    seed: int

    @cached_property
    def _public(self) -> NDArray[np.int64]:
        """Rows that stay public."""
        return np.setdiff1d(np.arange(len(self.y)), self.part.rows)

    def _roles(self, turn: int) -> Roles:
        """Rows that play the private table in a round, and rows that test."""
        order = np.random.default_rng(self.seed).permutation(self.part.rows)
        cut = max(1, round(_TEST * len(order)))
        order = np.roll(order, -turn * cut)
        return Roles(order[cut:][: self.rows], order[:cut])

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """All public rows as numbers."""
        return self.reader.rows(self.X)

    @property
    def played(self) -> int:
        """Number of rows that play the private table."""
        return len(self._roles(0).play)

    def rehearse(
        self, epsilons: Sequence[float], rounds: int, tally: Tally | None = None
    ) -> Iterator[Rehearsal]:
        """Fit at each epsilon with the noise of the real fit, in rounds with other test rows."""
        given: dict[str, Any] = {} if self.classes is None else {"classes": self.classes}
        kind = AutoRegressor if self.classes is None else AutoClassifier
        public, labels = _some(self.X, self._public), self.y[self._public]
        facts = kind(epsilon=1.0, delta=self.delta, **given).public_facts(public, labels)
        known, start = with_facts(kind, facts), facts.model.predict
        public_error = self._error(start(_some(self.X, self.part.rows)), self.part.rows)
        for turn in range(rounds):
            roles = self._roles(turn)
            best = public_error - self._best_gain(roles, start)
            private = Private(_some(self.X, roles.play), self.y[roles.play])
            for epsilon in epsilons:
                raised = same_noise_epsilon(epsilon, self.delta, self.rows, len(roles.play))
                budget = {"epsilon": raised, "delta": self.delta, **given}
                model = known(**budget, noise="seeded", random_state=self.seed + turn)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of a large epsilon, which nobody spends
                    model.fit(public, labels, private=private)
                error = public_error - self._gain(roles, start, model.predict)
                if tally is not None:
                    tally.add(self.y[roles.test], model.predict(_some(self.X, roles.test)))
                yield Rehearsal(self.part.name, len(roles.play), epsilon, error, public_error, best)

    def _gain(self, roles: Roles, start: Any, predict: Any, *, fair: bool = True) -> float:
        """How much the error falls, as it would with the real number of rows.

        Where it is not ``fair``, because a model knows its own rows by heart, the gain on others.
        """
        other, own = (
            self._error(start(rows), places) - self._error(predict(rows), places)
            for places in (roles.test, roles.play)
            for rows in (_some(self.X, places),)
        )
        fade = len(roles.play) / self.rows if fair else 1.0
        return (own + other) / 2 - fade * (own - other) / 2

    def _error(self, answers: Any, rows: NDArray[np.int64]) -> float:
        """Mean squared error, or error rate."""
        if self.classes is None:
            return float(np.mean((answers - self.y[rows]) ** 2))
        return float(np.mean(answers != self.y[rows]))

    def _best_gain(self, roles: Roles, start: Any) -> float:
        """Most that linear models and trees gain, on the played rows alone and with the rest."""
        gains = []
        for sample in (roles.play, np.concatenate([self._public, roles.play])):
            for name in _YARDSTICKS:
                predict = self._plain(name, sample)
                gains.append(self._gain(roles, start, predict, fair=name == "linear"))
        return max(gains)

    def _plain(self, name: str, sample: NDArray[np.int64]) -> Any:
        """Model of one kind without privacy, as a function of rows."""
        k = 0 if self.classes is None else len(self.classes)
        y = self.y if self.classes is None else np.searchsorted(self.classes, self.y)
        expert = fit_expert(name, self.numbers[sample], y[sample], k)

        def predict(X: Any) -> NDArray[Any]:
            scores = expert(self.reader.rows(X))
            return scores[:, 0] if self.classes is None else self.classes[scores.argmax(axis=1)]

        return predict


def _some(X: Any, rows: NDArray[np.int64]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


_CLUSTERS = _BLOCKS = 3
_LEAST = 40  # rows of a part, and of what is left
_NAMED = 3  # values that the name of a part lists
_CUT = 5.0  # standard deviations, so that one far row makes no cluster of its own


@dataclass(frozen=True, eq=False)
class SubPopulation:
    """Rows that play the private people; the others stay public.

    Parameters
    ----------
    name : str
    rows : ndarray of int

    Examples
    --------
    >>> SubPopulation("first rows", np.arange(3)).name
    'first rows'
    """

    name: str
    rows: NDArray[np.int64]


def sub_populations(X: NDArray[np.float64], groups: Any = None) -> tuple[SubPopulation, ...]:
    """Sub-populations of public rows: the user's groups, or clusters and both ends of the table.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Rows as numbers.
    groups : array-like of shape (m,), optional
        Put together to five parts at most, in the order in which they appear.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> [part.name for part in sub_populations(X)]
    ['cluster 1', 'cluster 2', 'cluster 3', 'first rows', 'last rows']
    >>> [part.name for part in sub_populations(X, np.repeat(["a", "b"], 250))]
    ['a', 'b']
    """
    m = len(X)
    if groups is not None:
        folds = group_folds(groups, m)
        found = [
            SubPopulation(_name(np.asarray(groups)[folds == each]), np.flatnonzero(folds == each))
            for each in np.unique(folds)
        ]
    else:
        found = [*_clusters(X), *_ends(m)]
    large = tuple(part for part in found if _LEAST <= len(part.rows) <= m - _LEAST)
    if not large:
        raise ValueError(
            f"X: no sub-population of the {m} public rows has {_LEAST} rows and leaves {_LEAST}, "
            "so that nothing can be rehearsed. Bring more public rows, or other groups."
        )
    return large


def _name(values: NDArray[Any]) -> str:
    """What a part of groups is called: by the values in it, in the order in which they appear."""
    names = [str(each) for each in dict.fromkeys(values.tolist())]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _clusters(X: NDArray[np.float64]) -> list[SubPopulation]:
    """Three clusters of standardised columns."""
    scale = X.std(axis=0)
    rows = np.clip((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), -_CUT, _CUT)
    if len(np.unique(rows, axis=0)) < _CLUSTERS:
        return []
    of = KMeans(_CLUSTERS, n_init=2, random_state=0).fit_predict(rows)
    return [
        SubPopulation(f"cluster {each + 1}", np.flatnonzero(of == each))
        for each in range(_CLUSTERS)
    ]


def _ends(m: int) -> list[SubPopulation]:
    size = m // _BLOCKS
    return [
        SubPopulation("first rows", np.arange(size)),
        SubPopulation("last rows", np.arange(m - size, m)),
    ]


_RARELY = 1 / 3  # of its rows: a class that is predicted less often is hardly ever predicted


@dataclass(eq=False)
class Tally:
    """Counts of test rows over all rehearsals.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    rows : int
        Test rows, once for each rehearsal.

    Examples
    --------
    >>> tally = Tally(np.array(["no", "yes"]))
    >>> tally.add(np.array(["no"] * 9 + ["yes"]), np.array(["no"] * 10))
    >>> print(next(tally.sentences())[:72])
    Class 'yes' is never predicted in the rehearsals: 10.0% of their test ro
    """

    classes: Any
    rows: int = 0
    counts: Any = field(init=False)
    predicted: Any = field(init=False)
    found: Any = field(init=False)

    def __post_init__(self) -> None:
        self.counts, self.predicted, self.found = np.zeros((3, len(self.classes)), dtype=np.int64)

    def add(self, labels: Any, answers: Any) -> None:
        """Count one rehearsal: true classes of test rows, and what was predicted for them."""
        for each in (labels, answers):
            place = self.counts if each is labels else self.predicted
            place += self._count(each)
        self.found += self._count(np.asarray(labels)[np.asarray(labels) == np.asarray(answers)])
        self.rows += len(labels)

    def _count(self, labels: Any) -> Any:
        return np.bincount(np.searchsorted(self.classes, labels), minlength=len(self.classes))

    def sentences(self) -> Iterator[str]:
        """What is told of classes that are hardly ever predicted."""
        for place in np.flatnonzero((self.counts > 0) & (self.predicted < _RARELY * self.counts)):
            ever = "never" if self.predicted[place] == 0 else "hardly ever"
            yield (
                f"Class {str(self.classes[place])!r} is {ever} predicted in the rehearsals: "
                f"{self.counts[place] / self.rows:.1%} of their test rows are of it, "
                f"{self.predicted[place] / self.rows:.1%} are predicted to be, and "
                f"{self.found[place] / self.counts[place]:.0%} of its rows are found. The error "
                "rate hides that. If missing one is worse than a false alarm, predict with a "
                "threshold (--threshold), or fit with --class-weight balanced."
            )
