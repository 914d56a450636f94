"""Evaluations of models whose true errors are known: intervals, verdicts, and what was announced.

    python benchmarks/bench_evaluation.py --repeats 200 --epsilon 1

Six tables, made up and real (scikit-learn's and the bundled wages), with 50 to 5,000 private rows.
A model is fitted to one half of a table; the other half is the population: private rows are drawn
from it with replacement, so that the truth is known. Models that are compared with it answer as it
does but on some rows, picked at random once, where they answer otherwise (classes: the next one;
numbers: moved). "alike": both are changed so, on different rows, and are about equally good.
"twice": the other one is so much worse that the true difference of the first measure is twice the
limit that was announced for it; there is none if no model is as bad as that. "real": the other one
is a model of 40 rows. A verdict is wrong if its sign is, and in any case if the true difference is
below a tenth of the limit.

Printed for each table and case: how often 95 % intervals held the truth (of the model and of the
difference; the least and the most of all measures), the limit and the true difference of the first
measure, how often that measure had a verdict and how often a wrong one, and the same for all other
measures together (verdicts where the truth is at least twice the limit; wrong ones of all). Errors
of numbers are in units of the standard deviation of the public labels.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpadapt import Private, evaluate
from dpadapt.evaluation import outlook
from dpadapt.privacy.rows import foreign, views

for module in (foreign, views):  # models of this file look rows up: blocks are as good as rows
    module.row_wise = lambda function: True

DELTA = 1e-6


@dataclass(frozen=True)
class Table:
    """Rows and labels, and how many private rows are drawn."""

    name: str
    X: Any
    y: Any
    rows: int
    classes: bool


def made_up(rare: float, seed: int, n: int = 40_000) -> tuple[Any, Any]:
    """Two classes, one of which is so rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X @ [1.5, -1.0, 0.5, 0.0] + rng.logistic(size=n)
    return X, (scores > np.quantile(scores, 1 - rare)).astype(int)


def wages() -> tuple[Any, Any]:
    """Log earnings by age and education."""
    import pandas as pd

    from dpadapt.datasets import load_wages

    table = load_wages()
    features = pd.get_dummies(table.drop(columns="earnings")).to_numpy(dtype=float)
    return np.nan_to_num(features), np.log(table["earnings"].to_numpy())


def tables() -> list[Table]:
    """All six."""
    load = {"return_X_y": True}
    return [
        Table("made up, 30 %", *made_up(0.3, 1), 50, classes=True),
        Table("diabetes", *datasets.load_diabetes(**load), 200, classes=False),
        Table("breast cancer", *datasets.load_breast_cancer(**load), 500, classes=True),
        Table("digits", *datasets.load_digits(**load), 1000, classes=True),
        Table("wages", *wages(), 2000, classes=False),
        Table("made up, 5 %", *made_up(0.05, 2), 5000, classes=True),
    ]


class Known:
    """A model that has its answers by heart: a row is its number. Models are asked row by row."""

    def __init__(self, answers: Any, classes: Any) -> None:
        self.answers = answers
        if classes is not None:
            self.classes_ = classes

    def predict(self, X: Any) -> Any:
        """Classes or numbers."""
        return self.answers[np.asarray(X)[:, 0].astype(int)]

    def changed(self, picked: Any, by: float) -> Known:
        """The same model but on some rows, where it answers otherwise."""
        classes = getattr(self, "classes_", None)
        if classes is None:
            return Known(self.answers + by * picked, None)
        following = classes[(np.searchsorted(classes, self.answers) + 1) % len(classes)]
        return Known(np.where(picked, following, self.answers), classes)


def truths(model: Any, X: Any, y: Any, bounds: dict[str, Any]) -> dict[str, float]:
    """Measures without noise, as an evaluation names them."""
    if bounds:
        low, high = bounds["label_range"]
        errors = np.abs(np.clip(model.predict(X), low, high) - np.clip(y, low, high))
        errors = np.minimum(errors, bounds["largest_error"])
        return {"mae": errors.mean(), "mse": (errors**2).mean()}
    answers, classes = model.predict(X), model.classes_
    recall = {c: (answers[y == c] == c).mean() for c in classes}
    found = {"accuracy": (answers == y).mean(), "balanced_accuracy": np.mean([*recall.values()])}
    found |= {f"recall of {c}": each for c, each in recall.items()}
    named = {c: answers == c for c in classes}
    found |= {f"precision of {c}": (y[named[c]] == c).mean() for c in classes if named[c].any()}
    return found


@dataclass
class Pair:
    """Two models, what is known of them in public, and the truth."""

    model: Any
    baseline: Any
    public: tuple[Any, Any]
    people: tuple[Any, Any]
    options: dict[str, Any]
    bounds: dict[str, Any]

    def limits(self, rows: int) -> dict[str, float]:
        """What is announced."""
        private = Private(self.people[0][:1].repeat(rows, axis=0), self.people[1][:1].repeat(rows))
        told = outlook(self.model, private, **self._asked())
        return {name: each.limit for name, each in told.limits.items()}

    def differences(self) -> dict[str, float]:
        """Model minus baseline, in truth."""
        one, two = self.truths()
        return {name: one[name] - two[name] for name in one if name in two}

    def truths(self) -> tuple[dict[str, float], dict[str, float]]:
        """Of both models."""
        one, two = (truths(m, *self.people, self.bounds) for m in (self.model, self.baseline))
        return one, two

    def evaluated(self, rows: int, seed: int) -> Any:
        """One evaluation, on new rows."""
        rng = np.random.default_rng([rows, seed])
        drawn = rng.integers(0, len(self.people[0]), rows)
        private = Private(self.people[0][drawn], self.people[1][drawn])
        return evaluate(self.model, private, **self._asked(), noise="seeded", random_state=seed)

    def _asked(self) -> dict[str, Any]:
        return {"baseline": self.baseline, "public": self.public, **self.options, **self.bounds}


def halves(table: Table) -> tuple[Any, Any]:
    """Numbers of public rows, and of the population of private ones."""
    order = np.random.default_rng(0).permutation(len(table.X))
    cut = min(len(order) // 2, 1500)
    return order[:cut], order[cut:]


def pairs(table: Table, epsilon: float) -> dict[str, Pair | None]:
    """Cases of a table, by name; None where there is none."""
    first, rest = halves(table)
    kind = LogisticRegression(max_iter=2000) if table.classes else Ridge()
    fits = [
        make_pipeline(StandardScaler(), clone(kind)).fit(table.X[part], table.y[part])
        for part in (first, first[:40])
    ]
    classes = np.unique(table.y) if table.classes else None
    model, few = (Known(fit.predict(table.X), classes) for fit in fits)
    public, people = ((part[:, None].astype(float), table.y[part]) for part in (first, rest))
    hashed = np.random.default_rng(1).random(len(table.X))
    options: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
    bounds: dict[str, Any] = {}
    if table.classes:
        names = ("accuracy", "balanced_accuracy", "recall")
        options["metrics"] = (*names, "precision") if len(np.unique(table.y)) == 2 else names
    else:
        far = np.abs(public[1] - public[1].mean())
        span = float(public[1].min()), float(public[1].max())
        bounds = {"label_range": span, "largest_error": float(np.quantile(far, 0.995))}
        options["metrics"] = ("mae", "mse")
    by = float(public[1].std()) if bounds else 0.0

    def pair(one: Any, two: Any) -> Pair:
        return Pair(one, two, public, people, options, bounds)

    def worse(share: float) -> Pair:
        return pair(model, model.changed(hashed < share, 3 * by))

    def gap(case: Pair) -> float:
        first = options["metrics"][0]
        return abs(case.differences()[first]) - 2 * case.limits(table.rows)[first]

    other = (hashed >= 0.05) & (hashed < 0.1)
    alike = pair(model.changed(hashed < 0.05, by), model.changed(other, by))
    cases: dict[str, Pair | None] = {"alike": alike, "twice": None}
    low, high = 0.0, 1.0
    if gap(worse(high)) > 0:
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if gap(worse(middle)) > 0 else (middle, high)
        cases["twice"] = worse(high)
    cases["real"] = pair(model, few)
    return cases


def measured(case: Pair, rows: int, repeats: int) -> dict[str, Any]:
    """Count over repeats."""
    one, two = case.truths()
    true, limits = case.differences(), case.limits(rows)
    first = next(iter(limits))
    held: Counter[tuple[str, str]] = Counter()
    verdicts: Counter[tuple[str, str]] = Counter()
    for seed in range(repeats):
        for name, each in case.evaluated(rows, seed).measures.items():
            if name not in true:
                continue
            values = {"model": one[name], "baseline": two[name], "difference": true[name]}
            for side, value in values.items():
                interval = getattr(each, side)
                held[name, side] += interval.low - 1e-12 <= value <= interval.high + 1e-12
            if each.verdict == "no verdict":
                continue
            gain = true[name] if each.larger else -true[name]
            none = abs(gain) < 0.1 * limits[name]
            right = not none and (each.verdict == "better") == (gain > 0)
            verdicts[name, "right" if right else "wrong"] += 1
    others = [name for name in limits if name != first and name in true]
    seen = [name for name in others if abs(true[name]) >= 2 * limits[name]]
    every = [first, *others]
    return {
        "model": [held[name, side] / repeats for name in every for side in ("model", "baseline")],
        "difference": [held[name, "difference"] / repeats for name in every],
        "limit": limits[first],
        "truth": true[first],
        "given": sum(verdicts[first, how] for how in ("right", "wrong")) / repeats,
        "wrong": verdicts[first, "wrong"] / repeats,
        "others seen": [verdicts[name, "right"] / repeats for name in seen],
        "others wrong": max((verdicts[name, "wrong"] / repeats for name in others), default=0.0),
    }


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, nargs="*", help="instead of each table's own")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| table | rows | case | model | difference | limit | truth | verdict | wrong | others "
        "seen | others wrong |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for table in tables():
        for rows in given.rows or [table.rows]:
            own = Table(table.name, table.X, table.y, rows, table.classes)
            unit = 1.0 if table.classes else float(np.std(table.y[halves(own)[0]]))
            for name, case in pairs(own, given.epsilon).items():
                start = f"| {table.name} | {rows:,} | {name} |"
                if case is None:
                    print(f"{start} – | – | – | – | – | – | – | – |", flush=True)
                    continue
                found = measured(case, rows, given.repeats)
                seen = found["others seen"]
                cells = [
                    *(
                        f"{100 * min(found[key]):.1f} to {100 * max(found[key]):.1f} %"
                        for key in ("model", "difference")
                    ),
                    f"{found['limit'] / unit:.3f}",
                    f"{found['truth'] / unit:+.3f}",
                    f"{100 * found['given']:.1f} %",
                    f"{100 * found['wrong']:.1f} %",
                    f"{100 * min(seen):.1f} % ({len(seen)})" if seen else "–",
                    f"{100 * found['others wrong']:.1f} %",
                ]
                print(f"{start} {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
