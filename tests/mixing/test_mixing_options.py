"""Parameters and options that cannot be, told before anything is spent."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpadapt import AdaMixClassifier, NoisyGDClassifier, Private, mixing
from dpadapt.mixing import (
    AdaMix,
    AdaptiveClip,
    FeatureProjection,
    FixedClip,
    GradientProjection,
    KnownNoise,
    NoisyGD,
    Steps,
    StepsAtNoise,
    Theory,
)
from dpadapt.modelfolder import save_model
from dpadapt.modelfolder.reading import decode
from dpadapt.modelfolder.types import Names
from dpadapt.testing.tape import taped
from mixing.mixing_problems import (
    make,
    problem,
)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (
            {"steps": StepsAtNoise(0.1), "solver": "adamix"},
            "sigma=0.1 is too small.*Take at least",
        ),
        ({"steps": StepsAtNoise(1e-9)}, "sigma=1e-09 is too small"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"relation": "add_remove"}, "relation must be one of 'replace-one', 'add-remove'"),
        ({"solver": "newton"}, "solver must be one of"),
        ({"solver": NoisyGD()}, "solver must be one of"),
        ({"solver": AdaptiveClip()}, "solver must be one of"),
        ({"sample_size": 0}, "sample_size"),
        ({"keep_trajectory": "yes"}, "keep_trajectory must be True or False"),
        ({"start": "warm"}, "start must be one of"),
        ({"start": np.zeros((3, 9))}, r"start must have the shape \(3, 4\), or \(3, 5\)"),
        ({"start": np.full((3, 4), np.nan)}, "start must be finite"),
    ],
    ids=str,
)
def test_bad_parameters_are_told_before_anything_is_spent(params, match):
    X, y, T, t = problem()
    private = Private(T, t)
    with taped() as tape, pytest.raises((ValueError, TypeError), match=match):
        make(**params).fit(X, y, private=private)
    assert tape == []
    assert private.spent(1e-6).epsilon == 0


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        (Steps, {"steps": 0}, "steps must be a whole number"),
        (Steps, {"steps": 5, "individual_filter": 0.5}, "individual_filter must lie in"),
        (StepsAtNoise, {"sigma": -1.0}, "sigma must be a positive"),
        (StepsAtNoise, {"sigma": math.nan}, "sigma must be a positive"),
        (KnownNoise, {"clip": 0.0}, "clip must be a positive"),
        (KnownNoise, {"clip": math.inf}, "clip must be a positive"),
        (KnownNoise, {"mixing": -0.5}, "mixing must be a finite number, zero or more"),
        (KnownNoise, {"projection": "gradients"}, "projection must be one of 'features'"),
        (KnownNoise, {"projection": GradientProjection()}, "projection must be one of 'features'"),
        (Theory, {"penalty": 0.0}, "penalty must be a positive"),
        (Theory, {"projection": "gradients"}, "projection must be one of 'features'"),
        (AdaMix, {"penalty": -1.0}, "penalty must be a finite number, zero or more"),
        (AdaMix, {"learning_rate": 0.0}, "learning_rate must be a positive"),
        (AdaMix, {"clipping": "soft"}, "clipping must be one of"),
        (AdaMix, {"clipping": 0.5}, "clipping must be one of"),
        (AdaMix, {"projection": "random"}, "projection must be one of"),
        (AdaMix, {"mixing": -0.5}, "mixing"),
        (AdaMix, {"average": 1}, "average must be True or False"),
        (NoisyGD, {"clip": -1.0}, "clip must be a positive"),
        (FixedClip, {"clip": 0.0}, "clip must be a positive"),
        (AdaptiveClip, {"percentile": 0.0}, r"percentile must lie in \(0, 100\]"),
        (AdaptiveClip, {"percentile": 101}, "percentile"),
        (AdaptiveClip, {"percentile": True}, "percentile"),
        (GradientProjection, {"rank": 0}, "rank must be a whole number"),
        (GradientProjection, {"clip_first": 1}, "clip_first must be True or False"),
        (FeatureProjection, {"rank": 2.5}, "rank must be a whole number"),
    ],
    ids=str,
)
def test_bad_options_are_told_when_they_are_written(kind, options, match):
    with pytest.raises(ValueError, match=match):
        kind(**options)


@pytest.mark.parametrize(
    ("solver", "option"),
    [
        ("known-noise", "learning_rate"),
        ("known-noise", "penalty"),
        ("known-noise", "clipping"),
        ("theory", "learning_rate"),
        ("theory", "average"),
        ("adamix", "clip"),
    ],
)
def test_an_option_of_another_solver_cannot_be_written(solver, option):
    model = make(solver=solver)
    with pytest.raises(ValueError, match=f"has no option {option}; its options"):
        model.set_params(**{f"solver__{option}": 1.0})
    with pytest.raises(TypeError, match=option):
        type(model._solver)(**{option: 1.0})


def test_options_are_set_and_searched_like_any_other():
    model = make(solver="adamix").set_params(solver__clipping__percentile=75.0)
    assert model.solver == AdaMix(AdaptiveClip(75.0))
    assert make(steps=Steps(9)).set_params(steps__individual_filter=3.0).steps == Steps(9, 3.0)
    assert len(AdaMixClassifier._get_param_names()) <= 14
    assert len(NoisyGDClassifier._get_param_names()) <= 14


@pytest.mark.parametrize(
    "old",
    [
        *(
            "adamix.AdaMix",
            "clipping.FixedClip",
            "noisy_gd.NoisyGD",
            "projection.FeatureProjection",
        ),
        *("noisy_gd_classifier.NoisyGDClassifier", "steps.StepsAtNoise", "theory.Theory"),
    ],
)
def test_model_folders_that_were_written_before_find_what_is_the_papers(old):
    assert Names().find(f"dpadapt.mixing.{old}") is getattr(mixing, old.partition(".")[2])


def test_a_folder_of_an_estimator_that_has_moved_loads(tmp_path):
    model = NoisyGDClassifier(epsilon=1.0, delta=1e-6).fit([[0.0], [1.0]], [0, 1])
    save_model(model, tmp_path / "model")
    tree = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    before = json.loads(json.dumps(tree).replace("dpadapt.papers.mixing.", "dpadapt.mixing."))
    assert before != tree
    arrays = (tmp_path / "model" / "arrays.bin").read_bytes()
    np.testing.assert_array_equal(decode(before, arrays).coef_, model.coef_)
