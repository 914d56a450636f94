"""The budget: charged before noise, and by as much as the guarantee says; progress."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from contracts.ledgers import Refusing, Watching
from contracts.sample import Sample
from contracts.search import Secrets
from contracts.speech import everything_said
from contracts.tape import taped
from dpadapt import BudgetExceeded, Private
from dpadapt.privacy import Ledger


class BudgetChecks(Sample):
    """Charges come first, and add up."""

    def test_a_refused_charge_draws_no_noise_and_fits_nothing(self):
        model, private = self.make(ledger=Refusing()), self.private()
        with taped() as tape, pytest.raises(BudgetExceeded):
            self.fit(model, private)
        assert tape == []
        with pytest.raises(NotFittedError):
            model.predict(self.public()[0])
        assert not hasattr(model, "guarantee_")

    def test_a_refused_refit_does_not_mix_two_fits(self):
        model = self.fit(self.make(), self.private())
        before, guarantee = self.answers(model), model.guarantee_
        model.set_params(**{f"{self.prefix}ledger": Refusing()})
        with pytest.raises(BudgetExceeded):
            self.fit(model, self.private(self.rows(seed=8)))
        if hasattr(model, "guarantee_"):  # unfitted would be as good
            assert model.guarantee_ == guarantee
            np.testing.assert_array_equal(self.answers(model), before)

    def test_charge_comes_before_noise(self):
        with taped() as tape:
            ledger = Watching(tape)
            guarantee = self.fit(self.make(ledger=ledger), self.private()).guarantee_
        assert ledger.charges == [guarantee.events]
        assert ledger.draws_before == [0]
        assert tape

    def test_a_ledger_is_charged_the_events_of_the_guarantee(self):
        with tempfile.TemporaryDirectory() as folder:
            account = Ledger(Path(folder) / "budget.db").create("people", epsilon=1.2, delta=1e-6)
            model = self.fit(self.make(ledger=account), self.private())
            assert account.events() == model.guarantee_.events
            with pytest.raises(BudgetExceeded):
                self.fit(clone(model), self.private())
            assert account.events() == model.guarantee_.events

    def test_a_private_sample_remembers_what_was_spent(self):
        private = self.private()
        one = self.fit(self.make(), private).guarantee_
        two = self.fit(self.make(epsilon=0.5), private).guarantee_
        assert private.spent(1e-6).events == one.events + two.events

    def test_progress_is_shown_only_when_asked_for(self):
        rows, labels = self.marked()
        with everything_said() as silent:
            self.make(verbose=0).fit(*self.public(), private=Private(rows, labels))
        assert silent.printed == ""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "100")
            patch.setenv("TERM", os.environ.get("TERM", "dumb"))
            with everything_said() as said:
                self.make(verbose=1).fit(*self.public(), private=Private(rows, labels))
        end = self.progress_end or len(rows)
        assert re.search(rf"\b{end}/{end}\b", said.printed), "no progress bar up to the end"
        Secrets(rows, labels).check_text(said.all, "the progress bar")
