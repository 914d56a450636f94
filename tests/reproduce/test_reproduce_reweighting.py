"""The experiments of paper 001: on made-up stand-ins for its data, and briefly on the real ones."""

import dataclasses
import math
import os

import numpy as np
import pandas as pd
import pytest

from paper_command import call, needs_data
from reproduce.data import reviews
from reproduce.data.shifted import ShiftedData
from reproduce.markdown import write_markdown
from reproduce.page import run_experiments, write_page
from reproduce.reweighting import (
    components,
    figures_1_to_4,
    gains,
    methods_without_privacy,
    private_methods,
    splits,
    tables,
)
from reproduce.reweighting import data as loaders
from reproduce.reweighting.curves import summarise_curves
from reproduce.reweighting.gains import gain_findings, gaps, summarise_gains
from reproduce.reweighting.page import PAPER
from reproduce.reweighting.published import ACCURACY, RELATIVE_ERRORS, REVIEW_ERRORS
from reproduce.reweighting.splits import Dataset, Sizes, Split, draw
from reproduce.reweighting.table_1 import TABLE_1, relative, summarise_relative
from reproduce.reweighting.table_3 import TABLE_3
from reproduce.reweighting.table_4 import TABLE_4
from reproduce.reweighting.tables import caveat
from reproduce.reweighting.verdicts import CLAIMS
from reproduce.runs import Options
from reproduce.verdicts import printed

pytestmark = pytest.mark.slow


def made_up(seed, *, classes=False, n=900, d=3):
    """Source and target with other slopes; the target is shifted."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(600, d)), rng.normal(0.5, 0.8, size=(n, d))
    y = X @ np.linspace(1, 0.2, d) + 0.3 * rng.normal(size=600)
    z = Z @ np.linspace(0.5, 0.6, d) + 0.3 * rng.normal(size=n)
    if classes:
        y, z = (y > 0).astype(float), (z > 0.4).astype(float)
    return ShiftedData(X, y, Z, z)


@pytest.fixture
def stand_ins(monkeypatch):
    """Every data set of the paper replaced by the made-up one, under its own name."""

    def small(dataset):
        sizes = dataclasses.replace(dataset.sizes, source=200, train=150, validation=60, test=100)

        def load(seed):
            return made_up(seed, classes=dataset.classes, n=460)

        return dataclasses.replace(dataset, load=load, sizes=sizes)

    for module, name in (
        (tables, "DATASETS"),
        (figures_1_to_4, "_SETS"),
    ):
        known = getattr(module, name)
        monkeypatch.setattr(module, name, {key: small(each) for key, each in known.items()})
    monkeypatch.setattr(tables, "_QUICK", ("Wind", "kitchen → dvd", "German"))
    few = {name: each for name, each in gains.GAINS.items() if "0." not in name}
    monkeypatch.setattr(gains, "GAINS", few)
    monkeypatch.setattr(figures_1_to_4, "GAS_SIZES", (80, 250))
    monkeypatch.setattr(figures_1_to_4, "ADULT_SIZES", (80, 250))
    monkeypatch.setattr(figures_1_to_4, "GAS_RESAMPLED", (3000,))
    monkeypatch.setattr(figures_1_to_4, "ADULT_RESAMPLED", (3000,))
    monkeypatch.setattr(components, "load_gas_and_kind", gas_stand_in)
    monkeypatch.setattr(components, "_TRAIN", 250)


def gas_stand_in():
    rng = np.random.default_rng(0)

    def sample(n, shift):
        kinds = np.eye(6)[rng.integers(6, size=n)][:, 1:]
        sensors = rng.normal(size=(n, 128))
        return np.hstack([sensors, kinds]), np.clip(3 + sensors[:, 0] + shift, 0.1, 6.0)

    return ShiftedData(*sample(400, 0.0), *sample(350, 0.5))


@pytest.mark.slow
def test_everything_runs_and_says_where_it_is_not_the_papers(stand_ins, tmp_path):
    code, text = call("001", "--quick", "--repeats", 1, "--out", tmp_path)
    assert code == 0, text
    files = {f"{each.file}.{end}" for each in PAPER.experiments for end in ("csv", "png")}
    assert set(os.listdir(tmp_path)) == files | {"index.html", "index.md"}
    page = (tmp_path / "index.md").read_text(encoding="utf-8")
    for name in ("Wind", "kitchen → dvd", "German"):
        assert caveat(name) in page
    assert "1.009 ± 0.035" in page  # published, beside ours
    assert "![" in page
    for each in PAPER.experiments:
        table = pd.read_csv(tmp_path / f"{each.file}.csv")
        assert np.isfinite(table["error"]).all()
        ours = table[table["method"].str.startswith("dpadapt")]
        assert len(ours)
        asked = ours["method"].str.extract(r"epsilon (.*)")[0].astype(float)
        asked = asked.fillna(ours["epsilon"]) if "epsilon" in ours else asked
        assert (ours["true_epsilon"] / asked).between(0.9, 1 + 1e-9).all()


def test_copy_of_the_page_takes_its_pictures_along(tmp_path):
    paper = dataclasses.replace(PAPER, experiments=[PAPER.choose("table-1")])
    out = tmp_path / "out"
    out.mkdir()
    lines = [
        {"dataset": "Wind", "n": 9, "repeat": 0, "method": method, "error": 1.0,
         "true_epsilon": 1.0}
        for method in TABLE_1
    ]  # fmt: skip
    lines += [line | {"dataset": "Gas", "repeat": repeat} for line in lines for repeat in (0, 1)]
    pd.DataFrame(lines).to_csv(out / "figure_table-1.csv", index=False)
    write_page(paper, out)
    page = write_markdown(paper, out, tmp_path / "copy.md").read_text(encoding="utf-8")
    assert "Draws of data and noise: 1 to 2." in page
    assert "(copy_figure_table-1.png)" in page
    assert (tmp_path / "copy_figure_table-1.png").exists()


def test_splits_are_disjoint_and_test_rows_do_not_depend_on_n():
    rows = np.arange(1000.0)[:, None]
    data = Dataset(
        "made",
        lambda seed: ShiftedData(rows, rows[:, 0], rows, rows[:, 0]),
        Sizes(100, 50, 30, 20),
        "",
    )
    split, whole = draw(data, 3), draw(data, 3, 0)
    parts = [split.X_private, split.X_validation, split.X_test]
    assert [len(part) for part in parts] == [50, 30, 20]
    assert len(np.unique(np.concatenate(parts))) == 100
    assert np.array_equal(split.X_test, whole.X_test)
    assert whole.n == 980
    assert not set(whole.X_private.ravel()) & set(whole.X_test.ravel())
    assert np.array_equal(draw(data, 3).X_private, split.X_private)
    assert not np.array_equal(draw(data, 4).X_private, split.X_private)
    assert (split.y.min(), split.y.max()) == (-1.0, 1.0)


def test_labels_are_scaled_by_public_rows_only():
    def load(shift):
        return lambda seed: made_up(seed)._replace(y_private=made_up(seed).y_private + shift)

    sizes = Sizes(None, 100, 50, 50)
    first, second = (draw(Dataset("made", load(by), sizes, ""), 0) for by in (0.0, 7.0))
    assert np.array_equal(first.y, second.y)


def test_drawing_people_with_replacement_is_refused(stand_ins):
    with pytest.raises(ValueError, match="voids the guarantee"):
        figures_1_to_4.run_cell(figures_1_to_4.Cell("Gas", 3000, 0, (1.0,)))


def test_lines_of_copied_people_are_marked_as_not_private():
    line = {"dataset": "Gas", "epsilon": 1.0, "method": "dpadapt", "error": 0.5, "true_epsilon": 1}
    table = pd.DataFrame([line | {"n": 80, "copies": 1.0}, line | {"n": 3000, "copies": 10.0}])
    marks = summarise_curves(table, methods=("dpadapt",)).set_index("n")["private"]
    assert marks[3000] == "NO: each person 10.0 times"
    assert marks[80] == "yes"


@pytest.mark.slow
def test_resampled_runs_are_marked_as_not_private(stand_ins, tmp_path):
    code, text = call(
        "001", "--figure", "1", "--quick", "--repeats", 1, "--resample", "--out", tmp_path
    )
    assert code == 0, text
    assert "NOT private" in text
    assert "each person appears" in text
    table = pd.read_csv(tmp_path / "figure_1.csv")
    assert set(table["n"]) == {80, 250, 3000}
    copies = table.groupby("n")["copies"].first()
    assert copies[80] == copies[250] == 1
    assert copies[3000] == pytest.approx(3000 / 300)
    found = summarise_curves(table, methods=("dpadapt",))
    marks = found.set_index("n")["private"]
    assert marks[3000].str.startswith("NO: each person 10.0 times").all()
    assert (marks[80] == "yes").all()


def test_resampling_belongs_to_this_paper():
    code, text = call("000", "--resample", "--figure", "1")
    assert code == 1
    assert "no private people with replacement" in text


def test_list_and_unknown_figure(tmp_path):
    code, text = call("001", "--list")
    assert code == 0
    for each in PAPER.experiments:
        assert each.title.split(",")[0] in text
    code, text = call("001", "--figure", "9", "--out", tmp_path / "x")
    assert code == 1
    assert "table-1" in text


def test_missing_data_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv("DPADAPT_DATA", raising=False)
    monkeypatch.setattr(splits, "_reviews", reviews.load_reviews)
    options = Options(repeats=1, quick=True)
    missing = run_experiments([PAPER.choose("table-3")], tmp_path, options)
    assert len(missing) == 1
    assert "DPADAPT_DATA" in missing[0]


@pytest.fixture
def split():
    return draw(Dataset("made", made_up, Sizes(None, 300, 100, 300), ""), 0)


@pytest.fixture
def class_split():
    def load(seed):
        return made_up(seed, classes=True)

    return draw(Dataset("made", load, Sizes(None, 300, 100, 300), "", classes=True), 0)


@pytest.mark.parametrize("name", ["mean_matching", "discrepancy_minimisation", "source_only"])
def test_methods_without_target_labels_are_near_the_source(split, name):
    found = methods_without_privacy.error(
        split, getattr(methods_without_privacy, name)(split).predict
    )
    target = methods_without_privacy.error(
        split, methods_without_privacy.target_only(split).predict
    )
    assert target < found < 10 * target


@pytest.mark.parametrize("which", ["split", "class_split"])
def test_adaptation_is_no_worse_than_target_only_where_it_is_chosen(which, request):
    given = request.getfixturevalue(which)
    errors = [
        methods_without_privacy.error(given, method(given).predict, "validation")
        for method in (methods_without_privacy.adaptation, methods_without_privacy.target_only)
    ]
    assert errors[0] <= errors[1] + 1e-9


def test_validation_rows_are_what_settings_are_chosen_on(split):
    other = dataclasses.replace(split, y_validation=-split.y_validation)
    rows = split.X_test
    chosen, misled = (
        methods_without_privacy.target_only(each).predict(rows) for each in (split, other)
    )
    assert not np.allclose(chosen, misled)
    # but no private method looks at them
    for method in (
        private_methods.known_noise,
        private_methods.noisy_gradient,
        private_methods.printed,
    ):
        first, second = (method(each, epsilon=1.0).predict(rows) for each in (split, other))
        assert np.array_equal(first, second)


def test_more_budget_is_better_and_public_only_spends_nothing(split):
    assert private_methods.public_only(split).epsilon == 0
    public = methods_without_privacy.error(split, private_methods.public_only(split).predict)
    ours = methods_without_privacy.error(
        split, private_methods.known_noise(split, epsilon=8.0).predict
    )
    oracle = methods_without_privacy.error(split, private_methods.oracle_private(split).predict)
    assert oracle < ours < public


def test_printed_constants_do_not_keep_a_small_epsilon(split):
    assert private_methods.printed(split, epsilon=0.5).epsilon > 0.5


def lines(dataset, n, errors):
    return [
        {"dataset": dataset, "n": n, "repeat": repeat, "method": method, "error": value}
        for method, values in errors.items()
        for repeat, value in enumerate(values)
    ]


def test_gaps_find_gains_losses_and_no_gap():
    table = pd.DataFrame(
        lines(
            "Wind",
            100,
            {
                "public only": [1.0, 1.1, 0.9],
                "private rows, no privacy": [0.9, 0.9, 0.9],
                "both, no privacy": [0.5, 0.6, 0.4],
                "dpadapt, epsilon 0.5": [1.2, 1.31, 1.1],
                "dpadapt, epsilon 1": [0.7, 0.9, 0.65],
            },
        )
        + lines(
            "News",
            100,
            {
                "public only": [1.0, 1.0, 1.0],
                "both, no privacy": [0.995, 0.995, 0.995],
                "dpadapt, epsilon 1": [1.0, 1.001, 1.0],
            },
        )
    )
    found = gaps(table).set_index(["dataset", "epsilon"])
    assert found["gap"]["Wind", 1.0] == pytest.approx(0.5)
    assert found["worse"]["Wind", 0.5]
    assert not found["worse"]["Wind", 1.0]
    assert math.isnan(found["gap"]["News", 1.0])
    assert not found["worse"]["News", 1.0]
    sentences = " ".join(gain_findings(table))
    assert "50% and 50% at epsilon 1." in sentences
    assert "Wind, n = 100, epsilon 0.5" in sentences


def test_a_gain_is_counted_as_it_is_printed():
    """Settings that are equal in print were counted as worse above, and as good below."""
    table = pd.DataFrame(
        lines(
            "Wind",
            100,
            {
                "public only": [0.5],
                "public only, standardised": [0.5],
                "both, no privacy": [0.4],
                "private only, epsilon 0.5": [0.6],
                "private only, epsilon 1": [0.6],
                "dpadapt, epsilon 0.5": [0.50001],
                "dpadapt, epsilon 1": [0.5002],
            },
        )
    )
    claim = CLAIMS["gains"][0]
    found = claim.found(printed(summarise_gains(table)))
    assert (found.good, found.of) == (1, 2)
    sentences = gain_findings(table)
    assert "larger mean error than public only in 1 of 2 settings" in " ".join(sentences)
    assert "has the smaller mean error than ours in 1 of 2 settings" in " ".join(sentences)


def test_an_approach_tells_its_limit():
    """The numbers grow and so does the gap, as their limit grows more."""
    two = "PNCnvxAdap as printed"
    table = [
        {"n": "500", "epsilon": "15", two: "91.40 ± 0.1", "NCnvxAdap": "91.70 ± 0.2"},
        {"n": "10000", "epsilon": "15", two: "91.90 ± 0.1", "NCnvxAdap": "92.32"},
    ]
    found = CLAIMS["4"][1].found(table)
    assert found.word == "fails here"
    assert found.told == (
        "epsilon 15: 91.40 at n = 500 with a limit of 91.70 (gap 0.30), "
        "91.90 at n = 10000 with a limit of 92.32 (gap 0.42)"
    )


def test_relative_errors_are_taken_within_a_split():
    table = pd.DataFrame(lines("Wind", 9, {"target only": [1.0, 4.0], "KMM": [2.0, 4.0]}))
    found = relative(table)
    assert found.loc[found["method"] == "KMM", "value"].tolist() == [2.0, 1.0]
    summary = summarise_relative(table.assign(true_epsilon=math.inf))
    assert summary["KMM"].tolist() == ["1.500 ± 0.707"]


def test_published_numbers_have_the_tables_names():
    assert set(RELATIVE_ERRORS) == set(splits.REGRESSION)
    assert set(REVIEW_ERRORS) == set(splits.AMAZON)
    assert set(ACCURACY) == set(splits.CLASSES)
    for published, table in (
        (RELATIVE_ERRORS, TABLE_1),
        (REVIEW_ERRORS, TABLE_3),
        (ACCURACY, TABLE_4),
    ):
        for each in published.values():
            assert set(each) <= set(table)


def test_error_counts_wrong_classes():
    rows, labels = np.zeros((4, 1)), np.array([0.0, 1.0, 1.0, 1.0])
    split = Split(rows, labels, rows, labels, rows, labels, rows, labels, True, 0)
    assert methods_without_privacy.error(split, lambda X: np.ones(len(X))) == 0.25


@needs_data
@pytest.mark.parametrize(
    ("load", "source", "target"),
    [
        ("load_wind_month", (6016, 11), (558, 11)),
        ("load_airline", (120645, 11), (45696, 11)),
        ("load_gas_and_kind", (4397, 133), (2300, 133)),
        ("load_news", (7379, 20), (549, 20)),
        ("load_adult", (30527, 33), (14695, 33)),
        ("load_german", (562, 49), (438, 49)),
        ("load_accent", (210, 12), (119, 12)),
    ],
)
def test_loaders(load, source, target):
    data = getattr(loaders, load)()
    assert data.X_public.shape == source
    assert data.X_private.shape == target
    assert all(np.isfinite(part).all() for part in data)


@needs_data
def test_directions_of_words_come_from_public_rows():
    split = draw(splits.AMAZON["kitchen → dvd"], 0)
    assert (len(split.y), split.n, len(split.y_test)) == (700, 300, 1000)
    assert set(np.unique(split.y)) == {-1.0, 1.0}
    assert np.mean(np.sum(split.X**2, axis=1)) == pytest.approx(1.0)
    assert np.mean(np.sum(split.X_test**2, axis=1)) < 1.0  # directions fit the source better


@needs_data
def test_figure_stops_where_the_people_stop():
    with pytest.raises(ValueError, match="only 1,300 private people"):
        figures_1_to_4.run_cell(figures_1_to_4.Cell("Gas", 5000, 0, (1.0,)))


@needs_data
def test_accent_on_real_data():
    table = pd.DataFrame(tables.run_cell(tables.Cell(TABLE_4, "Accent", 0)))
    found = table.set_index("method")["error"]
    assert found["target only"] < found["source only"]
