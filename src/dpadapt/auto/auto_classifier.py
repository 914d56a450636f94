"""The best private classification that two tables allow."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray
from dpadapt.learning.cautions import CautionWarning
from dpadapt.learning.constraints import Instance, Null, OneOf
from dpadapt.learning.constraints import ParameterTable as Table
from dpadapt.learning.linear import ScoreClassifier, probabilities_of
from dpadapt.mixing.features import PublicSample, UnitRows, penalised
from dpadapt.mixing.known_noise import KnownNoise, unseen_scores
from dpadapt.mixing.noisy_gradients import gradient_mechanisms, open_gradients
from dpadapt.mixing.solver import Iterates, Run
from dpadapt.privacy import Session
from dpadapt.rare import ClassErrors, rare_class_warnings, weights_of_classes

from ._estimator import AutoEstimator, AutoProblem
from .classification_step import ClassFacts, adapt_classification
from .experts import CLASSIFICATION, expert_kinds, fit_expert
from .releases import ReleaseRecord, StepResult
from .stacking import (
    PublicStack,
    class_folds,
    class_weights,
    cluster_folds,
    cross_fit,
    group_folds,
    log_loss,
)

_MOST_LOSS_RATIO = 2.0
_MOST_NAMED = 10  # classes
FEW = 300  # public rows; with fewer, AdaMix was ahead or equal in most tables that were tried


class AutoClassifier(AutoEstimator, ScoreClassifier):
    """Classification for a private domain that chooses its method itself, from two tables.

    Public experts (logistic regression, boosted trees) are fitted to the public rows and stacked;
    that costs nothing. How often they are wrong on private rows is released; then one private
    descent on [logits of the experts, columns] leads as far as the known noise allows. With fewer
    than 300 public rows, and no experts given, it is AdaMix that starts and descends.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit. No default: it is a decision.
    experts : list of str or estimator, optional
        Of "linear", "trees", and models with ``fit`` and ``predict_proba``; one that is fitted
        already is used as it is. By default those two, and with fewer than 300 public rows none.
    class_weight : {"balanced"}, dict or None, default=None
        What a mistake costs, class by class: the class of the largest weight times probability is
        predicted. "balanced" is one over the share of *public* rows, so that no class is forgotten
        because it is rare. It changes ``predict`` and ``decision_function``; ``predict_proba``
        stays what it is, and nothing private is read for it. After a fit
        :func:`dpadapt.predict_classes` does the same with other weights, or with thresholds.
    classes : sequence, optional
        All class labels, where the public labels do not have them all. A private row of another
        class is left out, and nothing tells that it was there.
    noise : {"secure", "seeded"}, default="secure"
        Not "exact": a purse is proved for continuous noise.
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar while private rows are read.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    public_model_ : PublicStack
        The start: a stack of the experts, with a ``predict`` of its own.
    adapted_ : ClassScores, DirectionScores or None
        Scores of the classes after the private step.
    class_weights_ : ndarray of shape (k,)
        What a mistake costs, from ``class_weight``.
    class_errors_ : ClassErrors
        How many public rows of each class are found, as the model predicts and with thresholds and
        weights, and what that costs in other errors; ``class_errors_.to_frame()`` is a table.
    explain_ : tuple of str
        What was done, and what each release cost, in sentences.
    no_harm_ : ClassNoHarm or None
        What the private step would cost if nothing had shifted, rehearsed on public rows; printed,
        a sentence. None with fewer than 300 public rows, where it is AdaMix.
    releases_ : tuple of ReleaseRecord
        Name, share of the budget and finding of each release.
    guarantee_ : Guarantee
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    dpadapt.ReweightingClassifier : linear models, with options of their own.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpadapt import Private
    >>> rng = np.random.default_rng(0)
    >>> def people(n, at):
    ...     towns = rng.choice(["A", "B"], n)
    ...     table = pd.DataFrame({"age": rng.integers(20, 60, n), "town": towns})
    ...     return table, np.where(table["age"] + rng.normal(size=n) > at, "yes", "no")
    >>> (X, y), (T, t) = people(400, at=40), people(3000, at=35)
    >>> model = AutoClassifier(epsilon=1.0, delta=1e-6, experts=["linear"])
    >>> model = model.fit(X, y, private=Private(T, t))
    >>> bool(model.score(T, t) > np.mean(model.public_model_.predict(T) == t))
    True
    """

    _constraints: ClassVar[Table] = {
        "class_weight": [
            OneOf("balanced"),
            Instance(dict, advice="A dict goes from classes to weights, as in {'yes': 5.0}."),
            Null(),
        ]
    }

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        experts: Sequence[Any] | None = None,
        class_weight: Any = None,
        classes: Sequence[Any] | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.experts = experts
        self.class_weight = class_weight
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: of the second class for two classes, else one for each class.

        Logarithms of ``class_weight`` are added to them.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, d)
        """
        return _usual(self._scores(X) + np.log(self.class_weights_))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, whatever ``class_weight`` is.

        They are tempered on public rows that the experts had not seen, and allow for the known
        noise of the private step. What private rows are like beyond that, nobody has measured.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, d)
        """
        return probabilities_of(_usual(self._scores(X)))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        rows = self._rows(X)
        logits = self.public_model_.scores(rows)
        if self.adapted_ is None:
            return self.public_model_.stacked(logits)
        return np.asarray(self.adapted_(rows, logits))

    @property
    def _classifies(self) -> bool:
        return True

    @property
    def _kinds(self) -> Sequence[Any]:
        return CLASSIFICATION if self.experts is None else list(self.experts)

    def _facts(self, problem: AutoProblem) -> ClassFacts | FewFacts:
        if self.experts is None and len(problem.X) < FEW:
            return few_facts(problem.X, problem.labels, problem.names, problem.reader)
        kinds, codes = expert_kinds(self.experts, problem.names), problem.labels
        k = len(problem.names)

        def logits(folds: Any) -> Any:
            return cross_fit(kinds, problem.X, codes, k, folds)

        usual, loss_ratio = logits(class_folds(codes)), 1.0
        shuffled = usual
        hard = (
            cluster_folds(problem.X, codes)
            if problem.groups is None
            else group_folds(problem.groups, len(codes))
        )
        if hard is not None:
            other = logits(hard)
            losses = [_loss(each, codes) for each in (other, usual)]
            loss_ratio = float(np.clip(losses[0] / max(losses[1], 1e-9), 1.0, _MOST_LOSS_RATIO))
            usual = other
        weights = class_weights(usual, codes)
        experts = tuple(fit_expert(kind, problem.X, codes, k) for kind in kinds)
        low, high = problem.X.min(axis=0), problem.X.max(axis=0)
        model = PublicStack(experts, weights, low, high, None, problem.reader, problem.names)
        return ClassFacts(model, problem.X, codes, usual, loss_ratio, shuffled)

    def _public_sentences(self, problem: AutoProblem, facts: Any) -> tuple[str, ...]:
        if isinstance(facts, FewFacts):
            return facts.sentences
        return super()._public_sentences(problem, facts)

    def _step(self, facts: Any, session: Session) -> StepResult:
        few = isinstance(facts, FewFacts)
        return adapt_few(facts, session) if few else adapt_classification(facts, session)

    def _read(self, X: Any, y: Any, private: Any, *, groups: Any = None) -> AutoProblem:
        problem = super()._read(X, y, private, groups=groups)
        weights_of_classes(self.class_weight, problem.labels, problem.names)  # before any expense
        return problem

    def _more(self, problem: AutoProblem, facts: Any, step: StepResult) -> dict[str, Any]:
        weights = weights_of_classes(self.class_weight, problem.labels, problem.names)
        few = isinstance(facts, FewFacts)
        rows = facts.model.rows(problem.X)
        logits = (
            facts.model.scores(rows) if few else facts.shuffled_logits
        )  # of rows that were not seen
        usual = facts.model.stacked(logits)
        scores = usual if step.adapted is None else np.asarray(step.adapted(rows, logits))
        predicted = np.argmax(scores + np.log(weights), axis=1)
        shares = probabilities_of(_usual(scores))
        return {
            "class_weights_": weights,
            "class_errors_": ClassErrors.of(
                shares, problem.labels, problem.names, predicted=predicted, seen=few
            ),
        }

    def _solve(self, problem: AutoProblem, session: Session | None) -> dict[str, Any]:
        found = super()._solve(problem, session)
        start = replace(found["public_model_"], class_weights=found["class_weights_"])
        sentences = (
            *found["explain_"],
            *self._class_weight_sentences(problem, found["class_weights_"]),
        )
        return {**found, "public_model_": start, "explain_": sentences}

    def _class_weight_sentences(self, problem: AutoProblem, weights: Any) -> tuple[str, ...]:
        if self.class_weight is None:
            return ()
        pairs = list(zip(problem.names, weights, strict=True))
        listed = ", ".join(f"{name} {weight:.3g}" for name, weight in pairs[:_MOST_NAMED])
        more = ", ..." if len(pairs) > _MOST_NAMED else ""
        return (
            f"Classes are predicted by weight times probability (class_weight): {listed}{more}. "
            "Error rates above are those of the most likely class, without weights.",
        )

    def _caution(self) -> None:
        if self.guarantee_.events:
            for text in rare_class_warnings(self.class_errors_):
                warnings.warn(text, CautionWarning, stacklevel=3)


def _usual(scores: Any) -> NDArray[np.float64]:
    return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)


def _loss(logits: Any, codes: Any) -> float:
    return log_loss(np.einsum("nij,i->nj", logits, class_weights(logits, codes)), codes)


# few public rows

_FAR = float(np.finfo(np.float64).max)  # nothing is clipped there, and no unit is larger
_LEAST_TEMPER, _MOST_TEMPER = 0.1, 10.0


@dataclass(frozen=True, eq=False)
class DirectionScores:
    """Centred scores of the classes, linear in the direction of a row.

    Parameters
    ----------
    units : UnitRows
    weights : ndarray of shape (d + 1, k)

    Examples
    --------
    >>> units = UnitRows(np.zeros(1), np.ones(1), bias=0.75, classes=2)
    >>> DirectionScores(units, np.array([[0.0, 5.0], [0.0, 0.0]]))(np.array([[9.0]]))
    array([[-2.,  2.]])
    """

    units: UnitRows
    weights: FloatArray

    def __call__(self, rows: FloatArray, logits: FloatArray | None = None) -> FloatArray:
        """Scores, of shape (n, k); logits of experts are not needed."""
        scores = self.units.rows(rows) @ self.weights
        return np.asarray(scores - scores.mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class FewFacts:
    """The public model of few rows, and what the private step needs of them.

    There is little to hold out, and trees know nothing yet: no experts to stack. The start is the
    penalised logistic regression of directions (:mod:`dpadapt.mixing`), tempered on public rows
    that it has not seen; the private step is the known-noise descent of AdaMix from there.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> facts = few_facts(X, (X[:, 0] > 0).astype(int), np.array(["no", "yes"]), reader=None)
    >>> len(facts.model.experts), bool(0.1 <= facts.temper <= 10)
    (1, True)
    """

    model: PublicStack
    public: PublicSample
    units: UnitRows
    temper: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the public model is."""
        constant = int((self.units.scale == _FAR).sum())
        sentences = (
            f"{len(self.public)} public rows are few: the public model is a logistic regression of "
            "their directions, without other experts.",
        )
        left_out = f"Of their columns {constant} have one value only and are left out."
        return (*sentences, left_out) if constant else sentences


def few_facts(X: FloatArray, codes: Any, names: Any, reader: Any) -> FewFacts:
    """Fit directions to public rows; a column that is constant there has no direction.

    Examples
    --------
    >>> X = np.column_stack([np.linspace(-1, 1, 40), np.ones(40)])
    >>> facts = few_facts(X, (X[:, 0] > 0).astype(int), np.array([0, 1]), reader=None)
    >>> facts.units.rows(np.array([[0.5, 1e9]])).round(2)
    array([[0.96, 0.  , 0.29]])
    """
    classes = len(names)
    low, high = X.min(axis=0), X.max(axis=0)
    units = UnitRows.of(X, codes, classes)
    units = replace(units, scale=np.where(high > low, units.scale, _FAR))
    public = PublicSample(units.rows(X), codes, classes)
    held_out, temper = unseen_scores(public), 1.0
    if held_out is not None:
        found = class_weights(held_out[:, None, :], codes)[0]
        temper = float(np.clip(found, _LEAST_TEMPER, _MOST_TEMPER))
    expert = DirectionScores(units, penalised(public))
    far = np.full(X.shape[1], _FAR)
    low, high = np.where(high > low, -far, low), np.where(high > low, far, high)
    model = PublicStack((expert,), np.array([temper]), low, high, None, reader, names)
    return FewFacts(model, public, units, temper)


def adapt_few(facts: FewFacts, session: Session) -> StepResult:
    """Spend a session on the descent of AdaMix; return what was found.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> codes = (X[:, 0] > 0).astype(int)
    >>> facts = few_facts(X, codes, np.array([0, 1]), reader=None)
    >>> with Private(X, codes).open(epsilon=1.0, delta=1e-6) as session:
    ...     found = adapt_few(facts, session)
    >>> found.adapted(X).shape, round(session.guarantee.epsilon, 6)
    ((40, 2), 1.0)
    """
    units, public, solver = facts.units, facts.public, KnownNoise()
    steps = solver.usual_steps.number(session)
    cleaning, shape = units.cast(np.float32), (units.width, units.classes)
    mechanisms = gradient_mechanisms(session, cleaning, shape, steps, sample_size=None)
    gradients, size = open_gradients(session, cleaning, session.plan(**mechanisms), None)
    start = facts.model.experts[0].weights
    weights, found = solver.train(Run(gradients, public, start, "public", size, Iterates(steps)))
    plan = found["plan_"]
    said = (
        f"with {len(public)} public rows the private step is that of AdaMix, {steps} noisy steps, "
        f"after which a score has noise of {plan.kappa:.2g}"
    )
    release = ReleaseRecord("descent", 1.0, said, steps)
    adapted = DirectionScores(units, facts.temper * weights)
    return StepResult(adapted, (release,), None, (release.sentence(),))
