"""Networks: clipped per-example gradients, the noise that is claimed, and what adaptation gains."""

from __future__ import annotations

import math
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from dpadapt.papers.reweighting.queries import LogisticGradient
from dpadapt.privacy import Cleaning, Private
from dpadapt.reweighting import queries
from dpadapt.reweighting.queries import NetworkGradient
from dpadapt.testing.independent_accountant import recompute_epsilon

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tests run side by side

from dpadapt.papers.reweighting.classification_solvers import GradientNetwork, ProfiledNetwork  # noqa: E402
from dpadapt.reweighting.network import NetworkAdaptation  # noqa: E402
from dpadapt.reweighting.torch_module import flat, public_gradient, scores  # noqa: E402

K, D = 3, 4
CLEANING = Cleaning(radius=4.0, classes=K)
DELTA = 1e-6


def _net(hidden=8, *, inputs=D, classes=K, seed=0, dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(hidden, classes),
        ).to(dtype)


def _rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.integers(0, K, n).astype(float)


def _task(n, seed, shift=0.0):
    """Classes by angle around a centre; the private task is the public one turned."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    angle = np.arctan2(X[:, 1], X[:, 0]) + shift
    return X, np.floor((angle % (2 * math.pi)) / (2 * math.pi) * K)


def _adaptation(m=400, kind=NetworkAdaptation, **options):
    X, y = _task(m, 0)
    return kind(X, y, K, _net(), **options)


def _fit(adaptation, sample=None, epsilon=1.0, seed=0):
    X, y = sample or _task(1000, 1, 0.7)
    with Private(X, y).open(
        epsilon=epsilon, delta=DELTA, noise="seeded", random_state=seed
    ) as session:
        return adaptation.fit(session, CLEANING), session.guarantee


def _error(module, X, y):
    return float(np.mean(scores(module, X).argmax(axis=1) != y))


# the query


def _by_hand(module, X, y, clip, kappa):
    """Row after row through autograd."""
    module, total = deepcopy(module).eval(), 0.0
    for row, code in zip(X, y, strict=True):
        if code < 0:
            continue
        module.zero_grad()
        target = torch.tensor([int(code)])
        loss = torch.nn.functional.cross_entropy(module(torch.from_numpy(row)[None]), target)
        loss.backward()
        g = np.concatenate([p.grad.numpy().ravel() for p in module.parameters()])
        g = g * (1.0 if kappa is None else min(1.0, math.sqrt(kappa / loss.item())))
        total = total + g * min(1.0, clip / np.linalg.norm(g))
    return total


@pytest.mark.parametrize("kappa", [None, 0.8])
def test_gradient_is_that_of_a_loop_over_rows(kappa, monkeypatch):
    module, (X, y) = _net(), _rows(50)
    y[::7] = -1.0
    query = NetworkGradient(CLEANING, module, flat(module), clip=1.3, kappa=kappa)
    lengths = np.linalg.norm(query.each(X, y)[0], axis=1)
    assert 0.1 < np.mean(lengths > 1.3) < 0.9  # some are clipped, some are not
    expected = _by_hand(module, X, y, 1.3, kappa)
    np.testing.assert_allclose(query.block(X, y), expected, rtol=1e-9, atol=1e-12)
    seven = 7 * query.parameters.size  # numbers: in seven rows' pieces
    monkeypatch.setattr(queries, "_CELLS", seven)
    np.testing.assert_allclose(query.block(X, y), expected, rtol=1e-9, atol=1e-12)
    assert query.block(X[:0], y[:0]).tolist() == [0.0] * query.parameters.size


@pytest.mark.parametrize("clip", [0.7, 50.0])
def test_linear_module_is_multinomial_logistic_regression(clip):
    X, y = _rows(60)
    W = np.random.default_rng(1).normal(size=(K, D + 1))
    linear = LogisticGradient(CLEANING, W, clip).block(np.column_stack([X, np.ones(60)]), y)
    flattened = np.concatenate([W[:, :D].ravel(), W[:, D]])
    module = torch.nn.Linear(D, K).double()
    found = NetworkGradient(CLEANING, module, flattened, clip).block(X, y)
    expected = np.concatenate([linear[:, :D].ravel(), linear[:, D]])
    np.testing.assert_allclose(found, expected, atol=1e-10)


HOSTILE = [
    (np.full(D, 1e300), 0.0),
    (np.full(D, np.inf), 1.0),
    (np.full(D, np.nan), 2.0),
    (np.full(D, -1e30), 2.0),
    (np.zeros(D), -1.0),
    (np.full(D, 1e-320), 0.0),
]


def _largest_move(query, trials=60):
    """Over random neighbours, in units of the sensitivity; the rows are not cleaned before."""
    rng, largest = np.random.default_rng(0), 0.0
    for trial in range(trials):
        X, y = _rows(6, trial)
        X = X * 10 ** rng.uniform(-2, 3)
        other, code = X.copy(), y.copy()
        i = rng.integers(6)
        other[i] = rng.normal(size=D) * 10 ** rng.uniform(-2, 6)
        code[i] = rng.integers(-1, K)
        if trial % 3 == 0:
            other[i], code[i] = HOSTILE[trial // 3 % len(HOSTILE)]
        with np.errstate(all="ignore"):
            move = np.linalg.norm(query.block(X, y) - query.block(other, code)) / 6
        move = np.nan_to_num(move, nan=np.inf, posinf=np.inf)
        largest = max(largest, move / query.sensitivity(6))
    return largest


class _Unclipped(NetworkGradient):
    def block(self, X, y):
        return np.nan_to_num(self.each(X, y)[0]).sum(axis=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kappa", [None, 0.5])
def test_no_neighbour_moves_the_gradient_further_than_claimed(dtype, kappa):
    module = _net(dtype=dtype)
    query = NetworkGradient(CLEANING, module, flat(module), clip=0.5, kappa=kappa)
    assert 0.5 < _largest_move(query) <= 1.0
    assert _largest_move(_Unclipped(CLEANING, module, flat(module), clip=0.5)) > 2


def test_sensitivity_is_attained():
    module = torch.nn.Linear(D, 2).double()
    query = NetworkGradient(Cleaning(9.0, classes=2), module, np.zeros(2 * D + 2), clip=0.5)
    X = np.ones((1, D))  # opposite gradients, longer than the clip
    move = query.block(X, np.array([0.0])) - query.block(X, np.array([1.0]))
    assert np.linalg.norm(move) == pytest.approx(query.sensitivity(1), rel=1e-9)
    assert np.linalg.norm(move) <= query.sensitivity(1)


def test_a_row_without_a_finite_gradient_stays_with_itself():
    X, y = _rows(8)
    module = _net()
    query = NetworkGradient(CLEANING, module, flat(module), clip=1.0)
    spoilt = X.copy()
    spoilt[3] = np.nan
    without = y.copy()
    without[3] = -1.0
    np.testing.assert_array_equal(query.block(spoilt, y), query.block(X, without))


# what is claimed


def test_the_claim_is_what_an_independent_accountant_finds():
    _, guarantee = _fit(_adaptation(steps=7))
    (event,) = guarantee.events
    assert (event.count, guarantee.epsilon <= 1.0) == (7, True)
    low, high = recompute_epsilon(guarantee.events, DELTA)
    assert low <= guarantee.epsilon * (1 + 1e-3)
    assert high == pytest.approx(1.0, rel=2e-3)
    less = replace(event, scale=0.7 * event.scale)
    assert recompute_epsilon([less], DELTA)[0] > 1.3  # too little noise would be seen


@pytest.mark.parametrize(("kind", "alpha"), [(ProfiledNetwork, 0.0), (GradientNetwork, 0.25)])
def test_the_noise_that_is_added_is_the_noise_that_is_charged_for(kind, alpha):
    """One step of size 1: the move is minus the gradient and its noise."""
    X, y = _task(300, 0)
    T, codes = _task(1000, 1, 0.7)
    adaptation = kind(X, y, K, _net(hidden=400), alpha=alpha, clip=2.0, steps=1, step_size=1.0)
    found, guarantee = _fit(adaptation, (T, codes))
    (event,) = guarantee.events
    query = NetworkGradient(CLEANING, adaptation.module, adaptation.start, clip=2.0)
    exact = (1 - alpha) * query.block(*CLEANING(T, codes)) / len(T)
    if alpha:
        exact = exact + alpha * query.each(X, y)[0].mean(axis=0)
    noise = (adaptation.start - flat(found) - exact) / (1 - alpha)
    ratio = float(np.std(noise)) / event.scale
    assert ratio == pytest.approx(1.0, abs=0.08)  # of 3,203 numbers: 0.7 would not pass
    assert event.sensitivity == pytest.approx(2 * 2.0 / len(T), rel=1e-6)


def test_printed_noise():
    settings = {"alpha": 0.25, "clip": 2.0, "steps": 9}
    _, guarantee = _fit(
        _adaptation(kind=GradientNetwork, calibration="paper", **settings), epsilon=2
    )
    (event,) = guarantee.events
    s_1 = 2 * 0.75 * 2.0 / 1000  # of the private part, which is 0.75 times the mean
    printed = 2 * s_1 * math.sqrt(9 * math.log(2 / DELTA)) / 2.0
    assert event.scale * 0.75 == pytest.approx(printed)
    low, high = recompute_epsilon(guarantee.events, DELTA)
    assert low * (1 - 1e-3) <= guarantee.epsilon <= high * (1 + 1e-3)


def test_nothing_is_charged_where_private_rows_have_no_share():
    adaptation = _adaptation(kind=ProfiledNetwork, alpha=1.0)
    found, guarantee = _fit(adaptation)
    assert guarantee.events == ()
    np.testing.assert_array_equal(flat(found), adaptation.start)


# the solvers


def test_predicted_noise_in_the_logits_is_what_comes_out():
    """Rows of no class have no gradient: all that moves the network is noise."""
    X, y = _task(300, 0)
    T = np.zeros((1000, D))
    adaptation = ProfiledNetwork(X, y, K, _net(), steps=10, step_size=1e-3)
    before = scores(adaptation.pretrain(), X)
    energies = []
    for seed in range(12):
        found, guarantee = _fit(adaptation, (T, np.full(1000, -1.0)), seed=seed)
        move = scores(found, X) - before
        energies.append(np.mean((move - move.mean(axis=1, keepdims=True)) ** 2))
    predicted = adaptation.noise_energy(guarantee.events[0].scale, 1e-3)
    assert np.mean(energies) / predicted == pytest.approx(1.0, abs=0.25)


@pytest.mark.slow
def test_default_improves_on_the_public_network():
    X, y = _task(800, 0)
    T, codes = _task(6500, 1, 0.7)
    adaptation = NetworkAdaptation(X, y, K, _net(16))
    test = T[5000:], codes[5000:]
    public = _error(adaptation.pretrain(), *test)
    found, guarantee = _fit(adaptation, (T[:5000], codes[:5000]))
    assert guarantee.epsilon <= 1.0
    best = _error(adaptation.minimise(T[:5000], codes[:5000]), *test)
    assert public > 0.25  # a turn of 0.7 of the 6.3 around the circle, at each of three borders
    assert best < 0.12
    assert _error(found, *test) < public - 0.7 * (public - best)


def test_default_stays_near_the_public_network_where_there_is_nothing_but_noise():
    adaptation = _adaptation()
    test = _task(2000, 3)
    public = _error(adaptation.pretrain(), *test)
    found, _ = _fit(adaptation, _task(100, 2), epsilon=0.05)
    bare, _ = _fit(_adaptation(kind=ProfiledNetwork), _task(100, 2), epsilon=0.05)  # no shrinking
    kept = np.linalg.norm(flat(found) - adaptation.start)
    assert kept < 0.7 * np.linalg.norm(flat(bare) - adaptation.start)
    assert _error(found, *test) < public + 0.05


@pytest.mark.parametrize(
    "options",
    [{"kind": ProfiledNetwork, "kappa": 0.7, "alpha": 0.3}, {"kind": GradientNetwork}],
)
def test_without_noise_a_fit_is_the_minimiser(options):
    adaptation = _adaptation(steps=30, **options)
    sample = CLEANING(*_task(1000, 1, 0.7))
    limit = flat(adaptation.minimise(*sample)) - adaptation.start
    found, _ = _fit(adaptation, sample, epsilon=1e6)
    assert np.linalg.norm(limit) > 0.05
    np.testing.assert_allclose(flat(found) - adaptation.start, limit, atol=0.02)


@pytest.mark.parametrize("kappa", [None, 0.4])
def test_public_term(kappa):
    X, y = _rows(40)
    module = _net()
    query = NetworkGradient(CLEANING, module, flat(module), clip=1e9, kappa=kappa)
    found = public_gradient(module, flat(module), X, y.astype(int), kappa)
    np.testing.assert_allclose(found, query.block(X, y) / 40, atol=1e-9)


def test_same_seeds_same_network():
    first, second, third = (_adaptation(m=100, steps=5, seed=seed) for seed in (0, 0, 1))
    one, two = (flat(_fit(adaptation, seed=3)[0]) for adaptation in (first, second))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - flat(_fit(first, seed=4)[0])).max() > 1e-6
    assert np.abs(first.start - third.start).max() > 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_module_is_copied_and_keeps_its_precision_and_frozen_parameters(dtype):
    module = _net(dtype=dtype)
    module[0].requires_grad_(False)
    given = deepcopy(module.state_dict())
    X, y = _task(300, 0)
    adaptation = NetworkAdaptation(X, y, K, module, steps=5)
    assert adaptation.start.shape == (8 * K + K,)
    for found in (adaptation.pretrain(), _fit(adaptation)[0]):
        assert not found.training
        assert found[0].weight.dtype == dtype
        assert torch.equal(found[0].weight, given["0.weight"])
        assert not torch.equal(found[3].weight, given["3.weight"])
    assert all(torch.equal(value, given[name]) for name, value in module.state_dict().items())
    assert module.training


# what is refused


class _Centred(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(D, K).double()

    def forward(self, x):
        return self.last(x - x.mean(dim=0))


def test_layers_that_mix_rows_are_refused():
    X, y = _task(50, 0)
    module = torch.nn.Sequential(
        torch.nn.Linear(D, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, K)
    ).double()
    with pytest.raises(ValueError, match=r"layer '1' \(BatchNorm1d\) takes statistics of a batch"):
        NetworkAdaptation(X, y, K, module)
    module[1].eval()
    found, _ = _fit(NetworkAdaptation(X, y, K, module, steps=2))
    assert torch.equal(found[1].running_mean, torch.zeros(5).double())
    module[1] = torch.nn.BatchNorm1d(5, track_running_stats=False).double().eval()
    with pytest.raises(ValueError, match="statistics of a batch"):
        NetworkAdaptation(X, y, K, module)
    with pytest.raises(ValueError, match="mixes rows"):
        NetworkAdaptation(X, y, K, _Centred())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": ProfiledNetwork, "alpha": 1.5}, "alpha"),
        ({"kind": GradientNetwork, "alpha": -0.1}, "alpha"),
        ({"kind": ProfiledNetwork, "kappa": 0.0}, "kappa"),
        ({"clip": 0.0}, "clip"),
        ({"steps": 0}, "steps"),
        ({"step_size": -1.0}, "step_size"),
        ({"kind": GradientNetwork, "calibration": "printed"}, "calibration"),
        ({"n_classes": 2}, "class codes"),
        ({"codes": np.zeros(3)}, "one class for each row"),
        ({"module": torch.nn.Linear(D, K + 1).double()}, "one for each of the classes"),
        ({"module": torch.nn.Linear(D, K).requires_grad_(False)}, "trainable"),
    ],
)
def test_bad_arguments(options, message):
    X, y = _task(50, 0)
    settings = {"X": X, "codes": y, "n_classes": K, "module": _net(), **options}
    kind = settings.pop("kind", NetworkAdaptation)
    with pytest.raises(ValueError, match=message):
        kind(**settings)


@pytest.mark.parametrize("option", ["alpha", "kappa", "calibration"])
def test_options_of_the_paper_are_none_of_the_default(option):
    with pytest.raises(TypeError, match=option):
        _adaptation(**{option: 1.0})


def test_bad_private_sample():
    adaptation = _adaptation(steps=2)
    X, y = _task(100, 1)
    for columns, cleaning, message in (
        (X[:, 1:], CLEANING, "columns once cleaned"),
        (X, replace(CLEANING, intercept=1.0), "columns once cleaned"),
        (X, replace(CLEANING, classes=None), "classes=3"),
    ):
        with (
            Private(columns, y).open(epsilon=1.0, delta=DELTA) as session,
            pytest.raises(ValueError, match=message),
        ):
            adaptation.fit(session, cleaning)
        assert session.guarantee.events == ()
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        NetworkAdaptation(X, y, K, lambda rows: rows)


def test_torch_is_not_imported_with_the_package():
    code = "import sys, dpadapt, dpadapt.reweighting.network; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numpy" in run.stdout.split()
    assert "torch" not in run.stdout.split()


class _Picky(torch.nn.Module):
    """Looks a whole number up, and fails where there is none; says what it sees."""

    def __init__(self):
        super().__init__()
        self.table, self.linear = torch.nn.Embedding(4, 3), torch.nn.Linear(3, K)

    def forward(self, X):
        print("a private value")
        return self.linear(self.table(X[:, 0].long()))


def test_a_row_on_which_the_network_fails_adds_nothing_and_says_nothing(capfd):
    X, y = np.zeros((50, 1)), np.zeros(50)
    X[:, 0] = np.arange(50) % 4
    query = NetworkGradient(Cleaning(1e9, classes=K), _Picky(), flat(_Picky()), clip=1.0)
    odd, without = X.copy(), y.copy()
    odd[17], without[17] = 99.0, -1.0  # of no class
    assert query.block(odd, y).tobytes() == query.block(X, without).tobytes()
    capfd.readouterr()
    with Private(odd, y.astype(int)).encode(range(K)).open(epsilon=1.0, delta=1e-6) as session:
        session.hide(query)
    assert capfd.readouterr() == ("", "")
