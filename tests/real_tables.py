"""Real shifts that come with the package or with scikit-learn: public and private rows of each."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from sklearn.datasets import load_diabetes

from dpadapt.datasets import load_wages, wage_features


@cache
def _wages(rows):
    wages = load_wages().sample(rows, random_state=0)
    cuts = {
        "women": wages["gender"] == "female",
        "the young": wages["age"] < 32,
        "the South": wages["region"] == "South",
        "the long at school": wages["education"] > 15,
    }
    X, pay = wage_features().fit_transform(wages), np.log(wages["earnings"].to_numpy())
    return X, pay, {name: cut.to_numpy() for name, cut in cuts.items()}


@cache
def regression_tables(rows=9000):
    """Name to (X, y, T, t), of five shifts."""
    diabetes = load_diabetes()
    sex = diabetes.data[:, 1] > 0
    X, y = np.delete(diabetes.data, 1, axis=1), diabetes.target
    found = {"diabetes by sex": (X[sex], y[sex], X[~sex], y[~sex])}
    X, y, cuts = _wages(rows)
    for name, cut in cuts.items():
        found[f"wages of {name}"] = X[~cut], y[~cut], X[cut], y[cut]
    return found


@cache
def class_tables(rows=9000):
    """Name to (X, y, T, t), of five shifts: high or low pay, of women also in three classes."""
    X, pay, cuts = _wages(rows)
    found = {}
    for (name, cut), parts in itertools.product(cuts.items(), (2, 3)):
        if parts == 2 or name == "women":
            y = np.digitize(pay, np.quantile(pay, np.arange(1, parts) / parts))
            found[f"{parts} classes of {name}"] = X[~cut], y[~cut], X[cut], y[cut]
    return found


def halves(table):
    """(X, y, T, t) with 70 % of the private rows, and the others as (T, t) for testing."""
    X, y, T, t = table
    order = np.random.default_rng(0).permutation(len(T))
    train, test = np.split(order, [int(0.7 * len(T))])
    return (X, y, T[train], t[train]), (T[test], t[test])
