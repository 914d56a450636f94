"""Files that a command writes: never over what it reads, never over a ledger, and never half.

What was paid for is kept wherever it can be, and a charge is told.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .screens import defer_signals, say, say_aside

if TYPE_CHECKING:
    import pandas as pd

    from dpadapt.evaluation import Evaluation
    from dpadapt.modelfolder import Destination
    from dpadapt.privacy.ledger.ledger import Account

_SQLITE = b"SQLite format 3\0"  # how every such file begins


def refuse_out(
    out: Path,
    *inputs: Path | None,
    model: Path | None = None,
    ledger: str | None = None,
    option: str = "--out",
) -> None:
    """Refuse to write over what a command reads, by whatever path; call it before reading.

    Parameters
    ----------
    out : Path
        File or folder to be written.
    *inputs : Path or None
        Files that are read, and folders of Parquet files.
    model : Path, optional
        Model folder: nothing may be written inside.
    ledger : str, optional
        The ledger; any other SQLite file is refused as well.
    option : str
        What ``out`` is called on the command line.

    Examples
    --------
    >>> refuse_out(Path("new.csv"), Path("old.csv"), None)
    >>> refuse_out(Path("./old.csv"), Path("old.csv"))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    typer.BadParameter: --out old.csv is what is read; choose another file.
    """
    for each in inputs:
        files = [] if each is None else [each, *(each.rglob("*.parquet") if each.is_dir() else ())]
        if any(_same(out, file) for file in files):
            raise typer.BadParameter(f"{option} {out} is what is read; choose another file.")
    if model is not None and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(model)):
        raise typer.BadParameter(f"{option} must not be inside the model folder, which is sealed.")
    _refuse_database(out, ledger, option)


def _same(one: Path, other: Path) -> bool:
    """Whether two names are one file, there or not; or the second is inside the first."""
    if os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other):
        return True
    first, second = os.path.realpath(one), os.path.realpath(other)
    return first == second or (one.is_dir() and Path(second).is_relative_to(first))


def _refuse_database(out: Path, ledger: str | None, option: str) -> None:
    real = os.path.realpath(out)
    if ledger is not None and "://" not in ledger:
        kept = os.path.realpath(os.path.expanduser(ledger))
        if any(_same(out, Path(kept + end)) for end in ("", "-journal", "-wal", "-shm")):
            raise typer.BadParameter(f"{option} {out} is the ledger itself; choose another file.")
    if os.path.isfile(real):
        with open(real, "rb") as file:
            begins = file.read(len(_SQLITE))
        if begins == _SQLITE:
            raise typer.BadParameter(
                f"{option} {out} is a database: a ledger, or the secret state of a predictor. "
                "Nothing was written. Choose another file."
            )


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under another name, then rename it: it is there whole, or as before."""
    from dpadapt.privacy.files.whole_files import whole_file

    with whole_file(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def write_frame(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV or, by the ending of the name, Parquet; whole or not at all."""
    from dpadapt.privacy.files.whole_files import whole_file

    with whole_file(path) as draft:
        if path.suffix.lower() == ".csv":
            table.to_csv(draft, index=False)
        else:
            table.to_parquet(draft, index=False)


def write_figure(figure: Any, path: Path, dpi: int) -> None:
    """Write a picture, whole or not at all."""
    from dpadapt.privacy.files.whole_files import whole_file

    with whole_file(path) as draft:
        figure.savefig(draft, format=path.suffix.lstrip("."), dpi=dpi)


_REPORTED = "charge_is_told"  # of an error


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
def report_charge_on_error(account: Account | None) -> Iterator[None]:
    """If anything fails, say whether the ledger was charged: by the ledger, not by the error.

    Charges that another process made meanwhile do not count. It is said once, however many of these
    stand in each other.
    """
    before = 0 if account is None else account.number()
    try:
        yield
    except BaseException as error:
        if account is not None and not getattr(error, _REPORTED, False):
            say_aside(_charge(account, before))
            setattr(error, _REPORTED, True)
        raise


@contextmanager
def kept_when_stopped(account: Account | None) -> Iterator[None]:
    """Let signals wait as soon as the ledger is charged, until what was paid for is kept.

    Whatever fails inside, it is told whether the ledger was charged.
    """
    paid = defer_signals(lambda: account is not None and account.ledger.wrote, say_aside)
    with paid, report_charge_on_error(account):
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
