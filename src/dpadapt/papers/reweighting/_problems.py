"""Problems of both estimators as the paper has them, and the certificate's part of a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Mechanism, Session
from dpadapt.reweighting.problem import (
    ClassificationProblem,
    LinearModel,
    RegressionProblem,
    Units,
    bounded_sample,
    standard_units,
)

from .certificate import Certifier, ReweightingCertificate
from .released_discrepancy import LabelledDiscrepancy

_CERTIFICATE_SHARE = 0.1  # of the squared noise budget


@dataclass(frozen=True, eq=False)
class PaperSample:
    """Public rows as the paper has them: with a constant, bounded; and private ones likewise."""

    units: Units
    rows: FloatArray
    labels: Any
    cleaning: Cleaning

    def linear(self, coefficients: FloatArray, **facts: Any) -> LinearModel:
        """The model of coefficients (d + 1, k) in these units."""
        return LinearModel(*self.units.linear(coefficients), **facts)


@dataclass(frozen=True, eq=False)
class PaperRegression:
    """A regression with standardised rows, labels of [-1, 1] and coefficients of a ball."""

    given: RegressionProblem

    @cached_property
    def sample(self) -> PaperSample:
        """Standardised rows, labels of [-1, 1]."""
        given = self.given
        reach = given.label_range or (float(given.labels.min()), float(given.labels.max()))
        units = standard_units(given.X, reach)
        rows, cleaning = bounded_sample(
            units, given.X, given.radius, label_range=reach, unit_labels=True
        )
        return PaperSample(units, rows, units.labels(given.labels), cleaning)

    @cached_property
    def coefficient_bound(self) -> float:
        """Lambda: the caller's, or twice the norm of the public ridge."""
        if self.given.norm_bound is not None:
            return float(self.given.norm_bound)
        rows, labels = self.sample.rows, self.sample.labels
        moment = rows.T @ rows / len(rows) + 1e-3 * np.eye(rows.shape[1])
        public = np.linalg.solve(moment, rows.T @ labels / len(rows))
        return max(2 * float(np.linalg.norm(public)), 1e-3)

    def solved(
        self,
        session: Session,
        mechanisms: Mapping[str, Mechanism],
        alpha: float,
        release: Callable[[Any], FloatArray],
    ) -> LinearModel:
        """Plan a solver's mechanisms, with the certificate if it is asked for; release both.

        Parameters
        ----------
        session : Session
        mechanisms : mapping
            Of the solver, by name.
        alpha : float
        release : callable
            From grants to coefficients in the paper's units.
        """
        certification, planned = None, dict(mechanisms)
        if self.given.certificate:
            certification = Certification.beside(self, session, mechanisms, alpha)
            planned |= certification.mechanisms
        grants = session.plan(**planned) if planned else SimpleNamespace()
        w = release(grants)
        certificate = certification and certification.at(session, grants, w)
        return self.sample.linear(w[:, None], certificate=certificate)


def classification_sample(problem: ClassificationProblem) -> PaperSample:
    """Standardised rows, and codes of their classes."""
    units = standard_units(problem.X)
    rows, cleaning = bounded_sample(units, problem.X, problem.radius, classes=problem.classes)
    return PaperSample(units, rows, problem.labels, cleaning)


@dataclass(frozen=True, eq=False)
class Certification:
    """The certificate's part of a plan."""

    units: Units
    certifier: Certifier
    mechanisms: Mapping[str, Mechanism]

    @classmethod
    def of(
        cls,
        problem: RegressionProblem,
        session: Session,
        mechanisms: Mapping[str, Any],
        alpha: float,
    ) -> Certification:
        """A tenth of the squared budget, whatever the solver takes by its mechanisms."""
        return cls.beside(PaperRegression(problem), session, mechanisms, alpha)

    @classmethod
    def beside(
        cls,
        problem: PaperRegression,
        session: Session,
        mechanisms: Mapping[str, Any],
        alpha: float,
    ) -> Certification:
        """The same, of a problem as the paper has it."""
        sample, bound = problem.sample, problem.coefficient_bound
        target = LabelledDiscrepancy(sample.rows, sample.labels, bound, sample.cleaning)
        certifier = Certifier(target, alpha, problem.given.people)
        spent = sum(each.count * each.weight**2 for each in mechanisms.values()) or 1.0
        odds = _CERTIFICATE_SHARE / (1 - _CERTIFICATE_SHARE)
        weight = math.sqrt(spent * odds / (3 if alpha > 0 else 2))
        return cls(sample.units, certifier, certifier.mechanisms(session, weight=weight))

    def release(
        self, session: Session, grants: Any, slopes: FloatArray, constants: FloatArray
    ) -> ReweightingCertificate | None:
        """Of a model for plain rows."""
        return self.at(session, grants, self.units.inverse(slopes, constants)[:, 0])

    def at(
        self, session: Session, grants: Any, coefficients: FloatArray
    ) -> ReweightingCertificate | None:
        """None for coefficients beyond the norm bound (which were released: that is public)."""
        if np.linalg.norm(coefficients) > self.certifier.target.norm_bound:
            return None
        return self.certifier.release(session, grants, coefficients)
