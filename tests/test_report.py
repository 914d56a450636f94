"""The report: right numbers, hostile names escaped, nothing private, nothing from elsewhere."""

import base64
import copy
import functools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.preprocessing import StandardScaler

from dpadapt import (
    AdaMixClassifier,
    AdaptationPipeline,
    Agents,
    DiscrepancyRegressor,
    Guarantee,
    HybridTilt,
    KernelClassifier,
    KernelRegressor,
    NoisyGDClassifier,
    Private,
    ReweightingClassifier,
    ReweightingRegressor,
    SubsampleTestReweigh,
    baselines,
)
from dpadapt.discrepancy import Moments
from dpadapt.hybrid import TightSchedule
from dpadapt.mixing import Steps
from dpadapt.modelfolder import save_model
from dpadapt.papers.selection.random_stopping import RandomStoppingEvent
from dpadapt.privacy import Ledger
from dpadapt.privacy.accounting.composition import pld_epsilon
from dpadapt.privacy.accounting.events import GaussianEvent, LaplaceEvent, ParallelEvent, PureEvent
from dpadapt.report import ReportContext, write_report
from dpadapt.report.figures import detection_limit, epsilon_curve, show_coefficients
from dpadapt.reweighting import GeneralGradient, KnownNoise, Statistics
from dpadapt.testing.search import SECRET_TEXT, Secrets, everything_said
from dpadapt.testing.tape import taped

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
    model = DiscrepancyRegressor(
        epsilon=1.0, delta=1e-6, solver=Moments(max_remaining=1.0), **options
    )
    return model.fit(X, X.iloc[:, 0], private=Private(pd.DataFrame(rows, columns=list(names))))


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture
def quick(monkeypatch):
    """Pages without figures, where they do not matter."""
    monkeypatch.setattr("dpadapt.learning.figures.as_data_uri", lambda figure: "data:,")


def test_the_numbers_are_there(model, tmp_path, quick):
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
    for image in read(folder / "report.html").images:
        content += base64.b64decode(image["src"].partition(",")[2])
    for needle in (b"987654", b"987,654", b"9.87654e", b"9.877e+05"):
        assert needle not in content
    for order in "<>":
        for value in (SENTINEL, -SENTINEL):
            assert np.array(value, dtype=f"{order}f8").tobytes() not in content


def test_seeded_noise_is_called_out(tmp_path, quick):
    text = read(write_report(fitted(noise="seeded", random_state=1), tmp_path / "r.html")).text
    assert "Not for release." in text


def test_a_model_that_did_not_adapt(model, tmp_path, quick):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, size=(300, 2))
    far = DiscrepancyRegressor(epsilon=4.0, delta=1e-6, radius=50.0)
    with pytest.warns(UserWarning, match="no weights"):
        far.fit(X, X[:, 0], private=Private(X + 10))
    reader = read(write_report(far, tmp_path / "r.html"))
    assert "Not adapted." in reader.text
    assert "set by whoever fitted the model" in reader.text
    assert "Not adapted." not in read(write_report(model, tmp_path / "s.html")).text


def test_samples_that_look_alike(tmp_path, quick):
    X = np.random.default_rng(0).normal(size=(400, 2))
    quiet = {"noise": "seeded", "random_state": 0}
    regressor = DiscrepancyRegressor(epsilon=0.01, delta=1e-6, **quiet)
    alike = regressor.fit(X, X[:, 0], private=Private(X))
    assert "the two samples look alike" in read(write_report(alike, tmp_path / "r.html")).text


def test_a_model_without_private_rows(tmp_path, quick):
    model = DiscrepancyRegressor(epsilon=1.0, delta=1e-6).fit(np.eye(3), [1.0, 2.0, 3.0])
    assert model.guarantee_ == Guarantee()
    text = read(write_report(model, tmp_path / "r.html")).text
    assert "no private row was used" in text
    assert "What was released" not in text


def test_the_ledger_is_shown(model, tmp_path, quick):
    ledger = Ledger(tmp_path / "budget.db")
    account = ledger.create("patients", epsilon=3.0, delta=1e-6)
    account.charge(model.guarantee_.events, label="fit")
    context = ReportContext(ledger=ledger.dataset("patients"))
    text = read(write_report(model, tmp_path / "r.html", context=context)).text
    assert "The ledger below keeps count" in text
    assert re.search(rf"patients 3 1e-06 {account.spent():.4g} {account.left():.4g} 1", text)


def test_other_events_have_words(model, tmp_path, quick):
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


# every estimator of the library

SIZE = 1747  # of the private sample: a secret under add-remove
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "noise": "seeded", "random_state": 3}
NAMES, CLASSES = ["age", "income", "distance"], ["buy", "hold", "sell"]


def network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = (torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    return ReweightingClassifier(
        **BUDGET, solver=KnownNoise(steps=5), module=torch.nn.Sequential(*layers)
    )


REGRESSORS = {
    "discrepancy": lambda: DiscrepancyRegressor(**BUDGET, solver=Moments(max_remaining=1.0)),
    "reweighting": lambda: ReweightingRegressor(**BUDGET),
    "certified": lambda: ReweightingRegressor(
        **BUDGET, certificate=True, label_range=(-99.0, 99.0)
    ),
    "descent": lambda: ReweightingRegressor(**BUDGET | {"epsilon": 0.05}),
    "statistics": lambda: ReweightingRegressor(**BUDGET, solver="statistics"),
    "holdout": lambda: ReweightingRegressor(
        **BUDGET, solver=Statistics(selection="holdout", alpha=[0.0, 0.5])
    ),
    "adassp": lambda: baselines.AdaSSPRegressor(**BUDGET),
    "noisy gradient": lambda: baselines.NoisyGradientRegressor(**BUDGET),
    "noisy sgd": lambda: baselines.NoisySGDRegressor(**BUDGET),
    "perturbed": lambda: baselines.ObjectivePerturbationRegressor(**BUDGET),
}
REPLACED = {
    "reweighted classes": lambda: ReweightingClassifier(**BUDGET),
    "algorithm 2": lambda: ReweightingClassifier(**BUDGET, solver=GeneralGradient(steps=5)),
    "network": network,
    "adamix": lambda: AdaMixClassifier(**BUDGET),
    "filtered": lambda: AdaMixClassifier(**BUDGET, steps=Steps(40, individual_filter=4.0)),
    "theory": lambda: AdaMixClassifier(**BUDGET, solver="theory"),
    "noisy gd": lambda: NoisyGDClassifier(**BUDGET),
    "adassp classes": lambda: baselines.AdaSSPClassifier(**BUDGET),
    "noisy gradient classes": lambda: baselines.NoisyGradientClassifier(**BUDGET),
    "perturbed classes": lambda: baselines.ObjectivePerturbationClassifier(**BUDGET),
}
ADDED = {
    "added adamix": lambda: AdaMixClassifier(**BUDGET, relation="add-remove"),
    "added guess": lambda: AdaMixClassifier(**BUDGET, relation="add-remove", sample_size=2000),
    "added algorithm": lambda: AdaMixClassifier(**BUDGET, relation="add-remove", solver="adamix"),
    "added choice": lambda: AdaMixClassifier(
        **BUDGET, relation="add-remove", steps=9, select={"clip": [0.3, 1.0]}
    ),
    "added filter": lambda: NoisyGDClassifier(
        **BUDGET, relation="add-remove", steps=Steps(40, individual_filter=4.0)
    ),
    "added noisy gd": lambda: NoisyGDClassifier(**BUDGET, relation="add-remove"),
}
PUBLIC_ONLY = {
    "public": baselines.PublicOnlyRegressor,
    "public classes": baselines.PublicOnlyClassifier,
}
CLASSIFIERS = {**REPLACED, **ADDED}
EVERY = {**REGRESSORS, **CLASSIFIERS}


def sample(n, seed, name):
    """Rows with their labels: numbers, or three classes."""
    X = np.random.default_rng(seed).normal(0.2, 1.0, size=(n, 3))
    score = X @ [1.0, -2.0, 0.5] + 0.3 * X[:, 0] ** 2
    if name not in REGRESSORS and name != "public":
        score = np.array(CLASSES)[np.digitize(score, [-1.0, 1.0])]
    return pd.DataFrame(X, columns=NAMES), score


def private_sample(name, n=SIZE, seed=1):
    """Rows and labels with secrets in them."""
    X, y = sample(n, seed, name)
    X.iloc[3, 1] = X.iloc[7, 0] = SENTINEL
    if name in CLASSIFIERS:
        y = y.astype(object)
        y[5] = SECRET_TEXT
    else:
        y[5] = SENTINEL
    return X, y


def fit(name, rows=None, labels=None, wrap=lambda estimator: estimator):
    X, y = sample(150, 0, name)
    private = None if rows is None else Private(rows, labels)
    with everything_said():
        model = wrap({**EVERY, **PUBLIC_ONLY}[name]())
        return model.fit(X, y, private=private)


@functools.cache
def usual(name):
    """The fit to the usual private sample, whose noise is seeded: whoever changes it, copies it."""
    return fit(name, *private_sample(name))


def page(model, folder, **context):
    """The page without the time at which it was written."""
    html = write_report(model, folder / "r.html", context=ReportContext(**context)).read_text()
    return re.sub(r"written on [^.]*\.", "", html)


def spoken(html):
    """All that a reader of the page can see: its text, and the text in its figures."""
    reader = Reader()
    reader.feed(html)
    drawn = [base64.b64decode(image["src"].partition(",")[2]).decode() for image in reader.images]
    words = [word for figure in drawn for word in re.findall(r"<!-- (.*?) -->", figure)]
    return " ".join([reader.text, *(image["alt"] for image in reader.images), *words])


def traces_of_size(said):
    spellings = (f"{SIZE}", f"{SIZE:,}", f"{SIZE / 1000}e+03", f"1 {SIZE % 1000}", f"{SIZE - 1:,}")
    return [each for each in spellings if each in said]


EVERY_THIRD = [
    each if place % 3 == 0 else pytest.param(each, marks=pytest.mark.slow)
    for place, each in enumerate(EVERY)
]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.usefixtures("quick")
def test_every_private_estimator(name, tmp_path):
    check_page_of(name, tmp_path)


@pytest.mark.parametrize("name", EVERY_THIRD)
def test_every_private_estimator_with_its_figures(name, tmp_path):
    check_page_of(name, tmp_path)


def check_page_of(name, folder):
    """What a page must say of a fit, and what it must not."""
    rows, _ = private_sample(name)
    model = usual(name)
    html = page(model, folder)
    said = spoken(html)
    assert model.guarantee_.sentence in said
    assert "Not for release." in said
    assert ("labels not used" in said) == (name == "discrepancy")
    assert ("private, with labels" in said) == (name != "discrepancy")
    assert not re.search(r"\b(nan|inf|None)\b(?! comes from)", said)
    for event in model.guarantee_.events:
        assert event.label in said
    if name in ADDED:
        assert not traces_of_size(said)
        assert "private, with labels secret" in said
        assert "The number of private rows is a secret." in said
        assert "counts as public" not in said
    else:
        assert f"{SIZE:,} only the releases" in said
        assert "counts as public" in said
    secrets = Secrets(rows)
    secrets.check_text(said, "the page")
    secrets.check_bytes(html.encode(), "the page")
    if name not in REGRESSORS:
        assert "classes 3 buy, hold, sell" in said


@pytest.mark.parametrize("name", [*EVERY, *PUBLIC_ONLY])
def test_every_estimator_without_private_rows(name, tmp_path, quick):
    said = spoken(page(fit(name), tmp_path))
    assert "no private row was used" in said
    for words in ("What was released", "with labels –", "Not for release", "noise over clip"):
        assert words not in said
    assert re.search("public rows|on the public|of the public", said)


@pytest.mark.parametrize("name", EVERY_THIRD)
def test_every_estimator_in_a_pipeline(name, tmp_path, quick):
    def wrap(estimator):
        return AdaptationPipeline([("scale", StandardScaler())], estimator)

    model = fit(name, *private_sample(name), wrap=wrap)
    said = spoken(page(model, tmp_path))
    assert type(model.estimator_).__name__ in said
    assert "Columns; 3 features after transformers" in said
    assert "used (3)" in said
    if name != "network":
        assert "income" in said


@pytest.mark.parametrize("name", EVERY_THIRD)
def test_a_page_tells_nothing_but_what_was_released(name, tmp_path, quick):
    """Other rows that get the same noisy answers must give the same page."""
    with taped() as tape:
        one = fit(name, *private_sample(name))
    n = SIZE - 300 if name in ADDED else SIZE
    with taped(tape):
        two = fit(name, *private_sample(name, n, seed=2))
    assert page(one, tmp_path) == page(two, tmp_path)


def test_a_method_that_kept_the_number_of_rows_would_be_caught(tmp_path, quick):
    model = copy.copy(usual("added guess"))
    assert not traces_of_size(spoken(page(model, tmp_path)))
    model.sample_size_ = SIZE
    assert traces_of_size(spoken(page(model, tmp_path)))


def test_facts_of_reweighting(tmp_path, quick):
    model = copy.copy(usual("certified"))
    said, course = spoken(page(model, tmp_path)), model.course_
    assert f"{100 * model.share_:.1f} % of the move was kept" in said
    facts = ("row length", course.length), ("residual", course.clip)
    for fact in (f"{name} {value:.4g}" for name, value in facts):
        assert fact in said
    assert str(model.certificate_).splitlines()[0] in said
    assert "one noisy moment matrix" in said
    model.share_ = 0.0
    assert "Nothing of the move was kept" in spoken(page(model, tmp_path))
    model.share_ = 1.0
    assert "All of the move was kept" in spoken(page(model, tmp_path))


def test_facts_of_a_descent(tmp_path, quick):
    model = usual("descent")
    said, course = spoken(page(model, tmp_path)), model.course_
    facts = ("how far to go", course.horizon), ("steps", course.steps), ("clip", course.clip)
    for fact in (f"{name} {value:.4g}" for name, value in facts):
        assert fact in said
    assert "cut at a million times the size of public rows" in said
    assert "radius (clipped gradient)" not in said, "a number that tells a reader nothing"
    filed = write_report(model, tmp_path / "report.json").read_text(encoding="utf-8")
    assert json.loads(filed)["guarantee"]["bounds"]["radius (clipped gradient)"] > 1e5


def test_facts_of_a_choice_on_a_holdout(tmp_path, quick):
    model = usual("holdout")
    said = spoken(page(model, tmp_path))
    assert f"chosen alpha {model.chosen_.alpha:.4g}" in said
    assert "releases on separate parts of the rows" in said
    assert "radius (candidate losses)" in said
    assert "a million times" not in said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("adamix", "the number of private rows, which counts as public"),
        ("added guess", "2,000 a public guess by whoever fitted the model"),
        ("added adamix", "a noisy count, released and charged for"),
    ],
)
def test_facts_of_adamix(name, words, tmp_path, quick):
    model = usual(name)
    said = spoken(page(model, tmp_path))
    assert words in said
    assert f"rows counted on {model.sample_size_:,.0f}" in said
    assert f"steps {model.n_steps_} noisy sums" in said
    assert f"noise over clip {model.sigma_:.4g}" in said
    assert f"noise of a score {model.plan_.kappa:.4g}" in said
    assert "clip 0.5" in said
    assert "radius (clipped gradients) 1 by construction: rows enter as directions" in said
    assert "takes part until" not in said
    assert "best of a secret" not in said


def test_clips_that_change_are_told_as_a_range(tmp_path, quick):
    model = usual("added algorithm")
    low, high = model.clips_.min(), model.clips_.max()
    assert low < high
    assert f"clip {low:.4g} to {high:.4g}" in spoken(page(model, tmp_path))


@pytest.mark.parametrize("name", ["filtered", "added filter"])
def test_an_individual_filter_is_told(name, tmp_path, quick):
    model = usual(name)
    assert model.guarantee_.events[0].count == 10
    said = spoken(page(model, tmp_path))
    assert "40, at the price of 10" in said
    assert "takes part until it is spent" in said


def test_a_choice_by_random_stopping_is_told(tmp_path, quick):
    model = usual("added choice")
    (event,) = model.guarantee_.events
    said = spoken(page(model, tmp_path))
    assert f"random number of runs, {event.mean_runs:.3g} on average" in said
    assert "best of random runs: clipped gradients" in said
    assert "9 a run" in said
    assert f"chosen clip {model.selected_['clip']:.4g}" in said
    assert "epsilon, second opinion (dp-accounting) no statement" in said


def test_a_start_that_was_given_and_no_public_rows(tmp_path, quick):
    rows, labels = private_sample("noisy gd")
    start = np.ones((3, 3))
    model = NoisyGDClassifier(**BUDGET, classes=CLASSES, start=start, steps=4)
    with everything_said():
        model.fit(private=Private(rows, labels))
    said = spoken(page(model, tmp_path))
    assert "start given weights that were given" in said
    assert "directions are seen from zero" in said
    given = NoisyGDClassifier(**BUDGET, start=start).fit(*sample(99, 0, "noisy gd"))
    assert "of directions, as it was given." in spoken(page(given, tmp_path))


def test_a_network_has_no_coefficients(tmp_path):
    model = usual("network")
    html = page(model, tmp_path)
    assert "network Sequential of torch, with 31 parameters" in spoken(html)
    assert html.count("<img") == 2


# coefficients


def linear(d, c):
    """A model of d features for c classes, without private rows."""
    rng = np.random.default_rng(0)
    y = np.arange(6 * c) % c
    X = rng.normal(size=(6 * c, d)) + 3 * np.eye(c, d)[y]
    return AdaMixClassifier(**BUDGET).fit(X, y)


def lines(html):
    """Lines of the table of coefficients, which comes right after their figure."""
    _, figure, after = html.rpartition("<figcaption>")
    assert figure
    return after.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr>")


def test_a_heat_map_of_few_classes_and_features(tmp_path):
    model = linear(5, 4)
    html = page(model, tmp_path)
    said = spoken(html)
    assert "Heat map" in said
    assert lines(html) == 4
    for coefficient in model.coef_.ravel():
        assert f" {coefficient:.2g} " in said
    assert f"{np.linalg.norm(model.coef_[1]):.6g}" in said


def test_lengths_of_many_classes_and_features(tmp_path):
    model = linear(600, 30)
    html = page(model, tmp_path)
    said = spoken(html)
    assert "The 20 largest of 30 classes" in said
    assert "600 coefficients each" in said
    assert lines(html) == 20
    least = np.argmin(np.linalg.norm(model.coef_, axis=1))
    assert f"{model.intercept_[least]:.6g}" not in said


def test_the_largest_of_many_coefficients(tmp_path):
    model = linear(3000, 2)
    html = page(model, tmp_path)
    assert "The 20 largest of 3,000 coefficients" in spoken(html)
    assert lines(html) == 21  # and the intercept
    order = np.argsort(-np.abs(model.coef_[0]))
    assert f"feature {order[0] + 1}<" in html
    assert f"feature {order[20] + 1}<" not in html
    assert "change of score of" in spoken(html)


@pytest.mark.parametrize("c", [2, 3])
def test_hostile_classes_are_escaped(c, tmp_path):
    names = np.array([HOSTILE, "$x", "b" * 500][:c])
    rng = np.random.default_rng(0)
    y = names[np.arange(60) % c]
    model = ReweightingClassifier(epsilon=1.0, delta=1e-6).fit(rng.normal(size=(60, 2)), y)
    reader = read(write_report(model, tmp_path / "r.html"))
    assert "script" not in reader.tags
    assert 'alert("x")' in reader.text


def test_scales_of_features_order_the_bars():
    X, y = sample(200, 0, "public")
    model = ReweightingRegressor(epsilon=1.0, delta=1e-6).fit(X, y)
    for scale, first in (((), "income"), ((9.0, 1.0, 0.1), "age")):
        shown = show_coefficients(model, label="price", scale=scale)
        axes = shown.figure.axes[0]
        bars = dict(zip(axes.get_yticks(), axes.get_yticklabels(), strict=True))
        assert bars[max(bars)].get_text() == first
        assert shown.caption.startswith("All 3 coefficients of price")
        assert ("public standard deviation" in shown.figure.get_supxlabel()) == bool(scale)


def test_models_without_a_guarantee_are_refused(tmp_path):
    model = baselines.NonPrivateRegressor().fit(np.eye(3), [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=r"model: a NonPrivateRegressor comes with no guarantee"):
        write_report(model, tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("release", ["gaussian-process", "tddl", "tdil"])
def test_kernel_models_tell_how_they_were_released(release, tmp_path, quick):
    X, _ = sample(200, 0, "public")
    y = np.asarray(X)[:, 0] > 0
    model = KernelClassifier(epsilon=1.0, delta=1e-6, release=release)
    model.fit(X[:40], y[:40], private=Private(X[40:], y[40:]))
    text = read(write_report(model, tmp_path / "r.html")).text
    made = "public rows, corrected by" if release == "gaussian-process" else "private rows"
    assert f"A kernel classifier of the {made}" in text
    assert ("Algorithm 2" in text) == (release == "tddl")
    assert ("Algorithm 3" in text) == (release == "tdil")
    alone = KernelRegressor(epsilon=1.0, delta=1e-6).fit(X, y.astype(float))
    text = read(write_report(alone, tmp_path / "r.html")).text
    assert "A kernel regression of the public rows." in text


@pytest.mark.parametrize("name", ["tilt", pytest.param("reweigh", marks=pytest.mark.slow)])
def test_models_of_curator_and_agents_tell_of_both(name, tmp_path, quick):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = X[:, 0] > 0
    facts = {"epsilon": 2.0, "delta": 1e-6, "agent_epsilon": 3.0, "classes": [False, True]}
    model = HybridTilt(**facts)
    if name == "reweigh":
        model = SubsampleTestReweigh(**facts, schedule=TightSchedule(rounds=2), target_error=0.2)
    alone = read(write_report(model.fit(X, y), tmp_path / "r.html")).text
    assert "fitted on public rows alone" in alone
    model.fit(private=Private(X, y), agents=Agents(X, y))
    text = read(write_report(model, tmp_path / "r.html")).text
    assert "epsilon of an agent" in text
    assert "error on agents" in text
    model.fit(private=Private(X, y))
    assert "nobody was asked" in read(write_report(model, tmp_path / "r.html")).text
