"""Settings of paper 003 (Kohen, Sheffet: hybrid model), and harder ones of our own.

The paper's own are ``figure 1`` (a hyperplane in 500 columns), ``figure 2`` (an ellipse in 200) and
``EASY`` (an ellipse in 8, the private run of its Figure 3). The others are not the paper's: where
the source alone is enough (MEAN), where reweighing is needed (HARD, HARD50, MEANB, CORR), where no
Gaussian fits the target (BIMOD) or the source (UNIFORM, LAPLACE, T4), or columns depend on each
other (AR1); and ``parity``, for the claim of its Appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .populations import Bimodal, Correlated, Population, Shifted, Shrunk, SkewedBits

__all__ = ["SETTINGS", "Setting", "draw_setting"]


@dataclass(frozen=True)
class Setting:
    """A population with what a method may know of it.

    Parameters
    ----------
    name : str
    population : Population
    features : {"linear", "squares"}
        In which the labels are, or nearly are, a linear rule.
    unit : float
        Order of magnitude of the columns.
    level : float
        Target error that counts as success.

    Examples
    --------
    >>> setting = draw_setting("HARD", seed=0)
    >>> setting.features, setting.level, round(setting.population.chi2 + 1, 1)
    ('squares', 0.1, 39.2)
    """

    name: str
    population: Population
    features: str
    unit: float = 1.0
    level: float = 0.1


@dataclass(frozen=True)
class _Ellipse:
    """How a setting with shrunk columns is drawn."""

    dimension: int
    count: int
    factor: float
    share: float
    known: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


_ELLIPSES: Mapping[str, _Ellipse] = {
    "figure 1": _Ellipse(
        500, 10, 0.02, 0.01, {"plane": True, "single": True}, {"features": "linear", "level": 0.02}
    ),
    "figure 2": _Ellipse(200, 6, 0.4, 0.3, {"single": True}, {"level": 0.02}),
    "EASY": _Ellipse(8, 2, 0.7, 0.4, {"scale": 0.1}, {"unit": 0.1, "level": 0.16}),
    "HARD": _Ellipse(8, 6, 0.4, 0.3),
    "HARD50": _Ellipse(50, 6, 0.4, 0.3),
    "UNIFORM": _Ellipse(8, 6, 0.4, 0.3, {"law": "uniform"}),
    "LAPLACE": _Ellipse(8, 6, 0.4, 0.3, {"law": "laplace"}),
    "T4": _Ellipse(8, 6, 0.4, 0.3, {"law": "t4"}),
    "AR1": _Ellipse(8, 6, 0.4, 0.3, {"law": "ar1"}),
}
SETTINGS = (*_ELLIPSES, "MEAN", "MEANB", "BIMOD", "CORR", "parity")


def draw_setting(name: str, seed: int = 0) -> Setting:
    """One of :data:`SETTINGS`; the seed draws which columns or directions matter.

    Parameters
    ----------
    name : str
    seed : int, default=0

    Examples
    --------
    >>> draw_setting("figure 2").population.dimension
    200
    """
    if name not in SETTINGS:
        raise ValueError(f"there is no setting {name!r}; there are {', '.join(SETTINGS)}.")
    rng = np.random.default_rng([SETTINGS.index(name), seed])
    if name in _ELLIPSES:
        given = _ELLIPSES[name]
        columns = tuple(sorted(int(c) for c in rng.choice(given.dimension, given.count, False)))
        law = Shrunk(given.dimension, columns, given.factor, given.share, **given.known)
        return Setting(name, law, **({"features": "squares"} | dict(given.more)))
    if name == "parity":
        secret = tuple(int(column) for column in np.flatnonzero(rng.random(64) < 0.5))
        return Setting(name, SkewedBits(64, secret), "linear")
    if name == "CORR":
        first, second = rng.choice(8, 2, replace=False)
        return Setting(name, Correlated(8, (int(first), int(second))), "linear")
    if name == "BIMOD":
        split, direction = _unit(rng.normal(size=8)), rng.normal(size=8)
        direction -= (direction @ np.array(split)) * np.array(split)
        return Setting(name, Bimodal(split, _unit(direction)), "linear")
    shift = np.zeros(8)
    shift[rng.choice(8, 4, replace=False)] = rng.choice([-1.0, 1.0], 4)  # of length 2
    direction = rng.normal(size=8)
    direction -= (direction @ shift) / (shift @ shift) * shift
    beyond = 0.55 if name == "MEANB" else None
    return Setting(
        name, Shifted(tuple(map(float, shift)), _unit(direction), beyond), features="linear"
    )


def _unit(vector: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(each) for each in vector / np.linalg.norm(vector))
