"""HybridTilt: the scikit-learn face of the hybrid tilt (:mod:`.tilt.algorithm`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dpadapt.learning.checks import public_scaling
from dpadapt.learning.linear import class_labels
from dpadapt.privacy import Session
from dpadapt.privacy.local import NotEnoughAgents

from ._classifier import AgentsCertificate, HybridProblem, RuleClassifier
from .tilt.algorithm import Columns, agents_alone, curator_alone, hybrid_tilt, tilt_mechanisms
from .tilt.plan import AgentShares, agents_required
from .tilt.trials import FAILURE


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
    same. This bias remains at any budget. Leave out columns that are constant among the curator's
    rows: the larger the budget, the smaller the scale that is found for them, and agents who have
    another value there are then infinitely far away.

    Examples
    --------
    >>> from dpadapt import Agents, Private
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(10_000, 2)), rng.normal(1, 0.5, size=(100_000, 2))
    >>> label = lambda X: np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> model = HybridTilt(epsilon=1.0, delta=1e-6, agent_epsilon=2.0, classes=["no", "yes"])
    >>> model = model.fit(private=Private(source, label(source)),
    ...                   agents=Agents(target, label(target)))
    >>> model.certificate_.certified, round(model.guarantee_.epsilon, 6)
    (True, 1.0)
    """

    _method: ClassVar[str] = (
        "noisy descent on the curator's rows, weighted to look like the agents, and by the agents' "
        "own gradients"
    )

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

    def _public(self, X: Any, y: Any, private: Any, agents: Any) -> tuple[Any, Any, Any]:
        if agents is None or not (X is None and y is None and private is None):
            return super()._public(X, y, private, agents)
        if self.classes is None:
            raise ValueError("classes: without public labels the two classes must be given.")
        self.n_features_in_ = agents.n_columns
        classes = class_labels(np.unique(np.asarray(self.classes)), None)
        return np.zeros((0, agents.n_columns)), classes[:0], classes

    def _read(self, X: Any, y: Any, private: Any, *, agents: Any = None) -> HybridProblem:
        problem = super()._read(X, y, private, agents=agents)
        if agents is not None:
            needed = agents_required(agents.n_columns, self.agent_epsilon)
            if agents.n_left < needed:
                error = NotEnoughAgents(needed, agents.n_left)
                error.add_note("With fewer, the scale of the target's columns would be a guess.")
                raise error
        return problem

    def _solve(self, problem: HybridProblem, session: Session | None) -> dict[str, Any]:
        columns, agents = self._columns(problem), problem.agents
        grants: Any = None
        if session is not None:
            planned = tilt_mechanisms(session, columns, agents=agents is not None)
            grants = session.plan(**planned)
        if agents is None:
            if session is not None:
                return self._fitted_attributes(curator_alone(session, grants, columns))
            return self._fitted_attributes(self._public_rule(problem))
        shares = AgentShares.of(agents.n_left, agents.n_columns)
        with problem.poll() as poll:
            if session is None:
                start = self._public_rule(problem) if len(problem.X) else None
                outcome = agents_alone(poll, shares, columns, start)
            else:
                outcome = hybrid_tilt(session, grants, poll, shares, columns)
        found = self._fitted_attributes(outcome.best.rule) | {
            "agents_guarantee_": poll.guarantee,
            "certificate_": AgentsCertificate.of(
                outcome.best.error, 1 - FAILURE, self.target_error
            ),
            "candidates_": outcome.candidates,
        }
        both = {"cap_": outcome.cap, "overlap_": outcome.overlap}
        return found | (both if session is not None else {})

    def _columns(self, problem: HybridProblem) -> Columns:
        width = problem.X.shape[1]
        origin, unit = np.zeros(width), np.full(width, float(self.unit))
        if len(problem.X):
            origin, unit = public_scaling(problem.X)
        return Columns(self.features, tuple(problem.names), origin, unit)

    def _doubt(self) -> str:
        found = self.certificate_
        about = "nobody answered" if found.error is None else f"about {found.error:.4g}"
        text = (
            f"no rule was shown to err on at most {found.target:.4g} of the agents; for the best "
            f"one they say {about}, at most {found.upper:.4g}."
        )
        if not getattr(self, "overlap_", True):
            text += (
                " The agents are where there are hardly any private rows: these cannot teach much "
                "about them, and the rule rests on the agents' own answers."
            )
        return text
