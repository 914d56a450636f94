"""Both estimators' defaults on the peers' tasks: gap closed, beside every peer.

    DPADAPT_PEERS=<folder of the peers' scripts> python benchmarks/bench_reweighting.py --jobs 2
    DPADAPT_PEERS=... python benchmarks/bench_reweighting.py --tasks r3_wind --seeds 1

Gap closed = (public-only - ours) / (public-only - non-private oracle), at equal (epsilon, delta);
the oracle is the better of private-only and pooled training. The tasks, splits, public-only and
oracle errors and the peers' own errors come from that folder (``tasks.py``, ``summary.csv``);
nothing of a task is tuned here. ``!`` marks a mean error significantly above public-only: paired t
over the splits beyond 2.78 (5%, two-sided, 4 degrees of freedom). -999 stands for that and less.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from dpadapt import Private, ReweightingClassifier, ReweightingRegressor

EPSILONS, DELTA = (0.25, 0.5, 1.0, 4.0), 1e-6
ORACLES = ("oracle_private_only", "oracle_pooled")
ASIDE = (*ORACLES, "public_only", "constant_nonprivate")


def peers_folder() -> Path:
    """The folder that DPADAPT_PEERS names."""
    folder = os.environ.get("DPADAPT_PEERS")
    if not folder or not (Path(folder) / "tasks.py").exists():
        sys.exit("Set DPADAPT_PEERS to the folder with the peers' tasks.py and summary.csv.")
    sys.path.insert(0, folder)
    return Path(folder)


def run(cell: tuple[str, str, int]) -> list[dict]:
    """All splits and budgets of one task, size and noise seed."""
    name, size, seed = cell
    peers_folder()
    import tasks

    warnings.simplefilter("ignore")
    task, found = tasks.TASKS[name](), []
    X, y = task["Xs"][:, :-1], task["ys"]  # the tasks' last column is a constant
    for split, pool, test in tasks.splits(task):
        if size != "all" and len(pool) <= int(size):
            continue
        rows = pool if size == "all" else pool[: int(size)]
        private = Private(task["Xt"][rows, :-1], task["yt"][rows])
        make = ReweightingRegressor if task["kind"] == "reg" else ReweightingClassifier
        for epsilon in EPSILONS:
            model = make(
                epsilon=epsilon, delta=DELTA, noise="seeded", random_state=1000 * seed + split
            ).fit(X, y, private=private)
            answer, truth = model.predict(task["Xt"][test, :-1]), task["yt"][test]
            error = (answer - truth) ** 2 if task["kind"] == "reg" else answer != truth
            line = {"task": name, "size": size, "n": len(rows), "epsilon": epsilon, "seed": seed}
            line |= {"split": split, "error": float(np.mean(error)), "share": model.share_}
            found.append(line)
    return found


def public_errors(name: str) -> dict[int, float]:
    """Error of the peers' public-only model, split by split."""
    import methods
    import tasks

    task = tasks.TASKS[name]()
    classes = int(task["ys"].max()) + 1 if task["kind"] == "cls" else 0
    model = methods.fit_plain(task["kind"], task["Xs"], task["ys"], classes)
    return {
        split: methods.score(task["kind"], model, task["Xt"][test], task["yt"][test])
        for split, _, test in tasks.splits(task)
    }


def gaps(ours: pd.DataFrame, peers: pd.DataFrame, public: dict[str, dict[int, float]]):
    """One line for each task, size and epsilon: ours and every peer, in % of the gap."""
    lines = []
    for (name, size, epsilon), cell in ours.groupby(["task", "size", "epsilon"], sort=False):
        here = peers[(peers.task == name) & (peers.n == cell.n.iloc[0])]
        oracle = here[here.method.isin(ORACLES)]["mean"].min()
        start = np.mean(list(public[name].values()))
        gap = start - oracle
        split = cell.groupby("split").error.mean()
        gain = np.array([public[name][place] for place in split.index]) - split.to_numpy()
        t = gain.mean() / max(gain.std(ddof=1) / np.sqrt(len(gain)), 1e-12)
        mean, noise = cell.error.mean(), cell.groupby("seed").error.mean().std()
        line = {"task": name, "size": size, "epsilon": epsilon, "public": start, "oracle": oracle}
        line |= {"ours": mean, "gap_closed": 100 * (start - mean) / gap, "sd": 100 * noise / gap}
        line |= {"worse": t < -2.78, "no_gap": gap < 0.01 * start}
        for _, peer in here[here.epsilon.eq(epsilon) & ~here.method.isin(ASIDE)].iterrows():
            line[peer.method] = 100 * (start - peer["mean"]) / gap
        lines.append(line)
    return pd.DataFrame(lines)


def show(table: pd.DataFrame) -> None:
    """Print the tables, and their medians and means."""
    known = ["task", "size", "epsilon", "public", "oracle", "ours", "gap_closed", "sd"]
    methods = [c for c in table.columns if c not in (*known, "worse", "no_gap")]
    for size, part in table.groupby("size", sort=False):
        print(f"\nn = {size}: gap closed, %, at epsilon {', '.join(map(str, EPSILONS))}")
        for name, cell in part.groupby("task", sort=False):
            cell = cell.set_index("epsilon")
            mine = " ".join(
                f"{cell.gap_closed[e]:6.0f}{'!' if cell.worse[e] else ' '}" for e in EPSILONS
            )
            note = "  (no gap)" if cell.no_gap.any() else ""
            print(
                f"{name:14s} public {cell.public.iloc[0]:.4f} oracle {cell.oracle.iloc[0]:.4f}"
                f" | ours {mine}{note}"
            )
            for method in methods:
                if cell[method].notna().any():
                    print(
                        f"{method:>45s} "
                        + " ".join(f"{max(cell[method][e], -999):7.0f}" for e in EPSILONS)
                    )
        some = part[~part.no_gap]
        for what in ("gap_closed", *methods):
            by = some.groupby("epsilon")[what]
            label = "ours" if what == "gap_closed" else what
            print(
                f"{label:20s} median "
                + " ".join(f"{max(by.median()[e], -999):7.0f}" for e in EPSILONS)
                + "   mean (a loss counts 100 at most) "
                + " ".join(f"{by.apply(lambda v: v.clip(-100).mean())[e]:6.0f}" for e in EPSILONS)
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", nargs="*", help="some of the tasks (default: all)")
    parser.add_argument("--seeds", type=int, default=4, help="noise seeds (default: 4)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--out", type=Path, help="also write every error to this CSV file")
    given = parser.parse_args()
    folder = peers_folder()
    import tasks

    names = given.tasks or list(tasks.TASKS)
    cells = [
        (n, size, seed) for n in names for size in ("all", "500") for seed in range(given.seeds)
    ]
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for place, found in enumerate(pool.map(run, cells), 1):
            rows += found
            print(f"\r{place}/{len(cells)}", end="", file=sys.stderr, flush=True)
    ours = pd.DataFrame(rows)
    if given.out is not None:
        ours.to_csv(given.out, index=False)
    peers = pd.read_csv(folder / "summary.csv").rename(columns={"eps": "epsilon"})
    show(gaps(ours, peers, {name: public_errors(name) for name in names}))


if __name__ == "__main__":
    main()
