"""Reviews of four kinds of products (Blitzer et al. 2007), the twelve pairs of paper 001."""

from __future__ import annotations

import gzip
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .files import data_file

__all__ = ["KINDS", "Reviews", "load_reviews", "review_texts"]

KINDS = ("books", "dvd", "electronics", "kitchen")
_WORDS = 5000


class Reviews(NamedTuple):
    """Reviews of one kind of product.

    Attributes
    ----------
    words : sparse matrix of shape (n, 5000)
        1 where a word or a pair of words occurs; rows of length 1.
    labels : ndarray of shape (n,)
        +1 for reviews with more than three stars, -1 for those with fewer.

    Examples
    --------
    >>> Reviews(np.eye(2), np.array([1.0, -1.0])).labels
    array([ 1., -1.])
    """

    words: Any
    labels: NDArray[np.float64]


def load_reviews(kind: str) -> Reviews:
    """All labelled reviews of one kind of product.

    Not the paper's labels: it predicts the number of stars; the files, and the raw texts that
    belong to them, only tell good reviews from bad ones.

    Parameters
    ----------
    kind : one of KINDS

    Examples
    --------
    >>> import os
    >>> if "DPADAPT_DATA" in os.environ:
    ...     assert load_reviews("dvd").words.shape == (5586, 5000)
    """
    import scipy.sparse
    from sklearn.datasets import load_svmlight_file
    from sklearn.preprocessing import normalize

    names = [f"amazon_reviews/{kind}_{part}.svmlight.gz" for part in ("train", "test")]
    parts = [load_svmlight_file(str(data_file(name)), n_features=_WORDS) for name in names]
    words = scipy.sparse.vstack([rows for rows, _ in parts]).tocsr()
    words.data[:] = 1.0
    labels = np.concatenate([labels for _, labels in parts])
    return Reviews(normalize(words), np.where(labels > 0, 1.0, -1.0))


def review_texts(kind: str, verdict: str) -> list[str]:
    """Raw texts of the 1,000 labelled reviews of one kind of product, some of them twice.

    Parameters
    ----------
    kind : one of KINDS
    verdict : {"negative", "positive"}

    Examples
    --------
    >>> import os
    >>> if "DPADAPT_DATA" in os.environ:
    ...     assert len(review_texts("dvd", "negative")) == 1000
    """
    path = data_file(f"amazon_reviews/text/{kind}_{verdict}.parsed.gz")
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        return re.findall(r"<review>(.*?)</review>", file.read(), re.DOTALL)
