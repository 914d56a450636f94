"""Compiled or not, rows find the same leaves, and get the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt.auto import experts
from dpadapt.auto.experts import fit_class_trees, fit_trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))


def trees(outputs):
    if outputs == 1:
        return fit_trees(X, np.tanh(X[:, 0]) - X[:, 1])
    return fit_class_trees(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0), 3)


@pytest.fixture
def compiled(monkeypatch):
    def switch(on):
        monkeypatch.setattr(experts, "_WALKED", [1 << 60 if on else 0])

    return switch


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_leaves_are_the_same(outputs, order, compiled):
    model = trees(outputs)
    rows = np.asarray(RNG.normal(size=(20_000, 4)), order=order)
    rows[::7, 1], rows[::11, 0], rows[3], rows[4] = np.nan, model.threshold[0], np.inf, -np.inf
    found = []
    for on in (False, True):
        compiled(on)
        assert model._compiled(rows) == on
        found.append((model(rows).tobytes(), model.leaves(rows).tobytes()))
    assert found[0] == found[1]


def test_few_rows_are_never_compiled_for(compiled):
    compiled(True)
    assert not trees(1)._compiled(X)  # also one private row a call, where code is not ours


def test_rows_that_lack_a_column_raise_all_the_same(compiled):
    model = trees(1)
    for on in (False, True):
        compiled(on)
        with pytest.raises(IndexError):
            model(np.zeros((5000, 1)))


def test_a_process_that_walks_much_compiles(monkeypatch):
    monkeypatch.setattr(experts, "_WALKED", [0])
    monkeypatch.setattr(experts, "_TREES_COMPILED", 400_000)
    model, rows, led = trees(1), np.zeros((2000, 4)), []
    way = experts.Trees._led
    monkeypatch.setattr(experts.Trees, "_led", lambda *given: led.append(1) or way(*given))
    answers = [model(rows).tobytes() for _ in range(4)]
    assert len(set(answers)) == 1
    assert len(led) == 2
