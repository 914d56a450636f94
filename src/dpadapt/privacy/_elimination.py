"""Gaussian elimination over the two-element field on packed rows; compiled, imported when needed.

Bit j of a row is bit j % 64 of its word j // 64. The label is a word of its own.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["solve"]

Words = NDArray[np.uint64]
Bits = NDArray[np.uint8]


@njit(cache=True)
def solve(rows: Words, labels: Bits, kept: Bits, guess: Bits) -> tuple[bool, Bits]:
    """Solve <mask, row> = label for the kept rows; free columns take their bit from ``guess``.

    Whether there is a solution, and it. With fair bits in ``guess`` it is a uniformly random one:
    the free columns can be chosen at will, and every choice has one solution.
    """
    columns = len(guess)
    words = rows.shape[1]
    one = np.uint64(1)
    basis = np.zeros((columns, words), np.uint64)  # basis[c] begins with column c, if known[c]
    right = np.zeros(columns, np.uint8)
    known = np.zeros(columns, np.uint8)
    row = np.zeros(words, np.uint64)
    feasible = True
    for i in range(len(rows)):
        if kept[i] == 0:
            continue
        for w in range(words):
            row[w] = rows[i, w]
        label = labels[i]
        placed = False
        for c in range(columns):
            w = c // 64
            if row[w] == 0:
                continue  # as for all columns of an empty word
            if (row[w] >> np.uint64(c % 64)) & one:
                if known[c]:
                    for v in range(w, words):
                        row[v] ^= basis[c, v]
                    label ^= right[c]
                else:
                    for v in range(words):
                        basis[c, v] = row[v]
                    right[c] = label
                    known[c] = 1
                    placed = True
                    break
        if not placed and label:
            feasible = False
    mask = np.zeros(columns, np.uint8)
    for c in range(columns - 1, -1, -1):
        if known[c]:
            odd = right[c]
            for j in range(c + 1, columns):
                if mask[j] and (basis[c, j // 64] >> np.uint64(j % 64)) & one:
                    odd ^= 1
            mask[c] = odd
        else:
            mask[c] = guess[c]
    return feasible, mask
