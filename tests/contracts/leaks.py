"""Nothing private comes out: not in the model, a file, an error, a warning or a log."""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from contracts.hostile import HOSTILE_CELLS, NAMES, SECRET_TEXT
from contracts.ledgers import Refusing
from contracts.sample import Sample
from contracts.search import Secrets
from contracts.speech import everything_said, told
from contracts.tape import releases, taped
from dpadapt import Private
from dpadapt.modelfolder.reading import decode
from dpadapt.modelfolder.types import ESTIMATORS
from dpadapt.modelfolder.writing import encode
from one_cell import same_meaning


def own_name(model: Any) -> tuple[str, ...]:
    """The name that a model folder must be told of an estimator that is not the library's."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    return () if name in ESTIMATORS else (name,)


class LeakChecks(Sample):
    """Nothing private is kept, written or told."""

    @pytest.mark.parametrize("form", ["array", "frame"])
    def test_nothing_private_stays_in_the_model(self, form):
        rows, labels = self.marked()
        given = rows if form == "array" else self.marked_frame()
        X, y = self.public()
        public = X if form == "array" else pd.DataFrame(X, columns=NAMES)
        with taped() as tape, everything_said() as said:
            model = self.make(noise="secure", random_state=None)
            model.fit(public, y, private=Private(given, labels))
        hidden = [draw.value for draw in releases(tape)]
        secrets = Secrets(given, labels, hidden)
        secrets.check_text(said.all, "what was printed, logged or warned")
        for thing in (model, clone(model), copy.deepcopy(model), model.guarantee_):
            secrets.check(thing)
            for text in (repr(thing), str(thing), getattr(thing, "_repr_html_", str)()):
                secrets.check_text(text or "", "the representation")
        secrets.check_text(repr(model.get_params()), "get_params")
        secrets.check_text(model.guarantee_.to_json(), "the guarantee")

    def test_nothing_private_is_written_to_a_file(self):
        rows, labels = self.marked()
        model = self.fit(self.make(noise="secure", random_state=None), Private(rows, labels))
        secrets = Secrets(rows, labels)
        packed = io.BytesIO()
        joblib.dump(model, packed)
        tree, numbers = encode(model, own_name(model))
        files = (json.dumps(tree).encode(), numbers)
        for data in (pickle.dumps(model), packed.getvalue(), *files):
            secrets.check_bytes(data, "the model file")
        for again in (
            pickle.loads(pickle.dumps(model)),
            joblib.load(io.BytesIO(packed.getvalue())),
        ):
            secrets.check(again)
            np.testing.assert_array_equal(
                again.predict(self.public()[0]), model.predict(self.public()[0])
            )
            assert again.guarantee_ == model.guarantee_

    def test_model_folder_can_be_read(self):
        model = self.fit(self.make(), self.private())
        tree, numbers = encode(model, own_name(model))
        again = decode(json.loads(json.dumps(tree)), numbers, own_name(model))
        np.testing.assert_array_equal(
            again.predict(self.public()[0]), model.predict(self.public()[0])
        )
        assert again.guarantee_ == model.guarantee_

    def test_errors_quote_nothing_private(self):
        rows, labels = self.marked()
        X, y = self.public()
        calls = [
            lambda: self.make().fit(X, y, private=Private(rows[:, :2], labels)),
            lambda: self.make(epsilon=-1).fit(X, y, private=Private(rows, labels)),
            lambda: self.make(ledger=Refusing()).fit(X, y, private=Private(rows, labels)),
            lambda: self.make().fit(X, y, private=rows),
            lambda: self.make().fit(
                pd.DataFrame(X, columns=[*NAMES[:2], "other"]),
                y,
                private=Private(self.marked_frame(), labels),
            ),
        ]
        for call in calls:
            with everything_said() as said, pytest.raises(Exception) as caught:  # noqa: PT011
                call()
            Secrets(rows, labels).check_text(told(caught.value) + said.all, "an error")

    def test_no_private_values_raise(self):
        X, y = self.public()
        said_before = None
        for seed in range(25):
            rng = np.random.default_rng([7, seed])
            rows = rng.standard_t(1, size=(20, 3)) * 10.0 ** rng.integers(-300, 300, size=(20, 3))
            rows[rng.random(rows.shape) < 0.2] = rng.choice([math.nan, math.inf, -math.inf, 0.0])
            labels = self.labels(rows, seed)
            if labels is not None:
                labels *= 10.0 ** rng.integers(-300, 300, size=20)
            with everything_said() as said:
                model = self.make(random_state=seed).fit(X, y, private=Private(rows, labels))
            assert np.isfinite(self.answers(model)).all()
            assert "RuntimeWarning" not in said.warned
            assert said.printed == ""
            assert said.logged == (said_before or said.logged)
            said_before = said.logged

    def test_a_cell_means_the_same_whatever_the_others_are(self):
        """One odd cell gives a column another type; nobody's cells may change with it."""
        X, rows = pd.DataFrame(self.public()[0], columns=NAMES), self.rows(n=40)
        fits = [
            self.answers(self.fit(self.make(), Private(*sample), X=X))
            for sample in same_meaning(rows, self.labels(rows), NAMES)
        ]
        for other in fits[1:]:
            np.testing.assert_array_equal(other, fits[0])

    @pytest.mark.parametrize("sample", ["one row", "constant", "objects", "strings", "integers"])
    def test_odd_private_samples_are_taken(self, sample):
        rows: Any = self.rows(n=20)
        if sample == "one row":
            rows = rows[:1]
        elif sample == "constant":
            rows = np.full((20, 3), 0.25)
        elif sample == "objects":
            rows = rows.astype(object)
            for i, cell in enumerate(HOSTILE_CELLS):
                rows[i, i % 3] = cell
        elif sample == "strings":
            rows = np.full((20, 3), SECRET_TEXT)
        else:
            rows = np.arange(60).reshape(20, 3)
        labels = np.linspace(-1, 1, len(rows)) if self.needs_labels else None
        with everything_said() as said:
            model = self.make().fit(*self.public(), private=Private(rows, labels))
        assert np.isfinite(self.answers(model)).all()
        Secrets(np.zeros((1, 3))).check_text(said.all, "what was said")
