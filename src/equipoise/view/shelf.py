"""What lies in a results folder: every run directory as one row, and the work that is under way."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from time import monotonic

from equipoise.errors import EquipoiseError, StoreError
from equipoise.run.find import find_runs
from equipoise.run.folder import FILES, MANIFEST
from equipoise.run.progress import UnderWay, find_under_way
from equipoise.view.row import Row, row_of

OFTEN = 0.5
"""Seconds between two looks at the disk, at the least."""
REST = 5
"""A look that took a second is followed by a rest of this many."""


@dataclass(frozen=True)
class Shelf:
    """The runs of a folder, the newest first, and what is under way; equal versions have equal content."""

    rows: tuple[Row, ...]
    under_way: tuple[UnderWay, ...]
    version: str
    note: str = ""

    @property
    def by_key(self) -> Mapping[str, Row]:
        """The rows by what names them in an address."""
        return {row.key: row for row in self.rows}


class Library:
    """A results folder that is looked at again when someone asks, though not more often than is bearable."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock = Lock()
        self._rows: dict[str, Row] = {}
        self._shelf: Shelf | None = None
        self._until = 0.0

    def shelf(self) -> Shelf:
        """The folder as it is now, or was a moment ago."""
        with self._lock:
            if self._shelf is None or monotonic() >= self._until:
                start = monotonic()
                self._shelf = self._look()
                took = monotonic() - start
                self._until = start + took + max(OFTEN, REST * took)
            return self._shelf

    def _look(self) -> Shelf:
        paths, note = self._found()
        rows = {key: self._row(key, path) for path in paths for key in [key_of(path, self.root)]}
        self._rows = rows
        newest_first = sorted(rows.values(), key=lambda row: row.key)
        newest_first.sort(key=lambda row: row.ended, reverse=True)
        under_way = tuple(
            replace(each, folder=each.folder.relative_to(self.root)) for each in find_under_way(self.root)
        )
        seen = repr([(row.key, row.fingerprint) for row in newest_first]) + repr(under_way) + note
        return Shelf(tuple(newest_first), under_way, digest(seen), note)

    def _found(self) -> tuple[list[Path], str]:
        """The run directories; or none, and why, where that is more than an empty folder."""
        try:
            return find_runs(self.root), ""
        except StoreError as error:
            empty = self.root.is_dir() and not (self.root / MANIFEST).exists()
            return [], "" if empty else error.sentence

    def _row(self, key: str, path: Path) -> Row:
        fingerprint = fingerprint_of(path)
        known = self._rows.get(key)
        if known is not None and known.fingerprint == fingerprint:
            return known
        stray = leads_out(path, self.root)
        if stray:
            return Row.unreadable(key, path, fingerprint, f"{stray} is a link that leads out of the folder")
        try:
            return row_of(key, path, fingerprint)
        except EquipoiseError as error:
            return Row.unreadable(key, path, fingerprint, error.sentence)


def key_of(path: Path, root: Path) -> str:
    """What names a run in an address: its path below the folder, with bytes that are no text spelled out.

    >>> key_of(Path("/results/a/bm25"), Path("/results"))
    'a/bm25'
    """
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")


def leads_out(run: Path, root: Path) -> str:
    """The first file of a run that lies outside the folder, by way of a link; empty where all are inside."""
    return next((name for name in FILES if not (run / name).resolve().is_relative_to(root)), "")


def fingerprint_of(run: Path) -> str:
    """A digest that changes whenever a file of the run is replaced; nothing is read for it."""
    seen: list[tuple[str, int, int, int]] = []
    for name in FILES:
        try:
            state = (run / name).stat()
        except OSError:
            continue
        seen.append((name, state.st_ino, state.st_mtime_ns, state.st_size))
    return digest(repr(seen))


def digest(text: str) -> str:
    """A short name for a long text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
