"""What a fit asks of the noise sources, written down and played again; ledgers that watch it."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from dpadapt import BudgetExceeded
from dpadapt.privacy.core.mechanism import Noise
from dpadapt.privacy.core.noise import NoiseSource
from dpadapt.privacy.core.session import Session
from dpadapt.privacy.mechanisms import randomised_response as responses
from dpadapt.privacy.mechanisms.gaussian import GaussianInside
from dpadapt.privacy.mechanisms.purse import PURSE_ROUNDING, GaussianPurse

TAPPED = ("add_gaussian", "add_laplace", "noisy_argmin", "laplace_argmin", "uniform")


@dataclass(frozen=True)
class Draw:
    """One question to a noise source: the un-noised value, and the answer that was released."""

    mechanism: str
    value: np.ndarray
    scale: float
    answer: Any
    unit: float = 1.0  # times its noise is as large as that of its event: of a purse, the
    # sensitivity for which it was made; elsewhere, all rows over those with a label, about
    share: float = 1.0  # the part of a purse that it cost


@contextmanager
def taped(replay: Sequence[Draw] | None = None) -> Iterator[list[Draw]]:
    """Write down every draw of noise; with ``replay`` answer as on that tape.

    Every class of noise source is tapped, whoever made the source.
    """
    tape: list[Draw] = []
    wrong: list[AssertionError] = []  # a session withholds what is raised where noise is drawn

    need = functools.partial(_need, wrong)
    purses = [(1.0, 1.0)]  # unit and share of what is released now

    def tapped(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def ask(source: Any, value: Any, *rest: Any) -> Any:
            scale = 1 / rest[-1] if name == "randomised_response" else (*rest, 0.0)[0]
            answer = original(source, value, *rest)
            if replay is not None:
                need(len(tape) < len(replay), "private values change the number of releases")
                then = replay[len(tape)]
                same = then.mechanism == name and np.shape(then.answer) == np.shape(answer)
                need(same, "private values change the kind or shape of a release")
                answer = copy.deepcopy(then.answer)
            known = np.array(value, dtype=float, copy=True)
            tape.append(Draw(name, known, float(scale), copy.deepcopy(answer), *purses[-1]))
            return answer

        return ask

    def inside(original: Callable[..., Any]) -> Callable[..., Any]:
        """Noise that is never released: of its own scale, and added to 0."""

        @functools.wraps(original)
        def ask(self: Any, hidden: Any, scale: float, source: Any, *, function: Any) -> Any:
            then, size = None, self.dimension
            if replay is not None:
                need(len(tape) < len(replay), "private values change the number of releases")
                then = replay[len(tape)]
                same = (then.mechanism, np.shape(then.answer)) == ("add_gaussian", (size,))
                need(same, "private values change the kind or shape of a release")

            def given(value: Any, noise: Any) -> Any:
                noise = noise if then is None else copy.deepcopy(then.answer)
                tape.append(Draw("add_gaussian", np.zeros(size), scale, noise.copy(), *purses[-1]))
                return function(value, noise)

            return original(self, hidden, scale, source, function=given)

        return ask

    with ExitStack() as stack:

        def put(owner: Any, name: str, ask: Callable[..., Any]) -> None:
            stack.enter_context(mock.patch.object(owner, name, ask))

        for source in _subclasses(NoiseSource):
            for name in TAPPED:
                if name in vars(source) and not getattr(
                    vars(source)[name], "__isabstractmethod__", 0
                ):
                    put(source, name, tapped(name, vars(source)[name]))
        put(GaussianInside, "release", inside(GaussianInside.release))
        put(GaussianPurse, "release", _of_purse(GaussianPurse.release, purses))
        grown: list[tuple[Noise, float]] = []
        put(Noise, "enlarged", _of_noise(Noise.enlarged, grown))
        put(Session, "release", _of_session(Session.release, grown, purses))
        response = tapped("randomised_response", responses.randomised_response)
        put(responses, "randomised_response", response)
        with _raise_first(wrong):
            yield tape


def _of_noise(original: Callable[..., Any], grown: list[tuple[Noise, float]]) -> Any:
    @functools.wraps(original)
    def ask(self: Any, times: float) -> Any:
        larger = original(self, times)
        grown.append((larger, times))
        return larger

    return ask


def _of_session(
    original: Callable[..., Any],
    grown: list[tuple[Noise, float]],
    purses: list[tuple[float, float]],
) -> Any:
    @functools.wraps(original)
    def ask(self: Any, grant: Any, hidden: Any, **public: Any) -> Any:
        own = (times for each, times in grown if each is grant.mechanism)
        purses.append((next(own, 1.0), 1.0))
        try:
            return original(self, grant, hidden, **public)
        finally:
            purses.pop()

    return ask


def _of_purse(original: Callable[..., Any], purses: list[tuple[float, float]]) -> Any:
    @functools.wraps(original)
    def ask(self: Any, hidden: Any, scale: float, source: Any, **public: Any) -> Any:
        purses.append((hidden.sensitivity * (1 + PURSE_ROUNDING), float(public["share"])))
        try:
            return original(self, hidden, scale, source, **public)
        finally:
            purses.pop()

    return ask


def _need(wrong: list[AssertionError], truth: bool, words: str) -> None:
    if not truth:
        wrong.append(AssertionError(words))
        raise wrong[-1]


@contextmanager
def _raise_first(wrong: list[AssertionError]) -> Iterator[None]:
    try:
        yield
    except Exception:
        if wrong:
            raise wrong[0] from None
        raise


def _subclasses(cls: type) -> set[type]:
    below: list[type] = cls.__subclasses__()
    return {cls}.union(*(_subclasses(each) for each in below))


@dataclass(frozen=True)
class Planned:
    """What an event announces to the noise sources."""

    mechanism: str
    scale: float
    sensitivity: float
    count: float


# mechanism, scale and sensitivity by the kind of the event
ANNOUNCED: dict[str, Callable[[Any], tuple[str, float, float]]] = {
    "gaussian": lambda event: ("add_gaussian", event.scale, event.sensitivity),
    "discrete-gaussian": lambda event: ("add_gaussian", event.scale, event.sensitivity),
    "laplace": lambda event: ("add_laplace", event.scale, event.sensitivity),
    "bounded-range": lambda event: ("noisy_argmin", event.scale, event.sensitivity),
    "pure": lambda event: ("randomised_response", 1 / event.epsilon, math.inf),
    "poisson-gaussian": lambda event: (
        "add_gaussian",
        event.scale,
        event.clip * (2 if event.relation == "replace-one" else 1),
    ),
}


def planned(events: Iterable[Any]) -> Iterator[Planned]:
    """Releases that events stand for; a kind that is not known is refused."""
    for event in events:
        if event.inner is not None:
            for part in planned(event.inner):
                yield part if event.mean_runs is None else replace(part, count=math.inf)
        else:
            known = event.kind in ANNOUNCED
            assert known, f"the contract does not know events of kind {event.kind!r}"
            yield Planned(*ANNOUNCED[event.kind](event), event.count)


def releases(tape: Iterable[Draw]) -> list[Draw]:
    """Draws that open a hidden value (``uniform`` alone opens none)."""
    return [draw for draw in tape if draw.mechanism != "uniform"]


def paid_by(draw: Draw, events: Iterable[Any]) -> list[Planned]:
    """Events with the mechanism and the scale of a draw."""
    return [
        plan
        for plan in planned(events)
        if plan.mechanism == draw.mechanism
        and math.isclose(plan.scale, draw.scale / draw.unit * math.sqrt(draw.share), rel_tol=1e-12)
    ]


def distance(mechanism: str, one: np.ndarray, two: np.ndarray) -> float:
    """How far two values are, in the norm of the mechanism's sensitivity."""
    difference = (one - two).ravel()
    if mechanism == "add_gaussian":
        return float(np.linalg.norm(difference))
    if mechanism == "add_laplace":
        return float(np.abs(difference).sum())
    return float(np.ptp(difference)) if difference.size else 0.0


class Refusing:
    """A ledger that has no budget left."""

    def charge(self, events: Any, label: str) -> None:
        raise BudgetExceeded(spent=1.0, asked=1.0, left=0.0, budget_epsilon=1.0, budget_delta=1e-6)


class Watching:
    """A ledger that writes down its charges, and how much noise had been drawn before."""

    def __init__(self, tape: list[Draw]) -> None:
        self.tape = tape
        self.charges: list[Any] = []
        self.draws_before: list[int] = []

    def charge(self, events: Any, label: str) -> None:
        self.charges.append(tuple(events))
        self.draws_before.append(len(self.tape))

    def __deepcopy__(self, memo: Any) -> Watching:
        return self
