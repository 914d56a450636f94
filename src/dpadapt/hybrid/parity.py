r"""Parities in one round (Appendix B of paper 003): the curator solves, agents check.

Under the uniform target no local protocol learns a parity from fewer than exponentially many
people. The curator's rows, from any source with finite :math:`\chi^2(T \| S)`, hold enough
equations: a mask v other than 0 is odd on half of the target, so by Cauchy and Schwarz on at least
:math:`1 / (4 (\chi^2 + 1))` of the source. As long as the equations have not full rank, a row
raises it with that probability, and :math:`4 (\chi^2 + 1) \ln(d/b)` rows do except with
probability b / d. So :math:`4 (\chi^2 + 1) d \ln(d/b)` rows have full rank, hence one solution,
with probability 1 - b. (Full rank is what is proved; the paper says "linearly independent".)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.privacy import Grant, Request, Session
from dpadapt.privacy import _validate as validate
from dpadapt.privacy.parity import thinning
from dpadapt.privacy.weights import RowWeights

from .learners import Task
from .rules import two_labels

__all__ = ["ParityLearner", "ParityRows", "ParityRule", "parity_rows"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ParityRows:
    """How many rows the parity learner needs; of :func:`parity_rows`.

    Attributes
    ----------
    total : int
        n, of the curator.
    batches : int
        k.
    batch : int
        Rows of one batch.
    kept : int
        Rows that a batch must keep after thinning.

    Examples
    --------
    >>> parity_rows(8, chi2=0.0, epsilon=1.0, beta=0.1).batches
    11
    """

    total: int
    batches: int
    batch: int
    kept: int


def parity_rows(d: int, chi2: float, epsilon: float, beta: float) -> ParityRows:
    r"""Rows with which a parity over d bits is learned, except with probability beta.

    :math:`k = \lceil \log_{4/3}(2/\beta) \rceil` batches. A batch speaks with probability 1/2, so
    that all are silent with probability below beta / 2. In each, with b = beta / (4 k),
    :math:`m = 4 (\chi^2 + 1) d \ln(d/b)` kept rows have full rank except with probability b, and of
    N rows at least m are kept except with probability b if
    :math:`p N - \sqrt{2 p N \ln(1/b)} \ge m` (Chernoff), p = tanh(epsilon / 2). In all: beta.

    Erratum: the paper's :math:`32 (\chi^2 + 1) d \ln(2 d/\beta) / \epsilon` rows a batch leave out
    that all k batches must have full rank at once.

    Parameters
    ----------
    d : int
        Number of bits.
    chi2 : float
        chi-squared divergence of the uniform target from the source; finite.
    epsilon, beta : float

    Examples
    --------
    >>> parity_rows(64, chi2=0.9, epsilon=1.0, beta=0.05)
    ParityRows(total=159874, batches=13, batch=12298, kept=5402)
    """
    validate.count("d", d)
    validate.fraction("beta", beta)
    if not (isinstance(chi2, (int, float)) and 0 <= chi2 < math.inf):
        raise ValueError(
            f"chi2 must be a finite number, at least 0; got {chi2!r}. If some rows of the target "
            "never occur at the source, no number of rows is enough."
        )
    batches = _batches(beta)
    miss = beta / (4 * batches)
    kept = math.ceil(4 * (chi2 + 1) * d * math.log(d / miss))
    spread = math.log(1 / miss)
    root = (math.sqrt(2 * spread) + math.sqrt(2 * spread + 4 * kept)) / 2
    batch = math.ceil(root**2 / thinning(epsilon))
    return ParityRows(batches * batch, batches, batch, kept)


@dataclass(frozen=True)
class ParityRule:
    """Whether an odd number of the bits of a mask is set.

    A cell counts as a set bit if it is above 1/2; one that is no number does not.

    Parameters
    ----------
    mask : sequence of 0 and 1
        One for each column.
    classes : sequence of two labels
        For even, and for odd.

    Examples
    --------
    >>> rule = ParityRule((1, 0, 1), ("even", "odd"))
    >>> rule.predict(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])).tolist()
    ['odd', 'even']
    >>> ParityRule.from_dict(rule.to_dict()) == rule
    True
    """

    mask: tuple[int, ...]
    classes: tuple[Any, Any] = (0, 1)

    def __post_init__(self) -> None:
        mask = tuple(int(bit) for bit in self.mask)
        if not mask or not set(mask) <= {0, 1}:
            raise ValueError("mask must hold 0 and 1, one for each column.")
        object.__setattr__(self, "mask", mask)
        object.__setattr__(self, "classes", two_labels(self.classes))

    def check(self, n_columns: int) -> None:
        """Raise if rows of that many columns do not fit."""
        if n_columns != len(self.mask):
            raise ValueError(f"the rule is for {len(self.mask)} columns; got {n_columns}.")

    def predict_sign(self, X: Array) -> Array:
        """1 for odd, -1 for even."""
        chosen = np.asarray(X)[:, np.flatnonzero(self.mask)] > 0.5
        return np.where(np.count_nonzero(chosen, axis=1) % 2 == 1, 1.0, -1.0)

    def predict(self, X: Array) -> Any:
        """Class labels."""
        return np.asarray(self.classes)[(self.predict_sign(X) > 0).astype(np.int64)]

    def losses(self, X: Array, y: Array) -> Array:
        """1 for a mistake, infinite for a label of no class; labels in -1, 0, 1."""
        return np.where(y == 0, np.inf, 1.0 * (self.predict_sign(X) != y))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"rule": "parity", "mask": list(self.mask), "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ParityRule:
        """Rebuild from :meth:`to_dict`."""
        if data.get("rule") != "parity":
            raise ValueError(f"unknown kind of rule {data.get('rule')!r}.")
        return cls(tuple(data["mask"]), two_labels(data["classes"]))


@dataclass(frozen=True)
class ParityLearner:
    """The parity that fits the rows, at pure epsilon (:mod:`dpadapt.privacy.parity`).

    It needs no weights, and one round: a mask that fits all rows of the source fits the target.

    Parameters
    ----------
    beta : float, default=0.05
        Probability that no batch finds the mask, given the rows of :func:`parity_rows`.

    Examples
    --------
    >>> ParityLearner(beta=0.1).batches
    11
    """

    beta: float = 0.05

    def __post_init__(self) -> None:
        validate.fraction("beta", self.beta)

    @property
    def batches(self) -> int:
        """K, the least number of coins of which one falls right except with probability beta / 2.

        A batch is counted as right with probability 1/4, as in the paper.
        """
        return _batches(self.beta)

    def requests(self, task: Task, densities: Sequence[float]) -> tuple[Request, ...]:
        """One pure release."""
        if len(densities) != 1:
            raise ValueError("a parity is learned in one round; ask for one.")
        return (Request("pure", "parity"),)

    def learn(
        self,
        task: Task,
        session: Session,
        grants: tuple[Grant, ...],
        weights: RowWeights,
        density: float,
    ) -> ParityRule:
        """The mask that most batches found; weights play no part."""
        return self.candidates(task, session, grants[0])[0]

    def candidates(self, task: Task, session: Session, grant: Grant) -> tuple[ParityRule, ...]:
        """Every mask that a batch found, the most frequent first; the empty one if none did.

        Post-processing of the release, so agents may compare them all.
        """
        found = session.parity(grant, session.hide_rows(task.rows), self.batches)
        masks = Counter(tuple(mask.tolist()) for mask in found if mask is not None)
        ranked = [mask for mask, _ in masks.most_common()] or [(0,) * task.n_columns]
        return tuple(ParityRule(mask, task.blank.classes) for mask in ranked)


def _batches(beta: float) -> int:
    return math.ceil(math.log(2 / beta) / math.log(4 / 3))
