"""The vector cache: vectors on disk by content, so that no text is embedded twice.

A vector is found by a digest of the model's identity, the variant of its use (role and prompt), the way it
is stored and the text itself. Several processes may read and write at once. A damaged row, or a damaged file,
is detected and counts as missing; if the file cannot be written, work continues without a cache and a finding
reports it. The cache never makes a run fail.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import EquipoiseError, NotFiniteError, ParameterError, ShapeError
from equipoise.io.atomic import write_text
from equipoise.models import vector_cache_storage
from equipoise.models.vector_cache_storage import CacheSize, Keys, cache_keys
from equipoise.types import Closable

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors
    from equipoise.types import Ints

# Sizes in bytes with units.

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """A number of bytes: ``500 MB`` is 500,000,000 and ``2 GiB`` is 2 * 1024**3.

    >>> parse_bytes("500MB"), parse_bytes("2 GiB"), parse_bytes("4096")
    (500000000, 2147483648, 4096)
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ParameterError(f"{text!r} is not a size in bytes", hint="write it like 500MB or 2GiB")
    number, unit, suffix = match.groups()
    base = 1024 if (suffix or "").casefold() == "ib" else 1000
    return int(float(number) * base ** _UNITS[unit.casefold()])


def format_bytes(amount: int) -> str:
    """An amount in the largest unit that leaves a number of at least one.

    >>> format_bytes(999), format_bytes(1_540_000), format_bytes(16 * 1024**3)
    ('999 B', '1.5 MB', '17.2 GB')
    """
    size = float(amount)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


Vector = NDArray[np.float32]
T = TypeVar("T")

FILE = "vectors.sqlite"
MAX_BYTES = 16 * 1024**3
AFTER_PRUNING = 0.9
"""The fill level after pruning, so that pruning is rare."""

OFF = "off"
"""The value of ``EQUIPOISE_CACHE`` that disables the cache."""

_LEAST_BLOCKS = 8
"""A small cache has smaller blocks, so that dropping one does not empty it."""

_REFRESH_SECONDS = 60
_MEASUREMENTS = "throughput"
MEASUREMENT_SECONDS = 3600
"""After an hour a stored throughput is measured again: the machine may have been busy."""
_ABANDONED: list[Any] = []
"""Connections of a parent process: kept alive, since collecting them would close them."""


@dataclass(frozen=True, slots=True)
class CacheHits:
    """The texts with cached vectors: their indexes, ascending, and one row for each."""

    positions: Ints
    vectors: Vectors


def cache_folder() -> Path:
    """The folder of derived files: ``EQUIPOISE_CACHE``, or the user's cache folder."""
    folder = os.environ.get("EQUIPOISE_CACHE")
    if folder and not is_disabled():
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "equipoise"


def is_disabled() -> bool:
    """Whether ``EQUIPOISE_CACHE=off`` disables the cache."""
    return os.environ.get("EQUIPOISE_CACHE", "").strip().casefold() == OFF


def document_folder() -> Path | None:
    """The folder of the extracted texts of documents; None if the cache is disabled."""
    return None if is_disabled() else cache_folder() / "documents"


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """The number and size of the extracted texts of documents."""

    texts: int
    bytes: int


def stored_texts(max_bytes: int | None = None) -> StoredTexts:
    """The stored texts of documents; with ``max_bytes`` the oldest are removed first until the rest fits."""
    folder = document_folder()
    files = [] if folder is None else [(path, path.stat()) for path in folder.glob("*.txt")]
    files.sort(key=lambda file: file[1].st_mtime_ns)
    size = sum(status.st_size for _, status in files)
    while files and max_bytes is not None and size > max_bytes:
        path, status = files.pop(0)
        path.unlink(missing_ok=True)
        size -= status.st_size
    return StoredTexts(len(files), size)


def default_max_bytes() -> int:
    """The bound that ``EQUIPOISE_CACHE_BYTES`` sets, such as ``50GB``, or 16 GiB."""
    limit = os.environ.get("EQUIPOISE_CACHE_BYTES")
    return parse_bytes(limit) if limit else MAX_BYTES


class CacheProblem(NamedTuple):
    """A problem with the cache file, and a hint."""

    subject: str
    message: str
    hint: str


class VectorCache(Closable):
    """A store of vectors by content; opened at its first use.

    ``path`` is the file, by default in the cache folder. When the file grows past ``max_bytes``, the
    vectors that were not used for longest are dropped. ``problems`` lists what could not
    be stored, and why; ``damaged`` counts the rows with a wrong checksum.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        max_bytes: int | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path) if path is not None else cache_folder() / FILE
        self.max_bytes = _bound(default_max_bytes() if max_bytes is None else max_bytes)
        self.damaged = 0
        self._clock = clock
        self._problems: list[CacheProblem] = []
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._process = os.getpid()
        self._off = False
        self._names: dict[str, str] = {}

    @classmethod
    def default(cls) -> VectorCache | None:
        """The shared cache of this process; None if ``EQUIPOISE_CACHE=off``."""
        return None if is_disabled() else _shared_cache(cache_folder() / FILE, default_max_bytes())

    def __repr__(self) -> str:
        return f"Cache({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.path, self.max_bytes))

    @property
    def working(self) -> bool:
        """False after the file proved unusable; then nothing is read or written."""
        return not self._off

    @property
    def problems(self) -> tuple[CacheProblem, ...]:
        """The problem with the file, if any."""
        return tuple(self._problems)

    def get_many(self, identity: str, variant: str, texts: Sequence[str], dims: int | None = None) -> dict[int, Vector]:
        """The cached vectors, by the index of their text."""
        hits = self.lookup(identity, variant, texts, dims)
        return dict(zip(hits.positions.tolist(), hits.vectors, strict=True))

    def lookup(self, identity: str, variant: str, texts: Sequence[str], dims: int | None = None) -> CacheHits:
        """The cached vectors as one matrix; a row of another length than ``dims`` is damaged."""
        keys = cache_keys(identity, variant, texts)
        no_hits = CacheHits(np.empty(0, dtype=np.int64), np.empty((0, dims or 0), dtype=np.float32))
        return self._guarded(lambda db: self._lookup(db, keys, dims), no_hits)

    def put_many(self, identity: str, variant: str, texts: Sequence[str], vectors: Vectors) -> None:
        """Store the vectors of these texts: all of them or, if the process is killed, none.

        A text that is cached already keeps its vector.
        """
        matrix = np.asarray(vectors, dtype=np.float32)
        if matrix.ndim != 2 or len(matrix) != len(texts):
            raise ShapeError(f"{len(texts)} texts were given with vectors of shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise NotFiniteError("a vector with NaN or infinity is not cached", hint="the model failed on it")
        keys = cache_keys(identity, variant, texts)
        first = np.sort(np.unique(keys[:, 0], return_index=True)[1])
        if matrix.size:
            self._guarded(lambda db: self._put(db, identity, variant, keys[first], matrix[first]), None)

    def note_name(self, identity: str, name: str) -> None:
        """Set the display name of this model; stored with its next vectors."""
        if name:
            self._names[identity] = name

    def read_measurement(self, key: str, *, max_age: float = inf) -> dict[str, float] | None:
        """What ``write_measurement`` stored on this machine; None if there is nothing, or it is older in seconds."""
        with suppress(OSError, ValueError, TypeError, AttributeError):
            file = self._measurement_file(key)
            if time.time() - file.stat().st_mtime > max_age:
                return None
            content = json.loads(file.read_text(encoding="utf-8"))
            return {name: float(value) for name, value in content.items()}
        return None

    def write_measurement(self, key: str, values: Mapping[str, float]) -> None:
        """Store what was measured while texts were embedded: vectors from the cache take no time."""
        file = self._measurement_file(key)
        with suppress(OSError, EquipoiseError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, json.dumps(dict(values)))

    def _measurement_file(self, key: str) -> Path:
        name = sha256(f"{platform.node()} {key}".encode()).hexdigest()[:32]
        return self.path.parent / _MEASUREMENTS / f"{name}.json"

    def size(self) -> CacheSize:
        """The content of the cache, in total and per model."""
        return self._guarded(
            lambda db: vector_cache_storage.cache_size(db, self.max_bytes, vector_cache_storage.disk_bytes(self.path)),
            CacheSize(0, 0, self.max_bytes),
        )

    def prune(self, max_bytes: int | None = None) -> int:
        """Drop what was not used for longest until the file fits the bound; returns the number of entries dropped."""
        bound = self.max_bytes if max_bytes is None else _bound(max_bytes)

        def work(db: sqlite3.Connection) -> int:
            dropped = vector_cache_storage.evict_least_recent(db, bound)
            vector_cache_storage.vacuum(db)
            return dropped

        return self._guarded(work, 0)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._process == os.getpid() and self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        with suppress(AttributeError):  # an object whose __init__ failed
            self.close()

    def _lookup(self, db: sqlite3.Connection, keys: Keys, dims: int | None) -> CacheHits:
        cached = vector_cache_storage.read_rows(db, keys, dims)
        if not cached.is_intact.all():
            damaged = keys[cached.positions[~cached.is_intact], 0]
            self.damaged += len(damaged)
            vector_cache_storage.delete_keys(db, damaged)
        self._touch(db, cached.blocks)
        positions, vectors = (
            (cached.positions, cached.vectors)
            if cached.is_intact.all()
            else (cached.positions[cached.is_intact], cached.vectors[cached.is_intact])
        )
        if (np.diff(positions) > 0).all():
            return CacheHits(positions, vectors)
        order = np.argsort(positions)
        return CacheHits(positions[order], vectors[order])

    def _touch(self, db: sqlite3.Connection, blocks: dict[int, vector_cache_storage.BlockInfo]) -> None:
        """Record that the blocks were used, at most once a minute, so that reading rarely writes."""
        now = int(self._clock())
        stale = [number for number, shape in blocks.items() if shape.used <= now - _REFRESH_SECONDS]
        if not stale:
            return
        try:
            vector_cache_storage.mark_used(db, stale, now)
        except sqlite3.OperationalError as error:
            if not vector_cache_storage.is_busy(error):
                raise

    def _put(self, db: sqlite3.Connection, identity: str, variant: str, keys: Keys, matrix: Vectors) -> None:
        most = max(1, self.max_bytes // _LEAST_BLOCKS)
        vector_cache_storage.write_rows(db, identity, variant, keys, matrix, int(self._clock()), most)
        name = self._names.pop(identity, "")
        if name:
            vector_cache_storage.name_identity(db, identity, name)
        if vector_cache_storage.disk_bytes(self.path) > self.max_bytes:
            self._shrink(db)

    def _shrink(self, db: sqlite3.Connection) -> None:
        """Make the file fit its bound: drop vectors if they are too many, then free pages and the log."""
        if vector_cache_storage.used_bytes(db) > self.max_bytes:
            vector_cache_storage.evict_least_recent(db, int(self.max_bytes * AFTER_PRUNING))
        vector_cache_storage.vacuum(db)

    def _guarded(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Run the work; a damaged file is replaced by a new one, and any other problem disables the cache."""
        with self._lock:
            for attempt in range(2):
                if self._off:
                    break
                try:
                    return work(self._open())
                except (sqlite3.Error, OSError, EquipoiseError) as error:
                    self.close()
                    if attempt or not vector_cache_storage.is_corrupt(error):
                        self._switch_off(error)
                    else:
                        self._replace_file()
            return otherwise

    def _open(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            # A connection must not cross a fork, and closing it here would drop the parent's locks.
            _ABANDONED.append(self._connection)
            self._connection, self._process = None, os.getpid()
        if self._connection is None:
            self._inode = vector_cache_storage.file_inode(self.path)
            self._connection = vector_cache_storage.open_database(self.path)
            self._inode = self._inode or vector_cache_storage.file_inode(self.path)
        return self._connection

    def _replace_file(self) -> None:
        try:
            quarantined = vector_cache_storage.quarantine_file(self.path, self._inode)
        except OSError as error:
            self._switch_off(error)
            return
        if quarantined is not None:
            self._add_problem(
                f"the file was damaged; it was moved to {quarantined.name} and a new one begun",
                f"remove {quarantined} once it is of no more interest",
            )

    def _switch_off(self, error: Exception) -> None:
        self._off = True
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "make the folder writable, free some space, or set EQUIPOISE_CACHE to another folder"
        if isinstance(error, EquipoiseError) and error.hint:
            hint = error.hint
        self._add_problem(f"it cannot be used ({reason}); vectors are computed and not cached", hint)

    def _add_problem(self, sentence: str, hint: str) -> None:
        self._problems.append(CacheProblem(f"the vector cache {self.path}", sentence, hint))


@cache
def _shared_cache(path: Path, max_bytes: int) -> VectorCache:
    """One cache per file and size limit; closed when the process ends."""
    shared_cache = VectorCache(path, max_bytes)
    atexit.register(shared_cache.close)
    return shared_cache


def _bound(max_bytes: int) -> int:
    if max_bytes < 0:
        raise ParameterError(f"a cache cannot have {max_bytes} bytes", hint="max_bytes is 0 or more")
    return max_bytes
