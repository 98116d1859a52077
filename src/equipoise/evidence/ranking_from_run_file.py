"""Rankings from TREC run files that are read in parts, so that memory does not grow with the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from equipoise.errors import InputError
from equipoise.evidence.kernels.rank_counts import count_above_and_tied, count_in_sorted_rows
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import NOT_RETRIEVED, candidate_counts
from equipoise.io.arrays import segment_indices, segment_offsets
from equipoise.io.run_files import QRELS, RUN, UNTAGGED_RUN, trec_blocks
from equipoise.io.text import NotStreamableError
from equipoise.io.trec_columns import Hashes, TrecColumns, complete_lists, hash_ids, pair_keys, parse_columns
from equipoise.types import Bools, Floats, Ids, Ints

_PART_SCORES = 1 << 20
"""Cells of the padded matrix of lists that are ranked together."""


@dataclass(frozen=True, slots=True)
class QrelsArrays:
    """Relevance judgements as arrays: items by unit, each with the hash of unit and item, and its gain.

    ``sorted_units`` are the hashes of the units in ascending order, ``unit_order`` the positions of the units in that
    order.
    """

    unit_ids: Ids
    starts: Ints
    keys: Hashes
    gains: Floats
    sorted_units: Hashes
    unit_order: Ints

    @classmethod
    def read(cls, path: str | Path) -> QrelsArrays | None:
        """From a file of TREC qrels; None if it has another format or an error."""
        # Buffers that grow, because many small arrays would fragment the memory.
        query_bytes, doc_bytes, gain_bytes, first_bytes = (bytearray() for _ in range(4))
        names: list[str] = []
        try:
            for block in trec_blocks(path, qrels=True):
                columns = parse_columns(block, QRELS)
                if columns is None:
                    continue
                first = columns.first_lines()
                names += columns.query_ids(first)
                query_bytes += columns.queries.data
                doc_bytes += columns.docs.data
                gain_bytes += columns.values.data
                first_bytes += columns.queries[first].data
        except (NotStreamableError, InputError):
            return None
        if not names:
            return None
        queries, docs = np.frombuffer(query_bytes, np.uint64), np.frombuffer(doc_bytes, np.uint64)
        gains = np.frombuffer(gain_bytes, np.float64)
        hashes, first = np.unique(np.frombuffer(first_bytes, np.uint64), return_index=True)
        # Units are in the order of their first line; the items of a unit are in the order of their lines.
        order = np.argsort(first)
        unit_ids = np.array(names, dtype=object)[first[order]]
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        unit = rank[np.searchsorted(hashes, queries)]
        by_unit = np.argsort(unit, kind="stable")
        keys = pair_keys(queries, docs)[by_unit]
        return cls._checked(unit_ids, np.bincount(unit, minlength=len(unit_ids)), keys, gains[by_unit], hashes[order])

    @classmethod
    def of_dicts(cls, qrels: Mapping[str, Mapping[str, float]]) -> QrelsArrays | None:
        """From dicts of dicts; None if an id is not a string or a gain is not a number."""
        try:
            counts = np.fromiter(map(len, qrels.values()), np.int64, len(qrels))
            units = hash_ids(list(qrels))
            docs = hash_ids([item for items in qrels.values() for item in items])
            gains = np.array([gain for items in qrels.values() for gain in items.values()], dtype=np.float64)
        except (TypeError, ValueError, AttributeError, OverflowError):
            return None
        unit_ids = np.array(list(qrels), dtype=object)
        return cls._checked(unit_ids, counts, pair_keys(np.repeat(units, counts), docs), gains, units)

    @classmethod
    def _checked(cls, unit_ids: Ids, counts: Ints, keys: Hashes, gains: Floats, units: Hashes) -> QrelsArrays | None:
        """None if an item is assessed twice for a unit, or a gain is NaN."""
        ascending = np.sort(keys)
        if (ascending[1:] == ascending[:-1]).any() or np.isnan(gains).any() or not len(unit_ids):
            return None
        order = np.argsort(units)
        return cls(unit_ids, segment_offsets(counts.astype(np.int64)), keys, gains, units[order], order)

    def find_units(self, hashes: Hashes) -> Ints:
        """The position of each unit; -1 for unknown ones."""
        return _find(hashes, self.sorted_units, self.unit_order)


def streamed_ranking(
    judgements: QrelsArrays | None, path: str | Path, *, tag: str | None = None, corpus_size: int | None = None
) -> Ranking | None:
    """The ranking of a TREC run file, read in constant memory; None if that is not possible.

    Only one block of lists is in memory at a time, in addition to the judgements and the counts. The result is None
    if the lines of a query are not contiguous, the file has another format, or it contains an error: then the
    complete file must be read. Both ways give the same ranking.
    """
    if judgements is None:
        return None
    counts = _RankCounts(judgements)
    try:
        for columns in complete_lists(trec_blocks(path), RUN if tag is None else UNTAGGED_RUN):
            counts.add(columns)
    except (NotStreamableError, InputError):
        return None
    return counts.ranking(corpus_size) if counts.n_lines else None


class _RankCounts:
    """The ranks of all items of the qrels, filled in part by part."""

    def __init__(self, qrels: QrelsArrays) -> None:
        self.qrels = qrels
        self.above = np.full(len(qrels.keys), NOT_RETRIEVED, dtype=np.int64)
        self.tied = np.zeros(len(qrels.keys), dtype=np.int64)
        self.before = np.zeros(len(qrels.keys), dtype=np.int64)
        self.depth = np.zeros(len(qrels.unit_ids), dtype=np.int64)
        self.unknown: set[str] = set()
        self.n_lines = 0

    def add(self, columns: TrecColumns) -> None:
        """Rank the items of these lists; ``NotStreamableError`` if a list or an item occurs twice."""
        first = columns.first_lines()
        lengths = np.diff(first, append=len(columns))
        keys = pair_keys(columns.queries, columns.docs)
        order = np.argsort(keys)
        ascending = keys[order]
        if (ascending[1:] == ascending[:-1]).any():
            raise NotStreamableError("a list has a document twice")
        units = self.qrels.find_units(columns.queries[first])
        if (units < 0).any():
            self._add_unknown(columns.query_ids(first[units < 0]))
        first, lengths, units = first[units >= 0], lengths[units >= 0], units[units >= 0]
        if self.depth[units].any() or len(np.unique(units)) != len(units):
            raise NotStreamableError("a query is in two places")
        self.depth[units] = lengths
        self.n_lines += len(columns)
        counts = np.diff(self.qrels.starts)[units]
        items = segment_indices(self.qrels.starts[units], counts)
        lines = _find(self.qrels.keys[items], ascending, order)
        ends = np.cumsum(counts)
        for part in _matrix_parts(lengths):
            chosen = slice(int(ends[part.start] - counts[part.start]), int(ends[part.stop - 1]))
            self._count(columns, first[part], lengths[part], counts[part], items[chosen], lines[chosen])

    def _add_unknown(self, units: list[str]) -> None:
        expected = len(self.unknown) + len(units)
        self.unknown.update(units)
        if len(self.unknown) != expected:
            raise NotStreamableError("a query is in two places")

    def _count(self, columns: TrecColumns, first: Ints, lengths: Ints, counts: Ints, items: Ints, lines: Ints) -> None:
        """Count the scores above and equal to those of the items; ``lines`` are their lines, -1 if not retrieved."""
        width = int(lengths.max())
        inside: Bools = np.arange(width) < lengths[:, None]
        matrix = np.full((len(first), width), np.nan)
        matrix[inside] = columns.values[segment_indices(first, lengths)]
        scores = np.where(lines >= 0, columns.values[lines], np.nan)
        list_of_item = np.repeat(np.arange(len(first)), counts)
        relevant = self.qrels.gains[items] > 0
        # An assessed pool has hundreds of items per list that are not relevant.
        for chosen, count in ((relevant, count_above_and_tied), (~relevant, count_in_sorted_rows)):
            if chosen.any():
                per_list = np.bincount(list_of_item[chosen], minlength=len(first)).astype(np.int64)
                above, tied = count(matrix, scores[chosen], per_list)
                above[lines[chosen] < 0] = NOT_RETRIEVED
                self.above[items[chosen]], self.tied[items[chosen]] = above, tied
        for index in np.flatnonzero(self.tied[items]).tolist():
            row = list_of_item[index]
            equal = np.flatnonzero(matrix[row] == scores[index]) + first[row]
            own = columns.doc(int(lines[index]))
            self.before[items[index]] = sum(columns.doc(line) > own for line in equal.tolist())

    def ranking(self, corpus_size: int | None) -> Ranking:
        """The ranking of all units of the qrels, in their order."""
        relevant = self.qrels.gains > 0
        candidates = None if corpus_size is None else candidate_counts(corpus_size, self.depth)
        ranking = self._part(relevant, candidates)
        other = None if relevant.all() else self._part(~relevant, ranking.candidates)
        return replace(ranking, unknown_units=tuple(sorted(self.unknown)), nonrelevant=other)

    def _part(self, chosen: Bools, candidates: Ints | None) -> Ranking:
        qrels = self.qrels
        items = slice(None) if chosen.all() else chosen  # a slice does not copy
        return Ranking.of_items(
            qrels.unit_ids,
            np.diff(np.concatenate([[0], np.cumsum(chosen)])[qrels.starts]),
            gain=qrels.gains[items],
            above=self.above[items],
            tied=self.tied[items],
            before=self.before[items],
            depth=self.depth,
            candidates=candidates,
        )


def _find(hashes: Hashes, ascending: Hashes, positions: Ints) -> Ints:
    """The position of each hash; -1 for those that are not among the sorted hashes."""
    index = np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)
    return np.where(ascending[index] == hashes, positions[index], -1)


def _matrix_parts(lengths: Ints) -> Iterator[slice]:
    """Slices of consecutive lists whose padded matrix has at most ``_PART_SCORES`` cells, or of one list."""
    start, widest = 0, 0
    if len(lengths) * int(lengths.max(initial=0)) <= _PART_SCORES:
        if len(lengths):
            yield slice(0, len(lengths))
        return
    for index, length in enumerate(lengths.tolist()):
        widest = max(widest, length)
        if widest * (index + 1 - start) > _PART_SCORES and index > start:
            yield slice(start, index)
            start, widest = index, length
    yield slice(start, len(lengths))
