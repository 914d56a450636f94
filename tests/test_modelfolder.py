"""Model folders: complete or absent, checked on loading, and closed to foreign types."""

import itertools
import json
import os
import shutil

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.random_projection import SparseRandomProjection

import dpadapt
from dpadapt import (
    AdaMixClassifier,
    AdaptationPipeline,
    DiscrepancyRegressor,
    InteractivePredictor,
    KernelRegressor,
    NoisyGDClassifier,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
    baselines,
)
from dpadapt.discrepancy import Moments
from dpadapt.mixing import (
    AdaMix,
    AdaptiveClip,
    FeatureProjection,
    FixedClip,
    GradientProjection,
    Steps,
    StepsAtNoise,
    Theory,
)
from dpadapt.modelfolder import ModelFolderError, load_model, open_destination, save_model
from dpadapt.modelfolder.types import ESTIMATORS, MOVED, PARTS, Names
from dpadapt.modelfolder.writing import encode
from dpadapt.privacy import Ledger
from dpadapt.reweighting import KnownNoise, Statistics

FILES = {"model.json", "arrays.bin", "guarantee.json", "report.html"}


def fitted(step=None, n=500, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    regressor = DiscrepancyRegressor(
        epsilon=1.0, delta=1e-6, solver=Moments(max_remaining=1.0), **options
    )
    model = AdaptationPipeline([("step", step or StandardScaler())], regressor)
    return model.fit(X, X[:, 0], private=Private(rng.normal(size=(n, 2)) + 0.5)), X


@pytest.fixture(scope="module")
def model():
    return fitted()[0]


@pytest.fixture(scope="module")
def original(model, tmp_path_factory):
    return save_model(model, tmp_path_factory.mktemp("models") / "model")


@pytest.fixture
def quick(monkeypatch):
    """Reports without figures: to draw them takes longer than to fit."""
    monkeypatch.setattr("dpadapt.report.figures.as_data_uri", lambda figure: "data:,")


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "model")


def test_round_trip(folder, model):
    X = fitted()[1]
    loaded = load_model(folder)
    assert {path.name for path in folder.iterdir()} == FILES
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.guarantee_ == model.guarantee_
    assert json.loads((folder / "guarantee.json").read_text())["epsilon"] <= 1.0


BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 424242}
OTHERS = {
    "reweighting": ReweightingRegressor(**BUDGET),
    "a choice": ReweightingRegressor(
        **BUDGET, solver=Statistics(selection="holdout", alpha=[0.0, 0.5])
    ),
    "classes": ReweightingClassifier(**BUDGET),
    "adamix": AdaMixClassifier(**BUDGET, relation="add-remove", keep_trajectory=True, steps=5),
    "many runs": AdaMixClassifier(**BUDGET, relation="add-remove", select={"clip": [0.3, 1.0]}),
    "its algorithm": AdaMixClassifier(
        **BUDGET,
        solver=AdaMix(projection=GradientProjection(rank=2)),
        steps=4,
        select={"clipping": [FixedClip(0.3), AdaptiveClip(80.0)]},
    ),
    "its theory": AdaMixClassifier(
        **BUDGET, solver=Theory(projection=FeatureProjection(rank=2)), steps=StepsAtNoise(20.0)
    ),
    "a filter": NoisyGDClassifier(**BUDGET, steps=Steps(8, individual_filter=2.0)),
    "a baseline": baselines.NoisyGradientClassifier(**BUDGET),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("with_private", [True, False])
def test_round_trip_of_every_method(name, with_private, tmp_path, quick):
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(200, 3)), rng.normal(size=(901, 3))
    y, z = X @ [1.0, 2.0, -1.0], T @ [1.0, 2.0, -1.0]
    if not name.startswith(("reweighting", "a choice")):
        names = np.array(["low", "mid", "high"])
        y, z = (names[np.digitize(each, [-1.0, 1.0])] for each in (y, z))
    model = clone(OTHERS[name]).fit(X, y, private=Private(T, z) if with_private else None)
    folder = save_model(model, tmp_path / "model")
    loaded = load_model(folder)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.guarantee_ == model.guarantee_
    content = b"".join((folder / each).read_bytes() for each in FILES)
    assert b"424242" not in content
    assert np.int64(424242).tobytes() not in content


def test_a_network_is_refused_in_words(tmp_path):
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = ReweightingClassifier(
        **BUDGET, solver=KnownNoise(steps=2), module=torch.nn.Linear(2, 2)
    )
    with pytest.raises(
        ModelFolderError, match=r"does not fit into a model folder: torch\..* is not on the list"
    ):
        save_model(model.fit(X, X[:, 0] > 0), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_nothing_else_is_left_beside_it(original):
    assert os.listdir(original.parent) == [original.name]


def test_neither_ledger_nor_seed_are_stored(tmp_path):
    account = Ledger(tmp_path / "secret-budget.db").create("people", epsilon=3.0, delta=1e-6)
    model, _ = fitted(noise="seeded", random_state=424242, ledger=account)
    folder = save_model(model, tmp_path / "model")
    content = b"".join((folder / each).read_bytes() for each in FILES)
    assert b"424242" not in content
    assert b"secret-budget" not in content
    assert load_model(folder).estimator_.ledger is None
    assert model.estimator_.ledger == account  # the model itself is left as it was


def test_an_existing_model_needs_force(folder, model, quick):
    with pytest.raises(ModelFolderError, match="exists; use force=True to"):
        save_model(model, folder)
    (folder / "report.html").unlink()
    save_model(model, folder, force=True)
    assert {path.name for path in folder.iterdir()} == FILES


@pytest.mark.parametrize("force", [False, True])
def test_another_folder_or_file_is_never_replaced(tmp_path, model, force):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("precious", "file"):
        with pytest.raises(ModelFolderError, match="not a model folder"):
            save_model(model, tmp_path / name, force=force)
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "mine"


def folders_within(folder):
    (folder / "report.html").unlink()
    (folder / "report.html").mkdir()
    (folder / "report.html" / "photos").write_text("mine")


def another_guarantee(folder):
    (folder / "guarantee.json").write_text("{}")


@pytest.mark.parametrize("change", [folders_within, another_guarantee])
def test_a_folder_that_is_not_quite_ours_is_never_replaced(folder, model, change):
    change(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(ModelFolderError, match="not a model folder"):
        save_model(model, folder, force=True)
    assert sorted(folder.rglob("*")) == before


def test_a_model_json_of_another_program_is_never_replaced(tmp_path, model):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text('{"format": "layers-model"}')
    with pytest.raises(ModelFolderError, match="not a model folder"):
        save_model(model, tmp_path / "model", force=True)


@pytest.mark.parametrize("name", ["nosuch/..", "x" * 250, "x" * 300, "file/model", "a\0b"])
def test_a_place_that_cannot_be_is_refused_before_there_is_a_model(tmp_path, name):
    (tmp_path / "file").write_text("mine")
    with (
        pytest.raises(ModelFolderError, match=r"cannot be written|must end in a name"),
        open_destination(tmp_path / name, force=False),
    ):
        pytest.fail("the place was opened")
    assert os.listdir(tmp_path) == ["file"]


def test_a_place_without_a_model_leaves_nothing(tmp_path):
    with open_destination(tmp_path / "new" / "er" / "model", force=False):
        assert (tmp_path / "new" / "er").exists()
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_nothing(tmp_path, model, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("disk full")

    monkeypatch.setattr("dpadapt.report.write_report", broken)
    with pytest.raises(RuntimeError, match="disk full"):
        save_model(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["numpy.arcsinh", "scipy.special.expit"])
def test_a_function_is_saved_and_loaded_by_name(tmp_path, quick, name):
    function = {"numpy.arcsinh": np.arcsinh, "scipy.special.expit": expit}[name]
    model, X = fitted(FunctionTransformer(function), n=60)
    with pytest.raises(ModelFolderError, match=f"{name} is not on the list"):
        save_model(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []
    folder = save_model(model, tmp_path / "model", trusted=[name])
    with pytest.raises(ModelFolderError, match=f"--trust {name}"):
        load_model(folder)
    loaded = load_model(folder, trusted=[name])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_must_not_be_stored_is_not_stored(tmp_path):
    """Trust in a class does not open what refuses to be copied: hidden values, predictors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = InteractivePredictor(KernelRegressor(epsilon=1.0, delta=1e-6))
    model.fit(X, X[:, 0], private=Private(rng.normal(size=(90, 2)), rng.normal(size=90)))
    with pytest.raises(TypeError, match="it holds private rows"):
        save_model(model, tmp_path / "model")
    with pytest.raises(ModelFolderError, match="it holds private rows"):
        encode(model, ["dpadapt.kernels.interactive_predictor.InteractivePredictor"])
    assert os.listdir(tmp_path) == []


STEPS = [
    ColumnTransformer([("a", StandardScaler(), [0])], remainder="passthrough"),
    FeatureUnion([("a", PCA(1)), ("b", KBinsDiscretizer(3, encode="ordinal"))]),
    KBinsDiscretizer(4),  # holds a OneHotEncoder
    PolynomialFeatures(2),
    QuantileTransformer(n_quantiles=10),
    SimpleImputer(),
    SparseRandomProjection(2, random_state=0),
    Nystroem(n_components=3, random_state=0),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_transformers_of_the_list(step, tmp_path, quick):
    model, X = fitted(step, n=60)  # some are called row by row
    loaded = load_model(save_model(model, tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert repr(loaded) == repr(model)


def test_every_name_of_the_list_is_there():
    names = Names()
    for name in ESTIMATORS | PARTS:
        assert isinstance(names.find(name), type), name
    public = {name for name in dpadapt.__all__ if hasattr(getattr(dpadapt, name), "fit")}
    listed = {name.rpartition(".")[2] for name in ESTIMATORS}
    assert public - listed == {"InteractivePredictor"}  # which holds private rows


def test_a_missing_folder(tmp_path):
    with pytest.raises(ModelFolderError, match="no model folder"):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelFolderError, match=f"{name} is missing"):
        load_model(folder)


AGAIN = r"Copy the whole model folder again from where it was made, or fit anew\."


@pytest.mark.parametrize("name", sorted(FILES))
def test_damage_of_any_kind(folder, name):
    path = folder / name
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", whole[:-1], whole[: len(whole) // 2], whole + b" ", b"\0" * len(whole)]
    for place in [0, len(whole) - 1, *rng.integers(len(whole), size=40)]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ModelFolderError, match=f"{name}.*{AGAIN}"):
            load_model(folder)
    path.write_bytes(whole)
    load_model(folder)


def test_every_number_replaced(folder):
    path = folder / "arrays.bin"
    path.write_bytes(np.full(len(path.read_bytes()) // 8, 7.0).tobytes())
    with pytest.raises(ModelFolderError, match="damaged, or of another model"):
        load_model(folder)


def test_files_of_two_models(folder, tmp_path, quick):
    other = save_model(fitted(MaxAbsScaler())[0], tmp_path / "other")
    for count in (1, 2, 3):
        for names in itertools.combinations(sorted(FILES), count):
            mixed = shutil.copytree(folder, tmp_path / "mixed")
            for name in names:
                shutil.copy(other / name, mixed / name)
            if any((folder / name).read_bytes() != (other / name).read_bytes() for name in names):
                with pytest.raises(ModelFolderError, match="of another model"):
                    load_model(mixed)
            shutil.rmtree(mixed)


def test_a_file_too_many(folder):
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ModelFolderError, match=r"'notes\.txt', which is no file of a model"):
        load_model(folder)


def test_a_changed_guarantee(folder):
    path = folder / "guarantee.json"
    text = path.read_text()
    data = json.loads(text)
    for changed in ({"epsilon": 0.1}, {"noise": "exact"}, {"sentence": "safe"}, {"digest": 7}):
        path.write_text(json.dumps({**data, **changed}, indent=2) + "\n")
        with pytest.raises(ModelFolderError, match="was changed after it was written"):
            load_model(folder)
    assert set(data["files"]) == FILES - {"guarantee.json"}


def test_names_from_before_a_move_are_found():
    listed = ESTIMATORS | PARTS
    for old, new in MOVED.items():
        if new in listed:  # a class that went without its module
            assert Names().find(old) is Names().find(new)
            continue
        names = [name.rpartition(".")[2] for name in listed if name.rpartition(".")[0] == new]
        assert names, f"nothing of {new} may be in a folder"
        for name in names:
            assert Names().find(f"{old}.{name}") is Names().find(f"{new}.{name}")
