"""Gaussian elimination over the two-element field on packed rows; compiled, imported when needed.

Bit j of a row is bit j % 64 of its word j // 64. The label is a word of its own.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

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
