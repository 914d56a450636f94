"""What a method says about itself in a report: it tells its own story."""

from __future__ import annotations

from typing import Any

from dpadapt._story import Story, plain_story
from dpadapt.privacy import Guarantee

__all__ = ["story"]


def story(estimator: Any, guarantee: Guarantee) -> Story:
    """Tell how a fitted model came about; any linear model that reads private labels by default.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> told = story(model, model.guarantee_)
    >>> told.public_rows, told.reads_labels
    (2, False)
    """
    own = getattr(estimator, "_story", None)
    return plain_story(estimator, guarantee) if own is None else own()
