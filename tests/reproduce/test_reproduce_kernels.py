"""The experiments of paper 002: on made-up stand-ins for its data, and briefly on real ones."""

import dataclasses
import math
import os

import numpy as np
import pandas as pd
import pytest

from dpadapt.papers.kernels.machines import MachineFacts
from paper_command import call, needs_data
from reproduce.data.classes import ClassData
from reproduce.data.files import MissingDataError
from reproduce.kernels import algorithm_3, data, figure_2a, figure_2b, questions, synthetic
from reproduce.kernels.algorithm_3 import bound_on_delta, draw_losses, printed_tilt, repaired_tilt
from reproduce.kernels.data import Texts, hashed_words, load_cover, load_review_texts
from reproduce.kernels.methods import (
    ASKED,
    LINEAR,
    MAJORITY,
    NO_PRIVACY,
    OURS,
    PRINTED_PINP,
    PRINTED_TDDL,
    RELEASED,
    fit_released,
)
from reproduce.kernels.page import PAPER
from reproduce.kernels.questions import stated_noise
from reproduce.kernels.style import STYLES
from reproduce.kernels.synthetic import draw_task

pytestmark = pytest.mark.slow


def made_up_cover(classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, 4))
    return ClassData(X, (X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.2).astype(np.int64))


def made_up_texts():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    words = {1.0: ["good", "great", "fine"], -1.0: ["bad", "poor", "dull"]}
    texts = [" ".join(rng.choice(words[label] + ["book", "it"], 6)) for label in labels]
    return Texts(texts, labels)


@pytest.fixture
def stand_ins(monkeypatch):
    """Every data set and size of the experiments replaced by a small one."""
    monkeypatch.setattr(figure_2a, "load_cover", made_up_cover)
    monkeypatch.setattr(figure_2a, "PUBLIC", 60)
    monkeypatch.setattr(figure_2a, "TEST", {"lodgepole": 200, "upland": 200})
    monkeypatch.setattr(synthetic, "ROWS", 4_000)
    monkeypatch.setattr(questions, "ROWS", 400)
    monkeypatch.setattr(questions, "COUNTS", (1, 10, 100))
    monkeypatch.setattr(figure_2b, "texts", made_up_texts)
    for name, size in (("COLUMNS", 2**10), ("FEW_COLUMNS", 8), ("PUBLIC", 40), ("TEST", 60)):
        monkeypatch.setattr(figure_2b, name, size)
    monkeypatch.setattr(figure_2b, "ASKED", 20)
    monkeypatch.setattr(algorithm_3, "_RUNS", 20_000)


@pytest.mark.slow
def test_everything_runs_and_says_where_it_is_not_the_papers(stand_ins, tmp_path):
    code, text = call("002", "--quick", "--repeats", 1, "--out", tmp_path)
    assert code == 0, text
    files = {f"{each.file}.{end}" for each in PAPER.experiments for end in ("csv", "png")}
    assert set(os.listdir(tmp_path)) == files | {"index.html", "index.md"}
    page = (tmp_path / "index.md").read_text(encoding="utf-8")
    for words in (*figure_2a.CAVEATS.values(), synthetic.CAVEAT, figure_2b.CAVEAT, "72.3"):
        assert words in page
    for each in PAPER.experiments:
        assert "ot the paper's" in each.about or "ot in the paper" in each.about
    for name in ("2a", "synthetic", "2b"):
        table = pd.read_csv(tmp_path / f"figure_{name}.csv")
        assert set(table["method"]) <= set(STYLES)
        ours = table[table["method"] == OURS]
        assert len(ours)
        assert (ours["true_epsilon"] / ours["epsilon"]).between(0.99, 1 + 1e-9).all()
        printed = table[table["method"] == PRINTED_TDDL]
        assert (printed["true_epsilon"] < printed["epsilon"]).all()
    cover = pd.read_csv(tmp_path / "figure_2a.csv")
    assert set(cover["method"]) >= {*RELEASED, *ASKED, LINEAR, MAJORITY, NO_PRIVACY}
    assert (cover.loc[cover["method"] == PRINTED_PINP, "true_epsilon"] < 0.1).all()


def test_list_and_unknown_figure(tmp_path):
    code, text = call("002", "--list")
    assert code == 0
    for each in PAPER.experiments:
        assert each.title.split(",")[0] in text
    code, text = call("002", "--figure", "9", "--out", tmp_path / "x")
    assert code == 1
    assert "synthetic" in text


def test_missing_data_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv("DPADAPT_DATA", raising=False)
    with pytest.raises(MissingDataError, match="DPADAPT_DATA"):
        load_review_texts()
    code, text = call("002", "--figure", "2a", "--quick", "--out", tmp_path)
    assert code == 1
    assert "DPADAPT_DATA" in text


def test_parts_of_a_split_are_disjoint_and_seeds_differ(stand_ins):
    split = figure_2a.draw_split("lodgepole", 1)
    parts = [split.X, split.X_private, split.X_test]
    assert [len(part) for part in parts] == [60, 640, 200]
    assert len(np.unique(np.concatenate(parts)[:, 0])) == 900
    assert not np.array_equal(split.X, figure_2a.draw_split("lodgepole", 2).X)


def test_nothing_private_depends_on_test_labels(stand_ins):
    split = draw_task(0, 2_000)
    other = dataclasses.replace(split, y_test=-split.y_test)
    for name in RELEASED:
        first, second = (fit_released(name, each, 1.0) for each in (split, other))
        rows = split.X_test[:50]
        assert np.array_equal(first.decision_function(rows), second.decision_function(rows))


def test_made_up_task_is_cubic_and_has_the_stated_majority():
    split = draw_task(0, 20_000)
    assert np.linalg.norm(split.X_private, axis=1).max() <= 1
    assert 0.53 < split.majority < 0.63
    exact = split.accuracy(fit_released(OURS, split, 1e6, penalty=synthetic.PENALTY))
    assert 0.80 < exact < 0.88
    linear = fit_released(OURS, split, 1e6, penalty=synthetic.PENALTY, kernel__degree=1)
    assert split.accuracy(linear) < exact


def test_noise_of_ours_is_flat_and_that_of_the_others_grows():
    few, many = (MachineFacts(0.01, 1.0, 5.0, 1.0, 1e-6, count) for count in (10, 1_000))
    for method in (OURS, questions.PATH):
        assert stated_noise(method, few) == stated_noise(method, many)
    for method in questions.TDDL:
        grown = stated_noise(method, many) / stated_noise(method, few)
        assert grown == pytest.approx(10, rel=0.35)
    for method in (PRINTED_PINP, "PINP, least noise", "sparse vector"):
        assert stated_noise(method, many) > stated_noise(method, few)


@pytest.mark.parametrize("method", [OURS, questions.PATH])
def test_measured_error_is_the_stated_noise(monkeypatch, method):
    monkeypatch.setattr(questions, "ROWS", 1_000)
    found = [
        line
        for seed in range(4)
        for line in questions.run_cell(questions.Cell(method, seed, (100,)))
    ]
    ratio = math.sqrt(np.mean([(line["error"] / line["noise"]) ** 2 for line in found]))
    assert 0.3 < ratio < 1.3  # points inside the ball have less than the bound


def test_printed_choice_fails_and_the_repaired_one_holds():
    updates, printed = printed_tilt(1_000_000)
    losses = draw_losses(printed, updates, 5_000)
    delta = np.maximum(0.0, -np.expm1(1 - losses)).mean()
    assert delta == pytest.approx(0.971, abs=0.02)
    repaired = repaired_tilt(1_000_000, updates)
    assert bound_on_delta(repaired, updates) < 1e-6 < bound_on_delta(printed, updates)
    # the bound is one: it is above what is seen
    seen = np.maximum(0.0, -np.expm1(1 - draw_losses(0.3, 66, 5_000))).mean()
    assert bound_on_delta(0.3, 66) > seen > 0


def test_words_of_a_text_do_not_depend_on_other_texts():
    both, alone = hashed_words(["a good book", "a bad one"]), hashed_words(["a bad one"])
    assert (both[1] != alone[0]).nnz == 0
    assert np.allclose(both.multiply(both).sum(axis=1), 1)


def test_class_proportions_are_restored(monkeypatch):
    codes = np.repeat(np.arange(7), 200)
    monkeypatch.setattr(
        data, "load_covertype", lambda: ClassData(codes[:, None].astype(float), codes)
    )
    X, y = load_cover("lodgepole", 0)
    kept = np.bincount(X[:, 0].astype(int), minlength=7)
    assert kept[1] == 200 == y.sum()
    assert kept[0] == round(200 * 211_840 / 283_301)
    assert len(load_cover("upland", 0).y) == 1_400


@needs_data
def test_reviews_on_real_data():
    given = load_review_texts()
    assert len(given.texts) == len(set(given.texts)) == 7_854
    assert set(given.labels) == {-1.0, 1.0}


@needs_data
def test_cover_on_real_data():
    split = figure_2a.draw_split("lodgepole", 0)
    assert split.X_private.shape == (3_329, 54)
    assert 0.49 < split.majority < 0.56
    assert len(figure_2a.draw_split("upland", 0).y_private) == 10_020
