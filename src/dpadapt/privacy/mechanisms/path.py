"""Noise that is a function: one draw of a Gaussian process, looked at point by point.

A private kernel model w* may answer any number of questions z with <w*, phi(z)> + s G(z), where
G is one path of the Gaussian process with the model's own kernel: for any set of questions the
answers are the model's restriction to their span plus noise of the same geometry, and one charge
pays for all (Hall, Rinaldo, Wasserman 2013). The path is drawn as it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from dpadapt._types import FloatArray

from ..accounting.events import Event, Relation
from ..core.noise import NoiseSource
from ..rows.errors import PrivacyError
from ..statistics.gram import Gram
from .answers import Answers
from .interactive_model import Interactive, InteractiveModel
from .secret_state import Remembered

QUESTION_NUGGET = 1e-6  # of R^2: variance that every distinct question has to itself
_BITS = 12  # an answer is rounded to its noise over 2^12: its last digits must not betray it
_TOGETHER = 256  # questions that are drawn, and rows of the factor that are solved for, at a time
Normals = Callable[[tuple[int, int]], FloatArray]


@dataclass(frozen=True)
class GaussianPath(Interactive):
    """Any number of answers with one path of noise, for one charge.

    Parameters
    ----------
    sensitivity : float
        Delta, a bound on |w - w'| in the kernel's space, of all outputs together.
    label : str

    Examples
    --------
    >>> GaussianPath(0.01).sensitivity
    0.01
    """

    sensitivity: float
    label: str = "answers to questions"

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """Refuse discrete noise."""
        if source.name == "exact":
            raise PrivacyError("a path of noise is continuous; use noise='secure'.")

    def scale_at(self, multiplier: float) -> float:
        """Noise scale at a noise multiplier."""
        return multiplier * self.sensitivity

    def events(self, scale: float, source: NoiseSource) -> tuple[Event, ...]:
        """What is charged for all answers together."""
        return (source.gaussian_event(self.label, self.sensitivity, scale, 1, 1),)

    def _answers(
        self,
        session: Any,
        model: InteractiveModel,
        coefficients: FloatArray,
        scale: float,
        state: Any,
    ) -> Answers:
        return _PathAnswers(session, model, coefficients, scale, state)


class LazyPath:
    r"""One path of a Gaussian process with covariance K + j I, drawn question by question.

    With L the Cholesky factor over past questions and g their normals, a new question has
    l = L^{-1} k, v = K(z, z) + j - |l|^2 and the value l.g + sqrt(v) g_new.

    *Privacy.* For questions Z the answers of two neighbouring models differ by
    p - p' = (<w - w', phi(z)>)_z. Its Mahalanobis norm under K_ZZ + j I is at most that under K_ZZ,
    the norm of the projection of w - w' on the span: at most Delta. Questions may depend on
    earlier answers: the sum of the conditional squares is the same square.

    *The nugget j* makes that true in floating point. Without it a question near the span of
    earlier ones has a computed v of 0 while the answer's own part outside the span is not 0:
    whoever subtracts l.g then reads it without noise, after a dozen questions. With it v is at
    least j in exact arithmetic; where rounding leaves less than j / 2, the question gets fresh
    noise of variance j, which only adds noise.

    *Memory.* After n questions the factor takes 4 n (n + 256) bytes and the rest 8 kB a question
    while one is added: 0.4 GB and 80 MB for 10,000.

    Parameters
    ----------
    gram : Gram
        The kernel, with its bound R^2 on K(z, z).
    outputs : int
        Independent paths, one for each output of the model.
    normals : callable
        Draws standard normals of a given shape, with a density: not rounded to any grid, or the
        set of possible answers would tell the un-noised one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> path = LazyPath(Gram(lambda A, B: A @ B.T, 1.0), 1, rng.standard_normal)
    >>> first = path.extend(np.array([[1.0], [0.5]]))
    >>> first.shape, len(path)
    ((2, 1), 2)
    """

    def __init__(self, gram: Gram, outputs: int, normals: Normals) -> None:
        self._gram, self._normals = gram, normals
        self._nugget = QUESTION_NUGGET * gram.squared_bound
        self._questions: list[tuple[Any, FloatArray]] = []  # tables, with their factors
        self._factor: list[FloatArray] = []  # 256 rows of it each, as wide as they need to be
        self._drawn = np.zeros((0, outputs))

    def __len__(self) -> int:
        return len(self._drawn)

    def extend(self, questions: Any) -> FloatArray:
        """Value of the path at new, distinct questions."""
        shape = (questions.shape[0], self._drawn.shape[1])
        return self._append_all(questions, self._normals(shape))

    def secret(self, number: int) -> bytes:
        """What :meth:`adopt` needs of a question: its normals and its row of the factor."""
        row = self._factor[number // _TOGETHER][number % _TOGETHER, : number + 1]
        return np.concatenate([self._drawn[number], row]).tobytes()

    def adopt(self, questions: Any, secrets: Sequence[bytes]) -> None:
        """Take over questions that were drawn before, without drawing or solving anything."""
        old, outputs = self._drawn.shape
        drawn = np.zeros((len(secrets), outputs))
        for i, secret in enumerate(secrets):
            numbers = np.frombuffer(secret)
            if len(numbers) != outputs + old + i + 1:
                raise ValueError("not the secret of this question.")
            drawn[i] = numbers[:outputs]
            self._block(old + i)[(old + i) % _TOGETHER, : old + i + 1] = numbers[outputs:]
        self._drawn = np.vstack([self._drawn, drawn])
        self._remember(questions, self._gram.factors(questions))

    def _block(self, number: int) -> FloatArray:
        """The rows of the factor among which is that of a question."""
        if number // _TOGETHER == len(self._factor):
            self._factor.append(np.zeros((_TOGETHER, number + _TOGETHER)))
        return self._factor[number // _TOGETHER]

    def _append_all(self, questions: Any, normals: FloatArray) -> FloatArray:
        values = np.zeros_like(normals)
        start = 0
        while start < len(normals):
            cut = slice(start, start + _TOGETHER - len(self) % _TOGETHER)  # rows of one block
            values[cut] = self._append(questions[cut], normals[cut])
            start = cut.stop
        return values

    def _append(self, questions: Any, normals: FloatArray) -> FloatArray:
        old, new = len(self), len(normals)
        own_factors = self._gram.factors(questions)
        cross = np.zeros((old, new))
        done = 0
        for part, factors in self._questions:
            values = self._gram.between(part, questions, factors, own_factors)
            cross[done : done + len(factors)] = values
            done += len(factors)
        within = self._gram.between(questions, questions, own_factors, own_factors)
        beside = _forward(self._factor, cross)
        left = within - beside.T @ beside
        values = beside.T @ self._drawn
        own, drawn = np.zeros((new, new)), normals
        for i in range(new):
            own[i, :i] = solve_triangular(own[:i, :i], left[i, :i], lower=True, check_finite=False)
            variance = left[i, i] + self._nugget - float(own[i, :i] @ own[i, :i])
            # never clipped at zero: rounding must not leave a question without noise of its own
            if not variance >= self._nugget / 2:
                variance = self._nugget
            own[i, i] = np.sqrt(variance)
            values[i] += own[i, :i] @ drawn[:i] + own[i, i] * drawn[i]
        rows = self._block(old)[old % _TOGETHER :][:new]
        rows[:, :old] = beside.T
        rows[:, old : old + new] = own
        self._drawn = np.vstack([self._drawn, drawn])
        self._remember(questions, own_factors)
        return np.asarray(values)

    def _remember(self, questions: Any, factors: FloatArray) -> None:
        """Keep the questions in few tables: a kernel is fast on long ones."""
        self._questions.append((questions, factors))
        while len(self._questions) > 1 and len(self._questions[-2][1]) <= len(
            self._questions[-1][1]
        ):
            (one, left), (two, right) = self._questions[-2:]
            self._questions[-2:] = [(_stacked(one, two), np.concatenate([left, right]))]

    def __reduce__(self) -> Any:
        raise TypeError("a path of noise cannot be copied or pickled: it is a secret.")


class _PathAnswers(Answers):
    """Any number of answers from one path of noise, for one charge."""

    def _prepare(self) -> None:
        gram, outputs = self._model.gram, self._coefficients.shape[1]
        # not rounded: they are scaled and added to a private score. The answer is rounded
        self._path = LazyPath(gram, outputs, self._session._source.normals)
        self._grid = 2.0 ** np.floor(np.log2(self._scale * gram.radius) - _BITS)

    def _draw(self, keys: Sequence[bytes]) -> list[Remembered]:
        if not keys:
            return []
        table, first = self._model.questions.decode(keys), len(self._path)
        answers = self._scores(table) + self._scale * self._path.extend(table)
        rounded = np.nan_to_num(np.round(answers / self._grid) * self._grid)
        return [
            Remembered(key, self._path.secret(first + i), rounded[i].tobytes())
            for i, key in enumerate(keys)
        ]

    def _adopt(self, others: Sequence[Remembered]) -> None:
        table = self._model.questions.decode([one.question for one in others])
        self._path.adopt(table, [one.secret for one in others])


def _forward(factor: Sequence[FloatArray], right: FloatArray) -> FloatArray:
    """Solve factor x = right, lower triangular, block by block: no square of it is ever made."""
    x = right.copy()
    for start, rows in zip(range(0, len(x), _TOGETHER), factor, strict=False):
        own = slice(start, start + _TOGETHER)
        size = len(x[own])
        x[own] -= rows[:size, :start] @ x[:start]
        corner = rows[:size, start : start + size]
        x[own] = solve_triangular(corner, x[own], lower=True, check_finite=False)
    return x


def _stacked(one: Any, two: Any) -> Any:
    if hasattr(one, "tocsr"):
        from scipy.sparse import vstack

        return vstack([one, two]).tocsr()
    if hasattr(one, "iloc"):
        import pandas as pd

        return pd.concat([one, two], ignore_index=True)
    return np.concatenate([one, two])
