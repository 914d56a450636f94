r"""How far one private row moves the second moment.

Replacing the private row x by x' changes :math:`M_0` by :math:`\Delta = (x x^T - x' x'^T) / n`,
which lies between :math:`-x' x'^T / n` and :math:`x x^T / n`. So its eigenvalues lie within
:math:`\pm r^2 / n`, one on each side at most (Weyl), and with the Schatten norms
:math:`\|.\|_{(s)}`

.. math:: \|\Delta\|_2 \le r^2/n, \qquad \|\Delta\|_{(s)} \le 2^{1/s} r^2/n.    \tag{1}

(The paper has :math:`2 r^2 / n` for the first.) By the same argument the differences
:math:`x_i x_i^T - x_j x_j^T` of public rows have norms of at most :math:`\hat r^2` and
:math:`2^{1/s} \hat r^2`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Hidden, Session
from dpadapt.privacy.statistics import SecondMoment

_ROUNDING = 1e-11  # of the squared norms: what rounding can add to the change of a moment


@dataclass(frozen=True)
class RowBounds:
    r"""Public bounds from which every sensitivity follows.

    Parameters
    ----------
    private : float
        r, bound on the norm of a private row, its intercept included.
    public : float
        :math:`\hat r`, the largest norm of a public row, its intercept included.
    n_rows : int
        n, the number of private rows.

    Examples
    --------
    >>> RowBounds(private=2.0, public=1.0, n_rows=100).move.__round__(6)
    0.04
    """

    private: float
    public: float
    n_rows: int

    def __post_init__(self) -> None:
        validate.positive("private", self.private)
        validate.positive("public", self.public)
        validate.count("n_rows", self.n_rows)

    @classmethod
    def of(cls, query: SecondMoment, X: FloatArray, n_rows: int) -> RowBounds:
        """Bounds of a private second moment beside public rows X.

        Examples
        --------
        >>> from dpadapt.privacy import Cleaning
        >>> RowBounds.of(SecondMoment(Cleaning(radius=3.0, intercept=4.0)), np.eye(2), 10)
        RowBounds(private=5.0, public=1.0, n_rows=10)
        """
        norms = np.linalg.norm(np.asarray(X, dtype=float), axis=1)
        if not norms.size or not 0 < norms.max() < math.inf:
            raise ValueError("X must hold at least one row that is not zero, and finite numbers.")
        return cls(math.sqrt(query.magnitude), float(norms.max()), max(1, n_rows))

    @property
    def move(self) -> float:
        """Bound on the spectral norm of what one row changes: r^2 / n, and what rounding adds."""
        return self.private**2 / self.n_rows + _ROUNDING * (self.private**2 + self.public**2)


def bounds_of(session: Session, moment: Hidden, X: FloatArray) -> RowBounds:
    """Bounds of a hidden second moment beside public rows X; of its own query and part.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     bounds_of(session, session.hide(SecondMoment(Cleaning(radius=2.0))), np.eye(2))
    RowBounds(private=2.0, public=1.0, n_rows=10)
    """
    return RowBounds.of(moment.statistic, X, session.size(moment.part))
