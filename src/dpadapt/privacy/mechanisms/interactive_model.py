"""A private kernel model that is asked, not released: what it is, and by which mechanism."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpadapt._types import FloatArray

from ... import _validate
from ..core.doors import is_door
from ..core.hidden import Hidden
from ..core.mechanism import Mechanism
from ..core.noise import NoiseSource
from ..rows.errors import PrivacyError
from ..statistics.gram import Gram


class Interactive(Mechanism):
    """Answers of a private model to questions that come one after another.

    What it releases is a handle, which keeps its own count. Takes the hidden coefficients of the
    model, and from :mod:`.asking` the model, its session and its secret file.
    """

    unbounded = True

    def admit(self, hidden: Hidden, *, model: Any, **_: Any) -> float:  # type: ignore[override]
        """All answers of one model."""
        if type(model) is not InteractiveModel or model.mechanism is not self:
            raise PrivacyError("a model is asked by the mechanism that was planned for it.")
        return 1

    def release(
        self,
        hidden: Hidden,
        scale: float,
        source: NoiseSource,
        *,
        model: Any = None,
        state: Any = None,
        **_: Any,
    ) -> Any:
        """Give the handle."""
        return type(self)._answers(self, hidden._owner, model, hidden._value, scale, state)

    @abstractmethod
    def _answers(
        self,
        session: Any,
        model: InteractiveModel,
        coefficients: FloatArray,
        scale: float,
        state: Any,
    ) -> Any:
        """The handle, of a model with these coefficients, after the charge was made."""


def check_interactive(mechanism: object) -> None:
    """Refuse whatever is not exactly a mechanism of this package.

    Examples
    --------
    >>> from dpadapt.privacy.mechanisms import GaussianPath
    >>> check_interactive(GaussianPath(0.1))
    """
    if not (isinstance(mechanism, Interactive) and is_door(mechanism)):
        raise PrivacyError(
            "mechanism: only those of dpadapt may see un-noised answers, a GaussianPath, "
            f"PINPConstants or SparseVectorConstants; got {type(mechanism).__name__}."
        )


class Questions(Protocol):
    """How questions are told apart and written down; public.

    A question must be rounded to a public grid, so that "the same question" means something.
    """

    def encode(self, table: Any) -> list[bytes]:
        """One text of bytes for each question; equal if and only if the questions are."""

    def decode(self, texts: Sequence[bytes]) -> Any:
        """Table of the questions."""


@dataclass(frozen=True, eq=False)
class InteractiveModel:
    """A private kernel model, and by which mechanism it is asked.

    Parameters
    ----------
    gram : Gram
        The kernel.
    solve : callable
        From the hidden table of kernel values (and labels) to coefficients of shape (n, k):
        w* = sum of a_i phi(x_i), one column for each output. Their sensitivity is what
        ``mechanism`` states. Called once in the life of a secret file.
    mechanism : GaussianPath, PINPConstants or SparseVectorConstants
        What it costs follows from it alone.
    questions : Questions
    most : int, default=10000
        Different questions that are answered; earlier ones are answered ever after.
    facts : mapping
        Further public facts, plain values, that a secret file goes with.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.privacy.mechanisms import GaussianPath
    >>> gram, questions = Gram(np.inner, 1.0), None  # asked with: see open_answers
    >>> InteractiveModel(gram, lambda table: table[:, :1], GaussianPath(0.01), questions).most
    10000
    >>> InteractiveModel(gram, lambda table: table[:, :1], lambda score: score, questions)
    Traceback (most recent call last):
    ...
    dpadapt.privacy.rows.errors.PrivacyError: mechanism: only those of dpadapt may see \
un-noised answers, a GaussianPath, PINPConstants or SparseVectorConstants; got function.
    """

    gram: Gram
    solve: Callable[[FloatArray], Any]
    mechanism: Interactive
    questions: Questions
    most: int = 10_000
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_interactive(self.mechanism)
        _validate.count("most", self.most)
