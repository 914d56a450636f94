"""Hourly earnings of 61,395 people in the United States, 2004; see ``PROVENANCE.md``."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

if TYPE_CHECKING:
    import pandas as pd

_FILE = "wages.parquet"


def load_wages() -> pd.DataFrame:
    """Load the wages: earnings (dollars an hour), gender, age, region and education.

    Returns
    -------
    DataFrame of 61,395 rows
        ``gender`` and ``region`` are categories; ``age`` and ``education`` are years.

    Examples
    --------
    >>> wages = load_wages()
    >>> wages.shape
    (61395, 5)
    >>> float(wages["earnings"].median())
    16.25
    """
    import pandas as pd

    with as_file(files(__package__) / _FILE) as path:
        return pd.read_parquet(path)


def wage_features() -> Any:
    """Transformer of the demo: age and education up to degree 2, gender and region one-hot.

    Examples
    --------
    >>> wages = load_wages()
    >>> wage_features().fit_transform(wages).shape
    (61395, 11)
    """
    return make_column_transformer(
        (PolynomialFeatures(degree=2, include_bias=False), ["age", "education"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["gender", "region"]),
        verbose_feature_names_out=False,
    )
