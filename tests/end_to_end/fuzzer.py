"""Random command lines on random damaged files: what `dpadapt` says to them, case by case.

A case is a number: the same number gives the same command line and the same files. Run by itself,
``python fuzzer.py first last`` prints one line of JSON for each case that went wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

SECRET_TEXT = "zqxsecret7781"
SECRET_NUMBERS = [987654.321, 987655.125, 987656.5]
NEEDLES = [SECRET_TEXT.encode(), b"98765", b"987,65", b"9.8765", b"9.877e+05"]
NEEDLES += [struct.pack(order + "d", value) for value in SECRET_NUMBERS for order in "<>"]
PRIVATE = ("private.csv", "private.parquet", "rows", "row.json", "row.csv")
TAKES_PRIVATE = ("--private", "--row")
LONGEST = 120  # seconds of one case
UNFORESEEN = "did not foresee"
USAGE = (2,)
REFUSED = (1, 3, 4)  # input, budget, storage: each is told in one line

FIT = "--public public.csv --private private.csv --label y --epsilon 1 --delta 1e-6 --out out"
TEMPLATES = [
    f"fit {FIT}",
    f"fit {FIT} --degree 2 --noise seeded --random-state 3",
    f"fit {FIT} --ledger budget.db --dataset people",
    "fit --public public.parquet --private private.parquet --label y --epsilon 0.5 --delta 1e-6 "
    "--out out",
    "fit --public public.csv --private rows --label y --epsilon 1 --delta 1e-6 --out model --force",
    f"fit {FIT} --task regression --drop town --groups member --set experts=linear",
    f"fit {FIT} --estimator ReweightingRegressor --set solver=statistics --columns size,town",
    f"fit {FIT} --sep , --decimal . --encoding utf-8 --id size --date town",
    "check --public public.csv --private private.csv --label y --epsilon 1",
    "check --public public.csv --private private.csv --label y --epsilon 1 --yes-show",
    "check --public public.parquet --private rows --yes-show",
    *["predict --model model --input public.csv --out p.csv"] * 3,
    "predict --model model --input public.parquet --out p.parquet --trust numpy.log1p",
    "predict --model model --input public.csv --out p.csv --keep size,town --proba --sep ,",
    "export --model model --out m.json",
    "export --model model --out m.onnx",
    *["report --model model --out r.html"] * 3,
    "report --model model --out r.html --ledger budget.db --dataset people",
    "ledger create --ledger new.db --dataset people --epsilon 3 --delta 1e-6",
    "ledger create --ledger budget.db --dataset others --epsilon 3 --delta 1e-6",
    *["ledger show --ledger budget.db"] * 2,
    "ledger show --ledger budget.db --dataset people",
    "ledger export --ledger budget.db --dataset people",
    "ledger export --ledger budget.db --dataset people --out ledger.json",
    *["agent --row row.json --label sick --epsilon 1 --state answered.txt"] * 2,
    "agent --row row.csv --label sick --epsilon 1",
    "agent --row - --label sick --epsilon 1",
    "demo --out demo --runs 2",
    "audit --public public.csv --label y --epsilon 1 --delta 1e-6 --runs 10 --out audit",
    "--version",
    "fit --help",
]
VALUES = [
    *("", " ", "-", "--", "0", "-1", "1", "2", "nan", "inf", "-inf", "1e-320", "1e309", "1e300"),
    *("9" * 400, "0x10", "1_000", "١", "1e-6", "0.5", "y", "size", "town", "none", "None", "[red]"),
    *("\x1b[31m", "a\nb", "ü", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")),
    *("x" * 5000, ".", "..", "/", "/dev/null", "/nonexistent/x.csv", "~", "file:///x", "*", "a=b"),
    *("postgresql://user:pw@localhost:1/x", "sqlite://", "http://x", "people", "secure", "exact"),
    *("public.csv", "public.parquet", "model", "budget.db", "question.json", "model/model.json"),
    *("private.csv", "rows", "row.json", "os.system", "builtins.eval", "000", "--force", "--help"),
]


def make_files(folder: Path) -> None:
    """Write the files that the valid command lines name; every private cell is a canary."""
    rng = np.random.default_rng(0)

    def public(n: int) -> pd.DataFrame:
        size = rng.normal(size=n)
        town = rng.choice(["A", "B"], n)
        return pd.DataFrame({"size": size, "town": town, "member": size > 0, "y": size**2})

    public(60).to_csv(folder / "public.csv", index=False)
    public(60).to_parquet(folder / "public.parquet")
    secret = pd.DataFrame(
        {
            "size": rng.choice(SECRET_NUMBERS, 80),
            "town": SECRET_TEXT,
            "member": rng.choice(SECRET_NUMBERS, 80),
            "y": rng.choice(SECRET_NUMBERS, 80),
        }
    )
    secret.to_csv(folder / "private.csv", index=False)
    secret.to_parquet(folder / "private.parquet")
    (folder / "rows").mkdir()
    for part in range(2):
        secret.iloc[part::2].to_parquet(folder / "rows" / f"{part}.parquet")
    row = {"size": SECRET_NUMBERS[0], "town": SECRET_TEXT, "sick": SECRET_TEXT}
    (folder / "row.json").write_text(json.dumps(row))
    (folder / "row.csv").write_text(",".join(row) + "\n" + ",".join(map(str, row.values())))
    from dpadapt.hybrid.questions import Below
    from dpadapt.privacy import Ledger

    (folder / "question.json").write_bytes(Below([0], [2.0]).request(0, agent=5, epsilon=1.0))
    Ledger(folder / "budget.db").create("people", epsilon=5.0, delta=1e-5)


def quiet() -> None:
    """Leave out what takes long and reads no file: pictures and the demo."""
    import dpadapt.cli.demo
    import dpadapt.learning.figures

    dpadapt.learning.figures.as_data_uri = lambda figure: "data:,"
    dpadapt.cli.demo.show_demo = lambda out, runs: None


def mutated_line(draw: random.Random) -> list[str]:
    """Return a valid command line with up to four changes."""
    line = draw.choice(TEMPLATES).split()
    for _ in range(draw.choice([0, 0, 0, 0, 0, 0, 1, 1, 2, 4])):
        place = draw.randrange(len(line)) if line else 0
        change = draw.randrange(6)
        if change <= 2 and line:
            line[place] = draw.choice(VALUES)
        elif change == 3:
            line.insert(place, draw.choice([*VALUES, "--unknown", "--noise", "--dataset"]))
        elif change == 4 and line:
            del line[place]
        elif line:
            other = draw.randrange(len(line))
            line[place], line[other] = line[other], line[place]
    return [each.replace("\0", "") for each in line]


def damage(path: Path, draw: random.Random) -> None:
    """Damage a file, in one of many ways; what is private stays in its file."""
    whole = path.read_bytes() if path.is_file() else b""
    odd = [
        b"",
        b"\0" * 100,
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"NaN",
        b"9" * 5000,
        b'{"size": 1e999, "town": null, "sick": [[]]}',
        bytes(draw.randrange(256) for _ in range(200)),
        b"size,town,member,y\n" + b"1,A,1\n" * 5 + b'"1,A,1,1\n',
        b"a,b,c\n1,2,3\n",
        b"size,size,town,town\n1,2,3,4\n",
        b"PAR1" + b"\xff" * 100 + b"PAR1",
        b"SQLite format 3\0" + b"\xff" * 200,
        b"PK\x03\x04" + b"\0" * 50,
        b"\x1f\x8b\x08" + b"\0" * 20,
        b"\xff\xfe" + "size,town\n1,2".encode("utf-16-le"),
    ]
    kind = draw.randrange(9)
    if kind <= 2 and whole:  # bits
        content = bytearray(whole)
        places = [place for place, each in enumerate(content) if each]  # where something is said
        for place in draw.choices(places, k=draw.choice([1, 1, 2, 8, 64])):
            content[place] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(content))
    elif kind == 3 and whole:
        path.write_bytes(whole[: draw.randrange(len(whole))])
    elif kind == 4 and whole:  # a piece twice, or cut out
        one, two = sorted(draw.randrange(len(whole)) for _ in range(2))
        path.write_bytes(whole[:one] + whole[one:two] * draw.choice([0, 2]) + whole[two:])
    elif kind == 5 and whole:  # another encoding
        text = whole.decode("utf-8", "replace")
        path.write_bytes(text.encode(draw.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7"])))
    else:
        remove(path)
        if kind == 6:
            path.mkdir()
        elif kind == 7:
            path.symlink_to(path)
        else:
            path.write_bytes(draw.choice(odd))


def seal_again(folder: Path) -> None:
    """Put the digests of a damaged model folder in order, as a forger would."""
    try:
        data = json.loads((folder / "guarantee.json").read_bytes())
        for name in data["files"]:
            data["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        blank = json.dumps({**data, "digest": "0" * 64}).encode()
    except (ValueError, TypeError, KeyError, OSError, RecursionError):
        return
    digest = hashlib.sha256(blank).hexdigest().encode()
    (folder / "guarantee.json").write_bytes(blank.replace(b"0" * 64, digest))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def run_case(number: int, base: Path) -> dict[str, object] | None:
    """Run one case; None if all went well, else what went wrong."""
    draw = random.Random(number)
    line = mutated_line(draw)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(base, folder, dirs_exist_ok=True)
        _adopt(folder / "budget.db")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        used = [path for path in files if path.relative_to(folder).parts[0] in line]
        for _ in range(draw.choice([0, 1, 1, 2])):
            path = draw.choice(used or files)
            if path.is_file() and not path.is_symlink():
                damage(path, draw)
        if draw.random() < 0.7:
            seal_again(folder / "model")
        asked = draw.choice(
            [b"", b"{", b"[" * 9999, b"\xff\n", *[_read(base / "question.json")] * 4]
        )
        if draw.random() < 0.3:
            asked = _read(base / "row.json") + b"\n" + asked
        before = {path: _read(path) for path in folder.rglob("*")}
        os.chdir(folder)
        problem = _run(line, asked, folder, before, secret=_kept_private(line))
        os.chdir("/")
    return None if problem is None else {"case": number, "line": line, "problem": problem}


def _run(line, asked, folder, before, *, secret):
    from dpadapt.cli import app

    signal.alarm(LONGEST)
    try:
        result = CliRunner().invoke(app, line, input=asked)
    except BaseException as error:
        return f"not caught: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    said = result.output + result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return "".join(traceback.format_exception(result.exception))[-3000:]
    if result.exit_code not in (0, *USAGE, *REFUSED) or "Traceback" in said:
        return f"exit code {result.exit_code}: {said}"
    if UNFORESEEN in said:
        return f"unforeseen: {said}"
    if result.exit_code in REFUSED and (result.stderr.count("\n"), "Error: " in said) != (1, True):
        return f"not one line: {said}"
    if raw := re.search(
        r"JSONDecodeError|RecursionError|Error: (Expecting|Extra data|Invalid)", said
    ):
        return f"raw error {raw[0]}: {said}"
    if not secret:
        return None
    shown = "--yes-show" in line  # asked for, by the owner
    if not shown and any(needle in said.encode() for needle in NEEDLES):
        return f"a private value is shown: {said}"
    for path in folder.rglob("*"):
        content = _read(path)
        written = path.relative_to(folder).parts[0] not in PRIVATE and content != before.get(path)
        if written and any(needle in content for needle in NEEDLES):
            return f"a private value is in {path.name}"
    return None


def _adopt(ledger: Path) -> None:
    """Make a copied ledger one that is in use."""
    from dpadapt.privacy import Ledger

    Ledger(ledger).adopt()


def _kept_private(line: list[str]) -> bool:
    """Whether no private file is given where public ones belong."""
    return not any(
        any(name in each for name in PRIVATE)
        and (place == 0 or line[place - 1] not in TAKES_PRIVATE)
        for place, each in enumerate(line)
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def main(first: int, last: int, broken: str = "") -> None:
    """Run cases; ``broken`` is code that breaks something first, for a test to see it found."""
    quiet()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        make_files(base)
        os.chdir(base)
        from dpadapt.cli import app

        paid = "--estimator DiscrepancyRegressor --ledger budget.db --dataset people"
        first_fit = f"fit {FIT} {paid}".replace(" out ", " model ")
        made = CliRunner().invoke(app, first_fit.split())
        assert made.exit_code == 0, made.output
        exec(broken)
        for number in range(first, last):
            if problem := run_case(number, base):
                print(json.dumps(problem), flush=True)
            if number % 100 == 99:
                print(json.dumps({"done": number + 1}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
