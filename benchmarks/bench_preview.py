"""Does a preview tell what will happen? Gap closed as predicted from public rows, and as it was.

    DPADAPT_PEERS=<folder of the peers' scripts> python benchmarks/bench_preview.py --tasks r3_wind

For each task, number of private rows and epsilon: the share of the gap between the public start and
the best oracle that the preview predicts, reading public rows alone, and the share that
AutoRegressor or AutoClassifier closed on held-out private rows (one split, one draw). Below: rank
correlation and mean distance over all of them, shares cut to [-1, 1.5]: once with the gap that the
preview saw, and once ("at gap") with the real gap and the cost of privacy that the preview saw.
Both sides have the same public rows, at most ``--public`` of them.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from bench_auto import DELTA, KINDS, error, fits_once, load, oracles, splits
from dpadapt import Private
from dpadapt.preview import preview

LEAST_GAP, CUT = 0.02, (-1.0, 1.5)


def happened(task: dict, rows, test, epsilons, auto) -> dict[float, tuple[float, float]]:
    """Gap, as a part of the start's error, and its share closed at each epsilon."""
    kind = task["kind"]
    X, y, T, t = (task[each] for each in ("X", "y", "T", "t"))
    start = error(kind, auto(epsilon=1.0, delta=DELTA).fit(X, y), T[test], t[test])
    gap = start - min(oracles(task, rows, test).values())
    found = {}
    for epsilon in epsilons:
        model = auto(epsilon=epsilon, delta=DELTA, noise="seeded", random_state=0)
        model.fit(X, y, private=Private(T[rows], t[rows]))
        found[epsilon] = gap / start, (start - error(kind, model, T[test], t[test])) / gap
    return found


def measure(name: str, epsilons, sizes, most: int):
    """One line for each size and epsilon."""
    task = load(name)
    if task is None:
        return
    m = len(task["y"])
    some = np.sort(np.random.default_rng(0).permutation(m)[:most])
    task |= {"X": task["X"][some], "y": task["y"][some]}
    _, pool, test = next(splits(len(task["t"]), 1))
    auto = fits_once(KINDS[task["kind"]]["auto"], task["X"], task["y"])
    kind = {"reg": "regression", "cls": "classification"}[task["kind"]]
    for size in sizes:
        if size != "all" and int(size) >= len(pool):
            continue
        rows = pool if size == "all" else pool[: int(size)]
        seen = preview(
            task["X"], task["y"], rows=len(rows), epsilons=epsilons, delta=DELTA, task=kind
        )
        real = happened(task, rows, test, epsilons, auto)
        for line in seen.lines:
            gap, share = real[line.epsilon]
            fact = {"task": name, "n": len(rows), "epsilon": line.epsilon, "gap seen": seen.gap}
            fact |= {
                "gap": gap,
                "predicted": line.share,
                "at gap": 1 - line.cost / gap,
                "real": share,
            }
            print(
                {k: round(v, 3) if isinstance(v, float) else v for k, v in fact.items()}, flush=True
            )
            yield fact


def show(lines: pd.DataFrame) -> None:
    """All lines, and how well they agree."""
    print(lines.round(3).to_string(index=False))
    for name, told in (("predicted", "gap as seen"), ("at gap", "gap as it was, cost as seen")):
        both = lines[(lines["gap"] > LEAST_GAP) & lines[name].notna()]
        if len(both) < 3:
            continue
        pair = np.clip(both[[name, "real"]].to_numpy(), *CUT)
        rank = spearmanr(pair[:, 0], pair[:, 1]).statistic
        away = pair[:, 0] - pair[:, 1]
        print(
            f"{told}: {len(both)} of {len(lines)} lines, rank correlation {rank:.2f}, mean "
            f"distance {np.abs(away).mean():.2f}, predicted minus real {away.mean():+.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", nargs="+", required=True)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.25, 1.0, 4.0])
    parser.add_argument("--sizes", nargs="+", default=["500", "all"])
    parser.add_argument("--public", type=int, default=3000)
    parser.add_argument("--out", type=Path, help="also write every line to this CSV file")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: list[dict] = []
    for name in given.tasks:
        try:
            found += measure(name, given.epsilons, given.sizes, given.public)
        except ValueError as error:  # too few public rows to rehearse anything
            print(f"{name}: {error}", flush=True)
        if given.out is not None:
            pd.DataFrame(found).to_csv(given.out, index=False)
    if found:
        show(pd.DataFrame(found))


if __name__ == "__main__":
    main()
