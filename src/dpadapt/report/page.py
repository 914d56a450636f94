"""One self-contained HTML file about a fitted model, for whoever signs off its release.

It is made from the fitted model alone, in which there is no private value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dpadapt.privacy import Guarantee, pld_epsilon
from dpadapt.privacy.events import Event, ParallelEvent, RandomStoppingEvent

from . import curves, wording

if TYPE_CHECKING:
    import pandas as pd

    from dpadapt.privacy.ledger import Dataset

__all__ = ["ReportContext", "write_report"]

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
    ledger : Dataset, optional
        State of the ledger's data set, from :meth:`dpadapt.privacy.Ledger.dataset`.
    results : DataFrame, optional
        Errors of methods, columns ``setting``, ``method``, ``run``, ``mse``.
    reference : str
        The method in ``results`` that the others are compared with.
    feature_scale : sequence of float
        Standard deviations of the *public* features, to make coefficients comparable.

    Examples
    --------
    >>> ReportContext(title="Wages", label="log earnings").label
    'log earnings'
    """

    title: str = "Privacy report of a model"
    public_name: str = "public rows"
    private_name: str = "private rows"
    label: str = ""
    ledger: Dataset | None = None
    results: pd.DataFrame | None = None
    reference: str = ""
    feature_scale: Sequence[float] = ()


class Release(NamedTuple):
    """One line of the table of releases."""

    what: str
    mechanism: str
    sensitivity: str
    noise: str
    times: int


def write_report(
    model: Any, path: str | os.PathLike[str], *, context: ReportContext | None = None
) -> Path:
    """Write the report of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted, of this library, or an ``AdaptationPipeline``.
    path : path
        The HTML file to write.
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
    from jinja2 import Environment, PackageLoader, StrictUndefined

    check_is_fitted(model)
    environment = Environment(
        loader=PackageLoader("dpadapt.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = wording.short
    html = environment.get_template("template.html").render(
        **_facts(model, context or ReportContext())
    )
    file = Path(path)
    file.write_text(html, encoding="utf-8")
    return file


def _facts(model: Any, context: ReportContext) -> dict[str, Any]:
    import dpadapt

    estimator = getattr(model, "estimator_", model)
    guarantee: Guarantee = model.guarantee_
    weights = np.asarray(estimator.weights_)
    return {
        "context": context,
        "guarantee": guarantee,
        "version": dpadapt.__version__,
        "written": datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC"),
        "method": type(estimator).__name__,
        "adapted": estimator.adapted_,
        "uniform": bool(np.ptp(weights) == 0),
        "remaining": _ratio(estimator.discrepancy_, estimator.uniform_discrepancy_),
        "public_rows": len(weights),
        "columns": len(getattr(model, "feature_names_in_", ())) or model.n_features_in_,
        "features": len(estimator.coef_),
        "effective": 1 / float(np.sum(weights**2)),
        "relation": wording.RELATIONS[guarantee.relation],
        "noise": wording.NOISE[guarantee.noise],
        "releases": list(_releases(guarantee.events)),
        "second_opinion": pld_epsilon(guarantee.events, guarantee.delta),
        "bounds": _bounds(guarantee, estimator.radius),
        "strength": wording.strength(guarantee.epsilon) if guarantee.events else "",
        "false_alarms": _FALSE_ALARMS,
        "detections": float(curves.detection_limit(guarantee.events, [_FALSE_ALARMS])[0]),
        "coefficients": list(zip(_names(model), estimator.coef_, strict=True)),
        "intercept": estimator.intercept_,
        "results": _results(context),
        "figures": _figures(model, estimator, weights, context),
    }


def _figures(
    model: Any, estimator: Any, weights: NDArray[np.float64], context: ReportContext
) -> dict[str, str]:
    from . import _figures as figures

    scale = np.asarray(context.feature_scale, dtype=np.float64)
    scaled = len(scale) == len(estimator.coef_)
    coefficients = estimator.coef_ * scale if scaled else estimator.coef_
    drawn = {"coefficients": figures.coefficients_figure(_names(model), coefficients, scaled)}
    guarantee: Guarantee = model.guarantee_
    if guarantee.events:
        rates = np.linspace(0, 1, 201)
        claimed = (guarantee.delta, guarantee.epsilon)
        curve = curves.epsilon_curve(guarantee.events, guarantee.delta)
        drawn["epsilon"] = figures.epsilon_figure(*curve, claimed)
        limit = curves.detection_limit(guarantee.events, rates)
        drawn["detection"] = figures.detection_figure(rates, limit)
        drawn["weights"] = figures.weights_figure(weights)
    if context.results is not None:
        drawn["errors"] = figures.errors_figure(context.results, context.reference)
    return {name: figures.as_data_uri(figure) for name, figure in drawn.items()}


def _releases(events: Sequence[Event]) -> Iterator[Release]:
    """One line for each event; those within parallel or repeated ones are named after them."""
    for event in events:
        facts = event.to_dict()
        yield Release(
            what=event.label,
            mechanism=wording.MECHANISMS.get(event.kind, event.kind),
            sensitivity=wording.number(facts.get("sensitivity", facts.get("clip"))),
            noise=wording.number(facts.get("scale")),
            times=int(facts.get("count", 1)),
        )
        inner: tuple[Event, ...] = ()
        if isinstance(event, ParallelEvent):
            inner = tuple(each for branch in event.branches for each in branch)
        elif isinstance(event, RandomStoppingEvent):
            inner = event.base
        for release in _releases(inner):
            yield release._replace(what=f"{event.label}: {release.what}")


def _bounds(guarantee: Guarantee, radius: float | None) -> list[tuple[str, str, str]]:
    """Name, value and origin of every bound."""
    given = "set by whoever fitted the model"
    derived = "the longest public row, after scaling by public means and standard deviations"
    return [
        (
            name,
            wording.number(value),
            (given if radius is not None else derived)
            if name.startswith("radius")
            else "the size of the private sample, which counts as public",
        )
        for name, value in guarantee.bounds.items()
    ]


def _names(model: Any) -> list[str]:
    """Names of the features, as far as they are known."""
    try:
        names = model.transformer_.get_feature_names_out()
    except (AttributeError, ValueError):
        names = getattr(model, "feature_names_in_", None)
    estimator = getattr(model, "estimator_", model)
    if names is None or len(names) != len(estimator.coef_):
        return [f"feature {i + 1}" for i in range(len(estimator.coef_))]
    return [str(name) for name in names]


def _results(context: ReportContext) -> list[dict[str, Any]]:
    """Mean and spread of the error of each method in each setting."""
    if context.results is None:
        return []
    grouped = context.results.groupby(["setting", "method"], sort=False)["mse"]
    table = grouped.agg(["mean", "std", "count"]).reset_index()
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _ratio(part: float | None, whole: float | None) -> float | None:
    """Share that remains; None where nothing was released to measure it on."""
    return part / whole if part is not None and whole else None
