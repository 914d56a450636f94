r"""What is left of a noisy move when its noise is known: post-processing, and free.

Of a move with energy A, of which noise alone would make E, the part max(0, 1 - E / A) is kept:
the positive part of James and Stein's estimator (1961), for known noise.

A correction c to the public model is released as c^ = c + s N(0, I). Where it is no longer than
noise alone would be, it is noise. The directions are those of the public rows' features, the widest
first; the j-th block of 2^j of them (the first has one) keeps the part

    max(0, 1 - d s^2 / |c^_b|^2),    d the numbers in the block,

and so do all directions that public rows do not have.
Noise, rows and rule are public: the result is a function of what was released.
"""

from __future__ import annotations

import numpy as np

from dpadapt._types import FloatArray

_ROWS = 500  # public rows that the directions are taken from


def james_stein(energy: float, noise: float) -> float:
    """Part of a move that is more than its noise.

    Parameters
    ----------
    energy : float
        Of the move, as it was found.
    noise : float
        Energy of what noise alone would have moved.

    Examples
    --------
    >>> james_stein(4.0, 1.0), james_stein(1.0, 4.0), james_stein(0.0, 0.0)
    (0.75, 0.0, 0.0)
    """
    return max(0.0, 1 - noise / energy) if energy > 0 else 0.0


def shrunk(noisy: FloatArray, noise: float, features: FloatArray) -> FloatArray:
    """Shrink released coordinates to what is more than their noise.

    Parameters
    ----------
    noisy : ndarray of shape (D, k)
        c^, one column an output.
    noise : float
        s.
    features : ndarray of shape (m, D)
        Public rows in the same coordinates.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(50, 3))
    >>> float(np.abs(shrunk(np.full((3, 1), 0.1), noise=1.0, features=rows)).max())
    0.0
    >>> shrunk(np.full((3, 1), 100.0), noise=1.0, features=rows).round(1).ravel()
    array([100., 100., 100.])
    """
    directions = np.linalg.svd(features[:_ROWS], full_matrices=False)[2]
    along = directions @ noisy
    kept = np.concatenate([_part(block, noise) for block in _blocks(along)])
    rest = noisy - directions.T @ along
    # numbers in the rest: those that no public row has
    numbers = noisy.size - along.size
    return np.asarray(directions.T @ kept + (_part(rest, noise, numbers) if numbers else 0.0))


def _blocks(along: FloatArray) -> list[FloatArray]:
    """One direction, one, two, four, ..."""
    ends = [1]
    while ends[-1] < len(along):
        ends.append(2 * ends[-1])
    return [block for block in np.split(along, ends) if len(block)]


def _part(block: FloatArray, noise: float, numbers: int | None = None) -> FloatArray:
    """The part of a block that is more than noise."""
    size = block.size if numbers is None else numbers
    return np.asarray(block * james_stein(float(np.sum(block**2)), size * noise**2))
