"""Files that a command writes: never over a ledger, and never half."""

from __future__ import annotations

import os
from pathlib import Path

import typer

__all__ = ["refuse_database", "write_whole"]

_SQLITE = b"SQLite format 3\0"  # how every such file begins


def refuse_database(out: Path, ledger: str | None = None) -> None:
    """Refuse ``--out`` where it is the ledger, a journal of it, or any other SQLite file."""
    real = os.path.realpath(out)
    if ledger is not None and "://" not in ledger:
        kept = os.path.realpath(os.path.expanduser(ledger))
        same = os.path.exists(real) and os.path.exists(kept) and os.path.samefile(real, kept)
        if same or real in {kept + end for end in ("", "-journal", "-wal", "-shm")}:
            raise typer.BadParameter(f"--out {out} is the ledger itself; choose another file.")
    if os.path.isfile(real):
        with open(real, "rb") as file:
            begins = file.read(len(_SQLITE))
        if begins == _SQLITE:
            raise typer.BadParameter(
                f"--out {out} is a database: a ledger, or the secret state of a predictor. Nothing "
                "was written. Choose another file."
            )


def write_whole(path: Path, text: str) -> None:
    """Write a text file under another name, then rename it: it is there whole, or as before."""
    from dpadapt.privacy._whole_files import draft_of, sync, turn

    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file():  # a terminal, a pipe: nothing to replace
        real.write_text(text, encoding="utf-8")
        return
    with turn(real.parent), draft_of(real, 0o666) as draft:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, real)
        sync(real.parent)
