"""What stands in the cache's database: an index from keys to places, and blocks of packed vectors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from equipoise.embed.cache.block import Keys, bytes_needed, pack, unpack
from equipoise.embed.cache.file import NAMES, used_bytes, writing
from equipoise.embed.encoder import Vectors
from equipoise.types import Bools, Ints

_BLOCK_BYTES = 512 * 1024  # large enough to read fast, small enough to be read for one vector
_PLACES = 1 << 16
_PARAMETERS = 900
_ABSENT = -1


class Shape(NamedTuple):
    """What is known of a block without reading it; ``used`` is when, in seconds."""

    vectors: int
    dims: int
    used: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Every key that the index knows: its index among those asked for, its row, and whether to trust it."""

    places: Ints
    vectors: Vectors
    sound: Bools
    blocks: dict[int, Shape]


@dataclass(frozen=True, slots=True)
class SpaceSize:
    """What one model, used in one way, takes up."""

    identity: str
    variant: str
    vectors: int
    bytes: int
    name: str = ""
    """The model as people know it, where that was said."""


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How much is kept: vectors, bytes of the file in use, the bound, and the share of each model.

    ``file_bytes`` is what the file and its log take up on the disk, room for more vectors included.
    """

    vectors: int
    bytes: int
    max_bytes: int
    file_bytes: int = 0
    spaces: tuple[SpaceSize, ...] = field(default=(), repr=False)


def read(db: sqlite3.Connection, keys: Keys, dims: int | None) -> Reading:
    """Look the keys up. Without ``dims``, the length that most rows have is taken for the right one."""
    slots = _slots(db, keys[:, 0])
    where = np.flatnonzero(slots != _ABSENT)
    where = where[np.argsort(slots[where], kind="stable")]
    slots = slots[where]
    numbers = slots // _PLACES
    blocks = _shapes(db, np.unique(numbers))
    width = _commonest_dims(blocks) if dims is None else dims
    vectors = np.empty((len(where), width), dtype=np.float32)
    sound = np.zeros(len(where), dtype=np.bool_)
    for start, end in _stretches(numbers):
        number = int(numbers[start])
        shape = blocks.get(number)
        if shape is not None and shape.dims == width:
            vectors[start:end], sound[start:end] = unpack(
                _body(db, number), shape.vectors, width, slots[start:end] % _PLACES, keys[where[start:end]]
            )
    return Reading(where, vectors, sound, blocks)


def write(
    db: sqlite3.Connection,
    identity: str,
    variant: str,
    keys: Keys,
    vectors: Vectors,
    now: int,
    block_bytes: int = _BLOCK_BYTES,
) -> None:
    """Add the vectors whose keys are not there yet, in one transaction; no block exceeds ``block_bytes``."""
    with writing(db):
        new = _slots(db, keys[:, 0]) == _ABSENT
        keys, vectors = keys[new], vectors[new]
        if not len(keys):
            return
        space = _space(db, identity, variant)
        step = max(1, min(_PLACES, min(block_bytes, _BLOCK_BYTES) // bytes_needed(1, vectors.shape[1])))
        for start in range(0, len(keys), step):
            _write_block(db, space, keys[start : start + step], vectors[start : start + step], now)


def forget(db: sqlite3.Connection, keys: Ints) -> None:
    """Take keys out of the index, so that they can be written again."""
    with writing(db):
        db.executemany("DELETE FROM entries WHERE key = ?", ((key,) for key in keys.tolist()))


def touch(db: sqlite3.Connection, numbers: list[int], now: int) -> None:
    """Note that these blocks were used."""
    with writing(db):
        db.executemany("UPDATE blocks SET used = ? WHERE id = ?", ((now, number) for number in numbers))


def name_identity(db: sqlite3.Connection, identity: str, name: str) -> None:
    """Remember what people call this model."""
    with writing(db):
        db.execute(NAMES)
        db.execute("INSERT OR REPLACE INTO names VALUES (?, ?)", (_storable(identity), _storable(name)))


def drop_oldest(db: sqlite3.Connection, bound: int) -> int:
    """Delete the blocks that were not used for longest until the rest fits; returns the vectors dropped."""
    total = 0
    while used_bytes(db) > bound and (dropped := _drop_excess(db, bound)) is not None:
        total += dropped
    return total


def _drop_excess(db: sqlite3.Connection, bound: int) -> int | None:
    """One round of it: blocks that share pages free fewer bytes than they have. None if there were none."""
    with writing(db):
        excess = used_bytes(db) - bound
        doomed: list[tuple[int]] = []
        oldest = db.execute(
            "SELECT blocks.id, coalesce(length(body), 0) FROM blocks LEFT JOIN bodies ON block = blocks.id"
            " ORDER BY used, blocks.id"
        )
        for number, length in oldest:
            if excess <= 0:
                break
            doomed.append((number,))
            excess -= length
        oldest.close()
        db.executemany("DELETE FROM blocks WHERE id = ?", doomed)
        db.executemany("DELETE FROM bodies WHERE block = ?", doomed)
        db.execute("DELETE FROM spaces WHERE id NOT IN (SELECT space FROM blocks)")
        dropped = db.execute(f"DELETE FROM entries WHERE slot / {_PLACES} NOT IN (SELECT id FROM blocks)")
        return dropped.rowcount if doomed else None


def measure(db: sqlite3.Connection, max_bytes: int, file_bytes: int) -> CacheSize:
    """How much is kept, in all and for each model, the largest first."""
    named = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'names'").fetchone()[0]
    names = dict(db.execute("SELECT identity, name FROM names")) if named else {}
    rows = db.execute(
        "SELECT identity, variant, sum(vectors), sum(length(body)) FROM spaces"
        " JOIN blocks ON space = spaces.id JOIN bodies ON block = blocks.id"
        " GROUP BY spaces.id ORDER BY 4 DESC, 1, 2"
    ).fetchall()
    (vectors,) = db.execute("SELECT count(*) FROM entries").fetchone()
    spaces = tuple(
        SpaceSize(identity, variant, count, size, names.get(identity, ""))
        for identity, variant, count, size in rows
    )
    return CacheSize(vectors, used_bytes(db), max_bytes, file_bytes, spaces)


def _slots(db: sqlite3.Connection, keys: Ints) -> Ints:
    """Where each key's vector lies, block and place in one number."""
    wanted = keys.tolist()
    found: dict[int, int] = {}
    for chunk in _chunks(wanted):
        marks = ",".join("?" * len(chunk))
        found.update(db.execute(f"SELECT key, slot FROM entries WHERE key IN ({marks})", chunk))
    return np.array([found.get(key, _ABSENT) for key in wanted], dtype=np.int64)


def _shapes(db: sqlite3.Connection, numbers: Ints) -> dict[int, Shape]:
    shapes: dict[int, Shape] = {}
    for chunk in _chunks(numbers.tolist()):
        query = f"SELECT id, vectors, dims, used FROM blocks WHERE id IN ({','.join('?' * len(chunk))})"
        shapes.update({number: Shape(*rest) for number, *rest in db.execute(query, chunk)})
    return shapes


def _body(db: sqlite3.Connection, number: int) -> bytes:
    """The bytes of a block; none where it has gone."""
    row = db.execute("SELECT body FROM bodies WHERE block = ?", (number,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], bytes) else b""


def _space(db: sqlite3.Connection, identity: str, variant: str) -> int:
    """The number of a model and a variant; it only serves to say what takes up the room."""
    words = (_storable(identity), _storable(variant))
    db.execute("INSERT OR IGNORE INTO spaces (identity, variant) VALUES (?, ?)", words)
    query = "SELECT id FROM spaces WHERE identity = ? AND variant = ?"
    return int(db.execute(query, words).fetchone()[0])


def _storable(word: str) -> str:
    """Half surrogates cannot be stored as text."""
    return word.encode("utf-8", "backslashreplace").decode()


def _write_block(db: sqlite3.Connection, space: int, keys: Keys, vectors: Vectors, now: int) -> None:
    count, dims = vectors.shape
    (number,) = db.execute(
        "INSERT INTO blocks (space, vectors, dims, used) VALUES (?, ?, ?, ?) RETURNING id",
        (space, count, dims, now),
    ).fetchone()
    db.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?)", (number, pack(keys, vectors)))
    slots = range(number * _PLACES, number * _PLACES + count)
    db.executemany("INSERT INTO entries VALUES (?, ?)", zip(keys[:, 0].tolist(), slots, strict=True))


def _commonest_dims(blocks: dict[int, Shape]) -> int:
    votes: dict[int, int] = {}
    for shape in blocks.values():
        votes[shape.dims] = votes.get(shape.dims, 0) + shape.vectors
    return max(votes, key=lambda dims: (votes[dims], dims), default=0)


def _chunks(values: list[int]) -> Iterator[list[int]]:
    """Pieces that fit into one statement."""
    for start in range(0, len(values), _PARAMETERS):
        yield values[start : start + _PARAMETERS]


def _stretches(values: Ints) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of equal values."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    yield from ((start, end) for start, end in pairwise(edges) if end > start)
