"""Model folders and ledgers that an earlier tree has written are read, and say what they said.

``python -m tools.older_files write tests/data/older_files --small`` wrote them. They are not to be
written anew when a test fails: people have such files, and must be able to go on reading them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dpadapt
from dpadapt import baselines
from dpadapt.privacy import Ledger, LedgerError, Private
from tools.bits_fits import SOLVERS, sample
from tools.older_files import EXPECTED, read_ledger, read_model, unequal

FOLDER = Path(__file__).parent / "data" / "older_files"
WRITTEN = json.loads((FOLDER / EXPECTED).read_text(encoding="utf-8"))
LEDGER = FOLDER / "ledgers" / "budget.db"
KINDS = {
    *("bounded-range", "discrete-gaussian", "draws", "gaussian", "laplace", "one-draw-gaussian"),
    *("parallel", "poisson-gaussian", "pure", "random-stopping", "updates"),
}


@pytest.mark.parametrize("name", sorted(WRITTEN["models"]))
def test_a_model_says_what_it_said(name):
    one = WRITTEN["models"][name]
    told = read_model(FOLDER / "models" / name, WRITTEN["tables"][one["rows"]])
    assert list(unequal(name, told, one["told"])) == []


def test_a_ledger_says_what_it_said():
    assert list(unequal("budget", read_ledger(LEDGER), WRITTEN["ledgers"]["budget.db"])) == []


def test_a_ledger_is_charged_on_where_it_was_adopted(tmp_path):
    ledger = Ledger(shutil.copy(LEDGER, tmp_path))
    with pytest.raises(LedgerError, match="adopt"):
        ledger.account("fits").spent()
    ledger.adopt()
    account = ledger.account("fits")
    before, number = account.spent(), account.number()
    model = baselines.AdaSSPRegressor(epsilon=0.1, delta=1e-6, ledger=account)
    model.fit(*sample("regression", 60, 0), private=Private(*sample("regression", 200, 2)))
    assert account.number() == number + 1
    assert account.spent() > before
    ledger.check()


def test_there_is_a_folder_of_every_estimator_and_solver_and_a_charge_of_every_kind():
    names = " ".join(WRITTEN["models"])
    public = {name for name in dpadapt.__all__ if hasattr(getattr(dpadapt, name), "fit")}
    private = {name for name in baselines.__all__ if "NonPrivate" not in name and name[:3] != "KMM"}
    stored = {name for name in private if name.endswith(("Regressor", "Classifier"))}
    stored.discard("DiscrepancyMinimisationRegressor")  # a yardstick, as those of kernel means
    for name in (public | stored) - {"InteractivePredictor"}:  # which is never stored
        assert f"{name}" in names, name
    for estimator, (option, values) in SOLVERS.items():
        assert all(f"{estimator}-{option}-{value}" in names for value in values), estimator
    assert WRITTEN["ledgers"]["budget.db"].keys() >= KINDS
