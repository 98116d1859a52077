"""A corpus in parts, each in memory or in a file: more vectors than memory holds, looked at part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, ShapeError
from equipoise.geometry.filerows import FileRows
from equipoise.geometry.points import Points, as_points
from equipoise.types import Ints

WINDOW_BYTES = 32 << 20
"""What is read of a shard at a time, as float32 or float64."""

SHARD_BYTES = 512 << 20
"""A larger file counts as several shards, so that threads and machines can share it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some vectors of a corpus, and the number that the first of them has in all of it.

    int8 rows stand for the whole numbers times a float32 step a row; without ``steps``, for themselves.
    """

    rows: NDArray[Any] | FileRows
    first: int = 0
    steps: NDArray[Any] | FileRows | None = None
    name: str = "the corpus"

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dims(self) -> int:
        """How many coordinates a vector has."""
        return self.rows.dims if isinstance(self.rows, FileRows) else int(self.rows.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the vectors are when they are looked at: float64 if they were kept so, else float32."""
        return np.dtype(np.float64 if self.rows.dtype == np.float64 else np.float32)

    def windows(self) -> Iterator[tuple[int, Points]]:
        """The vectors a few at a time, each window with the corpus number of its first vector."""
        size = max(1, WINDOW_BYTES // (self.dims * self.dtype.itemsize))
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            steps = None if self.steps is None else _read(self.steps[part])
            yield self.first + start, self._decoded(_read(self.rows[part]), steps)

    def take(self, rows: Ints) -> Points:
        """Some vectors by their number in the corpus."""
        places = rows - self.first
        steps = None if self.steps is None else _taken(self.steps, places)
        return self._decoded(_taken(self.rows, places), steps)

    def parts(self, rows: int) -> list[Shard]:
        """The same vectors as shards of at most so many."""
        return [
            Shard(
                self.rows[start : start + rows],
                self.first + start,
                None if self.steps is None else self.steps[start : start + rows],
                self.name,
            )
            for start in range(0, len(self), rows)
        ]

    def _decoded(self, rows: NDArray[Any], steps: NDArray[Any] | None) -> Points:
        vectors = rows.astype(self.dtype, copy=False)
        return vectors if steps is None else vectors * steps.astype(np.float32).reshape(-1, 1)


@dataclass(frozen=True, slots=True)
class Shards:
    """All shards of a corpus, in order.

    >>> corpus = Shards.of([np.zeros((2, 3)), np.ones((4, 3))])
    >>> len(corpus), corpus.dims, [shard.first for shard in corpus.parts]
    (6, 3, [0, 2])
    """

    parts: tuple[Shard, ...]

    @classmethod
    def of(cls, corpus: Any) -> Shards:
        """From one matrix, from several that follow one another, or from shards that know their vectors."""
        given: Sequence[Any] = [corpus] if getattr(corpus, "ndim", 0) == 2 else list(corpus)
        shards, first = [], 0
        for number, each in enumerate(given):
            made = each if isinstance(each, Shard) else _in_memory(each, f"shard {number}")
            shards.append(Shard(made.rows, first, made.steps, made.name))
            first += len(made)
        return cls(tuple(_checked(shards)))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def dims(self) -> int:
        """How many coordinates a vector has."""
        return self.parts[0].dims

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 if any shard was kept so, else float32."""
        return np.result_type(*(part.dtype for part in self.parts))

    def split(self, shard_bytes: int = SHARD_BYTES) -> Shards:
        """The same corpus in shards of at most so many bytes as they are looked at."""
        rows = max(1, shard_bytes // (self.dims * self.dtype.itemsize))
        return Shards(tuple(part for shard in self.parts for part in shard.parts(rows)))

    def take(self, rows: Ints) -> Points:
        """Vectors by number, in the order asked for; each shard is opened once."""
        firsts = np.array([shard.first for shard in self.parts])
        owner = np.searchsorted(firsts, rows, side="right") - 1
        found = np.empty((len(rows), self.dims), dtype=self.dtype)
        for number in np.unique(owner).tolist():
            places = np.flatnonzero(owner == number)
            found[places] = self.parts[number].take(rows[places])
        return found


def _in_memory(rows: Any, name: str) -> Shard:
    array = np.asarray(rows)
    return Shard(array if array.dtype == np.int8 else as_points(array, name), name=name)


def _checked(shards: Iterable[Shard]) -> list[Shard]:
    held = [shard for shard in shards if len(shard)]
    if not held:
        raise InputError("the corpus has no vectors", hint="check that the shards were written")
    for shard in held:
        if shard.dims != held[0].dims:
            raise ShapeError(
                f"{shard.name} has {shard.dims} coordinates and {held[0].name} has {held[0].dims}",
                hint="embed all shards with the same model and the same truncation",
            )
        if shard.steps is not None and len(shard.steps) != len(shard):
            raise ShapeError(
                f"{shard.name} has {len(shard):,} vectors and {len(shard.steps):,} steps",
                hint="an int8 vector has one step; write the shard again",
            )
    return held


def _read(rows: NDArray[Any] | FileRows) -> NDArray[Any]:
    return rows.read() if isinstance(rows, FileRows) else rows


def _taken(rows: NDArray[Any] | FileRows, places: Ints) -> NDArray[Any]:
    return rows.take(places) if isinstance(rows, FileRows) else rows[places]
