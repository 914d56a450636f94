"""The places at which hidden values meet their noise, as a recording wraps them.

Each function gives what stands in for a method while a recording runs: it calls the method, writes
down what it saw, and hands on the release (:mod:`.recording`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from . import mechanisms
from .answers import Answers, _PathAnswers
from .descent import Descent
from .errors import PrivacyError
from .events import FloatArray
from .grants import Grant
from .machines import PINP, SparseVector
from .noise import ExactNoise, SecureNoise
from .paths import NUGGET, PathRequest
from .randomisers import BallResponse, BinaryResponse, GaussianResponse
from .recording import Recorded, Recording
from .session import Session
from .weighted import cap_of
from .weights import RowWeights, mass_of, projected

__all__ = ["places"]


def places(now: Recording, stream: np.random.Generator) -> Iterator[tuple[Any, str, Any]]:
    """Every place that is wrapped: owner, name, and what stands there while a recording runs."""
    from . import _descent

    yield SecureNoise, "_generator", lambda self: stream
    yield ExactNoise, "uniform", lambda self, size: stream.random(size)
    yield Session, "__init__", _opening(now, Session.__init__)
    yield Session, "_charge", _charging(now, Session._charge)
    yield Session, "_part", _reading(now, Session._part)
    for name in ("hide", "hide_sum", "hide_filtered", "hide_weighted", "hide_rows", "hide_gram"):
        yield Session, name, _hiding(now, getattr(Session, name))
    yield Session, "_open", _door(now, Session._open)
    for name, norm, plain in _MECHANISMS:
        yield Session, name, _mechanism(now, getattr(Session, name), norm, plain)
    yield Session, "parity", _parity(now, Session.parity)
    yield Session, "learn_on_draws", _draws(now, Session.learn_on_draws)
    yield Session, "noisy_descent", _noisy_descent(now, Session.noisy_descent)
    yield _descent, "steps", _gradients(now, _descent.steps)
    yield _PathAnswers, "_draw", _path(now, _PathAnswers._draw)
    yield Answers, "_scores", _scores(now, Answers._scores)
    for machine in (PINP, SparseVector):
        yield machine, "_decide", _decision(now, machine._decide)
    for kind in (BinaryResponse, GaussianResponse, BallResponse):
        yield kind, "respond", _respond(now, kind.respond)


# sessions, plans, reads


def _opening(now: Recording, original: Any) -> Any:
    def opening(self: Session, rows: Any, **options: Any) -> None:
        if len(options["budgets"]) > 1:
            raise PrivacyError("a recording shows what is private: no ledger is charged by one.")
        original(self, rows, **options)
        size = rows.n_rows if self.relation == "replace-one" else "secret"
        now.note(f"session {self.epsilon!r}, {self.delta!r}, {self.relation}, {size} rows")

    return opening


def _charging(now: Recording, original: Any) -> Any:
    def charging(self: Session, events: Any) -> None:
        original(self, events)
        now.note(f"charge {events!r}")

    return charging


def _reading(now: Recording, original: Any) -> Any:
    def reading(self: Session, query: Any, part: Any) -> Any:
        now.note(f"pass over the rows of part {part}")
        return original(self, query, part)

    return reading


def _hiding(now: Recording, original: Any) -> Any:
    def hiding(self: Session, query: Any, *rest: Any, **options: Any) -> Any:
        hidden = original(self, query, *rest, **options)
        now.note(f"{original.__name__} {hidden.label!r}, {hidden.shape}, {hidden.sensitivity!r}")
        rows = max(1, self.size(hidden.part)) if original.__name__ == "hide" else 1
        if original.__name__ in ("hide", "hide_sum"):
            now._queries[id(hidden)] = (hidden, query, rows)  # kept, so that its id stays its own
        return hidden

    return hiding


# mechanisms of a session


def _plain(value: FloatArray, options: dict[str, Any]) -> FloatArray:
    return value


def _of_symmetric(value: FloatArray, options: dict[str, Any]) -> FloatArray:
    return mechanisms.svec(value)


def _of_process(value: FloatArray, options: dict[str, Any]) -> FloatArray:
    K = options["covariance"]
    nugget = mechanisms.NUGGET * float(np.trace(K)) / len(K)
    root = np.linalg.cholesky(K + nugget * np.eye(len(K)))
    return np.asarray(np.linalg.solve(root, value))


def _of_ball(value: FloatArray, options: dict[str, Any]) -> FloatArray:
    return 2 * float(options["radius"]) * value  # its request states the range of scores


_MECHANISMS: tuple[tuple[str, str, Callable[[FloatArray, dict[str, Any]], FloatArray]], ...] = (
    ("gaussian", "l2", _plain),
    ("symmetric_gaussian", "l2", _of_symmetric),
    ("gaussian_process", "l2", _of_process),
    ("laplace", "l1", _plain),
    ("noisy_argmin", "range", _plain),
    ("laplace_argmin", "range", _plain),
    ("ball_exponential", "l2", _of_ball),
    ("randomised_response", "rows", lambda value, options: np.atleast_1d(value)),
)
_ADDING = ("gaussian", "symmetric_gaussian", "gaussian_process", "laplace")


def _door(now: Recording, original: Any) -> Any:
    def door(self: Session, *args: Any, **options: Any) -> FloatArray:
        value: FloatArray = original(self, *args, **options)
        now._opened = value.copy()
        return value

    return door


def _mechanism(now: Recording, original: Any, norm: str, plain: Any) -> Any:
    signature = inspect.signature(original)

    def mechanism(self: Session, *args: Any, **options: Any) -> Any:
        if now._inside:
            return original(self, *args, **options)
        given = signature.bind(self, *args, **options).arguments
        grant, hidden = given["grant"], given["hidden"]
        with now.inside():
            released = original(self, *args, **options)
        opened, now._opened = now._opened, None
        if opened is None:
            raise PrivacyError("a mechanism that does not go through the door.")
        _, query, rows = now._queries.get(id(hidden), (None, None, 1))
        made = Recorded(
            grant.request.label,
            original.__name__,
            norm,
            1.0 if norm == "rows" else grant.request.sensitivity,
            grant.scale,
            plain(opened, given),
            released,
            now.place(grant),
            grant.request.count,
            None if given.get("function") is not None else query,
            rows,
            plain(np.asarray(released), given) if original.__name__ in _ADDING else None,
        )
        return now.release(made)

    return mechanism


def _parity(now: Recording, original: Any) -> Any:
    def parity(self: Session, grant: Grant, hidden: Any, batches: int) -> Any:
        released = original(self, grant, hidden, batches)
        facts = (grant.request.label, "parity", "rows", 1.0, grant.scale)
        return now.release(Recorded(*facts, hidden._value, released, now.place(grant)))

    return parity


# rows that are drawn from weights


def _drawn(now: Recording, name: str, grant: Grant, weights: RowWeights, density: float) -> Any:
    chances = projected(weights._log, cap_of(weights, density)) / mass_of(
        density, len(weights._log)
    )
    facts = (grant.request.label, name, "draw", float(grant.request.rate or 0.0), grant.scale)
    return lambda released: now.release(Recorded(*facts, chances, released, now.place(grant)))


def _draws(now: Recording, original: Any) -> Any:
    def learn_on_draws(
        self: Session, grant: Grant, weights: Any, density: float, size: int, learner: Any
    ) -> Any:
        # a learner is private on its own, under the drawn rows: it is replayed on its own, too
        known = now.next_release
        learn = learner if now.frozen is None else lambda sample: known
        with now.inside():
            released = original(self, grant, weights, density, size, learn)
        return _drawn(now, "learn_on_draws", grant, weights, density)(released)

    return learn_on_draws


def _noisy_descent(now: Recording, original: Any) -> Any:
    def noisy_descent(
        self: Session, grant: Grant, weights: Any, density: float, descent: Descent
    ) -> FloatArray:
        now._longest = 0.0
        with now.inside():
            released = original(self, grant, weights, density, descent)
        now.release(
            Recorded(
                f"{grant.request.label}: gradients",
                "noisy_descent",
                "l2",
                grant.request.sensitivity,
                grant.scale,
                np.array([2 * now._longest]),  # two gradients are at most so far apart
                None,
            )
        )
        return np.asarray(_drawn(now, "noisy_descent", grant, weights, density)(released))

    return noisy_descent


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
        gram, mechanism = self._model.gram, cast(PathRequest, self._model.mechanism)
        table, factors = np.concatenate(asked), gram.factors(np.concatenate(asked))
        K = gram.between(table, table, factors, factors)
        root = np.linalg.cholesky(K + NUGGET * gram.squared_bound * np.eye(len(K)))
        whitened = np.linalg.solve(root, np.concatenate(told))
        facts = (mechanism.label, "path", "l2", mechanism.sensitivity, self._scale)
        return now.release(Recorded(*facts, whitened, released))

    return draw


def _decision(now: Recording, original: Any) -> Any:
    def decide(self: PINP | SparseVector, private: float, guess: float) -> float | None:
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
