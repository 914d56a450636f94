"""What the classifiers of the hybrid model share: one fit, units of features, predictions.

And what agents' answers promise of the result, and what a report is told.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator, Problem
from dpadapt.learning.checks import public_part, public_scaling
from dpadapt.learning.constraints import Fraction, OneOf, ParameterTable, Positive, Vector
from dpadapt.learning.linear import ScoreClassifier
from dpadapt.learning.public_fits import fit_logistic
from dpadapt.learning.story import Fact, Story, class_facts, number, percent, short
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Agents, Guarantee, Private
from dpadapt.privacy.local.replies import Estimate

from .rules import FEATURES, LinearRule, Rule, class_numbers, feature_count, raw_features


@dataclass(frozen=True, eq=False)
class FeatureUnits(Strategy):
    """Public location and scale of the features: the agents' own moments, say.

    Parameters
    ----------
    centre, scale : array of shape (k,)
        One number for each feature.

    Examples
    --------
    >>> FeatureUnits(centre=[0.0, 1.0], scale=[1.0, 2.0]).of(2)
    (array([0., 1.]), array([1., 2.]))
    """

    centre: ArrayLike
    scale: ArrayLike
    _constraints: ClassVar[ParameterTable] = {"centre": [Vector()], "scale": [Vector()]}

    def _check(self) -> None:
        if not (np.asarray(self.scale) > 0).all():
            raise ValueError("scale must be positive.")

    def of(self, width: int) -> tuple[FloatArray, FloatArray]:
        """Centre and scale of so many features."""
        found = np.asarray(self.centre, dtype=float), np.asarray(self.scale, dtype=float)
        for name, value in zip(("centre", "scale"), found, strict=True):
            if len(value) != width:
                raise ValueError(f"{name} must hold {width} finite numbers, one for each feature.")
        return found


def unit_scaling(features: str, n_columns: int, unit: float) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of the features of rows with independent N(0, unit^2) columns.

    Examples
    --------
    >>> unit_scaling("squares", 1, unit=2.0)
    (array([4.]), array([5.65685425]))
    """
    one = np.ones(n_columns)
    if features == "linear":
        return 0 * one, unit * one
    square = unit**2
    if features == "squares":
        return square * one, math.sqrt(2) * square * one
    i, j = np.triu_indices(n_columns)
    centre = np.concatenate([0 * one, np.where(i == j, square, 0.0)])
    spread = np.where(i == j, math.sqrt(2) * square, square)
    return centre, np.concatenate([unit * one, spread])


class NotCertified(UserWarning):
    """No rule was shown to meet the target error; the best one seen was returned."""


@dataclass(frozen=True)
class AgentsCertificate:
    """Error of the chosen rule on the agents' population, with a bound that holds in advance.

    The agents who were asked are a random sample of that population, and those who answer speak for
    those who do not: the bound knows nothing of the silent.

    Attributes
    ----------
    error : float or None
        Unbiased estimate for the rule, if it was the only one; None if nobody answered.
    upper : float
        Above the true error with probability ``confidence`` at least, though the rule was chosen
        among others by the same answers (union bound).
    confidence : float
    target : float
        What was asked for.
    agents : int
        Answers that it rests on.
    about : str, default="mistakes"
        What the error is: the share of mistakes, or a loss over its bound.

    Examples
    --------
    >>> said = {"error": 0.04, "upper": 0.08, "confidence": 0.95, "target": 0.1}
    >>> AgentsCertificate(**said, agents=20_000).certified
    True
    >>> AgentsCertificate.none(target=0.1).certified
    False
    """

    error: float | None
    upper: float
    confidence: float
    target: float
    agents: int
    about: str = "mistakes"

    @property
    def certified(self) -> bool:
        """Whether the bound is at most the target."""
        return self.upper <= self.target

    @classmethod
    def of(cls, found: Estimate, confidence: float, target: float) -> AgentsCertificate:
        """Certificate of an estimate whose interval has room for the union bound already."""
        value = found.value if found.count else None
        return cls(value, found.high, confidence, target, found.count)

    @classmethod
    def none(cls, target: float) -> AgentsCertificate:
        """Nobody was asked, nothing is promised."""
        return cls(None, 1.0, 1.0, target, 0)


def rule_story(estimator: Any, method: str) -> Story:
    """Tell about a rule that a curator and agents have learnt.

    Parameters
    ----------
    estimator : HybridTilt or SubsampleTestReweigh
    method : str
        By which it was learnt.

    Examples
    --------
    >>> from dpadapt.hybrid import HybridTilt
    >>> model = HybridTilt(epsilon=1, delta=1e-6, agent_epsilon=1).fit([[0.0], [1.0]], [0, 1])
    >>> rule_story(model, "").summary
    'A linear rule, fitted on public rows alone.'
    """
    told = Story(
        "A linear rule, fitted on public rows alone.",
        class_facts(estimator),
        assumption="",
        public_use="units of the columns and classes",
        radius="longer than any row: it only keeps numbers finite. What one row can do is bounded "
        "in the release itself, see its sensitivity",
    )
    asked = estimator.agents_guarantee_.bounds.get("agents asked", 0)
    if not estimator.guarantee_.events and not asked:
        return told
    facts = (*told.facts, *_of_agents(estimator, asked), *_certificate(estimator))
    return replace(
        told,
        summary=f"A rule for people who trust nobody, learnt by {method}.",
        facts=facts,
        assumption="The guarantee above is that of the curator's rows. Agents have their own: what "
        "leaves an agent is one randomised message. Somebody who is both pays both.",
    )


def _of_agents(estimator: Any, asked: float) -> tuple[Fact, ...]:
    if not asked:
        return (Fact("agents", "0", "nobody was asked: nothing is known of the target"),)
    theirs = estimator.agents_guarantee_
    return (
        Fact("agents asked", number(asked), "people who answered one question at most, once"),
        Fact(
            "epsilon of an agent",
            short(theirs.epsilon),
            f"of one message, at delta {short(theirs.delta)}; nobody is trusted with the answer",
        ),
    )


def _certificate(estimator: Any) -> tuple[Fact, ...]:
    found = estimator.certificate_
    if found.error is None:
        return (Fact("certificate", "–", "no agent has tested the rule"),)
    about = "error on agents" if found.about == "mistakes" else found.about
    meaning = "what agents say of the rule" if found.certified else "not shown to meet the target"
    return (
        Fact(about, percent(round(max(0.0, found.error), 4)), meaning),
        Fact(
            "at most",
            percent(round(min(1.0, found.upper), 4)),
            f"with {percent(found.confidence)} confidence, from {number(found.agents)} answers",
        ),
    )


@dataclass(frozen=True, eq=False)
class HybridProblem(Problem):
    """Public rows, which may be none, and agents.

    Parameters
    ----------
    agents : Agents, optional
    polled : dict
        How agents are asked: arguments of :meth:`dpadapt.Agents.open`.

    Examples
    --------
    >>> HybridProblem(np.zeros((0, 2)), np.zeros(0), np.array(["no", "yes"])).agents is None
    True
    """

    agents: Agents | None = None
    polled: Any = None

    def poll(self) -> Any:
        """Open the agents."""
        assert self.agents is not None
        return self.agents.open(**self.polled)


class RuleClassifier(PrivateEstimator, ScoreClassifier):
    """Classifies by a public rule, ``rule_``; between two classes unless a subclass can do more.

    Examples
    --------
    >>> class Given(RuleClassifier):
    ...     def fit(self, X=None, y=None):
    ...         return self
    ...     def _solve(self, problem, session): ...
    >>> model = Given()
    >>> model.rule_ = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], ("no", "yes"))
    >>> model.classes_, model.n_features_in_ = np.array(["no", "yes"]), 1
    >>> model.predict([[2.0], [-1.0]])
    array(['yes', 'no'], dtype='<U3')
    """

    features: str
    classes: Sequence[Any] | None
    unit: Any
    agent_epsilon: float
    target_error: float

    _constraints: ClassVar[ParameterTable] = {
        "agent_epsilon": [Positive()],
        "features": [OneOf(*FEATURES)],
        "unit": [Positive()],
        "target_error": [Fraction()],
    }
    _method: ClassVar[str]  # by which the rule was learnt, for the report
    _joint: ClassVar[bool] = False  # whether there may be more than two classes

    def fit(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        private: Private | None = None,
        agents: Agents | None = None,
    ) -> Self:
        """Fit to a curator's private rows and to agents.

        Parameters
        ----------
        X : array-like of shape (m, d), optional
            Public rows; they set the units of the columns.
        y : array-like of shape (m,), optional
            Public labels.
        private : Private, optional
            The curator's rows with their labels.
        agents : Agents, optional
            People of the target population, with labels. Those asked are spent.

        Returns
        -------
        estimator
            Itself, fitted.
        """
        self._fit(X, y, private, agents=agents)
        doubt = "" if self.certificate_.certified or not self.candidates_ else self._doubt()
        if doubt:
            warnings.warn(doubt, NotCertified, stacklevel=2)
        return self

    def _doubt(self) -> str:
        """What to warn of where agents did not certify the rule; empty: nothing."""
        return ""

    # public facts

    def _read(self, X: Any, y: Any, private: Any, *, agents: Any = None) -> HybridProblem:
        if agents is not None:
            check_agents(agents)
        rows, labels, classes = self._public(X, y, private, agents)
        if agents is not None and agents.n_columns != self.n_features_in_:
            raise ValueError(
                f"agents have {agents.n_columns} columns, but the other rows have "
                f"{self.n_features_in_}; give both the same columns."
            )
        codes = np.searchsorted(classes, labels).astype(np.int64)
        self._check_classes(len(classes))
        if len(rows) and not isinstance(self.unit, FeatureUnits) and self.unit != 1:
            raise ValueError("unit: public rows set the units of the columns; leave it 1.")
        return HybridProblem(rows, codes, classes, agents)

    def _check_classes(self, count: int) -> None:
        """Refuse more than two classes."""
        if count != 2:
            raise ValueError(
                f"Only binary classification is supported: y has {count} classes, not two. "
                "SubsampleTestReweigh with its default learner takes more."
            )

    def _public(self, X: Any, y: Any, private: Any, agents: Any) -> tuple[FloatArray, Any, Any]:
        """Public rows and labels, and the classes; no rows at all if X is None."""
        return public_part(self, X, y, private)

    def _blank(self, problem: HybridProblem) -> LinearRule:
        """Rule without coefficients: classes, features, and their public centre and scale."""
        rows = problem.X
        width = feature_count(self.features, rows.shape[1])
        if isinstance(self.unit, FeatureUnits):
            centre, scale = self.unit.of(width)
        elif len(rows):
            centre, scale = public_scaling(raw_features(self.features, rows))
        else:
            centre, scale = unit_scaling(self.features, rows.shape[1], float(self.unit))
        count = len(problem.names)
        zero = np.zeros(width + 1 if count == 2 else (width + 1, count))
        return LinearRule(self.features, centre, scale, zero, tuple(problem.names))

    def _public_rule(self, problem: HybridProblem) -> LinearRule:
        """Rule of the public rows alone."""
        rows, blank = problem.X, self._blank(problem)
        if not len(rows):
            raise ValueError("X: give public rows, or private ones that are not empty.")
        table = (raw_features(self.features, rows) - blank.centre) / blank.scale
        ones, count = np.ones(len(rows)), len(problem.names)
        found = fit_logistic(np.column_stack([table, ones]), problem.labels, count)
        # the order of scores does not depend on the row's length, which the rule cuts to C
        return blank.with_coefficients(blank.clip * (found[:, 0] if count == 2 else found))

    # agents beside the session

    def _alone(
        self, problem: HybridProblem, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        return super()._alone(replace(problem, polled=self._polled(options)), options)

    def _adapt(
        self, problem: HybridProblem, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        return super()._adapt(replace(problem, polled=self._polled(options)), sample, options)

    def _polled(self, options: dict[str, Any]) -> dict[str, Any]:
        """How agents are asked, from the options of the curator's session."""
        seed = options["random_state"]
        own = None if seed is None else seed + 1  # other noise than the curator's
        return {"epsilon": self.agent_epsilon, "noise": options["noise"], "random_state": own}

    def _fitted_attributes(self, rule: Rule) -> dict[str, Any]:
        """Fitted attributes, as long as nobody is asked."""
        return {
            "rule_": rule,
            "agents_guarantee_": Guarantee(),
            "certificate_": AgentsCertificate.none(self.target_error),
            "candidates_": (),
        }

    # what a fitted model says

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the second of two classes, or of each; only who wins, if the rule has none.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "rule_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        rule: Rule = self.rule_
        if isinstance(rule, LinearRule):
            return rule.scores(rows)
        said, count = rule.predict_sign(rows), len(rule.classes)
        return said if count == 2 else 1.0 * (said[:, None] == class_numbers(count))

    def _story(self) -> Story:
        return rule_story(self, self._method)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._joint
        return tags


def check_agents(agents: Any) -> None:
    """Refuse what is no handle on people with labels."""
    if not isinstance(agents, Agents):
        raise TypeError(
            f"agents must be dpadapt.hybrid.Agents; got {type(agents).__name__}. Wrap their "
            "rows: Agents(X, y)."
        )
    if not agents.labelled:
        raise ValueError("agents must have labels: Agents(X, y).")
