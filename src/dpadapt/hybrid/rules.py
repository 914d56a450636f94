"""Rules: public predictors that questions are about.

Two classes are written -1 and 1 inside, three or more 1, 2, 3, ...; 0 stands for a label of none of
them. A rule is total: whatever a row holds, it gives an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.linear import class_indices
from dpadapt.learning.softmax import log_sum_exp
from dpadapt.privacy import shrink_factors
from dpadapt.privacy.rows import cells
from dpadapt.privacy.rows.foreign import apply

FEATURES = ("linear", "squares", "quadratic")
_LARGEST = 1e100  # of a cell or a coefficient: sums of products stay finite


class Rule(Protocol):
    """What a question needs of a predictor.

    Attributes
    ----------
    classes : tuple
        The class labels.
    """

    @property
    def classes(self) -> tuple[Any, ...]: ...
    def predict_sign(self, X: FloatArray) -> FloatArray:
        """-1 or 1 for each row; 1, 2, 3, ... for more than two classes."""

    def losses(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Loss of each row, 0 or more, infinite for a label of no class (0)."""

    def check(self, n_columns: int) -> None:
        """Raise if rows of that many columns do not fit."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""


def feature_count(features: str, n_columns: int) -> int:
    """Return the number of features that rows of ``n_columns`` have, the constant not counted.

    Examples
    --------
    >>> [feature_count(name, 3) for name in FEATURES]
    [3, 3, 9]
    """
    _known(features)
    return n_columns * (n_columns + 3) // 2 if features == "quadratic" else n_columns


def raw_features(features: str, X: FloatArray) -> FloatArray:
    """Features psi(x) of rows: x, x^2, or x with its squares and products.

    Examples
    --------
    >>> raw_features("quadratic", np.array([[2.0, 3.0]]))
    array([[2., 3., 4., 6., 9.]])
    """
    _known(features)
    rows = np.asarray(X, dtype=np.float64)
    if features == "linear":
        return rows
    with np.errstate(all="ignore"):
        if features == "squares":
            return np.square(rows)
        i, j = np.triu_indices(rows.shape[1])
        return np.hstack([rows, rows[:, i] * rows[:, j]])


@dataclass(frozen=True, eq=False)
class LinearRule:
    r"""Sign of <v, z(x)>, z the standardised features of a row with a constant, of norm at most 1.

    With psi the features, u = ((psi(x) - centre) / scale, 1) and C = ``clip``,
    :math:`z = u \min(1, C / \|u\|) / C`. A cell of u that is not finite counts as the centre's.
    For more than two classes v has a column for each, and the largest score wins: one joint rule.

    Parameters
    ----------
    features : {"linear", "squares", "quadratic"}
    centre, scale : array of shape (k,)
        Public location and scale of the features.
    coefficients : array of shape (k + 1,), or (k + 1, c) for c > 2 classes
        v; the last belongs to the constant.
    classes : sequence of labels
        Of two, the one that -1 stands for, and the one that 1 stands for.
    clip : float, optional
        C; by default the square root of k + 1, the typical norm of u.

    Examples
    --------
    >>> rule = LinearRule("linear", np.zeros(2), np.ones(2), np.array([1.0, 0.0, 0.0]), (0, 1))
    >>> rule.predict(np.array([[3.0, 1.0], [-2.0, np.nan]]))
    array([1, 0])
    >>> bool(LinearRule.from_dict(rule.to_dict()).clip == rule.clip)
    True
    >>> joint = LinearRule("linear", [0.0], [1.0], [[-1.0, 0.0, 1.0], [0.0, 0.5, 0.0]], "abc")
    >>> joint.predict(np.array([[-3.0], [0.0], [3.0]]))
    array(['a', 'b', 'c'], dtype='<U1')
    """

    features: str
    centre: FloatArray
    scale: FloatArray
    coefficients: FloatArray
    classes: tuple[Any, ...]
    clip: float = 0.0

    def __post_init__(self) -> None:
        _known(self.features)
        object.__setattr__(self, "classes", plain_labels(self.classes))
        many = len(self.classes) > 2
        for name in ("centre", "scale", "coefficients"):
            array = np.array(getattr(self, name), dtype=np.float64)
            joint = many and name == "coefficients"
            if array.ndim != 1 + joint or not (np.abs(array) <= _LARGEST).all():
                shape = "a row of numbers for each feature" if joint else "one row of numbers"
                raise ValueError(f"{name} must be {shape}, of size 1e100 at most.")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not len(self.centre) == len(self.scale) == len(self.coefficients) - 1:
            raise ValueError("centre and scale need one number a feature, coefficients one more.")
        if many and self.coefficients.shape[1] != len(self.classes):
            raise ValueError("coefficients need a column for each class.")
        if not (self.scale > 0).all():
            raise ValueError("scale must be positive.")
        clip = float(self.clip) or math.sqrt(len(self.coefficients))
        if not 0 < clip < math.inf:
            raise ValueError(f"clip must be positive and finite; got {self.clip!r}.")
        object.__setattr__(self, "clip", clip)

    @property
    def width(self) -> int:
        """Number of coefficients, k + 1, of each class."""
        return len(self.coefficients)

    def with_coefficients(self, coefficients: FloatArray) -> LinearRule:
        """Return the rule with another v."""
        return replace(self, coefficients=coefficients)

    def check(self, n_columns: int) -> None:
        """Raise if rows of that many columns do not fit."""
        if feature_count(self.features, n_columns) != len(self.centre):
            raise ValueError(
                f"the rule has {len(self.centre)} features, but rows of {n_columns} columns give "
                f"{feature_count(self.features, n_columns)}."
            )

    def embed(self, X: FloatArray) -> FloatArray:
        """Rows z(x), of norm at most 1."""
        out = np.ones((len(X), self.width))
        inner = out[:, :-1]
        with np.errstate(all="ignore"):
            np.subtract(raw_features(self.features, X), self.centre, out=inner)
            inner /= self.scale
            squares = np.einsum("ij,ij->i", out, out)
            if not (squares < _LARGEST).all():  # something is huge or not finite
                np.nan_to_num(inner, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
                np.clip(inner, -_LARGEST, _LARGEST, out=inner)
                squares = np.einsum("ij,ij->i", out, out)
        out *= (shrink_factors(np.sqrt(squares), self.clip) / self.clip)[:, None]
        return out

    def scores(self, X: FloatArray) -> FloatArray:
        """<v, z(x)>, one number a row or one for each class."""
        return np.asarray(self.embed(X) @ self.coefficients)

    def predict_sign(self, X: FloatArray) -> FloatArray:
        """1 where the score is positive, else -1; of many classes the place, from 1 on."""
        scores = self.scores(X)
        if scores.ndim == 2:
            return 1.0 + scores.argmax(axis=1)
        return np.where(scores > 0, 1.0, -1.0)

    def predict(self, X: FloatArray) -> Any:
        """Class labels."""
        return np.asarray(self.classes)[class_indices(self.scores(X))]

    def losses(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Logistic loss log(1 + exp(-y <v, z>)), or its joint form; infinite for no class."""
        scores = self.scores(X)
        with np.errstate(all="ignore"):
            if scores.ndim == 2:
                own = scores[np.arange(len(y)), np.asarray(y, dtype=np.intp) - 1]
                return np.where(y == 0, np.inf, log_sum_exp(scores) - own)
            return np.where(y == 0, np.inf, np.logaddexp(0.0, -y * scores))

    def slopes(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Gradients of the logistic loss in v, of norm at most 1; 0 for a label of no class."""
        rows = self.embed(X)
        with np.errstate(all="ignore"):
            pull = -y / (1 + np.exp(y * (rows @ self.coefficients)))
            rows *= pull[:, None]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; nothing is rounded."""
        return {
            "rule": "linear",
            "features": self.features,
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "coefficients": self.coefficients.tolist(),
            "classes": list(self.classes),
            "clip": self.clip,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LinearRule:
        """Rebuild from :meth:`to_dict`."""
        if data.get("rule") != "linear":
            raise ValueError(f"unknown kind of rule {data.get('rule')!r}.")
        arrays = {n: np.array(data[n], dtype=float) for n in ("centre", "scale", "coefficients")}
        return cls(
            features=data["features"],
            **arrays,
            classes=plain_labels(data["classes"]),
            clip=float(data["clip"]),
        )


@dataclass(frozen=True, eq=False)
class FunctionRule:
    """Any predictor as a rule: it stays in this process, so agents elsewhere cannot be asked of it.

    A cell that is not finite becomes 0 before the predictor sees it. A row on which the
    predictor fails is of no class, which counts as a mistake; what it says of the others stays the
    same to the last bit.

    Parameters
    ----------
    function : callable
        From rows to class labels, e.g. ``fitted.predict``; row by row.
    classes : sequence of labels
    loss : callable, optional
        From rows and labels (-1, 1, or 1, 2, ...) to losses, 0 or more; by default 1 for a mistake.

    Examples
    --------
    >>> rule = FunctionRule(lambda X: np.where(X[:, 0] > 0, "yes", "no"), ("no", "yes"))
    >>> rule.predict_sign(np.array([[3.0], [np.nan]]))
    array([ 1., -1.])
    """

    function: Callable[[FloatArray], Any]
    classes: tuple[Any, ...]
    loss: Callable[[FloatArray, FloatArray], FloatArray] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", plain_labels(self.classes))

    def check(self, n_columns: int) -> None:
        """Accept every width: what the function wants is not known."""

    def predict_sign(self, X: FloatArray) -> FloatArray:
        """-1 or 1 (or 1, 2, 3, ...) for each row; 0 where it fails or names another class."""
        numbers = class_numbers(len(self.classes))

        def signs(rows: FloatArray) -> FloatArray:
            said = np.asarray(self.function(rows))
            found = zip(numbers, self.classes, strict=True)
            return sum((number * (said == each) for number, each in found), np.zeros(len(said)))

        return _total(signs, _finite(X), 0.0)

    def losses(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Loss of each row; infinite where it fails, or for a label of no class."""
        if self.loss is None:
            return np.where(self.predict_sign(X) == y, np.where(y == 0, np.inf, 0.0), 1.0)
        loss, last = self.loss, X.shape[1]
        both = np.column_stack([_finite(X), y])
        found = _total(lambda rows: loss(rows[:, :last], rows[:, last]), both, np.inf)
        return np.where(y == 0, np.inf, found)

    def to_dict(self) -> dict[str, Any]:
        """Refuse: a function cannot be written down."""
        raise TypeError(
            "a FunctionRule cannot be sent to agents in other processes; use a LinearRule, or "
            "agents in memory."
        )


def _total(function: Callable[[FloatArray], Any], rows: FloatArray, missing: float) -> FloatArray:
    def finish(found: Any, count: int) -> tuple[FloatArray]:
        values = np.asarray(found, dtype=np.float64)
        if values.shape != (count,):
            raise ValueError("one number for each row.")
        return (values,)

    results, failed = apply(function, (rows,), len(rows), finish)
    return np.full(len(rows), missing) if results is None else np.where(failed, missing, results[0])


def _finite(X: FloatArray) -> FloatArray:
    return np.nan_to_num(np.asarray(X, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _known(features: str) -> None:
    if features not in FEATURES:
        listed = ", ".join(map(repr, FEATURES))
        raise ValueError(f"features must be one of {listed}; got {features!r}.")


def class_numbers(count: int) -> list[float]:
    """How classes are written inside: -1 and 1 if they are two, else 1, 2, 3, ...

    Examples
    --------
    >>> class_numbers(2), class_numbers(3)
    ([-1.0, 1.0], [1.0, 2.0, 3.0])
    """
    return [-1.0, 1.0] if count == 2 else [1.0 + place for place in range(count)]


def plain_labels(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Two or more different labels, as plain numbers or texts."""
    plain = tuple(each.item() if hasattr(each, "item") else each for each in classes)
    known = all(isinstance(each, (str, int, float)) and each == each for each in plain)
    if len(plain) < 2 or not known or len(set(plain)) < len(plain):
        raise ValueError("classes must be different labels, two or more, numbers or texts.")
    cells.places_of(plain)  # refuses two that private cells could not be told apart by
    return plain


def two_labels(classes: Sequence[Any]) -> tuple[Any, Any]:
    """Two different labels, as plain numbers or texts."""
    plain = plain_labels(classes)
    if len(plain) != 2:
        raise ValueError("classes must be two different labels, numbers or texts.")
    return plain[0], plain[1]


@dataclass(frozen=True)
class ParityRule:
    """Whether an odd number of the bits of a mask is set.

    A cell counts as a set bit if it is above 1/2; one that is no number does not.

    Parameters
    ----------
    mask : sequence of 0 and 1
        One for each column.
    classes : sequence of two labels
        For even, and for odd.

    Examples
    --------
    >>> rule = ParityRule((1, 0, 1), ("even", "odd"))
    >>> rule.predict(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])).tolist()
    ['odd', 'even']
    >>> ParityRule.from_dict(rule.to_dict()) == rule
    True
    """

    mask: tuple[int, ...]
    classes: tuple[Any, Any] = (0, 1)

    def __post_init__(self) -> None:
        mask = tuple(int(bit) for bit in self.mask)
        if not mask or not set(mask) <= {0, 1}:
            raise ValueError("mask must hold 0 and 1, one for each column.")
        object.__setattr__(self, "mask", mask)
        object.__setattr__(self, "classes", two_labels(self.classes))

    def check(self, n_columns: int) -> None:
        """Raise if rows of that many columns do not fit."""
        if n_columns != len(self.mask):
            raise ValueError(f"the rule is for {len(self.mask)} columns; got {n_columns}.")

    def predict_sign(self, X: FloatArray) -> FloatArray:
        """1 for odd, -1 for even."""
        chosen = np.asarray(X)[:, np.flatnonzero(self.mask)] > 0.5
        return np.where(np.count_nonzero(chosen, axis=1) % 2 == 1, 1.0, -1.0)

    def predict(self, X: FloatArray) -> Any:
        """Class labels."""
        return np.asarray(self.classes)[(self.predict_sign(X) > 0).astype(np.int64)]

    def losses(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """1 for a mistake, infinite for a label of no class; labels in -1, 0, 1."""
        return np.where(y == 0, np.inf, 1.0 * (self.predict_sign(X) != y))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"rule": "parity", "mask": list(self.mask), "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ParityRule:
        """Rebuild from :meth:`to_dict`."""
        if data.get("rule") != "parity":
            raise ValueError(f"unknown kind of rule {data.get('rule')!r}.")
        return cls(tuple(data["mask"]), two_labels(data["classes"]))
