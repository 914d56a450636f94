"""``dpadapt report``: the privacy report of a model folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Trusted, require_ledger_with_dataset
from .outputs import refuse_out, write_whole
from .screens import plain_errors, say, say_note
from .tables import require_file

if TYPE_CHECKING:
    from dpadapt.report import ReportContext

_ENDINGS = (".html", ".md", ".json")


@plain_errors()
def report_command(
    model: Annotated[Path | None, typer.Option("--model", help="Model folder, of fit.")] = None,
    out: Annotated[
        Path, typer.Option(help="File to write; its ending says how: .html, .md or .json.")
    ] = Path("report.html"),
    card: Annotated[
        Path | None, typer.Option(help="What only people know: a TOML file, see --new-card.")
    ] = None,
    new_card: Annotated[
        Path | None, typer.Option(help="Write a card to fill in to this file, and stop.")
    ] = None,
    evaluation: Annotated[
        list[Path] | None,
        typer.Option(
            help="Also show this JSON file, of dpadapt evaluate; may be repeated. That of fit "
            "--holdout is always shown."
        ),
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option(help="Also write a record for the registry of deployments (YAML)."),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger to show the state of.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Data set of that ledger.")] = None,
    trust: Trusted = None,
    audit: Annotated[
        Path | None, typer.Option(help="Show this audit.json, of dpadapt audit.")
    ] = None,
) -> None:
    """Write the privacy report of a model: one file, for whoever signs off its release.

    [bold]Examples[/]

      dpadapt report --new-card card.toml

      dpadapt report --model model/ --card card.toml --out report.html

      dpadapt report --model model/ --ledger budget.db --dataset patients --audit audit/audit.json

      dpadapt report --model model/ --card card.toml --out report.json --registry record.yaml
    """
    from dpadapt.report import blank_card

    if new_card is not None:
        if new_card.exists():
            raise typer.BadParameter(f"--new-card {new_card} exists already; choose another file.")
        write_whole(new_card, blank_card())
        say("wrote", f"{new_card}: fill it in, then dpadapt report --card {new_card}")
        return
    if model is None:
        raise typer.BadParameter("--model is needed: the folder that fit wrote.")
    require_ledger_with_dataset(ledger, dataset)
    files = tuple(evaluation or ())
    refuse_out(out, card, *files, audit, registry, model=model, ledger=ledger)
    if registry is not None:
        read = (card, *files, audit)
        refuse_out(registry, *read, model=model, ledger=ledger, option="--registry")
    if out.suffix.lower() not in _ENDINGS:
        raise typer.BadParameter(f"--out must end in {', '.join(_ENDINGS)}; got {out}.")
    _write(model, out, registry, _Given(card, files, audit, ledger, dataset), trust)


@dataclass(frozen=True)
class _Given:
    """Files that a report is filled from, beside the model."""

    card: Path | None
    evaluations: tuple[Path, ...]
    audit: Path | None
    ledger: str | None
    dataset: str | None

    def context(self, model: Path) -> ReportContext:
        from dpadapt.modelfolder.record import SEALED, read_record
        from dpadapt.privacy import Ledger
        from dpadapt.report import Card, ReportContext

        record, sealed, digest = read_record(model)
        digests = {name: each for name, each in sealed.items() if name in SEALED}
        whole = hashlib.sha256((model / "guarantee.json").read_bytes()).hexdigest()
        told = record.report_arguments  # what the first report said
        released = [(each, model) for each in told.pop("evaluations", ())]
        released += [(_json(path), path) for path in self.evaluations]
        shown: list[dict[str, Any]] = []
        for evaluation in (_evaluation(*each) for each in released):
            if evaluation not in shown:  # the file of fit --holdout, once more
                shown.append(evaluation)
        tested = None
        if self.audit is not None:
            from dpadapt.audit.result import AuditResult

            require_file(self.audit)
            tested = AuditResult.load(self.audit)
        if self.card is not None:
            require_file(self.card)
        return ReportContext(
            ledger=None if self.ledger is None else Ledger(self.ledger).dataset(str(self.dataset)),
            audit=tested,
            card=None if self.card is None else Card.load(self.card),
            digests={**digests, "guarantee.json": whole},
            model=digest,
            evaluations=shown,
            **told,
        )


def _write(
    model: Path, out: Path, registry: Path | None, given: _Given, trust: list[str] | None
) -> None:
    from dpadapt.modelfolder import load_model
    from dpadapt.report import filing, registry_record, write_report
    from dpadapt.report.evidence import charged

    fitted = load_model(model, trusted=trust or ())
    context = given.context(model)
    record = None if registry is None else registry_record(filing(fitted, context))
    write_report(fitted, out, context=context)
    say("guarantee", fitted.guarantee_.sentence)
    if context.ledger is not None and not charged(context.ledger, fitted.guarantee_):
        say_note(
            f"no charge of {context.ledger.name} has the releases of this model: was its fit "
            "charged to another data set, or to none? The report says so."
        )
    errors = getattr(getattr(fitted, "estimator_", fitted), "class_errors_", None)
    for sentence in () if errors is None else errors.sentences():
        say("rare class", f"{sentence} The report has what finding more costs.", style="yellow")
    blanks = context.card.blanks if context.card else ()
    if context.card is None:
        say_note("no card was given: what only people know is left blank (--new-card).")
    elif blanks:
        say_note(f"left blank on the card: {', '.join(blanks)}")
    if registry is not None:
        write_whole(registry, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    say("wrote", f"{out}{'' if registry is None else f' and {registry}'}")


def _evaluation(data: Any, path: Path) -> dict[str, Any]:
    """Plain values of an evaluation whose guarantee adds up; anything else is refused."""
    from dpadapt.evaluation import Evaluation

    try:
        return Evaluation.from_dict(data).to_dict()
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise ValueError(
            f"evaluation: {path} holds none that dpadapt evaluate has written; give the file that "
            "its --out names."
        ) from None


def _json(path: Path) -> dict[str, Any]:
    """Read a small file of plain values."""
    require_file(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is no JSON file that dpadapt wrote.")
    return found
