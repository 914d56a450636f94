"""Events: what they record, what they refuse, and the curves they state."""

import dataclasses
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import integrate, stats

from dpadapt.papers.discrepancy.parameters import zcdp_rho
from dpadapt.papers.hybrid.doors.draws import DrawsEvent
from dpadapt.papers.hybrid.doors.one_draw import OneDrawGaussianEvent
from dpadapt.papers.kernels.machines import UpdatesEvent
from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy.accounting import events as events_module
from dpadapt.privacy.accounting.calibration import calibrate, gaussian_mu
from dpadapt.privacy.accounting.composition import (
    compose_delta,
    compose_epsilon,
    fits,
    pld_epsilon,
)
from dpadapt.privacy.accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    event_from_dict,
    is_known,
)
from dpadapt.privacy.ledger.records import encode_events

GAUSSIAN = GaussianEvent("mean", sensitivity=0.5, scale=2.0, count=3)
PURE = PureEvent("answer", epsilon=0.25, count=2)
EVERY_KIND = [
    GAUSSIAN,
    DiscreteGaussianEvent("grid mean", sensitivity=1.0, scale=7.0, count=2),
    LaplaceEvent("count", sensitivity=1.0, scale=3.0),
    PURE,
    BoundedRangeEvent("choice", sensitivity=0.1, scale=0.3, count=5),
    PoissonGaussianEvent("gradient", clip=2.0, scale=3.0, rate=0.01, count=100),
    PoissonGaussianEvent("gradient", 2.0, 3.0, 0.01, 100, relation="add-remove"),
    ParallelEvent("folds", branches=((GAUSSIAN,), (PURE, GAUSSIAN), ())),
    ParallelEvent("nested", branches=((ParallelEvent("in", branches=((PURE,),)),), (PURE,))),
    RandomStoppingEvent("tuning", base=(GAUSSIAN, PURE), shape=0.5, gamma=0.1),
    UpdatesEvent("answers", sensitivity=1.0, scale=50.0, count=7),
    ParallelEvent("deep", ((RandomStoppingEvent("t", (GAUSSIAN,), 1.0, 0.2), PURE),)),
    OneDrawGaussianEvent("descent", clip=1.0, scale=4.0, rate=1e-6, count=10**9),
    DrawsEvent("learner", epsilon=1.0, delta=1e-9, draws=100, rate=1e-4, count=5),
]


def identity(event: Event) -> str:
    return f"{event.kind}-{event.label}"


@pytest.mark.parametrize("event", EVERY_KIND, ids=identity)
def test_json_round_trip(event):
    text = json.dumps(event.to_dict(), allow_nan=False)
    again = event_from_dict(json.loads(text))
    assert again == event
    assert type(again) is type(event)
    assert hash(again) == hash(event)


def test_every_kind_is_in_the_round_trip():
    homes = ("dpadapt.privacy.", "dpadapt.papers.")
    ours = [cls for cls in _subclasses(Event) if cls.__module__.startswith(homes)]
    kinds = {vars(cls)["kind"] for cls in ours if "kind" in vars(cls)} - {
        "summed",
        "failed",
    }  # of ledgers
    assert {event.kind for event in EVERY_KIND} == kinds
    assert len(kinds) == 11


def event_class(module, kind, base=Event, *, slots=True, **answers):
    """A class of events as if it stood in that module."""
    parts = {"__module__": module} | ({} if kind is None else {"kind": kind}) | answers
    return dataclasses.dataclass(frozen=True, slots=slots)(type("Made", (base,), parts))


@pytest.fixture
def registry(monkeypatch):
    """The kinds of events, put back after the test."""
    monkeypatch.setattr(events_module, "_KINDS", dict(events_module._KINDS))
    return events_module._KINDS


def test_an_event_of_the_package_registers_itself(registry):
    made = event_class("dpadapt.privacy.mechanisms.sixth", "sixth")
    assert registry["sixth"] is made
    event = made("new")
    assert event_from_dict(event.to_dict()) == event
    assert is_known(event)
    assert compose_epsilon([event], DELTA) == math.inf  # it states nothing yet


@pytest.mark.parametrize("module", ["dpadapt.privacy.mechanisms.sixth", "elsewhere"])
@pytest.mark.parametrize("kind", ["gaussian", "one-draw-gaussian"])
def test_a_kind_is_given_once(module, kind, registry):
    before = dict(registry)
    with pytest.raises(TypeError, match=f"{kind!r} is taken by .*GaussianEvent"):
        event_class(module, kind)
    assert registry == before


CHEAP = {
    "pure_epsilon": property(lambda self: 0.0),
    "gaussian_mu": property(lambda self: 0.0),
    "renyi": lambda self, orders: np.zeros(orders.shape),
}
FOREIGN = {
    "a kind of its own": ("elsewhere", "cheap", Event, True, ()),
    "a kind of its own, like ours": ("dpadapt.privacy_", "cheap", Event, True, ()),
    "a cheaper Gaussian": ("elsewhere", None, GaussianEvent, True, (1.0, 0.01)),
    "a cheaper Gaussian of the package": ("dpadapt.privacy.x", None, GaussianEvent, True, (1, 1)),
    "without slots": ("dpadapt.privacy.x", "cheap", Event, False, ()),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_an_event_from_elsewhere_lowers_no_price(name, registry, tmp_path):
    module, kind, base, slots, facts = FOREIGN[name]
    before = dict(registry)
    cheap = event_class(module, kind, base, slots=slots, **CHEAP)("cheap", *facts)
    assert registry == before
    for event in (
        cheap,
        ParallelEvent("split", ((PURE,), (cheap,))),
        RandomStoppingEvent("best", (cheap,), 1.0, 0.1),
        ParallelEvent("split", ((RandomStoppingEvent("best", (PURE, cheap), 1.0, 0.1),),)),
    ):
        assert not is_known(event)
        assert compose_epsilon([PURE, event], DELTA) == math.inf
        assert compose_epsilon([event], 0.0) == math.inf
        assert pld_epsilon([event], DELTA) == math.inf
        assert compose_delta([event], 100.0) == 1
        assert not fits([event], 100.0, 0.5)
        with pytest.raises(ValueError, match="whatever the noise"):
            calibrate(lambda _, e=event: [e], 1.0, DELTA)
        with pytest.raises(ValueError, match="unknown kind of event"):
            encode_events([event])


def test_an_event_is_read_back_in_a_process_that_never_needed_its_mechanism():
    text = json.dumps([event.to_dict() for event in EVERY_KIND])
    code = (
        "import json, sys\n"
        "from dpadapt.privacy.accounting import events\n"
        "assert not any('poisson' in name for name in sys.modules)\n"
        "print([events.event_from_dict(item).kind for item in json.loads(sys.argv[1])])\n"
    )
    run = subprocess.run([sys.executable, "-c", code, text], capture_output=True, text=True)
    assert run.stdout.strip() == str([event.kind for event in EVERY_KIND]), run.stderr


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def test_numpy_scalars_become_plain_json():
    event = GaussianEvent("mean", np.float32(0.5), np.float64(2), np.int64(3))
    assert json.loads(json.dumps(event.to_dict())) == GAUSSIAN.to_dict()
    assert type(event.to_dict()["count"]) is int


@pytest.mark.parametrize("event", EVERY_KIND, ids=identity)
def test_frozen(event):
    for field in dataclasses.fields(event):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, getattr(event, field.name))
    with pytest.raises((AttributeError, TypeError)):
        event.surprise = 1


@pytest.mark.parametrize("kind", ["gauss", None, "", 3])
def test_unknown_kind_is_refused(kind):
    with pytest.raises(ValueError, match="unknown kind of event"):
        event_from_dict({"kind": kind, "label": "x", "epsilon": 1.0})


def test_unknown_kind_inside_is_refused():
    data = EVERY_KIND[7].to_dict()
    data["branches"][0][0]["kind"] = "newer"
    with pytest.raises(ValueError, match="unknown kind of event 'newer'"):
        event_from_dict(data)


def test_unknown_or_missing_field_is_refused():
    data = PURE.to_dict()
    with pytest.raises(TypeError, match="surprise"):
        event_from_dict({**data, "surprise": 1})
    del data["epsilon"]
    with pytest.raises(TypeError, match="epsilon"):
        event_from_dict(data)


GOOD = {
    GaussianEvent: {"sensitivity": 1.0, "scale": 1.0, "count": 1},
    DiscreteGaussianEvent: {"sensitivity": 1.0, "scale": 1.0, "count": 1},
    LaplaceEvent: {"sensitivity": 1.0, "scale": 1.0, "count": 1},
    BoundedRangeEvent: {"sensitivity": 1.0, "scale": 1.0, "count": 1},
    PureEvent: {"epsilon": 1.0, "count": 1},
    PoissonGaussianEvent: {"clip": 1.0, "scale": 1.0, "rate": 0.5, "count": 1},
    UpdatesEvent: {"sensitivity": 1.0, "scale": 1.0, "count": 1},
    RandomStoppingEvent: {"base": (GAUSSIAN,), "shape": 1.0, "gamma": 0.5},
}
NOT_NUMBERS = [math.nan, math.inf, -math.inf, True, "1", None, 1j]
BAD = {
    "sensitivity": [-1.0, -1e-300, *NOT_NUMBERS],
    "epsilon": [-1.0, *NOT_NUMBERS],
    "scale": [0.0, -1.0, *NOT_NUMBERS],
    "clip": [0.0, -1.0, *NOT_NUMBERS],
    "rate": [0.0, 1.0, -0.1, 1.5, *NOT_NUMBERS],
    "gamma": [0.0, 1.0, -0.1, 1.5, *NOT_NUMBERS],
    "shape": [-1.0, -2.0, *NOT_NUMBERS],
    "count": [0, -1, 1.0, 2.5, *NOT_NUMBERS],
    "base": [GAUSSIAN, [GAUSSIAN], (1.0,), None],
}


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [(cls, n, v) for cls, good in GOOD.items() for n in good for v in BAD[n]],
)
def test_bad_number_is_refused_by_name(cls, name, value):
    cls("x", **GOOD[cls])  # the other fields are fine
    with pytest.raises(ValueError, match=f"^{name} must"):
        cls("x", **{**GOOD[cls], name: value})


@pytest.mark.parametrize("branches", [(), [(GAUSSIAN,)], (GAUSSIAN,), ([GAUSSIAN],), ((1,),)])
def test_bad_branches_are_refused(branches):
    with pytest.raises(ValueError, match=r"^branches must"):
        ParallelEvent("parts", branches)


@pytest.mark.parametrize("relation", ["replace_one", "", None, "REPLACE_ONE"])
def test_bad_relation_is_refused(relation):
    with pytest.raises(ValueError, match=r"^relation must be one of 'replace-one', 'add-remove'"):
        PoissonGaussianEvent("g", 1.0, 1.0, 0.1, relation=relation)


def test_bad_number_in_a_file_is_refused():
    data = GAUSSIAN.to_dict()
    with pytest.raises(ValueError, match=r"^scale must"):
        event_from_dict({**data, "scale": 0.0})


# The curves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 8.0, 40.0])
@pytest.mark.parametrize("count", [1, 7])
def test_gaussian_renyi_is_the_integral(ratio, order, count):
    def log_integrand(x):
        return order * stats.norm.logpdf(x, ratio) + (1 - order) * stats.norm.logpdf(x, 0.0)

    centre = order * ratio
    peak = log_integrand(centre)
    scaled, _ = integrate.quad(
        lambda x: math.exp(log_integrand(x) - peak),
        centre - 12,
        centre + 12,
        epsabs=0,
        epsrel=1e-12,
    )
    exact = count * (peak + math.log(scaled)) / (order - 1)
    event = GaussianEvent("x", sensitivity=ratio * 2, scale=2.0, count=count)
    np.testing.assert_allclose(event.renyi(np.array([order])), exact, rtol=1e-6)
    assert event.gaussian_mu == pytest.approx(math.sqrt(count) * ratio, rel=1e-15)


@pytest.mark.parametrize("epsilon", [2e-3, 0.1, 1.0, 5.0, 30.0, 500.0])
@pytest.mark.parametrize("order", [1.01, 2.0, 3.5, 64.0, 1e4])
def test_pure_renyi_is_randomised_response(epsilon, order):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        truth = mpmath.exp(mpmath.mpf(epsilon)) / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        lie, a = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon))), mpmath.mpf(order)
        moment = truth**a * lie ** (1 - a) + lie**a * truth ** (1 - a)
        exact = float(mpmath.log(moment) / (a - 1))
    for event in (PureEvent("x", epsilon, 3), LaplaceEvent("x", epsilon * 2, 2.0, 3)):
        np.testing.assert_allclose(event.renyi(np.array([order])), 3 * exact, rtol=1e-7)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-5, 9.9e-4])
def test_pure_renyi_of_a_small_epsilon_is_no_less_than_exact(epsilon):
    mpmath = pytest.importorskip("mpmath")
    orders = np.array([1.001, 2.0, 100.0, 1e5])
    stated = PureEvent("x", epsilon).renyi(orders)
    with mpmath.workdps(60):
        truth = mpmath.exp(mpmath.mpf(epsilon)) / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        lie = 1 - truth
        for order, value in zip(orders, stated, strict=True):
            a = mpmath.mpf(order)
            moment = truth**a * lie ** (1 - a) + lie**a * truth ** (1 - a)
            exact = float(mpmath.log(moment) / (a - 1))
            assert exact <= value * (1 + 1e-12)
            assert value <= exact * 1.0001 or order * epsilon > 1e-2


def test_exponential_mechanism_never_passes_its_bound():
    """Random scores and neighbours of a known range sensitivity; some pairs come near."""
    rng = np.random.default_rng(0)
    orders = np.array([1.01, 1.5, 2.0, 5.0, 30.0])
    nearest = 0.0
    for _ in range(2000):
        size, eta = rng.integers(2, 6), math.exp(rng.uniform(-4, 2))
        score = rng.normal(0, rng.uniform(0, 3), size)
        change = rng.choice([0.0, 1.0], size) if rng.random() < 0.7 else rng.uniform(0, 1, size)
        spread = np.ptp(change)
        if spread == 0:
            continue
        first = -score - np.logaddexp.reduce(-score)
        moved = -(score + change * eta / spread)
        second = moved - np.logaddexp.reduce(moved)
        divergence = np.array(
            [np.logaddexp.reduce(a * first + (1 - a) * second) / (a - 1) for a in orders]
        )
        event = BoundedRangeEvent("choice", sensitivity=eta * 3, scale=3.0)
        bound = event.renyi(orders)
        assert np.all(divergence <= bound * (1 + 1e-9) + 1e-14)
        assert np.all(bound <= orders * eta**2 / 8 * (1 + 1e-12))
        assert np.max(np.abs(first - second)) <= event.pure_epsilon * (1 + 1e-12)
        nearest = max(nearest, float(np.max(divergence / bound)))
    assert nearest > 0.98  # the bound is attained, so a factor in it would be seen


def test_discrete_gaussian_states_zcdp_and_no_gdp():
    event = DiscreteGaussianEvent("x", sensitivity=2.0, scale=4.0, count=5)
    np.testing.assert_allclose(event.renyi(np.array([2.0, 3.0])), 5 * 0.125 * np.array([2.0, 3.0]))
    assert event.gaussian_mu == math.inf
    assert event.pure_epsilon == math.inf


@pytest.mark.parametrize(("relation", "move"), [("replace-one", 2.0), ("add-remove", 1.0)])
def test_sampled_renyi_holds_for_the_mixture(relation, move):
    """The bound without sampling is above the divergence of the sampled pair, both ways."""
    q, scale, order = 0.3, 1.5, 4.0
    other = -1.0 if relation == "replace-one" else 0.0

    def divergence(first, second):
        def integrand(x):
            p = (1 - q) * stats.norm.pdf(x, 0, scale) + q * stats.norm.pdf(x, first, scale)
            r = (1 - q) * stats.norm.pdf(x, 0, scale) + q * stats.norm.pdf(x, second, scale)
            return p**order * r ** (1 - order)

        return math.log(integrate.quad(integrand, -20, 20)[0]) / (order - 1)

    event = PoissonGaussianEvent("x", 1.0, scale, q, count=3, relation=relation)
    stated = float(event.renyi(np.array([order]))[0])
    assert stated == pytest.approx(3 * order * (move / scale) ** 2 / 2)
    assert 3 * max(divergence(1.0, other), divergence(other, 1.0)) < stated


def test_no_statement_is_inf():
    assert Event("x").gaussian_mu == math.inf
    assert Event("x").pure_epsilon == math.inf
    assert np.all(np.isinf(Event("x").renyi(np.array([2.0, 3.0]))))
    assert GAUSSIAN.pure_epsilon == math.inf


@pytest.mark.parametrize("cls", [GaussianEvent, DiscreteGaussianEvent, LaplaceEvent])
def test_zero_sensitivity_costs_nothing(cls):
    event = cls("constant", 0.0, 1.0, 10)
    assert event.pure_epsilon == 0
    assert np.all(event.renyi(np.array([2.0])) == 0)


def test_huge_ratios_are_inf_and_not_an_error():
    orders = np.array([2.0])
    for cls in (GaussianEvent, DiscreteGaussianEvent):
        assert math.isinf(cls("x", 1e200, 1e-20).renyi(orders)[0])
    assert PureEvent("x", 1e200).renyi(orders)[0] == pytest.approx(1e200)
    assert GaussianEvent("x", 1e300, 1e-300).gaussian_mu == math.inf


# Random stopping -------------------------------------------------------------------------------


def truncated_negative_binomial(shape, gamma):
    """Probabilities of 1, 2, ... (Papernot and Steinke 2022, Definition 1), term by term."""
    weights, weight = [], 1.0
    for k in range(1, math.ceil(60 / gamma)):
        weight = (1 - gamma) if k == 1 else weight * (1 - gamma) * (k - 1 + shape) / k
        weights.append(weight)
    return np.array(weights) / math.fsum(weights)


@pytest.mark.parametrize("shape", [-0.9, -0.5, -1e-9, 0.0, 1e-17, 1e-9, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("gamma", [0.9, 0.3, 0.02])
def test_mean_runs_is_the_series(shape, gamma):
    probabilities = truncated_negative_binomial(shape, gamma)
    mean = float(probabilities @ np.arange(1, 1 + len(probabilities)))
    event = RandomStoppingEvent("t", (GAUSSIAN,), shape, gamma)
    assert event.mean_runs == pytest.approx(mean, rel=1e-6)


def test_mean_runs_is_what_a_sampler_does():
    """Negative binomial draws with the zeros thrown away; |z| < 5, so 6e-7 of false alarms."""
    shape, gamma = 0.7, 0.1
    draws = np.random.default_rng(3).negative_binomial(shape, gamma, 400_000)
    draws = draws[draws > 0]
    event = RandomStoppingEvent("t", (GAUSSIAN,), shape, gamma)
    assert abs(draws.mean() - event.mean_runs) < 5 * draws.std() / math.sqrt(len(draws))


def gamma_for(shape, mean):
    low, high = 1e-6, 1 - 1e-9
    for _ in range(200):
        middle = math.sqrt(low * high)
        runs = RandomStoppingEvent("t", (GAUSSIAN,), shape, middle).mean_runs
        low, high = (middle, high) if runs > mean else (low, middle)
    return high


DELTA = 1 / 8000


@pytest.mark.parametrize(
    ("epsilon", "by_zcdp", "by_gdp"),
    [(0.5, 1.003, 1.120), (1.0, 1.910, 2.114), (3.0, 5.191, 5.661)],
)
def test_papernot_steinke_totals(epsilon, by_zcdp, by_gdp):
    """Amendment A7: E[K] = 10, the better of shape 0 and 1, delta = 1/8000."""

    def total(mu):
        base = (GaussianEvent("run", mu, 1.0),)
        return min(
            compose_epsilon([RandomStoppingEvent("t", base, shape, gamma_for(shape, 10))], DELTA)
            for shape in (0.0, 1.0)
        )

    assert total(math.sqrt(2 * zcdp_rho(epsilon, DELTA))) == pytest.approx(by_zcdp, abs=1.5e-3)
    assert total(gaussian_mu(epsilon, DELTA)) == pytest.approx(by_gdp, abs=1.5e-3)


def test_random_stopping_is_theorem_two():
    """Against the formula with the auxiliary order searched by scipy instead of on a grid."""
    from scipy.optimize import minimize_scalar

    shape, gamma, rho = 0.5, 0.05, 0.02
    base = (GaussianEvent("run", math.sqrt(2 * rho), 1.0),)
    event = RandomStoppingEvent("t", base, shape, gamma)

    def penalty(log_excess):
        other = 1 + math.exp(log_excess)
        return (1 - 1 / other) * rho * other + math.log(1 / gamma) / other

    best = minimize_scalar(penalty, bounds=(-5, 10), method="bounded").fun
    mean = shape * (1 - gamma) / (gamma * (1 - gamma**shape))

    def theorem(order):
        return rho * order + (1 + shape) * best + math.log(mean) / (order - 1)

    lowest = 1 + math.sqrt(math.log(mean) / rho)  # the bound falls up to here: order 12.6
    for order in (1.5, 4.0, 20.0, 100.0):
        exact = theorem(max(order, lowest))
        assert float(event.renyi(np.array([order]))[0]) == pytest.approx(exact, rel=1e-4)


def test_random_stopping_costs_more_with_more_runs():
    costs = [
        compose_epsilon([RandomStoppingEvent("t", (GAUSSIAN,), 1.0, gamma)], 1e-6)
        for gamma in (0.9, 0.5, 0.1, 0.01)
    ]
    assert compose_epsilon([GAUSSIAN], 1e-6) < costs[0]
    assert costs == sorted(costs)
    assert len(set(costs)) == 4
