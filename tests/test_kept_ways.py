"""A fit is the same to the last bit, whether rows are kept in memory, in a file, or read again."""

from __future__ import annotations

import hashlib
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpadapt import (
    AdaMixClassifier,
    AutoClassifier,
    AutoRegressor,
    DiscrepancyRegressor,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
)
from dpadapt.privacy import StorageError
from dpadapt.privacy.core.sample import Sample
from dpadapt.privacy.rows import sources
from dpadapt.privacy.rows.kept import Shelf
from dpadapt.privacy.rows.sources import ParquetRows
from tools.bits import entries

ROWS, NAMES, MOST_READS = 2000, ["a", "b", "c"], 5
BUDGET: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6, "noise": "seeded", "random_state": 0}
FITS = {
    "reweighting": ReweightingRegressor(**BUDGET | {"epsilon": 0.05}),  # a descent, no moment
    "reweighting classes": ReweightingClassifier(**BUDGET),
    "discrepancy": DiscrepancyRegressor(**BUDGET),
    "adamix": AdaMixClassifier(**BUDGET, steps=6),
    "auto": AutoRegressor(**BUDGET, experts=["linear"]),
    "auto classes": AutoClassifier(**BUDGET, experts=["linear"]),
}


def table(seed: int, rows: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=NAMES)
    frame["y"] = np.tanh(frame["a"]) - frame["b"] + shift * frame["c"] + 0.1 * rng.normal(size=rows)
    return frame


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    private = table(1, ROWS, shift=0.7)
    private.iloc[5, 3] = np.nan
    private.to_parquet(path)
    classes = path.with_name("classes.parquet")
    private.assign(y=(private["y"] > 0).where(private["y"].notna()).astype(float)).to_parquet(
        classes
    )
    return {"numbers": path, "classes": classes}


def fitted(name: str, file: Any, **kept: Any) -> tuple[str, str, str]:
    """SHA-256 of a model (what it predicts), its events and its guarantee."""
    model, public = FITS[name], table(0, 200)
    numbers = "Regressor" in type(model).__name__
    labels = public.pop("y") if numbers else (public.pop("y") > 0).astype(float)
    private = Private.from_parquet(file["numbers" if numbers else "classes"], label="y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(public, labels, private=private.kept(**kept))
    answer = getattr(model, "predict_proba", model.predict)(table(2, 500)[NAMES])
    parts = (np.asarray(answer).tobytes(), model.guarantee_.events, model.guarantee_)
    found = [part if isinstance(part, bytes) else str(entries(part)).encode() for part in parts]
    return tuple(hashlib.sha256(part).hexdigest() for part in found)  # type: ignore[return-value]


def samples(name: str) -> tuple[Any, Any, pd.DataFrame, Any]:
    """Public rows and labels, private ones."""
    public, private = table(0, 200), table(1, ROWS, shift=0.7)
    labels, own = public.pop("y"), private.pop("y")
    if "Regressor" not in type(FITS[name]).__name__:
        labels, own = (labels > 0).astype(float), (own > 0).astype(float)
    return public, labels, private, own


@pytest.mark.parametrize("name", [name for name in FITS if name != "discrepancy"])
def test_a_fit_that_finds_no_room_is_refused_before_the_charge(name, monkeypatch):
    public, labels, rows, own = samples(name)
    private = Private(rows, own).kept(memory=1000, spill=False)
    read: list[Any] = []
    monkeypatch.setattr(Sample, "_pass", lambda *given: read.append(given) or iter(()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(StorageError, match="--keep-memory"):
            FITS[name].fit(public, labels, private=private)
    assert private.spent(1e-6).events == ()
    assert not read


@pytest.mark.parametrize("name", ["reweighting", "reweighting classes", "auto", "auto classes"])
def test_the_bar_counts_the_whole_fit_and_no_private_value(name, monkeypatch):
    told: list[tuple[int, int]] = []

    @contextmanager
    def shown(title: str, verbose: int) -> Any:
        yield lambda *facts: told.append(facts)

    monkeypatch.setattr("dpadapt.base.row_progress", shown)
    public, labels, rows, own = samples(name)
    courses = []
    for place in (None, 7):
        told.clear()
        if place is not None:
            rows.iloc[place], own.iloc[place] = 1e6, np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            FITS[name].fit(public, labels, private=Private(rows, own))
        courses.append(list(told))
    done, totals = (list(each) for each in zip(*courses[0], strict=True))
    assert done == sorted(done)
    assert done[-1] == totals[-1] > 20 * ROWS
    assert totals[-1] % ROWS == 0
    assert len(set(totals)) == (2 if name == "auto classes" else 1)
    assert done[-2] >= 0.97 * totals[-1]  # as many sums as were said
    assert courses[0] == courses[1] or name.startswith("auto")  # whose steps follow releases


@pytest.mark.parametrize("name", FITS)
def test_kept_in_memory_in_a_file_or_read_again(name, file, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 500)
    reads, written = [], []
    blocks, write, lent = ParquetRows.blocks, Shelf._written, Sample.lent
    monkeypatch.setattr(ParquetRows, "blocks", lambda *a: reads.append(1) or blocks(*a))
    monkeypatch.setattr(Shelf, "_written", lambda *a: written.append(1) or write(*a))
    in_memory = fitted(name, file, memory="1GB", spill=False)
    assert 1 <= len(reads) <= MOST_READS
    assert not written
    for memory in (0, 20_000):  # all of it in a file; a part
        reads.clear()
        written.clear()
        assert fitted(name, file, memory=memory, folder=tmp_path) == in_memory
        assert len(reads) <= MOST_READS
        assert written or name == "discrepancy"  # one sum is enough for it
    reads.clear()
    monkeypatch.setattr(Sample, "lent", lambda self, **how: lent(self, **how | {"keep": False}))
    assert fitted(name, file) == in_memory
    assert len(reads) > MOST_READS or name == "discrepancy"
