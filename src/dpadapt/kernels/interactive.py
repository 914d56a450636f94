"""A private kernel model that is asked question by question, and never released."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._checks import session_options
from dpadapt.privacy import Private
from dpadapt.privacy import _validate as validate
from dpadapt.privacy._digest import public_digest
from dpadapt.privacy.asked_model import AskedModel
from dpadapt.privacy.asking import open_answers, restore_answers
from dpadapt.privacy.machine_constants import PINPConstants, Setting, SparseVectorConstants
from dpadapt.privacy.paths import PathRequest

from ._estimator import KernelModel, Task
from ._setup import Setup, make_setup
from .erm import Constants
from .pool import sum_error

__all__ = ["InteractivePredictor"]

Array = NDArray[np.float64]

METHODS = ("gaussian-process", "pinp", "sparse-vector")
# parameters that change nothing that is answered
_FREE = ("estimator", "state", "most_questions", "ledger", "verbose")
_SHOWN = 50  # public rows on which a kernel of one's own is compared


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
    most_questions : int, default=10000
        How many different ones are answered at most, a bound on memory: for n questions a Gaussian
        process holds 4 n (n + 256) bytes (0.4 GB for 10,000), and as much in the file. Earlier
        questions are answered ever after.
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
        most_questions: int = 10_000,
        grid: float = 1e-6,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.calibration = calibration
        self.questions = questions
        self.most_questions = most_questions
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
        sample = model._sample(private, rows)
        if sample is None:
            raise ValueError("private: a predictor that is asked needs private rows.")
        setup = make_setup(model, rows, sample.n_rows)
        setup = replace(setup, features=None)  # kernel values: nothing is released as a whole
        penalty = model._penalty(setup, task, sample.n_rows, options)
        facts = setup.facts(task.loss, penalty, sample.n_rows, task.columns)
        session = model._encoded(sample, labels).open(**options, label=type(self).__name__)
        asked = AskedModel(
            setup.gram(task.labels),
            _solver(setup, task, penalty),
            self._mechanism(task, facts, options),
            NumberQuestions(self.grid) if model._numeric else TextQuestions(),
            self.most_questions,
            self._facts(model, setup, rows, labels),
        )
        if resume:
            assert self.state is not None
            answers = restore_answers(session, asked, self.state)
        else:
            answers = open_answers(session, asked, self.state)
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
        validate.count("most_questions", self.most_questions)
        validate.positive("grid", self.grid)
        if self.calibration == "paper" and self.method != "pinp":
            raise ValueError("calibration='paper' is for method='pinp'.")
        if model.noise == "exact":
            raise ValueError("noise: a path of noise is continuous; use 'secure'.")

    def _facts(self, model: Any, setup: Setup, rows: Any, labels: Any) -> dict[str, Any]:
        """Public facts that a file must have been made with: all parameters, all public data."""
        own = {f"{type(model).__name__}.{k}": v for k, v in model.get_params().items()}
        mine = {k: v for k, v in self.get_params(deep=False).items() if k not in _FREE}
        facts = {k: _plain(v) for k, v in {**mine, **own}.items() if k.split(".")[-1] not in _FREE}
        facts["public rows"] = public_digest(rows)
        facts["public labels"] = public_digest(labels)
        if callable(model.kernel):  # a function has no digest; its values have
            some = rows[: min(rows.shape[0], _SHOWN)]
            values = setup.values(some, some)
            facts["kernel values"] = public_digest([f"{value:.6g}" for value in values.ravel()])
        return facts

    def _mechanism(self, task: Task, facts: Constants, options: dict[str, Any]) -> Any:
        if self.method == "gaussian-process":
            return PathRequest(facts.sensitivity)
        if task.outputs != 1:
            raise ValueError(f"method={self.method!r} has one output: two classes, or a number.")
        norm = facts.norm_bound
        error = 2 * sum_error(facts.rows, norm * facts.radius)
        prediction = facts.radius * facts.sensitivity + error
        budget = (options["epsilon"], options["delta"])
        setting = Setting(prediction, facts.radius, norm, *budget, self.questions)
        if self.method == "sparse-vector":
            return SparseVectorConstants.calibrated(setting)
        paper = self.calibration == "paper"
        return PINPConstants.paper(setting) if paper else PINPConstants.calibrated(setting)

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
        return self._asking.updates_used

    @property
    def updates_left_(self) -> int | None:
        """Updates that are paid for still."""
        return self._asking.updates_left

    def close(self) -> None:
        """Forget the private rows, and close the file."""
        self._asking.close()

    def __getstate__(self) -> Any:
        raise TypeError(
            "a predictor that is asked cannot be pickled: it holds private rows. Its answers are "
            "in the file given as state=; restore it from there."
        )


def _solver(setup: Setup, task: Task, penalty: float) -> Callable[[Array], Array]:
    def solve(table: Array) -> Array:
        K = np.ascontiguousarray(table[:, :-1])
        return setup.solve(K, task.targets(table[:, -1]), task.loss, penalty)

    return solve


def _plain(value: Any) -> Any:
    """A parameter as a plain value that can be compared after a restart."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if callable(value):
        kind = value if hasattr(value, "__qualname__") else type(value)
        return f"{kind.__module__}.{kind.__qualname__}"
    return public_digest(value)
