"""Algorithm 1 and its sparse-vector form: what they cost, what they touch, what they keep.

Statistical tests reject at ALPHA, one in a million; where a law has a scale, 0.7 and 1.3 of it are
shown to be rejected.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from dpadapt.papers.kernels.machines import (
    Answer,
    MachineFacts,
    PINPConstants,
    PINPMachine,
    SparseVectorConstants,
    SparseVectorMachine,
    UpdatesEvent,
)
from dpadapt.privacy.accounting.composition import compose_delta, compose_epsilon
from dpadapt.privacy.accounting.events import GaussianEvent, PureEvent
from dpadapt.privacy.core.noise import ExactNoise, SecureNoise, SeededNoise
from dpadapt.privacy.rows.errors import PrivacyError

ALPHA = 1e-6
FACTS = {"prediction": 1e-4, "bound": 1.0, "norm": 1.0, "epsilon": 1.0, "delta": 1e-6}
FACTS["questions"] = 1000


def kernel(z, past):
    return np.stack(past) @ z


def unit_questions(count: int, seed: int = 0, d: int = 3) -> np.ndarray:
    z = np.random.default_rng(seed).normal(size=(count, d))
    return z / np.linalg.norm(z, axis=1, keepdims=True)


TRUTH = np.array([0.6, -0.5, 0.4])


# What a run costs -------------------------------------------------------------------------------


def round_moments(order: float, e: float, place: float, threshold: float) -> tuple[float, float]:
    """M_0 and M_1 of one round: Laplace(1) around ``place`` and place + e, stepping beyond +-t."""

    def piece(low: float, high: float) -> float:
        def integrand(a: float) -> float:
            one, two = abs(a - place), abs(a - place - e)
            return 0.5 * math.exp(-order * one + (order - 1) * two)

        knots = sorted({low, high, *(k for k in (place, place + e) if low < k < high)})
        return sum(
            integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12)[0]
            for a, b in itertools.pairwise(knots)
        )

    far = threshold + 45 + abs(place) + e
    stay = [stats.laplace.cdf(threshold - at) - stats.laplace.cdf(-threshold - at)
            for at in (place, place + e)]  # fmt: skip
    moment = stay[0] ** order * stay[1] ** (1 - order)
    return moment, piece(-far, -threshold) + piece(threshold, far)


def test_no_round_costs_more_than_the_event_says():
    rng = np.random.default_rng(0)
    worst = 0.0
    for trial in range(150):
        e = float(rng.choice([0.02, 0.1, 0.3]))
        order = 1 + float(rng.exponential(0.3)) / e
        threshold = float(rng.exponential(3.0))
        place = float(rng.choice([threshold, 0.0, -threshold]) + (trial % 2) * rng.normal())
        allowed = float(UpdatesEvent("", e, 1.0).renyi(np.array([order]))[0])
        if not math.isfinite(allowed):
            continue
        stay, step = round_moments(order, e, place, threshold)
        cost = math.log(step / (1 - stay)) / (order - 1)
        assert cost <= allowed * (1 + 1e-6) + 1e-9
        worst = max(worst, cost / allowed)
    assert worst > 0.9  # nearly attained, by questions at the threshold


def exact_delta(e: float, steps: int, epsilon: float) -> float:
    """Delta of the worst rounds: "no step" has odds e^e, a step e^-e; until so many steps.

    The number of rounds without a step is negative binomial, with pi against 1 - pi.
    """
    pi = 1 / (1 + math.exp(-e))
    n = np.arange(0, 20_000)
    one, two = stats.nbinom.logpmf(n, steps, 1 - pi), stats.nbinom.logpmf(n, steps, pi)
    return float(np.maximum(0.0, np.exp(one) - np.exp(epsilon + two)).sum())


@pytest.mark.parametrize("steps", [1, 3, 20])
@pytest.mark.parametrize("e", [0.02, 0.1])
def test_delta_of_the_worst_rounds_is_within_what_is_charged(e, steps):
    tried = 0
    for epsilon in np.linspace(0.05, 2.0, 25):
        exact = exact_delta(e, steps, epsilon)
        assert exact <= compose_delta([UpdatesEvent("", e, 1.0, steps)], epsilon)
        # as many pure releases as steps are not enough: this form must be refuted
        tried += exact > 1e-14 + compose_delta([PureEvent("", e, steps)], epsilon)
    assert tried > 0


def test_the_charge_is_near_the_worst_rounds():
    for e, steps in ((0.02, 20), (0.05, 100)):
        charged = compose_epsilon([UpdatesEvent("", e, 1.0, steps)], 1e-6)
        assert exact_delta(e, steps, 0.8 * charged) > 1e-6


def test_renyi_bound_in_its_limits():
    event = UpdatesEvent("", 1e-4, 1.0, 7)
    orders = np.array([1.001, 2.0, 10.0])
    assert event.renyi(orders) == pytest.approx(7 * orders * 1e-8, rel=1e-2)
    assert np.isinf(UpdatesEvent("", 1.0, 1.0).renyi(np.array([2.0, 1e3])))[:].all()
    assert math.isinf(event.pure_epsilon)
    assert math.isinf(event.gaussian_mu)
    huge = UpdatesEvent("", 1e6, 1.0).renyi(orders)
    assert np.isinf(huge).all()
    assert compose_epsilon([UpdatesEvent("", 0.0, 1.0, 5)], 1e-6) < 1e-3
    with pytest.raises(ValueError, match="count"):
        UpdatesEvent("", 1.0, 1.0, 0)


# Constants --------------------------------------------------------------------------------------


def printed(n, penalty, L, R, C, epsilon, delta, questions, failure):
    """B and 1/eps_0 of Algorithm 1 as printed."""
    log = math.log(4 / delta)
    B = n * penalty * epsilon * C**2
    B /= 200 * L * R * math.sqrt(2 * math.log(2 * questions / failure)) * log
    return B, 200 * L * R**2 * math.sqrt(B) * log / (n * epsilon * penalty)


@pytest.mark.parametrize("make", [PINPConstants.paper, PINPConstants.calibrated])
def test_the_same_problem_in_other_units_has_the_same_constants(make):
    """Features times c, model over c, lambda times c^2: predictions and S stay."""
    facts = {**FACTS, "prediction": 1e-6}
    base = make(MachineFacts(**facts))
    for c in (0.1, 10.0):
        other = make(MachineFacts(**{**facts, "bound": c, "norm": 1 / c}))
        assert (other.updates, other.scale) == (base.updates, pytest.approx(base.scale))
        assert other.threshold == pytest.approx(base.threshold)
        assert other.step * c**2 == pytest.approx(base.step)
    sizes = [printed(1e5, 0.01 * c**2, 1.0, c, 10 / c, 1.0, 1e-6, 1000, 0.05)[0] for c in (0.1, 1)]
    assert sizes[0] == pytest.approx(10 * sizes[1])  # the printed B does not


def test_the_noise_is_that_of_the_theorem_and_twice_the_printed():
    n, penalty = 10**8, 0.01
    S = 2 / (penalty * n)
    constants = PINPConstants.paper(MachineFacts(**{**FACTS, "prediction": S, "norm": 100.0}))
    B = constants.updates
    assert constants.scale == pytest.approx(200 * math.sqrt(B) * S * math.log(4e6))
    _, noise = printed(n, penalty, 1.0, 1.0, 1.0, 1.0, 1e-6, 1000, 0.05)
    per_root = noise / math.sqrt(printed(n, penalty, 1.0, 1.0, 1.0, 1.0, 1e-6, 1000, 0.05)[0])
    assert constants.scale / math.sqrt(B) == pytest.approx(2 * per_root)
    assert constants.threshold == pytest.approx(4 * constants.scale * math.log(2 * 1000 / 0.05))
    exact = math.sqrt(3.2) * 100 / (800 * S * math.log(4e6) * math.log(2 * 1000 / 0.05))
    assert exact <= B < exact + 1


@pytest.mark.parametrize("source", [SecureNoise(), ExactNoise()])
@pytest.mark.parametrize(
    "make", [PINPConstants.paper, PINPConstants.calibrated, SparseVectorConstants.calibrated]
)
def test_what_is_charged(make, source):
    constants = make(MachineFacts(**FACTS))
    events = constants.events(constants.scale, source)
    spent = compose_epsilon(events, 1e-6)
    if make == PINPConstants.paper:
        assert spent < 1 / 100  # what its constants give in truth
    elif source.name == "secure":
        assert 0.99 < spent <= 1 + 1e-6
    weaker = replace(constants, scale=0.7 * constants.scale)
    assert compose_epsilon(weaker.events(weaker.scale, source), 1e-6) > 1.1 * spent
    assert all(event.count == constants.updates for event in events)
    kinds = {"pinp": [UpdatesEvent], "sparse": [PureEvent, GaussianEvent]}
    if source.name == "secure":
        expected = kinds["pinp" if isinstance(constants, PINPConstants) else "sparse"]
        assert [type(event) for event in events] == expected
        assert events[-1].sensitivity == FACTS["prediction"]
    else:
        assert events[-1].sensitivity > FACTS["prediction"]  # the grid


@pytest.mark.parametrize(
    "make", [PINPConstants.paper, PINPConstants.calibrated, SparseVectorConstants.calibrated]
)
def test_steps_that_are_needed_are_paid_for(make):
    for S in (1.0, 1e-3, 1e-5):
        constants = make(MachineFacts(**{**FACTS, "prediction": S}))
        assert 3.2 / constants.threshold**2 <= constants.updates * (1 + 1e-9)


# The machines -----------------------------------------------------------------------------------


def machine(cls, *, updates: int = 10**6, threshold: float = 0.1, scale: float = 1e-3, **options):
    S = 1e-5
    if cls is PINPMachine:
        constants = PINPConstants(updates, S, 1.0, 1.0, threshold, scale)
    else:
        constants = SparseVectorConstants(updates, S, 1.0, 1.0, threshold, scale, segment=1.0)
    score = options.pop("score", lambda z: TRUTH @ z)
    return cls(constants, score, kernel, **{"source": SeededNoise(0), **options})


both = pytest.mark.parametrize("cls", [PINPMachine, SparseVectorMachine])


@both
def test_it_learns_and_stops_changing(cls):
    model = machine(cls)
    for z in unit_questions(2000):
        model.ask(z)
    used = model.updates_used
    assert 0 < used <= 3.2 / 0.1**2
    answers = [model.ask(z) for z in unit_questions(200, seed=1)]
    errors = [
        abs(a.value - TRUTH @ z) for a, z in zip(answers, unit_questions(200, 1), strict=True)
    ]
    assert max(errors) < 0.1 * 1.3
    assert model.updates_used - used < 20


@both
def test_never_more_steps_than_paid_for_and_the_private_model_rests_afterwards(cls):
    allowed = []

    def score(z):
        if not allowed:
            raise RuntimeError("the private model was asked")
        return float(TRUTH @ z)

    allowed.append(True)
    model = machine(cls, updates=5, threshold=0.02, score=score)
    for z in unit_questions(500):
        model.ask(z)
        if model.updates_left == 0:
            break
    assert model.updates_used == 5
    allowed.clear()
    before = model.state()
    for z in unit_questions(50, seed=2):
        answer = model.ask(z)
        assert answer == Answer(model.predict(z), changed=False)
    after = model.state()
    assert np.array_equal(after["coefficients"], before["coefficients"])
    assert (model.updates_used, model.updates_left) == (5, 0)


@both
def test_a_failing_model_tells_nothing(cls):
    def score(z):
        raise ValueError("secret 42")

    with pytest.raises(PrivacyError, match="withheld") as caught:
        machine(cls, score=score).ask(np.eye(3)[0])
    assert "42" not in str(caught.value)
    assert caught.value.__context__ is None
    for value in (math.nan, math.inf, 1e300):  # clipped: never an error, never beyond C R
        answer = machine(cls, threshold=1e-9, score=lambda z, v=value: v).ask(np.eye(3)[0])
        assert abs(answer.value) < 1.1


class Scripted(SeededNoise):
    """Noise of our choosing."""

    name = "seeded"

    def __init__(self, noise: float) -> None:
        super().__init__(0)
        self.noise = noise

    def add_laplace(self, values, scale):
        return values + self.noise

    def add_gaussian(self, values, scale):
        return values + self.noise

    def uniform(self, size):
        return np.full(size, 0.5)  # no noise in a comparison


@both
@pytest.mark.parametrize("noise", [3.0, -3.0])
def test_the_step_follows_what_was_released(cls, noise):
    """The true difference is +0.6; the released one has the sign of the noise."""
    model = machine(cls, source=Scripted(noise))
    z = np.array([1.0, 0.0, 0.0])
    assert model.ask(z) == Answer(pytest.approx(0.6 + noise), changed=True)
    assert model.predict(z) == pytest.approx(math.copysign(model.constants.step, noise))


@both
def test_a_question_beyond_the_bound_is_refused(cls):
    model = machine(cls, source=Scripted(0.0))
    for bad in ([4.0, 0.0, 0.0], [math.nan, 0.0, 0.0], [math.inf, 0.0, 0.0]):
        with pytest.raises(ValueError, match="norm"):
            model.ask(np.array(bad))
    assert model.updates_used == 0
    assert model.ask(np.zeros(3)).value == 0.0


# What survives a restart ------------------------------------------------------------------------


@both
def test_a_restored_machine_goes_on_where_it_was(cls):
    questions = unit_questions(300)
    model = machine(cls, updates=50, threshold=0.02)
    for z in questions[:100]:
        model.ask(z)
    saved = pickle.loads(pickle.dumps(model.state()))
    twin = cls.from_state(saved, lambda z: TRUTH @ z, kernel, SeededNoise(9))
    model._noise = SeededNoise(9)
    for z in questions[100:]:
        assert model.ask(z) == twin.ask(z)
    assert model.updates_used == twin.updates_used == len(twin.state()["questions"])
    # without the saved state it would begin anew, with steps that nobody paid for
    assert cls(model.constants, lambda z: TRUTH @ z, kernel, SecureNoise()).updates_used == 0
    fresh = machine(cls)
    assert fresh.state()["coefficients"].shape == (0,)
    cls.from_state(fresh.state(), lambda z: 0.0, kernel, SecureNoise())


@both
@pytest.mark.parametrize(
    "damage",
    [
        {"kind": "foreign"},
        {"coefficients": np.ones(2)},
        {"coefficients": np.full(50, math.nan)},
        {"questions": []},
        {"constants": {"updates": 3}},
    ],
)
def test_a_damaged_state_is_refused(cls, damage):
    model = machine(cls, updates=50, threshold=0.01)
    for z in unit_questions(400):
        model.ask(z)
    assert model.updates_used == 50
    state = {**copy.deepcopy(model.state()), **damage}
    with pytest.raises(ValueError, match="not a saved state"):
        cls.from_state(state, lambda z: 0.0, kernel, SecureNoise())
    for key in model.state():
        state = model.state()
        del state[key]
        with pytest.raises(ValueError, match="not a saved state"):
            cls.from_state(state, lambda z: 0.0, kernel, SecureNoise())


@both
def test_the_private_model_cannot_be_pickled_along(cls):
    with pytest.raises(TypeError, match="state"):
        pickle.dumps(machine(cls))
    assert "0.6" not in repr(machine(cls))


def test_more_steps_than_paid_for_are_refused():
    model = machine(PINPMachine, updates=5, threshold=0.01)
    for z in unit_questions(50):
        model.ask(z)
    state = model.state()
    state["constants"]["updates"] = 4
    with pytest.raises(ValueError, match="more steps"):
        PINPMachine.from_state(state, lambda z: 0.0, kernel, SecureNoise())


def test_a_segment_keeps_its_threshold_across_a_restart():
    model = machine(SparseVectorMachine, threshold=0.5)
    raised = model.state()["raised"]
    twin = SparseVectorMachine.from_state(model.state(), lambda z: 0.0, kernel, SecureNoise())
    assert twin.state()["raised"] == raised
    model.ask(np.zeros(3))  # below: the same segment goes on
    assert model.state()["raised"] == raised
    model.constants = replace(model.constants, threshold=1e-9)
    model.ask(np.eye(3)[0])  # above: a new one
    assert model.state()["raised"] != raised
    with pytest.raises(ValueError, match="not a number"):
        SparseVectorMachine.from_state(
            {**twin.state(), "raised": math.nan}, lambda z: 0.0, kernel, SecureNoise()
        )


# The law of the noise ---------------------------------------------------------------------------


def p_scale(total: float, law) -> float:
    return min(1.0, 2 * min(law.cdf(total), law.sf(total)))


@both
def test_answers_have_the_noise_that_is_charged(cls):
    model = machine(cls, threshold=1e-12, scale=0.3)
    truth = 0.5
    model._score = lambda z: truth
    released = np.array([model.ask(np.eye(3)[0]) for _ in range(1500)], dtype=object)
    noise = np.array([value for value, changed in released if changed], dtype=float) - truth
    assert len(noise) > 1450
    if cls is PINPMachine:
        law, size = stats.gamma(len(noise)), np.abs(noise).sum()
        shape = "laplace"
    else:
        law, size = stats.chi2(len(noise)), (noise**2).sum()
        shape = "norm"
    power = 1 if cls is PINPMachine else 2
    assert p_scale(size / 0.3**power, law) > ALPHA
    assert stats.kstest(noise / 0.3, shape).pvalue > ALPHA
    for wrong in (0.7, 1.3):
        assert p_scale(size * (wrong / 0.3) ** power, law) < ALPHA


def above(gap: float, segment: float) -> float:
    """P(gap + Laplace(4/e) >= Laplace(2/e)): of a question whose mean is ``gap`` above."""
    wide, narrow = stats.laplace(scale=4 / segment), stats.laplace(scale=2 / segment)
    width = 60 / segment
    value = integrate.quad(
        lambda r: narrow.pdf(r) * wide.sf(r - gap), -width, width, points=[0, gap], limit=200
    )
    return float(value[0])


def test_a_comparison_has_the_noise_that_is_charged():
    S, sigma, runs, source = 1e-5, 0.1, 4000, SeededNoise(4)
    constants = SparseVectorConstants(1, S, 1.0, 1.0, sigma, 1e-3, segment=0.5)
    for gap in (-10.0, 10.0):  # in units of S
        score = lambda z, gap=gap: sigma + gap * S  # noqa: E731
        hits = sum(
            SparseVectorMachine(constants, score, kernel, source).ask(np.eye(3)[0]).changed
            for _ in range(runs)
        )
        assert stats.binomtest(hits, runs, above(gap, 0.5)).pvalue > ALPHA
        for wrong in (0.7, 1.4):
            assert stats.binomtest(hits, runs, above(gap, 0.5 / wrong)).pvalue < ALPHA


def log_transcript(level: float, length: int, last: float, segment: float, factor: float) -> float:
    """Log-probability of ``length`` questions below and then one above, in units of S."""
    wide = stats.laplace(scale=factor * 4 / segment)
    r = np.linspace(-60, 60, 40_001) / segment * factor
    log_p = stats.laplace(scale=factor * 2 / segment).logpdf(r)
    log_p = log_p + length * wide.logcdf(r - level) + wide.logsf(r - last)
    top = log_p.max()
    return float(top + np.log(integrate.trapezoid(np.exp(log_p - top), r)))


def largest_loss(factor: float, segment: float = 0.5) -> float:
    """Of a segment whose questions all move by S against us, over lengths and levels."""
    most = 0.0
    for length in (0, 1, 10, 1000):
        for level in (-40.0, -5.0, 0.0, 40.0):
            for last in (-60.0, 0.0, 60.0):
                one = log_transcript(level, length, last, segment, factor)
                two = log_transcript(level + 1, length, last - 1, segment, factor)
                most = max(most, abs(one - two))
    return most


def test_a_segment_is_pure_and_weaker_noise_is_not():
    assert 0.99 * 0.5 < largest_loss(1.0) <= 0.5 * (1 + 1e-4)
    assert largest_loss(0.7) > 0.6


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prediction", 0),
        ("bound", -1),
        ("norm", math.inf),
        ("epsilon", 0),
        ("delta", 1),
        ("questions", 0),
        ("failure", 1.0),
    ],
)
def test_bad_settings_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        MachineFacts(**{**FACTS, field: value})
