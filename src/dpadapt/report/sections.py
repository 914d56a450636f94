"""What a method says about itself in a report: it tells its own story."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpadapt.learning.story import Story, labels_told, plain_story
from dpadapt.privacy import Guarantee

_HARDLY = 0.01  # of the way


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
    told = plain_story(estimator, guarantee) if own is None else own()
    if not (guarantee.events and told.reads_labels and told.assumption):
        return told
    return replace(told, assumption=f"{told.assumption} {labels_told(guarantee)}")


def outcome(estimator: Any, guarantee: Guarantee) -> str:
    """What became of the public model, in a sentence, where a method does not tell it itself.

    Examples
    --------
    >>> outcome(object(), Guarantee())
    'Kept the public model: no private row was used.'
    """
    if not guarantee.events:
        return "Kept the public model: no private row was used."
    weights, share = getattr(estimator, "weights_", None), getattr(estimator, "share_", None)
    if weights is not None and hasattr(estimator, "adapted_"):
        if not estimator.adapted_ or np.ptp(weights) == 0:
            return "Kept the public model: the public rows keep their weights."
        return (
            "Moved away from the public model: public rows are weighted to look like private ones."
        )
    if isinstance(share, float) and share < _HARDLY:
        return "Kept the public model, or nearly so: what was released is hardly more than noise."
    if isinstance(share, float):
        return f"Moved {share:.0%} of the way from the public model to what private rows ask for."
    return ""
