"""Classes from the probabilities of a released model, by what a mistake costs. It costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import chosen_class
from .weights import weights_of_classes


def predict_classes(
    model: Any,
    X: Any,
    *,
    threshold: Mapping[Any, float] | None = None,
    class_weight: Any = None,
) -> Any:
    """Predict classes with thresholds or weights of one's own, after a fit. Costs no privacy.

    Only probabilities of the released model are used, so that it may be done as often as one likes.

    Parameters
    ----------
    model : classifier
        Fitted, with ``predict_proba``.
    X : DataFrame or array-like of shape (n, d)
    threshold : mapping of class to float, optional
        A class that is named is predicted from this probability on, and not below: {"yes": 0.1}.
        Where none is reached, the most likely of the other classes is predicted.
    class_weight : {"balanced"} or dict, optional
        The class of the largest weight times probability is predicted. "balanced" is one over the
        share of public rows, which a model remembers that counted its classes (``class_errors_``).

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.arange(40.0)[:, None], np.where(np.arange(40) > 30, "yes", "no")
    >>> model = LogisticRegression().fit(X, y)
    >>> [int((each == "yes").sum()) for each in (model.predict(X),
    ...     predict_classes(model, X, threshold={"yes": 0.01}),
    ...     predict_classes(model, X, class_weight={"yes": 20.0}))]
    [9, 13, 12]
    """
    if not (hasattr(model, "predict_proba") and hasattr(model, "classes_")):
        raise TypeError(
            f"model: a {type(model).__name__} has no probabilities of classes, so that thresholds "
            "and weights have nothing to go by. Give a classifier that has predict_proba."
        )
    if (threshold is None) == (class_weight is None):
        raise ValueError("give either threshold, as in {'yes': 0.1}, or class_weight; not both.")
    names = np.asarray(model.classes_)
    if threshold is not None:
        wanted = threshold_places(threshold, names)
        return names[chosen_class(model.predict_proba(X), wanted)]
    weights = weights_of_classes(class_weight, _codes(model, class_weight), names)
    return names[np.argmax(model.predict_proba(X) * weights, axis=1)]


def threshold_places(given: Mapping[Any, float], names: Any) -> dict[int, float]:
    """Thresholds by the places of classes; refused where one is no class, or no probability.

    Parameters
    ----------
    given : mapping of class to float
    names : ndarray
        The classes.

    Examples
    --------
    >>> threshold_places({"yes": 0.1}, np.array(["no", "yes"]))
    {1: 0.1}
    """
    known = names.tolist()
    found: dict[int, float] = {}
    for name, least in given.items():
        if name not in known:
            raise ValueError(f"threshold: {name!r} is none of the classes {known}.")
        if not isinstance(least, (int, float)) or not 0 < least <= 1:
            raise ValueError(
                f"threshold: that of {name!r} must be a probability above 0 and at most 1; got "
                f"{least!r}."
            )
        found[known.index(name)] = float(least)
    if not found:
        raise ValueError("threshold: name a class and a probability, as in {'yes': 0.1}.")
    return found


def _codes(model: Any, class_weight: Any) -> Any:
    """Classes of public rows, as a model remembers them, where weights are made of their shares."""
    if not isinstance(class_weight, str):
        return ()
    if class_weight != "balanced":
        raise ValueError(
            "class_weight must be 'balanced', or a dict as in {'yes': 5.0}; got "
            f"{class_weight!r}."
        )
    errors = getattr(getattr(model, "estimator_", model), "class_errors_", None)
    if errors is None:
        raise ValueError(
            "class_weight='balanced' needs the shares of the classes among public rows, which this "
            "model does not remember. Give weights, as in {'yes': 5.0}, or a threshold."
        )
    return np.repeat(np.arange(len(errors.counts)), errors.counts)
