"""Which classes a model finds, and what finding more of a rare one costs in other errors.

Everything is counted on public rows, with a model that is released: nothing is spent. Where the
share of a class is small, the most likely class is hardly ever that one, and a model with few
errors may find none of them. What a mistake costs is for people to say: ``class_weight``, or a
threshold on the probability of a class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpadapt._types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ClassErrors", "class_errors", "predict_classes"]

THRESHOLDS = (0.3, 0.2, 0.1, 0.05, 0.02)
"""Probabilities from which on a class is predicted, in tables of what that would cost."""

_RARELY = 1 / 3  # of its rows: a class that is predicted less often is hardly ever predicted
_SMALL = 0.2  # share of a class whose thresholds are shown
_HALF = 0.5  # rows of a class that has none
_MOST_SHOWN = 4  # classes that are told of


class ThresholdLine(NamedTuple):
    """One way to choose classes, and what it does for one class.

    Examples
    --------
    >>> ThresholdLine("as it is", found=1, alarms=0, wrong=40).precision
    1.0
    """

    rule: str
    found: int
    alarms: int
    wrong: int

    @property
    def precision(self) -> float:
        """Share of those predicted to be of the class that are; nan where none is."""
        alarms = self.found + self.alarms
        return self.found / alarms if alarms else float("nan")


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """Counts of public rows: how many each class has, how many are predicted, how many are found.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    counts : ndarray of shape (k,)
        Public rows of each class.
    usual, likely, balanced : ndarray of shape (2, k)
        Rows that are predicted to be of each class, and how many of them are: as the model
        predicts, by the largest probability, and by ``class_weight="balanced"``.
    thresholds : ndarray of shape (t,)
    by_threshold : ndarray of shape (3, k, t)
        The same, and the wrong rows in all, if one class is predicted from a probability on.
    seen : bool
        Whether the model was fitted to these very rows, and looks better than it is.

    Examples
    --------
    >>> rare = np.column_stack([np.full(50, 0.9), np.full(50, 0.1)])
    >>> errors = ClassErrors.of(rare, np.array([0] * 45 + [1] * 5), np.array(["no", "yes"]))
    >>> errors.hardly_predicted
    [np.str_('yes')]
    >>> errors.lines("yes")[-1]
    ThresholdLine(rule='--threshold yes=0.02', found=5, alarms=45, wrong=45)
    """

    classes: Any
    counts: IntArray
    usual: IntArray
    likely: IntArray
    balanced: IntArray
    thresholds: NDArray[np.float64]
    by_threshold: IntArray
    seen: bool = False

    def __post_init__(self) -> None:
        k, t = np.shape(self.classes)[0], np.shape(self.thresholds)[0]
        shapes = {"usual": (2, k), "likely": (2, k), "balanced": (2, k), "by_threshold": (3, k, t)}
        for name, shape in {"counts": (k,), **shapes}.items():
            given = np.asarray(getattr(self, name))
            if given.shape != shape or given.dtype.kind not in "iu" or (given < 0).any():
                raise ValueError(f"{name}: counts of {k} classes are needed.")

    @classmethod
    def of(
        cls,
        probabilities: Any,
        codes: Any,
        classes: Any,
        *,
        predicted: Any = None,
        seen: bool = False,
    ) -> Self:
        """Count.

        Parameters
        ----------
        probabilities : ndarray of shape (m, k)
        codes : ndarray of shape (m,)
            Places of the true classes.
        classes : ndarray of shape (k,)
        predicted : ndarray of shape (m,), optional
            Places of the predicted classes, where it is not the most likely one.
        seen : bool
        """
        k, codes = len(classes), np.asarray(codes)
        counts = np.bincount(codes, minlength=k)
        likely = np.argmax(probabilities, axis=1)
        fair = np.argmax(probabilities / np.maximum(counts, _HALF), axis=1)
        at = np.array(
            [
                [_threshold_counts(probabilities, codes, place, each) for each in THRESHOLDS]
                for place in range(k)
            ]
        )
        return cls(
            classes,
            counts,
            _counted(likely if predicted is None else np.asarray(predicted), codes, k),
            _counted(likely, codes, k),
            _counted(fair, codes, k),
            np.array(THRESHOLDS),
            np.moveaxis(at, 2, 0),
            seen,
        )

    @property
    def rows(self) -> int:
        """How many public rows were counted."""
        return int(self.counts.sum())

    @property
    def hardly_predicted(self) -> list[Any]:
        """Classes that are predicted less than a third as often as they are there."""
        few = (self.counts > 0) & (self.usual[0] < _RARELY * self.counts)
        return list(self.classes[few])

    @property
    def shown(self) -> list[Any]:
        """Classes worth a table: hardly predicted ones, or else rare ones, the rarest first."""
        order = [place for place in np.argsort(self.counts, kind="stable") if self.counts[place]]
        hardly = self.hardly_predicted
        told = [self.classes[place] for place in order if self.classes[place] in hardly]
        rare = [self.classes[place] for place in order if self.counts[place] < _SMALL * self.rows]
        return (told or rare)[:_MOST_SHOWN]

    @property
    def where(self) -> str:
        """On which rows it was counted, in words."""
        if self.seen:
            return "public rows that the model was fitted to, on which it looks better than it is"
        return "public rows that the experts of the model had not seen"

    def sentences(self) -> tuple[str, ...]:
        """What is told of classes that are hardly ever predicted."""
        names = [name for name in self.shown if name in self.hardly_predicted]
        return tuple(self._sentence(self._place(name)) for name in names)

    def _sentence(self, place: int) -> str:
        count, (predicted, found) = int(self.counts[place]), self.usual[:, place]
        ever = "never" if predicted == 0 else "hardly ever"
        share = count / self.rows
        part = f"{share:.1%}" if share >= 0.0005 or not count else "less than 0.1%"
        rows, said, seen = ("is" if each == 1 else "are" for each in (count, predicted, found))
        return (
            f"Class {str(self.classes[place])!r} is {ever} predicted: {count:,} of {self.rows:,} "
            f"public rows {rows} of it ({part}), {predicted:,} {said} predicted "
            f"to be, and {found:,} of the {count:,} {seen} found."
        )

    def lines(self, name: Any) -> list[ThresholdLine]:
        """What each way to choose classes finds of one class, and costs.

        Parameters
        ----------
        name : class label
        """
        place = self._place(name)
        rules = [("as it is", self.usual)]
        if (self.usual != self.likely).any():
            rules.append(("the most likely class", self.likely))
        if (self.usual != self.balanced).any():
            rules.append(("--class-weight balanced", self.balanced))
        told = [
            ThresholdLine(
                rule,
                *_true_and_false_positives(counted[:, place]),
                self.rows - int(counted[1].sum()),
            )
            for rule, counted in rules
        ]
        for each, counted in zip(self.thresholds, self.by_threshold[:, place].T, strict=True):
            rule = f"--threshold {quote(f'{name}={each:g}')}"
            told.append(
                ThresholdLine(rule, *_true_and_false_positives(counted[:2]), int(counted[2]))
            )
        return told

    def count(self, name: Any) -> int:
        """Public rows of a class."""
        return int(self.counts[self._place(name)])

    def table(self) -> list[tuple[str, int, int, int]]:
        """Name of each class, its public rows, those predicted to be of it, those found."""
        numbers = zip(self.classes, self.counts, *self.usual, strict=True)
        return [
            (str(name), int(count), int(predicted), int(found))
            for name, count, predicted, found in numbers
        ]

    def to_frame(self) -> pd.DataFrame:
        """The lines of all classes as a table."""
        import pandas as pd

        told = [
            {"class": str(name), "rows": int(count), **line._asdict(), "precision": line.precision}
            for name, count in zip(self.classes, self.counts, strict=True)
            for line in self.lines(name)
        ]
        return pd.DataFrame(told)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "rows": self.rows,
            "on": self.where,
            "told": list(self.sentences()),
            "hardly_predicted": [str(name) for name in self.hardly_predicted],
            "classes": [
                dict(zip(("class", "rows", "predicted", "found"), each, strict=True))
                for each in self.table()
            ],
            "costs": {
                str(name): [line._asdict() for line in self.lines(name)] for name in self.shown
            },
        }

    def _place(self, name: Any) -> int:
        return int(self.classes.tolist().index(name.item() if hasattr(name, "item") else name))


def _true_and_false_positives(counted: Any) -> tuple[int, int]:
    """How many are found, and how many false alarms there are."""
    predicted, found = map(int, counted)
    return found, predicted - found


def _counted(predicted: Any, codes: Any, k: int) -> IntArray:
    right = codes[predicted == codes]
    return np.array([np.bincount(each, minlength=k) for each in (predicted, right)])


def _threshold_counts(probabilities: Any, codes: Any, place: int, least: float) -> list[int]:
    """Rows that are predicted to be of a class from a probability on, those found, wrong ones."""
    chosen = chosen_class(probabilities, {place: least})
    own = chosen == place
    return [int(own.sum()), int((codes[own] == place).sum()), int((chosen != codes).sum())]


def chosen_class(probabilities: Any, thresholds: Mapping[int, float]) -> IntArray:
    """Places of classes by thresholds on the probabilities of some of them.

    A class with a threshold is predicted from that probability on, and not below; of several that
    reach theirs it is the one whose probability is the most above its threshold, as a ratio. Where
    none does, the most likely of the other classes is predicted; of all, if each has a threshold.

    Parameters
    ----------
    probabilities : ndarray of shape (n, k)
    thresholds : mapping of int to float
        By place of the class.

    Examples
    --------
    >>> chosen_class(np.array([[0.85, 0.15], [0.95, 0.05], [0.2, 0.8]]), {1: 0.1})
    array([1, 0, 1])
    """
    probabilities = np.asarray(probabilities)
    places = list(thresholds)
    others = [place for place in range(probabilities.shape[1]) if place not in thresholds]
    others = others or list(range(probabilities.shape[1]))
    chosen = np.asarray(others)[np.argmax(probabilities[:, others], axis=1)]
    ratios = probabilities[:, places] / np.array([thresholds[place] for place in places])
    reached = ratios.max(axis=1) >= 1
    return np.where(reached, np.asarray(places)[ratios.argmax(axis=1)], chosen)


def class_errors(model: Any, X: Any, y: Any) -> ClassErrors | None:
    """Count which classes a released model finds on public rows. Costs nothing.

    Parameters
    ----------
    model : classifier
        Fitted. One that has counted by itself, on rows that its experts had not seen, is believed.
    X : DataFrame or array-like of shape (m, d)
        Public rows.
    y : array-like of shape (m,)
        Their labels.

    Returns
    -------
    ClassErrors or None
        None for a model that has no probabilities of classes.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 36
    >>> for line in class_errors(LogisticRegression().fit(X, y), X, y).lines(True)[:1]:
    ...     print(line.rule, line.found, line.alarms)
    as it is 3 0
    """
    own: ClassErrors | None = getattr(getattr(model, "estimator_", model), "class_errors_", None)
    if own is not None:
        return own
    if not (hasattr(model, "predict_proba") and hasattr(model, "classes_")):
        return None
    labels = np.asarray(y)
    known = np.isin(labels, model.classes_)
    rows = X if known.all() else X[known]
    codes = np.searchsorted(model.classes_, labels[known])
    predicted = np.searchsorted(model.classes_, model.predict(rows))
    return ClassErrors.of(
        model.predict_proba(rows), codes, model.classes_, predicted=predicted, seen=True
    )


def keep_class_errors(model: Any, X: Any, y: Any) -> ClassErrors | None:
    """Count as :func:`class_errors` does, and keep it in the model, for its report.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyClassifier
    >>> model = PublicOnlyClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> keep_class_errors(model, [[0.0], [1.0]], ["no", "yes"]) is model.class_errors_
    True
    """
    found = class_errors(model, X, y)
    if found is not None:
        getattr(model, "estimator_", model).class_errors_ = found
    return found


def rare_class_warnings(errors: ClassErrors) -> Iterator[str]:
    """Warnings of a fit in Python: what is hardly predicted, and what to do.

    Examples
    --------
    >>> fair = ClassErrors.of(np.eye(2), np.arange(2), np.arange(2))
    >>> list(rare_class_warnings(fair))
    []
    """
    for sentence in errors.sentences():
        yield (
            f"{sentence} Where private people have fewer of it, that may be right. Where missing "
            "one is worse than a false alarm, say so: "
            "dpadapt.predict_classes(model, X, threshold=...), which costs nothing, or "
            "class_weight='balanced'. model.class_errors_.to_frame() has what either costs, on "
            f"{errors.where}."
        )


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
