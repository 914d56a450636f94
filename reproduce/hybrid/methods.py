"""The methods that paper 003's private experiments compare, with names for tables and pictures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.hybrid import (
    Agents,
    BitTest,
    HybridTilt,
    NotCertified,
    PaperSchedule,
    PaperTest,
    SubsampleTestReweigh,
    TightSchedule,
)
from dpadapt.privacy import Private

from .data import Setting, draw_setting

__all__ = ["METHODS", "Draw", "Outcome", "common_arguments", "run_method"]

Array = NDArray[np.float64]

OURS = "HybridTilt (dpadapt)"
SCHEDULE = "Subsample-Test-Reweigh, density schedule"
FIXED = "Subsample-Test-Reweigh, κ from the start"
CURATOR = "curator alone"
AGENTS = "agents alone"
OPEN = "no privacy, rows of T"
CLASSES = (-1, 1)
_OPEN_ROWS, _TEST = 30_000, 50_000


@dataclass(frozen=True)
class Draw:
    """One draw of rows and agents, and the budgets.

    Parameters
    ----------
    setting : str
    seed : int
        Of the rows, of the noise, and of which columns matter.
    n, agents : int
        Rows of the curator; people.
    epsilon, agent_epsilon, delta : float
    alpha, rounds, rate : float, int, float
        Of Subsample-Test-Reweigh: kappa is alpha / (8 (chi^2 + 1)); T at most; by default its own.

    Examples
    --------
    >>> Draw("EASY", 0, 1_000, 5_000, 0.5, 0.5).rows("source", 3)[0].shape
    (3, 8)
    """

    setting: str
    seed: int
    n: int
    agents: int
    epsilon: float
    agent_epsilon: float
    delta: float = 1e-4
    alpha: float = 0.05
    rounds: int = 5
    rate: float = 1.0

    @property
    def known(self) -> Setting:
        """Its populations."""
        return draw_setting(self.setting, self.seed)

    def rows(self, which: str, count: int) -> tuple[Array, Array]:
        """Rows of the source, of the target, or of the target for a test."""
        stream = ("source", "target", "test").index(which)
        rng = np.random.default_rng([self.seed, stream, self.n])
        known = self.known.population
        X, y = (known.source if which == "source" else known.target)(count, rng)
        return X, y


@dataclass(frozen=True)
class Outcome:
    """What a method found on one draw.

    Parameters
    ----------
    error : float
        On fresh rows of the target.
    rounds : int
        Rules that agents tested.
    path : tuple of float
        Errors of these rules on the same fresh rows, one after another.
    epsilon : float
        What the curator's rows really paid.
    certified : bool
    candidates : mapping of str to float
        Errors of the rules that HybridTilt compared, by name.

    Examples
    --------
    >>> Outcome(0.1).certified
    False
    """

    error: float
    rounds: int = 1
    path: tuple[float, ...] = ()
    epsilon: float = 0.0
    certified: bool = False
    candidates: Mapping[str, float] = field(default_factory=dict)


def run_method(method: str, draw: Draw) -> Outcome:
    """Fit one of :data:`METHODS` and measure it on fresh rows of the target.

    Examples
    --------
    >>> run_method(OPEN, Draw("EASY", 0, 1_000, 5_000, 0.5, 0.5)).error < 0.05
    True
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)  # what came out is measured here
        return METHODS[method](draw, *draw.rows("test", _TEST))


def common_arguments(draw: Draw) -> dict[str, Any]:
    """Return what both estimators are given.

    Examples
    --------
    >>> common_arguments(Draw("HARD", 0, 1_000, 5_000, 2.0, 1.0))["features"]
    'squares'
    """
    return {
        "epsilon": draw.epsilon,
        "delta": draw.delta,
        "agent_epsilon": draw.agent_epsilon,
        "target_error": draw.known.level,
        "features": draw.known.features,
        "unit": draw.known.unit,
        "classes": CLASSES,
        "noise": "seeded",
        "random_state": draw.seed,
    }


def _reweigh(draw: Draw, X: Array, y: Array, *, schedule: Any, test: Any) -> Outcome:
    kappa = draw.alpha / (8 * (draw.known.population.chi2 + 1))
    model = SubsampleTestReweigh(
        **common_arguments(draw),
        schedule=schedule(kappa=kappa, rate=draw.rate, rounds=draw.rounds),
        test=test(batch=draw.agents // draw.rounds),
    )
    agents = Agents(*draw.rows("target", draw.agents))
    model.fit(private=Private(*draw.rows("source", draw.n)), agents=agents)
    path = tuple(float(np.mean(each.rule.predict_sign(X) != y)) for each in model.candidates_)
    return _measured(model, X, y, len(path), path)


def _tilt(draw: Draw, X: Array, y: Array, *, curator: bool = True, asked: bool = True) -> Outcome:
    model = HybridTilt(**common_arguments(draw)).fit(
        private=Private(*draw.rows("source", draw.n)) if curator else None,
        agents=Agents(*draw.rows("target", draw.agents)) if asked else None,
    )
    errors = {
        each.name: float(np.mean(each.rule.predict_sign(X) != y)) for each in model.candidates_
    }
    return replace(_measured(model, X, y, 1, ()), candidates=errors)


def _measured(model: Any, X: Array, y: Array, rounds: int, path: tuple[float, ...]) -> Outcome:
    error = float(np.mean(model.predict(X) != y))
    certified = bool(model.certificate_.certified)
    return Outcome(error, max(rounds, 1), path, float(model.guarantee_.epsilon), certified)


def _open(draw: Draw, X: Array, y: Array) -> Outcome:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    shape = np.square if draw.known.features == "squares" else None
    line = make_pipeline(
        FunctionTransformer(shape), StandardScaler(), LogisticRegression(C=1e3, max_iter=1000)
    )
    line.fit(*draw.rows("target", _OPEN_ROWS))
    return Outcome(float(np.mean(line.predict(X) != y)))


METHODS: Mapping[str, Callable[[Draw, Array, Array], Outcome]] = {
    OURS: _tilt,
    SCHEDULE: partial(_reweigh, schedule=TightSchedule, test=BitTest),
    FIXED: partial(_reweigh, schedule=PaperSchedule, test=PaperTest),
    CURATOR: partial(_tilt, asked=False),
    AGENTS: partial(_tilt, curator=False),
    OPEN: _open,
}
