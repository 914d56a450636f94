"""The questions that a person answers about a model, and the record for a public registry.

The registry is that of differential-privacy deployments, in its three tiers.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CardQuestion:
    """One field of the card.

    Parameters
    ----------
    name : str
        Its key in the file.
    section, title, asks : str
        Where it stands in the report, what it is called there, and what to write.
    choices : tuple of str
        The only answers, where there are few.

    Examples
    --------
    >>> CardQuestion("region", "Use", "Region", "whose people").choices
    ()
    """

    name: str
    section: str
    title: str
    asks: str
    choices: tuple[str, ...] = ()


_USE, _DATA, _TRUST, _PLAN = "Use", "Data", "Actors and trust", "Release plan"
_WORK, _WHY, _SIGN = "Preprocessing and tuning", "Choice of epsilon", "Sign-off"
_SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

QUESTIONS = (
    CardQuestion("name", _USE, "Name of the product", "as it will be published"),
    CardQuestion("description", _USE, "Description", "what the model predicts, for whom"),
    CardQuestion("intended_use", _USE, "Intended use", "what it may be used for"),
    CardQuestion("not_intended", _USE, "Not intended", "what it must not be used for"),
    CardQuestion("region", _USE, "Region", "whose people, and whose law"),
    CardQuestion("sector", _USE, "Sector", "one of the registry's", _SECTORS),
    CardQuestion("data_owner", _DATA, "Data owner", "who answers for the private table"),
    CardQuestion("legal_basis", _DATA, "Legal basis", "on which the private table is used"),
    CardQuestion(
        "data_description", _DATA, "Private table", "who is in it, collected when and how"
    ),
    CardQuestion("data_version", _DATA, "Version of the data", "extract, date or digest"),
    CardQuestion(
        "actors", _TRUST, "Actors", "who sees rows, noise or model, and why they are trusted"
    ),
    CardQuestion(
        "access", _TRUST, "Access to the rows", "how the private table is kept and guarded"
    ),
    CardQuestion("releases", _PLAN, "Releases", "one, or many over time", ("one", "many")),
    CardQuestion("refresh", _PLAN, "Refresh", "when the next one comes, and what it may cost"),
    CardQuestion("data_changes", _PLAN, "The data", "static or dynamic", ("static", "dynamic")),
    CardQuestion("publication_date", _PLAN, "Publication date", "as in 2026-11-30"),
    CardQuestion(
        "preprocessing", _WORK, "Before dpadapt", "what was done to the private table before"
    ),
    CardQuestion(
        "tuning", _WORK, "Other fits", "other models or settings tried on the private table"
    ),
    CardQuestion("justification", _WHY, "Why this epsilon", "who chose it, and by what"),
    CardQuestion("curators", _SIGN, "Published by", "the organisation"),
    CardQuestion("prepared_by", _SIGN, "Prepared by", "name and date"),
    CardQuestion("reviewed_by", _SIGN, "Reviewed by", "name and date"),
    CardQuestion("approved_by", _SIGN, "Approved by", "name and date"),
    CardQuestion("sources", _SIGN, "Further reading", "links, if any"),
)


@dataclass(frozen=True)
class Card:
    """Answers of people; an empty one is a blank that the report marks.

    Parameters
    ----------
    name, description, intended_use, not_intended, region, sector, data_owner, legal_basis : str
    data_description, data_version, actors, access, releases, refresh, data_changes : str
    publication_date, preprocessing, tuning, justification : str
    curators, prepared_by, reviewed_by, approved_by, sources : str
        What each asks is in :data:`QUESTIONS`.

    Examples
    --------
    >>> Card(data_owner="Registry of wages").blanks[:2]
    ('name', 'description')
    """

    name: str = ""
    description: str = ""
    intended_use: str = ""
    not_intended: str = ""
    region: str = ""
    sector: str = ""
    data_owner: str = ""
    legal_basis: str = ""
    data_description: str = ""
    data_version: str = ""
    actors: str = ""
    access: str = ""
    releases: str = ""
    refresh: str = ""
    data_changes: str = ""
    publication_date: str = ""
    preprocessing: str = ""
    tuning: str = ""
    justification: str = ""
    curators: str = ""
    prepared_by: str = ""
    reviewed_by: str = ""
    approved_by: str = ""
    sources: str = ""

    def __post_init__(self) -> None:
        for question in QUESTIONS:
            given = getattr(self, question.name)
            if question.choices and given and given not in question.choices:
                listed = ", ".join(question.choices)
                raise ValueError(f"card: {question.name} must be one of {listed}; got {given!r}.")
        if self.publication_date:
            try:
                date.fromisoformat(self.publication_date)
            except ValueError:
                raise ValueError(
                    "card: publication_date must be a date as in 2026-11-30; got "
                    f"{self.publication_date!r}."
                ) from None

    @property
    def blanks(self) -> tuple[str, ...]:
        """Fields that nobody has filled in."""
        return tuple(each.name for each in fields(self) if not getattr(self, each.name))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Card:
        """Read a card from a TOML file; refuses fields that there are not.

        Parameters
        ----------
        path : path
        """
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"card: {path} is no TOML file: {error}.") from None
        known = [question.name for question in QUESTIONS]
        for name, value in data.items():
            if name not in known:
                raise ValueError(
                    f"card: {path} has a field {name!r} that is none; there are: "
                    f"{', '.join(known)}."
                )
            if not isinstance(value, str | date | list):
                raise ValueError(f"card: {name} must be a text; got {value!r}.")
        return cls(**{name: _text(value) for name, value in data.items()})


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value).strip()


def blank_card() -> str:
    """Text of a card to fill in.

    Examples
    --------
    >>> print(blank_card().splitlines()[2])
    name = ""  # as it will be published
    """
    lines, section = ["# What only people know about this release."], ""
    for question in QUESTIONS:
        if question.section != section:
            section = question.section
            lines.append(f"# {section}" if len(lines) == 1 else f"\n# {section}")
        asks = question.asks + (f": {', '.join(question.choices)}" if question.choices else "")
        lines.append(f'{question.name} = ""  # {asks}')
    return "\n".join(lines) + "\n"


_NEEDED = ("name", "description", "intended_use", "region", "publication_date", "curators")
_THIRD = ("data_description", "actors", "refresh", "preprocessing", "tuning", "justification")
_INTERACTIVE = {"InteractivePredictor"}
_WITH_AGENTS = {"HybridTilt", "SubsampleTestReweigh"}


def registry_record(filed: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a report: plain values, which JSON and so YAML can hold.

    The tier is 3 where the card answers everything that it asks for, 2 otherwise.

    Parameters
    ----------
    filed : dict
        From :func:`dpadapt.report.content.filing`, with a card.

    Examples
    --------
    >>> registry_record({"card": {}})
    Traceback (most recent call last):
    ValueError: card: a record needs name, description, intended_use, region, publication_date, \
curators, prepared_by; fill them in.
    """
    card = Card(**filed["card"])
    missing = [name for name in (*_NEEDED, "prepared_by") if not getattr(card, name)]
    if missing:
        raise ValueError(f"card: a record needs {', '.join(missing)}; fill them in.")
    whole = all(getattr(card, name) for name in _THIRD)
    parts = {
        "basic": _basic(card),
        "dp_variant": _variant(filed, card),
        "privacy_loss": _loss(filed),
        "deployment_model": _deployment(filed, card),
        "accounting": _accounting(),
        "implementation": _implementation(filed, card),
        "administrative": {
            "registry_authors": [card.prepared_by],
            "notes": f"Written by dpadapt {filed['dpadapt']}.",
            "sources": card.sources,
        },
    }
    deployment = {name: _without_blanks(part) for name, part in parts.items()}
    slug = re.sub(r"[^a-z0-9]+", "-", card.name.lower()).strip("-") or "model"
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3 if whole else 2,
        "deployment": deployment,
    }


def _basic(card: Card) -> dict[str, Any]:
    return {
        "name": card.name,
        "data_curators": [card.curators],
        "intended_use": card.intended_use,
        "data_product_type": "Machine learning model",
        "data_product_region": card.region,
        "description": card.description,
        "publication_date": card.publication_date,
        "data_product_sector": card.sector,
    }


def _variant(filed: dict[str, Any], card: Card) -> dict[str, Any]:
    return {
        "variant_name": "Approximate DP" if filed["guarantee"]["delta"] > 0 else "Pure DP",
        "data_domain": card.data_description,
        "unprotected_quantities": "; ".join(filed["unprotected"]),
    }


def _loss(filed: dict[str, Any]) -> dict[str, Any]:
    guarantee = filed["guarantee"]
    return {
        "privacy_unit": filed["unit"],
        "privacy_unit_details": filed["relation"],
        "privacy_parameters": {"epsilon": guarantee["epsilon"], "delta": guarantee["delta"]},
        "privacy_parameters_details": guarantee["sentence"],
    }


def _deployment(filed: dict[str, Any], card: Card) -> dict[str, Any]:
    interactive = filed["method"] in _INTERACTIVE
    return {
        "model_name": "Varies" if filed["method"] in _WITH_AGENTS else "Central",
        "actors": card.actors,
        "release_type": {"one": "One release", "many": "Many releases"}.get(card.releases, ""),
        "release_type_details": " ".join(filter(None, (card.refresh, filed["lasts"]))),
        "data_source_type": card.data_changes.capitalize(),
        "access_type": "Interactive" if interactive else "Non-interactive",
    }


def _accounting() -> dict[str, Any]:
    return {
        "post_processing": "The model is computed from the noisy releases and from public rows.",
        "composition": "All releases about the private rows are composed: Gaussian ones exactly, "
        "others by tight upper bounds. A second accountant recomputes the total.",
    }


def _implementation(filed: dict[str, Any], card: Card) -> dict[str, Any]:
    listed = "; ".join(
        f"{each['what']}: {each['mechanism']}, sensitivity {each['sensitivity']}, noise "
        f"{each['noise']}, {each['times']} times"
        for each in filed["releases"]
    )
    return {
        "preprocessing_and_hyperparameter_tuning": " ".join(
            filter(None, (filed["before_private_rows"], card.preprocessing, card.tuning))
        ),
        "mechanisms": f"dpadapt {filed['dpadapt']}, {filed['method']}. {listed}. Noise: "
        f"{filed['guarantee']['noise']}. {card.access}".strip(),
        "justification": card.justification,
    }


def _without_blanks(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if value not in ("", [], None)}
