"""After budget is spent: the model is kept wherever it can be, and a charge is told."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .outputs import write_whole
from .screens import say, say_aside
from .stopping import not_before

if TYPE_CHECKING:
    from dpadapt.evaluation import Evaluation
    from dpadapt.modelfolder import Destination
    from dpadapt.privacy.ledger.ledger import Account

_TOLD = "charge_is_told"  # of an error


def saved(
    place: Destination, model: Any, account: Account | None, reading: dict[str, Any], **context: Any
) -> str:
    """Save a model that was paid for, elsewhere if it must be.

    Parameters
    ----------
    place : Destination
    model : estimator
    account : Account or None
    reading : dict
        How files were read, for whoever evaluates the model.
    **context
        Of the report.

    Returns
    -------
    str
        Digest of the model in its folder.
    """
    from dpadapt.modelfolder import ModelWriteError
    from dpadapt.modelfolder.record import read_record
    from dpadapt.report import ReportContext

    try:
        state = None if account is None else account.ledger.dataset(account.name)
        place.write(model, context=ReportContext(ledger=state, **context), reading=reading)
    except BaseException as error:  # also an interrupt: the model was paid for
        say_aside(f"The model could not be written to {place.target}{_kept(model)}.")
        if isinstance(error, OSError):
            raise ModelWriteError(f"{place.target} cannot be written: {error.strerror}.") from None
        raise
    return read_record(place.target)[2]


def shown_in_report(
    folder: Path,
    model: Any,
    account: Account | None,
    found: Evaluation,
    reading: dict[str, Any] | None = None,
    **context: Any,
) -> bool:
    """Put an evaluation into the report of a model that is saved; the folder is replaced whole."""
    from dpadapt.modelfolder import ModelFolderError, open_destination
    from dpadapt.report import ReportContext

    try:
        state = None if account is None else account.ledger.dataset(account.name)
        about = ReportContext(ledger=state, evaluations=[found.to_dict()], **context)
        with open_destination(folder, force=True) as place:
            place.write(model, context=about, reading=reading)
    except (OSError, ModelFolderError):
        return False
    return True


def _kept(model: Any) -> str:
    from dpadapt.modelfolder import save_model

    try:
        kept = save_model(model, Path(tempfile.mkdtemp(prefix="dpadapt-")) / "model")
    except Exception as error:
        return f", nor anywhere else ({type(error).__name__}): it is lost"
    return f"; it is kept in {kept}"


def write_paid(path: Path, text: str) -> None:
    """Write a text that was paid for, elsewhere if it must be."""
    try:
        write_whole(path, text)
    except OSError:
        kept = Path(tempfile.mkdtemp(prefix="dpadapt-")) / path.name
        kept.write_text(text, encoding="utf-8")
        say_aside(f"The evaluation could not be written to {path}; it is kept in {kept}.")
        raise


def say_left(account: Account | None) -> None:
    """Say what is spent of a budget and what is left, if there is one."""
    if account is not None:
        kept = account.ledger.dataset(account.name)
        spent = f"spent {kept.spent():.4g} of {kept.epsilon:.4g}, left {kept.left():.4g}"
        say("ledger", f"{account.name}, at delta {kept.delta:g}: {spent}.")


@contextmanager
def charge_told(account: Account | None) -> Iterator[None]:
    """If anything fails, say whether the ledger was charged: by the ledger, not by the error.

    Charges that another process made meanwhile do not count. It is said once, however many of these
    stand in each other.
    """
    before = 0 if account is None else account.number()
    try:
        yield
    except BaseException as error:
        if account is not None and not getattr(error, _TOLD, False):
            say_aside(_charge(account, before))
            setattr(error, _TOLD, True)
        raise


@contextmanager
def kept_when_stopped(account: Account | None) -> Iterator[None]:
    """Let signals wait as soon as the ledger is charged, until what was paid for is kept.

    Whatever fails inside, it is told whether the ledger was charged.
    """
    paid = not_before(lambda: account is not None and account.ledger.wrote, say_aside)
    with paid, charge_told(account):
        yield


def _charge(account: Account, before: int) -> str:
    try:
        charged = account.ledger.wrote and account.number() > before
    except Exception:
        return (
            f"Whether {account.name} was charged is not known: the ledger cannot be read any more. "
            "See `dpadapt ledger show`."
        )
    if not charged:
        return f"Nothing was charged for {account.name}."
    return (
        f"The ledger was charged for {account.name}, and a charge stands whatever fails after it. "
        "See `dpadapt ledger show`."
    )
