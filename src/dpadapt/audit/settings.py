"""What a fit was asked to be, as a digest: two fits with the same one have the same guarantee."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

_NO_SETTINGS = ("ledger", "noise", "random_state", "verbose")  # where noise comes from, who pays


def settings_digest(estimator: Any, relation: str) -> str:
    """SHA-256 of an estimator's class, its parameters, epsilon and delta, and of the relation.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.
    relation : str
        Of its guarantee.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> one, two = (DiscrepancyRegressor(epsilon=1, delta=d) for d in (1e-6, 1e-7))
    >>> settings_digest(one, "replace-one") == settings_digest(one, "replace-one")
    True
    >>> settings_digest(one, "replace-one") == settings_digest(two, "replace-one")
    False
    """
    own = estimator.get_params(deep=False)
    asked = {name: own[name] for name in sorted(own) if name not in _NO_SETTINGS}
    facts = [type(estimator).__name__, relation, _plain(asked)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Value as texts, lists and dictionaries that are the same wherever it is computed."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, np.number)):
        return float(value).hex()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if hasattr(value, "get_params"):
        return [type(value).__name__, _plain(value.get_params(deep=False))]
    if isinstance(value, type) or callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return [type(value).__name__, _plain(vars(value)) if hasattr(value, "__dict__") else str(value)]
