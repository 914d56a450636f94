"""What was measured elsewhere must be of the model that a report is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dpadapt.privacy import Guarantee
from dpadapt.privacy.accounting.events import ParallelEvent
from dpadapt.privacy.files.guarantees import read_guarantee

from .wording import people, unit

if TYPE_CHECKING:
    from dpadapt.audit.result import AuditResult

    from .page import ReportContext


def check_evidence(context: ReportContext, estimator: Any, guarantee: Guarantee) -> None:
    """Refuse an evaluation or an audit of something else: it must not speak for this model.

    Parameters
    ----------
    context : ReportContext
        With the digest of the model where it is in a folder.
    estimator : estimator
        Fitted, without the steps before it.
    guarantee : Guarantee

    Examples
    --------
    >>> from dpadapt.report import ReportContext
    >>> check_evidence(ReportContext(evaluations=[{"model": "a"}], model="b"), None, Guarantee())
    Traceback (most recent call last):
        ...
    ValueError: evaluation: it is of another model than this one; run dpadapt evaluate with this \
model, and give the file that it writes.
    """
    for evaluation in context.evaluations if context.model else ():
        _check_evaluation(evaluation.get("model"), context.model)
        _check_unit(evaluation.get("guarantee") or {}, guarantee)
    if context.audit is not None:
        _check_audit(context.audit, context.model, estimator, guarantee)


def _check_evaluation(measured: Any, model: str) -> None:
    if measured == model:
        return
    found = "it is of another model than this one" if measured else "it does not say of which model"
    raise ValueError(
        f"evaluation: {found}; run dpadapt evaluate with this model, and give the file that it "
        "writes."
    )


def _check_unit(measured: Any, guarantee: Guarantee) -> None:
    """A page about people must not show numbers that protect single rows."""
    weaker = measured.get("relation") == "replace-one" and guarantee.relation == "replace-unit"
    if measured.get("events") and weaker:
        raise ValueError(
            "evaluation: it protects single rows, and this model protects all rows of a person; "
            "run dpadapt evaluate with the --unit and --max-rows of the model."
        )


def _check_audit(audit: AuditResult, model: str, estimator: Any, guarantee: Guarantee) -> None:
    from dpadapt.audit.result import settings_digest

    own = guarantee.relation, int(guarantee.bounds.get("rows a person", 1))
    if (audit.relation, audit.max_rows) != own:
        protected = unit(own[0]) + (f", up to {own[1]} of which count" if own[1] > 1 else "")
        raise ValueError(
            f"audit: its neighbours differ in another unit ({audit.unit}) than this model protects "
            f"({protected}); run dpadapt audit --model with this model's folder."
        )
    same = (
        audit.estimator == type(estimator).__name__
        and math.isclose(audit.claimed, guarantee.epsilon, rel_tol=1e-6)
        and math.isclose(audit.delta, guarantee.delta, rel_tol=1e-6)
    )
    if not same:
        raise ValueError(
            f"audit: it is of {audit.estimator} at epsilon {audit.claimed:.4g}, delta "
            f"{audit.delta:g}, not of this model; run dpadapt audit with the model's own settings."
        )
    if audit.model:
        same, other = audit.model == model, "it was made with --model of another model folder"
    else:
        same = audit.settings == settings_digest(estimator, guarantee.relation)
        other = "its estimator had other parameters"
    if not same:
        raise ValueError(
            f"audit: {other}, so that it is not of this model; run dpadapt audit --model with this "
            "model's folder."
        )


def audited(audit: AuditResult) -> str:
    """What was attacked, in a sentence: a fit like that of this model, or one with its settings.

    Parameters
    ----------
    audit : AuditResult

    Examples
    --------
    >>> from dpadapt.audit.result import AuditResult
    >>> facts = (1.0, 0.4, 1e-6, 0.95, "400 runs", 250, 400, 12, 12, 0.98, "", "public rows")
    >>> audited(AuditResult("DiscrepancyRegressor", *facts, "a1"))
    'A new fit with the estimator and parameters of this model folder was attacked on public rows; \
no private row took part. Neighbours differed in one unit: one row replaced by another.'
    """
    what = "the estimator and parameters of this model folder"
    if not audit.model:
        what = "the same estimator, parameters, epsilon and delta (not from this model folder)"
    return (
        f"A new fit with {what} was attacked on {audit.rows}; no private row took part. Neighbours "
        f"differed in one unit: {audit.unit}."
    )


def together(
    evaluations: Iterable[Mapping[str, Any]], fit: Guarantee, *, held_out: bool = False
) -> str:
    """What fit and evaluations cost together, from all that was released, and who was held out.

    Nobody who was held out is in the fit, so that both cost the larger of the two. Of any other
    evaluation it is not known who is in it: it is added, as if they were the people of the fit.

    Parameters
    ----------
    evaluations : iterable of mappings
        What ``Evaluation.to_dict()`` gives, or the like.
    fit : Guarantee
    held_out : bool
        Whether the fit has held people out: an evaluation that says so itself is not asked.

    Examples
    --------
    >>> from dpadapt.privacy.accounting.events import GaussianEvent
    >>> fit, small = (Guarantee((GaussianEvent("", 1.0, s),), 1e-6) for s in (4.5, 9.0))
    >>> held = {"people": 50, "held_out": True, "guarantee": small.to_dict()}
    >>> together([held], fit, held_out=True)
    'Fit and evaluation together cost epsilon = 0.9342, delta = 1e-06, replace-one. 50 private \
rows were held out from the fit to be measured: nobody is in both, and the larger of the two \
counts.'
    >>> together([], fit)
    ''
    """
    known = _known(evaluations, held_out)
    if not known:
        return ""
    cost = together_cost(evaluations, fit, held_out=held_out)
    if cost is None:
        return "Fit and evaluation have guarantees of different kinds, which do not add up."
    told = [
        f"Fit and evaluation together cost epsilon = {cost.epsilon:.4g}, delta = {cost.delta:.3g}, "
        f"{cost.relation}."
    ]
    held = [each["people"] for each, _, apart in known if apart]
    if held:
        told.append(
            f"{max(held):,} {people(cost.relation)} were held out from the fit to be measured: "
            "nobody is in both, and the larger of the two counts."
        )
    if len(held) < len(known):
        told.append(
            "Whoever else was measured is added in full, since they may be the people of the fit."
        )
    return " ".join(told)


def together_cost(
    evaluations: Iterable[Mapping[str, Any]], fit: Guarantee, *, held_out: bool = False
) -> Guarantee | None:
    """Return the guarantee of fit and evaluations, or None where theirs do not add up.

    Parameters are those of `together`.

    Examples
    --------
    >>> together_cost([], Guarantee()).epsilon
    0.0
    """
    known = _known(evaluations, held_out)
    if not known:
        return fit
    held, others = (
        tuple(event for _, cost, apart in known if apart is wanted for event in cost.events)
        for wanted in (True, False)
    )
    branches = (fit.events, held)
    relations = {event.relation for events in (*branches, others) for event in events}
    if len(relations) > 1:
        return None
    (relation,) = relations
    first = branches[0] + branches[1]
    if all(branches):
        first = (ParallelEvent("fit, and held out", branches, relation=relation),)
    return Guarantee((*first, *others), fit.delta or max(cost.delta for _, cost, _ in known))


def _known(
    evaluations: Iterable[Mapping[str, Any]], held_out: bool
) -> list[tuple[Mapping[str, Any], Guarantee, bool]]:
    """Evaluations whose releases are on record, their cost, and whether people were held out."""
    return [
        (each, read_guarantee(each["guarantee"]), held_out and each.get("held_out") is True)
        for each in evaluations
        if _cost(each)
    ]


def _cost(evaluation: Mapping[str, Any]) -> Any:
    """What an evaluation has released, if that is on record."""
    return (evaluation.get("guarantee") or {}).get("events")


def charged(ledger: Any, guarantee: Guarantee) -> bool:
    """Whether a data set of a ledger has a charge with a release of a model, or nothing to charge.

    Parameters
    ----------
    ledger : Dataset
    guarantee : Guarantee
        Of the model.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dpadapt.privacy.accounting.events import PureEvent
    >>> one, other = PureEvent("a", 1.0), PureEvent("a", 2.0)
    >>> ledger = SimpleNamespace(events=(one,))
    >>> [charged(ledger, Guarantee((each,), 0.0)) for each in (one, other)]
    [True, False]
    """
    known = list(ledger.events)
    for event in known:  # grows by the branches: a fit with people held out is one of two
        known.extend(each for branch in getattr(event, "branches", ()) for each in branch)
    return not guarantee.events or any(event in known for event in guarantee.events)
