"""The scikit-learn face of Subsample-Test-Reweigh."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpadapt._checks import aligned_private, session_options
from dpadapt._progress import row_progress
from dpadapt.privacy import Guarantee, Private
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.agents import NotEnoughAgents, Poll
from dpadapt.privacy.replies import Estimate, estimate

from ._classifier import RuleClassifier, check_agents
from .certificate import Certificate, NotCertified
from .gradient_learner import GradientLearner
from .learners import Learner, Task
from .questions import Mistake
from .rules import FEATURES, Rule
from .sample_sizes import Calibration, agents_for_test
from .sgd_learner import SGDLearner
from .subsample_test_reweigh import Round, Schedule, best_of, plan_rounds, subsample_test_reweigh

__all__ = ["SubsampleTestReweigh"]

_FAILURE = 0.05  # probability that a certificate is wrong
_MOST_DOUBLINGS = 6


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
        "gradient": the whole weighted gradient, some dozen times a round; "sgd": the paper's
        Algorithm 3, one drawn row a step. Or an object such as :class:`EstimatorLearner`.
    kappa : float or "doubling", default=0.05
        Least density of the weights: no row weighs more than 1 / (kappa n). "doubling" tries
        1/2, 1/4, ... one after another, with the budget divided among them in advance.
    rate : float, default=1.0
        eta of the reweighing. The theorem's alpha / 8 takes some thousand rounds. For "sgd", whose
        noise is that of the least density, 0.2 and 10 rounds are better.
    rounds : int, default=5
        T at most. The budget is divided among all of them, also if fewer are needed.
    target_error : float, default=0.1
        A rule passes when its error is below, with 95% confidence over all rounds.
    batch : int, optional
        N_0, agents of one test. By default as many as tell the error up to a quarter of the target.
    calibration : {"tight", "paper"}, default="tight"
        "tight": density max(kappa, e^{-eta (t-1)}) in round t, and randomised bits. "paper":
        density kappa from the first round on, and answers with Gaussian noise.
    agnostic : bool, default=False
        Run all rounds, and return the best rule by the agents' answers: where no rule is near
        perfect and none can be asked for.
    features : {"linear", "squares", "quadratic"}, default="linear"
        Of the rules: x, its squares, or both with all products.
    classes : sequence of two labels, optional
        Needed where there are no public labels.
    unit : float, default=1.0
        Order of magnitude of the columns (public), where nothing better is known.
    centre, scale : array of shape (k,), optional
        Public location and scale of the features: the agents' own moments, say. By default those
        of public rows, else from ``unit``.
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
    classes_ : ndarray of shape (2,)
    guarantee_ : Guarantee
        Of the curator's rows.
    agents_guarantee_ : Guarantee
        Of each agent.
    certificate_ : Certificate
        Estimated error, its upper bound, and whether that meets the target.
    candidates_ : tuple of Round
        Rules that were tested, and what the agents said of them.
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

    Examples
    --------
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

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        agent_epsilon: float,
        learner: Any = "gradient",
        kappa: float | str = 0.05,
        rate: float = 1.0,
        rounds: int = 5,
        target_error: float = 0.1,
        batch: int | None = None,
        calibration: str = "tight",
        agnostic: bool = False,
        features: str = "linear",
        classes: Sequence[Any] | None = None,
        unit: float = 1.0,
        centre: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.agent_epsilon = agent_epsilon
        self.learner = learner
        self.kappa = kappa
        self.rate = rate
        self.rounds = rounds
        self.target_error = target_error
        self.batch = batch
        self.calibration = calibration
        self.agnostic = agnostic
        self.features = features
        self.classes = classes
        self.unit = unit
        self.centre = centre
        self.scale = scale
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        private: Any = None,
        agents: Any = None,
    ) -> Self:
        """Fit to a curator's private rows and to agents.

        Parameters
        ----------
        X : array-like of shape (m, d), optional
            Public rows; they set the units of the features.
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
        options = session_options(self)
        learner = self._check()
        rows, labels, classes = self._public(X, y, private)
        sample = aligned_private(self, private, labelled=True)
        blank = self._blank(rows, classes)
        found: dict[str, Any]
        if sample is None:
            found = {
                "rule_": self._public_rule(rows, np.searchsorted(classes, labels), blank),
                "guarantee_": Guarantee(),
                "agents_guarantee_": Guarantee(),
                "certificate_": Certificate.none(self.target_error),
                "candidates_": (),
            }
        else:
            task = Task(sample.n_rows, sample.n_columns, blank)
            found = self._private(options, learner, task, sample.encode(classes), agents)
        # only now: a fit that was refused must not put its guarantee beside an earlier model
        self.classes_ = classes
        for name, value in found.items():
            setattr(self, name, value)
        return self

    def _private(
        self, options: dict[str, Any], learner: Learner, task: Task, sample: Private, agents: Any
    ) -> dict[str, Any]:
        schedules = [Schedule.once()] if agents is None else self._schedules(task.n_rows)
        requests, deal = plan_rounds(learner, task, schedules)
        tests = sum(len(schedule.densities) for schedule in schedules)
        batch = self._batch(tests)
        if agents is not None:
            self._check_agents(agents, tests, batch)
        with (
            row_progress("private rows", self.verbose) as progress,
            sample.open(**options, label=type(self).__name__, progress=progress) as session,
        ):
            runs = deal(session.plan(*requests))
            if agents is None:
                rounds, answered = self._once(session, runs, learner, task, schedules), Guarantee()
            else:
                with agents.open(**self._poll_options(options)) as poll:
                    ask = _Test(poll, batch, _FAILURE / tests)
                    rounds = self._search(session, runs, learner, task, schedules, ask)
                answered = poll.guarantee
        best = best_of(rounds)
        certificate = Certificate.of(best.error, 1 - _FAILURE, self.target_error)
        if agents is None:
            certificate = Certificate.none(self.target_error)
        elif not (certificate.certified or self.agnostic):
            _warn_not_certified(certificate, len(rounds))
        return {
            "rule_": best.rule,
            "guarantee_": session.guarantee,
            "agents_guarantee_": answered,
            "certificate_": certificate,
            "candidates_": tuple(rounds) if agents is not None else (),
        }

    def _search(
        self,
        session: Any,
        runs: Any,
        learner: Learner,
        task: Task,
        schedules: Sequence[Schedule],
        ask: _Test,
    ) -> list[Round]:
        """Rounds until a rule passes; of all schedules, one after another."""
        seen: list[Round] = []
        for schedule, grants in zip(schedules, runs, strict=True):
            for each in subsample_test_reweigh(session, grants, learner, task, schedule, ask):
                seen.append(each)
                if not self.agnostic and each.error.high <= self.target_error:
                    return seen
        return seen

    def _once(
        self, session: Any, runs: Any, learner: Learner, task: Task, schedules: Sequence[Schedule]
    ) -> list[Round]:
        """One round, of which nobody is asked."""
        untested = Estimate(math.nan, 0.0, 1.0, 0)
        (schedule,), (grants,) = schedules, runs
        test = lambda rule: untested  # noqa: E731
        return list(subsample_test_reweigh(session, grants, learner, task, schedule, test))

    # public facts

    def _check(self) -> Learner:
        """Check what no other function checks, before anything is spent."""
        validate.positive("agent_epsilon", self.agent_epsilon)
        validate.positive("rate", self.rate)
        validate.count("rounds", self.rounds)
        validate.fraction("target_error", self.target_error)
        validate.choice("calibration", self.calibration, ("tight", "paper"))
        validate.choice("features", self.features, FEATURES)
        validate.positive("unit", self.unit)
        if self.batch is not None:
            validate.count("batch", self.batch)
        if isinstance(self.kappa, str):
            validate.choice("kappa", self.kappa, ("doubling",))
        elif not validate.positive("kappa", self.kappa) <= 1:
            raise ValueError(f"kappa must be at most 1; got {self.kappa!r}.")
        if isinstance(self.learner, str):
            validate.choice("learner", self.learner, ("gradient", "sgd"))
        if self.noise == "exact" and (
            self.learner == "sgd" or isinstance(self.learner, SGDLearner)
        ):
            raise ValueError("noise='exact' is too slow for millions of steps; use 'secure'.")
        if isinstance(self.learner, str):
            return GradientLearner() if self.learner == "gradient" else SGDLearner()
        if not (hasattr(self.learner, "requests") and hasattr(self.learner, "learn")):
            raise TypeError(
                "learner must be 'gradient', 'sgd', or an object with the methods requests and "
                f"learn; got {type(self.learner).__name__}."
            )
        learner: Learner = self.learner
        return learner

    def _schedules(self, n_rows: int) -> list[Schedule]:
        """One run, or one for each density that doubling tries."""
        make = Schedule.tight if self.calibration == "tight" else Schedule.paper
        densities = [self.kappa]
        if isinstance(self.kappa, str):
            # below the last density of the schedule, a smaller kappa changes nothing
            steps = self.rate * (self.rounds - 1) / math.log(2)
            useful = math.ceil(steps) if self.calibration == "tight" else _MOST_DOUBLINGS
            most = min(_MOST_DOUBLINGS, max(1, useful), max(1, int(math.log2(n_rows))))
            densities = [2.0**-j for j in range(1, most + 1)]
        if min(map(float, densities)) * n_rows < 1:
            raise ValueError(
                f"kappa: {min(map(float, densities)):.6g} of {n_rows} rows is less than one row; "
                f"give at least 1 / {n_rows}, or more rows."
            )
        return [make(float(density), self.rate, self.rounds) for density in densities]

    def _batch(self, tests: int) -> int:
        if self.batch is not None:
            return self.batch
        calibration: Calibration = "paper" if self.calibration == "paper" else "tight"
        # one side of the interval is enough, hence twice the probability
        facts = (self.target_error / 4, 2 * _FAILURE / tests, self.agent_epsilon, self.delta)
        return agents_for_test(*facts, calibration)

    def _check_agents(self, agents: Any, tests: int, batch: int) -> None:
        check_agents(agents)
        self._same_columns(agents)
        if agents.n_left < tests * batch:
            error = NotEnoughAgents(tests * batch, agents.n_left)
            error.add_note(f"{tests} tests of {batch} agents each; see rounds, batch, kappa.")
            raise error

    def _poll_options(self, options: dict[str, Any]) -> dict[str, Any]:
        own = super()._poll_options(options)
        if self.calibration == "paper":
            own |= {"response": "paper-gaussian", "delta": self.delta}
        return own


class _Test:
    """What fresh agents say of a rule's error."""

    def __init__(self, poll: Poll, batch: int, beta: float) -> None:
        self._poll, self._batch, self._beta = poll, batch, beta

    def __call__(self, rule: Rule) -> Estimate:
        # one side of the interval is enough for an upper bound
        return estimate(self._poll.ask(Mistake(rule), self._batch), 2 * self._beta)


def _warn_not_certified(certificate: Certificate, rounds: int) -> None:
    warnings.warn(
        f"no rule was shown to err on at most {certificate.target:.4g} of the agents in {rounds} "
        f"rounds; the best one seen errs on at most {certificate.upper:.4g}. If the agents are "
        "where the private rows are not, no rule of this method can be.",
        NotCertified,
        stacklevel=4,
    )
