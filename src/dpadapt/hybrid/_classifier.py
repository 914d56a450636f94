"""What the classifiers of the hybrid model share: public rows, units of features, predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._checks import public_part, public_scaling
from dpadapt._linear import ScoreClassifier
from dpadapt._public_fits import fit_logistic
from dpadapt.privacy import Agents

from .rules import LinearRule, Rule, feature_count, raw_features

__all__ = ["RuleClassifier", "unit_scaling"]

Array = NDArray[np.float64]


class RuleClassifier(ScoreClassifier):
    """Classifies by a public rule, ``rule_``, between two classes.

    Examples
    --------
    >>> class Given(RuleClassifier):
    ...     def fit(self, X=None, y=None):
    ...         return self
    >>> model = Given()
    >>> model.rule_ = LinearRule("linear", [0.0], [1.0], [1.0, 0.0], ("no", "yes"))
    >>> model.classes_, model.n_features_in_ = np.array(["no", "yes"]), 1
    >>> model.predict([[2.0], [-1.0]])
    array(['yes', 'no'], dtype='<U3')
    """

    features: str
    classes: Sequence[Any] | None
    unit: float
    agent_epsilon: float
    centre: ArrayLike | None
    scale: ArrayLike | None

    def _public(self, X: Any, y: Any, private: Any) -> tuple[Array, Any, Any]:
        """Public rows and labels, and the two classes; no rows at all if X is None."""
        rows, labels, classes = public_part(self, X, y, private)
        return rows, labels, two_classes(classes)

    def _blank(self, rows: Array, classes: Any) -> LinearRule:
        """Rule without coefficients: classes, features, and their public centre and scale."""
        width = feature_count(self.features, rows.shape[1])
        if len(rows):
            centre, scale = public_scaling(raw_features(self.features, rows))
        else:
            centre, scale = unit_scaling(self.features, rows.shape[1], float(self.unit))
        centre = centre if self.centre is None else _given("centre", self.centre, width)
        scale = scale if self.scale is None else _given("scale", self.scale, width)
        return LinearRule(self.features, centre, scale, np.zeros(width + 1), tuple(classes))

    def _public_rule(self, rows: Array, codes: Any, blank: LinearRule) -> LinearRule:
        if not len(rows):
            raise ValueError("X: give public rows, or private ones that are not empty.")
        table = (raw_features(self.features, rows) - blank.centre) / blank.scale
        found = fit_logistic(np.column_stack([table, np.ones(len(rows))]), codes, 2)
        # the sign of a score does not depend on the row's length, which the rule cuts to C
        return blank.with_coefficients(blank.clip * found[:, 0])

    def _same_columns(self, agents: Agents) -> None:
        if agents.n_columns != self.n_features_in_:
            raise ValueError(
                f"agents have {agents.n_columns} columns, but the other rows have "
                f"{self.n_features_in_}; give both the same columns."
            )

    def _poll_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """How agents are asked, from the options of the curator's session."""
        seed = options["random_state"]
        own = None if seed is None else seed + 1  # other noise than the curator's
        return {"epsilon": self.agent_epsilon, "noise": options["noise"], "random_state": own}

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores of the second class; only their sign, if the rule has no scores.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "rule_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        rule: Rule = self.rule_
        return rule.scores(rows) if isinstance(rule, LinearRule) else rule.predict_sign(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
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


def two_classes(classes: Any) -> Any:
    if len(classes) != 2:
        raise ValueError(
            f"Only binary classification is supported: y has {len(classes)} classes, not two."
        )
    return classes


def unit_scaling(features: str, n_columns: int, unit: float) -> tuple[Array, Array]:
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


def _given(name: str, value: ArrayLike, width: int) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (width,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold {width} finite numbers, one for each feature.")
    if name == "scale" and not (array > 0).all():
        raise ValueError("scale must be positive.")
    return array
