"""Warnings of a fit that is allowed and hardly meant: public facts only, and never private cells.

They are told where private rows are used, so that a model of public rows is as quiet as any other.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from dpadapt.privacy import Guarantee, Private

from .checks import GuaranteeWarning

_MUCH = 10.0  # an epsilon above it promises next to nothing
_FEW_ROWS = 30
_NOISE, _HELD_OUT_NOISE = 0.15, 0.1  # of one mean, as a part of the range


class CautionWarning(UserWarning):
    """A fit that is allowed and hardly meant."""


def caution(problem: Any, sample: Private, options: dict[str, Any]) -> None:
    """Warn of budgets and of tables with which a fit cannot mean much.

    Parameters
    ----------
    problem : object
        Public rows ``X`` and ``labels``, where it has them.
    sample : Private
    options : dict
        Of a session: epsilon, delta, relation.

    Examples
    --------
    >>> from dpadapt.base import Problem
    >>> problem = Problem(np.zeros((40, 2)), np.arange(40.0))
    >>> caution(problem, Private(np.zeros((90, 2))), {"epsilon": 1.0, "delta": 1e-6})
    """
    secret = options.get("relation") == "add-remove"  # then so is the number of rows
    rows = None if secret else sample.n_rows
    for text in budget_cautions(options["epsilon"], options["delta"], rows):
        _tell(text)
    X, labels = getattr(problem, "X", None), getattr(problem, "labels", None)
    if labels is not None and len(labels) > 1 and np.ptp(np.asarray(labels, dtype=float)) == 0:
        _tell("all public labels are the same: there is nothing to learn from public rows.")
    if X is not None and 0 < X.shape[0] < X.shape[1]:
        _tell(
            f"there are {X.shape[0]} public rows for {X.shape[1]} columns; bounds and scales come "
            "from them, and will be poor."
        )


def budget_cautions(epsilon: float, delta: float, rows: int | None) -> list[str]:
    """What is odd about a budget for so many private rows, in sentences.

    Examples
    --------
    >>> budget_cautions(1.0, 1e-6, 5)
    ['there are 5 private rows; with so few, the noise says more than they do.']
    """
    told = []
    if epsilon > _MUCH:
        told.append(
            f"epsilon {epsilon:.4g} promises next to nothing: one person may change the odds by a "
            f"factor of e^{epsilon:.4g}. Usual choices are 10 and below."
        )
    if rows and delta >= 1 / rows:
        told.append(
            f"delta {delta:.4g} is not below one over the number of private rows ({rows}): the "
            f"guarantee would allow to publish the row of one person. Choose {good_delta(rows):g}, "
            f"or another one far below {1 / rows:.2g}."
        )
    if rows and rows < _FEW_ROWS:
        there = "is one private row" if rows == 1 else f"are {rows} private rows"
        told.append(f"there {there}; with so few, the noise says more than they do.")
    return told


def good_delta(rows: int) -> float:
    """A power of ten that is at most a hundredth of one over the number of rows, and 1e-6 at most.

    Examples
    --------
    >>> good_delta(5000), good_delta(1_000_000), good_delta(60_000_000)
    (1e-06, 1e-08, 1e-10)
    """
    digits = math.ceil(math.log10(100 * max(rows, 1)) - 1e-9)
    return float(f"1e-{max(6, digits)}")


def size_cautions(epsilon: float, delta: float, rows: int, *, held_out: bool = False) -> list[str]:
    """What so many rows (or people) at this budget cannot give, in sentences; public facts.

    A rule of thumb: the noise of one mean of values between 0 and 1, as one Gaussian release.

    Examples
    --------
    >>> size_cautions(1.0, 1e-6, 5000)
    []
    >>> print(size_cautions(0.01, 1e-6, 400)[0])
    400 private rows at epsilon 0.01 are too few: the noise of one mean is about 1.3 times the \
whole range. Expect the public model and no more; more rows or a larger epsilon would help.
    """
    noise = math.sqrt(2 * math.log(1.25 / delta)) / (max(rows, 1) * epsilon)
    if held_out and noise > _HELD_OUT_NOISE:
        return [
            f"{rows:,} rows held out at epsilon {epsilon:.4g} are too few to measure by: the "
            f"noise of one mean is about {noise:.2g} times the whole range, and intervals will be "
            "next to everything. Hold out more, or measure on other rows."
        ]
    if not held_out and noise > _NOISE and rows >= _FEW_ROWS:  # fewer are told of anyway
        return [
            f"{rows:,} private rows at epsilon {epsilon:.4g} are too few: the noise of one mean is "
            f"about {noise:.2g} times the whole range. Expect the public model and no more; more "
            "rows or a larger epsilon would help."
        ]
    return []


def earlier_events(private: Any, delta: float) -> tuple[Any, ...]:
    """Everything that was charged on private rows before, in this process.

    Examples
    --------
    >>> earlier_events(Private([[1.0]]), 1e-6), earlier_events(None, 1e-6)
    ((), ())
    """
    return private.spent(delta).events if isinstance(private, Private) else ()


def with_total(guarantee: Guarantee, earlier: tuple[Any, ...]) -> Guarantee:
    """Say what this fit and earlier ones on the same private rows have cost together.

    It is warned of, and stands among the caveats of the guarantee.

    Examples
    --------
    >>> with_total(Guarantee(), ()).caveats
    ()
    """
    if not guarantee.events or not earlier:
        return guarantee
    events = (*earlier, *guarantee.events)
    text = "These private rows were used before in this process; "
    if len({event.relation for event in events}) > 1:
        text += "some uses compare other samples than others, and no epsilon covers them all."
    else:
        total = Guarantee(events, guarantee.delta, guarantee.noise)
        text += (
            f"all uses together have cost epsilon {total.epsilon:.4g} at delta {total.delta:.3g}."
        )
    _tell(
        f"{text} Whoever is shown more than one of the results must be told this. A ledger "
        "keeps it across processes.",
        GuaranteeWarning,
    )
    return replace(guarantee, caveats=(*guarantee.caveats, text))


def _tell(text: str, kind: type[Warning] = CautionWarning) -> None:
    warnings.warn(text, kind, stacklevel=5)
