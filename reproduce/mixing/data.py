"""Data for paper 004 (Golatkar et al., AdaMix): features of images and texts, and their classes.

None of it is the paper's: that has six sets of photographs, as features of two networks. Rows are
as published; who is public, and what is scaled, is the experiments' affair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reproduce.data.classes import ClassData
from reproduce.data.files import data_file
from reproduce.data.reviews import KINDS, load_reviews
from reproduce.data.shifted import gas_batch

__all__ = [
    "load_digit_pixels",
    "load_gas_kinds",
    "load_mnist",
    "load_office",
    "load_review_directions",
    "load_usps",
]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

_BATCHES = (1, 2, 3, 4, 5, 6, 8, 9)
_TRAINING = 2000  # first rows of each kind of reviews: the published training part
_FOLDERS = {"googlenet": "googlenet1024", "surf": "surf"}


def load_digit_pixels() -> ClassData:
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn.

    Examples
    --------
    >>> load_digit_pixels().X.shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return ClassData(X, y.astype(np.int64))


def load_mnist() -> ClassData:
    """2,000 digits of MNIST, 16 x 16 pixels in [0, 1]."""
    return _pixels("mnist")


def load_usps() -> ClassData:
    """1,800 digits of USPS, 16 x 16 pixels in [0, 1]."""
    return _pixels("usps")


def _pixels(name: str) -> ClassData:
    with np.load(data_file("mnist_usps/mnist_usps.npz")) as file:
        rows, labels = file[f"X_{name}"], file[f"y_{name}"]
    return ClassData(rows.astype(float), labels.ravel().astype(np.int64) - 1)


def load_office(source: str, features: str = "googlenet") -> ClassData:
    """Photographs of ten kinds of things (Office-Caltech 10), as features.

    Parameters
    ----------
    source : {"amazon", "caltech10", "dslr", "webcam"}
        Where the photographs are from; there are no GoogLeNet features of caltech10.
    features : {"googlenet", "surf"}
        1,024 outputs of a network, or 800 counts of visual words.
    """
    from scipy.io import loadmat

    file = loadmat(data_file(f"office_caltech10/{_FOLDERS[features]}/{source}.mat"))
    return ClassData(file["fts"].astype(float), file["labels"].ravel().astype(np.int64) - 1)


def load_review_directions(kind: str, directions: int = 100) -> tuple[ClassData, ClassData]:
    """Reviews of one kind of product, good (1) or bad (0), as features learnt on the others.

    Weighted words (tf-idf) in the principal directions of the 2,000 training reviews of each of the
    three other kinds, which play a public pre-training set: no review of this kind is looked at.

    Parameters
    ----------
    kind : one of ``reproduce.data.reviews.KINDS``
    directions : int, default=100

    Returns
    -------
    (ClassData, ClassData)
        The 2,000 reviews of the published training part, and the published test part.
    """
    import scipy.sparse
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    others = [load_reviews(other).words[:_TRAINING] for other in KINDS if other != kind]
    words = scipy.sparse.vstack(others)
    weights = TfidfTransformer().fit(words)
    found = TruncatedSVD(directions, random_state=0).fit(weights.transform(words))
    own = load_reviews(kind)
    rows = found.transform(weights.transform(own.words))
    codes = (own.labels > 0).astype(np.int64)
    return (
        ClassData(rows[:_TRAINING], codes[:_TRAINING]),
        ClassData(rows[_TRAINING:], codes[_TRAINING:]),
    )


def load_gas_kinds() -> ClassData:
    """Which of six gases it is, from 128 sensor features; batches 1-6, 8 and 9."""
    batches = [gas_batch(number) for number in _BATCHES]
    rows, gases = (np.concatenate(part) for part in list(zip(*batches, strict=True))[:2])
    return ClassData(rows, gases.astype(np.int64) - 1)
