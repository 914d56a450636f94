"""The scikit-learn face of the hybrid tilt."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpadapt._checks import aligned_private, public_scaling, session_options
from dpadapt._linear import class_labels
from dpadapt._progress import row_progress
from dpadapt.privacy import Guarantee, Private
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.agents import Agents, NotEnoughAgents

from ._classifier import RuleClassifier, check_agents, two_classes
from .certificate import Certificate, NotCertified
from .rules import FEATURES, LinearRule
from .tilt import Columns, agents_alone, curator_alone, hybrid_tilt, tilt_requests
from .tilt_plan import AgentShares, agents_required
from .tilt_trials import FAILURE, Candidate, Outcome

__all__ = ["HybridTilt"]


class HybridTilt(RuleClassifier):
    r"""Learn for people who trust nobody, from a curator's rows of another population.

    The default for the hybrid model (paper 003). Agents' randomised bits tell where the target
    population lies; the curator's rows, weighted by the capped ratio of the two densities, train a
    linear rule in features of the target's scale; fresh agents say whether that or the plain rule
    is better, the better one is trained on, or if both are bad, rows are reweighed; agents'
    gradients refine it, and still others choose and certify. Every agent answers once.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of the curator's rows. No default: it is a decision.
    agent_epsilon : float
        Of the one message of an agent (pure, local).
    features : {"linear", "squares", "quadratic"}, default="linear"
        Of the rules: x, its squares, or both with all products.
    classes : sequence of two labels, optional
        Needed where there are no public labels.
    unit : float, default=1.0
        Order of magnitude of the columns (public), if there are no public rows: columns are looked
        for from 2^-10 to 2^6 units around 0. 0/1 columns want 1; measure the others accordingly.
    target_error : float, default=0.1
        What the certificate is held against. The fit does not depend on it.
    noise : {"secure", "seeded", "exact"}, default="secure"
    random_state : int, RandomState or None, default=None
        The seed, for ``noise="seeded"`` only.
    ledger : Account, optional
        The durable budget to charge before anything is released.
    verbose : int, default=0
        Above 0, a progress bar.

    Attributes
    ----------
    rule_ : LinearRule
    classes_ : ndarray of shape (2,)
    guarantee_ : Guarantee
        Of the curator's rows.
    agents_guarantee_ : Guarantee
        Of each agent.
    certificate_ : Certificate
        Estimated error, its upper bound, and whether that meets the target.
    candidates_ : tuple of Candidate
        Rules that agents were asked about, and what they said.
    cap_ : Cap
        Of the weights: the largest, and the part of the target that it leaves. Only with both
        private rows and agents.
    overlap_ : bool
        False if the agents are where there are hardly any private rows. Only with both.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    SubsampleTestReweigh : the paper's own method.

    Notes
    -----
    A person who is both a row of the curator's and an agent pays both guarantees. Public rows set
    the units of the columns; without private rows and agents the model is theirs, and epsilon is 0.
    Without agents the rule is the curator's alone, and nothing is certified. Without private rows
    agents alone give scale, gradients and certificate; they need many times more.

    The ratio of the densities is that of two normal laws, with correlations if there are 16 columns
    or fewer. Columns that are clearly not normal (0 and 1, few values, an atom, long tails) have
    their released histograms instead, tilted, and no correlations. Where the populations are of
    another kind the weights are only roughly right; what agents say of the result is right all the
    same.

    Examples
    --------
    >>> from dpadapt import Agents, Private
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(20_000, 2)), rng.normal(1, 0.5, size=(200_000, 2))
    >>> label = lambda X: np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> model = HybridTilt(epsilon=1.0, delta=1e-6, agent_epsilon=1.0, classes=["no", "yes"])
    >>> model = model.fit(private=Private(source, label(source)),
    ...                   agents=Agents(target, label(target)))
    >>> model.certificate_.certified, round(model.guarantee_.epsilon, 6)
    (True, 1.0)
    """

    centre = scale = None  # features are scaled by what is released

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        agent_epsilon: float,
        features: str = "linear",
        classes: Sequence[Any] | None = None,
        unit: float = 1.0,
        target_error: float = 0.1,
        noise: str = "secure",
        random_state: Any = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.agent_epsilon = agent_epsilon
        self.features = features
        self.classes = classes
        self.unit = unit
        self.target_error = target_error
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
            Public rows; they set the units of the columns.
        y : array-like of shape (m,), optional
            Public labels.
        private : Private, optional
            The curator's rows with their labels.
        agents : Agents, optional
            People of the target population, with labels. All that are left are asked.

        Returns
        -------
        estimator
            Itself, fitted.
        """
        options = session_options(self)
        validate.positive("agent_epsilon", self.agent_epsilon)
        validate.choice("features", self.features, FEATURES)
        validate.positive("unit", self.unit)
        validate.fraction("target_error", self.target_error)
        if agents is not None:
            check_agents(agents)
        if X is None and y is None and private is None and agents is not None:
            rows, labels, classes = self._of_agents(agents)
        else:
            rows, labels, classes = self._public(X, y, private)
        sample = aligned_private(self, private, labelled=True)
        if agents is not None:
            self._check_enough(agents)
        columns = self._columns(rows, classes)
        public = None
        if len(rows):
            public = self._public_rule(
                rows, np.searchsorted(classes, labels), self._blank(rows, classes)
            )

        found: dict[str, Any] = {"guarantee_": Guarantee(), "agents_guarantee_": Guarantee()}
        if sample is not None:
            found |= self._private(options, columns, sample.encode(classes), agents)
        elif agents is not None:
            with agents.open(**self._poll_options(options)) as poll:
                shares = AgentShares.of(agents.n_left, agents.n_columns)
                outcome = agents_alone(poll, shares, columns, public)
            found |= {"outcome": outcome, "agents_guarantee_": poll.guarantee}
        elif public is None:
            raise ValueError("X: give public rows, or private ones that are not empty, or agents.")
        self._keep(classes, public, found)
        return self

    def _private(
        self, options: dict[str, Any], columns: Columns, sample: Private, agents: Any
    ) -> dict[str, Any]:
        with (
            row_progress("private rows", self.verbose) as progress,
            sample.open(**options, label=type(self).__name__, progress=progress) as session,
        ):
            requests = tilt_requests(session, columns, agents=agents is not None)
            grants = session.plan(*requests)
            if agents is None:
                rule = curator_alone(session, grants, columns)
                return {"rule_": rule, "guarantee_": session.guarantee}
            with agents.open(**self._poll_options(options)) as poll:
                shares = AgentShares.of(agents.n_left, agents.n_columns)
                outcome = hybrid_tilt(session, grants, poll, shares, columns)
        return {
            "outcome": outcome,
            "cap_": outcome.cap,
            "overlap_": outcome.overlap,
            "guarantee_": session.guarantee,
            "agents_guarantee_": poll.guarantee,
        }

    def _keep(self, classes: Any, public: LinearRule | None, found: dict[str, Any]) -> None:
        """Set what was fitted: only now, a refused fit must not mix with an earlier one."""
        certificate = Certificate.none(self.target_error)
        seen: tuple[Candidate, ...] = ()
        outcome: Outcome | None = found.pop("outcome", None)
        if outcome is not None:
            certificate = Certificate.of(outcome.best.error, 1 - FAILURE, self.target_error)
            seen = outcome.candidates
            found["rule_"] = outcome.best.rule
            if not certificate.certified:
                _warn_not_certified(certificate, outcome)
        for name in ("cap_", "overlap_"):
            self.__dict__.pop(name, None)
        self.classes_, self.certificate_, self.candidates_ = classes, certificate, seen
        self.rule_ = found.pop("rule_", public)
        for name, value in found.items():
            setattr(self, name, value)

    # public facts

    def _columns(self, rows: Any, classes: Any) -> Columns:
        width = rows.shape[1]
        origin, unit = np.zeros(width), np.full(width, float(self.unit))
        if len(rows):
            origin, unit = public_scaling(rows)
        return Columns(self.features, tuple(classes), origin, unit)

    def _of_agents(self, agents: Agents) -> tuple[Any, Any, Any]:
        """No rows, and the classes, where there are agents only."""
        if self.classes is None:
            raise ValueError("classes: without public labels the two classes must be given.")
        self.n_features_in_ = agents.n_columns
        self.__dict__.pop("feature_names_in_", None)
        classes = two_classes(class_labels(np.unique(np.asarray(self.classes)), None))
        return np.zeros((0, agents.n_columns)), classes[:0], classes

    def _check_enough(self, agents: Agents) -> None:
        self._same_columns(agents)
        needed = agents_required(agents.n_columns, self.agent_epsilon)
        if agents.n_left < needed:
            error = NotEnoughAgents(needed, agents.n_left)
            error.add_note("With fewer, the scale of the target's columns would be a guess.")
            raise error


def _warn_not_certified(certificate: Certificate, outcome: Outcome) -> None:
    about = "nobody answered" if certificate.error is None else f"about {certificate.error:.4g}"
    text = (
        f"no rule was shown to err on at most {certificate.target:.4g} of the agents; for the best "
        f"one they say {about}, at most {certificate.upper:.4g}."
    )
    if not outcome.overlap:
        text += (
            " The agents are where there are hardly any private rows: these cannot teach much "
            "about them, and the rule rests on the agents' own answers."
        )
    warnings.warn(text, NotCertified, stacklevel=4)
