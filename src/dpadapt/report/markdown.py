"""The report as Markdown, from its plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .card import Card
from .filing import cautions, filled, heading, measured_rows
from .wording import BLANK, CLASSES

_SIGNS = str.maketrans({each: f"\\{each}" for each in "\\`*_{}[]<>#|"})


def as_markdown(filed: dict[str, Any]) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    filed : dict
        From :func:`dpadapt.report.filing.filing`.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> from dpadapt.report import ReportContext
    >>> from dpadapt.report.filing import filing
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
    for number, evaluation in enumerate(filed["evaluations"], 1):
        yield f"\n### {_safe(heading(number, evaluation))}"
        yield f"\n{_safe(str(evaluation.get('sentence', '')))}\n"
        heads = ("measure", "model", "baseline", "difference", "the model is")
        yield from _table(heads, measured_rows(evaluation))
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
