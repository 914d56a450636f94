"""What cleaning makes of labels: no class of what is none, and nothing beyond the public range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadapt.privacy import Cleaning
from dpadapt.privacy.statistics.directions import Directions

ODD = [2.0, 3.0, 0.5, 1.5, -1.0, -0.5, math.nan, math.inf, -math.inf, 1e300]
MAPS = {
    "cleaning": Cleaning(1.0, classes=2),
    "directions": Directions(np.zeros(1), np.ones(1), bias=0.5, classes=2),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_label_that_is_no_class_becomes_minus_one(name):
    labels = np.array([0.0, 1.0, -0.0, *ODD])
    _, codes = MAPS[name](np.zeros((len(labels), 1)), labels)
    np.testing.assert_array_equal(codes, [0.0, 1.0, 0.0, *(-1.0 for _ in ODD)])


def test_unit_labels_lie_between_minus_one_and_one():
    labels = np.array([2.0, 6.0, 4.0, 5.0, -100.0, 1e308, math.nan, math.inf, -math.inf])
    cleaning = Cleaning(1.0, label_range=(2.0, 6.0), unit_labels=True)
    _, cleaned = cleaning(np.zeros((len(labels), 1)), labels)
    np.testing.assert_array_equal(cleaned, [-1.0, 1.0, 0.0, 0.5, -1.0, 1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("bias", [0.0, 0.1, 1.0, 30.0])
def test_directions_are_never_longer_than_one(bias):
    rows = np.random.default_rng(0).normal(size=(500, 3)) * 10.0 ** np.arange(-250, 250)[:, None]
    rows[:3] = [[0.0, 0.0, 0.0], [math.nan, 1.0, math.inf], [1e300, -1e300, 1e308]]
    mapped, _ = Directions(np.zeros(3), np.ones(3), bias, classes=2)(rows, None)
    lengths = np.linalg.norm(mapped, axis=1)
    assert np.isfinite(mapped).all()
    assert (lengths <= 1 + 1e-12).all()
    assert lengths.max() > 1 - 1e-12
