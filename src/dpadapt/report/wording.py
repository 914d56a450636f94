"""Plain words for what the numbers mean."""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "MECHANISMS",
    "NOISE",
    "RADII",
    "RELATIONS",
    "SOLVERS",
    "number",
    "one_line",
    "percent",
    "short",
    "strength",
]

_LONGEST_NAME = 40

MECHANISMS = {
    "gaussian": "Gaussian noise",
    "discrete-gaussian": "discrete Gaussian noise",
    "laplace": "Laplace noise",
    "pure": "randomised answer",
    "bounded-range": "noisy choice (exponential mechanism)",
    "poisson-gaussian": "Gaussian noise on random samples of the rows",
    "parallel": "releases on separate parts of the rows",
    "one-draw-gaussian": "Gaussian noise on the gradient of one drawn row at a time",
    "draws": "a private learner on randomly drawn rows",
    "random-stopping": "best of a secret, random number of runs",
}

RELATIONS = {
    "replace-one": "The guarantee compares the private sample with any other that differs in one "
    "row: one person's row replaced by any other row. The number of rows is the same in both, and "
    "counts as public.",
    "add-remove": "The guarantee compares the private sample with any other that has one row more "
    "or less: one person's row added or taken away. The number of private rows is a secret.",
}

RADII = {
    "given": "set by whoever fitted the model",
    "longest": "the longest public row, after scaling by public means and standard deviations",
    "quantile": "longer than 99 % of the public rows, after scaling by public means and standard "
    "deviations",
    "far": "a million times as long as public rows: it only keeps numbers finite. What one row "
    "can do is bounded in the release itself, see its sensitivity",
    "direction": "by construction: rows enter as directions from a public centre, of length 1",
}

SOLVERS = {
    "gradient": "the gradient descent of Bassily, Cortes, Mao and Mohri (2023), which weighs rows "
    "as it goes",
    "profiled": "noisy gradient descent with the weights of rows in closed form",
    "statistics": "least squares on one noisy matrix of moments",
    "known-noise": "noisy gradient descent from the model of the public rows",
    "mixing known-noise": "descent on the private loss, as far as the known noise allows",
    "mixing adamix": "AdaMix (Golatkar et al. 2022, Algorithm 2): noisy gradient descent in which "
    "public examples set the clip and join the sums",
    "mixing theory": "AdaMix as its theorems have it (Golatkar et al. 2022, Algorithm 3): noisy "
    "gradient descent that is held near the public model",
    "hybrid tilt": "noisy descent on the curator's rows, weighted to look like the agents, and by "
    "the agents' own gradients",
    "subsample-test-reweigh": "the method of Kohen and Sheffet (2022): a rule from the curator's "
    "weighted rows, a test by agents, new weights, until a rule passes",
    "noisy gradient descent": "noisy gradient descent (Golatkar et al. 2022, Algorithm 1)",
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


def percent(share: float) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.1234), percent(1.0)
    ('12.3 %', '100 %')
    """
    return f"{100 * share:.0f} %" if share in (0, 1) else f"{100 * share:.1f} %"


def one_line(text: Any) -> str:
    r"""Text on one line, not too long.

    Examples
    --------
    >>> one_line("two \n  words"), len(one_line("w" * 500))
    ('two words', 40)
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"
