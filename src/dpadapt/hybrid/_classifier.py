"""What the classifiers of the hybrid model share: one fit, units of features, predictions."""

from __future__ import annotations

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
from dpadapt.learning.constraints import Fraction, OneOf, ParameterTable, Positive
from dpadapt.learning.linear import ScoreClassifier
from dpadapt.learning.public_fits import fit_logistic
from dpadapt.learning.story import Story
from dpadapt.privacy import Agents, Guarantee, Private

from .certificate import AgentsCertificate, NotCertified
from .rules import FEATURES, LinearRule, Rule, class_numbers, feature_count, raw_features
from .story import rule_story
from .units import FeatureUnits, unit_scaling


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

    def _found(self, rule: Rule) -> dict[str, Any]:
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
