"""InteractivePredictor: the checks of the battery that do not need a released model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from baselines.baseline_contracts import ClassificationSample
from contracts.hostile import NAMES
from contracts.kinds import KindChecks, cells_of_all_types
from contracts.processes import ProcessChecks
from contracts.threads import ThreadChecks
from dpadapt import InteractivePredictor, KernelClassifier, KernelRegressor


class Asked(KindChecks, ThreadChecks, ProcessChecks):
    """A predictor, and its answers to some questions; few rows, for kernel matrices."""

    needs_labels = True
    kind: type = KernelRegressor

    def make(self, *, epsilon=1.0, delta=1e-6, noise="seeded", random_state=0, ledger=None):
        facts = {"epsilon": epsilon, "delta": delta, "noise": noise, "random_state": random_state}
        return InteractivePredictor(self.kind(**facts, ledger=ledger))

    def rows(self, n=60, seed=0):
        return super().rows(n, seed)

    def predictions(self, model, X=None):
        questions = self.public()[0] if X is None else X
        return np.ravel(model.decision_function(questions[:9])).astype(float)

    def fit(self, *given):
        model = super().fit(*given)
        self.predictions(model)  # without a question nothing is released
        return model

    def answers(self, model):
        return self.predictions(model)

    def codes(self, model):
        return self.predictions(model)

    def test_questions_of_any_type_are_the_same_question(self):
        X = np.rint(4 * self.public()[0][:9])
        model = self.fit(self.make(), self.private())
        expected, asked = self.predictions(model, X), model.questions_asked_
        for name, given in cells_of_all_types(X).items():
            np.testing.assert_array_equal(self.predictions(model, given), expected, err_msg=name)
        assert model.questions_asked_ == asked


class TestRegressor(Asked):
    pass


class TestClassifier(ClassificationSample, Asked):
    kind = KernelClassifier


def test_questions_in_a_frame_are_the_same_questions():
    check = TestRegressor()
    X, y = check.public()
    public = pd.DataFrame(X, columns=NAMES)
    model = check.fit(check.make(), check.private(), public, y)
    expected = check.predictions(model, public)
    mixed = public.astype({NAMES[0]: object})
    np.testing.assert_array_equal(check.predictions(model, mixed), expected)
