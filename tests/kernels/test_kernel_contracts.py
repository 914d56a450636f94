"""KernelRegressor and KernelClassifier: the contract that every estimator keeps."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.baseline_contracts import ClassificationContract, RegressionContract, given
from dpadapt import KernelClassifier, KernelRegressor
from reweighting.reweighting_contracts import thin

ThinClassifier, ThinRegressor = thin(ClassificationContract), thin(RegressionContract)
SMALL = {"n_components": 20}


class TestClassifier(ClassificationContract):
    """Kernel values, released on a pool."""

    make = given(KernelClassifier, SMALL)


class TestRegressor(RegressionContract):
    make = given(KernelRegressor, SMALL)


@pytest.mark.slow
class TestPolynomialFeatures(ThinClassifier):
    make = given(KernelClassifier, {"kernel": "polynomial", "degree": 2})


@pytest.mark.slow
class TestThreeClasses(ThinClassifier):
    make = given(KernelClassifier, SMALL)

    def public(self, m=90):
        X, _ = super().public(m)
        return X, np.digitize(X @ [1.0, -2.0, 0.5], [-1.0, 1.0]).astype(float)

    def labels(self, rows, seed=0):
        finite = np.clip(np.nan_to_num(np.asarray(rows, dtype=float)), -1e300, 1e300)
        return np.digitize(finite @ [1.0, -1.0, 0.5], [-1.0, 1.0]).astype(float)


@pytest.mark.slow
class TestOneAgainstRest(TestThreeClasses):
    make = given(KernelClassifier, {**SMALL, "loss": "hinge", "multiclass": "one-vs-rest"})


@pytest.mark.slow
class TestGaussianTDDL(ThinRegressor):
    make = given(KernelRegressor, {**SMALL, "release": "tddl"})


@pytest.mark.slow
class TestLaplaceTDDL(ThinRegressor):
    make = given(KernelRegressor, {"n_components": 5, "release": "tddl", "calibration": "laplace"})


@pytest.mark.slow
class TestTDIL(ThinClassifier):
    make = given(KernelClassifier, {**SMALL, "release": "tdil"})
    # with so few rows no noisy difference passes the threshold: the answer is zero, always
    test_secure_noise_is_never_repeated = None
    test_other_seeds_give_other_answers = None


@pytest.mark.slow
class TestLinearTDIL(ThinClassifier):
    make = given(KernelClassifier, {"kernel": "linear", "release": "tdil"})
    # points of a ball are drawn from uniform numbers, not from a noise that is added
    test_noise_is_the_noise_of_the_events = None
    test_secure_noise_is_never_repeated = None
    test_other_seeds_give_other_answers = None


@pytest.mark.slow
class TestNystroem(ThinRegressor):
    make = given(KernelRegressor, {**SMALL, "features": "nystroem"})


@pytest.mark.slow
class TestFourier(ThinRegressor):
    make = given(KernelRegressor, {**SMALL, "features": "fourier", "loss": "epsilon-insensitive"})
