"""One self-contained HTML file about a fitted model, for whoever signs off its release.

It is made from the fitted model, in which there is no private value, and from what people say. The
same as Markdown is for those who file texts.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpadapt.learning.story import RADII, Story, number, rounded, short
from dpadapt.privacy import Guarantee
from dpadapt.privacy.accounting.composition import pld_epsilon
from dpadapt.privacy.files.whole_files import whole_file

from . import figures, wording
from .card import Card
from .content import (
    cautions,
    counted_classes,
    filing,
    filled,
    found_words,
    heading,
    measured_rows,
    story,
)
from .evidence import audited, charged, check_evidence, together_cost
from .figures import Shown, show_coefficients
from .wording import BLANK, CLASSES, list_releases

if TYPE_CHECKING:
    import pandas as pd

    from dpadapt.audit.result import AuditResult
    from dpadapt.privacy.ledger.records import Dataset

_UNSEEN = re.compile(  # what a terminal obeys, what turns text around, halves of letters
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FALSE_ALARMS = 0.05  # of the test that the text speaks about


@dataclass(frozen=True)
class ReportContext:
    """What a report says beyond the model; public facts only.

    Parameters
    ----------
    title : str
    public_name, private_name : str
        What the two samples are called.
    label : str
        The name of the label.
    unit : str
        The column that says whose row it is, where all rows of a person are protected.
    left_out : sequence of (str, str)
        Columns that the model does not use, and why.
    public_rows : int, optional
        How many there were, for models that do not know it themselves.
    ledger : Dataset, optional
        State of the ledger's data set, from :meth:`dpadapt.privacy.Ledger.dataset`.
    results : DataFrame, optional
        Errors of methods, columns ``setting``, ``method``, ``run``, ``mse``.
    reference : str
        The method in ``results`` that the others are compared with.
    feature_scale : sequence of float
        Standard deviations of the *public* features, to make coefficients comparable.
    audit : AuditResult, optional
        What ``dpadapt audit`` found for the same method, epsilon and delta.
    card : Card, optional
        What only people know; fields that are not filled in are marked as blanks.
    evaluations : sequence of mappings
        Private evaluations of the same model, as plain values: all that were released.
    digests : mapping of str to str
        SHA-256 of the files of the model.
    model : str
        Digest of the model in its folder: an evaluation or an audit of another is refused.
    held_out : bool
        Whether the fit has held people out to be measured; what an evaluation says of itself counts
        only then.

    Examples
    --------
    >>> ReportContext(title="Wages", label="log earnings").label
    'log earnings'
    """

    title: str = "Privacy report of a model"
    public_name: str = "public rows"
    private_name: str = "private rows"
    label: str = ""
    unit: str = ""
    left_out: Sequence[tuple[str, str]] = ()
    public_rows: int | None = None
    ledger: Dataset | None = None
    results: pd.DataFrame | None = None
    reference: str = ""
    feature_scale: Sequence[float] = ()
    audit: AuditResult | None = None
    card: Card | None = None
    evaluations: Sequence[Mapping[str, Any]] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    held_out: bool = False


def write_report(
    model: Any, path: str | os.PathLike[str], *, context: ReportContext | None = None
) -> Path:
    """Write the report of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted, with a guarantee: any private method of this library, a public-only one, or an
        ``AdaptationPipeline``.
    path : path
        The file to write: HTML, or by its ending Markdown (.md) or JSON (.json).
    context : ReportContext, optional

    Returns
    -------
    Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpadapt import DiscrepancyRegressor
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_report(model, pathlib.Path(folder) / "report.html")
    ...     "No private row was used" in file.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(model)
    if not hasattr(model, "guarantee_"):
        raise TypeError(
            f"model: a {type(model).__name__} comes with no guarantee; there is nothing to report."
        )
    file, about = Path(path), context or ReportContext()
    check_evidence(about, getattr(model, "estimator_", model), model.guarantee_)
    if file.suffix.lower() == ".json":
        text = json.dumps(filing(model, about), indent=1, allow_nan=False) + "\n"
    elif file.suffix.lower() == ".md":
        text = as_markdown(filing(model, about))
    else:
        text = _html(model, about)
    with whole_file(file) as draft:
        draft.write_text(_UNSEEN.sub("\ufffd", text), encoding="utf-8")
    return file


def _html(model: Any, context: ReportContext) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dpadapt.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(short=short, rounded=rounded)
    return environment.get_template("template.html").render(**_facts(model, context))


def _facts(model: Any, context: ReportContext) -> dict[str, Any]:
    import dpadapt

    estimator = getattr(model, "estimator_", model)
    guarantee: Guarantee = model.guarantee_
    told = story(estimator, guarantee)
    shown = show_coefficients(
        model, label=context.label, scale=context.feature_scale, features=told.features
    )
    measured = [
        {
            "heading": heading(number, each),
            "found": each,
            "told": found_words(each),
            "cautions": cautions(each),
            "lines": measured_rows(each),
            "classes": counted_classes(each),
            "who": wording.people((each.get("guarantee") or {}).get("relation", "")),
        }
        for number, each in enumerate(context.evaluations, 1)
    ]
    bounds = _bounds(guarantee, told)  # those that only keep numbers finite tell a reader nothing
    events, second = guarantee.events, pld_epsilon(guarantee.events, guarantee.delta)
    whole = together_cost(context.evaluations, guarantee, held_out=context.held_out) or guarantee
    return {
        "context": context,
        "guarantee": guarantee,
        "version": dpadapt.__version__,
        "written": datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC"),
        "method": type(estimator).__name__,
        "told": told,
        "sentences": getattr(estimator, "explain_", ()),
        "public_rows": context.public_rows if told.public_rows is None else told.public_rows,
        "shown": shown,
        "rows": _rows(guarantee),
        "counted": wording.public_counts(guarantee.relation) if events else "private rows",
        "features": estimator.n_features_in_ if estimator is not model else None,
        "relation": wording.relation(guarantee.relation),
        "filed": filing(model, context),
        "classes_told": wording.CLASSES,
        "answers": filled(context.card),
        "kept": context.ledger is not None and charged(context.ledger, guarantee),
        "measured": measured,
        "audited": "" if context.audit is None else audited(context.audit),
        "noise": wording.NOISE[guarantee.noise],
        "releases": list(list_releases(events, told.made, told.parts)),
        "repeated": any(event.mean_runs is not None for event in events),
        "second_opinion": second if math.isfinite(second) else None,
        "bounds": [each for each in bounds if each[2] != RADII["far"]],
        "far": any(origin == RADII["far"] for *_, origin in bounds),
        "strength": wording.strength(guarantee.epsilon) if events else "",
        "false_alarms": _FALSE_ALARMS,
        "detections": float(figures.detection_limit(whole.events, [_FALSE_ALARMS])[0]),
        "results": _results(context),
        "figures": _figures(estimator, guarantee, shown, context),
    }


def _figures(
    estimator: Any, guarantee: Guarantee, shown: Shown | None, context: ReportContext
) -> dict[str, str]:
    from dpadapt.learning.figures import as_data_uri

    drawn = {}
    if shown is not None:
        drawn["coefficients"] = shown.figure
    if guarantee.events:
        rates = np.linspace(0, 1, 201)
        claimed = (guarantee.delta, guarantee.epsilon)
        curve = figures.epsilon_curve(guarantee.events, guarantee.delta)
        drawn["epsilon"] = figures.epsilon_figure(*curve, claimed)
        limit = figures.detection_limit(guarantee.events, rates)
        drawn["detection"] = figures.detection_figure(rates, limit)
        weights = np.asarray(getattr(estimator, "weights_", 0.0))
        if np.ptp(weights) > 0:  # a model that did not adapt has nothing to draw
            drawn["weights"] = figures.weights_figure(weights)
    if context.audit is not None:
        from dpadapt.audit.result import draw_audit

        drawn["audit"] = draw_audit(context.audit)
    if context.results is not None:
        drawn["errors"] = figures.errors_figure(context.results, context.reference)
    return {name: as_data_uri(figure) for name, figure in drawn.items()}


def _rows(guarantee: Guarantee) -> str:
    """Size of the private sample, if it is public."""
    if not guarantee.events:
        return "–"
    size, people = (guarantee.bounds.get(name) for name in ("private rows", "people"))
    if people is not None:
        return f"{number(people)} people"
    return "secret" if size is None else number(size)


def _bounds(guarantee: Guarantee, told: Story) -> list[tuple[str, str, str]]:
    """Name, value and origin of every bound; those that say the same in one line."""
    named: dict[tuple[str, str], list[str]] = {}
    for name, value in guarantee.bounds.items():
        origin = "the size of the private sample, which counts as public"
        if name.endswith(" with a label, about"):
            origin = "a noisy count, which is among the releases"
        elif name == "rows a person":
            origin = RADII["given"]
        elif name.startswith("radius"):
            origin = told.radii.get(name, told.radius)
        named.setdefault((number(value), origin), []).append(name)
    return [(", ".join(names), *facts) for facts, names in named.items()]


def _results(context: ReportContext) -> list[dict[str, Any]]:
    """Mean and spread of the error of each method in each setting."""
    if context.results is None:
        return []
    grouped = context.results.groupby(["setting", "method"], sort=False)["mse"]
    table = grouped.agg(["mean", "std", "count"]).reset_index()
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


_SIGNS = str.maketrans({each: f"\\{each}" for each in "\\`*_{}[]<>#|"})


def as_markdown(filed: dict[str, Any]) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    filed : dict
        From :func:`dpadapt.report.content.filing`.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> from dpadapt.report import ReportContext
    >>> from dpadapt.report.content import filing
    >>> model = DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> print(as_markdown(filing(model, ReportContext())).splitlines()[0])
    # Privacy report of a model
    """
    return "\n".join(_lines(filed)) + "\n"


def _lines(filed: dict[str, Any]) -> Iterator[str]:
    guarantee = filed["guarantee"]
    yield f"# {_safe(filed['title'])}"
    yield f"\n{filed['method']}, dpadapt {filed['dpadapt']}."
    yield f"\n**{guarantee['sentence']}**"
    if filed["together"]:
        yield f"\n{filed['together']}"
    if filed["result"]:
        yield f"\nResult: {_safe(filed['result'])}"
    yield f"\nFor people: {filed['for_people']}"
    yield "\n## Guarantee\n"
    second = filed["second_opinion_epsilon"]
    yield from _table(
        ("fact", "value"),
        [
            ("epsilon", f"{guarantee['epsilon']:.6g}"),
            ("epsilon, second opinion", "no statement" if second is None else f"{second:.6g}"),
            ("delta", f"{guarantee['delta']:g}"),
            ("unit", filed["unit"]),
            ("noise", guarantee["noise"]),
            ("not protected", "; ".join(filed["unprotected"]) or "nothing private was used"),
        ],
    )
    yield f"\n{filed['relation']} {filed['lasts']}"
    yield "\n## Columns\n"
    yield from _table(("what became of them", "columns"), list(_columns(filed["columns"])))
    if filed["releases"]:
        yield "\n## What was released\n"
        heads = ("what", "mechanism", "sensitivity", "noise", "times")
        yield from _table(heads, [[each[head] for head in heads] for each in filed["releases"]])
    yield f"\n{filed['before_private_rows']}"
    for section, rows in filled(Card(**filed["card"])).items():
        yield f"\n## {section}\n"
        yield from _table(
            ("field", "answer"),
            [(title, answer or f"{BLANK} ({asks})") for title, answer, asks in rows],
        )
    yield from _evidence(filed)
    yield "\n## Digests\n"
    yield from _table(("of", "SHA-256"), list(filed["digests"].items()))


def _columns(columns: dict[str, Any]) -> Iterator[tuple[str, str]]:
    used = ", ".join(columns["used"]) or "they have no names"
    yield f"used ({columns['count']})", used
    for why, names in columns["left_out"].items():
        yield f"left out: {why}", ", ".join(names)
    if columns["name_people"]:
        yield "used, and may name people (by their names)", ", ".join(columns["name_people"])


def _classes(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## Which classes it finds\n"
    yield f"{CLASSES} These are {found['rows']:,} {found['on']}."
    yield from (f"\n**{_safe(each)}**" for each in found["told"])
    yield ""
    heads = ("class", "rows", "predicted", "found")
    yield from _table(heads, [[each[head] for head in heads] for each in found["classes"]])
    for name, lines in found["costs"].items():
        yield f"\nFinding {_safe(name)}, by the options of `dpadapt predict`:\n"
        heads = ("rule", "found", "alarms", "wrong")
        yield from _table(
            ("option", "found", "false alarms", "wrong in all"),
            [[line[head] for head in heads] for line in lines],
        )


def _evidence(filed: dict[str, Any]) -> Iterator[str]:
    if filed["classes"] is not None:
        yield from _classes(filed["classes"])
    yield "\n## Private evaluation\n"
    if not filed["evaluations"]:
        yield f"{BLANK} (none was given to this report)"
    for place, evaluation in enumerate(filed["evaluations"], 1):
        yield f"\n### {_safe(heading(place, evaluation))}"
        yield f"\n{_safe(found_words(evaluation))}\n"
        heads = ("measure", "model", "baseline", "difference", "the model is")
        yield from _table(heads, measured_rows(evaluation))
        if counted := counted_classes(evaluation):
            yield "\nHow many of each class, with noise:\n"
            yield from _table(("class", "with this label"), counted)
        yield from (f"\n{_safe(each)}" for each in cautions(evaluation))
    yield "\n## Adversarial test\n"
    audit = filed["audit"]
    yield (
        f"{BLANK} (none was given to this report)" if audit is None else _safe(_audit_words(audit))
    )
    yield "\n## Ledger\n"
    if filed["ledger"] is None:
        yield f"{BLANK} (no ledger was used for this report)"
    else:
        yield from _table(("fact", "value"), list(filed["ledger"].items()))


def _audit_words(audit: dict[str, Any]) -> str:
    known = ("estimator", "claimed", "found", "largest", "confidence", "method", "rows")
    facts = "; ".join(f"{name}: {audit[name]}" for name in known if name in audit)
    return f"{audit['sentence']} {facts}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(_safe(cell) for cell in row)} |"


def _safe(text: Any) -> str:
    """Text on one line, in which nothing is markup."""
    return " ".join(str(text).split()).translate(_SIGNS)
