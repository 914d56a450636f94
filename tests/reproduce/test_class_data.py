"""The data of paper 004's experiments have the published sizes, and are checked by content."""

import numpy as np
import pytest

from paper_command import needs_data
from reproduce.data import files
from reproduce.data.classes import load_covertype
from reproduce.data.files import MissingDataError
from reproduce.mixing import data as loaders


@needs_data
@pytest.mark.parametrize(
    ("load", "arguments", "shape", "classes"),
    [
        ("load_digit_pixels", (), (1797, 64), 10),
        ("load_mnist", (), (2000, 256), 10),
        ("load_usps", (), (1800, 256), 10),
        ("load_office", ("amazon",), (958, 1024), 10),
        ("load_office", ("webcam",), (295, 1024), 10),
        ("load_office", ("dslr",), (157, 1024), 10),
        ("load_office", ("amazon", "surf"), (958, 800), 10),
        ("load_office", ("caltech10", "surf"), (1123, 800), 10),
        ("load_office", ("dslr", "surf"), (157, 800), 10),
        ("load_office", ("webcam", "surf"), (295, 800), 10),
        (load_covertype, (), (15120, 54), 7),
        ("load_gas_kinds", (), (6697, 128), 6),
    ],
)
def test_loaders(load, arguments, shape, classes):
    data = (getattr(loaders, load) if isinstance(load, str) else load)(*arguments)
    assert data.X.shape == shape
    assert data.X.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert np.array_equal(np.unique(data.y), np.arange(classes))


@needs_data
def test_pixels_are_shares_of_grey():
    for data in (loaders.load_mnist(), loaders.load_usps()):
        assert data.X.min() == 0.0
        assert 0.99 < data.X.max() <= 1.0


@needs_data
def test_features_of_reviews_come_from_other_kinds(monkeypatch):
    train, test = loaders.load_review_directions("kitchen", directions=5)
    assert (len(train.y), len(test.y)) == (2000, 5945)
    assert train.y.mean() == 0.5
    known = loaders.load_reviews

    def shuffled(kind):
        found = known(kind)
        if kind != "kitchen":
            return found
        order = np.random.default_rng(0).permutation(len(found.labels))
        return found._replace(words=found.words[order], labels=found.labels[order])

    monkeypatch.setattr(loaders, "load_reviews", shuffled)
    again, others = loaders.load_review_directions("kitchen", directions=5)
    rows = np.vstack([train.X, test.X])
    order = np.random.default_rng(0).permutation(len(rows))
    # the directions did not move with the reviews that they are used on
    assert np.allclose(np.vstack([again.X, others.X]), rows[order])


@needs_data
def test_another_file_is_refused(monkeypatch, tmp_path):
    folder = tmp_path / "mnist_usps"
    folder.mkdir()
    np.savez(folder / "mnist_usps.npz", X_mnist=np.zeros((2, 2)), y_mnist=np.ones(2))
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    with pytest.raises(MissingDataError, match="sha256"):
        loaders.load_mnist()


def test_missing_data_says_what_it_is(monkeypatch):
    monkeypatch.delenv(files.VARIABLE, raising=False)
    for load, name in (
        (loaders.load_usps, "MNIST_vs_USPS"),
        (load_covertype, "UCI data set 31"),
        (lambda: loaders.load_office("amazon"), "Office-Caltech 10"),
    ):
        with pytest.raises(MissingDataError, match=name):
            load()
