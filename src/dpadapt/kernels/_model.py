"""What kernel regressor and kernel classifier share: one fit, one way to answer, one story."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator, Problem
from dpadapt.learning.constraints import Instance, Named, Null, OneOf, ParameterTable, Positive
from dpadapt.learning.linear import class_labels
from dpadapt.learning.story import Fact, Story, class_facts, number, short
from dpadapt.privacy import Guarantee, Private, Schema, Session

from ._learner import KernelProblem, KernelTask
from ._setup import PenaltyNoise, fit_public, make_setup
from .features import Fourier, Nystroem
from .kernel import KERNELS, FunctionKernel, InnerProduct
from .release import GaussianProcess

_WEAK_PENALTY = 1e-2  # over R^2, at which a model is hardly shrunk
_NOT_KERNELS = (
    "A function of two tables of rows is given with its bound: FunctionKernel(function, "
    "bound=1.0). 'sigmoid' and 'additive_chi2' are not positive definite, so they have no features "
    "to protect. 'precomputed' is refused: a row of such a table has values with all other rows, "
    "so it is not one person's, and nothing bounds it."
)


class KernelModel(PrivateEstimator):
    """A kernel model of private rows, released with noise in the kernel's own space."""

    kernel: Any
    radius: float | None
    penalty: float | None
    features: Any
    release: Any

    _constraints: ClassVar[ParameterTable] = {
        "kernel": [Named(KERNELS, advice=_NOT_KERNELS), Instance(FunctionKernel, InnerProduct)],
        "radius": [Positive(), Null()],
        "penalty": [Positive(), Null()],
        "features": [
            OneOf("auto", "none", "linear", "polynomial"),
            Named({"fourier": Fourier, "nystroem": Nystroem}),
        ],
        "release": [
            Named(
                {
                    "gaussian-process": GaussianProcess,
                    "tddl": "dpadapt.papers.kernels.tddl.TDDL",
                    "tdil": "dpadapt.papers.kernels.tdil.TDIL",
                }
            )
        ],
    }

    @property
    def _numeric(self) -> bool:
        return bool(self._strategy("kernel").numeric)

    # public rows, and how private ones are read

    def _check(self) -> None:
        if not self._numeric and self.radius is not None:
            raise ValueError("radius: a kernel of one's own reads rows as they are; leave it None.")

    def _read(self, X: Any, y: Any, private: Any) -> Problem:
        if self._numeric:
            return super()._read(X, y, private)
        rows, labels = _rows_of_any_kind(X, y)
        self.n_features_in_ = rows.shape[1]
        if not is_classifier(self):
            return Problem(rows, labels.astype(np.float64))
        names = class_labels(labels, getattr(self, "classes", None))
        return Problem(rows, np.searchsorted(names, labels), names)

    def _sample(self, problem: Problem, private: Any) -> Private | None:
        sample = super()._sample(problem, private)
        if sample is None or self._numeric or hasattr(problem.X, "toarray"):
            return sample
        return sample.read(Schema.of(problem.X))  # a kernel of one's own reads what public rows are

    # the fit

    @abstractmethod
    def _task(self, problem: Problem, start: bool) -> KernelTask:
        """Loss and labels, from public labels; ``start``: from the public model."""

    def _learner(
        self, problem: Problem, n_rows: int | None, features: Any = None, *, start: bool = False
    ) -> KernelProblem:
        """Decide on kernel, features and penalty; ``n_rows`` is None for public rows alone.

        With ``start`` the learner knows the public model.
        """
        task, public = self._task(problem, start), problem.X.shape[0]
        setup = make_setup(
            self._strategy("kernel"),
            features or self._strategy("features"),
            self.radius,
            problem.X,
            public if n_rows is None else n_rows,
        )
        learner = KernelProblem(setup, task, 1.0)
        if start:
            targets = learner.public_targets(np.asarray(problem.labels, dtype=np.float64))
            own = None if n_rows is not None else self.penalty
            fitted = fit_public(setup, task.public_loss, problem.X, targets, own)
            learner = replace(learner, public=fitted, penalty=fitted.penalty)
        return learner if n_rows is None else self._sized(learner, n_rows)

    def _sized(self, learner: KernelProblem, n_rows: int) -> KernelProblem:
        """Penalty, and unit of the correction, for so many private rows."""
        task, setup = learner.task, learner.setup
        budget = (float(self.epsilon), float(self.delta))
        known = PenaltyNoise(setup, learner.loss, max(1, n_rows), task.columns, *budget)
        weak = _WEAK_PENALTY * setup.radius**2 if self.penalty is None else float(self.penalty)
        reach, noise = learner.reach_for(known.at(weak))
        penalty = known.penalty_for(noise) if self.penalty is None else float(self.penalty)
        return replace(learner, penalty=penalty, reach=reach)

    def _count(self, session: Session) -> None:
        r"""Leave out rows without a label; none is counted.

        Such a row has the feature vector 0, so that its loss is a constant. Of n rows let p n have
        a label: the minimiser of :math:`\frac1n \sum \ell + \frac\lambda2 |w|^2` is the one for
        the rows with a label and the penalty :math:`\lambda / p`. Noise is that of
        :math:`\lambda n`, and a penalty that is chosen for so much noise at p n rows is 1 / p times
        the one at n rows: it is the same model. A penalty that is given is for all n rows.
        """
        session.leave_out_unlabelled()

    def _solve(self, problem: Problem, session: Session | None) -> dict[str, Any]:
        if session is None:
            learner = self._learner(problem, None, start=True)
            found = learner.from_public()
        else:
            release = self._strategy("release")
            learner = self._learner(problem, session.n_rows, start=release.from_public)
            if learner.by_weights(release):
                release.check_no_pool()
            found = learner.from_private(session, release, self._points(problem.X), problem.X)
            found |= {"facts_": learner.kernel_facts(session), "reach_": learner.reach}
        return {**learner.attributes, **found}

    def _adapt(
        self, problem: Problem, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        found, guarantee = super()._adapt(problem, sample, options)
        if "facts_" in found:  # noise is that of people, where these have several rows
            found["facts_"] = replace(found["facts_"], rows=sample.n_people)
        return found, guarantee

    def _points(self, rows: Any) -> Any:
        """Public points of the pool: the caller's, or public rows."""
        release = self._strategy("release")
        if release.pool is None:
            return rows[: release.points]
        if not self._numeric:
            return release.pool
        return validate_data(self, release.pool, dtype=np.float64, reset=False)

    # answers

    def _outputs(self, X: Any) -> FloatArray:
        """Scores, one column an output."""
        check_is_fitted(self, "setup_")
        if self._numeric:
            X = validate_data(self, X, dtype=np.float64, reset=False)
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        if hasattr(self, "feature_coef_"):
            return np.asarray(self.setup_.features(self.setup_.rows(X)) @ self.feature_coef_)
        return np.asarray(self.setup_.values(X, self.pool_) @ self.dual_coef_)

    def error_bound(self, questions: int = 1, *, beta: float = 0.05) -> float:
        """How far answers are, at most, from those of the model without noise; from public facts.

        Parameters
        ----------
        questions : int, default=1
            Different questions. For TDDL they do not count: there the *mean* error over the
            population that the pool is a random draw of is bounded (Theorem 13).
        beta : float, default=0.05
            Probability that the bound fails.

        Returns
        -------
        float
            In scores of a classifier (all of them at once), or in units of the label.
        """
        check_is_fitted(self, "setup_")
        if not self.guarantee_.events:
            return 0.0
        release, facts = self._strategy("release"), replace(self.facts_, beta=beta)
        explicit = hasattr(self, "feature_coef_")
        size = self.feature_coef_.size if explicit else self.pool_.shape[0]
        found = float(release.error_bound(facts, questions, size, explicit))
        return found * self.reach_ * self._label_unit

    @property
    def _label_unit(self) -> float:
        """Labels that a score of 1 stands for."""
        return 1.0

    @abstractmethod
    def answers_of(self, outputs: FloatArray) -> Any:
        """Labels from outputs of the model."""

    def _story(self) -> Story:
        kind = "classifier" if is_classifier(self) else "regression"
        told = Story(
            f"A kernel {kind} of the public rows.",
            (
                *class_facts(self),
                Fact(
                    "kernel",
                    self._strategy("kernel").name,
                    "similarity of two rows; chosen beforehand",
                ),
                Fact("penalty", number(self.penalty_), "lambda, on the squared norm; public"),
                Fact(
                    "length of features",
                    short(self.setup_.radius),
                    "sqrt(K(x, x)) at most, by a public rule",
                ),
            ),
            assumption="",
        )
        if not self.guarantee_.events:
            return told
        release = self._strategy("release")
        made = "the private rows"
        if release.from_public:
            made = "the public rows, corrected by the private ones"
        return replace(
            told,
            summary=f"A kernel {kind} of {made}, {release.told}.",
            assumption=Story.assumption,
            public_use="units of the columns, classes or range of the labels, bounds, points of a "
            "pool",
            radius="by a public rule: longer feature vectors are shrunk to the stated length",
        )


def _rows_of_any_kind(X: Any, y: Any) -> tuple[Any, Any]:
    """Public rows as a kernel of one's own reads them, and their labels."""
    rows = X if hasattr(X, "shape") else np.asarray(X)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    labels = np.asarray(y)
    if rows.shape[0] != len(labels) or not len(labels):
        raise ValueError(
            f"X and y must have as many rows, at least one; got {rows.shape[0]} and {len(labels)}."
        )
    if rows.ndim != 2:
        raise ValueError("X must have two dimensions; a column of texts is X.reshape(-1, 1).")
    return rows, labels
