"""Agents that are real processes: honest ones, and every kind of other."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dpadapt.hybrid.protocol import write_refusal, write_reply
from dpadapt.hybrid.questions import Below, Mistake, Slope
from dpadapt.hybrid.rules import FunctionRule, LinearRule
from dpadapt.privacy.local import AgentAskedTwice, Agents, pipes
from dpadapt.privacy.local.pipes import ProgramOutput, ask_programs
from dpadapt.privacy.local.replies import estimate

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes to processes need POSIX")

DEVICE = [sys.executable, "-m", "dpadapt", "agent"]


LONG = 3600.0  # seconds: for programs that end by themselves, however busy the machine is
SHORT = 0.3  # for programs that never say anything


def shell(text):
    return ["sh", "-c", text]


def reply(agent, answer="1"):
    return f'{{"dpadapt": 1, "agent": {agent}, "answer": {answer}}}'


def children():
    """Programs of these tests that still run or were not waited for (zombies)."""
    if shutil.which("ps") is None:
        pytest.skip("no ps")
    listing = ["ps", "-o", "pid=,stat=,args=", "--ppid", str(os.getpid())]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if re.search(r"sleep|sh -c|yes|defunct", line)]


def test_zombies_and_running_programs_are_seen():
    running = subprocess.Popen(["sleep", "30"])
    assert len(children()) == 1
    running.kill()
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
    assert len(children()) == 1  # a zombie
    running.wait()
    assert not children()


class Clock:
    """Time that stands still until some files are there; then all deadlines have passed.

    It goes on when the pipes were looked at once more: what was written before the files is heard.
    """

    def __init__(self, *files):
        self.files, self.seen = files, 0

    def monotonic(self):
        self.seen += all(file.exists() for file in self.files)
        return LONG if self.seen > 2 else 0.0


@pytest.fixture
def until(monkeypatch):
    """Let every deadline pass when the files are there, and not before."""
    return lambda *files: monkeypatch.setattr(pipes, "time", Clock(*files))


def flagged(text, file):
    """Program that has said all before its file is there.

    It closes its output only at its end: whoever closes it earlier may be ended before the file.
    """
    return shell(f"sh -c {shlex.quote(text)}; touch {file}")


def talk(*commands, line=b"q\n", timeout=LONG, at_once=16, most_bytes=300):
    return ask_programs(
        commands, [line] * len(commands), timeout=timeout, at_once=at_once, most_bytes=most_bytes
    )


# The pipe --------------------------------------------------------------------------------------


def test_one_line_there_and_one_back():
    assert talk(["cat"], line=b"hello\n") == [ProgramOutput(b"hello\n")]
    assert talk(shell("printf x")) == [ProgramOutput(b"x")]  # the last line needs no end


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("exit 0", "died"),
        ("exit 3", "died"),
        ("kill -9 $$", "died"),
        ("cat >/dev/null; echo; echo", "died"),
        ("echo 1; echo 2", "twice"),
        ("printf '1\\n2'", "twice"),
        ("yes", "long"),
        ("head -c 400 /dev/zero", "long"),
        ("sleep 9999", "silent"),
        ("sleep 9999; echo 1", "silent"),
        ("printf 1; sleep 9999", "silent"),
        ("exec >&-; sleep 9999", "died"),
        ("trap '' TERM INT HUP; sleep 9999", "silent"),
    ],
)
def test_problems(text, problem):
    timeout = SHORT if problem == "silent" else LONG
    assert talk(shell(text), timeout=timeout) == [ProgramOutput(b"", problem)]
    assert not children()


def test_programs_that_are_none(tmp_path):
    (tmp_path / "plain").write_text("no program")
    found = talk(["no-such-program-anywhere"], [str(tmp_path / "plain")], [str(tmp_path)], ["a\0b"])
    assert [each.problem for each in found] == ["unstarted"] * 4


def test_an_answer_in_time_counts_even_if_the_program_stays(tmp_path, until):
    until(tmp_path / "said")
    text = f"echo 1; touch {tmp_path}/said; sleep 9999"
    assert talk(shell(text), timeout=0.05) == [ProgramOutput(b"1\n")]


def test_two_lines_of_a_program_that_stays(tmp_path, until):
    until(tmp_path / "said")
    text = f"echo 1; printf 2; touch {tmp_path}/said; sleep 9999"
    assert talk(shell(text), timeout=0.05) == [ProgramOutput(b"", "twice")]


def test_a_long_question_to_somebody_who_does_not_read_blocks_nobody(tmp_path, until):
    ends = [tmp_path / "deaf", tmp_path / "counted"]
    until(*ends)
    line = b"x" * (1 << 22) + b"\n"
    programs = flagged("exec <&-; echo 1", ends[0]), flagged("wc -c", ends[1])
    found = talk(shell("sleep 9999"), *programs, line=line, timeout=0.05)
    assert found[0].problem == "silent"
    assert found[1].line == b"1\n"
    assert int(found[2].line) == len(line)


def test_what_a_program_started_is_ended_with_it(tmp_path, until):
    until(tmp_path / "said")
    text = f"(sleep 9998.{os.getpid()}) & echo 1; touch {tmp_path}/said"
    assert talk(shell(text), timeout=0.05) == [ProgramOutput(b"1\n")]
    assert not strays(f"sleep 9998.{os.getpid()}")


STRAY = "setsid sh -c 'touch {flag}; exec sleep {time}' >/dev/null 2>&1"
WAIT = "while ! [ -e {flag} ]; do sleep 0.01; done; echo 1"
STRAYS = [
    f"{STRAY} & {WAIT}",
    f"(setsid {STRAY} &); {WAIT}",
    f"env -i {STRAY} & {WAIT}; exec >&-; wait",
    "setsid sh -c 'while true; do sleep {time} & touch {flag}; sleep 0.1; done' >/dev/null & "
    + WAIT,
]
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("text", STRAYS)
def test_who_left_the_group_is_ended_as_well(text, tmp_path):
    facts = {"flag": tmp_path / "flag", "time": f"9997.{os.getpid()}"}
    assert talk(shell(text.format(**facts))) == [ProgramOutput(b"1\n")]
    assert not strays("sleep {time}".format(**facts))


@needs_proc
def test_ending_the_group_alone_would_leave_somebody(monkeypatch, tmp_path):
    monkeypatch.setattr(pipes, "end_family", lambda leader, mark: os.killpg(leader, 9))
    facts = {"flag": tmp_path / "flag", "time": f"9996.{os.getpid()}"}
    assert talk(shell(STRAYS[0].format(**facts))) == [ProgramOutput(b"1\n")]
    while not (left := strays("sleep {time}".format(**facts))):
        time.sleep(0.01)  # it is on its way
    for number in left:
        os.kill(number, 9)


def strays(words):
    """Numbers of the living processes of that command."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").strip()
        except OSError:
            continue
        if command == words.encode():
            found.append(int(folder.name))
    return found


def test_the_deadline_holds_for_all_and_order_is_kept(tmp_path, until):
    ends = {i: tmp_path / str(i) for i in range(30) if i % 3}
    until(*ends.values())
    commands = [
        flagged(f"echo {i}", ends[i]) if i in ends else shell("sleep 9999") for i in range(30)
    ]
    found = talk(*commands, timeout=0.05, at_once=30)
    for i, each in enumerate(found):
        assert each == (
            ProgramOutput(b"", "silent") if i % 3 == 0 else ProgramOutput(f"{i}\n".encode())
        )
    assert not children()


def test_no_more_than_so_many_at_once(tmp_path):
    text = f"touch {tmp_path}/$$; ls {tmp_path} | wc -l; sleep 0.05; rm {tmp_path}/$$"
    found = talk(*[shell(text)] * 20, at_once=3)
    assert max(int(each.line) for each in found) <= 3


def test_nobody_is_left_behind_when_the_caller_is_interrupted():
    def lines():
        yield b"q\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_programs([shell("sleep 9999")] * 2, lines(), timeout=30, at_once=2, most_bytes=10)
    assert not children()


def test_from_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.extend(talk(["cat"])))
    thread.start()
    thread.join(10)
    assert found == [ProgramOutput(b"q\n")]


def test_file_descriptors_are_given_back():
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no /proc")
    before = len(list(folder.iterdir()))
    talk(*[shell("echo 1")] * 10, shell("sleep 9"), shell("yes"), ["nothing-there"], timeout=0.5)
    assert len(list(folder.iterdir())) <= before


# Agents ----------------------------------------------------------------------------------------


def test_agents_that_misbehave_are_counted_and_left_out(tmp_path, until):
    texts = {
        0: "cat >/dev/null; echo '" + reply(0) + "'",
        1: "sleep 9999",
        2: f"echo '{reply(2)}'; echo '{reply(2)}'",
        3: "echo not JSON",
        4: f"echo '{reply(4, '2')}'",
        5: f"echo '{reply(5, '0.5')}'",
        6: f"echo '{reply(7)}'",
        7: "head -c 100000 /dev/urandom",
        8: f"sleep 9999; echo '{reply(8)}'",
        9: "kill -9 $$",
        10: f"printf '%s' '{write_refusal(10, 'answered before').decode().strip()}'",
        11: "head -c 40 /dev/urandom",
        12: f"printf '%s' '{reply(12, '0')}'",
        13: f"printf '%s' '{write_reply(13, [0.1, 0.2]).decode().strip()}'",
    }
    ends = {i: tmp_path / str(i) for i in texts if i not in (1, 7, 8)}  # those end by themselves
    until(*ends.values())
    commands = [
        flagged(text, ends[i]) if i in ends else shell(text) for i, text in texts.items()
    ] + [["no-such-program-anywhere"]]
    agents = Agents.from_processes(commands, n_columns=2, timeout=0.05)
    with agents.open(epsilon=1.0) as poll:
        replies = poll.ask(Below(np.zeros(15, int), np.zeros(15)), ids=range(15))
    assert list(replies.places) == [0, 12]
    assert list(replies.values) == [1.0, 0.0]
    rubbish = replies.problems["rubbish"] + replies.problems.get(
        "twice", 0
    )  # 11 may hold a newline
    assert rubbish == 7
    assert {k: v for k, v in replies.problems.items() if k not in ("rubbish", "twice")} == {
        "silent": 2,
        "long": 1,
        "died": 1,
        "refused": 1,
        "unstarted": 1,
    }
    assert sum(replies.problems.values()) == 13
    assert estimate(replies, 0.1).count == 2
    assert agents.n_left == 0  # who did not answer is spent all the same
    with pytest.raises(AgentAskedTwice):
        agents.open(epsilon=1.0).ask(Below([0], [0.0]), ids=[1])
    assert not children()


def test_nobody_answers():
    agents = Agents.from_processes([shell("exit 0")] * 5, n_columns=1, timeout=LONG)
    replies = agents.open(epsilon=1.0).ask(Below(np.zeros(5, int), np.zeros(5)))
    assert (len(replies.values), replies.problems) == (0, {"died": 5})
    assert estimate(replies, 0.1).high == 1.0


def test_each_process_gets_its_own_part_and_nothing_else(tmp_path):
    commands = [shell(f"cat > {tmp_path}/{i}") for i in range(4)]
    agents = Agents.from_processes(commands, n_columns=3, timeout=LONG)
    agents.open(epsilon=0.5).ask(Below([2, 1, 0, 2], [0.1, 0.2, 0.3, 0.4]), ids=[3, 1, 0, 2])
    for place, agent in enumerate([3, 1, 0, 2]):
        message = json.loads((tmp_path / str(agent)).read_text())
        assert message["agent"] == agent
        assert message["epsilon"] == 0.5
        assert message["ask"]["thresholds"] == [[0.1, 0.2, 0.3, 0.4][place]]


def test_what_processes_cannot_be_asked():
    agents = Agents.from_processes([["cat"]] * 3, n_columns=1)
    with pytest.raises(ValueError, match="bits and directions"):
        agents.open(epsilon=1.0, delta=1e-5, response="gaussian").ask(Below([0], [0.0]))
    with pytest.raises(TypeError, match="cannot be sent"):
        agents.open(epsilon=1.0).ask(Mistake(FunctionRule(lambda X: X, (0, 1))), 1)
    assert repr(agents) == "Agents(3 agents, 3 left, 1 column, labelled)"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"commands": ["cat"]}, "list of arguments"),
        ({"commands": [[]]}, "name a program"),
        ({"n_columns": 0}, "n_columns"),
        ({"timeout": 0.0}, "timeout"),
        ({"at_once": 0}, "at_once"),
    ],
)
def test_arguments(arguments, match):
    with pytest.raises((ValueError, TypeError), match=match):
        Agents.from_processes(**{"commands": [["cat"]], "n_columns": 1, **arguments})


def devices(folder, X, y, epsilon):
    commands = []
    for i, (row, label) in enumerate(zip(X, y, strict=True)):
        file = folder / f"{i}.json"
        file.write_text(json.dumps({"a": row[0], "b": row[1], "label": str(label)}))
        own = ["--row", str(file), "--label", "label", "--epsilon", str(epsilon)]
        commands.append([*DEVICE, *own, "--state", str(folder / f"{i}.state")])
    return commands


RULE = LinearRule("linear", np.zeros(2), np.ones(2), np.array([1.0, 0.0, 0.0]), ("no", "yes"))


@pytest.mark.slow
def test_a_few_honest_devices(tmp_path):
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]), ["yes", "yes", "no"]
    agents = Agents.from_processes(
        devices(tmp_path, X, y, 50.0), n_columns=2, timeout=LONG, at_once=3
    )
    with agents.open(epsilon=50.0) as poll:
        replies = poll.ask(Mistake(RULE), ids=[2, 0, 1])
    assert list(replies.values) == [1.0, 0.0, 1.0]
    assert replies.problems == {}
    # the asker forgets, the devices do not
    again = Agents.from_processes(devices(tmp_path, X, y, 50.0), n_columns=2, timeout=LONG)
    assert again.open(epsilon=1.0).ask(Mistake(RULE), ids=[2]).problems == {"refused": 1}


@pytest.mark.slow
def test_forty_devices_answer_as_agents_in_memory_do(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(rng.random(40) < 0.75, X[:, 0] > 0, X[:, 0] <= 0)
    y[20:] = X[20:, 0] <= 0  # what the rule below gets wrong: long slopes
    strong = RULE.with_coefficients(1000 * RULE.coefficients)
    labels = np.array(["no", "yes"])[y.astype(int)]
    epsilon = 4.0
    real = Agents.from_processes(
        devices(tmp_path, X, labels, epsilon), n_columns=2, timeout=LONG, at_once=4
    )
    memory = Agents(X, labels)
    with real.open(epsilon=epsilon) as poll, memory.open(epsilon=epsilon) as other:
        bits, same = (each.ask(Mistake(RULE), ids=range(20)) for each in (poll, other))
        vectors, also = (each.ask(Slope(strong), ids=range(20, 40)) for each in (poll, other))
    assert bits.problems == vectors.problems == {}
    truth = np.where(X[:, 0] > 0, "yes", "no") != labels
    for replies in (bits, same):  # a lie in 56
        assert np.count_nonzero(replies.values != truth[:20]) <= 4
    slopes = strong.slopes(X[20:], np.where(labels[20:] == "yes", 1.0, -1.0))
    for replies in (vectors, also):
        assert np.linalg.norm(replies.values, axis=1) == pytest.approx(
            np.full(20, replies.randomiser.norm)
        )
        inner = np.einsum("ij,ij->i", replies.values, slopes)
        # each is on the right side with a chance of 0.77 at least: false alarm below 1e-6
        assert np.count_nonzero(inner > 0) >= 6
    assert poll.guarantee.epsilon == other.guarantee.epsilon == pytest.approx(epsilon)
