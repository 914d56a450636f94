"""What an estimator tells a report about itself, as values; and how numbers are written there."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_MOST_CLASSES = 20  # that are named

RADII = {
    "given": "set by whoever fitted the model",
    "longest": "the longest public row, after scaling by public means and standard deviations",
    "quantile": "longer than 99 % of the public rows, after scaling by public means and standard "
    "deviations",
    "far": "a million times as long as public rows: it only keeps numbers finite. What one row "
    "can do is bounded in the release itself, see its sensitivity",
    "direction": "by construction: rows enter as directions from a public centre, of length 1",
}
"""Where bounds on private rows come from."""


class Fact(NamedTuple):
    """One line of the table of how the model came about.

    Examples
    --------
    >>> Fact("steps", "100", "noisy gradients").value
    '100'
    """

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Story:
    """How a model came about, in plain words.

    Parameters
    ----------
    summary : str
    facts : tuple of Fact
    warning : str
        Shown in a box in the place of the summary; ``title`` is its first words.
    title : str
    assumption : str
    reads_labels : bool
        Of the private rows.
    public_rows : int or None
        None where the model does not know.
    public_use : str
        What public rows were used for.
    radius : str
        Where bounds on private rows came from.
    radii : mapping of str to str
        The same by name, for those that came from elsewhere.
    features : str
        What the coefficients are for.
    made : mapping of str to int
        Releases that an individual filter made more often than they were charged for.
    parts : mapping of str to tuple of (str, float, int)
        What one charge was spent on, by its label: name, share, and how many noisy values.
    result : str
        What became of the public model, in a sentence, from released values.

    Examples
    --------
    >>> Story("The model of the public rows.").reads_labels
    True
    """

    summary: str
    facts: tuple[Fact, ...] = ()
    warning: str = ""
    title: str = ""
    assumption: str = (
        "Private labels are read, through the releases above alone: where they depend on the "
        "columns in another way than public ones do, the model can learn it."
    )
    reads_labels: bool = True
    public_rows: int | None = None
    public_use: str = "everything, without protection: fitting, scaling, bounds"
    radius: str = RADII["far"]
    radii: Mapping[str, str] = field(default_factory=dict)
    features: str = "feature"
    made: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, tuple[tuple[str, float, int], ...]] = field(default_factory=dict)
    result: str = ""


def plain_story(estimator: Any, guarantee: Any) -> Story:
    """Tell what the first line of the docstring does; private labels are read.

    Examples
    --------
    >>> from dpadapt.baselines import PublicOnlyRegressor
    >>> model = PublicOnlyRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> plain_story(model, model.guarantee_).assumption
    ''
    """
    first = (inspect.getdoc(type(estimator)) or "").partition("\n")[0]
    if not guarantee.events:
        return Story(f"{first} Fitted on public rows alone.", class_facts(estimator), assumption="")
    return Story(first, class_facts(estimator))


def label_count_sentence(guarantee: Any) -> str:
    """What became of private rows without a label, from public facts and from what was released.

    Examples
    --------
    >>> from dpadapt.privacy import Guarantee
    >>> rows = {"private rows": 8000, "rows with a label, about": 4000}
    >>> label_count_sentence(Guarantee(bounds=rows))
    'About 50% of the private rows have a label, by a noisy count; the others count in nothing.'
    >>> label_count_sentence(Guarantee(bounds={"people": 100, "people with a label, about": 80}))
    'About 80% of the people have a row with a label, by a noisy count; others count in nothing.'
    """
    bounds = guarantee.bounds
    if "people with a label, about" in bounds:
        share = bounds["people with a label, about"] / max(bounds.get("people", 0.0), 1.0)
        if share < 1:
            return (
                f"About {share:.0%} of the people have a row with a label, by a noisy count; "
                "others count in nothing."
            )
    about, rows = bounds.get("rows with a label, about"), bounds.get("private rows", 0)
    if about is None and "people with a label, about" not in bounds:
        return "A private row without a label counts in nothing."
    if about is None or about >= rows:
        return (
            "A private row without a label counts in nothing; a noisy count shows no sign of any."
        )
    return (
        f"About {about / rows:.0%} of the private rows have a label, by a noisy count; the others "
        "count in nothing."
    )


def class_facts(estimator: Any) -> tuple[Fact, ...]:
    """The line on the classes, for a classifier.

    Examples
    --------
    >>> class_facts(object())
    ()
    """
    if not hasattr(estimator, "classes_"):
        return ()
    names = [str(each) for each in estimator.classes_]
    told = ", ".join(names[:_MOST_CLASSES]) + (", ..." if len(names) > _MOST_CLASSES else "")
    return (Fact("classes", number(len(names)), told),)


def certificate_facts(estimator: Any) -> tuple[Fact, ...]:
    """The line on a bound on the error, where one was asked for.

    Examples
    --------
    >>> certificate_facts(object())
    ()
    """
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        return ()
    first = str(certificate).partition("\n")[0]
    return (Fact("bound on the error", number(certificate.bound), first),)


def number(value: Any) -> str:
    """A number as people write it; a dash for none.

    Examples
    --------
    >>> number(19983), number(0.00318934), number(None)
    ('19,983', '0.003189', '–')
    """
    if value is None:
        return "–"
    whole = float(value).is_integer() and abs(value) < 1e15
    return f"{int(value):,}" if whole else f"{float(value):.4g}"


def plain(value: float, digits: int) -> str:
    """A number rounded to so many significant digits, and never as 4.7e+02.

    Examples
    --------
    >>> plain(470.3, 2), plain(-331234567.0, 2), plain(0.0213, 2)
    ('470', '-330,000,000', '0.021')
    """
    return f"{float(f'{value:.{digits}g}'):,.15g}"


def short(value: float) -> str:
    """Three to four significant digits.

    Examples
    --------
    >>> short(1e-6), short(0.99999999)
    ('1e-06', '1')
    """
    return f"{value:.4g}"


def percent(share: float) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.1234), percent(1.0)
    ('12.3 %', '100 %')
    """
    return f"{100 * share:.0f} %" if share in (0, 1) else f"{100 * share:.1f} %"


def rounded(share: float) -> str:
    """A share in whole per cent; all and nothing are said only where they are meant.

    Examples
    --------
    >>> rounded(0.123), rounded(0.998), rounded(0.001), rounded(0.0), rounded(1.0)
    ('12%', 'more than 99%', 'less than 1%', '0%', '100%')
    """
    if 0 < share < 0.01:
        return "less than 1%"
    return "more than 99%" if 0.99 < share < 1 else f"{share:.0%}"
