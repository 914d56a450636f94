"""A PostgreSQL database for tests: the one of DPADAPT_TEST_POSTGRES, or a temporary server."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "tell-nobody"  # of the temporary server, which listens on a socket in a private folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a server that the tests may use; without one the test is skipped."""
    if url := os.environ.get("DPADAPT_TEST_POSTGRES"):
        yield url
        return
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL: set DPADAPT_TEST_POSTGRES or install the server")
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        yield from _serve(programs, Path(folder))


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """URL of a database without tables: a fresh schema, dropped afterwards."""
    psycopg = pytest.importorskip("psycopg")
    schema = f"dpadapt_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        mark = "&" if "?" in postgres_server else "?"
        yield f"{postgres_server}{mark}options=-csearch_path%3D{schema}"
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


def _programs() -> Path | None:
    """Folder of initdb and pg_ctl: in the PATH, or where Debian puts them."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    return max(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None
    )


def _serve(programs: Path, folder: Path) -> Iterator[str]:
    secret, data = folder / "password", folder / "data"
    secret.write_text(PASSWORD)
    user = _unprivileged(folder, secret)

    def run(*command: str | Path) -> None:
        subprocess.run(
            command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120, **user
        )

    run(
        *(programs / "initdb", "-D", data, "--username=dpadapt", f"--pwfile={secret}"),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"),
    )
    # a socket in the private folder, no network at all
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    control = programs / "pg_ctl"
    run(control, "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
    try:
        yield f"postgresql://dpadapt:{PASSWORD}@/postgres?host={folder}&connect_timeout=600"
    finally:
        run(control, "-D", data, "-m", "immediate", "-w", "stop")


def _unprivileged(folder: Path, *files: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: become another user, who then owns the folder."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    entry = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    for path in (folder, *files):
        os.chown(path, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
