"""Figures 19 to 22 of paper 004: where training starts, at zero, at public rows, or at names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.figures import BLUE, GREY, INK, ORANGE, set_title
from dpadapt.learning.softmax import loss
from dpadapt.mixing.features import PublicSample, UnitRows
from reproduce.page import panels
from reproduce.runs import Options, run_cells
from reproduce.style import GREEN

from .errors import EPSILON, QUICK_EPSILONS
from .methods import FEW_SHOT, NO_PRIVACY, PRIVATE, Run, limits, measure
from .style import curve, finish, mean_and_spread, percent_axis
from .tasks import PlainModel, Sample, Task, draw, error_of
from .text_encoder import TEXT_TASKS, load_task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_starts", "run_starts", "start_findings", "summarise_starts", "text_start"]

Array = NDArray[np.float64]

EPSILONS = (0.25, 0.5, 1.0, 3.0)
STARTS = ("zero", "public", "names")
NAMES_ALONE = "names of classes alone"
_PER_CLASS, _TEST = 5, 1000
_SCALES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of the names' weights; by the loss of public rows
_COLOURS = {"zero": ORANGE, "public": GREEN, "names": BLUE}
_MARKS = {"zero": "^", "public": "s", "names": "o"}
_NOTE = (
    "Not the paper's data or encoder (photographs, CLIP): reviews, all-MiniLM-L6-v2. "
    "δ = 10⁻⁵, add/remove."
)


@dataclass(frozen=True)
class StartCell:
    """All methods from all starts on one sample of a task.

    Parameters
    ----------
    task : str
        One of ``TEXT_TASKS``.
    seed : int
    epsilons : tuple of float
    """

    task: str
    seed: int
    epsilons: tuple[float, ...]


def text_start(sample: Sample, names: Array) -> Array:
    """Weights of directions that point to the names of the classes.

    The names' rows less their mean, as a direction for each class. Their length is not known to an
    encoder: of six, the one with the least loss on the public rows.

    Parameters
    ----------
    sample : Sample
        Its public rows choose the length.
    names : ndarray of shape (c, d)
        A row for the name of each class.

    Examples
    --------
    >>> sample = draw(Task("made", "", lambda: _four_corners(), 5, 20), seed=0)
    >>> text_start(sample, np.array([[1.0, 0.0], [-1.0, 0.0]])).shape
    (2, 2)
    """
    away = names - names.mean(axis=0)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    units = UnitRows.of(sample.X_public, sample.y_public, sample.classes)
    public = PublicSample(units.rows(sample.X_public), sample.y_public, sample.classes)

    def lost(scale: float) -> float:
        return loss(public.rows, public.codes, _weights(units, scale * away))

    return np.asarray(min(_SCALES, key=lost) * away)


def run_starts(options: Options) -> pd.DataFrame:
    """Figures 19 to 22: errors from three starts."""
    budgets = QUICK_EPSILONS[:1] if options.quick else EPSILONS
    tasks = tuple(TEXT_TASKS)[:1] if options.quick else tuple(TEXT_TASKS)
    cells = [StartCell(task, seed, budgets) for task in tasks for seed in range(options.repeats)]
    return run_cells(run_start_cell, cells, options, "figure 19")


def run_start_cell(cell: StartCell) -> list[dict[str, Any]]:
    """All lines of one sample."""
    data, names = load_task(cell.task)
    sample = draw(
        Task(cell.task, "", lambda: data, _PER_CLASS, min(_TEST, len(data.y) // 3)), cell.seed
    )
    given = text_start(sample, names)
    units = UnitRows.of(sample.X_public, sample.y_public, sample.classes)
    alone = error_of(PlainModel(units, _weights(units, given)), sample)
    lines = [*limits(sample), {"method": NAMES_ALONE, "epsilon": 0.0, "error": alone}]
    for name in PRIVATE:
        for epsilon in cell.epsilons:
            for start in STARTS:
                options = {"start": given if start == "names" else start}
                lines.append(
                    measure(sample, Run(name, epsilon, options=options)) | {"start": start}
                )
    place = {"dataset": cell.task, "n": len(sample.y_private), "repeat": cell.seed}
    return [place | line for line in lines]


def summarise_starts(table: pd.DataFrame) -> pd.DataFrame:
    """Test errors in percent, a line for each task, method and start.

    Examples
    --------
    >>> summarise_starts(_example()).iloc[1, 1:4].tolist()
    ['AdaMix', 'names', '12.0']
    """
    import pandas as pd

    lines = []
    for task, part in table.groupby("dataset", sort=False):
        given = part.fillna({"start": "-"})
        for method, start in dict.fromkeys(zip(given["method"], given["start"], strict=True)):
            some = given[(given["method"] == method) & (given["start"] == start)]
            line = {"data": TEXT_TASKS[str(task)].title, "method": method, "start": start}
            for epsilon in sorted(set(some["epsilon"])):
                column = f"error (%), ε {epsilon:g}" if 0 < epsilon < np.inf else "error (%)"
                errors = some.loc[some["epsilon"] == epsilon, "error"]
                line[column] = mean_and_spread(list(errors))
            caveat = "not the paper's data: reviews, 5 public of a class, another encoder"
            lines.append(line | {"not the paper's": caveat})
    found = pd.DataFrame(lines).fillna("")
    last = "not the paper's"
    return found[[*(name for name in found if name != last), last]]


def draw_starts(table: pd.DataFrame) -> Figure:
    """Error against epsilon from each start; a row of panels a task, a column a method.

    Examples
    --------
    >>> len(draw_starts(_example()).axes)
    1
    """
    tasks = list(dict.fromkeys(table["dataset"]))
    methods = [name for name in PRIVATE if name in set(table["method"])]
    height = 1.1 + 2.6 * len(tasks)
    figure, grid = panels(1 + 3.3 * len(methods), height, len(tasks), len(methods))
    shown = table.assign(percent=100 * table["error"])
    for row, task in zip(grid, tasks, strict=True):
        part = shown[shown["dataset"] == task]
        for axes, method in zip(row, methods, strict=True):
            _panel(axes, part, method)
            set_title(axes, f"{TEXT_TASKS[task].title}\n{method}")
    finish(figure, grid, len(tasks) * len(methods), columns=3, note=_NOTE)
    return figure


def _panel(axes: Axes, part: pd.DataFrame, method: str) -> None:
    ends = {FEW_SHOT: (GREY, ":"), NAMES_ALONE: (BLUE, ":"), NO_PRIVACY: (INK, "--")}
    for name, (colour, dash) in ends.items():
        level = part.loc[part["method"] == name, "percent"].mean()
        if level == level:
            axes.axhline(level, color=colour, ls=dash, lw=1.5, label=name)
    for start in STARTS:
        style = {"color": _COLOURS[start], "marker": _MARKS[start]}
        lines = part[(part["method"] == method) & (part["start"] == start)]
        curve(axes, lines, "epsilon", "percent", f"start: {start}", style)
    percent_axis(axes, sorted(set(part.loc[part["method"] == method, "epsilon"])))
    axes.set_xlabel("ε")


def start_findings(table: pd.DataFrame) -> list[str]:
    """Errors at the paper's epsilon, and how often the names are the best start.

    Examples
    --------
    >>> for sentence in start_findings(_example()):
    ...     print(sentence)
    AdaMix at epsilon 3, from zero / public / names: reviews: good or bad 20.0 / - / 12.0%.
    At epsilon 3 the best start is names in 1 of 1 (of a method on a task).
    """
    private = table[table["start"].notna()]
    sentences = []
    for task in dict.fromkeys(table["dataset"]):
        ends = table[(table["dataset"] == task) & table["start"].isna()]
        levels = 100 * ends.groupby("method", sort=False)["error"].mean()
        if len(levels):
            said = ", ".join(f"{name} {level:.1f}%" for name, level in levels.items())
            sentences.append(f"On {TEXT_TASKS[task].title}: {said}.")
    budgets = sorted(set(private["epsilon"]))
    shown = EPSILON if EPSILON in budgets else budgets[-1]
    for method in dict.fromkeys(private["method"]):
        some = private[(private["method"] == method) & (private["epsilon"] == shown)]
        said = ", ".join(_levels(some, task) for task in dict.fromkeys(some["dataset"]))
        order = " / ".join(STARTS)
        sentences.append(f"{method} at epsilon {shown:g}, from {order}: {said}.")
    for epsilon in budgets:
        means = private[private["epsilon"] == epsilon].groupby(["method", "dataset", "start"])
        errors = means["error"].mean().unstack()
        best = errors.idxmin(axis=1).value_counts()
        said = ", ".join(f"{name} in {best[name]}" for name in STARTS if name in best)
        sentences.append(
            f"At epsilon {epsilon:g} the best start is {said} of {len(errors)} (of a method on a "
            "task)."
        )
    return sentences


def _levels(some: pd.DataFrame, task: str) -> str:
    means = 100 * some[some["dataset"] == task].groupby("start")["error"].mean()
    levels = " / ".join(f"{means[name]:.1f}" if name in means else "-" for name in STARTS)
    return f"{TEXT_TASKS[task].title} {levels}%"


def _weights(units: UnitRows, start: Array) -> Array:
    return units.weights(start.T, np.zeros(len(start)))


def _four_corners() -> Any:
    """Two classes in the plane, for examples."""
    from reproduce.data.classes import ClassData

    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return ClassData(rng.normal(size=(60, 2)) + np.column_stack([2 - 4 * y, 0 * y]), y)


def _example() -> pd.DataFrame:
    import pandas as pd

    errors = {"zero": 0.2, "names": 0.12}
    line = {"dataset": "verdict", "method": "AdaMix", "epsilon": 3.0, "repeat": 0}
    return pd.DataFrame([line | {"start": name, "error": errors[name]} for name in errors])
