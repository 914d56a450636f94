"""A private kernel model that is asked question by question, and never released."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._checks import aligned_private, session_options
from dpadapt.privacy import PrivacyError, Private, Request, Session
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.answers import MachineAnswers, Oracle, PathAnswers
from dpadapt.privacy.events import event_from_dict
from dpadapt.privacy.secret_state import SecretState

from ._estimator import KernelModel, Task
from ._setup import Setup, make_setup
from .erm import Constants
from .pinp import PINP, PINPConstants, Setting, SparseVector, SparseVectorConstants
from .pool import sum_error

__all__ = ["InteractivePredictor"]

Array = NDArray[np.float64]

METHODS = ("gaussian-process", "pinp", "sparse-vector")
_LABEL = "answers to questions"


@dataclass(frozen=True)
class NumberQuestions:
    """Questions of numbers, rounded to a public grid.

    Parameters
    ----------
    grid : float
    """

    grid: float

    def encode(self, table: Any) -> list[bytes]:
        """Bytes of each rounded row."""
        rounded = np.round(np.asarray(table, dtype=np.float64) / self.grid) * self.grid + 0.0
        return [row.tobytes() for row in np.ascontiguousarray(rounded)]

    def decode(self, texts: Sequence[bytes]) -> Array:
        """Table of the rows."""
        return np.array([np.frombuffer(text) for text in texts])


@dataclass(frozen=True)
class TextQuestions:
    """Questions of texts, one column."""

    def encode(self, table: Any) -> list[bytes]:
        """Bytes of each text."""
        return [str(np.ravel(row)[0]).encode() for row in np.asarray(table, dtype=object)]

    def decode(self, texts: Sequence[bytes]) -> Any:
        """Table of the texts."""
        return np.array([[text.decode()] for text in texts], dtype=object)


class InteractivePredictor(BaseEstimator):
    """A private kernel model that answers questions one by one; it is never released.

    With ``method="gaussian-process"`` any number of questions costs one charge: the noise is one
    path of a Gaussian process with the model's kernel, drawn as far as it is asked for, so that the
    same question always has the same answer. What was drawn is a secret and is kept in a file,
    written before an answer leaves; after a crash every earlier question has its earlier answer.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier
        Budget, kernel, loss and penalty; not fitted.
    method : {"gaussian-process", "pinp", "sparse-vector"}, default="gaussian-process"
        "pinp" is the paper's Algorithm 1 with corrected constants; "sparse-vector" decides and
        answers with separate noise. Both learn a public model from a limited number of updates
        and answer from it when they are used up; one output only.
    calibration : {"tight", "paper"}, default="tight"
        Of "pinp": the least noise that is proved to be enough, or the constants of Theorem 9.
    questions : int, default=10000
        How many are expected, for the thresholds of "pinp" and "sparse-vector"; more may be asked.
    grid : float, default=1e-6
        Questions are rounded to it: what "the same question" means.
    state : path, optional
        The secret file. Without one the answers live as long as the process.

    Attributes
    ----------
    estimator_ : KernelRegressor or KernelClassifier
        With public attributes only.
    guarantee_ : Guarantee
    questions_asked_ : int
        Different questions so far.
    updates_used_, updates_left_ : int or None
        Of "pinp" and "sparse-vector".

    See Also
    --------
    KernelClassifier : releases a model once, for good.

    Examples
    --------
    >>> from dpadapt.kernels import KernelClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.uniform(-1, 1, size=(50, 2)), rng.uniform(-1, 1, size=(2000, 2))
    >>> y, t = (np.where(rows[:, 0] * rows[:, 1] > 0, "same", "other") for rows in (X, T))
    >>> model = KernelClassifier(epsilon=1.0, delta=1e-6, gamma=1.0)
    >>> predictor = InteractivePredictor(model).fit(X, y, private=Private(T, t))
    >>> first = predictor.decision_function([[0.5, 0.5]])
    >>> bool(first == predictor.decision_function([[0.5, 0.5]])), predictor.questions_asked_
    (True, 1)
    >>> predictor.close()
    """

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "gaussian-process",
        calibration: str = "tight",
        questions: int = 10_000,
        grid: float = 1e-6,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.calibration = calibration
        self.questions = questions
        self.grid = grid
        self.state = state

    def fit(self, X: Any, y: ArrayLike, *, private: Private) -> Self:
        """Train on private rows, charge for all answers, and make the secret file.

        Parameters
        ----------
        X, y : array-like
            Public rows and labels: units, classes, the range of labels.
        private : Private
            Private rows and labels.
        """
        return self._open(X, y, private, resume=False)

    def restore(self, X: Any, y: ArrayLike, *, private: Private) -> Self:
        """Go on from the secret file, with the same data: nothing is charged again.

        Parameters
        ----------
        X, y, private
            As they were given to ``fit``.
        """
        if self.state is None:
            raise ValueError("state: restore needs the file that fit wrote.")
        return self._open(X, y, private, resume=True)

    def _open(self, X: Any, y: Any, private: Any, *, resume: bool) -> Self:
        self._check(self.estimator)
        model = clone(self.estimator)
        options = session_options(model)
        model._check()
        rows, labels = model._public(X, y)
        task = model._task(labels)
        sample = aligned_private(model, private, labelled=True)
        if sample is None:
            raise ValueError("private: a predictor that is asked needs private rows.")
        setup = make_setup(model, rows, sample.n_rows)
        setup = replace(setup, features=None)  # kernel values: nothing is released as a whole
        penalty = model._penalty(setup, task, sample.n_rows, options)
        facts = setup.facts(task.loss, penalty, sample.n_rows, task.columns)
        known = self._facts(model, options, facts, rows, task)
        state = self._state(known, resume)
        session = model._encoded(sample, labels).open(**options, label=type(self).__name__)
        answers = self._answers(session, model, setup, task, penalty, facts, state)
        # only now: what failed must not look fitted
        model.setup_, model.penalty_ = setup, penalty
        model._finish(labels)
        self.estimator_, self.guarantee_ = model, session.guarantee
        self._asking = answers
        return self

    def _check(self, model: Any) -> None:
        if not isinstance(model, KernelModel):
            raise TypeError(
                "estimator must be a KernelRegressor or KernelClassifier; got "
                f"{type(model).__name__}."
            )
        validate.choice("method", self.method, METHODS)
        validate.choice("calibration", self.calibration, ("tight", "paper"))
        validate.count("questions", self.questions)
        validate.positive("grid", self.grid)
        if self.calibration == "paper" and self.method != "pinp":
            raise ValueError("calibration='paper' is for method='pinp'.")
        if model.noise == "exact":
            raise ValueError("noise: a path of noise is continuous; use 'secure'.")

    def _facts(
        self, model: Any, options: dict[str, Any], facts: Constants, rows: Any, task: Task
    ) -> dict[str, Any]:
        """Public facts that a file must have been made with."""
        name = model.kernel if isinstance(model.kernel, str) else "a function"
        digest = hashlib.sha256(np.asarray(rows).astype(str).tobytes()).hexdigest()
        return {
            "method": self.method,
            "epsilon": options["epsilon"],
            "delta": options["delta"],
            "kernel": name,
            "sensitivity": facts.sensitivity,
            "rows": facts.rows,
            "outputs": task.outputs,
            "grid": self.grid,
            "public rows": digest,
        }

    def _state(self, facts: dict[str, Any], resume: bool) -> SecretState | None:
        if self.state is None:
            return None
        if not resume:
            return SecretState.create(self.state, facts)
        state = SecretState.open(self.state)
        stored = {name: state.facts.get(name) for name in facts}
        if stored != facts:
            other = next(name for name in facts if stored[name] != facts[name])
            state.close()
            raise PrivacyError(
                f"state: {self.state} was made by another predictor or with other data (it differs "
                f"in: {other}). Its answers are not these."
            )
        return state

    def _answers(
        self,
        session: Session,
        model: Any,
        setup: Setup,
        task: Task,
        penalty: float,
        facts: Constants,
        state: SecretState | None,
    ) -> Any:
        gram = setup.gram(task.labels)

        def solve(table: Array) -> Array:
            K = np.ascontiguousarray(table[:, :-1])
            return setup.solve(K, task.targets(table[:, -1]), task.loss, penalty)

        oracle = Oracle(session, gram, session.derive(session.hide_gram(gram), solve, "model"))
        numbers = model._numeric
        codec: Any = NumberQuestions(self.grid) if numbers else TextQuestions()
        if self.method == "gaussian-process":
            request = Request("gaussian", _LABEL, facts.sensitivity)
            grant = self._grant(session, request, state)
            return PathAnswers(session, grant, oracle, gram, task.outputs, codec, state)
        if task.outputs != 1:
            raise ValueError(f"method={self.method!r} has one output: two classes, or a number.")
        norm = facts.norm_bound
        error = 2 * sum_error(facts.rows, norm * facts.radius)
        prediction = facts.radius * facts.sensitivity + error
        setting = Setting(
            prediction, facts.radius, norm, session.epsilon, session.delta, self.questions
        )
        return self._machine(session, setup, setting, oracle, codec, state)

    def _grant(self, session: Session, request: Request, state: SecretState | None) -> Any:
        """Charge, or go on with what was charged: then the file has the scale."""
        stored = None if state is None else state.recall("charge")
        if stored is not None:
            charged = json.loads(stored)
            events = tuple(event_from_dict(event) for event in charged["events"])
            return session.resume(events, request, float(charged["scale"]))
        (grant,) = session.plan(request)
        self._note(session, state, grant.scale)
        return grant

    def _note(self, session: Session, state: SecretState | None, scale: float) -> None:
        if state is not None:
            events = [event.to_dict() for event in session.guarantee.events]
            state.note("charge", json.dumps({"scale": scale, "events": events}).encode())

    def _machine(
        self,
        session: Session,
        setup: Setup,
        setting: Setting,
        oracle: Oracle,
        codec: Any,
        state: SecretState | None,
    ) -> MachineAnswers:
        constants: Any
        kind: Any
        if self.method == "sparse-vector":
            constants, kind = SparseVectorConstants.calibrated(setting), SparseVector
        else:
            make = PINPConstants.paper if self.calibration == "paper" else PINPConstants.calibrated
            constants, kind = make(setting), PINP
        stored = None if state is None else state.recall("charge")
        if stored is None:
            session.charge(constants.events)
            self._note(session, state, 0.0)
        else:
            events = json.loads(stored)["events"]
            session.resume(tuple(event_from_dict(event) for event in events))

        def build(score: Callable[[Any], float], source: Any) -> _Kept:
            def kernel(question: Any, past: Sequence[Any]) -> Array:
                return setup.values(question, np.concatenate(past))[0]

            return _Kept(kind, constants, score, kernel, source, codec)

        return MachineAnswers(session, build, oracle, codec, state)

    # answers

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "estimator_")
        model = self.estimator_
        if model._numeric:
            X = validate_data(model, X, dtype=np.float64, reset=False)
        return np.asarray(self._asking.ask(X))

    def predict(self, X: Any) -> Any:
        """Answer questions: a number or a class each.

        Parameters
        ----------
        X : array-like of shape (m, d)
        """
        outputs = self._outputs(X)
        return self.estimator_.answers_of(outputs)

    def decision_function(self, X: Any) -> Array:
        """Scores of a classifier; one column each, or one number for two classes.

        Parameters
        ----------
        X : array-like of shape (m, d)
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    @property
    def questions_asked_(self) -> int:
        """Different questions so far."""
        return len(self._asking)

    @property
    def updates_used_(self) -> int | None:
        """Updates of the public model so far; None for a Gaussian process, which has none."""
        return getattr(getattr(self._asking, "machine", None), "updates_used", None)

    @property
    def updates_left_(self) -> int | None:
        """Updates that are paid for still."""
        return getattr(getattr(self._asking, "machine", None), "updates_left", None)

    def close(self) -> None:
        """Forget the private rows, and close the file."""
        self._asking.close()

    def __getstate__(self) -> Any:
        raise TypeError(
            "a predictor that is asked cannot be pickled: it holds private rows. Its answers are "
            "in the file given as state=; restore it from there."
        )


class _Kept:
    """PINP or SparseVector with a state that can be written down."""

    def __init__(
        self, kind: Any, constants: Any, score: Any, kernel: Any, source: Any, codec: Any
    ) -> None:
        self._kind, self._score, self._kernel = kind, score, kernel
        self._source, self._codec = source, codec
        self._machine = kind(constants, score, kernel, source=source, outside="rescale")

    def ask(self, question: Any) -> Any:
        return self._machine.ask(question)

    @property
    def updates_used(self) -> int:
        return int(self._machine.updates_used)

    @property
    def updates_left(self) -> int:
        return int(self._machine.updates_left)

    def dump(self) -> bytes:
        state = self._machine.state()
        texts = [self._codec.encode(question)[0] for question in state["questions"]]
        plain = {
            **state,
            "questions": [base64.b64encode(text).decode() for text in texts],
            "coefficients": [float(value) for value in state["coefficients"]],
        }
        return json.dumps(plain).encode()

    def load(self, state: bytes) -> None:
        plain = json.loads(state)
        texts = [base64.b64decode(text) for text in plain["questions"]]
        plain["questions"] = [self._codec.decode([text]) for text in texts]
        self._machine = self._kind.from_state(plain, self._score, self._kernel, source=self._source)
