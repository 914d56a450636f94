"""What the two classifiers of paper 004 share: public rows, private runs, choice, predictions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator
from dpadapt.learning.checks import public_part
from dpadapt.learning.constraints import (
    Count,
    Flag,
    Instance,
    Null,
    OneOf,
    ParameterTable,
    Positive,
    check_value,
)
from dpadapt.learning.linear import LinearClassifier
from dpadapt.learning.progress import row_progress
from dpadapt.learning.story import RADII, Fact, Story, class_facts, number
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Guarantee, Private, RowSum, Session
from dpadapt.privacy.accounting.events import Relation
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import MeanVector

from .features import PublicSample, UnitRows
from .noisy_gradients import gradient_mechanisms, open_gradients
from .queries import correct_rows
from .solver import Iterates, Origin, Run, Solver, Steps

_SCORE_SHARE = 0.3  # mu of the score of a candidate over mu of all its steps
_MOST_NUMBERS = 1 << 28  # in a kept trajectory: two gigabytes
_STARTS = {
    "public": "the model of the public rows (zero if there are none)",
    "zero": "zero",
    "given": "weights that were given",
}


@dataclass(frozen=True, eq=False)
class _Problem:
    """Public rows in unit features, and what of a fit is not in them."""

    public: PublicSample
    units: UnitRows
    names: NDArray[Any]
    progress: Callable[[int, int], None] | None = None
    seed: int | None = None


class UnitClassifier(PrivateEstimator, LinearClassifier):
    """A linear classifier of directions, trained by noisy gradient descent."""

    relation: Relation
    classes: Sequence[Any] | None
    start: Any
    steps: int | Strategy | None
    sample_size: float | None
    keep_trajectory: bool

    _constraints: ClassVar[ParameterTable] = {
        "relation": [OneOf(*get_args(Relation))],
        "steps": [Count(), Instance(Steps, "dpadapt.papers.mixing.noisy_gd.StepsAtNoise"), Null()],
        "sample_size": [Positive(), Null()],
        "keep_trajectory": [Flag()],
    }

    def fit(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        private: Private | None = None,
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
        return self._fit(X, y, private)

    @property
    def _solver(self) -> Solver:
        """The algorithm."""
        solver: Solver = self._strategy("solver")
        return solver

    def _count(self, session: Session) -> None:
        """Count rows with a label, unless somebody says by how many gradients are divided."""
        if self.sample_size is None:
            super()._count(session)
        else:
            session.leave_out_unlabelled()

    def _choices(self) -> Mapping[str, Sequence[Any]] | None:
        """Options of the solver to choose from; None if nothing is to be chosen."""
        return None

    def _check(self) -> None:
        if isinstance(self.start, str):
            check_value("start", self.start, [OneOf("public", "zero")])
        counts = self._strategy("solver").counts_rows or self.relation == "add-remove"
        if self.sample_size is not None and not counts:
            raise ValueError("sample_size: this solver does not count rows; leave it None.")
        self._candidates()

    def _read(self, X: Any, y: Any, private: Any) -> _Problem:
        rows, labels, classes = public_part(self, X, y, private)
        codes = np.searchsorted(classes, labels).astype(np.int64)
        width = rows.shape[1]
        if len(rows):
            units = UnitRows.of(rows, codes, len(classes))
        else:
            units = UnitRows(np.zeros(width), np.ones(width), classes=len(classes))
        units = self._solver.units(units, rows)
        if not isinstance(self.start, str):
            self._given_start(units)  # is it one? before anything is spent
        return _Problem(PublicSample(units.rows(rows), codes, len(classes)), units, classes)

    def _adapt(
        self, problem: _Problem, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        with (
            row_progress("private steps", self.verbose) as progress,
            sample.open(**options, label=type(self).__name__) as session,
        ):
            self._count(session)
            given = replace(problem, progress=progress, seed=options["random_state"])
            found = self._solve(given, session)
        return found, session.guarantee

    def _solve(self, problem: _Problem, session: Session | None) -> dict[str, Any]:
        units = problem.units
        if session is None:
            found: dict[str, Any] = {"weights": self._public_model(problem.public, units)}
        else:
            found = self._private(problem, session)
        slopes, constants = units.linear(found.pop("weights"))
        if units.classes == 2:  # one row of coefficients, as usual
            slopes, constants = slopes[:, 1:] - slopes[:, :1], constants[1:] - constants[:1]
        fitted = {"coef_": np.ascontiguousarray(slopes.T), "intercept_": constants}
        return {"features_": units, **fitted, **found}

    def _private(self, problem: _Problem, session: Session) -> dict[str, Any]:
        """Train once, or as often as chance decides if there is something to select."""
        public, units, solver = problem.public, problem.units, self._solver
        # float32 sums are only exact enough where rows keep their places
        kind = np.float32 if session.relation == "replace-one" else np.float64
        cleaning = solver.cleaning(units.cast(kind), public)
        shape = (units.width, units.classes)
        schedule = self._schedule()
        steps = schedule.number(session)
        if self.keep_trajectory and steps * math.prod(shape) > _MOST_NUMBERS:
            raise ValueError("keep_trajectory: the weights of all steps need more than 2 GB.")
        facts = {"sample_size": self.sample_size, "filtered": schedule.individual_filter}
        mechanisms = gradient_mechanisms(session, cleaning, shape, steps, **facts)
        candidates = self._candidates()
        # a bar that starts again with every run would tell how many there are, which is a secret
        shown = problem.progress if candidates is None else None
        origin, start = self._start(problem)

        def train(grants: Any, solver: Solver) -> dict[str, Any]:
            gradients, size = open_gradients(session, cleaning, grants, self.sample_size)
            iterates = Iterates(steps, self.keep_trajectory, shown)
            weights, found = solver.train(Run(gradients, public, start, origin, size, iterates))
            found |= {"weights": weights, "n_steps_": steps, "sigma_": gradients.sigma}
            found |= {"sample_size_": size, "clips_": np.array(iterates.clips)}
            return {**found, "trajectory_": iterates.weights} if self.keep_trajectory else found

        if candidates is None:
            return train(session.plan(**mechanisms), solver)
        query = correct_rows(np.zeros(shape), cleaning)
        return _best(session, query, mechanisms, train, candidates, problem.seed)

    def _schedule(self) -> Any:
        """How many steps, or how much noise in each; the solver's own if nobody says."""
        if self.steps is None:
            return self._solver.usual_steps
        return self.steps if isinstance(self.steps, Strategy) else Steps(self.steps)

    def _candidates(self) -> list[tuple[dict[str, Any], Solver]] | None:
        """What to select from, checked; None if nothing was asked for."""
        select = self._choices()
        if select is None:
            return None
        if not select or not isinstance(select, Mapping):
            raise ValueError("select must map options to values, as {'clip': [0.3, 0.5, 1]}.")
        if any(name.partition("__")[0] == "projection" for name in select):
            raise ValueError("select: rows are projected before any run; tell the solver how.")
        if not all(np.ndim(values) == 1 and len(values) for values in select.values()):
            raise ValueError("select: every option needs at least one value, in a list.")
        found = [
            dict(zip(select, chosen, strict=True)) for chosen in itertools.product(*select.values())
        ]
        try:
            return [(chosen, self._solver.with_params(**chosen)) for chosen in found]
        except (TypeError, ValueError) as error:
            raise type(error)(f"select: {error}") from None

    def _start(self, problem: _Problem) -> tuple[Origin, FloatArray]:
        """Where training starts, and the weights there."""
        units = problem.units
        if not isinstance(self.start, str):
            return "given", self._given_start(units)
        if self.start == "zero":
            return "zero", np.zeros((units.width, units.classes))
        return "public", self._public_model(self._solver.fitted_part(problem.public), units)

    def _public_model(self, public: PublicSample, units: UnitRows) -> FloatArray:
        """Weights from public rows alone, unless they were given."""
        if not isinstance(self.start, str):
            return self._given_start(units)
        seed = self.random_state if isinstance(self.random_state, int) else 0
        return self._solver.public_model(public, seed)

    def _given_start(self, units: UnitRows) -> FloatArray:
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

    def _scores(self, rows: FloatArray) -> FloatArray:
        return self.features_.directions(rows) @ self.coef_.T + self.intercept_

    def _story(self) -> Story:
        return direction_story(self, self._solver.words, self._schedule().individual_filter)


def _best(
    session: Session,
    query: MeanVector,
    mechanisms: dict[str, Gaussian],
    train: Callable[[Any, Solver], dict[str, Any]],
    candidates: list[tuple[dict[str, Any], Solver]],
    seed: int | None,
) -> dict[str, Any]:
    """Best of a random number of runs by a noisy count of correct rows, all of it charged."""
    bound = session.sensitivity(RowSum(query))
    score = Gaussian(query.label, bound, weight=_SCORE_SHARE, divided=False)
    rng = np.random.default_rng(seed)

    def run(grants: Any) -> tuple[float, dict[str, Any]]:
        chosen, solver = candidates[int(rng.integers(len(candidates)))]
        found = train(grants, solver)
        hidden = session.hide(RowSum(correct_rows(found["weights"], query.cleaning)), keep=True)
        correct = float(session.release(grants.score, hidden)[0])
        return -correct, {**found, "selected_": chosen}

    from dpadapt.privacy.mechanisms import best_of_random_runs

    asked = {**mechanisms, "score": score}
    mean_runs = max(1.5, float(len(candidates)))
    best: dict[str, Any] = best_of_random_runs(session, asked, run, mean_runs=mean_runs)
    return best


def direction_story(estimator: Any, solver: str, individual_filter: float | None) -> Story:
    """Tell how a fitted classifier came about, by its solver in words.

    Examples
    --------
    >>> from dpadapt.mixing import NoisyGDClassifier
    >>> model = NoisyGDClassifier(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0, 1])
    >>> direction_story(model, "noisy gradient descent", None).summary
    'A linear classifier of directions, fitted to the public rows alone.'
    """
    start = estimator.start if isinstance(estimator.start, str) else "given"
    origin = "fitted to the public rows alone" if start != "given" else "as it was given"
    told = Story(
        f"A linear classifier of directions, {origin}.",
        class_facts(estimator),
        assumption="",
        radius=RADII["direction"],
        features="direction",
    )
    if not estimator.guarantee_.events:
        return told
    use = "where training starts, and the centre from which rows are seen as directions"
    if not np.any(estimator.features_.center):
        use = "nothing that the model tells of: directions are seen from zero, as without any"
    facts = [
        Fact("start", start, _STARTS[start]),
        Fact("steps", number(estimator.n_steps_), "noisy sums of clipped gradients"),
        Fact(
            "noise over clip",
            number(estimator.sigma_),
            "of every sum, to which one row adds 1 at most",
        ),
        Fact("clip", _range(estimator.clips_), "bound on the length of one row's gradient; public"),
        _sample_size(estimator),
    ]
    if hasattr(estimator, "plan_"):
        noise = "standard deviation that noise gives a score (a logit); kept at 1 or below"
        facts.append(Fact("noise of a score", number(estimator.plan_.kappa), noise))
    made = {}
    if individual_filter is not None:
        made = {"clipped gradients": int(estimator.n_steps_)}
        meaning = "each row takes part until its own budget is spent; who has stopped stays secret"
        facts.append(Fact("individual filter", number(individual_filter), meaning))
    return replace(
        told,
        summary=f"A linear classifier of directions (rows of length 1), by {solver}.",
        facts=(*class_facts(estimator), *facts, *_chosen(estimator)),
        assumption=Story.assumption,
        public_use=use,
        made=made,
    )


def _sample_size(estimator: Any) -> Fact:
    """Number of rows that the steps count on, and how it is known."""
    name, size = "rows counted on", f"{estimator.sample_size_:,.0f}"
    if estimator.sample_size is not None:
        return Fact(name, size, "a public guess by whoever fitted the model")
    if estimator.guarantee_.relation == "replace-one":
        return Fact(name, size, "the number of private rows, which counts as public")
    return Fact(name, size, "a noisy count, released and charged for; the true one is secret")


def _chosen(estimator: Any) -> tuple[Fact, ...]:
    """Tell options that were chosen with privacy."""
    if not hasattr(estimator, "selected_"):
        return ()
    told = ", ".join(
        f"{name} {number(value) if isinstance(value, Real) else value}"
        for name, value in estimator.selected_.items()
    )
    return (Fact("chosen", told, "from values given beforehand, by private rows, and charged for"),)


def _range(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return number(low) if low == high else f"{number(low)} to {number(high)}"
