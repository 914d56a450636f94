"""The report: right numbers, hostile names escaped, nothing private, nothing from elsewhere."""

import base64
import re
import zipfile
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dpadapt import DiscrepancyRegressor, Guarantee, Private
from dpadapt.modelfolder import save_model
from dpadapt.privacy import Ledger, pld_epsilon
from dpadapt.privacy.events import (
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    RandomStoppingEvent,
)
from dpadapt.report import ReportContext, write_report
from dpadapt.report.curves import detection_limit, epsilon_curve

HOSTILE = '<script>alert("x")</script> $\\frac{ & \n'
SENTINEL = 987654.321


class Reader(HTMLParser):
    """Collects text, images and whatever would load something."""

    def __init__(self):
        super().__init__()
        self.words, self.images, self.links, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        if tag == "img":
            self.images.append(attrs)
        self.links += [v for k, v in attrs.items() if k in ("href", "src") and tag != "img"]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def fitted(names=("a", "b"), private=None, **options):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=list(names))
    rows = rng.normal(size=(700, 2)) + 0.3 if private is None else private
    model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6, max_remaining=1.0, **options)
    return model.fit(X, X.iloc[:, 0], private=Private(pd.DataFrame(rows, columns=list(names))))


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_the_numbers_are_there(model, tmp_path):
    text = read(write_report(model, tmp_path / "r.html")).text
    guarantee, (event,) = model.guarantee_, model.guarantee_.events
    assert guarantee.sentence in text
    assert f"{pld_epsilon(guarantee.events, guarantee.delta):.6f}" in text
    for value in (event.sensitivity, event.scale, guarantee.bounds["radius (second moment)"]):
        assert f"{value:.4g}" in text
    for words in ("second moment", "Gaussian noise", "700", "400", "replaced by any other row"):
        assert words in text
    for caveat in guarantee.caveats:
        assert caveat in text
    assert f"{1 / np.sum(model.weights_**2):,.0f}" in text
    for coefficient in model.coef_:
        assert f"{coefficient:.6g}" in text


def test_self_contained_and_accessible(model, tmp_path):
    reader = read(write_report(model, tmp_path / "r.html"))
    assert reader.links == []
    assert "script" not in reader.tags
    assert len(reader.images) == 4
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in reader.images)
    assert all(len(image["alt"]) > 20 for image in reader.images)
    assert reader.tags.count("thead") == reader.tags.count("table")


def test_hostile_names_are_escaped(tmp_path):
    names = (HOSTILE, "b" * 500)
    results = pd.DataFrame(
        {"setting": HOSTILE, "method": [HOSTILE, "reference"], "run": 0, "mse": [0.3, 0.2]}
    )
    context = ReportContext(
        title=HOSTILE,
        label=HOSTILE,
        public_name=HOSTILE,
        private_name=HOSTILE,
        results=results,
        reference="reference",
    )
    reader = read(write_report(fitted(names), tmp_path / "r.html", context=context))
    assert "script" not in reader.tags
    assert 'alert("x")' in reader.text
    assert len(reader.images) == 5


def test_no_private_value_in_any_file(tmp_path):
    rows = np.random.default_rng(1).normal(size=(700, 2))
    rows[::7, 0], rows[::5, 1] = SENTINEL, -SENTINEL
    folder = save_model(fitted(private=rows), tmp_path / "model")
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    with zipfile.ZipFile(folder / "model.skops") as archive:
        content += b"".join(archive.read(name) for name in archive.namelist())
    for image in read(folder / "report.html").images:
        content += base64.b64decode(image["src"].partition(",")[2])
    for needle in (b"987654", b"987,654", b"9.87654e", b"9.877e+05"):
        assert needle not in content
    for order in "<>":
        for value in (SENTINEL, -SENTINEL):
            assert np.array(value, dtype=f"{order}f8").tobytes() not in content


def test_seeded_noise_is_called_out(tmp_path):
    text = read(write_report(fitted(noise="seeded", random_state=1), tmp_path / "r.html")).text
    assert "Not for release." in text


def test_a_model_that_did_not_adapt(model, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, size=(300, 2))
    far = DiscrepancyRegressor(epsilon=4.0, delta=1e-6, radius=50.0)
    with pytest.warns(UserWarning, match="no weights"):
        far.fit(X, X[:, 0], private=Private(X + 10))
    reader = read(write_report(far, tmp_path / "r.html"))
    assert "Not adapted." in reader.text
    assert "set by whoever fitted the model" in reader.text
    assert "Not adapted." not in read(write_report(model, tmp_path / "s.html")).text


def test_samples_that_look_alike(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 2))
    quiet = {"noise": "seeded", "random_state": 0}
    regressor = DiscrepancyRegressor(epsilon=0.01, delta=1e-6, **quiet)
    alike = regressor.fit(X, X[:, 0], private=Private(X))
    assert "the two samples look alike" in read(write_report(alike, tmp_path / "r.html")).text


def test_a_model_without_private_rows(tmp_path):
    model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6).fit(np.eye(3), [1.0, 2.0, 3.0])
    assert model.guarantee_ == Guarantee()
    text = read(write_report(model, tmp_path / "r.html")).text
    assert "no private row was used" in text
    assert "What was released" not in text


def test_the_ledger_is_shown(model, tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    account = ledger.create("patients", epsilon=3.0, delta=1e-6)
    account.charge(model.guarantee_.events, label="fit")
    context = ReportContext(ledger=ledger.dataset("patients"))
    text = read(write_report(model, tmp_path / "r.html", context=context)).text
    assert "The ledger below keeps count" in text
    assert re.search(rf"patients 3 1e-06 {account.spent():.4g} {account.left():.4g} 1", text)


def test_other_events_have_words(model, tmp_path):
    run = (GaussianEvent("one run", 1.0, 20.0),)
    parts = ((LaplaceEvent("count", 1.0, 4.0),), (PureEvent("answer", 0.2),))
    events = (
        ParallelEvent("parts", branches=parts),
        RandomStoppingEvent("tuning", run, shape=1.0, gamma=0.2),
    )
    other = fitted()
    other.guarantee_ = Guarantee(events, 1e-6, "secure", {"private rows": 5})
    text = read(write_report(other, tmp_path / "r.html")).text
    for words in ("parts: count", "Laplace noise", "tuning: one run", "no statement"):
        assert words in text


def test_detection_limit_is_the_gaussian_trade_off():
    events = (GaussianEvent("a", 1.0, 2.0), GaussianEvent("b", 1.0, 2.0))
    rates = np.linspace(0.001, 0.999, 41)
    exact = norm.cdf(norm.ppf(rates) + np.sqrt(0.5))
    limit = detection_limit(events, rates)
    assert np.all(limit >= exact - 1e-9)
    assert np.all(limit <= exact + 2e-3)


def test_detection_limit_of_pure_privacy():
    limit = detection_limit((PureEvent("a", 1.0),), [0.0, 0.1, 1.0])
    np.testing.assert_allclose(limit, [0.0, 0.1 * np.e, 1.0], rtol=1e-6)


def test_epsilon_curve_passes_through_the_claim(model):
    guarantee = model.guarantee_
    deltas, epsilons = epsilon_curve(guarantee.events, guarantee.delta)
    at = np.interp(np.log(guarantee.delta), np.log(deltas), epsilons)
    assert at == pytest.approx(guarantee.epsilon, rel=1e-3)
