"""The card: what only people know about a release, read from a small TOML file."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Question:
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
    >>> Question("region", "Use", "Region", "whose people").choices
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
    Question("name", _USE, "Name of the product", "as it will be published"),
    Question("description", _USE, "Description", "what the model predicts, for whom"),
    Question("intended_use", _USE, "Intended use", "what it may be used for"),
    Question("not_intended", _USE, "Not intended", "what it must not be used for"),
    Question("region", _USE, "Region", "whose people, and whose law"),
    Question("sector", _USE, "Sector", "one of the registry's", _SECTORS),
    Question("data_owner", _DATA, "Data owner", "who answers for the private table"),
    Question("legal_basis", _DATA, "Legal basis", "on which the private table is used"),
    Question("data_description", _DATA, "Private table", "who is in it, collected when and how"),
    Question("data_version", _DATA, "Version of the data", "extract, date or digest"),
    Question("actors", _TRUST, "Actors", "who sees rows, noise or model, and why they are trusted"),
    Question("access", _TRUST, "Access to the rows", "how the private table is kept and guarded"),
    Question("releases", _PLAN, "Releases", "one, or many over time", ("one", "many")),
    Question("refresh", _PLAN, "Refresh", "when the next one comes, and what it may cost"),
    Question("data_changes", _PLAN, "The data", "static or dynamic", ("static", "dynamic")),
    Question("publication_date", _PLAN, "Publication date", "as in 2026-11-30"),
    Question("preprocessing", _WORK, "Before dpadapt", "what was done to the private table before"),
    Question("tuning", _WORK, "Other fits", "other models or settings tried on the private table"),
    Question("justification", _WHY, "Why this epsilon", "who chose it, and by what"),
    Question("curators", _SIGN, "Published by", "the organisation"),
    Question("prepared_by", _SIGN, "Prepared by", "name and date"),
    Question("reviewed_by", _SIGN, "Reviewed by", "name and date"),
    Question("approved_by", _SIGN, "Approved by", "name and date"),
    Question("sources", _SIGN, "Further reading", "links, if any"),
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
