"""Files of a test, and servers of PostgreSQL and MariaDB that are started once per session."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from marked import marked
from postgres_server import started


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """A function that writes a text to a file with a name."""

    def write_file(text: str, name: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write_file


@pytest.fixture(scope="session")
@marked(pytest.mark.slow)
def postgres() -> Iterator[str]:
    """The address of a temporary server, stopped at the end."""
    with started() as address:
        yield address


@pytest.fixture(scope="session")
@marked(pytest.mark.slow)
def icu_postgres() -> Iterator[str]:
    """The address of Debian's PostgreSQL, which has case-insensitive collations."""
    psycopg = pytest.importorskip("psycopg")
    server_paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not server_paths:
        pytest.skip("no PostgreSQL with ICU: apt install postgresql")
    with _folder("postgres") as (folder, user):
        initdb = [server_paths[-1].with_name("initdb"), "-D", folder / "data", "-U", "postgres", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, user=user)
        command = [server_paths[-1], "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-F"]
        with _serving(command, folder / ".s.PGSQL.5432", folder, user):
            # The socket exists before the server accepts connections.
            for _ in range(300):
                with suppress(psycopg.OperationalError):
                    psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()
                    break
                time.sleep(0.1)
            yield f"postgresql:///postgres?host={folder}&user=postgres"


@pytest.fixture(scope="session")
@marked(pytest.mark.slow)
def mariadb() -> Iterator[str]:
    """The address of a temporary MariaDB server."""
    server, install = (shutil.which(name) for name in ("mariadbd", "mariadb-install-db"))
    if server is None or install is None or find_spec("pymysql") is None:
        pytest.skip("no MariaDB: apt install mariadb-server, and pip install pymysql")
    with _folder("mysql") as (folder, user):
        options = [f"--datadir={folder / 'data'}", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0"]
        auth_options = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run([install, *auth_options, *options], check=True, capture_output=True, cwd=folder, user=user)
        socket = folder / "s"
        command = [server, "--no-defaults", *options, "--skip-networking", f"--socket={socket}"]
        with _serving(command, socket, folder, user):
            yield f"mysql://root@localhost/mysql?unix_socket={socket}"


@contextmanager
def _folder(server_user: str) -> Iterator[tuple[Path, str | None]]:
    """A folder for a server and the user that runs it: servers do not run as root."""
    with tempfile.TemporaryDirectory(prefix="eq-") as name:
        user = server_user if os.geteuid() == 0 else None
        if user is not None:
            try:
                shutil.chown(name, user)
            except LookupError:
                pytest.skip(f"there is no user {user}")
        yield Path(name), user


@contextmanager
def _serving(command: list[Any], socket: Path, folder: Path, user: str | None) -> Iterator[None]:
    """A running server, from the creation of its socket to its end."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=folder, user=user) as server:
        try:
            for _ in range(600):
                if socket.exists() or server.poll() is not None:
                    break
                time.sleep(0.05)
            assert socket.exists(), "the server did not start"
            yield
        finally:
            server.terminate()
