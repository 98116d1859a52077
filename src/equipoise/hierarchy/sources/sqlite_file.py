"""SQLite files, opened for reading only: a mistyped path makes no new database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from equipoise.data.text import PathLike, explain_unreadable, shown
from equipoise.errors import InputError

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
