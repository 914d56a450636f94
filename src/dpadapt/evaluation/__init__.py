"""Measure a fitted model on private rows it was not trained on, with a guarantee for them.

The names stand in ``__init__.pyi``; each is imported when it is asked for.
"""

from .._lazy import lazily, names_of_stub

_WHERE = names_of_stub(__file__)

__all__ = sorted(" ".join(_WHERE.values()).split())

__getattr__ = lazily(__name__, _WHERE)
