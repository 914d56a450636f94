"""The house on four floors, as ``docs/architecture.md`` shows it.

Usage: ``python -m tools.floors`` writes ``docs/architecture.png``; sizes are counted anew.
"""

from __future__ import annotations

from pathlib import Path

from .house import House, read_house

PICTURE = Path(__file__).parent.parent / "docs" / "architecture.png"

# name of a box: what is counted, what it is, its folders, and where it stands (floor from below,
# left, width)
BOXES: dict[str, tuple[tuple[str, ...], str, str, tuple[int, float, float]]] = {
    "front": (
        ("cli", "modelfolder", "pipeline", "testing", "__main__"),
        "command line, saved models,\npipelines, checks for estimators of others",
        "cli/   modelfolder/   testing/   pipeline.py",
        (3, 0.0, 10.0),
    ),
    "evidence": (
        ("evaluation", "preview", "audit", "report"),
        "measure, rehearse, attack, report",
        "evaluation/   preview/   audit/   report/",
        (2, 0.0, 10.0),
    ),
    "auto": (("auto",), "what a user\ntakes first", "auto/", (1, 0.0, 2.0)),
    "methods": (
        ("reweighting", "discrepancy", "kernels", "hybrid", "mixing"),
        "an estimator each",
        "reweighting/   discrepancy/\nkernels/   hybrid/   mixing/",
        (1, 2.2, 4.0),
    ),
    "papers": (
        ("papers", "baselines"),
        "the papers' own algorithms,\nfound by name only",
        "papers/   baselines.py",
        (1, 6.4, 3.6),
    ),
    "learning": (
        ("learning", "features", "rare", "datasets"),
        "what methods share: public fits,\nwords of reports, checks",
        "learning/   features/\nrare.py   datasets/",
        (0, 0.0, 3.3),
    ),
    "base": (("base",), "one fit\nfor all", "base.py", (0, 3.5, 1.5)),
    "privacy": (
        ("privacy",),
        "the core, which reads private rows",
        "core/   statistics/   mechanisms/   accounting/   rows/\n"
        "ledger/   files/   local/   recording/",
        (0, 5.2, 4.8),
    ),
}


def draw_floors(house: House, path: Path) -> None:
    """Write the picture.

    Examples
    --------
    >>> draw_floors(read_house(), Path("floors.png"))  # doctest: +SKIP
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    figure = Figure(figsize=(9, 5.4))
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    axes.set(xlim=(-1.6, 10.1), ylim=(-0.15, 4.0))
    axes.axis("off")
    for floor, name in enumerate(("foundation", "methods", "evidence", "front")):
        axes.text(-1.5, floor + 0.4, name, va="center", fontsize=11, color="#555555")
    for name, (counted, text, folders, (floor, left, width)) in BOXES.items():
        dashed = "--" if name == "papers" else "-"
        colour = "#dbe9f6" if name == "privacy" else "#f4f4f4"
        box = FancyBboxPatch((left, floor), width, 0.8, boxstyle="round,pad=0.02")
        box.set(linestyle=dashed, facecolor=colour, edgecolor="#333333")
        axes.add_patch(box)
        modules = [each for each in house.modules.values() if each.name.split(".")[0] in counted]
        lines = sum(each.code for each in modules)
        size = f"{len(modules)} files, {lines:,} lines of code" if len(modules) > 1 else ""
        middle = left + width / 2
        axes.text(middle, floor + 0.70, name, ha="center", va="center", weight="bold", fontsize=11)
        axes.text(middle, floor + 0.50, text, ha="center", va="center", fontsize=8)
        axes.text(
            middle, floor + 0.27, folders, ha="center", va="center", fontsize=7, family="monospace"
        )
        size = size if width > 3 else size.replace(", ", "\n").replace(" of code", "")
        axes.text(middle, floor + 0.09, size, ha="center", va="center", fontsize=7, color="#555555")
    for floor in (1, 2, 3):
        axes.annotate(
            "",
            xy=(1.0, floor - 0.2),
            xytext=(1.0, floor + 0.0),
            arrowprops={"arrowstyle": "->", "color": "#333333"},
        )
    figure.savefig(path, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    draw_floors(read_house(), PICTURE)
