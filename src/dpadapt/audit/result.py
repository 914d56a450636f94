"""What an audit of a fit found, as a small file that a report can show.

What the fit was asked to be stands there as a digest: two fits with the same one have the same
guarantee.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt.learning.figures import BLUE, GREY, ORANGE, blank, set_title
from dpadapt.privacy.files.whole_files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BYTES = 100_000
_FORMAT, _OLD = "dpadapt audit 3", ("dpadapt audit 1", "dpadapt audit 2")
_ATTACKED = {
    "replace-one": "one row replaced by another",
    "add-remove": "one row added or taken away",
    "replace-unit": "all rows of one person replaced, of which up to {} count",
}


@dataclass(frozen=True)
class AuditResult:
    """Claimed and found epsilon, and what a replay saw.

    Parameters
    ----------
    estimator : str
        What was audited.
    claimed, found, delta, confidence : float
        Epsilon of the guarantee, and its lower bound.
    method : str
        Of the lower bound.
    right, guesses : int
    pairs, releases : int
        Of the replay: neighbours, and values that met their noise.
    largest : float
        Ratio of the replay.
    diverged : str
        What depended on private values, or nothing.
    rows : str
        On what the audit ran.
    model : str
        Digest of the model folder whose fit was attacked; empty if none was given.
    settings : str
        Digest of the estimator, its parameters, epsilon, delta and relation.
    relation : {"replace-one", "add-remove", "replace-unit"}
        In what neighbours differed: a row, or all rows of a person.
    max_rows : int
        Rows of a person that count; 1 where rows were attacked.

    Examples
    --------
    >>> facts = (1.0, 0.4, 1e-6, 0.95, "400 runs", 250, 400, 12, 12, 0.98, "", "public rows")
    >>> AuditResult("DiscrepancyRegressor", *facts).verdict
    'Nothing speaks against the guarantee.'
    """

    estimator: str
    claimed: float
    found: float
    delta: float
    confidence: float
    method: str
    right: int
    guesses: int
    pairs: int
    releases: int
    largest: float
    diverged: str
    rows: str
    model: str = ""
    settings: str = ""
    relation: str = "replace-one"
    max_rows: int = 1

    @property
    def unit(self) -> str:
        """In what neighbours differed, in words."""
        return _ATTACKED[self.relation].format(self.max_rows)

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the guarantee."""
        return self.found <= self.claimed and self.largest <= 1 + 1e-9 and not self.diverged

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        if self.holds:
            return "Nothing speaks against the guarantee."
        return "THE GUARANTEE IS REFUTED: do not release a model that was made this way."

    def save(self, path: Path) -> None:
        """Write the file."""
        text = json.dumps({"format": _FORMAT, **asdict(self)}, indent=2, allow_nan=False)
        with whole_file(path) as draft:
            draft.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> AuditResult:
        """Read the file; what is none is refused."""
        refusal = f"{path} is no audit: give the audit.json that dpadapt audit has written."
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            raise ValueError(refusal)
        try:
            data: Any = json.loads(path.read_text(encoding="utf-8"))
            written = data.pop("format")
            if written in _OLD:
                refusal = (
                    f"{path} is of an older dpadapt, and does not say whether rows or people were "
                    "attacked: run dpadapt audit again."
                )
            if written != _FORMAT:
                raise ValueError
            kinds = {each.name: str(each.type) for each in fields(cls)}
            if set(data) != set(kinds):
                raise ValueError
            result = cls(**{name: _read(data[name], kind) for name, kind in kinds.items()})
            if result.relation not in _ATTACKED:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise ValueError(refusal) from None
        return result


def draw_audit(result: AuditResult) -> Figure:
    """Draw the claim, what was found, and how far un-noised values moved.

    Examples
    --------
    >>> facts = (1.0, 0.4, 1e-6, 0.95, "400 runs", 250, 400, 12, 12, 0.98, "", "public rows")
    >>> figure = draw_audit(AuditResult("DiscrepancyRegressor", *facts))
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['epsilon', 'distance over stated sensitivity']
    """
    who = "person" if result.relation == "replace-unit" else "row"
    figure, panels = blank(9.4, 2.6, columns=2)
    bars = (
        (panels[0], result.found, result.claimed, "Found by attack, and claimed", "epsilon"),
        (
            panels[1],
            result.largest,
            1.0,
            f"Most that one {who} moved a value",
            "distance over stated sensitivity",
        ),
    )
    for axes, value, limit, title, name in bars:
        broken = value > limit * (1 + 1e-9)
        axes.barh([0], [value], height=0.5, color=ORANGE if broken else BLUE)
        axes.axvline(limit, color=GREY, lw=2, ls="--")
        axes.set_xlim(0, 1.35 * max(limit, value))
        axes.set_ylim(-0.6, 0.9)
        axes.text(limit, 0.62, f" allowed: {limit:.3g}", color=GREY, va="center")
        inside = value > limit / 4
        facts = {"ha": "right", "color": "white"} if inside else {"ha": "left"}
        axes.text(value, 0, f" {value:.3g} ", va="center", weight="bold", **facts)
        axes.set_yticks([])
        axes.set_xlabel(name)
        set_title(axes, title)
    return figure


def _read(value: Any, kind: str) -> Any:
    if kind == "str" and isinstance(value, str):
        return value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "int" and number and value == int(value) and value >= 0:
        return int(value)
    if kind == "float" and number and math.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError(f"not a {kind}")


_NO_SETTINGS = ("ledger", "noise", "random_state", "verbose")  # where noise comes from, who pays


def settings_digest(estimator: Any, relation: str) -> str:
    """SHA-256 of an estimator's class, its parameters, epsilon and delta, and of the relation.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.
    relation : str
        Of its guarantee.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> one, two = (DiscrepancyRegressor(epsilon=1, delta=d) for d in (1e-6, 1e-7))
    >>> settings_digest(one, "replace-one") == settings_digest(one, "replace-one")
    True
    >>> settings_digest(one, "replace-one") == settings_digest(two, "replace-one")
    False
    """
    own = estimator.get_params(deep=False)
    asked = {name: own[name] for name in sorted(own) if name not in _NO_SETTINGS}
    facts = [type(estimator).__name__, relation, _plain(asked)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Value as texts, lists and dictionaries that are the same wherever it is computed."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, np.number)):
        return float(value).hex()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if hasattr(value, "get_params"):
        return [type(value).__name__, _plain(value.get_params(deep=False))]
    if isinstance(value, type) or callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return [type(value).__name__, _plain(vars(value)) if hasattr(value, "__dict__") else str(value)]
