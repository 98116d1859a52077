"""The file of the cache: one SQLite database, opened, checked, and moved aside when it is damaged."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from equipoise.errors import StoreError

BUSY_SECONDS = 30.0
FORMAT = 1
APPLICATION = 0x45515643  # "EQVC": tells our files from other programs' databases

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

# Files that were begun without names get the table with the first of them.
NAMES = "CREATE TABLE IF NOT EXISTS names (identity TEXT PRIMARY KEY, name TEXT NOT NULL)"

# Bodies stand apart from their blocks: whoever marks a block as used would rewrite its whole row.
SCHEMA = f"""
CREATE TABLE spaces (id INTEGER PRIMARY KEY, identity TEXT NOT NULL, variant TEXT NOT NULL,
                     UNIQUE (identity, variant));
CREATE TABLE blocks (id INTEGER PRIMARY KEY, space INTEGER NOT NULL, vectors INTEGER NOT NULL,
                     dims INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE TABLE bodies (block INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE entries (key INTEGER PRIMARY KEY, slot INTEGER NOT NULL);
{NAMES};
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
"""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the database, made if there is none; raises ``sqlite3.Error``, OSError or ``StoreError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=16
    )
    try:
        _patiently(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(connection: sqlite3.Connection, path: Path) -> None:
    """Prepare the file; SQLite does not wait by itself while another process turns the log on."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            _prepare(connection, path)
            return
        except sqlite3.OperationalError as error:
            if code_of(error) not in _BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # In this order: tables and mark are committed together, so whoever sees the tables sees the mark after.
    (made,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if made and application != APPLICATION:
        raise StoreError(
            f"{path} is a database of another program", hint="set EQUIPOISE_CACHE to another folder"
        )
    if not made:
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if not made:
        _create(connection)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise StoreError(
            f"{path} was written by another version of equipoise (format {version}, not {FORMAT})",
            hint="set EQUIPOISE_CACHE to another folder, or remove the file",
        )


def _create(connection: sqlite3.Connection) -> None:
    with writing(connection):
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in SCHEMA.split(";"):
                connection.execute(statement)


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction that holds the write lock from its start; all of it happens, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def is_damage(error: BaseException) -> bool:
    """Whether the file itself is broken, rather than busy, full or out of reach."""
    return isinstance(error, sqlite3.Error) and code_of(error) in _DAMAGED


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else held the file for longer than we waited."""
    return code_of(error) in _BUSY


def code_of(error: sqlite3.Error) -> int:
    """The primary result code of SQLite; -1 where the error did not come from it."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF


def inode_of(path: Path) -> int | None:
    """Which file stands at the path now; None when there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def move_aside(path: Path, inode: int | None) -> Path | None:
    """Rename a damaged database and its log; None when another process has done so already.

    The log goes first: beside a new database it would be read as that one's.
    """
    target = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    with _alone(path) as held:
        if held is None or not held == inode == inode_of(path):
            return None
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.replace(f"{path}{suffix}", f"{target}{suffix}")
    return target


@contextmanager
def _alone(path: Path) -> Iterator[int | None]:
    """The inode of the file at the path, while no other process may move that file; None when there is none.

    Whoever waits here for the damaged file finds, when its turn comes, that another one stands at the path.
    """
    try:
        held = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield None
        return
    try:
        with suppress(ImportError):  # no such locks on Windows, where an open file cannot be renamed anyway
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX)
        yield os.fstat(held).st_ino
    finally:
        os.close(held)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    page, count, free = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_size", "page_count", "freelist_count")
    )
    return int(page * (count - free))


def disk_bytes(path: Path) -> int:
    """What the database and its log take up on the disk."""
    total = 0
    for each in (str(path), f"{path}-wal"):
        with suppress(OSError):
            total += os.stat(each).st_size
    return total


def give_back(connection: sqlite3.Connection) -> None:
    """Return free pages to the file system, and empty the log."""
    # A script is stepped to its end; execute() would stop after the first page.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
