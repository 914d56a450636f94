"""The battery that every estimator of the library runs.

Subclass :class:`EstimatorContract`, say how to build the estimator (``make``), and its tests are
inherited. What a fit asks of the noise sources is written on a tape (:func:`taped`), and the tape
of one private sample can be played to a neighbouring one: then the two fits see the same noisy
answers, and what they want to release may differ by the stated sensitivity, no more. That the
battery fails where it should is tested in ``test_contracts_have_power.py``.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import json
import logging
import math
import os
import pickle
import re
import struct
import tempfile
import types
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from dpadapt import BudgetExceeded, Guarantee, Private
from dpadapt.modelfolder.reading import decode
from dpadapt.modelfolder.types import ESTIMATORS
from dpadapt.modelfolder.writing import encode
from dpadapt.privacy import Hidden, Ledger, Session, mechanisms
from dpadapt.privacy.noise import NoiseSource
from dpadapt.privacy.rows import RowSource
from independent_accountant import recompute_epsilon
from one_cell import odd_frames, replaced

SENTINEL = 987654.321  # a private number that nothing else in a test is equal to
SECRET_TEXT = "zqx-secret-7781"  # the same for text
NAMES = ["alpha", "beta", "gamma"]
HOSTILE_ROWS = {
    "nan": [math.nan, math.nan, math.nan],
    "one nan": [math.nan, 0.5, -0.5],
    "inf": [math.inf, -math.inf, math.inf],
    "one inf": [0.1, -math.inf, 0.2],
    "huge": [1e300, -1e300, 1e300],
    "largest": [1.7976931348623157e308] * 3,
    "huge norm": [1e6, 0.0, 0.0],
    "the opposite": [-1e6, 0.0, 0.0],
    "negative zero": [-0.0, -0.0, -0.0],
    "denormal": [5e-324, -5e-324, 5e-324],
    "zero": [0.0, 0.0, 0.0],
    "sentinel": [SENTINEL, -SENTINEL, SENTINEL],
}
HOSTILE_LABELS = [math.nan, math.inf, -math.inf, 1e300, -1e300, -0.0, SENTINEL]
HOSTILE_CELLS = [None, SECRET_TEXT, b"\xff", [1, 2], {"a": 1}, 10**400, object(), pd.NaT, 1 + 2j]


# what a fit asks of the noise sources

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


# what a fit says


@dataclass
class Said:
    """Everything that came out beside the result."""

    printed: str = ""
    logged: str = ""
    warned: str = ""

    @property
    def all(self) -> str:
        return "\n".join([self.printed, self.logged, self.warned])


@contextmanager
def everything_said() -> Iterator[Said]:
    """Catch what is printed, logged (at any level) or warned."""
    said, out, records = Said(), io.StringIO(), []
    handler = logging.Handler(level=1)
    handler.emit = lambda record: records.append(f"{record.getMessage()} {record.__dict__!r}")
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            redirect_stdout(out),
            redirect_stderr(out),
        ):
            warnings.simplefilter("always")
            yield said
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        said.printed = out.getvalue()
        said.logged = "\n".join(records)
        said.warned = "\n".join(f"{w.category.__name__}: {w.message!r}" for w in caught)


def told(error: BaseException | None) -> str:
    """All text of an exception and of those behind it."""
    text = ""
    while error is not None:
        notes = getattr(error, "__notes__", ())
        text += f"{error}\n{error!r}\n{error.args!r}\n{notes!r}\n"
        cause = getattr(error, "cause", None)  # concurrent.futures keeps its own
        error = error.__cause__ or error.__context__ or (cause if cause is not error else None)
    return text


# where private values must not be found

_ATOMS = (str, bytes, bytearray, int, float, complex, np.generic, np.ndarray)


def reachable(root: Any) -> Iterator[tuple[str, Any]]:
    """Everything that can be reached from an object, with the way to it.

    Goes through attributes, slots, containers, views of arrays, data frames, closures, defaults,
    bound methods, partial functions, running generators and data of the object's classes.
    """
    stack, seen = [("model", root)], {}
    while stack:
        path, thing = stack.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing  # kept, so that no identity is used twice
        yield path, thing
        stack += [(f"{path}{step}", part) for step, part in _parts(thing) if part is not None]


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, np.ndarray):
        yield ".base", thing.base
        if thing.dtype.hasobject:
            yield from ((f"[{i}]", cell) for i, cell in enumerate(thing.ravel().tolist()))
        return
    if isinstance(thing, (*_ATOMS, types.ModuleType, type)) or thing is None:
        return
    if isinstance(thing, (pd.DataFrame, pd.Series, pd.Index)):
        yield ".values", np.asarray(thing.to_numpy(dtype=object))
        for axis in ("index", "columns"):
            if not isinstance(thing, pd.Index):
                yield f".{axis}", getattr(thing, axis, None)
        return
    if isinstance(thing, dict):
        for key, value in list(thing.items()):
            yield ".key", key
            yield f"[{key!r}]", value
    elif isinstance(thing, (list, tuple, set, frozenset)) or hasattr(thing, "popleft"):
        yield from ((f"[{i}]", part) for i, part in enumerate(list(thing)))
    elif isinstance(thing, types.FunctionType):
        yield ".defaults", (thing.__defaults__, thing.__kwdefaults__)
        for cell in thing.__closure__ or ():
            yield ".closure", _cell(cell)
    elif isinstance(thing, types.MethodType):
        yield ".__self__", thing.__self__
        yield ".__func__", thing.__func__
    elif isinstance(thing, functools.partial):
        yield ".partial", (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, types.GeneratorType) and thing.gi_frame is not None:
        yield ".frame", dict(thing.gi_frame.f_locals)
    yield "", getattr(thing, "__dict__", None)
    for cls in type(thing).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield f".{name}", getattr(thing, name, None)
        if cls.__module__.split(".")[0] not in ("builtins", "sklearn", "abc", "typing", "numpy"):
            for name, value in vars(cls).items():
                if isinstance(value, (np.ndarray, list, dict, set, pd.DataFrame)):
                    yield f".{cls.__name__}.{name}", value


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet bound
        return None


@dataclass
class Secrets:
    """A private sample as something to look for."""

    X: Any
    y: Any = None
    hidden: list[np.ndarray] = field(default_factory=list)  # un-noised statistics
    _by_length: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frame = pd.DataFrame(self.X).apply(pd.to_numeric, errors="coerce")
        rows = frame.to_numpy(dtype=float)
        finite = np.where(np.isfinite(rows), rows, 0.0)
        vectors = [*rows, *rows.T]
        with np.errstate(all="ignore"):
            vectors += [finite.sum(axis=0), finite.mean(axis=0), finite.std(axis=0)]
            vectors += [np.abs(finite).max(axis=0), finite.max(axis=0), finite.min(axis=0)]
        vectors += [] if self.y is None else [np.asarray(self.y, dtype=float)]
        vectors += [np.asarray(value, dtype=float).ravel() for value in self.hidden]
        found: dict[int, list[np.ndarray]] = {}
        for vector in vectors:
            if vector.size > 1 and np.isfinite(vector).all() and np.ptp(vector) > 0:
                found.setdefault(vector.size, []).append(vector)
        self._by_length = {size: np.array(some) for size, some in found.items()}

    def check(self, thing: Any) -> None:
        """Fail if anything private can be reached from an object."""
        for path, part in reachable(thing):
            private = isinstance(part, (Private, RowSource, Hidden, Session))
            assert not private, f"{path} is a {type(part).__name__}"
            if isinstance(part, np.ndarray):
                self._check_array(path, part)
            elif isinstance(part, (bytes, bytearray)):
                self.check_bytes(bytes(part), path)
            elif isinstance(part, _ATOMS):
                self.check_text(f"{part!r} {part!s}", path)

    def _check_array(self, path: str, array: np.ndarray) -> None:
        if array.dtype.kind in "biuf":
            self.check_bytes(np.ascontiguousarray(array, dtype="<f8").tobytes(), path)
            values = array.astype(float)
            for lines in (values.reshape(1, -1), np.atleast_2d(values), np.atleast_2d(values.T)):
                self._check_lines(path, lines.reshape(-1, lines.shape[-1]))
        elif not array.dtype.hasobject:
            self.check_bytes(array.tobytes(), path)

    def _check_lines(self, path: str, lines: np.ndarray) -> None:
        private = self._by_length.get(lines.shape[-1])
        if private is None or not len(lines):
            return
        for line in lines:
            size = 1e-9 * np.abs(private).max(axis=1)
            equal = np.abs(private - line).max(axis=1) <= size
            assert not equal.any(), f"{path} holds a private row, column or sum"

    def check_bytes(self, data: bytes, where: str) -> None:
        """Fail if the bytes hold the sentinel or the secret text."""
        marks = [struct.pack(form, SENTINEL) for form in ("<d", ">d", "<f", ">f")]
        marks += [SECRET_TEXT.encode(code) for code in ("utf-8", "utf-16-le", "utf-32-le")]
        marks += [b"987654.3"]
        assert not any(mark in data for mark in marks), f"{where} holds a private value"

    def check_text(self, text: str, where: str) -> None:
        """Fail if a text quotes the sentinel or the secret text."""
        for mark in ("987654", "9.87654", "9.88e+05", "9.877e+05", SECRET_TEXT):
            assert mark not in text, f"{where} quotes a private value"


# the battery


def own_name(model: Any) -> tuple[str, ...]:
    """The name that a model folder must be told of an estimator that is not the library's."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    return () if name in ESTIMATORS else (name,)


class EstimatorContract(ABC):
    """What every estimator promises, as tests."""

    needs_labels = False  # whether the method reads private labels
    prefix = ""  # how a nested parameter of the private estimator is written
    least_spent = 0.9  # part of epsilon that a fit spends at least
    releases_all = True  # whether a fit makes every release that it charged for
    progress_end: int | None = None  # steps that a progress bar counts; None if it counts rows
    chosen_from = 0  # answers among which chance chooses, if they are few: two may then coincide

    @abstractmethod
    def make(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        noise: Any = "seeded",
        random_state: Any = 0,
        ledger: Any = None,
        **params: Any,
    ) -> Any:
        """Build the estimator, not fitted."""

    def core(self, model: Any) -> Any:
        """Return the part of the model that has the privacy parameters."""
        return model

    def public(self, m: int = 90) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(11)
        X = rng.normal(size=(m, 3))
        return X, X @ [1.0, -2.0, 0.5] + X[:, 0] ** 2 + 0.1 * rng.normal(size=m)

    def rows(self, n: int = 400, seed: int = 0) -> np.ndarray:
        """Private rows."""
        return np.random.default_rng([5, seed]).normal(0.3, 0.8, size=(n, 3))

    def labels(self, rows: np.ndarray, seed: int = 0) -> np.ndarray | None:
        """Private labels, if the method reads them."""
        if not self.needs_labels:
            return None
        noise = np.random.default_rng([6, seed]).normal(size=len(rows))
        return np.nan_to_num(np.asarray(rows, dtype=float)) @ [1.0, -1.0, 0.5] + 0.1 * noise

    def private(self, rows: Any = None, labels: Any = None) -> Private:
        rows = self.rows() if rows is None else rows
        return Private(rows, self.labels(rows) if labels is None else labels)

    def fit(self, model: Any, private: Any = None, X: Any = None, y: Any = None) -> Any:
        """Fit without a word on what is known: user warnings may come, runtime warnings not."""
        public, labels = self.public()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            return model.fit(
                public if X is None else X, labels if y is None else y, private=private
            )

    def answers(self, model: Any) -> np.ndarray:
        """Everything numeric that a fit leaves behind, the guarantee aside."""
        kept = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "guarantee_"}
        floats = [v for _, v in reachable(kept) if isinstance(v, (float, np.floating, np.ndarray))]
        arrays = [
            np.asarray(v, dtype=float).ravel() for v in floats if np.asarray(v).dtype.kind in "f"
        ]
        return np.concatenate([*arrays, self.predictions(model)])

    def predictions(self, model: Any, X: Any = None) -> np.ndarray:
        """What a fitted model answers, as numbers."""
        ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
        return np.ravel(ask(self.public()[0] if X is None else X)).astype(float)

    def marked(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows with the sentinel in some cells, and labels likewise."""
        rows = self.rows()
        rows[3, 1] = rows[7, 0] = SENTINEL
        labels = self.labels(rows)
        if labels is not None:
            labels[5] = SENTINEL
        return rows, labels

    def marked_frame(self) -> pd.DataFrame:
        """The same as a data frame in which some cells are text."""
        frame = pd.DataFrame(self.marked()[0], columns=NAMES).astype({NAMES[2]: object})
        frame.iloc[[2, 9], 2] = SECRET_TEXT
        return frame

    # the guarantee

    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (8.0, 1e-9)]
    )
    def test_guarantee_is_what_an_independent_accountant_finds(self, epsilon, delta):
        model = self.fit(self.make(epsilon=epsilon, delta=delta), self.private())
        guarantee = model.guarantee_
        low, high = recompute_epsilon(guarantee.events, guarantee.delta)
        assert low * (1 - 1e-9) <= guarantee.epsilon <= 1.01 * high
        assert guarantee.epsilon <= epsilon * (1 + 1e-9)
        assert guarantee.epsilon >= self.least_spent * epsilon
        assert guarantee.delta <= delta

    def test_guarantee_survives_json(self):
        guarantee = self.fit(self.make(), self.private()).guarantee_
        assert Guarantee.from_dict(json.loads(guarantee.to_json())) == guarantee
        assert guarantee.noise == "seeded"
        assert guarantee.relation == "replace-one"

    @pytest.mark.parametrize("noise", ["seeded", "secure"])
    def test_noise_is_the_noise_of_the_events(self, noise):
        model = self.make(noise=noise, random_state=0 if noise == "seeded" else None)
        with taped() as tape:
            events = self.fit(model, self.private()).guarantee_.events
        drawn = releases(tape)
        assert drawn, "noise was charged for, but none was drawn"
        assert all(paid_by(draw, events) for draw in drawn), "a release that no event stands for"
        for plan in planned(events):
            same = [
                p for p in planned(events) if (p.mechanism, p.scale) == (plan.mechanism, plan.scale)
            ]
            count = sum(plan in paid_by(draw, events) for draw in drawn)
            paid = sum(p.count for p in same)
            assert count <= paid, "more releases than were charged"
            assert count == paid or not self.releases_all or paid == math.inf

    def test_noise_has_the_scale_that_it_claims(self):
        seen = []
        for seed in range(60):
            with taped() as tape:
                self.fit(self.make(random_state=seed), self.private())
            for draw in releases(tape):
                if draw.mechanism in ("add_gaussian", "add_laplace"):
                    unit = (np.asarray(draw.answer) - draw.value).ravel() / draw.scale
                    law = stats.norm if draw.mechanism == "add_gaussian" else stats.laplace
                    seen.append(stats.norm.ppf(np.clip(law.cdf(unit), 1e-15, 1 - 1e-15)))
        if seen:
            squares = np.concatenate(seen)[:20_000] ** 2
            for tail in (stats.chi2.cdf, stats.chi2.sf):  # one false alarm in a million
                assert tail(squares.sum(), squares.size) > 5e-7
            assert squares.size >= 100, "too few draws to notice noise that is 0.7 times too small"

    def test_events_depend_on_public_facts_only(self):
        one = self.fit(self.make(), self.private()).guarantee_
        wild = self.rows(seed=1) * 1e4
        two = self.fit(self.make(), self.private(wild)).guarantee_
        three = self.fit(self.make(), self.private(np.zeros_like(wild))).guarantee_
        assert one == two == three

    @pytest.mark.parametrize("after", HOSTILE_ROWS)
    def test_one_replaced_row_moves_no_release_beyond_its_sensitivity(self, after):
        for before in ("usual", "huge norm", "zero"):
            self._compare_neighbours(
                [HOSTILE_ROWS.get(before, self.rows()[0]), HOSTILE_ROWS[after]],
                [None, None],
            )

    @pytest.mark.parametrize("label", HOSTILE_LABELS)
    def test_one_replaced_label_moves_no_release_beyond_its_sensitivity(self, label):
        if not self.needs_labels:
            pytest.skip("private labels are not read")
        self._compare_neighbours([self.rows()[0], HOSTILE_ROWS["huge norm"]], [None, label])
        self._compare_neighbours([HOSTILE_ROWS["huge norm"]] * 2, [-label, label])

    @pytest.mark.parametrize("label", ["x", None])
    def test_one_odd_cell_moves_no_release_beyond_its_sensitivity(self, label):
        """Pandas gives the two tables other types; nobody's cells may change with them."""
        rows = self.rows(n=12)
        labels = self.labels(rows)
        for usual, odd in odd_frames(rows, NAMES):
            tables = [(usual, None), (odd, None)]
            if labels is not None:
                listed = np.asarray(labels).tolist()
                tables = [(usual, pd.Series(listed)), (odd, pd.Series(replaced(listed, label)))]
            self._compare([lambda t=table: Private(*t) for table in tables], named=True)

    def _compare_neighbours(self, rows: list[Any], labels: list[Any]) -> None:
        def sample(row: Any, label: Any) -> Private:
            X = self.rows(n=12)
            y = self.labels(X)
            X[4] = row
            if y is not None and label is not None:
                y[4] = label
            return self.private(X, y)

        self._compare([functools.partial(sample, *pair) for pair in zip(rows, labels, strict=True)])

    def _compare(self, samples: list[Callable[[], Private]], *, named: bool = False) -> None:
        tapes: list[list[Draw]] = []
        public = pd.DataFrame(self.public()[0], columns=NAMES) if named else None
        for sample in samples:
            with taped(replay=tapes[0] if tapes else None) as tape:
                model = self.fit(self.make(), sample(), X=public)
            tapes.append(tape)
        events = model.guarantee_.events
        assert len(tapes[0]) == len(tapes[1]), "private values change the number of releases"
        for one, two in zip(*map(releases, tapes), strict=True):
            assert math.isclose(one.scale, two.scale, rel_tol=1e-12), "noise depends on the rows"
            allowed = max((plan.sensitivity for plan in paid_by(one, events)), default=0.0)
            assert distance(one.mechanism, one.value, two.value) <= allowed * (1 + 1e-9)

    def test_refit_has_a_guarantee_of_its_own(self):
        model = self.fit(self.make(), self.private())
        first = model.guarantee_
        path = f"{self.prefix}epsilon"
        second = self.fit(model.set_params(**{path: 0.5}), self.private()).guarantee_
        assert first.epsilon > second.epsilon
        assert self.fit(model, None).guarantee_.epsilon == 0

    # without a private sample

    @pytest.mark.parametrize("empty", [False, True])
    def test_nothing_private_costs_nothing(self, empty):
        private = self.private(self.rows(n=0)) if empty else None
        with taped() as tape:
            model = self.fit(self.make(), private)
        assert model.guarantee_.epsilon == 0
        assert model.guarantee_.events == ()
        assert tape == []
        assert private is None or private.spent(1e-6).epsilon == 0
        assert np.isfinite(model.predict(self.public()[0])).all()

    def test_public_only_fit_needs_no_seed(self):
        self.fit(self.make(noise="seeded", random_state=None), None)
        self.fit(self.make(noise="secure", random_state=3), None)

    # nothing private comes out

    @pytest.mark.parametrize("form", ["array", "frame"])
    def test_nothing_private_stays_in_the_model(self, form):
        rows, labels = self.marked()
        given = rows if form == "array" else self.marked_frame()
        X, y = self.public()
        public = X if form == "array" else pd.DataFrame(X, columns=NAMES)
        with taped() as tape, everything_said() as said:
            model = self.make(noise="secure", random_state=None)
            model.fit(public, y, private=Private(given, labels))
        hidden = [draw.value for draw in releases(tape)]
        secrets = Secrets(given, labels, hidden)
        secrets.check_text(said.all, "what was printed, logged or warned")
        for thing in (model, clone(model), copy.deepcopy(model), model.guarantee_):
            secrets.check(thing)
            for text in (repr(thing), str(thing), getattr(thing, "_repr_html_", str)()):
                secrets.check_text(text or "", "the representation")
        secrets.check_text(repr(model.get_params()), "get_params")
        secrets.check_text(model.guarantee_.to_json(), "the guarantee")

    def test_nothing_private_is_written_to_a_file(self):
        rows, labels = self.marked()
        model = self.fit(self.make(noise="secure", random_state=None), Private(rows, labels))
        secrets = Secrets(rows, labels)
        packed = io.BytesIO()
        joblib.dump(model, packed)
        tree, numbers = encode(model, own_name(model))
        files = (json.dumps(tree).encode(), numbers)
        for data in (pickle.dumps(model), packed.getvalue(), *files):
            secrets.check_bytes(data, "the model file")
        for again in (
            pickle.loads(pickle.dumps(model)),
            joblib.load(io.BytesIO(packed.getvalue())),
        ):
            secrets.check(again)
            np.testing.assert_array_equal(
                again.predict(self.public()[0]), model.predict(self.public()[0])
            )
            assert again.guarantee_ == model.guarantee_

    def test_model_folder_can_be_read(self):
        model = self.fit(self.make(), self.private())
        tree, numbers = encode(model, own_name(model))
        again = decode(json.loads(json.dumps(tree)), numbers, own_name(model))
        np.testing.assert_array_equal(
            again.predict(self.public()[0]), model.predict(self.public()[0])
        )
        assert again.guarantee_ == model.guarantee_

    def test_errors_quote_nothing_private(self):
        rows, labels = self.marked()
        X, y = self.public()
        calls = [
            lambda: self.make().fit(X, y, private=Private(rows[:, :2], labels)),
            lambda: self.make(epsilon=-1).fit(X, y, private=Private(rows, labels)),
            lambda: self.make(ledger=Refusing()).fit(X, y, private=Private(rows, labels)),
            lambda: self.make().fit(X, y, private=rows),
            lambda: self.make().fit(
                pd.DataFrame(X, columns=[*NAMES[:2], "other"]),
                y,
                private=Private(self.marked_frame(), labels),
            ),
        ]
        for call in calls:
            with everything_said() as said, pytest.raises(Exception) as caught:  # noqa: PT011
                call()
            Secrets(rows, labels).check_text(told(caught.value) + said.all, "an error")

    # private values cause no error

    def test_no_private_values_raise(self):
        X, y = self.public()
        said_before = None
        for seed in range(25):
            rng = np.random.default_rng([7, seed])
            rows = rng.standard_t(1, size=(20, 3)) * 10.0 ** rng.integers(-300, 300, size=(20, 3))
            rows[rng.random(rows.shape) < 0.2] = rng.choice([math.nan, math.inf, -math.inf, 0.0])
            labels = self.labels(rows, seed)
            if labels is not None:
                labels *= 10.0 ** rng.integers(-300, 300, size=20)
            with everything_said() as said:
                model = self.make(random_state=seed).fit(X, y, private=Private(rows, labels))
            assert np.isfinite(self.answers(model)).all()
            assert "RuntimeWarning" not in said.warned
            assert said.printed == ""
            assert said.logged == (said_before or said.logged)
            said_before = said.logged

    @pytest.mark.parametrize("sample", ["one row", "constant", "objects", "strings", "integers"])
    def test_odd_private_samples_are_taken(self, sample):
        rows: Any = self.rows(n=20)
        if sample == "one row":
            rows = rows[:1]
        elif sample == "constant":
            rows = np.full((20, 3), 0.25)
        elif sample == "objects":
            rows = rows.astype(object)
            for i, cell in enumerate(HOSTILE_CELLS):
                rows[i, i % 3] = cell
        elif sample == "strings":
            rows = np.full((20, 3), SECRET_TEXT)
        else:
            rows = np.arange(60).reshape(20, 3)
        labels = np.linspace(-1, 1, len(rows)) if self.needs_labels else None
        with everything_said() as said:
            model = self.make().fit(*self.public(), private=Private(rows, labels))
        assert np.isfinite(self.answers(model)).all()
        Secrets(np.zeros((1, 3))).check_text(said.all, "what was said")

    # inputs

    @pytest.mark.parametrize("form", ["array", "frame"])
    def test_inputs_are_not_modified(self, form):
        (X, y), (rows, labels) = self.public(), self.marked()
        rows[1] = [math.nan, math.inf, 1e300]
        given: list[Any] = [X, y, rows, labels]
        if form == "frame":
            given = [pd.DataFrame(X, columns=NAMES), pd.Series(y), self.marked_frame(), labels]
        before = copy.deepcopy(given)
        self.fit(self.make(), Private(given[2], given[3]), given[0], given[1]).predict(given[0])
        for one, two in zip(before, given, strict=True):
            if isinstance(one, pd.DataFrame):
                pd.testing.assert_frame_equal(one, two)
            elif one is not None:
                np.testing.assert_array_equal(one, two)

    def test_read_only_inputs_are_taken(self):
        (X, y), rows = self.public(), self.rows()
        labels = self.labels(rows)
        expected = self.answers(self.fit(self.make(), Private(rows, labels), X, y))
        for array in (X, y, rows, labels):
            if array is not None:
                array.flags.writeable = False
        model = self.fit(self.make(), Private(rows, labels), X, y)
        np.testing.assert_array_equal(self.answers(model), expected)

    def test_public_sample_may_come_in_any_form(self):
        X, y = self.public()
        X, y = np.rint(4 * X), np.rint(y)
        expected = self.fit(self.make(), self.private(), X, y).predict(X)
        forms = {
            "list": (X.tolist(), y.tolist()),
            "int": (X.astype(int), y.astype(int)),
            "float32": (X.astype(np.float32), y.astype(np.float32)),
            "frame": (pd.DataFrame(X, columns=NAMES), pd.Series(y)),
            "column-major": (np.asfortranarray(X), y),
        }
        for name, (some, labels) in forms.items():
            model = self.fit(self.make(), self.private(), some, labels)
            predicted = model.predict(some)
            np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-6, err_msg=name)

    def test_private_frames_are_matched_by_name(self):
        X, y = self.public()
        public, rows = pd.DataFrame(X, columns=NAMES), self.rows()
        labels = self.labels(rows)
        frame = pd.DataFrame(rows, columns=NAMES)
        shuffled = frame[NAMES[::-1]].assign(extra=1.0)
        expected = self.predictions(self.fit(self.make(), Private(rows, labels), X, y))
        for some in (frame, shuffled):
            model = self.fit(self.make(), Private(some, labels), public, y)
            found = self.predictions(model, public)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    def test_public_names_and_sizes_are_kept(self):
        X, y = self.public()
        model = self.fit(self.make(), self.private())
        assert model.n_features_in_ == 3
        assert not hasattr(model, "feature_names_in_")
        model = self.fit(self.make(), self.private(), pd.DataFrame(X, columns=NAMES), y)
        assert list(model.feature_names_in_) == NAMES

    # determinism

    def test_seeded_noise_is_repeatable(self):
        one, two = (self.answers(self.fit(self.make(random_state=3), self.private())) for _ in "ab")
        np.testing.assert_array_equal(one, two)
        model = self.make(random_state=3)
        again = self.answers(self.fit(self.fit(model, self.private()), self.private()))
        np.testing.assert_array_equal(again, one)
        states = (np.random.RandomState(5), np.random.RandomState(5))
        three, four = (
            self.answers(self.fit(self.make(random_state=s), self.private())) for s in states
        )
        np.testing.assert_array_equal(three, four)

    def test_other_seeds_give_other_answers(self):
        one, two = (self.fit(self.make(random_state=seed), self.private()) for seed in (3, 4))
        assert not np.array_equal(self.answers(one), self.answers(two))

    def test_secure_noise_is_never_repeated(self):
        made = []
        with taped() as tape:
            for _ in range(12 if self.chosen_from else 3):
                np.random.seed(0)  # noqa: NPY002
                model = self.fit(self.make(noise="secure", random_state=None), self.private())
                made.append(self.answers(model))
        different = len({np.asarray(each).tobytes() for each in made})
        # one of few answers comes up twice by chance, but not twelve times
        assert different > 1 if self.chosen_from else different == 3
        drawn = [np.asarray(draw.answer).tobytes() for draw in releases(tape)]
        first = [d for d in releases(tape) if d.mechanism.startswith("add_")]
        assert not first or len(set(drawn)) > 1

    def test_global_random_state_is_not_touched(self):
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        self.fit(self.make(), self.private())
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002

    def test_secure_noise_refuses_a_seed(self):
        with pytest.raises(ValueError, match=r"random_state.*secure"):
            self.fit(self.make(noise="secure", random_state=0), self.private())

    def test_seeded_noise_needs_a_seed(self):
        with pytest.raises(ValueError, match="random_state"):
            self.fit(self.make(noise="seeded", random_state=None), self.private())

    # scikit-learn

    def test_check_estimator(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # checks that are skipped say so
            ran = check_estimator(self.make(noise="secure", random_state=None), on_fail="raise")
        assert sum(check["status"] == "passed" for check in ran) >= 40

    def test_privacy_parameters_are_keyword_only_without_default(self):
        signature = inspect.signature(type(self.core(self.make())).__init__)
        for name in ("epsilon", "delta"):
            parameter = signature.parameters[name]
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert parameter.default is inspect.Parameter.empty
        defaults = {"noise": "secure", "random_state": None, "ledger": None, "verbose": 0}
        for name, default in defaults.items():
            assert signature.parameters[name].default == default

    def test_fit_leaves_the_parameters_alone(self):
        model = self.make()
        before = model.get_params(deep=False)
        assert self.fit(model, self.private()) is model
        after = model.get_params(deep=False)
        assert before.keys() == after.keys()
        assert all(before[name] is after[name] for name in before)
        Secrets(self.rows(), self.labels(self.rows())).check(clone(model))

    def test_params_can_be_set_and_cloned(self):
        model = self.make()
        model.set_params(**{f"{self.prefix}epsilon": 0.25, f"{self.prefix}random_state": 9})
        copied = clone(model)
        assert copied.get_params()[f"{self.prefix}epsilon"] == 0.25
        one, two = (self.answers(self.fit(some, self.private())) for some in (model, copied))
        np.testing.assert_array_equal(one, two)
        assert not hasattr(clone(model), "guarantee_")

    def test_fitted_attributes_end_in_an_underscore(self):
        model = self.make()
        before = set(vars(model))
        self.fit(model, self.private())
        new = set(vars(model)) - before
        assert new
        assert all(name.endswith("_") and not name.startswith("_") for name in new)

    def test_unfitted_model_says_so(self):
        with pytest.raises(NotFittedError):
            self.make().predict(self.public()[0])

    def test_deep_copy_shares_the_charges(self):
        private = self.private()
        copied = copy.deepcopy({"model": self.make(), "private": private})
        self.fit(copied["model"], copied["private"])
        assert private.spent(1e-6).events == copied["model"].guarantee_.events

    @pytest.mark.parametrize("n", [60, 90])  # 90 is the number of public rows
    def test_grid_search_charges_every_fit(self, n):
        private = self.private(self.rows(n=n))
        grid = {f"{self.prefix}epsilon": [0.5, 1.0]}
        search = GridSearchCV(self.make(), grid, cv=3, error_score="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            search.fit(*self.public(m=90), private=private)
        best = search.best_estimator_.guarantee_
        assert best.bounds["private rows"] == n, "the private sample was sliced"
        spent = private.spent(1e-6)
        assert len(spent.events) == 7 * len(best.events)
        assert spent.epsilon > best.epsilon

    def test_cross_validation_charges_every_fit(self):
        private = self.private(self.rows(n=90))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scores = cross_val_score(
                self.make(),
                *self.public(m=90),
                cv=3,
                params={"private": private},
                error_score="raise",
            )
        assert np.isfinite(scores).all()
        events = self.fit(self.make(), self.private()).guarantee_.events
        assert len(private.spent(1e-6).events) == 3 * len(events)

    def test_other_processes_are_refused_with_a_reason(self):
        private = self.private(self.marked()[0])
        grid = {f"{self.prefix}epsilon": [0.5, 1.0]}
        search = GridSearchCV(self.make(), grid, cv=2, n_jobs=2, error_score="raise")
        with pytest.raises(Exception, match="pickle") as caught:
            search.fit(*self.public(), private=private)
        text = told(caught.value)
        assert "n_jobs=1" in text
        assert "cannot be pickled" in text
        Secrets(self.marked()[0]).check_text(text, "the error")
        assert private.spent(1e-6).epsilon == 0

    # errors name the argument

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            *(("epsilon", value) for value in (0, -1.0, math.inf, math.nan, None, "1", True)),
            *(("delta", value) for value in (0, 1, -1e-6, math.nan, None, "1e-6", math.inf)),
            *(("noise", value) for value in ("quantum", None, 3)),
            *(("ledger", value) for value in ("budget.db", 3, object())),
            ("solver", "magic"),
            ("solver", None),
            ("method", "magic"),
        ],
    )
    @pytest.mark.parametrize("with_private", [True, False])
    def test_bad_parameters_are_named(self, argument, value, with_private):
        if argument not in self.core(self.make()).get_params(deep=False):
            pytest.skip(f"there is no parameter {argument}")
        private = self.private() if with_private else None
        with taped() as tape, pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
            self.fit(self.make(**{argument: value}), private)
        assert tape == []

    @pytest.mark.parametrize("value", [[[1.0, 2.0, 3.0]], np.zeros((5, 3)), "private.csv", 3])
    def test_private_must_be_private(self, value):
        with pytest.raises(TypeError, match=r"\bprivate\b.*Private\("):
            self.fit(self.make(), value)

    def test_wrong_columns_are_listed(self):
        X, y = self.public()
        frame = pd.DataFrame(self.rows(), columns=[NAMES[0], "other", NAMES[2]])
        labels = self.labels(self.rows())
        with pytest.raises(ValueError, match=r"\bprivate\b.*'beta'") as caught:
            self.fit(self.make(), Private(frame, labels), pd.DataFrame(X, columns=NAMES), y)
        assert "'alpha'" not in str(caught.value)

    @pytest.mark.parametrize("width", [1, 2, 4])
    def test_wrong_number_of_columns_is_told(self, width):
        rows = np.ones((9, width))
        labels = np.zeros(9) if self.needs_labels else None
        with pytest.raises(ValueError, match=rf"\bprivate\b.*\b{width} columns.*\b3\b"):
            self.fit(self.make(), Private(rows, labels))

    def test_two_columns_of_one_name_are_refused(self):
        frame = pd.DataFrame(self.rows(), columns=["alpha", "alpha", "gamma"])
        with pytest.raises(ValueError, match=r"\bX\b.*alpha"):
            Private(frame)

    def test_labels_are_asked_for_where_they_are_needed(self):
        private = Private(self.rows())
        if self.needs_labels:
            with pytest.raises(ValueError, match=r"\bprivate\b.*label"):
                self.fit(self.make(), private)
        else:
            unlabelled = self.answers(self.fit(self.make(), private))
            labelled = Private(self.rows(), np.full(len(self.rows()), SENTINEL))
            np.testing.assert_array_equal(self.answers(self.fit(self.make(), labelled)), unlabelled)

    # the budget

    def test_a_refused_charge_draws_no_noise_and_fits_nothing(self):
        model, private = self.make(ledger=Refusing()), self.private()
        with taped() as tape, pytest.raises(BudgetExceeded):
            self.fit(model, private)
        assert tape == []
        with pytest.raises(NotFittedError):
            model.predict(self.public()[0])
        assert not hasattr(model, "guarantee_")

    def test_a_refused_refit_does_not_mix_two_fits(self):
        model = self.fit(self.make(), self.private())
        before, guarantee = self.answers(model), model.guarantee_
        model.set_params(**{f"{self.prefix}ledger": Refusing()})
        with pytest.raises(BudgetExceeded):
            self.fit(model, self.private(self.rows(seed=8)))
        if hasattr(model, "guarantee_"):  # unfitted would be as good
            assert model.guarantee_ == guarantee
            np.testing.assert_array_equal(self.answers(model), before)

    def test_charge_comes_before_noise(self):
        with taped() as tape:
            ledger = Watching(tape)
            guarantee = self.fit(self.make(ledger=ledger), self.private()).guarantee_
        assert ledger.charges == [guarantee.events]
        assert ledger.draws_before == [0]
        assert tape

    def test_a_ledger_is_charged_the_events_of_the_guarantee(self):
        with tempfile.TemporaryDirectory() as folder:
            account = Ledger(Path(folder) / "budget.db").create("people", epsilon=1.2, delta=1e-6)
            model = self.fit(self.make(ledger=account), self.private())
            assert account.events() == model.guarantee_.events
            with pytest.raises(BudgetExceeded):
                self.fit(clone(model), self.private())
            assert account.events() == model.guarantee_.events

    def test_a_private_sample_remembers_what_was_spent(self):
        private = self.private()
        one = self.fit(self.make(), private).guarantee_
        two = self.fit(self.make(epsilon=0.5), private).guarantee_
        assert private.spent(1e-6).events == one.events + two.events

    # progress

    def test_progress_is_shown_only_when_asked_for(self):
        rows, labels = self.marked()
        with everything_said() as silent:
            self.make(verbose=0).fit(*self.public(), private=Private(rows, labels))
        assert silent.printed == ""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "100")
            patch.setenv("TERM", os.environ.get("TERM", "dumb"))
            with everything_said() as said:
                self.make(verbose=1).fit(*self.public(), private=Private(rows, labels))
        end = self.progress_end or len(rows)
        assert re.search(rf"\b{end}/{end}\b", said.printed), "no progress bar up to the end"
        Secrets(rows, labels).check_text(said.all, "the progress bar")


class Refusing:
    """A ledger that has no budget left."""

    def charge(self, events: Any, label: str) -> None:
        raise BudgetExceeded(spent=1.0, asked=1.0, left=0.0, budget_epsilon=1.0, budget_delta=1e-6)


class Watching:
    """A ledger that writes down its charges, and how much noise had been drawn before."""

    def __init__(self, tape: list[Draw]) -> None:
        self.tape, self.charges, self.draws_before = tape, [], []

    def charge(self, events: Any, label: str) -> None:
        self.charges.append(tuple(events))
        self.draws_before.append(len(self.tape))

    def __deepcopy__(self, memo: Any) -> Watching:
        return self
