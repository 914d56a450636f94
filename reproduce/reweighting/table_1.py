"""Table 1 of paper 001: regression, error relative to target-only training."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from reproduce.runs import Options

from . import methods_without_privacy as methods
from . import private_methods as private
from .published import RELATIVE_ERRORS
from .splits import REGRESSION
from .tables import (
    ADAPTED,
    LIMIT,
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

__all__ = [
    "TABLE_1",
    "draw_relative",
    "relative",
    "relative_findings",
    "run_table_1",
    "summarise_relative",
]

TABLE_1: Mapping[str, Method] = {
    "target only": methods.target_only,
    "source only": methods.source_only,
    "KMM": methods.mean_matching,
    "DM": methods.discrepancy_minimisation,
    "CnvxAdap": methods.adaptation,
    LIMIT: private.own_limit,
    PRINTED.format("PCnvxAdap", 1): partial(private.printed, epsilon=1.0),
    ADAPTED.format(1): partial(private.known_noise, epsilon=1.0),
}


def run_table_1(options: Options) -> pd.DataFrame:
    """Regression on four data sets."""
    return run_table(TABLE_1, REGRESSION, options, "table 1")


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Error over that of target-only training on the same split, as in Table 1.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("Wind", 0, "target only", 2.0), ("Wind", 0, "KMM", 3.0)]
    >>> table = pd.DataFrame(lines, columns=["dataset", "repeat", "method", "error"])
    >>> relative(table)["value"].tolist()
    [1.0, 1.5]
    """
    keys = ["dataset", "repeat"]
    unit = table[table["method"] == "target only"].set_index(keys)["error"]
    units = unit.loc[list(table[keys].itertuples(index=False, name=None))].to_numpy()
    return table.assign(value=table["error"] / units)


def summarise_relative(table: pd.DataFrame) -> pd.DataFrame:
    """Table 1, ours beside the published numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("Wind", 9, 0, m, 1.0, 1.0) for m in ("target only", "KMM")]
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> summarise_relative(pd.DataFrame(lines, columns=columns))["KMM, published"].tolist()
    ['1.009 ± 0.035']
    """
    return beside_published(relative(table), RELATIVE_ERRORS, 3)


def draw_relative(table: pd.DataFrame) -> Figure:
    """Table 1 as a picture.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = [("Wind", 9, 0, m, 1.0) for m in ("target only", "KMM")]
    >>> columns = ["dataset", "n", "repeat", "method", "error"]
    >>> len(draw_relative(pd.DataFrame(lines, columns=columns)).axes)
    1
    """
    found = relative(table)
    label = "mean squared error,\ntarget-only training = 1"
    return draw_dots(found, RELATIVE_ERRORS, label, unit=1.0)


def relative_findings(table: pd.DataFrame) -> list[str]:
    """What Table 1 shows, in sentences made from its numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> methods = ["target only", "source only", "DM", "CnvxAdap", "dpadapt, epsilon 1"]
    >>> lines = [("Wind", 9, 0, m, 1.0, 1.0) for m in methods]
    >>> columns = ["dataset", "n", "repeat", "method", "error", "true_epsilon"]
    >>> relative_findings(pd.DataFrame(lines, columns=columns))[0][:13]
    'Wind (n = 9):'
    """
    return [*findings_by_dataset(relative(table), 3), *true_epsilons(table)]
