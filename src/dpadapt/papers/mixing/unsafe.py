"""What each private row lost: private facts, for the owner of the rows and nobody else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from dpadapt._types import FloatArray

from .projection import GradientSpan
from .queries import PricedGradients, ProjectedGradients


def unsafe_individual_losses(
    model: Any, X: ArrayLike, y: ArrayLike, *, public: tuple[ArrayLike, ArrayLike] | None = None
) -> FloatArray:
    r"""Per-instance mu of Proposition 14, for rows that their owner holds. UNSAFE to publish.

    :math:`\mu_i^2 = \sum_t (\|\tilde g_i(w_t)\| / (\tau_t \sigma))^2`: what row i contributed to
    each step, over its noise. The numbers depend on the private rows without any noise: whoever
    sees them learns about those rows, and no guarantee covers that. They are in no attribute of
    the model, no report and no log.

    Erratum: they are no guarantee for the row either, since the path of the weights depends on
    the row. A bound that holds beforehand needs an individual filter (:class:`~.steps.Steps`).

    Parameters
    ----------
    model : AdaMixClassifier or NoisyGDClassifier
        Fitted with ``keep_trajectory=True``.
    X, y : array-like
        The private rows and labels, as plain arrays.
    public : (X, y), optional
        The public sample, needed where gradients are projected.

    Returns
    -------
    ndarray of shape (n,)
        Mu of each row's presence; at most the mu of the guarantee (twice as much under
        replace-one, where two rows differ).

    Examples
    --------
    >>> from dpadapt import Private
    >>> from dpadapt.mixing import NoisyGDClassifier
    >>> X, y = np.random.default_rng(0).normal(size=(50, 2)), [0, 1] * 25
    >>> model = NoisyGDClassifier(epsilon=1, delta=1e-5, steps=9, classes=[0, 1],
    ...                           relation="add-remove", keep_trajectory=True)
    >>> losses = unsafe_individual_losses(model.fit(private=Private(X, y)), X, y)
    >>> bool((losses <= 3 / model.sigma_).all())
    True
    """
    if not hasattr(model, "trajectory_"):
        raise ValueError("model: fit it with keep_trajectory=True and a private sample first.")
    rows, codes = _unit(model, X, y)
    solver = model._solver
    projected: Any = getattr(solver, "span", None)
    if projected is not None and public is None:
        raise ValueError("public: with projected gradients the public sample is needed.")
    sample = None
    if projected is not None and public is not None:
        given, places = _unit(model, *public)
        sample = given, places.astype(np.int64)
    squares = np.zeros(len(rows))
    for W, clip in zip(model.trajectory_, model.clips_, strict=True):
        query: Any = PricedGradients(W, clip, model.features_)
        if sample is not None:
            span = GradientSpan.of(*sample, W, projected.rank)
            query = ProjectedGradients(W, clip, model.features_, span, projected.clip_first)
        squares += query.norms(rows, codes) ** 2
    return np.asarray(np.sqrt(squares) / model.sigma_)


def _unit(model: Any, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Rows in unit features, and codes of their classes; -1 for a class that is not known."""
    labels = np.asarray(y)
    places = np.searchsorted(model.classes_, labels)
    known = model.classes_[np.minimum(places, len(model.classes_) - 1)] == labels
    rows = model.features_.rows(check_array(X, dtype=np.float64, ensure_all_finite=False))
    return rows, np.where(known, places, -1).astype(np.float64)
