"""An un-noised value that nobody can look at."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

import numpy as np

from ..rows.errors import PrivacyError

_MOST = 1e300  # of a number that noise is added to

Part = Literal["all", "train", "holdout"]


class Opaque:
    """Something hidden that is no array: only a mechanism that knows it can use it.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> from dpadapt.privacy.mechanisms import EachRow
    >>> with Private([[0.5]] * 3).open(epsilon=1.0, delta=1e-6) as session:
    ...     session.hide(EachRow(radius=1.0))
    Hidden('each row', shape=())
    """


class Hidden:
    """An un-noised value. Only a mechanism of its own session can open it.

    It cannot be printed, compared, indexed, converted, changed, copied or pickled.
    """

    __slots__ = ("_owner", "_value", "label", "norm", "part", "sensitivity", "shape", "statistic")
    _owner: Any
    _value: Any
    label: str
    part: Part
    sensitivity: float
    shape: tuple[int, ...]
    statistic: Any
    norm: str | None

    def __init__(
        self,
        value: Any,
        label: str,
        sensitivity: float,
        part: Part,
        owner: Any,
        statistic: Any = None,
        norm: str | None = None,
    ) -> None:
        shape = getattr(value, "shape", ())
        facts = (owner, value, label, norm, part, sensitivity, shape, statistic)
        for name, fact in zip(self.__slots__, facts, strict=True):
            object.__setattr__(self, name, fact)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("a hidden statistic cannot be changed.")

    def __repr__(self) -> str:
        return f"Hidden({self.label!r}, shape={self.shape})"

    def __reduce__(self) -> Any:
        raise TypeError("a hidden statistic cannot be copied or pickled.")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a hidden statistic cannot be read; release it through its session.")


def claimed(sensitivity: float) -> float:
    """Refuse a sensitivity that is none: nothing is larger than what is no number.

    Examples
    --------
    >>> claimed(0.5)
    0.5
    """
    narrow = hasattr(sensitivity, "dtype") and not isinstance(sensitivity, float)
    if narrow or not sensitivity >= 0:  # what wraps around, or rounds, before it gets here
        raise PrivacyError(f"a sensitivity must be a number, 0 or more; got {sensitivity!r}.")
    return float(sensitivity)


def finite(value: Any) -> Any:
    """NaN becomes 0; what is too large is clipped, which brings no two values further apart.

    What comes out cannot be changed.

    Examples
    --------
    >>> finite([1.0, float("nan")])
    array([1., 0.])
    """
    if isinstance(value, Opaque):
        return value
    clipped = np.asarray(np.clip(np.asarray(value, dtype=np.float64), -_MOST, _MOST))
    clipped[np.isnan(clipped)] = 0.0
    clipped.flags.writeable = False
    return clipped
