"""What the solvers are given, in which units, what they give back, and what a report says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt import _validate as validate
from dpadapt._lazy import named
from dpadapt._types import FloatArray
from dpadapt.base import Problem
from dpadapt.learning.certificate import SummedBound
from dpadapt.learning.checks import public_scaling
from dpadapt.learning.story import (
    RADII,
    Fact,
    Story,
    certificate_facts,
    class_facts,
    number,
    percent,
)
from dpadapt.privacy import Cleaning, Session, shrink_factors

from .moments import MomentCourse
from .plan import Course

_SPREAD = 1000.0  # columns whose standard deviations differ by more are in units of their own
_PLAIN = 100.0  # a common unit within this factor of 1 stays: penalties are made for such units
_FAR = 1e6  # in largest public norms, or spreads of labels: only so that nothing overflows
_QUANTILE = 0.99  # of public norms: the radius of networks, and of the paper's solvers
_CERTIFICATION = "dpadapt.papers.reweighting._problems.Certification"


@dataclass(frozen=True, eq=False)
class Units:
    """A public affine map of the columns, and the map of coefficients back.

    Attributes
    ----------
    center, scale : ndarray of shape (d,)
    label_range : (float, float) or None
        Where labels are mapped to [-1, 1] (the paper's solvers), else None.
    """

    center: FloatArray
    scale: FloatArray
    label_range: tuple[float, float] | None = None

    def rows(self, X: FloatArray) -> FloatArray:
        """Rows in these units."""
        return np.asarray((X - self.center) / self.scale)

    def labels(self, y: FloatArray) -> FloatArray:
        """Labels in [-1, 1]."""
        middle, half = self._label_units()
        return np.clip((y - middle) / half, -1.0, 1.0)

    def linear(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes (d, k) and constants (k,) for plain rows, from (d + 1, k) in these units."""
        slopes = coefficients[:-1] / self.scale[:, None]
        constants = coefficients[-1] - self.center @ slopes
        middle, half = self._label_units()
        return half * slopes, half * constants + middle

    def inverse(self, slopes: FloatArray, constants: FloatArray) -> FloatArray:
        """Coefficients (d + 1, k) in these units, from those for plain rows."""
        middle, half = self._label_units()
        inner = slopes * self.scale[:, None] / half
        return np.vstack([inner, (constants + self.center @ slopes - middle) / half])

    def _label_units(self) -> tuple[float, float]:
        if self.label_range is None:
            return 0.0, 1.0
        low, high = self.label_range
        return low / 2 + high / 2, (high / 2 - low / 2) or 1.0


def descent_units(X: FloatArray, label_range: tuple[float, float] | None = None) -> Units:
    """Columns as they are if they are comparable (but for one common unit), else standardised.

    Standardised columns would make a rare category as large as a common one, and the last of
    many principal components as large as the first; but columns in units of their own (an age, an
    income) are not comparable as they are.
    """
    center, scale = public_scaling(X)
    varying = scale[np.ptp(X, axis=0) > 1e-12 * np.abs(center)]
    if not varying.size or varying.max() > _SPREAD * varying.min():
        return Units(center, scale, label_range)
    common = float(np.median(varying))
    unit = 1.0 if 1 / _PLAIN < common < _PLAIN else common
    return Units(center, np.full_like(scale, unit), label_range)


def standard_units(X: FloatArray, label_range: tuple[float, float] | None = None) -> Units:
    """Standardised columns, and labels of [-1, 1]."""
    return Units(*public_scaling(X), label_range)


def descent_cleaning(units: Units, X: FloatArray, **labels: Any) -> Cleaning:
    """Private rows for a descent, which bounds them itself: only what overflows is cut."""
    largest = float(np.linalg.norm(units.rows(X), axis=1).max())
    return Cleaning(_FAR * max(largest, 1.0), units.center, units.scale, 1.0, **labels)


def bounded_sample(
    units: Units, X: FloatArray, radius: float | None, **labels: Any
) -> tuple[FloatArray, Cleaning]:
    """Public rows shrunk to the radius, with a constant of 1, and the same for private rows."""
    rows = units.rows(X)
    norms = np.linalg.norm(rows, axis=1)
    if radius is None:
        radius = float(np.quantile(norms, _QUANTILE)) or 1.0
    bound = validate.positive("radius", radius)
    shrunk = rows * shrink_factors(norms, bound)[:, None]
    cleaning = Cleaning(bound, units.center, units.scale, 1.0, **labels)
    return np.column_stack([shrunk, np.ones(len(rows))]), cleaning


def wide_labels(y: FloatArray) -> tuple[float, float]:
    """A range of labels that excludes nothing but overflow, around the public mean."""
    center, scale = public_scaling(y[:, None])
    middle, spread = float(center[0]), float(scale[0])
    if np.ptp(y) <= 1e-12 * abs(middle):
        spread = max(1.0, abs(middle))
    reach = min(_FAR * spread, 1e300)
    return max(middle - reach, -1e300), min(middle + reach, 1e300)


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

    slopes: FloatArray
    constants: FloatArray
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


def reweighting_story(estimator: Any, model: str) -> Story:
    """Tell how a model came about: ``model`` says what it is."""
    classes = class_facts(estimator)
    if not estimator.guarantee_.events:
        summary = f"A {model} on the public rows; there was no private sample to adapt it to."
        return Story(summary, classes, assumption="")
    facts = (*_chosen(estimator), *certificate_facts(estimator))
    radius = RADII["quantile" if estimator.radius is None else "given"]
    if estimator.course_ is None:
        solver = estimator._strategy("solver").told
        summary = f"A {model}, fitted to public and private rows by {solver}."
        return Story(summary, (*classes, *facts), radius=radius)
    summary = f"The {model} of the public rows, moved downhill on the loss of the private ones. "
    if isinstance(estimator.course_, MomentCourse):
        summary = f"The {model} of the public rows, plus a shift from one noisy moment matrix. "
    moved = _moved(estimator.course_, float(estimator.share_))
    return Story(
        summary + _kept(float(estimator.share_)),
        (*classes, *moved, *facts),
        radius=radius,
        radii={"radius (clipped gradient)": RADII["far"]},
    )


def _kept(share: float) -> str:
    if share == 0:
        return (
            "Nothing of the move was kept, since noise alone would have made one as large: the "
            "model is the one of public data alone."
        )
    if share < 1:
        return f"{percent(share)} of the move was kept: as much as is more than noise."
    return "All of the move was kept."


def _moved(course: Course | MomentCourse, share: float) -> tuple[Fact, ...]:
    """Lines on the descent, or on the moment."""
    kept = Fact("kept of the move", percent(share), "0 % is the model of the public rows")
    if isinstance(course, MomentCourse):
        return (
            kept,
            Fact("row length", number(course.length), "bound, in public root mean squares"),
            Fact("residual", number(course.clip), "bound on one row's error; public"),
        )
    found = (
        kept,
        Fact(
            "how far to go", number(course.horizon), "farther learns more, and takes in more noise"
        ),
        Fact("steps", number(course.steps), "noisy gradients that were released"),
        Fact("clip", number(course.clip), "bound on the length of one row's gradient; public"),
    )
    if course.level_share == 0:
        return found
    meaning = f"for the mean error alone, each row's bounded by {number(course.level_clip)}"
    return (*found, Fact("level", f"{percent(course.level_share)} of the squared budget", meaning))


def _chosen(estimator: Any) -> tuple[Fact, ...]:
    """The line on an alpha and a kappa that were chosen with privacy."""
    chosen = getattr(estimator, "chosen_", None)
    if chosen is None:
        return ()
    told = f"alpha {number(chosen.alpha)}, kappa {number(chosen.kappa)}"
    return (Fact("chosen", told, "from values given beforehand, by private rows, and charged for"),)
