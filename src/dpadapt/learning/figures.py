"""What the figures of reports, audits and papers share: colours, style, a blank figure, a title."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST_NAME = 40
BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#767676", "#222222"  # Okabe and Ito's
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "svg.hashsalt": "dpadapt",
}


def one_line(text: Any) -> str:
    r"""Text on one line, not too long.

    Examples
    --------
    >>> one_line("two \n  words"), len(one_line("w" * 500))
    ('two words', 40)
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"


def as_data_uri(figure: Figure) -> str:
    """Draw a figure as SVG into a data URI, so that an HTML file needs no other file.

    Examples
    --------
    >>> figure, _ = blank(2, 1)
    >>> as_data_uri(figure)[:26]
    'data:image/svg+xml;base64,'
    """
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def blank(
    width: float, height: float, *, rows: int = 1, columns: int = 1, squeeze: bool = True
) -> tuple[Figure, Any]:
    """Figure with axes in one style: one, or a grid, which ``squeeze=False`` keeps a matrix.

    Examples
    --------
    >>> figure, axes = blank(8, 6, rows=2, columns=2)
    >>> axes.shape
    (2, 2)
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=squeeze)


def set_title(axes: Any, text: str) -> None:
    """Put a title above the left end of axes.

    Examples
    --------
    >>> _, axes = blank(2, 1)
    >>> set_title(axes, "Weights of the public rows")
    >>> axes.get_title(loc="left")
    'Weights of the public rows'
    """
    axes.set_title(text, loc="left", fontsize=11, weight="bold")


def literal_text(text: str) -> str:
    r"""Text as matplotlib draws it literally: no formulas, one line, not too long.

    Examples
    --------
    >>> print(literal_text("price in $ or \n$x^2$"))
    price in \$ or \$x^2\$
    """
    short = one_line(text)
    return short.replace("\\", "\\\\").replace("$", r"\$") if "$" in short else short
