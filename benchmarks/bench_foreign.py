"""What it costs that code of others sees one private row at a time, as ratios to one call on all.

Run ``python benchmarks/bench_foreign.py``; ``--rows 2000`` for more private rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

from dpadapt.privacy import Cleaning
from dpadapt.privacy.rows.foreign import apply, apply_to_pairs
from dpadapt.privacy.rows.row_wise import row_wise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500)
    rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    public, private = rng.normal(size=(3000, 20)), rng.normal(size=(rows, 20))
    public[rng.random(public.shape) < 0.05] = np.nan
    private[rng.random(private.shape) < 0.05] = np.nan
    whole = np.nan_to_num(private)
    names = [f"x{i}" for i in range(20)]
    frames = [
        pd.DataFrame(X, columns=names).assign(town=rng.choice(list("abc"), len(X)))
        for X in (public, private)
    ]
    usual = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), names),
        (OneHotEncoder(handle_unknown="ignore"), ["town"]),
    ).fit(frames[0])
    y = np.nan_to_num(public)[:, 0]
    ways: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "scalers and one-hot (a frame)": (usual.transform, frames[1]),
        "KNNImputer": (KNNImputer().fit(public).transform, private),
        "IterativeImputer": (IterativeImputer(max_iter=3).fit(public).transform, private),
        "QuantileTransformer": (QuantileTransformer().fit(public).transform, whole),
        "RandomForestRegressor": (
            RandomForestRegressor(50).fit(np.nan_to_num(public), y).predict,
            whole,
        ),
        "a function of one's own": (lambda X: np.tanh(X), whole),
    }
    print(f"{rows} private rows, 20 columns; CPU time\n")
    print("| map | sees | ms a row | ratio to one call |")
    print("|---|---|---|---|")
    for name, (function, table) in ways.items():
        once = _seconds(lambda f=function, t=table: f(t.copy()))  # type: ignore[misc]
        ours = _seconds(lambda f=function, t=table: apply(f, (t,), rows, _dense))  # type: ignore[misc]
        sees = "blocks" if row_wise(function) else "one row"
        print(f"| {name} | {sees} | {1e3 * ours / rows:.3f} | {ours / once:,.1f} |")
    few = whole[: min(rows, 300)]
    once = _seconds(lambda: _inner(few, few))
    ours = _seconds(lambda: apply_to_pairs(_inner, few, few, lambda values, shape: values))
    pairs = len(few) * (len(few) + 1) // 2
    cost = f"{1e3 * ours / pairs:.3f} (a pair)"
    print(f"| a kernel of one's own | one pair | {cost} | {ours / once:,.1f} |")
    _networks(whole)


def _networks(X: Any) -> None:
    """Gradients of a network for each row; one call is the block under ``vmap``."""
    try:
        import torch
    except ImportError:
        return
    from dpadapt.reweighting.queries import NetworkGradient
    from dpadapt.reweighting.torch_module import flat

    class Own(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, rows: Any) -> Any:
            return self.inner(rows)

    torch.set_num_threads(1)
    layers = [torch.nn.Linear(20, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)]
    module, y = torch.nn.Sequential(*layers), (X[:, 0] > 0).astype(float)
    once = 0.0
    for name, sees, each in (
        ("a network of known layers, a gradient", "blocks", module),
        ("a network of one's own, a gradient", "one row", Own(module)),
    ):
        query = NetworkGradient(Cleaning(5.0, classes=2), each, flat(each), clip=1.0)
        query.block(X[:2], y[:2])
        ours = _seconds(lambda q=query: q.block(X, y))  # type: ignore[misc]
        once = once or ours
        print(f"| {name} | {sees} | {1e3 * ours / len(X):.3f} | {ours / once:,.1f} |")


def _inner(A: Any, B: Any) -> Any:
    return A @ B.T


def _dense(found: Any, rows: int) -> tuple[Any]:
    return (np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=float),)


def _seconds(run: Callable[[], Any]) -> float:
    """The least of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return max(min(times), 1e-9)


if __name__ == "__main__":
    main()
