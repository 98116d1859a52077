"""The storage of the vector cache: one SQLite file with an index of keys and blocks of packed vectors."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import StoreError

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors
    from equipoise.types import Bools, Ints

# The database file: open, verify, and move aside if damaged.

BUSY_SECONDS = 30.0
FORMAT_VERSION = 1
APPLICATION_ID = 0x45515643  # "EQVC": distinguishes cache files from other databases

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

# Older files without this table get it with the first name.
NAMES = "CREATE TABLE IF NOT EXISTS names (identity TEXT PRIMARY KEY, name TEXT NOT NULL)"

# Bodies have a separate table: marking a block as used would otherwise rewrite its body.
SCHEMA = f"""
CREATE TABLE spaces (id INTEGER PRIMARY KEY, identity TEXT NOT NULL, variant TEXT NOT NULL,
                     UNIQUE (identity, variant));
CREATE TABLE blocks (id INTEGER PRIMARY KEY, space INTEGER NOT NULL, vectors INTEGER NOT NULL,
                     dims INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE TABLE bodies (block INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE entries (key INTEGER PRIMARY KEY, slot INTEGER NOT NULL);
{NAMES};
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
"""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database, made if there is none; raises ``sqlite3.Error``, OSError or ``StoreError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=16
    )
    try:
        _retry_while_busy(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _retry_while_busy(connection: sqlite3.Connection, path: Path) -> None:
    """Prepare the file; SQLite does not wait while another process enables the log."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            _prepare(connection, path)
            return
        except sqlite3.OperationalError as error:
            if error_code(error) not in _BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # In this order: tables and application id are committed together, so a reader of the tables also reads the id.
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if n_tables and application != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program", hint="set EQUIPOISE_CACHE to another folder")
    if not n_tables:
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if not n_tables:
        _create(connection)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT_VERSION:
        raise StoreError(
            f"{path} was written by another version of equipoise (format {version}, not {FORMAT_VERSION})",
            hint="set EQUIPOISE_CACHE to another folder, or remove the file",
        )


def _create(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in SCHEMA.split(";"):
                connection.execute(statement)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction that holds the write lock from its start; all of it happens, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def is_corrupt(error: BaseException) -> bool:
    """Whether the file itself is damaged, not busy, full or inaccessible."""
    return isinstance(error, sqlite3.Error) and error_code(error) in _DAMAGED


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process locked the file for longer than the timeout."""
    return error_code(error) in _BUSY


def error_code(error: sqlite3.Error) -> int:
    """The primary result code of SQLite; -1 if the error is not from SQLite."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF


def file_inode(path: Path) -> int | None:
    """The inode of the file at the path; None if there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def quarantine_file(path: Path, inode: int | None) -> Path | None:
    """Rename a damaged database and its log; None when another process has done so already.

    The log is moved first: next to a new database it would be read as its log.
    """
    target = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    with _lock_for_quarantine(path) as lock:
        if lock is None or not lock == inode == file_inode(path):
            return None
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.replace(f"{path}{suffix}", f"{target}{suffix}")
    return target


@contextmanager
def _lock_for_quarantine(path: Path) -> Iterator[int | None]:
    """The inode of the file at the path, while no other process may move that file; None when there is none.

    A process that waits here for the damaged file then finds another file at the path.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield None
        return
    try:
        with suppress(ImportError):  # no such locks on Windows, where an open file cannot be renamed anyway
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    page, count, free = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
    )
    return int(page * (count - free))


def disk_bytes(path: Path) -> int:
    """The size of the database and its log on disk."""
    total = 0
    for file in (str(path), f"{path}-wal"):
        with suppress(OSError):
            total += os.stat(file).st_size
    return total


def vacuum(connection: sqlite3.Connection) -> None:
    """Return free pages to the file system, and empty the log."""
    # A script is stepped to its end; execute() would stop after the first page.
    connection.executescript("PRAGMA incremental_vacuum")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


# A block: some hundred vectors packed into one blob, with a checksum per row.

STORED_DTYPE = np.dtype("<f4")
DIGEST_SIZE = 16
_CRC = np.dtype("<u4")

Keys = NDArray[np.int64]
"""One row per text: its digest as two integers. The cache is indexed by the first one."""


def cache_keys(identity: str, variant: str, texts: Sequence[str]) -> Keys:
    """The digests of texts for a model and a variant of its use.

    >>> one, other = cache_keys("m", "query", ["a"]), cache_keys("m", "document", ["a"])
    >>> bool((one == cache_keys("m", "query", ["a"])).all()), bool((one == other).any())
    (True, False)
    """
    fields = "".join(f"{len(field)}:{field}" for field in (identity, variant, str(STORED_DTYPE)))
    prefix = blake2b(fields.encode("utf-8", "surrogatepass"), digest_size=DIGEST_SIZE).digest()
    digests = [
        blake2b(prefix + text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_SIZE).digest() for text in texts
    ]
    return np.frombuffer(b"".join(digests), dtype="<i8").reshape(-1, 2).astype(np.int64, copy=False)


def pack_block(keys: Keys, vectors: Vectors) -> bytes:
    """Digests, checksums and little-endian float32 rows, one after the other."""
    names = np.ascontiguousarray(keys, dtype="<i8")
    rows = np.ascontiguousarray(vectors, dtype=STORED_DTYPE)
    return b"".join([names.tobytes(), _checksums(names, rows).tobytes(), rows.tobytes()])


def unpack_block(body: bytes, rows: int, dims: int, rows_wanted: Ints, keys: Keys) -> tuple[Vectors, Bools]:
    """The vectors at these positions of a block, and which of them are valid.

    A row is invalid if its digest differs, its checksum fails or it is not finite; all rows are if
    the block has another length than its shape demands.
    """
    if len(body) != block_nbytes(rows, dims) or rows_wanted.max(initial=0) >= rows:
        return np.zeros((len(rows_wanted), dims), dtype=np.float32), np.zeros(len(rows_wanted), dtype=np.bool_)
    names = np.frombuffer(body, dtype="<i8", count=2 * rows).reshape(rows, 2)[rows_wanted]
    checksums = np.frombuffer(body, dtype=_CRC, count=rows, offset=DIGEST_SIZE * rows)[rows_wanted]
    vectors = np.frombuffer(body, dtype=STORED_DTYPE, offset=(DIGEST_SIZE + _CRC.itemsize) * rows)
    chosen = vectors.reshape(rows, dims)[rows_wanted]
    is_intact = (names == keys).all(axis=1) & (checksums == _checksums(names, chosen))
    return chosen.astype(np.float32, copy=False), is_intact & np.isfinite(chosen).all(axis=1)


def block_nbytes(rows: int, dims: int) -> int:
    """The length of a block of this shape."""
    return rows * (DIGEST_SIZE + _CRC.itemsize + dims * STORED_DTYPE.itemsize)


def _checksums(names: NDArray[np.int64], rows: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Each row's CRC-32 over its digest and its values, so that neither can be exchanged with another row's."""
    crc = zlib.crc32
    return np.array(
        [crc(row, crc(name)) for name, row in zip(names, rows, strict=True)],
        dtype=_CRC,
    )


_BLOCK_BYTES = 512 * 1024  # large enough to read fast, small enough to be read for one vector
_ROW_BITS = 1 << 16
_PARAMETERS = 900
_MISSING = -1


class BlockInfo(NamedTuple):
    """The catalogue entry of a block; ``used`` is the time of its last use, in seconds."""

    vectors: int
    dims: int
    used: int


@dataclass(frozen=True, slots=True)
class CachedRows:
    """The known keys: position among the requested ones, row, and validity."""

    positions: Ints
    vectors: Vectors
    is_intact: Bools
    blocks: dict[int, BlockInfo]


TOKEN_COUNTS = " tokens"
"""The end of the name of a variant that has the number of tokens of each text instead of its vector."""


@dataclass(frozen=True, slots=True)
class ModelCacheSize:
    """The share of one model with one variant of its use: vectors, or token counts of texts."""

    identity: str
    variant: str
    vectors: int
    bytes: int
    name: str = ""
    """The display name of the model, if given."""
    token_counts: int = 0


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The content of the cache: vectors, bytes in use, the limit, token counts, and the share of each model.

    ``file_bytes`` is the size of the file and its log, including free pages.
    """

    vectors: int
    bytes: int
    max_bytes: int
    file_bytes: int = 0
    token_counts: int = 0
    spaces: tuple[ModelCacheSize, ...] = field(default=(), repr=False)


def read_rows(db: sqlite3.Connection, keys: Keys, dims: int | None) -> CachedRows:
    """Look up the keys. Without ``dims``, the length of most rows is assumed."""
    slots = _slots(db, keys[:, 0])
    positions = np.flatnonzero(slots != _MISSING)
    positions = positions[np.argsort(slots[positions], kind="stable")]
    slots = slots[positions]
    numbers = slots // _ROW_BITS
    blocks = _shapes(db, np.unique(numbers))
    width = _commonest_dims(blocks) if dims is None else dims
    vectors = np.empty((len(positions), width), dtype=np.float32)
    is_intact = np.zeros(len(positions), dtype=np.bool_)
    for start, end in _equal_runs(numbers):
        number = int(numbers[start])
        shape = blocks.get(number)
        if shape is not None and shape.dims == width:
            vectors[start:end], is_intact[start:end] = unpack_block(
                _body(db, number), shape.vectors, width, slots[start:end] % _ROW_BITS, keys[positions[start:end]]
            )
    return CachedRows(positions, vectors, is_intact, blocks)


def write_rows(
    db: sqlite3.Connection,
    identity: str,
    variant: str,
    keys: Keys,
    vectors: Vectors,
    now: int,
    block_bytes: int = _BLOCK_BYTES,
) -> None:
    """Add the vectors whose keys are not there yet, in one transaction; no block exceeds ``block_bytes``."""
    with transaction(db):
        new = _slots(db, keys[:, 0]) == _MISSING
        keys, vectors = keys[new], vectors[new]
        if not len(keys):
            return
        space = _space(db, identity, variant)
        step = max(1, min(_ROW_BITS, min(block_bytes, _BLOCK_BYTES) // block_nbytes(1, vectors.shape[1])))
        for start in range(0, len(keys), step):
            _write_block(db, space, keys[start : start + step], vectors[start : start + step], now)


def delete_keys(db: sqlite3.Connection, keys: Ints) -> None:
    """Take keys out of the index, so that they can be written again."""
    with transaction(db):
        db.executemany("DELETE FROM entries WHERE key = ?", ((key,) for key in keys.tolist()))


def mark_used(db: sqlite3.Connection, numbers: list[int], now: int) -> None:
    """Record that these blocks were used."""
    with transaction(db):
        db.executemany("UPDATE blocks SET used = ? WHERE id = ?", ((now, number) for number in numbers))


def name_identity(db: sqlite3.Connection, identity: str, name: str) -> None:
    """Store the name of the model."""
    with transaction(db):
        db.execute(NAMES)
        db.execute("INSERT OR REPLACE INTO names VALUES (?, ?)", (_storable(identity), _storable(name)))


def evict_least_recent(db: sqlite3.Connection, bound: int) -> int:
    """Delete the least recently used blocks until the rest fits; returns the number of entries deleted."""
    total = 0
    while used_bytes(db) > bound and (dropped := _drop_excess(db, bound)) is not None:
        total += dropped
    return total


def _drop_excess(db: sqlite3.Connection, bound: int) -> int | None:
    """One round of eviction: blocks that share pages free fewer bytes than their size. None if there are no blocks."""
    with transaction(db):
        excess = used_bytes(db) - bound
        deleted_blocks: list[tuple[int]] = []
        oldest = db.execute(
            "SELECT blocks.id, coalesce(length(body), 0) FROM blocks LEFT JOIN bodies ON block = blocks.id"
            " ORDER BY used, blocks.id"
        )
        for number, length in oldest:
            if excess <= 0:
                break
            deleted_blocks.append((number,))
            excess -= length
        oldest.close()
        db.executemany("DELETE FROM blocks WHERE id = ?", deleted_blocks)
        db.executemany("DELETE FROM bodies WHERE block = ?", deleted_blocks)
        db.execute("DELETE FROM spaces WHERE id NOT IN (SELECT space FROM blocks)")
        dropped = db.execute(f"DELETE FROM entries WHERE slot / {_ROW_BITS} NOT IN (SELECT id FROM blocks)")
        return dropped.rowcount if deleted_blocks else None


def cache_size(db: sqlite3.Connection, max_bytes: int, file_bytes: int) -> CacheSize:
    """The content of the cache, in total and per model, the largest first."""
    has_names = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'names'").fetchone()[0]
    names = dict(db.execute("SELECT identity, name FROM names")) if has_names else {}
    rows = db.execute(
        "SELECT identity, variant, sum(vectors), sum(length(body)) FROM spaces"
        " JOIN blocks ON space = spaces.id JOIN bodies ON block = blocks.id"
        " GROUP BY spaces.id ORDER BY 4 DESC, 1, 2"
    ).fetchall()
    (entries,) = db.execute("SELECT count(*) FROM entries").fetchone()
    spaces = tuple(
        ModelCacheSize(identity, variant, 0, size, names.get(identity, ""), count)
        if variant.endswith(TOKEN_COUNTS)
        else ModelCacheSize(identity, variant, count, size, names.get(identity, ""))
        for identity, variant, count, size in rows
    )
    token_counts = sum(space.token_counts for space in spaces)
    return CacheSize(entries - token_counts, used_bytes(db), max_bytes, file_bytes, token_counts, spaces)


def _slots(db: sqlite3.Connection, keys: Ints) -> Ints:
    """The position of each key's vector, block and row in one number."""
    key_list = keys.tolist()
    slot_of: dict[int, int] = {}
    for chunk in _chunks(key_list):
        marks = ",".join("?" * len(chunk))
        slot_of.update(db.execute(f"SELECT key, slot FROM entries WHERE key IN ({marks})", chunk))
    return np.array([slot_of.get(key, _MISSING) for key in key_list], dtype=np.int64)


def _shapes(db: sqlite3.Connection, numbers: Ints) -> dict[int, BlockInfo]:
    shapes: dict[int, BlockInfo] = {}
    for chunk in _chunks(numbers.tolist()):
        query = f"SELECT id, vectors, dims, used FROM blocks WHERE id IN ({','.join('?' * len(chunk))})"
        shapes.update({number: BlockInfo(*values) for number, *values in db.execute(query, chunk)})
    return shapes


def _body(db: sqlite3.Connection, number: int) -> bytes:
    """The bytes of a block; empty if it was deleted."""
    row = db.execute("SELECT body FROM bodies WHERE block = ?", (number,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], bytes) else b""


def _space(db: sqlite3.Connection, identity: str, variant: str) -> int:
    """The number of a model and a variant; it is used only to report sizes."""
    words = (_storable(identity), _storable(variant))
    db.execute("INSERT OR IGNORE INTO spaces (identity, variant) VALUES (?, ?)", words)
    query = "SELECT id FROM spaces WHERE identity = ? AND variant = ?"
    return int(db.execute(query, words).fetchone()[0])


def _storable(word: str) -> str:
    """The text with lone surrogates escaped, which SQLite cannot store."""
    return word.encode("utf-8", "backslashreplace").decode()


def _write_block(db: sqlite3.Connection, space: int, keys: Keys, vectors: Vectors, now: int) -> None:
    count, dims = vectors.shape
    (number,) = db.execute(
        "INSERT INTO blocks (space, vectors, dims, used) VALUES (?, ?, ?, ?) RETURNING id",
        (space, count, dims, now),
    ).fetchone()
    db.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?)", (number, pack_block(keys, vectors)))
    slots = range(number * _ROW_BITS, number * _ROW_BITS + count)
    db.executemany("INSERT INTO entries VALUES (?, ?)", zip(keys[:, 0].tolist(), slots, strict=True))


def _commonest_dims(blocks: dict[int, BlockInfo]) -> int:
    votes: dict[int, int] = {}
    for shape in blocks.values():
        votes[shape.dims] = votes.get(shape.dims, 0) + shape.vectors
    return max(votes, key=lambda dims: (votes[dims], dims), default=0)


def _chunks(values: list[int]) -> Iterator[list[int]]:
    """Lists that fit into one statement."""
    for start in range(0, len(values), _PARAMETERS):
        yield values[start : start + _PARAMETERS]


def _equal_runs(values: Ints) -> Iterator[tuple[int, int]]:
    """Start and end of each run of equal values."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    yield from ((start, end) for start, end in pairwise(edges) if end > start)
