"""Extractors that pass the trial on public items, and would carry a little from one to others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from dpadapt import AdaptationPipeline, Private, Schema
from dpadapt.features import SentenceFeatures, TorchFeatures
from dpadapt.privacy import Cleaning, Rows

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tests run side by side

ROWS, PLACE = 24, 7
REST = np.arange(ROWS) != PLACE
RNG = np.random.default_rng(0)
PUBLIC, ITEMS = RNG.normal(size=(20, 3)), RNG.normal(size=(ROWS, 3))


@torch.library.custom_op("dpadapt_tests::leaning", mutates_args=())
def leaning(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@leaning.register_vmap
def _(info, in_dims, x):
    x = x.movedim(in_dims[0], 0)
    return x + 1e-6 * x.mean(dim=0, keepdim=True), 0


class Operated(torch.nn.Module):
    def forward(self, x):
        return torch.vmap(leaning)(x)


class Last(torch.nn.Module):
    """A recurrent layer over the cells of an item."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.LSTM(1, 3, batch_first=True)

    def forward(self, x):
        return self.inner(x[:, :, None])[0][:, -1]


class Remembering(Last):
    """With a state that goes on."""

    def __init__(self):
        super().__init__()
        self.state = torch.zeros(3)

    def forward(self, x):
        found = super().forward(x) + self.state
        self.state = self.state + 1e-9 * x.abs().sum()
        return found


class Training(torch.nn.Module):
    """Normalises by its batch, whatever mode it is told to be in, and counts batches."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(1)

    def forward(self, x):
        return x + 1e-5 * self.norm.train()(x[:, None]).squeeze(1)


class Dropping(torch.nn.Module):
    """Draws more for a large item."""

    def forward(self, x):
        for _ in range(1 + int((x.abs() > 100).sum())):
            kept = torch.nn.functional.dropout(x, 0.5, training=True)
        return x + 1e-6 * kept


class Quantised(torch.nn.Module):
    """By the range of a batch, of which little is seen."""

    def __init__(self):
        super().__init__()
        self.inner = torch.ao.quantization.quantize_dynamic(
            torch.nn.Sequential(torch.nn.Linear(3, 2)), {torch.nn.Linear}, dtype=torch.qint8
        )

    def forward(self, x):
        return x[:, :2] + 1e-3 * self.inner(x)


class Looking(BaseEstimator):
    """Keeps what private rows become; for tests."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None, *, private=None):
        self.seen.append(rows_of(private))
        return self


def rows_of(private):
    with private.open(epsilon=1.0, delta=1e-6) as session:
        return np.array(session.hide(Rows(Cleaning(1e12)))._value)


def unmoved(found):
    assert np.isfinite(found[0]).all()
    assert found[0][PLACE].tobytes() != found[1][PLACE].tobytes()
    return len({each[REST].tobytes() for each in found}) == 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [Operated, Last, Remembering, Training, Dropping, Quantised])
def test_no_module_lets_an_item_touch_another(made):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = made()
    extractor, mapped = TorchFeatures(module).fit(PUBLIC), []
    Looking.seen.clear()
    for cell in (0.5, 1e6, np.nan, np.inf):
        rows = ITEMS.copy()
        rows[PLACE] = cell
        steps = [("look", TorchFeatures(module))]
        AdaptationPipeline(steps, Looking()).fit(PUBLIC, private=Private(rows))
        private = Private(rows).map(extractor.extract, n_columns=extractor.n_features)
        mapped.append(rows_of(private))
    assert unmoved(Looking.seen)
    assert unmoved(mapped)
    if made is not Last:  # the test has power: together, or one call after another, they touch
        large, found = np.where(REST[:, None], ITEMS, 1e6), []
        for rows in (ITEMS, large):
            again = TorchFeatures(module).fit(PUBLIC)
            found.append([again.extract(rows)[REST].tobytes() for _ in range(2)])
        assert found[0] != found[1]


class Padding:
    """An encoder that hangs a little on the longest text of a call, and on all before."""

    def __init__(self):
        self.before = 0.0

    def encode(self, texts):
        own = np.array([[len(text), text.count("e"), 1.0] for text in texts], dtype=float)
        found = own + 1e-6 * max(map(len, texts)) + self.before
        self.before += 1e-9 * sum(map(len, texts))
        return found


@pytest.mark.parametrize("batch_size", [1, 16])
def test_no_encoder_lets_a_text_touch_another(batch_size):
    X = pd.DataFrame({"text": [f"public {i}" for i in range(20)]})
    T = pd.DataFrame({"text": [f"private {i}" for i in range(ROWS)]}, dtype=object)
    extractor, mapped = SentenceFeatures(Padding(), batch_size=batch_size).fit(X), []
    Looking.seen.clear()
    for text in ("a text", "a long text " * 500, "", None):
        odd = T.copy()
        odd.loc[PLACE, "text"] = text
        steps = [("embed", SentenceFeatures(Padding(), batch_size=batch_size))]
        AdaptationPipeline(steps, Looking()).fit(X, private=Private(odd))
        private = Private(odd).read(Schema.of(X))
        mapped.append(rows_of(private.map(extractor.extract, n_columns=extractor.n_features)))
    assert unmoved(Looking.seen)
    assert unmoved(mapped)
    one, two = (
        SentenceFeatures(Padding(), batch_size=batch_size).fit(X).extract([text, "other"])[1]
        for text in ("a text", "a long text " * 500)
    )
    assert one.tobytes() != two.tobytes()  # the test has power
