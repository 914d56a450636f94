"""``dpadapt fit``: from two files to a model folder."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadapt._commands.features import table_features
from dpadapt._commands.screens import console, say, say_aside, say_note, told_if_it_can_be
from dpadapt._commands.tables import TableError, open_private, read_public
from dpadapt.discrepancy import AdaptationWarning, DiscrepancyRegressor
from dpadapt.modelfolder import Destination, ModelFolderError, open_destination, save_model
from dpadapt.pipeline import AdaptationPipeline
from dpadapt.privacy import Ledger, PrivacyError, Private
from dpadapt.report import ReportContext

if TYPE_CHECKING:
    import pandas as pd

    from dpadapt.privacy.ledger import Account

__all__ = ["Job", "fit_table"]

_INDEX = "__index_level_"  # columns in which pandas keeps its row numbers


@dataclass(frozen=True)
class Job:
    """What was asked for on the command line."""

    public: Path
    private: Path
    label: str
    out: Path
    epsilon: float
    delta: float
    degree: int = 1
    noise: str = "secure"
    random_state: int | None = None
    ledger: str | None = None
    dataset: str | None = None
    force: bool = False


def fit_table(job: Job) -> None:
    """Fit, save and tell; whatever can be refused is refused before any budget is spent."""
    with open_destination(job.out, force=job.force) as place:
        model, state = _fitted(job, place)
    charged = "" if job.ledger is None else " The ledger was charged, which stands."
    with told_if_it_can_be(f"The model is in {job.out}.{charged}"):
        _say_outcome(model)
        say("guarantee", model.guarantee_.sentence, style="bold green")
        if job.noise == "seeded":
            say_note("the noise came from a seed: for tests only, do not release this model.")
        if state is not None:
            say("ledger", f"{state.name}: spent {state.spent():.4g}, left {state.left():.4g}.")
        say("wrote", f"{job.out} (model.json, arrays.bin, guarantee.json, report.html)")


def _fitted(job: Job, place: Destination) -> tuple[Any, Any]:
    """Return the model, fitted and saved, and the state of the ledger."""
    features, labels = read_public(job.public, job.label)
    private = open_private(job.private)
    _check_columns(job, features, private)
    account = None if job.ledger is None else Ledger(job.ledger).account(str(job.dataset))
    model = AdaptationPipeline(
        [("features", table_features(features, job.degree))],
        DiscrepancyRegressor(
            epsilon=job.epsilon,
            delta=job.delta,
            noise=job.noise,
            random_state=job.random_state,
            ledger=account,
            verbose=int(console(stderr=True).is_terminal),
        ),
    )
    _say_samples(job, features, private)
    with _charge_told(account), warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)  # told later, in other words
        model.fit(features, labels, private=private)
        return model, _saved(job, place, model, features, account)


def _saved(
    job: Job, place: Destination, model: Any, features: pd.DataFrame, account: Account | None
) -> Any:
    """Save a model that was paid for, elsewhere if it must be; return the ledger's state."""
    try:
        state = None if account is None else account.ledger.dataset(account.name)
        context = ReportContext(
            title=f"Privacy report: a model of {job.label}",
            public_name=job.public.name,
            private_name=job.private.name,
            label=job.label,
            ledger=state,
            feature_scale=tuple(np.std(model.transformer_.transform(features), axis=0)),
        )
        place.write(model, context=context)
    except BaseException as error:  # also an interrupt: the model was paid for
        say_aside(f"The model could not be written to {job.out}{_kept(model)}.")
        if isinstance(error, OSError):
            raise ModelFolderError(f"{job.out} cannot be written: {error.strerror}.") from None
        raise
    return state


def _kept(model: Any) -> str:
    try:
        kept = save_model(model, Path(tempfile.mkdtemp(prefix="dpadapt-")) / "model")
    except Exception as error:
        return f", nor anywhere else ({type(error).__name__}): it is lost"
    return f"; it is kept in {kept}"


@contextmanager
def _charge_told(account: Account | None) -> Iterator[None]:
    """If anything fails after a charge, say that the charge stands."""
    before = 0 if account is None else len(account.ledger.charges(account.name))
    try:
        yield
    except PrivacyError:
        raise  # refused: nothing was charged
    except BaseException:
        _say_charge(account, before)
        raise


def _say_charge(account: Account | None, before: int) -> None:
    if account is None:
        return
    try:
        charged = len(account.ledger.charges(account.name)) > before
    except Exception:  # the ledger cannot be read any more, so that nobody knows
        charged = True
    if charged:
        say_aside(
            f"The ledger was charged for {account.name}, and a charge stands whatever fails after "
            "it. See `dpadapt ledger show`."
        )


def _check_columns(job: Job, features: pd.DataFrame, private: Private) -> None:
    missing = [str(name) for name in features.columns if name not in (private.columns or ())]
    if missing:
        raise TableError(
            f"the private file {job.private} lacks the column(s) {', '.join(missing)} that "
            f"{job.public} has; give both the same columns."
        )
    if private.n_rows == 0:
        raise TableError(f"the private file {job.private} has no rows.")


def _say_samples(job: Job, features: pd.DataFrame, private: Private) -> None:
    say("public", f"{job.public}: {len(features):,} rows, {features.shape[1]} columns, labelled")
    say("private", f"{job.private}: {private.n_rows:,} rows")
    columns = private.columns or ()
    if job.label in columns:
        say_note(f"the private file has a column {job.label!r}; this method does not use it.")
    known = {job.label, *features.columns}
    extra = [each for each in columns if each not in known and not each.startswith(_INDEX)]
    if extra:  # counted, not named: of a damaged file, cells of a row may pass for names
        say_note(f"not used, because the public file lacks them: {len(extra)} private column(s).")


def _say_outcome(model: Any) -> None:
    fitted = model.estimator_
    if fitted.adapted_:
        effective = 1 / float(np.sum(fitted.weights_**2))
        text = (
            "the public rows were weighted to look like the private ones; they are now worth "
            f"{effective:,.0f} rows of equal weight."
        )
        if np.ptp(fitted.weights_) == 0:
            text = (
                "within the noise the two samples look alike, so that all public rows keep the "
                "same weight: the model is the one of public data alone."
            )
        say("adapted", text)
        return
    say_note(
        "the model did not adapt: no weights make the public rows look like the private ones. It "
        "is the model of public data alone, which is the safe choice. The report says more."
    )
