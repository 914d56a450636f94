"""Seeded fits, as they were before the core got one door: the numbers stay what they were.

Forty rows were recorded at 5702064; nineteen changed when rows with a label were counted in the
plan. The others, with every estimator and every solver, were recorded at bf11a46. A row with a
place is a combination of the audit's catalogue, on tables so small that little private is heard;
a row without is a fit of ``tools.bits_fits`` to a larger one. A row may change only with a reason
in the changelog. ``python tests/test_recorded_fits.py`` lists the rows that changed, and records
those that have no numbers yet.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpadapt
from dpadapt import baselines
from dpadapt.audit.library import combinations, public_sample
from dpadapt.audit.replaying import sample_of
from tools.bits_fits import SOLVERS, all_fits

FILE = Path(__file__).parent / "recorded_fits.json"
TABLE = json.loads(FILE.read_text(encoding="utf-8"))
FITS = combinations()  # new ones come last
LARGER = all_fits()
SLOW = ("ParityLearner", "SGDLearner(steps", "KernelRegressor, method='sparse")


def numbers(model, task):
    """Predictions, probabilities, coefficients, epsilon and how many events there were."""
    if isinstance(model, list):  # answers of a predictor that was asked
        return [float(each) for answers in model[:2] for each in np.ravel(answers)]
    X = public_sample("two classes" if task == "agents" else task)[0][:6]
    found = [np.ravel(model.predict(X))]
    if hasattr(model, "predict_proba"):
        found.append(np.ravel(model.predict_proba(X)))
    if hasattr(model, "coef_"):
        found.append(np.ravel(model.coef_))
    found.append([model.guarantee_.epsilon, len(model.guarantee_.events)])
    return [float(each) for part in found for each in part]


def larger(parts):
    """The same of what a larger fit has found: of its first rows."""
    names = ("predict", "predict_proba", "decision_function", "coef_", "weights")
    found = [np.ravel(np.asarray(parts[name])[:4])[:12] for name in names if name in parts]
    if "guarantee" in parts:
        found.append([parts["guarantee"]["epsilon"], len(parts["guarantee"]["events"])])
    return [float(each) for part in found for each in part]


def fitted(row):
    if row["place"] is None:
        return larger(LARGER[row["name"]]())
    one = FITS[row["place"]]
    assert one.name == row["name"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = one.fit(sample_of(one.task, np.random.default_rng(11)))
    return numbers(model, one.task)


def test_the_table_has_every_estimator_and_every_solver():
    names = {row["name"].partition("(")[0].partition(" |")[0] for row in TABLE}
    names = {name.removeprefix("yardstick ") for name in names}
    public = {name for name in dpadapt.__all__ if hasattr(getattr(dpadapt, name), "fit")}
    others = {name for name in baselines.__all__ if hasattr(getattr(baselines, name), "fit")}
    assert (public | others) - names == {"AdaptationPipeline"}  # its fits are those of its parts
    every = " ".join(row["name"] for row in TABLE if row["place"] is None)
    for estimator, (option, values) in SOLVERS.items():
        assert all(f"{estimator}({option}={value!r})" in every for value in values), estimator
    assert len(TABLE) >= 138


def case(row):
    marks = [pytest.mark.slow] if any(each in row["name"] for each in SLOW) else []
    return pytest.param(row, id=f"{row['place']} {row['name']}"[:120], marks=marks)


@pytest.mark.parametrize("row", [case(row) for row in TABLE])
def test_a_fit_is_what_it_was(row):
    np.testing.assert_allclose(fitted(row), row["numbers"], rtol=1e-7, atol=1e-9)


def main():
    """List the rows that changed, and write the numbers of those that have none."""
    for row in TABLE:
        found = fitted(row)
        if not np.allclose(row.setdefault("numbers", found), found, rtol=1e-7, atol=1e-9):
            print(f"{row['place']} {row['name']}: {row['numbers']} is now {found}")
    lines = ",\n".join(json.dumps(row) for row in TABLE)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
