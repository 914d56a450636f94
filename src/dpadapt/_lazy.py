"""Names that are imported when they are asked for, so that a start stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that shows names of modules not yet imported.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    where : mapping of str to str
        Names, with blanks between them, by the dotted name of the module that has them.

    Examples
    --------
    >>> find = lazily("dpadapt", {"fractions": "Fraction"})
    >>> find("Fraction")(1, 2)
    Fraction(1, 2)
    >>> find("Fractions")
    Traceback (most recent call last):
        ...
    AttributeError: module 'dpadapt' has no attribute 'Fractions'
    """
    home = {name: module for module, names in where.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name], package), name)

    return find


def names_of_stub(file: str) -> dict[str, str]:
    """Names that a package shows, as its stub tells them to type checkers, for :func:`lazily`.

    So they are told once. A line of the stub is ``from .module import Name as Name``.

    Parameters
    ----------
    file : str
        Its ``__file__``, beside which the stub is.

    Examples
    --------
    >>> import dpadapt
    >>> names_of_stub(dpadapt.__file__)[".pipeline"]
    'AdaptationPipeline'
    """
    found: dict[str, str] = {}
    with open(f"{file}i", encoding="utf-8") as stub:
        lines = [line.split() for line in stub if line.startswith("from ")]
    for _, module, _, name, *_ in lines:
        found[module] = f"{found[module]} {name}" if module in found else name
    return found


def named(dotted: str) -> Any:
    """What a dotted name stands for, imported now.

    Examples
    --------
    >>> named("fractions.Fraction")(1, 2)
    Fraction(1, 2)
    """
    module, _, name = dotted.rpartition(".")
    return getattr(import_module(module), name)


def is_of(thing: Any, dotted: str) -> bool:
    """Whether a thing is an object of a class by its dotted name; nothing is imported.

    An object of a class that was never imported cannot be there.

    Examples
    --------
    >>> from fractions import Fraction
    >>> is_of(Fraction(1, 2), "fractions.Fraction"), is_of(0.5, "fractions.Fraction")
    (True, False)
    """
    module, _, name = dotted.rpartition(".")
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(thing, kind)
