"""Does a change of the code move a bit? Record every fit before and after, and compare the two.

A move of files changes no bit; a merge may change the order of a sum, and so the last digits. Both
recordings must be made on one machine, with one number of threads. ``PYTHONPATH`` decides which
dpadapt is recorded, so that an older tree can be recorded by this script:

    python -m tools.bits record before.json
    PYTHONPATH=elsewhere/src:. python -m tools.bits record after.json
    python -m tools.bits compare before.json after.json --within 1e-9

What is fitted is in :mod:`tools.bits_fits`; ``record --quick`` fits a part of it. Every fit has
parts (predictions, coefficients, its guarantee and so on), and every part its SHA-256 and its
numbers, as hexadecimal text that holds every bit.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import random
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Comparison", "change_of", "compare", "entries", "record"]

Entry = str | list[str]


def entries(value: Any) -> list[Entry]:
    """Flatten plain values: arrays and numbers become lists of hexadecimal text, the rest texts.

    Examples
    --------
    >>> entries({"scale": 0.5, "rows": [1, "a"]})
    ['rows', ['0x1.0000000000000p+0'], 'a', 'scale', ['0x1.0000000000000p-1']]
    """
    return list(_entries(value))


def _entries(value: Any) -> Iterator[Entry]:
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield str(key)
            yield from _entries(value[key])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name[0] != "_"]
        yield from _entries({name: getattr(value, name) for name in names})
    elif isinstance(value, (str, bytes, type(None), bool, np.bool_)):
        yield str(value)
    elif isinstance(value, (int, float, np.number)):
        yield [float(value).hex()]
    elif isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        yield str(value.shape)
        yield [each.hex() for each in value.astype(np.float64).ravel().tolist()]
    elif isinstance(value, (list, tuple, np.ndarray)):
        for each in value:
            yield from _entries(each)
    else:
        raise TypeError(f"no plain value: {type(value).__name__}")


def change_of(before: list[Entry], after: list[Entry], *, words: bool = True) -> float:
    """Largest relative change of the numbers of a part; infinite if its form is another.

    A number of an array moves relative to the largest one of that array. Texts that differ are an
    infinite change, unless ``words`` is False.

    Examples
    --------
    >>> change_of(entries([1.0, 2.0]), entries([1.0, 2.5]))
    0.2
    >>> change_of(["low"], ["high"]), change_of(["low"], ["high"], words=False)
    (inf, 0.0)
    """
    if len(before) != len(after):
        return math.inf
    most = 0.0
    for one, two in zip(before, after, strict=True):
        if isinstance(one, str) or isinstance(two, str):
            same_kind = isinstance(one, str) and isinstance(two, str)
            most = max(most, math.inf if not same_kind or (words and one != two) else 0.0)
        else:
            most = max(most, _moved(one, two))
    return most


def _moved(one: list[str], two: list[str]) -> float:
    if one == two:
        return 0.0
    if len(one) != len(two):
        return math.inf
    a, b = (np.array([float.fromhex(each) for each in side]) for side in (one, two))
    odd = ~(np.isfinite(a) & np.isfinite(b))
    if not np.array_equal(a[odd], b[odd], equal_nan=True):
        return math.inf
    a, b = a[~odd], b[~odd]
    largest = max(np.max(np.abs(a), initial=0.0), np.max(np.abs(b), initial=0.0))
    return float(np.max(np.abs(a - b), initial=0.0) / largest) if largest else 0.0


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What two recordings have in common.

    Parameters
    ----------
    equal : int
        Fits of which every bit is the same.
    changed : dict of str to float
        Largest relative change, by fit and part.
    gone, new : tuple of str
        Fits that only the first, or only the second, recording has.

    Examples
    --------
    >>> Comparison(3, {"fit: predict": 1e-12}, (), ()).holds(1e-9)
    True
    """

    equal: int
    changed: dict[str, float]
    gone: tuple[str, ...]
    new: tuple[str, ...]

    def holds(self, within: float) -> bool:
        """Whether nothing is gone, and nothing changed by more than this."""
        return not self.gone and all(change <= within for change in self.changed.values())

    def lines(self) -> Iterator[str]:
        """Say it, the largest change first."""
        fits = {name.rpartition(" | ")[0] for name in self.changed}
        yield (
            f"{self.equal} fits equal bit for bit, {len(fits)} changed, {len(self.gone)} gone, "
            + (f"{len(self.new)} new")
        )
        for name, change in sorted(self.changed.items(), key=lambda pair: -pair[1]):
            told = "words or form" if math.isinf(change) else f"{change:.2g}"
            yield f"changed  {told:>13}  {name}"
        yield from (f"gone     {name}" for name in self.gone)
        yield from (f"new      {name}" for name in self.new)


def compare(
    before: Mapping[str, Any], after: Mapping[str, Any], *, words: bool = True
) -> Comparison:
    """Compare two recordings, fit by fit and part by part.

    Examples
    --------
    >>> one = {"fit": {"predict": {"sha256": "a", "entries": entries([1.0])}}}
    >>> two = {"fit": {"predict": {"sha256": "b", "entries": entries([1.5])}}}
    >>> compare(one, one).equal, compare(one, two).changed
    (1, {'fit | predict': 0.3333333333333333})
    """
    equal, changed = 0, {}
    for name in before.keys() & after.keys():
        parts: dict[str, float] = {}
        for part in before[name].keys() | after[name].keys():
            one, two = (
                side[name].get(part, {"sha256": "", "entries": []}) for side in (before, after)
            )
            if one["sha256"] != two["sha256"]:
                parts[f"{name} | {part}"] = change_of(one["entries"], two["entries"], words=words)
        equal += not parts
        changed.update(parts)
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    return Comparison(equal, changed, tuple(sorted(gone)), tuple(sorted(new)))


def record(fits: Mapping[str, Any]) -> dict[str, Any]:
    """Fit each, and write down the digest and the entries of each of its parts.

    A refusal is a result like any other.

    Examples
    --------
    >>> found = record({"one": lambda: {"predict": [1.0]}, "two": lambda: 1 / 0})
    >>> found["one"]["predict"]["entries"], found["two"]["refused"]["entries"]
    ([['0x1.0000000000000p+0']], ['ZeroDivisionError: division by zero'])
    """
    return {name: {part: _part(value) for part, value in _run(fit)} for name, fit in fits.items()}


def _run(fit: Any) -> list[tuple[str, Any]]:
    with fixed_secrets():
        try:
            return sorted(fit().items())
        except Exception as error:  # refusals are recorded: they must not change either
            return [("refused", f"{type(error).__name__}: {error}")]


def _part(value: Any) -> dict[str, Any]:
    found = entries(value)
    text = json.dumps(found, ensure_ascii=True, separators=(",", ":"))
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "entries": found}


@contextmanager
def fixed_secrets() -> Iterator[None]:
    """Meanwhile, secret keys are the same ones in every run: nothing here has anything to keep.

    So that fits with secure noise, and people, who stand in a secret order, repeat themselves.

    Examples
    --------
    >>> import secrets
    >>> with fixed_secrets():
    ...     secrets.token_bytes(2) == bytes([7, 7])
    True
    >>> secrets.token_bytes(16) == secrets.token_bytes(16)
    False
    """
    import secrets

    before = secrets.token_bytes, secrets.randbits
    secrets.token_bytes = lambda nbytes=None: bytes([7]) * (nbytes or 32)
    secrets.randbits = random.Random(0).getrandbits  # type: ignore[assignment]
    try:
        yield
    finally:
        secrets.token_bytes, secrets.randbits = before


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    todo = parser.add_subparsers(dest="todo", required=True)
    first = todo.add_parser("record", help="fit everything, and write what came out")
    first.add_argument("file", type=Path)
    first.add_argument("--quick", action="store_true", help="a part of it, within a minute")
    second = todo.add_parser("compare", help="say what changed; exit code 1 if it is too much")
    second.add_argument("before", type=Path)
    second.add_argument("after", type=Path)
    second.add_argument("--within", type=float, default=0.0, help="largest relative change")
    second.add_argument("--no-words", action="store_true", help="texts may differ")
    given = parser.parse_args()
    if given.todo == "compare":
        sides = [
            json.loads(each.read_text(encoding="utf-8")) for each in (given.before, given.after)
        ]
        found = compare(*sides, words=not given.no_words)
        print(*found.lines(), sep="\n")
        return 0 if found.holds(given.within) else 1
    start = time.process_time()
    with fixed_secrets():  # before dpadapt is imported
        from tools.bits_fits import all_fits

        recorded = record(all_fits(quick=given.quick))
    given.file.write_text(json.dumps(recorded, indent=0, sort_keys=True), encoding="utf-8")
    print(f"{len(recorded)} fits in {time.process_time() - start:.0f} processor seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
