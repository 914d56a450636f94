"""What every estimator checks and derives before it opens a session: public facts only."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from dpadapt._validate import EPSILON_ADVICE, MOST_EPSILON, epsilon
from dpadapt.privacy import Guarantee, Private

from .constraints import Fraction, Like, Null, OneOf, ParameterTable, Positive, check_value
from .linear import class_labels
from .tables import refuse_huge, words_for_tables

SESSION: ParameterTable = {
    "epsilon": [Positive(advice=EPSILON_ADVICE)],
    "delta": [
        Fraction(advice="A common choice is 1e-6, well below one over the number of private rows.")
    ],
    "noise": [OneOf("secure", "seeded", "exact")],
    "ledger": [
        Like("be an account, as in Ledger('budget.db').account('patients')", "charge"),
        Null(),
    ],
}
"""What the parameters of a session may be."""


class GuaranteeWarning(UserWarning):
    """A guarantee is weaker than it looks: by its numbers, its uses or a paper's constants."""


def session_options(estimator: Any) -> dict[str, Any]:
    """Check the privacy parameters of an estimator; return what ``Private.open`` takes.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> session_options(SimpleNamespace(epsilon=0, delta=1e-6, noise="secure", random_state=None,
    ...                                 ledger=None))
    Traceback (most recent call last):
    ...
    ValueError: epsilon must be a positive, finite number; got 0. Smaller means more private; \
1.0 is a common choice. Epsilon 0 would be full privacy, which is a model of public rows alone: \
for that, leave the private rows out.
    """
    for name, allowed in SESSION.items():
        check_value(name, getattr(estimator, name), allowed)
    epsilon(estimator.epsilon, most=MOST_EPSILON)
    seed = estimator.random_state
    if seed is not None and not isinstance(seed, int):
        seed = int(check_random_state(seed).randint(2**31))
    options = {
        "epsilon": float(estimator.epsilon),
        "delta": float(estimator.delta),
        "noise": estimator.noise,
        "random_state": seed,
        "ledger": estimator.ledger,
    }
    return options | ({"relation": estimator.relation} if hasattr(estimator, "relation") else {})


def aligned_private(
    estimator: Any, private: Any, *, labelled: bool, empty: bool = False
) -> Private | None:
    """Return the private sample with the public columns in the public order; None if there is none.

    Parameters
    ----------
    estimator : fitted on the public sample as far as ``n_features_in_`` goes
    private : Private or None
    labelled : bool
        Whether the method needs private labels.
    empty : bool, default=False
        Whether a sample of no rows is handed on too: under add-remove it must look like any other.
    """
    if private is None:
        return None
    check_private(private)
    if labelled and not private.labelled:
        raise ValueError("private must have labels: Private(X_private, y_private).")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and private.columns is not None:
        private = private.select(list(names))
    check_width(private, estimator.n_features_in_)
    warn_of_lost_names(names, private)
    return private if empty or private.n_rows > 0 else None


def warn_of_lost_names(names: Any, private: Private) -> None:
    """Warn where private columns have names and public ones have none: they may be others.

    Examples
    --------
    >>> warn_of_lost_names(["age"], Private([[1.0]]))
    """
    if names is None and private.columns is not None:
        warnings.warn(
            "the columns of private have names and those of the public X have none, so that they "
            "are taken in their order. If X went through transformers (a scikit-learn Pipeline), "
            "private rows did not: put the transformers into a dpadapt.AdaptationPipeline.",
            UserWarning,
            stacklevel=6,
        )


def check_private(private: Any) -> None:
    """Say how private rows are given, if they were not.

    Examples
    --------
    >>> check_private([[1.0]])
    Traceback (most recent call last):
    ...
    TypeError: private must be a dpadapt.Private; got list. Wrap the private rows: \
Private(X_private), or with their labels Private(X_private, y_private).
    """
    if not isinstance(private, Private):
        raise TypeError(
            f"private must be a dpadapt.Private; got {type(private).__name__}. Wrap the private "
            "rows: Private(X_private), or with their labels Private(X_private, y_private)."
        )


def check_width(private: Private, width: int) -> None:
    """Say that private rows have other columns than public ones, if they have.

    Examples
    --------
    >>> check_width(Private([[1.0]]), 1)
    """
    if private.n_columns != width:
        raise ValueError(
            f"private has {private.n_columns} columns, but the public X has {width}; give both "
            "the same columns. If X went through transformers (a scikit-learn Pipeline), private "
            "rows did not: put the transformers into a dpadapt.AdaptationPipeline, which takes "
            "both samples through them."
        )


def public_scaling(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of the public columns; 1 where a column is constant.

    Examples
    --------
    >>> center, scale = public_scaling(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> center, scale
    (array([2., 5.]), array([1., 1.]))
    """
    # measured in a power of two near the largest cell: exact, and no square of it overflows
    unit = np.ldexp(1.0, np.frexp(np.abs(X).max(axis=0))[1] - 1)
    measured = X / unit
    center, scale = measured.mean(axis=0), measured.std(axis=0)
    constant = scale <= 1e-12 * np.abs(center)
    return center * unit, np.where(constant, 1.0, scale * unit)


def warn_of_printed(guarantee: Guarantee, epsilon: float) -> None:
    """Warn where a paper's constants spent more than was asked for.

    Examples
    --------
    >>> warn_of_printed(Guarantee(), 1.0)
    """
    if guarantee.epsilon > epsilon * (1 + 1e-9):
        warnings.warn(
            f"the printed constants give epsilon {guarantee.epsilon:.4g}, more than the "
            f"{epsilon:.4g} that was asked for; calibration='tight' keeps to it.",
            GuaranteeWarning,
            stacklevel=4,
        )


def public_part(
    estimator: Any, X: Any, y: Any, private: Any
) -> tuple[NDArray[np.float64], Any, Any]:
    """Public rows and labels of a classifier, and the classes; no rows at all if X is None.

    Without public rows the private ones say how many columns there are, and ``classes`` must be
    given: labels of private rows are not looked at.
    """
    if X is not None:
        with words_for_tables(X, y, numbers=False):
            rows, labels = validate_data(estimator, X, y, dtype=np.float64)
            refuse_huge("X", rows)
            return rows, labels, class_labels(labels, estimator.classes)
    if y is not None:
        raise ValueError("y: public labels without public rows; give X too, or neither.")
    if private is None:
        raise ValueError("X: give public rows, or private ones, or both.")
    check_private(private)
    if estimator.classes is None:
        raise ValueError(
            "classes: without public rows the class labels must be given; those of private "
            "rows are not looked at."
        )
    estimator.n_features_in_ = private.n_columns
    estimator.__dict__.pop("feature_names_in_", None)
    if private.columns is not None:
        estimator.feature_names_in_ = np.array(private.columns, dtype=object)
    classes = class_labels(np.unique(np.asarray(estimator.classes)), None)
    return np.zeros((0, private.n_columns)), classes[:0], classes
