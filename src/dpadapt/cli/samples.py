"""What a fit says of the two samples before it begins: sizes and names, no private cell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .screens import say, say_note
from .tables import partition_keys

if TYPE_CHECKING:
    from dpadapt.privacy import Private

    from .public_table import PublicTable

_INDEX = "__index_level_"  # columns in which pandas keeps its row numbers


class Asked(Protocol):
    """What the command line says of both files."""

    @property
    def public(self) -> Path: ...
    @property
    def private(self) -> Path: ...
    @property
    def label(self) -> str: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def max_rows(self) -> int | None: ...


def people_of(private: Private) -> int:
    """How many are protected: rows, or people where they have several."""
    return private.n_people or private.n_rows


def reads_labels(model: Any) -> bool:
    """Whether an estimator, or the one at the end of a pipeline, learns from private labels."""
    return bool(getattr(getattr(model, "estimator", model), "_reads_labels", True))


def say_samples(
    job: Asked, public: PublicTable, private: Private, test: Private | None, *, reads_labels: bool
) -> None:
    """Say what the samples are, and what of them is not used."""
    rows, columns = public.features.shape
    say("public", f"{job.public}: {rows:,} rows, {columns} columns, labelled")
    labelled = "with" if private.labelled else "without"
    people = "rows" if job.unit is None else "people"
    size = f"{private.n_people:,} {people}"
    if job.unit is not None:
        size += f" (up to {job.max_rows} rows of each count)"
    held = "" if test is None else f"; {test.n_people:,} {people} are held out to measure the model"
    say("private", f"{job.private}: {size}, {labelled} labels{held}")
    if keys := partition_keys(job.private):
        say_note(
            f"the private folder is partitioned by {', '.join(keys)}: which folder a row is in "
            "counts as public."
        )
    say("task", f"{public.task.value} of {job.label}")
    if private.labelled and not reads_labels:
        say_note(f"this method does not use the private labels in column {job.label!r}.")
    if extra := extra_columns(job, public, private):
        say_note(f"not used, because the public file lacks them: {extra} private column(s).")


def extra_columns(job: Asked, public: PublicTable, private: Private) -> int:
    """Private columns that the public file lacks.

    They are counted, not named: of a damaged file, cells of a row may pass for names.
    """
    known = {job.label, *public.features.columns, *(name for name, _ in public.unused)}
    return sum(each not in known and not each.startswith(_INDEX) for each in private.columns or ())
