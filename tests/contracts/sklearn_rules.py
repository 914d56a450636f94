"""The conventions of scikit-learn, with charges counted."""

from __future__ import annotations

import copy
import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from contracts.sample import Sample
from contracts.search import Secrets
from contracts.speech import told


class SklearnChecks(Sample):
    """An estimator like every other, save that fits cost something."""

    def test_check_estimator(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # checks that are skipped say so
            ran = check_estimator(self.make(noise="secure", random_state=None), on_fail="raise")
        assert sum(check["status"] == "passed" for check in ran) >= 40

    def test_privacy_parameters_are_keyword_only_without_default(self):
        signature = inspect.signature(type(self.core(self.make())).__init__)
        for name in ("epsilon", "delta"):
            parameter = signature.parameters[name]
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert parameter.default is inspect.Parameter.empty
        defaults = {"noise": "secure", "random_state": None, "ledger": None, "verbose": 0}
        for name, default in defaults.items():
            assert signature.parameters[name].default == default

    def test_fit_leaves_the_parameters_alone(self):
        model = self.make()
        before = model.get_params(deep=False)
        assert self.fit(model, self.private()) is model
        after = model.get_params(deep=False)
        assert before.keys() == after.keys()
        assert all(before[name] is after[name] for name in before)
        Secrets(self.rows(), self.labels(self.rows())).check(clone(model))

    def test_params_can_be_set_and_cloned(self):
        model = self.make()
        model.set_params(**{f"{self.prefix}epsilon": 0.25, f"{self.prefix}random_state": 9})
        copied = clone(model)
        assert copied.get_params()[f"{self.prefix}epsilon"] == 0.25
        one, two = (self.answers(self.fit(some, self.private())) for some in (model, copied))
        np.testing.assert_array_equal(one, two)
        assert not hasattr(clone(model), "guarantee_")

    def test_fitted_attributes_end_in_an_underscore(self):
        model = self.make()
        before = set(vars(model))
        self.fit(model, self.private())
        new = set(vars(model)) - before
        assert new
        assert all(name.endswith("_") and not name.startswith("_") for name in new)

    def test_unfitted_model_says_so(self):
        with pytest.raises(NotFittedError):
            self.make().predict(self.public()[0])

    def test_deep_copy_shares_the_charges(self):
        private = self.private()
        copied = copy.deepcopy({"model": self.make(), "private": private})
        self.fit(copied["model"], copied["private"])
        assert private.spent(1e-6).events == copied["model"].guarantee_.events

    @pytest.mark.parametrize("n", [60, 90])  # 90 is the number of public rows
    def test_grid_search_charges_every_fit(self, n):
        private = self.private(self.rows(n=n))
        grid = {f"{self.prefix}epsilon": [0.5, 1.0]}
        search = GridSearchCV(self.make(), grid, cv=3, error_score="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            search.fit(*self.public(m=90), private=private)
        best = search.best_estimator_.guarantee_
        assert best.bounds["private rows"] == n, "the private sample was sliced"
        spent = private.spent(1e-6)
        assert len(spent.events) == 7 * len(best.events)
        assert spent.epsilon > best.epsilon

    def test_cross_validation_charges_every_fit(self):
        private = self.private(self.rows(n=90))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scores = cross_val_score(
                self.make(),
                *self.public(m=90),
                cv=3,
                params={"private": private},
                error_score="raise",
            )
        assert np.isfinite(scores).all()
        events = self.fit(self.make(), self.private()).guarantee_.events
        assert len(private.spent(1e-6).events) == 3 * len(events)

    def test_other_processes_are_refused_with_a_reason(self):
        private = self.private(self.marked()[0])
        grid = {f"{self.prefix}epsilon": [0.5, 1.0]}
        search = GridSearchCV(self.make(), grid, cv=2, n_jobs=2, error_score="raise")
        with pytest.raises(Exception, match="pickle") as caught:
            search.fit(*self.public(), private=private)
        text = told(caught.value)
        assert "n_jobs=1" in text
        assert "cannot be pickled" in text
        Secrets(self.marked()[0]).check_text(text, "the error")
        assert private.spent(1e-6).epsilon == 0
