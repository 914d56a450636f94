"""What a fitted reweighting model tells a report."""

from __future__ import annotations

from typing import Any

from dpadapt.learning.story import (
    RADII,
    Fact,
    Story,
    certificate_facts,
    class_facts,
    number,
    percent,
)

from .known_noise_course import Course
from .known_noise_moments import MomentCourse


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
