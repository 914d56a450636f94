r"""Rounds of which few change the public model, each with one draw of noise: the event, its proof.

In each round a private value with Laplace noise b, of sensitivity S, is compared with a public
model. Within a threshold of it the round tells so and nothing else; else the noisy value itself is
released and the model makes a step. After B steps there are no more rounds.

Each round is e-DP, e = S / b, with one outcome ("no step") that costs no step and others that cost
one of B. Let M_0 and M_1 be the parts of E'[(p/p')^alpha] that a round has at these outcomes, p and
p' the two laws. If M_1 <= G (1 - M_0) for every e-DP round, the product over all rounds until B
steps, however the questions are chosen, is at most G^B: by induction, M_0 G^j + M_1 G^{j-1} <=
G^j. M_1 is greatest where p/p' takes the values e^{+-e} alone, and is then linear in their
masses, while 1 - M_0 is concave (x^alpha y^{1-alpha} is convex): the ratio is quasi-convex, and so
greatest at a vertex of the polygon of possible masses. With x = pi e^{(alpha-1)e}, y = (1 - pi)
e^{-(alpha-1)e} and pi = 1 / (1 + e^{-e}) the vertices give x/(1-y), y/(1-x) and x + y, of which
the second is the greatest:

    D_alpha <= B log(1 + (x + y - 1) / (1 - x)) / (alpha - 1)    while x < 1,

about alpha e^2 a step, what two e-DP releases cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.privacy.accounting.events import Addition, NoisyEvent

__all__ = ["UpdatesEvent"]


@dataclass(frozen=True, slots=True)
class UpdatesEvent(NoisyEvent):
    """Rounds of Laplace noise, as many as are asked for, of which ``count`` change the model.

    A round whose noisy value stays within a threshold tells that alone. The proof stands at the
    head of this file. No statement at delta = 0: any number of rounds may pass.

    Examples
    --------
    >>> event = UpdatesEvent("answers", sensitivity=1.0, scale=100.0, count=10)
    >>> float(event.renyi(np.array([2.0]))[0].round(5))  # about two pure releases a step
    0.00203
    """

    kind: ClassVar[str] = "updates"
    adds: ClassVar[Addition | None] = "laws"
    most: ClassVar[int] = 64

    def renyi(self, orders: FloatArray) -> FloatArray:
        """Count * log(1 + (x + y - 1) / (1 - x)) / (alpha - 1), inf where x >= 1."""
        e, a = self.sensitivity / self.scale, orders - 1
        log_x = a * e - math.log1p(math.exp(-e))
        finite = log_x < 0
        half = np.where(finite, a * e / 2, 0.0)
        excess = 2 * np.sinh(half) * (np.sinh(half) + math.tanh(e / 2) * np.cosh(half))
        room = -np.expm1(np.where(finite, log_x, -1.0))
        return np.where(finite, self.count * np.log1p(excess / room) / a, math.inf)
