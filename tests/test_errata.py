"""Every erratum names a test that exists, and the page is what the entries make it."""

import pytest

from tools.errata import ENTRIES, PAGE, Erratum, missing_tests, page, read_errata

PAPERS = sorted(ENTRIES.glob("*.toml"))


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_every_entry_names_tests_that_exist(path):
    entries = read_errata(path)
    assert entries
    assert missing_tests(entries) == []
    for entry in entries:
        assert all((entry.printed, entry.true, entry.number, entry.tests)), entry.id


def test_no_id_is_used_twice():
    ids = [entry.id for path in PAPERS for entry in read_errata(path)]
    assert len(ids) == len(set(ids))


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.errata"


def test_a_test_that_is_gone_is_found():
    there = "tests/test_errata.py::test_a_test_that_is_gone_is_found"
    gone = ["tests/test_errata.py::test_none", "tests/test_none.py::test_none", "tests"]
    entry = Erratum("E0", "a", "b", "1", [there, *gone])
    assert missing_tests([entry]) == [f"E0: {each}" for each in gone]


def test_a_wrong_key_is_named(tmp_path):
    path = tmp_path / "009.toml"
    path.write_text('[[erratum]]\nid = "E0"\nprinted = "a"\ntrue = "b"\nnumbers = "1"\n')
    with pytest.raises(ValueError, match=r"E0.*number, numbers, test"):
        read_errata(path)
