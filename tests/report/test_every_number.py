"""Every number of a report is in guarantee.json or in the evaluation, or follows from them."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import dpadapt
from dpadapt import AutoRegressor, Guarantee, Private, evaluate, save_model
from dpadapt.evaluation import hold_out
from dpadapt.report import ReportContext, page
from dpadapt.report.content import odds_sentence
from dpadapt.report.figures import detection_limit

_NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
_TEMPLATE = Path(page.__file__).parent / "template.html"
_ROUNDING = 6e-4  # a page shows four digits


class Text(HTMLParser):
    """What a reader sees of a page."""

    def __init__(self):
        super().__init__()
        self.seen, self.hidden = [], 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("style", "script")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "script")

    def handle_data(self, data):
        if not self.hidden:
            self.seen.append(data)


def numbers(text):
    return {float(each.replace(",", "").rstrip(".")) for each in _NUMBER.findall(text)}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(300, 2)), rng.normal(size=(3000, 2))
    train, test = hold_out(Private(T, 2 + T[:, 0]), 0.3, epsilon=0.5, delta=1e-6)
    model = AutoRegressor(epsilon=1.0, delta=1e-6, experts=["linear"])
    model.fit(X, X[:, 0], private=train)
    bounds = {"label_range": (-2.0, 5.0), "largest_error": 3.0}
    return model, evaluate(model, test, epsilon=0.5, delta=1e-6, **bounds)


def unknown(model, found, folder):
    """Numbers of the page that nothing accounts for."""
    reader = Text()
    reader.feed((folder / "report.html").read_text(encoding="utf-8"))
    seen = re.sub(r"[0-9a-f]{64}|written on [^.]*\.|dpadapt [\d.]+", "", " ".join(reader.seen))
    sealed = json.loads((folder / "guarantee.json").read_text(encoding="utf-8"))
    own = {each: sealed[each] for each in sealed if each not in ("files", "digest")}
    template = re.sub(r"\{[{%].*?[%}]\}", "", _TEMPLATE.read_text(encoding="utf-8"))
    both = Guarantee((*model.guarantee_.events, *found.guarantee.events), 1e-6)
    on_screen = [text for each in found.measures.values() for text in each.texts]
    words = " ".join([*model.explain_, odds_sentence(both), *on_screen])
    text = " ".join([json.dumps(own), found.to_json(), found.sentence, words, template])
    known = numbers(text) | {float(model.n_features_in_), 1 / model.guarantee_.delta}
    known |= {float(each) for each in model.public_model_.weights}
    spent = [each.times for each in model.releases_]
    known |= {*spent, sum(spent), *(round(100 * each.share, 1) for each in model.releases_)}
    known |= {round(both.epsilon, 3)}  # fit and evaluation together
    known |= {round(100 * float(detection_limit(both.events, [0.05])[0]), 1), 2026.0, 11.0, 30.0}
    return {
        each
        for each in numbers(seen)
        if not any(abs(each - one) <= _ROUNDING * one + 1e-3 for one in known)
    }


def test_every_number_of_the_page_is_accounted_for(fitted, tmp_path):
    model, found = fitted
    context = ReportContext(evaluations=[found.to_dict()])
    folder = save_model(model, tmp_path / "model", context=context)
    assert unknown(model, found, folder) == set()
    html = (folder / "report.html").read_text(encoding="utf-8")
    for text in (*found.caveats, found.guarantee.sentence, *model.explain_):
        assert text in html.replace("&#39;", "'").replace("&quot;", '"')
    (folder / "report.html").write_text(html.replace("<body>", "<body>777.5 people"), "utf-8")
    assert unknown(model, found, folder) == {777.5}


def test_public_rows_are_told_where_the_model_does_not_know_them(fitted, tmp_path):
    file = page.write_report(
        fitted[0], tmp_path / "r.html", context=ReportContext(public_rows=1234)
    )
    assert "1,234" in file.read_text(encoding="utf-8")
    assert dpadapt.__version__ in file.read_text(encoding="utf-8")
