"""TDDL with PINP's noise, with an estimated norm; objective perturbation on Fourier features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

from dpadapt import AdaptationPipeline, InteractivePredictor, KernelClassifier, Private
from dpadapt.baselines import ObjectivePerturbationClassifier
from dpadapt.kernels import PINP, TDDL
from dpadapt.kernels.constants import Bounds
from dpadapt.kernels.pool import Pool
from dpadapt.kernels.queries import predictions
from dpadapt.papers.kernels.queries import norm_at_pool
from dpadapt.privacy import Cleaning, Rows

SEEDED = {"noise": "seeded", "random_state": 0}


def sample(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    return X, (X[:, 0] > 0).astype(int)


def test_a_model_of_answers_is_fitted_to_them_and_costs_nothing_more():
    X, y = sample(600)
    estimator = KernelClassifier(epsilon=1e5, delta=1e-6, penalty=0.05, kernel="rbf", **SEEDED)
    for method in ("gaussian-process", PINP(questions=50)):
        predictor = InteractivePredictor(estimator, method=method)
        predictor.fit(X[:50], y[:50], private=Private(X[50:], y[50:]))
        model = predictor.model_of_answers(X[:40])
        asked = predictor.questions_asked_
        scores = model.decision_function(X[:40])
        assert np.corrcoef(scores, predictor.decision_function(X[:40]))[0, 1] > 0.95
        assert predictor.questions_asked_ == asked  # a released model asks nobody
        assert np.mean(model.predict(X) == y) > 0.9
        assert model.guarantee_ == predictor.guarantee_
        predictor.close()


def test_several_outputs_have_no_model_of_answers():
    X, _ = sample(120)
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    predictor = InteractivePredictor(KernelClassifier(epsilon=1.0, delta=1e-6, **SEEDED))
    predictor.fit(X[:40], y[:40], private=Private(X[40:], y[40:]))
    with pytest.raises(ValueError, match="one output"):
        predictor.model_of_answers(X[:5])
    predictor.close()


def test_an_estimated_norm_keeps_the_budget_and_shrinks_the_ball():
    X, y = sample(2000)
    found = {}
    for share in (0.0, 0.2):
        model = KernelClassifier(
            epsilon=2.0, delta=1e-6, penalty=0.01, features="none", kernel="rbf",
            release=TDDL(points=40, norm_share=share), **SEEDED,
        )  # fmt: skip
        model.fit(X[:100], y[:100], private=Private(X[100:], y[100:]))
        assert model.guarantee_.epsilon == pytest.approx(2.0, rel=1e-3)
        found[share] = Pool.of(model.setup_.values(X[:40], X[:40])).norm(model.dual_coef_)
        assert len(model.guarantee_.events) == 1 + bool(share)
    assert found[0.2] < found[0.0]
    with pytest.raises(ValueError, match="norm_share"):
        TDDL(norm_share=1.0)
    with pytest.raises(ValueError, match="Gaussian noise only"):
        TDDL(calibration="laplace", norm_share=0.1)


def test_the_norm_at_a_pool_moves_by_no_more_than_is_claimed():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(6, 2))
    pool, bounds = Pool.of(Z @ Z.T), Bounds(0.1, norm=1.0)
    worst = 0.0
    for _ in range(200):
        w = rng.normal(size=2)
        w /= max(1.0, float(np.linalg.norm(w)))
        other = w * (1 - 0.1 / np.linalg.norm(w)) if rng.random() < 0.5 else w + 0.07 * rng.normal()
        moved = min(1.0, 0.1 / max(float(np.linalg.norm(other - w)), 1e-12))
        other = w + moved * (other - w)
        lengths = []
        for model in (w, other):
            with Private(np.eye(2)).open(epsilon=1.0, delta=1e-6) as session:
                rows = session.hide(Rows(Cleaning(radius=1.0)))
                hidden = predictions(session, rows, lambda X, at=model: Z @ at)
                found = norm_at_pool(session, hidden, pool, bounds)
                lengths.append(float(found._value[0]))
        worst = max(worst, abs(lengths[0] - lengths[1]) / found.sensitivity)
    assert 0.9 < worst <= 1


@pytest.mark.slow
def test_objective_perturbation_on_random_fourier_features_learns_what_is_not_linear():
    """The baseline of Chaudhuri and others for translation-invariant kernels."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(9000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    facts = {"epsilon": 5.0, "delta": 1e-6, "noise": "seeded", "random_state": 0}
    private = Private(X[300:8000], y[300:8000])
    fourier = RBFSampler(gamma=2.0, n_components=60, random_state=0)
    model = AdaptationPipeline([("fourier", fourier)], ObjectivePerturbationClassifier(**facts))
    model.fit(X[:300], y[:300], private=private)
    plain = ObjectivePerturbationClassifier(**facts).fit(X[:300], y[:300], private=private)
    assert model.score(X[8000:], y[8000:]) > 0.75 > 0.6 > plain.score(X[8000:], y[8000:])
