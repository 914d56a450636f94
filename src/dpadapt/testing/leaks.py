"""Nothing private comes out: not in the model, a file, an error, a warning or a log.

What is wrong in an argument is told by its name, before anything is spent.
"""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.base import clone

from dpadapt import Private
from dpadapt.modelfolder.reading import decode
from dpadapt.modelfolder.types import ESTIMATORS
from dpadapt.modelfolder.writing import encode

from .search import (
    HOSTILE_CELLS,
    SECRET_TEXT,
    SENTINEL,
    Secrets,
    everything_said,
    exception_text,
    refused,
    require,
)
from .subject import Subject
from .tape import Refusing, releases, taped


def own_name(model: Any) -> tuple[str, ...]:
    """The name that a model folder must be told of an estimator that is not the library's."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    return () if name in ESTIMATORS else (name,)


def check_nothing_private_stays_in_the_model(subject: Subject) -> None:
    """No private value, sum or handle can be reached from the model, nor is one told."""
    rows, labels = subject.marked()
    X, y = subject.public()
    for public, given in ((X, rows), (subject.public_frame(), subject.marked_frame())):
        with taped() as tape, everything_said() as said:
            model = subject.make(noise="secure", random_state=None)
            model.fit(public, y, private=Private(given, labels))
        hidden = [draw.value for draw in releases(tape)]
        secrets = Secrets(given, labels, hidden)
        secrets.check_text(said.all, "what was printed, logged or warned")
        for thing in (model, clone(model), copy.deepcopy(model), model.guarantee_):
            secrets.check(thing)
            for text in (repr(thing), str(thing), getattr(thing, "_repr_html_", str)()):
                secrets.check_text(text or "", "the representation")
        secrets.check_text(repr(model.get_params()), "get_params")
        secrets.check_text(model.guarantee_.to_json(), "the guarantee")


def check_nothing_private_is_written_to_a_file(subject: Subject) -> None:
    """A pickle, a joblib file and a model folder hold nothing private, and can be read."""
    rows, labels = subject.marked()
    model = subject.fit(subject.make(noise="secure", random_state=None), Private(rows, labels))
    secrets, X = Secrets(rows, labels), subject.public()[0]
    packed = io.BytesIO()
    joblib.dump(model, packed)
    tree, numbers = encode(model, own_name(model))
    files = (json.dumps(tree).encode(), numbers)
    for data in (pickle.dumps(model), packed.getvalue(), *files):
        secrets.check_bytes(data, "the model file")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(io.BytesIO(packed.getvalue()))):
        secrets.check(again)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        require(again.guarantee_ == model.guarantee_, "the guarantee is another one in the file")


def check_model_folder_can_be_read(subject: Subject) -> None:
    """What a model folder holds gives the same answers and the same guarantee."""
    model, X = subject.usual.model, subject.public()[0]
    tree, numbers = encode(model, own_name(model))
    again = decode(json.loads(json.dumps(tree)), numbers, own_name(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    require(again.guarantee_ == model.guarantee_, "the guarantee is another one in the folder")


def check_errors_quote_nothing_private(subject: Subject) -> None:
    """No error quotes a private value, nor does one behind it."""
    rows, labels = subject.marked()
    X, y = subject.public()
    other = pd.DataFrame(X, columns=[*subject.names[:-1], "other"])
    calls = {
        "too few columns": lambda: subject.make().fit(X, y, private=Private(rows[:, :-1], labels)),
        "epsilon": lambda: subject.make(epsilon=-1).fit(X, y, private=Private(rows, labels)),
        "no budget": lambda: subject.make(ledger=Refusing()).fit(
            X, y, private=Private(rows, labels)
        ),
        "rows that are not Private": lambda: subject.make().fit(X, y, private=rows),
        "a missing column": lambda: subject.make().fit(
            other, y, private=Private(subject.marked_frame(), labels)
        ),
    }
    for what, call in calls.items():
        with everything_said() as said, refused(Exception, what=what) as caught:
            call()
        Secrets(rows, labels).check_text(
            exception_text(caught.error) + said.all, f"the error ({what})"
        )


def check_no_private_values_raise(subject: Subject) -> None:
    """No private values, however odd, raise, warn, log or make the answers infinite."""
    X, y = subject.public()
    said_before = None
    shape = (20, subject.columns)
    for seed in range(25):
        rng = np.random.default_rng([7, seed])
        rows = rng.standard_t(1, size=shape) * 10.0 ** rng.integers(-300, 300, size=shape)
        rows[rng.random(rows.shape) < 0.2] = rng.choice([math.nan, math.inf, -math.inf, 0.0])
        labels = subject.labels(rows, seed)
        if labels is not None and labels.dtype.kind == "f":
            with np.errstate(over="ignore"):
                labels *= 10.0 ** rng.integers(-300, 300, size=20)
        with everything_said() as said:
            model = subject.make(random_state=seed).fit(X, y, private=Private(rows, labels))
        require(np.isfinite(subject.answers(model)).all(), "the answers are not finite")
        require("RuntimeWarning" not in said.warned, f"a warning: {said.warned}")
        require(said.printed == "", "something was printed")
        require(said.logged == (said_before or said.logged), "what is logged depends on the rows")
        said_before = said.logged


def check_one_private_row_is_enough(subject: Subject) -> None:
    """A private table of one row is taken."""
    _take(subject, subject.rows(n=20)[:1])


def check_odd_private_samples_are_taken(subject: Subject) -> None:
    """Constant rows, objects, texts and integers in a private table are taken."""
    shape = (20, subject.columns)
    objects = subject.rows(n=20).astype(object)
    for i, cell in enumerate(HOSTILE_CELLS):
        objects[i, i % subject.columns] = cell
    _take(subject, np.full(shape, 0.25))
    _take(subject, objects)
    _take(subject, np.full(shape, SECRET_TEXT))
    _take(subject, np.arange(math.prod(shape)).reshape(shape))


def _take(subject: Subject, rows: Any) -> None:
    labels = np.linspace(-1, 1, len(rows)) if subject.facts.labels else None
    with everything_said() as said:
        model = subject.make().fit(*subject.public(), private=Private(rows, labels))
    require(np.isfinite(subject.answers(model)).all(), "the answers are not finite")
    Secrets(np.zeros((1, 3))).check_text(said.all, "what was said")


BAD: dict[str, tuple[object, ...]] = {
    "epsilon": (0, -1.0, math.inf, math.nan, None, "1", True),
    "delta": (0, 1, -1e-6, math.nan, None, "1e-6", math.inf),
    "noise": ("quantum", None, 3),
    "ledger": ("budget.db", 3, object()),
    "solver": ("magic", None),
    "method": ("magic",),
}


def check_bad_parameters_are_named(subject: Subject) -> None:
    """A bad parameter is refused by its name before any noise, with and without private rows."""
    known = subject.core(subject.make()).get_params(deep=False)
    for argument, values in BAD.items():
        for value in values if argument in known else ():
            for private in (subject.private(), None):
                with (
                    taped() as tape,
                    refused((ValueError, TypeError), rf"\b{argument}\b", f"{argument}={value!r}"),
                ):
                    subject.fit(subject.make(**{argument: value}), private)
                require(tape == [], f"{argument}={value!r}: noise was drawn")


def check_private_must_be_private(subject: Subject) -> None:
    """Private rows that are not wrapped in Private are refused."""
    for value in ([[1.0, 2.0, 3.0]], np.zeros((5, subject.columns)), "private.csv", 3):
        with refused(TypeError, r"\bprivate\b.*Private\(", "private rows that are not Private"):
            subject.fit(subject.make(), value)


def check_wrong_columns_are_listed(subject: Subject) -> None:
    """Columns that the private table lacks are named, and no others."""
    names = subject.names
    frame = pd.DataFrame(subject.rows(), columns=[*names[:-1], "other"])
    labels, y = subject.labels(subject.rows()), subject.public()[1]
    with refused(ValueError, rf"\bprivate\b.*'{names[-1]}'", "a missing column") as caught:
        subject.fit(subject.make(), Private(frame, labels), subject.public_frame(), y)
    others = [name for name in names[:-1] if f"'{name}'" in str(caught.error)]
    require(not others, f"columns are listed that are not missing: {others}")


def check_wrong_number_of_columns_is_told(subject: Subject) -> None:
    """A private table with another number of columns is refused with both numbers."""
    right = subject.columns
    for width in {1, right - 1, right + 1} - {0, right}:
        labels = np.zeros(9) if subject.facts.labels else None
        pattern = rf"\bprivate\b.*\b{width} columns?.*\b{right}\b"
        with refused(ValueError, pattern, f"{width} columns, not {right}"):
            subject.fit(subject.make(), Private(np.ones((9, width)), labels))


def check_two_columns_of_one_name_are_refused(subject: Subject) -> None:
    """A private table with two columns of one name is refused."""
    frame = pd.DataFrame(np.ones((9, 3)), columns=["alpha", "alpha", "gamma"])
    with refused(ValueError, r"\bX\b.*alpha", "two columns of one name"):
        Private(frame)


def check_labels_are_asked_for_where_they_are_needed(subject: Subject) -> None:
    """Private labels are asked for if they are read, and change nothing if they are not."""
    private = Private(subject.rows())
    if subject.facts.labels:
        with refused(ValueError, r"\bprivate\b.*label", "private rows without labels"):
            subject.fit(subject.make(), private)
    else:
        unlabelled = subject.answers(subject.fit(subject.make(), private))
        labelled = Private(subject.rows(), np.full(len(subject.rows()), SENTINEL))
        found = subject.answers(subject.fit(subject.make(), labelled))
        np.testing.assert_array_equal(found, unlabelled)
