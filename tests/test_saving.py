"""Saving: a kill at any moment leaves the old model or the new one, and next to nothing beside."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpadapt.baselines import PublicOnlyRegressor
from dpadapt.modelfolder import ModelFolderError, load_model, save_model
from dpadapt.modelfolder import files as files_module
from dpadapt.modelfolder.files import new_folder, put_in_place

KILLS = int(os.environ.get("DPADAPT_KILLS", "40"))


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")


@pytest.fixture(scope="module")
def model():
    return PublicOnlyRegressor().fit(np.eye(3), [1.0, 2.0, 3.0])


def left_behind(target, name="abcdefgh", old=None):
    part = target.parent / f".{target.name}-{name}.part"
    part.mkdir()
    (part / "model.json").write_text("half")
    if old is not None:
        os.rename(old, part / "old")
    return part


def hidden(target):
    return sorted(path.name for path in target.parent.iterdir() if path.name.startswith("."))


def test_what_the_killed_left_behind_is_removed(tmp_path, model):
    target = tmp_path / "a model [1]"
    for name in ("aaaaaaaa", "bbbbbbbb"):
        left_behind(target, name)
    other = left_behind(tmp_path / "another")
    (tmp_path / ".a model [1]-notes").mkdir()
    save_model(model, target)
    assert hidden(target) == sorted([other.name, ".a model [1]-notes"])
    load_model(target)


def test_what_another_process_is_writing_stays(tmp_path, model):
    with new_folder(tmp_path / "model") as busy:
        save_model(model, tmp_path / "model")
        assert busy.is_dir()
    assert hidden(tmp_path / "model") == []


def test_a_folder_that_was_cleared_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    """Another process may come between making a folder and locking it."""
    import tempfile

    made, real = [], tempfile.mkdtemp

    def unlucky(**options):
        made.append(real(**options))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", unlucky)
    with new_folder(tmp_path / "model") as folder:
        assert (len(made), str(folder)) == (2, made[1])


def test_the_old_model_is_put_back_if_it_is_the_only_one(tmp_path, model):
    target = save_model(model, tmp_path / "model")
    left_behind(target, old=target)
    assert not target.exists()
    with pytest.raises(ModelFolderError, match="exists; use force=True to"):
        save_model(model, target)
    load_model(target)


@pytest.mark.parametrize("exchange", [True, False])
def test_replacing(tmp_path, model, monkeypatch, exchange):
    if not exchange:  # a system that cannot let two folders change places
        monkeypatch.setattr(files_module, "_exchanged", lambda one, two: False)
    target = save_model(model, tmp_path / "model")
    first = os.stat(target).st_ino
    save_model(model, target, force=True)
    assert os.stat(target).st_ino != first
    assert os.listdir(tmp_path) == ["model"]
    load_model(target)


def test_a_folder_that_appeared_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "model"
    with new_folder(target) as folder:
        target.write_text("mine")
        with pytest.raises(ModelFolderError, match="cannot be written"):
            put_in_place(folder, target)
    assert target.read_text() == "mine"


def test_everything_is_on_the_disk_before_the_rename(tmp_path, model, monkeypatch):
    done = []
    real_sync, real_rename = os.fsync, os.rename
    watched = lambda opened: done.append(os.path.basename(os.readlink(f"/proc/self/fd/{opened}")))  # noqa: E731
    monkeypatch.setattr(os, "fsync", lambda opened: (watched(opened), real_sync(opened))[1])
    monkeypatch.setattr(os, "rename", lambda a, b: (done.append("rename"), real_rename(a, b))[1])
    save_model(model, tmp_path / "model")
    place = done.index("rename")
    assert {"model.json", "arrays.bin", "report.html", "guarantee.json"} < set(done[:place])
    assert done[place - 1].endswith(".part")
    assert done[place + 1 :] == [tmp_path.name]


SCRIPT = """
import os, random, signal, sys, time
import numpy as np
import dpadapt.learning.figures
dpadapt.learning.figures.as_data_uri = lambda figure: "data:,"
from dpadapt.baselines import PublicOnlyRegressor
from dpadapt.modelfolder import load_model, save_model
target, kills = sys.argv[1], int(sys.argv[2])
model = PublicOnlyRegressor().fit(np.eye(3), [1.0, 2.0, 3.0])
save_model(model, target)  # imports what it needs
start = time.perf_counter()
save_model(model, target, force=True)
took = time.perf_counter() - start
draw = random.Random(0)
for _ in range(kills):
    child = os.fork()
    if child == 0:
        while True:
            save_model(model, target, force=True)
    time.sleep(2 * took * draw.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    load_model(target)
left = [name for name in os.listdir(os.path.dirname(target)) if name.startswith(".")]
assert len(left) <= 1, left
save_model(model, target, force=True)
load_model(target)
print(*os.listdir(os.path.dirname(target)))
"""


@pytest.mark.slow
def test_kills_during_save(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "model"), str(KILLS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout.split(), run.stderr) == (["model"], "")
    assert Path(tmp_path / "model").is_dir()
