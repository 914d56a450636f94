"""What the two classifiers of paper 004 share: rows, sessions, choice, predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpadapt._checks import aligned_private, public_part, session_options
from dpadapt._linear import LinearClassifier
from dpadapt._progress import row_progress
from dpadapt.privacy import Grant, Guarantee, Request, RowMap, Session, best_of_random_runs
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.events import Relation

from .features import PublicSample, UnitRows
from .noisy_gd import NoisyGradients, Path, gradient_requests, open_gradients
from .softmax import Array
from .steps import steps_for_noise

_FITTED = ("n_steps_", "sigma_", "sample_size_", "plan_", "clips_", "trajectory_", "selected_")
_SCORE_SHARE = 0.3  # mu of the score of a candidate over mu of all its steps
_MOST_NUMBERS = 1 << 28  # in a kept trajectory: two gigabytes


@dataclass(frozen=True)
class Training:
    """What one private run has at hand.

    Parameters
    ----------
    gradients : NoisyGradients
    units : UnitRows
    public : PublicSample
    sample_size : float
    steps : int
    path : Path
    options : mapping
        Parameters of the estimator, those of a candidate in the place of its own.
    progress : callable or None
    """

    gradients: NoisyGradients
    units: UnitRows
    public: PublicSample
    sample_size: float
    steps: int
    path: Path
    options: Mapping[str, Any]
    progress: Callable[[int, int], None] | None


@dataclass(frozen=True)
class Correct:
    """Number of private rows that weights classify correctly; a row changes it by 1 at most."""

    weights: Array
    cleaning: RowMap
    label: str = "correct rows"
    magnitude: float = 1.0

    def shape(self, n_columns: int) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def block(self, X: Array, y: Array | None) -> Array:
        """Rows of one block that are classified correctly."""
        if y is None:
            return np.zeros(1)
        scores = X[:, : len(self.weights)] @ self.weights
        return np.array([float(np.count_nonzero(scores.argmax(axis=1) == y))])

    def sensitivity(self, n_rows: int) -> float:
        """Of the mean, under replace-one."""
        return 1 / n_rows


class UnitClassifier(LinearClassifier):
    """A linear classifier of directions, trained by noisy gradient descent."""

    epsilon: float
    delta: float
    relation: Relation
    classes: Sequence[Any] | None
    start: Any
    sample_size: float | None
    steps: int | None
    sigma: float | None
    individual_filter: float | None
    keep_trajectory: bool
    random_state: Any
    verbose: int

    def fit(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, *, private: Any = None
    ) -> Self:
        """Fit to public labelled rows and private labelled ones.

        Parameters
        ----------
        X : array-like of shape (m, d), optional
            Public rows. Without any, training starts from zero and ``classes`` must be given.
        y : array-like of shape (m,), optional
            Public labels.
        private : Private, optional
            Private rows with the same columns, and their labels.

        Returns
        -------
        estimator
            Itself, fitted.
        """
        options = session_options(self)
        self._check()
        rows, labels, classes = public_part(self, X, y, private)
        codes = np.searchsorted(classes, labels).astype(np.int64)
        empty = self.relation == "add-remove"
        sample = aligned_private(self, private, labelled=True, empty=empty)
        units = self._units(rows, codes, len(classes))
        if not isinstance(self.start, str):
            self._given_start(units)  # is it one? before anything is spent
        public = PublicSample(units.rows(rows), codes, len(classes))
        if sample is None:
            model = self._public_model(public, units)
            found: dict[str, Any] = {"weights": model, "guarantee_": Guarantee()}
        else:
            with (
                row_progress("private steps", self.verbose) as progress,
                sample.encode(classes).open(
                    **options, relation=self.relation, label=type(self).__name__
                ) as session,
            ):
                found = self._private(session, public, units, progress)
            found["guarantee_"] = session.guarantee

        # only now: a fit that was refused must not put its guarantee beside an earlier model
        for name in _FITTED:
            self.__dict__.pop(name, None)
        slopes, constants = units.linear(found.pop("weights"))
        if len(classes) == 2:  # one row of coefficients, as usual
            slopes, constants = slopes[:, 1:] - slopes[:, :1], constants[1:] - constants[:1]
        self.classes_, self.features_ = classes, units
        self.coef_, self.intercept_ = np.ascontiguousarray(slopes.T), constants
        for name, value in found.items():
            setattr(self, name, value)
        return self

    def _check(self) -> None:
        """Check what no other function checks, before anything is spent."""
        validate.choice("relation", self.relation, get_args(Relation))
        if self.steps is not None and self.sigma is not None:
            raise ValueError("steps and sigma: give one of the two; the other follows from it.")
        if self.steps is not None:
            validate.count("steps", self.steps)
        if self.sigma is not None:
            validate.positive("sigma", self.sigma)
        if self.sample_size is not None:
            validate.positive("sample_size", self.sample_size)
        if self.individual_filter is not None and not (
            validate.positive("individual_filter", self.individual_filter) >= 1
        ):
            raise ValueError(
                f"individual_filter must be at least 1; got {self.individual_filter!r}."
            )

    def _units(self, rows: Array, codes: NDArray[np.int64], classes: int) -> UnitRows:
        """Public map of the rows."""
        if len(rows):
            return UnitRows.of(rows, codes, classes)
        width = rows.shape[1]
        return UnitRows(np.zeros(width), np.ones(width), classes=classes)

    def _cleaning(self, units: UnitRows, public: PublicSample) -> RowMap:
        """Public map of the private rows."""
        return units

    def _private(
        self,
        session: Session,
        public: PublicSample,
        units: UnitRows,
        progress: Callable[[int, int], None] | None,
    ) -> dict[str, Any]:
        """Train once, or as often as chance decides if there is something to select."""
        # float32 sums are only exact enough where rows keep their places
        kind = np.float32 if session.relation == "replace-one" else np.float64
        cleaning = self._cleaning(units.cast(kind), public)
        shape = (units.width, units.classes)
        steps = self._n_steps(session)
        if self.keep_trajectory and steps * math.prod(shape) > _MOST_NUMBERS:
            raise ValueError("keep_trajectory: the weights of all steps need more than 2 GB.")
        requests = gradient_requests(
            session,
            cleaning,
            shape,
            steps,
            sample_size=self.sample_size,
            filtered=self.individual_filter,
        )
        candidates = self._candidates()
        # a bar that starts again with every run would tell how many there are, which is a secret
        shown = progress if candidates is None else None

        def train(grants: tuple[Grant, ...], options: Mapping[str, Any]) -> dict[str, Any]:
            gradients, size = open_gradients(session, cleaning, grants, self.sample_size)
            path = Path(self.keep_trajectory)
            given = Training(gradients, units, public, size, steps, path, options, shown)
            found = {**self._train(given), "n_steps_": steps, "sigma_": gradients.sigma}
            found |= {"sample_size_": size, "clips_": np.array(path.clips)}
            return {**found, "trajectory_": path.weights} if self.keep_trajectory else found

        if candidates is None:
            return train(session.plan(*requests), self.get_params(deep=False))
        return self._select(
            session, Correct(np.zeros(shape), cleaning), requests, train, candidates
        )

    def _select(
        self,
        session: Session,
        query: Correct,
        requests: tuple[Request, ...],
        train: Callable[[tuple[Grant, ...], Mapping[str, Any]], dict[str, Any]],
        candidates: list[dict[str, Any]],
    ) -> dict[str, Any]:
        """Best of a random number of runs by a noisy count of correct rows, all of it charged."""
        bound = session.sum_sensitivity(query)
        score = Request("gaussian", query.label, bound, weight=_SCORE_SHARE)
        seed = self.random_state if isinstance(self.random_state, int) else None
        rng = np.random.default_rng(seed)

        def run(grants: tuple[Grant, ...]) -> tuple[float, dict[str, Any]]:
            chosen = candidates[int(rng.integers(len(candidates)))]
            found = train(grants[:-1], {**self.get_params(deep=False), **chosen})
            hidden = session.hide_sum(replace(query, weights=found["weights"]), keep=True)
            correct = float(session.gaussian(grants[-1], hidden)[0])
            return -correct, {**found, "selected_": chosen}

        best: dict[str, Any] = best_of_random_runs(
            session, (*requests, score), run, mean_runs=max(1.5, float(len(candidates)))
        )
        return best

    def _candidates(self) -> list[dict[str, Any]] | None:
        """What to select from; None if nothing was asked for."""
        return None

    def _n_steps(self, session: Session) -> int:
        """T, from the caller, or from sigma and the budget."""
        if self.steps is not None:
            return int(self.steps)
        facts = (session.epsilon, session.delta, self.relation)
        return steps_for_noise(self._default_sigma() if self.sigma is None else self.sigma, *facts)

    def _default_sigma(self) -> float:
        return 20.0  # the paper's

    def _given_start(self, units: UnitRows) -> Array:
        """Weights that the caller gave: (c, d), or (c, d + 1) with constants; one row if c = 2."""
        given = np.asarray(self.start, dtype=np.float64)
        width, classes = len(units.center), units.classes
        rows = (classes, 1) if classes == 2 else (classes,)
        if given.ndim != 2 or len(given) not in rows or given.shape[1] not in (width, width + 1):
            raise ValueError(
                f"start must have the shape ({classes}, {width}), or ({classes}, {width + 1}) with "
                f"constants last, as from a text encoder; got {given.shape}."
            )
        if not np.isfinite(given).all():
            raise ValueError("start must be finite.")
        if len(given) < classes:
            given = np.vstack([-given / 2, given / 2])
        constants = given[:, width] if given.shape[1] > width else np.zeros(classes)
        return units.weights(given[:, :width].T, constants)

    @abstractmethod
    def _train(self, given: Training) -> dict[str, Any]:
        """Run the algorithm; returns ``weights`` and further attributes."""

    @abstractmethod
    def _public_model(self, public: PublicSample, units: UnitRows) -> Array:
        """Weights from public rows alone."""

    def _scores(self, rows: Array) -> Array:
        return self.features_.directions(rows) @ self.coef_.T + self.intercept_
