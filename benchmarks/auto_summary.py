"""What :mod:`bench_auto` found: a table, medians, lost cells and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dpadapt.report.figures import blank, set_title

__all__ = ["PRIVATE", "PUBLIC", "draw_gaps", "judge", "show"]

PRIVATE = ("auto", "default", "finetune", "adassp", "noisy", "adamix", "opacus")
PUBLIC = ("linear", "trees", "start", "oracle linear", "oracle trees")


def best_oracle(errors: pd.Series, first: str) -> float:
    """Of the linear one for the linear public model, of either for the start."""
    linear = errors["oracle linear"]
    return linear if first == "linear" else min(linear, errors["oracle trees"])


def gap(errors: pd.Series, value: float, first: str = "linear") -> float:
    """Percent of the way from a public model to its oracle: linear to linear, start to any."""
    return 100 * (errors[first] - value) / (errors[first] - best_oracle(errors, first))


def room(errors: pd.Series, first: str) -> bool:
    """Whether the oracle is better than the public model by a percent, so that there is a gap."""
    return best_oracle(errors, first) < 0.99 * errors[first]


def show(lines: pd.DataFrame) -> None:
    """One row for each task and size; private methods at each epsilon."""
    told = " / ".join(f"{e:g}" for e in sorted(lines.epsilon.dropna().unique()))
    methods = lines.method.unique()
    public = [each for each in PUBLIC if each in methods]
    private = [each for each in methods if each not in PUBLIC]
    gaps = {"linear": "gap to linear", "start": "start to any"} if "oracle trees" in public else {}
    print(f"\nPrivate methods at epsilon {told}; standard errors of auto over start, in percent.\n")
    heads = (*public, *private, "auto over start", *gaps.values())
    print("| task | n | " + " | ".join(heads) + " |")
    print("|---" * (2 + len(heads)) + "|")
    for (name, size), part in lines.groupby(["task", "size"], sort=False):
        by = part.groupby("method").error.mean()
        cells = [f"{by[each]:.4f}" for each in public]
        for each in private:
            found = part[part.method == each].groupby("epsilon").error.mean()
            cells.append(" / ".join(f"{value:.4f}" for value in found))
        auto = part[part.method == "auto"]
        ratios = auto.error / auto.split.map(part[part.method == "start"].set_index("split").error)
        ratios = ratios.groupby([auto.epsilon, auto.split]).mean().groupby("epsilon")
        over = zip(ratios.mean(), 100 * ratios.sem(), strict=True)
        cells.append(" / ".join(f"{ratio:.3f} ({sem:.1f})" for ratio, sem in over))
        errors = auto.groupby("epsilon").error.mean()
        for each in gaps:
            closed = " / ".join(f"{gap(by, value, each):.0f}" for value in errors)
            cells.append(closed if room(by, each) else "no gap")
        print(f"| {name} | {part.n.max() if size == 'all' else size} | {' | '.join(cells)} |")


def judge(lines: pd.DataFrame) -> None:
    """Medians of the gaps closed, and cells in which auto is beaten by two standard errors."""
    cells = lines[lines.method == "auto"].groupby(["task", "size", "epsilon"], sort=False)
    found, beaten, compared = [], [], 0
    for (name, size, epsilon), mine in cells:
        part = lines[(lines.task == name) & (lines["size"] == size)]
        by = part.groupby("method").error.mean()
        auto = mine.groupby("split").error.mean()
        fact = {"size": "all" if size == "all" else "500", "epsilon": epsilon}
        if "oracle trees" in by:
            gaps = {each: gap(by, auto.mean(), each) for each in ("linear", "start")}
            fact |= {f"{each} gap": value for each, value in gaps.items() if room(by, each)}
        found.append(fact)
        for rival in set(part.method) - {"auto", "oracle linear", "oracle trees"}:
            other = part[part.method == rival]
            other = other[other.epsilon.isna() | (other.epsilon == epsilon)]
            if other.empty:
                continue
            more = auto - other.groupby("split").error.mean()
            compared += rival != "start"
            if more.mean() > max(2 * more.sem(), 1e-12):
                worse = 100 * more.mean() / (auto - more).mean()
                beaten.append((rival, f"{name}, n = {size}, epsilon {epsilon:g}: +{worse:.1f} %"))
    table = pd.DataFrame(found)
    if "linear gap" in table:
        print("\nMedian gap closed, %")
        print(table.groupby(["size", "epsilon"]).median().round(0).unstack().to_string())
    for who, count in (("the start", len(found)), ("a peer", compared)):
        lost = [each for each in beaten if (each[0] == "start") == (who == "the start")]
        print(f"\nBeaten by {who}, by more than two standard errors: {len(lost)} of {count} cells")
        for rival, cell in sorted(lost):
            print(f"  {rival}: {cell}")


def draw_gaps(lines: pd.DataFrame, path: Path) -> None:
    """Gap closed against epsilon, a line for each task and size."""
    figure, axes = blank(7, 4.5)
    for (name, size), part in lines.groupby(["task", "size"], sort=False):
        by = part.groupby("method").error.mean()
        if not room(by, "linear"):
            continue
        auto = part[part.method == "auto"].groupby("epsilon").error.mean()
        style = "-" if size == "all" else "--"
        shown = [np.clip(gap(by, value), -100, 200) for value in auto]
        axes.plot(auto.index, shown, style, marker="o", label=f"{name}, n = {size}")
    axes.set_xscale("log", base=2)
    budgets = sorted(lines.epsilon.dropna().unique())
    axes.set_xticks(budgets, labels=[f"{each:g}" for each in budgets])
    axes.set_xlabel("epsilon")
    axes.axhline(100, color="grey", linewidth=0.8)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.legend(fontsize=6, ncols=2)
    set_title(axes, "Gap from public linear to the linear oracle, % closed")
    figure.savefig(path, dpi=110)
