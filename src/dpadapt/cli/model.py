"""The model that ``dpadapt fit`` fits and ``dpadapt audit`` attacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpadapt.features import table_features
from dpadapt.pipeline import AdaptationPipeline

if TYPE_CHECKING:
    import pandas as pd


def table_model(
    public: pd.DataFrame, estimator: Any, *, degree: int = 1, dates: Sequence[Any] | None = None
) -> Any:
    """Return an estimator for a table: with features by the types of its public columns before it.

    Those that choose by themselves read tables as they are.

    Parameters
    ----------
    public : DataFrame
        Features only.
    estimator : estimator
    degree : {1, 2}
        2 adds squares and products of the numeric columns.
    dates : sequence, optional
        Columns to read as dates; by default those that look like dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpadapt import DiscrepancyRegressor
    >>> regressor = DiscrepancyRegressor(epsilon=1.0, delta=1e-6)
    >>> table_model(pd.DataFrame({"age": [30, 40]}), regressor).estimator
    DiscrepancyRegressor(delta=1e-06, epsilon=1.0)
    """
    if is_auto(estimator) and dates is None:
        return estimator
    return AdaptationPipeline([("features", table_features(public, degree, dates))], estimator)


def is_auto(estimator: Any) -> bool:
    """Whether an estimator, or a class of them, reads tables by itself."""
    from dpadapt.auto import AutoClassifier, AutoRegressor

    kind = estimator if isinstance(estimator, type) else type(estimator)
    return issubclass(kind, (AutoClassifier, AutoRegressor))
