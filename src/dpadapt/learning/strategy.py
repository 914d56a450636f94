"""Strategies: parameters that are objects, such as a solver with its own options.

The rule for all estimators. A parameter that chooses *how* (``solver``, ``kernel``, ``release``) is
the name of a default or an object that holds the options of that one way, so that an option of
another way cannot be written::

    DiscrepancyRegressor(epsilon=1, delta=1e-6)                       # solver="moments"
    DiscrepancyRegressor(epsilon=1, delta=1e-6, solver="frank-wolfe")  # FrankWolfe()
    DiscrepancyRegressor(epsilon=1, delta=1e-6, solver=FrankWolfe(steps=50))

A strategy is a frozen dataclass derived from :class:`Strategy`: options only, no data, checked by
its own table when it is made. Its estimator names it in its table, ``"solver":
[Named({"moments": Moments, "frank-wolfe": FrankWolfe})]``, and asks for the object with
``self._strategy("solver")``; what is done with the options is a method of the strategy. Its class
stands in the closed list of :mod:`dpadapt.modelfolder.types`, so that a saved model loads again.
``clone`` shares it, ``set_params(solver__steps=9)`` puts another one in its place.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, ClassVar, Self

from .constraints import Named, ParameterTable, check_parameters, constraints_of


class Strategy:
    """One way to do it, with its options: a value, shared by clones and never changed.

    Subclasses are frozen dataclasses with a table of constraints; relations between options are
    checked in :meth:`_check`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from dpadapt.learning.constraints import Count, OneOf
    >>> @dataclass(frozen=True)
    ... class Newton(Strategy):
    ...     steps: int = 10
    ...     start: str = "zero"
    ...     _constraints = {"steps": [Count()], "start": [OneOf("zero", "public")]}
    >>> Newton(steps=3).with_params(start="public")
    Newton(steps=3, start='public')
    >>> Newton(steps=0)
    Traceback (most recent call last):
    ...
    ValueError: steps must be a whole number, 1 or more; got 0.
    """

    _constraints: ClassVar[ParameterTable] = {}

    def __post_init__(self) -> None:
        check_parameters(self)
        self._check()

    def _check(self) -> None:
        """Check relations between options, each of which is fine by itself."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Options by name; those of strategies inside too, as ``name__option``."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        inner = {name: each for name, each in own.items() if deep and isinstance(each, Strategy)}
        for name, each in inner.items():
            own |= {f"{name}__{key}": value for key, value in each.get_params().items()}
        return own

    def with_params(self, **options: Any) -> Self:
        """Return the same way with other options.

        Parameters
        ----------
        **options
            By name; ``name__option`` for a strategy inside.
        """
        own, inner = split_params(options)
        unknown = (own.keys() | inner.keys()) - self.get_params(deep=False).keys()
        if unknown:
            known = ", ".join(self.get_params(deep=False)) or "none"
            raise ValueError(
                f"{type(self).__name__} has no option {min(unknown)}; its options: {known}."
            )
        changed: Self = replace(self, **own)  # type: ignore[type-var]
        deeper = {
            name: strategy_of(changed, name).with_params(**given) for name, given in inner.items()
        }
        return replace(changed, **deeper) if deeper else changed  # type: ignore[type-var]

    def __sklearn_clone__(self) -> Self:
        return self


def strategy_of(thing: Any, name: str) -> Any:
    """Return the object that a parameter stands for, by the table of its class.

    Parameters
    ----------
    thing : estimator or Strategy
    name : str
        Of a parameter.
    """
    value = getattr(thing, name)
    for each in constraints_of(type(thing)).get(name, ()):
        if isinstance(each, Named) and each.accepts(value):
            return each.make(value)
    return value


def split_params(params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Split parameters into plain ones and those of objects inside.

    Examples
    --------
    >>> split_params({"ridge": 1.0, "solver__steps": 9})
    ({'ridge': 1.0}, {'solver': {'steps': 9}})
    """
    own = {key: value for key, value in params.items() if "__" not in key}
    inner: dict[str, dict[str, Any]] = {}
    for key in params.keys() - own.keys():
        name, _, rest = key.partition("__")
        inner.setdefault(name, {})[rest] = params[key]
    return own, inner
