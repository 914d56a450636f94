"""The places at which hidden values meet their noise, as a recording wraps them.

Each function gives what stands in for a method while a recording runs: it calls the method, writes
down what it saw, and hands on the release (:mod:`.tape`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from dpadapt._lazy import is_of, named
from dpadapt._types import FloatArray

from ..core.hidden import Hidden
from ..core.mechanism import Grant, Mechanism, Noise
from ..core.noise import ExactNoise, SecureNoise
from ..core.sample import Sample
from ..core.session import Session
from ..core.statistic import RowMean, RowSum
from ..local.randomisers import BallResponse, BinaryResponse, GaussianResponse
from ..mechanisms.answers import Answers
from ..mechanisms.interactive_model import Interactive
from ..mechanisms.path import QUESTION_NUGGET, GaussianPath, _PathAnswers
from ..mechanisms.purse import GaussianPurse
from ..rows.errors import PrivacyError
from .tape import Recorded, Recording

_MACHINES = "dpadapt.papers.kernels.machines"
_DRAWN = "dpadapt.papers.hybrid.doors"  # rows that are drawn from weights


def places(now: Recording, stream: np.random.Generator) -> Iterator[tuple[Any, str, Any]]:
    """Every place that is wrapped: owner, name, and what stands there while a recording runs."""
    descent = import_module(f"{_DRAWN}._compiled")  # by name: the core imports no paper
    machines = import_module(_MACHINES)

    yield SecureNoise, "_generator", lambda self: stream
    yield ExactNoise, "uniform", lambda self, size: stream.random(size)
    yield Session, "__init__", _opening(now, Session.__init__)
    yield Session, "_charge", _charging(now, Session._charge)
    yield Session, "hide", _hiding(now, Session.hide)
    yield Session, "_let_out", _door(now, Session._let_out)
    yield Sample, "_pass", _reading(now, Sample._pass)
    sums = named("dpadapt.papers.mixing.filtered.FilteredSums")  # by name: no paper is imported
    yield sums, "_noisy", _filtered(now, sums._noisy)
    yield descent, "steps", _gradients(now, descent.steps)
    yield _PathAnswers, "_draw", _path(now, _PathAnswers._draw)
    yield Answers, "_scores", _scores(now, Answers._scores)
    for machine in (machines.PINPMachine, machines.SparseVectorMachine):
        yield machine, "_decide", _decision(now, machine._decide)
    for kind in (BinaryResponse, GaussianResponse, BallResponse):
        yield kind, "respond", _respond(now, kind.respond)


# sessions, plans, reads


def _opening(now: Recording, original: Any) -> Any:
    def opening(self: Session, rows: Any, **options: Any) -> None:
        _no_ledger(options["budgets"])
        original(self, rows, **options)
        size = rows.n_rows if self.relation == "replace-one" else "secret"
        now.note(f"session {self.epsilon!r}, {self.delta!r}, {self.relation}, {size} rows")

    return opening


def _no_ledger(budgets: Sequence[Any]) -> None:
    if len(budgets) > 1:
        raise PrivacyError("a recording shows what is private: no ledger is charged by one.")


def _charging(now: Recording, original: Any) -> Any:
    def charging(self: Session, events: Any, *rest: Any, **options: Any) -> None:
        _no_ledger(self._budgets)  # it may have been open before
        original(self, events, *rest, **options)
        now.note(f"charge {events!r}")

    return charging


def _reading(now: Recording, original: Any) -> Any:
    def reading(self: Sample, cleaning: Any) -> Any:
        now.note(f"pass over the rows of part {self.part}")
        return original(self, cleaning)

    return reading


def _hiding(now: Recording, original: Any) -> Any:
    def hiding(self: Session, statistic: Any, *rest: Any, **options: Any) -> Any:
        hidden = original(self, statistic, *rest, **options)
        kind = type(statistic).__name__
        now.note(f"hide {kind} {hidden.label!r}, {hidden.shape}, {hidden.sensitivity!r}")
        return hidden

    return hiding


# the door of a session


def _door(now: Recording, original: Any) -> Any:
    def let_out(self: Session, grant: Grant, hidden: Hidden, public: dict[str, Any]) -> Any:
        mechanism: Any = grant.mechanism
        if now._inside or mechanism.hides or isinstance(mechanism, Interactive):
            return original(self, grant, hidden, public)  # hidden still: its answers are recorded
        if isinstance(hidden._value, Sample):
            return original(self, grant, hidden, public)  # a handle, whose sums are recorded
        if is_of(hidden._value, f"{_DRAWN}.draws.Drawn"):
            return _from_draws(now, original, self, grant, hidden, public)
        with now.inside():
            released = original(self, grant, hidden, public)
        norm, reach, scale = _stated(mechanism, grant.scale, hidden, public)
        facts = (norm, reach * getattr(self._people, "each", 1), scale)  # of a person's rows
        mean, rows = _summed(self, hidden)
        noisy = mechanism.coordinates(np.asarray(released), **public) if _adds(mechanism) else None
        return now.release(
            Recorded(
                mechanism.label,
                type(mechanism).__name__,
                *facts,
                _known(mechanism, hidden._value, public),
                released,
                now.place(grant),
                int(mechanism.count),
                mean,
                rows,
                noisy,
                float(public["share"]) if isinstance(mechanism, GaussianPurse) else 1.0,
            )
        )

    return let_out


def _adds(mechanism: Mechanism) -> bool:
    return bool(getattr(mechanism, "adds", False))


def _known(mechanism: Any, value: FloatArray, public: dict[str, Any]) -> FloatArray:
    return np.array(mechanism.coordinates(value, **public), dtype=np.float64)


def _stated(
    mechanism: Any, scale: float, hidden: Hidden, public: dict[str, Any]
) -> tuple[str, float, float]:
    """Norm, sensitivity and scale that a release was planned with."""
    if isinstance(mechanism, GaussianPurse):  # the noise follows the hidden value's own
        reach = hidden.sensitivity
        return mechanism.norm, reach, reach * scale / float(np.sqrt(public["share"]))
    reach = 1.0 if mechanism.norm == "rows" else cast(Noise, mechanism).sensitivity
    return mechanism.norm, reach, scale


def _summed(session: Session, hidden: Hidden) -> tuple[RowMean | None, int]:
    """Whose mean or sum over the rows a hidden value is, and by what it was divided."""
    if isinstance(hidden.statistic, RowSum):
        return hidden.statistic.mean, 1
    if isinstance(hidden.statistic, RowMean):
        return hidden.statistic, max(1, session.size(hidden.part))
    return None, 1


def _filtered(now: Recording, original: Any) -> Any:
    def noisy(self: Any, value: FloatArray) -> Any:
        with now.inside():
            released = original(self, value)
        mechanism = self._mechanism
        facts = (mechanism.label, "FilteredGaussian", "l2", mechanism.sensitivity, self._scale)
        known = np.array(value, dtype=np.float64)
        told = (now.place(self), mechanism.count, None, 1, np.asarray(released))
        return now.release(Recorded(*facts, known, released, *told))

    return noisy


# rows that are drawn from weights


def _from_draws(
    now: Recording,
    original: Any,
    session: Session,
    grant: Grant,
    hidden: Hidden,
    public: dict[str, Any],
) -> Any:
    drawn, mechanism = hidden._value, cast(Any, grant.mechanism)
    name = type(mechanism).__name__
    learning = is_of(mechanism, f"{_DRAWN}.draws.LearnOnDraws")
    if learning and now.frozen is not None:
        # a learner is private on its own, under the drawn rows: it is replayed on its own, too
        known = now.next_release
        public = {**public, "learner": lambda sample: known}
    now._longest = 0.0
    with now.inside():
        released = original(session, grant, hidden, public)
    if not learning:  # two gradients are at most so far apart
        facts = (f"{mechanism.label}: gradients", name, "l2", mechanism.sensitivity, grant.scale)
        now.release(Recorded(*facts, np.array([2 * now._longest]), None))
    facts = (mechanism.label, name, "draw", float(mechanism.rate), grant.scale)
    return now.release(Recorded(*facts, drawn.chances, released, now.place(grant)))


def _gradients(now: Recording, original: Any) -> Any:
    def steps(at: Any, total: Any, Z: Any, y: Any, noise: Any, done: int, *rest: Any) -> None:
        hinge, margin, clip = rest[:3]
        for i in range(min(len(Z), 200)):  # the gradient alone: no noise, no ball, a step of 1
            moved, still = at.copy(), np.zeros((1, len(at)))
            one = (Z[i : i + 1], y[i : i + 1], still, 0, hinge, margin, clip)
            original(moved, np.zeros_like(at), *one, np.inf, 1.0, 0.0, 0.0)
            now._longest = max(now._longest, float(np.linalg.norm(moved - at)))
        original(at, total, Z, y, noise, done, *rest)

    return steps


# answers of a predictor, and of agents


def _scores(now: Recording, original: Any) -> Any:
    def scores(self: Answers, questions: Any) -> FloatArray:
        value: FloatArray = original(self, questions)
        now._opened = value.copy()
        return value

    return scores


def _path(now: Recording, original: Any) -> Any:
    def draw(self: _PathAnswers, keys: Any) -> Any:
        asked, told = now._paths.setdefault(id(self), ([], []))
        with now.inside():
            released = original(self, keys)
        if not keys:
            return released
        asked.append(self._model.questions.decode(keys))
        told.append(np.asarray(now._opened))
        # all answers so far together, in the norm of the kernel with the nugget of the path
        gram, mechanism = self._model.gram, cast(GaussianPath, self._model.mechanism)
        table, factors = np.concatenate(asked), gram.factors(np.concatenate(asked))
        K = gram.between(table, table, factors, factors)
        root = np.linalg.cholesky(K + QUESTION_NUGGET * gram.squared_bound * np.eye(len(K)))
        whitened = np.linalg.solve(root, np.concatenate(told))
        facts = (mechanism.label, "path", "l2", mechanism.sensitivity, self._scale)
        return now.release(Recorded(*facts, whitened, released))

    return draw


def _decision(now: Recording, original: Any) -> Any:
    def decide(self: Any, private: float, guess: float) -> float | None:
        """Whether the model changes, and to what, is what comes out."""
        with now.inside():
            released = original(self, private, guess)
        constants = self.constants
        facts = (f"question to {self.kind}", self.kind, "l1", constants.prediction, constants.scale)
        known: float | None = now.release(Recorded(*facts, np.array([private]), released))
        return known

    return decide


def _respond(now: Recording, original: Any) -> Any:
    def respond(self: Any, source: Any, values: Any) -> FloatArray:
        if now._inside:
            return np.asarray(original(self, source, values))
        with now.inside():
            released = original(self, source, values)
        known = np.array(values, dtype=np.float64)
        facts = ("answers of agents", type(self).__name__, "rows", 1.0, self.epsilon)
        return np.asarray(now.release(Recorded(*facts, known, released)))

    return respond
