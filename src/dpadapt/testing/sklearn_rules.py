"""The conventions of scikit-learn, with charges counted, and inputs of every form and type."""

from __future__ import annotations

import copy
import datetime as dt
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator as scikit_learn_checks

from dpadapt import Private

from .search import Secrets, exception_text, refused, require
from .subject import Subject


def check_estimator(subject: Subject) -> None:
    """The estimator passes the checks of scikit-learn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that are skipped say so
        model = subject.make(noise="secure", random_state=None)
        ran = scikit_learn_checks(model, on_fail="raise")
    passed = sum(check["status"] == "passed" for check in ran)
    require(passed >= 40, f"only {passed} checks of scikit-learn were made")


def check_privacy_parameters_are_keyword_only_without_default(subject: Subject) -> None:
    """Epsilon and delta must be stated by name; noise is secure unless something else is asked."""
    signature = inspect.signature(type(subject.core(subject.make())).__init__)
    for name in ("epsilon", "delta"):
        parameter = signature.parameters[name]
        require(parameter.kind is inspect.Parameter.KEYWORD_ONLY, f"{name} is not keyword-only")
        require(parameter.default is inspect.Parameter.empty, f"{name} has a default")
    defaults = {"noise": "secure", "random_state": None, "ledger": None, "verbose": 0}
    for name, default in defaults.items():
        found = signature.parameters[name].default
        require(found == default, f"the default of {name} is {found!r}, not {default!r}")


def check_fit_leaves_the_parameters_alone(subject: Subject) -> None:
    """A fit returns the model and changes no parameter of it."""
    model = subject.make()
    before = model.get_params(deep=False)
    require(subject.fit(model, subject.private()) is model, "fit does not return the model")
    after = model.get_params(deep=False)
    require(before.keys() == after.keys(), "fit adds or removes parameters")
    changed = [name for name in before if before[name] is not after[name]]
    require(not changed, f"fit changes the parameters {changed}")
    Secrets(subject.rows(), subject.labels(subject.rows())).check(clone(model))


def check_params_can_be_set_and_cloned(subject: Subject) -> None:
    """A clone has the parameters that were set, and gives the same model."""
    model = subject.make()
    model.set_params(**{f"{subject.prefix}epsilon": 0.25, f"{subject.prefix}random_state": 9})
    copied = clone(model)
    require(copied.get_params()[f"{subject.prefix}epsilon"] == 0.25, "a clone has another epsilon")
    one, two = (subject.answers(subject.fit(some, subject.private())) for some in (model, copied))
    np.testing.assert_array_equal(one, two)
    require(not hasattr(clone(model), "guarantee_"), "a clone is fitted")


def check_fitted_attributes_end_in_an_underscore(subject: Subject) -> None:
    """What a fit leaves behind ends in an underscore."""
    new = set(vars(subject.usual.model)) - set(vars(subject.make()))
    require(new, "a fit leaves nothing behind")
    odd = [name for name in new if not name.endswith("_") or name.startswith("_")]
    require(not odd, f"fitted attributes without an underscore at the end: {odd}")


def check_unfitted_model_says_so(subject: Subject) -> None:
    """An unfitted model refuses to predict."""
    with refused(NotFittedError, what="a prediction of an unfitted model"):
        subject.make().predict(subject.public()[0])


def check_deep_copy_shares_the_charges(subject: Subject) -> None:
    """A deep copy of a private sample is the same people: charges are counted once for both."""
    private = subject.private()
    copied = copy.deepcopy({"model": subject.make(), "private": private})
    subject.fit(copied["model"], copied["private"])
    charged = private.spent(1e-6).events == copied["model"].guarantee_.events
    require(charged, "a fit on a copy is not charged to the sample")


def check_grid_search_charges_every_fit(subject: Subject) -> None:
    """A grid search charges each of its fits, and does not slice the private sample."""
    X, y = subject.public()
    for n in (60, len(X)):  # a sample as long as the public one must not be taken for a fold of it
        private = subject.private(subject.rows(n=n))
        grid = {f"{subject.prefix}epsilon": [0.5, 1.0]}
        search = GridSearchCV(subject.make(), grid, cv=3, error_score="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            search.fit(X, y, private=private)
        best = search.best_estimator_.guarantee_
        require(best.bounds.get("private rows", n) == n, "the private sample was sliced")
        spent = private.spent(1e-6)
        require(len(spent.events) == 7 * len(best.events), "seven fits are not charged as seven")
        require(spent.epsilon > best.epsilon, "the search costs no more than its best fit")


def check_cross_validation_charges_every_fit(subject: Subject) -> None:
    """Cross-validation charges each of its fits."""
    rows = subject.rows(n=90)
    private = subject.private(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = cross_val_score(
            subject.make(),
            *subject.public(),
            cv=3,
            params={"private": private},
            error_score="raise",
        )
    require(np.isfinite(scores).all(), "a score is not finite")
    events = subject.fit(subject.make(), subject.private(rows)).guarantee_.events
    charged = len(private.spent(1e-6).events)
    require(charged == 3 * len(events), "three fits are not charged as three")


def check_other_processes_are_refused_with_a_reason(subject: Subject) -> None:
    """A search in several processes is refused, and told why."""
    private = subject.private(subject.marked()[0])
    grid = {f"{subject.prefix}epsilon": [0.5, 1.0]}
    search = GridSearchCV(subject.make(), grid, cv=2, n_jobs=2, error_score="raise")
    with refused(Exception, "pickle", "a search in two processes") as caught:
        search.fit(*subject.public(), private=private)
    text = exception_text(caught.error)
    for words in ("n_jobs=1", "cannot be pickled"):
        require(words in text, f"the error does not say {words!r}")
    Secrets(subject.marked()[0]).check_text(text, "the error")
    require(private.spent(1e-6).epsilon == 0, "a refused search was charged")


def check_inputs_are_not_modified(subject: Subject) -> None:
    """A fit changes none of its inputs, arrays or frames."""
    (X, y), (rows, labels) = subject.public(), subject.marked()
    rows[1] = np.resize([np.nan, np.inf, 1e300], subject.columns)
    arrays: list[Any] = [X, y, rows, labels]
    frames: list[Any] = [subject.public_frame(), pd.Series(y), subject.marked_frame(), labels]
    for given in (arrays, frames):
        before = copy.deepcopy(given)
        private = Private(given[2], given[3])
        subject.fit(subject.make(), private, given[0], given[1]).predict(given[0])
        for one, two in zip(before, given, strict=True):
            if isinstance(one, pd.DataFrame):
                pd.testing.assert_frame_equal(one, two)
            elif one is not None:
                np.testing.assert_array_equal(one, two)


def check_read_only_inputs_are_taken(subject: Subject) -> None:
    """Arrays that cannot be written to give the same model."""
    (X, y), rows = subject.public(), subject.rows()
    labels = subject.labels(rows)
    for array in (X, y, rows, labels):
        if array is not None:
            array.flags.writeable = False
    model = subject.fit(subject.make(), Private(rows, labels), X, y)
    np.testing.assert_array_equal(subject.answers(model), subject.usual.answers)


def check_public_sample_may_come_in_any_form(subject: Subject) -> None:
    """Lists, integers, single precision and frames of public rows give the same answers."""
    X, y = subject.public()
    X, y = np.rint(4 * X), y if y.dtype.kind not in "f" else np.rint(y)
    numeric = y.dtype.kind == "f"
    forms = {
        "list": (X.tolist(), y.tolist()),
        "int": (X.astype(int), y.astype(int) if numeric else y),
        "float32": (X.astype(np.float32), y.astype(np.float32) if numeric else y),
        "frame": (pd.DataFrame(X, columns=subject.names), pd.Series(y)),
        "column-major": (np.asfortranarray(X), y),
    }
    plain = subject.fit(subject.make(), subject.private(), X, y)
    expected = subject.coded(plain, plain.predict(X))
    for name, (some, labels) in forms.items():
        model = subject.fit(subject.make(), subject.private(), some, labels)
        found = subject.coded(model, model.predict(some))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=name)


def check_private_frames_are_matched_by_name(subject: Subject) -> None:
    """Columns of a private frame are found by name, in any order, and others are left alone."""
    y, public, rows = subject.public()[1], subject.public_frame(), subject.rows()
    labels = subject.labels(rows)
    frame = pd.DataFrame(rows, columns=subject.names)
    shuffled = frame[subject.names[::-1]].assign(extra=1.0)
    expected = subject.predictions(subject.usual.model)
    for some in (frame, shuffled):
        model = subject.fit(subject.make(), Private(some, labels), public, y)
        found = subject.predictions(model, public)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def check_public_names_and_sizes_are_kept(subject: Subject) -> None:
    """The fitted model knows the number and the names of the public columns."""
    model = subject.usual.model
    require(model.n_features_in_ == subject.columns, f"n_features_in_ is {model.n_features_in_}")
    require(not hasattr(model, "feature_names_in_"), "names of columns that have none")
    y, frame = subject.public()[1], subject.public_frame()
    model = subject.fit(subject.make(), subject.private(), frame, y)
    require(list(model.feature_names_in_) == subject.names, "the names are not the public ones")


# what the two classes 0 and 1 are called, by the type of the labels
_CLASSES: dict[str, list[Any]] = {
    "int": [0, 1],
    "float": [0.0, 1.0],
    "bool": [False, True],
    "str": ["no", "yes"],
    "object of int": [0, 1],
    "object of str": ["no", "yes"],
}
# types of public and private labels that mean the same (scikit-learn takes no objects of int)
PAIRS = [
    *(("int", "int"), ("bool", "bool"), ("str", "str"), ("float", "int")),
    *(("int", "object of int"), ("str", "object of str"), ("object of str", "str")),
]


def check_private_cells_of_any_type_give_the_same_model(subject: Subject) -> None:
    """The same private numbers, stored in any type, give the same model bit for bit."""
    rows = np.rint(4 * subject.rows())  # numbers that every type below can hold
    labels = subject.labels(rows)
    expected = subject.answers(subject.fit(subject.make(), Private(rows, labels)))
    for name, given in cells_of_all_types(rows).items():
        model = subject.fit(subject.make(), Private(given, labels))
        np.testing.assert_array_equal(subject.answers(model), expected, err_msg=name)


def check_columns_of_several_types_give_the_same_model(subject: Subject) -> None:
    """A private frame whose columns have several types gives the same model."""
    public, y, rows = subject.public_frame(), subject.public()[1], np.rint(4 * subject.rows())
    labels = subject.labels(rows)
    plain = pd.DataFrame(rows, columns=subject.names)
    model = subject.fit(subject.make(), Private(plain, labels), public, y)
    expected = subject.predictions(model, public)
    kinds = (np.int16, np.float32, object)
    mixed = plain.astype(dict(zip(subject.names, kinds, strict=False)))
    model = subject.fit(subject.make(), Private(mixed, labels), public, y)
    np.testing.assert_array_equal(subject.predictions(model, public), expected)


def check_labels_of_any_type_give_the_same_model(subject: Subject) -> None:
    """The same labels, stored in any type or called by any name, give the same model."""
    if not subject.facts.labels:
        return
    y, rows = subject.public()[1], subject.rows()
    labels = np.asarray(subject.labels(rows))
    if not subject.classes:
        y, labels = np.rint(2 * y), np.rint(2 * labels)
        expected = subject.answers(subject.fit(subject.make(), Private(rows, labels), None, y))
        for kind in (np.float32, np.int64, object):
            model = subject.fit(subject.make(), Private(rows, labels.astype(kind)), None, y)
            np.testing.assert_array_equal(subject.answers(model), expected, err_msg=str(kind))
    elif len(names := np.unique(y)) == 2:
        codes, private_codes = np.searchsorted(names, y), np.searchsorted(names, labels)
        expected = answers_without_names(
            subject, subject.fit(subject.make(), Private(rows, labels), None, y)
        )
        for public, private in PAIRS:
            sample = Private(rows, labels_of_type(private_codes, private))
            model = subject.fit(subject.make(), sample, None, labels_of_type(codes, public))
            np.testing.assert_array_equal(
                answers_without_names(subject, model), expected, err_msg=f"{public}, {private}"
            )


def check_a_cell_means_the_same_whatever_the_others_are(subject: Subject) -> None:
    """One odd cell gives a column another type; nobody else's cells may change with it."""
    X, rows = subject.public_frame(), subject.rows(n=40)
    fits = [
        subject.answers(subject.fit(subject.make(), Private(*sample), X=X))
        for sample in same_meaning(rows, subject.labels(rows), subject.names)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other, fits[0])


def answers_without_names(subject: Subject, model: Any) -> np.ndarray:
    """Answers of a classifier that do not depend on what its classes are called."""
    places = subject.coded(model, model.predict(subject.public()[0]))
    return np.concatenate([places, subject.predictions(model)])


def cells_of_all_types(rows: np.ndarray) -> dict[str, Any]:
    """Whole numbers in every type that a table can hold them in."""
    objects = rows.astype(object)
    objects[::2] = rows[::2].astype(int)  # int and float cells side by side
    types = ("float32", "int64", ">f8")
    return {name: rows.astype(name) for name in types} | {"object": objects}


def labels_of_type(codes: np.ndarray, kind: str) -> np.ndarray:
    """Labels of two classes, named after a type of :data:`_CLASSES`."""
    dtype = object if kind.startswith("object") else None
    return np.array([_CLASSES[kind][int(code)] for code in codes], dtype=dtype)


def same_meaning(
    rows: np.ndarray, labels: np.ndarray | None, names: list[str]
) -> Iterator[tuple[pd.DataFrame, pd.Series | None]]:
    """Tables of one meaning, to which pandas gives different types: one person's cells are missing.

    What a session sees of them must be the same to the last bit, and so what a fit makes of it.
    """
    place = 3
    for cell in (np.nan, "x", dt.date(2020, 1, 1)):
        lists = [*rows.T.tolist(), *([] if labels is None else [labels.tolist()])]
        for cells in lists:
            cells[place] = cell
        frame = pd.DataFrame(dict(zip(names, lists, strict=False)))
        yield frame, None if labels is None else pd.Series(lists[-1])
