"""What :mod:`bench_auto` found: a table, medians, lost cells and a picture."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpadapt.learning.figures import blank, set_title

__all__ = ["PRIVATE", "PUBLIC", "draw_gaps", "judge", "show"]

PRIVATE = ("auto", "default", "finetune", "adassp", "noisy", "adamix", "opacus")
PUBLIC = ("linear", "trees", "start", "oracle linear", "oracle trees")
_COLORS = [f"C{number}" for number in range(10)]
_SHOWN = (-50, 250)  # percent; lines that leave it are cut there


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
    """Gap closed against epsilon: a panel for each number of rows, a line for each task."""
    tasks = [name for name in lines.task.unique() if _has_gap(lines[lines.task == name])]
    styles = [(color, dash) for dash in ("-", "--", ":") for color in _COLORS]
    figure, panels = blank(11, 5, columns=2)
    for axes, size in zip(panels, ("500", "all"), strict=True):
        medians = []
        for name, (color, dash) in zip(tasks, styles, strict=False):
            part = lines[(lines.task == name) & (lines["size"] == size)]
            if part.empty or not _has_gap(part):
                continue
            by = part.groupby("method").error.mean()
            auto = part[part.method == "auto"].groupby("epsilon").error.mean()
            closed = auto.map(lambda value, by=by: gap(by, value))
            medians.append(closed)
            axes.plot(closed.index, closed.clip(*_SHOWN), dash, color=color, label=name, lw=1.2)
        if medians:
            middle = pd.concat(medians, axis=1).median(axis=1)
            axes.plot(middle.index, middle.clip(*_SHOWN), "k-o", lw=3, label="median")
        axes.set_xscale("log", base=2)
        axes.set_xticks(list(middle.index), labels=[f"{each:g}" for each in middle.index])
        axes.set_xlabel("epsilon")
        axes.set_ylim(*_SHOWN)
        for level in (0, 100):
            axes.axhline(level, color="grey", lw=0.8)
        set_title(axes, f"{'All rows' if size == 'all' else size + ' rows'}: gap closed, %")
    handles = {
        name: line
        for axes in panels
        for line, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=110)


def _has_gap(part: pd.DataFrame) -> bool:
    return room(part.groupby("method").error.mean(), "linear")
