"""Solvers "gradient", "profiled" and "statistics" behind the estimator for regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt.privacy import Cleaning, Grant, Request, Session
from dpadapt.privacy import _validate as validate

from ._units import Array, Units
from .certificate import Certificate, Certifier
from .choice import (
    Candidate,
    bound_score,
    candidate_grid,
    choose_by_random_stopping,
    choose_by_score,
    choose_on_holdout,
)
from .convex import ConvexAdaptation
from .labelled_discrepancy import LabelledDiscrepancy
from .profiled import Profiled
from .statistics import Statistics

DEFAULT_ALPHA = {"gradient": 0.5, "profiled": 0.0, "statistics": 0.3, "known-noise": 0.5}
SELECTIONS = {"statistics": ("holdout", "certificate"), "profiled": ("random-stopping",)}
_STEPS = {"gradient": 100, "profiled": 40}
_KAPPA = {"gradient": 0.05, "profiled": 1.0, "statistics": 1.0}
_ALPHAS, _KAPPAS = (0.05, 0.5, 0.9), (0.25, 1.0, 100.0)  # grids, where none is given
_CERTIFICATE_SHARE = 0.1  # of the squared noise budget


@dataclass(frozen=True, eq=False)
class PaperSample:
    """Public rows with a constant, labels of [-1, 1], and how private rows get that form."""

    units: Units
    rows: Array
    labels: Array
    cleaning: Cleaning

    def norm_bound(self, given: float | None) -> float:
        """Lambda: the caller's, or twice the norm of the public ridge."""
        if given is not None:
            return float(given)
        moment = self.rows.T @ self.rows / len(self.rows) + 1e-3 * np.eye(self.rows.shape[1])
        public = np.linalg.solve(moment, self.rows.T @ self.labels / len(self.rows))
        return max(2 * float(np.linalg.norm(public)), 1e-3)


@dataclass(frozen=True, eq=False)
class Certification:
    """The certificate's part of a plan: asks with the solver, releases after it."""

    certifier: Certifier
    requests: tuple[Request, ...]

    @classmethod
    def of(
        cls,
        session: Session,
        sample: PaperSample,
        asked: Sequence[Request],
        *,
        alpha: float,
        norm_bound: float,
    ) -> Certification:
        """A tenth of the squared budget, whatever the solver asked for."""
        target = LabelledDiscrepancy(sample.rows, sample.labels, norm_bound, sample.cleaning)
        certifier = Certifier(target, alpha)
        spent = sum(request.count * request.weight**2 for request in asked) or 1.0
        odds = _CERTIFICATE_SHARE / (1 - _CERTIFICATE_SHARE)
        weight = math.sqrt(spent * odds / (2 if alpha > 0 else 1))
        return cls(certifier, tuple(certifier.requests(session, weight=weight)))

    def release(
        self, session: Session, grants: Sequence[Grant], coefficients: Array
    ) -> Certificate | None:
        """None for coefficients beyond the norm bound (which were released: that is public)."""
        if np.linalg.norm(coefficients) > self.certifier.target.norm_bound:
            return None
        return self.certifier.release(session, grants, coefficients)


def solve(
    estimator: Any, session: Session, sample: PaperSample
) -> tuple[Array, Certificate | None]:
    """One run of the estimator's solver, and the certificate if it is asked for."""
    name = estimator.solver
    alpha = DEFAULT_ALPHA[name] if estimator.alpha is None else float(estimator.alpha)
    kappa = _KAPPA[name] if estimator.kappa is None else float(estimator.kappa)
    bound = sample.norm_bound(estimator.norm_bound)
    solver: Any
    if name == "gradient":
        paper = estimator.calibration == "paper"
        solver = ConvexAdaptation(
            sample.rows,
            sample.labels,
            alpha=alpha,
            kappa=(kappa, 0.0, 0.0),
            norm_bound=bound,
            steps=_STEPS[name] if estimator.steps is None else estimator.steps,
            start="zero" if paper else "public",
            calibration=estimator.calibration,
        )
        how = sample.cleaning
        asked = solver.requests(session, how)
    elif name == "profiled":
        solver = _profiled(estimator, sample, alpha, kappa)
        how = solver.prepared(sample.cleaning)
        asked = list(solver.requests(session, how))
    else:
        solver = Statistics(sample.rows, sample.labels, shift_bound=estimator.norm_bound)
        how = solver.hide(session, sample.cleaning)
        asked = [how.request()]
    certification = None
    if estimator.certificate:
        certification = Certification.of(session, sample, asked, alpha=alpha, norm_bound=bound)
    extra = () if certification is None else certification.requests
    grants = session.plan(*asked, *extra) if asked or extra else ()
    own = grants[: len(asked)]
    if name == "gradient":
        w = solver.release(session, own, how).coefficients
    elif name == "profiled":
        w = solver.release(session, own, how)
    else:
        moment = solver.release(session, own[0], how)
        w = solver.solve(moment, alpha=alpha, kappa=kappa * solver.public_model.residual**2)
    if certification is None:
        return w, None
    return w, certification.release(session, grants[len(asked) :], w)


def select(
    estimator: Any, session: Session, sample: PaperSample, seed: int | None
) -> tuple[Array, Candidate]:
    """Coefficients with alpha and kappa chosen privately, within the session's budget."""
    alphas, kappas = _grid(estimator.alpha, _ALPHAS), _grid(estimator.kappa, _KAPPAS)
    if estimator.solver == "profiled":
        solvers = [_profiled(estimator, sample, a, k) for a in alphas for k in kappas]
        seed = seed if estimator.noise == "seeded" else None  # else the operating system's
        place, w = choose_by_random_stopping(session, sample.cleaning, solvers, random_state=seed)
        return w, Candidate(solvers[place].alpha, solvers[place].public_kappa)
    solver = Statistics(sample.rows, sample.labels, shift_bound=estimator.norm_bound)
    candidates = candidate_grid(solver, alphas, kappas)
    if estimator.selection == "holdout":
        choice = choose_on_holdout(session, sample.cleaning, solver, candidates)
    else:
        moment = solver.fit(session, sample.cleaning)
        score = bound_score(moment, solver, session.n_rows)
        choice = choose_by_score(moment, solver, candidates, score)
    return choice.coefficients, choice.candidate


def _profiled(estimator: Any, sample: PaperSample, alpha: float, kappa: float) -> Profiled:
    plain = Profiled(sample.rows, sample.labels)
    return Profiled(
        sample.rows,
        sample.labels,
        alpha=alpha,
        kappa=validate.positive("kappa", kappa) * plain.residual**2,
        norm_bound=estimator.norm_bound,
        steps=_STEPS["profiled"] if estimator.steps is None else estimator.steps,
    )


def _grid(given: Any, default: tuple[float, ...]) -> tuple[float, ...]:
    if given is None:
        return default
    return tuple(float(each) for each in np.atleast_1d(np.asarray(given, dtype=np.float64)))
