"""Estimators with options of their solvers, for the tests of both."""

from __future__ import annotations

import inspect


def made(kind, **params):
    """An estimator; what are no parameters of its own are options of its solver."""
    own = inspect.signature(kind).parameters
    model = kind(**{name: value for name, value in params.items() if name in own})
    options = {f"solver__{name}": value for name, value in params.items() if name not in own}
    return model.set_params(**options)
