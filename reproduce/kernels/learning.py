"""Paper 002: from how many rows on PINP and TDIL learn; made-up rows, a linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpadapt.kernels import TDIL, KernelClassifier, KernelFacts, answer_error
from dpadapt.kernels.constants import Bounds
from dpadapt.kernels.erm import solve
from dpadapt.kernels.losses import Logistic
from dpadapt.papers.kernels.machines import MachineFacts, PINPConstants
from dpadapt.privacy import Private
from reproduce.page import finish, panels
from reproduce.runs import Options, Rows, run_cells

from .methods import DELTA

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["draw_learning", "learning_findings", "run_learning", "summarise_learning"]

Array = NDArray[np.float64]

ROWS = (5_000, 50_000, 500_000, 5_000_000)
LARGEST_FIT = 500_000  # rows that are really drawn for TDIL
COLUMNS, PENALTY, EPSILON, QUESTIONS = 5, 0.05, 1.0, 2_000
_REPEATS = 3
CAVEAT = "not in the paper: made-up rows"


@dataclass(frozen=True)
class Cell:
    """One draw."""

    seed: int
    rows: int


def draw_rows(rng: np.random.Generator, rows: int) -> tuple[Array, Array]:
    """Rows of length 1 and the side of a hyperplane that they are on."""
    X = rng.normal(size=(rows, COLUMNS))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)


def asked(cell: Cell, rng: np.random.Generator) -> dict[str, float]:
    """Algorithm 1 on a model of 50,000 rows, with the noise that ``rows`` rows allow.

    The model hardly depends on the number of rows, the noise does: a simulation, no release.
    """
    X, y = draw_rows(rng, 50_000)
    truth = solve(X, y, Logistic(), PENALTY, 1.0).ravel()
    norm = float(np.sqrt(2 * np.log(2) / PENALTY))
    bounds = Bounds(2 / (PENALTY * cell.rows), norm)
    setting = MachineFacts(bounds.prediction, 1.0, norm, EPSILON, DELTA, QUESTIONS)
    machine, model, updates = PINPConstants.calibrated(setting), np.zeros(COLUMNS), 0
    Z, _ = draw_rows(rng, QUESTIONS)
    answers = np.empty(QUESTIONS)
    for t, z in enumerate(Z):
        answers[t] = model @ z
        if updates == machine.updates:
            continue
        noisy = truth @ z + rng.laplace(scale=machine.scale)
        if abs(noisy - answers[t]) > machine.threshold:
            model = model + machine.step * np.sign(noisy - answers[t]) * z
            answers[t], updates = noisy, updates + 1
    facts = KernelFacts(cell.rows, PENALTY, EPSILON, DELTA, norm=norm)
    return {
        "updates": updates,
        "error": float(np.sqrt(np.mean((answers - Z @ truth) ** 2))),
        "largest": float(np.abs(answers - Z @ truth).max()),
        "bound": answer_error(facts, QUESTIONS),
        "scores": float(np.sqrt(np.mean((Z @ truth) ** 2))),
    }


def run_cell(cell: Cell) -> Rows:
    """Both algorithms on one draw."""
    rng = np.random.default_rng([cell.seed, cell.rows])
    base = {"n": cell.rows, "repeat": cell.seed}
    lines: Rows = [base | {"method": "PINP", **asked(cell, rng)}]
    if cell.rows <= LARGEST_FIT:
        X, y = draw_rows(rng, cell.rows)
        new, truth = draw_rows(rng, 5_000)
        model = KernelClassifier(
            epsilon=EPSILON, delta=DELTA, kernel="linear", release=TDIL(), penalty=PENALTY,
            noise="seeded", random_state=cell.seed,
        )  # fmt: skip
        model.fit(X[:200], y[:200], private=Private(X, y))
        lines.append(
            base | {"method": "TDIL", "accuracy": 100 * float(np.mean(model.predict(new) == truth))}
        )
    return lines


def run_learning(options: Options) -> pd.DataFrame:
    """All numbers of rows."""
    rows = ROWS[:2] if options.quick else ROWS
    cells = [Cell(seed, n) for n in rows for seed in range(min(options.repeats, _REPEATS))]
    return run_cells(run_cell, cells, options, "where they learn")


def summarise_learning(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the repeats, a line for each n.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 10, "method": "TDIL", "accuracy": 90.0}
    >>> summarise_learning(pd.DataFrame([line]))["accuracy"].tolist()
    ['90']
    """
    means = table.groupby(["method", "n"], sort=False).mean(numeric_only=True)
    found = means.drop(columns="repeat", errors="ignore").reset_index()
    shown = found.map(lambda each: "" if each != each else _short(each))
    return shown.assign(caveat=CAVEAT).rename(columns={"caveat": "not the paper's"})


def _short(value: object) -> str:
    return f"{value:,.3g}" if isinstance(value, float) else f"{value}"


def draw_learning(table: pd.DataFrame) -> Figure:
    """Error of PINP's answers, and accuracy of TDIL, against n.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 10, "method": "TDIL", "accuracy": 90.0}
    >>> len(draw_learning(pd.DataFrame([line])).axes)
    2
    """
    figure, grid = panels(9.5, 4.2, 1, 2)
    left, right = grid.flat
    asked_part = table[table["method"] == "PINP"]
    if len(asked_part):
        means = asked_part.groupby("n").mean(numeric_only=True)
        for name, label in (
            ("bound", "Theorem 3's bound, least noise"),
            ("largest", "largest error of an answer"),
            ("error", "root mean squared error"),
            ("scores", "always saying 0"),
        ):
            left.plot(means.index, means[name], "o-" if name != "scores" else ":", label=label)
        left.set(xscale="log", yscale="log", xlabel="n", ylabel="error of PINP's answers")
    part = table[table["method"] == "TDIL"]
    if len(part):
        right_means = part.groupby("n")["accuracy"].mean()
        right.plot(right_means.index, right_means, "D-", label="TDIL, repaired")
        right.set(xscale="log", xlabel="n", ylabel="accuracy (%)")
    finish(figure, grid, "Made-up rows, linear kernel, ε = 1, δ = 1e-6.", columns=3)
    return figure


def learning_findings(table: pd.DataFrame) -> list[str]:
    """Where each begins to learn.

    Examples
    --------
    >>> import pandas as pd
    >>> line = {"n": 10, "method": "TDIL", "accuracy": 90.0}
    >>> learning_findings(pd.DataFrame([line]))
    ['TDIL, accuracy: 90.0% at n = 10.']
    """
    sentences = []
    means = table.groupby(["method", "n"], sort=False).mean(numeric_only=True)
    if "PINP" in means.index:
        told = [
            f"{line['updates']:.0f} updates and an error of {line['error']:.3g} at n = {n:,}"
            for n, line in means.loc["PINP"].iterrows()
        ]
        level = means.loc["PINP"]["scores"].mean()
        sentences.append(f"PINP (always saying 0 errs by {level:.3g}): {'; '.join(told)}.")
    if "TDIL" in means.index:
        told = [f"{value:.1f}% at n = {n:,}" for n, value in means.loc["TDIL"]["accuracy"].items()]
        sentences.append(f"TDIL, accuracy: {', '.join(told)}.")
    return sentences
