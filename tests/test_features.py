"""Feature extractors: row-wise, total on private items, and at home in scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zlib

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpadapt import AdaptationPipeline, Private, ReweightingClassifier, Schema
from dpadapt.features import FeatureExtractor, SentenceFeatures, TorchFeatures
from dpadapt.mixing import AdaMixClassifier
from dpadapt.privacy import Cleaning, Rows
from dpadapt.testing.search import SECRET_TEXT, SENTINEL, Secrets, everything_said
from dpadapt.testing.tape import taped

WORDS = np.array(["the", "a", "good", "bad", "film", "book", "very", "not", "was", "dull", "fun"])
WIDTH = 12  # of the sentence encoder


def classifier(kind=ReweightingClassifier):
    return kind(epsilon=2.0, delta=1e-6, noise="seeded", random_state=0)


every_classifier = pytest.mark.parametrize("kind", [ReweightingClassifier, AdaMixClassifier])


# texts


class Encoder:
    """Sentence encoder: mean of one vector for each word. Takes any text, remembers none."""

    def encode(self, texts):
        return np.array([self._one(text) for text in texts]).reshape(len(texts), WIDTH)

    @staticmethod
    def _one(text):
        seeds = [zlib.crc32(word.encode()) for word in text.split()]
        return np.sum(
            [np.random.default_rng(s).normal(size=WIDTH) for s in seeds] or [[0.0] * WIDTH], 0
        )


class Strict(Encoder):
    """Breaks off on a text it does not like, and tells it."""

    def encode(self, texts):
        for text in texts:
            if SECRET_TEXT in text:
                raise ValueError(f"cannot encode {text}")
        return super().encode(texts)


def reviews(n, seed):
    rng = np.random.default_rng([3, seed])
    texts = [" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(n)]
    frame = pd.DataFrame({"text": texts})
    return frame, np.array(["good" in text or "fun" in text for text in texts]).astype(int)


def test_texts_in_every_form_give_the_same_features():
    frame, _ = reviews(20, 0)
    extractor = SentenceFeatures(Encoder()).fit(frame)
    expected = Encoder().encode(list(frame["text"]))
    assert extractor.n_features == WIDTH
    assert isinstance(extractor, FeatureExtractor)
    column = frame["text"]
    for form in (
        frame,
        column,
        list(column),
        tuple(column),
        column.to_numpy(),
        column.to_numpy(dtype=str),
        frame.to_numpy(),
        frame.astype("string"),
        frame.astype("category"),
    ):
        np.testing.assert_array_equal(extractor.extract(form), expected)
        fresh = SentenceFeatures(Encoder(), batch_size=7).fit(form)
        np.testing.assert_array_equal(fresh.transform(form), expected)


def test_a_cell_that_is_no_text_is_missing_and_no_other_changes():
    extractor = SentenceFeatures(Encoder(), batch_size=4).fit(["public text"])
    cells = ["a", None, 3.5, "b", np.nan, pd.NA, b"bytes", ["x"], "c", ""]
    features = extractor.extract(cells)
    missing = np.array([not isinstance(cell, str) for cell in cells])
    assert np.isnan(features[missing]).all()
    np.testing.assert_array_equal(features[~missing], Encoder().encode(["a", "b", "c", ""]))


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_texts_are_encoded_in_batches_of_the_given_size(batch_size):
    class Counting(Encoder):
        sizes: list = []  # noqa: RUF012

        def encode(self, texts):
            assert isinstance(texts, list)
            assert all(isinstance(text, str) for text in texts)
            self.sizes.append(len(texts))
            return super().encode(texts)

    extractor = SentenceFeatures(Counting(), batch_size=batch_size).fit(["a"])
    Counting.sizes.clear()
    extractor.extract(["word"] * 10)
    assert sum(Counting.sizes) == 10
    assert max(Counting.sizes) == min(batch_size, 10)


def test_empty_one_and_none():
    extractor = SentenceFeatures(Encoder()).fit(["only one"])
    assert extractor.extract([]).shape == (0, WIDTH)
    assert extractor.extract(pd.DataFrame({"text": []})).shape == (0, WIDTH)
    assert extractor.transform(["one"]).shape == (1, WIDTH)
    for nothing in ([], [None, 3.0], pd.DataFrame({"text": []})):
        with pytest.raises(ValueError, match="at least one public text"):
            SentenceFeatures(Encoder()).fit(nothing)
    with pytest.raises(NotFittedError):
        SentenceFeatures(Encoder()).transform(["a"])
    with pytest.raises(NotFittedError):
        _ = SentenceFeatures(Encoder()).n_features


def test_wrong_columns_are_named():
    frame, _ = reviews(5, 0)
    extractor = SentenceFeatures(Encoder()).fit(frame)
    with pytest.raises(ValueError, match="one column"):
        extractor.transform(frame.assign(other="x").to_numpy())
    with pytest.raises(ValueError, match="columns of the public"):
        extractor.transform(frame.rename(columns={"text": "other"}))
    with pytest.raises(TypeError, match="not one text"):
        extractor.extract("one text")
    # a private column of another name is still a column of texts
    np.testing.assert_array_equal(
        extractor.extract(frame.rename(columns={"text": "other"})), extractor.extract(frame)
    )


class Mixing(Encoder):
    def encode(self, texts):
        found = super().encode(texts)
        return found - found.mean(axis=0)


class Random(Encoder):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def encode(self, texts):
        return self.rng.normal(size=(len(texts), WIDTH))


class Flat(Encoder):
    def encode(self, texts):
        return super().encode(texts).ravel()


class Short(Encoder):
    def encode(self, texts):
        return super().encode(texts)[:-1]


@pytest.mark.parametrize("texts", [["one text"], ["a", "good film", "dull"]])
@pytest.mark.parametrize(
    ("model", "error", "match"),
    [
        (Mixing(), ValueError, "other items"),
        (Random(), ValueError, "random"),
        (Flat(), TypeError, "a row of numbers"),
        (Short(), TypeError, "a row of numbers"),
        (object(), TypeError, "encode"),
    ],
)
def test_encoders_that_cannot_be_used_are_refused(model, error, match, texts):
    with pytest.raises(error, match=match):
        SentenceFeatures(model).fit(texts)
    with pytest.raises(ValueError, match="batch_size"):
        SentenceFeatures(Encoder(), batch_size=0).fit(texts)


@every_classifier
def test_texts_end_to_end(kind):
    X, y = reviews(200, 0)
    T, z = reviews(300, 1)
    model = AdaptationPipeline([("embed", SentenceFeatures(Encoder()))], classifier(kind))
    model.fit(X, y, private=Private(T, z))
    assert model.score(*reviews(500, 2)) > 0.75
    assert model.guarantee_.epsilon <= 2.0
    assert list(model.feature_names_in_) == ["text"]
    # by hand: the map that an extractor is for
    extractor = SentenceFeatures(Encoder()).fit(X)
    private = Private(T, z).read(Schema.of(X))
    private = private.map(extractor.extract, n_columns=extractor.n_features)
    alone = classifier(kind).fit(extractor.transform(X), y, private=private)
    np.testing.assert_array_equal(alone.predict(extractor.transform(X)), model.predict(X))
    # an array of texts, and a file
    array = AdaptationPipeline([("embed", SentenceFeatures(Encoder()))], classifier(kind))
    array.fit(X.to_numpy(), y, private=Private(T.to_numpy(), z))
    np.testing.assert_array_equal(array.predict(X.to_numpy()), model.predict(X))


def test_texts_from_parquet(tmp_path):
    X, y = reviews(100, 0)
    T, z = reviews(100, 1)
    T.assign(label=z).to_parquet(tmp_path / "private.parquet")
    models = [
        AdaptationPipeline([("embed", SentenceFeatures(Encoder()))], classifier()).fit(
            X, y, private=private
        )
        for private in (
            Private(T, z),
            Private.from_parquet(tmp_path / "private.parquet", label="label"),
        )
    ]
    np.testing.assert_allclose(
        models[0].predict_proba(X), models[1].predict_proba(X), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("bad", [f"{SECRET_TEXT} in a text", None, [7]])
def test_private_texts_that_fail_are_missing_and_nothing_is_said(bad):
    X, y = reviews(100, 0)
    T, z = reviews(100, 1)
    T = T.astype(object)
    T.at[5, "text"] = bad
    model = AdaptationPipeline([("embed", SentenceFeatures(Strict(), batch_size=64))], classifier())
    with everything_said() as said, taped() as tape:
        model.fit(X, y, private=Private(T, z))
    assert said.all.strip() == ""
    rows = Encoder().encode([str(text) for text in T["text"]])
    rows[5] = np.nan
    with taped() as expected:
        classifier().fit(Encoder().encode(list(X["text"])), y, private=Private(rows, z))
    np.testing.assert_allclose(tape[0].value, expected[0].value, rtol=1e-9, atol=1e-12)
    assert SECRET_TEXT.encode() not in pickle.dumps(model)


def test_texts_beside_numbers_in_a_column_transformer():
    X, y = reviews(200, 0)
    T, z = reviews(200, 1)
    add = {"words": lambda frame: frame["text"].str.split().str.len()}
    encode = make_column_transformer(
        (SentenceFeatures(Encoder()), ["text"]), (StandardScaler(), ["words"])
    )
    model = AdaptationPipeline([("encode", encode)], classifier())
    model.fit(X.assign(**add), y, private=Private(T.assign(**add), z))
    assert model.transformer_.transform(X.assign(**add)).shape == (200, WIDTH + 1)
    assert model.score(X.assign(**add), y) > 0.7


def test_scikit_learn_finds_itself_at_home():
    frame, _ = reviews(20, 0)
    extractor = SentenceFeatures(Encoder(), batch_size=5)
    assert extractor.get_params()["batch_size"] == 5
    copied = clone(extractor)
    assert copied.batch_size == 5
    assert not hasattr(copied, "_n_features_out")
    features = extractor.fit_transform(frame)
    assert list(extractor.get_feature_names_out())[:2] == ["sentencefeatures0", "sentencefeatures1"]
    again = pickle.loads(pickle.dumps(extractor))
    np.testing.assert_array_equal(again.transform(frame), features)
    named = clone(extractor).set_output(transform="pandas").fit(frame).transform(frame)
    assert list(named.columns) == list(extractor.get_feature_names_out())
    chained = make_pipeline(extractor, StandardScaler()).fit(frame)
    assert chained.transform(frame).shape == (20, WIDTH)
    assert isinstance(extractor, BaseEstimator)


# images


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'dpadapt\[torch\]'"):
        TorchFeatures(object()).fit(np.ones((2, 3)))


def test_torch_is_not_imported_for_texts():
    code = (
        "import sys, numpy as np; from dpadapt.features import SentenceFeatures, TorchFeatures\n"
        "class E:\n    encode = staticmethod(lambda texts: np.ones((len(texts), 2)))\n"
        "SentenceFeatures(E()).fit(['a']).transform(['b'])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def torch():
    found = pytest.importorskip("torch")
    found.set_num_threads(1)
    return found


def net(torch, *, norm=True, seed=0, **options):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2)]
        if norm:
            layers.insert(1, torch.nn.BatchNorm2d(4, **options))
        return torch.nn.Sequential(*layers)


def images(n, seed=0):
    """Bright at the top, or at the bottom."""
    rng = np.random.default_rng([8, seed])
    y = rng.integers(0, 2, n)
    pictures = rng.normal(size=(n, 1, 8, 8))
    pictures[y == 1, :, :4] += 1.0
    pictures[y == 0, :, 4:] += 1.0
    return pictures, y


def expected_features(torch, module, pictures):
    with torch.no_grad():
        return module.eval()(torch.tensor(pictures).float()).flatten(1).double().numpy()


def test_images_in_every_form_give_the_same_features(torch):
    pictures, _ = images(40)
    expected = expected_features(torch, net(torch), pictures)
    rows = pictures.reshape(40, -1)
    for shape, forms in (
        (None, (pictures, torch.tensor(pictures), list(pictures))),
        (
            (1, 8, 8),
            (rows, pictures, torch.tensor(rows), list(rows), pd.DataFrame(rows), list(pictures)),
        ),
    ):
        extractor = TorchFeatures(net(torch), shape=shape).fit(forms[0])
        assert extractor.n_features == 16
        assert isinstance(extractor, FeatureExtractor)
        for form in forms:
            np.testing.assert_allclose(extractor.extract(form), expected, rtol=1e-5, atol=1e-6)
            found = TorchFeatures(net(torch), shape=shape, batch_size=7).fit_transform(form)
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, bool])
def test_types_of_numbers(torch, dtype):
    pictures = (images(10)[0] > 0).astype(dtype)
    found = TorchFeatures(net(torch), shape=(1, 8, 8)).fit_transform(pictures.reshape(10, -1))
    expected = expected_features(torch, net(torch), pictures.astype(float))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
def test_modules_of_other_precisions(torch, precision):
    pictures, _ = images(10)
    module = net(torch).to(getattr(torch, precision))
    found = TorchFeatures(module).fit_transform(pictures)
    near = 1e-5 if precision == "float64" else 0.05
    expected = expected_features(torch, net(torch), pictures)
    np.testing.assert_allclose(found, expected, atol=near)


def test_batch_norm_in_training_mode_would_mix_rows_and_does_not_here(torch):
    pictures, _ = images(40)
    module = net(torch).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    extractor = TorchFeatures(module).fit(pictures)
    one = extractor.extract(pictures)
    other = pictures.copy()
    other[1:] *= 100.0  # everybody else changes
    np.testing.assert_array_equal(extractor.extract(other)[0], one[0])
    with torch.no_grad():  # what the module itself would have done
        mixed = [module(torch.tensor(x).float())[0].numpy() for x in (pictures, other)]
    assert np.abs(mixed[0] - mixed[1]).max() > 0.1
    # the user's module is as it was: its mode, its numbers (up to our own two calls above)
    assert module.training
    fresh = net(torch).train()
    TorchFeatures(fresh).fit(pictures).extract(pictures)
    assert fresh.training
    assert all(torch.equal(value, before[name]) for name, value in fresh.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in fresh.parameters())


def test_modules_that_mix_rows_even_so_are_refused(torch):
    pictures, _ = images(40)

    class Centred(torch.nn.Module):
        def forward(self, x):
            return x.flatten(1) - x.flatten(1).mean(dim=0)

    class Dropping(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.dropout(x.flatten(1), 0.5, training=True)

    for module in (net(torch, track_running_stats=False), Centred(), Dropping()):
        for n in (1, 2, 40):
            with pytest.raises(ValueError, match="other items"):
                TorchFeatures(module).fit(pictures[:n])
    TorchFeatures(torch.nn.Flatten()).fit(pictures[:1])


def test_modules_that_return_something_else_are_refused(torch):
    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x

    class Summed(torch.nn.Module):
        def forward(self, x):
            return x.sum(dim=0)

    for module in (Pair(), Summed()):
        with pytest.raises(TypeError, match="one tensor with a row for each item"):
            TorchFeatures(module).fit(np.ones((3, 4)))
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        TorchFeatures(lambda x: x).fit(np.ones((3, 4)))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 40, 255, 256, 257])
def test_features_do_not_depend_on_how_many_items_there_are(torch, n):
    """Without filled batches, products of 2 or 3 rows are rounded in another way, as of 1 are."""
    rng = np.random.default_rng(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(700, 64), torch.nn.Tanh())
    X = rng.normal(size=(300, 700))
    extractor = TorchFeatures(module).fit(X)
    near = 1e-6 if n > 1 else 1e-5  # a single item, as private ones are, is not filled up
    np.testing.assert_allclose(extractor.extract(X[:n]), extractor.extract(X)[:n], rtol=near)
    alone = TorchFeatures(module, batch_size=1).fit(X)
    np.testing.assert_array_equal(alone.extract(X[:n][::-1]), alone.extract(X)[:n][::-1])


@pytest.mark.parametrize(("batch_size", "multiple"), [(256, 16), (20, 16), (3, 3), (1, 1)])
def test_batches_are_filled_up(torch, batch_size, multiple):
    sizes = []

    class Watching(torch.nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            return x

        def __deepcopy__(self, memo):
            return self

    extractor = TorchFeatures(Watching(), batch_size=batch_size).fit(np.ones((3, 2)))
    sizes.clear()
    for n in (5, 21, 300):
        np.testing.assert_array_equal(extractor.extract(np.ones((n, 2))), 1.0)
    assert {size % multiple for size in sizes} == {0}


def test_empty_one_and_wrong_width_of_images(torch):
    pictures, _ = images(5)
    rows = pictures.reshape(5, -1)
    extractor = TorchFeatures(net(torch), shape=(1, 8, 8)).fit(rows[:1])
    assert extractor.extract(rows[:0]).shape == (0, 16)
    assert extractor.extract([]).shape == (0, 16)
    assert extractor.transform(rows[:1]).shape == (1, 16)
    for wrong in (rows[:, :-1], np.hstack([rows, rows]), rows[0]):
        with pytest.raises(ValueError, match="64 numbers"):
            extractor.extract(wrong)
        with pytest.raises(ValueError, match="64 numbers"):
            TorchFeatures(net(torch), shape=(1, 8, 8)).fit(wrong)
    plain = TorchFeatures(torch.nn.Flatten()).fit(rows)
    for wrong in (rows[:, :-1], rows.reshape(5, 8, 8)):
        with pytest.raises(ValueError, match=r"shape \(64,\)"):
            plain.extract(wrong)
    with pytest.raises(ValueError, match="at least one public item"):
        TorchFeatures(net(torch), shape=(1, 8, 8)).fit(rows[:0])
    with pytest.raises(ValueError, match="one shape"):
        TorchFeatures(torch.nn.Flatten()).fit([np.ones(3), np.ones(4)])
    for name, value in (("batch_size", 0), ("batch_size", 1.5), ("shape", (8, -8))):
        with pytest.raises((ValueError, TypeError), match=name):
            TorchFeatures(net(torch), **{name: value}).fit(rows)
    with pytest.raises(NotFittedError):
        TorchFeatures(net(torch)).extract(rows)
    frame = pd.DataFrame(rows).add_prefix("p")
    named = TorchFeatures(net(torch), shape=(1, 8, 8)).fit(frame)
    with pytest.raises(ValueError, match="same order"):
        named.transform(frame[frame.columns[::-1]])


def test_items_that_cannot_be_read_are_missing_and_no_other_changes(torch):
    pictures, _ = images(12)
    extractor = TorchFeatures(net(torch)).fit(pictures)
    expected = extractor.extract(pictures)
    items = list(pictures)
    items[2], items[5], items[7], items[9] = None, "text", np.ones((1, 1)), np.ones((1, 9, 9))
    found = extractor.extract(items)
    bad = [2, 5, 7, 9]
    assert np.isnan(found[bad]).all()
    np.testing.assert_array_equal(np.delete(found, bad, 0), np.delete(expected, bad, 0))
    rows = pictures.reshape(12, -1).astype(object)
    rows[3, 10] = SECRET_TEXT
    found = TorchFeatures(net(torch), shape=(1, 8, 8)).fit(rows[:3]).extract(rows)
    assert np.isnan(found[3]).all()
    np.testing.assert_array_equal(np.delete(found, 3, 0), np.delete(expected, 3, 0))


def test_prepare_takes_one_item(torch):
    pictures, _ = images(9)
    shapes = []

    def halve(picture):
        shapes.append((picture.shape, picture.dtype))
        if picture[0, 0, 0] > 50:
            raise ValueError(f"no such picture: {picture}")
        return torch.tensor(picture / 2)

    rows = pictures.reshape(9, -1).astype(np.float32)
    extractor = TorchFeatures(net(torch), shape=(1, 8, 8), prepare=halve).fit(rows)
    expected = expected_features(torch, net(torch), pictures / 2)
    np.testing.assert_allclose(extractor.extract(rows), expected, rtol=1e-5, atol=1e-6)
    assert set(shapes) == {((1, 8, 8), np.dtype(np.float64))}
    rows[4, 0] = 99
    assert np.isnan(extractor.extract(rows)[4]).all()
    np.testing.assert_array_equal(np.isnan(extractor.extract(rows)).any(1), np.arange(9) == 4)
    rows[0, 0] = 99
    with pytest.raises(ValueError, match="no such picture"):  # a public one: the user may know
        clone(extractor).fit(rows)
    shapes.clear()
    TorchFeatures(net(torch), prepare=lambda each: each * 1).fit_transform(torch.tensor(pictures))


def test_tokens_stay_whole_numbers(torch):
    table = torch.nn.EmbeddingBag(50, 3, mode="mean")
    tokens = np.random.default_rng(0).integers(0, 50, (30, 5))
    extractor = TorchFeatures(table, prepare=lambda row: torch.as_tensor(row).long()).fit(tokens)
    found = extractor.transform(tokens.astype(float))
    expected = table(torch.tensor(tokens)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def pipeline(torch, kind=ReweightingClassifier, **options):
    extractor = TorchFeatures(net(torch), shape=(1, 8, 8), **options)
    return AdaptationPipeline([("look", extractor)], classifier(kind))


@every_classifier
def test_images_end_to_end(torch, kind):
    X, y = images(60)
    T, z = images(300, seed=1)
    X, T = X.reshape(60, -1), T.reshape(300, -1)
    model = pipeline(torch, kind).fit(X, y, private=Private(T, z))
    new, truth = images(500, seed=2)
    assert model.score(new.reshape(500, -1), truth) > 0.8
    assert model.guarantee_.epsilon <= 2.0
    assert model.n_features_in_ == 64
    extractor = TorchFeatures(net(torch), shape=(1, 8, 8)).fit(X)
    private = Private(T, z).map(extractor.extract, n_columns=extractor.n_features)
    alone = classifier(kind).fit(extractor.transform(X), y, private=private)
    np.testing.assert_array_equal(alone.predict(extractor.transform(X)), model.predict(X))
    for private in (Private(T[:, :-1], z), Private(np.hstack([T, T]), z)):
        with pytest.raises(ValueError, match="columns"):
            pipeline(torch, kind).fit(X, y, private=private)


@pytest.mark.parametrize("m", [4, 5, 9, 30])
def test_few_public_images_pass_the_check_of_the_pipeline(torch, m):
    X, y = images(m)
    y[:2] = 0, 1
    model = pipeline(torch).fit(X.reshape(m, -1), y, private=Private(*_flat(images(40, seed=1))))
    assert model.predict(X.reshape(m, -1)).shape == (m,)


def _flat(pair):
    return pair[0].reshape(len(pair[0]), -1), pair[1]


def test_private_images_that_fail_are_missing_and_nothing_is_said(torch):
    X, y = _flat(images(60))
    T, z = _flat(images(60, seed=1))

    T[7], T[8], T[9] = SENTINEL, np.nan, np.inf
    with everything_said() as said, taped() as tape:
        model = pipeline(torch, prepare=_Picky()).fit(X, y, private=Private(T, z))
    assert said.all.strip() == ""
    assert np.isfinite(model.predict_proba(X)).all()
    Secrets(T[:7]).check(model)
    expected = TorchFeatures(net(torch), shape=(1, 8, 8)).fit(X)
    rows = expected.extract(T)
    rows[[7, 8, 9]] = np.nan
    with taped() as known:
        classifier().fit(expected.transform(X), y, private=Private(rows, z))
    np.testing.assert_allclose(tape[0].value, known[0].value, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_features_that_are_not_finite_are_what_cleaning_makes_of_them(torch, value):
    X, y = _flat(images(60))
    T, z = _flat(images(60, seed=1))
    T[7] = value
    with taped() as tape:
        model = pipeline(torch).fit(X, y, private=Private(T, z))
    assert np.isfinite(model.predict_proba(X)).all()
    extractor = TorchFeatures(net(torch), shape=(1, 8, 8)).fit(X)
    rows = extractor.extract(T)
    assert not np.isfinite(rows[7]).all()
    assert np.isfinite(np.delete(rows, 7, axis=0)).all()
    with taped() as known:
        classifier().fit(extractor.transform(X), y, private=Private(rows, z))
    np.testing.assert_allclose(tape[0].value, known[0].value, rtol=1e-9, atol=1e-12)


class _Picky:
    """Refuses loudly what it does not like; a class, so that it can be pickled."""

    def __call__(self, picture):
        if not np.abs(picture).max() < 1e5:
            print("odd:", picture)
            raise ValueError(f"odd: {picture}")
        return picture


def test_torch_features_can_be_cloned_and_pickled(torch):
    X, _ = _flat(images(30))
    extractor = TorchFeatures(net(torch), shape=(1, 8, 8), prepare=_Picky(), batch_size=9)
    copied = clone(extractor)
    assert copied.module is not extractor.module
    assert copied.get_params()["shape"] == (1, 8, 8)
    features = extractor.fit_transform(X)
    np.testing.assert_array_equal(copied.fit(X).transform(X), features)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(extractor)).transform(X), features)
    assert list(extractor.get_feature_names_out())[-1] == "torchfeatures15"
    with torch.no_grad():  # a fitted extractor does not follow its user's module
        extractor.module[0].weight.zero_()
    np.testing.assert_array_equal(extractor.transform(X), features)
    frame = pd.DataFrame(X).add_prefix("p")
    named = clone(copied).set_output(transform="pandas").fit(frame).transform(frame)
    assert named.shape == (30, 16)


# Private items come one by one ------------------------------------------------------------------


def buffered(torch):
    class Remembers(torch.nn.Module):
        """Adds the mean of what it has seen, and keeps the last batch."""

        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, X):
            self.last = X
            self.seen += X.mean(dim=0)
            return self.linear(X + self.seen)

    return Remembers()


def quantised(torch):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    return torch.ao.quantization.quantize_dynamic(module, {torch.nn.Linear}, dtype=torch.qint8)


def batch_statistics(torch):
    class Centred(torch.nn.Module):
        def forward(self, X):
            return X - X.mean(dim=0)

    return Centred()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [buffered, quantised, batch_statistics])
def test_no_module_lets_an_item_touch_another(made):
    torch = pytest.importorskip("torch")
    extractor = TorchFeatures(made(torch))
    extractor.module_, extractor.item_shape_ = extractor.module.eval(), (3,)
    extractor._precision, extractor._n_features_out = torch.float32, 3
    if made is not batch_statistics:
        extractor._n_features_out = 2  # as a probe on items of one range would have let it
    items = np.random.default_rng(0).normal(size=(40, 3))
    odd = items.copy()
    odd[7] = 1e4
    rest = np.arange(40) != 7
    found = []
    for rows in (items, odd):
        private = Private(rows).map(extractor.extract, n_columns=extractor.n_features)
        with private.open(epsilon=1.0, delta=1e-6) as session:
            found.append(session.hide(Rows(Cleaning(1e9)))._value)
    assert found[0][rest].tobytes() == found[1][rest].tobytes()
    assert not hasattr(extractor.module_, "last")  # nothing of a row stays
    together = [extractor.extract(rows)[rest] for rows in (items, odd)]
    assert together[0].tobytes() != together[1].tobytes()  # the test has power
