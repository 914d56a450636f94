"""What the public label asks for: numbers, or classes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from .screens import say_note
from .tables import TableError

if TYPE_CHECKING:
    import pandas as pd

_FEW = 0.995  # of the public labels are nearer to their mean than the largest error that counts
_MOST_CLASSES = 100
_FEW_NUMBERS = 10  # different whole numbers, which may be meant as classes


class Task(StrEnum):
    """What is predicted."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


def labels_of(label: pd.Series, task: Task) -> tuple[Any, Task]:
    """Labels for a fit and their task, told by the public labels alone; none may be missing.

    Examples
    --------
    >>> import pandas as pd
    >>> labels_of(pd.Series(["yes", "no"], name="y"), Task.auto)
    (array(['yes', 'no'], dtype=object), <Task.classification: 'classification'>)
    >>> labels_of(pd.Series([1.5, 2.5, 4.0], name="y"), Task.auto)[1].value
    'regression'
    """
    import numpy as np
    import pandas as pd

    if lists := sum(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in label):
        raise TableError(
            f"--label {label.name}: {lists:,} of its public cells are lists, and each needs one "
            "number or class. Give one value of each list, or join them into a text."
        )
    numbers = pd.to_numeric(label, errors="coerce").astype("float64")
    wrong, distinct = int(numbers.isna().sum()), label.nunique()
    if distinct < 2:
        raise TableError(
            f"the public label {label.name!r} has one value only: there is nothing to predict."
        )
    if task is Task.auto:
        flags = label.dtype.kind == "b" or (distinct == 2 and wrong in (0, len(label)))
        if wrong and 2 * wrong <= len(label) and not flags:
            raise TableError(_some_texts(label.name, wrong, len(label)))
        task = Task.classification if wrong or flags else Task.regression
        if not (wrong or flags) and distinct <= _FEW_NUMBERS and (numbers % 1 == 0).all():
            say_note(
                f"the label has {distinct} different whole numbers, which are taken for numbers; "
                "if they are classes, give --task classification."
            )
    if task is Task.regression:
        if wrong or not np.isfinite(numbers).all():
            raise TableError(_some_texts(label.name, wrong or 1, len(label)))
        return numbers.to_numpy(), task
    if distinct > max(2, min(_MOST_CLASSES, len(label) // 2)):
        raise TableError(
            f"the public label {label.name!r} has {distinct} different values in {len(label)} "
            "rows: too many for classes. Is it the right column?"
        )
    plain = label.dtype.kind in "biuf"
    return (label.to_numpy() if plain else label.astype(str).to_numpy(dtype=object)), task


def _some_texts(name: Any, wrong: int, rows: int) -> str:
    return (
        f"{wrong} of {rows} public labels in column {name!r} are no numbers. If it holds classes, "
        "give --task classification; if it holds numbers, correct or remove those rows (see "
        "--decimal for 1,5)."
    )


def error_bounds(labels: Any) -> dict[str, Any]:
    """Range of a label that is a number, and the largest error that counts, from public labels.

    A square of the whole range would drown everything in noise: a model that is of any use is
    hardly ever farther off than public labels are from their own mean.

    Examples
    --------
    >>> import numpy as np
    >>> found = error_bounds(np.array([-1.0] * 500 + [1.0] * 500 + [90.0]))
    >>> found["label_range"], round(found["largest_error"], 2)
    ((-1.0, 90.0), 1.09)
    """
    import numpy as np

    largest = float(np.quantile(np.abs(labels - labels.mean()), _FEW))
    span = (float(labels.min()), float(labels.max()))
    return {"label_range": span, "largest_error": largest or span[1] - span[0]}
