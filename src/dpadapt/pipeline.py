"""Transformers that are fitted on public rows only and applied to public and private ones."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from dpadapt.learning.checks import check_private, check_width
from dpadapt.privacy import Guarantee, Private, Schema
from dpadapt.privacy.rows.foreign import apply
from dpadapt.privacy.rows.row_wise import row_wise

__all__ = ["AdaptationPipeline"]

_PROBE_ROWS = 64  # public rows that go through a transformer one by one, as private rows do
_NEAR = 1e-4  # of the largest feature: far above rounding, far below what a mean of the others does
_NO_STEP = (None, "passthrough")  # what scikit-learn takes for a transformer that does nothing


def _estimator_has(name: str) -> Any:
    """Whether the last step has a method, fitted or not."""

    def check(pipeline: AdaptationPipeline) -> bool:
        getattr(pipeline.estimator, name)
        return True

    return available_if(check)


class AdaptationPipeline(BaseEstimator):
    """Any scikit-learn transformers before a private estimator.

    The transformers are fitted on the public rows only. Private rows go through the fitted
    transformers inside the trusted core, where nothing that depends on a private value can be
    raised or logged: a row that a transformer refuses (a category it has never seen, say) counts
    as missing. They see private cells one by one in the types of the public columns, whatever the
    types of the private table are (:class:`~dpadapt.Schema`).

    Scalers, encoders, simple imputers, polynomials and projections of scikit-learn see whole blocks
    of private rows. Any other transformer sees **one private row at a time**, about a millisecond
    each, so that what it makes of a row cannot depend on who else is there (``verbose=1`` of the
    estimator shows how far it is).

    Parameters
    ----------
    steps : list of (str, transformer)
        As in :class:`sklearn.pipeline.Pipeline`. Each must give a row what it gives it alone.
    estimator : estimator
        One of this library, taking ``private`` in ``fit``.

    Attributes
    ----------
    transformer_ : Pipeline
        The fitted transformers.
    estimator_ : estimator
        The fitted estimator.
    guarantee_ : Guarantee
        The fitted estimator's guarantee.
    classes_ : ndarray
        Of a classifier.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Columns of the public rows; those of the features are ``estimator_.feature_names_in_``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from dpadapt import AdaptationPipeline, DiscrepancyRegressor, Private
    >>> from dpadapt.discrepancy import Moments
    >>> public = pd.DataFrame({"town": ["A", "B"] * 50, "size": range(100)})
    >>> private = Private(pd.DataFrame({"town": ["A", "B", "B", "new"] * 25, "size": range(100)}))
    >>> encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    >>> always = Moments(max_remaining=1.0)
    >>> regressor = DiscrepancyRegressor(epsilon=1.0, delta=1e-6, solver=always)
    >>> model = AdaptationPipeline([("encode", encode)], regressor)
    >>> model = model.fit(public, public["size"], private=private)
    >>> model.predict(public).shape, model.guarantee_.epsilon <= 1.0
    ((100,), True)
    """

    def __init__(self, steps: list[tuple[str, Any]], estimator: Any) -> None:
        self.steps = steps
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None, *, private: Private | None = None, **others: Any) -> Self:
        """Fit the transformers on the public rows, then the estimator on both samples.

        Parameters
        ----------
        X : array-like or DataFrame of shape (m, d)
            Public rows.
        y : array-like of shape (m,)
            Public labels.
        private : Private, optional
            Private rows with the same columns.
        **others
            Further arguments of the estimator's fit, such as groups of public rows.
        """
        self._check_steps()
        transformer = Pipeline([(name, clone(step, safe=False)) for name, step in self.steps])
        transformer.fit(X, y)
        known = row_wise(transformer.transform)
        probe = None if known else _Probe(X)  # now: it may write into what it is given
        public = _dense(transformer.transform(X))
        if probe is not None:
            probe.check(transformer, public)
        if private is not None:
            private = _mapped(transformer, X, private, public.shape[1])
        estimator = clone(self.estimator).fit(public, y, private=private, **others)
        # both or none: a fit that was refused leaves the earlier model as it was
        self.transformer_, self.estimator_ = transformer, estimator
        names = _names_out(transformer, public.shape[1])
        if names is not None and hasattr(estimator, "n_features_in_"):
            estimator.feature_names_in_ = names
        return self

    @_estimator_has("predict")
    def predict(self, X: Any) -> Any:
        """Predict for rows in the form of the public ones."""
        return self._fitted.predict(self._features(X))

    @_estimator_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes for rows in the form of the public ones."""
        return self._fitted.predict_proba(self._features(X))

    @_estimator_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes for rows in the form of the public ones."""
        return self._fitted.decision_function(self._features(X))

    @_estimator_has("score")
    def score(self, X: Any, y: Any) -> float:
        """Score of the estimator on rows in the form of the public ones."""
        return float(self._fitted.score(self._features(X), y))

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what the steps hand on, as in scikit-learn.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            None leaves them as they are.
        """
        for _, step in [*self.steps, *getattr(getattr(self, "transformer_", None), "steps", ())]:
            if hasattr(step, "set_output"):
                step.set_output(transform=transform)
        return self

    @property
    def _fitted(self) -> Any:
        """The fitted estimator; says so where there is none."""
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def _features(self, X: Any) -> Any:
        """Rows as the fitted estimator takes them, with names if they have any."""
        rows = _dense(self.transformer_.transform(X))
        names = _names_out(self.transformer_, rows.shape[1])
        if names is None or not hasattr(self.estimator_, "feature_names_in_"):
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=names)

    @property
    def classes_(self) -> Any:
        """Class labels of the fitted estimator, if it is a classifier."""
        return self._fitted.classes_

    @property
    def guarantee_(self) -> Guarantee:
        """Guarantee of the fitted estimator."""
        return self._fitted.guarantee_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the public rows."""
        return int(self._first().n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Column names of the public rows, if they had any and a step looked at them."""
        return self._first().feature_names_in_

    def _first(self) -> Any:
        """What saw the public rows first: a step that does nothing has not looked at them."""
        done = [step for _, step in self.transformer_.steps if step not in _NO_STEP]
        return done[0] if done else self.estimator_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with ``deep`` also those of steps and estimator, as ``name__parameter``."""
        params = super().get_params(deep=deep)
        for name, step in _pairs(self.steps).items() if deep else ():
            params[name] = step
            if hasattr(step, "get_params"):
                params |= {f"{name}__{key}": v for key, v in step.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of a step as ``name__parameter``."""
        if "steps" in params:
            self.steps = params.pop("steps")
        steps = _pairs(self.steps)
        for key in sorted(params, key=lambda key: "__" in key):  # a new step before its parameters
            name, _, inner = key.partition("__")
            if name in steps and inner:
                steps[name].set_params(**{inner: params.pop(key)})
            elif name in steps:
                steps[name] = params.pop(key)
                self.steps = list(steps.items())
        super().set_params(**params)
        return self

    def _check_steps(self) -> None:
        names = list(_pairs(self.steps))
        if not names or len(names) < len(self.steps) or "estimator" in names:
            raise ValueError(
                "steps must be a list of (name, transformer) with at least one entry and a "
                "different name for each, none of them 'estimator'."
            )
        for name, step in self.steps:
            if step not in _NO_STEP and not hasattr(step, "transform"):
                raise TypeError(
                    f"steps: {name!r} is no transformer, a {type(step).__name__} has no transform; "
                    "the model itself goes into estimator."
                )
        if not has_fit_parameter(self.estimator, "private"):
            raise TypeError(
                f"estimator must be one of this library, with private in its fit; got "
                f"{type(self.estimator).__name__}."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


def _mapped(transformer: Pipeline, X: Any, private: Any, width: int) -> Private:
    """Private rows in the form of the public ones, under the fitted transformers."""
    check_private(private)
    named = hasattr(X, "iloc")
    if not (named and private.columns is not None):
        check_width(private, _table(X).shape[1])
    if not named and hasattr(X, "toarray"):
        return private.map(transformer.transform, width)  # sparse rows are numbers
    return private.read(Schema.of(X)).map(transformer.transform, width)


def _names_out(transformer: Pipeline, width: int) -> Any:
    """Names of the features, if the transformers tell them; each must be another one."""
    try:
        names = np.asarray(transformer.get_feature_names_out(), dtype=object)
    except (AttributeError, ValueError, TypeError):
        return None
    if names.shape != (width,) or len(set(names.tolist())) < width:
        return None
    return names if all(isinstance(name, str) for name in names) else None


def _pairs(steps: Any) -> dict[str, Any]:
    """Steps by name; none where ``steps`` is not a list of (name, transformer)."""
    pairs = isinstance(steps, (list, tuple)) and all(
        isinstance(step, (list, tuple)) and len(step) == 2 for step in steps
    )
    return dict(steps) if pairs else {}


def _table(X: Any) -> Any:
    return X if hasattr(X, "iloc") or hasattr(X, "toarray") else np.asarray(X)


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


class _Probe:
    """Some public rows, also where there are few."""

    def __init__(self, X: Any) -> None:
        rows = _table(X)
        self.n_rows = int(rows.shape[0])
        size = min(_PROBE_ROWS, (self.n_rows + 1) // 2)
        self.picked = np.linspace(self.n_rows - 1, 0, size).astype(int)
        self.rows = rows.iloc[self.picked] if hasattr(rows, "iloc") else rows[self.picked]

    def check(self, transformer: Pipeline, whole: Any) -> None:
        """Refuse a transformer that gives a row other values when it is alone, as private ones."""
        finish = lambda found, rows: (_dense(found).astype(np.float64),)  # noqa: E731
        alone, failed = apply(transformer.transform, (self.rows,), len(self.picked), finish)
        fits = alone is not None and len(whole) == self.n_rows and not failed.any()
        if alone is None or not (fits and _same(alone[0], whole[self.picked])):
            raise ValueError(
                "steps: the transformers give a row other values when it comes with other rows, or "
                "fail on a row that is alone; private rows come one by one."
            )


def _same(one: Any, two: Any) -> bool:
    two = np.asarray(two, dtype=np.float64)
    near = _NEAR * np.abs(two[np.isfinite(two)]).max(initial=0.0)
    return one.shape == two.shape and np.allclose(one, two, rtol=0.0, atol=near, equal_nan=True)
