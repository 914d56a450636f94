"""The recorder of bits: what it calls equal is equal, and what moved is said to have moved."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.bits import change_of, compare, entries, record
from tools.bits_fits import all_fits

ROOT = Path(__file__).parent.parent


def told(value):
    return record({"fit": lambda: {"predict": value}})


def test_equal_bits_are_equal_and_others_are_not():
    one = np.array([1.0, -0.0, np.nan, np.inf])
    assert compare(told(one), told(one.copy())).equal == 1
    assert compare(told(one), told(one.astype(np.float32))).equal == 1  # the same numbers
    found = compare(told(np.array([1.0, 3.0])), told(np.array([1.0, np.nextafter(3.0, 4.0)])))
    assert found.equal == 0
    assert not found.holds(0.0)
    assert found.holds(1e-15)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([1.0], [1.0, 1.0]),
        (np.array([1.0]), np.array([1.0, 1.0])),
        (np.array([np.nan]), np.array([1.0])),
        ("low", "high"),
        ("1.0", 1.0),
    ],
    ids=str,
)
def test_another_form_or_word_is_no_small_change(one, two):
    assert change_of(entries(one), entries(two)) == float("inf")
    assert not compare(told(one), told(two)).holds(1e9)


def test_a_number_of_an_array_moves_relative_to_the_largest():
    moved = change_of(entries(np.array([1e-20, 4.0])), entries(np.array([-1e-20, 4.0])))
    assert moved == 5e-21
    assert change_of(entries([1e-20, 4.0]), entries([-1e-20, 4.0])) == 2.0  # each by itself


def test_a_fit_that_is_gone_or_refused_is_told():
    found = compare({**told(1.0), "other": {}}, told(1.0))
    assert (found.gone, found.new, found.holds(1.0)) == (("other",), (), False)
    refused = record({"fit": lambda: 1 / 0})
    assert not compare(told(1.0), refused).holds(1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        "AutoRegressor | regression | secure",  # whose keys are secret elsewhere
        "hold-out of people | regression",  # and the order of people
        "KernelClassifier(release='gaussian-process') | two classes | much budget",
    ],
)
def test_two_processes_record_the_same(name, tmp_path):
    script = (
        "import json, sys\n"
        "from tools import bits\n"
        "with bits.fixed_secrets():\n"
        "    from tools.bits_fits import all_fits\n"
        "    json.dump(bits.record({'fit': all_fits(quick=True)[sys.argv[1]]}), sys.stdout)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script, name], cwd=ROOT, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert "guarantee" in json.loads(runs[0])["fit"]


def test_every_fit_has_a_name_of_its_own():
    few, every = all_fits(quick=True), all_fits()
    assert few.keys() < every.keys()
    assert len(every) > 1000


def test_a_recording_leaves_secrets_secret():
    """Noise of this process must not be that of a script, which everybody knows."""
    record({"fit": lambda: {"key": secrets.token_bytes(16).hex()}})
    assert secrets.token_bytes(16) != secrets.token_bytes(16)
    assert secrets.randbits(128) != secrets.randbits(128)
