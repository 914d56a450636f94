"""KernelRegressor, KernelClassifier, InteractivePredictor: beyond the contract, and bad input."""

from __future__ import annotations

import math
import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from dpadapt import InteractivePredictor, KernelClassifier, KernelRegressor, Private
from dpadapt.base import Problem
from dpadapt.kernels import (
    PINP,
    RBF,
    TDDL,
    Fourier,
    FunctionKernel,
    GaussianProcess,
    InnerProduct,
    Nystroem,
    Polynomial,
    SparseVector,
)
from dpadapt.modelfolder import load_model, save_model
from dpadapt.privacy import PrivacyError
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import event_from_dict
from dpadapt.testing.search import everything_said
from dpadapt.testing.tape import taped

SEEDED = {"noise": "seeded", "random_state": 0}


def classifier(**params):
    return KernelClassifier(**({"epsilon": 1.0, "delta": 1e-6} | SEEDED | params))


def regressor(**params):
    return KernelRegressor(**({"epsilon": 1.0, "delta": 1e-6} | SEEDED | params))


def signs(rows):
    return np.where(rows[:, 0] * rows[:, 1] > 0, "same", "other")


def problem(n=400, m=40, seed=0):
    rng = np.random.default_rng(seed)
    X, T = rng.uniform(-1, 1, size=(m, 2)), rng.uniform(-1, 1, size=(n, 2))
    return X, signs(X), T, signs(T)


# the release -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": Polynomial(degree=2)},
        {"kernel": "rbf", "features": Nystroem(100)},
        {"kernel": "rbf", "features": Fourier(100)},
        pytest.param(
            {"kernel": "rbf", "features": "none", "release": GaussianProcess(points=100)},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_it_learns_what_no_line_can(params):
    X, y, T, t = problem(n=4000, m=150)
    model = classifier(epsilon=2.0, **params).fit(X, y, private=Private(T, t))
    assert model.score(X, y) > 0.8
    assert model.guarantee_.epsilon == pytest.approx(2.0)


def test_pool_and_feature_space_agree_without_noise():
    """At a huge epsilon, both are the certified model; the polynomial's span is a full pool's."""
    X, y, T, t = problem(n=500, m=60)
    params = {"kernel": Polynomial(degree=2), "epsilon": 1e5, "delta": 1e-3, "penalty": 0.1}
    one = classifier(features="polynomial", **params).fit(X, y, private=Private(T, t))
    two = classifier(features="none", **params).fit(X, y, private=Private(T, t))
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("size", [10, 40])
def test_noise_of_a_prediction_does_not_depend_on_the_pool(size):
    """For the pool in the kernel's space; it grows with the pool for TDDL."""
    X, y, T, t = problem(m=40)
    spread = {}
    facts = {"penalty": 1.0, "kernel": RBF(gamma=1.0)}
    for release in (GaussianProcess(points=size), TDDL(points=size)):
        answers = [
            classifier(release=release, random_state=seed, **facts)
            .fit(X, y, private=Private(T, t))
            .decision_function(X[:5])
            for seed in range(12)
        ]
        spread[type(release)] = np.std(answers, axis=0).mean()
    model = classifier(release=GaussianProcess(points=size), **facts)
    (event,) = model.fit(X, y, private=Private(T, t)).guarantee_.events
    assert spread[GaussianProcess] < 1.4 * event.scale  # s0 sqrt(K(z, z)), whatever the size
    assert spread[GaussianProcess] < spread[TDDL]


def test_the_ledger_does_not_know_pool_or_norm():
    """Changing pool and its size never changes the charge of the default."""
    X, y, T, t = problem(m=40)
    events = [
        classifier(release=GaussianProcess(points=size), penalty=0.5, kernel=RBF(gamma=1.0))
        .fit(X, y, private=Private(T, t))
        .guarantee_
        for size in (5, 20)
    ]
    assert events[0].events[0].gaussian_mu == pytest.approx(events[1].events[0].gaussian_mu)


def test_printed_laplace_noise_says_what_it_gives():
    X, y, T, t = problem()
    model = classifier(release=TDDL(points=10, calibration="paper"))
    model.fit(X, y, private=Private(T, t))
    assert model.guarantee_.epsilon <= 1.0 + 1e-9  # advanced composition is safe, and wasteful
    tight = classifier(release=TDDL(points=10, calibration="laplace"))
    tight.fit(X, y, private=Private(T, t))
    assert tight.guarantee_.events[0].scale < model.guarantee_.events[0].scale


@pytest.mark.parametrize("multiclass", ["softmax", "one-vs-rest"])
def test_several_classes_pay_for_all_outputs(multiclass):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    T = rng.normal(size=(500, 2))
    t = np.digitize(T[:, 0], [-0.5, 0.5])
    model = classifier(multiclass=multiclass, penalty=0.5, release=GaussianProcess(points=20))
    model.fit(X, y, private=Private(T, t))
    (event,) = model.guarantee_.events
    factor = math.sqrt(2) if multiclass == "softmax" else math.sqrt(3)
    assert event.sensitivity >= factor * 2 / (0.5 * 500)
    assert model.predict_proba(X).shape == (60, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_default_penalty_keeps_the_noise_small():
    X, y, T, t = problem(n=900)
    for epsilon in (0.3, 3.0):
        model = classifier(epsilon=epsilon).fit(X, y, private=Private(T, t))
        (event,) = model.guarantee_.events
        assert event.scale * model.setup_.radius == pytest.approx(0.2, rel=0.1)


# bad input ---------------------------------------------------------------------------------------


def not_definite(A, B):
    return -np.abs(A[:, :1] - B[:, :1].T)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"kernel": "sigmoid"}, "got 'sigmoid'.*not positive definite"),
        ({"kernel": FunctionKernel(not_definite, 1.0)}, "kernel.*positive"),
        ({"kernel": lambda A, B: A @ B.T}, "FunctionKernel.*bound"),
        ({"kernel": "chi3"}, "kernel must be one of"),
        ({"kernel": 7}, "kernel must be one of.*a FunctionKernel"),
        ({"penalty": 0.0}, "penalty"),
        ({"penalty": -1.0}, "penalty"),
        ({"radius": 0.0}, "radius"),
        ({"loss": "squared"}, "loss must be one of"),
        ({"release": "all"}, "release must be one of"),
        ({"features": "fourier", "kernel": "linear"}, "features='fourier'"),
        ({"features": "linear"}, "features='linear' are those of kernel='linear'"),
        ({"features": "fourier", "kernel": FunctionKernel(not_definite, 1.0)}, "kernel"),
        ({"features": "magic"}, "features must be one of"),
        ({"multiclass": "ecoc"}, "multiclass must be one of"),
    ],
)
def test_bad_parameters_are_told_before_anything_is_spent(params, match):
    X, y, T, t = problem(n=20)
    private = Private(T, t)
    with taped() as tape, pytest.raises((ValueError, TypeError), match=match):
        classifier(**params).fit(X, y, private=private)
    assert tape == []
    assert private.spent(1e-6).epsilon == 0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: RBF(gamma=0.0), "gamma"),
        (lambda: Polynomial(degree=0), "degree"),
        (lambda: GaussianProcess(points=0), "points"),
        (lambda: Nystroem(n_components=0), "n_components"),
        (lambda: classifier(release="gaussian-process").set_params(release__calibration="paper"),
         "GaussianProcess has no option calibration"),
        (lambda: classifier(kernel="linear").set_params(kernel__gamma=1.0),
         "Linear has no option gamma"),
        (lambda: PINP(calibration="loose"), "calibration"),
        (lambda: SparseVector(questions=0), "questions"),
        (lambda: asked(method="sparse-vector").set_params(method__calibration="paper"),
         "SparseVector has no option calibration"),
    ],
)  # fmt: skip
def test_a_wrong_combination_cannot_be_written(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_labels_of_one_class_and_of_many():
    X, _, T, t = problem(n=20)
    with pytest.raises(ValueError, match="only one class"):
        classifier().fit(X, ["same"] * len(X), private=Private(T, t))
    with pytest.raises(ValueError, match="one-vs-rest"):
        classifier(loss="hinge").fit(
            X, np.arange(len(X)) % 3, private=Private(T, np.arange(20) % 3)
        )


def test_values_above_the_bound_are_rescaled():
    """A kernel of one's own whose K(x, x) exceeds what was declared: no row counts for more."""
    X, y, T, t = problem(n=100)
    far = np.vstack([T, [[1e6, 1e6]], [[np.inf, 0.0]]])
    labels = np.append(t, ["other", "same"])
    model = classifier(
        kernel=FunctionKernel(lambda A, B: A @ B.T, bound=2.0), release=GaussianProcess(points=10)
    )
    with everything_said() as said:
        model.fit(X, y, private=Private(far, labels))
    assert said.all.strip() == ""
    assert np.isfinite(model.decision_function(X)).all()
    assert model.setup_.radius == pytest.approx(math.sqrt(2.0))


@pytest.mark.parametrize("release", [GaussianProcess(points=10), TDDL(points=10)])
def test_inner_products_of_sparse_rows_give_the_model_of_the_function_asked_pair_by_pair(release):
    X, y, T, t = problem(n=60)
    sparse_X, sparse_T = sparse.csr_matrix(X), sparse.csr_matrix(T)
    scores = [
        classifier(kernel=kernel, release=release)
        .fit(sparse_X, y, private=Private.from_sparse(sparse_T, t))
        .decision_function(sparse_X)
        for kernel in (
            InnerProduct(bound=1.0),
            FunctionKernel(lambda A, B: (A @ B.T).toarray(), bound=1.0),
        )
    ]
    assert np.allclose(*scores, rtol=0, atol=1e-9)


def test_a_model_of_inner_products_is_kept_in_a_folder(tmp_path):
    X, y, T, t = problem(n=60)
    X = sparse.csr_matrix(X)
    model = classifier(kernel=InnerProduct(bound=1.0))
    model.fit(X, y, private=Private.from_sparse(sparse.csr_matrix(T), t))
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.kernel == model.kernel
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def common_letters(A, B):
    """A kernel of texts, one column."""
    left, right = ([set(str(row[0])) for row in np.asarray(table)] for table in (A, B))
    return np.array([[len(a & b) for b in right] for a in left], dtype=float)


def test_texts_by_a_kernel_of_ones_own():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdef"), size=5)) for _ in range(200)]
    labels = np.array(["a" in word for word in words])
    table = np.array(words, dtype=object)[:, None]
    model = classifier(
        epsilon=5.0,
        kernel=FunctionKernel(common_letters, bound=5.0),
        release=GaussianProcess(points=40),
    )
    model.fit(table[:40], labels[:40], private=Private(pd.DataFrame(table[40:]), labels[40:]))
    assert model.score(table[:40], labels[:40]) > 0.7
    odd = table[40:].copy()
    odd[0, 0], odd[1, 0] = None, 3.5
    model.fit(table[:40], labels[:40], private=Private(pd.DataFrame(odd), labels[40:]))


def inner(A, B):
    return A @ B.T


def test_sparse_rows_are_rows():
    rng = np.random.default_rng(0)
    X = sparse.random_array((90, 600), density=0.05, rng=rng).tocsr()
    t = np.asarray(X[:, :300].sum(axis=1)).ravel() > np.asarray(X[:, 300:].sum(axis=1)).ravel()
    facts = {"kernel": FunctionKernel(inner, bound=20.0), "penalty": 0.05}
    model = classifier(release=GaussianProcess(points=30), **facts)
    model.fit(X[:30], t[:30], private=Private.from_sparse(X[30:], t[30:]))
    dense = X.toarray()
    same = classifier(release=GaussianProcess(points=30), **facts)
    same.fit(dense[:30], t[:30], private=Private(dense[30:], t[30:]))
    np.testing.assert_allclose(
        model.decision_function(X[:30]), same.decision_function(dense[:30]), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("asking", [False, True])
def test_precomputed_kernels_are_refused_before_anything_is_charged(make, asking):
    """A row of such a table has values with all others: it is not one person's, nor bounded."""
    X, y, T, t = problem(n=200, m=30)
    values = np.exp(-((T[:, None] - np.vstack([T, X])[None]) ** 2).sum(axis=2))
    private, model = Private(values, t), make(kernel="precomputed")
    model = InteractivePredictor(model) if asking else model
    with pytest.raises(
        ValueError, match=r"kernel .* function of two tables .*'precomputed' is refused"
    ):
        model.fit(np.eye(30), y, private=private)
    assert private.spent(1e-6).epsilon == 0
    if not asking:
        with pytest.raises(ValueError, match="'precomputed' is refused"):
            model.fit(np.eye(30), y)


def test_a_kernel_of_ones_own_is_bounded_where_a_table_was_not():
    """One row, as long as it likes, moves the un-noised model by no more than is stated."""
    n, z, penalty = 60, np.array([[1.0], [0.5], [-0.5]]), 5.0
    model = classifier(kernel=FunctionKernel(lambda A, B: A @ B.T, bound=1.0), penalty=penalty)
    public = Problem(z, np.array([0, 1, 0]), np.array([0, 1]))
    learner = model._learner(public, n, features="none")
    facts = learner.facts(n)

    def weight(length, label):
        rows, labels = np.full((n, 1), 0.2), np.tile([0.0, 1.0], n // 2)
        rows[0], labels[0] = length, label
        table = learner.gram().table([rows], [labels])
        table = learner.solve(table[:, :-1], table[:, -1])
        scale = np.minimum(1.0, 1.0 / np.maximum(np.abs(rows[:, 0]), 1e-300))
        return float((rows[:, 0] * scale) @ table[:, 0])

    for length in (1.0, 10.0, 50.0, 1e6, 1e300):
        ratio = abs(weight(length, 1.0) - weight(-length, 1.0)) / facts.sensitivity
        assert ratio <= 1
        assert length > 1 or ratio > 0.3  # the test must come near to what it forbids


def test_label_range():
    rng = np.random.default_rng(0)
    X, T = rng.uniform(-2, 2, size=(80, 1)), rng.uniform(-2, 2, size=(3000, 1))
    model = regressor(epsilon=4.0, kernel=RBF(gamma=1.0), label_range=(-2.0, 2.0))
    labels = np.sin(2 * T[:, 0])
    labels[:5] = [np.nan, np.inf, -1e300, 1e300, 50.0]
    model.fit(X, np.sin(2 * X[:, 0]), private=Private(T, labels))
    assert model.label_range_ == (-2.0, 2.0)
    assert model.score(X, np.sin(2 * X[:, 0])) > 0.5
    for bad in ((1.0, 1.0), (2.0, 1.0), (0.0, math.inf)):
        with pytest.raises(ValueError, match="label_range"):
            clone(model).set_params(label_range=bad).fit(X, X[:, 0])


# asked one by one --------------------------------------------------------------------------------


def asked(tmp=None, **params):
    kind = params.pop("estimator", None) or classifier(
        kernel=RBF(gamma=1.0), noise="secure", random_state=None
    )
    return InteractivePredictor(kind, state=tmp, **params)


@pytest.mark.parametrize("method", ["gaussian-process", "pinp", "sparse-vector"])
def test_one_charge_for_any_number_of_questions(method):
    X, y, T, t = problem()
    private = Private(T, t)
    predictor = asked(method=method).fit(X, y, private=private)
    before = private.spent(1e-6).epsilon
    Z = np.random.default_rng(1).uniform(-1, 1, size=(30, 2))
    first = predictor.decision_function(Z)
    for _ in range(3):
        np.testing.assert_array_equal(predictor.decision_function(Z), first)
    assert predictor.questions_asked_ == 30
    assert private.spent(1e-6).epsilon == before <= 1 + 1e-9
    assert predictor.guarantee_.epsilon == pytest.approx(before)
    again = [event_from_dict(event.to_dict()) for event in predictor.guarantee_.events]
    assert compose_epsilon(again, 1e-6) == pytest.approx(before)
    if method == "gaussian-process":
        assert predictor.updates_used_ is None
    else:
        assert predictor.updates_used_ + predictor.updates_left_ >= 1
    predictor.close()


def test_answers_are_as_good_as_the_released_model():
    X, y, T, t = problem(n=3000, m=60)
    predictor = asked(estimator=classifier(epsilon=3.0, kernel=RBF(gamma=1.0))).fit(
        X, y, private=Private(T, t)
    )
    Z = np.random.default_rng(5).uniform(-1, 1, size=(300, 2))
    assert np.mean(predictor.predict(Z) == signs(Z)) > 0.8
    predictor.close()


def test_numbers_can_be_asked_for_too():
    rng = np.random.default_rng(0)
    X, T = rng.uniform(-2, 2, size=(50, 1)), rng.uniform(-2, 2, size=(2000, 1))
    predictor = asked(estimator=regressor(epsilon=8.0, kernel=RBF(gamma=1.0)))
    predictor.fit(X, np.sin(X[:, 0]), private=Private(T, np.sin(T[:, 0])))
    error = predictor.predict([[1.0], [-1.0]]) - np.sin([1.0, -1.0])
    assert np.abs(error).max() < 0.5
    predictor.close()


@pytest.mark.parametrize("method", ["gaussian-process", "pinp", "sparse-vector"])
def test_it_goes_on_after_a_restart(tmp_path, method):
    X, y, T, t = problem()
    file = tmp_path / "secret.db"
    Z = np.random.default_rng(1).uniform(-1, 1, size=(25, 2))
    one = asked(file, method=method).fit(X, y, private=Private(T, t))
    first = one.decision_function(Z)
    one.close()
    private = Private(T, t)
    two = asked(file, method=method).restore(X, y, private=private)
    np.testing.assert_array_equal(two.decision_function(Z), first)
    assert private.spent(1e-6).epsilon == 0  # nothing was charged again
    assert two.guarantee_ == one.guarantee_
    assert np.isfinite(two.decision_function(Z + 0.01)).all()
    assert two.updates_used_ == one.updates_used_ or method == "gaussian-process"
    two.close()


def moved(values):
    out = values.copy()
    out[0] = -out[0] if out.dtype.kind == "f" else out[out != out[0]][0]
    return out


@pytest.mark.parametrize(
    ("name", "changed", "own"),
    [
        ("KernelClassifier.kernel__gamma", {"kernel": RBF(gamma=1.1)}, {}),
        ("KernelClassifier.kernel", {"kernel": "laplacian"}, {}),
        ("KernelClassifier.penalty", {"penalty": 0.3}, {}),
        ("KernelClassifier.loss", {"loss": "huberised-hinge"}, {}),
        ("KernelClassifier.epsilon", {"epsilon": 0.5}, {}),
        ("KernelClassifier.delta", {"delta": 1e-5}, {}),
        ("KernelClassifier.radius", {"radius": 2.0}, {}),
        ("KernelClassifier.classes", {"classes": ["other", "same"]}, {}),
        ("KernelClassifier.noise", {"noise": "seeded", "random_state": 1}, {}),
        ("grid", {}, {"grid": 1e-5}),
        ("method", {}, {"method": "sparse-vector"}),
        ("method__calibration", {}, {"method": PINP(calibration="paper")}),
        ("method__questions", {}, {"method": PINP(questions=100)}),
    ],
)
def test_every_parameter_is_bound_to_the_file(tmp_path, name, changed, own):
    X, y, T, t = problem(n=60)
    fixed = {"kernel": RBF(gamma=1.0), "noise": "secure", "random_state": None}
    given = {"estimator": classifier(**fixed), "method": "pinp", "most_questions": 50}
    asked(tmp_path / "s.db", **given).fit(X, y, private=Private(T, t)).close()
    other = {**given, "estimator": classifier(**{**fixed, **changed}), **own}
    with pytest.raises(PrivacyError, match="other data or parameters") as caught:
        asked(tmp_path / "s.db", **other).restore(X, y, private=Private(T, t))
    found = str(caught.value).split("differs in: ")[1].split(")")[0]
    assert found in (name, "constants", "KernelClassifier.noise")
    free = {**given, "most_questions": 60, "estimator": classifier(**fixed, verbose=1)}
    asked(tmp_path / "s.db", **free).restore(X, y, private=Private(T, t)).close()
    for rows, labels in ((X + 1e-9, y), (X, moved(y)), (X[:-1], y[:-1])):
        with pytest.raises(PrivacyError, match="differs in"):
            asked(tmp_path / "s.db", **given).restore(rows, labels, private=Private(T, t))


def test_another_function_of_the_same_name_is_refused(tmp_path):
    X, y, T, t = problem(n=60)

    def kernel_of(gamma):
        def kernel(A, B):
            return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))

        return kernel

    def made(gamma):
        own = classifier(
            kernel=FunctionKernel(kernel_of(gamma), bound=1.0),
            penalty=0.1,
            noise="secure",
            random_state=None,
        )
        return asked(tmp_path / "s.db", estimator=own)

    made(1.0).fit(X, y, private=Private(T, t)).close()
    with pytest.raises(PrivacyError, match="differs in: kernel values"):
        made(1.01).restore(X, y, private=Private(T, t))
    made(1.0).restore(X, y, private=Private(T, t)).close()


def test_a_file_of_another_predictor_is_refused(tmp_path):
    X, y, T, t = problem()
    file = tmp_path / "secret.db"
    asked(file).fit(X, y, private=Private(T, t)).close()
    with pytest.raises(PrivacyError, match="exists already"):
        asked(file).fit(X, y, private=Private(T, t))
    for rows, labels in ((moved(T), t), (T, moved(t)), (T[::-1].copy(), t[::-1].copy())):
        with pytest.raises(PrivacyError, match="other data or parameters") as caught:
            asked(file).restore(X, y, private=Private(rows, labels))
        assert "differs in" not in str(caught.value)  # private: nothing is said of it
    asked(file).restore(X, y, private=Private(T, t)).close()
    with pytest.raises(ValueError, match="restore needs the file"):
        asked().restore(X, y, private=Private(T, t))
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(PrivacyError, match="damaged"):
        asked(file).restore(X, y, private=Private(T, t))


@pytest.mark.parametrize("kept", [False, True])
def test_a_service_of_32_threads_answers_each_question_once(tmp_path, kept):
    X, y, T, t = problem(n=150)
    predictor = asked(tmp_path / "s.db" if kept else None).fit(X, y, private=Private(T, t))
    Z = np.random.default_rng(2).uniform(-1, 1, size=(10, 2))
    with ThreadPoolExecutor(32) as pool:
        found = list(
            pool.map(lambda i: predictor.decision_function(Z[i % 10 :][:1])[0], range(320))
        )
    assert all(len(set(found[i::10])) == 1 for i in range(10))
    assert predictor.questions_asked_ == 10
    predictor.close()


def test_it_cannot_be_pickled_and_says_why():
    X, y, T, t = problem(n=50)
    predictor = asked().fit(X, y, private=Private(T, t))
    with pytest.raises(TypeError, match="restore it from there"):
        pickle.dumps(predictor)
    predictor.close()
    with pytest.raises(PrivacyError, match="closed"):
        predictor.predict([[0.1, 0.2]])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"method": "oracle"}, "method must be one of"),
        ({"grid": 0.0}, "grid"),
        ({"estimator": KernelRegressor}, "estimator must be"),
        ({"most_questions": 0}, "most_questions"),
        ({"estimator": classifier(noise="exact", random_state=None)}, "noise"),
    ],
)
def test_bad_questions_setup(params, match):
    X, y, T, t = problem(n=30)
    with pytest.raises((ValueError, TypeError), match=match):
        asked(**params).fit(X, y, private=Private(T, t))


def test_several_classes_have_a_path_each_and_no_machine():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(60, 2)), rng.normal(size=(300, 2))
    y, t = (np.digitize(rows[:, 0], [-0.5, 0.5]) for rows in (X, T))
    predictor = asked().fit(X, y, private=Private(T, t))
    assert predictor.decision_function(X[:4]).shape == (4, 3)
    assert set(predictor.predict(X)) <= {0, 1, 2}
    predictor.close()
    with pytest.raises(ValueError, match="one output"):
        asked(method="pinp").fit(X, y, private=Private(T, t))


def test_texts_can_be_asked(tmp_path):
    words = np.array([["abc"], ["bcd"], ["xyz"], ["xyw"]] * 20, dtype=object)
    labels = np.array([True, True, False, False] * 20)
    kind = classifier(epsilon=20.0, kernel=FunctionKernel(common_letters, bound=3.0))
    predictor = asked(tmp_path / "s.db", estimator=kind)
    predictor.fit(words[:4], labels[:4], private=Private(pd.DataFrame(words), labels))
    first = predictor.decision_function(np.array([["abd"], ["xyy"]], dtype=object))
    predictor.close()
    again = asked(tmp_path / "s.db", estimator=kind)
    again.restore(words[:4], labels[:4], private=Private(pd.DataFrame(words), labels))
    second = again.decision_function(np.array([["abd"], ["xyy"]], dtype=object))
    np.testing.assert_array_equal(first, second)
    again.close()


@pytest.mark.slow
def test_killed_while_answering(tmp_path):
    """SIGKILL at random moments, 40 times through the estimator; test_answers.py has more."""
    X, y, T, t = problem(n=150)
    file = tmp_path / "secret.db"
    asked(file).fit(X, y, private=Private(T, t)).close()
    Z = np.random.default_rng(3).uniform(-1, 1, size=(200, 2))
    heard: dict[int, float] = {}
    rng = np.random.default_rng(0)
    for _ in range(40):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                mine = asked(file).restore(X, y, private=Private(T, t))
                order = np.random.default_rng().permutation(len(Z))
                for i in order:
                    value = mine.decision_function(Z[i : i + 1])[0]
                    os.write(writer, np.array([i, value]).tobytes())
            finally:
                os._exit(0)
        os.close(writer)
        time.sleep(float(rng.uniform(0.05, 0.4)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        data = b""
        while part := os.read(reader, 1 << 16):
            data += part
        os.close(reader)
        for number, value in np.frombuffer(data[: len(data) // 16 * 16]).reshape(-1, 2):
            assert heard.setdefault(int(number), value) == value
    assert len(heard) > 30
