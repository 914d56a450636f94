"""Messages, and the device at the other end: it answers once, under its own cap."""

from __future__ import annotations

import copy
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binomtest

from dpadapt.hybrid.device import Device
from dpadapt.hybrid.protocol import (
    REFUSALS,
    read_question,
    read_reply,
    write_question,
    write_refusal,
    write_reply,
)
from dpadapt.hybrid.questions import Below, Mistake, Slope, question_from_dict
from dpadapt.hybrid.rules import LinearRule
from dpadapt.privacy.randomisers import BallResponse

RULE = LinearRule("linear", np.zeros(2), np.ones(2), np.array([1.0, 0.0, 0.0]), ("no", "yes"))
LINE = Below([1], [2.0]).request(0, agent=5, epsilon=1.0)


def test_a_question_comes_through_whole():
    question = Below([3, 1, 2], [0.1, 0.2, 1 / 3])
    asked, agent, epsilon = read_question(question.request(2, agent=17, epsilon=0.3))
    assert (agent, epsilon) == (17, 0.3)
    one = question_from_dict(asked)
    assert list(one.coordinates) == [2]  # its own part and nobody else's
    assert list(one.thresholds) == [1 / 3]


def test_messages_are_single_lines_with_a_version():
    for line in (LINE, write_reply(1, 0), write_refusal(1, REFUSALS[0])):
        assert line.count(b"\n") == 1
        assert json.loads(line)["dpadapt"] == 1


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{",
        b"\xff\xfe\n",
        b"null\n",
        b"[]\n",
        b"[" * 100_000,
        b'{"dpadapt": 1}\n',
        LINE.replace(b'"dpadapt": 1', b'"dpadapt": 2'),
        LINE.replace(b'"dpadapt": 1', b'"dpadapt": true'),
        LINE.replace(b'"epsilon": 1.0', b'"epsilon": NaN'),
        LINE.replace(b'"epsilon": 1.0', b'"epsilon": Infinity'),
        LINE.replace(b'"epsilon": 1.0', b'"epsilon": -1'),
        LINE.replace(b'"epsilon": 1.0', b'"epsilon": "1"'),
        LINE.replace(b'"epsilon": 1.0', b'"epsilon": 1' + b"0" * 400),
        LINE.replace(b'"agent": 5', b'"agent": -5'),
        LINE.replace(b'"agent": 5', b'"agent": 5.0'),
        LINE.replace(b'"agent": 5', b'"agent": 5, "more": 1'),
        write_question({"question": "below"}, 5, 1.0),
        write_question({"question": "below", "coordinates": [9], "thresholds": [0.0]}, 5, 1.0),
        write_question(
            {"question": "below", "coordinates": [1] * 2, "thresholds": [0.0] * 2}, 5, 1.0
        ),
        write_question({"question": "below", "coordinates": [], "thresholds": []}, 5, 1.0),
        Below([1], [2.0]).request(0, agent=5, epsilon=1e-9),
        b" " * (1 << 24) + LINE,
    ],
)
def test_a_device_refuses_rubbish_and_can_still_answer(line):
    device = Device([0.0, 0.0], epsilon=1.0)
    assert b'"refused": "not a question"' in device.answer(line)
    assert read_reply(device.answer(LINE), agent=5) in (0, 1)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"yes\n",
        b"\xff\n",
        b'{"dpadapt": 1, "agent": 5}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": 2}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": 0.5}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": 1.0}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": true}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": "1"}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": [1]}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": NaN}\n',
        b'{"dpadapt": 1, "agent": 6, "answer": 1}\n',
        b'{"dpadapt": 3, "agent": 5, "answer": 1}\n',
        b'{"dpadapt": 1, "agent": 5, "answer": 1}\n{"dpadapt": 1, "agent": 5, "answer": 1}\n',
        write_refusal(5, "answered before"),
        b'{"dpadapt": 1, "agent": 5, "refused": "because my row is 7"}\n',
    ],
)
def test_what_is_no_bit(line):
    with pytest.raises(ValueError, match=r"."):
        read_reply(line, agent=5)
    assert read_reply(write_reply(5, 1), agent=5) == 1


@pytest.mark.parametrize(
    "answer",
    [1, [], [1.0], [3.0, 4.1], [3.0, 4.0, 0.0], ["3", "4"], [True, False], [3.0, 10**400], None],
)
def test_what_is_no_vector_of_the_norm(answer):
    with pytest.raises(ValueError, match="answer must"):
        read_reply(write_reply(5, answer), agent=5, width=2, norm=5.0)
    assert read_reply(write_reply(5, [3.0, -4.0]), agent=5, width=2, norm=5.0) == [3.0, -4.0]


def test_refusals_have_fixed_reasons():
    with pytest.raises(ValueError, match="reason"):
        write_refusal(1, "my row is 7")


# The device ------------------------------------------------------------------------------------


def test_it_answers_once():
    device = Device([0.0, 0.0], epsilon=1.0)
    assert read_reply(device.answer(LINE), agent=5) in (0, 1)
    for _ in range(3):
        assert b'"refused": "answered before"' in device.answer(LINE)


def test_it_answers_once_under_threads():
    device = Device([0.0, 0.0], epsilon=1.0)
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: device.answer(LINE), range(64)))
    assert sum(b'"answer"' in each for each in said) == 1


def test_it_never_answers_above_its_cap_and_that_costs_nothing():
    device = Device([0.0, 0.0], epsilon=1.0)
    too_much = Below([1], [2.0]).request(0, agent=5, epsilon=1.0 + 1e-12)
    assert b'"refused": "epsilon above the cap"' in device.answer(too_much)
    assert read_reply(device.answer(LINE), agent=5) in (0, 1)


def test_a_state_file_outlives_the_device(tmp_path):
    state = tmp_path / "answered"
    device = Device([0.0, 0.0], epsilon=1.0, state=state)
    assert not state.exists()
    assert b'"answer"' in device.answer(LINE)
    assert state.exists()
    assert b'"answered before"' in Device([0.0, 0.0], epsilon=1.0, state=state).answer(LINE)


def test_the_state_is_written_before_the_answer(tmp_path, monkeypatch):
    state = tmp_path / "answered"
    device = Device([0.0, 0.0], epsilon=1.0, state=state)
    monkeypatch.setattr(type(device._agents), "open", lambda self, **_: Dies(state))
    with pytest.raises(KeyboardInterrupt):
        device.answer(LINE)
    monkeypatch.undo()
    assert b'"answered before"' in Device([0.0, 0.0], epsilon=1.0, state=state).answer(LINE)


class Dies:
    """A poll during which the power goes."""

    def __init__(self, state):
        self.state = state

    def ask(self, question, count):
        assert self.state.exists()
        raise KeyboardInterrupt


def test_a_state_that_cannot_be_written_means_no_answer(tmp_path):
    device = Device([0.0, 0.0], epsilon=1.0, state=tmp_path / "no" / "such" / "folder")
    with pytest.raises(OSError, match="No such file"):
        device.answer(LINE)


def test_it_cannot_be_copied():
    device = Device([0.0, 0.0], epsilon=1.0)
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="copied"):
            copying(device)


def test_its_bits_have_the_law_of_randomised_response():
    true = Below([0], [1.0]).request(0, 0, 1.0)
    false = Below([0], [-1.0]).request(0, 0, 1.0)
    share = math.e / (1 + math.e)
    for line, chance in ((true, share), (false, 1 - share)):
        ones = sum(read_reply(Device([0.0], epsilon=2.0).answer(line), 0) for _ in range(400))
        assert binomtest(ones, 400, chance).pvalue > 1e-6
        assert binomtest(ones, 400, 1 - chance).pvalue < 1e-6


@pytest.mark.parametrize(("label", "mistake"), [("yes", 0), ("no", 1), (None, 1), ("maybe", 1)])
def test_labels_of_a_device(label, mistake):
    line = Mistake(RULE).request(0, agent=1, epsilon=50.0)
    assert read_reply(Device([3.0, 0.0], label, epsilon=50.0).answer(line), 1) == mistake


def test_vectors_of_a_device():
    question = Slope(RULE)
    line = Device([3.0, 0.0], "yes", epsilon=1.0).answer(question.request(0, 1, 1.0))
    vector = question.reply(line, agent=1, epsilon=1.0)
    assert np.linalg.norm(vector) == pytest.approx(BallResponse(1.0, 3).norm)


@pytest.mark.parametrize("row", [[None, "x"], [float("nan"), 1e400], [10**400, {}]])
def test_odd_rows_answer_like_all_others(row):
    assert b'"answer"' in Device(row, {}, epsilon=1.0).answer(LINE)
    slope = Slope(RULE).request(0, 5, 1.0)
    assert b'"answer"' in Device(row, [], epsilon=1.0).answer(slope)
