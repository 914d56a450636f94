r"""How large private residuals are, where public ones are not informative.

Clips are planned from the residuals that public rows leave of the public model. These say nothing
about private ones if public labels are (almost) a function of the columns, if they have nothing to
do with the columns, or if a few giants make up all of their square. Then a small part of the budget
is spent on a noisy histogram of the logarithms of the private residuals. What was planned in units
of public residuals is run in units of private ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy import Grant, Mechanism, RowMap, Session
from dpadapt.privacy.accounting.calibration import gaussian_mu
from dpadapt.privacy.core.hidden import Part
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import Histogram, histogram

_SMALL, _LARGE = 0.35, 0.995  # root mean square residual, in spreads of the labels
_HEAVY = 16.0  # the same, in median residuals
_LOG2_EDGES = np.arange(-14.0, 17.0)  # edges of the cells, in units of a public residual
_QUANTILE = 0.75  # of residuals: their size
_PRECISE, _ROUGH = 70.0, 30.0  # n mu of the query: what it should have, and must have
_LEAST, _MOST = 0.01, 0.25  # share of the squared budget


def are_informative(
    residuals: FloatArray, labels: FloatArray, columns: int = 0, small: float = _SMALL
) -> bool:
    """Whether public residuals say how large private ones are.

    Parameters
    ----------
    residuals, labels : ndarray of shape (m,)
    columns : int, default=0
        That were fitted: they make residuals smaller than errors are.
    small : float, default=0.35
        Smaller ones, in spreads of the labels, are not informative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, e = rng.normal(size=(2, 500))
    >>> [are_informative(size * e, x + size * e, 1) for size in (0.0, 1e-9, 1.0, 100.0)]
    [False, False, True, False]
    """
    m = len(residuals)
    free = max(m - 1 - columns, 0) / max(m - 1, 1)
    spread = float(labels.std()) * math.sqrt(free)
    size = float(np.sqrt(np.mean(residuals**2)))
    if not small * spread < size < _LARGE * spread:
        return False
    return size < _HEAVY * float(np.median(np.abs(residuals)))


def ordinary(residuals: FloatArray, least: float) -> FloatArray:
    """Residuals to plan with where they are uninformative: no giants; normal ones if all are tiny.

    Examples
    --------
    >>> ordinary(np.array([1.0, -1.0, 1.0, 1e9]), least=0.1)
    array([ 1., -1.,  1., 16.])
    >>> bool(np.std(ordinary(np.zeros(999), least=0.1)) > 0.09)
    True
    """
    usual = float(np.median(np.abs(residuals)))
    if usual < least:
        return least * np.random.default_rng(0).standard_normal(len(residuals))
    return np.clip(residuals, -_HEAVY * usual, _HEAVY * usual)


def size_share(precision: float) -> float:
    """Share of the squared budget for the size query; 0 where it would release little but noise.

    Parameters
    ----------
    precision : float
        N mu.

    Examples
    --------
    >>> [round(size_share(precision), 3) for precision in (50.0, 100.0, 200.0, 5000.0)]
    [0.0, 0.25, 0.122, 0.01]
    """
    share = min(max((_PRECISE / max(precision, 1.0)) ** 2, _LEAST), _MOST)
    return share if precision * math.sqrt(share) >= _ROUGH else 0.0


@dataclass(frozen=True, eq=False)
class ResidualSizeQuery:
    """Query of the size of private residuals, in units of public ones.

    Privacy: a :class:`~dpadapt.privacy.statistics.Histogram` with Gaussian noise that is planned
    and charged together with all else. What follows divides residuals by the released size before
    they are clipped, so no sensitivity depends on it.

    Parameters
    ----------
    rows : RowMap
    function : callable
        From cleaned rows and labels to residuals of the public model.
    public : ndarray
        Public residuals, as all else is planned with.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> rng = np.random.default_rng(0)
    >>> rows = Cleaning(9.0, label_range=(-1e6, 1e6))
    >>> size_query = ResidualSizeQuery(rows, lambda X, y: y, public=rng.normal(size=900))
    >>> private = Private(np.zeros((5000, 1)), 300 * rng.normal(size=5000))
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(**size_query.mechanisms(session))
    ...     found = size_query.release(session, grants)
    >>> 150 < found < 600
    True
    """

    rows: RowMap
    function: Callable[[FloatArray, FloatArray], FloatArray]
    public: FloatArray

    @property
    def unit(self) -> float:
        """Size of public residuals."""
        return float(np.quantile(np.abs(self.public), _QUANTILE))

    @property
    def query(self) -> Histogram:
        """The histogram."""
        unit = self.unit

        def log2_sizes(X: FloatArray, y: FloatArray) -> FloatArray:
            return np.asarray(np.log2(np.maximum(np.abs(self.function(X, y)) / unit, 1e-9)))

        return histogram(self.rows, log2_sizes, _LOG2_EDGES, "size of residuals")

    def mechanisms(
        self, session: Session, others: Mapping[str, Any] | None = None, part: Part = "all"
    ) -> dict[str, Mechanism]:
        """The query as a mechanism beside others; none where the budget is too small for one.

        Parameters
        ----------
        session : Session
        others : mapping, optional
            All that will be planned beside it, of the same part.
        part : {"all", "train", "holdout"}, default="all"
        """
        share = size_share(session.n_rows * gaussian_mu(session.epsilon, session.delta))
        if not share:
            return {}
        spent = sum(each.count * each.weight**2 for each in (others or {}).values()) or 1.0
        weight = math.sqrt(spent * share / (1 - share))
        return {"size": Gaussian.of(session.hide(self.query, part), weight=weight)}

    def release(self, session: Session, grants: object, part: Part = "all") -> float:
        """The size, in units of public residuals; 1 where no query was planned."""
        grant: Grant | None = getattr(grants, "size", None)
        if grant is None:
            return 1.0
        return self.size(session.release(grant, session.hide(self.query, part)))

    def size(self, shares: FloatArray) -> float:
        """The size, from the histogram as it was released."""
        below = np.cumsum(shares[:-1]) / max(float(shares.sum()), 0.5)
        place = int(np.argmax(below >= _QUANTILE)) if (below >= _QUANTILE).any() else -1
        return float(2.0 ** (_LOG2_EDGES[place] - 0.5))
