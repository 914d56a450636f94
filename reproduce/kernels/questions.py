"""Paper 002: noise and error of one prediction against the number of questions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.kernels.losses import Logistic
from dpadapt.learning.figures import set_title
from dpadapt.papers.kernels.machines import MachineFacts, PINPConstants, SparseVectorConstants
from dpadapt.papers.kernels.tddl import composed_epsilon
from dpadapt.privacy.accounting.calibration import calibrate, gaussian_mu
from dpadapt.privacy.accounting.events import LaplaceEvent
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells
from reproduce.style import mean_and_spread

from .methods import ASKED, DELTA, OURS, PRINTED_PINP, PRINTED_TDDL, ask, fit_released, plain
from .style import curve
from .synthetic import draw_task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "draw_questions",
    "question_findings",
    "stated_noise",
    "summarise_questions",
]

ROWS, EPSILON = 4_000, 1.0
COUNTS = (1, 10, 100, 1_000, 10_000)
CAVEAT = "not in the paper: made-up rows"
PATH = "dpadapt, asked one by one"
TDDL = (PRINTED_TDDL, "TDDL, Laplace", "TDDL, Gaussian")
_LARGEST_POOL = 1_000  # questions at once: their kernel matrix is decomposed
_REPEATS = 3


@dataclass(frozen=True)
class Cell:
    """One draw, one method."""

    method: str
    seed: int
    counts: tuple[int, ...]


def stated_noise(method: str, setting: MachineFacts) -> float:
    """Standard deviation of an answer's noise; for learners from questions, their threshold.

    Parameters
    ----------
    method : str
    setting : Setting
        With the number of questions.

    Examples
    --------
    >>> one, many = (MachineFacts(1e-3, 1.0, 1.0, 1.0, 1e-6, questions) for questions in (1, 100))
    >>> stated_noise("dpadapt", one) == stated_noise("dpadapt", many)
    True
    >>> round(stated_noise("TDDL, Gaussian", many) / stated_noise("TDDL, Gaussian", one))
    10
    """
    unit, count = setting.prediction, setting.questions
    epsilon, delta = setting.epsilon, setting.delta
    if method in (OURS, PATH):
        return unit / gaussian_mu(epsilon, delta)
    if method == "TDDL, Gaussian":
        return math.sqrt(count) * unit / gaussian_mu(epsilon, delta)
    if method == PRINTED_TDDL:
        return math.sqrt(2) * unit / composed_epsilon(count, epsilon, delta)
    if method == "TDDL, Laplace":
        least = calibrate(lambda b: [LaplaceEvent("", 1.0, b, count=count)], epsilon, delta)
        return math.sqrt(2) * unit * least
    if method == PRINTED_PINP:
        return PINPConstants.paper(setting).threshold
    if method == "PINP, least noise":
        return PINPConstants.calibrated(setting).threshold
    return SparseVectorConstants.calibrated(setting).threshold


def run_cell(cell: Cell) -> Rows:
    """Errors of one method, with its noise, for each number of questions."""
    split = draw_task(cell.seed, ROWS, test=max(COUNTS))
    ours = fit_released(OURS, split, EPSILON)
    truth = plain(split, penalty=ours.penalty_).decision_function(split.X_test)
    facts = ours.setup_.facts(Logistic(), ours.penalty_, ROWS, 1)
    lines = []
    for count in cell.counts:
        setting = MachineFacts(
            facts.radius * facts.sensitivity, facts.radius, facts.norm_bound, EPSILON, DELTA, count
        )
        rows = split.X_test[:count]
        error = math.nan
        if cell.method == OURS or count <= _LARGEST_POOL or cell.method not in (*TDDL, PATH):
            found = _answers(cell.method, split, ours, rows)
            error = float(np.sqrt(np.mean((found - truth[:count]) ** 2)))
        lines.append(
            {
                "method": cell.method,
                "questions": count,
                "repeat": cell.seed,
                "noise": stated_noise(cell.method, setting),
                "error": error,
                "score": float(np.sqrt(np.mean(truth**2))),
            }
        )
    return lines


def _answers(method: str, split: Any, ours: Any, rows: Any) -> Any:
    if method == OURS:
        return ours.decision_function(rows)
    if method in TDDL:
        return fit_released(method, split, EPSILON, release__pool=rows).decision_function(rows)
    predictor = ask(method, split, EPSILON, questions=len(rows))
    found = predictor.decision_function(rows)
    predictor.close()
    return found


def run_questions(options: Options) -> pd.DataFrame:
    """All methods and draws."""
    counts = COUNTS[:3] if options.quick else COUNTS
    cells = [
        Cell(method, seed, counts)
        for seed in range(min(options.repeats, _REPEATS))
        for method in (*ASKED, OURS, *TDDL)
    ]
    return run_cells(run_cell, cells, options, "questions")


def summarise_questions(table: pd.DataFrame) -> pd.DataFrame:
    """Noise and measured error for each number of questions.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": "dpadapt", "questions": 10, "noise": 0.2, "error": 0.1, "score": 1.0}
    >>> summarise_questions(pd.DataFrame([line]))["10 questions"].tolist()
    ['0.20; 0.10']
    """
    import pandas as pd

    lines = []
    for method in _methods(table):
        part = table[table["method"] == method]
        line: dict[str, Any] = {"method": method}
        for count in sorted(part["questions"].unique()):
            cell = part[part["questions"] == count]
            errors = cell["error"].dropna()
            measured = mean_and_spread(list(errors), 2) if len(errors) else "not run"
            line[f"{count:,} questions"] = f"{cell['noise'].mean():.3g}; {measured}"
            if cell["noise"].mean() < 1:
                line[f"{count:,} questions"] = f"{cell['noise'].mean():.2f}; {measured}"
        line["root mean square of scores"] = f"{table['score'].mean():.3g}"
        lines.append(line | {"not the paper's": CAVEAT})
    return pd.DataFrame(lines)


def draw_questions(table: pd.DataFrame) -> Figure:
    """Noise by the constants, and measured error, against the number of questions.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": "dpadapt", "questions": 10, "noise": 0.2, "error": 0.1, "score": 1.0}
    >>> len(draw_questions(pd.DataFrame([line])).axes)
    2
    """
    figure, grid = panels(11.5, 5.2, 1, 2)
    titles = ("noise of an answer (PINP and sparse vector: threshold)", "measured error")
    for axes, value, title in zip(grid.flat, ("noise", "error"), titles, strict=True):
        for method in _methods(table):
            means = table[table["method"] == method].groupby("questions")[value].mean().dropna()
            curve(axes, means.reset_index(), "questions", value, method)
        axes.set(xscale="log", yscale="log", xlabel="number of questions")
        axes.axhline(table["score"].mean(), color="#999999", lw=1, ls="--", zorder=0,
                     label="root mean square of the scores themselves")  # fmt: skip
        axes.set_ylabel("in units of the score")
        set_title(axes, title)
    note = "Not in the paper: made-up rows, n = 4,000, ε = 1, δ = 10⁻⁶. Means; spreads: the table."
    finish(figure, grid, note, columns=3)
    return figure


def question_findings(table: pd.DataFrame) -> list[str]:
    """Growth of noise and error from the fewest to the most questions.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"method": "dpadapt", "noise": 0.2, "error": 0.1, "score": 1.0}
    >>> table = pd.DataFrame([line | {"questions": count} for count in (1, 10)])
    >>> question_findings(table)[1]
    'dpadapt: noise 0.2 at 1 and 0.2 at 10 questions; measured error 0.1 at 10.'
    """
    sentences = [
        f"Scores have a root mean square of {table['score'].mean():.3g}; a larger error than that "
        "is worse than always saying 0."
    ]
    for method in _methods(table):
        part = table[table["method"] == method]
        noise = part.groupby("questions")["noise"].mean()
        error = part.groupby("questions")["error"].mean().dropna()
        first, last = noise.index[0], noise.index[-1]
        sentences.append(
            f"{method}: noise {noise[first]:.3g} at {first:,} and {noise[last]:.3g} at {last:,} "
            f"questions; measured error {error.iloc[-1]:.3g} at {error.index[-1]:,}."
        )
    return sentences


def _methods(table: pd.DataFrame) -> list[str]:
    known = [OURS, *ASKED, *TDDL]
    return [method for method in known if (table["method"] == method).any()]
