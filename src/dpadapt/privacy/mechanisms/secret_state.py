"""What an interactive mechanism must remember, on disk before an answer leaves: a secret file.

An answer that is drawn again after a crash is a second release that nobody paid for. Every new
answer is therefore committed, with its noise, before it is returned; after a crash at any moment
the file holds every answer that anybody can have seen. Whoever can read the file can take
the noise off the answers: it is as secret as the private rows.

The file goes with one sample, one model and one set of parameters: other rows under the old noise
would tell the difference between the two samples. It holds a random key, and a digest under that
key of every private row and label and of all public facts. Everything written later is
sealed under the same key, each entry with the seal before it.

It is used where it was made, and nowhere else (:mod:`.file_home`): in a second place, or after a
journal of another time, a question would be answered a second time with other noise.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..files.file_home import NotAtHome, home_of, journals, read_on_disk
from ..rows.errors import PrivacyError
from ..rows.sources import Block
from ._digest import framed, keyed_digest

_MARK = 0x64706164  # "dpad", the application id of the file
_VERSION = 3
_EARLIER = {
    1: "did not bind it to its data: nobody can tell whether its answers come from these rows",
    2: "did not write down its place: nobody can tell whether it is the only one",
}
_TOGETHER = 64  # answers that are read at a time


class Remembered(NamedTuple):
    """One question with its answer, and what the mechanism needs to go on.

    Examples
    --------
    >>> Remembered(b"question", b"secret", b"answer").question
    b'question'
    """

    question: bytes
    secret: bytes
    answer: bytes


class SecretState:
    """A file of answers with the noise in them; safe against crashes and several processes.

    Made by :meth:`create` or :meth:`open`. Threads may share it, one at a time.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> state = SecretState.create(Path(folder.name) / "state.db", {"epsilon": 1.0}, [])
    >>> state.begin()
    >>> state.write("charge", b"one")
    >>> state.append([Remembered(b"z", b"g", b"a")])
    >>> state.commit()
    >>> state.close()
    >>> again = SecretState.open(Path(folder.name) / "state.db", {"epsilon": 1.0}, [])
    >>> again.read("charge"), len(list(again.new()))
    (b'one', 1)
    >>> again.close()
    >>> folder.cleanup()
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self.path = connection, path
        self._key = self._seal = b""
        self._count = 0
        self._home = _home(path)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], facts: Mapping[str, Any], rows: Iterable[Block]
    ) -> SecretState:
        """Make a new file for these public facts and private rows; refuses one that is there."""
        file = Path(path)
        if not file.exists() and (left := journals(file)):
            raise PrivacyError(
                f"state: there is no file {file}, but {left[0].name} of one that was: it would "
                "spoil a new one. If that file was renamed, give it its name back and restore "
                "from it once; or choose another file."
            )
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise PrivacyError(
                f"state: {file} exists already; it may hold answers that were given. Restore from "
                "it, or choose another file."
            ) from None
        except OSError as error:
            raise PrivacyError(f"state: {file} cannot be written ({error.strerror}).") from None
        try:
            return cls._made(file, facts, rows)
        except BaseException as error:
            file.unlink(missing_ok=True)
            if isinstance(error, sqlite3.Error):
                raise PrivacyError(f"state: {file} cannot be written.") from None
            raise

    @classmethod
    def _made(cls, file: Path, facts: Mapping[str, Any], rows: Iterable[Block]) -> SecretState:
        new = cls(_connect(file), file)
        new._key, text = secrets.token_bytes(32), _text(facts)
        new.begin()
        for command in (
            f"pragma application_id = {_MARK}",
            f"pragma user_version = {_VERSION}",
            "create table notes (name text primary key, note blob not null)",
            "create table sealed (name text primary key, note blob not null, seal blob not null)",
            "create table answers (number integer primary key, question blob not null unique, "
            "secret blob not null, answer blob not null, seal blob not null)",
        ):
            new._connection.execute(command)
        new._seal = keyed_digest(new._key, text, rows)
        notes = {"facts": text, "key": new._key, "digest": new._seal, "home": new._home}
        for name, note in notes.items():
            new._connection.execute("insert into notes values (?, ?)", (name, note))
        new.commit()
        return new

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], facts: Mapping[str, Any], rows: Iterable[Block]
    ) -> SecretState:
        """Open a file that was made for these facts and rows; refuses it for any others."""
        file = Path(path)
        if not file.exists():
            raise PrivacyError(f"state: there is no file {file}.")
        state = None
        try:
            _require_home(file)
            state = cls(_connect(file), file)
            state._verify(_text(facts), rows)
        except BaseException as error:
            if state is not None:
                state.close()
            if isinstance(error, (sqlite3.Error, ValueError, TypeError, LookupError)):
                raise damaged(file) from None
            raise
        return state

    def _verify(self, text: bytes, rows: Iterable[Block]) -> None:
        if self._connection.execute("pragma quick_check").fetchone()[0] != "ok":
            raise damaged(self.path)
        notes = dict(self._connection.execute("select name, note from notes"))
        if notes["facts"] != text:
            raise self._other(notes["facts"], text)
        if not hmac.compare_digest(keyed_digest(notes["key"], text, rows), notes["digest"]):
            raise PrivacyError(
                f"state: {self.path} was made with other data or parameters. Its noise must not be "
                "used for these: give the rows and labels that it was made with, in the same order "
                "and types, or fit a new predictor with another file."
            )
        self._key, self._seal = notes["key"], notes["digest"]
        for name, note, seal in self._connection.execute("select * from sealed order by rowid"):
            self._pass([name.encode(), note], seal)

    def _other(self, stored: bytes, given: bytes) -> PrivacyError:
        """Name the first public fact that differs."""
        old, new = json.loads(stored), json.loads(given)
        names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
        return PrivacyError(
            f"state: {self.path} was made with other data or parameters (it differs in: "
            f"{names[0] if names else 'facts'}). Its noise must not be used for these."
        )

    # the seals

    def _pass(self, parts: Sequence[bytes], seal: bytes) -> None:
        """Go on to the next entry, if its seal is that of its parts and of all before it."""
        if not hmac.compare_digest(self._next(parts), seal):
            raise damaged(self.path)
        self._seal = seal

    def _next(self, parts: Sequence[bytes]) -> bytes:
        text = self._seal + b"".join(map(framed, parts))
        return hmac.new(self._key, text, hashlib.sha256).digest()

    # what is written and read

    def begin(self) -> None:
        """Keep every other process out, until :meth:`commit`."""
        try:
            if _home(self.path) != self._home:
                raise PrivacyError(f"state: {self.path} was replaced; restore the predictor.")
            self._connection.execute("begin immediate")
        except sqlite3.Error:
            raise PrivacyError(f"state: {self.path} cannot be locked or written.") from None

    def commit(self) -> None:
        """Bring everything since :meth:`begin` to disk."""
        self._connection.execute("commit")

    def write(self, name: str, note: bytes) -> None:
        """Write down something once, for good, before the first answer."""
        self._seal = self._next([name.encode(), note])
        self._connection.execute("insert into sealed values (?, ?, ?)", (name, note, self._seal))

    def read(self, name: str) -> bytes | None:
        """What was written down under a name, or None."""
        row = self._connection.execute("select note from sealed where name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def append(self, answers: Iterable[Remembered]) -> None:
        """Remember new answers, in this order."""
        for one in answers:
            self._seal = self._next(one)
            self._count += 1
            values = (self._count, *one, self._seal)
            self._connection.execute("insert into answers values (?, ?, ?, ?, ?)", values)

    def new(self) -> Iterator[Remembered]:
        """Answers that were neither appended nor read here, in the order they were drawn."""
        rows = self._connection.execute(
            "select number, question, secret, answer, seal from answers where number > ? "
            "order by number",
            (self._count,),
        )
        while some := rows.fetchmany(_TOGETHER):
            for number, *parts, seal in some:
                if number != self._count + 1:
                    raise damaged(self.path)
                self._pass(parts, seal)
                self._count = number
                yield Remembered(*parts)

    def close(self) -> None:
        """Close the file; what was not committed is gone."""
        self._connection.close()

    def discard(self) -> None:
        """Close and delete the file, before anything was charged for it."""
        self.close()
        self.path.unlink(missing_ok=True)

    def __reduce__(self) -> Any:
        raise TypeError("the secret state of a predictor cannot be copied or pickled.")

    def __repr__(self) -> str:
        return f"SecretState({str(self.path)!r})"


def _connect(file: Path) -> sqlite3.Connection:
    # no write-ahead log: it has a name of its own, and is lost when the file is copied or linked
    connection = sqlite3.connect(file, timeout=60.0, isolation_level=None, check_same_thread=False)
    connection.execute("pragma journal_mode = delete")
    connection.execute("pragma synchronous = extra")
    return connection


def _home(file: Path) -> str:
    """Which file it is, and where; refuses one with two names, whose journal nobody would find."""
    try:
        return home_of(file).text
    except OSError:
        raise PrivacyError(f"state: {file} is gone; nothing was answered.") from None
    except NotAtHome as error:
        raise PrivacyError(f"state: {file} {error} Nothing was answered.") from None


def _require_home(file: Path) -> None:
    """Refuse a file of another kind, version or place, before SQLite may play back a journal."""
    here = _home(file)
    mark, version = (read_on_disk(file, f"pragma {x}") for x in ("application_id", "user_version"))
    if mark != _MARK or version not in (*_EARLIER, _VERSION):
        raise PrivacyError(f"state: {file} is not the state of a predictor of dpadapt.")
    if version in _EARLIER:
        raise PrivacyError(
            f"state: {file} was written by an earlier version of dpadapt (format {version}), "
            f"which {_EARLIER[version]}. It cannot be restored. What was charged for it stays "
            "charged. Keep the file secret, or delete it; fit a new predictor with another file, "
            "which is charged anew."
        )
    home = read_on_disk(file, "select note from notes where name = 'home'")
    if home != here:
        raise PrivacyError(
            f"state: {file} is not where it was made: it was moved, renamed, copied or restored "
            "from a backup, and one question could get two answers. Nothing was answered. Put the "
            f"file itself back to its place, where it was called {json.loads(home)[2]!r}, and "
            "restore from there. If it is lost, what was charged for it stays charged: fit a new "
            "predictor with another file, which is charged anew."
        )


def damaged(file: Path) -> PrivacyError:
    """What to raise for a file that does not hold what it should."""
    return PrivacyError(f"state: {file} is damaged, or no state at all.")


def _text(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True, allow_nan=False).encode()
