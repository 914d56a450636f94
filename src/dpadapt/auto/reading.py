"""From a table as the user has it to rows of numbers, the same for both samples."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.features import table_features
from dpadapt.learning.checks import check_private, check_width
from dpadapt.privacy import Private, Schema


@dataclass(frozen=True, eq=False)
class Reader:
    """How rows become numbers: a data frame by the types of its public columns, others as they are.

    Numbers that are missing become the public median, texts and categories 0/1 columns of their
    public levels; levels in less than one public row of a hundred are pooled.

    Parameters
    ----------
    transformer : ColumnTransformer or None
    names : tuple
        Of the columns of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> public = pd.DataFrame({"age": [30.0, None, 50.0], "town": ["A", "B", "A"]})
    >>> Reader.of(public).rows(public)
    array([[30.,  1.,  0.],
           [40.,  0.,  1.],
           [50.,  1.,  0.]])
    """

    transformer: Any = None
    names: tuple[Any, ...] = ()

    @classmethod
    def of(cls, X: Any) -> Reader:
        """Reader of a public table."""
        if not hasattr(X, "iloc"):
            return cls()
        return cls(table_features(X, degree=1).fit(X), tuple(X.columns))

    def rows(self, X: Any) -> FloatArray:
        """Rows of numbers."""
        if self.transformer is None:
            return np.asarray(X, dtype=np.float64)
        if not hasattr(X, "iloc"):
            import pandas as pd

            X = pd.DataFrame(np.asarray(X), columns=list(self.names))
        return np.ascontiguousarray(self.transformer.transform(X), dtype=np.float64)

    def private(self, X: Any, private: Any) -> Private:
        """Private rows in the same form, read as the types of the public table say."""
        check_private(private)
        if private.columns is None:
            check_width(private, len(self.names))
        own = deepcopy(self.transformer)
        width = own.transform(X.iloc[:1]).shape[1]
        return private.read(Schema.of(X)).map(own.transform, width)
