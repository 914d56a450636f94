"""A private kernel model that is asked question by question, and never released."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator, Problem
from dpadapt.learning.constraints import Count, Instance, Named, ParameterTable, Positive
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Guarantee, Private, Session
from dpadapt.privacy.mechanisms import GaussianPath
from dpadapt.privacy.mechanisms._digest import public_digest
from dpadapt.privacy.mechanisms.asking import open_answers, restore_answers
from dpadapt.privacy.mechanisms.interactive_model import Interactive, InteractiveModel

from ._learner import KernelProblem
from ._model import KernelModel
from .constants import Constants
from .pool import Pool, nearest_in_ball

_FREE = ("estimator", "state", "most_questions", "ledger", "verbose")
_SHOWN = 50  # public rows on which a kernel of one's own is compared


class AnswerMethod(Strategy):
    """A way to answer questions about a private model.

    Examples
    --------
    >>> isinstance(NoisePath(), AnswerMethod)
    True
    """

    @abstractmethod
    def mechanism(
        self, facts: Constants, outputs: int, epsilon: float, delta: float
    ) -> Interactive:
        """Return the mechanism; by how much answers move is proved in :mod:`.queries`.

        Parameters
        ----------
        facts : Constants
        outputs : int
        epsilon, delta : float
        """


@dataclass(frozen=True)
class NoisePath(AnswerMethod):
    """One path of a Gaussian process, for any number of questions.

    Examples
    --------
    >>> NoisePath()
    NoisePath()
    """

    def mechanism(
        self, facts: Constants, outputs: int, epsilon: float, delta: float
    ) -> Interactive:
        """Noise by how far the whole model moves."""
        return GaussianPath(facts.sensitivity)


# parameters that change nothing that is answered


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

    def decode(self, texts: Sequence[bytes]) -> FloatArray:
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


class InteractivePredictor(PrivateEstimator):
    """A private kernel model that answers questions one by one; it is never released.

    With ``method="gaussian-process"`` any number of questions costs one charge: the noise is one
    path of a Gaussian process with the model's kernel, drawn as far as it is asked for, so that the
    same question always has the same answer. What was drawn is a secret and is kept in a file,
    written before an answer leaves; after a crash every earlier question has its earlier answer.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier
        Budget, kernel, loss and penalty; not fitted.
    method : str, NoisePath, PINP or SparseVector, default="gaussian-process"
        "pinp" is the paper's Algorithm 1 with corrected constants, "sparse-vector" decides and
        answers with separate noise; with options of their own, ``PINP(calibration="paper")``,
        ``SparseVector(questions=100)``. Both learn a public model from a limited number of updates
        and answer from it when they are used up; one output only.
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
    >>> from dpadapt.kernels import RBF, KernelClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.uniform(-1, 1, size=(50, 2)), rng.uniform(-1, 1, size=(2000, 2))
    >>> y, t = (np.where(rows[:, 0] * rows[:, 1] > 0, "same", "other") for rows in (X, T))
    >>> model = KernelClassifier(epsilon=1.0, delta=1e-6, kernel=RBF(gamma=1.0))
    >>> predictor = InteractivePredictor(model).fit(X, y, private=Private(T, t))
    >>> first = predictor.decision_function([[0.5, 0.5]])
    >>> bool(first == predictor.decision_function([[0.5, 0.5]])), predictor.questions_asked_
    (True, 1)
    >>> predictor.close()
    """

    _constraints: ClassVar[ParameterTable] = {
        "estimator": [Instance(KernelModel, advice="Give a KernelRegressor or KernelClassifier.")],
        "method": [
            Named(
                {
                    "gaussian-process": NoisePath,
                    "pinp": "dpadapt.papers.kernels.interactive_methods.PINP",
                    "sparse-vector": "dpadapt.papers.kernels.interactive_methods.SparseVector",
                }
            )
        ],
        "most_questions": [Count()],
        "grid": [Positive()],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: Any = "gaussian-process",
        most_questions: int = 10_000,
        grid: float = 1e-6,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.most_questions = most_questions
        self.grid = grid
        self.state = state

    def fit(self, X: Any, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Train on private rows, charge for all answers, and make the secret file.

        Parameters
        ----------
        X, y : array-like
            Public rows and labels: units, classes, the range of labels.
        private : Private
            Private rows and labels; there is no predictor without any.
        """
        return self._fit(X, y, private, resume=False)

    def restore(self, X: Any, y: ArrayLike, *, private: Private) -> Self:
        """Go on from the secret file, with the same data: nothing is charged again.

        Parameters
        ----------
        X, y, private
            As they were given to ``fit``.
        """
        if self.state is None:
            raise ValueError("state: restore needs the file that fit wrote.")
        return self._fit(X, y, private, resume=True)

    # budget and noise are those of the estimator

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """Of the estimator."""
        return float(self.estimator.epsilon)

    @property
    def delta(self) -> float:  # type: ignore[override]
        """Of the estimator."""
        return float(self.estimator.delta)

    @property
    def noise(self) -> str:  # type: ignore[override]
        """Of the estimator."""
        return str(self.estimator.noise)

    @property
    def random_state(self) -> Any:
        """Of the estimator."""
        return self.estimator.random_state

    @property
    def ledger(self) -> Any:
        """Of the estimator."""
        return self.estimator.ledger

    # the fit

    def _check(self) -> None:
        self.estimator._check_parameters()
        if self.noise == "exact":
            raise ValueError("noise: a path of noise is continuous; use 'secure'.")

    def _read(self, X: Any, y: Any, private: Any, *, resume: bool = False) -> _Opening:
        model = clone(self.estimator)
        return _Opening(model, model._read(X, y, private), resume)

    def _sample(self, problem: _Opening, private: Any) -> Private | None:
        return problem.model._sample(problem.public, private)

    def _solve(self, problem: _Opening, session: Session | None) -> dict[str, Any]:
        if session is None:
            raise ValueError("private: a predictor that is asked needs private rows.")
        model, public = problem.model, problem.public
        # kernel values: nothing is released as a whole
        learner = model._learner(public, session.n_rows, features="none")
        budget = (session.epsilon, session.delta)
        asked = InteractiveModel(
            learner.gram(),
            lambda table: learner.solve(np.ascontiguousarray(table[:, :-1]), table[:, -1]),
            self._strategy("method").mechanism(
                learner.facts(session.n_rows), learner.task.outputs, *budget
            ),
            NumberQuestions(self.grid) if model._numeric else TextQuestions(),
            self.most_questions,
            self._facts(model, learner, public),
        )
        if problem.resume:
            assert self.state is not None
            self._asking = restore_answers(session, asked, self.state)
        else:
            self._asking = open_answers(session, asked, self.state)
        for name, value in learner.attributes.items():
            setattr(model, name, value)
        self._norm = learner.facts(session.n_rows).norm_bound
        return {"estimator_": model}

    def _adapt(
        self, problem: _Opening, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        session = sample.open(**options, label=type(self).__name__)  # until it is closed
        problem.model._count(session)
        found = self._solve(problem, session)
        return found, session.guarantee

    def _facts(self, model: Any, learner: KernelProblem, public: Problem) -> dict[str, Any]:
        """Public facts that a file must have been made with: all parameters, all public data."""
        own = {f"{type(model).__name__}.{name}": value for name, value in _options(model).items()}
        facts = {
            name: _plain(value)
            for name, value in {**_options(self), **own}.items()
            if name.split(".")[-1] not in _FREE
        }
        facts["public rows"] = public_digest(public.X)
        facts["public labels"] = public_digest(public.labels)
        if public.names is not None:
            facts["classes"] = public_digest(public.names)
        if not model._numeric:  # a function has no digest; its values have
            some = public.X[: min(public.X.shape[0], _SHOWN)]
            values = learner.setup.values(some, some)
            facts["kernel values"] = public_digest([f"{value:.6g}" for value in values.ravel()])
        return facts

    # answers

    def _outputs(self, X: Any) -> FloatArray:
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

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of a classifier; one column each, or one number for two classes.

        Parameters
        ----------
        X : array-like of shape (m, d)
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def model_of_answers(self, points: Any) -> Any:
        """Ask at public points, and fit a model to the answers: TDDL with this predictor's noise.

        With ``method="pinp"`` it is the paper's remark that Algorithm 2 can do with noise that
        grows with the logarithm of the number of points. Answers are public once they are given,
        so the model costs nothing more. One output only.

        Parameters
        ----------
        points : array-like of shape (T, d)

        Returns
        -------
        KernelRegressor or KernelClassifier
            Fitted, with the guarantee of the predictor.
        """
        scores, model = self._outputs(points), copy(self.estimator_)
        if scores.shape[1] != 1:
            raise ValueError("points: a model of answers has one output: two classes, or a number.")
        rows = (
            validate_data(model, points, dtype=np.float64, reset=False)
            if model._numeric
            else points
        )
        pool = Pool.of(model.setup_.values(rows, rows))
        model.dual_coef_ = nearest_in_ball(pool, scores, self._norm)
        model.pool_, model.guarantee_ = rows, self.guarantee_
        return model

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


@dataclass(frozen=True, eq=False)
class _Opening:
    """A model that is not fitted, its public rows, and whether a file goes on."""

    model: Any
    public: Problem
    resume: bool
    names: ClassVar[None] = None  # private labels are encoded by the model


def _options(thing: Any) -> dict[str, Any]:
    """Parameters by name, with the options of those that are objects."""
    found: dict[str, Any] = {}
    for name in thing.get_params(deep=False):
        value = thing._strategy(name)
        found[name] = type(value).__name__ if isinstance(value, Strategy) else value
        if isinstance(value, Strategy):
            found |= {f"{name}__{key}": option for key, option in value.get_params().items()}
    return found


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
