"""AdaMixClassifier and NoisyGDClassifier: the contract that every estimator keeps."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.baseline_contracts import ClassificationContract, given
from dpadapt import AdaMixClassifier, NoisyGDClassifier
from reweighting.reweighting_contracts import thin

Thin = thin(ClassificationContract)


class ThreeClasses(Thin):
    """Three classes: the projections have something to do."""

    def public(self, m=90):
        X, _ = super().public(m)
        return X, np.digitize(X @ [1.0, -2.0, 0.5], [-1.0, 1.0]).astype(float)

    def labels(self, rows, seed=0):
        finite = np.clip(np.nan_to_num(np.asarray(rows, dtype=float)), -1e300, 1e300)
        return np.digitize(finite @ [1.0, -1.0, 0.5], [-1.0, 1.0]).astype(float)


class TestContract(ClassificationContract):
    progress_end = 10
    make = given(AdaMixClassifier, {"steps": 10})


@pytest.mark.slow
class TestContractThreeClasses(ThreeClasses):
    make = given(AdaMixClassifier, {"steps": 10})
    test_noise_has_the_scale_that_it_claims = None  # the same code as for two classes


class TestContractAdaMix(ThreeClasses):
    make = given(AdaMixClassifier, {"solver": "adamix", "steps": 4})


class TestContractGradientSpan(ThreeClasses):
    make = given(AdaMixClassifier, {"solver": "adamix", "projection": "gradients", "steps": 4})


@pytest.mark.slow
class TestContractClipFirst(ThreeClasses):
    make = given(
        AdaMixClassifier,
        {"solver": "adamix", "projection": "gradients", "clip_first": True, "steps": 4},
    )


@pytest.mark.slow
class TestContractFeatureSpan(ThreeClasses):
    make = given(AdaMixClassifier, {"projection": "features", "rank": 2, "steps": 4})


@pytest.mark.slow
class TestContractTheory(ThreeClasses):
    make = given(AdaMixClassifier, {"solver": "theory", "steps": 4})


class TestContractFilter(ThreeClasses):
    make = given(AdaMixClassifier, {"individual_filter": 2.0, "steps": 4})
    # there are more releases than a row pays for; tests/privacy/test_add_remove.py has its own
    test_noise_is_the_noise_of_the_events = None


class TestContractNoisyGD(ClassificationContract):
    progress_end = 5
    make = given(NoisyGDClassifier, {"steps": 5})
