"""What a mistake costs, class by class, from public facts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpadapt._types import FloatArray

_HALF = 0.5  # rows of a class that has none


def weights_of_classes(given: Any, codes: Any, names: Any) -> FloatArray:
    """One weight above 0 for each class.

    A threshold on released scores reads no private row, so that weights cost nothing, whatever
    they are. Weights inside the private descent would: a row of weight w moves a gradient w times
    as far.

    Parameters
    ----------
    given : {"balanced"}, dict or None
        One over the share of public rows (half a row for a class without any); or a weight for
        each class, 1 for a class that is not named.
    codes : ndarray of int
        Classes of public rows.
    names : ndarray
        The class labels.

    Examples
    --------
    >>> weights_of_classes("balanced", np.array([0, 0, 0, 1]), np.array(["no", "yes"])).round(2)
    array([0.67, 2.  ])
    >>> weights_of_classes({"yes": 3}, np.array([0, 1]), np.array(["no", "yes"]))
    array([1., 3.])
    """
    weights = np.ones(len(names))
    if given is None:
        return weights
    if isinstance(given, str):  # "balanced"
        counts = np.maximum(np.bincount(codes, minlength=len(names)), _HALF)
        return np.asarray(len(codes) / (len(names) * counts))
    known = names.tolist()
    for name, weight in given.items():
        if name not in known:
            raise ValueError(f"class_weight: {name!r} is none of the classes {known}.")
        try:
            number = float(weight)
        except (TypeError, ValueError):
            number = np.nan
        if not 0 < number < np.inf:
            raise ValueError(
                f"class_weight: the weight of {name!r} must be a number above 0; got {weight!r}."
            )
        weights[known.index(name)] = number
    return weights
