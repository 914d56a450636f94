"""Table 4 of paper 001: classification accuracy on three data sets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from reproduce.runs import Options

from . import methods_without_privacy as methods
from . import private_methods as private
from .published import ACCURACY
from .splits import CLASSES
from .tables import (
    ADAPTED,
    PRINTED,
    Method,
    beside_published,
    draw_dots,
    findings_by_dataset,
    run_table,
    true_epsilons,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["TABLE_4", "accuracies", "draw_accuracies", "run_table_4", "summarise_accuracies"]

TABLE_4: Mapping[str, Method] = {
    "source only": methods.source_only,
    "target only": methods.target_only,
    "KMM": methods.mean_matching,
    "NCnvxAdap": methods.adaptation,
    PRINTED.format("PNCnvxAdap", 1): partial(private.printed, epsilon=1.0),
    ADAPTED.format(1): partial(private.known_noise, epsilon=1.0),
}


def run_table_4(options: Options) -> pd.DataFrame:
    """Classes on three data sets."""
    return run_table(TABLE_4, CLASSES, options, "table 4")


def accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy in percent, as in Table 4.

    Examples
    --------
    >>> import pandas as pd
    >>> accuracies(pd.DataFrame({"error": [0.25]}))["value"].tolist()
    [75.0]
    """
    return table.assign(value=100 * (1 - table["error"]))


def summarise_accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """Table 4, ours beside the published numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> line = ("Accent", 9, 0, "KMM", 0.5, 1.0)
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> summarise_accuracies(pd.DataFrame([line], columns=columns))["KMM, published"].tolist()
    ['52.18 ± 2.27']
    """
    return beside_published(accuracies(table), ACCURACY, 2)


def draw_accuracies(table: pd.DataFrame) -> Figure:
    """Table 4 as a picture.

    Examples
    --------
    >>> import pandas as pd
    >>> line = ("Accent", 9, 0, "KMM", 0.5)
    >>> columns = ["dataset", "n", "repeat", "method", "error"]
    >>> len(draw_accuracies(pd.DataFrame([line], columns=columns)).axes)
    1
    """
    return draw_dots(accuracies(table), ACCURACY, "accuracy on target test rows (%)")


def accuracy_findings(table: pd.DataFrame) -> list[str]:
    """What Table 4 shows, in sentences made from its numbers."""
    return [*findings_by_dataset(accuracies(table), 1), *true_epsilons(table)]
