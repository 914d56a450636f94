"""One fit for all estimators: check, read public rows, open a session, solve, keep all or nothing.

A method says in a few hooks what is its own; :class:`PrivateEstimator` does the rest, in this
order. Nothing is spent before ``_adapt``, and everything until then looks at public facts only.

=====================================  ============================================================
``_constraints``                       What each parameter may be: a table, inherited row by row.
``_check()``                           Relations between parameters, each of which is fine.
``_read(X, y, private)``               Public rows, as the problem to solve.
``_sample(problem, private)``          The private sample in the public columns, labels encoded;
                                       None if there is none.
``_adapt(problem, sample, options)``   Open a session and solve. Override it where the solver opens
                                       its own, or where one is not enough.
``_solve(problem, session)``           The fitted attributes; ``session`` is None without private
                                       rows.
``_story()``                           What a report tells of the fitted model.
=====================================  ============================================================

``_read``, ``_check``, ``_solve`` are those that most methods have. Arguments of ``fit`` other than
rows and labels (agents, say) go from ``fit`` through ``_fit`` to ``_read``, and on in the problem.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import validate_data

from dpadapt.learning import constraints
from dpadapt.learning.cautions import caution, earlier_events, with_total
from dpadapt.learning.checks import SESSION, aligned_private, session_options, warn_of_printed
from dpadapt.learning.constraints import Count, Flag, ParameterTable, check_parameters
from dpadapt.learning.linear import LinearClassifier, LinearRegressor, class_labels
from dpadapt.learning.progress import row_progress
from dpadapt.learning.story import Story, plain_story
from dpadapt.learning.strategy import Strategy, split_params, strategy_of
from dpadapt.learning.tables import refuse_huge, words_for_tables

from .privacy import Guarantee, Private, Session
from .privacy.mechanisms import count_labels

__all__ = [
    "LinearClassifier",
    "LinearRegressor",
    "PrivateEstimator",
    "Problem",
    "constraints",
    "read_public",
]


@dataclass(frozen=True, eq=False)
class Problem:
    """Public rows and labels.

    Parameters
    ----------
    X : ndarray of shape (m, d)
    labels : ndarray of shape (m,)
        Numbers for regression; places among the classes for classification.
    names : ndarray, optional
        The class labels; None for regression. Private labels are encoded by them.

    Examples
    --------
    >>> Problem(np.eye(2), np.array([1, 0]), np.array(["no", "yes"])).names[1]
    np.str_('yes')
    """

    X: NDArray[np.float64]
    labels: Any
    names: Any = None


def read_public(estimator: Any, X: Any, y: Any) -> Problem:
    """Read public rows and labels: numbers, or classes, those of the caller if there are any.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyClassifier
    >>> model = PublicOnlyClassifier(classes=["a", "b", "c"])
    >>> read_public(model, [[1.0], [2.0]], ["c", "a"]).labels
    array([2, 0])
    """
    numbers = not is_classifier(estimator)
    with words_for_tables(X, y, numbers=numbers):
        rows = validate_data(estimator, X, y, y_numeric=numbers, dtype=np.float64)
        return labelled(estimator, *rows)


def labelled(estimator: Any, rows: Any, labels: Any) -> Problem:
    """Rows and checked labels as a problem: numbers, or places among the classes.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyRegressor
    >>> labelled(PublicOnlyRegressor(), np.eye(2), np.array([1, 2])).labels
    array([1., 2.])
    """
    refuse_huge("X", rows)
    if not is_classifier(estimator):
        refuse_huge("y", labels)
        return Problem(rows, np.asarray(labels, dtype=np.float64))
    classes = class_labels(labels, getattr(estimator, "classes", None))
    return Problem(rows, np.searchsorted(classes, labels).astype(np.int64), classes)


class PrivateEstimator(BaseEstimator):
    """An estimator that learns from public rows and a private sample.

    Subclasses have the parameters ``epsilon``, ``delta``, ``noise``, ``random_state``, ``ledger``
    and ``verbose``, say in ``_solve`` how they solve, and come before a class that predicts.

    Attributes
    ----------
    guarantee_ : Guarantee
        Computed from what really ran; epsilon 0 without private rows.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> from dpadapt.privacy.mechanisms import SymmetricGaussian
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> class Level(PrivateEstimator, LinearRegressor):
    ...     '''The public mean, whatever private rows are like.'''
    ...     _reads_labels = False
    ...     def __init__(self, *, epsilon, delta, noise="secure", random_state=None, ledger=None,
    ...                  verbose=0):
    ...         self.epsilon, self.delta, self.noise = epsilon, delta, noise
    ...         self.random_state, self.ledger, self.verbose = random_state, ledger, verbose
    ...     def _solve(self, problem, session):
    ...         width = problem.X.shape[1]
    ...         if session is not None:
    ...             moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...             session.plan(moment=SymmetricGaussian.of(moment))
    ...         return {"coef_": np.zeros(width), "intercept_": float(problem.labels.mean())}
    >>> model = Level(epsilon=1.0, delta=1e-6).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> model.predict([[7.0]]), model.guarantee_.epsilon
    (array([2.]), 0.0)
    >>> model.fit([[0.0], [1.0]], [1.0, 3.0], private=Private([[0.5]] * 9)).guarantee_.epsilon > 0.9
    True
    """

    epsilon: float
    delta: float
    noise: str
    random_state: Any
    ledger: Any
    verbose: int

    _constraints: ClassVar[ParameterTable] = {**SESSION, "verbose": [Count(least=0), Flag()]}
    _reads_labels: ClassVar[bool] = True
    """Whether private labels are needed."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        places = {kind: place for place, kind in enumerate(cls.__mro__)}
        for mixin in (ClassifierMixin, RegressorMixin):
            if places.get(mixin, -1) > places[BaseEstimator]:
                raise TypeError(
                    f"{cls.__name__} inherits from {mixin.__name__} after PrivateEstimator, and "
                    "scikit-learn would not see it: name the mixin first, as in "
                    f"class {cls.__name__}({mixin.__name__}, PrivateEstimator)."
                )

    def fit(self, X: ArrayLike, y: ArrayLike, *, private: Private | None = None) -> Self:
        """Fit to public labelled rows and private ones.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Public rows.
        y : array-like of shape (m,)
            Public labels.
        private : Private, optional
            Private rows with the same columns, and their labels if the method reads them. Without
            private rows the model is one of public rows alone.

        Returns
        -------
        object
            Itself, fitted.
        """
        return self._fit(X, y, private)

    def _fit(self, X: Any, y: Any, private: Any, **others: Any) -> Self:
        """Fit; ``others`` are further arguments of ``fit``, for ``_read``."""
        self._check_parameters()
        options = session_options(self)
        with _all_or_nothing(self):
            problem = self._read(X, y, private, **others)
            sample = self._sample(problem, private)
            if sample is None:
                found, guarantee = self._alone(problem, options)
            else:
                caution(problem, sample, options)
                earlier = earlier_events(private, options["delta"])
                found, guarantee = self._adapt(problem, sample, options)
                guarantee = with_total(guarantee, earlier)
            warn_of_printed(guarantee, options["epsilon"])
            if problem.names is not None:
                self.classes_ = problem.names
            self.guarantee_ = guarantee
            for name, value in found.items():
                setattr(self, name, value)
        return self

    def _check_parameters(self) -> None:
        """Check all parameters, before anything is read or spent."""
        check_parameters(self)
        self._check()

    # what a method may say

    def _check(self) -> None:
        """Check relations between parameters, each of which is fine by itself."""

    def _read(self, X: Any, y: Any, private: Any) -> Any:
        """Return public rows and labels as a problem; anything with ``names`` will do."""
        return read_public(self, X, y)

    def _sample(self, problem: Any, private: Any) -> Private | None:
        """Return the private sample as the public rows are; None if there is none, or no row."""
        empty = getattr(self, "relation", None) == "add-remove"  # looks like any other then
        sample = aligned_private(self, private, labelled=self._reads_labels, empty=empty)
        if sample is None or problem.names is None:
            return sample
        return sample.encode(problem.names)

    def _alone(self, problem: Any, options: dict[str, Any]) -> tuple[dict[str, Any], Guarantee]:
        """Solve without private rows; as ``_adapt``."""
        return self._solve(problem, None), Guarantee()

    def _adapt(
        self, problem: Any, sample: Private, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Guarantee]:
        """Solve with private rows; return fitted attributes by name, and the guarantee.

        Parameters
        ----------
        problem : object
            From ``_read``.
        sample : Private
        options : dict
            Arguments of :meth:`dpadapt.Private.open`, but for ``label`` and ``progress``.
        """
        with self._watched(options) as watched, sample.open(**watched) as session:
            self._count(session)
            found = self._solve(problem, session)
        return found, session.guarantee

    def _count(self, session: Session) -> None:
        """Leave out rows without a label, and count the others in the plan, with noise.

        Override it where no count is needed, with a proof, or where rows without a label are used.
        """
        if self._reads_labels:
            count_labels(session)

    @contextmanager
    def _watched(self, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Add to options of a session who asks, and a progress bar for the rows that it reads."""
        # under add-remove the number of rows is a secret, which a bar would show
        verbose = 0 if options.get("relation") == "add-remove" else self.verbose
        with row_progress("reading private rows", verbose) as progress:
            yield options | {"label": type(self).__name__, "progress": progress}

    @abstractmethod
    def _solve(self, problem: Any, session: Session | None) -> dict[str, Any]:
        """Return fitted attributes by name; from public rows alone if ``session`` is None."""

    def _story(self) -> Story:
        """Tell how the fitted model came about, from parameters and fitted attributes only."""
        return plain_story(self, self.guarantee_)

    # parameters that are objects

    def _strategy(self, name: str) -> Any:
        """Return the object that a parameter stands for: ``self._strategy("solver")``."""
        return strategy_of(self, name)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``solver__steps`` sets an option of the solver.

        Parameters
        ----------
        **params
            By name.
        """
        own, inner = split_params(params)
        super().set_params(**own)
        for name, given in inner.items():
            strategy = strategy_of(self, name) if hasattr(self, name) else None
            if isinstance(strategy, Strategy):  # a value: another one takes its place
                setattr(self, name, strategy.with_params(**given))
            else:
                super().set_params(**{f"{name}__{key}": value for key, value in given.items()})
        return self


@contextmanager
def _all_or_nothing(estimator: Any) -> Iterator[None]:
    """Forget what was fitted; bring it back if this fit is refused.

    A refused fit must not put its guarantee beside an earlier model, and nothing of an earlier
    model may stay beside this one.
    """
    before = dict(vars(estimator))
    for name in before:
        if name.endswith("_") and not name.endswith("__"):
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
