"""What the classifiers of the hybrid model say about themselves in a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpadapt.learning.story import Fact, Story, class_facts, number, percent, short


def rule_story(estimator: Any, method: str) -> Story:
    """Tell about a rule that a curator and agents have learnt.

    Parameters
    ----------
    estimator : HybridTilt or SubsampleTestReweigh
    method : str
        By which it was learnt.

    Examples
    --------
    >>> from dpadapt.hybrid import HybridTilt
    >>> model = HybridTilt(epsilon=1, delta=1e-6, agent_epsilon=1).fit([[0.0], [1.0]], [0, 1])
    >>> rule_story(model, "").summary
    'A linear rule, fitted on public rows alone.'
    """
    told = Story(
        "A linear rule, fitted on public rows alone.",
        class_facts(estimator),
        assumption="",
        public_use="units of the columns and classes",
        radius="longer than any row: it only keeps numbers finite. What one row can do is bounded "
        "in the release itself, see its sensitivity",
    )
    asked = estimator.agents_guarantee_.bounds.get("agents asked", 0)
    if not estimator.guarantee_.events and not asked:
        return told
    facts = (*told.facts, *_of_agents(estimator, asked), *_certificate(estimator))
    return replace(
        told,
        summary=f"A rule for people who trust nobody, learnt by {method}.",
        facts=facts,
        assumption="The guarantee above is that of the curator's rows. Agents have their own: what "
        "leaves an agent is one randomised message. Somebody who is both pays both.",
    )


def _of_agents(estimator: Any, asked: float) -> tuple[Fact, ...]:
    if not asked:
        return (Fact("agents", "0", "nobody was asked: nothing is known of the target"),)
    theirs = estimator.agents_guarantee_
    return (
        Fact("agents asked", number(asked), "people who answered one question at most, once"),
        Fact(
            "epsilon of an agent",
            short(theirs.epsilon),
            f"of one message, at delta {short(theirs.delta)}; nobody is trusted with the answer",
        ),
    )


def _certificate(estimator: Any) -> tuple[Fact, ...]:
    found = estimator.certificate_
    if found.error is None:
        return (Fact("certificate", "–", "no agent has tested the rule"),)
    about = "error on agents" if found.about == "mistakes" else found.about
    meaning = "what agents say of the rule" if found.certified else "not shown to meet the target"
    return (
        Fact(about, percent(round(max(0.0, found.error), 4)), meaning),
        Fact(
            "at most",
            percent(round(min(1.0, found.upper), 4)),
            f"with {percent(found.confidence)} confidence, from {number(found.agents)} answers",
        ),
    )
