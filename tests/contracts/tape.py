"""What a fit asks of the noise sources, written down and played again."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpadapt.privacy import Session, mechanisms
from dpadapt.privacy.noise import NoiseSource

TAPPED = ("add_gaussian", "add_laplace", "noisy_argmin", "laplace_argmin", "uniform")


@dataclass(frozen=True)
class Draw:
    """One question to a noise source: the un-noised value, and the answer that was released."""

    mechanism: str
    value: np.ndarray
    scale: float
    answer: Any


@contextmanager
def taped(replay: Sequence[Draw] | None = None) -> Iterator[list[Draw]]:
    """Write down every draw of noise; with ``replay`` answer as on that tape.

    Every class of noise source is tapped, whoever made the source.
    """
    tape: list[Draw] = []

    def tapped(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def ask(source: Any, value: Any, *rest: Any) -> Any:
            scale = 1 / rest[-1] if name == "randomised_response" else (*rest, 0.0)[0]
            answer = original(source, value, *rest)
            if replay is not None:
                assert len(tape) < len(replay), "private values change the number of releases"
                then = replay[len(tape)]
                same = then.mechanism == name and np.shape(then.answer) == np.shape(answer)
                assert same, "private values change the kind or shape of a release"
                answer = copy.deepcopy(then.answer)
            known = np.array(value, dtype=float, copy=True)
            tape.append(Draw(name, known, float(scale), copy.deepcopy(answer)))
            return answer

        return ask

    def inside(original: Callable[..., Any]) -> Callable[..., Any]:
        """Noise that is never released: of its own scale, and added to 0."""

        @functools.wraps(original)
        def ask(session: Any, grant: Any, hidden: Any, function: Any, size: int, label: str) -> Any:
            then = None
            if replay is not None:
                assert len(tape) < len(replay), "private values change the number of releases"
                then = replay[len(tape)]
                assert (then.mechanism, np.shape(then.answer)) == ("add_gaussian", (size,))

            def given(value: Any, noise: Any) -> Any:
                noise = noise if then is None else copy.deepcopy(then.answer)
                tape.append(Draw("add_gaussian", np.zeros(size), grant.scale, noise.copy()))
                return function(value, noise)

            return original(session, grant, hidden, given, size, label)

        return ask

    with pytest.MonkeyPatch.context() as patch:
        for source in _subclasses(NoiseSource):
            for name in TAPPED:
                if name in vars(source) and not getattr(
                    vars(source)[name], "__isabstractmethod__", 0
                ):
                    patch.setattr(source, name, tapped(name, vars(source)[name]))
        patch.setattr(Session, "derive_with_noise", inside(Session.derive_with_noise))
        patch.setattr(
            mechanisms,
            "randomised_response",
            tapped("randomised_response", mechanisms.randomised_response),
        )
        yield tape


def _subclasses(cls: type) -> set[type]:
    return {cls}.union(*(_subclasses(sub) for sub in cls.__subclasses__()))


@dataclass(frozen=True)
class Planned:
    """What an event announces to the noise sources."""

    mechanism: str
    scale: float
    sensitivity: float
    count: float


def planned(events: Iterable[Any]) -> Iterator[Planned]:
    """Releases that events stand for; a kind that is not known is refused."""
    calls = {
        "gaussian": "add_gaussian",
        "discrete-gaussian": "add_gaussian",
        "laplace": "add_laplace",
        "bounded-range": "noisy_argmin",
    }
    for event in events:
        if event.kind in calls:
            yield Planned(calls[event.kind], event.scale, event.sensitivity, event.count)
        elif event.kind == "pure":
            yield Planned("randomised_response", 1 / event.epsilon, math.inf, event.count)
        elif event.kind == "poisson-gaussian":
            move = event.clip * (2 if event.relation == "replace-one" else 1)
            yield Planned("add_gaussian", event.scale, move, event.count)
        elif event.kind == "parallel":
            for branch in event.branches:
                yield from planned(branch)
        elif event.kind == "random-stopping":
            for part in planned(event.base):
                yield Planned(part.mechanism, part.scale, part.sensitivity, math.inf)
        else:
            raise AssertionError(f"the contract does not know events of kind {event.kind!r}")


def releases(tape: Iterable[Draw]) -> list[Draw]:
    """Draws that open a hidden value (``uniform`` alone opens none)."""
    return [draw for draw in tape if draw.mechanism != "uniform"]


def paid_by(draw: Draw, events: Iterable[Any]) -> list[Planned]:
    """Events with the mechanism and the scale of a draw."""
    return [
        plan
        for plan in planned(events)
        if plan.mechanism == draw.mechanism and math.isclose(plan.scale, draw.scale, rel_tol=1e-12)
    ]


def distance(mechanism: str, one: np.ndarray, two: np.ndarray) -> float:
    """How far two values are, in the norm of the mechanism's sensitivity."""
    difference = (one - two).ravel()
    if mechanism == "add_gaussian":
        return float(np.linalg.norm(difference))
    if mechanism == "add_laplace":
        return float(np.abs(difference).sum())
    return float(np.ptp(difference)) if difference.size else 0.0
