"""Noisy descent on single rows drawn from weights (Kohen, Sheffet, Algorithms 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from . import _validate
from .cleaning import RowMap
from .errors import PrivacyError
from .events import FloatArray
from .grants import Request
from .noise import _ContinuousNoise, _power_of_two
from .rows import RowSource
from .weights import draw_rate

__all__ = ["Descent"]

Loss = Literal["hinge", "logistic"]
BLOCK_CELLS = 1 << 18  # drawn, cleaned and noised at a time; small enough for the cache


@dataclass(frozen=True, eq=False)
class Descent:
    r"""Projected stochastic gradient descent of a linear rule, one drawn row a step.

    .. math:: h_{r+1} = \mathrm{Proj}_D\bigl(h_r - \eta_r (g_r + v_r)\bigr), \qquad
              \eta_r = D / (G \sqrt r), \quad G^2 = L^2 + \sigma^2 d

    with :math:`g_r` the gradient of the loss of the drawn row at :math:`h_r`, shrunk to the norm L,
    and :math:`v_r \sim N(0, \sigma^2 I)`; the result is the average of :math:`h_1, \dots, h_R`.
    (Erratum: the paper's step :math:`D / (\sigma \sqrt r)` is not that of its Theorem A.1, and
    grows without bound as the noise vanishes.)

    Privacy: given the past, a step releases :math:`g_r + v_r` of one draw, with rate q
    (:mod:`.weights`); two gradients are at most 2 L apart, whatever the rows hold. The labels may
    be anything; the row of no class has the gradient 0.

    Parameters
    ----------
    cleaning : RowMap
        Gives the rows z and their labels: above 0 for the one class, below for the other, 0 for
        neither.
    clip : float
        L, most that the norm of a gradient can be.
    radius : float
        D, of the ball around 0 in which h stays.
    steps : int
        R.
    loss : {"hinge", "logistic"}, default="hinge"
        max(0, margin - y <h, z>), or log(1 + exp(-y <h, z>)).
    margin : float, default=1.0
        Of the hinge. (Erratum: the paper's loss has none, so that h = 0 attains its minimum.)
    start : array of shape (d,), optional
        h_1, public; 0 if not given. Projected on the ball.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = np.sign(X[:, 0])
    >>> rows = Cleaning(radius=3.0, label_range=(-1.0, 1.0))
    >>> descent = Descent(rows, clip=1.0, radius=1.0, steps=20_000)
    >>> with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
    ...     weights = session.weigh()
    ...     request = descent.request("descent", density=1.0, n_rows=5000, printed=4.0)
    ...     (grant,) = session.plan(request)  # without printed= the noise is calibrated
    ...     rule = session.noisy_descent(grant, weights, 1.0, descent)
    >>> rule.shape
    (3,)
    """

    cleaning: RowMap
    clip: float
    radius: float
    steps: int
    loss: Loss = "hinge"
    margin: float = 1.0
    start: FloatArray | None = None

    def __post_init__(self) -> None:
        _validate.positive("clip", self.clip)
        _validate.positive("radius", self.radius)
        _validate.count("steps", self.steps)
        _validate.choice("loss", self.loss, get_args(Loss))
        _validate.non_negative("margin", self.margin)
        if self.start is not None and not np.isfinite(self.start).all():
            raise ValueError("start must hold finite numbers.")

    def request(
        self,
        label: str,
        density: float,
        n_rows: int,
        *,
        rounds: int = 1,
        weight: float = 1.0,
        printed: float | None = None,
    ) -> Request:
        """Ask for ``rounds`` whole descents on weights of a density.

        ``printed`` is a noise scale sigma to be taken as it is.
        """
        return Request(
            "one-draw-gaussian",
            label,
            sensitivity=2 * self.clip,
            count=self.steps * _validate.count("rounds", rounds),
            weight=weight,
            printed=printed,
            rate=draw_rate(density, n_rows),
        )


def descend(
    descent: Descent,
    rows: RowSource,
    draw: Callable[[int], Any],
    source: Any,
    scale: float,
    progress: Callable[[int, int], None] | None,
) -> FloatArray:
    """Run a descent; ``draw`` gives the places of so many rows."""
    from ._descent import steps

    if not isinstance(source, _ContinuousNoise):
        raise PrivacyError(
            "a descent takes millions of noisy steps in float64; use noise='secure'."
        )
    generator = source._generator()
    at = check_start(descent, rows)
    total = np.zeros_like(at)
    length = math.sqrt(descent.clip**2 + scale**2 * len(at))
    grid = _power_of_two(scale, 12)  # as every release of the continuous sources is rounded
    # a hair below, so that no rounding leaves a gradient longer than what was charged for
    clip = descent.clip * (1 - 4 * float(np.finfo(np.float64).eps) * (len(at) + 4))
    size = max(1, BLOCK_CELLS // len(at))
    noise = np.empty((size, len(at)))
    for done in range(0, descent.steps, size):
        count = min(size, descent.steps - done)
        Z, y = descent.cleaning(*rows.take(draw(count)))
        generator.standard_normal(out=noise[:count])
        steps(
            at,
            total,
            np.ascontiguousarray(Z, dtype=np.float64),
            np.zeros(count) if y is None else np.ascontiguousarray(y, dtype=np.float64),
            noise,
            done,
            descent.loss == "hinge",
            descent.margin,
            clip,
            descent.radius,
            descent.radius / length,
            scale,
            grid,
        )
        if progress is not None:
            progress(done + count, descent.steps)
    return total / descent.steps


def check_start(descent: Descent, rows: RowSource) -> FloatArray:
    """First iterate; what is wrong with it, or with the rows, is public."""
    if not rows.labelled:
        raise ValueError("a descent needs labels; give Private(X, y).")
    Z, y = descent.cleaning(np.zeros((1, rows.n_columns)), np.zeros(1))
    if y is None:
        raise ValueError("cleaning: a descent needs rows with labels, below and above 0.")
    if descent.start is None:
        return np.zeros(Z.shape[1])
    at = np.array(descent.start, dtype=np.float64)
    if at.shape != (Z.shape[1],):
        raise ValueError(f"start must hold {Z.shape[1]} numbers; got shape {at.shape}.")
    return at * min(1.0, descent.radius / max(float(np.linalg.norm(at)), 1e-300))
