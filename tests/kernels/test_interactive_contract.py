"""InteractivePredictor: a question is the same question, whatever it is stored as."""

from __future__ import annotations

import numpy as np
import pytest

from dpadapt import InteractivePredictor, KernelClassifier, KernelRegressor
from dpadapt.testing import Facts, Subject
from dpadapt.testing.search import NAMES
from dpadapt.testing.sklearn_rules import cells_of_all_types


def subject(kernel):
    predictor = InteractivePredictor(kernel(epsilon=1.0, delta=1e-6))
    classes = 2 if kernel is KernelClassifier else 0
    return Subject(predictor, Facts(labels=True, classes=classes, rows=60))


def ask(model, questions):
    return np.ravel(model.decision_function(questions[:9])).astype(float)


@pytest.mark.parametrize("kernel", [KernelRegressor, KernelClassifier])
def test_questions_of_any_type_are_the_same_question(kernel):
    check = subject(kernel)
    X = np.rint(4 * check.public()[0][:9])
    model = check.fit(check.make(), check.private())
    expected, asked = ask(model, X), model.questions_asked_
    for name, given in cells_of_all_types(X).items():
        np.testing.assert_array_equal(ask(model, given), expected, err_msg=name)
    assert model.questions_asked_ == asked


def test_questions_in_a_frame_are_the_same_questions():
    check = subject(KernelRegressor)
    public, y = check.public_frame(), check.public()[1]
    model = check.fit(check.make(), check.private(), public, y)
    expected = ask(model, public)
    mixed = public.astype({NAMES[0]: object})
    np.testing.assert_array_equal(ask(model, mixed), expected)
