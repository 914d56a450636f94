"""What the solvers of both estimators are given, and what they give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpadapt._certificate import SummedBound
from dpadapt._lazy import named
from dpadapt.base import Problem
from dpadapt.privacy import Session

from ._units import Array
from .known_noise_course import Course
from .known_noise_moments import MomentCourse

__all__ = ["ClassificationProblem", "LinearModel", "RegressionProblem"]

_CERTIFICATION = "dpadapt.papers.reweighting._problems.Certification"


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
        By a paper's solver: its alpha and kappa.
    certificate : ReweightingCertificate, optional
    """

    slopes: Array
    constants: Array
    share: float = 1.0
    course: Course | MomentCourse | None = None
    chosen: Any = None
    certificate: SummedBound | None = None


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

    def certification(
        self, session: Session, mechanisms: Mapping[str, Any], alpha: float
    ) -> Any | None:
        """The certificate's part of a plan beside a solver's mechanisms; None if not asked for."""
        if not self.certificate:
            return None
        return named(_CERTIFICATION).of(self, session, mechanisms, alpha)


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
