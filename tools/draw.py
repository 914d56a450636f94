"""Draw the house: its folders as boxes, from what is used below to what uses it above.

Usage: ``python -m tools.draw house.png``. Arrows of a cycle are red, the others grey.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

from .house import SOURCE, House, cycles, read_house

__all__ = ["draw", "floors"]

_WIDE, _HIGH = 2.1, 1.5  # inches for a box


def floors(arrows: Collection[tuple[str, str]], names: Collection[str]) -> dict[str, int]:
    """Floor of every name: one above the highest that it uses; a cycle shares a floor.

    Examples
    --------
    >>> floors([("cli", "fit"), ("fit", "core")], ["cli", "fit", "core"])
    {'cli': 2, 'fit': 1, 'core': 0}
    """
    together = {name: tuple(group) for group in cycles(arrows) for name in group}
    found = dict.fromkeys(names, 0)
    for _ in names:
        for one, two in arrows:
            if one not in together.get(two, ()):
                found[one] = max(found[one], found[two] + 1)
        for group in set(together.values()):
            found |= dict.fromkeys(group, max(found[name] for name in group))
    return found


def draw(house: House, path: Path) -> None:
    """Write the picture.

    Examples
    --------
    >>> draw(read_house(), Path("house.png"))  # doctest: +SKIP
    """
    from matplotlib.figure import Figure

    names = sorted({module.part for module in house.modules.values()})
    arrows = house.part_arrows
    floor = floors(arrows, names)
    circles = [set(group) for group in cycles(arrows)]
    rows = [
        [name for name in names if floor[name] == level] for level in range(1 + max(floor.values()))
    ]
    widest = max(map(len, rows))
    where = {
        name: ((place + 0.5) * widest / len(row) * _WIDE, level * _HIGH)
        for level, row in enumerate(rows)
        for place, name in enumerate(row)
    }
    figure = Figure(figsize=(widest * _WIDE, len(rows) * _HIGH))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, widest * _WIDE)
    axes.set_ylim(-0.5 * _HIGH, (len(rows) - 0.5) * _HIGH)
    for (one, two), count in arrows.items():
        red = any({one, two} <= group for group in circles)
        axes.annotate(
            "",
            where[two],
            where[one],
            arrowprops={
                "arrowstyle": "->",
                "color": "tab:red" if red else "0.7",
                "linewidth": 0.5 + 0.1 * min(count, 20),
                "connectionstyle": "arc3,rad=0.08",
                "shrinkA": 22,
                "shrinkB": 22,
            },
        )
    for name, (x, y) in where.items():
        text = f"{name}\n{len(house.inside(name))} files, {house.code(name):,} of code"
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.3"}
        axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox=box)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Draw a package into a file."""
    parser = argparse.ArgumentParser(description="Draw the house.")
    parser.add_argument("out", type=Path, help="picture to write: .png, .svg or .pdf")
    parser.add_argument("--source", type=Path, default=SOURCE, help="folder of a package")
    given = parser.parse_args()
    draw(read_house(given.source), given.out)


if __name__ == "__main__":
    main()
