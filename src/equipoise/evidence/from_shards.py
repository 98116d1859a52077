"""Rankings at full depth over a corpus of shards: every shard counts for itself, and counts are added.

What the product of matrices cannot tell from a limit is scored pair by pair, so ranks and ties are those of
the vectors themselves, the same however the corpus is cut; see ``geometry.tiles``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from equipoise.evidence.columns import host
from equipoise.evidence.counting import above
from equipoise.evidence.from_embeddings import Relevant
from equipoise.evidence.placement import starts_of
from equipoise.evidence.ranking import Ranking
from equipoise.geometry import Geometry, Points, Validity, functions
from equipoise.geometry import geometry as geometry_of
from equipoise.geometry.sharded import QUERIES_AT_ONCE, Mapper, in_turn, rounded_down, tiles
from equipoise.geometry.shards import Shard, Shards
from equipoise.geometry.tiles import Asked, Tile
from equipoise.types import Floats, Ints

_TAKEN_AT_ONCE = 4096


def ranking_from_shards(
    queries: Any,
    corpus: Any,
    relevant: Any,
    *,
    geometry: str | Geometry = "cosine",
    exclude: Any = None,
    gains: Any = None,
    unit_ids: Any = None,
    threads: int = 1,
    over: Mapper | None = None,
    progress: Callable[[int], None] | None = None,
) -> Ranking:
    """The full-depth ranks of the relevant rows of a corpus that need not fit into memory.

    ``corpus`` is a ``Shards`` or what ``Shards.of`` takes; ``threads``, ``over`` and ``progress`` are those
    of ``nearest_in_shards``, all else is that of ``Ranking.from_embeddings``.

    >>> ranking_from_shards([[1.0, 0.0]], [[[0.0, 1.0]], [[1.0, 0.1], [1.0, 0.0]]], [1], geometry="dot").tied
    array([1])
    """
    shards = corpus if isinstance(corpus, Shards) else Shards.of(corpus)
    points = host(queries)
    wanted = Relevant.of(relevant, gains, exclude, units=len(points), corpus=len(shards))
    asked = Asked.of(points, geometry, shards.dims, shards.dtype)
    limits = Limits.of(asked, shards, wanted.counts, wanted.rows)
    counts = Counts.none(len(wanted.rows))
    done = 0
    for shard, found in in_turn(partial(count_shard, asked, limits), shards.split().parts, threads, over):
        counts += found
        done += len(shard)
        if progress is not None:
            progress(done)
    # A relevant row has met itself, which is no tie.
    counts = replace(counts, tied=counts.tied - 1)
    counts -= limits.hidden(asked, shards, wanted.hidden)
    made = wanted.counted(counts.above, counts.tied, counts.before, unit_ids)
    return replace(made, invalid_points=_complaints(geometry, points, len(shards), counts.zeros))


@dataclass(frozen=True, slots=True)
class Counts:
    """For each relevant row: how many others score above it, how many tie, how many of these go first by id.

    ``zeros`` are the corpus rows without a direction.
    """

    above: Ints
    tied: Ints
    before: Ints
    zeros: Ints

    @classmethod
    def none(cls, items: int) -> Counts:
        """Nothing counted yet."""
        above, tied, before = (np.zeros(items, dtype=np.int64) for _ in range(3))
        return cls(above, tied, before, np.empty(0, dtype=np.int64))

    def __add__(self, other: Counts) -> Counts:
        zeros = np.concatenate([self.zeros, other.zeros])
        return Counts(self.above + other.above, self.tied + other.tied, self.before + other.before, zeros)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(
            self.above - other.above, self.tied - other.tied, self.before - other.before, self.zeros
        )

    def compare(self, items: Ints, rows: Ints, scores: Floats, limits: Limits) -> None:
        """Add corpus rows with their scores, each beside the relevant row that it is compared with."""
        equal = scores == limits.scores[items]
        np.add.at(self.above, items, scores > limits.scores[items])
        np.add.at(self.tied, items, equal)
        own = limits.rows[items]
        first = equal & (rows != own)
        first[first] = rows[first].astype(str) > own[first].astype(str)
        np.add.at(self.before, items, first)


@dataclass(frozen=True, slots=True)
class Limits:
    """The relevant rows of all queries, one query after another, and the score of each."""

    counts: Ints
    rows: Ints
    scores: Floats

    @classmethod
    def of(cls, asked: Asked, shards: Shards, counts: Ints, rows: Ints) -> Limits:
        """The scores, pair by pair; the rows are read a few thousand at a time."""
        return cls(counts, rows, _scores(asked, shards, np.repeat(np.arange(len(counts)), counts), rows))

    def hidden(self, asked: Asked, shards: Shards, hidden: Ints) -> Counts:
        """What the rows that are no candidates (-1: none) have added to the counts."""
        found = Counts.none(len(self.rows))
        units = np.flatnonzero(hidden >= 0)
        scores = np.zeros(len(hidden))
        scores[units] = _scores(asked, shards, units, hidden[units])
        owner = np.repeat(np.arange(len(hidden)), self.counts)
        items = np.flatnonzero(hidden[owner] >= 0)
        found.compare(items, hidden[owner[items]], scores[owner[items]], self)
        return found


def count_shard(asked: Asked, limits: Limits, shard: Shard) -> Counts:
    """What one shard adds to the counts."""
    counts = Counts.none(len(limits.rows))
    starts = starts_of(limits.counts)
    room = asked.room(QUERIES_AT_ONCE)
    zeros = []
    for first, tile in tiles(asked, shard):
        zeros.append(first + np.flatnonzero(tile.lengths == 0.0))
        for start in range(0, len(asked), QUERIES_AT_ONCE):
            part = slice(start, start + QUERIES_AT_ONCE)
            block = asked.block(part)
            seen = _Seen(limits.counts[part], int(starts[start]), block.product(tile, room))
            _count(block, tile, first, seen, limits, counts)
    return replace(counts, zeros=np.concatenate(zeros))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A block of queries: how many relevant rows each has, where the first stands, all scores of a tile."""

    counts: Ints
    start: int
    near: Points

    def in_turn(self) -> Iterator[tuple[Ints, Ints]]:
        """The queries with their first relevant row, then those that have a second one, and so on."""
        starts = self.start + starts_of(self.counts)[:-1]
        for number in range(int(self.counts.max(initial=0))):
            query = np.flatnonzero(self.counts > number)
            yield query, starts[query] + number


def _count(block: Asked, tile: Tile, first: int, seen: _Seen, limits: Limits, counts: Counts) -> None:
    """Count what is surely above each limit, and look at what may be."""
    slack = block.slack(tile)
    for query, items in seen.in_turn():
        near = seen.near if len(query) == len(seen.near) else seen.near[query]
        level, room = limits.scores[items] + block.shift[query], slack[query]
        low = rounded_down(level - room, near.dtype)
        high = -rounded_down(-(level + room), near.dtype)
        surely, maybe = above(near, high), above(near, low)
        counts.above[items] += surely
        unsure = np.flatnonzero(maybe > surely)
        rows = near[unsure]
        place, column = np.nonzero((rows > low[unsure, None]) & (rows <= high[unsure, None]))
        place = unsure[place]
        counts.compare(items[place], first + column, block.scores(tile, query[place], column), limits)


def _scores(asked: Asked, shards: Shards, queries: Ints, rows: Ints) -> Floats:
    """Scores of pairs whose rows lie anywhere."""
    found = np.empty(len(rows))
    order = np.argsort(rows, kind="stable")
    for start in range(0, len(rows), _TAKEN_AT_ONCE):
        part = order[start : start + _TAKEN_AT_ONCE]
        vectors = shards.take(rows[part])
        found[part] = asked.pairs(queries[part], vectors, functions.norm(vectors), np.arange(len(part)))
    return found


def _complaints(geometry: str | Geometry, queries: Any, corpus: int, zeros: Ints) -> str:
    """What is wrong with points that could be ranked all the same, in the words of the geometry."""
    space = geometry_of(geometry)
    checked = {"queries": space.check(queries)}
    faults = space.check(np.zeros((1, 2))).faults
    if faults and len(zeros):
        checked["corpus"] = Validity(space.name, corpus, (replace(faults[0], rows=np.sort(zeros)),))
    return "; ".join(f"{what}: {validity}" for what, validity in checked.items() if not validity.ok)
