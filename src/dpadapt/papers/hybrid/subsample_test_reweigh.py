"""SubsampleTestReweigh: the scikit-learn face of Algorithms 2 and 4 (:mod:`.rounds`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt.hybrid._classifier import (
    AgentsCertificate,
    FeatureUnits,
    HybridProblem,
    RuleClassifier,
)
from dpadapt.hybrid.rules import Rule, class_numbers, feature_count
from dpadapt.learning.constraints import Instance, Named, ParameterTable, Positive
from dpadapt.privacy import Session
from dpadapt.privacy.local import Estimate, NotEnoughAgents

from .learners import (
    EstimatorLearner,
    GradientLearner,
    Learner,
    LearningTask,
    ParityLearner,
    SGDLearner,
)
from .rounds import (
    AgentTest,
    BitTest,
    DensityRun,
    FreshAgents,
    PaperSchedule,
    PaperTest,
    Round,
    TightSchedule,
    best_of,
    plan_rounds,
    subsample_test_reweigh,
)
from .sample_sizes import Calibration, sizes_of_algorithm_2, sizes_of_algorithm_4

_FAILURE = 0.05  # probability that a certificate is wrong
_UNTESTED = Estimate(math.nan, 0.0, 1.0, 0)


class SubsampleTestReweigh(RuleClassifier):
    r"""Learn for people who trust nobody, from a curator's rows of another population (paper 003).

    Round by round: a rule from the curator's weighted rows, by a private learner; fresh agents say
    through randomised response how often it errs on them; if too often, rows that it gets right
    lose weight. The first rule that passes is returned, with a certificate.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of the curator's rows. No default: it is a decision.
    agent_epsilon : float
        Of the one message of an agent (pure, local).
    learner : {"gradient", "sgd"} or Learner, default="gradient"
        "gradient" (:class:`GradientLearner`): the whole weighted gradient, some dozen times a
        round; "sgd" (:class:`SGDLearner`): the paper's Algorithm 3, one drawn row a step. Or an
        object such as :class:`EstimatorLearner`.
    schedule : {"tight", "paper"}, TightSchedule or PaperSchedule, default="tight"
        How many rounds, how dense the weights are and how fast they move. "tight": density
        max(kappa, e^{-eta (t-1)}) in round t. "paper": density kappa from the first round on.
    test : {"bits", "paper"}, BitTest or PaperTest, default="bits"
        How fresh agents test a rule, how many, and whether the first that passes is returned.
        "bits": randomised bits. "paper": answers with Gaussian noise.
    target_error : float, default=0.1
        A rule passes when its error is below, with 95% confidence over all rounds.
    features : {"linear", "squares", "quadratic"}, default="linear"
        Of the rules: x, its squares, or both with all products.
    classes : sequence of labels, optional
        Needed where there are no public labels. More than two are for the learner "gradient"
        and for :class:`EstimatorLearner`.
    unit : float or FeatureUnits, default=1.0
        Order of magnitude of the columns (public), if there are no public rows; or location and
        scale of the features, where something better is known.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar.

    Attributes
    ----------
    rule_ : Rule
    classes_ : ndarray of shape (c,)
    guarantee_ : Guarantee
        Of the curator's rows.
    agents_guarantee_ : Guarantee
        Of each agent.
    certificate_ : Certificate
        Estimated error, its upper bound, and whether that meets the target.
    candidates_ : tuple of Round
        Rules that were tested, and what the agents said of them.
    weighed_by_ : (tuple of Rule, float)
        The rules that rows were weighed by at the end, and the rate; see :meth:`row_weights`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    HybridTilt : the default for this problem; needs far fewer rows where the populations differ.

    Notes
    -----
    A person who is both a row of the curator's and an agent pays both guarantees. Without agents
    one round is run on the rows as they are, and nothing is certified. Without private rows the
    model is the one of the public rows, nobody is asked, and epsilon is 0.

    *More than two classes.* All the method knows of a rule is its loss in [0, 1] on a row, and a
    mistake of a joint rule, the largest of c scores, is one. So there is one rule a round, one
    question ("does it err on you?"), and one bit of an agent: no more agents than for two classes,
    and the certificate is about the joint error. The curator's budget is not divided among the
    classes either: a step releases one joint gradient (:class:`GradientLearner`). Its privacy is
    that of two classes word by word: planned and charged for all rounds beforehand; given the
    earlier rules a row's weight is a function of that row and its label alone, and lies in
    [e^{-s}, 1] with s the sum of the rates.

    *What remains at any budget.* The first rule that passes the test is the model, and a learner by
    gradients takes the number of its steps, not the minimum: rules of a few rounds are not the best
    linear one for the agents.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt import Agents, Private
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(20_000, 2)), rng.normal(1.0, 0.5, size=(60_000, 2))
    >>> label = lambda X: np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> model = SubsampleTestReweigh(epsilon=1.0, delta=1e-6, agent_epsilon=1.0,
    ...                              classes=["no", "yes"], target_error=0.15)
    >>> model = model.fit(private=Private(source, label(source)),
    ...                   agents=Agents(target, label(target)))
    >>> model.certificate_.certified, round(model.guarantee_.epsilon, 6)
    (True, 1.0)
    """

    _constraints: ClassVar[ParameterTable] = {
        "learner": [Named({"gradient": GradientLearner, "sgd": SGDLearner}), Instance(Learner)],
        "schedule": [Named({"tight": TightSchedule, "paper": PaperSchedule})],
        "test": [Named({"bits": BitTest, "paper": PaperTest})],
        "unit": [Positive(), Instance(FeatureUnits)],
    }
    _joint: ClassVar[bool] = True
    _method: ClassVar[str] = (
        "the method of Kohen and Sheffet (2022): a rule from the curator's weighted rows, a test "
        "by agents, new weights, until a rule passes"
    )

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        agent_epsilon: float,
        learner: Any = "gradient",
        schedule: Any = "tight",
        test: Any = "bits",
        target_error: float = 0.1,
        features: str = "linear",
        classes: Sequence[Any] | None = None,
        unit: Any = 1.0,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.agent_epsilon = agent_epsilon
        self.learner = learner
        self.schedule = schedule
        self.test = test
        self.target_error = target_error
        self.features = features
        self.classes = classes
        self.unit = unit
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    @classmethod
    def from_theorem(
        cls,
        *,
        alpha: float,
        beta: float,
        chi2: float,
        epsilon: float,
        delta: float,
        dimension: int,
        learner: EstimatorLearner | None = None,
        calibration: str = "tight",
        **options: Any,
    ) -> SubsampleTestReweigh:
        r"""The algorithm with the constants of its theorem: Algorithm 4, or 2 with a learner.

        Density :math:`\alpha / (8 (\chi^2 + 1))`, rate alpha/8, T rounds, N_0 agents in each,
        halted when the mean answer is at most 3 alpha. Algorithm 4 has R steps of descent of noise
        sigma in a ball of radius C (:class:`LinearRule`), the root of the number of coefficients:
        its sizes are those of L = 1 and of that ball's diameter, D = 2C. The logistic loss is below
        LD there. It tests and weighs by the loss over LD, so that agents' answers, ``halt_at``
        and ``target_error`` are alpha's over LD, and alpha is in units of the loss. (The printed
        exponent has alpha/8 for the loss over LD; T, which grows with :math:`(LD)^2`, is what the
        argument asks for at alpha/(8 LD), which "tight" takes.) How many rows and agents it needs
        say :func:`sizes_of_algorithm_4` and :func:`sizes_of_algorithm_2`: millions, mostly.

        Parameters
        ----------
        alpha, beta : float
            Error (for Algorithm 4 logistic loss), and probability of failure.
        chi2 : float
            chi-squared divergence of the target from the source (:class:`Divergences`).
        epsilon, delta : float
            Of the curator's rows, and of the agents.
        dimension : int
            d, of the rows.
        learner : EstimatorLearner, optional
            For Algorithm 2; its delta is replaced by the theorem's.
        calibration : {"tight", "paper"}, default="tight"
            "paper": noise and sizes as printed.
        **options
            Further parameters (``classes``, ``features``, ...); they win.

        Examples
        --------
        >>> model = SubsampleTestReweigh.from_theorem(
        ...     alpha=0.3, beta=0.05, chi2=0.35, epsilon=1.0, delta=1e-6, dimension=2
        ... )
        >>> round(model.schedule.kappa, 4), model.schedule.rounds, round(model.test.halt_at, 6)
        (0.0278, 88234, 0.259808)
        """
        known = {"alpha": alpha, "beta": beta, "chi2": chi2, "epsilon": epsilon, "delta": delta}
        printed = calibration == "paper"
        test = PaperTest if printed else BitTest
        of: Any
        bound, unit, rate = None, 1.0, alpha / 8
        if learner is None:
            width = feature_count(options.get("features", "linear"), dimension) + 1
            bound = unit = 2 * math.sqrt(width)  # LD: gradients of norm 1, the ball's diameter
            sizes = sizes_of_algorithm_4(
                **known,
                dimension=width,
                diameter=bound,
                calibration=cast(Calibration, calibration),
            )
            noise = sizes.noise if printed else None
            of = SGDLearner(steps=sizes.steps, radius=1.0, sigma=noise)
            rate = rate if printed else rate / bound
        else:
            sizes = sizes_of_algorithm_2(
                **known, draws=learner.draws, calibration=cast(Calibration, calibration)
            )
            own = delta / (math.e * math.sqrt(2 * sizes.rounds))
            of = learner.with_params(delta=own)
        return cls(
            **{
                "epsilon": epsilon,
                "delta": delta,
                "agent_epsilon": epsilon,
                "learner": of,
                "schedule": PaperSchedule(sizes.density, rate, sizes.rounds),
                "test": test(sizes.agents_per_round, False, bound, min(3 * alpha / unit, 1 - 1e-9)),
                "target_error": min(4 * alpha / unit, 1 - 1e-9),
                **options,
            }
        )

    def _check_classes(self, count: int) -> None:
        learner: Learner = self._strategy("learner")
        if count > 2 and not learner.joint:
            raise ValueError(
                f"learner: {type(learner).__name__} tells two classes apart, and there are {count}."
                " Use learner='gradient', or an EstimatorLearner."
            )

    def _check(self) -> None:
        learner: Learner = self._strategy("learner")
        if self.noise == "exact" and isinstance(learner, SGDLearner):
            raise ValueError("noise='exact' is too slow for millions of steps; use 'secure'.")
        if isinstance(learner, ParityLearner):
            self._check_parity()

    def _check_parity(self) -> None:
        """Refuse what a rule of one round, of bits and without weights, has no use for."""
        schedule, test = self._strategy("schedule"), self._strategy("test")
        if schedule.rounds != 1:
            raise ValueError("schedule: a parity is learned in one round; set rounds=1.")
        unused = {
            "features": self.features != "linear",
            "kappa": schedule.kappa not in (1, type(schedule).kappa),
            "rate": schedule.rate != type(schedule).rate,
            "agnostic": test.agnostic,
            "loss_bound": test.loss_bound is not None,
            "halt_at": test.halt_at is not None,
        }
        for name in (name for name, there in unused.items() if there):
            raise ValueError(
                f"{name}: a parity is of the bits themselves, without weights, and learned in one "
                "round; leave it as it is."
            )

    def _polled(self, options: dict[str, Any]) -> dict[str, Any]:
        return super()._polled(options) | self._strategy("test").polled(self.delta)

    def _count(self, session: Session) -> None:
        """Leave out rows without a label; none is counted.

        A learner takes the best rule of sums over rows, or descends on rows that are drawn, and a
        row without a label moves neither. Rows are reweighed as if every rule were right on it, so
        that it fades as fast as any.
        """
        session.leave_out_unlabelled()

    def _solve(self, problem: HybridProblem, session: Session | None) -> dict[str, Any]:
        if session is None:
            return self._fitted_attributes(self._public_rule(problem))
        learner: Learner = self._strategy("learner")
        task = LearningTask(session.n_rows, session.n_columns, self._blank(problem))
        agents = problem.agents
        runs = (
            [DensityRun.once()] if agents is None else self._strategy("schedule").runs(task.n_rows)
        )
        mechanisms, deal = plan_rounds(learner, task, runs)
        tests = sum(len(run.densities) for run in runs)
        batch = 0 if agents is None else self._batch(tests, agents.n_left)
        paid = list(zip(runs, deal(session.plan(rounds=mechanisms).rounds), strict=True))
        if agents is None:  # one round, of which nobody is asked
            (only,) = subsample_test_reweigh(
                session, learner, task, paid, lambda rule: _UNTESTED, lambda error: True
            )
            return self._fitted_attributes(only.rule)
        with problem.poll() as poll:
            test: AgentTest = self._strategy("test")
            ask = FreshAgents(poll, batch, _FAILURE / tests, test.question)
            facts = (session, learner, task, paid, ask, self._passes, test.question)
            rounds = subsample_test_reweigh(*facts)
        return self._tested(rounds) | {
            "agents_guarantee_": poll.guarantee,
            "weighed_by_": _weighed_by(rounds, runs),
        }

    def row_weights(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        r"""Weights that the rounds would give to rows: a public function, for a second use.

        :math:`\exp(-\eta \sum_t (1 - L(h^t(x), y)))` over the rules that were not good enough: it
        depends on the row and on released rules alone. So it may weigh rows of the curator in
        another private method (a weight of at most 1, public beforehand), or rows of anybody else,
        and costs nothing; no weight that was computed inside is handed out.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels; one that is no class has the weight of a mistake.
        """
        check_is_fitted(self, "rule_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        labels = np.asarray(y)
        if len(labels) != len(rows):
            raise ValueError(f"y must have a label for each of {len(rows)} rows.")
        numbers = class_numbers(len(self.classes_))
        signs = np.select([labels == each for each in self.classes_], numbers, 0.0)
        rules, rate = getattr(self, "weighed_by_", ((), 0.0))
        test: AgentTest = self._strategy("test")
        lost = sum(
            (1 - test.question(rule).values(rows, signs) for rule in rules), np.zeros(len(rows))
        )
        return np.asarray(np.exp(-rate * lost))

    def _passes(self, error: Estimate) -> bool:
        return bool(self._strategy("test").passes(error, self.target_error))

    def _tested(self, rounds: list[Round]) -> dict[str, Any]:
        best = best_of(rounds)
        bound = self._strategy("test").loss_bound
        about = "mistakes" if bound is None else f"logistic loss, over {bound:.4g}"
        found = AgentsCertificate.of(best.error, 1 - _FAILURE, self.target_error)
        return self._fitted_attributes(best.rule) | {
            "certificate_": replace(found, about=about),
            "candidates_": tuple(rounds),
        }

    def _batch(self, tests: int, left: int) -> int:
        """Agents of one test, if there are enough for all tests."""
        test: AgentTest = self._strategy("test")
        facts = (self.target_error, _FAILURE / tests, self.agent_epsilon, self.delta)
        batch = test.size(*facts)
        if left < tests * batch:
            error = NotEnoughAgents(tests * batch, left)
            error.add_note(f"{tests} tests of {batch} agents each; see schedule and test.")
            raise error
        return batch

    def _doubt(self) -> str:
        if self._strategy("test").agnostic:
            return ""
        found = self.certificate_
        plain = found.about == "mistakes"
        shown = "err on at most" if plain else f"have a {found.about}, of at most"
        return (
            f"no rule was shown to {shown} {found.target:.4g}{' of the agents' * plain} in "
            f"{len(self.candidates_)} rounds; the best one seen {'errs on' if plain else 'has'} at "
            f"most {found.upper:.4g}. If the agents are where the private rows are not, no rule of "
            "this method can be."
        )


def _weighed_by(rounds: list[Round], runs: list[DensityRun]) -> tuple[tuple[Rule, ...], float]:
    """Rules of the last run that rows were weighed by: all but its last one."""
    done = len(rounds)
    for run in runs:
        if done <= len(run.densities):
            break
        done -= len(run.densities)
    return tuple(each.rule for each in rounds[len(rounds) - done : -1]), run.rate
