"""The Gaussian purse: one mu, charged once and spent in parts that are chosen on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpadapt._types import FloatArray

from ... import _validate
from ..accounting.events import Event, GaussianEvent, Relation
from ..core.hidden import Hidden, Part
from ..core.mechanism import Mechanism
from ..core.noise import NoiseSource
from ..rows.errors import PrivacyError
from .gaussian import check_square, gaussian, svec, symmetric_gaussian

# Shares are added up exactly, however small they are. Ten times the float64 number 0.1 is a hair
# more than 1: so much is allowed, and noise is larger by more, so that all cost what was charged.
PURSE_ROUNDING = 1e-9


@dataclass(frozen=True)
class GaussianPurse(Mechanism):
    r"""Any number of Gaussian releases whose squares add up to one charge; look first, plan then.

    A release takes ``share=``, the part of the purse that it costs, and optionally
    ``symmetric=True``. A hidden value of Euclidean (Frobenius) sensitivity D gets noise of scale
    :math:`D / (\mu \sqrt{s})`. What is released, how precisely, how clipped, of which dimension and
    how often may depend on everything that was released before.

    *Proof.* Let :math:`s_t` be the share of the t-th release, a function of earlier releases.
    Given those, it is the Gaussian mechanism with :math:`\mu_t = \mu \sqrt{s_t}`, and the session
    refuses it unless :math:`\sum_{r \le t} s_r \le 1`, whatever was released. So
    :math:`\sum_t \mu_t^2 \le \mu^2` always. Fix two neighbours P and Q and let :math:`m_t` be the
    distance of the two means over the scale, :math:`|m_t| \le \mu_t`. The privacy loss of all
    releases is :math:`\sum_t (m_t Z_t + m_t^2 / 2)` with :math:`Z_t` standard normal given the
    past: a Brownian motion with drift, stopped at :math:`\tau = \sum_t m_t^2 \le \mu^2`.
    Let it run on to the time :math:`\mu^2`, with a standard normal of the remaining variance that
    nobody sees: this is more information, and its loss is exactly that of one Gaussian release
    of :math:`\mu`. By post-processing the releases are :math:`\mu`-GDP (Smith and Thakurta 2022;
    for one row's own squares Koskela, Tobaben and Honkela 2023).

    Continuous noise only: a grid of discrete noise would cost more for every number.

    Parameters
    ----------
    label : str
    weight : float
        Its share of a plan in which there are other mechanisms.
    part : {"all", "train", "holdout"}

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> private = Private(np.random.default_rng(0).normal(size=(1000, 2)))
    >>> with private.open(epsilon=1.0, delta=1e-6) as session:
    ...     purse = session.plan(purse=GaussianPurse("look, then measure")).purse
    ...     wide = session.hide(SecondMoment(Cleaning(radius=9.0)))
    ...     look = session.release(purse, wide, share=0.1, symmetric=True)
    ...     radius = 2 * float(np.sqrt(max(1e-3, np.trace(look))))
    ...     narrow = session.hide(SecondMoment(Cleaning(radius=radius)))
    ...     found = session.release(purse, narrow, share=0.9, symmetric=True)
    >>> found.shape, round(session.guarantee.epsilon, 6)
    ((2, 2), 1.0)
    """

    label: str = "purse"
    weight: float = 1.0
    part: Part = "all"

    norm: ClassVar[str] = "l2"
    adds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _validate.positive("weight", self.weight)

    @property
    def allowance(self) -> Fraction:
        """The whole of it, and what rounding can make of shares that add up to it."""
        return Fraction(1.0 + PURSE_ROUNDING / 2)

    def check(self, relation: Relation, source: NoiseSource) -> None:
        """Refuse discrete noise."""
        if source.name == "exact":
            raise PrivacyError("a purse is proved for continuous noise; use noise='secure'.")

    def scale_at(self, multiplier: float) -> float:
        """One over mu."""
        return multiplier / self.weight

    def events(self, scale: float, source: NoiseSource) -> tuple[Event, ...]:
        """One Gaussian release of mu."""
        return (GaussianEvent(self.label, 1.0, scale),)

    def admit(  # type: ignore[override]
        self, hidden: Hidden, *, share: float, symmetric: bool = False, **_: Any
    ) -> Fraction:
        """The share, if it is one."""
        if hidden.norm not in (None, self.norm):
            raise PrivacyError(f"the claim is in the norm {hidden.norm!r}, not {self.norm!r}.")
        if type(share) not in (int, float, np.float64) or not 0 < share <= 1:
            raise ValueError(f"share must lie above 0 and be at most 1; got {share!r}.")
        if symmetric:
            check_square(hidden)
        if hidden.sensitivity == 0:
            raise PrivacyError("what no row can change needs no noise, and no purse.")
        return Fraction(share)

    def release(
        self,
        hidden: Hidden,
        scale: float,
        source: NoiseSource,
        *,
        share: float = 1.0,
        symmetric: bool = False,
        **_: Any,
    ) -> FloatArray:
        """Value and noise."""
        noise = hidden.sensitivity * scale * (1 + PURSE_ROUNDING) / math.sqrt(share)
        return (symmetric_gaussian if symmetric else gaussian)(source, hidden._value, noise)

    def coordinates(self, value: FloatArray, *, symmetric: bool = False, **_: Any) -> FloatArray:
        """Return a value as its norm measures it."""
        return svec(value) if symmetric else value
