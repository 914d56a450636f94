"""Noisy descent on single rows drawn from weights (Kohen, Sheffet, Algorithms 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from dpadapt import _validate
from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Event, Relation
from dpadapt.privacy.core.cleaning import RowMap, shrink_factors
from dpadapt.privacy.core.hidden import Hidden
from dpadapt.privacy.core.mechanism import Noise
from dpadapt.privacy.core.noise import NoiseSource, _ContinuousNoise, _power_of_two
from dpadapt.privacy.rows.errors import PrivacyError
from dpadapt.privacy.rows.sources import RowSource

from .draws import check_drawn, check_rate
from .one_draw import OneDrawGaussianEvent
from .weights import draw_rate

LossName = Literal["hinge", "logistic"]
_BLOCK_CELLS = 1 << 18  # drawn, cleaned and noised at a time; small enough for the cache


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
    penalty : float, default=0.0
        lambda, of half the squared norm of h: the loss is lambda-strongly convex, and the step
        1 / (lambda r). (Erratum: printed is D / (lambda r).) A function of h, which is public.
    lasso : float, default=0.0
        Of the sum of absolute values of h: every number is moved towards 0 by the step times this,
        and stops there. A function of h as well.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.papers.hybrid.doors.weights import RowWeights
    >>> from dpadapt.papers.hybrid.doors.draws import draws
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = np.sign(X[:, 0])
    >>> rows = Cleaning(radius=3.0, label_range=(-1.0, 1.0))
    >>> descent = Descent(rows, clip=1.0, radius=1.0, steps=20_000)
    >>> with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
    ...     drawn = draws(RowWeights(session), density=1.0)
    ...     grants = session.plan(  # without printed= the noise is calibrated
    ...         rule=DrawnDescent.planned(descent, "descent", 1.0, 5000, printed=4.0)
    ...     )
    ...     rule = session.release(grants.rule, drawn, descent=descent)
    >>> rule.shape
    (3,)
    """

    cleaning: RowMap
    clip: float
    radius: float
    steps: int
    loss: LossName = "hinge"
    margin: float = 1.0
    start: FloatArray | None = None
    penalty: float = 0.0
    lasso: float = 0.0

    def __post_init__(self) -> None:
        _validate.plain_numbers(self)
        _validate.positive("clip", self.clip)
        _validate.positive("radius", self.radius)
        _validate.count("steps", self.steps)
        _validate.choice("loss", self.loss, get_args(LossName))
        for name in ("margin", "penalty", "lasso"):
            _validate.non_negative(name, getattr(self, name))
        if self.start is not None and not np.isfinite(self.start).all():
            raise ValueError("start must hold finite numbers.")


@dataclass(frozen=True)
class DrawnDescent(Noise):
    """The average iterate of descents on drawn rows; takes ``descent=``, and uses up its steps.

    The sensitivity is of one drawn row: twice the clip. Takes the hidden :func:`.draws.draws`.

    Parameters
    ----------
    rate : float
        :func:`.weights.draw_rate`, the most that one row can change a draw.

    Examples
    --------
    >>> DrawnDescent("descent", sensitivity=2.0, count=100, rate=0.01).unbounded
    True
    """

    rate: float = 1.0
    unbounded: ClassVar[bool] = True

    @classmethod
    def planned(
        cls,
        descent: Descent,
        label: str,
        density: float,
        n_rows: int,
        *,
        rounds: int = 1,
        weight: float = 1.0,
        printed: float | None = None,
    ) -> Self:
        """Plan for ``rounds`` whole descents on weights of a density.

        ``printed`` is a noise scale sigma to be taken as it is.
        """
        return cls(
            label,
            sensitivity=2 * descent.clip,
            count=descent.steps * _validate.count("rounds", rounds),
            weight=weight,
            printed=printed,
            rate=draw_rate(density, n_rows),
        )

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """Refuse discrete noise, and add-remove."""
        check_drawn(relation)
        if source.name == "exact":
            raise PrivacyError(
                "a descent takes millions of noisy steps in float64; use noise='secure'."
            )

    def event(self, scale: float, source: NoiseSource) -> Event:
        """All steps together."""
        clip = self.sensitivity / 2
        return OneDrawGaussianEvent(self.label, clip, scale, self.rate, self.count)

    def admit(self, hidden: Hidden, *, descent: Descent, **_: Any) -> float:  # type: ignore[override]
        """All steps of one descent."""
        check_rate(hidden, self.rate)
        if type(descent) is not Descent:  # what it says now, it must say when it runs
            raise PrivacyError(f"descent must be a Descent; got {type(descent).__name__}.")
        if 2 * descent.clip > self.sensitivity:
            raise PrivacyError("the gradients may be longer than the grant allows.")
        check_start(descent, hidden._value.rows)  # before anything is spent
        return descent.steps

    def release(
        self, hidden: Hidden, scale: float, source: NoiseSource, *, descent: Any = None, **_: Any
    ) -> FloatArray:
        """Average iterate."""
        drawn = hidden._value
        draw = drawn.places(source)
        return drawn_descent(descent, drawn.rows, draw, source, scale, drawn.progress)


def drawn_descent(
    descent: Descent,
    rows: RowSource,
    draw: Callable[[int], Any],
    source: Any,
    scale: float,
    progress: Callable[[int, int], None] | None,
) -> FloatArray:
    """Run a descent; ``draw`` gives the places of so many rows."""
    from ._compiled import steps

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
    size = max(1, _BLOCK_CELLS // len(at))
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
            descent.penalty,
            descent.lasso,
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
    return np.asarray(at * shrink_factors(np.linalg.norm(at), descent.radius))
