"""What each private row lost: bounded by the guarantee, and nowhere in the model."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpadapt import Private
from dpadapt.mixing import (
    AdaMix,
    GradientProjection,
    KnownNoise,
    Steps,
    unsafe_individual_losses,
)
from dpadapt.testing.search import everything_said
from mixing.mixing_problems import (
    make,
    problem,
)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"solver": "adamix"},
        {"solver": AdaMix(projection="gradients")},
        {"solver": AdaMix(projection=GradientProjection(clip_first=True))},
        {"solver": KnownNoise(projection="features")},
        {"solver": "theory"},
    ],
    ids=str,
)
def test_no_individual_loss_is_above_the_guarantee(relation, params):
    X, y, T, t = problem(m=20, n=60)
    counted = {"sample_size": 60} if relation == "add-remove" else {}  # else their number is public
    model = make(relation=relation, keep_trajectory=True, **counted, **params)
    model.fit(X, y, private=Private(T, t))
    losses = unsafe_individual_losses(model, T, t, public=(X, y))
    whole = math.hypot(*(e.gaussian_mu for e in model.guarantee_.events))
    share = 1 if relation == "add-remove" else 2
    assert losses.shape == (60,)
    assert (share * losses <= whole * (1 + 1e-9)).all()
    assert losses.max() > 0.2 * whole / share
    assert np.ptp(losses) > 0
    # a row of no class takes part in nothing
    assert unsafe_individual_losses(model, T[:1], [99], public=(X, y))[0] < 1e-12


def test_individual_losses_are_those_of_the_removed_row():
    """Sum of squared moves of the releases at the same weights, row taken out: Proposition 14."""
    X, y, T, t = problem(n=12)
    model = make(relation="add-remove", sample_size=12, keep_trajectory=True)
    model.fit(X, y, private=Private(T, t))
    from dpadapt.mixing.queries import ClippedGradients

    rows = model.features_.rows(T)
    total = 0.0
    for W, clip in zip(model.trajectory_, model.clips_, strict=True):
        query = ClippedGradients(W, clip, model.features_)
        move = query.block(rows, t) - query.block(rows[1:], t[1:])
        total += np.linalg.norm(move / model.sigma_) ** 2
    found = unsafe_individual_losses(model, T, t)[0]
    assert found == pytest.approx(math.sqrt(total), rel=1e-9)


@pytest.mark.parametrize("keep", [False, True])
def test_individual_losses_are_nowhere_in_the_model(keep):
    X, y, T, t = problem(n=40)
    model = make(keep_trajectory=keep).fit(X, y, private=Private(T, t))
    names = " ".join(vars(model))
    assert not any(word in names for word in ("loss", "individual_l", "norms", "mu_"))
    if not keep:
        assert not hasattr(model, "trajectory_")
        with pytest.raises(ValueError, match="keep_trajectory=True"):
            unsafe_individual_losses(model, T, t)
        return
    with everything_said() as said:
        losses = unsafe_individual_losses(model, T, t)
    assert said.all.strip() == ""
    data = pickle.dumps(model)
    for value in losses:
        assert np.float64(value).tobytes() not in data
        assert f"{value:.6g}" not in repr(model) + model.guarantee_.to_json()


def test_a_filter_bounds_what_a_row_can_lose():
    """With it every realised loss stays within the claim; without it the same noise would not."""
    X, y, T, t = problem(n=60)
    T = np.vstack([T, -5 * T[:5]])  # rows that never fit
    t = np.concatenate([t, t[:5]])
    model = make(
        relation="add-remove", sample_size=65, steps=Steps(60, 6.0), keep_trajectory=True
    ).fit(X, y, private=Private(T, t))
    (event,) = model.guarantee_.events
    assert (event.count, model.n_steps_) == (10, 60)
    unfiltered = unsafe_individual_losses(model, T, t)
    assert unfiltered.max() > 1.5 * event.gaussian_mu  # what they would have paid
    assert model.guarantee_.epsilon <= 1 + 1e-9
