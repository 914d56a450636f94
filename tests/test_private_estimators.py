"""Every estimator of the library keeps the promises of ``dpadapt.testing``.

Options that change what is released are checked too, by the part of the battery that depends on
them. What is left out is left out for a reason that stands beside it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

import dpadapt
from dpadapt import AdaptationPipeline, DiscrepancyRegressor, Private, ReweightingRegressor, mixing
from dpadapt import baselines as b
from dpadapt.auto import classification_step
from dpadapt.discrepancy import FrankWolfe, MirrorDescent, SingleStage, Softmax
from dpadapt.hybrid import NotCertified
from dpadapt.kernels import TDDL, TDIL, Fourier, GaussianProcess, Nystroem, Polynomial
from dpadapt.privacy.local.agents import Agents
from dpadapt.reweighting import (
    ConvexGradient,
    GeneralGradient,
    Profiled,
    ProfiledLogistic,
    Statistics,
    known_noise,
    plan,
)
from dpadapt.reweighting.moments import MomentCourse
from dpadapt.testing import Facts, Subject, parametrize_with_private_checks
from dpadapt.testing.battery import CHECKS

# what is not a private estimator, and why
NOT_PRIVATE = {
    "DiscrepancyMinimisationRegressor": "the baseline without privacy",
    "KMMClassifier": "the baseline without privacy",
    "KMMRegressor": "the baseline without privacy",
    "NonPrivateClassifier": "the baseline without privacy",
    "NonPrivateRegressor": "the baseline without privacy",
    "PublicOnlyClassifier": "reads no private rows",
    "PublicOnlyRegressor": "reads no private rows",
}
DEPENDS_ON_THE_SOLVER = {
    "check_guarantee_is_what_an_independent_accountant_finds",
    "check_noise_is_the_noise_of_the_events",
    "check_noise_has_the_scale_that_it_claims",
    "check_events_depend_on_public_facts_only",
    "check_a_block_adds_up_what_its_rows_add",
    "check_one_replaced_row_moves_no_release_beyond_its_sensitivity",
    "check_one_replaced_label_moves_no_release_beyond_its_sensitivity",
    "check_nothing_private_costs_nothing",
    "check_nothing_private_stays_in_the_model",
    "check_nothing_private_is_written_to_a_file",
    "check_model_folder_can_be_read",
    "check_no_private_values_raise",
    "check_one_private_row_is_enough",
    "check_odd_private_samples_are_taken",
    "check_inputs_are_not_modified",
    "check_seeded_noise_is_repeatable",
    "check_other_seeds_give_other_answers",
    "check_secure_noise_is_never_repeated",
    "check_global_random_state_is_not_touched",
    "check_labels_are_asked_for_where_they_are_needed",
    "check_a_refused_charge_draws_no_noise_and_fits_nothing",
    "check_charge_comes_before_noise",
}
SCALE = "check_noise_has_the_scale_that_it_claims"
EVENTS = "check_noise_is_the_noise_of_the_events"
ROW = "check_one_replaced_row_moves_no_release_beyond_its_sensitivity"
LABEL = "check_one_replaced_label_moves_no_release_beyond_its_sensitivity"
ADDS = "check_a_block_adds_up_what_its_rows_add"
ODD = "check_no_private_values_raise"
GRID = "check_grid_search_charges_every_fit"
SKLEARN = "check_estimator"
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
slow = pytest.mark.slow


def only(names, reason):
    """All other checks are left out."""
    return {name: reason for name in CHECKS if name not in names}


def all_of(kind, called="", facts=None, **params):
    """An estimator and the whole battery."""
    facts = Facts(labels=True) if facts is None else facts
    return Subject(kind(**BUDGET, **params), facts, name=kind.__name__ + called)


def part_of(kind, called, facts=None, left_out=None, **params):
    """Options of an estimator, and the part of the battery that depends on them."""
    rest = only(DEPENDS_ON_THE_SOLVER, "the estimator's default options are checked for this")
    given = {"labels": True} | (facts or {}) | {"left_out": rest | (left_out or {})}
    return Subject(kind(**BUDGET, **params), Facts(**given), name=f"{kind.__name__} {called}")


def apart(subject, *names):
    """A subject without its costly checks, and these, which a quicker subject makes as well."""
    quick, costly = (
        Subject(
            subject.estimator,
            replace(subject.facts, left_out={**left_out, **subject.facts.left_out}),
            name=subject.name,
        )
        for left_out in (dict.fromkeys(names, "slow: made below"), only(names, "made above"))
    )
    return quick, pytest.param(costly, marks=slow)


@pytest.fixture(scope="module", autouse=True)
def quick_courses():
    """Each course is chosen once (a function of public facts): ten steps rather than 100."""
    right, known = plan.choose_course, {}

    @functools.wraps(right)
    def choose_course(problem, n_rows, mu):
        facts = (problem.rows, problem.labels, problem.model)
        key = (*(fact.tobytes() for fact in facts), problem.public_error, n_rows, mu)
        if key not in known:
            known[key] = right(problem, n_rows, mu)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        for module in (known_noise, plan, classification_step):
            patch.setattr(module, "choose_course", choose_course)
        patch.setattr(plan, "LEAST_STEPS", 10)
        yield


# discrepancy

FAR = np.random.default_rng(5).normal(20.3, 0.8, size=(500, 3))
OUT_OF_REACH = Subject(
    DiscrepancyRegressor(**BUDGET, radius=60.0),
    private=FAR,
    name="DiscrepancyRegressor out of reach",
)
FEW_STEPS = {"steps": 5, "smoothing": Softmax(2.0)}
SOLVERS = {
    "frank-wolfe": {"solver": FrankWolfe(**FEW_STEPS)},
    "mirror-descent": {"solver": MirrorDescent(**FEW_STEPS)},
    "single-stage": {"solver": SingleStage(iterate="select", **FEW_STEPS)},
}
ONE_OF_FEW = {"single-stage": {"few_answers": True}}  # of five iterates one is selected
ON_THE_GRADIENT = MirrorDescent(
    steps=3, smoothing=Softmax(2.0), geometry="p-norm", noise_on="gradient"
)
DISCREPANCY = [
    all_of(DiscrepancyRegressor, facts=Facts()),
    OUT_OF_REACH,
    *(
        part_of(
            DiscrepancyRegressor,
            name,
            {"labels": False, **ONE_OF_FEW.get(name, {})},
            {SCALE: "slow: made below", ODD: "slow: made below"},
            **given,
        )
        for name, given in SOLVERS.items()
    ),
    *(
        pytest.param(
            all_of(
                DiscrepancyRegressor, f" {name}, all", Facts(**ONE_OF_FEW.get(name, {})), **given
            ),
            marks=slow,
        )
        for name, given in SOLVERS.items()
    ),
    pytest.param(
        all_of(DiscrepancyRegressor, " gradient", Facts(), solver=ON_THE_GRADIENT),
        marks=slow,
    ),
    Subject(
        AdaptationPipeline([("scale", StandardScaler())], DiscrepancyRegressor(**BUDGET)),
        name="AdaptationPipeline",
    ),
]


def test_what_is_out_of_reach_falls_back():
    model = OUT_OF_REACH.make(epsilon=8.0)
    assert not OUT_OF_REACH.fit(model, OUT_OF_REACH.private()).adapted_


# reweighting


class LargeBudget(Subject):
    """Neighbours of twelve rows have a level stage only where the budget is large."""

    def make(self, **params):
        return super().make(**params | {"epsilon": 1000.0})


OTHER_SOURCES = {SCALE: "the same sources of noise as elsewhere"}
TWO_CLASSES = {SCALE: "the same code as for two classes"}
LEVEL = LargeBudget(
    ReweightingRegressor(**BUDGET),
    Facts(labels=True, left_out=only({ROW, LABEL, ADDS}, "the usual budget is checked for this")),
    name="ReweightingRegressor large budget",
)
regressor = functools.partial(part_of, ReweightingRegressor)
classifier = functools.partial(part_of, dpadapt.ReweightingClassifier)
REWEIGHTING = [
    all_of(ReweightingRegressor),
    LEVEL,
    # the last gradient would lead to an iterate that does not count
    regressor("gradient", {"releases_all": False}, solver=ConvexGradient(steps=3)),
    regressor("profiled", solver=Profiled(steps=3)),
    regressor("statistics", solver="statistics"),
    regressor("holdout", None, OTHER_SOURCES, solver=Statistics(selection="holdout")),
    *apart(
        regressor(
            "random stopping",
            None,
            OTHER_SOURCES,
            solver=Profiled(selection="random-stopping", steps=3),
        ),
        ODD,
    ),
    regressor(  # no release for coefficients beyond the norm bound
        "certificate",
        {"releases_all": False},
        OTHER_SOURCES,
        solver="statistics",
        certificate=True,
        label_range=(-100.0, 100.0),
    ),
    *apart(all_of(dpadapt.ReweightingClassifier), SCALE, GRID),
    *apart(classifier("three classes", {"classes": 3}, TWO_CLASSES), ODD),
    # the answer is an iterate drawn at random: what comes after is not made
    *apart(classifier("gradient", {"releases_all": False}, solver=GeneralGradient(steps=3)), ODD),
    *apart(classifier("profiled", solver=ProfiledLogistic(steps=3)), SCALE),
]


def test_these_have_a_level_stage():
    usual = REWEIGHTING[0].fit(REWEIGHTING[0].make(), REWEIGHTING[0].private())
    assert usual.course_.level_share > 0
    assert [event.count for event in usual.guarantee_.events] == [usual.course_.steps, 1, 1]
    few = LEVEL.fit(LEVEL.make(), LEVEL.private(LEVEL.rows(n=12)))
    assert isinstance(few.course_, MomentCourse)  # the other way, which has no stages


# mixing

THREE = {"classes": 3}
adamix = functools.partial(part_of, dpadapt.AdaMixClassifier, facts=THREE)
FILTERED = {EVENTS: "more releases than a row pays for; tests/privacy/test_add_remove.py checks it"}
CLIP_FIRST = mixing.GradientProjection(clip_first=True)
TWO_DIRECTIONS = mixing.FeatureProjection(rank=2)
MIXING = [
    all_of(dpadapt.AdaMixClassifier, "", Facts(labels=True, progress_end=10), steps=10),
    adamix("adamix", solver="adamix", steps=4),
    adamix("gradients", solver=mixing.AdaMix(projection="gradients"), steps=4),
    *apart(
        adamix("filter", left_out=FILTERED, steps=mixing.Steps(4, individual_filter=2.0)),
        *(SCALE, ODD),
    ),
    pytest.param(adamix("three classes", left_out=TWO_CLASSES, steps=10), marks=slow),
    pytest.param(
        adamix("clip", solver=mixing.AdaMix(projection=CLIP_FIRST), steps=4),
        marks=slow,
    ),
    pytest.param(
        adamix("features", solver=mixing.KnownNoise(projection=TWO_DIRECTIONS), steps=4), marks=slow
    ),
    pytest.param(adamix("theory", solver="theory", steps=4), marks=slow),
    all_of(dpadapt.NoisyGDClassifier, "", Facts(labels=True, progress_end=5), steps=5),
]

# hybrid


def people(n=3000, seed=3, cuts=(0.0,)):
    X = np.random.default_rng(seed).normal(0.5, 0.6, size=(n, 3))
    return X, np.digitize(X @ [1.0, -1.0, 0.5], cuts).astype(float)


class TestedByAgents(dpadapt.SubsampleTestReweigh):
    """Fitted with agents of its own, always the same ones."""

    def fit(self, X=None, y=None, *, private=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)
            return super().fit(X, y, private=private, agents=Agents(*people()))


class JointByAgents(dpadapt.SubsampleTestReweigh):
    """Fitted with agents of three classes, always the same ones."""

    def fit(self, X=None, y=None, *, private=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)
            agents = Agents(*people(cuts=(-0.5, 0.5)))
            return super().fit(X, y, private=private, agents=agents)


class TiltedByAgents(dpadapt.HybridTilt):
    """Fitted with agents of its own, always the same ones."""

    def fit(self, X=None, y=None, *, private=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)
            rows = isinstance(private, Private) and private.n_rows
            agents = Agents(*people()) if rows else None  # else they alone would be learned from
            return super().fit(X, y, private=private, agents=agents)


FAST = {"learner": dpadapt.hybrid.GradientLearner(steps=5), "agent_epsilon": 1.0}
ROUNDS = {
    "schedule": dpadapt.hybrid.TightSchedule(kappa=0.3, rounds=3),
    "test": dpadapt.hybrid.BitTest(batch=400),
    "target_error": 0.01,
}
DIRECTIONS = "agents draw directions that no event of the curator stands for: test_hybrid_tilt.py"
HYBRID = [
    all_of(dpadapt.SubsampleTestReweigh, **FAST),
    *apart(
        part_of(
            TestedByAgents,
            "",
            {"releases_all": False},  # it may halt early
            {"check_one_private_row_is_enough": "rounds of a batch need more rows than one"},
            **FAST,
            **ROUNDS,
        ),
        SCALE,
    ),
    *apart(
        part_of(
            JointByAgents,
            "three classes",
            {"releases_all": False, "classes": 3},
            {"check_one_private_row_is_enough": "rounds of a batch need more rows than one"},
            **FAST,
            **ROUNDS,
        ),
        *(SCALE, ODD),
    ),
    all_of(dpadapt.HybridTilt, agent_epsilon=1.0),
    *apart(
        part_of(TiltedByAgents, "", None, {EVENTS: DIRECTIONS}, agent_epsilon=2.0),
        *(SCALE, ROW, ODD),
    ),
]

# kernels


class Asked(Subject):
    """A predictor, and its answers to some questions; without one, nothing is released."""

    def fit(self, model, private=None, X=None, y=None):
        fitted = super().fit(model, private, X, y)
        self.predictions(fitted)
        return fitted

    def predictions(self, model, X=None):
        questions = self.public()[0] if X is None else X
        return np.ravel(model.decision_function(questions[:9])).astype(float)

    def answers(self, model):
        return self.predictions(model)

    def coded(self, model, answers):
        return np.unique(answers, return_inverse=True)[1].astype(float)


SMALL = {"release": GaussianProcess(points=20)}
FEWER = Facts(labels=True, rows=150)  # a kernel has a value for each pair of them
ZERO = "with so few rows no noisy difference passes the threshold: the answer is zero, always"
ALWAYS_ZERO = dict.fromkeys(
    ("check_secure_noise_is_never_repeated", "check_other_seeds_give_other_answers"), ZERO
)
BALL = {EVENTS: "points of a ball are drawn from uniform numbers, not from a noise that is added"}
kernel_classifier = functools.partial(part_of, dpadapt.KernelClassifier)
kernel_regressor = functools.partial(part_of, dpadapt.KernelRegressor)
SLOW_KERNELS = [
    kernel_classifier("polynomial", kernel=Polynomial(degree=2)),
    kernel_classifier("three classes", THREE, **SMALL),
    kernel_classifier("hinge", THREE, **SMALL, loss="hinge", multiclass="one-vs-rest"),
    kernel_regressor("tddl", release=TDDL(points=20)),
    kernel_regressor("laplace", release=TDDL(points=5, calibration="laplace")),
    kernel_classifier("tdil", None, ALWAYS_ZERO, release=TDIL(points=20)),
    kernel_classifier("linear", None, ALWAYS_ZERO | BALL, kernel="linear", release="tdil"),
    kernel_regressor("nystroem", features=Nystroem(20)),
    kernel_regressor("fourier", features=Fourier(20), loss="epsilon-insensitive"),
]
KERNELS = [
    *apart(all_of(dpadapt.KernelClassifier, "", FEWER, **SMALL), SCALE, ODD, GRID, SKLEARN),
    all_of(dpadapt.KernelRegressor, "", FEWER, **SMALL),
    *(pytest.param(each, marks=slow) for each in SLOW_KERNELS),
]
NEVER_RELEASED = "a predictor that is asked holds private rows, and is never copied or released"
NEEDS_ROWS = "a predictor that is asked needs private rows"
OWN_NOISE = "answers have noise of their own, a path: tests/privacy/test_path_answers.py"
NO_SCORE = "it has no score: each question would be answered for good"
INTERACTIVE = {
    "check_nothing_private_stays_in_the_model": NEVER_RELEASED,
    "check_nothing_private_is_written_to_a_file": NEVER_RELEASED,
    "check_model_folder_can_be_read": NEVER_RELEASED,
    "check_deep_copy_shares_the_charges": NEVER_RELEASED,
    "check_fitted_attributes_end_in_an_underscore": NEVER_RELEASED,
    "check_refit_has_a_guarantee_of_its_own": NEEDS_ROWS,
    "check_nothing_private_costs_nothing": NEEDS_ROWS,
    "check_public_only_fit_needs_no_seed": NEEDS_ROWS,
    "check_estimator": NEEDS_ROWS,
    EVENTS: OWN_NOISE,
    SCALE: OWN_NOISE,
    ROW: OWN_NOISE,
    LABEL: OWN_NOISE,
    "check_charge_comes_before_noise": OWN_NOISE,
    "check_grid_search_charges_every_fit": NO_SCORE,
    "check_cross_validation_charges_every_fit": NO_SCORE,
    "check_other_processes_are_refused_with_a_reason": NO_SCORE,
    "check_progress_is_shown_only_when_asked_for": "a fit reads no rows: there is no progress",
    "check_public_names_and_sizes_are_kept": "the kernel model that it asks keeps them",
}
INTERACTIVE_SUBJECTS = [
    Asked(
        dpadapt.InteractivePredictor(kernel(**BUDGET)),
        Facts(labels=True, classes=classes, rows=60, left_out=INTERACTIVE),
        name=f"InteractivePredictor {kernel.__name__}",
    )
    for kernel, classes in ((dpadapt.KernelRegressor, 0), (dpadapt.KernelClassifier, 2))
]

# baselines

GIVEN = {"steps": 6, "step_size": 0.5, "clip": 1.0}
COUPLED = dict.fromkeys(
    (ROW, LABEL), "the proof couples other noise: tests/baselines/test_objective_perturbation.py"
)
PERTURBED = Facts(labels=True, left_out=COUPLED)
BASELINES = [
    all_of(b.AdaSSPRegressor),
    pytest.param(all_of(b.AdaSSPRegressor, " residual", residual=True), marks=slow),
    *apart(all_of(b.AdaSSPClassifier, residual=True), SCALE, SKLEARN),
    all_of(b.NoisyGradientRegressor, **GIVEN),
    pytest.param(
        all_of(b.NoisyGradientRegressor, " fine-tuning", **GIVEN, start="public"), marks=slow
    ),
    *apart(all_of(b.NoisyGradientClassifier, **GIVEN, start="public"), SCALE, SKLEARN),
    *apart(all_of(b.NoisySGDRegressor, steps=6), SCALE),
    *apart(all_of(b.ObjectivePerturbationClassifier, "", PERTURBED), SCALE, SKLEARN),
    all_of(b.ObjectivePerturbationRegressor, "", PERTURBED, start="public"),
]

# auto

UNLABELLED = {
    "check_labels_are_asked_for_where_they_are_needed": (
        "without private labels it is the public model, which is told: tests/auto"
    )
}
REGRESSOR, CLASSIFIER = (  # a purse need not be spent to the end
    all_of(
        kind, "", Facts(labels=True, releases_all=False, left_out=UNLABELLED), experts=["linear"]
    )
    for kind in (dpadapt.AutoRegressor, dpadapt.AutoClassifier)
)
AUTO = [
    *apart(REGRESSOR, SCALE, ROW, LABEL, ADDS, ODD, GRID),
    *apart(CLASSIFIER, SCALE, LABEL, ODD, GRID, SKLEARN, "check_guarantee_of_other_budgets"),
    *apart(
        part_of(dpadapt.AutoClassifier, "few public rows", left_out=UNLABELLED),
        *(SCALE, ROW, LABEL, ODD),
    ),
]

PARTS = (DISCREPANCY, REWEIGHTING, MIXING, HYBRID, KERNELS, INTERACTIVE_SUBJECTS, BASELINES, AUTO)
SUBJECTS = [each for part in PARTS for each in part]


@parametrize_with_private_checks(SUBJECTS)
def test_promise(check):
    check()


def test_every_public_estimator_is_checked_or_is_not_private_for_a_reason():
    public = {
        name
        for module in (dpadapt, b)
        for name in module.__all__
        if inspect.isclass(kind := getattr(module, name)) and issubclass(kind, BaseEstimator)
    }
    checked = {type(each.estimator).__name__ for each in SUBJECTS if isinstance(each, Subject)}
    assert public == (checked & public) | NOT_PRIVATE.keys()
    assert not checked & NOT_PRIVATE.keys()
