"""The number of runs of random stopping is a secret, and no progress bar tells it."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import dpadapt.base as base
import dpadapt.mixing.classifier as mixing
from dpadapt import Private
from dpadapt.mixing import AdaMixClassifier
from dpadapt.privacy import Cleaning, Session
from dpadapt.privacy.mechanisms import Gaussian, best_of_random_runs
from dpadapt.privacy.statistics import SecondMoment
from dpadapt.reweighting import Profiled, ReweightingRegressor

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(60, 2)), RNG.normal(size=(120, 2))
Y, U = (X[:, 0] > 0).astype(int), (T[:, 0] > 0).astype(int)


def core(calls):
    told = {"progress": lambda *facts: calls.append(facts)}
    with Private(T).open(epsilon=1.0, delta=1e-6, **told) as session:
        query = SecondMoment(Cleaning(radius=3.0))
        first = session.hide(query)

        def run(grants):
            value = session.release(grants.moment, session.hide(query))
            return float(value[0, 0]), value

        best_of_random_runs(session, {"moment": Gaussian.of(first)}, run)


def adamix(calls):
    model = AdaMixClassifier(
        epsilon=1.0, delta=1e-6, select={"clip": [0.3, 1.0]}, steps=3, verbose=1
    )
    model.fit(X, Y, private=Private(T, U))


def profiled(calls):
    solver = Profiled(alpha=[0.0, 0.5], selection="random-stopping")
    model = ReweightingRegressor(epsilon=1.0, delta=1e-6, verbose=1, solver=solver)
    model.fit(X, X[:, 0], private=Private(T, T[:, 0]))


FITS = {"core": core, "adamix": adamix, "profiled": profiled}


def told(fit, runs, monkeypatch):
    """What a progress bar is told by a fit with so many runs."""
    calls = []

    @contextmanager
    def spy(title, verbose):
        yield (lambda *facts: calls.append(facts)) if verbose else None

    monkeypatch.setattr("dpadapt.papers.selection.random_stopping.random_runs", lambda *facts: runs)
    for module in (mixing, base):
        monkeypatch.setattr(module, "row_progress", spy)
    fit(calls)
    return calls


@pytest.mark.parametrize("fit", FITS)
def test_progress_is_the_same_for_any_number_of_runs(fit, monkeypatch):
    assert told(FITS[fit], 1, monkeypatch) == told(FITS[fit], 4, monkeypatch)


def test_a_session_that_goes_on_telling_is_seen(monkeypatch):
    honest = Session.plan

    def telling(self, **mechanisms):
        shown = self._samples["all"].progress
        grants = honest(self, **mechanisms)
        self._samples["all"].progress = shown
        return grants

    monkeypatch.setattr(Session, "plan", telling)
    assert told(core, 1, monkeypatch) != told(core, 4, monkeypatch)


def test_without_random_stopping_progress_is_told(monkeypatch):
    def plain(calls):
        AdaMixClassifier(epsilon=1.0, delta=1e-6, steps=3, verbose=1).fit(
            X, Y, private=Private(T, U)
        )

    assert told(plain, 1, monkeypatch)
