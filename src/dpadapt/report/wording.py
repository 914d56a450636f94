"""Plain words for what the numbers mean."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["MECHANISMS", "NOISE", "RELATIONS", "number", "short", "strength"]

MECHANISMS = {
    "gaussian": "Gaussian noise",
    "discrete-gaussian": "discrete Gaussian noise",
    "laplace": "Laplace noise",
    "pure": "randomised answer",
    "bounded-range": "noisy choice (exponential mechanism)",
    "poisson-gaussian": "Gaussian noise on random samples of the rows",
    "parallel": "releases on separate parts of the rows",
    "random-stopping": "best of a secret, random number of runs",
}

RELATIONS = {
    "replace-one": "The guarantee compares the private sample with any other that differs in one "
    "row: one person's row replaced by any other row. The number of rows is the same in both, and "
    "counts as public.",
    "add-remove": "The guarantee compares the private sample with any other that has one row more "
    "or less: one person's row added or taken away.",
}

NOISE = {
    "secure": "a cryptographic random generator, keyed by the operating system",
    "seeded": "a generator with a known seed: for tests only. Whoever knows the seed can take the "
    "noise away again",
    "exact": "exact discrete noise (OpenDP), safe against floating-point attacks",
    "none": "none was needed",
    "several": "several sources",
}

_STRENGTHS = (
    (0.1, "very strong: what comes out hardly depends on any one person"),
    (1.0, "strong"),
    (3.0, "moderate"),
    (10.0, "weak: defensible only together with other safeguards"),
    (math.inf, "very weak: little more than a formality"),
)


def strength(epsilon: float) -> str:
    """Usual reading of an epsilon in words; a convention, not a theorem.

    Examples
    --------
    >>> strength(1.0)
    'strong'
    """
    return next(words for limit, words in _STRENGTHS if epsilon <= limit * (1 + 1e-9))


def number(value: Any) -> str:
    """A number as people write it; a dash for none.

    Examples
    --------
    >>> number(19983), number(0.00318934), number(None)
    ('19,983', '0.003189', '–')
    """
    if value is None:
        return "–"
    whole = float(value).is_integer() and abs(value) < 1e15
    return f"{int(value):,}" if whole else f"{float(value):.4g}"


def short(value: float) -> str:
    """Three to four significant digits.

    Examples
    --------
    >>> short(1e-6), short(0.99999999)
    ('1e-06', '1')
    """
    return f"{value:.4g}"
