"""The guarantee is derived from its events, and cannot be talked into anything else."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import re

import numpy as np
import pytest

from dpadapt.papers.mixing.poisson import PoissonGaussianEvent
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy import Cleaning, Guarantee, Private
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import SecondMoment

GAUSSIAN = GaussianEvent("second moment", 1.0, 4.0)
EVERY_EVENT: list[Event] = [
    GAUSSIAN,
    DiscreteGaussianEvent("exact", 1.0, 9.0, 2),
    LaplaceEvent("sums", 1.0, 20.0),
    PureEvent("answer", 0.05, 3),
    BoundedRangeEvent("choice", 0.1, 2.0),
    ParallelEvent("split", ((GAUSSIAN,), (BoundedRangeEvent("choice", 1.0, 2.0),))),
    RandomStoppingEvent("tuning", (GaussianEvent("run", 1.0, 30.0),), 0.0, 0.1),
    PoissonGaussianEvent("steps", 1.0, 2.0, 0.01, 10),
]


def guarantee(*events: Event, **changes) -> Guarantee:
    facts = {"delta": 1e-6, "noise": "secure", "bounds": {"private rows": 100}}
    return Guarantee(events or (GAUSSIAN,), **{**facts, "caveats": ("careful",), **changes})


def test_epsilon_is_what_the_events_add_up_to():
    for events in ((GAUSSIAN,), (GAUSSIAN, GAUSSIAN), tuple(EVERY_EVENT[:5])):
        assert guarantee(*events).epsilon == compose_epsilon(events, 1e-6)
    assert guarantee(GAUSSIAN, GAUSSIAN).epsilon > guarantee(GAUSSIAN).epsilon


def test_epsilon_cannot_be_set():
    one = guarantee()
    for name, value in {"epsilon": 0.1, "delta": 0.5, "events": (), "noise": "exact"}.items():
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, value)
    with pytest.raises(TypeError):
        Guarantee((GAUSSIAN,), epsilon=0.1)
    with pytest.raises(TypeError):
        dataclasses.replace(one, epsilon=0.1)
    assert one.epsilon == compose_epsilon((GAUSSIAN,), 1e-6)


def test_the_sentence_says_it_all():
    one = guarantee()
    assert str(one) == one.sentence
    assert one.sentence == (
        "Replacing any one private row by any other changes the probability of any outcome by a "
        f"factor of at most {math.exp(one.epsilon):.4g}, except with probability 1e-06 "
        f"(epsilon = {one.epsilon:.4g}, delta = 1e-06, replace-one)."
    )
    pure = Guarantee((PureEvent("a", 0.5),), delta=0.0, noise="secure")
    assert "except" not in pure.sentence
    assert "epsilon = 0.5, delta = 0" in pure.sentence
    huge = Guarantee((PureEvent("a", 5000.0),), delta=0.0, noise="secure")
    assert "e^5000" in huge.sentence
    removal = guarantee(PoissonGaussianEvent("g", 1.0, 2.0, 0.01, 10, relation="add-remove"))
    assert removal.sentence.startswith("Adding or removing any one private row changes")


def test_without_private_rows_epsilon_is_zero():
    nothing = Guarantee()
    assert (nothing.epsilon, nothing.delta, nothing.noise, nothing.events) == (0, 0, "none", ())
    assert nothing.sentence.startswith("No private row was used")
    assert Guarantee.from_dict(nothing.to_dict()) == nothing
    assert "No private row" in nothing._repr_html_()


@pytest.mark.parametrize("event", EVERY_EVENT, ids=lambda event: event.kind)
def test_round_trip_through_a_dict_and_json(event):
    one = guarantee(event)
    assert Guarantee.from_dict(one.to_dict()) == one
    again = Guarantee.from_dict(json.loads(one.to_json()))
    assert again == one
    assert again.epsilon == one.epsilon
    assert again.to_json() == one.to_json()
    assert pickle.loads(pickle.dumps(one)) == one
    assert set(one.to_dict()) == {
        "epsilon",
        "delta",
        "relation",
        "sentence",
        "noise",
        "bounds",
        "caveats",
        "events",
    }


def test_a_guarantee_of_a_session_goes_through_json():
    with Private(np.ones((30, 2))).open(epsilon=0.7, delta=1e-6) as session:
        session.plan(it=Gaussian.of(session.hide(SecondMoment(Cleaning(radius=1.0)))))
    again = Guarantee.from_dict(json.loads(session.guarantee.to_json()))
    assert again == session.guarantee
    assert again.epsilon <= 0.7


@pytest.mark.parametrize("factor", [0.5, 0.999, 1 - 2e-6, 1.001, 2.0, math.nan, math.inf])
def test_a_changed_epsilon_is_refused(factor):
    data = guarantee().to_dict()
    data["epsilon"] *= factor
    with pytest.raises(ValueError, match=r"states epsilon .* but its events add up to"):
        Guarantee.from_dict(data)


def test_changed_events_are_refused():
    data = guarantee(GAUSSIAN, GAUSSIAN).to_dict()
    fewer = {**data, "events": data["events"][:1]}
    with pytest.raises(ValueError, match="its events add up to"):
        Guarantee.from_dict(fewer)
    louder = json.loads(json.dumps(data))
    louder["events"][0]["scale"] *= 2
    with pytest.raises(ValueError, match="its events add up to"):
        Guarantee.from_dict(louder)
    with pytest.raises(ValueError, match="its events add up to"):
        Guarantee.from_dict({**data, "delta": 1e-3})
    with pytest.raises(ValueError, match="unknown kind"):
        Guarantee.from_dict({**data, "events": [{"kind": "magic", "label": "x"}]})
    # words are not read back but made again from the events
    lying = {**data, "sentence": "perfectly private", "relation": "none"}
    assert Guarantee.from_dict(lying).sentence == data["sentence"]


SCRIPT = "<script>alert('x')</script>&\"'"


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(SCRIPT, 1.0, 4.0),
        ParallelEvent(SCRIPT, ((GaussianEvent(SCRIPT, 1.0, 4.0),),)),
        RandomStoppingEvent("tuning", (GaussianEvent(SCRIPT, 1.0, 30.0),), 0.0, 0.1),
    ],
    ids=["label", "branch", "base"],
)
def test_html_is_escaped(event):
    page = guarantee(event, caveats=(SCRIPT,))._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert set(re.findall(r"</?(\w+)", page)) <= {
        "div",
        "strong",
        "table",
        "tr",
        "th",
        "td",
        "ul",
        "li",
    }
    assert page.count("<div") == page.count("</div") == 1


def test_html_shows_every_event_and_caveat():
    page = guarantee(*EVERY_EVENT[:5])._repr_html_()
    for event in EVERY_EVENT[:5]:
        assert event.label in page
        assert event.kind in page
    assert "<li>careful</li>" in page
    assert "sensitivity 1" in page
