"""Draws from projected weights in constant time: Vose's alias table, packed and exact.

One 64-bit word a row holds the row's threshold and its alias, so a draw costs one look-up, and the
table of 324.7 million rows 2.6 GB. Weights are first rounded to multiples of 2^-b / n; from there
on all is arithmetic with integers, so that the table gives each row exactly the probability that
its rounded weight says. (Float32 thresholds would not: a heavy row collects from up to n columns,
and with them n rounding errors, which at n = 10^8 is a tenth of its weight and would break the
rate that is charged for.) Rounded weights need not add up to one. What is missing or too much, at
most half a multiple for each row, ends up with the last rows of the sweep. The table is therefore
within 2^-b / 2 of the weights in total variation, which is what :func:`.weights.draw_rate` adds.

Imported lazily: it loads numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dpadapt._types import FloatArray, IntArray

from .weights import ALIAS_BLOCK, mass_of, pieces, projected, threshold_bits


class DrawTable:
    """Draws rows from the projection of log-weights on a density.

    Parameters
    ----------
    log_weights : array of shape (n,)
    cap : float
        From :func:`.weights.log_cap`.
    density : float

    Examples
    --------
    >>> table = DrawTable(np.log([8.0, 1.0, 1.0, 2.0]), np.log(0.25), density=0.5)
    >>> drawn = table.draw(np.random.default_rng(0), 100_000)
    >>> (np.bincount(drawn) / 100_000).round(2)  # 1/2, 1/8, 1/8, 1/4
    array([0.5 , 0.13, 0.12, 0.25])
    """

    def __init__(self, log_weights: FloatArray, cap: float, density: float) -> None:
        n_rows = len(log_weights)
        self._bits = threshold_bits(n_rows)
        self._place_bits = max(1, (n_rows - 1).bit_length())
        unit = 2.0**self._bits * (n_rows / mass_of(density, n_rows))
        self._table = np.empty(n_rows, dtype=np.int64)
        for cut in pieces(n_rows, ALIAS_BLOCK):
            masses = projected(log_weights[cut], cap)
            masses *= unit
            np.rint(masses, out=masses)
            # one row may hold all of it, which is one more than an int64 does
            self._table[cut] = np.minimum(masses, 2.0**63 - 1024)
        _sweep(self._table, 1 << self._bits, self._place_bits)

    def draw(self, generator: np.random.Generator, size: int) -> IntArray:
        """Places of ``size`` rows, drawn independently with replacement."""
        columns = generator.integers(0, len(self._table), size)
        levels = generator.integers(0, 1 << self._bits, size)
        words = np.invert(self._table[columns])
        own = levels < (words >> self._place_bits)
        return np.where(own, columns, words & ((1 << self._place_bits) - 1))


def _compiled(function: Any) -> Any:
    return njit(cache=True, nogil=True)(function)


@_compiled
def _sweep(table: Any, one: int, place_bits: int) -> None:
    """Turn masses into words, in place: two pointers run over the light and the heavy rows.

    A word is stored as its complement, a negative number, so that a pointer can tell the rows that
    are done from the masses (0 or more) that are not. A full column is its own alias.
    """
    n = len(table)
    light = 0
    heavy = 0
    while heavy < n and table[heavy] < one:
        heavy += 1
    mass = table[heavy] if heavy < n else 0
    while heavy < n:
        if mass > one:
            while light < n and (table[light] < 0 or table[light] >= one):
                light += 1
            if light == n:
                break
            own = table[light]
            table[light] = ~((own << place_bits) | heavy)
            mass -= one - own
            continue
        following = heavy + 1
        while following < n and table[following] < one:  # done, or light
            following += 1
        if mass == one or following == n:
            table[heavy] = ~heavy
            mass = one
        else:
            table[heavy] = ~((mass << place_bits) | following)
        heavy = following
        if heavy < n:
            mass += table[heavy] - one
    for row in range(n):
        if table[row] >= 0:
            table[row] = ~row
