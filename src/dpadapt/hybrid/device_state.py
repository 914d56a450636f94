"""The one answer of a device, on disk before it leaves.

The file holds a digest of the question and the reply itself. Processes take turns. It is written
whole, under another name, and then given its own name by a link, which fails where the name is
taken. That other name is always the same, and what a killed process left there is removed: at most
one answer that never left is ever on disk. Nothing in it is secret: the reply leaves anyway.
Whoever deletes the file makes the device answer again, with new noise; no device can notice that.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpadapt.privacy.files.whole_files import draft_of, sync, turn

_VERSION = 1
_LONGEST = 1 << 24  # bytes of a file that is read


class AnswerOnce:
    r"""A file that holds at most one answer, for good.

    Parameters
    ----------
    path : path
        The file; it need not exist yet, its folder must.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> once = AnswerOnce(Path(folder.name) / "answered")
    >>> once.answer({"ask": 1}, lambda: b"first\n"), once.answer({"ask": 1}, lambda: b"second\n")
    (b'first\n', b'first\n')
    >>> once.answer({"ask": 2}, lambda: b"third\n") is None
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.realpath(path))

    def answer(self, question: Any, draw: Callable[[], bytes]) -> bytes | None:
        """The stored answer to this question, or a new one; None if another one was answered.

        A file that is damaged, or of an older dpadapt, counts as another question.
        """
        asked = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
        if (found := self._read()) is None:
            found = self._first(asked, draw)
        return _said(found or b"", asked)

    def _first(self, asked: str, draw: Callable[[], bytes]) -> bytes | None:
        """Draw and keep an answer, or find that of who was quicker."""
        with turn(self._path.parent), draft_of(self._path, 0o600) as draft:
            if (found := self._read()) is not None:
                return found
            state = {"dpadapt": _VERSION, "asked": asked, "said": draw().decode()}
            self._write(draft, json.dumps(state))
            return self._read()

    def _read(self) -> bytes | None:
        """What the file holds, or None where there is none."""
        try:
            if not stat.S_ISREG(os.stat(self._path).st_mode):
                raise OSError(None, "state must be a file, and is something else", str(self._path))
            with open(self._path, "rb") as file:
                return file.read(_LONGEST)
        except FileNotFoundError:
            return None

    def _write(self, draft: Path, text: str) -> None:
        """Make the file, whole and on disk, unless it is there."""
        with open(draft, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, self._path)
        sync(self._path.parent)


def _said(found: bytes, asked: str) -> bytes | None:
    try:
        state = json.loads(found)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(state, dict) and isinstance(state.get("said"), str)
    if not whole or state.get("dpadapt") != _VERSION or state.get("asked") != asked:
        return None
    return str(state["said"]).encode()
