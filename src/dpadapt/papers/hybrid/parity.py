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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpadapt import _validate as validate
from dpadapt.hybrid.parity_rule import ParityRule
from dpadapt.learning.constraints import Fraction, ParameterTable
from dpadapt.privacy import Mechanism, Rows

from .doors.parity import Parity, thinning
from .learners import Learner, LearningTask, WeightedRows


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

    Erratum (E3.15): the paper's :math:`32 (\chi^2 + 1) d \ln(2 d/\beta) / \epsilon` rows a batch
    leave out that all k batches must have full rank at once.

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
class ParityLearner(Learner):
    """The parity that fits the rows, at pure epsilon (:mod:`dpadapt.papers.hybrid.doors.parity`).

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

    _constraints: ClassVar[ParameterTable] = {"beta": [Fraction()]}

    @property
    def batches(self) -> int:
        """K, the least number of coins of which one falls right except with probability beta / 2.

        A batch is counted as right with probability 1/4, as in the paper.
        """
        return _batches(self.beta)

    def mechanism(self, task: LearningTask, density: float) -> Parity:
        """One pure release."""
        return Parity("parity")

    def planned(self, task: LearningTask, densities: Sequence[float]) -> list[Mechanism]:
        """One round only."""
        if len(densities) != 1:
            raise ValueError("a parity is learned in one round; ask for one.")
        return super().planned(task, densities)

    def learn(self, rows: WeightedRows) -> ParityRule:
        """The mask that most batches found; weights play no part."""
        return self.candidates(rows)[0]

    def candidates(self, rows: WeightedRows) -> tuple[ParityRule, ...]:
        """Every mask that a batch found, the most frequent first; the empty one if none did.

        Post-processing of the release, so agents may compare them all.
        """
        task = rows.task
        found = rows.release(rows.session.hide(Rows(task.rows)), batches=self.batches)
        masks = Counter(tuple(mask.tolist()) for mask in found if mask is not None)
        ranked = [mask for mask, _ in masks.most_common()] or [(0,) * task.n_columns]
        return tuple(ParityRule(mask, task.blank.classes) for mask in ranked)


def _batches(beta: float) -> int:
    return math.ceil(math.log(2 / beta) / math.log(4 / 3))
