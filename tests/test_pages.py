"""Pages: prose of at most 100 columns, links that lead somewhere, a changelog with its lists."""

from __future__ import annotations

import doctest
import re
import sys
import types

import pytest

from tools.wrap import PAGES, ROOT, WIDTH, wrapped

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@every_page
def test_prose_is_narrow(page):
    text = page.read_text(encoding="utf-8")
    assert wrapped(text) == text, "run `make format`"


@every_page
def test_links_to_files_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    for link in links:
        assert "://" in link or (page.parent / link).exists(), link


def test_there_are_pages():
    assert {"README.md", "CHANGELOG.md", "discrepancy.md"} <= {page.name for page in PAGES}


def test_every_version_has_the_four_lists():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in text.split("\n## ")[1:]:
        assert re.findall(r"^### (\w+)$", version, re.M) == [
            "Added",
            "Changed",
            "Fixed",
            "Guarantee",
        ]


LONG = "word " * 30 + "end."


def test_wide_prose_is_wrapped_and_says_the_same():
    for text in (LONG, f"- {LONG}\n  {LONG}\n- short", f"1. {LONG}", f"> {LONG}"):
        found = wrapped(text)
        assert found != text
        assert max(map(len, found.split("\n"))) <= WIDTH
        assert [each for each in found.split() if each != ">"] == [
            each for each in text.split() if each != ">"
        ]
        assert wrapped(found) == found


@pytest.mark.parametrize(
    "text",
    [
        f"| {LONG} |",
        f"# {LONG}",
        f"    {LONG}",
        f"```\n{LONG}\n```",
        f"![{LONG}](x.png)",
        "narrow\nlines stay\nas they are",
        f"{LONG}  \nafter a break that is meant",
    ],
)
def test_what_is_no_prose_stays(text):
    assert wrapped(text) == text


@pytest.mark.parametrize("sign", ["-", "+", "*", ">", "#", "3."])
def test_no_line_becomes_an_item_or_a_heading(sign):
    for spaces in range(85, 105):
        found = wrapped("x" * spaces + f" {sign} " + "y" * 20)
        assert not re.search(rf"^{re.escape(sign)} ", found, re.M)


def test_code_is_not_broken():
    found = wrapped("word " * 18 + "`a piece of code` and more words")
    assert "`a piece of code`" in found


@pytest.mark.parametrize(
    "page",
    [
        "command_line.md",
        "report.md",
        "serving.md",
        "tutorial.md",
        pytest.param("add_a_method.md", marks=pytest.mark.slow),
        pytest.param("preview.md", marks=pytest.mark.slow),
        pytest.param("tuning.md", marks=pytest.mark.slow),
    ],
)
def test_a_page_that_can_be_run_is_right(page, monkeypatch):
    module = types.ModuleType("a_page")  # where its classes are found again
    monkeypatch.setitem(sys.modules, module.__name__, module)
    path = ROOT / "docs" / page
    text = path.read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, vars(module), page, str(path), 0)
    test.globs = vars(module)
    told: list[str] = []
    found = doctest.DocTestRunner().run(test, out=told.append, clear_globs=False)
    assert found.attempted > 4
    assert not found.failed, "".join(told)
