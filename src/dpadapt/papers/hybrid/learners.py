r"""Learners of Subsample-Test-Reweigh: what is asked of one, and four of them.

A learner is configuration: it holds no data. Before the first round it says what it will release
in every round, given the densities that the weights will have then; in a round it trades the
grant of that round for one rule. Only the session reads rows.

**Full-batch noisy gradient descent on weighted rows.**

In place of Algorithm 3's millions of steps on one drawn row each, some dozen steps on the whole
weighted gradient. Its sensitivity is that of a weighted sum: no subsampling lemma is needed, the
privacy of R T releases is exact (Gaussian differential privacy), and 2 q is all that a row can do.

**Algorithm 3 of paper 003, Online SGD, as a learner: private descent on one drawn row a step.**

With it the rounds of :mod:`.rounds` are Algorithm 4. One round, with the paper's names::

    h^1 <- 0
    for r = 1, ..., R:
        draw (x_r, l(x_r)) from mu^t, and v from N(0, sigma^2 I_d)
        h^{r+1} <- Proj_D(h^r - eta^r (grad L(h^r(x_r), l(x_r)) + v))
    h^t <- the mean of h^1, ..., h^R

It reads single private rows, so the loop runs in the trusted core:
:mod:`dpadapt.papers.hybrid.doors.descent` plans, draws and charges,
``dpadapt/papers/hybrid/doors/_compiled.py`` takes the steps. These are the corrected ones,
:math:`\eta^r = D / (G \sqrt r)` with :math:`G^2 = L^2 + \sigma^2 d` (printed:
:math:`D / (\sigma \sqrt r)`), the loss has a margin, and the privacy of R T draws is certified
instead of bounded by truncated concentrated DP, which asks for about seven times more rows.

**Algorithm 2 of paper 003: any private learner, run on rows drawn from the weights.**

m rows are drawn with replacement, no row with more than :math:`b = 1/(\kappa n)`, and an
:math:`(\epsilon_M, \delta_M)`-private estimator is fitted to them. A round costs
:math:`m \ln(1 + b (e^{\epsilon_M} - 1))` (``DrawsEvent``), for every
:math:`\epsilon_M`; the printed :math:`6 \epsilon_M m b` is false for large ones. The budget fixes
what a round may cost, and so :math:`\epsilon_M`.

**Parities in one round (Appendix B of paper 003): the curator solves, agents check.**

Under the uniform target no local protocol learns a parity from fewer than exponentially many
people. The curator's rows, from any source with finite :math:`\chi^2(T \| S)`, hold enough
equations: a mask v other than 0 is odd on half of the target, so by Cauchy and Schwarz on at least
:math:`1 / (4 (\chi^2 + 1))` of the source. As long as the equations have not full rank, a row
raises it with that probability, and :math:`4 (\chi^2 + 1) \ln(d/b)` rows do except with
probability b / d. So :math:`4 (\chi^2 + 1) d \ln(d/b)` rows have full rank, hence one solution,
with probability 1 - b. (Full rank is what is proved; the paper says "linearly independent".)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dpadapt import _validate as validate
from dpadapt.hybrid.rules import FunctionRule, LinearRule, ParityRule, Rule, raw_features
from dpadapt.hybrid.signed_rows import SignedRows
from dpadapt.learning.constraints import (
    Count,
    Fraction,
    NonNegative,
    Null,
    OneOf,
    ParameterTable,
    Positive,
)
from dpadapt.learning.descent import descend, within
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Grant, Hidden, Mechanism, Private, RowMap, Rows, Session
from dpadapt.privacy.mechanisms import Gaussian

from .doors.descent import Descent, DrawnDescent
from .doors.draws import LearnOnDraws, draws
from .doors.parity import Parity, thinning
from .doors.weights import RowWeights, Weighted, WeightedMean, draw_rate, weighted_sensitivity
from .queries import WeightedJointSlope, WeightedSlope


@dataclass(frozen=True, eq=False)
class LearningTask:
    """The public facts of one fit.

    Parameters
    ----------
    n_rows, n_columns : int
        n and d of the curator's sample.
    blank : LinearRule
        A rule with coefficients 0: it knows the classes, the features and their public centre and
        scale, so that a linear learner only fills in coefficients.

    Examples
    --------
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> task = LearningTask(n_rows=100, n_columns=2, blank=blank)
    >>> X, y = task.rows(np.array([[1.0, np.nan]] * 3), np.array([0.0, 1.0, -1.0]))
    >>> X[0], y
    (array([1., 0.]), array([-1.,  1.,  0.]))
    """

    n_rows: int
    n_columns: int
    blank: LinearRule

    @cached_property
    def rows(self) -> RowMap:
        """Rows as they are (0 for a cell that is no number), labels as numbers, 0 for no class."""
        return SignedRows(self.n_columns, classes=len(self.blank.classes))

    @cached_property
    def embedded(self) -> RowMap:
        """Rows z(x) of the blank rule, of norm at most 1, with the same labels."""
        return SignedRows(self.blank.width, self.blank.embed, len(self.blank.classes))

    @cached_property
    def embedded_columns(self) -> RowMap:
        """The same rows column by column: products with a vector are twice as fast."""
        embed, classes = self.blank.embed, len(self.blank.classes)
        return SignedRows(self.blank.width, lambda X: np.asfortranarray(embed(X)), classes)


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """The curator's rows in one round: weighted, hidden, with what pays for the round's release.

    Parameters
    ----------
    task : Task
    session : Session
    weights : RowWeights
    density : float
        kappa_t: no row weighs more than 1 / (kappa_t n).
    grant : Grant
        Of what the learner has planned for this round.

    Examples
    --------
    >>> from dpadapt.papers.hybrid.learners import GradientLearner
    >>> from dpadapt.privacy import Private
    >>> task = LearningTask(5, 1, LinearRule("linear", [0.0], [1.0], [0.0, 0.0], (0, 1)))
    >>> learner = GradientLearner(steps=2)
    >>> with Private([[0.0]] * 5, [0.0] * 5).open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(rounds=learner.planned(task, [1.0]))
    ...     rows = WeightedRows(task, session, RowWeights(session), 1.0, grants.rounds[0])
    ...     learner.learn(rows).width
    2
    """

    task: LearningTask
    session: Session
    weights: RowWeights
    density: float
    grant: Grant

    def sum(self, mean: WeightedMean, *, keep: bool = False) -> Hidden:
        """Hide the sum over the weighted rows; ``keep`` as in :meth:`Session.hide`."""
        return self.session.hide(Weighted(mean, self.weights, self.density), keep=keep)

    def draws(self) -> Hidden:
        """Hide rows that are drawn from the weights."""
        return draws(self.weights, self.density)

    def release(self, hidden: Hidden, **public: Any) -> Any:
        """Let a hidden value out through what was planned for this round."""
        return self.session.release(self.grant, hidden, **public)


class Learner(Strategy, ABC):
    """A private learner on weighted rows (the paper's M): configuration, no data.

    Subclasses are frozen dataclasses, as every strategy.

    Attributes
    ----------
    joint : bool
        Whether it can learn one rule between more than two classes.
    """

    joint: ClassVar[bool] = False

    @abstractmethod
    def mechanism(self, task: LearningTask, density: float) -> Mechanism:
        """What one round releases, if no row weighs more than 1 / (density n)."""

    @abstractmethod
    def learn(self, rows: WeightedRows) -> Rule:
        """One round: a rule from the weighted rows, paid for with the grant of this round.

        Rounds of equal mechanisms share one grant; each may use it as often as one round planned.
        """

    def planned(self, task: LearningTask, densities: Sequence[float]) -> list[Mechanism]:
        """What every round will release. Raises on what is public only."""
        return [self.mechanism(task, density) for density in densities]


@dataclass(frozen=True)
class GradientLearner(Learner):
    r"""Logistic regression by R noisy gradients of all rows.

    :math:`v \leftarrow \Pi(v - \gamma C^2 (\sum_i \mu_i g_i + \text{noise}))`, and the mean of the
    last half of the iterates. Rows have norm at most 1 after division by C, hence the C^2.

    More than two classes have one joint rule, by the gradients of the joint logistic loss: one
    release a step as well, :math:`\sqrt 2` times as sensitive, with half the step, because that
    loss is up to twice as curved. The budget is not divided among the classes.

    Parameters
    ----------
    steps : int, default=25
        R, of one round.
    step_size : float, default=6.0
        gamma, for features of unit variance.
    radius : float, default=8.0
        Bound on the norm of v, in units of C.

    Examples
    --------
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> first, second = GradientLearner().planned(LearningTask(1000, 2, blank), [1.0, 0.5])
    >>> first.count, round(first.sensitivity, 6), round(second.sensitivity, 6)
    (25, 0.002, 0.004)
    """

    steps: int = 25
    step_size: float = 6.0
    radius: float = 8.0

    joint: ClassVar[bool] = True
    _constraints: ClassVar[ParameterTable] = {
        "steps": [Count()],
        "step_size": [Positive()],
        "radius": [Positive()],
    }

    def mechanism(self, task: LearningTask, density: float) -> Gaussian:
        """R Gaussian releases, of sensitivity 2 / (density n); of many classes sqrt(2) times it."""
        query = _slope(task, np.zeros_like(task.blank.coefficients))
        sensitivity = weighted_sensitivity(query, density, task.n_rows)
        size = task.blank.coefficients.size
        return Gaussian(query.label, sensitivity, dimension=size, count=self.steps)

    def learn(self, rows: WeightedRows) -> LinearRule:
        """R steps from 0."""
        task, blank = rows.task, rows.task.blank
        start = np.zeros_like(blank.coefficients)
        size = self.step_size * blank.clip**2 / start.ndim

        def slope(v: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(rows.release(rows.sum(_slope(task, v), keep=True)))

        ball = within(self.radius * blank.clip)
        return blank.with_coefficients(descend(slope, start, size, self.steps, project=ball))


def _slope(task: LearningTask, v: NDArray[np.float64]) -> WeightedMean:
    """The gradient at v: of one score, or of one for each class."""
    kind: Any = WeightedSlope if v.ndim == 1 else WeightedJointSlope
    slope: WeightedMean = kind(task.embedded_columns, v)
    return slope


@dataclass(frozen=True)
class SGDLearner(Learner):
    """A linear rule by R noisy steps, each on one row drawn from the weights.

    Rows have norm at most 1 after their division by C (:class:`LinearRule`), so gradients of both
    losses have norm at most 1: L = 1, and nothing is clipped.

    Parameters
    ----------
    steps : int, default=300_000
        R, of one round.
    radius : float, default=4.0
        Of the ball that the coefficients stay in, in units of C: the paper's D, a diameter, is
        twice that times C.
    loss : {"logistic", "hinge"}, default="logistic"
    margin : float, default=1.0
        Of the hinge. Erratum: the printed loss has none, and is 0 for the rule that says nothing.
    penalty : float, default=0.0
        lambda, of half the squared norm of the coefficients. Above 0 the loss is strongly convex,
        and steps are 1 / (lambda r).
    lasso : float, default=0.0
        Of the sum of absolute coefficients: a sparse rule.
    sigma : float, optional
        Noise of a step, taken as it is; by default as much as the budget needs. The paper's is
        the square root of 20. The guarantee says what it gives.

    Examples
    --------
    >>> import numpy as np
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> planned = SGDLearner(steps=1000).mechanism(LearningTask(10_000, 2, blank), density=0.5)
    >>> planned.count, round(planned.rate, 6)
    (1000, 0.0002)
    """

    steps: int = 300_000
    radius: float = 4.0
    loss: Literal["logistic", "hinge"] = "logistic"
    margin: float = 1.0
    sigma: float | None = None
    penalty: float = 0.0
    lasso: float = 0.0

    _constraints: ClassVar[ParameterTable] = {
        "steps": [Count()],
        "radius": [Positive()],
        "loss": [OneOf("logistic", "hinge")],
        "margin": [NonNegative()],
        "sigma": [Positive(), Null()],
        "penalty": [NonNegative()],
        "lasso": [NonNegative()],
    }

    def _check(self) -> None:
        if self.loss == "logistic" and self.margin != 1:
            raise ValueError(
                "margin: the logistic loss has none; leave it 1, or take loss='hinge'."
            )

    def descent(self, task: LearningTask) -> Descent:
        """Descent of one round."""
        radius = self.radius * task.blank.clip
        kind = (self.loss, self.margin, None, self.penalty, self.lasso)
        return Descent(task.embedded, 1.0, radius, self.steps, *kind)

    def mechanism(self, task: LearningTask, density: float) -> DrawnDescent:
        """R steps, at a rate of 1 / (density n)."""
        facts = (self.descent(task), "descent on drawn rows", density, task.n_rows)
        return DrawnDescent.planned(*facts, printed=self.sigma)

    def learn(self, rows: WeightedRows) -> LinearRule:
        """Mean of the R iterates from 0."""
        average = rows.release(rows.draws(), descent=self.descent(rows.task))
        return rows.task.blank.with_coefficients(average)


_MOST_EPSILON = 20.0  # of one fit: beyond, noise is no matter any more


@dataclass(frozen=True, eq=False)
class EstimatorLearner(Learner):
    """A classifier of this library (or any with its interface) as the learner of a round.

    It is given the features of the rows in their public units.

    Parameters
    ----------
    estimator : estimator
        With parameters ``epsilon``, ``delta`` and ``classes``, and ``fit(private=...)``. Its own
        epsilon and delta are replaced; it must keep to them under replace-one, which is checked.
    draws : int
        m, rows that it is fitted to.
    delta : float, default=1e-8
        delta_M.
    public : (X, y), optional
        A public sample, for estimators that need one.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.mixing import NoisyGDClassifier
    >>> learner = EstimatorLearner(NoisyGDClassifier(epsilon=1, delta=1e-8, steps=20), draws=500)
    >>> blank = LinearRule("linear", np.zeros(2), np.ones(2), np.zeros(3), (0, 1))
    >>> planned = learner.mechanism(LearningTask(100_000, 2, blank), density=0.1)
    >>> planned.draws, round(planned.rate, 6)
    (500, 0.0001)
    """

    estimator: Any
    draws: int
    delta: float = 1e-8
    public: tuple[Any, Any] | None = None

    joint: ClassVar[bool] = True
    _constraints: ClassVar[ParameterTable] = {"draws": [Count()], "delta": [Fraction()]}

    def _check(self) -> None:
        known = self.estimator.get_params(deep=False)
        missing = [name for name in ("epsilon", "delta", "classes") if name not in known]
        if missing:
            raise TypeError(f"estimator lacks the parameter(s) {', '.join(missing)}.")

    def mechanism(self, task: LearningTask, density: float) -> LearnOnDraws:
        """One fit; its epsilon is what is solved for."""
        return LearnOnDraws(
            f"{type(self.estimator).__name__} on drawn rows",
            rate=draw_rate(density, task.n_rows),
            draws=self.draws,
            delta=self.delta,
        )

    def learn(self, rows: WeightedRows) -> FunctionRule:
        """Fit a clone to the drawn rows."""
        blank = rows.task.blank
        epsilon = min(rows.grant.epsilon, _MOST_EPSILON)
        model = self._clone(epsilon, rows.weights.updates, blank.classes)
        public = self._public(blank)

        def run(sample: Private) -> Any:
            mapped = sample.map(lambda X: _standardised(X, blank), blank.width - 1)
            return model.fit(*public, private=mapped)

        fitted = rows.release(rows.draws(), size=self.draws, learner=run)
        return FunctionRule(_OnRows(fitted, blank), blank.classes)

    def _clone(self, epsilon: float, turn: int, classes: tuple[Any, ...]) -> Any:
        model = clone(self.estimator)
        # the labels themselves: a sample of rows codes its labels anew, from what was given
        model.set_params(epsilon=epsilon, delta=self.delta, classes=list(classes))
        seed = model.get_params(deep=False).get("random_state")
        if isinstance(seed, int):  # every round its own noise
            model.set_params(random_state=seed + turn)
        return model

    def _public(self, blank: LinearRule) -> tuple[Any, Any]:
        if self.public is None:
            return None, None
        X, y = self.public
        return _standardised(X, blank), y


@dataclass(frozen=True, eq=False)
class _OnRows:
    """Class labels of rows by a fitted model of standardised features."""

    model: Any
    blank: LinearRule

    def __call__(self, X: Any) -> Any:
        return self.model.predict(_standardised(X, self.blank))


def _standardised(X: Any, blank: LinearRule) -> Any:
    """Features of rows in their public units, without a constant."""
    return (raw_features(blank.features, X) - blank.centre) / blank.scale


@dataclass(frozen=True)
class ParityRows:
    """How many rows the parity learner needs; of :func:`parity_rows`.

    Attributes
    ----------
    total : int
        n, of the curator.
    batches : int
        k.
    batch : int
        Rows of one batch.
    kept : int
        Rows that a batch must keep after thinning.

    Examples
    --------
    >>> parity_rows(8, chi2=0.0, epsilon=1.0, beta=0.1).batches
    11
    """

    total: int
    batches: int
    batch: int
    kept: int


def parity_rows(d: int, chi2: float, epsilon: float, beta: float) -> ParityRows:
    r"""Rows with which a parity over d bits is learned, except with probability beta.

    :math:`k = \lceil \log_{4/3}(2/\beta) \rceil` batches. A batch speaks with probability 1/2, so
    that all are silent with probability below beta / 2. In each, with b = beta / (4 k),
    :math:`m = 4 (\chi^2 + 1) d \ln(d/b)` kept rows have full rank except with probability b, and of
    N rows at least m are kept except with probability b if
    :math:`p N - \sqrt{2 p N \ln(1/b)} \ge m` (Chernoff), p = tanh(epsilon / 2). In all: beta.

    Erratum (E3.15): the paper's :math:`32 (\chi^2 + 1) d \ln(2 d/\beta) / \epsilon` rows a batch
    leave out that all k batches must have full rank at once.

    Parameters
    ----------
    d : int
        Number of bits.
    chi2 : float
        chi-squared divergence of the uniform target from the source; finite.
    epsilon, beta : float

    Examples
    --------
    >>> parity_rows(64, chi2=0.9, epsilon=1.0, beta=0.05)
    ParityRows(total=159874, batches=13, batch=12298, kept=5402)
    """
    validate.count("d", d)
    validate.fraction("beta", beta)
    if not (isinstance(chi2, (int, float)) and 0 <= chi2 < math.inf):
        raise ValueError(
            f"chi2 must be a finite number, at least 0; got {chi2!r}. If some rows of the target "
            "never occur at the source, no number of rows is enough."
        )
    batches = _batches(beta)
    miss = beta / (4 * batches)
    kept = math.ceil(4 * (chi2 + 1) * d * math.log(d / miss))
    spread = math.log(1 / miss)
    root = (math.sqrt(2 * spread) + math.sqrt(2 * spread + 4 * kept)) / 2
    batch = math.ceil(root**2 / thinning(epsilon))
    return ParityRows(batches * batch, batches, batch, kept)


@dataclass(frozen=True)
class ParityLearner(Learner):
    """The parity that fits the rows, at pure epsilon (:mod:`dpadapt.papers.hybrid.doors.parity`).

    It needs no weights, and one round: a mask that fits all rows of the source fits the target.

    Parameters
    ----------
    beta : float, default=0.05
        Probability that no batch finds the mask, given the rows of :func:`parity_rows`.

    Examples
    --------
    >>> ParityLearner(beta=0.1).batches
    11
    """

    beta: float = 0.05

    _constraints: ClassVar[ParameterTable] = {"beta": [Fraction()]}

    @property
    def batches(self) -> int:
        """K, the least number of coins of which one falls right except with probability beta / 2.

        A batch is counted as right with probability 1/4, as in the paper.
        """
        return _batches(self.beta)

    def mechanism(self, task: LearningTask, density: float) -> Parity:
        """One pure release."""
        return Parity("parity")

    def planned(self, task: LearningTask, densities: Sequence[float]) -> list[Mechanism]:
        """One round only."""
        if len(densities) != 1:
            raise ValueError("a parity is learned in one round; ask for one.")
        return super().planned(task, densities)

    def learn(self, rows: WeightedRows) -> ParityRule:
        """The mask that most batches found; weights play no part."""
        return self.candidates(rows)[0]

    def candidates(self, rows: WeightedRows) -> tuple[ParityRule, ...]:
        """Every mask that a batch found, the most frequent first; the empty one if none did.

        Post-processing of the release, so agents may compare them all.
        """
        task = rows.task
        found = rows.release(rows.session.hide(Rows(task.rows)), batches=self.batches)
        masks = Counter(tuple(mask.tolist()) for mask in found if mask is not None)
        ranked = [mask for mask, _ in masks.most_common()] or [(0,) * task.n_columns]
        return tuple(ParityRule(mask, task.blank.classes) for mask in ranked)


def _batches(beta: float) -> int:
    return math.ceil(math.log(2 / beta) / math.log(4 / 3))
