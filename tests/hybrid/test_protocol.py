"""Messages, and the device at the other end: it answers once, under its own cap."""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binomtest

from dpadapt.hybrid.device import AnswerOnce, Device
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
from dpadapt.privacy.local.randomisers import BallResponse

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
def test_a_device_refuses_rubbish_and_can_still_answer(line, device):
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


@pytest.fixture
def device(tmp_path):
    return Device([0.0, 0.0], epsilon=1.0, state=tmp_path / "answered")


OTHER = Below([1], [3.0]).request(0, agent=5, epsilon=1.0)


def test_it_answers_one_question_and_always_the_same(device):
    first = device.answer(LINE)
    assert read_reply(first, agent=5) in (0, 1)
    assert {device.answer(LINE) for _ in range(20)} == {first}
    for line in (OTHER, Below([1], [2.0]).request(0, agent=6, epsilon=1.0)):
        assert b'"refused": "answered before"' in device.answer(line)
    assert device.answer(LINE) == first


def test_a_question_in_other_spaces_is_the_same(device):
    spaced = json.dumps(json.loads(LINE), indent=1, sort_keys=True).replace("\n", " ").encode()
    assert spaced != LINE
    assert device.answer(LINE) == device.answer(spaced)


def test_it_answers_once_under_threads(device):
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda i: device.answer(OTHER if i % 2 else LINE), range(64)))
    assert len({each for each in said if b'"answer"' in each}) == 1
    assert sum(b'"answer"' in each for each in said) == 32


def test_it_never_answers_above_its_cap_and_that_costs_nothing(device):
    too_much = Below([1], [2.0]).request(0, agent=5, epsilon=1.0 + 1e-12)
    assert b'"refused": "epsilon above the cap"' in device.answer(too_much)
    assert read_reply(device.answer(LINE), agent=5) in (0, 1)


def races(folder, rounds, processes, answer):
    """How many different answers leave each of some devices that are started so often at once."""
    found = []
    for round_ in range(rounds):
        source, sink = os.pipe()
        gate, opener = os.pipe()
        children = []
        for _ in range(processes):
            if (pid := os.fork()) == 0:
                os.close(opener)
                device = Device([0.3, 1.7], "yes", epsilon=1.0, state=folder / f"state {round_}")
                os.read(gate, 1)  # returns when the parent closes the other end
                os.write(sink, answer(device, SLOPE))
                os._exit(0)
            children.append(pid)
        os.close(opener)
        os.close(sink)
        with os.fdopen(source, "rb") as said:
            lines = said.read().splitlines()
        for pid in children:
            os.waitpid(pid, 0)
        os.close(gate)
        assert len(lines) == processes
        found.append(len(set(lines)))
    return found


SLOPE = Slope(RULE).request(0, 5, 1.0)


@pytest.mark.slow
def test_racing_processes_give_one_answer(tmp_path):
    assert races(tmp_path, 6, 12, Device.answer) == [1] * 6


def test_the_race_would_notice_a_device_without_a_state(tmp_path):
    def forgets(device, line):
        device._once = AnswerOnce(tmp_path / f"own {os.getpid()}")
        return device.answer(line)

    assert min(races(tmp_path, 2, 12, forgets)) > 1


def test_a_restart_says_the_same_and_nothing_else(tmp_path):
    state = tmp_path / "answered"
    first = Device([0.3, 1.7], "yes", epsilon=1.0, state=state).answer(SLOPE)
    for _ in range(100):
        assert Device([0.3, 1.7], "yes", epsilon=1.0, state=state).answer(SLOPE) == first
    other = Device([9.0, 9.0], "no", epsilon=1.0, state=state)
    assert other.answer(SLOPE) == first
    assert b'"answered before"' in other.answer(LINE)


def test_the_answer_is_on_disk_before_it_leaves(tmp_path, monkeypatch):
    state, synced = tmp_path / "answered", []
    original = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), original(handle)))
    said = Device([0.0, 0.0], epsilon=1.0, state=state).answer(LINE)
    assert json.loads(state.read_bytes())["said"].encode() == said
    assert len(synced) == 2  # the file and its folder
    assert [each.name for each in tmp_path.iterdir()] == ["answered"]


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_an_answer_that_cannot_be_kept_does_not_leave(tmp_path, monkeypatch, step):
    def full(*_):
        raise OSError(28, "No space left on device")

    device = Device([0.0, 0.0], epsilon=1.0, state=tmp_path / "answered")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        device.answer(LINE)
    assert list(tmp_path.iterdir()) == []


def test_killed_devices_leave_one_draft_which_the_next_removes(tmp_path):
    """Killed between draft and name: the answer never left, and there is never a second one."""
    for _ in range(3):
        if not (child := os.fork()):
            os.link = lambda *_: os._exit(9)
            Device([0.0, 0.0], epsilon=1.0, state=tmp_path / "answered").answer(LINE)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert [each.name for each in tmp_path.iterdir()] == [".answered.new"]
    assert b'"answer"' in Device([0.0, 0.0], epsilon=1.0, state=tmp_path / "answered").answer(LINE)
    assert [each.name for each in tmp_path.iterdir()] == ["answered"]


DAMAGED = [b"answered\n", b"", b"{", b"[" * 100_000, b"null", b'{"said": 1}', b"\xff", b'{"a": 1}']


@pytest.mark.parametrize("damaged", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_or_old_state_counts_as_answered(tmp_path, damaged):
    state = tmp_path / "answered"
    state.write_bytes(damaged)
    device = Device([0.0, 0.0], epsilon=1.0, state=state)
    assert b'"refused": "answered before"' in device.answer(LINE)
    assert state.read_bytes() == damaged


def test_a_state_that_is_no_file(tmp_path):
    for state in (tmp_path, "/dev/full", "/dev/null"):
        with pytest.raises(OSError, match="state must be a file"):
            Device([0.0, 0.0], epsilon=1.0, state=state).answer(LINE)


def test_two_names_of_a_state_are_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "answered")
    first = Device([0.3, 1.7], "yes", epsilon=1.0, state=tmp_path / "link").answer(SLOPE)
    assert (tmp_path / "answered").exists()
    again = Device([0.3, 1.7], "yes", epsilon=1.0, state=tmp_path / "answered")
    assert again.answer(SLOPE) == first


def test_a_state_that_cannot_be_written_means_no_answer(tmp_path):
    device = Device([0.0, 0.0], epsilon=1.0, state=tmp_path / "no" / "such" / "folder")
    with pytest.raises(OSError, match="No such file"):
        device.answer(LINE)


def test_it_cannot_be_copied(device):
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="copied"):
            copying(device)


@pytest.fixture
def new(tmp_path):
    """Devices with a state of their own each."""
    numbers = itertools.count()
    return lambda *row, **more: Device(*row, state=tmp_path / f"{next(numbers)}", **more)


def test_its_bits_have_the_law_of_randomised_response(new):
    true = Below([0], [1.0]).request(0, 0, 1.0)
    false = Below([0], [-1.0]).request(0, 0, 1.0)
    share = math.e / (1 + math.e)
    for line, chance in ((true, share), (false, 1 - share)):
        ones = sum(read_reply(new([0.0], epsilon=2.0).answer(line), 0) for _ in range(400))
        assert binomtest(ones, 400, chance).pvalue > 1e-6
        assert binomtest(ones, 400, 1 - chance).pvalue < 1e-6


@pytest.mark.parametrize(("label", "mistake"), [("yes", 0), ("no", 1), (None, 1), ("maybe", 1)])
def test_labels_of_a_device(label, mistake, new):
    line = Mistake(RULE).request(0, agent=1, epsilon=50.0)
    assert read_reply(new([3.0, 0.0], label, epsilon=50.0).answer(line), 1) == mistake


def test_vectors_of_a_device(new):
    question = Slope(RULE)
    line = new([3.0, 0.0], "yes", epsilon=1.0).answer(question.request(0, 1, 1.0))
    vector = question.reply(line, agent=1, epsilon=1.0)
    assert np.linalg.norm(vector) == pytest.approx(BallResponse(1.0, 3).norm)


@pytest.mark.parametrize("row", [[None, "x"], [float("nan"), 1e400], [10**400, {}]])
def test_odd_rows_answer_like_all_others(row, new):
    assert b'"answer"' in new(row, {}, epsilon=1.0).answer(LINE)
    slope = Slope(RULE).request(0, 5, 1.0)
    assert b'"answer"' in new(row, [], epsilon=1.0).answer(slope)
