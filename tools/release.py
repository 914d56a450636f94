"""Build wheel and sdist and try both, as a stranger would: ``make dist``.

The sdist must build a wheel with the same files. The wheel is installed into a fresh environment
without extras; there the example of the README must fit, and the command line must answer.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

__all__ = ["differences", "example"]

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
EXTRAS = "torch opendp psycopg"


def example(page: str) -> str:
    r"""Return the first block of Python on a page.

    Examples
    --------
    >>> example("Words.\n```python\nprint(1)\n```\nMore words.")
    'print(1)\n'
    """
    found = re.search(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert found, "there is no block of Python"
    return found[1]


def differences(one: Path, other: Path) -> list[str]:
    """Names of files that are in one archive only, or not the same in both.

    Examples
    --------
    >>> import io
    >>> archives = [io.BytesIO(), io.BytesIO()]
    >>> for archive, text in zip(archives, ["x = 1", "x = 2"]):
    ...     with zipfile.ZipFile(archive, "w") as file:
    ...         file.writestr("same.py", "")
    ...         file.writestr("a.py", text)
    >>> differences(*archives)
    ['a.py']
    """
    with zipfile.ZipFile(one) as a, zipfile.ZipFile(other) as b:
        first, second = ({name: z.read(name) for name in z.namelist()} for z in (a, b))
    return sorted(n for n in first.keys() | second.keys() if first.get(n) != second.get(n))


def _build(kind: str, source: Path, out: Path) -> Path:
    """Build a wheel or an sdist; gives the only file that came out."""
    command: list[str | Path] = [sys.executable, "-m", "build", f"--{kind}", "-o", out, source]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (found,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return found


def _try(wheel: Path, folder: Path) -> None:
    """Install a wheel into a fresh environment, without extras, and use it."""
    venv.create(folder / "fresh", with_pip=True)
    python = folder / "fresh" / "bin" / "python"
    code = example((ROOT / "README.md").read_text(encoding="utf-8"))
    nothing = "import importlib.util as i; assert not any(map(i.find_spec, '{}'.split()))"
    where = "import dpadapt, sys; assert dpadapt.__file__.startswith(sys.prefix)"
    tries: list[list[str | Path]] = [
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
        [python, "-c", f"{nothing.format(EXTRAS)}; {where}"],
        [python, "-c", code],
        [python.with_name("dpadapt"), "--version"],
        [python.with_name("dpadapt"), "--help"],
    ]
    for each in tries:
        subprocess.run(each, check=True, cwd=folder)  # away from the sources


def main() -> None:
    """Build both archives into ``dist``, try them, and print their digests."""
    shutil.rmtree(DIST, ignore_errors=True)
    wheel, sdist = _build("wheel", ROOT, DIST), _build("sdist", ROOT, DIST)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "sdist", filter="data")
        (source,) = (folder / "sdist").iterdir()
        other = differences(wheel, _build("wheel", source, folder / "again"))
        assert not other, f"the sdist builds another wheel: {other}"
        _try(wheel, folder)
    for path in (wheel, sdist):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(ROOT))


if __name__ == "__main__":
    main()
