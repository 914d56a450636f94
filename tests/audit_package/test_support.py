"""Impossible outcomes: the tool, every mechanism with every source, and the broken forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from baselines import test_objective_perturbation_lattice as objective
from dpadapt.audit import SupportResult, compare_supports, support_audit
from dpadapt.papers.hybrid.doors.descent import Descent, drawn_descent
from dpadapt.papers.hybrid.doors.parity import parity_masks
from dpadapt.papers.kernels.machines import (
    MachineFacts,
    PINPConstants,
    PINPMachine,
    SparseVectorConstants,
    SparseVectorMachine,
)
from dpadapt.papers.selection.exponential import draw_on_ball, noisy_argmin
from dpadapt.papers.selection.laplace import laplace as add_laplace
from dpadapt.papers.selection.laplace import laplace_argmin
from dpadapt.privacy import Cleaning
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.core.noise import ExactNoise, SecureNoise, SeededNoise, _power_of_two
from dpadapt.privacy.local.randomisers import BallResponse, BinaryResponse, GaussianResponse
from dpadapt.privacy.mechanisms.gaussian import GaussianInside, gaussian_process, symmetric_gaussian
from dpadapt.privacy.mechanisms.gaussian import gaussian as add_gaussian
from dpadapt.privacy.mechanisms.randomised_response import randomised_response
from privacy import test_path_answers as path

CONFIDENCE = 1 - 1e-6
DELTA = 1e-6
SOURCES = {"secure": SecureNoise, "seeded": lambda: SeededNoise(3), "exact": ExactNoise}
# of one output each; where a table is drawn at once there are more
RUNS = {"secure": 1500, "seeded": 1500, "exact": 150}
MANY = {"secure": 20_000, "seeded": 20_000, "exact": 1000}
SCALE, NEAR, FAR = 0.37, 1 / 3, 1 / 3 + 0.1  # neighbours at odd places of any grid


def each(one):
    """A mechanism with one output a run, from a value and a source."""

    def table(value, runs, source):
        return np.array([np.ravel(one(value, source)).astype(float) for _ in range(runs)])

    return table


def kernel(points=3):
    at = np.arange(points)
    return np.exp(-0.5 * (at[:, None] - at) ** 2.0)


def symmetric(value, source):
    matrix = np.array([[value, 0.2], [0.2, -0.1]])
    return symmetric_gaussian(source, matrix, SCALE)[np.triu_indices(2)]


def process(value, source):
    """Of a weight that moves along one feature: the distance is that of the neighbours."""
    K = kernel()
    return gaussian_process(source, value * K[:, 0], K, SCALE)


def chosen(mechanism):
    def one(value, source):
        return mechanism(source, np.array([value, 0.4, 0.5]), SCALE)

    return one


def ball(value, source):
    return draw_on_ball(source.uniform, np.array([value, 0.2]), SCALE)


def one_step(value, source):
    class Rows:
        labelled, n_columns = True, 2

        def take(self, places):
            return np.tile([value, 0.5], (len(places), 1)), np.ones(len(places))

    descent = Descent(Cleaning(1.0, label_range=(-1.0, 1.0)), clip=0.05, radius=5.0, steps=2)
    return drawn_descent(descent, Rows(), np.arange, source, SCALE, None)


def parity(value, source):
    rows = np.array([[1, 0, 1], [0, 1, 1], [value > 0.4, 1, 0]])
    (mask,) = parity_masks(rows, np.array([1, 0, 1]), 1.0, 1, source.uniform)
    return [-1] if mask is None else [int(mask @ [1, 2, 4])]


def interactive(kind, constants_type):
    setting = MachineFacts(0.1, bound=1.0, norm=1.0, epsilon=1.0, delta=DELTA, questions=10)
    constants = constants_type.calibrated(setting)

    def one(value, source):
        machine = kind(
            constants, lambda z: value, lambda z, past: np.ones(len(past)), source=source
        )
        return machine.ask(1.0).value

    return one


def in_one_table(mechanism):
    def table(value, runs, source):
        return mechanism(source, np.full(runs, value))

    return table


def a_path(value, runs, source):
    answers, _, _ = path.asked([value, 0.0, 0.0], runs, np.zeros((1, 1)), source=source)
    return answers[0]


def gaussian_claim(source, moved, dimension=1):
    event = source.gaussian_event("", moved, SCALE, dimension, 1)
    return compose_epsilon([event], DELTA)


MOVED = FAR - NEAR
TABLES = {  # mechanism, claimed epsilon, runs for each run of a single output
    "gaussian": (
        in_one_table(lambda source, v: add_gaussian(source, v, SCALE)),
        lambda source: gaussian_claim(source, MOVED),
        5,
    ),
    "laplace": (
        in_one_table(lambda source, v: add_laplace(source, v, SCALE)),
        lambda source: source.laplace_event("", MOVED, SCALE, 1, 1).pure_epsilon,
        5,
    ),
    "symmetric gaussian": (each(symmetric), lambda source: gaussian_claim(source, MOVED, 3), 1),
    "gaussian process": (each(process), lambda source: gaussian_claim(source, MOVED, 3), 1),
    "exponential": (each(chosen(noisy_argmin)), lambda source: MOVED / SCALE, 1),
    "noisy min": (each(chosen(laplace_argmin)), lambda source: MOVED / SCALE, 1),
    "randomised response": (
        in_one_table(
            lambda source, v: randomised_response(source, (v > 0.4).astype(np.int64), 3, 0.5)
        ),
        lambda source: 0.5,
        5,
    ),
    "bits": (in_one_table(BinaryResponse(0.5).respond), lambda source: 0.5, 5),
    "numbers": (in_one_table(GaussianResponse(1.0, DELTA).respond), lambda source: 1.0, 5),
    "directions": (
        lambda v, runs, source: BallResponse(0.5, 2).respond(source, np.tile([v, 0.1], (runs, 1))),
        lambda source: 0.5,
        5,
    ),
    "ball": (each(ball), lambda source: 2 * MOVED / SCALE, 0.3),
    "descent": (each(one_step), lambda source: 2.0, 0.2),
    "parity": (each(parity), lambda source: 1.0, 0.3),
    "pinp": (each(interactive(PINPMachine, PINPConstants)), lambda source: 1.0, 0.5),
    "sparse vector": (
        each(interactive(SparseVectorMachine, SparseVectorConstants)),
        lambda source: 1.0,
        0.5,
    ),
    "path": (a_path, lambda source: 1.0, 5),
}
CONTINUOUS = ("descent", "path", "ball")  # the exact source refuses them


def audited(name, source, runs, **options):
    mechanism, claim, more = TABLES[name]
    claimed = claim(source)
    return support_audit(
        lambda value, count: mechanism(value, count, source),
        NEAR,
        FAR,
        runs=int(runs * more),
        epsilon=claimed,
        delta=DELTA,
        steps=(SCALE / 4096, _power_of_two(SCALE, 12), _power_of_two(SCALE, 30)),
        confidence=CONFIDENCE,
        **options,
    )


@pytest.mark.parametrize(
    "runs", [RUNS, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("name", TABLES)
def test_no_mechanism_has_outcomes_of_one_neighbour_alone(name, kind, runs):
    if kind == "exact" and name in CONTINUOUS:
        return
    found = audited(name, SOURCES[kind](), runs[kind])
    assert found.passed, str(found)


# The forms that were broken ---------------------------------------------------------------------


@pytest.mark.parametrize("runs", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_path_with_rounded_normals_is_caught(runs):
    def answers(value, count):
        question = np.zeros((1, 1))
        return path.asked([value, 0.0, 0.0], count, question, broken=path.on_a_comb)[0][0]

    claim = {"epsilon": 1.0, "delta": DELTA, "confidence": CONFIDENCE}
    found = support_audit(answers, 0.3, 0.3 + 1e-5, runs=runs, **claim)  # no step is told
    assert found.epsilon > 2, str(found)
    assert "found" in found.event
    honest = support_audit(
        lambda value, count: path.asked([value, 0.0, 0.0], count, np.zeros((1, 1)))[0][0],
        0.3,
        0.3 + 1e-5,
        runs=runs,
        **claim,
    )
    assert honest.passed, str(honest)


@pytest.mark.slow
def test_objective_perturbation_with_a_rounded_linear_term_is_caught(monkeypatch):
    """Columns are the linear terms that a model would come from, under either neighbour."""
    runs = 400
    scale = objective.fitted(objective.T).guarantee_.events[0].scale

    def terms(rows, count):
        models = [objective.fitted(rows) for _ in range(count)]
        neighbours = (objective.T, objective.OTHER)
        return np.hstack([objective.linear_terms(models, given) for given in neighbours])

    def audit():
        return support_audit(
            terms,
            objective.T,
            objective.OTHER,
            runs=runs,
            epsilon=objective.EPSILON,
            delta=objective.DELTA,
            steps=(_power_of_two(scale, 12),),
            confidence=0.999,
        )

    assert audit().passed
    monkeypatch.setattr(GaussianInside, "release", objective.rounded)
    found = audit()
    assert not found.passed, str(found)


def rounded_first(value, runs, rng):
    return value + SCALE * np.rint(rng.normal(size=runs) * 4096) / 4096


def rounded_twice(value, runs, rng):
    """Noise on a comb, scaled, and the answer on a grid that is finer than the comb."""
    grid = _power_of_two(SCALE, 12)
    return np.rint(rounded_first(value, runs, rng) / grid) * grid


def off_the_grid(value, runs, rng):
    """A grid that is placed by the value."""
    return np.rint(rng.normal(size=runs) * 64) / 64 + (value > 0.4) / 256


def with_an_atom(value, runs, rng):
    return np.where(rng.random(runs) < 0.05 * (value > 0.4), 7.25, rng.normal(size=runs))


@pytest.mark.parametrize("broken", [rounded_first, rounded_twice, off_the_grid, with_an_atom])
def test_what_is_possible_for_one_neighbour_alone_is_found(broken):
    rng = np.random.default_rng(0)
    claim = {"epsilon": 1.0, "delta": DELTA, "confidence": CONFIDENCE}
    apart = NEAR + 1107.5 * SCALE / 4096  # between the teeth of a comb, and no nearer than FAR
    found = support_audit(lambda v, n: broken(v, n, rng), NEAR, apart, runs=20_000, **claim)
    assert found.epsilon > 1.5, str(found)
    assert f"{found.epsilon:.3g}" in str(found)


def test_several_columns_speak_together():
    """One column says little, twelve say enough."""
    rng = np.random.default_rng(0)

    def mechanism(value, runs):
        return (
            value
            + np.rint(rng.normal(size=(runs, 12)) * 8) / 8
            + 0.03 * rng.normal(size=(runs, 12))
        )

    claim = {"runs": 900, "epsilon": 1.0, "delta": DELTA, "confidence": CONFIDENCE}
    together = support_audit(mechanism, 0.0, 0.0625, steps=(0.125,), **claim)
    assert "all columns" in together.event
    assert not together.passed


def test_the_bound_is_wrong_as_rarely_as_it_says():
    rng, wrong, audits = np.random.default_rng(0), 0, 200
    for _ in range(audits):
        bits = [rng.random(300) < p for p in (0.5, 0.75)]
        found = compare_supports(*bits, epsilon=1.0, delta=0.0, confidence=0.8)
        wrong += found.epsilon > math.log(2)  # P(0): .5 against .25
    assert wrong <= 74  # 200 x .2, and with probability 1e-6 more
    sharp = [rng.random(300_000) < p for p in (0.5, 0.75)]
    assert compare_supports(*sharp, epsilon=1.0, delta=0.0).epsilon > 0.95 * math.log(2)


def test_what_delta_allows_is_not_held_against_the_mechanism():
    rng = np.random.default_rng(0)
    tables = [with_an_atom(value, 6000, rng) for value in (NEAR, FAR)]
    claim = {"epsilon": 0.5, "confidence": CONFIDENCE}
    assert not compare_supports(*tables, delta=0.0, **claim).passed
    assert compare_supports(*tables, delta=0.06, **claim).passed


@pytest.mark.parametrize(
    ("tables", "options", "match"),
    [
        ((np.zeros(2), np.zeros(2)), {}, "three runs"),
        ((np.zeros(9), np.zeros((9, 2))), {}, "columns"),
        ((np.full(9, np.nan), np.zeros(9)), {}, "first must be a table of finite"),
        ((np.zeros(9), np.zeros((9, 2, 2))), {}, "second must be a table"),
        ((np.zeros(9), np.zeros(9)), {"steps": [0.0]}, "steps"),
        ((np.zeros(9), np.zeros(9)), {"confidence": 1.0}, "confidence"),
    ],
)
def test_what_cannot_be_compared_is_named(tables, options, match):
    with pytest.raises(ValueError, match=match):
        compare_supports(*tables, epsilon=1.0, delta=DELTA, **options)


def test_outputs_that_never_change_show_nothing():
    found = compare_supports(np.zeros(9), np.zeros(9), epsilon=0.0, delta=0.0)
    assert isinstance(found, SupportResult)
    assert found.epsilon == 0.0
