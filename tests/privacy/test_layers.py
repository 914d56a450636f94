"""Networks: blocks of private rows are for known layers, bit by bit; any other sees one row."""

from __future__ import annotations

import types
from copy import deepcopy

import numpy as np
import pytest

from dpadapt import Private, ReweightingClassifier
from dpadapt.privacy import Cleaning
from dpadapt.privacy.rows import layers
from dpadapt.privacy.rows.layers import _LISTED, known_layers
from dpadapt.privacy.rows.row_wise import row_wise
from dpadapt.reweighting.queries import NetworkGradient
from dpadapt.testing.tape import paid_by, releases, taped

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tests run side by side
nn = torch.nn

from dpadapt.reweighting.torch_module import check_module, flat, jacobian  # noqa: E402

ROWS, WIDTH, K = 70, 24, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, WIDTH))
Y = RNG.integers(0, K, ROWS).astype(float)
HOSTILE = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e300, 5e-324, 0.0, -0.0]


@pytest.fixture(autouse=True)
def _same_networks():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def query(module, clip=0.5, kappa=None):
    return NetworkGradient(Cleaning(1e9, classes=K), module, flat(module), clip, kappa)


def bits(module, rows):
    """What every row adds, and its loss."""
    with np.errstate(all="ignore"):
        gradients, losses = query(module).each(rows, Y[: len(rows)])
    return [
        gradient.tobytes() + loss.tobytes()
        for gradient, loss in zip(gradients, losses, strict=True)
    ]


# Known layers: every bit of the others stays ----------------------------------------------------

FLAT = (WIDTH,)
LINE, PICTURE, SOLID = (2, 12), (2, 3, 4), (1, 2, 3, 4)
SIMPLE = """
    Identity Flatten ReLU ReLU6 LeakyReLU PReLU ELU SELU CELU GELU SiLU Mish GLU Tanh Sigmoid
    Softplus Softsign LogSigmoid Tanhshrink Softshrink Hardshrink Hardtanh Hardsigmoid Hardswish
    Dropout AlphaDropout
"""
LAYERS = {
    **{name: (lambda name=name: getattr(nn, name)(), FLAT) for name in SIMPLE.split()},
    "Sequential": (lambda: nn.Sequential(nn.Linear(WIDTH, 7), nn.Sequential(nn.Tanh())), FLAT),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 12)), FLAT),
    "Linear": (lambda: nn.Linear(WIDTH, 50), FLAT),
    "Threshold": (lambda: nn.Threshold(0.1, 20.0), FLAT),
    "Softmax": (lambda: nn.Softmax(dim=1), FLAT),
    "Softmax, over the batch": (lambda: nn.Softmax(dim=0), FLAT),
    "LogSoftmax": (lambda: nn.LogSoftmax(dim=1), FLAT),
    "LayerNorm": (lambda: nn.LayerNorm(WIDTH), FLAT),
    "GroupNorm": (lambda: nn.GroupNorm(4, WIDTH), FLAT),
    "GELU, tanh": (lambda: nn.GELU("tanh"), FLAT),
    "Conv1d": (lambda: nn.Conv1d(2, 3, 3, padding=1), LINE),
    "Conv2d": (lambda: nn.Conv2d(2, 4, 2, groups=2), PICTURE),
    "Conv2d, circular": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), PICTURE),
    "Conv3d": (lambda: nn.Conv3d(1, 2, 2), SOLID),
    "GroupNorm of pictures": (lambda: nn.GroupNorm(2, 2), PICTURE),
    "Dropout1d": (lambda: nn.Dropout1d(0.5), LINE),
    "Dropout2d": (lambda: nn.Dropout2d(0.5), PICTURE),
    "Dropout3d": (lambda: nn.Dropout3d(0.5), SOLID),
    **{
        f"{kind}{d}d": (lambda kind=f"{kind}{d}d": getattr(nn, kind)(2), shape)
        for kind in ("AvgPool", "MaxPool", "AdaptiveAvgPool")
        for d, shape in ((1, LINE), (2, PICTURE), (3, SOLID))
    },
}


def net(name, dtype):
    """A linear layer, the named one, and a linear one to the classes."""
    made, shape = LAYERS[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        body = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Unflatten(1, shape), made(), nn.Flatten())
        out = deepcopy(body).eval()(torch.zeros(1, WIDTH)).shape[1]
        return nn.Sequential(body, nn.Linear(out, K)).to(dtype)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_known_layer_leaves_every_bit_of_the_others(name, dtype):
    module = net(name, dtype)
    assert known_layers(module)
    places = 7 * np.arange(len(HOSTILE)) + 1
    rest = np.setdiff1d(np.arange(ROWS), places)
    usual = bits(module, X)
    for columns in (1, WIDTH):
        odd = X.copy()
        odd[places, :columns] = np.array(HOSTILE)[:, None]
        found = bits(module, odd)
        assert [found[i] for i in rest] == [usual[i] for i in rest]
        assert [found[i] for i in places] != [usual[i] for i in places]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 3, 17, 33, 64])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_one_hostile_row_leaves_every_bit_of_the_others(rows, dtype):
    for name in LAYERS:
        module = net(name, dtype)
        usual = bits(module, X[:rows])
        for cell in HOSTILE:
            odd = X[:rows].copy()
            odd[rows // 2] = cell
            found = bits(module, odd)
            found[rows // 2] = usual[rows // 2]
            assert found == usual, (name, cell)


def test_every_listed_layer_is_tried():
    assert {name.partition(",")[0].partition(" ")[0] for name in LAYERS} == _LISTED


def test_layers_do_in_a_block_what_they_do_to_one_row():
    for name in LAYERS:
        module = net(name, torch.float64)
        together = query(module).each(X[:9], Y[:9])
        alone = query(Own(module)).each(X[:9], Y[:9])
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_row_that_torch_refuses_leaves_every_bit_of_the_others():
    """Where torch looks for NaN in gradients, one such row makes a call of all rows fail."""
    module, odd = net("Tanh", torch.float64), X.copy()
    odd[5] = np.nan
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        found = bits(module, odd)
    usual = bits(module, X)
    assert found[:5] + found[6:] == usual[:5] + usual[6:]


# Anything else is foreign -----------------------------------------------------------------------


class Own(nn.Module):
    """Code of somebody's, which may do anything: here, call what it holds."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


class Subclass(nn.Linear):
    def forward(self, x):
        return super().forward(x - x.mean(dim=0))


class OwnSequential(nn.Sequential):
    pass


class Weights(torch.Tensor):
    """Is asked about every operation it takes part in."""


class Kept(nn.Parameter):
    """So is this."""


class Eps(float):
    pass


class FunctionMode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class DispatchMode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Doubling(nn.Module):
    def forward(self, weight):
        return 2 * weight


def changed(change):
    def made():
        module = nn.Sequential(nn.Linear(WIDTH, K), nn.Identity())
        return change(module) or module

    return made


def hook(module, *_):
    return None


def _patched(module):
    module[0].forward = types.MethodType(Subclass.forward, module[0])


def _calling(module):
    module[0]._call_impl = hook


def _copied(module):
    module[0].weight.__deepcopy__ = hook


def _frozen(module):
    module[0].weight = nn.Parameter(torch.ones(K, WIDTH).as_subclass(Weights), requires_grad=False)


def _kept(module):
    module[0].weight = Kept(torch.ones(K, WIDTH), requires_grad=False)


def _shadowed(module):
    weight = module[0].weight.detach().as_subclass(Weights)
    del module[0].weight
    module[0].weight = weight


def _odd_number(module):
    module[1] = nn.LayerNorm(K, eps=Eps(1e-5))


def _buffer(module):
    module[1].register_buffer("weight", torch.ones(3).as_subclass(Weights))


def _table(module):
    class Table(dict):
        pass

    module._modules = Table(module._modules)


def _named(module):
    class Name(str):
        __slots__ = ()

    module.add_module(Name("other"), nn.ReLU())


UNKNOWN = {
    "a module of one's own": lambda: Own(nn.Linear(WIDTH, K)),
    "one inside": lambda: nn.Sequential(Own(nn.Linear(WIDTH, K))),
    "a subclass": lambda: Subclass(WIDTH, K),
    "a subclass inside": lambda: nn.Sequential(nn.ReLU(), Subclass(WIDTH, K)),
    "a sequence of one's own": lambda: OwnSequential(nn.Linear(WIDTH, K)),
    "batch norm": lambda: nn.Sequential(nn.BatchNorm1d(WIDTH).eval(), nn.Linear(WIDTH, K)),
    "instance norm": lambda: nn.InstanceNorm1d(WIDTH, affine=True),
    "a recurrent layer": lambda: nn.LSTM(WIDTH, K),
    "another module of torch": lambda: nn.TransformerEncoderLayer(WIDTH, 2),
    "a forward of its own": changed(_patched),
    "a call of its own": changed(_calling),
    "compiled": changed(lambda module: torch.compile(module, backend="eager")),
    "compiled in place": changed(lambda module: module.compile(backend="eager")),
    "a forward hook": changed(lambda module: hook(module[0].register_forward_hook(hook))),
    "a forward pre-hook": changed(lambda module: hook(module.register_forward_pre_hook(hook))),
    "a backward hook": changed(lambda module: hook(module[1].register_full_backward_hook(hook))),
    "a backward pre-hook": changed(
        lambda module: hook(module[1].register_full_backward_pre_hook(hook))
    ),
    "a parametrisation": changed(
        lambda module: hook(
            torch.nn.utils.parametrize.register_parametrization(module[0], "weight", Doubling())
        )
    ),
    "weight norm": changed(
        lambda module: hook(torch.nn.utils.parametrizations.weight_norm(module[0]))
    ),
    "frozen parameters of a kind of their own": changed(_frozen),
    "a class of parameters": changed(_kept),
    "a parameter that copies itself": changed(_copied),
    "a tensor in the place of a parameter": changed(_shadowed),
    "a number of a kind of its own": changed(_odd_number),
    "a buffer": changed(_buffer),
    "a table of a kind of its own": changed(_table),
    "a name of a kind of its own": changed(_named),
    "on another device": lambda: nn.Linear(WIDTH, K, device="meta"),
    "no module": lambda: nn.functional.relu,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_foreign(name):
    assert not known_layers(UNKNOWN[name]())


def test_what_is_told_every_operation_is_foreign():
    module = nn.Linear(WIDTH, K)
    assert known_layers(module)
    for mode in (FunctionMode, DispatchMode):
        with mode():
            assert not known_layers(module)
    for register in (
        nn.modules.module.register_module_forward_hook,
        nn.modules.module.register_module_forward_pre_hook,
        nn.modules.module.register_module_full_backward_hook,
    ):
        handle = register(hook)
        try:
            assert not known_layers(module)
        finally:
            handle.remove()
    assert known_layers(module)


def test_an_operation_of_torch_that_somebody_replaced_makes_all_networks_foreign(monkeypatch):
    module = nn.Sequential(nn.Linear(WIDTH, 8), nn.SELU(), nn.Linear(8, K))
    usual, odd = bits(module, X), X.copy()  # and torch has made its own rules by now
    odd[7] = 1e6
    with torch.library._scoped_library("aten", "FRAGMENT") as library:
        torch.library.register_vmap(
            "aten::elu", lambda info, dims, x, *_: (x - x.mean(dim=0), dims[0]), lib=library
        )
        assert not known_layers(module)
        found = bits(module, odd)
        assert found[8:] == bits(module, X)[8:]
        way = "dpadapt.reweighting.queries.known_layers"
        monkeypatch.setattr(way, lambda _: True)
        assert bits(module, odd)[8:] != bits(module, X)[8:]  # the test has power
        monkeypatch.undo()
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("tan", torch.atan, "CPU")
        assert not known_layers(module)
    assert known_layers(module)
    assert bits(module, X) == usual


def test_a_forward_that_somebody_put_into_a_class_of_torch_is_foreign(monkeypatch):
    monkeypatch.setattr(nn.ReLU, "forward", lambda self, x: x - x.mean(dim=0))
    assert not known_layers(nn.ReLU())
    assert known_layers(nn.Tanh())


def test_a_network_that_holds_itself_is_walked_once():
    module = nn.Sequential(nn.ReLU())
    module.append(module)
    assert known_layers(module)


def test_a_class_that_says_it_is_of_torch_is_not():
    Fake = type("Linear", (nn.Linear,), {"__module__": "torch.nn.modules.linear"})
    assert not known_layers(Fake(WIDTH, K))


# Foreign networks: no row can touch another -----------------------------------------------------


@torch.library.custom_op("dpadapt_tests::mixing", mutates_args=())
def mixing(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@mixing.register_fake
def _(x):
    return torch.empty_like(x)


mixing.register_autograd(lambda ctx, g: g, setup_context=lambda ctx, inputs, output: None)


@mixing.register_vmap
def _(info, in_dims, x):
    x = x.movedim(in_dims[0], 0)
    return mixing(x - 5 * x.mean(dim=0, keepdim=True)), 0


def operated(x):
    return mixing(x)


class _Centre(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient

    @staticmethod
    def vmap(info, in_dims, x):
        x = x.movedim(in_dims[0], 0)
        return x - x.mean(dim=0, keepdim=True), 0


def unwrapped(x):
    raw, functorch = x, torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(raw):
        raw = functorch.get_unwrapped(raw)
    return x if raw is x else x - 5 * raw.mean(dim=0)


class Mixing(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way, self.linear = way, nn.Linear(WIDTH, K)

    def forward(self, x):
        return self.linear(self.way(x))


class Remembering(nn.Module):
    """Adds what it has seen, in a buffer, an attribute, a parameter; draws a number."""

    def __init__(self):
        super().__init__()
        self.linear, self.seen = nn.Linear(WIDTH, K), []
        self.register_buffer("sum", torch.zeros(WIDTH))

    def forward(self, x):
        self.seen.append(x.detach())
        with torch.no_grad():
            self.sum += x.mean(dim=0)
            self.linear.weight += 0.01 * x.mean()
        return self.linear(x + self.sum + torch.rand(1) + len(self.seen))


def hooked():
    module = nn.Sequential(nn.Linear(WIDTH, K))
    module.register_forward_pre_hook(lambda module, args: (unwrapped(args[0]),))
    return module


MIXERS = {
    "an operation with a rule for blocks": lambda: Mixing(operated),
    "a function with a rule for blocks": lambda: Mixing(_Centre.apply),
    "unwrapped": lambda: Mixing(unwrapped),
    "unwrapped in a hook": hooked,
    "of the batch": lambda: Mixing(lambda x: x - x.mean(dim=0) / 2),
    "remembering": Remembering,
}


@pytest.mark.parametrize("name", MIXERS)
def test_no_network_lets_a_row_touch_another(name):
    module, few = MIXERS[name](), 24
    usual = bits(module, X[:few])
    assert len(set(usual)) == few
    for cell in (np.nan, 1e6, 0.0):
        odd = X[:few].copy()
        odd[7] = cell
        found = bits(module, odd)
        same = found[:7] + found[8:] == usual[:7] + usual[8:]
        assert same, "not told in full: that takes minutes"
    if name == "remembering":
        assert module.seen == []
        assert not module.sum.any()


@pytest.mark.parametrize("name", [*MIXERS][:4])
def test_the_test_above_has_power(name, monkeypatch):
    """In a block they mix rows."""
    monkeypatch.setattr("dpadapt.reweighting.queries.known_layers", lambda _: True)
    module, odd = MIXERS[name](), X.copy()
    odd[7] = 1e6
    assert bits(module, odd)[8:] != bits(module, X)[8:]


@pytest.mark.parametrize("way", [operated, unwrapped], ids=["operation", "unwrapped"])
def test_no_network_moves_a_release_further_than_claimed(way):
    P, labels = X[:, :4], (X[:, 0] > 0).astype(int)
    odd = P.copy()
    odd[7] = 1e4
    module = Mixing(way)
    module.linear = nn.Linear(4, 2)
    tapes = []
    for rows in (P, odd):
        model = ReweightingClassifier(
            epsilon=1.0, delta=1e-6, module=module, classes=[0, 1], noise="seeded", random_state=0
        ).set_params(solver="known-noise", solver__steps=2)
        with taped(replay=tapes[0] if tapes else None) as tape:
            model.fit(P, labels, private=Private(rows, labels))
        tapes.append(tape)
    assert not row_wise(model.predict)
    for one, other in zip(releases(tapes[0]), releases(tapes[1]), strict=True):
        allowed = max(paid.sensitivity for paid in paid_by(one, model.guarantee_.events))
        moved = np.linalg.norm(one.value - other.value) / one.unit
        assert moved <= allowed * (1 + 1e-9)


@pytest.mark.parametrize("kappa", [None, 0.5])
def test_a_network_of_ones_own_is_summed_as_a_known_one(kappa):
    module = net("Tanh", torch.float64)
    codes = np.where(np.arange(ROWS) % 9, Y, -1.0)
    one, other = (query(each, kappa=kappa).block(X, codes) for each in (module, Own(module)))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    odd, without = X.copy(), codes.copy()
    odd[4], without[4] = np.nan, -1.0
    found = [query(Own(module)).block(*each) for each in ((odd, codes), (X, without))]
    assert found[0].tobytes() == found[1].tobytes()


class Failing(nn.Module):
    """Leaves, has no gradient, forgets its layer, gives another shape: by what is in a row."""

    def __init__(self):
        super().__init__()
        self.linear, self.unused = nn.Linear(WIDTH, K), nn.Parameter(torch.ones(2))

    def forward(self, x):
        print("a private value", x)
        if x[0, 0] > 100:
            raise SystemExit("a private value")
        out = self.linear(x)
        if x[0, 1] > 100:
            return out.detach()
        if x[0, 2] > 100:
            self.linear = None
        return out[0] if x[0, 3] > 100 else out


def test_a_row_on_which_it_fails_adds_nothing_and_nobody_leaves(capfd):
    module = Failing()
    with torch.no_grad():
        module.linear.weight *= 0.1
    usual, odd = bits(module, X), X.copy()
    for i in range(4):
        odd[10 + i, i] = 101.0
    capfd.readouterr()
    found = bits(module, odd)
    assert capfd.readouterr() == ("", "")
    assert found[:10] + found[14:] == usual[:10] + usual[14:]
    assert [bool(np.frombuffer(each).any()) for each in found[10:14]] == [False, False, True, False]
    assert module.linear is not None
    gradients, _ = query(module).each(X, Y)
    assert not gradients[:, :2].any()  # of what it does not use
    assert gradients[:, 2:].any()


class Stubborn(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.seen = nn.Linear(WIDTH, K), []

    def forward(self, x):
        return self.linear(x)

    def __deepcopy__(self, memo):
        return self


def test_a_network_that_cannot_be_copied_is_refused():
    with pytest.raises(TypeError, match="its own copy"):
        query(Stubborn())
    with pytest.raises(TypeError, match="its own copy"):
        check_module(Stubborn(), X, K)


def test_the_linearisation_of_a_network_of_ones_own_is_that_of_its_layers():
    module = net("Tanh", torch.float64)
    one, other = (jacobian(each, flat(module), X[:5]) for each in (module, Own(module)))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_without_torch_nothing_is_known(monkeypatch):
    monkeypatch.delitem(layers.sys.modules, "torch")
    assert not known_layers(object())
