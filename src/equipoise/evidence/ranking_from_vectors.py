"""Full-depth rankings from vectors: matrices in memory, blocks of scores, a GPU, or shards on disk.

For shards, each shard is counted separately and the counts are added. Scores of a matrix product that are too
close to the target's score for its rounding error are computed again pair by pair. So ranks and ties are those of
the vectors and do not depend on the division into shards; see ``geometry.sharded_search``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import InputError, ShapeError
from equipoise.evidence.base import to_numpy, unique_ids
from equipoise.evidence.kernels.rank_counts_gpu import count_thresholds_gpu
from equipoise.evidence.kernels.threshold_counts import count_above, count_above_and_tied
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_lists import as_ragged_ids, check_gains
from equipoise.geometry import distances
from equipoise.geometry.base import Geometry, PointArray, Validity
from equipoise.geometry.sharded_search import (
    QUERIES_AT_ONCE,
    CorpusTile,
    MapFunction,
    PreparedQueries,
    map_in_order,
    round_down,
    tiles,
)
from equipoise.geometry.shards import Shard, Shards
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.io.arrays import segment_offsets
from equipoise.progress import report_share

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

_BLOCK_BYTES = 64 << 20

Blocks = Iterable[tuple[slice, NDArray[Any]]]
"""Rows of queries, and their scores against the full corpus; a block may be overwritten."""


def ranking_from_embeddings(
    queries: ArrayLike,
    corpus: ArrayLike,
    relevant: ArrayLike,
    *,
    geometry: str | Geometry = "cosine",
    exclude: ArrayLike | None = None,
    gains: ArrayLike | None = None,
    unit_ids: ArrayLike | None = None,
    device: Any = None,
) -> Ranking:
    """See ``Ranking.from_embeddings``."""
    from equipoise.geometry.search import score_blocks

    queries, corpus = to_numpy(queries), to_numpy(corpus)
    targets = RelevantRows.of(relevant, gains, exclude, units=len(queries), corpus=len(corpus))
    if device is None:
        blocks = score_blocks(queries, corpus, geometry=geometry, block_bytes=_BLOCK_BYTES)
        ranking = targets.ranked(blocks, unit_ids)
    else:
        ranking = targets.ranked_on(device, queries, corpus, geometry, unit_ids)
    return replace(ranking, invalid_points=_invalid_points(geometry, queries, corpus))


def ranking_from_blocks(
    blocks: Blocks,
    relevant: ArrayLike,
    *,
    units: int,
    corpus: int,
    exclude: ArrayLike | None = None,
    gains: ArrayLike | None = None,
    unit_ids: ArrayLike | None = None,
) -> Ranking:
    """See ``Ranking.from_blocks``."""
    return RelevantRows.of(relevant, gains, exclude, units=units, corpus=corpus).ranked(blocks, unit_ids)


def _invalid_points(geometry: str | Geometry, queries: NDArray[Any], corpus: NDArray[Any]) -> str:
    """A description of invalid points that can be ranked nevertheless, such as zero vectors; empty if none."""
    checked = {"queries": geometry_of(geometry).check(queries), "corpus": geometry_of(geometry).check(corpus)}
    return "; ".join(f"{argument}: {validity}" for argument, validity in checked.items() if not validity.ok)


@dataclass(frozen=True)
class RelevantRows:
    """The relevant corpus rows of each unit, and the row that is not a candidate (-1: none)."""

    rows: Ints
    counts: Ints
    gain: Floats
    hidden: Ints
    corpus: int

    @classmethod
    def of(
        cls, relevant: ArrayLike, gains: ArrayLike | None, exclude: ArrayLike | None, *, units: int, corpus: int
    ) -> RelevantRows:
        """Validated rows, one list per query; rows with gains of 0 or less are not relevant."""
        rows = as_ragged_ids(_as_rows_per_query(relevant), "relevant rows")
        if len(rows.cells) != units:
            raise ShapeError(
                f"there are relevant rows for {len(rows.cells)} of {units} queries", hint="one list per query"
            )
        gain = check_gains(gains, rows)
        is_relevant = rows.inside & (gain > 0)
        flat, counts = rows.cells[is_relevant], is_relevant.sum(axis=1)
        if flat.dtype.kind not in "iu":
            raise InputError("relevant rows must be row numbers", hint="for example [[3, 7], [0]]")
        if flat.size and flat.max() >= corpus:
            raise InputError(f"relevant row {flat.max()} is not in the corpus", hint=f"rows are 0 to {corpus - 1}")
        hidden = _excluded_rows(exclude, units, corpus)
        both = np.repeat(hidden, counts) == flat
        if both.any():
            unit = int(np.repeat(np.arange(units), counts)[both][0])
            raise InputError(
                f"the relevant row of query {unit} is excluded as well",
                hint="a unit is not a candidate for itself",
            )
        return cls(flat, counts, gain[is_relevant], hidden, corpus)

    def ranked(self, blocks: Blocks, unit_ids: ArrayLike | None) -> Ranking:
        """The ranking of the relevant rows from the scores of all rows, in blocks of units."""
        starts = segment_offsets(self.counts)
        above, tied, before = (np.zeros(len(self.rows), dtype=np.int64) for _ in range(3))
        for part, scores in blocks:
            n_relevant, hidden = self.counts[part], self.hidden[part]
            items = slice(starts[part.start], starts[part.start] + int(n_relevant.sum()))
            masked = np.flatnonzero(hidden >= 0)
            scores[masked, hidden[masked]] = np.nan
            row = np.repeat(np.arange(len(n_relevant)), n_relevant)
            limit = scores[row, self.rows[items]]
            above[items], tied[items] = count_above_and_tied(scores, limit, n_relevant)
            report_share(part.stop, len(self.counts))
            for item in np.flatnonzero(tied[items] > 0):
                names = np.flatnonzero(scores[row[item]] == limit[item]).astype(str)
                before[items.start + item] = int((names > str(self.rows[items][item])).sum())
        return self.counted(above, tied, before, unit_ids)

    def ranked_on(
        self,
        device: Any,
        queries: NDArray[Any],
        corpus: NDArray[Any],
        geometry: str | Geometry,
        unit_ids: ArrayLike | None,
    ) -> Ranking:
        """The ranking with scores computed and counted on a device; only the counts are copied from there."""
        from equipoise.geometry.gpu_search import GpuSearch, index_tensor

        search, left = GpuSearch.of(queries, corpus, geometry, device, "full")
        starts = segment_offsets(self.counts)
        above, tied, before = (np.zeros(len(self.rows), dtype=np.int64) for _ in range(3))
        for part, scores in search.blocks(left):
            n_relevant, hidden = self.counts[part], self.hidden[part]
            items = slice(int(starts[part.start]), int(starts[part.start]) + int(n_relevant.sum()))
            masked = np.flatnonzero(hidden >= 0)
            scores[index_tensor(masked, scores.device), index_tensor(hidden[masked], scores.device)] = np.nan
            row, rows = np.repeat(np.arange(len(n_relevant)), n_relevant), self.rows[items]
            row_tensor = index_tensor(row, scores.device)
            limit = scores[row_tensor, index_tensor(rows, scores.device)]
            higher, equal = count_thresholds_gpu(scores, row_tensor, limit)
            above[items], tied[items] = higher.cpu().numpy(), equal.cpu().numpy() - 1
            for item, first in _ties_before(scores, row, rows, limit, np.flatnonzero(tied[items] > 0)):
                before[items.start + item] = first
        return self.counted(above, tied, before, unit_ids)

    def counted(self, above: Ints, tied: Ints, before: Ints, unit_ids: ArrayLike | None) -> Ranking:
        """The ranking from counts in the order of the rows."""
        pool = self.corpus - (self.hidden >= 0)
        return Ranking.of_items(
            unique_ids(unit_ids, len(self.counts)),
            self.counts,
            gain=self.gain,
            above=above,
            tied=tied,
            before=before,
            depth=pool,
            candidates=pool,
        )


def _as_rows_per_query(relevant: Any) -> Any:
    """A flat array or list of row numbers as one relevant row per query."""
    flat = np.ndim(relevant) == 1 if isinstance(relevant, np.ndarray) else all(map(np.isscalar, relevant))
    return np.asarray(relevant)[:, None] if flat else relevant


def _excluded_rows(exclude: Any, units: int, corpus: int) -> Ints:
    hidden = np.full(units, -1, dtype=np.int64) if exclude is None else np.asarray(exclude, dtype=np.int64)
    if hidden.shape != (units,):
        raise ShapeError(f"exclude has shape {hidden.shape}; one corpus row per query is needed", hint="-1 for none")
    if hidden.max(initial=-1) >= corpus:
        raise InputError(f"row {hidden.max()} cannot be excluded: the corpus has {corpus}", hint="-1 for none")
    return hidden


def ranking_from_points_on(
    device: Any, points: PointArray, pairs: Ints, geometry: Geometry, *, unit_ids: ArrayLike | None = None
) -> Ranking:
    """The ranking of ``ranking_among_points``, from matrix products on a device instead of exact distances.

    Targets nearly as far as another point may swap ranks with it, because the products are rounded.
    """
    n_points = len(points)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    counts = np.bincount(pairs[:, 0], minlength=n_points)
    targets = RelevantRows(pairs[order, 1], counts, np.ones(len(pairs)), np.arange(n_points), n_points)
    return targets.ranked_on(device, points, points, geometry, unit_ids)


def _ties_before(scores: Any, row: Ints, rows: Ints, limit: Any, items: Ints) -> Iterator[tuple[int, int]]:
    """For each tied item, how many of its ties precede it by id."""
    for item in items.tolist():
        equal = (scores[int(row[item])] == limit[item]).nonzero()[:, 0].cpu().numpy().astype(str)
        yield item, int((equal > str(rows[item])).sum())


_ROWS_PER_READ = 4096


def ranking_from_shards(
    queries: ArrayLike,
    corpus: Shards | Sequence[object] | ArrayLike,
    relevant: ArrayLike,
    *,
    geometry: str | Geometry = "cosine",
    exclude: ArrayLike | None = None,
    gains: ArrayLike | None = None,
    unit_ids: ArrayLike | None = None,
    threads: int = 1,
    map_function: MapFunction | None = None,
    progress: Callable[[int], None] | None = None,
) -> Ranking:
    """Compute the ranks of the relevant rows among all rows of a corpus that need not fit into memory.

    Parameters
    ----------
    queries
        One vector per row.
    corpus
        The result of ``open_shards`` or ``write_shards``, or a sequence of arrays.
    relevant
        Row numbers of the relevant vectors: one per query, or a sequence per query.
    geometry
        ``cosine``, ``dot``, ``euclidean``, ``poincare`` or ``lorentz``.
    exclude
        Rows that are not candidates: one per query, or a sequence per query.
    gains
        Gains of the relevant rows; 1 by default.
    unit_ids
        Ids of the queries.
    threads
        Threads that share the shards.
    map_function
        Another map function over the shards, such as that of ``resumable_map``.
    progress
        Called with the number of vectors that were compared.

    Returns
    -------
    Ranking
        Evidence with full-depth ranks.

    Examples
    --------
    >>> ranking_from_shards([[1.0, 0.0]], [[[0.0, 1.0]], [[1.0, 0.1], [1.0, 0.0]]], [1], geometry="dot").tied
    array([1])
    """
    shards = corpus if isinstance(corpus, Shards) else Shards.of(corpus)
    points = to_numpy(queries)
    targets = RelevantRows.of(relevant, gains, exclude, units=len(points), corpus=len(shards))
    prepared = PreparedQueries.of(points, geometry, shards.dims, shards.dtype)
    limits = TargetScores.of(prepared, shards, targets.counts, targets.rows)
    counts = ShardCounts.none(len(targets.rows))
    done = 0
    for shard, shard_counts in map_in_order(
        partial(count_shard, prepared, limits), shards.split().parts, threads, map_function
    ):
        counts += shard_counts
        done += len(shard)
        if progress is not None:
            progress(done)
    # A relevant row was also compared with itself.
    counts = replace(counts, tied=counts.tied - 1)
    counts -= limits.hidden(prepared, shards, targets.hidden)
    ranking = targets.counted(counts.above, counts.tied, counts.before, unit_ids)
    return replace(ranking, invalid_points=_invalid_shard_points(geometry, points, len(shards), counts.zeros))


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """For each relevant row: how many other rows score above it, tie with it, and tie with a preceding id.

    ``zeros`` are the zero vectors of the corpus.
    """

    above: Ints
    tied: Ints
    before: Ints
    zeros: Ints

    @classmethod
    def none(cls, items: int) -> ShardCounts:
        """Zero counts."""
        above, tied, before = (np.zeros(items, dtype=np.int64) for _ in range(3))
        return cls(above, tied, before, np.empty(0, dtype=np.int64))

    def __add__(self, other: ShardCounts) -> ShardCounts:
        zeros = np.concatenate([self.zeros, other.zeros])
        return ShardCounts(self.above + other.above, self.tied + other.tied, self.before + other.before, zeros)

    def __sub__(self, other: ShardCounts) -> ShardCounts:
        return ShardCounts(self.above - other.above, self.tied - other.tied, self.before - other.before, self.zeros)

    def compare(self, items: Ints, rows: Ints, scores: Floats, limits: TargetScores) -> None:
        """Add corpus rows with their scores; ``items`` are the relevant rows they are compared with."""
        equal = scores == limits.scores[items]
        np.add.at(self.above, items, scores > limits.scores[items])
        np.add.at(self.tied, items, equal)
        target_rows = limits.rows[items]
        first = equal & (rows != target_rows)
        first[first] = rows[first].astype(str) > target_rows[first].astype(str)
        np.add.at(self.before, items, first)


@dataclass(frozen=True, slots=True)
class TargetScores:
    """The relevant rows of all queries, grouped by query, and their scores."""

    counts: Ints
    rows: Ints
    scores: Floats

    @classmethod
    def of(cls, queries: PreparedQueries, shards: Shards, counts: Ints, rows: Ints) -> TargetScores:
        """The scores, pair by pair; the rows are read a few thousand at a time."""
        return cls(counts, rows, _scores(queries, shards, np.repeat(np.arange(len(counts)), counts), rows))

    def hidden(self, queries: PreparedQueries, shards: Shards, hidden: Ints) -> ShardCounts:
        """The counts contributed by the rows that are not candidates (-1: none)."""
        counts = ShardCounts.none(len(self.rows))
        units = np.flatnonzero(hidden >= 0)
        scores = np.zeros(len(hidden))
        scores[units] = _scores(queries, shards, units, hidden[units])
        owner = np.repeat(np.arange(len(hidden)), self.counts)
        items = np.flatnonzero(hidden[owner] >= 0)
        counts.compare(items, hidden[owner[items]], scores[owner[items]], self)
        return counts


def count_shard(queries: PreparedQueries, limits: TargetScores, shard: Shard) -> ShardCounts:
    """The counts of one shard."""
    counts = ShardCounts.none(len(limits.rows))
    starts = segment_offsets(limits.counts)
    buffers = queries.buffers(QUERIES_AT_ONCE)
    zeros = []
    for first, tile in tiles(queries, shard):
        zeros.append(first + np.flatnonzero(tile.lengths == 0.0))
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(start, start + QUERIES_AT_ONCE)
            block = queries.block(part)
            query_block = _QueryBlock(limits.counts[part], int(starts[start]), block.product(tile, buffers))
            _count_block(block, tile, first, query_block, limits, counts)
    return replace(counts, zeros=np.concatenate(zeros))


@dataclass(frozen=True, slots=True)
class _QueryBlock:
    """A block of queries: relevant rows per query, the index of the first, and the scores of a tile."""

    counts: Ints
    start: int
    near: PointArray

    def in_turn(self) -> Iterator[tuple[Ints, Ints]]:
        """The queries with their first relevant row, then those with a second one, and so on."""
        starts = self.start + segment_offsets(self.counts)[:-1]
        for number in range(int(self.counts.max(initial=0))):
            query = np.flatnonzero(self.counts > number)
            yield query, starts[query] + number


def _count_block(
    block: PreparedQueries,
    tile: CorpusTile,
    first: int,
    query_block: _QueryBlock,
    limits: TargetScores,
    counts: ShardCounts,
) -> None:
    """Count the scores certainly above each limit, and compare the uncertain ones exactly."""
    slack = block.slack(tile)
    for query, items in query_block.in_turn():
        near = query_block.near if len(query) == len(query_block.near) else query_block.near[query]
        level, margin = limits.scores[items] + block.shift[query], slack[query]
        low = round_down(level - margin, near.dtype)
        high = -round_down(-(level + margin), near.dtype)
        n_certain, n_possible = count_above(near, high), count_above(near, low)
        counts.above[items] += n_certain
        undecided = np.flatnonzero(n_possible > n_certain)
        rows = near[undecided]
        position, column = np.nonzero((rows > low[undecided, None]) & (rows <= high[undecided, None]))
        position = undecided[position]
        counts.compare(items[position], first + column, block.scores(tile, query[position], column), limits)


def _scores(prepared: PreparedQueries, shards: Shards, queries: Ints, rows: Ints) -> Floats:
    """Scores of pairs of queries and corpus rows."""
    scores = np.empty(len(rows))
    order = np.argsort(rows, kind="stable")
    for start in range(0, len(rows), _ROWS_PER_READ):
        part = order[start : start + _ROWS_PER_READ]
        vectors = shards.take(rows[part])
        scores[part] = prepared.pairs(queries[part], vectors, distances.norm(vectors), np.arange(len(part)))
    return scores


def _invalid_shard_points(geometry: str | Geometry, queries: Any, corpus: int, zeros: Ints) -> str:
    """A description of invalid points that can be ranked nevertheless, from the geometry; empty if none."""
    space = geometry_of(geometry)
    checked = {"queries": space.check(queries)}
    faults = space.check(np.zeros((1, 2))).faults
    if faults and len(zeros):
        checked["corpus"] = Validity(space.name, corpus, (replace(faults[0], rows=np.sort(zeros)),))
    return "; ".join(f"{argument}: {validity}" for argument, validity in checked.items() if not validity.ok)
