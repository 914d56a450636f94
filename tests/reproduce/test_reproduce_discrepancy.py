"""The experiments of paper 000: a tiny run of the command, and what its numbers must show."""

import html
import os

import numpy as np
import pandas as pd
import pytest

from paper_command import call, needs_data
from reproduce.data.files import MissingDataError, data_file
from reproduce.data.shifted import load_gas, load_wind
from reproduce.discrepancy.crossover import crossover_findings
from reproduce.discrepancy.curves import best_mu, draw_figure, summarise_figure
from reproduce.discrepancy.figures_1_and_2 import run_cell
from reproduce.discrepancy.methods import ORACLE_METHODS, Cell
from reproduce.discrepancy.page import PAPER
from reproduce.discrepancy.wind_and_gas import principal_components, real_findings
from reproduce.page import run_experiments, write_page
from reproduce.runs import Options, run_cells

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Figures 1 and 2 with one repeat, and their page."""
    out = tmp_path_factory.mktemp("here") / "reproduce"
    code, text = call("000", "--figure", "1", "--quick", "--repeats", 1, "--out", out)
    assert code == 0, text
    code, text = call("000", "--figure", "crossover", "--quick", "--repeats", 1, "--out", out)
    assert code == 0, text
    return out


@pytest.fixture(scope="module")
def whole(folder):
    return pd.read_csv(folder / "figure_1.csv")


@pytest.fixture(scope="module")
def table(whole):
    """Without the lines of epsilon infinity."""
    return whole[np.isfinite(whole["epsilon"])]


def test_list_names_every_figure():
    code, text = call("000", "--list")
    assert code == 0
    for each in PAPER.experiments:
        assert each.name in text
        assert each.title in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["000", "--figure", "9"], "there are 1, 2, crossover, wind, gas"),
        (["007"], "there is no paper '007'"),
        (["007", "--list"], "there is no paper '007'"),
    ],
)
def test_unknown_figure_or_paper(tmp_path, arguments, words):
    code, text = call(*arguments, *(["--out", tmp_path / "x"] if "--list" not in arguments else []))
    assert code == 1
    assert words in text
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_files_stay_from_run_to_run(folder):
    names = {"figure_1.csv", "figure_1.png", "figure_crossover.csv", "figure_crossover.png"}
    assert set(os.listdir(folder)) == names | {"index.html", "index.md"}
    text = (folder / "index.md").read_text(encoding="utf-8")
    assert all(name in text for name in names if name.endswith(".png"))
    page = html.unescape((folder / "index.html").read_text(encoding="utf-8"))
    assert page.count("data:image/png;base64,") == 2
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "Not run, or its data is missing" in page
    for name, choice in PAPER.unstated.items():
        assert name in page
        assert choice.split(",")[0] in page


def test_out_must_be_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    code, text = call("000", "--figure", "crossover", "--quick", "--out", tmp_path / "file")
    assert code == 4
    assert "file" in text


def test_numbers_are_finite_and_ordered(table):
    assert np.isfinite(table["mse"]).all()
    assert np.isfinite(table.loc[table["method"] != "private labels", "discrepancy"]).all()
    for _, cell in table.groupby(["n", "epsilon"]):
        found = cell.set_index("method")["discrepancy"]
        assert found["moments"] < found["Frank-Wolfe, tight"] < found["Frank-Wolfe, printed"]
        assert found["moments"] < found["mirror descent, tight"] < found["mirror descent, printed"]
        assert found["no privacy"] < found["moments"]
        errors = cell.set_index("method")["mse"]
        assert errors["private labels"] < errors["moments"] < errors["public only"]


def test_calibrated_methods_spend_what_was_asked_and_printed_ones_less(table):
    spent = table.set_index("method")["true_epsilon"] / table["epsilon"].to_numpy()
    exact = spent[[name for name in spent.index if "tight" in name or "moments" in name]]
    printed = spent[[name for name in spent.index if "printed" in name]]
    assert exact.between(0.99, 1.0 + 1e-9).all()
    assert printed.between(0.0, 0.5, inclusive="neither").all()


def test_algorithms_without_noise_are_better_than_with_it(whole):
    """Few steps only, so that they are far from done; the single stage has its own objective."""
    free, noisy = whole[np.isinf(whole["epsilon"])], whole[np.isfinite(whole["epsilon"])]
    assert set(free["n"]) == set(whole["n"])
    found, printed = (part.groupby("method")["discrepancy"].mean() for part in (free, noisy))
    for algorithm in ("Frank-Wolfe", "mirror descent", "single stage"):
        assert found[f"{algorithm}, no noise"] < 0.5 * printed[f"{algorithm}, printed"]
    assert (free["true_epsilon"] == np.inf).all()


def test_figure_2_shows_the_three_algorithms_at_epsilon_infinity(whole):
    figure = draw_figure(whole, "mse")
    for axes in figure.axes:
        assert any("∞" in label for label in axes.get_legend_handles_labels()[1])
    shown = summarise_figure(whole, "mse")
    line = shown[shown["epsilon"] == "infinity"].iloc[-1]
    assert all(
        line[f"{each}, printed"] for each in ("Frank-Wolfe", "mirror descent", "single stage")
    )


def test_oracle_takes_the_best_mu_of_each_cell(table):
    kept = best_mu(table, "discrepancy")
    oracle = kept[kept["method"].str.contains("oracle")].set_index("n")["discrepancy"]
    given = table[table["method"].isin(ORACLE_METHODS)]
    pd.testing.assert_series_equal(
        oracle, given.groupby("n")["discrepancy"].min(), check_names=False
    )


def test_same_seed_same_numbers():
    cell = Cell(n=1000, epsilon=1.0, repeat=3, steps=3)
    first, second = (pd.DataFrame(run_cell(cell)) for _ in range(2))
    pd.testing.assert_frame_equal(first.drop(columns="seconds"), second.drop(columns="seconds"))


def test_processes_give_the_same_table():
    alone, together = (run_cells(_line, [3, 1, 2], Options(jobs=jobs), "x") for jobs in (1, 2))
    pd.testing.assert_frame_equal(alone, together)


def _line(cell):
    return [{"cell": cell}]


def test_crossover_findings_tell_a_clear_difference_from_chance():
    def lines(d, rival):
        return [
            {"d": d, "n": 10, "epsilon": 1.0, "repeat": k, "method": m, "discrepancy": x}
            for k, noise in enumerate((-0.01, 0.0, 0.01))
            for m, x in (
                ("uniform weights", 0.4),
                ("moments", 0.3),
                ("Frank-Wolfe, tight, own K", rival + noise),
            )
        ]

    table = pd.DataFrame([*lines(2, 0.5), *lines(4, 0.3), *lines(8, 0.1)])
    (sentence,) = crossover_findings(table)
    first, second = sentence.split(";", 1)[0], sentence.split("moments clearly", 1)[1]
    assert "d = 8" in first
    assert "d = 2" in second
    assert "d = 4" not in sentence


def test_missing_data_is_said_and_the_rest_still_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("DPADAPT_DATA", raising=False)
    code, text = call("000", "--figure", "wind", "--out", tmp_path)
    assert code == 1
    assert "DPADAPT_DATA" in text
    missing = run_experiments([PAPER.choose("gas")], tmp_path, Options(repeats=1))
    assert len(missing) == 1
    assert "Not run" in write_page(PAPER, tmp_path).read_text(encoding="utf-8")


def test_another_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DPADAPT_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="not in the folder that DPADAPT_DATA names"):
        data_file("wind/wind.csv.gz")
    (tmp_path / "wind").mkdir()
    (tmp_path / "wind" / "wind.csv.gz").write_bytes(b"other")
    with pytest.raises(MissingDataError, match="sha256 differs"):
        data_file("wind/wind.csv.gz")


@needs_data
def test_loaders():
    wind, gas = load_wind(), load_gas()
    assert len(wind.X_public) + len(wind.X_private) == 6574
    assert wind.X_public.shape[1] == 11
    assert wind.y_public.mean() > wind.y_private.mean()  # winters are windy
    assert gas.X_public.shape == (4397, 128)
    assert gas.X_private.shape == (2300, 128)
    for data in (wind, gas):
        assert all(np.isfinite(part).all() for part in data)


@needs_data
def test_components_come_from_public_rows_only():
    gas = load_gas()
    moved = gas._replace(X_private=gas.X_private + 1.0)
    assert np.array_equal(principal_components(gas).X_public, principal_components(moved).X_public)


@needs_data
def test_wind_runs(tmp_path):
    assert run_experiments([PAPER.choose("wind")], tmp_path, Options(repeats=1)) == []
    table = pd.read_csv(tmp_path / "figure_wind.csv")
    assert {"public only", "dpadapt, epsilon 1", "plain DM, no privacy"} <= set(table["method"])
    assert np.isfinite(table["mse"]).all()
    assert "public data alone" in real_findings(table)[0]
