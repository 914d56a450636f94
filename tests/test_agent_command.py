"""``dpadapt agent``: a device's program, its row, its one answer and its plain errors."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dpadapt.cli import app
from dpadapt.cli.agent import agent_command, answer_one, read_row
from dpadapt.hybrid.protocol import read_reply
from dpadapt.hybrid.questions import Below, Mistake
from dpadapt.hybrid.rules import LinearRule

SECRET = "271828.18"
LINE = Below([1], [2.0]).request(0, agent=5, epsilon=1.0)

device = typer.Typer(pretty_exceptions_enable=False)
device.command()(agent_command)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments, code=0, given=LINE):
    if "--state" not in arguments and "--help" not in arguments:
        arguments = (*arguments, "--state", "state")
    result = CliRunner().invoke(device, [str(each) for each in arguments], input=given)
    assert result.exit_code == code, result.output
    assert SECRET not in result.output
    return result


@pytest.fixture
def row(tmp_path):
    file = tmp_path / "me.json"
    file.write_text(json.dumps({"a": float(SECRET), "b": 1.0, "sick": "yes"}))
    return file


def test_it_is_a_command_of_dpadapt():
    assert "agent" in typer.main.get_command(app).commands


def test_help_has_an_example():
    said = " ".join(run("--help").output.split())
    assert "dpadapt agent --row me.json" in said


def test_one_question_one_answer(row):
    said = run("--row", row, "--label", "sick", "--epsilon", 1).stdout_bytes
    assert read_reply(said, agent=5) in (0, 1)


OTHER = Below([1], [3.0]).request(0, agent=5, epsilon=1.0)


def test_a_second_question_is_refused_and_a_third_is_not_read(row):
    own = ("--row", row, "--label", "sick", "--epsilon", 1)
    first, second = run(*own, given=LINE + OTHER + LINE).stdout_bytes.splitlines()
    assert read_reply(first, agent=5) in (0, 1)
    assert json.loads(second)["refused"] == "answered before"


def test_the_state_is_required(row):
    arguments = ["--row", str(row), "--label", "sick", "--epsilon", "1"]
    result = CliRunner().invoke(device, arguments, input=LINE)
    assert result.exit_code == 2
    assert "--state" in result.output


def test_a_state_that_cannot_be_written(row):
    own = ("--row", row, "--label", "sick", "--epsilon", 1, "--state", "no/such/folder")
    assert "No such file" in run(*own, code=4).output


def test_a_larger_epsilon_is_refused(row):
    said = run("--row", row, "--label", "sick", "--epsilon", 0.5).stdout_bytes
    assert json.loads(said)["refused"] == "epsilon above the cap"


def test_a_restart_gives_the_same_bytes_and_refuses_another_question(row, tmp_path):
    own = ("--row", row, "--label", "sick", "--epsilon", 1, "--state", tmp_path / "state")
    first = run(*own).stdout_bytes
    assert "answer" in json.loads(first)
    assert run(*own).stdout_bytes == first
    assert json.loads(run(*own, given=OTHER).stdout_bytes)["refused"] == "answered before"


def test_no_question_no_answer(row, tmp_path):
    assert run("--row", row, "--epsilon", 1, "--state", tmp_path / "state", given=b"").output == ""
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("kind", ["json", "csv", "-"])
def test_rows_from_files_and_from_the_first_line(tmp_path, kind):
    rule = LinearRule("linear", np.zeros(2), np.ones(2), np.array([0.0, 1.0, 0.0]), (0, 1))
    question = Mistake(rule).request(0, agent=5, epsilon=40.0)
    for label, mistake in ((1, 0), (0, 1)):
        state = ("--state", tmp_path / f"state {label}")
        text = json.dumps({"a": 1.0, "sick": label, "b": 2.0})
        given, file = question, tmp_path / f"me.{kind}"
        if kind == "csv":
            text = f"a,sick,b\n1.0,{label},2.0\n"
        if kind == "-":
            given, file = text.encode() + b"\n" + question, "-"
        else:
            file.write_text(text)
        own = ("--row", file, "--label", "sick", "--epsilon", 40, *state)
        assert read_reply(run(*own, given=given).stdout_bytes, agent=5) == mistake


@pytest.mark.parametrize(
    ("name", "text", "more", "said"),
    [
        ("me.txt", "a,b\n1,2\n", (), "must be a .json file"),
        ("me.csv", f"a,b\n{SECRET},2\n3,4\n", (), "must be a .json file"),
        ("me.csv", f"a,b\n{SECRET}\n", (), "must be a .json file"),
        ("me.json", f"[{SECRET}]", (), "must be a .json file"),
        ("me.json", f"{SECRET}{{", (), "must be a .json file"),
        ("me.json", f'{{"a": {SECRET}}}', ("--label", "sick"), "has no column 'sick'"),
        ("me.json", None, (), "there is no file"),
    ],
)
def test_rows_that_are_none(tmp_path, name, text, more, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    result = run("--row", tmp_path / name, "--epsilon", 1, *more, code=1)
    assert said in " ".join(result.output.split())


def test_an_epsilon_that_is_none(row):
    assert "epsilon" in run("--row", row, "--epsilon", 0, code=1).output


def test_what_is_not_a_number_is_a_row_all_the_same(tmp_path):
    file = tmp_path / "me.csv"
    file.write_text("a,b,sick\nsecret,,\n")
    out = io.BytesIO()
    answer_one(file, "sick", 1.0, tmp_path / "state", lines=io.BytesIO(LINE), out=out)
    assert read_reply(out.getvalue(), agent=5) in (0, 1)
    assert read_row(file, None, io.BytesIO()) == (["secret", "", ""], None)


ODD = [
    ("me.csv", "a,b\n1," + SECRET * 40_000 + "\n"),
    ("me.csv", "a,b\n1,hel\u2028lo\n"),
    ("me.csv", "a,b\n1,a\x0cb\x1db\n"),
    ("me.csv", 'a,b\n1,"two\nlines, one cell"\n'),
    ("me.csv", 'a,b\n1,"never closed\n'),
    ("me.csv", "a,b\n1,a lone\rreturn\n"),
    ("me.csv", 'a,b\r\n1,"of\r\nWindows"\r\n'),
    ("me.json", '{"a": 1, "b": ' + "9" * 5000 + "}"),
]


@pytest.mark.parametrize(("name", "text"), ODD)
def test_whether_it_answers_does_not_depend_on_a_cell(tmp_path, name, text):
    """A device that dies on a cell tells that cell by its silence."""
    (tmp_path / name).write_bytes(text.encode())
    result = run("--row", tmp_path / name, "--epsilon", 1)
    assert read_reply(result.stdout_bytes, agent=5) in (0, 1)
