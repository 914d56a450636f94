"""The preview: exact noise, honest words, targets, and no private row anywhere."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpadapt.auto.stacking import Reader
from dpadapt.cli import app
from dpadapt.preview import Preview, Target, preview
from dpadapt.preview.asking import classifies
from dpadapt.preview.rehearsal import (
    Rehearsal,
    Stage,
    SubPopulation,
    Tally,
    same_noise_epsilon,
    sub_populations,
)
from dpadapt.preview.result import trust_in_words
from dpadapt.privacy.accounting.calibration import gaussian_mu

pytestmark = pytest.mark.slow

ROWS = 4000
LITTLE = 0.02


def shifted(m=400, seed=0):
    """Two groups of people: the second earns more, and age counts the other way."""
    rng = np.random.default_rng(seed)
    group = np.repeat(["north", "south"], m // 2)
    age = rng.uniform(-1, 1, m)
    town = rng.choice(["A", "B"], m)
    wage = np.where(group == "north", age, 3 - age) + (town == "A") + rng.normal(0, 0.3, m)
    return pd.DataFrame({"age": age, "town": town}), wage, group


@pytest.fixture(scope="module")
def view():
    X, y, groups = shifted()
    return preview(X, y, rows=ROWS, epsilons=[4.0, LITTLE], groups=groups)


def test_a_gap_that_groups_show_is_closed_with_budget(view):
    little, much = view.lines
    assert (little.epsilon, much.epsilon) == (LITTLE, 4.0)
    assert view.gap > 0.5
    assert much.share > 0.8
    assert much.share > little.share + 0.05
    assert much.low <= much.error <= much.high
    assert much.share_low <= much.share <= much.share_high
    assert view.best_error < much.error < view.public_error


def test_targets_are_solved_between_the_rehearsals(view):
    shares = [line.share for line in view.lines]
    middle = Target(sum(shares) / 2, share=True)
    least = view.least_epsilon(middle)
    assert LITTLE < least < 4.0
    assert view.least_rows(middle, least) == pytest.approx(ROWS, abs=1)
    assert view.least_rows(middle, 4.0) < ROWS < view.least_rows(middle, LITTLE)
    assert math.isnan(view.least_epsilon(Target(1e-9)))
    assert math.isnan(view.least_rows(Target(1e-9), 1.0))
    assert view.least_epsilon(Target(1e9)) == LITTLE


def test_it_can_be_written_and_drawn(view, tmp_path):
    facts = json.loads(json.dumps(view.to_dict()))
    assert facts["rows"] == ROWS
    assert [line["epsilon"] for line in facts["lines"]] == [LITTLE, 4.0]
    assert len(view.to_frame()) == len(view.rehearsals) == 2 * 2 * 3
    view.draw().savefig(tmp_path / "view.png")
    assert (tmp_path / "view.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_same_question_has_the_same_answer():
    X, y, groups = shifted(200)
    asked = [preview(X, y, rows=500, epsilons=[1.0], groups=groups) for _ in range(2)]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("played", [10, 300, 5000])
def test_the_noise_is_that_of_the_real_fit(played):
    raised = same_noise_epsilon(0.5, 1e-6, 5000, played)
    wanted = min(25.0, 5000 * gaussian_mu(0.5, 1e-6) / played)
    assert gaussian_mu(raised, 1e-6) == pytest.approx(wanted, rel=1e-6)


def test_rows_are_public_or_play_or_test_and_never_two_of_them():
    X = np.random.default_rng(0).normal(size=(300, 2))
    for rows, played in ((20, 20), (10_000, 70)):
        stage = Stage(X, X[:, 0], Reader(), SubPopulation("x", np.arange(100)), rows, 1e-6, None, 3)
        tests = []
        for turn in range(3):
            play, test = map(set, stage._roles(turn))
            assert len(play) == stage.played == played
            assert not play & test
            assert (play | test) <= set(range(100))
            tests.append(test)
        assert len(set.union(*tests)) == 90  # each round has other test rows
        assert set(stage._public) == set(range(100, 300))


def test_the_middle_of_own_and_other_rows_is_taken():
    y = np.r_[np.zeros(70), np.ones(30)]
    stage = Stage(
        np.zeros((200, 1)),
        np.r_[y, y],
        Reader(),
        SubPopulation("x", np.arange(100)),
        700,
        1e-6,
        None,
        0,
    )
    roles = stage._roles(0)
    own, other = np.mean(stage.y[roles.play] ** 2), np.mean(stage.y[roles.test] ** 2)

    def half(rows):
        return np.full(len(rows), 0.5)

    def nothing(rows):
        return np.zeros(len(rows))

    gains = [value - 0.25 for value in (own, other)]
    wanted = np.mean(gains) - 70 / 700 * (gains[0] - gains[1]) / 2
    assert stage._gain(roles, nothing, half) == pytest.approx(wanted)
    assert stage._gain(roles, nothing, half, fair=False) == pytest.approx(gains[1])


def test_parts_of_a_table():
    X = np.random.default_rng(0).normal(size=(300, 2))
    parts = sub_populations(X)
    assert [len(part.rows) for part in parts[-2:]] == [100, 100]
    assert sum(len(part.rows) for part in parts[:3]) == 300
    alike = sub_populations(np.ones((300, 2)))
    assert [part.name for part in alike] == ["first rows", "last rows"]
    with pytest.raises(ValueError, match="no sub-population of the 60 public rows"):
        sub_populations(X[:60])
    with pytest.raises(ValueError, match="at least two groups"):
        sub_populations(X, np.zeros(300))


@pytest.mark.parametrize("labels", [["a", "b"], [True, False], [0, 1, 2], [1.0, 2.0]])
def test_classes_are_told_by_the_labels(labels):
    assert classifies(np.array(labels))
    assert not classifies(np.array(labels), "regression")


def test_numbers_are_told_by_the_labels():
    assert not classifies(np.arange(30))
    assert not classifies(np.array([0.5, 1.5]))
    assert classifies(np.arange(30), "classification")
    with pytest.raises(ValueError, match="task must be"):
        classifies(np.arange(3), "both")


@pytest.mark.slow
def test_three_classes_one_of_them_rare():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    y[:3] = "perhaps"  # in the first rows alone
    seen = preview(X, y, rows=1000, epsilons=[1.0])
    assert seen.measure == "error rate"
    assert 0 <= seen.lines[0].error < 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": 0}, "rows must be at least 1"),
        ({"epsilons": []}, "epsilons must be positive"),
        ({"epsilons": [0.0]}, "epsilons must be positive"),
        ({"epsilons": [math.inf]}, "epsilons must be positive"),
        ({"delta": 0.0}, "delta must be between"),
        ({"delta": 1.0}, "delta must be between"),
        ({"gap": 0.0}, "gap must be a part"),
        ({"gap": 1.0}, "gap must be a part"),
        ({"groups": ["a"]}, "groups must have one entry"),
        ({"y": np.zeros(3)}, "y must hold one label"),
        ({"y": np.zeros((100, 2))}, "y must hold one label"),
    ],
)
def test_nonsense_is_refused(change, words):
    given = {"X": np.zeros((100, 2)), "y": np.arange(100.0), "rows": 100} | change
    with pytest.raises(ValueError, match=words):
        preview(**given)


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "0%", "150%", "nan", "inf"])
def test_targets_that_say_nothing_are_refused(text):
    with pytest.raises(ValueError, match="target must be"):
        Target.of(text)


def made(part="a", rows=90, epsilon=1.0, error=0.3, best=0.2):
    return Rehearsal(part, rows, epsilon, error, 0.4, best)


def test_words_say_what_cannot_be_known():
    told = " ".join(trust_in_words([made()], 1000, grouped=False, left_out=7))
    for words in (
        "1 public sub-populations",
        "the smallest sub-population has 90",
        "7 public rows",
    ):
        assert words in told
    assert "give it as groups" in told
    quiet = trust_in_words([made()], 50, grouped=True, left_out=0)
    assert len(quiet) == 2
    of_classes = trust_in_words([made()], 50, grouped=True, left_out=0, classes=True)
    assert "little, some or most" in of_classes[1]
    assert "little, some or most" not in quiet[1]
    wide = [made(error=0.2), made("b", error=0.5)]
    assert "disagree" in " ".join(trust_in_words(wide, 50, grouped=True, left_out=0))
    assert "hardly differ" in " ".join(
        trust_in_words([made(best=0.4)], 50, grouped=True, left_out=0)
    )


def test_without_a_gap_there_is_no_share():
    view = Preview(100, 1e-6, "error rate", (made(best=0.4),), ())
    assert math.isnan(view.lines[0].share)
    assert math.isnan(view.least_epsilon(Target.of("50%")))
    assert view.least_epsilon(Target(0.35)) == 1.0


def test_an_expected_gap_moves_the_share_and_not_the_cost():
    seen = Preview(100, 1e-6, "error rate", (made(error=0.38, best=0.36),), ())
    (line,), (more,) = seen.lines, replace(seen, expected_gap=0.5).lines
    assert line.cost == pytest.approx(more.cost) == pytest.approx(0.05)
    assert line.share == pytest.approx(0.5)
    assert more.share == pytest.approx(0.9)
    assert more.error == pytest.approx(0.4 * 0.55)
    assert replace(seen, expected_gap=0.5).best_error == pytest.approx(0.2)
    told = trust_in_words(seen.rehearsals, 50, grouped=True, left_out=0, expected_gap=0.5)
    assert "A gap of 50% of the public error is what you expect" in " ".join(told)
    assert "showed 10%" in " ".join(told)


def test_what_rises_with_epsilon_is_chance_and_averaged():
    errors = {0.5: 0.3, 1.0: 0.34, 2.0: 0.26, 4.0: 0.2}
    found = tuple(made(epsilon=epsilon, error=error) for epsilon, error in errors.items())
    view = Preview(100, 1e-6, "error rate", found, ())
    assert [line.error for line in view.lines] == pytest.approx([0.32, 0.32, 0.26, 0.2])
    assert view.least_epsilon(Target(0.3201)) == 0.5
    assert 1.0 < view.least_epsilon(Target(0.3)) < 2.0


def test_sub_populations_count_by_their_rows():
    few, many = made("a", rows=10, error=0.4, best=0.4), made("b", rows=90, error=0.2, best=0.2)
    view = Preview(100, 1e-6, "error rate", (few, many), ())
    assert view.gap == pytest.approx(0.45)
    assert view.lines[0].error == pytest.approx(0.22)
    assert view.lines[0].low <= view.lines[0].error <= view.lines[0].high


def test_a_gap_that_may_be_chance_is_told():
    both = [made("a", best=0.2), made("b", best=0.4)]
    told = " ".join(trust_in_words(both, 50, grouped=True, left_out=0))
    assert "The gap of 25% may be chance" in told
    assert "chance" not in " ".join(
        trust_in_words([made(), made("b")], 50, grouped=True, left_out=0)
    )


def test_no_error_at_all_is_no_gap():
    view = Preview(9, 1e-6, "error rate", (Rehearsal("a", 9, 1.0, 0.0, 0.0, 0.0),), ())
    assert view.gap == 0.0
    assert view.lines[0].error == 0.0


# the command


@pytest.fixture
def table(tmp_path):
    X, y, groups = shifted()
    file = tmp_path / "a.csv"
    X.assign(wage=y, region=groups).to_csv(file, index=False)
    return file


def run(*given):
    result = CliRunner().invoke(app, ["preview", *map(str, given)])
    return result.exit_code, " ".join(result.output.split())


def test_the_command_shows_a_table_and_writes_three_files(table, tmp_path):
    asked = ("--public", table, "--label", "wage", "--groups", "region", "--rows", ROWS)
    out = tmp_path / "view"
    more = ("--epsilon", "0.5", "4", "--target", "50%", "--out", out)
    code, text = run(*asked, *more)
    assert code == 0, text
    for words in ("400 rows, 2 columns", "Rehearsed on public rows", "about epsilon", "or less"):
        assert words in text
    assert {file.name for file in out.iterdir()} == {"preview.json", "preview.csv", "preview.png"}
    facts = json.loads((out / "preview.json").read_text(encoding="utf-8"))
    assert [line["epsilon"] for line in facts["lines"]] == [0.5, 4.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--label", "pay"), "has no column 'pay' for the label"),
        (("--groups", "town hall"), "--groups: the public file has no column 'town hall'"),
        (("--target", "most"), "target must be an error"),
        (("--epsilon", "-1"), "epsilon must be a positive"),
        (("--public", "nowhere.csv"), "there is no file nowhere.csv"),
    ],
)
def test_the_command_refuses_nonsense_in_one_line(table, change, words):
    code, text = run("--public", table, "--label", "wage", "--rows", 100, *change)
    assert code == 1
    assert words in text


def test_the_command_chooses_columns_and_task_as_fit_does(table, tmp_path):
    frame = pd.read_csv(table).assign(person_id=range(400), land="X", grade=[1, 2, 3, 4] * 100)
    frame.drop(columns="wage").to_csv(tmp_path / "b.csv", index=False)
    asked = ("--public", tmp_path / "b.csv", "--label", "grade", "--groups", "region")
    code, text = run(*asked, "--rows", 100, "--epsilon", "1", "--drop", "town")
    assert code == 0, text
    assert "person_id (looks like an id)" in text
    assert "land (constant in public rows)" in text
    assert "400 rows, 1 columns" in text
    assert "error (MSE)" in text  # as fit would take them


@pytest.mark.slow
def test_public_rows_without_a_label_are_left_out_and_told(table):
    frame = pd.read_csv(table)
    frame.loc[:9, "wage"] = None
    frame.to_csv(table, index=False)
    asked = ("--public", table, "--label", "wage", "--groups", "region", "--rows", 100)
    code, text = run(*asked, "--epsilon", "1")
    assert code == 0
    assert "10 public rows have no label" in text


def test_the_command_knows_how_files_are_written(table):
    X, y, groups = shifted()
    written = {"index": False, "sep": ";", "decimal": ",", "encoding": "cp1252"}
    X.assign(wage=y, region=groups).to_csv(table, **written)
    asked = ("--public", table, "--label", "wage", "--groups", "region", "--rows", ROWS)
    code, text = run(*asked, "--epsilon", "1")
    assert code == 0, text
    assert "separator semicolon, decimal comma" in text
    assert "400 rows, 2 columns" in text
    assert "--sep must be one character" in run(*asked, "--sep", "ab")[1]


def test_a_class_that_no_rehearsal_predicts_is_told():
    rng = np.random.default_rng(0)
    ill = rng.random(700) < 0.05
    X = rng.normal(size=(700, 2)) + ill[:, None]
    view = preview(X, np.where(ill, "ill", "well"), rows=2000, epsilons=[1.0])
    (told,) = (each for each in view.notes if each.startswith("Class "))
    assert "Class 'ill' is" in told
    assert "--threshold" in told
    fair = preview(X, X[:, 0] > 0, rows=2000, epsilons=[1.0])
    assert not any(each.startswith("Class ") for each in fair.notes)


def test_a_tally_counts_what_is_there_predicted_and_found():
    tally = Tally(np.array(["a", "b"]))
    tally.add(np.array(["a", "b", "b"]), np.array(["a", "a", "b"]))
    tally.add(np.array(["b"]), np.array(["b"]))
    assert tally.rows == 4
    assert (tally.counts.tolist(), tally.predicted.tolist()) == ([1, 3], [2, 2])
    assert tally.found.tolist() == [1, 2]
    assert list(tally.sentences()) == []
