"""Model folders made by strangers: nothing of them runs, and each is refused in one sentence."""

import hashlib
import json
import math
import os
import resource
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
)
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, PolynomialFeatures
from typer.testing import CliRunner

from dpadapt import DiscrepancyRegressor, Guarantee
from dpadapt.cli import app
from dpadapt.modelfolder import ModelFolderError, load_model, save_model
from dpadapt.modelfolder.writing import encode, parse_dtype
from dpadapt.privacy.accounting.events import GaussianEvent

REGRESSOR = "dpadapt.discrepancy.discrepancy_regressor.DiscrepancyRegressor"
PIPELINE = "dpadapt.pipeline.AdaptationPipeline"
SKPIPELINE = "sklearn.pipeline.Pipeline"
FUNCTION = "sklearn.preprocessing.FunctionTransformer"
COMMAND = ["/bin/sh", "-c", "echo ran > canary"]


def made(name, /, **state):
    return {"object": [name, [[key, each] for key, each in state.items()]]}


def named(name):
    return {"name": name}


def pairs(**values):
    return {"dict": [[key, each] for key, each in values.items()]}


def step(func, **kw_args):
    """A transformer that calls what it was given."""
    return made(
        FUNCTION,
        func=func,
        kw_args=pairs(**kw_args) if kw_args else None,
        inverse_func=None,
        validate=False,
        accept_sparse=False,
        check_inverse=False,
        feature_names_out=None,
        inv_kw_args=None,
        _sklearn_version=sklearn.__version__,
    )


def pipeline(*steps, memory=None, last=None):
    """A pipeline of ours with hostile transformers before a model that works."""
    listed = [{"tuple": [f"s{i}", each]} for i, each in enumerate(steps)]
    inner = made(
        SKPIPELINE,
        steps=listed,
        memory=memory,
        verbose=False,
        transform_input=None,
        _sklearn_version=sklearn.__version__,
    )
    last = model_tree() if last is None else last
    return made(PIPELINE, steps=listed, estimator=last, transformer_=inner, estimator_=last)


def regressor(**more):
    """A model that works, with more attributes."""
    tree = model_tree()
    kept = [pair for pair in tree["object"][1] if pair[0] not in more]
    return {"object": [REGRESSOR, [*kept, *([key, each] for key, each in more.items())]]}


def model_tree():
    return {"object": [REGRESSOR, [["guarantee_", {"guarantee": GUARANTEE}], ["coef_", [0, 0, 0]]]]}


GUARANTEE = Guarantee((GaussianEvent("moment", 1.0, 4.0),), 1e-6, "secure").to_dict()

RUNS = {  # each runs the command as soon as its names are trusted
    "a function as a step": pipeline(step(named("subprocess.check_call"))),
    "a function of os": pipeline(step(named("canary_module.touch"))),
    "an object that is called": pipeline(step(made("canary_module.Toucher"))),
    "an object that wakes up": regressor(plan_=made("canary_module.Wakes", a=1)),
    "an object of slots that wakes up": regressor(coef_=made("canary_module.WakesSlots")),
    "a tuple with a constructor": regressor(plan_=made("canary_module.Pair", a=1, b=2)),
    "a dataclass with a constructor": regressor(plan_=made("canary_module.Data", a=1)),
    "a module that runs when imported": regressor(plan_=made("canary_import.Thing")),
    "a module, as a value": regressor(plan_=named("canary_import.thing")),
    "deep inside lists and tuples": regressor(
        plan_=[{"tuple": [[{"dict": [["a", [made("canary_module.Wakes")]]]}]]}]
    ),
    "in a key of a dictionary": regressor(plan_={"dict": [[named("canary_import.thing"), 1]]}),
    "in a cell of a table": regressor(plan_={"cells": [[1], [made("canary_module.Wakes")]]}),
    "as the estimator of a pipeline": pipeline(last=made("canary_module.Wakes")),
    "as the whole model": made("canary_module.Wakes"),
    "as the guarantee": regressor(guarantee_=made("canary_module.Wakes")),
    "a kernel of one's own": regressor(
        plan_=made(
            "dpadapt.kernels.kernel.Kernel",
            form=made(
                "dpadapt.kernels.kernel.FunctionKernel",
                function=named("canary_import.thing"),
                bound=1.0,
            ),
            squared_bound=1.0,
        )
    ),
}


def agents_of_a_stranger():
    """What ran a command once: a poll whose devices are processes, asked on predict."""
    holders = made(
        "dpadapt.privacy.local.holders.ProcessHolders",
        commands=[COMMAND],
        n_columns=1,
        timeout=5.0,
        at_once=1,
    )
    poll = made("dpadapt.privacy.local.poll.Poll", _agents=holders, epsilon=1.0, delta=0.0)
    last = made(
        "dpadapt.kernels.interactive_predictor.InteractivePredictor",
        _asking=poll,
        estimator_=model_tree(),
        guarantee_={"guarantee": GUARANTEE},
    )
    return pipeline(
        step(named("dpadapt.hybrid.questions.Mistake")),
        step(named("numpy.positive"), out=[0], where=False, casting="unsafe"),
        step(named("dpadapt.hybrid.questions.Below"), thresholds=[0.5]),
        last=last,
    )


def deep(levels):
    tree = []
    for _ in range(levels):
        tree = [tree]
    return tree


OTHERS = {
    "agents that are processes": agents_of_a_stranger(),
    "holders alone": made("dpadapt.privacy.local.holders.ProcessHolders", commands=[COMMAND]),
    "holders inside": regressor(plan_=made("dpadapt.privacy.local.holders.ProcessHolders")),
    "a session": regressor(plan_=made("dpadapt.privacy.core.session.Session")),
    "a ledger": regressor(ledger=made("dpadapt.privacy.ledger.ledger.Ledger")),
    "a network by its path": pipeline(
        made("dpadapt.features.extractors.TorchFeatures", module="/evil.pt")
    ),
    "texts by a path": pipeline(
        made("dpadapt.features.extractors.SentenceFeatures", model="/evil")
    ),
    "a function of this library": regressor(plan_=named("dpadapt.modelfolder.folder.save_model")),
    "a module of this library": regressor(plan_=named("dpadapt.modelfolder.folder.os")),
    "a class on the list, as a value": regressor(plan_=named(REGRESSOR)),
    "a class that is not there": regressor(plan_=made("dpadapt.evil.Thing")),
    "a package with a similar name": regressor(plan_=made("dpadaptevil.Thing")),
    "a method": pipeline(step(named("canary_module.Toucher.__call__"))),
    "a path into a class": regressor(plan_=made(f"{REGRESSOR}.__init__")),
    "an empty name": regressor(plan_=made("")),
    "a name that is no text": regressor(plan_={"object": [["os", "system"], []]}),
    "a class as a step": pipeline(step(named("subprocess.Popen"))),
    "eval": pipeline(step(named("builtins.eval"))),
    "an object of type": regressor(plan_=made("builtins.type")),
    "a partial call": regressor(plan_=made("functools.partial", func=1)),
    "a getter": regressor(plan_=made("operator.attrgetter")),
    "a cache of pickles": pipeline(memory="/somewhere/evil"),
    "a scorer as a step": pipeline(made("sklearn.feature_selection.SelectKBest")),
    "rows as names of files": pipeline(
        made("sklearn.feature_extraction.text.CountVectorizer", input="filename")
    ),
    "an attribute over a method": regressor(predict=1),
    "an attribute over a property": made(
        PIPELINE, guarantee_={"guarantee": GUARANTEE}, estimator_=model_tree()
    ),
    "a special attribute": regressor(__class__="x"),
    "an attribute with a strange name": regressor(**{"a b": 1}),
    "a doubled attribute": {"object": [REGRESSOR, [["a", 1], ["a", 2]]]},
    "an array of objects": regressor(coef_={"array": ["|O", [1], "C"]}),
    "an array of records": regressor(coef_={"array": ["|V8", [1], "C"]}),
    "an array with a program for a type": regressor(coef_={"array": ["f8,(3)f8", [1], "C"]}),
    "an array beyond the file": regressor(coef_={"array": ["<f8", [10**12], "C"]}),
    "an array with a negative size": regressor(coef_={"array": ["<f8", [-1], "C"]}),
    "an array of endless dimensions": regressor(coef_={"array": ["<f8", [1] * 99, "C"]}),
    "an array of nothing, and huge": regressor(coef_={"array": ["<f8", [0, 2**60], "C"]}),
    "an array in no order": regressor(coef_={"array": ["<f8", [0], "K"]}),
    "an array of texts of no length": regressor(coef_={"array": ["<U0", [2**40], "C"]}),
    "a sparse table of another kind": regressor(coef_={"sparse": ["spmatrix", [1, 1], []]}),
    "a type that is no type of numbers": regressor(coef_={"number type": "save"}),
    "a slice of objects": regressor(plan_={"slice": [made("canary_module.Wakes"), 1, 1]}),
    "two things at once": regressor(plan_={"tuple": [], "name": "os.system"}),
    "an unknown thing": regressor(plan_={"function": "os.system"}),
    "no model at all": 7,
    "a list": [model_tree()],
    "a transformer as a model": made("sklearn.preprocessing.StandardScaler"),
    "a value object as a model": made("dpadapt.kernels.features.LinearFeatures"),
    "a pipeline that ends in a transformer": pipeline(
        last=made(
            "sklearn.preprocessing.Normalizer",
            norm="l2",
            copy=True,
            guarantee_={"guarantee": GUARANTEE},
        )
    ),
    "an unhashable key": regressor(plan_={"dict": [[[1], 2]]}),
    "a doubled key": regressor(plan_={"dict": [["a", 1], ["a", 2]]}),
    "deep": regressor(plan_=deep(150)),
    "a number that is a text": regressor(plan_={"float": "__import__('os')"}),
    "no guarantee": {"object": [REGRESSOR, [["coef_", [0, 0, 0]]]]},
    "a guarantee of its own words": regressor(guarantee_="epsilon = 0"),
    "a guarantee with a smaller epsilon": regressor(
        guarantee_={"guarantee": {**GUARANTEE, "epsilon": 0.5}}
    ),
    "more bytes than arrays": None,
}

CANARY = """
import dataclasses
def touch(*args):
    open("canary", "w").write("ran")
    return args[0] if args else None
class Toucher:
    def __call__(self, X):
        return touch(X)
class Wakes:
    def __setstate__(self, state):
        touch()
class WakesSlots:
    __slots__ = ("a",)
    def __setstate__(self, state):
        touch()
class Pair(tuple):
    def __new__(cls, a, b):
        touch()
        return super().__new__(cls, (a, b))
@dataclasses.dataclass
class Data:
    a: int
    def __post_init__(self):
        touch()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("canary_module", "canary_import"):
        sys.modules.pop(name, None)
    (tmp_path / "canary_module.py").write_text(CANARY)
    (tmp_path / "canary_import.py").write_text(
        "open('canary', 'w').write('ran')\nclass Thing: pass\nthing = Thing()\n"
    )
    yield tmp_path
    for name in ("canary_module", "canary_import"):
        sys.modules.pop(name, None)


def write(folder, tree, numbers=b"", **changed):
    """A folder as a stranger would write it, with every digest in order."""
    return write_text(folder, json.dumps(tree).encode(), numbers, **changed)


def write_text(folder, text, numbers=b"", **changed):
    folder.mkdir(exist_ok=True)
    files = {"model.json": text, "arrays.bin": numbers, "report.html": b"<html></html>"}
    digests = {name: hashlib.sha256(each).hexdigest() for name, each in files.items()}
    data = {**GUARANTEE, **changed, "files": digests, "digest": "0" * 64}
    blank = json.dumps(data).encode()
    files["guarantee.json"] = blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode())
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def names_of(tree):
    if isinstance(tree, list):
        return set().union(*map(names_of, tree))
    if not isinstance(tree, dict):
        return set()
    found = set().union(*map(names_of, tree.values()))
    if isinstance(tree.get("object"), list):
        found.add(tree["object"][0])
    if isinstance(tree.get("name"), str):
        found.add(tree["name"])
    return found


@pytest.mark.parametrize("name", [*RUNS, *OTHERS])
def test_a_hostile_folder_is_refused_and_runs_nothing(name, here):
    tree = {**RUNS, **OTHERS}[name]
    numbers = b"" if tree is not None else b"12345678"
    folder = write(here / "model", model_tree() if tree is None else tree, numbers)
    before = set(sys.modules)
    with pytest.raises(ModelFolderError) as caught:
        load_model(folder)
    text = str(caught.value)
    assert "model" in text
    assert "\n" not in text
    assert len(text) < 500
    assert not (here / "canary").exists()
    assert {"canary_module", "canary_import"}.isdisjoint(set(sys.modules) - before)


@pytest.mark.parametrize("name", RUNS)
def test_the_same_folder_runs_once_its_names_are_trusted(name, here):
    """The folders above are no straw men: only the list stands between them and a command."""
    tree = RUNS[name]
    folder = write(here / "model", tree)
    names = names_of(tree) - {SKPIPELINE, FUNCTION, PIPELINE, REGRESSOR}
    try:
        model = load_model(folder, trusted=names)
        model.transformer_.transform(COMMAND)
    except (ModelFolderError, AttributeError):
        pass
    assert (here / "canary").exists()


def test_what_is_trusted_is_named_exactly(here):
    tree = regressor(plan_=made("canary_module.Wakes", a=1))
    folder = write(here / "model", tree)
    for wrong in ([], ["canary_module.*"], ["canary_module.Wake"], ["os.path"]):
        with pytest.raises(ModelFolderError, match=r"--trust canary_module\.Wakes"):
            load_model(folder, trusted=wrong)
    for wrong in ("canary_module.Wakes", ["canary_module"], [7]):
        with pytest.raises(ModelFolderError, match="trusted must be a list of dotted names"):
            load_model(folder, trusted=wrong)
    assert not (here / "canary").exists()


TEXTS = {
    "nothing": b"",
    "no JSON": b"{",
    "NaN": b'{"float": NaN}',
    "Infinity": b"[-Infinity]",
    "a doubled name": b'{"tuple": [], "tuple": []}',
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"tuple":' * 200_000,
    "another encoding": "{}".encode("utf-16"),
    "bytes": bytes(range(256)),
    "NUL": b"\0" * 1000,
    "an endless number": b"9" * 5000,
    "a lonely surrogate": b'{"\\ud800": 1}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a zip": b"PK\x03\x04",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("file", ["model.json", "guarantee.json"])
def test_text_that_is_no_model(name, file, here):
    folder = write_text(here / "model", TEXTS[name])
    if file == "guarantee.json":
        (folder / file).write_bytes(TEXTS[name])
    with pytest.raises(ModelFolderError) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)
    result = CliRunner().invoke(app, ["report", "--model", str(folder)])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)


def a_link(path):
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def a_socket(path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path.name)


def replaced(make):
    def change(path):
        path.unlink()
        make(path)

    return change


STRANGE = {
    "a link": a_link,
    "a pipe": replaced(os.mkfifo),
    "a folder": replaced(os.mkdir),
    "a device": replaced(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": replaced(lambda path: path.symlink_to(path)),
    "nothing": lambda path: path.unlink(),
    "a socket": a_socket,
}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("file", ["model.json", "arrays.bin", "guarantee.json", "report.html"])
def test_files_that_are_no_files(kind, file, here, monkeypatch):
    folder = write(here / "model", model_tree())
    monkeypatch.chdir(folder)  # the name of a socket is short
    STRANGE[kind](folder / file)
    with pytest.raises(ModelFolderError, match=file):
        load_model(folder)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_folders_that_are_no_folders(make, here):
    make(here / "model")
    with pytest.raises(ModelFolderError, match="no model folder"):
        load_model(here / "model")


def test_files_that_are_too_large(here):
    folder = write(here / "model", model_tree())
    with open(folder / "model.json", "r+b") as file:
        file.truncate(2**40)  # takes no place on the disk
    with pytest.raises(ModelFolderError, match="the most that is read"):
        load_model(folder)


SPARSE = {
    "a place beyond the table": ([1.0], [7], [0, 1]),
    "a negative place": ([1.0], [-7], [0, 1]),
    "rows that run backwards": ([1.0], [0], [5, 1]),
    "rows beyond the data": ([1.0], [0], [0, 10**6]),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_tables_that_point_elsewhere(name, here):
    data, indices, starts = (np.array(part) for part in SPARSE[name])
    parts = (data, indices.astype("<i4"), starts.astype("<i4"))
    specs = [[part.dtype.str, [len(part)], "C"] for part in parts]
    tree = regressor(coef_={"sparse": ["csr_matrix", [1, 3], specs]})
    folder = write(here / "model", tree, b"".join(part.tobytes() for part in parts))
    with pytest.raises(ModelFolderError):
        load_model(folder)


@pytest.mark.parametrize(
    ("spec", "numbers"), [(["|b1", [1], "C"], b"\x07"), (["<U1", [1], "C"], b"\xff" * 4)]
)
def test_bytes_that_stand_for_no_value(spec, numbers, here):
    folder = write(here / "model", regressor(coef_={"array": spec}), numbers)
    with pytest.raises(ModelFolderError, match="holds"):
        load_model(folder)


@pytest.mark.parametrize("text", ["|O", "O", "|V8", "f8,(3)f8", "<f8\n", "float", 8, None])
def test_a_type_that_is_not_plain_is_not_read(text):
    with pytest.raises(ModelFolderError, match="no plain type"):
        parse_dtype(text)


FORGED = {
    "a smaller epsilon": {"epsilon": GUARANTEE["epsilon"] / 2},
    "an epsilon of nothing": {"epsilon": None},
    "an epsilon that is no number": {"epsilon": "NaN"},
    "a larger delta": {"delta": 0.5},
    "another relation": {"relation": "add-remove"},
    "a kinder sentence": {"sentence": "No private row was used (epsilon = 0, delta = 0)."},
    "no events": {"events": []},
    "events that are none": {"events": [7]},
    "an event of another kind": {"events": [{"kind": "nothing", "label": "x"}]},
    "more noise": {"events": [{**GUARANTEE["events"][0], "scale": 40.0}]},
    "fewer releases": {"events": [{**GUARANTEE["events"][0], "count": 0}]},
    "endless events": {"events": [{"kind": "gaussian", "label": "x"}] * 3},
    "no caveats, but a number": {"caveats": 7},
    "another noise": {"noise": "exact"},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_guarantee_is_refused_even_with_digests_in_order(name, here):
    folder = write(here / "model", model_tree(), **FORGED[name])
    with pytest.raises(ModelFolderError, match=r"guarantee\.json is not"):
        load_model(folder)


def test_a_sound_guarantee_of_another_model_is_refused(here):
    """Its epsilon is that of its events, but the model beside it has less noise."""
    other = Guarantee((GaussianEvent("moment", 1.0, 40.0),), 1e-6, "secure").to_dict()
    folder = write(here / "model", model_tree(), **other)
    with pytest.raises(ModelFolderError, match="not the guarantee of the model beside it"):
        load_model(folder)


def test_a_pipeline_must_end_in_an_estimator(here):
    folder = write(here / "model", OTHERS["a pipeline that ends in a transformer"])
    with pytest.raises(ModelFolderError, match="does not hold a fitted estimator"):
        load_model(folder)


def test_the_epsilon_of_a_model_is_computed_from_its_events(here):
    """Not from what the model's own copy of the guarantee says, nor from a stored epsilon."""
    low = {**GUARANTEE, "epsilon": 0.01}
    for tree in (
        regressor(guarantee_={"guarantee": low}),
        regressor(
            guarantee_=made(
                "dpadapt.privacy.core.guarantee.Guarantee", events={"tuple": []}, epsilon=0.01
            )
        ),
    ):
        with pytest.raises(ModelFolderError, match=r"refused|damaged"):
            load_model(write(here / "model", tree))
    loaded = load_model(write(here / "model", model_tree()))
    assert loaded.guarantee_.epsilon == pytest.approx(GUARANTEE["epsilon"])


def test_the_model_that_is_not_hostile_loads(here):
    """So that the folders above are refused for what they say, not for how they are written."""
    loaded = load_model(write(here / "model", regressor(extra_=[{"float": "nan"}, {"tuple": [1]}])))
    assert math.isnan(loaded.extra_[0])
    assert loaded.extra_[1] == (1,)


TOWNS = np.array([["a"], ["b"], ["c"], ["a"]] * 5, dtype=object)
NUMBERS = np.array([[1.0, 2.0], [2.0, 0.5], [3.0, 1.0], [4.0, 9.0]] * 5)
WORDS = ["red green", "green blue", "blue"]
RARE = OneHotEncoder(min_frequency=6, handle_unknown="infrequent_if_exist", sparse_output=False)


def forged(step, rows, change):
    """Tree of a fitted transformer with other attributes than its fit made, and its numbers."""
    fitted = sklearn.base.clone(step).fit(rows)
    vars(fitted).update(change)
    (name, state), numbers = (part := encode(fitted))[0]["object"], part[1]
    version = {key: each for key, each in change.items() if key == "_sklearn_version"}
    return made(name, **{**dict(state), **version}), numbers


FAR = 90_000_000
OUT_OF_BOUNDS = {
    "rare levels far away": (RARE, TOWNS, {"_infrequent_indices": [np.array([0, FAR])]}),
    "levels out of order": (
        OneHotEncoder(),
        NUMBERS[:, :1],
        {"categories_": [np.array([9.0, 1.0, 2.0, 3.0])]},
    ),
    "more columns than levels": (OneHotEncoder(), TOWNS, {"n_features_in_": 7}),
    "a word far away": (
        CountVectorizer(),
        WORDS,
        {"vocabulary_": {"red": 0, "green": FAR, "blue": 1}},
    ),
    "a word before the first": (
        TfidfVectorizer(),
        WORDS,
        {"vocabulary_": {"red": 0, "green": -FAR, "blue": 1}},
    ),
    "two words in one place": (
        CountVectorizer(),
        WORDS,
        {"vocabulary_": {"red": 0, "green": 2, "blue": 2}},
    ),
    "words far away, as an argument": (
        CountVectorizer(),
        WORDS,
        {"vocabulary": {"red": FAR}},
    ),
    "division by nothing": (HashingVectorizer(), WORDS, {"n_features": 0}),
    "cells that are objects": (HashingVectorizer(), WORDS, {"dtype": np.dtype(object)}),
    "an attribute nobody knows": (PolynomialFeatures(), NUMBERS, {"_other": 1}),
    "a part of another class": (KBinsDiscretizer(2), NUMBERS, {"_encoder": ()}),
    "a version for the terminal": (
        PolynomialFeatures(),
        NUMBERS,
        {"_sklearn_version": "0\x1b]0;pwned\x07\n<script>"},
    ),
    "no version": (PolynomialFeatures(), NUMBERS, {"_sklearn_version": None}),
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_values_that_no_fit_makes_are_refused(name, here):
    """Compiled code would take them for places in memory; see dpadapt.modelfolder.states."""
    tree, numbers = forged(*OUT_OF_BOUNDS[name])
    words = "is not what a fit makes it|is none that it takes|does not say which scikit-learn"
    with pytest.raises(ModelFolderError, match=words) as caught:
        load_model(write(here / "model", pipeline(tree), numbers + numbers))
    assert str(caught.value).isprintable()


DERIVED = {
    "levels far away": (
        RARE,
        TOWNS,
        {"_default_to_infrequent_mappings": [np.array([FAR, FAR, FAR])], "_n_features_outs": [1]},
    ),
    "a level dropped far away": (
        OneHotEncoder(drop="first", sparse_output=False),
        TOWNS,
        {"_drop_idx_after_grouping": np.array([-FAR], dtype=object)},
    ),
    "old memory shown": (
        PolynomialFeatures(),
        NUMBERS,
        {"_n_out_full": 99, "n_output_features_": 99},
    ),
}


@pytest.mark.parametrize("name", DERIVED)
def test_what_can_be_derived_is_not_read(name, here):
    step, rows, change = DERIVED[name]
    tree, numbers = forged(step, rows, change)
    honest = sklearn.base.clone(step).fit_transform(rows)
    loaded = load_model(write(here / "model", pipeline(tree), numbers + numbers))
    np.testing.assert_array_equal(loaded.transformer_.transform(rows), honest)


def test_another_version_of_scikit_learn_is_said_in_our_words(here):
    tree, numbers = forged(PolynomialFeatures(), NUMBERS, {"_sklearn_version": "1.0.dev0"})
    folder = write(here / "model", pipeline(tree), numbers + numbers)
    with pytest.warns(UserWarning, match=r"made with scikit-learn 1\.0\.dev0, and here is"):
        load_model(folder)


def test_no_processes_because_a_file_says_so(here):
    tree, numbers = encode(sklearn.pipeline.FeatureUnion([("a", PolynomialFeatures())], n_jobs=64))
    loaded = load_model(write(here / "model", pipeline(tree), numbers + numbers))
    assert loaded.steps[0][1].n_jobs is None


@pytest.mark.parametrize("digest", ["\ud800", "", "0" * 63, 7, None, ["0" * 64]])
def test_a_digest_that_is_none(digest, here):
    folder = write(here / "model", model_tree())
    data = json.loads((folder / "guarantee.json").read_text())
    (folder / "guarantee.json").write_text(json.dumps({**data, "digest": digest}))
    with pytest.raises(ModelFolderError, match="was changed after it was written"):
        load_model(folder)


def test_a_sparse_file_of_arrays_is_refused_by_its_length(tmp_path):
    """Four gigabytes that take no room on the disk: nobody reads them."""
    folder = save_model(small_model(), tmp_path / "model")
    with open(folder / "arrays.bin", "r+b") as file:
        file.truncate(2**32)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, hard))
    try:
        with pytest.raises(ModelFolderError, match=r"arrays\.bin is not the file that"):
            load_model(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("count", [2.5, -1, True, "2"])
def test_columns_that_no_fit_counts_are_refused(tmp_path, count):
    model = small_model()
    model.n_features_in_ = count
    with pytest.raises(ModelFolderError, match="number of columns"):
        load_model(save_model(model, tmp_path / "model"))


def test_names_that_are_not_those_of_the_columns_are_refused(tmp_path):
    model = small_model()
    model.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    with pytest.raises(ModelFolderError, match="do not have a name each"):
        load_model(save_model(model, tmp_path / "model"))


def small_model():
    return DiscrepancyRegressor(epsilon=1, delta=1e-6).fit([[0.0, 1.0], [1.0, 3.0]], [0.0, 1.0])
