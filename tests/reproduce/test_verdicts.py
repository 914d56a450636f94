"""Verdicts are computed: every rule can hold, fail and say nothing; pages carry no other."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import re
from operator import lt

import pandas as pd
import pytest

from made_up_tables import TABLES
from reproduce.command import reproduce_paper
from reproduce.discrepancy.curves import draw_figure
from reproduce.hybrid import figures_1_and_2
from reproduce.kernels.figure_2a import draw_cover
from reproduce.markdown import write_markdown
from reproduce.page import Experiment, Paper, panels, run_experiments, write_page
from reproduce.papers import FOLDERS, paper_of
from reproduce.reweighting.curves import draw_by_budget
from reproduce.reweighting.gains import draw_gains
from reproduce.reweighting.table_4 import draw_accuracies
from reproduce.runs import Options
from reproduce.style import budget_colour
from reproduce.verdicts import Claim, Found, NotRun, Place, judge, the, trend
from tools.verdicts import PAGES, computed, page_of, rewritten
from tools.wrap import ROOT

PAPERS = {number: paper_of(number) for number in FOLDERS}
CLAIMS = [
    (number, each.name, place)
    for number, paper in PAPERS.items()
    for each in paper.experiments
    for place in range(len(each.claims))
]
every_claim = pytest.mark.parametrize(("number", "figure", "place"), CLAIMS)
every_page = pytest.mark.parametrize("number", PAGES)
KEYS = {"n", "d", "R", "epsilon", "n epsilon", "data", "method", "relation", "lambda", "classes"}
KEYS |= {"label unit", "start", "weights", "choice", "setting", "what", "runs", "splits"}
KEYS |= {"chance of a 1 at the source", "n of Corollary B.3"}


def table_of(text):
    head, *lines = [[cell.strip() for cell in line.split("|")] for line in text.split("\n")]
    return [dict(zip(head, line, strict=True)) for line in lines]


def case_of(number, figure, place):
    claim = PAPERS[number].choose(figure).claims[place]
    pairs = [pair for pair in TABLES[number][figure] if not pair.claims or place in pair.claims]
    assert pairs, "a claim without a table"
    return claim, pairs[0]


# rules


@every_claim
def test_a_rule_holds_and_fails(number, figure, place):
    claim, pair = case_of(number, figure, place)
    assert claim.found(table_of(pair.holds)).word.startswith("holds")
    assert "in part" not in claim.found(table_of(pair.holds)).word
    assert claim.found(table_of(pair.fails)).word.startswith("fails here")


@every_claim
def test_a_rule_says_nothing_where_cells_are_missing(number, figure, place):
    claim, pair = case_of(number, figure, place)
    blank = [
        {name: text if name in KEYS else "" for name, text in line.items()}
        for line in table_of(pair.holds)
    ]
    for empty in (blank, []):
        with pytest.raises(NotRun):
            claim.found(empty)
    verdict = judge([claim], blank, draws="1")
    assert verdict.head == "No verdict: the table does not tell."
    assert "not told, for lack of" in verdict.lines[0].lower()


@every_claim
def test_a_rule_never_breaks_on_a_part_of_its_table(number, figure, place):
    claim, pair = case_of(number, figure, place)
    whole = table_of(pair.holds)
    parts = [whole[:end] + whole[end + 1 :] for end in range(len(whole))]
    parts += [
        [{**line, name: ""} if name in line else line for line in whole]
        for name in {name for line in whole for name in line} - KEYS
    ]
    for part in parts:
        with contextlib.suppress(NotRun):
            assert 0 <= claim.found(part).good <= claim.found(part).of


OF_SPREADS = {("000", "1", 3), ("000", "2", 4), ("002", "break", 0), ("002", "break", 1)}


@every_claim
def test_a_rule_finds_the_same_of_several_draws(number, figure, place):
    """A cell of several draws has a standard deviation behind its number."""
    claim, pair = case_of(number, figure, place)
    for text in pair[:2]:
        spread = [
            {
                name: cell
                if name in KEYS or name == "rounds"
                else re.sub(r"^([-\d.,e]+%?)(?=$| \(|;)", r"\1 ± 77.7", cell)
                for name, cell in line.items()
            }
            for line in table_of(text)
        ]
        if (number, figure, place) not in OF_SPREADS:
            one, two = claim.found(table_of(text)), claim.found(spread)
            assert (one.good, one.of) == (two.good, two.of)


COMPUTED_HERE = r"mean [\d.]+ against [\d.]+|\(gap [\d.]+\)"


@every_claim
def test_numbers_of_a_sentence_are_those_of_the_table(number, figure, place):
    """Every number is printed in the table, but for counts, means over its lines, and gaps."""
    claim, pair = case_of(number, figure, place)
    for text in pair[:2]:
        told = claim.found(table_of(text)).told
        for each in re.findall(r"\d[\d,.]*\d|\d", re.sub(COMPUTED_HERE, "", told)):
            cells = "\n".join(f"{name} {cell}" for x in table_of(text) for name, cell in x.items())
            assert each in cells or each == "1", told


def test_there_is_a_table_for_every_figure_that_is_judged():
    judged = {(number, figure) for number, figure, _ in CLAIMS}
    assert judged == {(number, figure) for number, all_ in TABLES.items() for figure in all_}


def test_the_halting_rule_says_nothing_of_a_run_that_ends_before():
    """The sentence that stood under a run of 10,000 and 20,000 rows: from 80,000 on."""
    rows = {"method": "reweighed", "rate": 0.2, "halted": False, "loss": 0.3, "last": True}
    quick = [rows | {"n": n, "repeat": 0, "round": 6, "test_loss": 0.2} for n in (10_000, 20_000)]
    summary = figures_1_and_2.summarise_hyperplane(pd.DataFrame(quick))
    verdict = judge(PAPERS["003"].choose("1").claims, summary.to_dict("records"), "1")
    assert "Not told, for lack of an n at which the paper's runs halt" in verdict.lines[1]
    assert not any(
        line.startswith("Holds") and "halt" in line for line in verdict.lines
    ), "nothing halted"  # fmt: skip


# the words over them

FALLS = Claim("it falls", lambda table: trend(table, "loss", "n", lt))
OURS = dataclasses.replace(FALLS, ours=True)
DOWN = [{"n": "1", "loss": "3"}, {"n": "2", "loss": "1"}]
UP = [{"n": "1", "loss": "1"}, {"n": "2", "loss": "3"}]
NEEDS = Claim("it is small", lambda table: Found(1, 1, f"{the(table, 'size', {})}"))
RISES = Claim("it rises", lambda table: trend(table, "loss", "n", lambda a, b: a > b))


@pytest.mark.parametrize(
    ("claims", "table", "head"),
    [
        ([FALLS], DOWN, "Verdict: holds (3 draws)."),
        ([FALLS], UP, "Verdict: fails here (3 draws)."),
        ([FALLS, RISES], UP, "Verdict: holds in part (3 draws)."),
        ([FALLS, dataclasses.replace(RISES, ours=True)], UP, "Verdict: fails here (3 draws)."),
        ([FALLS, NEEDS], DOWN, "Verdict on 1 of 2 claims: holds (3 draws)."),
        ([OURS], DOWN, "Not a claim of the paper; what the table says (3 draws):"),
        ([FALLS, OURS], DOWN[:1], "No verdict: the table does not tell."),
        ([OURS], [], "No verdict: the table does not tell."),
    ],
)
def test_one_word_over_all_claims_of_the_paper(claims, table, head):
    assert judge(claims, table, "3").head == head


def test_the_number_of_draws_is_that_of_the_run():
    heads = [judge([FALLS], DOWN, draws).head for draws in ("1", "10", "2 to 5", "")]
    assert [head[14:] for head in heads] == [
        " (one draw).", " (10 draws).", " (2 to 5 draws).", ".",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("good", "of", "word"),
    [(4, 4, "holds (4 of 4)"), (2, 4, "holds in part (2 of 4)"), (1, 4, "fails here (1 of 4)"),
     (0, 4, "fails here (0 of 4)"), (1, 1, "holds"), (0, 1, "fails here")],
)  # fmt: skip
def test_fewer_than_half_of_the_places_is_no_part(good, of, word):
    assert Found(good, of, "").word == word


def test_many_places_are_told_by_their_exceptions():
    places = [Place(f"{i}", "x", good=i != 3) for i in range(9)]
    assert Found.at(places).told == "not at 3: x"
    assert Found.at([dataclasses.replace(each, good=not each.good) for each in places]).told == (
        "only at 3: x"
    )
    with pytest.raises(NotRun):
        Found.at([])


def test_what_is_missing_is_named():
    with pytest.raises(NotRun, match="DM, epsilon 1"):
        the([{"method": "KMM", "epsilon 1": "3"}], "epsilon 1", {"method": "DM"})


# pages


@every_page
def test_verdicts_on_the_page_are_those_of_its_tables(number):
    text = page_of(number)
    assert rewritten(number, text) == text, "run `python -m tools.verdicts`"


@every_page
def test_every_figure_is_on_the_page_and_judged_there(number):
    text = page_of(number)
    for each in PAPERS[number].experiments:
        picture = f"reproduce_{number}_{each.file}.png"
        (section,) = [part for part in re.split(r"(?=^## )", text, flags=re.M) if picture in part]
        verdict = computed(each, section)
        assert (verdict is None) == (not each.claims)
        if verdict is not None:
            assert f"**{verdict.head}**" in section
            assert any(not line.startswith("Not told") for line in verdict.lines)


@every_page
def test_a_verdict_that_was_written_by_hand_does_not_stay(number):
    text = page_of(number)
    for old, new in (("holds in part", "holds"), ("**Verdict: ", "**Verdict: in all: ")):
        assert rewritten(number, text.replace(old, new, 1)) == text
    assert rewritten(number, f"{text}\n**Verdict: holds.**\n").strip() == text.strip()


def test_a_number_that_changes_in_the_table_changes_the_verdict():
    text = page_of("003")
    assert "| 80,000 | reweighed | 1.67 | 1 of 1 |" in text
    other = text.replace("| 80,000 | reweighed | 1.67 | 1 of 1 |",
                         "| 80,000 | reweighed | 1.67 | 0 of 1 |")  # fmt: skip
    assert "n = 80,000: 0 of 1 halted" in " ".join(rewritten("003", other).split())


@every_page
def test_the_page_says_what_the_command_says(number):
    text = " ".join(page_of(number).split())
    paper = PAPERS[number]
    told = [*paper.stated, *paper.differences]
    if number != "000":  # its sections have other headings
        told += [each.about for each in paper.experiments]
        told += [f"## {each.title}" for each in paper.experiments]
    for sentence in told:
        assert " ".join(sentence.split()) in text


# no constant

WORDS = re.compile(
    r"^holds|\bholds( in part|:| from| here)|\bfails( here|:)|not reproduced|cannot be told"
    r"|as in figure|earlier version|\b(one|two|three|five|ten) draws?[.;]",
    re.I,
)
COMPUTED = {"verdicts.py", "runs.py"}  # of reproduce itself


def constants(path):
    """Texts of a module that are shown to somebody: no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def verdict_words(path):
    return [text for text in constants(path) if WORDS.search(text)]


@pytest.mark.parametrize("path", sorted((ROOT / "reproduce").rglob("*.py")), ids=str)
def test_no_module_has_a_verdict_as_a_text(path):
    if path.parent.name == "reproduce" and path.name in COMPUTED:
        pytest.skip("the words that verdicts are made of")
    assert verdict_words(path) == []


def test_a_verdict_as_a_text_would_be_seen(tmp_path):
    path = tmp_path / "verdicts.py"
    path.write_text('"""Holds."""\nVERDICTS = {"1": "holds in part: 0.37"}\n', encoding="utf-8")
    assert verdict_words(path) == ["holds in part: 0.37"]


@every_page
def test_no_page_has_the_words_of_a_verdict_outside_of_one(number):
    text = page_of(number)
    for each in PAPERS[number].experiments:
        for part in re.split(r"(?=^## )", text, flags=re.M):
            if f"_{each.file}.png" in part and (verdict := computed(each, part)):
                lines = [f"**{verdict.head}**", *(f"- {line}" for line in verdict.lines)]
                flat = " ".join(part.split())
                for line in lines:
                    assert line in flat
                    flat = flat.replace(line, "")
                assert not WORDS.search(flat)


def test_the_list_of_claims_leaves_verdicts_to_the_pages():
    lines = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8").split("\n")
    assert [line for line in lines if "reproduce 0" in line and WORDS.search(line)] == []


def test_every_claim_has_a_rule():
    for paper in PAPERS.values():
        assert {field.name for field in dataclasses.fields(Paper)} & {"verdicts"} == set()
        for each in paper.experiments:
            for claim in each.claims:
                assert isinstance(claim, Claim)
                assert callable(claim.rule)
                says = re.sub(r"epsilon [\d.]+", "", claim.says)
                assert not re.search(r"\d\.\d{2}", says), "a result in a claim"


# the run


def stopped(options):
    raise KeyboardInterrupt


def made_up(name, run, claims=()):
    return Experiment(
        name, f"Title {name}", "About.", run, lambda table: table.drop(columns="repeat"),
        lambda table: panels(2, 1, 1, 1)[0], lambda table: [f"{len(table)} lines."], claims,
        "Bars are one standard deviation.",
    )  # fmt: skip


def losses(options):
    repeats = range(options.repeats)
    return pd.DataFrame([{"n": n, "loss": 1 / n, "repeat": r} for n in (1, 2) for r in repeats])


@pytest.fixture
def paper():
    experiments = [made_up("1", losses, (FALLS,)), made_up("2", stopped, (FALLS,))]
    return Paper("999", "A paper", ["x"], {"y": "z"}, [], experiments)


def run(paper, out, repeats=1):
    def after():
        write_page(paper, out)
        write_markdown(paper, out)

    with pytest.raises(KeyboardInterrupt):
        run_experiments(paper.experiments, out, Options(repeats=repeats), after)
    return (out / "index.md").read_text(encoding="utf-8")


def test_a_run_that_is_stopped_leaves_its_page(paper, tmp_path):
    text = run(paper, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "figure_1.csv", "figure_1.png", "index.html", "index.md",
    }  # fmt: skip
    first, second = text.split("## Title ")[1:]
    assert "**Verdict: holds (one draw).**" in first
    assert "from 1.0 at n = 1 to 0.5 at n = 2" in first
    assert "Not run" in second
    assert "**" not in second
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert html.count("Verdict: holds (one draw).") == 1
    assert html.count("data:image/png") == 1


def test_one_figure_alone_leaves_no_older_text_behind(paper, tmp_path):
    """The text of an earlier run said "Not run" of a figure that has a table by now."""
    write_markdown(paper, tmp_path)
    assert (tmp_path / "index.md").read_text(encoding="utf-8").count("Not run") == 2
    reproduce_paper(paper, "1", tmp_path, repeats=1, quick=False, jobs=1)
    text = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert text.count("Not run") == 1
    assert "**Verdict: holds (one draw).**" in text
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert html.count("Verdict: holds (one draw).") == 1


def test_bars_are_told_of_several_draws_only(paper, tmp_path):
    assert "Bars" not in run(paper, tmp_path / "one")
    text = run(paper, tmp_path / "two", repeats=2)
    assert "Draws of data and noise: 2. Bars are one standard deviation." in text
    assert "(2 draws)" in text


def test_a_quick_run_says_that_it_is_one(paper, tmp_path):
    for quick in (False, True):
        run_experiments(paper.experiments[:1], tmp_path, Options(repeats=1, quick=quick))
        text = write_markdown(paper, tmp_path).read_text(encoding="utf-8")
        assert ("A quick run: fewer settings" in text) == quick
        assert "| quick |" not in text


def test_a_picture_is_drawn_anew_with_its_table_only(paper, tmp_path):
    run(paper, tmp_path)
    picture = tmp_path / "figure_1.png"
    before = picture.stat().st_mtime_ns
    write_page(paper, tmp_path)
    assert picture.stat().st_mtime_ns == before
    run(paper, tmp_path)
    assert picture.stat().st_mtime_ns > before


# pictures


@pytest.mark.parametrize("sizes", [(10_000, 20_000), (80_000, 140_000)])
def test_shaded_is_where_the_papers_runs_halt(sizes):
    line = {"method": "reweighed", "rate": 0.2, "halted": False, "loss": 0.3, "last": True}
    line |= {"repeat": 0, "round": 6, "test_loss": 0.2}
    figure = figures_1_and_2.draw_hyperplane(pd.DataFrame([line | {"n": n} for n in sizes]))
    (span,) = figure.axes[0].patches
    low, high = span.get_extents().transformed(figure.axes[0].transData.inverted()).intervalx
    assert low == pytest.approx(80)
    assert high > max(80, max(sizes) / 1000)
    assert any("no run halted" in each.get_text() for each in figure.axes[1].texts)


def colours(axes):
    found = zip(*axes.get_legend_handles_labels(), strict=True)
    return {label: handle[0].get_color() for handle, label in found if label.startswith("ε = ")}


def test_an_epsilon_has_its_colour_whatever_else_is_drawn():
    line = {"dataset": "Gas", "n": 9, "copies": 1.0, "error": 0.5, "method": "dpadapt"}
    methods = ("PCnvxAdap as printed", "dpadapt")
    few, many = (
        draw_by_budget(pd.DataFrame([line | {"epsilon": each} for each in given]), methods=methods)
        for given in ((1.0, 15.0), (0.5, 1.0, 5.0, 15.0))
    )
    assert colours(few.axes[1]).items() <= colours(many.axes[1]).items()
    assert len(set(colours(many.axes[1]).values())) == 4
    assert len({budget_colour(each) for each in (0.5, 1.0, 3.0, 10.0)}) == 4


@pytest.mark.parametrize(("repeats", "told"), [(1, "One draw."), (2, "Bars: one standard")])
def test_pictures_tell_bars_of_several_draws_only(repeats, told):
    line = {"n": 1, "epsilon": 1.0, "true_epsilon": 1.0, "method": "moments", "mse": 2e-4}
    table = pd.DataFrame([line | {"repeat": each} for each in range(repeats)])
    note = draw_figure(table, "mse").get_suptitle()
    assert told in note
    assert ("Bars" in note) == (repeats > 1)


def legend(figure):
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


def test_every_curve_is_in_the_legend_of_its_row():
    line = {"n": 9, "epsilon": 1.0, "repeat": 0, "accuracy": 90.0}
    lines = [("upland", "dpadapt"), ("lodgepole", "dpadapt"), ("lodgepole", "sparse vector")]
    table = pd.DataFrame([line | {"data": data, "method": method} for data, method in lines])
    told = [text.get_text() for text in draw_cover(table).axes[-1].get_legend().get_texts()]
    assert set(told) == {"dpadapt", "sparse vector"}


def test_a_star_is_explained_where_there_is_one():
    columns = ["dataset", "n", "repeat", "method", "error"]
    plain = draw_accuracies(pd.DataFrame([("Accent", 9, 0, "KMM", 0.5)], columns=columns))
    assert not any("*" in text for text in legend(plain))
    errors = {"public only": 0.016, "both, no privacy": 0.001, "dpadapt, epsilon 1": 0.01}
    for dataset, star in (("Wind", False), ("Gas", True)):
        lines = [(dataset, 9, 0, method, error) for method, error in errors.items()]
        figure = draw_gains(pd.DataFrame(lines, columns=columns))
        assert any("*" in text for text in legend(figure)) == star
        assert ("*" in figure.axes[0].get_title(loc="left") + figure.axes[0].get_title()) == star
        assert figure.axes[0].get_ylim()[0] >= 0
