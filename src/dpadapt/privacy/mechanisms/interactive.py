"""Mechanisms that are asked: what they release is a handle, which keeps its own count."""

from __future__ import annotations

from typing import Any

from ..core.errors import PrivacyError
from ..core.hidden import Hidden
from ..core.mechanism import Mechanism
from ..core.noise import NoiseSource

__all__ = ["Interactive"]


class Interactive(Mechanism):
    """Answers of a private model to questions that come one after another.

    Takes the hidden coefficients of the model, and from :mod:`.asking` the model, its session and
    its secret file.
    """

    unbounded = True

    def admit(self, hidden: Hidden, *, model: Any, **_: Any) -> float:  # type: ignore[override]
        """All answers of one model."""
        from .asked_model import AskedModel

        if type(model) is not AskedModel or model.mechanism is not self:
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
        from .answers import answers_of

        return answers_of(hidden._owner, model, hidden._value, scale, state)
