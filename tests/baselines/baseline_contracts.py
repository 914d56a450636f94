"""What the contracts of the labelled baselines share."""

from __future__ import annotations

import numpy as np

from contracts import EstimatorContract
from contracts.sample import Sample


class RegressionContract(EstimatorContract):
    needs_labels = True


class ClassificationSample(Sample):
    """Two classes, 0 and 1; any other private label is a row of no class."""

    needs_labels = True

    def public(self, m=90):
        X, scores = super().public(m)
        return X, (scores > np.median(scores)).astype(float)

    def labels(self, rows, seed=0):
        return (super().labels(rows, seed) > 0).astype(float)


class ClassificationContract(ClassificationSample, EstimatorContract):
    """The battery on two classes."""


def given(model, extra):
    """Build ``model`` with the arguments of a contract, and some of its own."""

    def make(self, *, epsilon=1.0, delta=1e-6, noise="seeded", random_state=0, ledger=None, **p):
        return model(
            epsilon=epsilon,
            delta=delta,
            noise=noise,
            random_state=random_state,
            ledger=ledger,
            **(extra | p),
        )

    return make
