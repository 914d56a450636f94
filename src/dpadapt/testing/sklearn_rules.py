"""The conventions of scikit-learn, with charges counted."""

from __future__ import annotations

import copy
import inspect
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator as scikit_learn_checks

from .expecting import refused, require
from .search import Secrets
from .speech import told
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
    text = told(caught.error)
    for words in ("n_jobs=1", "cannot be pickled"):
        require(words in text, f"the error does not say {words!r}")
    Secrets(subject.marked()[0]).check_text(text, "the error")
    require(private.spent(1e-6).epsilon == 0, "a refused search was charged")
