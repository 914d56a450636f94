"""The methods that the demo compares: with private labels, without them, and without privacy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpadapt._types import FloatArray
from dpadapt.auto import AutoRegressor
from dpadapt.datasets import wage_features
from dpadapt.discrepancy import AdaptationWarning, DiscrepancyRegressor
from dpadapt.pipeline import AdaptationPipeline
from dpadapt.preview.rehearsal import with_facts
from dpadapt.privacy import Private

if TYPE_CHECKING:
    import pandas as pd

EPSILONS, DELTA = (0.25, 1.0, 4.0), 1e-6
PUBLIC_LINEAR = "public data only, linear"
PUBLIC_TREES = "public data only, boosted trees"
UNLABELLED = "dpadapt, no private labels, epsilon 1"
REFERENCE = "no privacy at all"
LABELS = "dpadapt, epsilon "


def method_name(epsilon: float) -> str:
    """Name of our method, with private labels, in the tables.

    Examples
    --------
    >>> method_name(1.0)
    'dpadapt, epsilon 1'
    """
    return f"{LABELS}{epsilon:g}"


class Public:
    """The public people of a setting: everything that reads no private row is fitted once.

    Parameters
    ----------
    X : DataFrame
    y : ndarray

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [30, 40, 50, 60]})
    >>> Public(people, np.arange(4.0)).X.shape
    (4, 1)
    """

    def __init__(self, X: pd.DataFrame, y: FloatArray) -> None:
        self.X, self.y = X, y
        self._facts: Any = None

    def auto(self, epsilon: float) -> AutoRegressor:
        """Estimator of the demo; the public side of all that it returns is computed once."""
        if self._facts is None:
            self._facts = AutoRegressor(epsilon=1.0, delta=DELTA).public_facts(self.X, self.y)
        return with_facts(AutoRegressor, self._facts)(epsilon=epsilon, delta=DELTA)


def methods(
    public: Public, X: pd.DataFrame, y: FloatArray, test: pd.DataFrame
) -> Iterator[tuple[str, FloatArray, bool]]:
    """Name of each method, its predictions for the test people, and whether it adapted.

    Parameters
    ----------
    public : Public
    X, y : DataFrame and ndarray
        The private people. Only :data:`REFERENCE` and our method with labels read ``y``.
    test : DataFrame

    Examples
    --------
    >>> next(methods(None, None, None, None))  # doctest: +SKIP
    """
    linear, trees = _linear(public.X, public.y, test), _trees(public.X, public.y, test)
    yield PUBLIC_LINEAR, linear, True
    yield PUBLIC_TREES, trees, True
    unlabelled = AdaptationPipeline(
        [("features", wage_features())], DiscrepancyRegressor(epsilon=1.0, delta=DELTA)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        unlabelled.fit(public.X, public.y, private=Private(X))
    yield UNLABELLED, unlabelled.predict(test), bool(unlabelled.estimator_.adapted_)
    for epsilon in EPSILONS:
        model = public.auto(epsilon).fit(public.X, public.y, private=Private(X, y))
        yield method_name(epsilon), model.predict(test), True
    yield REFERENCE, (_linear(X, y, test) + _trees(X, y, test)) / 2, True


def _linear(X: pd.DataFrame, y: FloatArray, test: pd.DataFrame) -> FloatArray:
    """Ridge regression as anybody would fit it."""
    model = make_pipeline(wage_features(), StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    return np.asarray(model.fit(X, y).predict(test))


def _trees(X: pd.DataFrame, y: FloatArray, test: pd.DataFrame) -> FloatArray:
    """Boosted trees as anybody would fit them."""
    model = make_pipeline(wage_features(), HistGradientBoostingRegressor(random_state=0))
    return np.asarray(model.fit(X, y).predict(test))
