"""What an interactive mechanism must remember, on disk before an answer leaves: a secret file.

An answer that is drawn again after a crash is a second release that nobody paid for. Every new
answer is therefore committed, with its noise, before it is returned; after a crash at any moment
the file holds every answer that anybody can have seen. Whoever can read the file can take
the noise off the answers: it is as secret as the private rows.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .errors import PrivacyError

__all__ = ["Remembered", "SecretState"]

_MARK = 0x64706164  # "dpad", the application id of the file
_VERSION = 1


class Remembered(NamedTuple):
    """One question with its answer, and what the mechanism needs to go on.

    Examples
    --------
    >>> Remembered(b"key", b"question", b"secret", b"answer").key
    b'key'
    """

    key: bytes
    question: bytes
    secret: bytes
    answer: bytes


class SecretState:
    """A file of answers with the noise in them; safe against crashes and several processes.

    Parameters
    ----------
    path : path
        The file. It is created for its owner alone.
    facts : mapping
        Public facts of the predictor, plain values; a file with other facts is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> state = SecretState.create(Path(folder.name) / "state.db", {"epsilon": 1.0})
    >>> with state.locked() as file:
    ...     file.append([Remembered(b"z", b"z", b"g", b"a")])
    ...     len(file.since(0))
    1
    >>> state.close()
    >>> folder.cleanup()
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, facts: Mapping[str, Any]):
        self._connection, self.path, self.facts = connection, path, dict(facts)

    @classmethod
    def create(cls, path: str | os.PathLike[str], facts: Mapping[str, Any]) -> SecretState:
        """Make a new file; refuses one that is there."""
        file = Path(path)
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise PrivacyError(
                f"state: {file} exists already; it may hold answers that were given. Restore from "
                "it, or choose another file."
            ) from None
        except OSError as error:
            raise PrivacyError(f"state: {file} cannot be written ({error.strerror}).") from None
        connection = _connect(file)
        with connection:
            connection.execute("begin immediate")
            connection.execute(f"pragma application_id = {_MARK}")
            connection.execute(f"pragma user_version = {_VERSION}")
            connection.execute("create table facts (text text not null)")
            connection.execute(
                "create table answers (number integer primary key, key blob not null unique, "
                "question blob not null, secret blob not null, answer blob not null)"
            )
            connection.execute("create table notes (name text primary key, note blob not null)")
            connection.execute("insert into facts values (?)", (_text(facts),))
        return cls(connection, file, facts)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> SecretState:
        """Open a file that :meth:`create` made, whole and undamaged."""
        file = Path(path)
        if not file.exists():
            raise PrivacyError(f"state: there is no file {file}.")
        try:
            connection = _connect(file)
            mark = connection.execute("pragma application_id").fetchone()[0]
            version = connection.execute("pragma user_version").fetchone()[0]
            if mark != _MARK or version != _VERSION:
                raise PrivacyError(f"state: {file} is not the state of a predictor of dpadapt.")
            sound = connection.execute("pragma integrity_check").fetchone()[0]
            (text,) = connection.execute("select text from facts").fetchone()
            facts = json.loads(text)
        except (sqlite3.Error, ValueError, TypeError):
            raise PrivacyError(f"state: {file} is damaged, or no state at all.") from None
        if sound != "ok":
            raise PrivacyError(f"state: {file} is damaged; take an undamaged copy.")
        return cls(connection, file, facts)

    @contextmanager
    def locked(self) -> Iterator[SecretState]:
        """Keep every other process out, and commit at the end; nothing is kept if it fails."""
        try:
            self._connection.execute("begin immediate")
        except sqlite3.Error:
            raise PrivacyError(f"state: {self.path} cannot be locked or written.") from None
        try:
            yield self
            self._connection.execute("commit")
        except BaseException:
            self._connection.execute("rollback")
            raise

    def since(self, number: int) -> list[Remembered]:
        """Answers after the first ``number``, in the order in which they were drawn."""
        rows = self._connection.execute(
            "select key, question, secret, answer from answers where number > ? order by number",
            (number,),
        )
        return [Remembered(*row) for row in rows]

    def append(self, answers: Sequence[Remembered]) -> None:
        """Remember new answers; within :meth:`locked`."""
        self._connection.executemany(
            "insert into answers (key, question, secret, answer) values (?, ?, ?, ?)", answers
        )

    def note(self, name: str, note: bytes) -> None:
        """Write down something once, for good."""
        self._connection.execute("insert into notes values (?, ?)", (name, note))

    def recall(self, name: str) -> bytes | None:
        """What was written down under a name, or None."""
        row = self._connection.execute("select note from notes where name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __reduce__(self) -> Any:
        raise TypeError("the secret state of a predictor cannot be copied or pickled.")

    def __repr__(self) -> str:
        return f"SecretState({str(self.path)!r})"


def _connect(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=60.0, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection


def _text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, allow_nan=False)
