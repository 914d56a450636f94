"""The law of a path's answers: noise of the stated scale, and no comb of possible values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpadapt.privacy import PrivacyError, Private
from dpadapt.privacy.core.noise import ExactNoise, SecureNoise, SeededNoise
from dpadapt.privacy.mechanisms.asking import open_answers
from dpadapt.privacy.mechanisms.interactive_model import InteractiveModel
from dpadapt.privacy.mechanisms.path import GaussianPath
from dpadapt.privacy.statistics import Gram

ALPHA = 1e-6  # rate of false positives of every test here
ROWS = np.array([[0.0], [0.4], [-0.7]])
SPARSE = 25.0  # far apart at this gamma: answers to whole-numbered questions are independent


def rbf(A, B):
    return np.exp(-SPARSE * ((A[:, None] - B[None]) ** 2).sum(axis=2))


class Points:
    def encode(self, table):
        return [row.tobytes() for row in np.asarray(table, dtype=float)]

    def decode(self, texts):
        return np.array([np.frombuffer(text) for text in texts])


def asked(model, outputs, questions, *, source=None, broken=None, scale_by=1.0):
    """Answers of as many independent paths as outputs, the scale, and the un-noised answer.

    ``source`` takes the place of the session's; ``broken`` makes other normals of its own.
    """
    gram = Gram(rbf, 1.0)
    with Private(ROWS).open(epsilon=1.0, delta=1e-6) as session:
        session._source = source or session._source
        if broken is not None:
            honest = session._source.normals
            session._source.normals = lambda shape: broken(honest(shape))
        columns = np.repeat(np.asarray(model, dtype=float)[:, None], outputs, axis=1)
        asked_of = InteractiveModel(gram, lambda K: columns, GaussianPath(0.05), Points())
        answers = open_answers(session, asked_of)
        scale = answers._scale
        answers._scale = scale * scale_by
        plain = float((rbf(questions[:1], ROWS) @ model)[0])
        return answers.ask(questions), scale, plain


def on_a_comb(normals):
    """As add_gaussian on zeros would give them."""
    return np.rint(normals * 4096) / 4096


def p_of_scale(answers, plain, scale):
    """P-value that answers to questions with K(z, z) = 1 have noise of this scale."""
    square = float((((answers - plain) / scale) ** 2).sum()) / (1 + 1e-6)
    law = stats.chi2(answers.size)
    return 2 * min(law.cdf(square), law.sf(square))


def test_the_noise_of_an_answer_has_the_stated_scale():
    questions = 100.0 + np.arange(4.0)[:, None]  # far from all rows, and from each other
    model = [0.3, -0.2, 0.1]
    answers, scale, plain = asked(model, 2000, questions)
    assert abs(plain) < 1e-12
    assert p_of_scale(answers, plain, scale) > ALPHA
    for factor in (0.7, 1.3):
        answers, scale, plain = asked(model, 2000, questions, scale_by=factor)
        assert p_of_scale(answers, plain, scale) < ALPHA


def possible(answers, plain, scale):
    """Which answers a path with normals on the comb can give, from this un-noised one."""
    step = scale * math.sqrt(1 + 1e-6) / 4096
    grid = 2.0 ** math.floor(math.log2(scale) - 12)
    nearest = np.rint((answers - plain) / step)
    off = [np.abs(plain + step * (nearest + j) - answers) for j in (-1, 0, 1)]
    return np.minimum.reduce(off) <= grid / 2 * (1 + 1e-6)


def impossible(broken, outputs):
    """How many answers under D are on D's comb and not on that of its neighbour; under D'."""
    counts, question = [], np.zeros((1, 1))
    models = ([0.3, -0.2, 0.1], [0.3 + 1e-5, -0.2, 0.1])
    plain = [float((rbf(question, ROWS) @ model)[0]) for model in models]
    for model in models:
        answers, scale, _ = asked(model, outputs, question, broken=broken)
        one, two = (possible(answers, p, scale) for p in plain)
        counts.append(int((one & ~two).sum()))
    return counts


def test_no_answer_is_possible_under_one_neighbour_alone():
    outputs = 200_000
    with_comb, without = impossible(on_a_comb, outputs)
    assert with_comb > 0.05 * outputs  # the test sees the comb that was there ...
    assert without == 0
    one, two = impossible(None, outputs)  # ... and there is none
    assert stats.fisher_exact([[one, outputs - one], [two, outputs - two]]).pvalue > ALPHA


def test_normals_are_continuous_and_only_the_answer_is_rounded():
    for source in (SecureNoise(), SeededNoise(0)):
        drawn = source.normals((1000, 2))
        assert drawn.shape == (1000, 2)
        assert stats.kstest(drawn.ravel(), "norm").pvalue > ALPHA
        assert (drawn * 2**20 % 1 != 0).mean() > 0.99
    answers, scale, _ = asked([0.3, -0.2, 0.1], 100, np.zeros((1, 1)))
    grid = 2.0 ** math.floor(math.log2(scale) - 12)
    assert (answers / grid % 1 == 0).all()


def test_the_exact_source_refuses_by_name():
    with pytest.raises(PrivacyError, match="noise='secure'"):
        ExactNoise().normals(3)
