"""The paper's own solvers behind one call: public rows, a private sample and a choice go in.

Each opens one session, plans everything it will release, and returns what came out with the
guarantee. "moments" is not here: its one release is :mod:`.moments`, and all else is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpadapt.privacy import Cleaning, Guarantee, Private, Request, SecondMoment
from dpadapt.privacy import _validate as validate

from .certificate import NoisyDiscrepancy, discrepancy_request, release_discrepancy
from .frank_wolfe import FrankWolfe
from .mirror_descent import MirrorDescent
from .parameters import (
    PublicFacts,
    frank_wolfe_parameters,
    mirror_descent_parameters,
    norm_power,
    single_stage_parameters,
)
from .single_stage import AdaptationObjective, SingleStage
from .smoothing import Array, PNorm, Smoothing, Softmax

__all__ = ["Choice", "weigh"]


@dataclass(frozen=True)
class Choice:
    """What the user has chosen; None stands for a choice from public facts.

    Attributes are those of :class:`dpadapt.DiscrepancyRegressor` of the same names.

    Examples
    --------
    >>> Choice(solver="frank-wolfe", steps=100).calibration
    'tight'
    """

    solver: str
    calibration: str = "tight"
    smoothing: str = "softmax"
    mu: float | None = None
    steps: int | None = None
    step_size: float | None = None
    penalty: float = 0.0
    norm_bound: float = 1.0
    geometry: str = "entropy"
    noise_on: str = "matrix"
    iterate: str = "last"
    certificate: bool = False

    def __post_init__(self) -> None:
        validate.choice("solver", self.solver, tuple(_SOLVERS))
        validate.choice("smoothing", self.smoothing, ("softmax", "p-norm"))
        for name in ("mu", "step_size"):
            if getattr(self, name) is not None:
                validate.positive(name, getattr(self, name))
        if self.steps is not None:
            validate.count("steps", self.steps)
        if self.certificate and self.calibration == "paper":
            raise ValueError(
                "certificate needs a release of its own, for which the printed constants leave no "
                "budget; take calibration='tight'."
            )
        if self.mu is not None and self.smoothing != "softmax":
            raise ValueError(
                "mu is the sharpness of smoothing='softmax'; leave it out for 'p-norm'."
            )

    def smooth(self, d: int) -> Smoothing | None:
        """The smoothing that was chosen; None leaves its sharpness open."""
        if self.smoothing == "p-norm":
            return PNorm(norm_power(d))
        return None if self.mu is None else Softmax(self.mu)


class Weighed(NamedTuple):
    """Weights of the public rows, coefficients where the solver has its own, and the cost.

    ``discrepancy`` is that of the weights, released with noise, where a certificate was asked for.
    """

    weights: Array
    coefficients: Array | None
    guarantee: Guarantee
    discrepancy: NoisyDiscrepancy | None


def weigh(
    choice: Choice,
    rows: Array,
    labels: Array,
    private: Private,
    cleaning: Cleaning,
    session: dict[str, Any],
) -> Weighed:
    """Run one of the paper's solvers on a private sample.

    Parameters
    ----------
    choice : Choice
    rows : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    labels : ndarray of shape (m,)
        Public labels, centered; only the single stage reads them.
    private : Private
    cleaning : Cleaning
        How private rows are scaled and bounded.
    session : dict
        Arguments of :meth:`dpadapt.Private.open`.

    Examples
    --------
    >>> import numpy as np
    >>> private = Private([[1.0, 0.0]] * 9000 + [[0.0, 1.0]] * 1000)
    >>> budget = {"epsilon": 1.0, "delta": 1e-6}
    >>> found = weigh(
    ...     Choice("frank-wolfe"), np.eye(2), np.zeros(2), private, Cleaning(radius=1.0), budget
    ... )
    >>> bool(found.weights[0] > 0.6), found.guarantee.epsilon <= 1.0
    (True, True)
    """
    query = SecondMoment(cleaning)
    facts = PublicFacts(
        rows, query, private.n_rows, session["epsilon"], session["delta"], choice.calibration
    )
    return _SOLVERS[choice.solver](choice, facts, labels, private, session)


def _frank_wolfe(
    choice: Choice, facts: PublicFacts, labels: Array, private: Private, session: dict[str, Any]
) -> Weighed:
    tuned = frank_wolfe_parameters(
        facts, smoothing=choice.smooth(facts.X.shape[1]), steps=choice.steps
    )
    algorithm = FrankWolfe(facts.X, tuned.smoothing, tuned.steps, choice.penalty)
    return _run(algorithm, choice, facts, private, session)


def _mirror_descent(
    choice: Choice, facts: PublicFacts, labels: Array, private: Private, session: dict[str, Any]
) -> Weighed:
    tuned = mirror_descent_parameters(
        facts,
        smoothing=choice.smooth(facts.X.shape[1]),
        steps=choice.steps,
        step_size=choice.step_size,
        penalty=choice.penalty,
        geometry=choice.geometry,
        noise_on=choice.noise_on,
    )
    # the average of all iterates is what the paper returns; that of the last half is better
    average = "all" if choice.calibration == "paper" else "half"
    algorithm = MirrorDescent(
        facts.X,
        tuned.smoothing,
        tuned.steps,
        tuned.step_size,
        penalty=choice.penalty,
        geometry=choice.geometry,
        noise_on=choice.noise_on,
        average=average,
    )
    return _run(algorithm, choice, facts, private, session)


def _run(
    algorithm: FrankWolfe | MirrorDescent,
    choice: Choice,
    facts: PublicFacts,
    private: Private,
    session: dict[str, Any],
) -> Weighed:
    with private.open(**session) as opened:
        request = algorithm.request(opened, facts.query, calibration=choice.calibration)
        grant, *paid = opened.plan(request, *_certificate_request(choice, facts, request))
        moment = opened.hide(facts.query)
        weights = algorithm.release(opened, grant, moment)
        noisy = [release_discrepancy(opened, each, moment, facts.X, weights) for each in paid]
    return Weighed(weights, None, opened.guarantee, noisy[0] if noisy else None)


def _certificate_request(
    choice: Choice, facts: PublicFacts, request: Request
) -> tuple[Request, ...]:
    """Ask for the discrepancy with a tenth of the budget (in zCDP), if a certificate is wanted.

    K selections of weight 1 cost K/8 and K Gaussian releases K/2, one Gaussian of weight w w^2/2.
    """
    if not choice.certificate:
        return ()
    steps = request.count / (4 if request.mechanism == "noisy-argmin" else 1)
    weight = math.sqrt(steps) / 3
    return (discrepancy_request(facts.query, facts.n_rows, weight, rows=facts.X),)


def _single_stage(
    choice: Choice, facts: PublicFacts, labels: Array, private: Private, session: dict[str, Any]
) -> Weighed:
    tuned = single_stage_parameters(
        facts,
        labels,
        radius=choice.norm_bound,
        smoothing=choice.smooth(facts.X.shape[1]),
        steps=choice.steps,
        step_size=choice.step_size,
    )
    objective = AdaptationObjective(facts.X, labels, tuned.smoothing, radius=choice.norm_bound)
    algorithm = SingleStage(objective, tuned.steps, tuned.step_size, output=choice.iterate)
    with private.open(**session) as opened:
        requests = algorithm.requests(opened, facts.query, calibration=choice.calibration)
        extra = _certificate_request(choice, facts, requests[0])
        grants = opened.plan(*requests, *extra)
        moment = opened.hide(facts.query)
        rng = np.random.default_rng(session.get("random_state"))  # draws an iterate, no noise
        weights, slopes = algorithm.release(opened, grants[: len(requests)], moment, rng=rng)
        paid = grants[len(requests) :]
        noisy = [release_discrepancy(opened, each, moment, facts.X, weights) for each in paid]
    return Weighed(weights, slopes, opened.guarantee, noisy[0] if noisy else None)


_Solver = Callable[[Choice, PublicFacts, Array, Private, dict[str, Any]], Weighed]
_SOLVERS: dict[str, _Solver] = {
    "frank-wolfe": _frank_wolfe,
    "mirror-descent": _mirror_descent,
    "single-stage": _single_stage,
}
