"""Data for paper 002 (Jain, Thakurta: kernels): forest cover in two classes, and texts of reviews.

Neither is quite the paper's: it has all 581,012 patches of forest, and the KDD Cup 2010 in place of
reviews.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduce.data.classes import ClassData, load_covertype
from reproduce.data.reviews import KINDS, review_texts

__all__ = ["Texts", "hashed_words", "load_cover", "load_review_texts"]

Array = NDArray[np.float64]

LODGEPOLE = 1  # code of the class that the common two-class version of the set is about
# patches of each class in the whole set, which the file of 15,120 has in equal numbers
_WHOLE = (211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510)
_UPLAND = (0, 1, 4, 6)  # spruce and fir, lodgepole pine, aspen, krummholz


class Texts(NamedTuple):
    """Texts and how good they are.

    Attributes
    ----------
    texts : list of str
    labels : ndarray of shape (n,)
        +1 for reviews with more than three stars, -1 for those with fewer.

    Examples
    --------
    >>> Texts(["Good.", "Bad."], np.array([1.0, -1.0])).labels
    array([ 1., -1.])
    """

    texts: list[str]
    labels: Array


def load_cover(classes: str, seed: int = 0) -> ClassData:
    """Patches of forest in two classes, in random order.

    Parameters
    ----------
    classes : {"lodgepole", "upland"}
        "lodgepole": lodgepole pine (1) against the rest (0), in the proportions of the whole set,
        for which rows of the other classes are left out at random. "upland": spruce and fir,
        lodgepole pine, aspen and krummholz (1) against the others (0), every row.
    seed : int, default=0
        Of the order, and of what is left out.
    """
    X, y = load_covertype()
    rng = np.random.default_rng(seed)
    if classes == "upland":
        order = rng.permutation(len(y))
        return ClassData(X[order], np.isin(y[order], _UPLAND).astype(np.int64))
    most = np.bincount(y)[LODGEPOLE]
    kept = [
        rng.permutation(np.flatnonzero(y == code))[: round(most * count / _WHOLE[LODGEPOLE])]
        for code, count in enumerate(_WHOLE)
    ]
    order = rng.permutation(np.concatenate(kept))
    return ClassData(X[order], (y[order] == LODGEPOLE).astype(np.int64))


def load_review_texts() -> Texts:
    """Raw texts of the labelled reviews of four kinds of products; each text once."""
    found: dict[str, float] = {}
    for kind in KINDS:
        for name, label in (("negative", -1.0), ("positive", 1.0)):
            for text in review_texts(kind, name):
                found.setdefault(text.strip(), label)
    return Texts(list(found), np.array(list(found.values())))


def hashed_words(texts: list[str], columns: int = 2**18) -> Any:
    """Words and pairs of words of each text as a sparse row of length 1, columns by hashing.

    A text's row depends on that text alone: no vocabulary is learnt from private ones.

    Parameters
    ----------
    texts : list of str
    columns : int, default=2**18

    Examples
    --------
    >>> hashed_words(["a good book", "a bad book"]).shape
    (2, 262144)
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=columns, ngram_range=(1, 2), binary=True)
    return hashing.transform(texts)
