"""Lines of a private CSV file: no cell makes a person vanish, and no line takes another along."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from dpadapt.cli.formats import Form, split, whole_rows
from dpadapt.cli.tables import open_private, widths

LETTERS = ["a", "B", " ", ",", ";", '"', '""', "\n", "\r", "\r\n", "\0", "\u2028", "\\", "1", ""]
CELLS = {
    "short": "x",
    "at csv's limit": "x" * 131_072,
    "above it": "x" * 131_073,
    "far above it": "x," * 500_000,
    "nul": "a\0b",
    "return": "a\rb",
    "line": "a\nb",
    "lines": "a\r\nb\n\n\np3,1,2,3\n",
    "quote": 'a"b',
    "quotes": '"""',
    "separators": ",,,,,,,,",
    "of Unicode": "a\u2028b\x85c\x0cd\x1ce\ufeff",
}


def random_table(rng, rows, width):
    def cell():
        return "".join(rng.choice(LETTERS, size=rng.integers(0, 6)))

    return [[cell() for _ in range(width)] for _ in range(rows)]


def written(table, **how):
    out = io.StringIO(newline="")
    csv.writer(out, **how).writerows(table)
    return out.getvalue()


@pytest.mark.parametrize("sep", [",", ";", "\t", "|", "^", "]", "\\", "é"])
def test_what_a_program_wrote_is_what_it_meant(sep):
    rng = np.random.default_rng(0)
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        for _ in range(150):
            table = random_table(rng, rows=6, width=3)
            text = written(table, delimiter=sep, quoting=quoting).removesuffix("\n")
            assert [split(row, sep) for row in whole_rows(text.split("\n"), sep)] == table


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_no_cell_makes_a_person_vanish(tmp_path, name, end):
    file, seen = tmp_path / "p.csv", []
    for cell in ("x", CELLS[name]):
        table = [["note", "a", "who", "y"]]
        table += [[cell if i == 7 else "x", i / 7, f"p{i % 50}", i % 2] for i in range(100)]
        with open(file, "w", newline="", encoding="utf-8") as out:
            csv.writer(out, lineterminator=end).writerows(table)
        private = open_private(file, "y", unit="who", max_rows=2)
        assert private.n_people == 50
        blocks = [X for X, _ in private._rows.blocks()]
        seen.append([block["a"].tolist() for block in blocks])
        assert blocks[0]["note"][7] == cell, "as it is"
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_several_lines_is_one_row(tmp_path, name):
    """Rows are counted, and are protected, as they were written: not by their lines."""
    file = tmp_path / "p.csv"
    table = [["note", "a", "y"]]
    table += [[CELLS[name] if i == 7 else "x", i / 7, i % 2] for i in range(20)]
    file.write_bytes(written(table).encode())
    private = open_private(file, "y")
    assert private.n_rows == 20
    block, labels = next(private._rows.blocks())
    assert block["note"][7] == CELLS[name]
    assert block["a"].astype(float).tolist() == [i / 7 for i in range(20)]
    assert labels.astype(float).tolist() == [i % 2 for i in range(20)]
    assert set(widths(file, Form())) == {3}


HOSTILE = {
    "quote": '"',
    "quote in a cell": 'x"y,0.1,p7,1',
    "quote at an end": 'x",0.1,p7,1',
    "opens": '"x,0.1,p7,1',
    "opens at the end": 'x,0.1,p7,"',
    "opens twice": '"x,"0.1,p7,1',
    "three": '"""x,0.1,p7,1',
    "escaped otherwise": '"say \\"no, not",0.1,p7,1',
    "return": "x\ry,0.1,p7,1",
    "returns": "\r\rx,0.1,p7,1\r\r",
    "nul": "\0,\0,p7,\0",
    "no text": "\xff\xfe,0.1,p7,1",
    "large": "x" * 200_000 + ",0.1,p7,1",
    "large and open": '"' + "x" * 200_000 + ",0.1,p7,1",
    "too wide": "x,0.1,p7,1" + ",9" * 1000,
    "too short": "x,0.1",
    "one letter": "x",
}
NEIGHBOURS = {
    "nothing": "x,0.5,p{i},1",
    "well quoted": '"x, ""y""",0.5,p{i},"1"',
    "empty quotes": '"",0.5,p{i},1',
    "all quoted": '"x","0.5","p{i}","1"',
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("others", NEIGHBOURS)
def test_one_line_takes_no_other_along(tmp_path, name, others):
    """Whatever one person's line is: everybody else's rows, and how many people there are."""
    file, seen = tmp_path / "p.csv", []
    for line in ("x,0.1,p7,1", HOSTILE[name]):
        lines = [NEIGHBOURS[others].replace("{i}", str(i)) for i in range(20)]
        lines[7] = line
        file.write_bytes("\r\n".join(["note,a,who,y", *lines, ""]).encode("latin-1"))
        assert open_private(file, "y").n_rows == 20
        private = open_private(file, "y", unit="who", max_rows=1)
        assert private.n_people == 20
        block, labels = next(private._rows.blocks())
        rows = np.column_stack([np.asarray(block, dtype=object), labels]).tolist()
        seen.append(rows[:7] + rows[8:])
    assert seen[0] == seen[1]


def test_an_id_is_a_text_like_any_other(tmp_path):
    """Cells that count as missing elsewhere are people here; empty ones are one person."""
    ids = ["NA", "None", "nan", "NULL", "n/a", "0e1", "7", "7.0", "", " ", "NaN"]
    lines = [f"{place},{each}" for place, each in enumerate(ids)]
    (tmp_path / "p.csv").write_text("\n".join(["a,who", *lines, "", "x", ""]))
    private = open_private(tmp_path / "p.csv", unit="who", max_rows=1)
    of = private._rows.people.of
    assert len(of) == 12, "a line with nothing at all is no row"
    assert of[8] == of[9] == of[11], "no id, or a line that ends before it"
    assert private.n_people == 9, "7 and 7.0 are one, and those without an id another"


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    "cell", ["", '""', " ", '"\t"', "\u00a0", "\0", '" "', "\u2003", "NA", "007", "+7", "\ufeff"]
)
def test_no_id_makes_a_person_vanish(tmp_path, cell, rows):
    """Whatever stands for the id of one person, in all of its lines: as many people as before."""
    lines = [f"0.{i},{cell if i % 20 == 7 else f'p{i % 20}'},1" for i in range(20 * rows)]
    (tmp_path / "p.csv").write_text("\n".join(["a,who,y", *lines, ""]), encoding="utf-8")
    assert open_private(tmp_path / "p.csv", "y", unit="who", max_rows=2).n_people == 20


def test_lines_without_an_id_are_one_person(tmp_path):
    """Somebody whose lines all end before their ids stays one, however many there are."""
    (tmp_path / "p.csv").write_text("a,who\n" + "1\n" * 5 + "2,ann\n3,\n")
    assert open_private(tmp_path / "p.csv", unit="who", max_rows=1).n_people == 2


def test_an_open_quote_hides_no_id(tmp_path):
    (tmp_path / "p.csv").write_text('note,who\nx,ann\n"x,ann\n"y"z,ann\n')
    assert open_private(tmp_path / "p.csv", unit="who", max_rows=1).n_people == 1


def test_widths_of_odd_lines(tmp_path):
    (tmp_path / "p.csv").write_text("a,b\n" + '"x,1\n' + "y" * 200_000 + ",2,3\n\n")
    assert list(widths(tmp_path / "p.csv", Form())) == [2, 2, 3, 0]


def test_many_open_quotes_take_no_time():
    """Linear: what opens in one line is settled by the next line with an odd number of quotes."""
    lines = ['x,"y', "z", '""'] * 30_000
    same = list(whole_rows(lines, ",")) == lines
    assert same, "not told in full: that takes minutes"
    assert len(split('"a,""b' * 20_000, ",")) == 20_001
