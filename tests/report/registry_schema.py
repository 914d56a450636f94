"""Fields of a record of the registry of deployments, tier by tier, and a check of records."""

from datetime import date

TEXT, TEXTS, NUMBER, DAY = "text", "texts", "number", "day"
STATUSES = {
    *("Converted", "Draft", "Pending", "Changes Required", "Approved"),
    *("Approved (Update Requested)", "Approved (Pending)"),
}
PRODUCTS = {
    *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data"),
    *("Interactive API", "SQL queries"),
}
SECTORS = {"Technology", "Healthcare", "Education", "Government", "Energy", "Finance"}
VARIANTS = {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"}
MODELS = {"Local", "Central", "Shuffle", "Federated", "Varies"}

DEPLOYMENT = {
    "basic": {
        "name": TEXT,
        "data_curators": TEXTS,
        "intended_use": TEXT,
        "data_product_type": PRODUCTS,
        "data_product_region": TEXT,
        "description": TEXT,
        "publication_date": DAY,
        "data_product_sector": SECTORS,
    },
    "dp_variant": {"variant_name": VARIANTS, "data_domain": TEXT, "unprotected_quantities": TEXT},
    "privacy_loss": {
        "privacy_unit": TEXT,
        "privacy_unit_details": TEXT,
        "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
        "privacy_parameters_details": TEXT,
    },
    "deployment_model": {
        "model_name": MODELS,
        "model_name_details": TEXT,
        "actors": TEXT,
        "release_type": {"One release", "Many releases"},
        "release_type_details": TEXT,
        "data_source_type": {"Static", "Dynamic"},
        "data_source_type_details": TEXT,
        "access_type": {"Interactive", "Non-interactive"},
        "access_type_details": TEXT,
    },
    "accounting": {"post_processing": TEXT, "composition": TEXT},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": TEXT,
        "mechanisms": TEXT,
        "justification": TEXT,
    },
    "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": TEXTS},
}
RECORD = {"url_slug": TEXT, "status": STATUSES, "tier": {1, 2, 3}, "deployment": DEPLOYMENT}
REQUIRED = {
    "": set(RECORD),
    ".deployment": {"basic"},
    ".deployment.basic": set(DEPLOYMENT["basic"]) - {"data_product_sector"},
    ".deployment.administrative": {"registry_authors"},
}


def check_record(value, kind=RECORD, place=""):
    """Return what is wrong with a record, in words; nothing if it is valid."""
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return [f"{place} is no mapping"]
        wrong = [f"{place}.{name} is not known" for name in set(value) - set(kind)]
        wrong += [f"{place}.{name} is missing" for name in REQUIRED.get(place, set()) - set(value)]
        for name in set(value) & set(kind):
            wrong += check_record(value[name], kind[name], f"{place}.{name}")
        return wrong
    if isinstance(kind, set):
        return [] if value in kind else [f"{place} is none of the choices"]
    return [] if _fits(value, kind) else [f"{place} is no {kind}"]


def _fits(value, kind):
    if kind == NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == TEXTS:
        return isinstance(value, list) and bool(value) and all(isinstance(x, str) for x in value)
    if kind == DAY:
        try:
            return isinstance(value, str) and bool(date.fromisoformat(value))
        except ValueError:
            return False
    return isinstance(value, str)
