"""SQLite files, opened for reading only: a mistyped path makes no new database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.data.text import PathLike, explain_unreadable, shown
from equipoise.errors import FormatError, InputError

MAGIC = b"SQLite format 3\0"


def open_sqlite(path: PathLike) -> sqlite3.Connection:
    """A connection that cannot write; what is no SQLite file is an error."""
    try:
        with open(path, "rb") as stream:
            start = stream.read(len(MAGIC))
    except (OSError, ValueError) as error:
        raise explain_unreadable(path, error) from error
    if start != MAGIC:
        raise InputError(
            f"{shown(path)} is no SQLite database", hint="a file of any other kind is read with --tree"
        )
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)


@contextmanager
def explained_damage(path: PathLike) -> Iterator[None]:
    """A database that SQLite cannot read is an error in the file, wherever the damage is met."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise FormatError(
            f"{shown(path)} is a damaged SQLite database: {error}",
            hint=f"sqlite3 {shown(path)} 'PRAGMA integrity_check' lists what is wrong",
        ) from error
