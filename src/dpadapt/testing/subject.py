"""What a check needs to know of an estimator: how it is built, on what it is fitted, its facts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from dpadapt import Private

from .search import NAMES, SECRET_TEXT, SENTINEL, reachable
from .tape import Draw, taped


@dataclass(frozen=True)
class Facts:
    """What is special about an estimator, for :func:`dpadapt.testing.check_private_estimator`.

    Parameters
    ----------
    labels : bool, default=False
        Whether private labels are read, and needed.
    classes : int or None
        Number of classes of the labels: 2 or 3, and 0 for numbers. By default 2 for a classifier
        and 0 for all others.
    relation : {"replace-one", "add-remove"}
        Which tables are neighbours.
    rows : int, default=400
        Number of private rows that a usual fit gets.
    least_spent : float, default=0.9
        Part of epsilon that a fit spends at least.
    releases_all : bool, default=True
        Whether a fit makes every release that it charged for.
    few_answers : bool, default=False
        Whether chance chooses among a few answers only: two fits may then have the same one.
    progress_end : int or None
        Steps that a progress bar counts; by default it counts private rows.
    left_out : mapping of str to str
        Checks that are not made, by name, each with the reason.

    Examples
    --------
    >>> Facts(labels=True, left_out={"check_estimator": "needs three classes or more"}).labels
    True
    >>> Facts(left_out={"check_estimator": ""})
    Traceback (most recent call last):
    ...
    ValueError: left_out: give a reason why check_estimator is not made.
    """

    labels: bool = False
    classes: int | None = None
    relation: str = "replace-one"
    rows: int = 400
    least_spent: float = 0.9
    releases_all: bool = True
    few_answers: bool = False
    progress_end: int | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.relation not in ("replace-one", "add-remove"):
            raise ValueError(
                f"relation must be 'replace-one' or 'add-remove', got {self.relation!r}."
            )
        if self.classes not in (None, 0, 2, 3):
            raise ValueError(f"classes must be 0, 2 or 3, got {self.classes!r}.")
        for name, reason in self.left_out.items():
            if not reason.strip():
                raise ValueError(f"left_out: give a reason why {name} is not made.")


USUAL = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 0, "ledger": None}


@dataclass(frozen=True)
class Fitted:
    """A fitted model, the tape of its fit, and its answers."""

    model: Any
    tape: list[Draw]
    answers: np.ndarray


class Subject:
    """An estimator that is checked: its facts, and the made-up samples that it is fitted to.

    Parameters
    ----------
    estimator : estimator
        Not fitted. The battery sets its privacy parameters; all others stay as they are.
    facts : Facts, optional
    public : tuple (X, y), optional
        Public rows and labels; some numbers in three columns by default.
    private : array or tuple (X, y), optional
        Made-up rows that play the private ones, from which samples are drawn. Never give real ones:
        a check that fails may quote them.
    name : str, optional
        How the estimator is called in messages; by default by its class.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> subject = Subject(DiscrepancyRegressor(epsilon=3.0, delta=1e-5))
    >>> subject.make(epsilon=0.5).epsilon
    0.5
    """

    def __init__(
        self,
        estimator: Any,
        facts: Facts | None = None,
        *,
        public: Any = None,
        private: Any = None,
        name: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.facts = facts or Facts()
        self.name = name or type(estimator).__name__
        self._public, self._private = public, private
        if private is not None and not isinstance(private, tuple):
            self._private = (private, None)
        self._tapes: dict[Any, list[Draw]] = {}

    # the estimator

    @cached_property
    def prefix(self) -> str:
        """How a nested parameter of the private estimator is written."""
        params = self.estimator.get_params()
        found = [name for name in params if name.split("__")[-1] == "epsilon"]
        if not found:
            raise TypeError(f"{self.name} has no parameter epsilon: is it a private estimator?")
        return min(found, key=len).removesuffix("epsilon")

    def make(self, **params: Any) -> Any:
        """Build the estimator, not fitted, with a usual budget and seeded noise."""
        given = {f"{self.prefix}{name}": value for name, value in (USUAL | params).items()}
        return clone(self.estimator).set_params(**given)

    def core(self, model: Any) -> Any:
        """Return the part of the model that has the privacy parameters."""
        return model.get_params()[self.prefix.removesuffix("__")] if self.prefix else model

    # the samples

    @cached_property
    def classes(self) -> int:
        """Number of classes, 0 for numbers."""
        if self.facts.classes is not None:
            return self.facts.classes
        return 2 if is_classifier(self.estimator) else 0

    @property
    def columns(self) -> int:
        return int(self.public()[0].shape[1])

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [*NAMES, *(f"column {i}" for i in range(3, self.columns))][: self.columns]

    def public(self, m: int = 90) -> tuple[np.ndarray, np.ndarray]:
        """Public rows and labels."""
        if self._public is not None:
            X, y = self._public
            return np.array(X, dtype=float), np.array(y)
        rng = np.random.default_rng(11)
        X = rng.normal(size=(m, 3))
        scores = X @ [1.0, -2.0, 0.5]
        if self.classes == 3:
            return X, np.digitize(scores, [-1.0, 1.0]).astype(float)
        y = scores + X[:, 0] ** 2 + 0.1 * rng.normal(size=m)
        return X, (y > np.median(y)).astype(float) if self.classes else y

    def public_frame(self) -> pd.DataFrame:
        """Public rows, whose columns have names."""
        return pd.DataFrame(self.public()[0], columns=self.names)

    def rows(self, n: int | None = None, seed: int = 0) -> np.ndarray:
        """Private rows."""
        n = self.facts.rows if n is None else n
        rng = np.random.default_rng([5, seed])
        if self._private is not None:
            given = np.array(self._private[0], dtype=float)
            return given[rng.integers(len(given), size=n)]
        if self._public is not None:
            X = self.public()[0]
            return X[rng.integers(len(X), size=n)] + 0.3 * X.std(axis=0) * rng.normal(
                size=(n, self.columns)
            )
        return rng.normal(0.3, 0.8, size=(n, 3))

    def labels(self, rows: np.ndarray, seed: int = 0) -> np.ndarray | None:
        """Private labels, if the method reads them."""
        if not self.facts.labels:
            return None
        rng = np.random.default_rng([6, seed])
        if self._private is not None and self._private[1] is not None:
            return rng.choice(np.array(self._private[1]), size=len(rows))
        if self._public is not None:
            return rng.choice(self.public()[1], size=len(rows))
        finite = np.clip(np.nan_to_num(np.asarray(rows, dtype=float)), -1e300, 1e300)
        scores = finite @ [1.0, -1.0, 0.5]
        if self.classes == 3:
            return np.digitize(scores, [-1.0, 1.0]).astype(float)
        numbers = scores + 0.1 * rng.normal(size=len(rows))
        return (numbers > 0).astype(float) if self.classes else numbers

    def private(self, rows: Any = None, labels: Any = None) -> Private:
        rows = self.rows() if rows is None else rows
        return Private(rows, self.labels(rows) if labels is None else labels)

    def marked(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows with the sentinel in some cells, and labels likewise."""
        rows = self.rows()
        rows[3, max(self.columns - 2, 0)] = rows[7, 0] = SENTINEL
        labels = self.labels(rows)
        if labels is not None and labels.dtype.kind == "f":
            labels[5] = SENTINEL
        return rows, labels

    def marked_frame(self) -> pd.DataFrame:
        """The same as a data frame in which some cells are text."""
        last = self.names[-1]
        frame = pd.DataFrame(self.marked()[0], columns=self.names).astype({last: object})
        frame.iloc[[2, 9], -1] = SECRET_TEXT
        return frame

    # fits

    def fit(self, model: Any, private: Any = None, X: Any = None, y: Any = None) -> Any:
        """Fit without a word on what is known: user warnings may come, runtime warnings not."""
        public, labels = self.public()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            return model.fit(
                public if X is None else X, labels if y is None else y, private=private
            )

    @cached_property
    def usual(self) -> Fitted:
        """A usual fit: made once, looked at by many checks, changed by none."""
        with taped() as tape:
            model = self.fit(self.make(), self.private())
        return Fitted(model, tape, self.answers(model))

    def tape_of(self, key: Any, private: Private) -> list[Draw]:
        """Tape of a seeded fit on a sample that a key stands for: made once."""
        if key not in self._tapes:
            with taped() as tape:
                self.fit(self.make(), private)
            self._tapes[key] = tape
        return self._tapes[key]

    def answers(self, model: Any) -> np.ndarray:
        """Everything numeric that a fit leaves behind, the guarantee aside."""
        kept = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "guarantee_"}
        floats = [v for _, v in reachable(kept) if isinstance(v, (float, np.floating, np.ndarray))]
        arrays = [
            np.asarray(v, dtype=float).ravel() for v in floats if np.asarray(v).dtype.kind in "f"
        ]
        return np.concatenate([*arrays, self.predictions(model)])

    def predictions(self, model: Any, X: Any = None) -> np.ndarray:
        """What a fitted model answers, as numbers."""
        X = self.public()[0] if X is None else X
        if hasattr(model, "predict_proba"):
            return np.ravel(model.predict_proba(X)).astype(float)
        return self.coded(model, model.predict(X))

    def coded(self, model: Any, answers: Any) -> np.ndarray:
        """Answers as numbers: classes by their places, whatever they are called."""
        if not hasattr(model, "classes_"):
            return np.ravel(answers).astype(float)
        return np.searchsorted(model.classes_, np.ravel(answers)).astype(float)
