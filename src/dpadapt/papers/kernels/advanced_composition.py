"""Advanced composition as the paper prints it: what one of many pure releases may cost."""

from __future__ import annotations

import math

from scipy.optimize import brentq

from dpadapt import _validate as validate

__all__ = ["composed_epsilon"]


def composed_epsilon(count: int, epsilon: float, delta: float) -> float:
    """e_0 of which ``count`` fit into (epsilon, delta) by advanced composition.

    Solves sqrt(2 T ln(1/delta)) e_0 + T e_0 (exp(e_0) - 1) = epsilon (Dwork, Rothblum, Vadhan 2010;
    Theorem 11 of the paper), from below.

    Examples
    --------
    >>> round(math.sqrt(2) / composed_epsilon(100, 0.1, 1e-6))  # noise in units of S
    746
    """
    validate.count("count", count)
    linear = math.sqrt(2 * count * -math.log(validate.delta(delta)))

    def excess(e: float) -> float:
        return linear * e + count * e * math.expm1(e) - epsilon

    high = validate.epsilon(epsilon) / linear
    return float(brentq(excess, 0.0, high, rtol=1e-12, xtol=1e-300)) * (1 - 1e-11)
