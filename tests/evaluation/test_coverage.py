"""Intervals hold the truth as often as they say, at every budget, noise and sample together.

Each of the intervals below is wrong with a probability of at most 5 %; of 120 repeats at most 21
may then be, but once in more than a million runs (binomial tail 4e-7). The seeds are fixed, so that
the outcome does not change from run to run. That the test could fail is shown on intervals that
forget the noise, and on intervals that forget the sample.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from dpadapt import Private, evaluate
from dpadapt.evaluation.intervals import Chance, rankings

REPEATS, MOST_WRONG = 120, 21
SIDES = ("model", "baseline", "difference")


def people(n, seed, classes):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    scores = X @ [1.5, -1.0, 0.5]
    if classes:
        return X, (scores - 0.7 + rng.logistic(size=n) > 0).astype(int)
    return X, scores + 0.8 * rng.standard_t(4, size=n)


def models(classes):
    X, y = people(200, 1, classes)
    kind = LogisticRegression if classes else LinearRegression
    return kind().fit(X, y), kind().fit(X * [1, 0, 0], y)


def truths(model, X, y, classes):
    if not classes:
        errors = np.minimum(np.abs(np.clip(model.predict(X), -6, 6) - np.clip(y, -6, 6)), 4.0)
        return {"mse": (errors**2).mean(), "mae": errors.mean()}
    p = model.predict_proba(X)
    at = np.minimum((p[:, 1] * 5).astype(int), 4)
    gaps = np.bincount(at, p[:, 1] - y, minlength=5) / len(y)
    return {
        "accuracy": (model.predict(X) == y).mean(),
        "log_loss": -np.log(np.clip(p[np.arange(len(y)), y], 0.01, 1)).mean(),
        "auc": roc_auc_score(y, p[:, 1]),
        "calibration": np.abs(gaps).sum(),
    }


def wrong(classes, epsilon, repeats, n=1000, metrics=None):
    """How often each interval misses the truth."""
    model, baseline = models(classes)
    rows = people(400_000, 5, classes)
    true = [truths(each, *rows, classes) for each in (model, baseline)]
    extra = {} if classes else {"label_range": (-6.0, 6.0), "largest_error": 4.0}
    missed = Counter()
    for seed in range(repeats):
        found = evaluate(
            model,
            Private(*people(n, 100 + seed, classes)),
            epsilon=epsilon,
            delta=1e-6,
            baseline=baseline,
            metrics=metrics,
            noise="seeded",
            random_state=seed,
            **extra,
        )
        for name, each in found.measures.items():
            values = (true[0][name], true[1][name], true[0][name] - true[1][name])
            for side, value in zip(SIDES, values, strict=True):
                interval = getattr(each, side)
                missed[name, side] += not interval.low <= value <= interval.high
    return missed


def test_intervals_of_known_noise():
    found = Chance(noise=0.1, people=100, confidence=0.95).interval(0.5, 0.1, 0.25)
    half = stats.norm.ppf(0.975) * np.sqrt(0.1**2 + 0.25 / 100)
    assert found.high - found.low == pytest.approx(2 * half)


def test_the_bound_is_what_it_is_said_to_be():
    assert stats.binom.sf(MOST_WRONG, REPEATS, 0.05) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("classes", [False, True])
def test_intervals_hold_the_truth(classes, epsilon):
    metrics = ["accuracy", "log_loss", "auc", "calibration"] if classes else ["mse", "mae"]
    missed = wrong(classes, epsilon, REPEATS, metrics=metrics)
    assert len(missed) == (12 if classes else 6)
    assert max(missed.values()) <= MOST_WRONG, missed


@pytest.mark.parametrize(
    ("epsilon", "n", "kept"),
    [(0.1, 1000, (0, 1)), (50.0, 200, (1, 0))],
    ids=["without the noise", "without the sample"],
)
def test_intervals_that_forget_something_are_found(monkeypatch, epsilon, n, kept):
    whole = Chance.interval

    def forgetful(self, value, noise, variance, *ends):
        return whole(self, value, noise * kept[0], variance * kept[1], *ends)

    monkeypatch.setattr(Chance, "interval", forgetful)
    missed = wrong(True, epsilon, 60, n, ["accuracy"])
    assert missed["accuracy", "model"] > 20


def test_areas_of_models_that_rank_against_each_other():
    """The worst for a difference: half of a rare class is on top for one, at the end for other."""
    repeats, n, missed = 1000, 2000, 0
    rng = np.random.default_rng(0)
    for _ in range(repeats):
        rare = max(rng.binomial(n, 0.05), 1)
        area, share = rng.binomial(rare, 0.5) / rare, rare / n
        pairs = share * (1 - share)
        found = np.array([(area - 0.5) * pairs, (0.5 - area) * pairs, share])
        apart = rankings(found, 2, 1.0, Chance(1e-9, n, 0.95)).sides[2]
        missed += not apart.low <= 0.0 <= apart.high
    most = 87
    assert stats.binom.sf(most, repeats, 0.05) < 1e-6
    assert missed <= most
