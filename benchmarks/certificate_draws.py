"""How often certificates fail: 200 draws of two counter-examples, and of a case that they are for.

    python benchmarks/certificate_draws.py [draws]

The counter-examples are populations in which private labels are not what public rows suggest; a
bound that says nothing of labels is passed there in every draw.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np

from dpadapt import DiscrepancyRegressor, Private, ReweightingRegressor
from dpadapt.discrepancy import PrivateLabels

Sample = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded"}
M, N = 4000, 50_000


def coin(rng: np.random.Generator) -> Sample:
    """Public labels mostly on a plane, private ones a coin of -1 and 1."""
    X, T = rng.normal(size=(M, 3)), 0.9 * rng.normal(size=(N, 3))
    odd = np.where(rng.random(M) < 0.01, rng.choice([-1.0, 1.0], M), 0.0)
    return X, 0.02 * X[:, 0] + odd, T, rng.choice([-1.0, 1.0], N)


def corners(rng: np.random.Generator) -> Sample:
    """The same rule of labels in both populations, which are in other corners of the cube."""
    X, T = rng.choice([-1.0, 1.0], size=(M, 3)), rng.choice([-1.0, 1.0], size=(N, 2))
    T = np.column_stack([T, T.prod(axis=1)])
    y, t = (np.where(A.prod(axis=1) > 0, rng.choice([-1.0, 1.0], len(A)), 0.0) for A in (X, T))
    return X, y, T, t


def linear(rng: np.random.Generator) -> Sample:
    """One linear function, noise of at most 0.02, rows within the radius."""
    X, T = (rng.uniform(-1, 1, size=(size, 2)) for size in (M, N))
    T = T * [0.7, 1.0] + [0.3, 0.0]
    y, t = (A @ [0.5, -0.2] + 0.02 * rng.uniform(-1, 1, size=len(A)) for A in (X, T))
    return X, y, T, t


def count(draw: Callable[..., Sample], make: Callable[[int], object], draws: int) -> str:
    """Refused, granted, and failed: the true error is above the bound."""
    refused = failed = 0
    ratios = []
    for seed in range(draws):
        X, y, T, t = draw(np.random.default_rng(seed))
        model = make(seed)
        labels = () if isinstance(model, DiscrepancyRegressor) else (t,)
        try:
            model.fit(X, y, private=Private(T, *labels))
        except (TypeError, ValueError):
            refused += 1
            continue
        if model.certificate_ is None:  # coefficients beyond the norm bound
            continue
        true = float(np.mean((model.predict(T) - t) ** 2))
        failed += true > model.certificate_.bound
        ratios.append(model.certificate_.bound / true)
    loose = f", median bound / error {np.median(ratios):.3g}" if ratios else ""
    return f"refused {refused}, granted {len(ratios)}, failed {failed} of {draws}{loose}"


def main() -> None:
    """Print a line for each case and each statement."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    warnings.simplefilter("ignore")
    for draw, true in ((coin, 2.2), (corners, 2.2), (linear, 0.04)):
        for text, certificate in (
            ("nothing stated", True),
            ("eta_H = 0 stated", PrivateLabels((-1, 1), 0.0)),
            (f"truth stated ({true})", PrivateLabels((-1, 1), true)),
        ):

            def discrepancy(seed: int, stated: object = certificate) -> DiscrepancyRegressor:
                return DiscrepancyRegressor(
                    **BUDGET, random_state=seed, certificate=stated, radius=4.0
                )

            print(f"000 {draw.__name__:8} {text:22}", count(draw, discrepancy, draws), flush=True)

        def reweighting(seed: int) -> ReweightingRegressor:
            return ReweightingRegressor(
                **BUDGET, random_state=seed, certificate=True, label_range=(-2, 2)
            )

        print(f"001 {draw.__name__:8} {'range stated':22}", count(draw, reweighting, draws))


if __name__ == "__main__":
    main()
