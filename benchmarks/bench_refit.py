"""A second month: what a refit costs by the ledger, and what it gains on people of that month.

    python -m benchmarks.bench_refit [draws]

Public are men of 40 and over. The private people of the first month are women of the South, those
of the second women of the West, among whom 1,500 who were there before or nobody. Errors are mean
squares on women of the West whom no fit has seen, one draw of noise each.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from dpadapt import AutoRegressor, Private
from dpadapt.datasets import load_wages
from dpadapt.privacy import Ledger

ROWS = 3000


def months(seed: int) -> dict[str, pd.DataFrame]:
    """Public rows, two months, and people of the second whom nobody has seen."""
    people = load_wages().sample(frac=1.0, random_state=seed)
    men = people[(people["gender"] == "male") & (people["age"] >= 40)]
    women = people[people["gender"] == "female"].drop(columns="gender")
    south, west = (women[women["region"] == name] for name in ("South", "West"))
    return {
        "public": men.drop(columns="gender").head(2000),
        "first": south.head(ROWS),
        "second": west.head(ROWS),
        "half": pd.concat([south.head(ROWS // 2), west.head(ROWS // 2)]),
        "unseen": west.iloc[ROWS:],
    }


def fit(public: pd.DataFrame, rows: pd.DataFrame, ledger: Ledger, name: str) -> AutoRegressor:
    """A fit that is charged to a data set."""
    account = ledger.account(name)
    model = AutoRegressor(epsilon=1.0, delta=1e-6, ledger=account)
    sample = Private(rows.drop(columns="earnings"), rows["earnings"])
    return model.fit(public.drop(columns="earnings"), public["earnings"], private=sample)


def error(model: AutoRegressor, rows: pd.DataFrame) -> float:
    """Mean square error."""
    guess = model.predict(rows.drop(columns="earnings"))
    return float(np.mean((guess - rows["earnings"]) ** 2))


def one_draw(seed: int) -> dict[str, tuple[float, float]]:
    """Error, and what the data set has spent, of each way to the second month's model."""
    tables, found = months(seed), {}
    public, first = tables["public"], tables["first"]
    second = {
        "refit, other people": (tables["second"], False),
        "refit, half were there before": (tables["half"], True),
        "refit on both files": (pd.concat([first, tables["second"]]), True),
    }
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "budget.db")
        account = ledger.create("first", epsilon=10.0, delta=1e-6)
        kept = fit(public, first, ledger, "first")
        found["first month's model, kept"] = (error(kept, tables["unseen"]), account.spent())
        for name, (rows, again) in second.items():
            account = ledger.create(name, epsilon=10.0, delta=1e-6)
            if again:  # the first fit, of the same people
                account.charge(kept.guarantee_.events, "first month")
            model = fit(public, rows, ledger, name)
            found[name] = (error(model, tables["unseen"]), account.spent())
    return found


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("draws", type=int, nargs="?", default=5)
    draws = [one_draw(seed) for seed in range(parser.parse_args().draws)]
    kept = np.array([each["first month's model, kept"][0] for each in draws])
    for what in draws[0]:
        errors, spent = np.array([each[what] for each in draws]).T
        gain = kept - errors
        spread = gain.std(ddof=1) / len(gain) ** 0.5
        print(
            f"{what}: error {errors.mean():.1f}, better than kept by {gain.mean():.1f} "
            f"(standard error {spread:.1f}), spent {spent.mean():.3f}"
        )


if __name__ == "__main__":
    main()
