"""A record for the public registry of differential-privacy deployments, in its three tiers."""

from __future__ import annotations

import re
from typing import Any

from .card import Card

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
        From :func:`dpadapt.report.filing.filing`, with a card.

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
