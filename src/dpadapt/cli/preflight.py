"""What the owner of a private file should see before a fit: outside the guarantee, by design.

Everything here looks at private cells without noise. It serves ``dpadapt check`` and nothing else:
the two files are read as plain texts, no ``Private`` is made, nothing is returned to a model, and
nothing is written. A test sees to it that no other module imports this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpadapt.features.columns import may_name_people
from dpadapt.learning.cautions import good_delta

if TYPE_CHECKING:
    import pandas as pd

_MORE = "take more rows or a larger epsilon, or expect the public model and no more"
_NO_CLASS = (
    "public rows have no such class. Add public rows of it, or call it by the name of another."
)
_SHOWN = 4  # cells of a column that are shown
_MANY_MISSING, _DIFFERENT = 0.2, 0.1
_SOME = 0.01  # share of the rows below which a finding is left out
_SMALL = 0.25  # standard error of one noisy mean, in spreads of the label
_QUANTILE = 0.99
_FARTHEST = 3  # columns by which rows are far, that are named


class Remark(NamedTuple):
    """One line: whether something must be done, what it is about, and what to do."""

    serious: bool
    about: str
    text: str


@dataclass(frozen=True)
class Pair:
    """Both files as texts, and the public types."""

    public: pd.DataFrame
    private: pd.DataFrame
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    label: str | None
    classes: bool
    epsilon: float | None
    delta: float
    people: int | None = None  # where a column says whose row it is

    @property
    def features(self) -> list[str]:
        """Columns of both files, without the label."""
        both = [name for name in self.public.columns if name in self.private.columns]
        return [name for name in both if name != self.label]


def findings(pair: Pair, roles: Any) -> list[Remark]:
    """Everything that is worth a look, file by file and column by column.

    Parameters
    ----------
    pair : Pair
    roles : sequence of Role
        Of the public columns.
    """
    parts = (
        _columns(pair),
        _label(pair),
        _roles(pair, roles),
        _types(pair),
        _dates(pair),
        _levels(pair, roles),
        _missing(pair),
        _bounds(pair, roles),
        _people(pair, roles),
        _sizes(pair),
    )
    return [each for part in parts for each in part]


def _columns(pair: Pair) -> Iterator[Remark]:
    lacking = [name for name in pair.public.columns if name not in pair.private.columns]
    if pair.label in lacking:
        lacking.remove(str(pair.label))
        yield Remark(
            False, "label", "the private file has no labels: little can be learned from it."
        )
    if lacking:
        text = f"the private file lacks {_some(lacking)}: --drop them, or fit refuses."
        yield Remark(True, "columns", text)
    extra = [name for name in pair.private.columns if name not in pair.public.columns]
    if extra:
        text = f"the public file lacks {_some(extra)}: not used."
        yield Remark(False, "columns", text)


def _label(pair: Pair) -> Iterator[Remark]:
    if pair.label is None or pair.label not in pair.private.columns:
        return
    ours, theirs = pair.public[pair.label], pair.private[pair.label]
    gone = int(theirs.isna().sum())
    if gone:
        part = f"{gone:,} of {len(theirs):,} private labels are missing ({gone / len(theirs):.1%})"
        text = f"{part}: these rows count in nothing, in fit and in evaluate."
        yield Remark(False, "label", text)
    if not pair.classes:
        yield from _number_label(_floats(ours), theirs)
        return
    known = set(ours.dropna().map(_plain))
    strange = theirs.dropna().map(_plain)
    strange = strange[~strange.isin(known)].value_counts()
    folded = {each.casefold(): each for each in known}
    for name, count in strange.head(_SHOWN).items():
        twin = folded.get(str(name).casefold())
        cure = f"is it {twin!r}, spelt differently?" if twin else _NO_CLASS
        text = f"{_are(count, 'row')} of class {name!r}, and left out: {cure}"
        yield Remark(True, "label", text)


def _number_label(ours: Any, theirs: pd.Series) -> Iterator[Remark]:
    numbers = _floats(theirs)
    numbers = numbers.where(np.isfinite(numbers))
    wrong = theirs[numbers.isna() & theirs.notna()]
    if len(wrong):
        text = (
            f"{_are(len(wrong), 'label')} no numbers, such as {_some(wrong.unique())}: these "
            "rows count in nothing. Correct them in the file."
        )
        yield Remark(True, "label", text)
    outside = int(((numbers < ours.min()) | (numbers > ours.max())).sum())
    if outside:
        text = (
            f"{_are(outside, 'label')} outside the public range ({ours.min():g} to "
            f"{ours.max():g}), and cut to it. Are labels in other units? If not, public "
            "rows with such labels would help."
        )
        yield Remark(outside > _SOME * len(theirs), "label", text)


def _roles(pair: Pair, roles: Any) -> Iterator[Remark]:
    useless = [role for role in roles if not role.useful and role.name in pair.features]
    for why in dict.fromkeys(role.why for role in useless):
        names = [str(role.name) for role in useless if role.why == why]
        yield Remark(False, ", ".join(names), f"left out by fit: {why}.")
    used = [str(role.name) for role in roles if role.useful and role.name in pair.features]
    for name in used:
        if not may_name_people(name, pair.public[name]):
            continue
        text = f"does it name people? fit uses it as any other column; leave it out: --drop {name}."
        yield Remark(False, name, text)


def _types(pair: Pair) -> Iterator[Remark]:
    for name in pair.features:
        if name not in pair.numbers:
            continue
        cells = pair.private[name]
        wrong = cells[_floats(cells).isna() & cells.notna()]
        if len(wrong):
            text = (
                f"{_are(len(wrong), 'cell')} no numbers, and counted as missing: "
                f"{_some(wrong.unique())}. Correct them in the file, or --drop {name}."
            )
            yield Remark(True, name, text)


def _dates(pair: Pair) -> Iterator[Remark]:
    from dpadapt.features.cells import date_format, not_dates

    for name in pair.dates:
        if name not in pair.features:
            continue
        how = date_format(pair.public[name]) or "ISO"
        wrong = not_dates(pair.private[name], how)
        if wrong:
            text = (
                f"{_are(len(wrong), 'cell')} no dates as public rows write them ({how}), and "
                f"counted as missing: {_some(dict.fromkeys(wrong))}. Write them in the same way."
            )
            yield Remark(True, name, text)


def _levels(pair: Pair, roles: Any) -> Iterator[Remark]:
    useful = {role.name for role in roles if role.kind == "feature"}
    for name in pair.features:
        if name in pair.numbers or name in pair.dates or name not in useful:
            continue
        ours, theirs = (each[name].dropna().map(_plain) for each in (pair.public, pair.private))
        common = ours.value_counts(normalize=True)
        rare = 1 - float(common[common >= _SOME].sum())  # pooled, as unseen levels are
        unseen = theirs[~theirs.isin(set(ours))]
        share = len(unseen) / max(len(pair.private), 1)
        if share > _SOME:
            text = (
                f"{share:.1%} of the private rows have a value that no public row has: "
                f"{_some(unseen.value_counts().index)}. The model cannot tell such values apart. "
                f"If one is spelt differently, correct it; else leave the column out: --drop "
                f"{name}."
            )
            yield Remark(share > rare + _DIFFERENT, name, text)


def _missing(pair: Pair) -> Iterator[Remark]:
    for name in pair.features:
        ours, theirs = (float(each[name].isna().mean()) for each in (pair.public, pair.private))
        if theirs > max(_MANY_MISSING, ours + _DIFFERENT):
            text = (
                f"{theirs:.0%} of the private cells are missing, {ours:.0%} of the public ones. "
                f"Fill them in where you can, or leave the column out: --drop {name}."
            )
            yield Remark(theirs > ours + 0.5, name, text)


def _bounds(pair: Pair, roles: Any) -> Iterator[Remark]:
    """Rows that are far from public ones: each is shortened to a public length."""
    useful = {role.name for role in roles if role.kind == "feature"}
    names = [name for name in pair.features if name in pair.numbers and name in useful]
    ours, theirs = (each[names].apply(_floats) for each in (pair.public, pair.private))
    for name in names:
        low, high = ours[name].min(), ours[name].max()
        outside = float(((theirs[name] < low) | (theirs[name] > high)).mean())
        if outside > _SOME:
            text = (
                f"{outside:.1%} of the private rows lie outside the public range "
                f"({low:g} to {high:g}). Public rows cannot say what happens there. Is it in other "
                "units? Correct it. Does it only say which file a row is from, as a date does? "
                f"--drop {name}."
            )
            yield Remark(outside > 0.5, name, text)
    if not names:
        return
    spread = ours.std().replace(0, 1).fillna(1)
    lengths = [
        np.sqrt((((each - ours.mean()) / spread).fillna(0) ** 2).sum(axis=1))
        for each in (ours, theirs)
    ]
    longer = float((lengths[1] > lengths[0].quantile(_QUANTILE)).mean())
    if longer > 2 * (1 - _QUANTILE):
        parts = (((theirs - ours.mean()) / spread).fillna(0) ** 2).mean()
        most = [str(name) for name in parts.sort_values(ascending=False).index[:_FARTHEST]]
        text = (
            f"{longer:.1%} of the private rows are farther from the middle of the public rows, all "
            f"numbers together, than 99 % of these are (most by {', '.join(most)}). Public rows "
            "say little about such people, and methods that bound the length of a row pull theirs "
            "in. Add public rows that are like them, or --drop columns that differ only because "
            "the files do."
        )
        yield Remark(longer > 0.2, "rows", text)


def _people(pair: Pair, roles: Any) -> Iterator[Remark]:
    """One person in several rows, or in both files."""
    from dpadapt.features import column_roles
    from dpadapt.features.columns import named_like_an_id

    ids = {role.name for role in roles if role.kind in ("id", "unit")}
    ids |= {name for name in pair.private.columns if named_like_an_id(name)}
    typed = pair.private.drop(columns=pair.label or [], errors="ignore").apply(_typed)
    ids |= {role.name for role in column_roles(typed) if role.kind == "unit"}
    for name in sorted(map(str, ids)) if pair.people is None else ():
        if name in pair.private.columns:
            counts = pair.private[name].value_counts()
            if len(counts) and counts.iloc[0] > 1:
                text = (
                    f"{len(counts):,} different ids in {len(pair.private):,} private rows, up to "
                    f"{counts.iloc[0]:,} rows each: the guarantee is for one row, not for one id. "
                    f"If they are people, fit with --unit {name} and --max-rows."
                )
                yield Remark(True, name, text)
    same = [name for name in pair.features if name not in ids]
    if not same:
        return
    usual, twice = (each[same].duplicated() for each in (pair.public, pair.private))
    if pair.people is None and twice.mean() > usual.mean() + _DIFFERENT:
        text = (
            f"{twice.sum():,} private rows repeat another one. If people are in it several times, "
            "fit with --unit (who it is) and --max-rows; if rows are alike by chance, go on."
        )
        yield Remark(True, "rows", text)
    whole = [*same, *({pair.label} & {*pair.public.columns} & {*pair.private.columns})]
    rows = [each[whole].fillna("").agg("\x1f".join, axis=1) for each in (pair.public, pair.private)]
    shared = int(rows[1].isin(set(rows[0])).sum())
    if shared > _SOME * len(pair.private) and usual.mean() < _SOME:  # or rows are alike by chance
        text = (
            f"{_are(shared, 'row')} in the public file as well, which is not protected. Take "
            "them out of the public file; if rows are alike by chance, go on."
        )
        yield Remark(True, "rows", text)


def _sizes(pair: Pair) -> Iterator[Remark]:
    n, who = (len(pair.private), "private rows") if pair.people is None else (pair.people, "people")
    if pair.delta >= 1 / max(n, 1):
        text = (
            f"delta {pair.delta:g} is not below 1/{n:,}: one person may be told outright. Give fit "
            f"--delta {good_delta(n):g}."
        )
        yield Remark(True, "budget", text)
    if pair.epsilon is None:
        return
    if pair.epsilon > 10:
        text = f"epsilon {pair.epsilon:g} promises next to nothing. Give fit 10 or less."
        yield Remark(True, "budget", text)
    noise = math.sqrt(2 * math.log(1.25 / pair.delta)) / (n * pair.epsilon)
    spreads = noise * 6  # a label that is cut to about three spreads on each side
    text = (
        f"{n:,} {who} at epsilon {pair.epsilon:g}: the noise of one mean is about "
        f"{spreads:.2g} of the label's spread"
    )
    if spreads > _SMALL:
        yield Remark(True, "size", f"{text}. That is too few rows for this epsilon: {_MORE}.")
    else:
        yield Remark(False, "size", f"{text}.")


def _floats(cells: pd.Series) -> Any:
    import pandas as pd

    return pd.to_numeric(cells.replace({"True": "1", "False": "0"}), errors="coerce")


def _typed(cells: pd.Series) -> Any:
    """Cells as numbers, if all that are there are."""
    numbers = _floats(cells)
    return numbers if (numbers.notna() == cells.notna()).all() else cells


def _are(count: int, what: str) -> str:
    """So many private rows, labels or cells are.

    Examples
    --------
    >>> _are(1, "cell"), _are(2000, "label")
    ('1 private cell is', '2,000 private labels are')
    """
    return f"1 private {what} is" if count == 1 else f"{count:,} private {what}s are"


def _plain(cell: str) -> str:
    """A text as labels and levels are compared: numbers by their value."""
    text = str(cell).strip()
    try:
        value = float(text)
    except ValueError:
        return {"true": "1", "false": "0"}.get(text.lower(), text)
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _some(names: Any) -> str:
    listed = [repr(str(each)) for each in names]
    more = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
