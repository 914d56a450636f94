"""Loops that numba compiles; this file is imported when a door needs one of them.

**Draws from projected weights in constant time: Vose's alias table, packed and exact.**

One 64-bit word a row holds the row's threshold and its alias, so a draw costs one look-up, and the
table of 324.7 million rows 2.6 GB. Weights are first rounded to multiples of 2^-b / n; from there
on all is arithmetic with integers, so that the table gives each row exactly the probability that
its rounded weight says. (Float32 thresholds would not: a heavy row collects from up to n columns,
and with them n rounding errors, which at n = 10^8 is a tenth of its weight and would break the
rate that is charged for.) Rounded weights need not add up to one. What is missing or too much, at
most half a multiple for each row, ends up with the last rows of the sweep. The table is therefore
within 2^-b / 2 of the weights in total variation, which is what :func:`.weights.draw_rate` adds.

**Algorithm 3 of Kohen and Sheffet, Online SGD: its loop.**

With the paper's names::

    h^1 <- 0
    for r = 1, ..., R:
        draw (x_r, l(x_r)) from mu
        draw v from N(0, sigma^2 I_d)
        eta^r   <- D / (G sqrt(r))                with G^2 = L^2 + sigma^2 d (printed: sigma)
        h^{r+1} <- Proj_D(h^r - eta^r (grad L(h^r(x_r), l(x_r)) + v))
    return the mean of h^1, ..., h^R

Rows and noise are drawn a block at a time in :func:`.descent.drawn_descent`, which calls
:func:`steps` for each block, and divides by R.

**Gaussian elimination over the two-element field on packed rows.**

Bit j of a row is bit j % 64 of its word j // 64. The label is a word of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

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


def _compiled_in_any_order(function: Any) -> Any:
    # sums may be taken in any order; NaN, infinity and rounding keep their meaning
    return njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})(function)


@_compiled_in_any_order
def steps(
    at: Any,
    total: Any,
    Z: Any,
    y: Any,
    noise: Any,
    done: int,
    hinge: bool,
    margin: float,
    clip: float,
    radius: float,
    rate: float,
    scale: float,
    grid: float,
    penalty: float = 0.0,
    lasso: float = 0.0,
) -> None:
    """Take one step for each row of Z, in place; the iterates before each step go to ``total``.

    ``at`` is h^r, ``radius`` D, ``clip`` L, ``rate`` D / G, ``scale`` sigma. ``done`` steps came
    before. A noisy gradient is rounded to the grid (none if 0), which is post-processing; so are
    ``penalty`` and ``lasso``, functions of h^r.
    """
    n, d = Z.shape
    for i in range(n):  # r = done + i + 1
        label = 1.0 if y[i] > 0 else (-1.0 if y[i] < 0 else 0.0)
        score = 0.0
        square = 0.0
        for j in range(d):
            score += at[j] * Z[i, j]
            square += Z[i, j] * Z[i, j]
        score *= label
        if hinge:
            slope = -label if score < margin else 0.0
        else:
            slope = -label / (1.0 + math.exp(min(score, 700.0)))
        length = abs(slope) * math.sqrt(square)  # of the gradient, slope times the row
        if length > clip:
            slope *= clip / length
        if not length < math.inf:  # a row that is no row of numbers
            slope = 0.0
        step = rate / math.sqrt(done + i + 1.0)
        if penalty > 0:  # strongly convex
            step = 1.0 / (penalty * (done + i + 1.0))
        norm = 0.0
        for j in range(d):
            total[j] += at[j]
            gradient = scale * noise[i, j]
            if slope != 0.0:
                gradient += slope * Z[i, j]
            if grid > 0:
                gradient = np.rint(gradient / grid) * grid
            at[j] -= step * (gradient + penalty * at[j])
            if lasso > 0:
                at[j] = math.copysign(max(abs(at[j]) - step * lasso, 0.0), at[j])
            norm += at[j] * at[j]
        if norm > radius * radius:  # Proj_D
            shrink = radius / math.sqrt(norm)
            for j in range(d):
                at[j] *= shrink


Words = NDArray[np.uint64]
_Bits = NDArray[np.uint8]


@njit(cache=True)
def solve_parity(rows: Words, labels: _Bits, kept: _Bits, guess: _Bits) -> tuple[bool, _Bits]:
    """Solve <mask, row> = label for the kept rows; free columns take their bit from ``guess``.

    Whether there is a solution, and it. With fair bits in ``guess`` it is a uniformly random one:
    the free columns can be chosen at will, and every choice has one solution.
    """
    columns = len(guess)
    basis = np.zeros((columns, rows.shape[1]), np.uint64)  # basis[c] begins with column c, if known
    right = np.zeros(columns, np.uint8)
    known = np.zeros(columns, np.uint8)
    row = np.zeros(rows.shape[1], np.uint64)
    feasible = True
    for i in range(len(rows)):
        if kept[i]:
            row[:] = rows[i]
            if not _place(row, labels[i], basis, right, known):
                feasible = False
    mask = np.zeros(columns, np.uint8)
    for c in range(columns - 1, -1, -1):
        if known[c]:
            odd = right[c]
            for j in range(c + 1, columns):
                if mask[j] and _bit(basis[c], j):
                    odd ^= 1
            mask[c] = odd
        else:
            mask[c] = guess[c]
    return feasible, mask


@njit(cache=True)
def _place(row: Words, label: int, basis: Words, right: _Bits, known: _Bits) -> bool:
    """Reduce a row by the basis and add what is left of it; whether its label can be met."""
    for c in range(len(known)):
        w = c // 64
        if row[w] == 0 or not _bit(row, c):
            continue
        if not known[c]:
            basis[c] = row
            right[c] = label
            known[c] = 1
            return True
        for v in range(w, len(row)):
            row[v] ^= basis[c, v]
        label ^= right[c]
    return label == 0


@njit(cache=True)
def _bit(row: Words, column: int) -> bool:
    return bool((row[column // 64] >> np.uint64(column % 64)) & np.uint64(1))
