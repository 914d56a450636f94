"""Files that a command writes: never over what it reads, never over a ledger, and never half."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

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
