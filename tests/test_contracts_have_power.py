"""The contract battery must fail where an estimator is broken, and only there.

``Sound`` is a small estimator that keeps every promise: the whole battery passes on it. Each toy
below differs from it in one place, and a named test of the battery must catch it.
"""

from __future__ import annotations

import copy
import doctest
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import dpadapt
from dpadapt import Guarantee, Private, mixing
from dpadapt.base import PrivateEstimator
from dpadapt.baselines import AdaSSPClassifier
from dpadapt.learning.checks import aligned_private, public_scaling, session_options
from dpadapt.learning.linear import LinearRegressor
from dpadapt.learning.progress import row_progress
from dpadapt.papers.hybrid.doors.weights import WeightedMean
from dpadapt.papers.mixing.queries import PricedGradients
from dpadapt.privacy import Cleaning, RowMean, RowSum
from dpadapt.privacy.core.noise import _ContinuousNoise
from dpadapt.privacy.core.statistic import Rows
from dpadapt.privacy.mechanisms import FilteredMean, Gaussian, GaussianPurse
from dpadapt.privacy.rows.sources import MemoryRows
from dpadapt.privacy.rows.tables import numbers
from dpadapt.privacy.statistics import Gram, SecondMoment
from dpadapt.testing import (
    Facts,
    Subject,
    check_private_estimator,
    parametrize_with_private_checks,
    private_checks,
)
from dpadapt.testing import neighbours as additive
from dpadapt.testing.battery import CHECKS
from dpadapt.testing.search import Secrets, reachable


class Mean(RowMean):
    """Mean of the cleaned rows; replace-one moves it by 2 radius / n."""

    label = "mean"

    def __init__(self, cleaning, understated=1.0):
        self.cleaning, self.understated = cleaning, understated

    @property
    def magnitude(self):
        return self.cleaning.radius

    def shape(self, n_columns):
        return (n_columns,)

    def block(self, X, y):
        return X.sum(axis=0)

    def sensitivity(self, n_rows):
        return self.understated * 2 * self.magnitude / n_rows


class Sound(RegressorMixin, BaseEstimator):
    """Public rows are weighted towards a noisy private mean, then least squares."""

    def __init__(
        self, *, epsilon, delta, noise="secure", random_state=None, ledger=None, verbose=0
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X, y, *, private=None):
        options = self.options(session_options(self))
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        sample = self.aligned(private)
        center, scale = public_scaling(X)
        rows = (X - center) / scale
        mean, guarantee = np.zeros(X.shape[1]), Guarantee()
        if sample is not None:
            self.look(sample)
            radius = self.radius(rows, sample)
            query = self.query(Cleaning(radius, center, scale))
            with (
                row_progress("reading", self.verbose) as progress,
                sample.open(progress=progress, **options) as opened,
            ):
                mean = self.release(opened, opened.hide(query))
                guarantee = self.claim(opened.guarantee)
        tilt = np.exp(np.clip(rows @ np.clip(mean, -1, 1), -5, 5))
        root = np.sqrt(tilt / tilt.sum())[:, None]
        design = np.column_stack([rows, np.ones(len(rows))])
        slopes = np.linalg.lstsq(design * root, y * root.ravel())[0]
        self.mean_, self.guarantee_ = mean, guarantee
        self.coef_ = slopes[:-1] / scale
        self.intercept_ = float(slopes[-1] - center @ self.coef_)
        return self

    def predict(self, X):
        check_is_fitted(self, "coef_")
        return validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_

    # what the toys change

    raises: type[Exception] = AssertionError  # what else than a failed assertion is expected

    def options(self, options):
        return options

    def aligned(self, private):
        return aligned_private(self, private, labelled=False)

    def look(self, sample):
        pass

    def radius(self, rows, sample):
        return max(1.0, float(np.linalg.norm(rows, axis=1).max()))

    def query(self, cleaning):
        return Mean(cleaning)

    def release(self, opened, hidden):
        grant = opened.plan(it=Gaussian.of(hidden)).it
        return opened.release(grant, hidden)

    def claim(self, guarantee):
        return guarantee


def raw(sample: Private) -> np.ndarray:
    """The private rows themselves, which no estimator may touch."""
    return np.concatenate([numbers(table) for table, _ in sample._rows.blocks()])


class InfersTypes(Sound):
    def aligned(self, private):
        sample = super().aligned(private)
        if sample is None:
            return None
        table = pd.concat([pd.DataFrame(table) for table, _ in sample._rows.blocks()])
        odd = [name for name in table.columns if table[name].dtype.kind not in "biuf"]
        return Private(table.assign(**dict.fromkeys(odd, 0.0)))


class AssertsEpsilon(Sound):
    def claim(self, guarantee):
        guarantee.__dict__["epsilon"] = guarantee.epsilon / 2
        return guarantee


class ForgetsTheCharge(Sound):
    def claim(self, guarantee):
        return Guarantee()


class LessNoise(Sound):
    factor = 0.7

    def release(self, opened, hidden):
        grant = opened.plan(it=Gaussian.of(hidden)).it
        object.__setattr__(grant, "scale", self.factor * grant.scale)
        return opened.release(grant, hidden)


class MoreNoise(LessNoise):
    factor = 1.3


class OwnNoise(Sound):
    def release(self, opened, hidden):
        grant = opened.plan(it=Gaussian.of(hidden)).it
        return hidden._value + grant.scale * np.random.default_rng().normal(size=hidden.shape)


class OneMoreRelease(Sound):
    def release(self, opened, hidden):
        grant = opened.plan(it=Gaussian.of(hidden)).it
        opened._left[grant] += 1
        return (opened.release(grant, hidden) + opened.release(grant, hidden)) / 2


class NoiseBeforeCharge(Sound):
    def release(self, opened, hidden):
        opened._source.uniform(1)
        return super().release(opened, hidden)


class UnderstatesSensitivity(Sound):
    def query(self, cleaning):
        return Mean(cleaning, understated=0.5)


def takes(block):
    """An estimator whose statistic takes this of a block."""

    class Odd(Mean):
        def block(self, X, y):
            return block(X)

    return lambda self, cleaning: Odd(cleaning)


class CentresByTheBlock(Sound):
    query = takes(lambda X: np.tanh(X - X.mean(axis=0)).sum(axis=0))


class SortsTheBlock(Sound):
    query = takes(lambda X: (np.sort(X, axis=0) * X / (1 + X**2)).sum(axis=0))


class RanksTheBlock(Sound):
    query = takes(lambda X: (np.argsort(X, axis=0) < len(X) / 2).sum(axis=0) / 4)


class NormalisesByTheBlock(Sound):
    query = takes(lambda X: (X / (1e-9 + np.abs(X).max())).sum(axis=0))


class CountsTheBlock(Sound):
    """A hair only, which neighbours of the same size never show."""

    query = takes(lambda X: (1 - 1e-5) * X.sum(axis=0) + 1e-6)


class Centred(Cleaning):
    """Cleaned rows, less their mean."""

    def __call__(self, X, y):
        rows, labels = super().__call__(X, y)
        return rows - rows.mean(axis=0), labels


class CentresAsItCleans(Sound):
    def query(self, cleaning):
        return Mean(Centred(2 * cleaning.radius, cleaning.center, cleaning.scale))


class UnderstatesMagnitude(Sound):
    def query(self, cleaning):
        class Small(Mean):
            magnitude = 0.5 * cleaning.radius

        return Small(cleaning, understated=2.0)


class PrivateRadius(Sound):
    def radius(self, rows, sample):
        return float(np.clip(np.abs(np.nan_to_num(raw(sample))).max(), 1.0, 1e250))


class KeepsRow(Sound):
    def look(self, sample):
        self.example_ = raw(sample)[3]


class KeepsOrdinaryRow(Sound):
    def look(self, sample):
        self.example_ = {"kept": [raw(sample)[0]]}


class KeepsSum(Sound):
    def look(self, sample):
        self.total_ = np.nansum(np.where(np.isfinite(raw(sample)), raw(sample), 0.0), axis=0)


class KeepsHandle(Sound):
    def look(self, sample):
        self.sample_ = sample


class KeepsClosure(Sound):
    def look(self, sample):
        kept = raw(sample)
        self.again_ = lambda: kept


class KeepsUnnoised(Sound):
    def release(self, opened, hidden):
        self.exact_ = hidden._value.copy()
        return super().release(opened, hidden)


class QuotesInError(Sound):
    raises = ValueError

    def look(self, sample):
        largest = np.abs(np.nan_to_num(raw(sample))).max()
        if largest > 1e5:
            raise ValueError(f"private values must be below 1e5, got {largest}")


class QuotesInColumnError(Sound):
    def aligned(self, private):
        if isinstance(private, Private) and private.n_columns != self.n_features_in_:
            raise ValueError(f"private: {private.n_columns} columns, not 3: {raw(private).max()}")
        return super().aligned(private)


class QuotesInCause(Sound):
    def aligned(self, private):
        try:
            return super().aligned(private)
        except ValueError as error:
            raise error from KeyError(raw(private)[3])


class QuotesInWarning(Sound):
    def look(self, sample):
        warnings.warn(f"largest private value {np.nanmax(raw(sample))}", stacklevel=2)


class QuotesInLog(Sound):
    def look(self, sample):
        logging.getLogger("toy").debug("first rows", extra={"rows": raw(sample)[:8].tolist()})


class Prints(Sound):
    def look(self, sample):
        print("rows:", raw(sample)[:8])


class ModifiesPrivate(Sound):
    def look(self, sample):
        for table, _ in sample._rows.blocks():
            if isinstance(table, np.ndarray) and table.flags.writeable:
                np.nan_to_num(table, copy=False)


class ModifiesPublic(Sound):
    def fit(self, X, y, *, private=None):
        if isinstance(X, np.ndarray) and X.flags.writeable and private is not None:
            X -= 1.0
        return super().fit(X, y, private=private)


class NotSeeded(Sound):
    def options(self, options):
        return options | {"noise": "secure", "random_state": None}


class AlwaysSeeded(Sound):
    def options(self, options):
        return options | {"noise": "seeded", "random_state": 0}


class ClonesCopyData(Sound):
    def __init__(self, *, epsilon, delta, rows=None, **others: Any):
        pass

    @classmethod
    def _get_param_names(cls):
        return [*Sound._get_param_names(), "rows"]

    def look(self, sample):
        self.rows = raw(sample)


def _init(
    self,
    *,
    epsilon,
    delta,
    noise="secure",
    random_state=None,
    ledger=None,
    verbose=0,
    rows=None,
):
    Sound.__init__(
        self,
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        random_state=random_state,
        ledger=ledger,
        verbose=verbose,
    )
    self.rows = rows


ClonesCopyData.__init__ = _init


class ChargesACopy(Sound):
    def aligned(self, private):
        sample = super().aligned(private)
        return sample if sample is None else Private(raw(sample))


class HalfFitted(Sound):
    def fit(self, X, y, *, private=None):
        self.coef_, self.intercept_, self.guarantee_ = np.zeros(3), 0.0, Guarantee()
        return super().fit(X, y, private=private)


class PrivateScale(Sound):
    """Stops early on what it has seen: the number of releases depends on the rows."""

    def release(self, opened, hidden):
        grant = opened.plan(it=Gaussian.of(hidden, count=2)).it
        first = opened.release(grant, hidden)
        return opened.release(grant, hidden) if np.abs(hidden._value).max() > 0.5 else first


class Silent(Sound):
    """Never shows progress."""

    def fit(self, X, y, *, private=None):
        verbose, self.verbose = self.verbose, 0
        try:
            return super().fit(X, y, private=private)
        finally:
            self.verbose = verbose


class GlobalNoise(Sound):
    def look(self, sample):
        np.random.normal()  # noqa: NPY002


class FloatsOnly(Sound):
    """Takes cells of other types for missing ones."""

    def aligned(self, private):
        sample = super().aligned(private)
        if sample is None:
            return None
        floats = (pd.DataFrame(private._rows._X).dtypes == np.float64).to_numpy()
        return sample.map(lambda X: np.asarray(X) * floats, sample.n_columns)


class SoundClassifier(AdaSSPClassifier):
    raises = AssertionError


class NumbersOnly(SoundClassifier):
    """Knows no class that is not called by a number."""

    def fit(self, X, y, *, private=None):
        numeric = np.asarray(y).dtype.kind in "biuf"
        return super().fit(X, y, private=private if numeric else None)


class SharedSession(Sound):
    """Keeps what it works on where every other fit finds it."""

    def release(self, opened, hidden):
        type(self).current = opened
        grant = opened.plan(it=Gaussian.of(hidden)).it
        self.opened = type(self).current
        return opened.release(grant, hidden)

    def claim(self, guarantee):
        return vars(self).pop("opened").guarantee


class DefaultEpsilon(Sound):
    def __init__(
        self, *, epsilon=1.0, delta=1e-6, noise="secure", random_state=None, ledger=None, verbose=0
    ):
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            noise=noise,
            random_state=random_state,
            ledger=ledger,
            verbose=verbose,
        )


@parametrize_with_private_checks([Sound(epsilon=1.0, delta=1e-6)])
def test_sound_estimator_passes(check):
    """The control: the battery asks for nothing that a right estimator cannot do."""
    check()


IN_MODEL = "check_nothing_private_stays_in_the_model"
IN_FILE = "check_nothing_private_is_written_to_a_file"
NEIGHBOURS = "check_one_replaced_row_moves_no_release_beyond_its_sensitivity"
SCALES = "check_noise_is_the_noise_of_the_events"
ADDS = "check_a_block_adds_up_what_its_rows_add"
CAUGHT = [
    (CentresByTheBlock, ADDS),
    (SortsTheBlock, ADDS),
    (RanksTheBlock, ADDS),
    (NormalisesByTheBlock, ADDS),
    (CountsTheBlock, ADDS),
    (CentresAsItCleans, ADDS),
    (UnderstatesMagnitude, ADDS),
    (AssertsEpsilon, "check_guarantee_is_what_an_independent_accountant_finds"),
    (ForgetsTheCharge, SCALES),
    (ForgetsTheCharge, "check_a_ledger_is_charged_the_events_of_the_guarantee"),
    (InfersTypes, "check_a_cell_means_the_same_whatever_the_others_are"),
    (LessNoise, SCALES),
    (MoreNoise, SCALES),
    (OwnNoise, SCALES),
    (OwnNoise, "check_seeded_noise_is_repeatable"),
    (OneMoreRelease, SCALES),
    (NoiseBeforeCharge, "check_charge_comes_before_noise"),
    (NoiseBeforeCharge, "check_a_refused_charge_draws_no_noise_and_fits_nothing"),
    (UnderstatesSensitivity, NEIGHBOURS),
    (PrivateRadius, NEIGHBOURS),
    (PrivateRadius, "check_events_depend_on_public_facts_only"),
    (PrivateScale, NEIGHBOURS),
    (KeepsRow, IN_MODEL),
    (KeepsRow, IN_FILE),
    (KeepsOrdinaryRow, IN_MODEL),
    (KeepsSum, IN_MODEL),
    (KeepsHandle, IN_MODEL),
    (KeepsClosure, IN_MODEL),
    (KeepsUnnoised, IN_MODEL),
    (QuotesInError, "check_no_private_values_raise"),
    (QuotesInColumnError, "check_errors_quote_nothing_private"),
    (QuotesInCause, "check_errors_quote_nothing_private"),
    (QuotesInWarning, IN_MODEL),
    (QuotesInLog, IN_MODEL),
    (Prints, IN_MODEL),
    (ModifiesPrivate, "check_inputs_are_not_modified"),
    (ModifiesPublic, "check_inputs_are_not_modified"),
    (NotSeeded, "check_seeded_noise_is_repeatable"),
    (AlwaysSeeded, "check_secure_noise_is_never_repeated"),
    (AlwaysSeeded, "check_other_seeds_give_other_answers"),
    (AlwaysSeeded, "check_secure_noise_refuses_a_seed"),
    (ClonesCopyData, "check_fit_leaves_the_parameters_alone"),
    (ClonesCopyData, IN_MODEL),
    (ChargesACopy, "check_grid_search_charges_every_fit"),
    (ChargesACopy, "check_a_private_sample_remembers_what_was_spent"),
    (HalfFitted, "check_a_refused_charge_draws_no_noise_and_fits_nothing"),
    (HalfFitted, "check_a_refused_refit_does_not_mix_two_fits"),
    (Silent, "check_progress_is_shown_only_when_asked_for"),
    (GlobalNoise, "check_global_random_state_is_not_touched"),
    (FloatsOnly, "check_private_cells_of_any_type_give_the_same_model"),
    (FloatsOnly, "check_columns_of_several_types_give_the_same_model"),
    (NumbersOnly, "check_labels_of_any_type_give_the_same_model"),
    (OwnNoise, "check_a_forked_process_cannot_go_on_with_a_fit"),
    (SharedSession, "check_two_fits_at_once_are_two_fits"),
    (DefaultEpsilon, "check_privacy_parameters_are_keyword_only_without_default"),
]


def failures(kind: type[Sound | SoundClassifier], name: str) -> list[str]:
    """How an estimator fails one check; nothing if it passes."""
    facts = Facts(labels=issubclass(kind, SoundClassifier))
    try:
        CHECKS[name](Subject(kind(epsilon=1.0, delta=1e-6), facts))
    except (AssertionError, kind.raises) as error:
        return [repr(error)]
    return []


@pytest.mark.parametrize(("kind", "name"), CAUGHT, ids=lambda part: getattr(part, "__name__", part))
def test_battery_catches(kind, name):
    assert failures(kind, name), f"{name} did not notice {kind.__name__}"


def test_every_named_check_passes_on_the_sound_estimator():
    for kind, name in CAUGHT:
        sound = SoundClassifier if issubclass(kind, SoundClassifier) else Sound
        assert failures(sound, name) == []


class WeightedSum(Mean, WeightedMean):
    """Weights, each of which should go with its row alone."""

    normalised = False

    def weighted_block(self, X, y, weights):
        return (X * weights[:, None]).sum(axis=0) / (weights.sum() if self.normalised else 1)


class KeptSum(Mean, FilteredMean):
    """Rows that are left out, which should take nothing along."""

    taken_along = 0.0

    def norms(self, X, y):
        return np.linalg.norm(X, axis=1)

    def kept(self, X, y, keep):
        return X[keep].sum(axis=0) + self.taken_along * X[~keep].sum(axis=0)


def correlation(A, B):
    """A kernel of rows that are centred by all that are there."""
    rows = A - A.mean(axis=0)
    return rows @ (B - A.mean(axis=0)).T / 100


RADIUS = Cleaning(radius=5.0)
OF_ROWS = {
    "weights": (WeightedSum(RADIUS), {"normalised": True}),
    "rows left out": (KeptSum(RADIUS), {"taken_along": 0.1}),
    "table": (Rows(RADIUS), {"cleaning": Centred(5.0)}),
    "pairs": (Gram(lambda A, B: A @ B.T / 100, 1.0), {"kernel": correlation}),
    "pairs with a pool": (
        Gram(lambda A, B: A @ B.T / 100, 1.0, np.ones((2, 3))),
        {"kernel": correlation},
    ),
}


@pytest.mark.parametrize("kind", OF_ROWS)
def test_whatever_is_hidden_is_seen_row_by_row(kind):
    sound, change = OF_ROWS[kind]
    source = MemoryRows(np.random.default_rng(0).normal(size=(50, 3)), None)
    assert list(additive._odd(sound, source)) == []
    broken = copy.copy(sound)
    vars(broken).update(change)
    found = list(additive._odd(broken, source))
    # a kernel of others is asked about one pair at a time: what it mixes is not there
    assert bool(found) == ("pairs" not in kind), kind


def test_a_sum_that_a_fit_hides_is_seen(monkeypatch):
    """Within a RowSum, at any time, and under an individual filter."""

    class Later(Mean):
        looks = 0

        def block(self, X, y):
            Later.looks += 1
            return X.sum(axis=0) + (Later.looks > 60)

    class OfSums(Sound):
        def query(self, cleaning):
            return RowSum(Later(cleaning))

        def release(self, opened, hidden):
            opened.hide(hidden.statistic)  # once more: by then it is another
            return super().release(opened, hidden) / 400

    assert failures(OfSums, ADDS)
    subject = Subject(
        dpadapt.AdaMixClassifier(
            epsilon=1.0, delta=1e-6, steps=mixing.Steps(4, individual_filter=2.0)
        ),
        Facts(labels=True),
    )
    CHECKS[ADDS](subject)

    def taking_along(self, X, y, keep):
        return right(self, X, y, keep) + 0.1 * right(self, X, y, ~keep)

    right = PricedGradients.kept
    monkeypatch.setattr(PricedGradients, "kept", taking_along)
    with pytest.raises(AssertionError, match="rows adds and what they add one by one"):
        CHECKS[ADDS](subject)


def test_a_broken_promise_is_told_with_how_it_is_broken():
    names = {"check_nothing_private_stays_in_the_model"}
    left_out = dict.fromkeys(CHECKS.keys() - names, "of no interest here")
    with pytest.raises(AssertionError) as caught:
        check_private_estimator(KeepsRow(epsilon=1.0, delta=1e-6), facts=Facts(left_out=left_out))
    text = str(caught.value)
    assert text.startswith("KeepsRow breaks a promise. No private value, sum or handle can be")
    assert "holds a private" in text


def test_samples_of_ones_own_are_used():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 5))
    given = {"public": (X, X.sum(axis=1)), "private": rng.normal(size=(300, 5))}
    check_private_estimator(Sound(epsilon=1.0, delta=1e-6), **given)
    with pytest.raises(AssertionError, match="stated sensitivity"):
        check_private_estimator(UnderstatesSensitivity(epsilon=1.0, delta=1e-6), **given)


def test_the_page_for_others_is_right():
    page = Path(__file__).parent.parent / "docs" / "testing.md"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failed, tried = doctest.testfile(
            str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
        )
    assert tried > 5
    assert not failed


def test_a_check_that_does_not_exist_cannot_be_left_out():
    facts = Facts(left_out={"check_everything": "a slip"})
    with pytest.raises(ValueError, match="check_everything"):
        next(private_checks(Sound(epsilon=1.0, delta=1e-6), facts=facts))


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_battery_catches_a_broken_noise_source(monkeypatch, factor):
    right = _ContinuousNoise.add_gaussian
    monkeypatch.setattr(
        _ContinuousNoise, "add_gaussian", lambda self, v, s: v + factor * (right(self, v, s) - v)
    )
    assert failures(Sound, "check_noise_has_the_scale_that_it_claims")
    assert not failures(Sound, SCALES)  # the events are right: only the draws are not


def test_walker_goes_everywhere():
    needle = np.array([1.25, 2.5, 3.75])

    class Slotted:
        __slots__ = ("inside",)

    def generator():
        held = needle.copy()
        yield held

    slotted = Slotted()
    slotted.inside = needle.copy()
    running = generator()
    next(running)
    cached = needle.copy()
    places = [
        {"a": [(needle.copy(),)]},
        slotted,
        running,
        lambda: cached,
        lambda value=cached: value,
        np.array([None, needle.copy()], dtype=object),
        np.vstack([np.zeros(3), needle]).T,
        np.concatenate([needle, np.ones(9)])[3:],  # a view on an array that holds more
    ]
    secrets = Secrets(np.vstack([needle, [9.0, 8.0, 7.5]]))
    for place in places[:-1]:
        with pytest.raises(AssertionError, match="private"):
            secrets.check(place)
    bases = [thing for path, thing in reachable(places[-1]) if path.endswith(".base")]
    assert any(np.shape(base) == (12,) for base in bases)
    secrets.check({"harmless": [needle + 1.0, "text", 3.5]})


class Shift(PrivateEstimator, LinearRegressor):
    """A public level, moved by two looks at private labels through one purse."""

    shares = (0.2, 0.8)

    def __init__(
        self, *, epsilon, delta, noise="secure", random_state=None, ledger=None, verbose=0
    ):
        self.epsilon, self.delta, self.noise = epsilon, delta, noise
        self.random_state, self.ledger, self.verbose = random_state, ledger, verbose

    def _solve(self, problem, session):
        level = float(problem.labels.mean())
        if session is not None:
            purse = session.plan(purse=GaussianPurse("two looks")).purse
            for share in self.shares:
                wide = session.hide(SecondMoment(Cleaning(radius=1.0 + share)))
                level += float(session.release(purse, wide, share=share)[0, 0])
        return {"coef_": np.zeros(problem.X.shape[1]), "intercept_": level}


PURSE_CHECKS = (
    "check_noise_is_the_noise_of_the_events",
    "check_one_replaced_row_moves_no_release_beyond_its_sensitivity",
    "check_noise_has_the_scale_that_it_claims",
)


@pytest.mark.parametrize("name", PURSE_CHECKS)
def test_a_purse_is_understood(name):
    checks = dict(private_checks(Shift(epsilon=1.0, delta=1e-6), facts=Facts(labels=True)))
    checks[name]()


def test_a_purse_that_forgets_a_share_is_seen(monkeypatch):
    monkeypatch.setattr(Shift, "shares", (0.8, 0.8))
    monkeypatch.setattr(GaussianPurse, "admit", lambda self, hidden, **public: 0.1)
    checks = dict(private_checks(Shift(epsilon=1.0, delta=1e-6), facts=Facts(labels=True)))
    with pytest.raises(AssertionError, match="were charged"):
        checks["check_noise_is_the_noise_of_the_events"]()
