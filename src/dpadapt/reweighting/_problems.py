"""What the solvers of both estimators are given, and what they give back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpadapt.base import Problem
from dpadapt.privacy import Cleaning, Mechanism, Session

from ._units import Array, Units, paper_sample, paper_units
from .certificate import Certifier, ReweightingCertificate
from .choice import Candidate
from .known_noise_course import Course
from .known_noise_moments import MomentCourse
from .released_discrepancy import LabelledDiscrepancy

__all__ = [
    "Certification",
    "ClassificationProblem",
    "LinearModel",
    "PaperSample",
    "RegressionProblem",
]

_CERTIFICATE_SHARE = 0.1  # of the squared noise budget


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Coefficients for plain rows, and how they were found.

    Parameters
    ----------
    slopes : ndarray of shape (d, k)
    constants : ndarray of shape (k,)
    share : float
        How much of a descent from the public model was kept: 0 is the public model.
    course : Course or MomentCourse, optional
    chosen : Candidate, optional
    certificate : Certificate, optional
    """

    slopes: Array
    constants: Array
    share: float = 1.0
    course: Course | MomentCourse | None = None
    chosen: Candidate | None = None
    certificate: ReweightingCertificate | None = None


@dataclass(frozen=True, eq=False)
class PaperSample:
    """Public rows as the paper has them: with a constant, bounded; and private ones likewise."""

    units: Units
    rows: Array
    labels: Any
    cleaning: Cleaning

    def linear(self, coefficients: Array, **facts: Any) -> LinearModel:
        """The model of coefficients (d + 1, k) in these units."""
        return LinearModel(*self.units.linear(coefficients), **facts)


@dataclass(frozen=True, eq=False)
class RegressionProblem(Problem):
    """Public rows and labels, and what was set for them.

    Parameters
    ----------
    label_range : (float, float), optional
    radius, norm_bound : float, optional
        For the paper's solvers, and for the certificate.
    certificate : bool
    people : int, optional
        Independent draws that the private rows are, for the certificate.
    seed : int, optional
        Of the draws of random stopping, which are otherwise the operating system's.
    """

    label_range: tuple[float, float] | None = None
    radius: float | None = None
    norm_bound: float | None = None
    certificate: bool = False
    people: int | None = None
    seed: int | None = None

    @cached_property
    def paper(self) -> PaperSample:
        """Standardised rows, labels of [-1, 1]."""
        reach = self.label_range or (float(self.labels.min()), float(self.labels.max()))
        units = paper_units(self.X, reach)
        rows, cleaning = paper_sample(
            units, self.X, self.radius, label_range=reach, unit_labels=True
        )
        return PaperSample(units, rows, units.labels(self.labels), cleaning)

    @cached_property
    def coefficient_bound(self) -> float:
        """Lambda: the caller's, or twice the norm of the public ridge."""
        if self.norm_bound is not None:
            return float(self.norm_bound)
        rows, labels = self.paper.rows, self.paper.labels
        moment = rows.T @ rows / len(rows) + 1e-3 * np.eye(rows.shape[1])
        public = np.linalg.solve(moment, rows.T @ labels / len(rows))
        return max(2 * float(np.linalg.norm(public)), 1e-3)

    def solved(
        self,
        session: Session,
        mechanisms: Mapping[str, Mechanism],
        alpha: float,
        release: Callable[[Any], Array],
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
        certification = Certification.of(self, session, mechanisms, alpha)
        planned = {**mechanisms, **certification.mechanisms}
        grants = session.plan(**planned) if planned else SimpleNamespace()
        w = release(grants)
        certificate = certification.release(session, grants, w)
        return self.paper.linear(w[:, None], certificate=certificate)


@dataclass(frozen=True, eq=False)
class ClassificationProblem(Problem):
    """Public rows and codes of their classes, and what was set for them.

    Parameters
    ----------
    radius : float, optional
        For the paper's solvers, and for a network.
    seed : int
        Of public draws.
    """

    radius: float | None = None
    seed: int = 0

    @property
    def classes(self) -> int:
        """K."""
        return len(self.names)

    @cached_property
    def paper(self) -> PaperSample:
        """Standardised rows."""
        units = paper_units(self.X, None)
        rows, cleaning = paper_sample(units, self.X, self.radius, classes=self.classes)
        return PaperSample(units, rows, self.labels, cleaning)


@dataclass(frozen=True, eq=False)
class Certification:
    """The certificate's part of a plan; nothing, where none is asked for."""

    certifier: Certifier | None = None
    mechanisms: Mapping[str, Mechanism] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        problem: RegressionProblem,
        session: Session,
        mechanisms: Mapping[str, Any],
        alpha: float,
    ) -> Certification:
        """A tenth of the squared budget, whatever the solver takes by its mechanisms."""
        if not problem.certificate:
            return cls()
        sample, bound = problem.paper, problem.coefficient_bound
        target = LabelledDiscrepancy(sample.rows, sample.labels, bound, sample.cleaning)
        certifier = Certifier(target, alpha, problem.people)
        spent = sum(each.count * each.weight**2 for each in mechanisms.values()) or 1.0
        odds = _CERTIFICATE_SHARE / (1 - _CERTIFICATE_SHARE)
        weight = math.sqrt(spent * odds / (3 if alpha > 0 else 2))
        return cls(certifier, certifier.mechanisms(session, weight=weight))

    def release(
        self, session: Session, grants: Any, coefficients: Array
    ) -> ReweightingCertificate | None:
        """None for coefficients beyond the norm bound (which were released: that is public)."""
        if self.certifier is None:
            return None
        if np.linalg.norm(coefficients) > self.certifier.target.norm_bound:
            return None
        return self.certifier.release(session, grants, coefficients)
