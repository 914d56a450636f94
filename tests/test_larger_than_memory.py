"""Which estimators read private Parquet files in blocks, as README.md says, and which hold all.

A statistic is a sum over blocks of rows, of which a session keeps what fits into a quarter of the
memory, and the rest in a file; or it is the table of all rows (``Rows``), or of kernel values of
all rows (``Gram``).
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from dpadapt import (
    AdaMixClassifier,
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    KernelClassifier,
    KernelRegressor,
    NoisyGDClassifier,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
    baselines,
)
from dpadapt.privacy import Session
from dpadapt.privacy.core.statistic import Rows
from dpadapt.privacy.statistics import Gram
from dpadapt.reweighting import ConvexGradient, GeneralGradient, Profiled, Statistics

ROWS, COLUMNS = 300, 3
NAMES = [f"x{place}" for place in range(COLUMNS)]
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
IN_BLOCKS = {
    "auto regression": AutoRegressor(**BUDGET, experts=["linear"]),
    "auto classes": AutoClassifier(**BUDGET, experts=["linear"]),
    "reweighting regression": ReweightingRegressor(**BUDGET),
    "reweighting classes": ReweightingClassifier(**BUDGET),
    "profiled": ReweightingRegressor(**BUDGET, solver=Profiled(steps=3)),
    "statistics": ReweightingRegressor(**BUDGET, solver=Statistics()),
    "discrepancy": DiscrepancyRegressor(**BUDGET),
    "frank-wolfe": DiscrepancyRegressor(**BUDGET, solver="frank-wolfe"),
    "adamix": AdaMixClassifier(**BUDGET, steps=3),
    "noisy gd": NoisyGDClassifier(**BUDGET, steps=3),
    "adassp": baselines.AdaSSPRegressor(**BUDGET),
    "noisy gradient": baselines.NoisyGradientRegressor(**BUDGET, steps=3),
}
ALL_AT_ONCE = {
    "kernel regression": KernelRegressor(**BUDGET),
    "kernel classes": KernelClassifier(**BUDGET),
    "convex gradient": ReweightingRegressor(**BUDGET, solver=ConvexGradient(steps=3)),
    "general gradient": ReweightingClassifier(**BUDGET, solver=GeneralGradient(steps=3)),
    "objective perturbation": baselines.ObjectivePerturbationRegressor(**BUDGET),
}


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    paths = []
    for number in range(6):
        X = rng.normal(size=(ROWS // 6, COLUMNS))
        table = pd.DataFrame(X, columns=NAMES)
        table["y"] = (X[:, 0] > 0).astype(float)
        paths.append(tmp_path / f"{number}.parquet")
        table.to_parquet(paths[-1], row_group_size=1000)
    return paths


def holds_all(model, files, monkeypatch):
    """Whether a fit asks for all rows at once."""
    asked, hide = [], Session.hide

    def watched(self, statistic, *given, **more):
        asked.append(type(statistic))
        return hide(self, statistic, *given, **more)

    monkeypatch.setattr(Session, "hide", watched)
    X = np.random.default_rng(1).normal(size=(60, COLUMNS))
    public = pd.DataFrame(X, columns=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            public, (X[:, 0] > 0).astype(float), private=Private.from_parquet(files, label="y")
        )
    assert asked
    return any(issubclass(kind, Rows | Gram) for kind in asked)


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_private_rows_are_read_in_blocks(name, files, monkeypatch):
    assert not holds_all(IN_BLOCKS[name], files, monkeypatch)


@pytest.mark.parametrize("name", ALL_AT_ONCE)
def test_these_hold_all_private_rows(name, files, monkeypatch):
    assert holds_all(ALL_AT_ONCE[name], files, monkeypatch)
