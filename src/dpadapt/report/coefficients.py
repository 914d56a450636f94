"""Coefficients as a figure and a table of a size that people can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.learning.figures import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWN = 20  # bars, or rows and columns of a heat map, at most
_LISTED = 50  # with more, a table has only the largest _DRAWN
_NAMED = 3  # features of a class


@dataclass(frozen=True)
class Shown:
    """A figure and a table.

    Parameters
    ----------
    figure : Figure
    alt, note : str
        Texts for the figure.
    caption : str
    head : tuple of str
    rows : sequence of tuple of str
    words : bool
        Whether the last column is text.

    Examples
    --------
    >>> Shown(None, "a bar chart", "", "One coefficient", ("a", "b"), [("x", "1")]).words
    False
    """

    figure: Figure
    alt: str
    note: str
    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: bool = False


def show_coefficients(
    model: Any, *, label: str = "", scale: Sequence[float] = (), features: str = "feature"
) -> Shown | None:
    """Return the coefficients of a fitted model to look at; None if it has none (a network).

    Parameters
    ----------
    model : estimator
        Linear, or an ``AdaptationPipeline`` of one.
    label : str
        Name of what is predicted.
    scale : sequence of float
        Public standard deviations of the features, to compare coefficients by.
    features : str
        What a coefficient is for.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> [row[0] for row in show_coefficients(model).rows]
    ['(intercept)', 'feature 1']
    """
    estimator = getattr(model, "estimator_", model)
    if not hasattr(estimator, "coef_"):
        return None
    sizes = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    names, constants = _names(model, sizes.shape[1]), np.ravel(estimator.intercept_)
    scaled = len(scale) == sizes.shape[1] and features == "feature"
    compared = sizes * np.asarray(scale, dtype=np.float64) if scaled else sizes
    unit = "public standard deviation" if scaled else f"unit of the {features}"
    if len(sizes) == 1:
        what = f"change of {_what(estimator)} per {unit}"
        caption = f" of {label}" if label else ""
        caption += f", per unit of each {features}"
        return _one(names, sizes[0], float(constants[0]), compared[0], what, caption)
    classes = [str(each) for each in estimator.classes_]
    return _several(classes, names, sizes, constants, compared, f"change of score per {unit}")


def _one(
    names: list[str],
    sizes: NDArray[np.float64],
    constant: float,
    compared: NDArray[np.float64],
    what: str,
    caption: str,
) -> Shown:
    """One output: bars of the largest, and a table of all if they are not too many."""
    from ._figures import coefficients_figure

    order = np.argsort(-np.abs(compared), kind="stable")[:_DRAWN]
    all_listed = len(sizes) <= _LISTED
    listed: Any = range(len(sizes)) if all_listed else order
    count = f"All {len(sizes)} coefficients" if all_listed else _largest("coefficients", sizes)
    rows = [("(intercept)", f"{constant:.6g}")]
    drawn = "All coefficients" if len(sizes) <= _DRAWN else _largest("coefficients", sizes)
    return Shown(
        coefficients_figure([names[i] for i in order], compared[order], what),
        f"Bar chart. {drawn} of the model; the table has their numbers.",
        f"{drawn}; the numbers are in the table.",
        count + caption,
        ("feature", "coefficient"),
        rows + [(names[i], f"{sizes[i]:.6g}") for i in listed],
    )


def _several(
    classes: list[str],
    names: list[str],
    sizes: NDArray[np.float64],
    constants: NDArray[np.float64],
    compared: NDArray[np.float64],
    what: str,
) -> Shown:
    """Several classes: a heat map if it is small, else the length of each class's coefficients."""
    from ._figures import class_norms_figure, heat_map_figure

    norms = np.linalg.norm(compared, axis=1)
    order = np.arange(len(classes))
    some = "All classes"
    if len(classes) > _DRAWN:
        order = np.argsort(-norms, kind="stable")[:_DRAWN]
        some = _largest("classes by the length of their coefficients", classes)
    picked = [classes[i] for i in order]
    small = len(classes) <= _DRAWN and len(names) <= _DRAWN
    if small:
        figure = heat_map_figure(classes, names, compared)
        alt = "Heat map of the coefficients of each class and feature"
    else:
        figure = class_norms_figure(picked, norms[order])
        alt = "Bar chart of the length of the coefficients of each class"
    rows = [
        (classes[i], f"{constants[i]:.6g}", f"{norms[i]:.6g}", _tops(names, compared[i]))
        for i in order
    ]
    return Shown(
        figure,
        f"{alt}. {some}; the table has numbers.",
        f"{some}. A class is predicted where its score is the largest: only differences count.",
        f"{some}, {len(names)} coefficients each: {what}",
        ("class", "intercept", "length", "largest coefficients"),
        rows,
        words=True,
    )


def _tops(names: list[str], sizes: NDArray[np.float64]) -> str:
    order = np.argsort(-np.abs(sizes), kind="stable")[:_NAMED]
    return ", ".join(f"{one_line(names[i])}: {sizes[i]:.3g}" for i in order)


def _largest(what: str, of: Any) -> str:
    return f"The {_DRAWN} largest of {len(of):,} {what}"


def _what(estimator: Any) -> str:
    """What one output is: a prediction, or the score of the second class."""
    if not hasattr(estimator, "classes_"):
        return "prediction"
    return f"score of {one_line(estimator.classes_[-1])!r}".replace("$", r"\$")


def _names(model: Any, count: int) -> list[str]:
    """Names of the features, as far as they are known."""
    try:
        names = model.transformer_.get_feature_names_out()
    except (AttributeError, ValueError):
        names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != count:
        return [f"feature {i + 1}" for i in range(count)]
    return [_plain(str(name)) for name in names]


def _plain(name: str) -> str:
    """Name of a feature as people would say it.

    Examples
    --------
    >>> _plain("town_infrequent_sklearn"), _plain("town_A")
    ('other levels of town', 'town_A')
    """
    column = name.removesuffix("_infrequent_sklearn")
    return name if column == name else f"other levels of {column}"
