r"""Few public rows: no experts to stack, so that AdaMix takes their place.

With fewer than 300 public rows there is little to hold out, and trees know nothing yet. The start
is then the penalised logistic regression of directions (:mod:`dpadapt.mixing`), tempered on public
rows that it has not seen, and the private step is the known-noise descent of AdaMix from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.mixing.features import PublicSample, UnitRows, penalised
from dpadapt.mixing.known_noise import KnownNoise, unseen_scores
from dpadapt.mixing.noisy_gradients import gradient_mechanisms, open_gradients
from dpadapt.mixing.solver import Iterates, Run
from dpadapt.privacy import Session

from .public_model import PublicModel, class_weights
from .releases import Release, Step

FEW = 300  # public rows; with fewer, AdaMix was ahead or equal in most tables that were tried
_FAR = float(np.finfo(np.float64).max)  # nothing is cut there, and no unit is larger
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

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> facts = few_facts(X, (X[:, 0] > 0).astype(int), np.array(["no", "yes"]), reader=None)
    >>> len(facts.model.experts), bool(0.1 <= facts.temper <= 10)
    (1, True)
    """

    model: PublicModel
    public: PublicSample
    units: UnitRows
    temper: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the public model is."""
        constant = int((self.units.scale == _FAR).sum())
        told = (
            f"{len(self.public)} public rows are few: the public model is a logistic regression of "
            "their directions, without other experts.",
        )
        left_out = f"Of their columns {constant} have one value only and are left out."
        return (*told, left_out) if constant else told


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
    model = PublicModel((expert,), np.array([temper]), low, high, None, reader, names)
    return FewFacts(model, public, units, temper)


def adapt_few(facts: FewFacts, session: Session) -> Step:
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
    asked = gradient_mechanisms(session, cleaning, shape, steps, sample_size=None)
    gradients, size = open_gradients(session, cleaning, session.plan(**asked), None)
    start = facts.model.experts[0].weights
    weights, found = solver.train(Run(gradients, public, start, "public", size, Iterates(steps)))
    plan = found["plan_"]
    said = (
        f"with {len(public)} public rows the private step is that of AdaMix, {steps} noisy steps, "
        f"after which a score has noise of {plan.kappa:.2g}"
    )
    release = Release("descent", 1.0, said, steps)
    adapted = DirectionScores(units, facts.temper * weights)
    return Step(adapted, (release,), None, (release.sentence(),))
