"""The budget: charged before noise, and by as much as the guarantee says; progress."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpadapt import BudgetExceeded, Private
from dpadapt.privacy import Ledger

from .expecting import refused, require
from .ledgers import Refusing, Watching
from .search import Secrets
from .speech import everything_said
from .subject import Subject
from .tape import taped


def check_a_refused_charge_draws_no_noise_and_fits_nothing(subject: Subject) -> None:
    """When the ledger refuses, no noise is drawn and the model stays unfitted."""
    model, private = subject.make(ledger=Refusing()), subject.private()
    with taped() as tape, refused(BudgetExceeded, what="a fit beyond the budget"):
        subject.fit(model, private)
    require(tape == [], "noise was drawn although the charge was refused")
    with refused(NotFittedError, what="a prediction after a refused charge"):
        model.predict(subject.public()[0])
    require(not hasattr(model, "guarantee_"), "a refused fit left a guarantee")


def check_a_refused_refit_does_not_mix_two_fits(subject: Subject) -> None:
    """After a refused refit the model is the old one or none, never half of each."""
    model = subject.fit(subject.make(), subject.private())
    before, guarantee = subject.answers(model), model.guarantee_
    model.set_params(**{f"{subject.prefix}ledger": Refusing()})
    with refused(BudgetExceeded, what="a refit beyond the budget"):
        subject.fit(model, subject.private(subject.rows(seed=8)))
    if hasattr(model, "guarantee_"):  # unfitted would be as good
        require(model.guarantee_ == guarantee, "a refused refit left another guarantee")
        np.testing.assert_array_equal(subject.answers(model), before)


def check_charge_comes_before_noise(subject: Subject) -> None:
    """The ledger is charged once, with the events of the guarantee, before any noise."""
    with taped() as tape:
        ledger = Watching(tape)
        guarantee = subject.fit(subject.make(ledger=ledger), subject.private()).guarantee_
    require(ledger.charges == [guarantee.events], "the charge is not what the guarantee says")
    require(ledger.draws_before == [0], "noise was drawn before the charge")
    require(tape, "no noise was drawn")


def check_a_ledger_is_charged_the_events_of_the_guarantee(subject: Subject) -> None:
    """An account is charged what the guarantee says, and refuses what is beyond it."""
    with tempfile.TemporaryDirectory() as folder:
        account = Ledger(Path(folder) / "budget.db").create("people", epsilon=1.2, delta=1e-6)
        model = subject.fit(subject.make(ledger=account), subject.private())
        require(account.events() == model.guarantee_.events, "the account has other events")
        with refused(BudgetExceeded, what="a second fit"):
            subject.fit(clone(model), subject.private())
        require(account.events() == model.guarantee_.events, "a refused fit was charged")


def check_a_private_sample_remembers_what_was_spent(subject: Subject) -> None:
    """A private sample adds up what every fit on it has spent."""
    private = subject.private()
    one = subject.fit(subject.make(), private).guarantee_
    two = subject.fit(subject.make(epsilon=0.5), private).guarantee_
    spent = private.spent(1e-6).events
    require(spent == one.events + two.events, "the sample has not been charged both fits")


def check_progress_is_shown_only_when_asked_for(subject: Subject) -> None:
    """Nothing is printed unless verbose; progress counts public things up to their end."""
    rows, labels = subject.marked()
    with everything_said() as silent:
        subject.make(verbose=0).fit(*subject.public(), private=Private(rows, labels))
    require(silent.printed == "", "something is printed with verbose=0")
    terminal = {"COLUMNS": "100", "TERM": os.environ.get("TERM", "dumb")}
    with mock.patch.dict(os.environ, terminal), everything_said() as said:
        subject.make(verbose=1).fit(*subject.public(), private=Private(rows, labels))
    end = subject.facts.progress_end or len(rows)
    require(re.search(rf"\b{end}/{end}\b", said.printed), "no progress bar up to the end")
    Secrets(rows, labels).check_text(said.all, "the progress bar")
