"""The anchored bound: it holds, it beats the printed one, and it is released for what it costs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpadapt.papers.reweighting.certificate import (
    Certifier,
    ReweightingCertificate,
    anchored_bound,
    printed_bound,
)
from dpadapt.papers.reweighting.labelled_discrepancy import labelled_discrepancy, labelled_moment
from dpadapt.papers.reweighting.released_discrepancy import LabelledDiscrepancy
from dpadapt.privacy import Cleaning, Private
from dpadapt.privacy.mechanisms import count_labels

CLEANING = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
FACTS = {"length": 1.0, "norm_bound": 1.0}


def test_every_term():
    q, losses = np.array([0.1, 0.3]), np.array([1.0, 2.0])
    found = anchored_bound(
        losses, q, (0.5, 0.01), (0.2, 0.03), alpha=0.6, n_rows=4, private_weight=0.3,
        confidence=0.9, **FACTS,
    )  # fmt: skip
    B, G = 4.0, 4.0
    t = 0.2 + 0.0 + 0.1
    norm = math.sqrt(0.01 + 0.09 + 0.09 / 4)
    chance = math.sqrt(math.log(40) / 2)  # four events share 0.1
    assert found.weighted_loss == pytest.approx(0.1 + 0.6 + 0.15)
    assert found.discrepancy == pytest.approx(0.4 * 0.2)
    assert found.noise == pytest.approx(1.959964 * (0.3 * 0.01 + 0.4 * 0.03))
    assert found.complexity == pytest.approx(2 * G * norm)
    assert found.distance == pytest.approx(3 * B * t)
    assert found.deviation == pytest.approx(
        B * chance * (norm + t) + 0.4 * B * chance * math.sqrt(1 / 2 + 1 / 4)
    )
    assert found.bound == pytest.approx(sum(value for value, _ in found.terms().values()))
    assert not found.informative
    assert "says nothing" in str(found)


def test_smaller_than_the_printed_theorem_for_every_q():
    """With the population's discrepancy in both (so without the term for its estimate)."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        m, n, alpha = int(rng.integers(2, 40)), int(rng.integers(2, 40)), rng.uniform(0, 1)
        q = alpha / m * rng.uniform(0, 1, m) ** rng.integers(0, 3)
        rest = (1 - alpha) * rng.uniform(0.3, 1)
        losses, d = rng.uniform(0, 4, m), rng.uniform(0, 4)
        confidence = rng.uniform(0.5, 0.999)
        facts = {"alpha": alpha, "n_rows": n, "private_weight": rest, **FACTS}
        ours = anchored_bound(losses, q, (1.0, 0.0), (d, 0.0), confidence=confidence, **facts)
        # one event instead of two, and no estimate of the discrepancy
        chance = math.sqrt(math.log(1 / (1 - confidence)) / 2)
        t = ours.distance / 12
        norm = ours.complexity / 8
        anchored = ours.bound - ours.deviation + 4 * chance * (norm + t)
        assert anchored <= printed_bound(losses, q, 1.0, d, confidence=confidence, **facts)


def test_the_minimiser_is_the_reference():
    rng = np.random.default_rng(1)
    for _ in range(300):
        m, n, alpha = 40, 60, 0.4
        losses, d = rng.uniform(0, 4, m) * rng.integers(0, 2, m), rng.uniform(0, 4)
        facts = {"alpha": alpha, "n_rows": n, **FACTS}
        q = alpha / m * rng.uniform(0, 1, m) ** rng.integers(0, 9)
        rest = (1 - alpha) * rng.uniform(0, 1) ** rng.integers(0, 3)
        at_p = anchored_bound(losses, np.full(m, alpha / m), (3.0, 0.0), (d, 0.0), **facts)
        moved = anchored_bound(losses, q, (3.0, 0.0), (d, 0.0), private_weight=rest, **facts)
        assert at_p.bound <= moved.bound + 1e-12


def _population(rng, n, private):
    """Labels follow x / 2, private ones with an error: the mean private loss of w is known."""
    x = rng.choice([-1.0, 1.0], n)
    return x[:, None], 0.5 * x + (rng.choice([-0.5, 0.5], n) if private else 0.0)


def _true_loss(w):
    return (w - 0.5) ** 2 + 0.25


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_holds_on_draws_with_a_known_population(confidence):
    """Also for the model and the weights that the data choose; losses alone do not bound it."""
    rng = np.random.default_rng(2)
    held, bare, draws, m, n = 0, 0, 500, 30, 20
    for _ in range(draws):
        X, y = _population(rng, m, private=False)
        Z, v = _population(rng, n, private=True)
        alpha, d = 0.3, labelled_discrepancy(labelled_moment(X, y), labelled_moment(Z, v), 1.0)
        # the model that its own sample likes best
        w = float(np.clip((Z[:, 0] @ v) / n, -1, 1))
        q = alpha / m * rng.uniform(0.9, 1.0, m)
        certificate = anchored_bound(
            (X[:, 0] * w - y) ** 2, q, (float(((Z[:, 0] * w - v) ** 2).mean()), 0.0), (d, 0.0),
            alpha=alpha, n_rows=n, confidence=confidence, **FACTS,
        )  # fmt: skip
        held += certificate.bound >= _true_loss(w)
        empty = replace(certificate, complexity=0.0, distance=0.0, deviation=0.0, discrepancy=0.0)
        bare += empty.bound >= _true_loss(w)
    assert held >= confidence * draws
    assert bare < 0.2 * draws  # the check can fail


def test_released_with_noise_and_charged():
    rng = np.random.default_rng(3)
    X, y = _population(rng, 3000, private=False)
    Z, v = _population(rng, 2000, private=True)
    certifier = Certifier(LabelledDiscrepancy(X, y, 1.0, CLEANING), alpha=0.3)
    options = {"noise": "seeded", "random_state": 0}
    with Private(Z, v).open(epsilon=0.5, delta=1e-6, **options) as session:
        planned = certifier.mechanisms(session)
        count = planned["certified_rows"]
        assert (count.sensitivity, count.divided) == (1.0, False)
        others = [m for m in planned.values() if m is not count]
        assert [m.label for m in others] == ["private loss", "labelled discrepancy"]
        assert all(4 / 2000 < m.sensitivity < 4 / 2000 * (1 + 1e-4) for m in others)
        grants = session.plan(**planned)
        certificate = certifier.release(session, grants, [0.4])
    assert session.guarantee.epsilon == pytest.approx(0.5, rel=1e-6)
    exact = 0.3 * ((X[:, 0] * 0.4 - y) ** 2).mean() + 0.7 * ((Z[:, 0] * 0.4 - v) ** 2).mean()
    assert certificate.weighted_loss != exact
    more = 0.7 * exact * 4 * grants.certified_rows.scale / 2000  # for the doubt in the count
    assert certificate.weighted_loss == pytest.approx(
        exact, abs=6 * 0.7 * grants.certified_loss.scale + more
    )
    assert certificate.noise > 0
    assert certificate.distance == pytest.approx(0.0, abs=1e-12)
    assert certificate.bound > _true_loss(0.4)


@pytest.mark.parametrize("counted", [False, True])
def test_rows_without_a_label_do_not_lower_the_bound(counted):
    """Divided by all rows, of which 60 % have none, the loss would be 0.4 times as large."""
    rng = np.random.default_rng(6)
    X, y = _population(rng, 3000, private=False)
    Z, v = _population(rng, 20_000, private=True)
    certifier = Certifier(LabelledDiscrepancy(X, y, 1.0, CLEANING), alpha=0.0)
    loss = float(((Z[:, 0] * 0.1 - v) ** 2).mean())
    v[rng.random(20_000) < 0.6] = np.nan
    with Private(Z, v).open(epsilon=1.0, delta=1e-6, noise="seeded", random_state=0) as session:
        if counted:
            count_labels(session)
        else:
            session.leave_out_unlabelled()
        grants = session.plan(**certifier.mechanisms(session))
        found = certifier.release(session, grants, [0.1])
    assert loss < found.weighted_loss + found.noise < 1.1 * loss
    assert found.confidence == 0.95


def test_noise_is_hidden_no_further_than_its_quantile():
    """Released value plus the noise term is above the truth, as often as stated."""
    rng = np.random.default_rng(4)
    losses, q = np.zeros(10), np.full(10, 0.05)
    facts = {"alpha": 0.5, "n_rows": 10, "confidence": 0.8, **FACTS}
    above, wrong, draws = 0, 0, 4000
    for _ in range(draws):
        loss, d = 1.0 + 0.3 * rng.normal(), 2.0 + 0.2 * rng.normal()
        found = anchored_bound(losses, q, (loss, 0.3), (d, 0.2), **facts)
        truth = 0.5 * 1.0 + 0.5 * 2.0
        above += found.weighted_loss + found.discrepancy + found.noise >= truth
        wrong += found.weighted_loss + found.discrepancy >= truth
    assert above / draws >= 1 - 2 * 0.05
    assert wrong / draws < 0.6  # without the term


def test_alpha_0_needs_no_discrepancy():
    X, y = _population(np.random.default_rng(5), 100, private=True)
    certifier = Certifier(LabelledDiscrepancy(X, y, 1.0, CLEANING), alpha=0.0)
    with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
        grants = session.plan(**certifier.mechanisms(session))
        certificate = certifier.release(session, grants, [0.5])
    assert list(vars(grants)) == ["certified_loss", "certified_rows"]
    assert certificate.discrepancy == 0.0


def test_bad_input_is_named():
    facts = {"n_rows": 10, **FACTS}
    for q, alpha, message in (
        ([-0.1, 0.2], 0.5, "weights"),
        ([0.1], 0.5, "weights"),
        ([0.1, 0.2], 1.5, "alpha"),
    ):
        with pytest.raises(ValueError, match=message):
            anchored_bound([0.0, 0.0], q, (0.0, 0.0), (0.0, 0.0), alpha=alpha, **facts)
    certifier = Certifier(LabelledDiscrepancy(np.ones((2, 1)), np.ones(2), 1.0, CLEANING), 0.5)
    with Private(np.ones((9, 1)), np.ones(9)).open(epsilon=1.0, delta=1e-6) as session:
        grants = session.plan(**certifier.mechanisms(session))
        with pytest.raises(ValueError, match="coefficients"):
            certifier.release(session, grants, [1.5])


def test_shown_as_text_and_html():
    certificate = ReweightingCertificate(
        0.1, 0.1, 0.0, 0.1, 0.0, 0.1, confidence=0.9, ceiling=4.0, conditions=("a < b",)
    )
    assert str(certificate).startswith("With 90% confidence")
    assert certificate._repr_html_().count("<tr>") == 6
