"""What a fit came to, in sentences for the screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from .screens import say, say_note

_FEW = 0.05  # of the rows: with fewer of equal weight, words must not sound like success


def say_outcome(model: Any) -> None:
    """Say how far the model moved away from public data."""
    fitted = getattr(model, "estimator_", model)
    if hasattr(fitted, "explain_"):
        for number, sentence in enumerate(fitted.explain_):
            say("" if number else "model", sentence)
        say("result", fitted._story().result, style="bold")
        return
    if hasattr(fitted, "weights_") and hasattr(fitted, "adapted_"):
        _say_weights(fitted)
        return
    share = getattr(fitted, "share_", None)
    if isinstance(share, float):
        say("model", f"{share:.0%} of the way from public data to what private rows ask for.")


def _say_weights(fitted: Any) -> None:
    """What became of a model that weights public rows."""
    weights = np.asarray(fitted.weights_)
    if not fitted.adapted_:
        say_note(
            "the model did not adapt: no weights make the public rows look like the private ones. "
            "It is the model of public data alone, which is the safe choice. The report says more."
        )
        return
    if np.ptp(weights) == 0:
        say_note(
            "the model did not adapt: within the noise the two samples look alike. All public rows "
            "keep the same weight, and the model is the one of public data alone."
        )
        return
    effective = 1 / float(np.sum(weights**2))
    text = (
        "the public rows were weighted to look like the private ones; they are now worth "
        f"{effective:,.0f} rows of equal weight"
    )
    if effective < _FEW * len(weights):
        say_note(f"{text}, of {len(weights):,}. That is little: do not expect much of this model.")
    else:
        say("adapted", f"{text}.")
